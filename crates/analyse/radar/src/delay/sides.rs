//! Side of the way between the captures on which each host is, so that the direction of its packets is known.
//!
//! Clocks need not agree, so a packet's times do not say which capture saw it first. Two hosts that send to each other do: the
//! packets of one direction are ahead of those of the other by the round trip, whatever the clocks show. If their packets fit
//! one way round only, that is the way; and it says on which side other packets of these hosts are sent. If they fit neither
//! way round, a clock was set or drifts more than was said.
//!
//! Invariant: a direction is stated only if the opposite one contradicts the facts.

use std::collections::HashMap;
use std::net::IpAddr;

use clock::offset::{OffsetContradiction, OffsetDrift, OffsetFact, OffsetInterval};

use super::DelayDirection;
use super::matching::{FlowNumber, FlowTable};
use crate::packet::Flow;

/// The least and the greatest difference of one direction of a pair, each with its time, as later packets see them.
#[derive(Clone, Copy, Debug, Default)]
struct DirectionExtremes {
    least: Option<OffsetFact>,
    greatest: Option<OffsetFact>,
}

impl DirectionExtremes {
    fn see(&mut self, fact: OffsetFact, drift: OffsetDrift) {
        if self.least.is_none_or(|least| fact.value <= least.most_at(fact.at, drift)) {
            self.least = Some(fact);
        }
        if self.greatest.is_none_or(|greatest| fact.value >= greatest.least_at(fact.at, drift)) {
            self.greatest = Some(fact);
        }
    }
}

/// Evidence from the packets of a pair of hosts.
#[derive(Clone, Copy, Debug, Default)]
struct PairEvidence {
    /// Ways from the lower address to the higher, and back.
    ways: [DirectionExtremes; 2],
    /// Contradictions that exclude that the packets of either way go from UP to DOWN.
    against: [Option<OffsetContradiction>; 2],
}

impl PairEvidence {
    fn see(&mut self, way: usize, fact: OffsetFact, stated: OffsetInterval, drift: OffsetDrift) {
        let other = self.ways[1 - way];
        // If this way leads from UP to DOWN, the other way's differences are not above this one.
        if let Some(least) = other.greatest
            && least.least_at(fact.at, drift) > fact.value
        {
            self.against[way].get_or_insert(OffsetContradiction { most: fact, least });
        }
        // And if the other way does, not below.
        if let Some(most) = other.least
            && most.most_at(fact.at, drift) < fact.value
        {
            self.against[1 - way].get_or_insert(OffsetContradiction { most, least: fact });
        }
        if let Some(value) = stated.low.filter(|low| *low > fact.value) {
            let least = OffsetFact { at: fact.at, value };
            self.against[way].get_or_insert(OffsetContradiction { most: fact, least });
        }
        if let Some(value) = stated.high.filter(|high| *high < fact.value) {
            let most = OffsetFact { at: fact.at, value };
            self.against[1 - way].get_or_insert(OffsetContradiction { most, least: fact });
        }
        self.ways[way].see(fact, drift);
    }

    fn has_both_ways(&self) -> bool {
        self.ways.iter().all(|way| way.least.is_some())
    }

    /// The way that leads from UP to DOWN, if that is sure, and what speaks against it all the same: then the clocks did what
    /// they should not, after the way had been known.
    fn forth(&self) -> Option<(usize, Option<OffsetContradiction>)> {
        match self.against {
            [Some(one), Some(other)] if one.between().1 > other.between().1 => Some((0, Some(one))),
            [Some(_), Some(other)] => Some((1, Some(other))),
            [Some(_), None] => Some((1, None)),
            [None, Some(_)] => Some((0, None)),
            [None, None] => None,
        }
    }
}

/// Collects evidence from packets about the sides of their hosts.
#[derive(Debug)]
pub(super) struct DirectionEvidence {
    drift: OffsetDrift,
    pairs: Vec<PairEvidence>,
    by_hosts: HashMap<(IpAddr, IpAddr), u32>,
    /// The pair and the way of each flow.
    of_flow: Vec<Option<(u32, bool)>>,
}

fn hosts(flow: &Flow) -> ((IpAddr, IpAddr), bool) {
    let is_back = flow.src > flow.dst;
    (if is_back { (flow.dst, flow.src) } else { (flow.src, flow.dst) }, is_back)
}

impl DirectionEvidence {
    pub(super) fn new(drift: OffsetDrift) -> Self {
        Self { drift, pairs: Vec::new(), by_hosts: HashMap::new(), of_flow: Vec::new() }
    }

    pub(super) fn see(&mut self, number: FlowNumber, flow: &Flow, fact: OffsetFact, stated: OffsetInterval) {
        if self.of_flow.len() <= number.index() {
            self.of_flow.resize(number.index() + 1, None);
        }
        let (pair, is_back) = *self.of_flow[number.index()].get_or_insert_with(|| {
            let (hosts, is_back) = hosts(flow);
            let pairs = &mut self.pairs;
            let pair = *self.by_hosts.entry(hosts).or_insert_with(|| {
                pairs.push(PairEvidence::default());
                pairs.len() as u32 - 1
            });
            (pair, is_back)
        });
        self.pairs[pair as usize].see(usize::from(is_back), fact, stated, self.drift);
    }

    pub(super) fn has_both_ways(&self) -> bool {
        self.pairs.iter().any(PairEvidence::has_both_ways)
    }

    pub(super) fn decide(&self, flows: &FlowTable) -> HostSides {
        let mut pairs: Vec<((IpAddr, IpAddr), u32)> =
            self.by_hosts.iter().map(|(hosts, pair)| (*hosts, *pair)).collect();
        pairs.sort_unstable();
        let mut sides: HashMap<IpAddr, Option<bool>> = HashMap::new();
        let mut contradiction = None;
        for ((low, high), pair) in &pairs {
            let Some((forth, against)) = self.pairs[*pair as usize].forth() else { continue };
            contradiction = contradiction.or(against);
            place(&mut sides, *low, forth == 0);
            place(&mut sides, *high, forth == 1);
        }
        spread(&mut sides, &pairs);
        let direction = |flow: &Flow| {
            let is_up = |host| sides.get(host).copied().flatten();
            match (is_up(&flow.src), is_up(&flow.dst)) {
                (Some(true), Some(false)) => Some(DelayDirection::UpToDown),
                (Some(false), Some(true)) => Some(DelayDirection::DownToUp),
                _ => None,
            }
        };
        HostSides { directions: flows.flows().iter().map(direction).collect(), contradiction }
    }
}

/// Places a host on UP's side or on DOWN's; none if it was found on both, as a host between the captures' networks may be.
fn place(sides: &mut HashMap<IpAddr, Option<bool>>, host: IpAddr, is_up: bool) {
    sides.entry(host).and_modify(|side| *side = side.filter(|side| *side == is_up)).or_insert(Some(is_up));
}

/// Packets that both captures have cross from one side to the other: who speaks with a host of one side is on the other.
fn spread(sides: &mut HashMap<IpAddr, Option<bool>>, pairs: &[((IpAddr, IpAddr), u32)]) {
    loop {
        let mut found = Vec::new();
        for ((low, high), _) in pairs {
            for (known, other) in [(low, high), (high, low)] {
                if let Some(Some(is_up)) = sides.get(known)
                    && !sides.contains_key(other)
                {
                    found.push((*other, !is_up));
                }
            }
        }
        if found.is_empty() {
            return;
        }
        found.into_iter().for_each(|(host, is_up)| place(sides, host, is_up));
    }
}

/// Direction of each flow, where it is known.
#[derive(Debug)]
pub(super) struct HostSides {
    directions: Vec<Option<DelayDirection>>,
    /// Packets that fit neither way round.
    pub contradiction: Option<OffsetContradiction>,
}

impl HostSides {
    pub(super) fn direction(&self, flow: FlowNumber) -> Option<DelayDirection> {
        self.directions.get(flow.index()).copied().flatten()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.directions.iter().all(Option::is_none)
    }
}
