//! `hitless radar delay` on captures that do not fit: one line that says what to do, exit code 2, and no delay.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use capture::{CaptureRecord, CaptureWriter};
use units::Timestamp;

const START: u64 = 1_700_000_000_000_000_000;
const MS: u64 = 1_000_000;

/// A UDP packet with a number, between two hosts.
fn frame(from: u8, to: u8, number: u32) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([0x08, 0x00, 0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    frame.extend([0x0f, 0xa0, 0x01, 0xbb, 0, 12, 0, 0]);
    frame.extend(number.to_be_bytes());
    frame
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hitless-delay-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn capture(&self, name: &str, frames: &[(u64, Vec<u8>)]) -> PathBuf {
        let path = self.0.join(name);
        let mut writer = CaptureWriter::new(std::fs::File::create(&path).unwrap()).unwrap();
        let mut frames = frames.to_vec();
        frames.sort();
        for (at, bytes) in &frames {
            let (at, len) = (Timestamp(*at), bytes.len() as u32);
            writer.write(&CaptureRecord { at, len, bytes, link_number: 1, link: None }).unwrap();
        }
        path
    }

    fn text(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

/// 100 requests and answers, 2 ms there and 6 ms back; DOWN's clock as given.
fn pair(folder: &Folder, down_clock: impl Fn(u64) -> u64, back_too: bool) -> [PathBuf; 2] {
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for number in 0..100_u32 {
        let sent = START + u64::from(number) * 20 * MS;
        up.push((sent, frame(1, 2, number)));
        down.push((down_clock(sent + 2 * MS), frame(1, 2, number)));
        if back_too {
            down.push((down_clock(sent + 3 * MS), frame(2, 1, number)));
            up.push((sent + 9 * MS, frame(2, 1, number)));
        }
    }
    [folder.capture("up.pcapng", &up), folder.capture("down.pcapng", &down)]
}

fn delay(paths: &[PathBuf; 2], more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
    command.args(["radar", "delay"]).args(paths).args(more).output().unwrap()
}

fn refused(output: &Output, parts: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(output.stdout.is_empty(), "no delay is invented");
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text}");
}

#[test]
fn captures_that_prove_nothing_are_refused_with_what_to_do() {
    let folder = Folder::new("refused");
    refused(&delay(&pair(&folder, |at| at, false), &[]), &["go one way", "--clock-up"]);
    let set = pair(&folder, |at| if at < START + 1_000 * MS { at } else { at + 5_000 * MS }, true);
    refused(&delay(&set, &[]), &["no two clocks fit", "2023-11-14 22:13:2", "a clock was set there", "4.99"]);
    let fast = pair(&folder, |at| at + (at - START) / 100, true);
    refused(&delay(&fast, &[]), &["--drift is too small", "ppm"]);
    let good = pair(&folder, |at| at, true);
    let other = folder.capture("other.pcapng", &[(START, frame(7, 8, 1))]);
    refused(&delay(&[good[0].clone(), other], &[]), &["no packet in common"]);
    refused(&delay(&good, &["--drift=-3"]), &["--drift -3", "parts per million"]);
    let nonsense = folder.text("nonsense", "hello\n");
    refused(
        &delay(&good, &["--clock-up", path(&nonsense), "--clock-down", path(&nonsense)]),
        &["--clock-up", "line 1", "expected JSON"],
    );
    refused(&delay(&good, &["--clock-up", path(&nonsense)]), &["--clock-down"]);
    refused(&delay(&good, &["--html", path(&good[0])]), &["that is a file to be read"]);
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn clocks_that_say_how_wrong_they_are_decide_which_direction_takes_longer() {
    let folder = Folder::new("clocks");
    let captures = pair(&folder, |at| at + 7_000_000_000, true);
    let unsure = delay(&captures, &[]);
    let text = String::from_utf8_lossy(&unsure.stdout).into_owned();
    assert!(unsure.status.success() && text.contains("which direction takes longer cannot be said"), "{text}");
    let stated = |ahead: u64| -> String {
        let line = |nth: u64| {
            let at = START + nth * 100 * MS;
            format!("{{\"local_ns\":{},\"earliest_ns\":{},\"latest_ns\":{}}}\n", at + ahead, at - 50_000, at + 50_000)
        };
        (0..20).map(line).collect()
    };
    let (up, down) = (folder.text("up.clock", &stated(0)), folder.text("down.clock", &stated(7_000_000_000)));
    let clocks = ["--clock-up", path(&up), "--clock-down", path(&down), "--json"];
    let sure = delay(&captures, &clocks);
    let json: serde_json::Value = serde_json::from_slice(&sure.stdout).unwrap();
    assert_eq!((&json["slower"], &json["directions"][1]["sure"]), (&"down-to-up".into(), &true.into()), "{json}");
    let p50 = &json["directions"][0]["delay_ns"]["p50"];
    assert!(p50[0].as_u64() <= Some(2_000_000) && Some(2_000_000) <= p50[1].as_u64(), "{p50}");
    // One direction is enough now.
    let one_way = delay(&pair(&folder, |at| at + 7_000_000_000, false), &clocks);
    let json: serde_json::Value = serde_json::from_slice(&one_way.stdout).unwrap();
    assert_eq!(json["directions"][1]["n"], 0);
    assert!(
        json["directions"][1]["delay_ns"]["p50"].is_null() && json["directions"][1]["reason"].is_string(),
        "{json}"
    );
}
