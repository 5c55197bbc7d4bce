//! Mistakes that real monitors made as a whole. Each is a test with its name.

mod daemon_words;
#[path = "../../../base/bus/tests/redis_server/mod.rs"]
mod redis_server;

use std::path::Path;

use bus::{Bus, RedisBus};
use bus::{Condition, Evidence, Message, PortId, PortState};
use daemon_words::{Host, Mood, Moody, a_while, wait_for};
use monitor::CarrierState;
use monitor::config::{MonitorConfig, MonitorOptions};
use monitor::daemon::ask_to_clear;
use redis_server::{Keeps, RedisServer};
use units::Moment;

fn checked(text: &str) -> Result<MonitorConfig, String> {
    let options = MonitorOptions::parse(text).map_err(|(line, why)| format!("line {line}: {why}"))?;
    options.check(MonitorConfig::new("leaf1", Path::new("/run/hitless")))
}

fn said(id: PortId, peer: Option<PortId>, condition: Condition, number: u64) -> Message {
    let evidence = Evidence { frames: 1_000_000, bad: 1_000, loss: 1e-3, low: 9e-4, high: 1.1e-3, seconds: 1.0 };
    let (at, life, sticky, why) = (Moment::ZERO, 1, false, "as it was".to_owned());
    Message::Port(PortState {
        earliest_ns: None,
        latest_ns: None,
        time_of: None,
        id,
        peer,
        at,
        life,
        number,
        condition,
        sticky,
        evidence,
        why,
    })
}

/// Every key, misspelt by one letter, is an error that names it; so is every value that makes no sense.
#[test]
fn a_typo_in_the_configuration_silently_turns_monitoring_off() {
    let full = checked("action = \"protect\"\nmetrics = 9465\n[[port]]\nname = \"eth1\"\npeer = \"a/b\"\nlink = \"h\"");
    let shown = full.unwrap().to_string();
    let keys = shown.lines().filter_map(|line| line.split_once(" = "));
    let mut tried = 0;
    for (key, value) in keys {
        let misspelt = shown.replace(&format!("\n{key} = {value}"), &format!("\n{key}x = {value}"));
        if misspelt == shown {
            continue;
        }
        let why = checked(&misspelt).unwrap_err();
        assert!(why.contains(&format!("no such key '{key}x': did you mean '{key}'?")), "{why}");
        tried += 1;
    }
    assert!(tried > 20, "{tried} keys were tried");
    assert!(checked("[[ports]]\nname = \"eth1\"").is_err());
    assert!(checked("[[port]]\nnam = \"eth1\"").is_err());
}

/// A port that does not exist, or a source that shows none, is no reason to end: it may come. It is reported.
#[test]
fn a_typo_in_the_name_of_a_port_is_told_and_not_taken_for_a_healthy_network() {
    let host = Host::new("leaf1", "ports = [\"eht1\"]");
    host.ports.receive("eth1", 0);
    let bus = Moody::new();
    host.run(bus.end(), |running| {
        wait_for("degradation", || running.get("/healthz").contains("no port is watched"));
        assert!(running.get("/metrics").contains("hitless_monitor_degraded 1.0"));
    });
}

#[test]
fn management_ports_acted_upon() {
    let corrupting = |config: &str| {
        let host = Host::new("leaf1", &format!("action = \"protect\"\n{config}"));
        host.links.has_default_route("eth1");
        host.ports.receive("eth1", 100);
        host
    };
    let bus = Moody::new();
    let host = corrupting("");
    host.run(bus.end(), |_| wait_for("a refusal", || host.said("it holds the default route")));
    assert_eq!((host.links.asked().len(), host.deeds()), (0, vec!["protect refused".to_owned()]));
    let bus = Moody::new();
    let host = corrupting("exclude = [\"eth?\"]");
    host.run(bus.end(), |_| a_while());
    assert!(host.links.asked().is_empty() && bus.condition("leaf1/eth1").is_none(), "not even looked at");
    let bus = Moody::new();
    let host = corrupting("[[port]]\nname = \"eth1\"");
    host.run(bus.end(), |_| wait_for("protection of what was named", || host.links.is_protected("eth1")));
}

/// The authors' daemon never deactivates; others forget what they did when they are restarted.
#[test]
fn a_link_never_un_protected() {
    let host = Host::new("leaf1", "action = \"protect\"");
    let bus = Moody::new();
    host.ports.receive("eth1", 100);
    host.run(bus.end(), |_| wait_for("protection", || host.links.is_protected("eth1")));
    assert!(host.links.is_protected("eth1"), "it outlives the monitor");
    host.ports.receive("eth1", 0);
    host.run(bus.end(), |_| wait_for("the next life to end it", || !host.links.is_protected("eth1")));
}

/// The same without a bus that remembers: the host's own file is enough to know what to end, once the port is seen to
/// be healthy.
#[test]
fn a_link_never_un_protected_because_nobody_remembers_the_alarm() {
    let host = Host::new("leaf1", "action = \"protect\"");
    host.ports.receive("eth1", 100);
    host.run(Moody::new().end(), |_| wait_for("protection", || host.links.is_protected("eth1")));
    host.ports.receive("eth1", 0);
    host.run(Moody::new().end(), |_| wait_for("the next life to end it", || !host.links.is_protected("eth1")));
}

#[test]
fn a_link_that_a_person_protected_is_unprotected() {
    let host = Host::new("leaf1", "action = \"protect\"");
    let bus = Moody::new();
    host.links.set_protected("eth1", true);
    host.ports.receive("eth1", 100);
    host.run(bus.end(), |_| {
        wait_for("an alarm", || host.said("is protected already, and not by this monitor"));
        host.ports.receive("eth1", 0);
        wait_for("its end", || bus.condition("leaf1/eth1") == Some(Condition::Healthy));
        a_while();
    });
    assert!(host.links.is_protected("eth1") && host.links.asked().is_empty());
}

/// The host reboots while a port is corrupting; the cable is replaced meanwhile. Hosts that received the alarm must
/// receive its end.
#[test]
fn reboot_orphans_an_alarm() {
    let bus = Moody::new();
    // A clock that was ages ahead, before the reboot.
    let Message::Port(mut state) = said(PortId::new("leaf1", "eth1"), None, Condition::Corrupting, 9) else { return };
    state.life = u64::MAX / 2;
    bus.say(&Message::Port(state.clone()));
    state.id.port = "eth9".to_owned();
    state.condition = Condition::Healthy;
    bus.say(&Message::Port(state));
    let host = Host::new("leaf1", "");
    host.ports.receive("eth1", 0);
    host.run(bus.end(), |_| {
        wait_for("the alarm to be ours", || bus.state("leaf1/eth1").unwrap().life < u64::MAX / 2);
        wait_for("its end", || bus.condition("leaf1/eth1") == Some(Condition::Healthy));
        wait_for("what is said of a port that is no more", || bus.condition("leaf1/eth9") == Some(Condition::Unknown));
    });
}

/// The authors' daemon awaits a subscription that does not return, and never polls.
#[test]
fn polls_never_because_it_awaits_a_subscription() {
    let host = Host::new("leaf1", "action = \"protect\"");
    let bus = Moody::new();
    bus.be(Mood::Hangs);
    host.ports.receive("eth1", 100);
    host.run(bus.end(), |_| {
        wait_for("polls", || host.ports.polls() > 20);
        wait_for("protection all the same", || host.links.is_protected("eth1"));
        wait_for("others to hear of it", || bus.condition("leaf1/eth1") == Some(Condition::Corrupting));
        bus.be(Mood::Fine);
    });
}

/// Observe-only is not off: it computes, reports and counts all that it would do, and does none of it.
#[test]
fn observe_only_does_nothing_and_says_nothing_either() {
    let host = Host::new("leaf1", "");
    let bus = Moody::new();
    host.ports.receive("eth1", 100);
    host.run(bus.end(), |running| {
        wait_for("what it would do", || host.deeds() == ["protect would"]);
        assert!(running.get("/metrics").contains("hitless_actions_total{action=\"protect\",outcome=\"would\"} 1"));
        host.ports.receive("eth1", 0);
        wait_for("what it would undo", || host.deeds() == ["protect would", "unprotect would"]);
    });
    assert!(host.links.asked().is_empty());
    assert!(!host.folder.join("monitor.state").exists(), "not even a file");
}

#[test]
fn a_latch_fires_only_once() {
    let host = Host::new("leaf1", "action = \"protect\"\npenalty = 0.0\nflaps = \"never\"");
    let bus = Moody::new();
    host.run(bus.end(), |_| {
        for _ in 0..3 {
            host.ports.receive("eth1", 100);
            wait_for("protection", || host.links.is_protected("eth1"));
            host.ports.receive("eth1", 0);
            wait_for("its end", || !host.links.is_protected("eth1"));
        }
    });
    assert_eq!(host.deeds(), ["protect done", "unprotect done"].repeat(3));
}

#[test]
fn flapping_without_hysteresis() {
    let host = Host::new("leaf1", "action = \"protect\"\npenalty = 0.0\nflaps = 3\nflaps-within = \"2h\"");
    let bus = Moody::new();
    host.run(bus.end(), |_| {
        for _ in 0..2 {
            host.ports.receive("eth1", 100);
            wait_for("protection", || host.links.is_protected("eth1"));
            host.ports.receive("eth1", 0);
            wait_for("its end", || !host.links.is_protected("eth1"));
        }
        host.ports.receive("eth1", 100);
        wait_for("a person to be needed", || bus.state("leaf1/eth1").is_some_and(|state| state.sticky));
        wait_for("protection", || host.links.is_protected("eth1"));
        host.ports.receive("eth1", 0);
        a_while();
        a_while();
        assert!(host.links.is_protected("eth1"));
        ask_to_clear(&host.directory(), "eth1").unwrap();
        wait_for("its end", || !host.links.is_protected("eth1"));
    });
}

#[test]
fn ports_down_by_design_raise_alarms() {
    let host = Host::new("leaf1", "action = \"protect\"");
    let bus = Moody::new();
    host.ports.receive("eth1", 100);
    host.ports.switch("eth1", CarrierState::Off);
    host.ports.receive("eth2", 0);
    host.run(bus.end(), |running| {
        wait_for("a verdict", || running.get("/metrics").contains("hitless_monitor_ports_judged 1.0"));
        let metrics = running.get("/metrics");
        assert!(metrics.contains("hitless_port_judged{port=\"eth1\",device=\"leaf1\"} 0.0"), "{metrics}");
        assert!(!metrics.contains("hitless_port_corrupting{port=\"eth1\""), "{metrics}");
        assert!(running.get("/healthz").starts_with("HTTP/1.1 200"));
    });
    assert!(host.links.asked().is_empty() && host.deeds().is_empty());
}

#[test]
fn a_monitor_that_can_judge_nothing_calls_itself_healthy() {
    let host = Host::new("leaf1", "");
    let bus = Moody::new();
    host.ports.receive("eth1", 0);
    host.ports.switch("eth1", CarrierState::Lost);
    host.run(bus.end(), |running| {
        let why = "the only port cannot be judged (eth1: no signal)";
        wait_for("degradation", || running.get("/healthz").contains(why));
        for _ in 0..3 {
            a_while();
            let (health, metrics) = (running.get("/healthz"), running.get("/metrics"));
            assert!(health.starts_with("HTTP/1.1 503") && health.contains(why), "{health}");
            assert!(metrics.contains("hitless_monitor_degraded 1.0"), "{metrics}");
        }
        host.ports.switch("eth1", CarrierState::Up);
        wait_for("health", || running.get("/healthz").starts_with("HTTP/1.1 200"));
        assert!(running.get("/metrics").contains("hitless_monitor_degraded 0.0"));
    });
    assert!(host.said("degraded: the only port cannot be judged"));
}

#[test]
fn event_lost_when_publishing_fails() {
    let peer = "bus = \"redis://unused\"\naction = \"protect\"\n[[port]]\nname = \"eth1\"\npeer = ";
    let sender = Host::new("leaf1", &format!("{peer}\"leaf3/eth1\""));
    let receiver = Host::new("leaf3", &format!("{peer}\"leaf1/eth1\""));
    let bus = Moody::new();
    sender.ports.receive("eth1", 0);
    receiver.ports.receive("eth1", 0);
    sender.run(bus.end(), |_| {
        receiver.run(bus.end(), |running| {
            wait_for("a verdict", || bus.condition("leaf3/eth1") == Some(Condition::Healthy));
            bus.be(Mood::Down);
            receiver.ports.receive("eth1", 100);
            wait_for("a message that waits", || running.get("/metrics").contains("hitless_bus_waiting 1.0"));
            assert!(!sender.links.is_protected("eth1"));
            bus.be(Mood::Fine);
            wait_for("protection", || sender.links.is_protected("eth1"));
        });
    });
}

/// The sender's monitor is away while the alarm is raised, and starts afterwards.
#[test]
fn pub_sub_loses_messages_to_subscribers_that_are_away() {
    let sender = Host::new("leaf1", "bus = \"redis://unused\"\naction = \"protect\"");
    let bus = Moody::new();
    bus.say(&said(PortId::new("leaf3", "eth7"), Some(PortId::new("leaf1", "eth1")), Condition::Corrupting, 1));
    sender.ports.receive("eth1", 0);
    sender.run(bus.end(), |_| wait_for("protection", || sender.links.is_protected("eth1")));
}

/// Data under our keys that is not ours is reported, and nothing is done because of it.
#[test]
fn foreign_data_on_the_bus_is_acted_upon() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    server.ask(&["SET", "hitless:port:leaf3/eth7", "{\"port\":\"corrupting\",\"protect\":\"all\"}"]);
    let host = Host::new("leaf1", &format!("bus = \"{}\"\naction = \"protect\"", server.url()));
    host.ports.receive("eth1", 0);
    let mut others = RedisBus::open(&server.url()).unwrap();
    host.run(Box::new(RedisBus::open(&server.url()).unwrap()), |running| {
        wait_for("degradation", || running.get("/healthz").contains("leaf3/eth7"));
        others.publish(&said(PortId::new("leaf4", "eth7"), None, Condition::Corrupting, 1)).unwrap();
        wait_for("what is ours to be told all the same", || {
            others.recall("leaf1").unwrap().iter().any(|state| state.condition == Condition::Healthy)
        });
        a_while();
    });
    assert!(host.links.asked().is_empty() && host.deeds().is_empty());
    assert!(server.ask(&["GET", "hitless:port:leaf3/eth7"]).contains("protect"), "nor is it changed");
}

/// Redis dies under a running monitor and comes back with nothing: polls go on, and the state is put back.
#[test]
fn redis_unreachable_ends_the_monitor() {
    let Some(mut server) = RedisServer::start(Keeps::Nothing) else { return };
    let host = Host::new("leaf1", &format!("bus = \"{}\"", server.url()));
    host.ports.receive("eth1", 0);
    let url = server.url();
    let mut others = RedisBus::open(&url).unwrap();
    let mut knows = move |condition: Condition| {
        others.recall("leaf1").is_ok_and(|states| states.iter().any(|state| state.condition == condition))
    };
    host.run(Box::new(RedisBus::open(&url).unwrap()), |running| {
        wait_for("a verdict", || knows(Condition::Healthy));
        server.kill();
        wait_for("degradation", || running.get("/healthz").starts_with("HTTP/1.1 503"));
        host.ports.receive("eth1", 100);
        wait_for("an alarm", || {
            running.get("/metrics").contains("hitless_port_corrupting{port=\"eth1\",device=\"leaf1\"} 1.0")
        });
        server.start_again();
        wait_for("the alarm on the bus", || knows(Condition::Corrupting));
        wait_for("health", || running.get("/healthz").starts_with("HTTP/1.1 200"));
    });
}
