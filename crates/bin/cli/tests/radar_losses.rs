//! `hitless radar losses` as a person meets it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A folder of its own for each test, gone at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hitless-losses-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn losses(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hitless")).args(["radar", "losses"]).args(args).output().unwrap()
}

fn text(args: &[&str]) -> String {
    let output = losses(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&text(&[args, &["--json"]].concat())).unwrap()
}

/// Error message of a refusal; fails if the command does not refuse.
fn refused(args: &[&str]) -> String {
    let output = losses(args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    said
}

fn ip(protocol: u8, id: u16, fragment: u16, source: [u8; 4], inside: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.extend((20 + inside.len() as u16).to_be_bytes());
    frame.extend(id.to_be_bytes());
    frame.extend(fragment.to_be_bytes());
    frame.extend([64, protocol, 0, 0]);
    frame.extend(source);
    frame.extend([10, 0, 0, 2]);
    frame.extend(inside);
    frame
}

/// A segment with a timestamp and without an identification, as Linux sends it.
fn tcp(number: u32) -> Vec<u8> {
    let mut inside = vec![0x9c, 0x40, 0x01, 0xbb];
    inside.extend((number * 100).to_be_bytes());
    inside.extend([0, 0, 0, 0, 0x80, 0x10, 1, 0, 0xab, 0xcd, 0, 0, 1, 1, 8, 10]);
    inside.extend(number.to_be_bytes());
    inside.extend([0; 4]);
    inside.extend([number as u8; 100]);
    ip(6, 0, 0x4000, [10, 0, 0, 1], &inside)
}

fn udp(number: u32) -> Vec<u8> {
    let inside = [&[0, 53, 0x30, 0x39, 0, 20, 0, 0][..], &number.to_be_bytes(), &[7; 8]].concat();
    ip(17, number as u16, 0, [10, 0, 0, 1], &inside)
}

const SECOND: u64 = 1_700_000_000;

/// Frames a millisecond apart, as pcap of nanoseconds; `kept` of each.
fn pcap(frames: &[(u64, Vec<u8>)], kept: usize) -> Vec<u8> {
    let mut file = Vec::new();
    let header = [0xa1b2_3c4d_u32, 2 | 4 << 16, 0, 0, kept as u32, 1];
    header.iter().for_each(|word| file.extend(word.to_le_bytes()));
    for (at, frame) in frames {
        let part = &frame[..frame.len().min(kept)];
        let words = [SECOND + at / 1_000_000_000, at % 1_000_000_000, part.len() as u64, frame.len() as u64];
        words.iter().for_each(|word| file.extend((*word as u32).to_le_bytes()));
        file.extend(part);
    }
    file
}

fn sent(packets: u32, frame: impl Fn(u32) -> Vec<u8>) -> Vec<(u64, Vec<u8>)> {
    (0..packets).map(|number| (u64::from(number) * 1_000_000, frame(number))).collect()
}

/// Frames that arrive 30 us later, without these.
fn arriving(sent: &[(u64, Vec<u8>)], lost: &[usize]) -> Vec<(u64, Vec<u8>)> {
    let arrives = sent.iter().enumerate().filter(|(number, _)| !lost.contains(number));
    arrives.map(|(_, (at, frame))| (at + 30_000, frame.clone())).collect()
}

/// UP with `packets` segments, and DOWN without the `lost` ones.
fn pair(folder: &Folder, packets: u32, lost: &[usize]) -> (String, String) {
    let up = sent(packets, tcp);
    let down = arriving(&up, lost);
    (folder.file("up.pcap", &pcap(&up, 65_535)), folder.file("down.pcap", &pcap(&down, 65_535)))
}

#[test]
fn lost_packets_are_listed_in_the_form_that_scripts_rely_on() {
    let folder = Folder::new("json");
    let (up, down) = pair(&folder, 500, &[0, 77, 499]);
    for way in [&["--exact"][..], &[]] {
        let answer = json(&[&[&*up, &down], way].concat());
        assert_eq!(
            (&answer["unnamed"], &answer["packets_up"], &answer["packets_down"]),
            (&0.into(), &500.into(), &497.into())
        );
        let lost = answer["lost"].as_array().unwrap();
        assert_eq!(lost.len(), 3);
        let expected = serde_json::json!({
            "time": SECOND * 1_000_000_000 + 77_000_000, "src": "10.0.0.1", "dst": "10.0.0.2", "proto": 6,
            "src_port": 40_000, "dst_port": 443, "tcp_seq": 7_700, "ip_id": 0, "cause": "unknown",
        });
        assert_eq!(lost[1], expected);
        assert_eq!(answer["skew_ns"], 30_000);
        assert_eq!(answer["flows"][0]["packets"], 500);
    }
    let told = text(&[&up, &down]);
    for part in
        ["3 packets lost", "tcp 10.0.0.1:40000 > 10.0.0.2:443", "2023-11-14 22:13:20.077000000", "7700", "30.0 us"]
    {
        assert!(told.contains(part), "{part} in {told}");
    }
}

#[test]
fn nothing_lost_is_a_result_too() {
    let folder = Folder::new("none");
    let (up, down) = pair(&folder, 50, &[]);
    assert!(text(&[&up, &down]).contains("no packet lost"));
    assert_eq!(json(&[&up, &down])["lost"], serde_json::json!([]));
    assert!(text(&[&up, &up, "--html", &folder.path("page.html")]).contains("no packet lost"));
}

#[test]
fn swapped_captures_are_told_to_be() {
    let folder = Folder::new("swapped");
    let (up, down) = pair(&folder, 500, &[3, 77]);
    let said = refused(&[&down, &up]);
    assert!(
        said.contains("seem to be swapped") && said.contains(&format!("hitless radar losses {up} {down}")),
        "{said}"
    );
    assert_eq!(json(&[&down, &up, "--whole"])["only_down"], 2);
}

#[test]
fn captures_of_different_links_are_told_to_be() {
    let folder = Folder::new("strangers");
    let (up, _) = pair(&folder, 500, &[]);
    let other = folder.file("other.pcap", &pcap(&sent(500, udp), 65_535));
    let said = refused(&[&up, &other]);
    assert!(said.contains("no packet in common") && said.contains("--nat"), "{said}");
    assert_eq!(json(&[&up, &other, "--whole"])["losses"], 500);
}

#[test]
fn addresses_that_nat_rewrites_are_left_out_when_told() {
    let folder = Folder::new("nat");
    let up = sent(300, tcp);
    let mut down = arriving(&up, &[100]);
    for (_, frame) in &mut down {
        frame[26..30].copy_from_slice(&[192, 0, 2, 1]);
        frame[34..36].copy_from_slice(&[1, 2]);
    }
    let [up, down] = [("up", up), ("down", down)].map(|(name, frames)| folder.file(name, &pcap(&frames, 65_535)));
    assert!(refused(&[&up, &down]).contains("--nat source, destination or both"));
    for nat in ["source", "both"] {
        let answer = json(&[&up, &down, "--nat", nat]);
        assert_eq!((&answer["losses"], &answer["lost"][0]["src"]), (&1.into(), &"10.0.0.1".into()));
    }
}

#[test]
fn different_snap_lengths_are_no_matter() {
    let folder = Folder::new("snap");
    let up = sent(300, tcp);
    let down = arriving(&up, &[10, 20]);
    for (kept_up, kept_down) in [(65_535, 68), (96, 65_535), (68, 96)] {
        let up = folder.file("up.pcap", &pcap(&up, kept_up));
        let down = folder.file("down.pcap", &pcap(&down, kept_down));
        let answer = json(&[&up, &down]);
        assert_eq!((&answer["losses"], &answer["depth"]), (&2.into(), &(kept_up.min(kept_down) - 14).into()));
    }
}

#[test]
fn frames_that_are_no_ip_are_left_out_and_counted() {
    let folder = Folder::new("arp");
    let arp = [&[0xff; 6][..], &[2; 6], &[0x08, 0x06], &[0; 46]].concat();
    let mut up = sent(100, tcp);
    let mut down = arriving(&up, &[50]);
    up.push((200_000_000, arp.clone()));
    down.insert(0, (0, arp.clone()));
    let (up, down) = (folder.file("up", &pcap(&up, 65_535)), folder.file("down", &pcap(&down, 65_535)));
    let answer = json(&[&up, &down]);
    assert_eq!((&answer["losses"], &answer["packets_up"]), (&1.into(), &100.into()));
    assert_eq!(answer["not_ip"], serde_json::json!({"up": 1, "down": 1}));
    let only = folder.file("only", &pcap(&[(0, arp)], 65_535));
    assert!(refused(&[&only, &down]).contains("none of them is IP"));
}

#[test]
fn esp_fragments_and_icmp_are_compared_by_their_content() {
    let folder = Folder::new("esp");
    let esp =
        |number: u32| ip(50, 0, 0x4000, [10, 0, 0, 1], &[&[0, 0, 1, 0][..], &number.to_be_bytes(), &[9; 64]].concat());
    let ping = |number: u32| {
        ip(1, 0, 0, [10, 0, 0, 1], &[&[8, 0, 0, 0, 0, 7][..], &(number as u16).to_be_bytes(), &[5; 48]].concat())
    };
    // Two fragments of each datagram: more follow, and an offset of 8 bytes times 185.
    let fragment = |number: u32| {
        let place = if number.is_multiple_of(2) { 0x2000 } else { 185 };
        ip(17, (number / 2) as u16, place, [10, 0, 0, 1], &[1; 64])
    };
    let lost = [17, 18, 40];
    for (frames, protocol) in [(sent(60, esp), 50), (sent(60, ping), 1), (sent(60, fragment), 17)] {
        let up = folder.file("up", &pcap(&frames, 65_535));
        let down = folder.file("down", &pcap(&arriving(&frames, &lost), 65_535));
        let answer = json(&[&up, &down]);
        let times: Vec<u64> = answer["lost"]
            .as_array()
            .unwrap()
            .iter()
            .map(|lost| lost["time"].as_u64().unwrap() % 1_000_000_000 / 1_000_000)
            .collect();
        assert_eq!(times, [17, 18, 40], "{protocol}");
        assert_eq!((&answer["lost"][0]["proto"], &answer["lost"][0]["tcp_seq"]), (&protocol.into(), &Value::Null));
    }
}

#[test]
fn a_capture_that_was_cut_off_is_used_as_far_as_it_goes() {
    let folder = Folder::new("cut");
    let up = sent(200, tcp);
    let whole = pcap(&arriving(&up, &[20]), 65_535);
    let up = folder.file("up.pcap", &pcap(&up, 65_535));
    let cut = folder.file("down.pcap", &whole[..whole.len() / 2 + 3]);
    let answer = json(&[&up, &cut]);
    assert_eq!((answer["lost"].as_array().unwrap().len(), &answer["truncated"]["down"]), (1, &true.into()));
    assert_eq!(answer["judged"].as_u64().unwrap() + answer["outside"]["after"].as_u64().unwrap(), 200);
    assert!(text(&[&up, &cut]).contains("ends within a record"));
    let packed = gzip(&folder, &whole);
    let half = folder.file("half.gz", &packed[..packed.len() / 2]);
    assert_eq!(json(&[&up, &half])["truncated"]["down"], true);
}

/// Packed by the program of that name.
fn gzip(folder: &Folder, bytes: &[u8]) -> Vec<u8> {
    let plain = folder.file("plain", bytes);
    let packed = Command::new("gzip").args(["-c", &plain]).output().unwrap();
    assert!(packed.status.success());
    packed.stdout
}

#[test]
fn gzip_and_standard_input_are_read_like_files() {
    let folder = Folder::new("gzip");
    let (up, down) = pair(&folder, 200, &[20, 30]);
    let expected = json(&[&up, &down])["lost"].clone();
    let packed = folder.file("up.gz", &gzip(&folder, &fs::read(&up).unwrap()));
    assert_eq!(json(&[&packed, &down])["lost"], expected);
    let mut child = Command::new(env!("CARGO_BIN_EXE_hitless"))
        .args(["radar", "losses", "-", &down, "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&fs::read(&packed).unwrap()).unwrap();
    let answer: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(answer["lost"], expected);
    assert!(refused(&["-", "-"]).contains("standard input"));
}

#[test]
fn what_is_no_capture_is_refused_with_a_reason() {
    let folder = Folder::new("bad");
    let (up, down) = pair(&folder, 20, &[]);
    let empty = folder.file("empty", b"");
    let words = folder.file("notes.txt", b"12:00:01 IP 10.0.0.1 > 10.0.0.2: Flags [S]\n");
    let header = folder.file("header", &pcap(&[], 65_535));
    let wifi = folder.file("wifi", &[&pcap(&[], 65_535)[..20], &127_u32.to_le_bytes()].concat());
    let mut damaged = fs::read(&up).unwrap();
    damaged[24 + 8..24 + 12].fill(0xff);
    let damaged = folder.file("damaged", &damaged);
    let missing = folder.path("missing.pcap");
    let directory = folder.path("");
    for (file, says) in [
        (&empty, "empty"),
        (&words, "it is text"),
        (&header, "has no packets"),
        (&wifi, "link type 127"),
        (&damaged, "damaged at byte 24"),
        (&missing, "No such file"),
        (&directory, "is a folder"),
    ] {
        for args in [[&**file, &down], [&*up, file]] {
            let said = refused(&args);
            assert!(said.contains(says) && said.contains(file.as_str()), "{says} in {said}");
        }
    }
    assert!(refused(&[&up, &down, "--fields", "source,destination"]).contains("--fields"));
    assert!(refused(&[&up, &down, "--burst", "0"]).contains("burst"));
    assert!(refused(&[&up, &down, "--write", &up]).contains("capture to be read"));
    assert!(losses(&["/dev/null", &down]).status.code() == Some(2));
}

#[test]
fn offloads_are_pointed_out() {
    let folder = Folder::new("offload");
    let long = |number: u32| {
        let mut frame = tcp(number);
        frame.resize(20_000, 0);
        frame[16..18].copy_from_slice(&(20_000_u16 - 14).to_be_bytes());
        frame
    };
    let up = [sent(50, tcp), sent(50, |number| long(number + 1_000))].concat();
    let down = sent(50, tcp);
    let (up, down) = (folder.file("up", &pcap(&up, 65_535)), folder.file("down", &pcap(&down, 65_535)));
    assert!(text(&[&up, &down]).contains("ethtool -K INTERFACE tso off gso off gro off"));
}

#[test]
fn lost_frames_are_written_as_they_were() {
    let folder = Folder::new("write");
    let (up, down) = pair(&folder, 200, &[20, 30, 31]);
    let [out, page] = [folder.path("lost.pcapng"), folder.path("page.html")];
    text(&[&up, &down, "--write", &out, "--html", &page]);
    // The written packets are all missing in a capture without them.
    let again = json(&[&out, &down, "--whole"]);
    assert_eq!((&again["packets_up"], &again["losses"]), (&3.into(), &3.into()));
    let seqs: Vec<&Value> = again["lost"].as_array().unwrap().iter().map(|lost| &lost["tcp_seq"]).collect();
    assert_eq!(seqs, [&Value::from(2_000), &3_000.into(), &3_100.into()]);
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("</html>") && html.contains("3 packets lost") && html.contains("<svg"), "{html}");
    assert!(!Path::new(&format!("{out}.part")).exists());
}

#[test]
fn losses_that_memory_does_not_suffice_for_are_counted() {
    let folder = Folder::new("memory");
    let lost: Vec<usize> = (0..4_000).filter(|number| number % 4 == 1).collect();
    let (up, down) = pair(&folder, 4_000, &lost);
    let answer = json(&[&up, &down, "--memory", "20KB"]);
    let (named, unnamed) = (answer["lost"].as_array().unwrap(), answer["unnamed"].as_u64().unwrap());
    assert_eq!(named.len() as u64 + unnamed, 1_000);
    assert!(!named.is_empty() && unnamed > 0);
    assert!(named.iter().all(|lost| lost["tcp_seq"].as_u64().unwrap() / 100 % 4 == 1));
}

#[test]
fn packets_without_time_to_live_are_in_a_loop() {
    let folder = Folder::new("ttl");
    let dying = |number: u32| {
        let mut frame = udp(number);
        frame[22] = if number == 40 { 1 } else { 64 };
        frame
    };
    let up = sent(100, dying);
    let down = arriving(&up, &[40, 70]);
    let (up, down) = (folder.file("up", &pcap(&up, 65_535)), folder.file("down", &pcap(&down, 65_535)));
    let causes = |options: &[&str]| -> Vec<Value> {
        let answer = json(&[&[&*up, &down], options].concat());
        answer["lost"].as_array().unwrap().iter().map(|lost| lost["cause"].clone()).collect()
    };
    assert_eq!(causes(&["--rule", "thesis"]), ["loop", "unknown"]);
    assert_eq!(causes(&["--rule", "thesis", "--ttl", "0"])[0], "unknown");
    // A packet that expired where a router is, as traceroute sends them, shows no loop by itself.
    assert_eq!(causes(&["--hops", "2"]), ["unknown", "unknown"]);
    let answer = json(&[&*up, &down, "--hops", "2"]);
    let why: Vec<&Value> = answer["intervals"].as_array().unwrap().iter().map(|line| &line["why"]).collect();
    assert_eq!(why, ["expired", "few"]);
}

#[test]
fn settings_of_causes_that_make_no_sense_are_refused() {
    let folder = Folder::new("settings");
    let up = folder.file("up", &pcap(&sent(10, udp), 65_535));
    for (options, said) in [
        (["--error", "0"], "from 1e-9 to 0.05"),
        (["--hops", "300"], "300"),
        (["--interval", "1ms"], "between 100 ms and 1 h"),
    ] {
        let told = refused(&[&[&*up, &*up], &options[..]].concat());
        assert!(told.contains(said), "{options:?}: {told}");
    }
}

/// MLD report, router solicitation, OSPF hello and mDNS: nothing of it is forwarded.
fn link_local(number: u32) -> Vec<u8> {
    let v6 = |dst: [u8; 2], hops: u8, kind: u8| {
        let mut frame = [&[2; 12][..], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 58, hops, 0xfe, 0x80]].concat();
        frame.extend([&[0; 13][..], &[1], &[0xff, 2], &[0; 12], &dst, &[kind, 0, 0, 0]].concat());
        frame.extend(number.to_be_bytes());
        frame
    };
    let v4 = |protocol: u8, last: u8| {
        let mut frame = ip(protocol, number as u16, 0, [10, 0, 0, 1], &number.to_be_bytes());
        frame[22] = 1;
        frame[30..34].copy_from_slice(&[224, 0, 0, last]);
        frame
    };
    match number % 4 {
        0 => v6([0, 0x16], 1, 143),
        1 => v6([0, 2], 255, 133),
        2 => v4(89, 5),
        _ => v4(17, 251),
    }
}

#[test]
fn link_local_packets_are_counted_apart_and_never_judged() {
    let folder = Folder::new("link-local");
    let mut up = sent(200, tcp);
    let mut down = arriving(&up, &[20, 30]);
    up.extend((0..12).map(|number| (u64::from(number) * 10_000_000 + 5, link_local(number))));
    up.sort_by_key(|(at, _)| *at);
    // The router behind has neighbors of its own.
    down.push((190_000_001, link_local(1_001)));
    let [up, down] = [("up", up), ("down", down)].map(|(name, frames)| folder.file(name, &pcap(&frames, 65_535)));
    for way in [&["--exact"][..], &[], &["--whole"]] {
        let answer = json(&[&[&*up, &down], way].concat());
        assert_eq!(
            (&answer["losses"], &answer["judged"], &answer["packets_up"]),
            (&2.into(), &200.into(), &200.into())
        );
        assert_eq!(answer["link_local"], serde_json::json!({"up": 12, "down": 1}));
        assert_eq!((&answer["only_down"], &answer["causes"]["loop"]), (&0.into(), &Value::Null));
    }
    assert!(text(&[&up, &down]).contains("12 packets of link-local scope"));
    let only = folder.file("only", &pcap(&sent(5, link_local), 65_535));
    assert!(refused(&[&only, &down]).contains("only link-local packets"));
}

/// An acknowledgement from the other end.
fn ack(number: u32) -> Vec<u8> {
    let mut frame = tcp(number);
    frame.swap(29, 33);
    for at in 34..36 {
        frame.swap(at, at + 2);
    }
    frame
}

#[test]
fn the_share_of_loss_is_that_of_the_direction_compared() {
    let folder = Folder::new("both-ways");
    let (there, back) = (sent(1_000, tcp), sent(400, ack));
    // One in 50 is lost on the way there, and some on the way back, which are no part of the question.
    let lost: Vec<usize> = (10..1_000).step_by(50).collect();
    let [mut up, mut down] =
        [[there.clone(), arriving(&back, &[7, 90])].concat(), [arriving(&there, &lost), back].concat()];
    for frames in [&mut up, &mut down] {
        frames.sort_by_key(|(at, _)| *at);
    }
    let [up, down] = [("up", up), ("down", down)].map(|(name, frames)| folder.file(name, &pcap(&frames, 65_535)));
    for way in [&["--exact"][..], &[]] {
        let answer = json(&[&[&*up, &down], way].concat());
        assert_eq!((&answer["losses"], &answer["judged"]), (&20.into(), &1_000.into()));
        assert_eq!((&answer["other_direction"], &answer["packets_up"]), (&398.into(), &1_398.into()));
        assert!((answer["loss"].as_f64().unwrap() - 0.02).abs() < 1e-12);
    }
    let told = text(&[&up, &down]);
    assert!(
        told.starts_with("20 packets lost (2.00 %) of 1,000 judged; UP has 1,398 (398 of them go the other way)"),
        "{told}"
    );
}

/// Times in nanoseconds and lengths that tshark reads in a capture.
fn tshark(path: &str) -> Vec<(u64, u64)> {
    let fields = ["-e", "frame.time_epoch", "-e", "frame.len"];
    let output = Command::new("tshark").args(["-r", path, "-T", "fields"]).args(fields).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = |line: &str| {
        let (time, len) = line.split_once('\t').unwrap();
        let (seconds, fraction) = time.split_once('.').unwrap();
        let nanoseconds: u64 = format!("{fraction:0<9}")[..9].parse().unwrap();
        (seconds.parse::<u64>().unwrap() * 1_000_000_000 + nanoseconds, len.parse().unwrap())
    };
    String::from_utf8(output.stdout).unwrap().lines().map(line).collect()
}

#[test]
fn wireshark_reads_the_lost_packets_with_the_same_times() {
    if !testkit::installed("tshark") {
        return;
    }
    let folder = Folder::new("tshark");
    let lost: Vec<usize> = (5..50).collect();
    let (up, down) = pair(&folder, 100, &lost);
    let out = folder.path("lost.pcapng");
    let answer = json(&[&up, &down, "--write", &out]);
    let found = tshark(&out);
    let times: Vec<u64> =
        answer["lost"].as_array().unwrap().iter().map(|lost| lost["time"].as_u64().unwrap()).collect();
    assert_eq!(found.iter().map(|(at, _)| *at).collect::<Vec<_>>(), times);
    assert!(found.iter().all(|(_, len)| *len == tcp(0).len() as u64));
}

#[test]
fn ctrl_c_ends_it_and_leaves_nothing_behind() {
    let folder = Folder::new("interrupted");
    let (_, down) = pair(&folder, 100, &[1]);
    let out = folder.path("lost.pcapng");
    // It waits for the rest of standard input, which does not come.
    let mut child = Command::new(env!("CARGO_BIN_EXE_hitless"))
        .args(["radar", "losses", "-", &down, "--write", &out])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // More than a pipe holds, so that it is reading when this returns.
    input.write_all(&pcap(&sent(2_000, tcp), 65_535)).unwrap();
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    // Its handler is a thread of its own, which a busy machine may let wait.
    std::thread::sleep(std::time::Duration::from_millis(300));
    // A read that is under way is not cut short: the next part of the input finds it out.
    let _ = input.write_all(&[0; 1 << 17]);
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!Path::new(&out).exists() && !Path::new(&format!("{out}.part")).exists());
}

/// A segment from the client with its place in the stream, or a SYN of either side that announces an MSS of 1,460.
fn stream_frame(from_client: bool, flags: u8, id: u16, seq: u32, len: usize) -> Vec<u8> {
    let (source, ports) = if from_client { (1, [0x9c, 0x40, 0x01, 0xbb]) } else { (2, [0x01, 0xbb, 0x9c, 0x40]) };
    let is_syn = flags & 2 != 0;
    let mut inside = ports.to_vec();
    inside.extend(seq.to_be_bytes());
    inside.extend([0, 0, 0, 0, if is_syn { 0x60 } else { 0x50 }, flags, 1, 0, 0, 0, 0, 0]);
    inside.extend(if is_syn { &[2, 4, 0x05, 0xb4][..] } else { &[] });
    inside.resize(inside.len() + len, 7);
    let mut frame = ip(6, id, 0x4000, [10, 0, 0, source], &inside);
    frame[33] = 3 - source;
    frame
}

/// Segments of two lengths below what was announced, and how offload joined them at each end: of no super-frame can it be said
/// which packets it was.
fn joined_beyond_recognition() -> [Vec<u8>; 2] {
    let lengths = [700_usize; 1_200].into_iter().chain([900; 1_000]);
    let mut seq = 1;
    let segments: Vec<(u16, u32, usize)> = lengths
        .zip(1_000..)
        .map(|(len, id)| {
            seq += len as u32;
            (id, seq - len as u32, len)
        })
        .collect();
    let opening = [(0, stream_frame(true, 2, 1, 0, 0)), (500_000, stream_frame(false, 0x12, 1, 0, 0))];
    let capture = |most: usize, is_lost: fn(usize) -> bool| {
        let (mut frames, mut at) = (opening.to_vec(), 0);
        while at < segments.len() {
            let (id, seq, len) = segments[at];
            let row = segments[at..].iter().enumerate().take(1 + frames.len() % most);
            let count = row.take_while(|(nth, segment)| segment.2 == len && !is_lost(at + nth)).count();
            if count > 0 {
                let time = 1_000_000 + at as u64 * 100_000;
                frames.push((time, stream_frame(true, 0x10, id, seq, count * len)));
            }
            at += count.max(1);
        }
        pcap(&frames, 128)
    };
    [capture(40, |_| false), capture(3, |nth| nth % 50 == 7)]
}

#[test]
fn super_frames_that_cannot_be_cut_are_refused_in_one_line() {
    let folder = Folder::new("uncut");
    let [up, down] = joined_beyond_recognition();
    let (up, down) = (folder.file("up.pcap", &up), folder.file("down.pcap", &down));
    let said = refused(&[&up, &down]);
    assert!(said.contains("super-frames") && said.contains("up.pcap"), "{said}");
    let mut explain = Command::new(env!("CARGO_BIN_EXE_hitless"));
    let output = explain.args(["explain", &up, "--other-end", &down]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len(), said.trim_end().lines().count()), (Some(2), 0, 1), "{said}");
    assert!(said.contains("super-frames") && said.contains("up.pcap"), "{said}");
}
