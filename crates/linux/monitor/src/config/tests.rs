use std::path::Path;

use super::*;
use crate::detect::Flaps;

fn defaults() -> MonitorConfig {
    MonitorConfig::new("leaf1", Path::new("/run/hitless"))
}

fn checked(text: &str) -> Result<MonitorConfig, String> {
    MonitorOptions::parse(text).map_err(|(line, why)| format!("line {line}: {why}"))?.check(defaults())
}

#[test]
fn nothing_said_means_the_defaults_and_they_only_observe() {
    let config = checked("").unwrap();
    assert_eq!(config, defaults());
    assert_eq!((config.action, config.obey, config.interval), (PortAction::None, false, Duration::from_secs(1)));
}

#[test]
fn numbers_may_be_written_with_quotation_marks_and_without() {
    let plain = checked("threshold = 1e-7\nwindow-frames = 1000000\nmetrics = 9465").unwrap();
    let quoted = checked("threshold = \"1e-7\"\nwindow-frames = \"1M\"\nmetrics = \"127.0.0.1:9465\"").unwrap();
    assert_eq!(plain, quoted);
}

const FULL: &str = r#"
    host = "leaf9"
    source = ["sysfs", "links"]
    sysfs = "/tmp/ports"
    interval = "250ms"
    ports = ["swp*", "eth1"]
    exclude = ["mgmt*", "swp?s0"]
    threshold = "1e-6"
    window-frames = "10M"
    window = "5min"
    raise-after = 1
    clear-after = 7
    least-bad = 3
    quiet = "never"
    flaps = "never"
    penalty = 500.0
    half-life = "90s"
    suppress = 1200.5
    reuse = 100.0
    gone-after = 9
    keep = "2h"
    bus = "redis://10.0.0.5:6380"
    action = "protect"
    obey = true
    unprotect-on-exit = true
    metrics = "0.0.0.0:9465"
    journal = "/var/log/hitless.jsonl"
    record = "/tmp/samples.jsonl"
    state = "/tmp/state"
    [[port]]
    name = "eth1"
    peer = "leaf3/eth7"
    link = "hit0"
    [[port]]
    name = "eth2"
"#;

#[test]
fn what_is_shown_is_a_file_that_says_the_same() {
    for text in ["", FULL, "flaps = 5\nflaps-within = \"90min\"\nquiet = \"1500ms\"\nports = \"eth1\""] {
        let config = checked(text).unwrap();
        let shown = config.to_string();
        assert_eq!(checked(&shown).as_ref(), Ok(&config), "{shown}");
    }
    let full = checked(FULL).unwrap();
    assert_eq!((full.limits.quiet, full.limits.flaps), (None, None));
    assert_eq!(full.rules["eth1"].link.as_deref(), Some("hit0"));
    assert_eq!(
        checked("flaps = 5").unwrap().limits.flaps,
        Some(Flaps { count: 5, within: Duration::from_secs(7_200) })
    );
}

#[test]
fn what_is_wrong_is_named_with_what_was_meant_or_is_accepted() {
    let said = |text: &str| checked(text).unwrap_err();
    for (text, wanted) in [
        ("\nintervall = \"1s\"", "line 2: no such key 'intervall': did you mean 'interval'?"),
        ("speed = 3", "line 1: no such key 'speed'; there are host, ports"),
        ("[[port]]\nname = \"e\"\npeers = \"a/b\"", "line 3: no such key 'peers': did you mean 'peer'?"),
        ("source = \"kernal\"", "source: 'kernal': did you mean 'kernel'?"),
        ("source = []", "source: expected at least one"),
        ("source = [\"kernel\", \"./x\"]", "source: samples have a time of their own"),
        ("action = \"protekt\"", "action: 'protekt': expected none (observe only) or protect"),
        ("interval = \"1\"", "interval: '1': expected a time with its unit"),
        ("interval = \"1ms\"", "interval: expected 10ms to 1h"),
        ("threshold = 2", "threshold: '2': expected a probability"),
        ("threshold = 0", "threshold: expected a loss above 0"),
        ("raise-after = 0", "raise-after: expected 1 poll or more"),
        ("raise-after = \"often\"", "line 1: invalid type: string"),
        ("quiet = \"sometimes\"", "quiet: 'sometimes': expected a time"),
        ("flaps = \"some\"", "flaps: 'some': expected a number, or never"),
        ("host = \"a b\"", "host: 'a b': expected a name without spaces"),
        ("metrics = \"here\"", "metrics: 'here': expected PORT or ADDR:PORT"),
        ("bus = \"rabbit://x\"", "bus: "),
        ("[[port]]\npeer = \"a/b\"", "port: name '': expected the name of one interface"),
        ("[[port]]\nname = \"e\"\npeer = \"leaf3\"", "port e: peer: `leaf3` is not a port"),
        ("[[port]]\nname = \"e\"\npeer = \"leaf1/e\"", "is the port itself"),
        ("[[port]]\nname = \"e\"\n[[port]]\nname = \"e\"", "port: e is there twice"),
        ("[[port]]\nname = \"e\"\npeer = \"a/b\"\n[[port]]\nname = \"f\"\npeer = \"a/b\"", "is the peer of e already"),
        ("exclude = \"e*\"\n[[port]]\nname = \"eth1\"", "port: eth1 is among those to exclude"),
        ("exclude = [\"\"]", "exclude: an empty pattern"),
    ] {
        assert!(said(text).contains(wanted), "{text}: {}", said(text));
    }
}

#[test]
fn the_command_line_goes_before_the_file_also_for_single_ports() {
    let file =
        MonitorOptions::parse("interval = \"5s\"\naction = \"protect\"\n[[port]]\nname = \"e\"\nlink = \"hit3\"")
            .unwrap();
    let peer = vec![("e".into(), "a/b".into())];
    let line = MonitorOptions { interval: Some(TextOrNumber("2s".into())), peer, ..MonitorOptions::default() };
    let config = line.or(file).check(defaults()).unwrap();
    assert_eq!((config.interval, config.action), (Duration::from_secs(2), PortAction::Protect));
    assert_eq!(config.rules["e"], PortRule { peer: Some("a/b".parse().unwrap()), link: Some("hit3".into()) });
}

#[test]
fn a_port_that_is_configured_is_watched_besides_those_that_are_physical() {
    let watched = |text: &str| {
        let selections = checked(text).unwrap().selections();
        move |name: &str| selections.iter().filter(|one| one.takes(name, || name.starts_with("eth"))).count()
    };
    let all = watched("exclude = [\"eth9\"]\n[[port]]\nname = \"veth0\"\n[[port]]\nname = \"eth1\"");
    assert_eq!(["eth0", "eth1", "veth0", "veth1", "eth9"].map(all), [1, 1, 1, 0, 0]);
    let named = watched("ports = [\"eth1\"]\n[[port]]\nname = \"veth0\"\n[[port]]\nname = \"eth1\"");
    assert_eq!(["eth0", "eth1", "veth0"].map(named), [0, 1, 1]);
}

#[test]
fn a_password_is_not_shown() {
    let shown = MonitorConfig { bus: "redis://user:secret@host:1/2".into(), ..defaults() }.to_string();
    assert!(shown.contains("redis://***@host:1/2") && !shown.contains("secret"), "{shown}");
}
