//! `hitless radar map` over recordings, and what it refuses.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use radar::fabricmap::recording;
use radar::fabricmap::slot_report::{PortSlot, SlotFlow, SwitchSlot, WayFlows, WaySlot};
use radar::flowset::FlowKey;
use radar::packet::Flow;
use serde_json::Value;

const TOPOLOGY: &str = "lower,upper,lower_port,upper_port,rate\nleaf1,spine1,up1,down1,1G\nleaf2,spine1,up1,down2,1G\n";

/// A folder that is gone after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hitless-radar-map-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn hitless(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hitless")).args(args).output().unwrap()
}

/// What was said on standard error with exit code 2, in one line.
fn refusal(args: &[&str]) -> String {
    let output = hitless(args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{args:?}: {said}");
    said
}

fn way(flows: &[(u16, u32)]) -> WaySlot {
    let [src, dst] = [[10, 0, 1, 1], [10, 0, 2, 1]].map(Into::into);
    let key = |port| FlowKey::from(&Flow { src, dst, protocol: 17, src_port: port, dst_port: 9 });
    let flow = |(port, packets): &(u16, u32)| SlotFlow {
        flow: key(*port),
        packets: *packets,
        bytes: u64::from(*packets) * 100,
    };
    let mut list: Vec<SlotFlow> = flows.iter().map(flow).collect();
    list.sort_unstable();
    let packets = flows.iter().map(|(_, packets)| u64::from(*packets)).sum();
    WaySlot { packets, bytes: packets * 100, flows: WayFlows::List(list) }
}

/// Flow 7 goes to and fro between leaf1 and spine1, from slot 10 on; flow 8 is fine.
fn slot(at: u64) -> Vec<SwitchSlot> {
    let [once, often] = if at < 10 { [2, 0] } else { [2, 50] };
    let port = |name: &str, came: &[(u16, u32)], left: &[(u16, u32)]| PortSlot {
        name: name.into(),
        ways: [way(came), way(left)],
    };
    let back: &[(u16, u32)] = if often > 0 { &[(7, 50)] } else { &[] };
    let on = if often > 0 { vec![(8, 5)] } else { vec![(7, once), (8, 5)] };
    let up = [(7, once + often), (8, 5)];
    let switch = |switch: &str, life, ports| SwitchSlot {
        switch: switch.into(),
        life,
        slot: 100_000 + at,
        length: 10_000_000,
        missed: 0,
        ports,
        ended: Vec::new(),
        ended_more: false,
    };
    vec![
        switch("leaf1", 1, vec![port("host", &[(7, once), (8, 5)], &[]), port("up1", back, &up)]),
        switch("spine1", 2, vec![port("down1", &up, back), port("down2", &[], &on)]),
        switch("leaf2", 3, vec![port("host", &[], &on), port("up1", &on, &[])]),
    ]
}

fn recorded(slots: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    recording::begin(&mut bytes).unwrap();
    for report in (0..slots).flat_map(slot) {
        recording::append(&mut bytes, &report.to_bytes()).unwrap();
    }
    bytes
}

#[test]
fn a_recording_is_mapped_as_json_text_and_page() {
    let folder = Folder::new("answers");
    let (topology, record) = (folder.file("fabric.csv", TOPOLOGY), folder.file("a.rec", recorded(60)));
    let page = folder.0.join("map.html");
    let output =
        hitless(&["--json", "radar", "map", &record, "--topology", &topology, "--html", page.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [found, answer] = &lines[..] else { panic!("a finding and the answer: {lines:?}") };
    assert_eq!((&found["kind"], &found["why"], &found["sure"]), (&"loop".into(), &"both-ways".into(), &true.into()));
    assert_eq!(found["where"], serde_json::json!(["leaf1/up1", "spine1/down1"]));
    assert_eq!((answer["slots"].as_u64(), answer["findings"].as_array().unwrap().len()), (Some(60), 1));
    assert_eq!(answer["findings"][0]["flows"][0]["src_port"], 7);
    assert_eq!(answer["findings"][0]["since_ns"].as_u64(), Some(100_010 * 10_000_000));
    assert_eq!(answer["links"][0]["link"], "leaf1--spine1");
    assert_eq!(answer["links"][0]["forward"]["lost"][0], 0);
    let text = String::from_utf8(hitless(&["radar", "map", &record, "--topology", &topology]).stdout).unwrap();
    assert!(
        text.contains("loop at leaf1/up1 spine1/down1: 1 flow") && text.contains("udp 10.0.1.1:7 > 10.0.2.1:9"),
        "{text}"
    );
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<strong>[1] loop</strong>") && !page.contains("http://") && !page.contains("https://"));
}

#[test]
fn a_recording_that_was_cut_short_is_mapped_as_far_as_it_goes() {
    let folder = Folder::new("cut");
    let topology = folder.file("fabric.csv", TOPOLOGY);
    let whole = recorded(60);
    let record = folder.file("cut.rec", &whole[..whole.len() - 10]);
    let output = hitless(&["radar", "map", &record, "--topology", &topology]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && said.contains("cut short: it ends within a report, behind 179 whole ones"),
        "{said}"
    );
    let mut damaged = whole.clone();
    damaged[200] ^= 1;
    let record = folder.file("damaged.rec", damaged);
    assert!(refusal(&["radar", "map", &record, "--topology", &topology]).contains("damaged.rec: report 1: "));
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line() {
    let folder = Folder::new("refused");
    let (topology, record) = (folder.file("fabric.csv", TOPOLOGY), folder.file("a.rec", recorded(20)));
    let map =
        |topology: &str, more: &[&str]| refusal(&[&["radar", "map", &record, "--topology", topology], more].concat());
    let other = folder.file("other.csv", TOPOLOGY.replace("leaf2", "leaf7"));
    assert!(map(&other, &[]).contains("the topology has no switch leaf2"));
    let portless = folder.file("portless.csv", "lower,upper\nleaf1,spine1\nleaf2,spine1\n");
    assert!(map(&portless, &[]).contains("needs the columns lower_port and upper_port"));
    let twice = folder.file("twice.csv", TOPOLOGY.replace("down2", "down1"));
    assert!(map(&twice, &[]).contains("port spine1/down1 has a link already"));
    assert!(map("/nowhere/fabric.csv", &[]).contains("/nowhere/fabric.csv"));
    let routes = folder.file("routes.csv", "switch,prefix,ports\nleaf9,10.0.0.0/8,up1\n");
    assert!(map(&topology, &["--routes", &routes]).contains(r#"routes.csv:2: the topology has no switch "leaf9""#));
    assert!(map(&topology, &["--way", "50ms"]).contains("use a longer --slot"));
    assert!(map(&topology, &["--memory", "1MB"]).contains("--memory"));
    assert!(refusal(&["radar", "map", &topology, "--topology", &topology]).contains("no recording"));
    let mut two = slot(0);
    two[1] = SwitchSlot { life: 9, slot: two[0].slot + 1, ..two[0].clone() };
    let mut bytes = Vec::new();
    recording::begin(&mut bytes).unwrap();
    two.iter().for_each(|report| recording::append(&mut bytes, &report.to_bytes()).unwrap());
    let two = folder.file("two.rec", bytes);
    assert!(refusal(&["radar", "map", &two, "--topology", &topology]).contains("two meters report as switch leaf1"));
    let meter = |args: &[&str]| refusal(&[&["radar", "flows", "meter"], args, &["--to", "127.0.0.1:1"]].concat());
    assert!(meter(&["lo", "--switch", "a\nb"]).contains("--switch"));
    assert!(meter(&["lo", "--switch", "a", "--slot", "1us"]).contains("1ms to 60s"));
    assert!(meter(&["lo", "--switch", "a", "--flows", "0"]).contains("--flows"));
    assert!(meter(&["no-such-0", "--switch", "a"]).contains("there is no interface no-such-0"));
    assert!(refusal(&["radar", "flows", "collect"]).contains("--listen"));
}

#[test]
fn nobody_who_reports_is_nothing_to_map() {
    let folder = Folder::new("nobody");
    let topology = folder.file("fabric.csv", TOPOLOGY);
    for args in [
        &["radar", "map", "--listen", "127.0.0.1:0", "--topology", &topology, "--seconds", "0.1"][..],
        &["radar", "flows", "collect", "--listen", "127.0.0.1:0", "--seconds", "0.1"],
    ] {
        let output = hitless(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.contains("no flow meter has reported"), "{said}");
    }
}
