//! Captures as other programs write and read them, and captures that somebody spoilt.

#[path = "targets/captures.rs"]
mod targets;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use capture::{CaptureReader, CaptureRecord, CaptureWriter};
use proptest::prelude::*;
use targets::compared;
use units::Timestamp;

const START: u64 = 1_700_000_000_123_456_000;

/// UDP in Ethernet with a number in it.
fn udp(number: u32) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([0x08, 0x00, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0, 53, 0x30, 0x39, 0, 20, 0, 0]);
    frame.extend(number.to_be_bytes());
    frame.extend([7; 8]);
    frame
}

fn capture(numbers: impl IntoIterator<Item = u32>) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new()).unwrap();
    for number in numbers {
        let (bytes, at) = (udp(number), Timestamp(START + u64::from(number) * 1_001_000));
        writer
            .write(&CaptureRecord { at, len: bytes.len() as u32, bytes: &bytes, link_number: 1, link: None })
            .unwrap();
    }
    writer.into_inner()
}

/// Times and lengths as they are read here.
fn ours(path: &Path) -> Vec<(u64, u32)> {
    let mut reader = CaptureReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut found = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        found.push((record.at.0, record.len));
    }
    found
}

/// Times and lengths as tshark reads them.
fn tsharks(path: &Path) -> Vec<(u64, u32)> {
    let fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len"];
    let output = Command::new("tshark").arg("-r").arg(path).args(fields).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = |line: &str| {
        let (time, len) = line.split_once('\t').unwrap();
        let (seconds, fraction) = time.split_once('.').unwrap();
        let nanoseconds: u64 = format!("{fraction:0<9}")[..9].parse().unwrap();
        (seconds.parse::<u64>().unwrap() * 1_000_000_000 + nanoseconds, len.parse().unwrap())
    };
    String::from_utf8(output.stdout).unwrap().lines().map(line).collect()
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn tshark_and_editcap_agree_on_every_format() {
    if !testkit::installed("tshark") {
        return;
    }
    let folder = Folder(std::env::temp_dir().join(format!("hitless-captures-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let written = folder.0.join("written.pcapng");
    std::fs::write(&written, capture(0..500)).unwrap();
    let expected = tsharks(&written);
    assert_eq!((expected.len(), expected[0].0), (500, START));
    assert_eq!(ours(&written), expected);
    if let Some(reason) = testkit::missing("editcap") {
        return testkit::skip_part(reason);
    }
    for format in ["pcap", "nsecpcap", "pcapng", "modpcap"] {
        let path = folder.0.join(format);
        let made = Command::new("editcap").args(["-F", format]).arg(&written).arg(&path).output().unwrap();
        assert!(made.status.success(), "{format}: {}", String::from_utf8_lossy(&made.stderr));
        assert_eq!(ours(&path), expected, "{format}");
    }
}

/// Files that once were trouble, or might be: none may end in anything but a result or an error.
#[test]
fn the_corpus_comes_to_an_end() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures_corpus");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let _ = compared(&bytes, &capture(0..50));
        let _ = compared(&capture(0..50), &bytes);
        targets::capture(&bytes);
        files += 1;
    }
    assert!(files >= 8, "{files} files");
}

/// A source that never ends: zeros, or the same bytes over and over.
struct Endless(Vec<u8>, usize);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.iter_mut().for_each(|byte| {
            *byte = self.0[self.1 % self.0.len()];
            self.1 += 1;
        });
        Ok(buffer.len())
    }
}

#[test]
fn a_stream_without_an_end_is_no_capture_at_once() {
    assert!(CaptureReader::new(Endless(vec![0], 0)).is_err());
    assert!(CaptureReader::new(Endless(b"text\n".to_vec(), 0)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn captures_with_wrong_bytes_are_compared_or_refused(
        spoil_up in any::<bool>(),
        wrong in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut up, mut down) = (capture(0..120), capture((0..120).filter(|number| number % 10 != 3)));
        let spoilt = if spoil_up { &mut up } else { &mut down };
        for (at, byte) in wrong {
            let at = at.index(spoilt.len());
            spoilt[at] = byte;
        }
        let end = cut.index(spoilt.len()) + 1;
        spoilt.truncate(end);
        if let Ok(found) = compared(&up, &down) {
            prop_assert!(found.losses() <= found.up.packets);
            prop_assert!(found.outside.packets() <= found.up.packets);
        }
    }
}
