//! The loop: what it decides, what it orders, and what it never does.

#[path = "../../../base/bus/tests/redis_server/mod.rs"]
mod redis_server;

use std::time::Duration;

use bus::key::OrderKey;
use bus::{Bus, LocalBus, RedisBus};
use bus::{Condition, Evidence, Message, Order, OrderKind, PortId, PortState};
use fleet::corropt::BUDGET;
use fleet::corrupting::{LinkFault, PortReports};
use fleet::fabric::{FabricWire, SwitchNames};
use fleet::ledger;
use fleet::paths::Constraint;
use fleet::plan::{PlanTerms, plan};
use fleet::protection::ProtectionTable;
use fleet::watch::{FollowEvent, Follower, HostNotice, LinkDecision, LinkVerdict, Watcher};
use fleet::{Fabric, LinkId, SwitchId};
use proptest::prelude::*;
use redis_server::{Keeps, RedisServer};
use units::{Moment, Rate};

const NOW: Moment = Moment::from_ms(1_000_000);
const SOON: Duration = Duration::from_millis(20);

/// Two leaves, three spines, ports named.
fn leaves() -> Fabric {
    let names = ["leaf0", "leaf1", "spine0", "spine1", "spine2"];
    let wires = (0..2u32).flat_map(|leaf| {
        (0..3u32).map(move |spine| {
            FabricWire::new(SwitchId(leaf), SwitchId(2 + spine)).with_ports(format!("eth{spine}"), format!("swp{leaf}"))
        })
    });
    Fabric::new(names, wires).unwrap()
}

fn terms(table: &ProtectionTable) -> PlanTerms<'_> {
    let constraint = Constraint::new(0.6).unwrap();
    let ledger = ledger::LedgerTerms { constraint, healthy_loss: 0.0, pipes: ledger::PipeLayout::default() };
    PlanTerms { ledger, protection: table, capable: None, budget: BUDGET }
}

fn port(port: &str, number: u64, condition: Condition, loss: f64) -> Message {
    Message::Port(PortState {
        earliest_ns: None,
        latest_ns: None,
        time_of: None,
        id: port.parse().unwrap(),
        peer: None,
        at: Moment::from_ms(1_000_000 + number),
        life: 1,
        number,
        condition,
        sticky: false,
        evidence: Evidence { loss, ..Evidence::default() },
        why: "a test says so".to_owned(),
    })
}

fn bad(name: &str, number: u64, loss: f64) -> Message {
    port(name, number, Condition::Corrupting, loss)
}

fn order(port: &str, life: u64, number: u64, kind: OrderKind) -> Message {
    let at = Moment::from_ms(1_000_000_u64.saturating_add(number));
    Message::Order(Order {
        id: port.parse().unwrap(),
        at,
        life,
        number,
        kind,
        why: "a person says so".to_owned(),
        tag: None,
    })
}

fn brief(decisions: &[LinkDecision]) -> Vec<(&str, LinkVerdict)> {
    decisions.iter().map(|decision| (decision.link.as_str(), decision.verdict)).collect()
}

#[test]
fn a_watcher_that_observes_gives_advice_takes_it_back_and_orders_nothing() {
    let (fabric, table) = (leaves(), ProtectionTable::measured());
    let mut watcher = Watcher::new(&fabric, terms(&table));
    let first = watcher.on_message(NOW, &bad("leaf0/eth0", 1, 1e-4)).unwrap();
    assert_eq!(brief(&first), [("leaf0--spine0", LinkVerdict::Disable)]);
    assert!(first[0].ordered.is_empty());
    // A worse one wants the same room: the advice about the first changes.
    let second = watcher.on_message(NOW, &bad("spine1/swp0", 1, 1e-3)).unwrap();
    assert_eq!(brief(&second), [("leaf0--spine0", LinkVerdict::Protect), ("leaf0--spine1", LinkVerdict::Disable)]);
    assert_eq!(second[0].protection.unwrap().copies, 1);
    assert!(second[0].why.contains("because leaf0--spine1 is to go now"), "{}", second[0].why);
    assert!(watcher.on_message(NOW, &bad("spine1/swp0", 1, 1e-3)).unwrap().is_empty(), "nothing new");
    let third = watcher.on_message(NOW, &port("spine1/swp0", 2, Condition::Healthy, 0.0)).unwrap();
    assert_eq!(brief(&third), [("leaf0--spine1", LinkVerdict::Clear), ("leaf0--spine0", LinkVerdict::Disable)]);
    assert!(watcher.take_orders().is_empty());
    assert_eq!(watcher.figures().disabled, 0);
}

#[test]
fn a_watcher_that_acts_tells_both_ends_and_waits_for_the_repair() {
    let (fabric, table) = (leaves(), ProtectionTable::measured());
    let mut watcher = Watcher::acting(&fabric, terms(&table), 7);
    let gone = watcher.on_message(NOW, &bad("leaf0/eth0", 1, 1e-4)).unwrap();
    assert_eq!(brief(&gone), [("leaf0--spine0", LinkVerdict::Disable)]);
    let orders = watcher.take_orders();
    assert_eq!(orders.iter().map(|order| order.id.to_string()).collect::<Vec<_>>(), ["leaf0/eth0", "spine0/swp0"]);
    assert!(orders.iter().all(|order| order.kind == OrderKind::Disable && order.life == 7 && order.at == NOW));
    assert_eq!(gone[0].ordered.len(), 2);
    assert_eq!(watcher.figures().disabled, 1);
    // Its own order comes back over the bus.
    assert!(watcher.on_message(NOW, &Message::Order(orders[0].clone())).unwrap().is_empty());
    // Switched off, the port sees nothing, or no more corruption. That is no repair.
    for (number, condition) in [(2, Condition::Unknown), (3, Condition::Healthy)] {
        assert!(watcher.on_message(NOW, &port("leaf0/eth0", number, condition, 0.0)).unwrap().is_empty());
        assert_eq!(watcher.figures().disabled, 1);
    }
    let stays = watcher.on_message(NOW, &bad("leaf0/eth1", 1, 1e-2)).unwrap();
    assert_eq!(brief(&stays), [("leaf0--spine1", LinkVerdict::Protect)]);
    assert!(stays[0].why.contains("because leaf0--spine0 is out for repair"), "{}", stays[0].why);
    assert!(watcher.take_orders().is_empty());
    // One end alone does not bring it back.
    assert!(watcher.on_message(NOW, &order("leaf0/eth0", 8, 9, OrderKind::Enable)).unwrap().is_empty());
    let back = watcher.on_message(NOW, &order("spine0/swp0", 8, 9, OrderKind::Enable)).unwrap();
    assert_eq!(brief(&back), [("leaf0--spine0", LinkVerdict::Enabled), ("leaf0--spine1", LinkVerdict::Disable)]);
    assert_eq!(watcher.take_orders().len(), 2);
}

#[test]
fn with_a_key_its_orders_are_signed_and_those_without_it_count_for_nothing() {
    let (fabric, table, key) = (leaves(), ProtectionTable::measured(), OrderKey::new([7; 16]));
    let mut watcher = Watcher::acting(&fabric, terms(&table), 7).with_key(Some(key.clone()));
    watcher.on_message(NOW, &bad("leaf0/eth0", 1, 1e-4)).unwrap();
    let orders = watcher.take_orders();
    assert!(orders.len() == 2 && orders.iter().all(|order| order.is_signed(&key)));
    // The orders that are published again if the bus forgets them are signed as well.
    assert!(watcher.reports().orders().all(|order| order.is_signed(&key)));
    for port in ["leaf0/eth0", "spine0/swp0"] {
        let forged = watcher.on_message(NOW, &order(port, 8, 9, OrderKind::Enable)).unwrap_err().to_string();
        assert!(forged.contains("not signed with our order key"), "{forged}");
    }
    assert_eq!(watcher.figures().disabled, 1);
    for port in ["leaf0/eth0", "spine0/swp0"] {
        let Message::Order(order) = order(port, 8, 9, OrderKind::Enable) else { return };
        watcher.on_message(NOW, &Message::Order(order.signed(&key))).unwrap();
    }
    assert_eq!(watcher.figures().disabled, 0);
}

#[test]
fn an_order_with_a_life_from_the_future_is_nonsense_and_does_not_outdate_ours() {
    let (fabric, table) = (leaves(), ProtectionTable::measured());
    let mut watcher = Watcher::acting(&fabric, terms(&table), 7);
    let forged = [order("leaf0/eth0", u64::MAX, u64::MAX, OrderKind::Enable), bad("leaf0/eth0", 1, 1e-4)];
    let (decisions, nonsense) = watcher.on_messages(NOW, &forged);
    assert_eq!((brief(&decisions), nonsense.len()), (vec![("leaf0--spine0", LinkVerdict::Disable)], 1));
    assert!(watcher.take_orders().iter().all(|order| order.life == 7));
}

#[test]
fn after_a_repair_only_newer_reports_count_and_a_link_can_go_a_second_time() {
    let (fabric, table) = (leaves(), ProtectionTable::measured());
    let mut watcher = Watcher::acting(&fabric, terms(&table), 7);
    watcher.on_message(NOW, &bad("leaf0/eth0", 1, 1e-4)).unwrap();
    watcher.take_orders();
    // The sender that reports the repair has a clock, and so an incarnation, far ahead of ours.
    for port in ["leaf0/eth0", "spine0/swp0"] {
        watcher.on_message(NOW, &order(port, 99, 50, OrderKind::Enable)).unwrap();
    }
    assert_eq!((watcher.figures().disabled, watcher.figures().corrupting), (0, 0));
    // Late news from before the repair, from the other end.
    assert!(watcher.on_message(NOW, &bad("spine0/swp0", 40, 1e-4)).unwrap().is_empty());
    let again = watcher.on_message(NOW, &bad("leaf0/eth0", 60, 1e-4)).unwrap();
    assert_eq!(brief(&again), [("leaf0--spine0", LinkVerdict::Disable)]);
    let orders = watcher.take_orders();
    assert!(orders.iter().all(|order| (order.life, order.number) > (99, 50)), "{orders:?}");
}

#[test]
fn a_restarted_watcher_takes_over_what_its_former_life_ordered() {
    let (fabric, table) = (leaves(), ProtectionTable::measured());
    let bus = LocalBus::new();
    let mut end = bus.another();
    end.publish(&bad("leaf0/eth0", 1, 1e-3)).unwrap();
    end.publish(&bad("leaf0/eth1", 1, 1e-4)).unwrap();
    let mut first = Follower::new(Watcher::acting(&fabric, terms(&table), 7), Box::new(bus.another()));
    let events = first.step(NOW, SOON);
    let ordered =
        |events: &[FollowEvent]| events.iter().filter(|event| matches!(event, FollowEvent::Ordered(_))).count();
    assert_eq!(ordered(&events), 2, "{events:?}");
    drop(first);
    end.publish(&port("leaf0/eth0", 2, Condition::Unknown, 0.0)).unwrap();
    let mut second = Follower::new(Watcher::acting(&fabric, terms(&table), 8), Box::new(bus.another()));
    let events = second.step(NOW, SOON);
    assert_eq!(ordered(&events), 0, "{events:?}");
    assert_eq!((second.watcher().figures().disabled, second.watcher().figures().corrupting), (1, 1));
}

#[test]
fn an_observer_publishes_nothing_and_notices_what_others_do() {
    let (fabric, table) = (leaves(), ProtectionTable::measured());
    let bus = LocalBus::new();
    let mut end = bus.another();
    end.publish(&bad("leaf0/eth0", 1, 1e-3)).unwrap();
    let mut observer = Follower::new(Watcher::new(&fabric, terms(&table)), Box::new(bus.another()));
    let verdicts = |events: Vec<FollowEvent>| -> Vec<LinkVerdict> {
        let decisions = events.into_iter().filter_map(|event| match event {
            FollowEvent::Decision(decision) => Some(decision.verdict),
            _ => None,
        });
        decisions.collect()
    };
    assert_eq!(verdicts(observer.step(NOW, SOON)), [LinkVerdict::Disable]);
    for _ in 0..3 {
        assert!(verdicts(observer.step(NOW, SOON)).is_empty());
    }
    assert!(end.catch_up().unwrap().iter().all(|message| matches!(message, Message::Port(_))));
    end.publish(&order("leaf0/eth0", 3, 1, OrderKind::Disable)).unwrap();
    assert_eq!(verdicts(observer.step(NOW, SOON)), [LinkVerdict::Disabled]);
    assert_eq!(observer.watcher().figures().disabled, 1);
}

#[test]
fn nonsense_is_told_once_and_changes_nothing() {
    let (fabric, table) = (leaves(), ProtectionTable::measured());
    let bus = LocalBus::new();
    let mut end = bus.another();
    let mut follower = Follower::new(Watcher::acting(&fabric, terms(&table), 7), Box::new(bus.another()));
    follower.step(NOW, SOON);
    let before = follower.watcher().figures();
    for (number, message) in [
        bad("core9/eth0", 1, 1e-3),
        bad("leaf0/eth9", 1, 1e-3),
        bad("leaf0/eth0", 1, 0.0),
        bad("leaf0/eth1", 1, 7.0),
        order("core8/eth0", 1, 1, OrderKind::Disable),
    ]
    .iter()
    .enumerate()
    {
        end.publish(message).unwrap();
        let events = follower.step(NOW, SOON);
        assert!(matches!(&events[..], [FollowEvent::Ignored(_)]), "{number}: {events:?}");
    }
    assert!(follower.step(NOW, SOON).is_empty());
    assert_eq!(follower.watcher().figures(), before);
    assert_eq!(end.catch_up().unwrap().len(), 5, "no order was given");
}

#[test]
fn ports_that_the_topology_does_not_name_are_learned_from_their_peers() {
    let (fabric, table) = (Fabric::leaf_spine(2, 3, Rate::gbps(100)).unwrap(), ProtectionTable::measured());
    let mut watcher = Watcher::acting(&fabric, terms(&table), 7);
    let report = |number, peer: Option<&str>| match bad("leaf0/Ethernet8", number, 1e-3) {
        Message::Port(state) => Message::Port(PortState { peer: peer.map(|peer| peer.parse().unwrap()), ..state }),
        order => order,
    };
    assert!(watcher.on_message(NOW, &report(1, None)).is_err(), "nobody knows which link that is");
    let gone = watcher.on_message(NOW, &report(2, Some("spine1/Ethernet0"))).unwrap();
    assert_eq!(brief(&gone), [("leaf0--spine1", LinkVerdict::Disable)]);
    assert_eq!(gone[0].ordered, [PortId::new("leaf0", "Ethernet8"), PortId::new("spine1", "Ethernet0")]);
}

#[test]
fn a_silent_host_is_noticed_and_what_it_said_still_counts() {
    let (fabric, table) = (leaves(), ProtectionTable::measured());
    let mut watcher = Watcher::new(&fabric, terms(&table));
    watcher.on_message(NOW, &bad("leaf0/eth0", 1, 1e-3)).unwrap();
    let hosts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    assert!(watcher.on_hosts(&hosts(&["leaf0", "spine0", "a-stranger"])).is_empty());
    assert_eq!(watcher.on_hosts(&hosts(&["spine0"])), [HostNotice::Silent { host: "leaf0".to_owned() }]);
    assert!(watcher.on_hosts(&hosts(&["spine0"])).is_empty(), "told once");
    assert_eq!(watcher.figures().corrupting, 1);
    assert_eq!(watcher.on_hosts(&hosts(&["leaf0", "spine0"])), [HostNotice::Back { host: "leaf0".to_owned() }]);
}

/// Steps until something is seen, or gives up after as much simulated time as a person would wait.
fn until(follower: &mut Follower<'_>, now: &mut Moment, seen: impl Fn(&FollowEvent) -> bool) -> bool {
    for _ in 0..500 {
        if follower.step(*now, SOON).iter().any(&seen) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
        *now = now.after(Duration::from_secs(1));
    }
    false
}

#[test]
fn orders_survive_a_redis_that_forgets_and_an_old_one_does_not_come_back_without_the_newer() {
    let Some(mut server) = RedisServer::start(Keeps::Nothing) else { return };
    let (fabric, table) = (leaves(), ProtectionTable::measured());
    let mut end = RedisBus::open(&server.url()).unwrap();
    end.publish(&bad("leaf0/eth0", 1, 1e-3)).unwrap();
    end.publish(&bad("leaf1/eth0", 1, 1e-3)).unwrap();
    let bus = Box::new(RedisBus::open(&server.url()).unwrap());
    let mut follower = Follower::new(Watcher::acting(&fabric, terms(&table), 7), bus);
    let mut now = NOW;
    assert!(until(&mut follower, &mut now, |event| matches!(event, FollowEvent::Ordered(_))));
    for port in ["leaf0/eth0", "spine0/swp0"] {
        end.publish(&order(port, 9, 1, OrderKind::Enable)).unwrap();
    }
    let enabled = |event: &FollowEvent| matches!(event, FollowEvent::Decision(decision) if decision.verdict == LinkVerdict::Enabled);
    assert!(until(&mut follower, &mut now, enabled));
    server.kill();
    assert!(until(&mut follower, &mut now, |event| matches!(event, FollowEvent::Degraded(_))));
    assert!(follower.degraded().is_some());
    assert_eq!(follower.watcher().figures().disabled, 1, "what is known stays known");
    server.start_again();
    assert!(until(&mut follower, &mut now, |event| matches!(event, FollowEvent::Recovered)));
    let mut orders = Vec::new();
    for _ in 0..500 {
        follower.step(now, SOON);
        now = now.after(Duration::from_secs(1));
        let all = end.catch_up().unwrap_or_default();
        orders = all.into_iter().filter(|message| matches!(message, Message::Order(_))).collect();
        if orders.len() == 4 {
            break;
        }
    }
    let kinds = |host: &str| -> Vec<OrderKind> {
        let of_host = orders.iter().filter_map(|message| match message {
            Message::Order(order) if order.id.host == host => Some(order.kind),
            _ => None,
        });
        of_host.collect()
    };
    assert_eq!(kinds("leaf0"), [OrderKind::Enable], "{orders:?}");
    assert_eq!(kinds("leaf1"), [OrderKind::Disable], "{orders:?}");
    assert_eq!(orders.len(), 4);
}

#[test]
fn a_redis_that_is_not_there_is_waited_for() {
    let Some(mut server) = RedisServer::start(Keeps::Nothing) else { return };
    server.kill();
    let (fabric, table) = (leaves(), ProtectionTable::measured());
    let bus = Box::new(RedisBus::open(&server.url()).unwrap());
    let mut follower = Follower::new(Watcher::new(&fabric, terms(&table)), bus);
    let mut now = NOW;
    let events = follower.step(now, SOON);
    assert!(matches!(&events[..], [FollowEvent::Degraded(_)]), "{events:?}");
    assert!(follower.wait(now) > Duration::ZERO);
    assert!(follower.step(now, SOON).is_empty(), "not before it is time to");
    server.start_again();
    assert!(until(&mut follower, &mut now, |event| matches!(event, FollowEvent::Recovered)));
}

/// Messages that may be sent about the ports of three links, in some order.
fn messages() -> impl Strategy<Value = Vec<Message>> {
    let ports = prop::sample::select(vec!["leaf0/eth0", "spine0/swp0", "leaf0/eth1", "spine1/swp0", "leaf1/eth2"]);
    let conditions = prop::sample::select(vec![Condition::Healthy, Condition::Corrupting, Condition::Unknown]);
    let state = (ports.clone(), 1..6u64, conditions, 1..9u32)
        .prop_map(|(name, number, condition, loss)| port(name, number, condition, f64::from(loss) * 1e-5));
    let kinds = prop::sample::select(vec![OrderKind::Disable, OrderKind::Enable]);
    let order = (ports, 1..6u64, kinds).prop_map(|(name, number, kind)| order(name, 1, number, kind));
    prop::collection::vec(prop_oneof![2 => state, 1 => order], 0..25).prop_map(|mut messages| {
        // Only one of two messages with the same version was ever published.
        messages.sort_by_key(|message| (message.key(), message.version()));
        messages.dedup_by_key(|message| (message.key(), message.version()));
        messages
    })
}

proptest! {
    #[test]
    fn who_has_heard_the_same_knows_the_same(
        (sorted, shuffled) in messages().prop_flat_map(|sorted| (Just(sorted.clone()), Just(sorted).prop_shuffle())),
        repeated in any::<prop::sample::Index>(),
    ) {
        let fabric = leaves();
        let mut one = PortReports::new(&fabric);
        one.hear_all(&sorted);
        let mut other = PortReports::new(&fabric);
        for message in &shuffled {
            other.hear(message).unwrap();
        }
        if !shuffled.is_empty() {
            prop_assert_eq!(other.hear(repeated.get(&shuffled)), Ok(None));
        }
        prop_assert_eq!(one.situation(), other.situation());
    }

    #[test]
    fn an_observer_decides_what_a_plan_of_the_same_situation_would(messages in messages()) {
        let (fabric, table) = (leaves(), ProtectionTable::measured());
        let mut watcher = Watcher::new(&fabric, terms(&table));
        let mut last = std::collections::BTreeMap::new();
        for message in &messages {
            for decision in watcher.on_message(NOW, message).unwrap() {
                last.insert(decision.id, decision.verdict);
            }
        }
        let situation = watcher.reports().situation();
        let plan = plan(&fabric, &situation, &terms(&table));
        let mut expected: Vec<(LinkId, LinkVerdict)> = plan.disable.iter().map(|going| (going.id, LinkVerdict::Disable)).collect();
        expected.extend(plan.protect.iter().map(|staying| (staying.id, LinkVerdict::Protect)));
        expected.extend(situation.iter().filter(|(_, trouble)| matches!(trouble, LinkFault::Disabled { .. }))
            .map(|(link, _)| (link, LinkVerdict::Disabled)));
        expected.sort_by_key(|(link, _)| *link);
        last.retain(|_, verdict| !matches!(verdict, LinkVerdict::Clear | LinkVerdict::Enabled));
        prop_assert_eq!(last.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_watcher_that_acts_never_breaks_the_constraint(messages in messages()) {
        let (fabric, table) = (leaves(), ProtectionTable::measured());
        let mut watcher = Watcher::acting(&fabric, terms(&table), 1_000);
        let others: Vec<LinkId> = {
            let names = SwitchNames::of(&fabric);
            let ordered = messages.iter().filter(|message| matches!(message, Message::Order(_)));
            ordered.map(|message| names.port(message.id()).unwrap().0).collect()
        };
        for message in &messages {
            watcher.on_message(NOW, message).unwrap();
            // Orders by others are not the watcher's fault; a leaf without them keeps two of its three paths.
            for leaf in [0, 1] {
                let of_leaf = |link: &LinkId| fabric.link(*link).lower == SwitchId(leaf);
                if !others.iter().any(of_leaf) {
                    let out = watcher.reports().situation();
                    let gone = out.iter().filter(|(link, t)| of_leaf(link) && matches!(t, LinkFault::Disabled { .. }));
                    prop_assert!(gone.count() <= 1);
                }
            }
        }
    }
}

#[test]
fn which_port_was_first_is_said_only_where_clocks_allow_it() {
    let (fabric, table) = (leaves(), ProtectionTable::measured());
    let bus = LocalBus::new();
    let mut end = bus.another();
    let found = |name: &str, between: Option<(u64, u64)>| match bad(name, 1, 1e-3) {
        Message::Port(state) => {
            let (earliest_ns, latest_ns) = between.unzip();
            Message::Port(PortState { earliest_ns, latest_ns, ..state })
        }
        order => order,
    };
    let mut follower = Follower::new(Watcher::new(&fabric, terms(&table)), Box::new(bus.another()));
    let mut orders = |message: Message| -> Vec<String> {
        end.publish(&message).unwrap();
        let events = follower.step(NOW, SOON).into_iter();
        let orders = events.filter_map(|event| match event {
            FollowEvent::Before(order) => Some(format!("{} before {} by {}", order.first, order.then, order.by_ns)),
            _ => None,
        });
        orders.collect()
    };
    assert!(orders(found("leaf0/eth0", Some((1_000, 2_000)))).is_empty());
    assert!(orders(found("leaf0/eth1", Some((1_500, 2_500)))).is_empty(), "they overlap");
    assert_eq!(orders(found("leaf1/eth0", Some((2_600, 2_700)))), ["leaf0/eth1 before leaf1/eth0 by 100"]);
    assert!(orders(found("leaf1/eth1", None)).is_empty());
    assert!(orders(found("core9/eth0", Some((9_000, 9_001)))).is_empty(), "no switch of this fabric");
}
