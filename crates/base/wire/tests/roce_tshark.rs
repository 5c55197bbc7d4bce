//! Wireshark's dissector and our parser read our RoCEv2 frames the same, field by field.

mod roce_frames;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::{env, fs, process};

use pcap_file::pcap::{PcapPacket, PcapWriter};
use roce_frames::{Shape, around, carries, frame, header, malformed, pad};
use wire::roce::{CongestionNotification, ExtensionHeader, Opcode, ParsedRoce, RoceHeader, Syndrome, parse};

const FIELDS: [&str; 11] = [
    "infiniband.bth.opcode",
    "infiniband.bth.padcnt",
    "infiniband.bth.tver",
    "infiniband.bth.destqp",
    "infiniband.bth.a",
    "infiniband.bth.psn",
    "infiniband.aeth.syndrome",
    "infiniband.aeth.msn",
    "infiniband.reth.dmalen",
    "udp.length",
    "infiniband.invariant.crc",
];

/// A folder of the test's own, which is also tshark's home: the user who runs the test may have preferences.
struct Folder(PathBuf);

impl Folder {
    /// `None`, and the test is skipped, where there is no tshark.
    fn new(name: &str) -> Option<Self> {
        if !testkit::installed("tshark") {
            return None;
        }
        let path = env::temp_dir().join(format!("hitless-roce-{name}-{}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Some(Self(path))
    }

    /// One row for each frame.
    fn dissect(&self, frames: &[Vec<u8>], fields: &[&str]) -> Vec<Vec<String>> {
        let file = self.0.join("frames.pcap");
        let mut writer = PcapWriter::new(fs::File::create(&file).unwrap()).unwrap();
        for (at, frame) in (0..).map(Duration::from_millis).zip(frames) {
            writer.write_packet(&PcapPacket::new(at, frame.len() as u32, frame)).unwrap();
        }
        drop(writer);
        let output = Command::new("tshark")
            .env("HOME", &self.0)
            .env("XDG_CONFIG_HOME", &self.0)
            // Payload of ours must not be taken for what it is not; each fragment is looked at by itself.
            .args(["-n", "--disable-protocol", "rpcordma", "-o", "ip.defragment:FALSE", "-r"])
            .arg(&file)
            .args(["-T", "fields", "-E", "separator=;"])
            .args(fields.iter().flat_map(|field| ["-e", field]))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let rows: Vec<_> = text.lines().map(|line| line.split(';').map(str::to_owned).collect()).collect();
        assert_eq!(rows.len(), frames.len());
        rows
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Every opcode in every shape, and every syndrome.
fn well_formed() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for (number, shape) in Shape::all().enumerate() {
        for (psn, opcode) in (0xff_ffe8..).zip(Opcode::ALL) {
            let payload = if carries(opcode) { [0, 7, 64, 1_021, 4_096][(number + psn as usize) % 5] } else { 0 };
            frames.push(frame(shape, &header(opcode, psn, pad(payload)), payload));
        }
    }
    for syndrome in 0..=u8::MAX {
        let extended = Some(ExtensionHeader::Ack { syndrome: Syndrome(syndrome), msn: 0xfe_dcba });
        let answer = RoceHeader { extended, ..header(Opcode::Acknowledge, u32::from(syndrome) << 16, 0) };
        frames.push(frame(Shape::PLAIN, &answer, 0));
    }
    frames
}

/// Fields that our parser reads, as tshark would print them.
fn row(frame: &[u8]) -> Vec<String> {
    let Ok(ParsedRoce::Reliable { header, payload }) = parse(frame) else { panic!("{:?}", parse(frame)) };
    let (mut syndrome, mut msn, mut len) = Default::default();
    match header.extended {
        Some(ExtensionHeader::Ack { syndrome: Syndrome(code), msn: number }) => {
            (syndrome, msn) = (code.to_string(), number.to_string());
        }
        Some(ExtensionHeader::Rdma { len: bytes }) => len = bytes.to_string(),
        None => {}
    }
    let udp = 8 + header.size() + payload + usize::from(header.pad) + RoceHeader::CHECK;
    let check = u32::from_be_bytes(*frame.last_chunk().unwrap());
    vec![
        (header.opcode as u8).to_string(),
        header.pad.to_string(),
        "0".to_owned(),
        format!("{:#08x}", header.queue_pair),
        u8::from(header.ack_request).to_string(),
        header.psn.to_string(),
        syndrome,
        msn,
        len,
        udp.to_string(),
        format!("{check:#010x}"),
    ]
}

#[test]
fn tshark_reads_every_field_as_we_do() {
    let Some(folder) = Folder::new("fields") else { return };
    let frames = well_formed();
    let mut checks = 0;
    for (frame, mut seen) in frames.iter().zip(folder.dissect(&frames, &FIELDS)) {
        let mut ours = row(frame);
        // Newer versions spell booleans out.
        seen[4] = seen[4].replace("True", "1").replace("False", "0");
        // It does not show the check of every kind of packet.
        let (theirs, check) = (seen.pop().unwrap(), ours.pop().unwrap());
        assert!(theirs.is_empty() || theirs == check, "{theirs} and {check} in {ours:?}");
        checks += usize::from(!theirs.is_empty());
        assert_eq!(seen, ours);
    }
    assert!(checks > frames.len() / 4, "{checks}");
}

#[test]
fn what_tshark_calls_malformed_we_do_too_and_nothing_that_we_emit() {
    let Some(folder) = Folder::new("malformed") else { return };
    let good = well_formed();
    let mut frames = good.clone();
    let bad: Vec<(&str, Vec<u8>)> = Shape::all().flat_map(malformed).collect();
    frames.extend(bad.iter().map(|(_, frame)| frame.clone()));
    let rows = folder.dissect(&frames, &["_ws.malformed", "infiniband.bth.tver"]);
    let mut lenient: Vec<&str> = Vec::new();
    for (at, (frame, seen)) in frames.iter().zip(rows).enumerate() {
        let they_refuse = !seen[0].is_empty();
        assert!(!they_refuse || parse(frame).is_err(), "{seen:?}: {:?}", parse(frame));
        assert!(at >= good.len() || parse(frame).is_ok());
        if at >= good.len() && !they_refuse {
            lenient.push(bad[at - good.len()].0);
        }
    }
    lenient.sort_unstable();
    lenient.dedup();
    // It takes the invariant CRC for an AETH, and pad for what is not there; trusts UDP's length where that is shorter
    // than IP's; shows any version.
    assert_eq!(lenient, ["no-ack", "pad-of-nothing", "udp-too-short", "version-1"]);
}

#[test]
fn other_transports_are_other_to_tshark_too() {
    let Some(folder) = Folder::new("other") else { return };
    let mut bytes = Vec::new();
    header(Opcode::SendOnly, 1, 0).emit(&mut bytes);
    bytes.resize(bytes.len() + 32, 0);
    // UC SEND, UD SEND, a congestion notification, XRC SEND.
    let codes = [0x24, 0x64, 0x81, 0xa4];
    let frames: Vec<Vec<u8>> = codes
        .iter()
        .map(|code| {
            bytes[0] = *code;
            around(Shape::PLAIN, &bytes)
        })
        .collect();
    for ((code, frame), seen) in codes.iter().zip(&frames).zip(folder.dissect(&frames, &FIELDS[..1])) {
        assert_eq!(parse(frame), Ok(ParsedRoce::Other { opcode: *code }));
        assert_eq!(seen, [code.to_string()]);
    }
}

#[test]
fn tshark_reads_a_congestion_notification() {
    let Some(folder) = Folder::new("cnp") else { return };
    let queue_pair = 0xfe_dcba;
    let frames: Vec<Vec<u8>> = Shape::all()
        .map(|shape| {
            let mut bytes = Vec::new();
            CongestionNotification { queue_pair }.emit(&mut bytes);
            assert_eq!(bytes.len(), CongestionNotification::LEN);
            around(shape, &bytes)
        })
        .collect();
    let fields = [&FIELDS[..4], &FIELDS[5..6], &["udp.length", "_ws.malformed"]].concat();
    for (frame, seen) in frames.iter().zip(folder.dissect(&frames, &fields)) {
        assert_eq!(CongestionNotification::parse(frame), Some(CongestionNotification { queue_pair }));
        assert_eq!(parse(frame), Ok(ParsedRoce::Other { opcode: 0x81 }));
        assert_eq!(wire::roce::icrc_is_valid(frame), Some(true));
        assert_eq!(seen, ["129", "0", "0", "0xfedcba", "0", "40", ""]);
    }
}

#[test]
fn only_whole_notifications_are_notifications() {
    let mut bytes = Vec::new();
    CongestionNotification { queue_pair: 1 }.emit(&mut bytes);
    let frame = around(Shape::PLAIN, &bytes);
    assert!((0..frame.len()).all(|len| CongestionNotification::parse(&frame[..len]).is_none()));
    for (at, value) in [(0, 0x80), (0, 0x11), (1, 1)] {
        let mut other = bytes.clone();
        other[at] = value;
        assert_eq!(CongestionNotification::parse(&around(Shape::PLAIN, &other)), None);
    }
    let longer = [&bytes[..], &[0; 4]].concat();
    assert_eq!(CongestionNotification::parse(&around(Shape::PLAIN, &longer)), None);
}
