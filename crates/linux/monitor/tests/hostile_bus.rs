//! Any process that can write to Redis can publish anything on the bus. Each test shows one thing that this can or
//! cannot do, and is named after it.

#[path = "../../../base/bus/tests/bus_words/mod.rs"]
mod bus_words;
#[path = "../../../base/bus/tests/redis_server/mod.rs"]
mod redis_server;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use bus::key::OrderKey;
use bus::{Bus, Deduplicator, PublishResult, RedisBus};
use bus::{Message, Order, OrderKind, PortId};
use bus_words::{corrupting, healthy};
use monitor::act::{
    ActionRules, ActorMemory, DaemonInfo, Executor, ObeyedOrder, PortAction, PortActor, PortRule, StoredMemory,
};
use monitor::journal::{ActionOutcome, JournalEntry};
use redis_server::{Keeps, RedisServer};
use units::{Moment, Prob};

/// In 2023.
const NOW: u64 = 1_700_000_000_000;
const DAY: u64 = 86_400_000;

#[derive(Debug, Default)]
struct Switches(Vec<String>);

impl Executor for Switches {
    fn daemon(&mut self, _: &str, _: Option<&str>) -> Result<Option<DaemonInfo>, String> {
        Ok(None)
    }

    fn protect(&mut self, _: &str, _: Prob) -> Result<(), String> {
        Ok(())
    }

    fn unprotect(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn switch(&mut self, port: &str, on: bool) -> Result<(), String> {
        self.0.push(format!("{port} {}", if on { "on" } else { "off" }));
        Ok(())
    }

    fn default_routes(&mut self) -> Result<BTreeSet<String>, String> {
        Ok(BTreeSet::new())
    }
}

/// A monitor that obeys, of a host with four ports that are named in its configuration.
fn obedient(most_off: u32, order_key: Option<OrderKey>, memory: ActorMemory) -> PortActor<Switches> {
    let ports = (1..=4).map(|nth| (format!("eth{nth}"), PortRule::default())).collect();
    let rules = ActionRules {
        host: "leaf1".to_owned(),
        action: PortAction::Protect,
        obey: true,
        most_off,
        order_key,
        sender_acts: true,
        ports,
        watched: Vec::new(),
        excluded: Vec::new(),
    };
    let mut kept = StoredMemory::nowhere();
    kept.memory = memory;
    PortActor::new(rules, Switches::default(), kept)
}

fn order(port: &str, life: u64, number: u64, kind: OrderKind) -> Order {
    let (id, why) = (PortId::new("leaf1", port), "repair".to_owned());
    Order { id, at: Moment::from_ms(NOW), life, number, kind, why, tag: None }
}

fn disable(port: &str, life: u64, number: u64) -> Order {
    order(port, life, number, OrderKind::Disable)
}

fn enable(port: &str, life: u64, number: u64) -> Order {
    order(port, life, number, OrderKind::Enable)
}

fn give(actor: &mut PortActor<Switches>, orders: &[Order]) -> Vec<JournalEntry> {
    orders.iter().for_each(|order| actor.hear(Moment::from_ms(NOW), &Message::Order(order.clone())));
    actor.tick(Moment::from_ms(NOW))
}

fn refusals(entries: &[JournalEntry]) -> Vec<&str> {
    entries.iter().filter(|entry| entry.outcome == ActionOutcome::Refused).map(|entry| entry.why.as_str()).collect()
}

#[test]
fn orders_switch_off_no_more_ports_than_the_host_allows() {
    let mut actor = obedient(1, None, ActorMemory::default());
    let all: Vec<Order> = (1..=4).map(|nth| disable(&format!("eth{nth}"), NOW, nth)).collect();
    let said = give(&mut actor, &all);
    assert_eq!(actor.executor().0, ["eth1 off"]);
    let refused = refusals(&said);
    assert_eq!(refused.len(), 3);
    assert!(refused[0].contains("1 port is off by order already, and most-off = 1 allows no more"), "{refused:?}");
    assert!(refusals(&give(&mut actor, &[])).is_empty(), "that is said once");
    // The next port may go off when one is on again.
    give(&mut actor, &[enable("eth1", NOW, 9)]);
    give(&mut actor, &[]);
    assert_eq!(actor.executor().0, ["eth1 off", "eth1 on", "eth2 off"]);
    let mut actor = obedient(3, None, ActorMemory::default());
    give(&mut actor, &all);
    assert_eq!(actor.executor().0.len(), 3);
    assert!(
        give(&mut obedient(0, None, ActorMemory::default()), &all)
            .iter()
            .all(|entry| entry.outcome == ActionOutcome::Refused)
    );
}

/// One that is restarted knows what is off.
#[test]
fn a_restart_does_not_give_the_limit_anew() {
    let off = |life| ObeyedOrder { life, number: 1, off: true };
    let memory = ActorMemory { orders: BTreeMap::from([("eth1".to_owned(), off(NOW))]), ..ActorMemory::default() };
    let mut actor = obedient(1, None, memory);
    assert_eq!(refusals(&give(&mut actor, &[disable("eth2", NOW, 2)])).len(), 1);
    assert!(actor.executor().0.is_empty());
}

#[test]
fn a_life_from_the_future_is_refused_in_the_journal_and_not_remembered() {
    let mut actor = obedient(4, None, ActorMemory::default());
    let said = give(&mut actor, &[disable("eth1", u64::MAX, u64::MAX), disable("eth2", NOW + 2 * DAY, 1)]);
    assert_eq!(refusals(&said).len(), 2);
    assert!(refusals(&said)[0].contains("a life more than a day ahead of this host's clock"), "{said:?}");
    assert!(actor.executor().0.is_empty());
    // The planner's own is heard as if nothing had happened; clocks may differ by some hours.
    give(&mut actor, &[disable("eth1", NOW, 1), disable("eth2", NOW + DAY / 2, 1)]);
    assert_eq!(actor.executor().0, ["eth1 off", "eth2 off"]);
}

/// An earlier version obeyed such orders, and remembered them.
#[test]
fn a_state_file_that_remembers_a_life_from_the_future_does_not_silence_the_planner() {
    let forged = ObeyedOrder { life: u64::MAX, number: u64::MAX, off: true };
    let memory = ActorMemory { orders: BTreeMap::from([("eth1".to_owned(), forged)]), ..ActorMemory::default() };
    let mut actor = obedient(1, None, memory);
    give(&mut actor, &[enable("eth1", NOW, 1)]);
    assert_eq!(actor.executor().0, ["eth1 on"]);
}

#[test]
fn with_an_order_key_unsigned_and_changed_orders_are_refused() {
    let key = OrderKey::new([7; 16]);
    let mut actor = obedient(4, Some(key.clone()), ActorMemory::default());
    let moved = Order { id: PortId::new("leaf1", "eth2"), ..disable("eth1", NOW, 1).signed(&key) };
    let other = disable("eth3", NOW, 1).signed(&OrderKey::new([8; 16]));
    let said = give(&mut actor, &[disable("eth1", NOW, 1), moved, other]);
    assert_eq!(refusals(&said).len(), 3, "{said:?}");
    assert!(refusals(&said)[0].contains("not signed with this host's order-key"), "{said:?}");
    assert!(actor.executor().0.is_empty());
    give(&mut actor, &[disable("eth1", NOW, 2).signed(&key)]);
    assert_eq!(actor.executor().0, ["eth1 off"]);
}

/// An order that is refused must not make the genuine one old.
#[test]
fn an_unsigned_order_does_not_outdate_the_one_that_is_signed() {
    let key = OrderKey::new([7; 16]);
    let mut actor = obedient(4, Some(key.clone()), ActorMemory::default());
    give(&mut actor, &[disable("eth1", NOW + DAY / 2, u64::MAX)]);
    give(&mut actor, &[disable("eth1", NOW, 2).signed(&key)]);
    assert_eq!(actor.executor().0, ["eth1 off"]);
}

#[test]
fn names_without_end_take_no_more_memory_and_no_more_lines() {
    let mut actor = obedient(1, None, ActorMemory::default());
    let mut lines = 0;
    for nth in 0..60_000 {
        let invented = format!("x{nth}");
        actor.hear(Moment::from_ms(NOW), &corrupting("leaf1", &invented, NOW, 1));
        actor.hear(Moment::from_ms(NOW), &Message::Order(disable(&invented, NOW, 1)));
        actor.hear(Moment::from_ms(NOW), &Message::Order(disable(&invented, u64::MAX, 1)));
    }
    lines += actor.tick(Moment::from_ms(NOW)).len();
    assert!(lines < 5_000, "{lines} lines");
    let mut seen = Deduplicator::new();
    let news = (0..60_000).filter(|nth| seen.is_news(&healthy("leaf1", &format!("x{nth}"), 1, 1))).count();
    assert!(news < 20_000 && seen.is_full(), "{news}");
    assert!(seen.is_news(&healthy("leaf1", "x1", 1, 2)), "what is known goes on");
}

fn open(server: &RedisServer) -> RedisBus {
    RedisBus::open(&server.url()).unwrap().with_patience(Duration::from_secs(60))
}

#[test]
fn a_last_number_that_is_none_does_not_degrade_everybodys_bus() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let (mut bus, mut hears) = (open(&server), open(&server));
    bus.publish(&corrupting("a", "1", 1, 1)).unwrap();
    hears.catch_up().unwrap();
    for (number, poison) in (2..).zip([
        &["SET", "hitless:last", "seven"][..],
        &["SET", "hitless:last", "1:99999999999999999999999"],
        &["SET", "hitless:last", "1:18446744073709551615"],
    ]) {
        server.ask(poison);
        assert_eq!(bus.publish(&corrupting("a", "1", 1, number)), Ok(PublishResult::Now), "{poison:?}");
        assert!(open(&server).catch_up().is_ok(), "{poison:?}");
        let heard = hears.receive(Duration::from_millis(50)).unwrap();
        assert!(heard.contains(&corrupting("a", "1", 1, number)), "{poison:?}: {heard:?}");
    }
    server.ask(&["DEL", "hitless:last"]);
    server.ask(&["RPUSH", "hitless:last", "x"]);
    let mut late = open(&server);
    assert!(late.catch_up().is_ok());
    assert!(late.foreign()[0].contains("`hitless:last` is not a number of ours"));
    assert_eq!(bus.publish(&corrupting("a", "1", 1, 9)), Ok(PublishResult::Now), "a list there is no obstacle either");
}

#[test]
fn a_message_from_the_future_is_overwritten_by_the_next_one() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let mut bus = open(&server);
    let forged = serde_json::to_string(&healthy("a", "1", u64::MAX, u64::MAX)).unwrap();
    server.ask(&["SET", "hitless:port:a/1", &forged]);
    assert_eq!(bus.latest(&["port:a/1".to_owned()]).unwrap(), [None], "whoever told something else tells it again");
    assert_eq!(bus.publish(&corrupting("a", "1", NOW, 1)), Ok(PublishResult::Now));
    assert_eq!(bus.catch_up().unwrap(), [corrupting("a", "1", NOW, 1)]);
    assert!(bus.foreign().iter().any(|line| line.contains("a life from the future")));
}

/// A certificate authority and a certificate for 127.0.0.1, by `openssl`.
fn certificates(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("ext"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    let steps: [&[&str]; 3] = [
        &[
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test", "-keyout", "ca.key",
            "-out", "ca.crt",
        ],
        &["req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=redis", "-keyout", "redis.key", "-out", "redis.csr"],
        &[
            "x509",
            "-req",
            "-in",
            "redis.csr",
            "-CA",
            "ca.crt",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            "ext",
            "-out",
            "redis.crt",
        ],
    ];
    for arguments in steps {
        let mut command = Command::new("openssl");
        command.args(arguments).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(command.status().unwrap().success(), "{arguments:?}");
    }
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_bus_with_tls_is_spoken_to_and_an_authority_that_is_not_trusted_is_not() {
    let folder = Folder(std::env::temp_dir().join(format!("hitless-tls-{}", std::process::id())));
    if !testkit::installed("openssl") {
        return;
    }
    certificates(&folder.0);
    let file = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
    let (crt, key, ca) = (file("redis.crt"), file("redis.key"), file("ca.crt"));
    // Beside the port for everybody, a socket of its own for TLS: asked for a free one, which stays free for long enough.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let tls = ["--tls-port", &free, "--tls-cert-file", &crt, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
    let Some(server) = RedisServer::start_with(Keeps::Nothing, &[&tls[..], &["--tls-auth-clients", "no"]].concat())
    else {
        return;
    };
    let url = format!("rediss://127.0.0.1:{free}");
    let patience = Duration::from_secs(60);
    let mut bus = RedisBus::open_with_ca(&url, Some(Path::new(&ca))).unwrap().with_patience(patience);
    assert_eq!(bus.publish(&corrupting("a", "1", 1, 1)), Ok(PublishResult::Now));
    assert_eq!(bus.catch_up().unwrap(), [corrupting("a", "1", 1, 1)]);
    assert_eq!(server.ask(&["EXISTS", "hitless:port:a/1"]), ":1", "it is that server");
    let stranger = RedisBus::open(&url).unwrap().with_patience(patience).catch_up().unwrap_err().to_string();
    assert!(stranger.contains("rediss://127.0.0.1"), "{stranger}");
    let plain = format!("rediss://127.0.0.1:{}", server.port());
    assert!(RedisBus::open_with_ca(&plain, Some(Path::new(&ca))).unwrap().catch_up().is_err(), "no TLS there");
}

/// A connection that is taken and never answered, in the middle of a handshake.
#[test]
fn a_tls_server_that_does_not_answer_is_not_waited_for_without_end() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("rediss://{}", listener.local_addr().unwrap());
    let (done, ended) = std::sync::mpsc::channel();
    #[expect(clippy::disallowed_methods, reason = "a server of the test, beside it")]
    std::thread::spawn(move || {
        let mut bus = RedisBus::open(&url).unwrap().with_patience(Duration::from_millis(200));
        let _ = done.send(bus.catch_up().is_err());
    });
    assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(true));
}
