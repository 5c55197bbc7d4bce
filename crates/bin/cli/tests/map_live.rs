//! `hitless radar flows meter` and `radar map` at four Linux routers with equal-cost paths: what is broken is found, at its place
//! and with its flows, and nothing else is; the truth is known from the sender, the routes and the wire.
//!
//! A machine that did not keep up proves nothing: then the run is repeated.

#![expect(clippy::disallowed_methods, reason = "senders run beside meters, in real time")]
#![expect(clippy::print_stderr, reason = "figures are for people")]

mod map_lab;

use std::fs;
use std::thread;
use std::time::Duration;

use linux::clock::time_of_day;
use map_lab::{FlowPlan, MapLab, SLOT_MS, send, sh};
use serde_json::Value;

const ENOUGH: [&str; 4] = ["1K"; 4];
const TRIES: usize = 10;
/// Flows from host1, and those back.
const FLOWS: u16 = 40;

/// What the map found: kind, why and place of each finding.
fn findings(answer: &Value) -> Vec<[String; 3]> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let place = |found: &Value| found["where"].as_array().unwrap().iter().map(text).collect::<Vec<_>>().join(" ");
    let all = answer["findings"].as_array().unwrap();
    all.iter().map(|found| [text(&found["kind"]), text(&found["why"]), place(found)]).collect()
}

fn finding<'a>(answer: &'a Value, kind: &str) -> &'a Value {
    let all = answer["findings"].as_array().unwrap();
    all.iter().find(|found| found["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {all:?}"))
}

/// Source ports of the flows of a finding.
fn ports(found: &Value) -> Vec<u64> {
    let mut ports: Vec<u64> =
        found["flows"].as_array().unwrap().iter().map(|flow| flow["src_port"].as_u64().unwrap()).collect();
    ports.sort_unstable();
    ports
}

fn link<'a>(answer: &'a Value, name: &str, way: &str) -> &'a Value {
    &answer["links"].as_array().unwrap().iter().find(|link| link["link"] == name).unwrap()[way]
}

/// A fabric with something wrong: traffic, what breaks and when it begins, and the seconds that it goes on.
struct Case<'a> {
    plans: &'a [FlowPlan],
    breaks: &'a dyn Fn(&MapLab),
    seconds: f64,
    flows: [&'static str; 4],
    html: Option<&'a str>,
}

impl Default for Case<'_> {
    fn default() -> Self {
        Self { plans: &[], breaks: &|_| (), seconds: 2.5, flows: ENOUGH, html: None }
    }
}

/// What came of it; when it broke, at the latest.
struct Outcome {
    answer: Value,
    broken_ns: u64,
}

fn run(lab: &MapLab, case: &Case<'_>) -> Outcome {
    let mut tried = Vec::new();
    for _ in 0..TRIES {
        lab.route();
        let watch = lab.watch(case.flows, case.html);
        let traffic = send(lab, case.plans);
        thread::sleep(Duration::from_millis(1_000));
        (case.breaks)(lab);
        let broken_ns = time_of_day().as_nanos() as u64;
        thread::sleep(Duration::from_secs_f64(case.seconds));
        traffic.end();
        thread::sleep(Duration::from_millis(100));
        let (meters, answer) = watch.end();
        let count = |what: &str| meters.iter().map(|meter| meter[what].as_u64().unwrap()).sum::<u64>();
        let kept_up = ["missed", "slots_dropped", "reports_refused"].map(count) == [0; 3] && answer["late"] == 0;
        if kept_up {
            return Outcome { answer, broken_ns };
        }
        tried.push(format!("{meters:?}"));
    }
    panic!("the machine never kept up: {tried:#?}");
}

#[test]
fn nothing_broken_is_nothing_found_and_the_loss_map_has_the_truth() {
    let Some(lab) = MapLab::new() else { return };
    let even = [FlowPlan::even(0, FLOWS), FlowPlan::even(1, FLOWS / 2)];
    let Outcome { answer, .. } = run(&lab, &Case { plans: &even, ..Case::default() });
    assert_eq!(findings(&answer), Vec::<[String; 3]>::new());
    // Flows without a pause, of which the wire between leaf1 and spine1 drops some.
    lab.corrupt(0.1);
    let before = lab.dropped();
    let Outcome { answer, .. } = run(&lab, &Case { plans: &even, ..Case::default() });
    let truth = (lab.dropped() - before) as u64;
    let lost = &link(&answer, "leaf1--spine1", "forward")["lost"];
    let [low, high] = [0, 1].map(|at| lost[at].as_u64().unwrap());
    eprintln!("loss map: {truth} lost, {low} to {high} said");
    assert!(low <= truth && truth <= high, "{truth} lost, {low} to {high} said: {answer}");
    assert!(low * 2 > truth, "{truth} lost, at least {low} said");
    assert_eq!(findings(&answer), [["loss", "counters", "leaf1/up1 spine1/down1"].map(String::from)]);
    for name in ["leaf1--spine2", "leaf2--spine1", "leaf2--spine2"] {
        assert_eq!(link(&answer, name, "forward")["lost"][0], 0, "{name}");
    }
}

/// Slots from the first whole one behind a fault to the one with which it was known.
fn slots_until_known(outcome: &Outcome, kind: &str) -> i64 {
    let slot = (SLOT_MS * 1_000_000) as i64;
    let known = finding(&outcome.answer, kind)["known_ns"].as_i64().unwrap();
    (known - outcome.broken_ns as i64).div_euclid(slot)
}

#[test]
fn a_route_that_loops_and_a_route_that_swallows_are_found_within_three_slots() {
    let Some(lab) = MapLab::new() else { return };
    let plans = [FlowPlan::even(0, FLOWS), FlowPlan::even(1, FLOWS / 2)];
    let back = |lab: &MapLab| sh(&lab.switches[2], "ip route replace 10.0.2.0/24 via 10.1.1.1");
    let page = lab.folder.join("map.html");
    let outcome =
        run(&lab, &Case { plans: &plans, breaks: &back, html: page.to_str(), seconds: 1.0, ..Case::default() });
    assert_eq!(findings(&outcome.answer), [["loop", "both-ways", "leaf1/up1 spine1/down1"].map(String::from)]);
    let looping = ports(finding(&outcome.answer, "loop"));
    let slots = slots_until_known(&outcome, "loop");
    eprintln!("loop: {} flows, known after {slots} slots", looping.len());
    assert!(slots <= 3, "{slots} slots");
    assert!(finding(&outcome.answer, "loop")["sure"] == true && looping.len() > 5);
    assert!(fs::read_to_string(&page).unwrap().contains("<strong>[1] loop</strong>"));
    let swallow = |lab: &MapLab| sh(&lab.switches[2], "ip route replace blackhole 10.0.2.0/24");
    let outcome = run(&lab, &Case { plans: &plans, breaks: &swallow, seconds: 1.0, ..Case::default() });
    sh(&lab.switches[2], "ip route del blackhole 10.0.2.0/24");
    assert_eq!(findings(&outcome.answer), [["blackhole", "in-not-out", "spine1"].map(String::from)]);
    let swallowed = ports(finding(&outcome.answer, "blackhole"));
    let slots = slots_until_known(&outcome, "blackhole");
    eprintln!("blackhole: {} flows, known after {slots} slots", swallowed.len());
    assert!(slots <= 3, "{slots} slots");
    assert!(swallowed.len() > 5 && swallowed.iter().all(|port| (20_000..20_040).contains(port)), "{swallowed:?}");
}

#[test]
fn uneven_hashes_are_the_network_and_a_large_flow_is_the_application() {
    let Some(lab) = MapLab::new() else { return };
    let plans = [FlowPlan::even(0, FLOWS), FlowPlan::even(1, FLOWS / 2)];
    let addresses = |lab: &MapLab| sh(&lab.switches[0], "echo 0 > /proc/sys/net/ipv4/fib_multipath_hash_policy");
    let weights = |lab: &MapLab| {
        sh(
            &lab.switches[0],
            "ip route replace 10.0.2.0/24 nexthop via 10.1.1.2 weight 15 nexthop via 10.1.2.2 weight 1",
        );
    };
    for (what, breaks) in [("addresses alone", &addresses as &dyn Fn(&MapLab)), ("weights", &weights)] {
        let Outcome { answer, .. } = run(&lab, &Case { plans: &plans, breaks, seconds: 4.0, ..Case::default() });
        let found = findings(&answer);
        assert!(found.iter().all(|[kind, why, _]| kind == "imbalance" && why == "network"), "{what}: {found:?}");
        assert!(
            found.len() == 1 && found[0][2].contains("leaf1/up1") && found[0][2].contains("leaf1/up2"),
            "{what}: {found:?}"
        );
        assert!(
            finding(&answer, "imbalance")["flows"].as_array().unwrap().len() >= usize::from(FLOWS) * 4 / 5,
            "{what}"
        );
    }
    // 1,400 bytes every 500 us are 22 Mbit/s in payload, of 100: four a tick to be heavy.
    let large = FlowPlan { first_port: 30_000, flows: 1, bytes: 1_400, tick: Duration::from_micros(300), ..plans[0] };
    let Outcome { answer, .. } =
        run(&lab, &Case { plans: &[plans[0], plans[1], large], seconds: 4.0, ..Case::default() });
    let found = findings(&answer);
    assert!(
        found.iter().all(|[kind, why, _]| kind == "heavy" || (kind == "imbalance" && why == "application")),
        "{found:?}"
    );
    assert_eq!(ports(finding(&answer, "heavy")), [30_000]);
    assert!(ports(finding(&answer, "imbalance")).contains(&30_000));
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn pulses_are_found_with_their_flow() {
    let Some(lab) = MapLab::new() else { return };
    let even = [FlowPlan::even(0, FLOWS), FlowPlan::even(1, FLOWS / 2)];
    // 60 ms of 1,400 bytes every 125 us, 90 Mbit/s, twice a second.
    let pulse = FlowPlan {
        first_port: 30_000,
        flows: 1,
        bytes: 1_400,
        tick: Duration::from_micros(125),
        bursts: [480, 4_000],
        ..even[0]
    };
    let Outcome { answer, .. } =
        run(&lab, &Case { plans: &[even[0], even[1], pulse], seconds: 5.0, ..Case::default() });
    assert_eq!(ports(finding(&answer, "pulsing")), [30_000]);
    let others: Vec<_> = findings(&answer).into_iter().filter(|[kind, ..]| kind != "pulsing").collect();
    assert!(others.iter().all(|[kind, why, _]| kind == "imbalance" && why == "application"), "{others:?}");
}

#[test]
fn a_switch_with_more_flows_than_it_was_sized_for_decodes_with_its_neighbours() {
    let Some(lab) = MapLab::new() else { return };
    // One packet of each flow in each slot: spine1 has about half of 300 and is sized for 120.
    let tick = Duration::from_millis(SLOT_MS);
    let plans = [FlowPlan { tick, bytes: 20, ..FlowPlan::even(0, 300) }];
    let flows = ["1K", "1K", "120", "1K"];
    let Outcome { answer, .. } = run(&lab, &Case { plans: &plans, flows, ..Case::default() });
    let spine = &answer["switches"].as_array().unwrap().iter().find(|switch| switch["switch"] == "spine1").unwrap();
    eprintln!("spine1: {spine}");
    assert!(spine["flows"].as_u64().unwrap() > 130, "{spine}");
    assert_eq!(spine["undecoded"], 0, "{spine}");
    assert_eq!(findings(&answer), Vec::<[String; 3]>::new());
}

#[test]
fn a_flood_of_new_flows_takes_no_more_memory_and_accuses_nobody() {
    let Some(lab) = MapLab::new() else { return };
    // 8,000 packets a second, each of another flow, at tables for 100: nothing decodes.
    let flood = FlowPlan { first_port: 30_000, flows: 80, is_fresh: true, ..FlowPlan::even(0, 0) };
    let watch = lab.watch(["100"; 4], None);
    let before = send(&lab, &[FlowPlan::even(0, FLOWS)]);
    thread::sleep(Duration::from_secs(1));
    let calm = watch.peaks();
    let traffic = send(&lab, &[flood]);
    thread::sleep(Duration::from_secs(4));
    traffic.end();
    before.end();
    let flooded = watch.peaks();
    let (meters, answer) = watch.end();
    eprintln!("peak memory before and in the flood: {calm:?}, {flooded:?}");
    for (at, meter) in meters.iter().enumerate() {
        let most = meter["memory_bytes"].as_u64().unwrap() + (32 << 20);
        assert!(flooded[at] - calm[at] <= most, "{}: {} to {}", meter["switch"], calm[at], flooded[at]);
        assert!(meter["undecoded"].as_u64().unwrap() > 0, "{meter}");
    }
    assert!(flooded[4] - calm[4] <= 128 << 20, "the map: {} to {}", calm[4], flooded[4]);
    assert_eq!(findings(&answer), Vec::<[String; 3]>::new());
}
