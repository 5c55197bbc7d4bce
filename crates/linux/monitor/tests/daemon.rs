//! The monitor as a whole: threads, files and sockets, with counters and links under the test's control.

mod daemon_words;

use std::time::Duration;

use bus::{Condition, Message, Order, OrderKind, PortId};
use daemon_words::{Host, Mood, Moody, a_while, wait_for};
use monitor::daemon::{MonitorControl, ask_for_status, ask_to_clear};
use units::Moment;

#[test]
fn a_port_that_corrupts_is_protected_and_one_that_is_clean_again_is_not() {
    let host = Host::new("leaf1", "action = \"protect\"");
    let bus = Moody::new();
    host.ports.receive("eth1", 0);
    let board = host.run(bus.end(), |_| {
        wait_for("a verdict", || bus.condition("leaf1/eth1") == Some(Condition::Healthy));
        host.ports.receive("eth1", 100);
        wait_for("protection", || host.links.is_protected("eth1"));
        assert_eq!(bus.condition("leaf1/eth1"), Some(Condition::Corrupting));
        host.ports.receive("eth1", 0);
        wait_for("the end of protection", || !host.links.is_protected("eth1"));
    });
    assert_eq!(host.deeds(), ["protect done", "unprotect done"]);
    assert!(board.polls > 10 && !board.is_degraded());
    let entry = &host.journal()[host.journal().iter().position(|entry| entry["deed"] == "protect").unwrap()];
    assert!(entry["evidence"]["bad"].as_u64().unwrap() >= 200, "{entry}");
    assert!(host.said("protect eth1 (hit0): leaf1/eth1 is corrupting"));
}

#[test]
fn of_two_hosts_on_a_bus_the_one_that_sends_protects() {
    let ports = "bus = \"redis://unused\"\naction = \"protect\"\n[[port]]\nname = \"eth1\"\npeer = ";
    let sender = Host::new("leaf1", &format!("{ports}\"leaf3/eth1\""));
    let receiver = Host::new("leaf3", &format!("{ports}\"leaf1/eth1\""));
    let bus = Moody::new();
    sender.ports.receive("eth1", 0);
    receiver.ports.receive("eth1", 0);
    sender.run(bus.end(), |_| {
        receiver.run(bus.end(), |_| {
            receiver.ports.receive("eth1", 100);
            wait_for("protection", || sender.links.is_protected("eth1"));
            receiver.ports.receive("eth1", 0);
            wait_for("the end of protection", || !sender.links.is_protected("eth1"));
        });
    });
    assert!(receiver.links.asked().is_empty());
    assert_eq!(sender.deeds(), ["protect done", "unprotect done"]);
}

#[test]
fn health_and_metrics_follow_the_bus_and_the_sources() {
    let host = Host::new("leaf1", "");
    let bus = Moody::new();
    host.ports.receive("eth1", 0);
    host.run(bus.end(), |running| {
        wait_for("health", || running.get("/healthz").starts_with("HTTP/1.1 200 OK"));
        bus.be(Mood::Down);
        wait_for("degradation", || running.get("/healthz").starts_with("HTTP/1.1 503"));
        assert!(running.get("/healthz").contains("bus: the bus is away"));
        wait_for("metrics", || running.get("/metrics").contains("hitless_bus_up 0.0"));
        host.ports.break_down(true);
        wait_for("both reasons", || running.get("/healthz").contains("ports: the driver is being reloaded"));
        let polls = host.ports.polls();
        wait_for("polls to go on", || host.ports.polls() > polls + 5);
        bus.be(Mood::Fine);
        host.ports.break_down(false);
        wait_for("health", || running.get("/healthz").starts_with("HTTP/1.1 200 OK"));
        let text = running.get("/metrics");
        assert!(text.contains("hitless_port_frames_total{port=\"eth1\",device=\"leaf1\"}"), "{text}");
        assert!(text.contains("hitless_monitor_source_errors_total{source=\"ports\"}"), "{text}");
    });
    let health: Vec<String> = host
        .journal()
        .iter()
        .filter(|entry| entry["deed"] == "health")
        .map(|entry| entry["why"].as_str().unwrap().to_owned())
        .collect();
    assert!(health.contains(&"degraded: bus: the bus is away".to_owned()), "{health:?}");
    assert!(health.contains(&"over: ports: the driver is being reloaded".to_owned()), "{health:?}");
}

#[test]
fn asked_to_stop_it_ends_at_once_and_leaves_protection_in_force_unless_told_otherwise() {
    for (leave_nothing, protected) in [(false, true), (true, false)] {
        let host = Host::new("leaf1", &format!("action = \"protect\"\nunprotect-on-exit = {leave_nothing}"));
        let bus = Moody::new();
        host.ports.receive("eth1", 100);
        let mut clock = None;
        host.run(bus.end(), |_| {
            wait_for("protection", || host.links.is_protected("eth1"));
            clock = Some(linux::clock::Clock::start());
        });
        // Everything else in it waits for a quarter of a second at most; the rest is for a busy machine.
        assert!(clock.unwrap().elapsed() < Duration::from_secs(5));
        assert_eq!(host.links.is_protected("eth1"), protected);
        assert_eq!(host.said("the monitor ends; hit0 stays protected"), protected);
    }
}

#[test]
fn a_person_asks_a_running_monitor_how_it_is_doing() {
    let host = Host::new("leaf1", "");
    let bus = Moody::new();
    host.ports.receive("eth1", 0);
    assert!(ask_for_status(&host.directory()).unwrap_err().contains("no monitor runs here"));
    host.run(bus.end(), |_| {
        let status = || ask_for_status(&host.directory()).unwrap();
        wait_for("a verdict", || status().ports.iter().any(|port| port.condition == Condition::Healthy));
        assert_eq!(status().degraded, Vec::<String>::new());
        host.ports.break_down(true);
        wait_for("degradation", || status().degraded == ["ports: the driver is being reloaded"]);
    });
}

#[test]
fn a_person_clears_a_port_through_the_socket() {
    let host = Host::new("leaf1", "action = \"protect\"\nflaps = 1\nflaps-within = \"1h\"");
    let bus = Moody::new();
    host.ports.receive("eth1", 100);
    host.run(bus.end(), |_| {
        wait_for("a port that is stuck", || bus.state("leaf1/eth1").is_some_and(|state| state.sticky));
        wait_for("protection", || host.links.is_protected("eth1"));
        host.ports.receive("eth1", 0);
        a_while();
        a_while();
        assert!(host.links.is_protected("eth1"), "sticky stays protected");
        let directory = host.directory();
        assert_eq!(ask_to_clear(&directory, "eht1").unwrap_err(), "eht1 is not watched; did you mean eth1?");
        ask_to_clear(&directory, "eth1").unwrap();
        wait_for("the end of protection", || !host.links.is_protected("eth1"));
        assert_eq!(ask_to_clear(&directory, "eth1").unwrap_err(), "eth1 has no alarm");
        assert_eq!(MonitorControl::bind(&directory).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    });
    assert!(host.deeds().contains(&"clear done".to_owned()));
    assert!(ask_to_clear(&host.directory(), "eth1").unwrap_err().contains("no monitor runs here"));
}

#[test]
fn orders_reach_a_monitor_that_obeys() {
    let order = |number, kind| {
        let id = PortId::new("leaf1", "eth1");
        Message::Order(Order { id, at: Moment::ZERO, life: 1, number, kind, why: "repair".to_owned(), tag: None })
    };
    let host = Host::new("leaf1", "action = \"protect\"\nobey = true");
    let bus = Moody::new();
    bus.say(&order(1, OrderKind::Disable));
    host.ports.receive("eth1", 0);
    host.run(bus.end(), |_| {
        wait_for("the port to be off", || host.links.asked() == ["eth1 off"]);
    });
    // The bus still has the order; what was done is not done again.
    host.run(bus.end(), |_| {
        a_while();
        bus.say(&order(2, OrderKind::Enable));
        wait_for("the port to be on", || host.links.asked() == ["eth1 off", "eth1 on"]);
    });
}

#[test]
fn a_bus_that_comes_back_hears_all_that_happened_meanwhile() {
    let host = Host::new("leaf1", "");
    let bus = Moody::new();
    bus.be(Mood::Down);
    host.ports.receive("eth1", 100);
    host.run(bus.end(), |running| {
        wait_for("an alarm", || {
            running.get("/metrics").contains("hitless_port_corrupting{port=\"eth1\",device=\"leaf1\"} 1.0")
        });
        host.ports.receive("eth1", 0);
        wait_for("its end", || {
            running.get("/metrics").contains("hitless_port_corrupting{port=\"eth1\",device=\"leaf1\"} 0.0")
        });
        bus.be(Mood::Fine);
        wait_for("the bus to hear", || bus.condition("leaf1/eth1") == Some(Condition::Healthy));
    });
    // Both messages were published, in order: the last of two has the number two.
    assert_eq!(bus.state("leaf1/eth1").unwrap().number, 2);
}
