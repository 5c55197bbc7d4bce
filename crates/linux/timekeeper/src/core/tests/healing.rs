//! Whatever happened, and whatever plans were given in which order: one root in the end, everybody follows it, and no interval was
//! ever wrong by the root that it names.

use clock::graph::Graph;
use clock::plan::{PlanChange, PlanRequest, plan};
use proptest::prelude::*;

use super::*;

/// Edges of the network.
const EDGES: [[u32; 2]; 5] = [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]];

fn graph() -> Graph {
    Graph::new(NAMES.map(str::to_owned), EDGES).unwrap()
}

/// A plan with this root, as `hitless clock plan` makes it.
fn planned(root: usize, epoch: u32) -> PlanFile {
    let graph = graph();
    let root = graph.node_named(NAMES[root]);
    let made = plan(&graph, &PlanRequest { root, ..PlanRequest::default() }).unwrap();
    PlanFile { epoch: Some(epoch), ..PlanFile::of(&made, &graph) }
}

impl MemoryNetwork {
    fn tell(&mut self, plan: &PlanFile, node: usize) {
        let now = self.local(node);
        if let Some(clock) = &mut self.clocks[node] {
            clock.on_plan(ClockDuties::of(plan, NAMES[node]).unwrap(), now).unwrap();
        }
    }

    /// The root of the plan is the only one, and everybody hears it by the plan.
    fn follows(&self, plan: &PlanFile) -> bool {
        let rows = plan.plan.iter();
        let term = |name: &str| self.clock(NAMES.iter().position(|node| *node == name).unwrap()).node().term();
        rows.into_iter().all(|row| {
            let node = NAMES.iter().position(|name| *name == row.node).unwrap();
            let (clock, now) = (self.clock(node), self.local(node));
            let heard = clock.heard_ns().is_some_and(|heard| now.saturating_sub(heard) < 3 * MS);
            let is_there = match &row.parent {
                None => clock.node().state() == NodeState::Root,
                Some(parent) => {
                    let listens = clock.listens_to() == Some(parent.as_str());
                    clock.node().state() == NodeState::Following && listens && heard
                }
            };
            is_there && clock.interval(now).is_some() && clock.node().term() == term(&plan.root)
        })
    }

    fn run_until_it_follows(&mut self, plan: &PlanFile, most_ms: u64) -> Option<u64> {
        (0..most_ms).find(|_| {
            self.run(1);
            self.follows(plan)
        })
    }

    fn stop(&mut self, node: usize, ms: u64) {
        self.stalled = Some(node);
        self.run(ms);
        self.stalled = None;
    }
}

#[test]
fn a_root_that_was_stopped_follows_its_successor_without_a_plan() {
    for ms in [50, 250, 1_000] {
        let mut network = MemoryNetwork { step: LONG_STEP, ..MemoryNetwork::new() };
        network.run(300);
        network.stop(0, ms);
        assert_eq!(network.clock(1).node().state(), NodeState::Root, "{ms} ms: b has taken over");
        network.run(20);
        assert_eq!(network.states(), "Following Root Turned Following", "{ms} ms");
        assert_eq!(network.clock(0).node().term(), network.clock(1).node().term());
        assert_eq!(network.clock(0).node().line(), network.clock(1).node().line());
        assert_eq!((network.counters(0).replaced, network.counters(0).evicted), (1, 0));
    }
}

/// Also one that comes before the old root has heard of its successor, and the same plan again.
#[test]
fn after_a_stop_a_plan_for_the_old_root_the_new_one_or_a_third_ends_with_that_one() {
    for ms in [50, 250, 1_000] {
        for root in 0..4 {
            for waits in [0, 2, 20] {
                for (turn, epoch) in [(0, 9), (1, 9), (3, 9), (2, 7)] {
                    let mut network = MemoryNetwork { step: LONG_STEP, ..MemoryNetwork::new() };
                    let first = planned(0, 7);
                    (0..4).for_each(|node| network.tell(&first, node));
                    network.run(100);
                    network.stop(0, ms);
                    network.run(waits);
                    // The same number only for the same plan.
                    let plan = planned(root, if root == 0 { epoch } else { 9 });
                    (0..4).for_each(|node| network.tell(&plan, (node + turn) % 4));
                    let took = network.run_until_it_follows(&plan, 1_000);
                    let story = format!("{ms} ms, root {root} after {waits} ms, from {turn}: {}", network.states());
                    assert!(took.is_some_and(|took| took < 200), "{story}: {took:?}");
                    assert!((0..4).all(|node| network.counters(node).evicted == 0), "{story}");
                    // And it stays so.
                    network.run(100);
                    assert!(network.follows(&plan), "{story}: {}", network.states());
                }
            }
        }
    }
}

/// Every change to the plan after the failure of a link, and back: a step is one node's, or a few nodes' at once, and nobody else is
/// told anything.
#[test]
fn each_step_of_a_change_of_plans_is_enough_for_the_node_that_it_names() {
    let whole = planned(0, 7);
    for failed in 0..EDGES.len() as u32 {
        let mut rest = graph();
        rest.fail_link(clock::graph::GraphLink(failed));
        let request = PlanRequest { root: rest.node_named("a"), ..PlanRequest::default() };
        let Ok(made) = plan(&rest, &request) else { continue };
        let without = PlanFile { epoch: Some(8), ..PlanFile::of(&made, &rest) };
        for (old, new) in [(&whole, &without), (&without, &whole)] {
            let mut network = MemoryNetwork { step: LONG_STEP, ..MemoryNetwork::new() };
            (0..4).for_each(|node| network.tell(old, node));
            network.run(100);
            let change = PlanChange::between(old, new).unwrap();
            let groups = change.steps.chunk_by(|one, other| one.at_once.is_some() && one.at_once == other.at_once);
            for (steps, stage) in groups.zip(change.stages([old, new])) {
                for step in steps {
                    network.tell(&stage, NAMES.iter().position(|name| *name == step.node).unwrap());
                }
                for _ in 0..20 {
                    network.run(1);
                    assert_eq!(network.states(), "Root Following Following Following", "{failed}: {steps:#?}");
                }
                assert!(network.follows(&stage), "{failed}: {steps:#?}");
            }
            assert!(network.follows(new), "{failed}");
            let moved = (0..4).map(|node| network.counters(node)).map(|counted| counted.turned + counted.returned);
            assert_eq!(moved.sum::<u64>(), 0, "{failed}: nobody misses two waves");
        }
    }
}

/// A plan may reach some nodes only: the first of them that starts again hears its parent all the same.
#[test]
fn a_node_that_starts_with_a_newer_plan_than_the_root_has_hears_it() {
    let mut network = MemoryNetwork { step: LONG_STEP, ..MemoryNetwork::new() };
    network.run(100);
    let newer = planned(0, 8);
    network.start(3);
    network.tell(&newer, 3);
    network.run(10);
    assert!(network.clock(3).interval(network.local(3)).is_some());
    assert_eq!((network.clock(3).part.plan, network.clock(3).epoch().plan), (8, 7));
}

/// A frame as the neighbour sends it, only that it has the time of a later root.
fn forged(network: &MemoryNetwork, from: usize, wave: bool) -> ExchangeFrame {
    let neighbour = &network.clock(0).neighbours[from - 1];
    let term = SyncTerm { number: 1_000, root: 1 };
    let epoch = SyncEpoch { plan: 7, elected: true };
    let far = Time::from_ps(5_000_000 * MS);
    let message = SyncMessage { term, epoch, wave: 1_000_000, timestamp: far, ..SyncMessage::default() };
    ExchangeFrame {
        sender: crate::duties::name_digest(NAMES[from]),
        instance: network.clock(from).instance,
        to: network.clock(0).instance,
        given: 7,
        term,
        epoch,
        synchronized: true,
        number: 77,
        arrived: Some(wire::exchange::FrameTime { number: neighbour.sent_number(), time_ns: far.as_ps() }),
        wave: wave.then_some(message),
        ..ExchangeFrame::default()
    }
}

#[test]
fn forged_frames_do_not_remove_a_root_while_its_neighbour_is_heard() {
    for wave in [false, true] {
        let mut network = MemoryNetwork { step: LONG_STEP, ..MemoryNetwork::new() };
        network.run(100);
        for _ in 0..500 {
            let frame = forged(&network, 1, wave);
            let now = network.local(0);
            let port = network.clocks[0].as_ref().unwrap().neighbours.iter().position(|to| to.name == "b").unwrap();
            network.clocks[0].as_mut().unwrap().on_frame(port, &frame, now, now);
            network.run(1);
            assert_eq!(network.clock(0).node().state(), NodeState::Root);
        }
        assert_eq!(network.states(), "Root Following Following Following");
        assert_eq!((network.counters(0).replaced, network.counters(1).elected), (0, 0));
    }
}

/// An attacker that silences a neighbour and speaks in its place can move a root, but only for as long as it speaks.
#[test]
fn a_root_that_hears_no_further_sign_of_a_successor_comes_back_by_itself() {
    let mut network = MemoryNetwork { step: LONG_STEP, ..MemoryNetwork::new() };
    network.run(100);
    network.cut.push((0, 1));
    for _ in 0..100 {
        let (frame, now) = (forged(&network, 1, false), network.local(0));
        network.clocks[0].as_mut().unwrap().on_frame(0, &frame, now, now);
        network.run(1);
        assert_eq!(network.clock(0).node().state(), NodeState::Root, "there are no waves that it could follow");
    }
    let (replaced, before) = (network.counters(0).replaced, network.clock(0).node().term());
    for _ in 0..10 {
        let (frame, now) = (forged(&network, 1, true), network.local(0));
        network.clocks[0].as_mut().unwrap().on_frame(0, &frame, now, now);
        // A forged time is no root's.
        network.lies = true;
        network.run(1);
    }
    assert_eq!((replaced, network.counters(0).replaced), (0, 1));
    network.run(200);
    network.cut.clear();
    network.run(200);
    let roots = network.clocks.iter().flatten().filter(|clock| clock.node().state() == NodeState::Root).count();
    assert!(roots == 1 && network.clock(0).node().term() > before, "{}", network.states());
    assert!((0..4).all(|node| network.clock(node).interval(network.local(node)).is_some()), "{}", network.states());
}

#[derive(Clone, Debug)]
enum Happening {
    Stop(usize, u64),
    Restart(usize, u64),
    Cut(usize, u64),
    Loss(u64, u64),
    Plan { root: usize, epoch: u32, turn: usize, told: usize, pause: u64 },
    Quiet(u64),
}

fn ms() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..5, 5u64..60, 60u64..300]
}

fn failure() -> impl Strategy<Value = Happening> {
    prop_oneof![
        3 => (0usize..4, ms()).prop_map(|(node, ms)| Happening::Stop(node, ms)),
        1 => (0usize..4, ms()).prop_map(|(node, ms)| Happening::Restart(node, ms)),
        2 => (0usize..5, ms()).prop_map(|(link, ms)| Happening::Cut(link, ms)),
        1 => (1u64..60, ms()).prop_map(|(percent, ms)| Happening::Loss(percent, ms)),
        1 => ms().prop_map(Happening::Quiet),
    ]
}

fn failure_or_plan() -> impl Strategy<Value = Happening> {
    prop_oneof![
        8 => failure(),
        3 => (0usize..4, 0u32..3, 0usize..4, 0usize..5, 0u64..40)
            .prop_map(|(root, epoch, turn, told, pause)| Happening::Plan { root, epoch, turn, told, pause }),
    ]
}

impl MemoryNetwork {
    fn happen(&mut self, what: &Happening) {
        match *what {
            Happening::Stop(node, ms) => self.stop(node, ms),
            Happening::Restart(node, ms) => {
                self.clocks[node] = None;
                self.run(ms);
                self.start(node);
            }
            Happening::Cut(link, ms) => {
                let [one, other] = EDGES[link].map(|end| end as usize);
                self.cut.push((one, other));
                self.run(ms);
                self.cut.clear();
            }
            Happening::Loss(percent, ms) => {
                self.loss_percent = percent;
                self.run(ms);
                self.loss_percent = 0;
            }
            // Each number has one plan.
            Happening::Plan { root, epoch, turn, told, pause } => {
                let plan = planned(root, 10 * epoch + root as u32 + 10);
                for node in 0..told {
                    self.tell(&plan, (node + turn) % 4);
                    self.run(pause);
                }
            }
            Happening::Quiet(ms) => self.run(ms),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// [`MemoryNetwork::judge`] looks at all intervals all the time.
    #[test]
    fn no_two_roots_stay_and_no_interval_is_wrong(
        story in prop::collection::vec(failure_or_plan(), 1..7),
        root in 0usize..4,
        turn in 0usize..4,
        new in any::<bool>(),
    ) {
        let mut network = MemoryNetwork { step: LONG_STEP, ..MemoryNetwork::new() };
        network.run(70);
        story.iter().for_each(|what| network.happen(what));
        // The last plan, maybe one that was given before, reaches everybody.
        let plan = planned(root, if new { 99 } else { 10 + root as u32 });
        (0..4).for_each(|node| network.tell(&plan, (node + turn) % 4));
        let took = network.run_until_it_follows(&plan, 1_000);
        prop_assert!(took.is_some(), "{} roots {:?}", network.states(), network.roots);
        network.run(200);
        prop_assert!(network.follows(&plan), "later: {}", network.states());
    }

    /// Nobody has to say anything if there is one plan: as soon as everybody lives and hears everybody, one root remains.
    #[test]
    fn without_a_plan_too_all_have_the_time_of_one_root(story in prop::collection::vec(failure(), 1..7)) {
        let mut network = MemoryNetwork { step: LONG_STEP, ..MemoryNetwork::new() };
        network.run(70);
        story.iter().for_each(|what| network.happen(what));
        network.run(1_000);
        let roots = network.clocks.iter().flatten().filter(|clock| clock.node().state() == NodeState::Root).count();
        prop_assert!(roots == 1, "{}", network.states());
        let term = network.clock(0).node().term();
        for node in 0..4 {
            let (clock, now) = (network.clock(node), network.local(node));
            prop_assert!(clock.interval(now).is_some() && clock.node().term() == term, "{}", network.states());
        }
    }
}
