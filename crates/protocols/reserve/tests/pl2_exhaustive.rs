//! Every way in which three contexts and more can share a port of the switch: nothing that the adversary of [`search`] can do
//! makes `departure`, `clock` or `late` queue more than contexts · K frames, leaves anybody silent who has something to send, or
//! leaves anything reserved. The same search finds what is wrong with `paper`, by the shortest way.
//!
//! States are explored breadth first until there is no other: for a given limit on repeated frames and dead hosts the result holds
//! for runs of any length. [`larger_limits_change_nothing`] raises those limits: to six million states, all of which keep the
//! promise.

#![allow(clippy::print_stdout, reason = "the size of each search and the shortest ways, with --nocapture")]

mod search;

use std::collections::{HashMap, HashSet, VecDeque};

use reserve::SchedulerKind;
use search::{Limits, SearchPort, Setup, Step};

/// Result of a search.
struct Outcome {
    states: usize,
    transitions: usize,
    /// The longest queue of all states.
    longest: usize,
    /// The first state that was refused, and the shortest way to it.
    found: Option<(String, Vec<Step>)>,
}

type Verdict = Result<(), String>;

fn search(setup: Setup, check: impl Fn(&SearchPort, Step) -> Verdict) -> Outcome {
    let start = SearchPort::new(setup);
    let mut seen = HashSet::from([start.key()]);
    // For each state the one before it, and the step between them.
    let mut ways: Vec<(usize, Step)> = vec![(0, Step::Tick)];
    let mut next = VecDeque::from([(0, start)]);
    let mut outcome = Outcome { states: 1, transitions: 0, longest: 0, found: None };
    while let Some((number, port)) = next.pop_front() {
        for step in port.steps() {
            let mut after = port.clone();
            after.take(step);
            outcome.transitions += 1;
            if !seen.insert(after.key()) {
                continue;
            }
            let here = ways.len();
            ways.push((number, step));
            outcome.states = ways.len();
            outcome.longest = outcome.longest.max(after.queued());
            if let Err(reason) = check(&after, step) {
                outcome.found = Some((reason, trace(&ways, here)));
                return outcome;
            }
            next.push_back((here, after));
        }
    }
    outcome
}

fn trace(ways: &[(usize, Step)], mut at: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    while at != 0 {
        let (before, step) = ways[at];
        steps.push(step);
        at = before;
    }
    steps.reverse();
    steps
}

/// A way as a table: what happens, and what is counted and queued after it.
fn table(setup: Setup, steps: &[Step]) -> String {
    let mut port = SearchPort::new(setup);
    let row = |(number, step): (usize, &Step)| {
        port.take(*step);
        format!("| {number} | {step} | {} | {} |\n", port.counted(), port.queued())
    };
    (1..).zip(steps).map(row).collect()
}

/// Guarantees of `departure`, `clock` and `late`.
fn promise(setup: Setup, port: &SearchPort, step: Step) -> Verdict {
    // Being early by a slot is worth a frame.
    let most = setup.bound() + usize::from(setup.transit == 0);
    if port.queued() > most {
        return Err(format!("{} frames are queued, {most} at most were promised", port.queued()));
    }
    let Limits { repeats, deaths, flaps, .. } = setup.limits;
    if port.refused && setup.patience.is_none() && (repeats, deaths, flaps) == (0, 0, 0) {
        return Err("a frame that was granted and is not early does not pass".to_owned());
    }
    // Everything lasts until the end of its slot, so that it is enough to look there.
    if step == Step::Tick {
        port.goes_on()?;
        let clocks = matches!(setup.kind, SchedulerKind::Clock | SchedulerKind::Late);
        if clocks && !port.falls_quiet() {
            return Err("something stays reserved although nobody does anything".to_owned());
        }
    }
    Ok(())
}

/// Explores everything; the longest queue.
fn keeps_its_promise(setup: Setup) -> usize {
    let outcome = search(setup, |port, step| promise(setup, port, step));
    if let Some((reason, steps)) = outcome.found {
        panic!("{setup:?}: {reason}\n{}", table(setup, &steps));
    }
    println!(
        "{:9} {} × {} contexts, K = {}, {:?}: {} states, {} transitions, {} queued",
        setup.kind.name(),
        setup.hosts,
        setup.contexts,
        setup.k,
        setup.limits,
        outcome.states,
        outcome.transitions,
        outcome.longest
    );
    outcome.longest
}

fn with(setup: Setup, change: impl Fn(&mut Limits)) -> Setup {
    let mut limits = setup.limits;
    change(&mut limits);
    Setup { limits, ..setup }
}

/// All that is searched with every change.
fn explore(kind: SchedulerKind) {
    for k in [1, 2] {
        let setup = Setup::new(kind, 3, k);
        assert_eq!(keeps_its_promise(setup), setup.bound(), "and it is reached");
        keeps_its_promise(with(setup, |limits| limits.deaths = 1));
        keeps_its_promise(with(setup, |limits| limits.flaps = 1));
    }
    keeps_its_promise(with(Setup::new(kind, 3, 1), |limits| (limits.deaths, limits.flaps) = (1, 1)));
    keeps_its_promise(with(Setup::new(kind, 3, 1), |limits| limits.repeats = 1));
    keeps_its_promise(with(Setup::new(kind, 2, 2), |limits| limits.repeats = 1));
    keeps_its_promise(Setup { transit: 0, bunched: false, ..Setup::new(kind, 3, 2) });
    let of_one_host = Setup { contexts: 3, ..Setup::new(kind, 1, 1) };
    keeps_its_promise(with(of_one_host, |limits| limits.deaths = 1));
}

#[test]
fn departure_keeps_its_promise() {
    explore(SchedulerKind::Departure);
}

#[test]
fn clock_keeps_its_promise() {
    explore(SchedulerKind::Clock);
}

#[test]
fn late_keeps_its_promise() {
    explore(SchedulerKind::Late);
}

/// Frames that come after their reservation was taken back are cut, and everything else stays as it is.
#[test]
fn departure_may_take_back_what_is_not_used() {
    let setup = Setup { patience: Some(2), ..Setup::new(SchedulerKind::Departure, 3, 1) };
    keeps_its_promise(with(setup, |limits| limits.deaths = 1));
}

#[test]
#[ignore = "six million states, minutes even if optimised: cargo test --release -p hitless-reserve --test pl2_exhaustive -- --ignored --nocapture"]
fn larger_limits_change_nothing() {
    for kind in [SchedulerKind::Departure, SchedulerKind::Clock, SchedulerKind::Late] {
        keeps_its_promise(with(Setup::new(kind, 3, 2), |limits| limits.repeats = 1));
        keeps_its_promise(with(Setup::new(kind, 3, 1), |limits| (limits.repeats, limits.deaths) = (2, 2)));
        keeps_its_promise(with(Setup::new(kind, 4, 1), |limits| (limits.repeats, limits.deaths) = (1, 1)));
        keeps_its_promise(Setup::new(kind, 4, 2));
    }
}

/// Two ways to a state of one key must lead to the same keys, or the search would miss what lies behind the second one.
#[test]
fn states_of_one_key_have_the_same_future() {
    for kind in SchedulerKind::ALL {
        let setup = with(Setup::new(kind, 2, 2), |limits| {
            let counts = kind == SchedulerKind::Paper;
            *limits = Limits { repeats: 1, deaths: 1, flaps: 1, ..*limits };
            (limits.losses, limits.asks_again) = if counts { (1, 1) } else { (limits.losses, limits.asks_again) };
        });
        let mut seen: HashMap<Box<[u8]>, Vec<Box<[u8]>>> = HashMap::new();
        let mut next = VecDeque::from([SearchPort::new(setup)]);
        for _ in 0..3_000 {
            let Some(port) = next.pop_front() else { break };
            let after = port.steps().into_iter().map(|step| {
                let mut after = port.clone();
                after.take(step);
                after
            });
            let after: Vec<SearchPort> = after.collect();
            let mut keys: Vec<Box<[u8]>> = after.iter().map(SearchPort::key).collect();
            keys.sort_unstable();
            keys.dedup();
            if let Some(before) = seen.get(&port.key()) {
                assert_eq!(*before, keys, "{kind:?}");
                continue;
            }
            seen.insert(port.key(), keys);
            next.extend(after);
        }
        assert!(seen.len() > 100, "{} states of {kind:?}", seen.len());
    }
}

/// A rack of the paper's with links that carry a frame a slot, and hosts that are never early.
fn paper(k: u8) -> Setup {
    let setup = Setup { bunched: false, ..Setup::new(SchedulerKind::Paper, 3, k) };
    Setup { limits: Limits::default(), ..setup }
}

fn shortest(what: &str, setup: Setup, is_found: impl Fn(&SearchPort) -> bool) -> Vec<Step> {
    let outcome = search(setup, |port, _| if is_found(port) { Err(what.to_owned()) } else { Ok(()) });
    let (_, steps) = outcome.found.expect(what);
    println!("{what}, after {} states:\n{}", outcome.states, table(setup, &steps));
    steps
}

/// The queue grows without limit: the way to each length from one above the bound on, and at last one that comes twice to the same
/// state but for a longer queue.
fn grows(what: &str, setup: Setup) {
    let mut before = Vec::new();
    for length in setup.bound() + 1..setup.bound() + 5 {
        let steps = shortest(&format!("{what}: {length} frames queued"), setup, |port| port.queued() == length);
        assert!(steps.len() > before.len(), "{length} frames");
        before = steps;
    }
    let mut port = SearchPort::new(setup);
    let mut seen: HashMap<Box<[u8]>, usize> = HashMap::new();
    let mut lengths = Vec::new();
    let comes_again = before.iter().any(|step| {
        port.take(*step);
        let first = *seen.entry(port.key_beside_queue()).or_insert(lengths.len());
        lengths.push(port.queued());
        // Behind an empty queue a slot may have passed unused, which would not be so with a longer one.
        port.queued() > lengths[first] && !lengths[first..].contains(&0)
    });
    assert!(comes_again, "{what}: no way to do it again");
}

#[test]
fn the_papers_queue_grows_without_limit_if_hosts_are_a_slot_early() {
    grows("a slot early", Setup { transit: 0, ..paper(1) });
}

#[test]
fn the_papers_queue_grows_without_limit_after_one_repeated_frame() {
    grows("one repeated frame", with(paper(1), |limits| limits.repeats = 1));
}

/// Counting frames as they arrive is as good as anything in a rack where nothing is early, lost or repeated.
#[test]
fn the_papers_queue_is_bounded_while_nothing_goes_wrong() {
    for k in [1, 2] {
        assert_eq!(keeps_its_promise(Setup { bunched: true, ..paper(k) }), 3 * usize::from(k));
    }
}

#[test]
fn the_papers_counters_drift_when_anything_is_lost_or_repeated() {
    let drifts = |what: &str, change: fn(&mut Limits), by: i64| {
        let setup = with(paper(1), change);
        shortest(what, setup, |port| port.is_quiet() && port.counted() == by).len()
    };
    assert_eq!(drifts("a lost frame", |limits| limits.losses = 1, 1), 3);
    assert_eq!(drifts("a repeated frame", |limits| limits.repeats = 1, -1), 6);
    assert_eq!(drifts("a lost GRT", |limits| limits.asks_again = 1, 1), 5);
    assert_eq!(drifts("a dead host", |limits| limits.deaths = 1, 1), 2);
}
