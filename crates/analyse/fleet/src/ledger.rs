//! A fabric in operation: which links corrupt, are protected or disabled, and what that amounts to.
//!
//! The metrics of LinkGuardian §4.8 (total penalty, least paths of a ToR, least capacity of a pod) and the number of
//! protected links in a switch's pipe (§5) follow every change; none is ever added up anew.
//!
//! ```text
//!            corrupt             disable
//!   Healthy ─────────▶ Corrupting ───────▶ Disabled
//!      ▲               (perhaps protected)     │
//!      └────────────── repair ─────────────────┘
//! ```

mod check;

use crate::corropt::CandidateLink;
use crate::fabric::{Fabric, LinkId, SwitchId};
use crate::paths::{Constraint, Paths};
use crate::penalty::Penalty;
use crate::protection::Protection;
use crate::tournament_tree::TournamentTree;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkState {
    Healthy,
    Corrupting { loss: f64, protection: Option<Protection> },
    Disabled,
}

/// Terms that do not depend on the links' states.
#[derive(Clone, Copy, Debug)]
pub struct LedgerTerms {
    pub constraint: Constraint,
    /// Loss of a healthy link, so that a network without a corrupting link has a penalty that can be divided by.
    pub healthy_loss: f64,
    pub pipes: PipeLayout,
}

/// Layout of a switch's ports on pipes. Ports are numbered as a switch's links are: those down first, then those up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeLayout {
    /// Number of ports in a pipe, at least one.
    pub ports: u32,
    pub numbering: PipeNumbering,
}

impl Default for PipeLayout {
    fn default() -> Self {
        Self { ports: 16, numbering: PipeNumbering::default() }
    }
}

/// Order in which the ports of a switch are dealt to its pipes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PipeNumbering {
    /// Deals ports to pipes in turn, as the simulator of LinkGuardian's authors does. A switch has at least two pipes,
    /// since its servers' ports take part as well.
    #[default]
    RoundRobin,
    /// Ports fill one pipe after the other.
    Contiguous,
}

impl PipeLayout {
    fn pipes(self, ports: u32) -> u32 {
        let pipes = ports.div_ceil(self.ports);
        match self.numbering {
            PipeNumbering::RoundRobin => pipes.max(2),
            PipeNumbering::Contiguous => pipes,
        }
    }

    fn pipe(self, port: u32, pipes: u32) -> u32 {
        match self.numbering {
            PipeNumbering::RoundRobin => port % pipes,
            PipeNumbering::Contiguous => port / self.ports,
        }
    }
}

/// Totals over the states of all links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LedgerTotals {
    /// Sum of the losses of enabled links, as protection leaves them.
    pub penalty: Penalty,
    /// Paths of the ToR that has fewest.
    pub least_paths: u64,
    /// The least share of its paths that a ToR has.
    pub least_share: f64,
    /// The least share of its capacity that a pod has.
    pub least_capacity: f64,
    pub disabled: u32,
    /// Enabled and corrupting, protected or not.
    pub corrupting: u32,
    pub protected: u32,
    /// Most protected links that share a pipe of a switch.
    pub most_in_a_pipe: u32,
}

#[derive(Debug)]
pub struct Ledger<'f> {
    paths: Paths<'f>,
    states: Vec<LinkState>,
    healthy: Penalty,
    /// Corrupting links of each segment, in the order in which they began.
    corrupting: Vec<Vec<LinkId>>,
    totals: LedgerTotals,
    least_paths: TournamentTree<u64>,
    least_share: TournamentTree<f64>,
    capacity: Capacity,
    pipes: Pipes,
}

impl<'f> Ledger<'f> {
    /// Ledger of a fabric without faults.
    pub fn new(fabric: &'f Fabric, terms: LedgerTerms) -> Self {
        let paths = Paths::new(fabric, terms.constraint);
        let healthy = Penalty::of_loss(terms.healthy_loss);
        let least: Vec<u64> = fabric.segments().iter().map(|s| least_paths(&paths, &s.tors)).collect();
        let least_paths = TournamentTree::new(&least, u64::MAX);
        let totals = LedgerTotals {
            penalty: fabric.links().iter().map(|_| healthy).sum(),
            least_paths: least_paths.get(),
            least_share: 1.0,
            least_capacity: 1.0,
            disabled: 0,
            corrupting: 0,
            protected: 0,
            most_in_a_pipe: 0,
        };
        Self {
            states: vec![LinkState::Healthy; fabric.links().len()],
            healthy,
            corrupting: vec![Vec::new(); fabric.segments().len()],
            totals,
            least_paths,
            least_share: TournamentTree::new(&vec![1.0; fabric.segments().len()], 1.0),
            capacity: Capacity::new(fabric),
            pipes: Pipes::new(fabric, terms.pipes),
            paths,
        }
    }

    pub fn fabric(&self) -> &'f Fabric {
        self.paths.fabric()
    }

    pub fn paths(&self) -> &Paths<'f> {
        &self.paths
    }

    /// Paths for checks and searches, which restore them before they return.
    pub(crate) fn paths_mut(&mut self) -> &mut Paths<'f> {
        &mut self.paths
    }

    pub fn state(&self, link: LinkId) -> LinkState {
        self.states[link.index()]
    }

    pub fn totals(&self) -> LedgerTotals {
        LedgerTotals { most_in_a_pipe: self.pipes.most(), ..self.totals }
    }

    /// Corrupting links of a segment that are still enabled, with what each would cost without protection.
    pub fn candidates(&self, segment: u32) -> Vec<CandidateLink> {
        let links = self.corrupting[segment as usize].iter();
        links
            .filter_map(|&link| match self.state(link) {
                LinkState::Corrupting { loss, .. } => Some(CandidateLink { link, penalty: Penalty::of_loss(loss) }),
                LinkState::Healthy | LinkState::Disabled => None,
            })
            .collect()
    }

    /// A link that is not disabled loses from now on, and is protected or not.
    pub fn corrupt(&mut self, link: LinkId, loss: f64, protection: Option<Protection>) {
        assert!(self.state(link) != LinkState::Disabled, "a disabled link cannot corrupt");
        self.set(link, LinkState::Corrupting { loss, protection });
    }

    pub fn disable(&mut self, link: LinkId) {
        self.paths.disable(link);
        self.set(link, LinkState::Disabled);
    }

    /// A corrupting or disabled link is healthy again, and enabled.
    pub fn repair(&mut self, link: LinkId) {
        if self.state(link) == LinkState::Disabled {
            self.paths.enable(link);
        }
        self.set(link, LinkState::Healthy);
    }

    fn set(&mut self, link: LinkId, state: LinkState) {
        let before = std::mem::replace(&mut self.states[link.index()], state);
        let segment = self.fabric().link(link).segment as usize;
        self.totals.penalty = self.totals.penalty + self.penalty(state) - self.penalty(before);
        let corrupting = |state| matches!(state, LinkState::Corrupting { .. });
        match (corrupting(before), corrupting(state)) {
            (false, true) => self.corrupting[segment].push(link),
            (true, false) => self.corrupting[segment].retain(|&other| other != link),
            _ => {}
        }
        self.count(before, u32::wrapping_sub);
        self.count(state, u32::wrapping_add);
        self.move_pipes(link, protection(before).is_some(), protection(state).is_some());
        if (before == LinkState::Disabled) != (state == LinkState::Disabled) {
            self.recount_paths(segment);
        }
        self.capacity.change(self.paths.fabric(), link, speed(before), speed(state));
        self.totals.least_capacity = self.capacity.least.get();
    }

    fn penalty(&self, state: LinkState) -> Penalty {
        match state {
            LinkState::Healthy => self.healthy,
            LinkState::Corrupting { loss, protection } => Penalty::of_loss(protection.map_or(loss, |p| p.loss)),
            LinkState::Disabled => Penalty::ZERO,
        }
    }

    fn count(&mut self, state: LinkState, step: fn(u32, u32) -> u32) {
        let totals = &mut self.totals;
        match state {
            LinkState::Healthy => {}
            LinkState::Corrupting { protection, .. } => {
                totals.corrupting = step(totals.corrupting, 1);
                totals.protected = step(totals.protected, u32::from(protection.is_some()));
            }
            LinkState::Disabled => totals.disabled = step(totals.disabled, 1),
        }
    }

    fn move_pipes(&mut self, link: LinkId, before: bool, now: bool) {
        match (before, now) {
            (false, true) => self.pipes.add(link),
            (true, false) => self.pipes.remove(link),
            _ => {}
        }
    }

    fn recount_paths(&mut self, segment: usize) {
        let tors = &self.paths.fabric().segments()[segment].tors;
        self.least_paths.set(segment, least_paths(&self.paths, tors));
        let share = |&tor: &SwitchId| self.paths.ways(tor) as f64 / self.paths.full(tor) as f64;
        self.least_share.set(segment, tors.iter().map(share).fold(1.0, f64::min));
        self.totals.least_paths = self.least_paths.get();
        self.totals.least_share = self.least_share.get();
    }
}

fn least_paths(paths: &Paths<'_>, tors: &[SwitchId]) -> u64 {
    tors.iter().map(|&tor| paths.ways(tor)).min().unwrap_or(u64::MAX)
}

fn protection(state: LinkState) -> Option<Protection> {
    match state {
        LinkState::Corrupting { protection, .. } => protection,
        LinkState::Healthy | LinkState::Disabled => None,
    }
}

/// Share of a link's rate that can be used.
fn speed(state: LinkState) -> f64 {
    match state {
        LinkState::Disabled => 0.0,
        LinkState::Healthy | LinkState::Corrupting { .. } => protection(state).map_or(1.0, |p| p.speed),
    }
}

/// Capacity of each pod from one level to the next; a pod's capacity is the least of these (§4.8).
#[derive(Debug)]
struct Capacity {
    levels: usize,
    /// Capacity by segment and level, in bits a second. `whole` is the same with every link in service: zero where a
    /// segment has no such level.
    now: Vec<u64>,
    whole: Vec<u64>,
    least: TournamentTree<f64>,
}

impl Capacity {
    fn new(fabric: &Fabric) -> Self {
        let levels = fabric.switches().iter().map(|switch| usize::from(switch.level)).max().unwrap_or(0);
        let segments = fabric.segments().len();
        let least = TournamentTree::new(&vec![1.0; segments], 1.0);
        let mut capacity = Self { levels, now: vec![0; segments * levels], whole: Vec::new(), least };
        for index in 0..fabric.links().len() as u32 {
            capacity.shift(fabric, LinkId(index), 0.0, 1.0);
        }
        capacity.whole = capacity.now.clone();
        capacity
    }

    fn share(&self, segment: usize) -> f64 {
        let levels = segment * self.levels..(segment + 1) * self.levels;
        let least = |bits: &[u64]| {
            let there = bits[levels.clone()].iter().zip(&self.whole[levels.clone()]).filter(|(_, whole)| **whole > 0);
            there.map(|(bits, _)| *bits).min().unwrap_or(0)
        };
        least(&self.now) as f64 / least(&self.whole) as f64
    }

    fn change(&mut self, fabric: &Fabric, link: LinkId, before: f64, now: f64) {
        if before == now {
            return;
        }
        self.shift(fabric, link, before, now);
        let segment = fabric.link(link).segment as usize;
        self.least.set(segment, self.share(segment));
    }

    /// A link that passes several levels adds to what each of them carries.
    fn shift(&mut self, fabric: &Fabric, link: LinkId, before: f64, now: f64) {
        let link = fabric.link(link);
        let bits = |share: f64| (link.rate.bits_per_second() as f64 * share) as u64;
        let (from, to) = (fabric.switch(link.lower).level, fabric.switch(link.upper).level);
        let segment = link.segment as usize;
        for level in usize::from(from)..usize::from(to) {
            let carried = &mut self.now[segment * self.levels + level];
            *carried = *carried + bits(now) - bits(before);
        }
    }
}

/// Number of protected links in each pipe of each switch.
#[derive(Debug)]
struct Pipes {
    /// Pipes of each link, at its lower and at its upper end.
    of: Vec<[u32; 2]>,
    protected: Vec<u32>,
    /// The number of pipes that have N protected links, by N.
    having: Vec<u32>,
}

impl Pipes {
    fn new(fabric: &Fabric, layout: PipeLayout) -> Self {
        let mut of = vec![[0; 2]; fabric.links().len()];
        let mut pipes = 0;
        for switch in (0..fabric.switches().len() as u32).map(SwitchId) {
            let (down, up) = (fabric.down(switch), fabric.up(switch));
            let ends = down.iter().map(|link| (link, 1)).chain(up.iter().map(|link| (link, 0)));
            let of_switch = layout.pipes((down.len() + up.len()) as u32);
            for (port, (link, end)) in (0..).zip(ends) {
                of[link.index()][end] = pipes + layout.pipe(port, of_switch);
            }
            pipes += of_switch;
        }
        Self { of, protected: vec![0; pipes as usize], having: vec![pipes] }
    }

    fn add(&mut self, link: LinkId) {
        for pipe in self.of[link.index()] {
            let count = &mut self.protected[pipe as usize];
            self.having[*count as usize] -= 1;
            *count += 1;
            if self.having.len() <= *count as usize {
                self.having.push(0);
            }
            self.having[*count as usize] += 1;
        }
    }

    fn remove(&mut self, link: LinkId) {
        for pipe in self.of[link.index()] {
            let count = &mut self.protected[pipe as usize];
            self.having[*count as usize] -= 1;
            *count -= 1;
            self.having[*count as usize] += 1;
        }
        while self.having.len() > 1 && self.having.last() == Some(&0) {
            self.having.pop();
        }
    }

    fn most(&self) -> u32 {
        (self.having.len() - 1) as u32
    }
}
