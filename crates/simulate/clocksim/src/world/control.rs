//! Failures, repairs, the controller that answers both with a new plan, and the end of a run.

use clock::graph::GraphNode;
use clock::plan::{PlanRequest, plan};
use units::samples::upper_median;
use units::{Span, Time};

use super::tally::FailureClass;
use super::{ClockEvent, ClockWorld};
use crate::ClockOutcome;
use crate::failure::ClockFailure;
use crate::machines::SimulatedClock;
use crate::outcome::{ChainEnd, DepthBounds, SecondRoot};
use crate::wiring::{NOBODY, Wiring, part};

impl<M: SimulatedClock> ClockWorld<'_, M> {
    pub(super) fn fail(&mut self, at: Time, place: usize) {
        let root = self.living_root();
        if let (ClockFailure::Root, Some(root)) = (self.failures[place].what, root) {
            self.failures[place].what = ClockFailure::Node(GraphNode(root as u32));
        }
        self.mark_failures(at);
        let killed = root.is_some_and(|root| self.node_down[root]);
        self.tally.kind = if killed { FailureClass::Root } else { FailureClass::SparesRoot };
        self.tally.log(at, None, if killed { "root fails" } else { "failure" }, None);
        self.disturbed = at;
        self.schedule_control(at);
    }

    pub(super) fn repair(&mut self, at: Time, _: usize) {
        let before = self.node_down.clone();
        self.mark_failures(at);
        for (node, was_down) in before.into_iter().enumerate() {
            if was_down && !self.node_down[node] {
                // Whatever it was before, it comes back knowing nothing, and waits for a plan.
                let part = clock::node::PlanPart { plan: self.plan_number, role: NOBODY };
                self.nodes[node] = M::new(&self.params, self.next_identity, part, self.oscillators.local(node, at));
                self.next_identity += 1;
                self.tally.forget(node);
            }
        }
        self.tally.log(at, None, "repair", None);
        self.disturbed = at;
        self.schedule_control(at);
    }

    /// Marks the parts that are down now, by all failures.
    fn mark_failures(&mut self, at: Time) {
        self.graph = self.setup.graph.clone();
        for failure in self.failures.iter().filter(|failure| failure.at <= at && at < failure.until) {
            match failure.what {
                ClockFailure::Link(link) => self.graph.fail_link(link),
                ClockFailure::Node(node) => self.graph.fail_node(node),
                ClockFailure::Domain(domain) => self.graph.fail_domain(domain),
                ClockFailure::Root => {}
            }
        }
        for node in self.setup.graph.nodes() {
            let absent = self.setup.plan.depth[node.index()].is_none();
            self.node_down[node.index()] = self.graph.is_failed(node) || absent;
        }
        for link in self.setup.graph.links() {
            self.link_down[link.index()] = self.graph.is_link_failed(link);
        }
    }

    /// The living root of the latest term.
    fn living_root(&self) -> Option<usize> {
        let roots = (0..self.nodes.len()).filter(|node| !self.node_down[*node] && self.nodes[*node].is_root());
        roots.max_by_key(|node| self.nodes[*node].term())
    }

    /// Tells the controller of a turn; it will answer, unless an answer is due anyway.
    pub(super) fn request_control(&mut self, at: Time) {
        if self.controls.is_empty() {
            self.schedule_control(at);
        }
    }

    fn schedule_control(&mut self, at: Time) {
        self.tally.planned_since = None;
        let answer = at + self.setup.controller;
        if answer < self.end {
            self.controls.push(answer);
            self.queue.schedule(answer, ClockEvent::Control);
        }
    }

    pub(super) fn control(&mut self, at: Time) {
        self.controls.retain(|pending| *pending > at);
        if at < self.told_until {
            // A node knows what to think of the plan after its own, not of the one after that: one plan at a time.
            self.controls.push(self.told_until);
            return self.queue.schedule(self.told_until, ClockEvent::Control);
        }
        let usable = |node: usize| (!self.node_down[node]).then_some(GraphNode(node as u32));
        let root = self.living_root().and_then(usable).or_else(|| usable(self.plan.backup_root.index()));
        let request = PlanRequest { root, ..PlanRequest::default() };
        let found = plan(&self.graph, &request).or_else(|_| plan(&self.graph, &PlanRequest::default()));
        let before = self.plan.clone();
        if let Ok(found) = found {
            self.plan = found;
        }
        self.plan_number += 1;
        self.wiring = Wiring::of(&self.plan, Some(&before), self.setup.scheme);
        self.tally.is_first_plan = false;
        self.tally.log(at, None, "plan", None);
        // Top-down, so that whoever has been told has its new way to the root, and the others meet one who has been told.
        self.told = (0..self.nodes.len() as u32).filter(|node| !self.node_down[*node as usize]).collect();
        self.told.sort_by_key(|node| self.plan.depth[*node as usize]);
        let (rollout, count) = (self.setup.rollout, self.told.len() as u64);
        self.told_until = at + rollout;
        for place in 0..count {
            // The last one is told at the end.
            let when =
                at + Span::from_ps((u128::from(rollout.as_ps()) * u128::from(place + 1) / u128::from(count)) as u64);
            match rollout {
                Span::ZERO => self.tell(at, place as usize),
                _ if when < self.end => self.queue.schedule(when, ClockEvent::Tell(place as u32)),
                _ => {}
            }
        }
    }

    /// One node is told its part of the plan.
    pub(super) fn tell(&mut self, at: Time, place: usize) {
        let node = self.told[place] as usize;
        self.disturbed = at;
        let part = part(&self.plan, self.plan_number, node, self.setup.scheme).filter(|_| !self.node_down[node]);
        if let Some(part) = part {
            self.call(at, node, |machine, params, now, out| machine.on_plan(params, now, part, out));
        }
        if place + 1 == self.told.len() {
            self.wiring = Wiring::of(&self.plan, None, self.setup.scheme);
            self.tally.planned_since = self.controls.is_empty().then_some(at);
        }
    }

    /// Counts an election, and whether it was needed.
    pub(super) fn on_election(&mut self, at: Time, node: usize) {
        self.tally.elections += 1;
        let recently = Time::from_ps(at.as_ps().saturating_sub((self.interval * 2).as_ps()));
        let rival = |place: &usize| *place != node && self.nodes[*place].is_root() && !self.node_down[*place];
        let Some(rival) = (0..self.nodes.len()).find(rival) else { return };
        let term = self.nodes[rival].term();
        let follows = |place: usize| {
            let machine = &self.nodes[place];
            let lives = !self.node_down[place] && place != node && machine.listens_to().is_some();
            lives && machine.term() == term && self.tally.has_heard_since(place, recently)
        };
        if (0..self.nodes.len()).any(follows) {
            let (chain, end) = self.chain(node);
            let at_us = at.since(Time::ZERO).as_us();
            self.tally.second_roots.push(SecondRoot { at_us, node: node as u32, chain, end });
        }
    }

    /// Nodes through which the backup root would have heard of the root.
    fn chain(&self, from: usize) -> (Vec<u32>, ChainEnd) {
        let mut chain = vec![from as u32];
        let mut next = self.plan.backup[from].map(|up| (up.node.0, up.link.0));
        while let Some((node, link)) = next {
            if chain.contains(&node) {
                return (chain, ChainEnd::Loop);
            }
            chain.push(node);
            if self.node_down[node as usize] || self.link_down[link as usize] {
                return (chain, ChainEnd::Failed);
            }
            if self.nodes[node as usize].is_root() {
                return (chain, ChainEnd::Loss);
            }
            let place = node as usize;
            let heard = self.nodes[place].listens_to();
            let uplinks = [self.plan.parent[place], self.plan.backup[place]];
            let current = uplinks.into_iter().flatten().find(|up| heard.is_some_and(|heard| heard.0 == up.node.0));
            next = current.map(|up| (up.node.0, up.link.0));
        }
        (chain, ChainEnd::Failed)
    }

    pub(super) fn finish(mut self) -> ClockOutcome {
        let end = self.queue.now();
        for node in 0..self.nodes.len() {
            if !self.node_down[node] && !self.nodes[node].is_root() {
                let seen = self.observe(end, node);
                self.tally.check(end, node, seen);
                self.tally.still_silent(end, node, seen);
            }
        }
        let eps_p50_ns = self.median_epsilon(end);
        let tally = self.tally;
        let ns = |span: Span| span.as_ps() as f64 / 1e3;
        let (affected, affected_switches) = tally.affected();
        let mut outcome = ClockOutcome {
            scheme: self.setup.scheme.to_string(),
            nodes: self.nodes.len(),
            eps_normal_max_ns: ns(tally.normal),
            eps_p50_ns,
            eps_turned_max_ns: ns(tally.turned),
            eps_failure_max_ns: ns(tally.failure),
            eps_root_max_ns: ns(tally.root),
            recovery_us_max: tally.recovery.as_us(),
            root_recovery_us: tally.root_recovery.as_us(),
            affected,
            affected_switches,
            silences_switches: tally.silences_switches,
            impacted_ms: tally.impacted_ps as f64 / 1e9,
            impacted_switches_ms: tally.impacted_switches_ps as f64 / 1e9,
            turns: tally.turns,
            elections: tally.elections,
            second_roots: tally.second_roots.len() as u64,
            rejected: tally.rejected,
            evicted: tally.evicted,
            worst_margin_ns: if tally.worst_margin == i64::MAX { 0.0 } else { tally.worst_margin as f64 / 1e3 },
            handover_max_ns: ns(tally.handover),
            waves: tally.waves,
            events: tally.events,
            by_depth: tally
                .by_depth
                .iter()
                .map(|(normal, failure)| DepthBounds { normal_ns: ns(*normal), failure_ns: ns(*failure) })
                .collect(),
            interrupted: tally.interrupted,
            second_root_causes: tally.second_roots,
            log: tally.rows,
            ..ClockOutcome::default()
        };
        tally.breaches.write(&mut outcome);
        outcome
    }

    /// Median of ε over all nodes at all times between two messages, as they are at the end: each node's ε grows from what
    /// it is after a message to what it is an interval later.
    fn median_epsilon(&self, end: Time) -> f64 {
        const PHASES: u64 = 16;
        let mut samples = Vec::new();
        for node in (0..self.nodes.len()).filter(|node| !self.node_down[*node]) {
            let Some(heard) = self.tally.last_heard(node).or(self.nodes[node].is_root().then_some(end)) else {
                continue;
            };
            let since = self.oscillators.local(node, end);
            let since = Time::from_ps(since.as_ps().saturating_sub(end.since(heard).as_ps()));
            for phase in 0..PHASES {
                let now = since + self.interval * (2 * phase + 1) / (2 * PHASES);
                samples.extend(self.nodes[node].epsilon(&self.params, now).map(Span::as_ps));
            }
        }
        upper_median(&mut samples).map_or(0.0, |ps| ps as f64 / 1e3)
    }
}
