//! Marzullo's algorithm over a mesh (§3.6.2): every node tells all its neighbours where it thinks that the time is, and keeps the
//! intersection of what it hears with what it knew.
//!
//! Nobody waits for anybody, so a hop costs what the sender's ε has grown by since the sender last heard something. The plan's
//! root and backup root are the masters: they show the true time. Every wave differs from the one before, so all are simulated.
//!
//! Invariant: the true time is in every node's interval, as long as oscillators keep their tolerance.

use clock::bound::{ClockInterval, DriftBound, ErrorBound};
use clock::graph::{Graph, GraphNode};
use faults::Random;
use sim::engine::EventQueue;
use units::samples::upper_median;
use units::{Progress, Span, Time};

use crate::ClockOutcome;
use crate::failure::ClockFailure;
use crate::oscillator::{DriftModel, Oscillators};
use crate::outcome::BoundBreaches;
use crate::scheme::ClockScheme;
use crate::setup::{ClockSetup, SetupError};

/// More messages than this are refused.
const MOST_MESSAGES: u64 = 2_000_000_000;
/// Divisor of a run: in this first part intervals are still shrinking, so it is not measured.
const WARM_UP: u64 = 4;
/// Samples of all nodes' ε.
const SAMPLES: u64 = 64;

#[derive(Clone, Copy, Debug)]
enum MeshEvent {
    Send(u32),
    Arrival { to: u32, link: u32, shown: Time, epsilon: Span },
    Tick,
    Failure(u32),
    Sample,
    End,
}

/// Time as a node knows it: an interval, and since when it grows.
#[derive(Clone, Copy, Debug)]
struct KnownTime {
    reading: Time,
    bound: ErrorBound,
}

struct Mesh<'a> {
    setup: &'a ClockSetup<'a>,
    graph: Graph,
    drift: DriftBound,
    queue: EventQueue<MeshEvent>,
    oscillators: Oscillators,
    known: Vec<Option<KnownTime>>,
    is_master: Vec<bool>,
    ways: Random,
    samples: Vec<u64>,
    failed: bool,
    end: Time,
    outcome: ClockOutcome,
    worst_margin: i64,
    breaches: BoundBreaches,
}

/// Runs it.
pub(crate) fn simulate(setup: &ClockSetup<'_>, progress: &dyn Progress) -> Result<ClockOutcome, SetupError> {
    let rounds = setup.duration.as_ps() / setup.node.interval.as_ps().max(1) + 1;
    let links = setup.graph.link_count().max(1) as u64;
    if rounds.saturating_mul(2 * links) > MOST_MESSAGES {
        let most = setup.node.interval * (MOST_MESSAGES / (2 * links)).max(1);
        return Err(SetupError::TooLong { scheme: ClockScheme::Marzullo, most });
    }
    let broken = match &setup.drift {
        DriftModel::Broken(name, _) => {
            Some(setup.graph.node_named(name).ok_or_else(|| SetupError::UnknownNode(name.clone()))?.index())
        }
        _ => None,
    };
    Ok(Mesh::new(setup, broken).run(progress))
}

impl<'a> Mesh<'a> {
    fn new(setup: &'a ClockSetup<'a>, broken: Option<usize>) -> Self {
        let nodes = setup.graph.node_count();
        let root = setup.plan.root.index();
        let mut is_master = vec![false; nodes];
        is_master[root] = true;
        is_master[setup.plan.backup_root.index()] = true;
        Self {
            setup,
            graph: setup.graph.clone(),
            drift: setup.node.drift,
            queue: EventQueue::default(),
            oscillators: Oscillators::new(setup.drift.clone(), nodes, root, broken, setup.duration, setup.seed),
            known: vec![None; nodes],
            is_master,
            ways: Random::new(setup.seed, 3),
            samples: Vec::new(),
            failed: false,
            end: Time::ZERO + setup.duration,
            outcome: ClockOutcome { scheme: setup.scheme.to_string(), nodes, ..ClockOutcome::default() },
            worst_margin: i64::MAX,
            breaches: BoundBreaches::none(nodes),
        }
    }

    fn start(&mut self) {
        for node in 0..self.known.len() {
            let phase = Span::from_ps(self.ways.below(self.setup.node.interval.as_ps()));
            self.queue.schedule(Time::ZERO + phase, MeshEvent::Send(node as u32));
        }
        for (place, failure) in self.setup.failures.iter().enumerate().filter(|(_, failure)| failure.at < self.end) {
            self.queue.schedule(failure.at, MeshEvent::Failure(place as u32));
        }
        if !matches!(self.setup.drift, DriftModel::Constant | DriftModel::Broken(..)) {
            self.queue.schedule(Time::ZERO + self.oscillators.tick, MeshEvent::Tick);
        }
        let measured = self.setup.duration - self.setup.duration / WARM_UP;
        for sample in 0..SAMPLES {
            let at = Time::ZERO + self.setup.duration / WARM_UP + measured / SAMPLES * sample;
            self.queue.schedule(at, MeshEvent::Sample);
        }
        self.queue.schedule(self.end, MeshEvent::End);
    }

    fn run(mut self, progress: &dyn Progress) -> ClockOutcome {
        self.start();
        while let Some((at, event)) = self.queue.take() {
            self.outcome.events += 1;
            if self.outcome.events.is_multiple_of(1 << 16) {
                progress.simulated(at, at.as_ps() as f64 / self.end.as_ps().max(1) as f64);
                if !progress.go_on(self.outcome.events) {
                    self.outcome.interrupted = true;
                    break;
                }
            }
            match event {
                MeshEvent::Send(node) => self.send(at, node),
                MeshEvent::Arrival { to, link, shown, epsilon } => self.hear(at, to as usize, link, shown, epsilon),
                MeshEvent::Tick => {
                    self.oscillators.advance(at);
                    self.queue.schedule(at + self.oscillators.tick, MeshEvent::Tick);
                }
                MeshEvent::Failure(place) => self.fail(place as usize),
                MeshEvent::Sample => self.sample(at),
                MeshEvent::End => break,
            }
        }
        self.finish()
    }

    /// A node's interval; none if it knows no time.
    fn interval(&self, at: Time, node: usize) -> Option<(Time, Span)> {
        if self.is_master[node] {
            return Some((at, Span::ZERO));
        }
        let now = self.oscillators.local(node, at);
        self.known[node].map(|known| (known.reading + now.since(known.bound.since), known.bound.at(now, self.drift)))
    }

    fn send(&mut self, at: Time, node: u32) {
        let interval = self.setup.node.interval;
        let next = self.oscillators.local(node as usize, at) + interval;
        self.queue.schedule(self.oscillators.when(node as usize, next).max(at), MeshEvent::Send(node));
        if self.graph.is_failed(GraphNode(node)) {
            return;
        }
        self.outcome.waves += u64::from(node as usize == self.setup.plan.root.index());
        let Some((reading, epsilon)) = self.interval(at, node as usize) else { return };
        let dwell = self.setup.node.per_hop.dwell;
        for place in 0..self.graph.neighbours(GraphNode(node)).len() {
            let (to, link) = self.graph.neighbours(GraphNode(node))[place];
            let arrival = MeshEvent::Arrival { to: to.0, link: link.0, shown: reading + dwell, epsilon };
            self.queue.schedule(at + dwell, arrival);
        }
    }

    fn hear(&mut self, at: Time, node: usize, link: u32, shown: Time, epsilon: Span) {
        let gone =
            self.graph.is_failed(GraphNode(node as u32)) || self.graph.is_link_failed(clock::graph::GraphLink(link));
        let lost = self.setup.loss > 0.0 && self.ways.unit() < self.setup.loss;
        if gone || lost || self.is_master[node] {
            return;
        }
        let most = self.setup.node.per_hop.measurement.as_ps().saturating_sub(10);
        let error = self.ways.below(2 * most + 1) as i64 - most as i64;
        let shown = Time::from_ps(shown.as_ps().saturating_add_signed(error));
        let claimed = ClockInterval::around(shown, epsilon + self.setup.node.per_hop.total(self.drift));
        self.check(at, node);
        let own = self.interval(at, node).map(|(reading, epsilon)| ClockInterval::around(reading, epsilon));
        let both = match own {
            None => Some(claimed),
            Some(own) => own.intersection(claimed),
        };
        let Some(both) = both else {
            self.outcome.rejected += 1;
            return;
        };
        let since = self.oscillators.local(node, at);
        self.known[node] = Some(KnownTime { reading: both.middle(), bound: ErrorBound { base: both.half(), since } });
        self.check(at, node);
    }

    fn check(&mut self, at: Time, node: usize) {
        let Some((reading, epsilon)) = self.interval(at, node) else { return };
        let error = reading.as_ps().abs_diff(at.as_ps());
        let margin = epsilon.as_ps() as i64 - error as i64;
        self.worst_margin = self.worst_margin.min(margin);
        if margin < 0 {
            self.breaches.record(at, node);
        }
    }

    fn fail(&mut self, place: usize) {
        match self.setup.failures[place].what {
            ClockFailure::Link(link) => self.graph.fail_link(link),
            ClockFailure::Node(node) => self.graph.fail_node(node),
            ClockFailure::Domain(domain) => self.graph.fail_domain(domain),
            ClockFailure::Root => self.graph.fail_node(self.setup.plan.root),
        }
        self.failed = true;
    }

    fn sample(&mut self, at: Time) {
        for node in 0..self.known.len() {
            if self.is_master[node] || self.graph.is_failed(GraphNode(node as u32)) {
                continue;
            }
            self.check(at, node);
            let Some((_, epsilon)) = self.interval(at, node) else { continue };
            let ns = epsilon.as_ps() as f64 / 1e3;
            let outcome = &mut self.outcome;
            let largest = if self.failed { &mut outcome.eps_failure_max_ns } else { &mut outcome.eps_normal_max_ns };
            *largest = largest.max(ns);
            if !self.failed {
                self.samples.push(epsilon.as_ps());
            }
        }
    }

    fn finish(mut self) -> ClockOutcome {
        if let Some(ps) = upper_median(&mut self.samples) {
            self.outcome.eps_p50_ns = ps as f64 / 1e3;
        }
        if self.worst_margin < i64::MAX {
            self.outcome.worst_margin_ns = self.worst_margin as f64 / 1e3;
        }
        self.breaches.write(&mut self.outcome);
        self.outcome
    }
}
