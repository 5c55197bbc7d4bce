//! The one-way delay of every packet that two captures have, as an interval that contains the truth.
//!
//! A packet does not arrive before it was sent. So each packet from UP to DOWN says how far DOWN's clock is ahead at most, each
//! packet back says how far at least, and [`clock::offset`] makes a band over time of that, with the drift that the clocks may
//! have. What clocks say of themselves ([`readings`]) are facts of the same kind. The captures are read three times:
//!
//! ```text
//!   match ──▶ which side is each host on?      (a pair of hosts whose packets fit one way round only)
//!   match ──▶ facts ──▶ band of the offset     (empty: a clock was set, or drifts more)
//!   match ──▶ delays ──▶ percentiles, by direction and by flow
//! ```
//!
//! Invariants: no delay is reported that the facts do not prove; packets that cannot be told apart are counted, not measured;
//! memory is [`DelayOptions::memory`] for packets that wait for their counterpart, and some 100 MB for flows and facts.

mod figures;
mod matching;
mod readings;
pub mod report;
mod sides;

use std::fmt;
use units::Timestamp;

use clock::offset::{OffsetBand, OffsetContradiction, OffsetDrift, OffsetFact, OffsetFacts, OffsetInterval};
use units::Progress;

use crate::compare::{AttemptStop, CaptureContents, CaptureInput, CaptureRole, CompareOptions, ComparisonContext};
use crate::packet::Flow;
use crate::read::DEPTH;
use crate::signature::Fields;
use capture::CaptureError;
use figures::DelayFigures;
use matching::{FlowNumber, FlowTable, MatchedPacket, PacketMatch};
use sides::{DirectionEvidence, HostSides};

pub use figures::{DelayPercentiles, DirectionDelays, FlowDelays, TimeSlot};
pub use readings::{ClockFileError, ClockStatement, readings};

/// Options of the measurement.
#[derive(Clone, Debug)]
pub struct DelayOptions<'a> {
    pub fields: Fields,
    /// Bytes for packets that wait for their counterpart in the other capture.
    pub memory: u64,
    /// Drift by which the clocks may move apart, and each from true time.
    pub drift: OffsetDrift,
    /// Statements of either capture's clock about itself.
    pub up_clock: &'a [ClockStatement],
    pub down_clock: &'a [ClockStatement],
}

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DelayDirection {
    UpToDown,
    DownToUp,
}

impl DelayDirection {
    pub const BOTH: [Self; 2] = [Self::UpToDown, Self::DownToUp];

    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::UpToDown => Self::DownToUp,
            Self::DownToUp => Self::UpToDown,
        }
    }
}

impl fmt::Display for DelayDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::UpToDown => "up-to-down",
            Self::DownToUp => "down-to-up",
        })
    }
}

/// One packet, and how long it was on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketDelay {
    /// Times at which each capture saw it, by its own clock.
    pub up: Timestamp,
    pub down: Timestamp,
    pub flow: Flow,
    pub direction: DelayDirection,
    /// Nanoseconds: at least, and at most.
    pub low: u64,
    pub high: u64,
}

/// Packets that were not measured, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnmeasuredCounts {
    /// Packets that only one capture has.
    pub only_up: u64,
    pub only_down: u64,
    /// Packets that are equal to the last bit, so that they cannot be told apart.
    pub alike: u64,
    /// Packets in both captures, of hosts whose side nothing shows.
    pub undirected: u64,
}

/// The result.
#[derive(Clone, Debug)]
pub struct DelayAnalysis {
    pub up: CaptureContents,
    pub down: CaptureContents,
    /// Packets that were measured.
    pub packets: u64,
    pub unmeasured: UnmeasuredCounts,
    /// Offset by which DOWN's clock is ahead of UP's, at the time of UP's clock at which it is known best.
    pub offset: OffsetInterval,
    pub offset_at: Timestamp,
    /// Drift by which it gains on UP's, in parts per million, over the packets of both.
    pub drift_ppm: Option<(f64, f64)>,
    pub directions: [DirectionDelays; 2],
    /// The direction in which packets take longer, as far as their medians prove it.
    pub slower: Option<DelayDirection>,
    /// The flows with most packets.
    pub flows: Vec<FlowDelays>,
    /// Flows that are not among them.
    pub more_flows: u64,
    /// Figures over time, for charts.
    pub slots: Vec<TimeSlot>,
}

/// Reason why there is none.
#[derive(Debug)]
pub enum DelayError {
    Capture(CaptureRole, CaptureError),
    NoPackets(CaptureRole, CaptureContents),
    /// No packet is in both captures. Contains the packets of each, and how many of them look alike.
    NothingInCommon {
        up: u64,
        down: u64,
        alike: u64,
    },
    /// All packets that both have go one way, so nothing bounds the offset on its other side. So many cannot be told apart.
    OneDirection {
        packets: u64,
        alike: u64,
    },
    /// The clocks may have drifted by more than the round trip between packets of both directions.
    DirectionsUnknown {
        packets: u64,
    },
    /// The facts exclude each other.
    Contradiction(OffsetContradiction),
    Interrupted,
}

impl fmt::Display for DelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture(which, error) => write!(f, "{which:?}: {error}"),
            Self::NoPackets(which, _) => write!(f, "{which:?}: no IP packets"),
            Self::NothingInCommon { .. } => f.write_str("the captures have no packet in common"),
            Self::OneDirection { packets, .. } => write!(f, "all {packets} packets that both captures have go one way"),
            Self::DirectionsUnknown { packets } => write!(f, "nothing shows which way {packets} packets go"),
            Self::Contradiction(found) => write!(f, "the clocks contradict themselves: {found}"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for DelayError {}

/// Measures. `take` gets every packet that is measured, about in the order of UP; `progress` the frames read so far of one
/// capture.
pub fn delays<'a>(
    up: CaptureInput<'a>,
    down: CaptureInput<'a>,
    options: &DelayOptions<'_>,
    progress: &'a dyn Progress,
    take: &mut dyn FnMut(&PacketDelay),
) -> Result<DelayAnalysis, DelayError> {
    let compared = CompareOptions { fields: options.fields, memory: options.memory, ..CompareOptions::default() };
    let context = ComparisonContext::new(up, down, &compared, progress);
    let (mut depth, mut cuts) = (DEPTH, 0);
    loop {
        match (DelaySearch { context: &context, options, depth }).sides() {
            Ok(sides) => {
                let search = DelaySearch { context: &context, options, depth };
                return search.measure(sides, take).map_err(SearchStop::error);
            }
            Err(SearchStop::Attempt(AttemptStop::Cut(kept))) => {
                cuts += 1;
                depth = if cuts < 3 { kept } else { context.shallowest().map_err(SearchStop::compared)? };
            }
            Err(stop) => return Err(stop.error()),
        }
    }
}

/// Offset by which DOWN's clock is ahead of UP's, over time.
pub fn offset<'a>(
    up: CaptureInput<'a>,
    down: CaptureInput<'a>,
    options: &DelayOptions<'_>,
    progress: &'a dyn Progress,
) -> Result<OffsetBand, DelayError> {
    let compared = CompareOptions { fields: options.fields, memory: options.memory, ..CompareOptions::default() };
    let context = ComparisonContext::new(up, down, &compared, progress);
    let depth = context.shallowest().map_err(SearchStop::compared)?;
    let search = DelaySearch { context: &context, options, depth };
    let found = search.sides().and_then(|mut sides| search.band(&mut sides));
    found.map_err(SearchStop::error)
}

enum SearchStop {
    Attempt(AttemptStop),
    Refusal(DelayError),
}

impl From<AttemptStop> for SearchStop {
    fn from(stop: AttemptStop) -> Self {
        Self::Attempt(stop)
    }
}

impl SearchStop {
    fn error(self) -> DelayError {
        match self {
            Self::Refusal(error) => error,
            Self::Attempt(AttemptStop::Capture(which, error)) => DelayError::Capture(which, error),
            Self::Attempt(_) => DelayError::Interrupted,
        }
    }

    fn compared(error: crate::compare::CompareError) -> DelayError {
        match error {
            crate::compare::CompareError::Capture(which, error) => DelayError::Capture(which, error),
            _ => DelayError::Interrupted,
        }
    }
}

/// Result of the first reading.
struct FirstReading {
    flows: FlowTable,
    sides: HostSides,
    /// Times of the first packet and the last that both have, by UP's clock.
    span: (i64, i64),
    begins: Option<i64>,
    unmeasured: UnmeasuredCounts,
    contents: [CaptureContents; 2],
    clock_facts: OffsetFacts,
}

struct DelaySearch<'a, 'o> {
    context: &'o ComparisonContext<'a>,
    options: &'o DelayOptions<'o>,
    depth: usize,
}

impl DelaySearch<'_, '_> {
    fn sides(&self) -> Result<FirstReading, SearchStop> {
        let refuse = |error| Err(SearchStop::Refusal(error));
        let begins = self.context.begins(self.depth)?;
        let DelayOptions { drift, up_clock, down_clock, .. } = *self.options;
        let clock_facts = readings::facts(up_clock, down_clock, drift);
        let stated = match clock_facts.band() {
            Ok(stated) => stated,
            Err(found) => return refuse(DelayError::Contradiction(found)),
        };
        let mut flows = FlowTable::default();
        let mut evidence = DirectionEvidence::new(drift);
        let mut span = (i64::MAX, i64::MIN);
        let found = self.matched(begins, &mut flows, &mut |packet, number, flow| {
            span = (span.0.min(packet.up), span.1.max(packet.up));
            let fact = OffsetFact { at: packet.up, value: packet.difference() };
            evidence.see(number, flow, fact, stated.at(packet.up));
        })?;
        let [up, down] = found.contents;
        for (which, contents) in [(CaptureRole::Up, up), (CaptureRole::Down, down)] {
            if contents.packets == 0 {
                return refuse(DelayError::NoPackets(which, contents));
            }
        }
        let packets = found.matched;
        let mut unmeasured = found.unmeasured;
        if packets == 0 {
            let alike = unmeasured.alike;
            return refuse(DelayError::NothingInCommon { up: up.packets, down: down.packets, alike });
        }
        let has_both_ways = evidence.has_both_ways();
        let sides = evidence.decide(&flows);
        if sides.is_empty() {
            let error = if has_both_ways {
                DelayError::DirectionsUnknown { packets }
            } else {
                DelayError::OneDirection { packets, alike: unmeasured.alike }
            };
            return refuse(error);
        }
        unmeasured.undirected = flows.packets_where(|flow| sides.direction(flow).is_none());
        Ok(FirstReading { flows, sides, span, begins, unmeasured, contents: [up, down], clock_facts })
    }

    /// Matches once more, with the flows that are known.
    fn matched(
        &self,
        begins: Option<i64>,
        flows: &mut FlowTable,
        take: &mut dyn FnMut(&MatchedPacket, FlowNumber, &Flow),
    ) -> Result<matching::MatchResult, AttemptStop> {
        let DelayOptions { fields, memory, .. } = *self.options;
        PacketMatch::new(fields, memory, begins).run(self.context, self.depth, flows, take)
    }

    fn band(&self, found: &mut FirstReading) -> Result<OffsetBand, SearchStop> {
        let mut facts = found.clock_facts.clone();
        let sides = &found.sides;
        self.matched(found.begins, &mut found.flows, &mut |packet, flow, _| match sides.direction(flow) {
            Some(DelayDirection::UpToDown) => facts.at_most(packet.up, packet.difference()),
            Some(DelayDirection::DownToUp) => facts.at_least(packet.up, packet.difference()),
            None => {}
        })?;
        let band = facts.band().map_err(|found| SearchStop::Refusal(DelayError::Contradiction(found)))?;
        if let Some(found) = found.sides.contradiction {
            return Err(SearchStop::Refusal(DelayError::Contradiction(found)));
        }
        if band.is_bounded() {
            Ok(band)
        } else {
            let packets = found.flows.packets_where(|_| true);
            let alike = found.unmeasured.alike;
            Err(SearchStop::Refusal(DelayError::OneDirection { packets, alike }))
        }
    }

    fn measure(
        &self,
        mut found: FirstReading,
        take: &mut dyn FnMut(&PacketDelay),
    ) -> Result<DelayAnalysis, SearchStop> {
        let band = self.band(&mut found)?;
        let FirstReading { mut flows, sides, span, begins, unmeasured, contents: [up, down], .. } = found;
        let mut figures = DelayFigures::new(span, &flows);
        let drift = self.options.drift;
        self.matched(begins, &mut flows, &mut |packet, number, flow| {
            let Some(direction) = sides.direction(number) else { return };
            let Some((low, high)) = delay(packet, direction, band.at(packet.up), drift) else { return };
            let [up, down] = [packet.up, packet.down].map(|at| Timestamp(at.unsigned_abs()));
            let measured = PacketDelay { up, down, flow: *flow, direction, low, high };
            figures.count(&measured, number);
            take(&measured);
        })?;
        let (offset_at, low, high) = band.narrowest().unwrap_or_default();
        let directions = figures.directions();
        Ok(DelayAnalysis {
            up,
            down,
            packets: directions.iter().map(|direction| direction.packets).sum(),
            unmeasured,
            offset: OffsetInterval::new(low, high),
            offset_at: Timestamp(offset_at.unsigned_abs()),
            drift_ppm: band.drift(span.0, span.1),
            slower: figures::slower(&directions),
            directions,
            more_flows: figures.more_flows(),
            slots: figures.slots(&band),
            flows: figures.flows(flows.flows(), &sides),
        })
    }
}

/// Computes a delay from the offset at the time of UP's sighting. Both clocks drifted while the packet was on its way,
/// and neither need be right: the drift counts twice. `None` if the offset is not bounded there.
fn delay(
    packet: &MatchedPacket,
    direction: DelayDirection,
    offset: OffsetInterval,
    drift: OffsetDrift,
) -> Option<(u64, u64)> {
    let (low, high) = offset.ends()?;
    let difference = packet.difference();
    let (least, most) = match direction {
        DelayDirection::UpToDown => (difference.saturating_sub(high), difference.saturating_sub(low)),
        DelayDirection::DownToUp => (low.saturating_sub(difference), high.saturating_sub(difference)),
    };
    // Facts that were left out of the band, this packet among them, hold all the same: it took no negative time.
    let (least, most) = (least.max(0), most.max(0));
    // 1/(1 − x)² ≤ 1 + 3x and 1/(1 + x)² ≥ 1 − 3x, for x up to a tenth.
    let slack = |delay: i64| drift.over(delay).saturating_mul(3);
    let low = least.saturating_sub(slack(least)).max(0);
    Some((low.unsigned_abs(), most.saturating_add(slack(most)).unsigned_abs()))
}

#[cfg(test)]
mod tests;
