//! The bus over a real redis-server.

mod bus_words;
mod redis_server;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::Duration;

use bus::{Bus, BusError, Deduplicator, Outbox, PublishResult, RedisBus};
use bus::{Message, Order, OrderKind, PortId};
use bus_words::{clock, corrupting, healthy};
use redis_server::{Keeps, RedisServer};
use units::Moment;

const A_MOMENT: Duration = Duration::from_millis(50);

/// With more patience than a busy machine could try.
fn open_at(url: &str) -> RedisBus {
    RedisBus::open(url).unwrap().with_patience(Duration::from_secs(60))
}

fn open(server: &RedisServer) -> RedisBus {
    open_at(&server.url())
}

fn nothing() -> Vec<String> {
    Vec::new()
}

#[test]
fn state_is_in_keys_and_history_in_a_stream() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let mut bus = open_at(&format!("{}?prefix=lab", server.url()));
    let order = Message::Order(Order {
        id: PortId::new("leaf1", "eth1"),
        at: Moment::from_ms(7),
        life: u64::MAX,
        number: 1,
        kind: OrderKind::Disable,
        why: "for repair".to_owned(),
        tag: None,
    });
    let messages = [corrupting("leaf1", "eth1", u64::MAX - 1, 1), healthy("leaf1", "eth1", u64::MAX - 1, 2), order];
    for message in &messages {
        assert_eq!(bus.publish(message), Ok(PublishResult::Now));
    }
    let kept = server.ask(&["GET", "lab:port:leaf1/eth1"]);
    assert_eq!(serde_json::from_str::<Message>(&kept).unwrap(), messages[1]);
    assert_eq!(server.ask(&["XLEN", "lab:events"]), ":3");
    assert!(server.ask(&["GET", "lab:last"]).ends_with(":3"));
    let keys = ["lab:port:leaf1/eth1", "lab:order:leaf1/eth1", "lab:nothing"];
    assert_eq!(server.ask(&["EXISTS", keys[0], keys[1], keys[2]]), ":2");
    let mut other = open(&server);
    assert_eq!(other.catch_up().unwrap(), [], "another prefix is another bus");
}

#[test]
fn a_subscriber_that_was_away_gets_every_message_in_order() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let (mut says, mut hears) = (open(&server), open(&server));
    says.publish(&corrupting("a", "1", 1, 1)).unwrap();
    assert_eq!(hears.receive(A_MOMENT).unwrap(), [corrupting("a", "1", 1, 1)], "who comes late starts with the state");
    assert_eq!(hears.receive(A_MOMENT).unwrap(), []);
    // More than one answer of Redis holds.
    let said: Vec<Message> = (2..2_600).map(|number| corrupting("a", &(number % 7).to_string(), 1, number)).collect();
    for message in &said {
        assert_eq!(says.publish(message), Ok(PublishResult::Now));
    }
    let mut heard = Vec::new();
    while heard.len() < said.len() {
        heard.extend(hears.receive(Duration::from_secs(5)).unwrap());
    }
    assert_eq!(heard, said);
    assert_eq!((hears.gaps(), hears.foreign()), (nothing(), nothing()));
}

#[test]
fn what_is_told_while_a_subscriber_catches_up_is_not_missed() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let (mut says, all) = (open(&server), 1_000);
    let mut subscribers: Vec<(RedisBus, BTreeSet<String>)> = Vec::new();
    thread::scope(|scope| {
        let publisher = scope.spawn(|| {
            for port in 0..all {
                says.publish(&corrupting("a", &port.to_string(), 1, 1)).unwrap();
            }
        });
        while !publisher.is_finished() && subscribers.len() < 20 {
            let mut bus = open(&server);
            let state = bus.catch_up().unwrap();
            subscribers.push((bus, state.iter().map(Message::key).collect()));
        }
    });
    assert!(!subscribers.is_empty());
    for (bus, known) in &mut subscribers {
        let before = known.len();
        loop {
            let news = bus.receive(Duration::ZERO).unwrap();
            known.extend(news.iter().map(Message::key));
            if news.is_empty() {
                break;
            }
        }
        assert_eq!((known.len(), bus.gaps()), (all, nothing()), "{before} were known at first");
    }
}

#[test]
fn a_message_wakes_whoever_waits_for_it() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let (mut says, mut hears) = (open(&server), open(&server));
    hears.catch_up().unwrap();
    thread::scope(|scope| {
        let heard = scope.spawn(|| hears.receive(Duration::from_secs(50)).unwrap());
        says.publish(&corrupting("a", "1", 1, 1)).unwrap();
        assert_eq!(heard.join().unwrap(), [corrupting("a", "1", 1, 1)]);
    });
}

#[test]
fn a_repetition_is_told_once_and_recognised() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let message = corrupting("a", "1", 1, 1);
    // Another end, as after a restart of the connection: it does not know what it said before.
    assert_eq!(open(&server).publish(&message), Ok(PublishResult::Now));
    assert_eq!(open(&server).publish(&message), Ok(PublishResult::Before));
    assert_eq!(server.ask(&["XLEN", "hitless:events"]), ":1");
    // State and history may both contain it.
    let mut hears = open(&server);
    hears.catch_up().unwrap();
    assert_eq!(server.ask(&["DEL", "hitless:port:a/1"]), ":1");
    assert_eq!(open(&server).publish(&message), Ok(PublishResult::Now));
    let mut seen = Deduplicator::new();
    seen.is_news(&message);
    let again = hears.receive(A_MOMENT).unwrap();
    assert_eq!((again.len(), seen.is_news(&again[0])), (1, false));
}

#[test]
fn a_former_life_never_overwrites_the_present_one() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let (former, present) = (1_700_000_000_000, 1_700_000_000_001);
    // Lua would take these two numbers for the same.
    let (less, more) = ((1 << 60) + 1, (1 << 60) + 2);
    let (mut old, mut new) = (open(&server), open(&server));
    assert_eq!(old.publish(&corrupting("a", "1", former, 1)), Ok(PublishResult::Now));
    assert_eq!(new.publish(&healthy("a", "1", present, less)), Ok(PublishResult::Now));
    assert_eq!(old.publish(&corrupting("a", "1", former, u64::MAX)), Ok(PublishResult::Outdated));
    assert_eq!(
        new.publish(&corrupting("a", "1", present, less)),
        Ok(PublishResult::Outdated),
        "another of the same version"
    );
    assert_eq!(new.publish(&corrupting("a", "1", present, more)), Ok(PublishResult::Now));
    assert_eq!(new.publish(&healthy("a", "1", present, less)), Ok(PublishResult::Outdated));
    assert_eq!(new.catch_up().unwrap(), [corrupting("a", "1", present, more)]);
}

#[test]
fn of_many_who_speak_for_one_port_the_newest_stays() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    thread::scope(|scope| {
        for offset in 0..8 {
            let mut bus = open(&server);
            scope.spawn(move || {
                for number in 0..50 {
                    while bus.publish(&corrupting("a", "1", 1, number * 8 + offset)).is_err() {}
                }
            });
        }
    });
    let mut bus = open(&server);
    assert_eq!(bus.catch_up().unwrap(), [corrupting("a", "1", 1, 399)]);
}

#[test]
fn a_history_that_was_trimmed_sends_the_subscriber_back_to_the_keys() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let mut says = open_at(&format!("{}?history=10", server.url()));
    let mut hears = open(&server);
    says.publish(&corrupting("a", "1", 1, 1)).unwrap();
    hears.catch_up().unwrap();
    for number in 2..=500 {
        says.publish(&corrupting("a", &(number % 250).to_string(), 1, number)).unwrap();
    }
    let left: usize = server.ask(&["XLEN", "hitless:events"])[1..].parse().unwrap();
    assert!((10..499).contains(&left), "{left} left");
    let mut seen = Deduplicator::new();
    let heard: BTreeSet<_> =
        hears.receive(A_MOMENT).unwrap().iter().filter(|m| seen.is_news(m)).map(Message::key).collect();
    assert_eq!(heard.len(), 250, "all ports, also those that the history no longer knows");
    let gaps = hears.gaps();
    assert_eq!(gaps.len(), 1);
    assert!(gaps[0].contains(&format!("`hitless:events`: {} entries are missing after", 499 - left)), "{gaps:?}");
    assert_eq!(hears.receive(A_MOMENT).unwrap(), [], "once");
}

#[test]
fn a_history_that_was_deleted_is_noticed_without_a_new_message() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let (mut says, mut hears) = (open(&server), open(&server));
    hears.catch_up().unwrap();
    says.publish(&corrupting("a", "1", 1, 1)).unwrap();
    server.ask(&["DEL", "hitless:events"]);
    assert_eq!(hears.receive(A_MOMENT).unwrap(), [corrupting("a", "1", 1, 1)]);
    assert_eq!(hears.gaps().len(), 1);
    says.publish(&healthy("a", "1", 1, 2)).unwrap();
    assert_eq!(hears.receive(A_MOMENT).unwrap(), [healthy("a", "1", 1, 2)]);
    assert_eq!(hears.gaps(), nothing());
}

#[test]
fn what_is_flushed_is_put_back_and_subscribers_notice() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let mut outbox = Outbox::new(Box::new(open(&server)));
    let mut hears = open(&server);
    hears.catch_up().unwrap();
    for message in [corrupting("a", "1", 1, 1), corrupting("a", "2", 1, 2), healthy("a", "1", 1, 3)] {
        outbox.put(message);
    }
    outbox.step(Moment::from_ms(0));
    assert_eq!(hears.receive(A_MOMENT).unwrap().len(), 3);
    server.ask(&["FLUSHALL"]);
    // Entries are named after the millisecond.
    thread::sleep(Duration::from_millis(2));
    outbox.step(Moment::from_ms(10_000));
    let status = outbox.status();
    assert_eq!((status.republished, status.published, status.degraded), (3, 3, None));
    let mut state = hears.receive(A_MOMENT).unwrap();
    assert_eq!(state.split_off(3), [healthy("a", "1", 1, 3), corrupting("a", "2", 1, 2)], "history, then keys");
    assert_eq!(state, [corrupting("a", "1", 1, 1), corrupting("a", "2", 1, 2), healthy("a", "1", 1, 3)]);
    assert!(hears.gaps()[0].contains(":1: Redis lost its data"));
}

#[test]
fn a_redis_that_starts_over_with_its_clock_set_back_is_noticed() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let (mut says, mut hears) = (open(&server), open(&server));
    server.ask(&["XADD", "hitless:events", "9999999999999-0", "from", "the future"]);
    says.publish(&corrupting("a", "1", 1, 1)).unwrap();
    hears.catch_up().unwrap();
    server.ask(&["FLUSHALL"]);
    says.publish(&healthy("a", "1", 1, 2)).unwrap();
    assert_eq!(hears.receive(A_MOMENT).unwrap(), [healthy("a", "1", 1, 2)]);
    assert!(hears.gaps()[0].contains("without its entries"));
    says.publish(&corrupting("a", "1", 1, 3)).unwrap();
    assert_eq!(hears.receive(A_MOMENT).unwrap(), [corrupting("a", "1", 1, 3)]);
    assert_eq!(hears.gaps(), nothing());
}

#[test]
fn a_host_that_falls_silent_is_no_longer_listed() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let mut bus = open(&server);
    bus.heartbeat("spine/1*", Duration::from_millis(50)).unwrap();
    bus.heartbeat("leaf1", Duration::from_secs(60)).unwrap();
    bus.heartbeat("leaf1", Duration::from_secs(60)).unwrap();
    let life: u64 = server.ask(&["PTTL", "hitless:host:leaf1"])[1..].parse().unwrap();
    assert!((100_000..=180_000).contains(&life), "{life}");
    while bus.hosts().unwrap() != ["leaf1"] {
        thread::sleep(A_MOMENT);
    }
}

#[test]
fn a_monitor_recalls_what_is_said_about_its_host_and_no_other() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let mut bus = open(&server);
    for host in ["leaf1", "leaf10", "leaf[1]", "leaf1/x", "LEAF1", "l?af*"] {
        bus.publish(&corrupting(host, "eth1", 1, 1)).unwrap();
        let recalled = bus.recall(host).unwrap();
        assert_eq!(recalled.iter().map(|port| port.id.host.as_str()).collect::<Vec<_>>(), [host]);
    }
    assert_eq!(bus.recall("leaf").unwrap(), []);
}

/// Data that others may have put where ours is: the key, its value, and what is said about it.
const FOREIGN: [(&str, &str, &str); 5] = [
    ("text", "hello", "is not a message of ours"),
    ("object", r#"{"port":{"id":"a/object","condition":"corrupting"}}"#, "is not a message of ours"),
    ("list", "", "is not a text"),
    ("long", "", "too long"),
    ("other", "", "is about `port:a/elsewhere`"),
];

#[test]
fn foreign_data_under_our_keys_is_reported_and_left_alone() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let mut bus = open(&server);
    bus.publish(&corrupting("a", "ours", 1, 1)).unwrap();
    let elsewhere = serde_json::to_string(&corrupting("a", "elsewhere", 1, 1)).unwrap();
    let unknown = elsewhere.replace("corrupting", "melting").replace("elsewhere", "unknown");
    let long = "x".repeat(100_000);
    for (port, value, _) in FOREIGN {
        let key = format!("hitless:port:a/{port}");
        match port {
            "list" => server.ask(&["RPUSH", &key, "x"]),
            "long" => server.ask(&["SET", &key, &long]),
            "other" => server.ask(&["SET", &key, &elsewhere]),
            _ => server.ask(&["SET", &key, value]),
        };
    }
    server.ask(&["SET", "hitless:port:a/unknown", &unknown]);
    server.ask(&["SET", "hitless:something", "else"]);
    let before = server.ask(&["DEBUG", "DIGEST"]);

    assert_eq!(bus.catch_up().unwrap(), [corrupting("a", "ours", 1, 1)]);
    let foreign = bus.foreign();
    assert_eq!(foreign.len(), 6, "{foreign:?}");
    for (port, _, why) in FOREIGN.into_iter().chain([("unknown", "", "melting")]) {
        let key = format!("`hitless:port:a/{port}`");
        assert!(foreign.iter().any(|line| line.contains(&key) && line.contains(why)), "{key}: {foreign:?}");
        let Err(BusError::Key { key: named, .. }) = bus.publish(&corrupting("a", port, 1, 1)) else {
            panic!("{port} was overwritten")
        };
        assert_eq!(format!("`{named}`"), key);
    }
    assert_eq!(server.ask(&["DEBUG", "DIGEST"]), before, "nothing was changed");
}

#[test]
fn foreign_entries_in_the_history_are_reported_and_skipped() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let mut bus = open(&server);
    bus.catch_up().unwrap();
    let theirs = serde_json::to_string(&corrupting("a", "theirs", 1, 1)).unwrap();
    let melting = theirs.replace("corrupting", "melting");
    server.ask(&["XADD", "hitless:events", "*", "hello", "world"]);
    server.ask(&["XADD", "hitless:events", "*", "message", &theirs]);
    bus.publish(&corrupting("a", "1", 1, 1)).unwrap();
    let (one, two) = (server.ask(&["GET", "hitless:last"]), |one: &str| one.replace(":1", ":2"));
    server.ask(&["SET", "hitless:last", &two(&one)]);
    server.ask(&["XADD", "hitless:events", "*", "number", &two(&one), "message", &melting]);
    server.ask(&["XADD", "hitless:events", "*", "number", "x", "message", "7"]);
    bus.publish(&corrupting("a", "2", 1, 2)).unwrap();
    assert_eq!(bus.receive(A_MOMENT).unwrap(), [corrupting("a", "1", 1, 1), corrupting("a", "2", 1, 2)]);
    let foreign = bus.foreign();
    assert_eq!(foreign.len(), 4, "{foreign:?}");
    for (line, why) in foreign.iter().zip(["no field `message`", "no field `number`", "melting", "not a message"]) {
        assert!(line.starts_with("`hitless:events` entry ") && line.contains(why), "{line}");
    }
    assert_eq!(bus.gaps(), nothing());
    // Numbers that make no sense cost a look at the keys, no more.
    server.ask(&["XADD", "hitless:events", "*", "number", "1:18446744073709551615", "message", &theirs]);
    server.ask(&["XADD", "hitless:events", "*", "number", "1:1", "message", &theirs]);
    let mut seen = Deduplicator::new();
    let ours = bus.receive(A_MOMENT).unwrap().into_iter().filter(|message| seen.is_news(message)).count();
    assert_eq!((ours, bus.gaps().len()), (3, 2));
}

#[test]
fn others_in_the_place_of_our_history_stop_us_with_a_clear_word_and_lose_nothing() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let mut bus = open(&server);
    let (key, value, what) = ("hitless:events", "text", "`hitless:events` is a string, not ours");
    server.ask(&["SET", key, value]);
    let Err(BusError::Down(error)) = bus.publish(&corrupting("a", "1", 1, 1)) else { panic!("told over {key}") };
    assert!(error.contains(what), "{error}");
    let Err(BusError::Down(error)) = bus.catch_up() else { panic!("read {key}") };
    assert!(error.contains(key), "{error}");
    assert_eq!(server.ask(&["GET", key]), value);
    assert_eq!(server.ask(&["EXISTS", "hitless:port:a/1"]), ":0", "neither or both");
    server.ask(&["DEL", key]);
    server.ask(&["RPUSH", "hitless:host:a", "x"]);
    let Err(BusError::Key { key, .. }) = bus.heartbeat("a", A_MOMENT) else { panic!("overwrote a host") };
    assert_eq!(key, "hitless:host:a");
    server.ask(&["SET", "hitless:host:b", "dead"]);
    assert!(bus.heartbeat("b", A_MOMENT).is_err());
    bus.foreign();
    assert_eq!(bus.hosts().unwrap(), nothing());
    assert_eq!(bus.foreign().len(), 2);

    let mut outbox = Outbox::new(Box::new(bus));
    outbox.alive("a", Duration::from_secs(1));
    outbox.put(corrupting("a", "1", 1, 1));
    outbox.step(Moment::ZERO);
    let status = outbox.status();
    assert_eq!((status.published, status.waiting), (1, 0), "our ports are told all the same");
    assert!(status.degraded.unwrap().contains("`hitless:host:a`: is a list, not ours"));
}

#[test]
fn numbers_that_json_does_not_have_do_not_make_a_message_unreadable() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let mut bus = open(&server);
    let mut state = bus_words::state("a", "1", 1, 1, bus::Condition::Corrupting);
    (state.evidence.loss, state.evidence.high) = (f64::NAN, f64::INFINITY);
    assert_eq!(bus.publish(&Message::Port(state)), Ok(PublishResult::Now));
    assert_eq!(bus.catch_up().unwrap(), [corrupting("a", "1", 1, 1)]);
    let nowhere = corrupting("", "", 1, 1);
    assert!(matches!(bus.publish(&nowhere), Err(BusError::Key { .. })), "nobody could read that");
}

#[test]
fn an_unreachable_redis_degrades_and_recovers_without_a_loss() {
    let Some(mut server) = RedisServer::start(Keeps::Nothing) else { return };
    server.kill();
    let mut outbox = Outbox::new(Box::new(open(&server)));
    let mut hears = open(&server);
    for number in 1..=3 {
        outbox.put(corrupting("a", "1", 1, number));
    }
    let next = outbox.step(Moment::ZERO);
    let degraded = outbox.degraded().unwrap();
    assert!(degraded.contains(&server.port().to_string()) && degraded.contains("connection refused"), "{degraded}");
    let started = clock();
    for _ in 0..3 {
        let error = hears.receive(Duration::from_millis(60)).unwrap_err();
        assert!(error.to_string().contains("connection refused"), "{error}");
    }
    // An attempt, its patience, and what was left until the next attempt.
    assert!(started.elapsed() >= Duration::from_millis(100), "it would spin: {:?}", started.elapsed());
    server.start_again();
    outbox.step(next);
    assert_eq!((outbox.status().published, outbox.degraded()), (3, None));
    let heard = loop {
        match hears.receive(Duration::from_secs(1)) {
            Ok(heard) => break heard,
            Err(error) => assert!(matches!(error, BusError::Down(_))),
        }
    };
    assert_eq!(heard, [corrupting("a", "1", 1, 3)]);
}

#[test]
fn a_redis_that_may_not_write_degrades_and_recovers_without_a_loss() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let mut outbox = Outbox::new(Box::new(open(&server)));
    let (full, empty) = (["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]);
    let (replica, primary) = (["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]);
    let mut at = Moment::ZERO;
    for (number, (trouble, over, why)) in
        (1..).zip([(&full[..], &empty[..], "OOM"), (&replica, &primary, "read only replica")])
    {
        assert_eq!(server.ask(trouble), "+OK");
        outbox.put(corrupting("a", "1", 1, number));
        at = outbox.step(at);
        assert!(outbox.degraded().unwrap().contains(why), "{:?}", outbox.degraded());
        assert_eq!(server.ask(&["XLEN", "hitless:events"]), format!(":{}", number - 1));
        assert_eq!(server.ask(over), "+OK");
        at = outbox.step(at);
        assert_eq!(outbox.degraded(), None);
        assert_eq!(server.ask(&["XLEN", "hitless:events"]), format!(":{number}"));
    }
}

/// Answers every connection the same, once, and hangs up.
fn fake(listener: &TcpListener, answer: &[u8]) {
    let Ok((mut connection, _)) = listener.accept() else { return };
    let mut question = [0; 65_536];
    let _ = connection.read(&mut question);
    let _ = connection.write_all(answer);
}

#[test]
fn answers_that_make_no_sense_are_errors_and_nothing_else() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("redis://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let answers: [&[u8]; 22] = [
        b"",
        b"+OK\r\n",
        b"-\r\n",
        b"-ERR no\r\n",
        b"-MOVED 1 127.0.0.1:1\r\n",
        b":-9223372036854775808\r\n",
        b"$-1\r\n",
        b"$99999999999\r\nx",
        b"$1\r\nxyz\r\n",
        b"*-1\r\n",
        b"*0\r\n",
        b"*9223372036854775807\r\n",
        b"*1\r\n$4\r\nTOLD\r\n",
        b"*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        b"*2\r\n$5\r\nthere\r\n:1\r\n",
        b"*2\r\n$7\r\nforeign\r\n$1\r\nx\r\n",
        b"*2\r\n$1\r\nx\r\n*0\r\n",
        b"*2\r\n:-5\r\n:5\r\n",
        b"%1\r\n+a\r\n+b\r\n",
        b">1\r\n+x\r\n",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\xff\xfe\x00\x01\r\n",
    ];
    thread::scope(|scope| {
        for answer in answers {
            let ask = |ask: fn(&mut RedisBus) -> Option<BusError>| {
                let server = scope.spawn(|| fake(&listener, answer));
                let error = ask(&mut open_at(&url));
                server.join().unwrap();
                let shown = String::from_utf8_lossy(answer);
                assert!(matches!(error, Some(BusError::Down(_))), "{shown:?}: {error:?}");
            };
            ask(|bus| bus.publish(&corrupting("a", "1", 1, 1)).err());
            ask(|bus| bus.catch_up().err());
            ask(|bus| bus.receive(A_MOMENT).err());
            ask(|bus| bus.heartbeat("a", A_MOMENT).err());
            ask(|bus| bus.hosts().err());
            ask(|bus| bus.recall("a").err());
        }
    });
}

#[test]
fn a_redis_that_accepts_and_never_answers_is_given_up_on() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let bus = RedisBus::open(&format!("redis://{}", listener.local_addr().unwrap())).unwrap();
    let mut bus = bus.with_patience(Duration::from_millis(200));
    let error = bus.publish(&corrupting("a", "1", 1, 1)).unwrap_err();
    assert!(error.to_string().contains("no answer in time"), "{error}");
}

#[test]
fn a_password_is_used_and_a_wrong_one_is_refused_without_being_shown() {
    let Some(server) = RedisServer::start_with(Keeps::Nothing, &["--requirepass", "sesame"]) else { return };
    let url = |login: &str| format!("redis://{login}127.0.0.1:{}/3", server.port());
    for (number, login) in (1..).zip([":sesame@", "default:sesame@"]) {
        let mut bus = open_at(&url(login));
        assert_eq!(bus.publish(&corrupting("a", "1", 1, number)), Ok(PublishResult::Now));
        assert!(!format!("{bus:?}").contains("sesame"));
    }
    for login in ["", ":simsim@"] {
        let error = open_at(&url(login)).catch_up().unwrap_err().to_string();
        assert!(error.to_lowercase().contains("auth") && !error.contains("simsim"), "{error}");
    }
}
