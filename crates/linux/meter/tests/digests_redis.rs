//! Collectors that announce themselves on a Redis server of the test's own, and meters that find them there.

#[path = "../../../base/bus/tests/redis_server/mod.rs"]
mod redis_server;

use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use bus::collectors::{Announcement, in_order};
use bus::key::OrderKey;
use linux::clock::{Clock, time_of_day};
use meter::digests::announcer::{AnnounceError, Announcer, CollectorIdentity, CollectorOverview};
use meter::digests::{CollectorAddress, CollectorReports, RedisCollectorAddress, ReportReceiver, queue, report_queue};
use radar::digest::{Digest, DigestShape};
use radar::segment::{MeterReport, ReportFacts};
use radar::signature::Fields;
use redis_server::{Keeps, RedisServer};
use units::StopFlag;

const PATIENCE: Duration = Duration::from_secs(30);
const LENGTH: u64 = 10_000_000;

fn place(server: &RedisServer) -> (CollectorAddress, RedisCollectorAddress) {
    let place: CollectorAddress = format!("{}?prefix=lab", server.url()).parse().unwrap();
    let CollectorAddress::Redis(redis) = place.clone() else { panic!("{place} is no Redis") };
    (place, *redis)
}

fn now_ms() -> u64 {
    time_of_day().as_millis() as u64
}

fn report(batch: u64) -> MeterReport {
    let digest = || Digest::new(DigestShape::new(384, 1, Fields::ALL).foldable());
    let (segment, end, life, missed) = ("cable".to_owned(), "a".to_owned(), 7, 0);
    let (out, came) = (digest(), digest());
    let facts = ReportFacts::default();
    MeterReport {
        segment,
        end,
        life,
        batch,
        length: LENGTH,
        missed,
        out,
        out_number: None,
        came,
        came_number: None,
        facts,
    }
}

/// A collector on a free port; `story` has its announcer, and what it receives.
fn with_collector(
    server: &RedisServer,
    name: &str,
    key: Option<&OrderKey>,
    story: impl FnOnce(&Announcer, &CollectorReports),
) -> String {
    let receiver = ReportReceiver::listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = receiver.address().unwrap().to_string();
    let identity = CollectorIdentity { name: name.to_owned(), address, patience: 2 };
    let announcer = Announcer::new(place(server).1, key.cloned(), identity);
    announcer.claim().unwrap();
    let (put, received) = queue(1 << 20);
    let (stop, said) = (StopFlag::new(), Mutex::new(String::new()));
    let tell = |line: &str| said.lock().unwrap().push_str(line);
    thread::scope(|scope| {
        let words = received.words();
        let (announcing, tell) = (&announcer, &tell);
        scope.spawn(|| receiver.run(key, &put, &stop, tell).unwrap());
        scope.spawn(move || announcing.run(&words, tell));
        story(&announcer, &received);
        announcer.end();
        stop.stop();
    });
    said.into_inner().unwrap()
}

/// Sends a report every batch until `stop` is set; what the meter had to say.
fn send(to: CollectorAddress, key: Option<OrderKey>, stop: &StopFlag) -> String {
    let (mut outlet, sender) = report_queue(to, 7, key);
    let said = Mutex::new(String::new());
    thread::scope(|scope| {
        scope.spawn(|| sender.run(&|line| said.lock().unwrap().push_str(line)));
        let now = || time_of_day().as_nanos() as u64 / LENGTH;
        let mut batch = now();
        while !stop.is_stopped() {
            while batch < now() {
                batch += 1;
                outlet.put_report(&report(batch));
            }
            thread::sleep(Duration::from_millis(1));
        }
        drop(outlet);
    });
    said.into_inner().unwrap()
}

#[test]
fn with_a_key_a_strangers_announcement_is_ignored_and_it_is_told_nothing() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let key = OrderKey::new([7; 16]);
    let trap = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    trap.set_nonblocking(true).unwrap();
    let forged = |name: &str, key: Option<&OrderKey>| {
        let address = trap.local_addr().unwrap().to_string();
        let (from_ms, until_ms, expires_ms) = (0, None, now_ms() + 30_000);
        let said =
            Announcement { name: name.to_owned(), address, incarnation: 1, expires_ms, from_ms, until_ms, patience: 2 };
        server.ask(&["HSET", "lab:collectors", name, &said.to_text(key)]);
    };
    // Names that would take the segment before ours does.
    let names: Vec<String> = (0..200).map(|nth| format!("evil{nth}")).collect();
    let all = names.iter().map(String::as_str).chain(["north"]);
    let first = in_order("cable", all)[0].to_owned();
    assert_ne!(first, "north");
    names.iter().for_each(|name| forged(name, None));
    forged("other-key", Some(&OrderKey::new([8; 16])));
    server.ask(&["HSET", "lab:collectors", "long", &"x".repeat(100_000)]);
    let stop = StopFlag::new();
    with_collector(&server, "north", Some(&key), |_, received| {
        thread::scope(|scope| {
            scope.spawn(|| send(place(&server).0, Some(key.clone()), &stop));
            received.recv_timeout(PATIENCE).unwrap();
            stop.stop();
        });
    });
    assert!(trap.accept().is_err(), "nobody was sent there");
    // A replayed announcement of ours leads to somebody who cannot prove the key.
    forged("north", Some(&key));
    let stop = StopFlag::new();
    thread::scope(|scope| {
        let sending = scope.spawn(|| send(place(&server).0, Some(key.clone()), &stop));
        trap.set_nonblocking(false).unwrap();
        let (mut stream, _) = trap.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        stop.stop();
        assert!(heard.len() <= 8, "a greeting, and no report: {heard:?}");
        assert!(sending.join().unwrap().contains("passed over"));
    });
}

#[test]
fn two_collectors_of_one_name_are_refused_and_one_that_died_is_followed() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let again = |server: &RedisServer| {
        let identity = CollectorIdentity { name: "north".into(), address: "127.0.0.1:9".into(), patience: 2 };
        let announcer = Announcer::new(place(server).1, None, identity);
        announcer.claim()
    };
    with_collector(&server, "north", None, |_, _| {
        let refused = again(&server).unwrap_err();
        assert!(matches!(refused, AnnounceError::Taken { .. }), "{refused}");
        assert!(refused.to_string().contains("give each its own --name"), "{refused}");
    });
    assert!(again(&server).is_ok(), "it took its announcement back");
    let clock = Clock::start();
    assert!(again(&server).is_ok(), "that of one that died expires");
    assert!(clock.elapsed() < Duration::from_secs(5), "{:?}", clock.elapsed());
}

#[test]
fn findings_are_published_and_listed_with_collector_and_heirs() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let key = OrderKey::new([7; 16]);
    with_collector(&server, "north", Some(&key), |announcer, _| {
        let finding = bus::collectors::LatestFinding {
            segment: "cable".into(),
            collector: "north".into(),
            lost: 3,
            ..Default::default()
        };
        let clock = Clock::start();
        let overview = loop {
            announcer.publish(vec![finding.clone()]);
            let overview = CollectorOverview::read(&place(&server).1, Some(&key)).unwrap();
            if !overview.findings.is_empty() {
                break overview;
            }
            assert!(clock.elapsed() < PATIENCE);
            thread::sleep(Duration::from_millis(50));
        };
        assert_eq!((overview.findings.as_slice(), overview.collectors.len()), (&[finding][..], 1));
        server.ask(&["SET", "lab:finding:other", "{\"segment\":\"other\"}"]);
        server.ask(&["LPUSH", "lab:finding:list", "x"]);
        let overview = CollectorOverview::read(&place(&server).1, Some(&key)).unwrap();
        assert_eq!(overview.findings.len(), 1, "foreign ones are passed over");
    });
}
