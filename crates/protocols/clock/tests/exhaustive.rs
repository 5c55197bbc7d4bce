//! Every pattern of lost messages over a ring of four nodes within five waves, with a root that lives or dies.
//!
//! ```text
//!        0 root                  parents: 1 → 0, 3 → 0, 2 → 3
//!       ╱ ╲                      backups: 1 → 2, 2 → 1, 3 → 2
//!      1   3      1: backup root
//!       ╲ ╱
//!        2                       the loop of backup edges: 1, 2
//! ```
//!
//! A choice is made for each message that somebody listens to, so patterns that nobody could tell apart are tried once.

use clock::bound::ClockInterval;
use clock::node::{
    ClockNode, Neighbour, NodeNote, NodeOut, NodeParams, NodeState, PlanPart, PlannedRole, SyncArrival, Upstream,
};
use units::{Span, Time};
use wire::sync::{SyncMessage, SyncTerm};

const PARAMS: NodeParams = NodeParams::THESIS;
const PARTS_PER_MILLION: [i64; 4] = [-100, 100, -60, 100];
/// Nodes that hear the messages of each node.
const LISTENERS: [&[usize]; 4] = [&[1, 3], &[2], &[1, 3], &[2]];
const ROOT: usize = 0;
const BACKUP_ROOT: usize = 1;
/// The first wave reaches everybody: who never heard a root does not become one.
const WAVES_WITH_CHOICES: std::ops::RangeInclusive<u64> = 2..=6;

/// Reading of an oscillator at a true time.
fn local(node: usize, at: u64) -> Time {
    let drift = at as i64 * PARTS_PER_MILLION[node] / 1_000_000;
    Time::from_ps((1_000_000_000_000 * (node as i64 + 1) + at as i64 + drift) as u64)
}

/// The first true time at which an oscillator shows `shown`.
fn true_time(node: usize, shown: Time) -> u64 {
    let passed = shown.as_ps() - 1_000_000_000_000 * (node as u64 + 1);
    let mut at = passed as i64 - passed as i64 * PARTS_PER_MILLION[node] / 1_000_000;
    // Twice is enough: the drift of the drift is below a picosecond within a millisecond, or nearly.
    at = (passed as i64 - at * PARTS_PER_MILLION[node] / 1_000_000 - 8).max(0);
    let mut at = at as u64;
    while local(node, at) < shown {
        at += 1;
    }
    at
}

#[derive(Default)]
struct Sink {
    sent: Vec<SyncMessage>,
    elected: bool,
}

impl NodeOut for Sink {
    fn send(&mut self, message: SyncMessage) {
        self.sent.push(message);
    }

    fn note(&mut self, note: NodeNote) {
        self.elected |= note == NodeNote::Elected;
    }
}

struct Ring {
    nodes: Vec<ClockNode>,
    /// In the order of their arrival.
    flying: Vec<(u64, usize, usize, SyncMessage)>,
    sent: Vec<Vec<(SyncTerm, u64)>>,
    root_dies_at: u64,
    elected: Option<u64>,
    /// Messages that somebody would have heard and that were lost since the backup root last heard one.
    lost_in_a_row: u32,
}

/// Decisions on which messages are lost, in the order in which the question arises.
#[derive(Default)]
struct LossChoices {
    made: Vec<bool>,
    asked: usize,
}

impl LossChoices {
    fn next(&mut self) -> bool {
        if self.asked == self.made.len() {
            self.made.push(false);
        }
        self.asked += 1;
        self.made[self.asked - 1]
    }

    /// The next pattern, unless this was the last.
    fn advance(&mut self) -> bool {
        self.asked = 0;
        while self.made.pop_if(|lost| *lost).is_some() {}
        self.made.last_mut().map(|lost| *lost = true).is_some()
    }
}

fn part(node: usize) -> PlanPart {
    let upstream = |neighbour, depth| Upstream { neighbour: Neighbour(neighbour), depth };
    let follower =
        |parent, backup| PlannedRole::Follower { parent, backup: Some(backup), backup_root: node == BACKUP_ROOT };
    let role = match node {
        1 => follower(upstream(0, 1), upstream(2, 3)),
        2 => follower(upstream(3, 2), upstream(1, 2)),
        3 => follower(upstream(0, 1), upstream(2, 3)),
        _ => PlannedRole::Root,
    };
    PlanPart { plan: 1, role }
}

impl Ring {
    fn new(root_dies_at: u64) -> Self {
        let nodes = (0..4).map(|node| ClockNode::new(&PARAMS, node as u32, part(node), local(node, 0))).collect();
        Self { nodes, flying: Vec::new(), sent: vec![Vec::new(); 4], root_dies_at, elected: None, lost_in_a_row: 0 }
    }

    /// The next event: a deadline or an arrival.
    fn next(&self) -> (u64, Option<usize>) {
        let due = |node: usize| {
            let deadline = self.nodes[node].deadline(&PARAMS)?;
            let at = true_time(node, deadline);
            (node != ROOT || at < self.root_dies_at).then_some((at, Some(node)))
        };
        let deadline = (0..4).filter_map(due).min().unwrap_or((u64::MAX, None));
        let arrival = self.flying.first().map_or((u64::MAX, None), |first| (first.0, None));
        arrival.min(deadline)
    }

    fn run(&mut self, until: u64, choices: &mut LossChoices) {
        loop {
            let (at, node) = self.next();
            if at > until {
                return;
            }
            match node {
                Some(node) => self.call(node, at, |machine, now, out| machine.on_time(&PARAMS, now, out)),
                None => self.arrive(choices),
            }
        }
    }

    fn arrive(&mut self, choices: &mut LossChoices) {
        let (at, from, to, message) = self.flying.remove(0);
        let neighbour = Neighbour(from as u32);
        let heard = self.nodes[to].listens_to() == Some(neighbour);
        if heard && WAVES_WITH_CHOICES.contains(&message.wave) && choices.next() {
            self.lost_in_a_row += 1;
            return;
        }
        if heard && to == BACKUP_ROOT {
            self.lost_in_a_row = 0;
        }
        // The way is measured too long or too short, by which end it is.
        let error = if from < to { 4_990 } else { -4_990 };
        let way = Span::from_ps((250_000 + error) as u64);
        let sender = ClockInterval::exactly(message.timestamp + message.correction + way);
        let arrival = SyncArrival { message, sender };
        self.call(to, at, |machine, now, out| machine.on_message(&PARAMS, now, neighbour, &arrival, out));
    }

    /// Calls a node, checks it before and after, and puts what it sends on the wire.
    fn call(&mut self, node: usize, at: u64, act: impl FnOnce(&mut ClockNode, Time, &mut Sink)) {
        let now = local(node, at);
        self.check(node, at);
        let mut out = Sink::default();
        act(&mut self.nodes[node], now, &mut out);
        self.check(node, at);
        if out.elected {
            self.on_election(node, at);
        }
        for mut message in out.sent {
            let id = (message.term, message.wave);
            assert!(self.sent[node].last().is_none_or(|last| *last < id), "{node} sends {id:?} again");
            self.sent[node].push(id);
            let leaves = at + 250_000;
            message.correction = local(node, leaves).since(now);
            self.flying.extend(LISTENERS[node].iter().map(|to| (leaves + 250_000, node, *to, message)));
        }
        self.flying.sort_by_key(|arrival| arrival.0);
    }

    fn check(&self, node: usize, at: u64) {
        let machine = &self.nodes[node];
        let now = local(node, at);
        let reference = if machine.epoch().elected { BACKUP_ROOT } else { ROOT };
        let Some(interval) = machine.interval(&PARAMS, now) else { return };
        let truth = self.nodes[reference].reading(local(reference, at)).expect("a root has a time");
        let contains = interval.earliest <= truth && truth <= interval.latest;
        assert!(contains, "{node} at {at}: {truth:?} is not in {interval:?}");
    }

    /// While the first root lives, another may arise only from a loop of nodes that listen to each
    /// other, or because four waves in a row were lost.
    fn on_election(&mut self, node: usize, at: u64) {
        assert_eq!((node, self.elected), (BACKUP_ROOT, None));
        self.elected = Some(at);
        if at < self.root_dies_at {
            let loop_is_closed = self.nodes[2].state() == NodeState::Turned;
            assert!(loop_is_closed || self.lost_in_a_row >= 4, "its backup parent listens elsewhere, and was heard");
        }
    }
}

/// Runs every pattern; patterns, patterns with an election.
fn explore(root_dies_at: u64) -> (u64, u64) {
    let (mut choices, mut patterns, mut elections) = (LossChoices::default(), 0, 0);
    loop {
        let mut ring = Ring::new(root_dies_at);
        ring.run(1_400_000_000, &mut choices);
        patterns += 1;
        elections += u64::from(ring.elected.is_some());
        let losses = choices.made.iter().filter(|lost| **lost).count();
        assert!(losses >= 4 || ring.elected.is_none() || root_dies_at < u64::MAX, "{:?}", choices.made);
        let last = ring.nodes.iter().map(ClockNode::wave).max().expect("four nodes");
        for (node, machine) in ring.nodes.iter().enumerate().filter(|(node, _)| *node != ROOT) {
            let recovered = machine.wave() + 2 >= last || ring.elected.is_some() || root_dies_at < u64::MAX;
            assert!(recovered, "{node} is silent after {:?}", choices.made);
        }
        if !choices.advance() {
            return (patterns, elections);
        }
    }
}

#[test]
fn every_pattern_of_losses_while_the_root_lives() {
    let (patterns, elections) = explore(u64::MAX);
    assert!(patterns > 1_000, "{patterns}");
    assert!(elections > 0 && elections < patterns, "four losses at the wrong places: {elections} of {patterns}");
}

#[test]
fn every_pattern_of_losses_when_the_root_dies_after_any_wave() {
    for wave in WAVES_WITH_CHOICES {
        let (patterns, elections) = explore(wave * 90_000_000 + 45_000_000);
        assert!(patterns >= 1 << (wave - 1) && elections == patterns, "{wave}: {elections} of {patterns}");
    }
}
