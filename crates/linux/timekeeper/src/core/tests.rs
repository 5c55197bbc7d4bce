//! Four clocks on links of memory, whose true time the test knows.
//!
//! ```text
//!     a        b and c listen to a, d to b; c is b's backup parent, b is c's, c is d's; b is the backup root
//!    ╱ ╲
//!   b ─ c
//!    ╲ ╱
//!     d
//! ```

use clock::plan::PlanFile;

use super::*;
use crate::config::live_params;

mod healing;

const PLAN: &str = r#"{"root": "a", "backup_root": "b", "epoch": 7, "plan": [
    {"node": "a", "depth": 0},
    {"node": "b", "parent": "a", "backup": "c", "depth": 1, "depth_backup": 3},
    {"node": "c", "parent": "a", "backup": "b", "depth": 1, "depth_backup": 3},
    {"node": "d", "parent": "b", "backup": "c", "depth": 2, "depth_backup": 3}]}"#;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const PPM: [i64; 4] = [100, -100, 60, -30];
const MS: u64 = 1_000_000;
const STEP: u64 = 10_000;
/// Step for tests that run through many milliseconds.
const LONG_STEP: u64 = 100_000;

struct FlyingFrame {
    due: u64,
    to: usize,
    from: usize,
    frame: ExchangeFrame,
}

/// The network, and the time of each root that there was: what its oscillator was off by.
struct MemoryNetwork {
    now: u64,
    clocks: Vec<Option<ClockCore>>,
    flying: Vec<FlyingFrame>,
    cut: Vec<(usize, usize)>,
    /// For each term, its root, and how much its time is ahead of its oscillator.
    roots: Vec<(SyncTerm, usize, i64)>,
    runs: u32,
    seed: u64,
    reads: u64,
    /// Does not run for now.
    stalled: Option<usize>,
    /// Frames for a clock that does not run, with the time of arrival, as its socket keeps them.
    socket: Vec<(usize, usize, ExchangeFrame, u64)>,
    loss_percent: u64,
    step: u64,
    /// Somebody forges waves: what is said then is not judged.
    lies: bool,
}

/// Frames that a socket keeps.
const SOCKET: usize = 600;

fn duties(plan: &str, node: &str) -> ClockDuties {
    ClockDuties::of(&PlanFile::parse(plan).unwrap(), node).unwrap()
}

impl MemoryNetwork {
    fn new() -> Self {
        let clocks = NAMES.iter().map(|_| None).collect();
        let (flying, cut, roots) = (Vec::new(), Vec::new(), Vec::new());
        let (now, seed, stalled, socket) = (1_000 * MS, 1, None, Vec::new());
        let (runs, reads, loss_percent, step, lies) = (0, 0, 0, STEP, false);
        let mut network =
            Self { now, clocks, flying, cut, roots, runs, seed, reads, stalled, socket, loss_percent, step, lies };
        (0..NAMES.len()).for_each(|node| network.start(node));
        network
    }

    fn local(&self, node: usize) -> u64 {
        self.now.saturating_add_signed(self.now as i64 * PPM[node] / 1_000_000)
    }

    fn start(&mut self, node: usize) {
        self.runs += 1;
        self.socket.retain(|(to, ..)| *to != node);
        let duties = duties(PLAN, NAMES[node]);
        let (ports, now) = (duties.neighbours(), self.local(node));
        self.clocks[node] = Some(ClockCore::new(live_params(MS), duties, &ports, self.runs, now).unwrap());
    }

    fn clock(&self, node: usize) -> &ClockCore {
        self.clocks[node].as_ref().unwrap()
    }

    fn counters(&self, node: usize) -> ClockCounters {
        self.clock(node).counters
    }

    fn is_cut(&self, one: usize, other: usize) -> bool {
        self.cut.contains(&(one.min(other), one.max(other)))
    }

    fn way(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        2_000 + (self.seed >> 33) % 60_000
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms * MS / self.step {
            self.now += self.step;
            self.deliver();
            for node in 0..NAMES.len() {
                self.turn(node);
            }
            self.judge();
        }
    }

    fn deliver(&mut self) {
        let (due, later) = std::mem::take(&mut self.flying).into_iter().partition(|flying| flying.due <= self.now);
        self.flying = later;
        for FlyingFrame { to, from, frame, .. } in due {
            let now = self.local(to);
            if self.is_cut(to, from) || self.loss_percent > 0 && self.way() % 100 < self.loss_percent {
                continue;
            }
            if self.stalled == Some(to) {
                if self.socket.len() < SOCKET {
                    self.socket.push((to, from, frame, now));
                }
                continue;
            }
            if let Some(clock) = &mut self.clocks[to] {
                let port = clock.neighbours.iter().position(|neighbour| neighbour.name == NAMES[from]).unwrap();
                clock.on_frame(port, &frame, now, now);
            }
        }
    }

    fn turn(&mut self, node: usize) {
        let now = self.local(node);
        if self.stalled == Some(node) {
            return;
        }
        let Some(mut clock) = self.clocks[node].take() else { return };
        for (_, from, frame, arrived) in self.socket.extract_if(.., |(to, ..)| *to == node) {
            let port = clock.neighbours.iter().position(|neighbour| neighbour.name == NAMES[from]).unwrap();
            clock.on_frame(port, &frame, arrived, now);
        }
        clock.settle(now);
        if clock.deadline_ns(now) <= now {
            clock.on_time(now);
        }
        while let Some((port, frame)) = clock.next_frame(now) {
            let mut bytes = Vec::new();
            frame.emit(&mut bytes);
            let to = NAMES.iter().position(|name| *name == clock.neighbours[port].name).unwrap();
            let frame = ExchangeFrame::parse(&bytes).unwrap();
            let due = self.now + self.way();
            self.flying.push(FlyingFrame { due, to, from: node, frame });
            clock.on_departure(port, frame.number, now, now);
        }
        self.clocks[node] = Some(clock);
    }

    /// Every clock that says a time is right by the root of its term.
    fn judge(&mut self) {
        if self.lies {
            return;
        }
        for (node, name) in NAMES.into_iter().enumerate() {
            let now = self.local(node);
            let Some(clock) = &self.clocks[node] else { continue };
            let (Some((earliest, latest)), term) = (clock.interval(now), clock.node().term()) else { continue };
            if clock.node().state() == NodeState::Root {
                assert_eq!(earliest, latest);
                let ahead = earliest as i64 - now as i64;
                match self.roots.iter().find(|(known, ..)| *known == term) {
                    Some(known) => assert_eq!(*known, (term, node, ahead), "two roots of one term, or two times"),
                    None => self.roots.push((term, node, ahead)),
                }
            }
            let (_, root, ahead) = *self.roots.iter().find(|(known, ..)| *known == term).expect("a root");
            let truth = self.local(root).saturating_add_signed(ahead);
            assert!(earliest <= truth && truth <= latest, "{name} at {}: {earliest} {truth} {latest}", self.now);
            self.reads += 1;
        }
    }

    fn states(&self) -> String {
        let state = |clock: &Option<ClockCore>| match clock {
            None => "-".to_owned(),
            Some(clock) => format!("{:?}", clock.node().state()),
        };
        self.clocks.iter().map(state).collect::<Vec<_>>().join(" ")
    }

    fn eps(&self, node: usize) -> u64 {
        let (earliest, latest) = self.clock(node).interval(self.local(node)).unwrap();
        (latest - earliest).div_ceil(2)
    }
}

#[test]
fn all_find_the_time_and_know_it_within_what_frames_take() {
    let mut network = MemoryNetwork::new();
    network.run(49);
    assert_eq!(network.reads, 0, "a root listens first");
    network.run(51);
    assert_eq!(network.states(), "Root Following Following Following");
    assert!(network.eps(1) < 62_000 && network.eps(3) < 124_000, "{} {}", network.eps(1), network.eps(3));
    assert!(network.eps(3) > 2_000, "two hops are not free");
    assert_eq!(network.clock(3).listens_to(), Some("b"));
}

#[test]
fn a_cut_link_turns_its_node_within_a_few_waves_and_a_plan_puts_it_back() {
    let mut network = MemoryNetwork::new();
    network.run(300);
    network.cut.push((1, 3));
    network.run(5);
    assert_eq!(
        (network.states().as_str(), network.clock(3).listens_to()),
        ("Root Following Following Turned", Some("c"))
    );
    let silence_ms = network.clock(3).silence_ns() as f64 / 1e6;
    assert!((2.8..3.2).contains(&silence_ms), "two waves are missed, the third is heard: {silence_ms} ms");
    let heard = network.clock(3).heard_ns().unwrap();
    assert!(network.local(3) - heard < 2 * MS, "it hears its backup parent");
    network.cut.clear();
    network.run(20);
    assert_eq!(network.clock(3).listens_to(), Some("c"), "nobody has told it to go back");
    for (node, name) in NAMES.into_iter().enumerate() {
        let now = network.local(node);
        network.clocks[node].as_mut().unwrap().on_plan(duties(PLAN, name), now).unwrap();
    }
    network.run(20);
    assert_eq!(
        (network.states().as_str(), network.clock(3).listens_to()),
        ("Root Following Following Following", Some("b"))
    );
    assert_eq!(network.counters(3).turned, 1);
}

#[test]
fn a_dead_root_is_followed_by_the_backup_root_and_not_believed_when_it_comes_back() {
    let mut network = MemoryNetwork::new();
    network.run(300);
    network.clocks[0] = None;
    network.run(60);
    assert_eq!(network.states(), "- Root Turned Following", "d is a child of b");
    assert_eq!((network.counters(1).elected, network.clock(3).epoch().elected), (1, true));
    network.start(0);
    network.run(20);
    assert_eq!(network.states(), "Following Root Turned Following", "it follows its successor");
    assert_eq!((network.counters(0).reigns, network.clock(0).node().term()), (0, network.clock(1).node().term()));
    assert!(network.clock(0).interval(network.local(0)).is_some());
    // A plan that makes the acting root the root brings the old one back as a follower.
    let plan = PLAN
        .replace(r#""root": "a", "backup_root": "b", "epoch": 7"#, r#""root": "b", "backup_root": "a", "epoch": 8"#);
    let plan = plan.replace(r#"{"node": "a", "depth": 0}"#, r#"{"node": "b", "depth": 0}"#);
    let plan = plan.replace(
        r#""node": "b", "parent": "a", "backup": "c", "depth": 1"#,
        r#""node": "a", "parent": "b", "backup": "c", "depth": 1"#,
    );
    let plan =
        plan.replace(r#""node": "c", "parent": "a", "backup": "b""#, r#""node": "c", "parent": "b", "backup": "a""#);
    for node in [0, 2, 3, 1] {
        let now = network.local(node);
        network.clocks[node].as_mut().unwrap().on_plan(duties(&plan, NAMES[node]), now).unwrap();
    }
    network.run(20);
    assert_eq!(network.states(), "Following Root Following Following");
    assert_eq!(network.clock(3).epoch(), SyncEpoch { plan: 8, elected: false });
}

#[test]
fn a_node_that_starts_again_hears_its_parent_or_if_that_is_dead_its_backup_parent() {
    let mut network = MemoryNetwork::new();
    network.run(300);
    network.start(3);
    network.run(10);
    assert_eq!(
        (network.clock(3).listens_to(), network.clock(3).interval(network.local(3)).is_some()),
        (Some("b"), true)
    );
    network.clocks[1] = None;
    network.run(10);
    network.start(3);
    network.run(100);
    assert_eq!(network.states(), "Root - Following Turned");
}

#[test]
fn replays_strangers_and_frames_of_an_earlier_run_change_nothing() {
    let mut network = MemoryNetwork::new();
    network.run(100);
    let mut old = None;
    for _ in 0..300 {
        network.run(1);
        for flying in network.flying.iter().filter(|flying| flying.to == 3 && flying.from == 1) {
            old = Some(flying.frame);
        }
    }
    let old = old.expect("a wave on its way");
    network.run(50);
    for _ in 0..5 {
        let now = network.local(3);
        let clock = network.clocks[3].as_mut().unwrap();
        let port = clock.neighbours.iter().position(|neighbour| neighbour.name == "b").unwrap();
        clock.on_frame(port, &old, now, now);
        clock.on_frame(port, &ExchangeFrame { sender: 77, ..old }, now, now);
        clock.settle(now);
        network.run(1);
    }
    assert_eq!((network.counters(3).rejected_replay, network.counters(3).foreign), (5, 5));
    assert!(network.clock(3).events.contains(&CoreEvent::WrongNeighbour("b".to_owned())));
    // Answers to frames of the run before must not pass as answers to this one's.
    network.start(3);
    let now = network.local(3);
    let clock = network.clocks[3].as_mut().unwrap();
    let port = clock.neighbours.iter().position(|neighbour| neighbour.name == "b").unwrap();
    for _ in 0..40 {
        clock.neighbours[port].next_frame(ExchangeFrame::default(), now);
    }
    clock.on_frame(port, &old, now, now);
    clock.settle(now);
    assert_eq!(clock.interval(now), None);
    network.run(50);
    assert_eq!(network.states(), "Root Following Following Following");
}

#[test]
fn a_suspended_machine_knows_no_time_until_it_hears_one() {
    let mut network = MemoryNetwork::new();
    network.run(100);
    let now = network.local(3);
    network.clocks[3].as_mut().unwrap().on_clock_step(now);
    assert_eq!(network.clock(3).interval(now), None);
    network.run(10);
    assert!(network.eps(3) < 124_000);
    assert_eq!(network.counters(3).clock_steps, 1);
}

#[test]
fn a_parent_whose_clock_is_broken_is_left_for_the_backup_parent() {
    let mut network = MemoryNetwork::new();
    network.run(100);
    // b says a time that is a second ahead, in everything that it says.
    for _ in 0..10 * MS / STEP {
        for flying in network.flying.iter_mut().filter(|flying| flying.from == 1 && flying.to == 3) {
            let ahead = |ns: u64| if ns < 2_000 * MS { ns + 1_000 * MS } else { ns };
            let later = |known: &mut wire::exchange::FrameTime| known.time_ns = ahead(known.time_ns);
            flying.frame.left.iter_mut().for_each(later);
            flying.frame.arrived.iter_mut().for_each(later);
            flying.frame.wave.iter_mut().for_each(|wave| wave.timestamp = ticks(ahead(wave.timestamp.as_ps())));
        }
        network.now += STEP;
        network.deliver();
        (0..NAMES.len()).for_each(|node| network.turn(node));
        network.judge();
    }
    assert_eq!(network.clock(3).listens_to(), Some("c"));
    assert!(network.counters(3).turned == 1);
}

#[test]
fn a_root_that_did_not_run_for_a_while_is_still_the_root() {
    let mut network = MemoryNetwork::new();
    network.run(300);
    network.stalled = Some(0);
    network.run(15);
    assert_eq!(network.states(), "Root Turned Turned Turned", "all hear nothing");
    network.stalled = None;
    network.run(40);
    assert_eq!((network.counters(1).elected, network.clock(3).epoch().elected), (0, false));
    assert_eq!(network.counters(1).returned + network.counters(2).returned, 2, "b and c hear it again");
    assert!(network.clock(3).heard_ns().unwrap() + 3 * MS > network.local(3));
}

/// The root on its own, at this interval, turned every tenth of a millisecond until `end_ns`; when it became the root.
fn reigns_at(interval_ns: u64, end_ns: u64, mut each: impl FnMut(&mut ClockCore, u64)) -> (ClockCore, Option<u64>) {
    let duties = duties(PLAN, "a");
    let ports = duties.neighbours();
    let mut core = ClockCore::new(live_params(interval_ns), duties, &ports, 1, 0).unwrap();
    let mut reigns = None;
    for now in (0..end_ns).step_by(100_000) {
        each(&mut core, now);
        core.settle(now);
        if core.deadline_ns(now) <= now {
            core.on_time(now);
        }
        while core.next_frame(now).is_some() {}
        if core.counters.reigns > 0 {
            reigns.get_or_insert(now);
        }
    }
    (core, reigns)
}

#[test]
fn a_root_does_not_begin_before_it_could_hear_its_neighbours() {
    for interval_ns in [MS / 10, MS, 10 * MS] {
        assert_eq!(reigns_at(interval_ns, 60 * MS, |_, _| ()).1, Some(50 * MS), "interval {interval_ns}");
        // With a key, while its neighbours' greetings are held up.
        let held_up = |core: &mut ClockCore, now: u64| {
            if now < 300 * MS {
                core.listen_longer(now);
            }
        };
        let begins = reigns_at(interval_ns, 360 * MS, held_up).1;
        assert!(begins.is_some_and(|begins| begins > 349 * MS), "interval {interval_ns}: {begins:?}");
    }
}

#[test]
fn one_frame_that_names_a_later_root_does_not_use_up_the_terms() {
    let lie = |core: &mut ClockCore, now: u64| {
        if now == 10 * MS {
            let term = SyncTerm { number: u32::MAX, root: 1 };
            let sender = name_digest("b");
            let frame = ExchangeFrame { sender, term, given: 7, synchronized: true, number: 1, ..Default::default() };
            let port = core.neighbours.iter().position(|neighbour| neighbour.name == "b").unwrap();
            core.on_frame(port, &frame, now, now);
        }
    };
    let (core, reigns) = reigns_at(MS, 200 * MS, lie);
    assert!(reigns.is_some_and(|reigns| reigns > 100 * MS), "it waits for that root's waves: {reigns:?}");
    assert_eq!(core.node().term().number, 1);
}

#[test]
fn a_plan_that_is_refused_changes_nothing() {
    let mut network = MemoryNetwork::new();
    network.run(100);
    let mut refused = duties(&PLAN.replace("\"epoch\": 7", "\"epoch\": 8"), "a");
    refused.listeners.push("x".to_owned());
    let now = network.local(0);
    let clock = network.clocks[0].as_mut().unwrap();
    assert!(clock.on_plan(refused, now).is_err());
    assert_eq!((clock.part.plan, clock.duties.epoch), (7, 7));
}
