//! Results of racks with reservations: answers and refusals, queued bytes, and the bound.

use scenario::SweepPoint;
use serde::Serialize;
use sim::net::{NetworkOutcome, RackOutcome};
use units::Bytes;

/// All racks of a run, or of several runs of the same point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RackSummary {
    /// RSVs that switches received, and GRTs for them.
    pub rsvs: u64,
    pub grants: u64,
    /// RSVs kept until their slot was near.
    pub kept: u64,
    pub refusals: RefusalCounts,
    /// RSVs that hosts sent again because nobody had answered.
    pub resent_rsvs: u64,
    /// Packets that passed: reserved, unsolicited, and such as nobody reserved.
    pub reserved: u64,
    pub unsolicited: u64,
    pub unreserved: u64,
    /// Packets that came too early, or that no reservation covered.
    pub early: u64,
    pub uncovered: u64,
    /// Packets cut to their header and sent back; packets that a switch dropped on purpose.
    pub cut: u64,
    pub dropped: u64,
    pub policed: u64,
    /// Packets that hosts sent again, and such as came twice and were not delivered.
    pub resent: u64,
    pub duplicates: u64,
    /// Reservations that receivers reset.
    pub resets: u64,
    /// Messages that found no room in a queue.
    pub messages_dropped: u64,
    pub switch_restarts: u64,
    /// The most data that waited at each port of a rack.
    pub ports: Vec<PortPeak>,
    /// Longest queue of any port; also in each quarter of the given time.
    pub peak_bytes: u64,
    pub peak_bytes_by_quarter: [u64; 4],
    /// The most that may wait at a port; not a bound with the scheduler of the paper.
    pub bound_bytes: u64,
    /// Packets that joined a longer queue, where there is a bound.
    pub violations: u64,
    /// State at the end: time for which the fullest port is reserved, and distance of counters from zero.
    pub reserved_left_us: f64,
    pub counted_left: i64,
}

/// RSVs that switches refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RefusalCounts {
    pub above_limit: u64,
    pub unknown_port: u64,
    pub own_port: u64,
    pub too_many: u64,
    pub old_epoch: u64,
    pub foreign_source: u64,
    pub unknown_context: u64,
}

impl RefusalCounts {
    /// Sum over all reasons.
    pub fn sum(&self) -> u64 {
        let Self { above_limit, unknown_port, own_port, too_many, old_epoch, foreign_source, unknown_context } = *self;
        above_limit + unknown_port + own_port + too_many + old_epoch + foreign_source + unknown_context
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortPeak {
    /// The switch, and where the port leads.
    pub between: [String; 2],
    pub peak_bytes: u64,
}

impl RackSummary {
    /// `None` where nobody reserves.
    pub(super) fn of(point: &SweepPoint, outcome: &NetworkOutcome) -> Option<Self> {
        let rack = outcome.rack.as_ref()?;
        let (switch, host) = (&rack.switches, &outcome.rack_hosts);
        Some(Self {
            rsvs: switch.rsvs,
            grants: switch.grants,
            kept: switch.kept,
            refusals: RefusalCounts {
                above_limit: switch.above_limit,
                unknown_port: switch.unknown_port,
                own_port: switch.own_port,
                too_many: switch.too_many,
                old_epoch: switch.old_epoch,
                foreign_source: switch.foreign_source,
                unknown_context: switch.unknown_context,
            },
            resent_rsvs: host.unanswered,
            reserved: switch.reserved,
            unsolicited: switch.unsolicited,
            unreserved: switch.unreserved,
            early: switch.early,
            uncovered: switch.uncovered,
            cut: switch.cut,
            dropped: switch.dropped,
            policed: switch.policed,
            resent: host.resent,
            duplicates: host.duplicates,
            resets: switch.resets,
            messages_dropped: rack.messages_dropped,
            switch_restarts: rack.restarts,
            ports: ports(point, rack),
            peak_bytes: rack.peaks.iter().map(|(_, bytes)| bytes.get()).max().unwrap_or_default(),
            peak_bytes_by_quarter: rack.quarters.map(Bytes::get),
            bound_bytes: rack.bound.get(),
            violations: rack.violations,
            reserved_left_us: rack.reserved_left.as_us(),
            counted_left: rack.counted_left,
        })
    }

    /// Together with another run: sums of counts, the largest of all else.
    pub(super) fn with(mut self, other: Self) -> Self {
        let mut theirs = other.counts();
        for (mine, theirs) in self.counts_mut().into_iter().zip(theirs.drain(..)) {
            *mine += theirs;
        }
        for (mine, theirs) in self.ports.iter_mut().zip(&other.ports) {
            mine.peak_bytes = mine.peak_bytes.max(theirs.peak_bytes);
        }
        for (mine, theirs) in self.peak_bytes_by_quarter.iter_mut().zip(other.peak_bytes_by_quarter) {
            *mine = theirs.max(*mine);
        }
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
        self.reserved_left_us = self.reserved_left_us.max(other.reserved_left_us);
        let left = [self.counted_left, other.counted_left];
        self.counted_left = left.into_iter().max_by_key(|count| count.unsigned_abs()).unwrap_or_default();
        self
    }

    fn counts(&self) -> Vec<u64> {
        self.clone().counts_mut().into_iter().map(|count| *count).collect()
    }

    /// All that adds up over runs.
    fn counts_mut(&mut self) -> Vec<&mut u64> {
        let refusals = &mut self.refusals;
        vec![
            &mut self.rsvs,
            &mut self.grants,
            &mut self.kept,
            &mut refusals.above_limit,
            &mut refusals.unknown_port,
            &mut refusals.own_port,
            &mut refusals.too_many,
            &mut refusals.old_epoch,
            &mut refusals.foreign_source,
            &mut refusals.unknown_context,
            &mut self.resent_rsvs,
            &mut self.reserved,
            &mut self.unsolicited,
            &mut self.unreserved,
            &mut self.early,
            &mut self.uncovered,
            &mut self.cut,
            &mut self.dropped,
            &mut self.policed,
            &mut self.resent,
            &mut self.duplicates,
            &mut self.resets,
            &mut self.messages_dropped,
            &mut self.switch_restarts,
            &mut self.violations,
        ]
    }
}

fn ports(point: &SweepPoint, rack: &RackOutcome) -> Vec<PortPeak> {
    let topology = point.topology();
    let name = |node| topology.name(node).to_owned();
    let peak = |(port, bytes): &(sim::topology::DirectedLink, Bytes)| PortPeak {
        between: [name(topology.from(*port)), name(topology.to(*port))],
        peak_bytes: bytes.get(),
    };
    rack.peaks.iter().map(peak).collect()
}
