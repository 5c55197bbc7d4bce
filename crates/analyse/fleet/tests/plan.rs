//! Plans against trying everything, their reasons against counting anew, and the files they are made from.

use std::collections::{BTreeMap, BTreeSet};

use bus::{Condition, Evidence, Message, Order, OrderKind, PortId, PortState};
use fleet::corropt::BUDGET;
use fleet::corrupting::{FaultyLinks, LinkFault, parse};
use fleet::fabric::{FabricWire, Facebook, SwitchNames};
use fleet::ledger;
use fleet::paths::Constraint;
use fleet::plan::{DisableTime, PathMargin, Plan, PlanTerms, plan};
use fleet::protection::ProtectionTable;
use fleet::{Fabric, LinkId, SwitchId};
use proptest::prelude::*;
use units::{Moment, Rate};

fn terms(share: f64, table: &ProtectionTable) -> PlanTerms<'_> {
    let constraint = Constraint::new(share).unwrap();
    let ledger = ledger::LedgerTerms { constraint, healthy_loss: 0.0, pipes: ledger::PipeLayout::default() };
    PlanTerms { ledger, protection: table, capable: None, budget: BUDGET }
}

fn corrupting(loss: f64) -> LinkFault {
    LinkFault::Corrupting { loss, protected: false }
}

/// Paths of a switch to the top without these links, counted anew.
fn ways(fabric: &Fabric, out: &BTreeSet<LinkId>, switch: SwitchId) -> u64 {
    if fabric.is_top(switch) {
        return 1;
    }
    let up = fabric.up(switch).iter().filter(|link| !out.contains(link));
    up.map(|link| ways(fabric, out, fabric.link(*link).upper)).sum()
}

fn required(fabric: &Fabric, share: f64, tor: SwitchId) -> u64 {
    (share * ways(fabric, &BTreeSet::new(), tor) as f64 - 1e-9).ceil() as u64
}

fn tors(fabric: &Fabric) -> impl Iterator<Item = SwitchId> + '_ {
    fabric.segments().iter().flat_map(|segment| segment.tors.iter().copied())
}

fn satisfied(fabric: &Fabric, share: f64, out: &BTreeSet<LinkId>) -> bool {
    tors(fabric).all(|tor| ways(fabric, out, tor) >= required(fabric, share, tor))
}

/// True if the links `out` may be out after `before` were: a ToR that lacks paths already must not lose more.
fn allowed(fabric: &Fabric, share: f64, before: &BTreeSet<LinkId>, out: &BTreeSet<LinkId>) -> bool {
    tors(fabric).all(|tor| {
        let left = ways(fabric, out, tor);
        left >= required(fabric, share, tor) || left == ways(fabric, before, tor)
    })
}

fn with(out: &BTreeSet<LinkId>, link: LinkId) -> BTreeSet<LinkId> {
    out.iter().copied().chain([link]).collect()
}

/// The most loss that can be removed by taking some of these out as well.
fn most_removed(fabric: &Fabric, share: f64, out: &BTreeSet<LinkId>, candidates: &[(LinkId, f64)]) -> f64 {
    let mut best: f64 = 0.0;
    for set in 0..1u32 << candidates.len() {
        let chosen: Vec<(LinkId, f64)> =
            (0..candidates.len()).filter(|at| set >> at & 1 == 1).map(|at| candidates[at]).collect();
        let all = out.iter().copied().chain(chosen.iter().map(|(link, _)| *link)).collect();
        if allowed(fabric, share, out, &all) {
            best = best.max(chosen.iter().map(|(_, loss)| loss).sum());
        }
    }
    best
}

fn check_room(fabric: &Fabric, share: f64, out: &BTreeSet<LinkId>, room: &PathMargin) {
    let tor = SwitchNames::of(fabric).switch(&room.tor).unwrap();
    assert_eq!(room.paths, ways(fabric, out, tor), "{}", room.tor);
    assert_eq!(room.of, ways(fabric, &BTreeSet::new(), tor), "{}", room.tor);
    assert_eq!(room.required, required(fabric, share, tor), "{}", room.tor);
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
}

/// Holds everything that a plan says against the fabric.
fn check(fabric: &Fabric, situation: &FaultyLinks, share: f64, plan: &Plan) {
    let disabled: BTreeSet<LinkId> = situation
        .iter()
        .filter(|(_, trouble)| matches!(trouble, LinkFault::Disabled { .. }))
        .map(|(link, _)| link)
        .collect();
    let losses: BTreeMap<LinkId, f64> = situation
        .iter()
        .filter(|(link, _)| !disabled.contains(link))
        .map(|(link, t)| (link, t.loss().unwrap()))
        .collect();
    let out: BTreeSet<LinkId> = disabled.iter().copied().chain(plan.disable.iter().map(|going| going.id)).collect();
    let candidates: Vec<(LinkId, f64)> = losses.iter().map(|(link, loss)| (*link, *loss)).collect();

    let removed: f64 = plan.disable.iter().map(|going| going.loss).sum();
    assert!(allowed(fabric, share, &disabled, &out));
    let best = most_removed(fabric, share, &disabled, &candidates);
    assert!(close(removed, best), "{removed} instead of {best}");
    assert_eq!(plan.missed, 0.0);

    for going in &plan.disable {
        assert_eq!(going.loss, losses[&going.id]);
        if let Some(room) = &going.tightest {
            check_room(fabric, share, &out, room);
            assert!(room.paths >= room.required && going.why.contains(&room.tor));
        }
    }
    let staying = || plan.protect.iter().chain(&plan.exposed);
    assert_eq!(plan.disable.len() + staying().count(), losses.len());
    for link in staying() {
        let without = with(&out, link.id);
        check_room(fabric, share, &without, &link.in_the_way);
        assert!(link.in_the_way.paths < link.in_the_way.required, "{}", link.why);
        let tor = SwitchNames::of(fabric).switch(&link.in_the_way.tor).unwrap();
        for name in &link.out {
            let culprit = SwitchNames::of(fabric).link(name).unwrap();
            assert!(out.contains(&culprit));
            let mut back = without.clone();
            back.remove(&culprit);
            assert!(ways(fabric, &back, tor) > link.in_the_way.paths, "{name} is not to blame: {}", link.why);
        }
        assert!(link.why.contains(&link.in_the_way.tor) && link.out.iter().take(3).all(|name| link.why.contains(name)));
    }
    let left: f64 = staying().map(|link| link.protection.map_or(link.loss, |protection| protection.loss)).sum();
    assert!(close(plan.after.penalty, left) && close(plan.before.penalty, losses.values().sum()));
    assert_eq!(plan.after.least_paths_per_tor, tors(fabric).map(|tor| ways(fabric, &out, tor)).min().unwrap());
    check_repairs(fabric, share, plan, &losses, out);
}

/// Carries out the repairs one after another.
fn check_repairs(fabric: &Fabric, share: f64, plan: &Plan, losses: &BTreeMap<LinkId, f64>, mut out: BTreeSet<LinkId>) {
    let mut waiting: Vec<(LinkId, f64)> =
        plan.protect.iter().chain(&plan.exposed).map(|link| (link.id, losses[&link.id])).collect();
    let mut planned = BTreeSet::new();
    for repair in &plan.repair {
        assert!(planned.insert(repair.id), "{} twice", repair.link);
        if repair.when == DisableTime::NeedsWindow {
            assert!(out.is_empty() && !satisfied(fabric, share, &BTreeSet::from([repair.id])), "{}", repair.link);
            continue;
        }
        // No other link that could return now makes more room.
        for other in &out {
            let mut without = out.clone();
            without.remove(other);
            let segment = fabric.link(*other).segment;
            let mates: Vec<(LinkId, f64)> =
                waiting.iter().filter(|(link, _)| fabric.link(*link).segment == segment).copied().collect();
            let worth = most_removed(fabric, share, &without, &mates);
            assert!(worth <= repair.unlocked_penalty * (1.0 + 1e-9), "{} before {other:?}: {worth}", repair.link);
        }
        assert!(out.remove(&repair.id), "{} is not out of service when its turn comes", repair.link);
        let before = out.clone();
        for name in &repair.unlocks {
            let link = SwitchNames::of(fabric).link(name).unwrap();
            assert!(waiting.iter().any(|(waiting, _)| *waiting == link) && repair.why.contains("makes room"));
            waiting.retain(|(waiting, _)| *waiting != link);
            out.insert(link);
        }
        assert!(allowed(fabric, share, &before, &out), "after {}", repair.link);
    }
    assert!(out.is_empty());
    assert_eq!(planned.len(), plan.repair.len());
}

fn fabrics() -> impl Strategy<Value = Fabric> {
    let facebook = (1..3u32, 1..4u32, 1..4u32, 1..4u32).prop_map(|(pods, tors, fabrics, spines)| {
        Fabric::facebook(&Facebook { pods, tors, fabrics, spines, rate: Rate::gbps(100) }).unwrap()
    });
    let leaf_spine = (1..4u32, 1..5u32).prop_map(|(l, s)| Fabric::leaf_spine(l, s, Rate::gbps(100)).unwrap());
    let fat_tree = Just(()).prop_map(|()| Fabric::fat_tree(4, Rate::gbps(100)).unwrap());
    prop_oneof![4 => facebook, 1 => leaf_spine, 2 => fat_tree]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn plans_are_the_best_there_are_and_their_reasons_are_true(
        fabric in fabrics(),
        share in prop::sample::select(vec![0.25, 0.5, 0.6, 0.75, 0.9, 1.0]),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 1..1_000u32), 0..8),
        gone in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        careful in any::<bool>(),
    ) {
        let link = |index: prop::sample::Index| LinkId(index.index(fabric.links().len()) as u32);
        let mut situation = FaultyLinks::default();
        let mut out = BTreeSet::new();
        for index in gone {
            // Somebody may have taken out more than there was room for.
            if !careful || satisfied(&fabric, share, &with(&out, link(index))) {
                out.insert(link(index));
                situation.add(link(index), LinkFault::Disabled { loss: None });
            }
        }
        for (index, weight) in picks {
            if situation.get(link(index)).is_none() {
                situation.add(link(index), corrupting(f64::from(weight) * 1e-6));
            }
        }
        let table = ProtectionTable::measured();
        check(&fabric, &situation, share, &plan(&fabric, &situation, &terms(share, &table)));
    }
}

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

#[test]
fn the_worse_link_goes_and_the_other_is_protected_and_told_what_it_waits_for() {
    let fabric = leaves();
    let names = SwitchNames::of(&fabric);
    let [bad, worse] = ["leaf0--spine0", "leaf0--spine1"].map(|name| names.link(name).unwrap());
    let situation = FaultyLinks::from_iter([(bad, corrupting(1e-4)), (worse, corrupting(1e-3))]);
    let table = ProtectionTable::measured();
    let plan = plan(&fabric, &situation, &terms(0.6, &table));
    assert_eq!(plan.disable[0].link, "leaf0--spine1");
    assert_eq!(plan.disable[0].why, "goes: below it ToR leaf0 is tightest and keeps 2 of 3 paths, 2 are required");
    let stays = &plan.protect[0];
    assert_eq!(
        stays.why,
        "stays: without it ToR leaf0 would keep 1 of 3 paths, 2 are required, because leaf0--spine1 is to go now"
    );
    let protection = stays.protection.unwrap();
    assert_eq!((protection.copies, protection.loss), (1, 1e-8));
    assert!(close(plan.before.penalty, 1.1e-3) && close(plan.after.penalty, 1e-8));
    let order: Vec<(&str, DisableTime)> =
        plan.repair.iter().map(|repair| (repair.link.as_str(), repair.when)).collect();
    assert_eq!(order, [("leaf0--spine1", DisableTime::GoesNow), ("leaf0--spine0", DisableTime::Later)]);
    assert_eq!(plan.repair[0].why, "makes room for leaf0--spine0 to go: 1.00e-4 of loss");
    assert!(plan.repair[1].why.starts_with("goes when leaf0--spine1 is back"), "{}", plan.repair[1].why);
}

#[test]
fn a_link_that_can_never_go_needs_a_window_and_one_that_cannot_be_protected_is_exposed() {
    let fabric = leaves();
    let names = SwitchNames::of(&fabric);
    let links = ["leaf0--spine0", "leaf1--spine2"].map(|name| names.link(name).unwrap());
    let situation = FaultyLinks::from_iter(links.map(|link| (link, corrupting(1e-4))));
    let table = ProtectionTable::measured();
    let capable: Vec<bool> = fabric.switches().iter().map(|switch| switch.name != "spine2").collect();
    let terms = PlanTerms { capable: Some(&capable), ..terms(1.0, &table) };
    let plan = plan(&fabric, &situation, &terms);
    assert!(plan.disable.is_empty());
    assert_eq!((plan.protect[0].link.as_str(), plan.exposed[0].link.as_str()), ("leaf0--spine0", "leaf1--spine2"));
    assert!(plan.exposed[0].why.ends_with("with every other link above it in service"), "{}", plan.exposed[0].why);
    assert!(plan.repair.iter().all(|repair| repair.when == DisableTime::NeedsWindow));
}

#[test]
fn a_tor_that_lacks_paths_already_is_named_and_nothing_above_it_goes() {
    let fabric = leaves();
    let names = SwitchNames::of(&fabric);
    let out = ["leaf0--spine0", "leaf0--spine1"].map(|name| names.link(name).unwrap());
    let mut situation = FaultyLinks::from_iter(out.map(|link| (link, LinkFault::Disabled { loss: Some(1e-3) })));
    situation.add(names.link("leaf0--spine2").unwrap(), corrupting(1e-5));
    situation.add(names.link("leaf1--spine2").unwrap(), corrupting(1e-5));
    let table = ProtectionTable::measured();
    let plan = plan(&fabric, &situation, &terms(0.6, &table));
    assert_eq!(plan.lacking.iter().map(|room| (room.tor.as_str(), room.paths)).collect::<Vec<_>>(), [("leaf0", 1)]);
    assert_eq!(plan.disable.iter().map(|going| going.link.as_str()).collect::<Vec<_>>(), ["leaf1--spine2"]);
    assert!(plan.protect[0].why.contains("because leaf0--spine0 and leaf0--spine1 are out for repair"));
}

#[test]
fn a_search_that_must_end_early_leaves_nothing_that_could_still_go() {
    let fabric = Fabric::fat_tree(8, Rate::gbps(100)).unwrap();
    let links = fabric.segments()[0].links.clone();
    let situation: FaultyLinks =
        links.map(|link| (LinkId(link), corrupting(1e-6 * f64::from(link * 7_919 % 31 + 1)))).collect();
    let table = ProtectionTable::measured();
    let exact = plan(&fabric, &situation, &terms(0.6, &table));
    let early = plan(&fabric, &situation, &PlanTerms { budget: 1, ..terms(0.6, &table) });
    let removed = |plan: &Plan| plan.disable.iter().map(|going| going.loss).sum::<f64>();
    assert!(removed(&early) <= removed(&exact) && removed(&exact) <= removed(&early) + early.missed + 1e-12);
    assert_eq!(early.disable.len() + early.protect.len(), situation.iter().count(), "each that stays has a reason");
}

#[test]
fn a_plan_reads_as_json() {
    let fabric = leaves();
    let situation = FaultyLinks::from_iter([(LinkId(0), corrupting(1e-3)), (LinkId(1), corrupting(1e-4))]);
    let table = ProtectionTable::measured();
    let json = serde_json::to_value(plan(&fabric, &situation, &terms(0.6, &table))).unwrap();
    assert_eq!(json["disable"][0]["link"], "leaf0--spine0");
    assert_eq!(json["disable"][0]["tightest"]["required"], 2);
    assert_eq!(json["protect"][0]["protection"]["copies"], 1);
    assert_eq!(json["repair"][0]["when"], "goes-now");
    assert_eq!(json["missed"], 0.0);
}

fn state(port: &str, version: (u64, u64), condition: Condition, loss: f64) -> PortState {
    PortState {
        earliest_ns: None,
        latest_ns: None,
        time_of: None,
        id: port.parse().unwrap(),
        peer: None,
        at: Moment::from_ms(version.0 * 1_000 + version.1),
        life: version.0,
        number: version.1,
        condition,
        sticky: false,
        evidence: Evidence { loss, ..Evidence::default() },
        why: "a test says so".to_owned(),
    }
}

fn order(port: &str, version: (u64, u64), kind: OrderKind) -> Message {
    let at = Moment::from_ms(version.0 * 1_000 + version.1);
    let (life, number) = version;
    Message::Order(Order {
        id: port.parse().unwrap(),
        at,
        life,
        number,
        kind,
        why: "a test says so".to_owned(),
        tag: None,
    })
}

fn lines(values: &[serde_json::Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

#[test]
fn what_monitors_publish_can_be_planned_from() {
    use Condition::{Corrupting, Healthy, Unknown};
    let fabric = leaves();
    let names = SwitchNames::of(&fabric);
    let link = |name: &str| names.link(name).unwrap();
    let ports = [
        state("leaf0/eth0", (1, 2), Corrupting, 1e-4),
        state("leaf0/eth0", (1, 1), Corrupting, 0.5),
        state("spine0/swp0", (1, 1), Corrupting, 1e-3),
        state("leaf0/eth1", (1, 1), Corrupting, 1e-3),
        state("leaf0/eth1", (2, 1), Healthy, 0.0),
        state("leaf1/eth0", (1, 1), Corrupting, 1e-3),
        state("leaf1/eth0", (1, 2), Unknown, 0.0),
        state("leaf1/eth2", (1, 5), Corrupting, 1e-6),
    ];
    let wrapped: Vec<serde_json::Value> =
        ports.iter().map(|state| serde_json::to_value(Message::Port(state.clone())).unwrap()).collect();
    let bare: Vec<serde_json::Value> = ports.iter().map(|state| serde_json::to_value(state).unwrap()).collect();
    let expected =
        FaultyLinks::from_iter([(link("leaf0--spine0"), corrupting(1e-3)), (link("leaf1--spine2"), corrupting(1e-6))]);
    for text in [
        lines(&wrapped),
        lines(&bare),
        serde_json::to_string_pretty(&wrapped).unwrap(),
        serde_json::to_string(&bare).unwrap(),
    ] {
        assert_eq!(parse("it", &text, &names), Ok(expected.clone()), "{text}");
    }
    let ordered = [
        serde_json::to_value(order("leaf1/eth2", (1, 1), OrderKind::Disable)).unwrap(),
        serde_json::to_value(state("leaf1/eth2", (1, 5), Corrupting, 1e-6)).unwrap(),
    ];
    let situation = parse("it", &lines(&ordered), &names).unwrap();
    assert_eq!(situation.get(link("leaf1--spine2")), Some(LinkFault::Disabled { loss: Some(1e-6) }));
}

#[test]
fn a_table_says_which_links_corrupt_and_the_worse_end_counts() {
    let fabric = leaves();
    let names = SwitchNames::of(&fabric);
    let link = |name: &str| names.link(name).unwrap();
    let text = "link,loss,state\n# from the operators\nleaf0--spine0,1e-5,\nspine0/swp0,0.1%,corrupting\n\
                leaf0/eth1,1e-4,protected\nspine2--leaf1,,disabled\n";
    let expected = FaultyLinks::from_iter([
        (link("leaf0--spine0"), corrupting(1e-3)),
        (link("leaf0--spine1"), LinkFault::Corrupting { loss: 1e-4, protected: true }),
        (link("leaf1--spine2"), LinkFault::Disabled { loss: None }),
    ]);
    assert_eq!(parse("it", text, &names), Ok(expected));
    assert_eq!(parse("it", "", &names), Ok(FaultyLinks::default()));
    assert_eq!(parse("it", "link,loss\n", &names), Ok(FaultyLinks::default()));
    assert_eq!(parse("it", "[]", &names), Ok(FaultyLinks::default()));
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    let fabric = leaves();
    let names = SwitchNames::of(&fabric);
    let bad = |port: &str, loss| serde_json::to_string(&state(port, (1, 1), Condition::Corrupting, loss)).unwrap();
    let good = bad("leaf0/eth0", 1e-3);
    for (text, line, expected) in [
        ("link,loss\nleaf0--spine0,1e-3\nleaf0--spine7,1e-3\n".to_owned(), 3, "did you mean 'leaf0--spine0'?"),
        ("link,loss\nleaf0/eth9,1e-3\n".to_owned(), 2, "no link is called 'leaf0/eth9'"),
        ("link,loss\nleaf0--spine0,0\n".to_owned(), 2, "above 0 and at most 1"),
        ("link,loss\nleaf0--spine0,1.5\n".to_owned(), 2, "above 0 and at most 1"),
        ("link,loss\nleaf0--spine0,\n".to_owned(), 2, "corrupting, but no loss"),
        ("link,loss,state\nleaf0--spine0,1e-3,disbled\n".to_owned(), 2, "did you mean 'disabled'?"),
        ("utter nonsense\n".to_owned(), 1, "column"),
        (format!("{good}\n{}\n", bad("leaf0/eth7", 1e-3)), 2, "did you mean 'leaf0/eth0'?"),
        (format!("{good}\n\n{}\n", bad("leaf0/eth1", 0.0)), 3, "a loss of 0: expected"),
        (format!("{good}\n{}\n", bad("leaf0/eth1", 2.0)), 2, "a loss of 2: expected"),
        (format!("[{good},\n{}]", bad("leef1/eth1", 1e-3)), 2, "did you mean 'leaf1'?"),
        (format!("{good}\n{{\"deed\": \"protect\"}}\n"), 2, "expected what a monitor publishes"),
        (format!("{good}\n{{\"id\": \n"), 2, "no JSON: EOF"),
        (format!("[{good},\n{{]"), 2, "no JSON: key must be a string"),
        (format!("[{good}\n"), 1, "no JSON: EOF"),
        (format!("{good}\n17\n"), 2, "expected what a monitor publishes"),
    ] {
        let error = parse("it", &text, &names).unwrap_err();
        assert!(error.line == Some(line) && error.problem.contains(expected), "{text}: {error}");
    }
    let mut elsewhere = state("leaf0/eth0", (1, 1), Condition::Corrupting, 1e-3);
    elsewhere.peer = Some(PortId::new("spine1", "swp0"));
    let error = parse("it", &serde_json::to_string(&elsewhere).unwrap(), &names).unwrap_err();
    assert!(error.problem.contains("the topology has spine0/swp0 there"), "{error}");
}
