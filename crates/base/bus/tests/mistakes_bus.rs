//! Mistakes that real monitors made with their bus. Each is a test with its name.

mod bus_words;
mod redis_server;

use std::time::Duration;

use bus::outbox::{next_life, withdrawal};
use bus::{Bus, LocalBus, Outbox, RedisBus};
use bus::{Condition, Message};
use bus_words::{Flaky, Mood, clock, corrupting, healthy, ms, state};
use redis_server::{Keeps, RedisServer};

/// Both kinds of bus; Redis where it is installed.
fn on_every_bus(story: impl Fn(&dyn Bus)) {
    story(&LocalBus::new());
    if let Some(server) = RedisServer::start(Keeps::Nothing) {
        story(&RedisBus::open(&server.url()).unwrap().with_patience(Duration::from_secs(60)));
    }
}

/// An alarm is raised while the bus is away, and cleared, and raised: a monitor that publishes once and forgets, or
/// that keeps only the latest, leaves everybody with half of it.
#[test]
fn event_lost_when_publishing_fails() {
    let bus = Flaky::new();
    let mut outbox = Outbox::new(bus.another());
    bus.be(Mood::Down);
    let events = [corrupting("leaf1", "eth1", 1, 1), healthy("leaf1", "eth1", 1, 2), corrupting("leaf1", "eth1", 1, 3)];
    let mut next = ms(0);
    for event in &events {
        outbox.put(event.clone());
        next = outbox.step(next);
    }
    assert_eq!(outbox.status().waiting, 3);
    assert_eq!(outbox.degraded().as_deref(), Some("out to lunch"), "it is said that it could not be said");
    bus.be(Mood::Fine);
    outbox.step(next);
    assert_eq!(bus.lock().heard, events);
    assert_eq!((outbox.status().published, outbox.degraded()), (3, None));
}

/// The bus took it and lost it: it restarted without its data, after it had confirmed the message to the monitor.
#[test]
fn event_lost_by_a_bus_that_had_taken_it() {
    let bus = Flaky::new();
    let mut outbox = Outbox::new(bus.another());
    outbox.put(corrupting("leaf1", "eth1", 1, 1));
    let next = outbox.step(ms(0));
    assert_eq!(outbox.status().waiting, 0);
    bus.forget();
    assert_eq!(bus.state(), []);
    outbox.step(next);
    assert_eq!(bus.state(), [corrupting("leaf1", "eth1", 1, 1)], "nothing new had to happen on that port");
}

#[test]
fn pub_sub_loses_messages_to_subscribers_that_are_away() {
    on_every_bus(|bus| {
        let (mut says, mut was_there, mut comes_late) = (bus.another(), bus.another(), bus.another());
        assert_eq!(was_there.catch_up().unwrap(), []);
        says.publish(&corrupting("leaf1", "eth1", 1, 1)).unwrap();
        says.publish(&corrupting("leaf1", "eth2", 1, 2)).unwrap();
        says.publish(&healthy("leaf1", "eth1", 1, 3)).unwrap();
        let wait = Duration::from_millis(10);
        let (one, two, three) =
            (corrupting("leaf1", "eth1", 1, 1), corrupting("leaf1", "eth2", 1, 2), healthy("leaf1", "eth1", 1, 3));
        assert_eq!(was_there.receive(wait).unwrap(), [one, two.clone(), three.clone()], "every event");
        assert_eq!(comes_late.receive(wait).unwrap(), [three, two], "the state");
    });
}

/// The authors' daemon never polls its ports, because it awaits a subscription that does not return.
#[test]
fn awaits_a_subscription_that_does_not_return() {
    on_every_bus(|bus| {
        let mut bus = bus.another();
        bus.catch_up().unwrap();
        let (start, patience) = (clock(), Duration::from_millis(100));
        assert_eq!(bus.receive(patience).unwrap(), []);
        assert!(start.elapsed() >= patience / 2, "and it does not spin either");
    });
}

/// eth2 was corrupting, the host reboots, the interface has another name now, and the clock is years back: nobody
/// would ever clear that alarm.
#[test]
fn reboot_orphans_an_alarm() {
    on_every_bus(|bus| {
        let (life, before) = (ms(1_700_000_000_000).as_ms(), ms(1_600_000_000_000));
        let mut outbox = Outbox::new(bus.another());
        outbox.put(corrupting("leaf1", "eth1", life, 1));
        outbox.put(corrupting("leaf1", "eth2", life, 2));
        outbox.step(ms(0));
        bus.another().publish(&corrupting("leaf2", "eth2", life, 1)).unwrap();
        let mut planner = bus.another();
        assert_eq!(planner.catch_up().unwrap().len(), 3);
        drop(outbox);

        let mut outbox = Outbox::new(bus.another());
        let recalled = outbox.recall("leaf1").unwrap();
        let life = next_life(before, &recalled);
        outbox.put(healthy("leaf1", "eth1", life, 1));
        for (number, former) in (2..).zip(recalled.iter().filter(|former| former.id.port != "eth1")) {
            outbox.put(withdrawal(former, life, number, before));
        }
        outbox.step(ms(0));
        assert_eq!((outbox.status().published, outbox.status().outdated, outbox.degraded()), (2, 0, None));

        let told = planner.receive(Duration::from_secs(1)).unwrap();
        let conditions: Vec<_> = told
            .iter()
            .map(|message| match message {
                Message::Port(state) => (state.id.to_string(), state.condition),
                Message::Order(order) => panic!("nobody ordered {order:?}"),
            })
            .collect();
        let expected = [("leaf1/eth1", Condition::Healthy), ("leaf1/eth2", Condition::Unknown)];
        assert_eq!(conditions, expected.map(|(id, condition)| (id.to_owned(), condition)));
        let mut others = bus.another();
        assert_eq!(
            others.recall("leaf2").unwrap(),
            [state("leaf2", "eth2", 1_700_000_000_000, 1, Condition::Corrupting)]
        );
    });
}
