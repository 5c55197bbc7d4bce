//! The bus inside one process, and the outbox on a bus that fails.

mod bus_words;

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use bus::Message;
use bus::outbox::OutboxSettings;
use bus::{Bus, BusError, Deduplicator, LocalBus, Outbox, PublishResult};
use bus_words::{Flaky, Mood, corrupting, healthy, ms};
use proptest::prelude::*;

const NO_WAIT: Duration = Duration::ZERO;

#[test]
fn what_one_end_says_every_other_hears_once() {
    let mut says = LocalBus::new();
    let mut hears = [says.another(), says.another()];
    for end in &mut hears {
        assert_eq!(end.catch_up().unwrap(), []);
    }
    let message = corrupting("leaf1", "eth1", 1, 1);
    assert_eq!(says.publish(&message), Ok(PublishResult::Now));
    assert_eq!(says.publish(&message), Ok(PublishResult::Before), "told twice");
    for end in &mut hears {
        assert_eq!(end.receive(NO_WAIT).unwrap(), std::slice::from_ref(&message));
        assert_eq!(end.receive(NO_WAIT).unwrap(), []);
    }
}

#[test]
fn who_comes_late_starts_with_the_latest_of_each_key() {
    let mut says = LocalBus::new();
    for message in [corrupting("a", "1", 1, 1), corrupting("a", "2", 1, 2), healthy("a", "1", 1, 3)] {
        says.publish(&message).unwrap();
    }
    let mut late = says.another();
    assert_eq!(late.receive(NO_WAIT).unwrap(), [healthy("a", "1", 1, 3), corrupting("a", "2", 1, 2)]);
    says.publish(&healthy("a", "2", 1, 4)).unwrap();
    assert_eq!(late.receive(NO_WAIT).unwrap(), [healthy("a", "2", 1, 4)]);
    assert_eq!(late.gaps(), Vec::<String>::new());
}

#[test]
fn who_was_away_for_longer_than_the_history_starts_over_and_says_so() {
    let mut says = LocalBus::with_history(2);
    let mut away = says.another();
    away.catch_up().unwrap();
    for number in 1..=5 {
        says.publish(&corrupting("a", &number.to_string(), 1, number)).unwrap();
    }
    let all = away.receive(NO_WAIT).unwrap();
    assert_eq!(all.len(), 5, "{all:?}");
    assert!(away.gaps()[0].contains("3 messages"));
    assert!(away.gaps().is_empty());
    says.publish(&healthy("a", "1", 1, 6)).unwrap();
    assert_eq!(away.receive(NO_WAIT).unwrap(), [healthy("a", "1", 1, 6)]);
}

#[test]
fn an_older_message_never_follows_a_newer_one() {
    let mut says = LocalBus::new();
    says.publish(&healthy("a", "1", 2, 1)).unwrap();
    assert_eq!(says.publish(&corrupting("a", "1", 1, 99)), Ok(PublishResult::Outdated), "a former life");
    assert_eq!(says.publish(&corrupting("a", "1", 2, 0)), Ok(PublishResult::Outdated), "a late repetition");
    assert_eq!(says.publish(&corrupting("a", "1", 2, 1)), Ok(PublishResult::Outdated), "another of the same version");
    assert_eq!(says.catch_up().unwrap(), [healthy("a", "1", 2, 1)]);
}

#[test]
fn a_receiver_that_waits_is_woken_by_the_first_message() {
    let mut says = LocalBus::new();
    let mut hears = says.another();
    hears.catch_up().unwrap();
    thread::scope(|scope| {
        let heard = scope.spawn(|| hears.receive(Duration::from_secs(600)).unwrap());
        says.publish(&corrupting("a", "1", 1, 1)).unwrap();
        assert_eq!(heard.join().unwrap(), [corrupting("a", "1", 1, 1)]);
    });
}

#[test]
fn a_host_is_alive_as_long_as_an_end_says_so() {
    let mut watches = LocalBus::new();
    let (mut one, mut two) = (watches.another(), watches.another());
    for end in [&mut one, &mut two] {
        end.heartbeat("a", Duration::from_secs(1)).unwrap();
        end.heartbeat("a", Duration::from_secs(1)).unwrap();
    }
    two.heartbeat("b", Duration::from_secs(1)).unwrap();
    assert_eq!(watches.hosts().unwrap(), ["a", "b"]);
    drop(two);
    assert_eq!(watches.hosts().unwrap(), ["a"]);
    drop(one);
    assert_eq!(watches.hosts().unwrap(), Vec::<String>::new());
}

#[test]
fn an_address_opens_a_bus_or_says_what_is_wrong() {
    assert!(bus::open("local").is_ok());
    assert!(bus::open("redis://127.0.0.1:1").is_ok(), "it need not be there yet");
    let Err(BusError::Address(why)) = bus::open("nowhere") else { panic!("opened nowhere") };
    assert!(why.contains("`nowhere`") && why.contains("expected redis://"), "{why}");
}

#[test]
fn seen_tells_news_from_repetitions_key_by_key() {
    let mut seen = Deduplicator::new();
    assert!(seen.is_news(&corrupting("a", "1", 1, 2)));
    assert!(!seen.is_news(&corrupting("a", "1", 1, 2)));
    assert!(!seen.is_news(&corrupting("a", "1", 1, 1)));
    assert!(seen.is_news(&corrupting("a", "2", 1, 1)));
    assert!(seen.is_news(&corrupting("a", "1", 2, 0)), "a new life counts from the start");
}

fn outbox(bus: &Flaky, settings: OutboxSettings) -> Outbox {
    Outbox::with_settings(bus.another(), settings)
}

#[test]
fn an_outbox_waits_longer_and_longer_and_tells_in_order_once_it_can() {
    let bus = Flaky::new();
    let mut outbox = outbox(&bus, OutboxSettings::default());
    bus.be(Mood::Down);
    let said: Vec<Message> = (1..=4).map(|number| corrupting("a", "1", 1, number)).collect();
    said.iter().cloned().for_each(|message| outbox.put(message));
    let mut now = ms(1_000);
    let mut waits = Vec::new();
    for _ in 0..8 {
        let next = outbox.step(now);
        assert_eq!(outbox.step(now), next, "not before its time");
        waits.push(next.since(now).as_millis());
        now = next;
    }
    assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    let status = outbox.status();
    assert_eq!((status.failed_attempts, status.retried, status.waiting, status.published), (8, 7, 4, 0));
    assert_eq!(status.last_error.as_deref(), Some("out to lunch"));
    assert_eq!(status.degraded.as_deref(), Some("out to lunch"));

    bus.be(Mood::Fine);
    outbox.step(now);
    assert_eq!(bus.lock().heard, said);
    let status = outbox.status();
    assert_eq!((status.published, status.waiting, status.degraded), (4, 0, None));
}

#[test]
fn an_answer_that_is_lost_does_not_make_a_message_be_told_twice() {
    let bus = Flaky::new();
    let mut outbox = outbox(&bus, OutboxSettings::default());
    bus.be(Mood::Mute);
    outbox.put(corrupting("a", "1", 1, 1));
    let next = outbox.step(ms(0));
    assert_eq!(outbox.status().waiting, 1, "told, but who knows");
    bus.be(Mood::Fine);
    outbox.step(next);
    assert_eq!(bus.lock().heard.len(), 1);
    assert_eq!((outbox.status().published, outbox.status().waiting), (1, 0));
}

#[test]
fn a_full_queue_drops_what_later_messages_make_pointless_and_counts_it() {
    let bus = Flaky::new();
    let mut outbox = outbox(&bus, OutboxSettings { room: 3, ..OutboxSettings::default() });
    bus.be(Mood::Down);
    outbox.put(corrupting("a", "1", 1, 1));
    for number in 2..=5 {
        outbox.put(corrupting("a", "2", 1, number));
    }
    assert_eq!((outbox.status().coalesced, outbox.status().waiting), (2, 3));
    for (number, port) in (6..).zip(["3", "4", "5"]) {
        outbox.put(corrupting("a", port, 1, number));
    }
    assert_eq!((outbox.status().coalesced, outbox.status().waiting), (3, 5), "one a key is never dropped");
    let versions: Vec<_> = outbox.unsent().map(|message| message.version().1).collect();
    assert_eq!(versions, [1, 5, 6, 7, 8]);
    bus.be(Mood::Fine);
    outbox.step(ms(0));
    assert_eq!(bus.state().len(), 5);
}

#[test]
fn what_the_bus_forgot_is_put_back_the_last_minute_event_by_event() {
    let bus = Flaky::new();
    let mut outbox = outbox(&bus, OutboxSettings::default());
    outbox.put(corrupting("a", "old", 1, 1));
    outbox.put(healthy("a", "old", 1, 2));
    outbox.step(ms(0));
    for message in [corrupting("a", "new", 1, 3), healthy("a", "new", 1, 4)] {
        outbox.put(message);
    }
    outbox.step(ms(100_000));
    bus.lock().heard.clear();
    bus.forget();
    outbox.put(corrupting("a", "next", 1, 5));
    let next = outbox.step(ms(111_000));
    let heard = [
        healthy("a", "old", 1, 2),
        corrupting("a", "new", 1, 3),
        healthy("a", "new", 1, 4),
        corrupting("a", "next", 1, 5),
    ];
    assert_eq!(bus.lock().heard, heard);
    assert_eq!((outbox.status().republished, outbox.status().published), (3, 5));
    assert_eq!(next, ms(121_000), "looks again by and by");
    outbox.step(next);
    assert_eq!(bus.lock().heard.len(), 4, "nothing was lost this time");
}

#[test]
fn a_bus_that_lost_its_last_second_is_told_that_second_again() {
    let bus = Flaky::new();
    let mut outbox = outbox(&bus, OutboxSettings::default());
    let said: Vec<Message> = (1..=3).map(|number| corrupting("a", "1", 1, number)).collect();
    said.iter().cloned().for_each(|message| outbox.put(message));
    let next = outbox.step(ms(0));
    bus.forget();
    bus.another().publish(&said[0]).unwrap();
    bus.lock().heard.clear();
    outbox.step(next);
    assert_eq!(bus.lock().heard, said[1..]);
    assert_eq!((outbox.status().republished, outbox.status().outdated), (2, 0));
}

#[test]
fn a_restart_that_was_noticed_is_made_good_before_anything_new_is_told() {
    let bus = Flaky::new();
    let mut outbox = outbox(&bus, OutboxSettings::default());
    outbox.put(corrupting("a", "1", 1, 1));
    outbox.step(ms(0));
    bus.be(Mood::Down);
    outbox.put(healthy("a", "1", 1, 2));
    let mut next = outbox.step(ms(10));
    bus.forget();
    next = outbox.step(next);
    bus.be(Mood::Fine);
    outbox.step(next);
    let one = corrupting("a", "1", 1, 1);
    assert_eq!(bus.lock().heard, [one.clone(), one, healthy("a", "1", 1, 2)]);
}

#[test]
fn a_key_that_others_have_taken_holds_nothing_else_back() {
    let bus = Flaky::new();
    let mut outbox = outbox(&bus, OutboxSettings::default());
    bus.lock().taken.insert("port:a/1".to_owned());
    for (number, port) in (1..).zip(["1", "2", "1", "3"]) {
        outbox.put(corrupting("a", port, 1, number));
    }
    assert_eq!(outbox.step(ms(0)), ms(5_000));
    assert_eq!(bus.state(), [corrupting("a", "2", 1, 2), corrupting("a", "3", 1, 4)]);
    let degraded = outbox.degraded().unwrap();
    assert_eq!(degraded, "`port:a/1`: is not ours");
    bus.lock().taken.clear();
    outbox.step(ms(5_000));
    assert_eq!(bus.lock().heard[2..], [corrupting("a", "1", 1, 1), corrupting("a", "1", 1, 3)]);
    assert_eq!(outbox.degraded(), None);
}

#[test]
fn an_outbox_that_is_not_listened_to_says_so_until_it_is() {
    let bus = Flaky::new();
    bus.another().publish(&corrupting("a", "1", 9, 1)).unwrap();
    let mut outbox = outbox(&bus, OutboxSettings::default());
    outbox.put(healthy("a", "1", 8, 1));
    outbox.step(ms(0));
    assert_eq!(outbox.status().outdated, 1);
    assert!(outbox.degraded().unwrap().contains("`port:a/1`: the bus has a newer message"));
    outbox.step(ms(10_000));
    assert!(outbox.degraded().is_some());
    outbox.put(healthy("a", "1", 10, 1));
    outbox.step(ms(10_001));
    assert_eq!(outbox.degraded(), None);
}

#[test]
fn a_clock_that_is_set_back_does_not_stop_an_outbox() {
    let bus = Flaky::new();
    let mut outbox = outbox(&bus, OutboxSettings::default());
    outbox.alive("a", Duration::from_secs(1));
    bus.be(Mood::Down);
    outbox.put(corrupting("a", "1", 1, 1));
    outbox.step(ms(1_000_000));
    bus.be(Mood::Fine);
    let next = outbox.step(ms(0));
    assert!(next <= ms(5_000), "{next:?}");
    outbox.step(next);
    assert_eq!(outbox.status().waiting, 0);
    assert_eq!(bus.another().hosts().unwrap(), ["a"]);
}

#[test]
fn a_host_says_that_it_is_alive_at_its_interval() {
    let bus = Flaky::new();
    let mut outbox = outbox(&bus, OutboxSettings::default());
    outbox.alive("a", Duration::from_secs(1));
    assert_eq!(outbox.step(ms(50)), ms(1_050));
    assert_eq!(outbox.step(ms(500)), ms(1_050));
    assert_eq!(outbox.step(ms(1_060)), ms(2_060));
    bus.be(Mood::Down);
    assert_eq!(outbox.step(ms(2_060)), ms(2_160));
    assert!(outbox.degraded().is_some(), "with nothing to say, too");
}

#[derive(Clone, Debug)]
enum Event {
    Put(u8),
    Be(Mood),
    Forget,
    Wait(u64),
}

fn mood() -> impl Strategy<Value = Mood> {
    prop_oneof![Just(Mood::Fine), Just(Mood::Down), Just(Mood::Mute), (0u8..9).prop_map(Mood::Tired)]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0u8..4).prop_map(Event::Put),
        3 => mood().prop_map(Event::Be),
        1 => Just(Event::Forget),
        4 => (0u64..4_000).prop_map(Event::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// After any sequence of events, a bus that is fine in the end has heard every message that was not dropped for
    /// want of room, of each key in order, and has the last of each.
    #[test]
    fn nothing_is_lost_silently(events in prop::collection::vec(event(), 0..60), room in 1usize..30) {
        let bus = Flaky::new();
        let mut outbox = outbox(&bus, OutboxSettings { room, ..OutboxSettings::default() });
        let (mut now, mut next, mut number) = (ms(0), ms(0), 0);
        let mut last = BTreeMap::new();
        for event in events {
            match event {
                Event::Put(port) => {
                    number += 1;
                    let message = corrupting("a", &port.to_string(), 1, number);
                    last.insert(message.key(), message.clone());
                    outbox.put(message);
                }
                Event::Be(mood) => bus.be(mood),
                Event::Forget => bus.forget(),
                Event::Wait(wait) => now = now.after(Duration::from_millis(wait)),
            }
            if now >= next {
                next = outbox.step(now);
            }
        }
        bus.be(Mood::Fine);
        for _ in 0..4 {
            now = now.after(Duration::from_secs(10));
            outbox.step(now);
        }
        let status = outbox.status();
        prop_assert_eq!(bus.state(), last.into_values().collect::<Vec<_>>());
        prop_assert_eq!((status.waiting, &status.degraded), (0, &None));
        // A message that was dropped for want of room may have been published before, and forgotten.
        prop_assert!(status.published <= number && status.published + status.coalesced >= number, "{:?}", status);
        let mut heard = Deduplicator::new();
        let news = bus.lock().heard.iter().filter(|message| heard.is_news(message)).count() as u64;
        prop_assert!(news + status.coalesced >= number, "{} of {} heard, {} dropped", news, number, status.coalesced);
    }
}
