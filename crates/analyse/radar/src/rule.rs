//! Why packets were lost in an interval, from evidence about each, with a stated chance of a wrong accusation.
//!
//! ```text
//!   time to live used up inside? ──▶ expired       (loop, if packets came round meanwhile)
//!   no evidence? ──────────────────▶ no-evidence
//!   fewer than ten? ───────────────▶ few
//!   a flow lost all it sent? ──────▶ flow: blackhole; expired: loop, if a router said so
//!   the interface counted them? ───▶ counters: bad frames random, missed ones congestion
//!   neighbours waited long? ───────▶ queue: congestion; if nearly all packets did, standing-queue
//!   too near to each other? ───────▶ bursts
//!   too regular? ──────────────────▶ periodic
//!   of one flow? ──────────────────▶ one-flow
//!   never at a short queue? ───────▶ queue: unknown
//!   else ──────────────────────────▶ order: random
//! ```
//!
//! Order beats time: if each packet dies alike, the places of losses among all packets are uniform, however bursty traffic
//! is. And a queue that is short cannot overflow: the time that the nearest surviving neighbour took shows how long it was,
//! without a common clock.
//!
//! Invariants: a loss has one cause; nothing is said of losses without evidence; each test that may accuse, or that keeps
//! from accusing, has the chance of an error that was asked for.

mod accounts;
mod line;
mod patterns;
mod queue;
mod statistics;
mod thesis;

use units::{Span, Timestamp};

use serde::Serialize;

use crate::causes::CauseThresholds;
use crate::loss::{Loss, LossCause};
use crate::packet::{Flow, TcpFields};

pub use accounts::{CauseAccount, IntervalAccount};
pub use line::{CauseEvidenceLine, CauseLine};

/// Settings of the rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvidenceRule {
    /// Chance of a wrong accusation in an interval.
    pub error: f64,
    /// Routers inside the segment.
    pub hops: u8,
    /// Fewer losses than these have no pattern.
    pub few: usize,
    /// A flow that loses this many in a row may be in a blackhole.
    pub blackhole: usize,
    /// A flow that loses more in a row may be in one even within a burst.
    pub bursty_blackhole: usize,
    /// Shortest interval that is judged.
    pub interval: Span,
}

impl Default for EvidenceRule {
    fn default() -> Self {
        Self { error: 1e-3, hops: 0, few: 10, blackhole: 5, bursty_blackhole: 30, interval: Span::from_ms(1_000) }
    }
}

/// Rule by which losses are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CauseRule {
    Evidence(EvidenceRule),
    /// Algorithms 10 and 11 of li-thesis, where times are known; a lost packet with at most this time to live has expired.
    Thesis(CauseThresholds, u8),
}

impl CauseRule {
    /// Judges an interval: every loss is in one group.
    pub fn judge(&self, interval: &IntervalEvidence) -> Vec<CauseGroup> {
        match self {
            Self::Evidence(rule) => rule.judge(interval),
            Self::Thesis(thresholds, ttl) => thesis::judge(thresholds, *ttl, interval),
        }
    }

    /// Shortest interval that is judged, and its least losses.
    fn least(&self) -> (Span, usize) {
        match self {
            Self::Evidence(rule) => (rule.interval, rule.few),
            Self::Thesis(thresholds, _) => (thresholds.interval, 1),
        }
    }
}

/// Fact or pattern on which a cause rests, or that keeps it unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CauseReason {
    Queue,
    Flow,
    Order,
    Expired,
    Round,
    Counters,
    Bursts,
    Periodic,
    OneFlow,
    StandingQueue,
    Few,
    NoEvidence,
}

impl CauseReason {
    pub const ALL: [Self; 12] = [
        Self::Queue,
        Self::Flow,
        Self::Order,
        Self::Expired,
        Self::Round,
        Self::Counters,
        Self::Bursts,
        Self::Periodic,
        Self::OneFlow,
        Self::StandingQueue,
        Self::Few,
        Self::NoEvidence,
    ];

    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Flow => "flow",
            Self::Order => "order",
            Self::Expired => "expired",
            Self::Round => "round",
            Self::Counters => "counters",
            Self::Bursts => "bursts",
            Self::Periodic => "periodic",
            Self::OneFlow => "one-flow",
            Self::StandingQueue => "standing-queue",
            Self::Few => "few",
            Self::NoEvidence => "no-evidence",
        }
    }
}

/// A lost packet among all packets of its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossPlace {
    /// Number among all packets.
    pub place: u64,
    /// Number in its flow, modulo 65,536.
    pub number: u16,
    /// Packets of other flows within [`NEAR`](crate::trail::NEAR) places.
    pub others: u8,
    /// Bits that stand for its flow, as in [`SampledPacket`].
    pub tag: u8,
}

/// Evidence about one lost packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossEvidence {
    pub flow: Flow,
    /// Time at which it passed the upstream meter.
    pub at: Option<Timestamp>,
    pub ttl: Option<u8>,
    pub ip_id: Option<u16>,
    pub tcp: Option<TcpFields>,
    pub place: Option<LossPlace>,
    /// Nanoseconds from the nearest earlier survivor's departure to its arrival, each by its meter's clock.
    pub waited: Option<i64>,
    /// A router said that a packet of the flow had expired.
    pub is_told: bool,
}

impl LossEvidence {
    /// A loss of which nothing but its headers is known.
    pub fn of(loss: &Loss) -> Self {
        let Loss { flow, ip_id, tcp, .. } = *loss;
        Self { flow, at: None, ttl: None, ip_id, tcp, place: None, waited: None, is_told: false }
    }
}

/// A packet that was drawn from all of the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledPacket {
    pub at: Timestamp,
    pub tag: u8,
    /// Nanoseconds on its way, as a survivor's; `None` if it did not arrive, or the far meter no longer knows.
    pub waited: Option<i64>,
}

/// Losses of one way of a segment in an interval, and what is known beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalEvidence {
    pub losses: Vec<LossEvidence>,
    pub samples: Vec<SampledPacket>,
    /// Packets that entered; zero if not known.
    pub packets: u64,
    /// Passes of packets that came round at one of the meters.
    pub rounds: u64,
    /// Bad frames, and frames without room, that the receiving interface counted.
    pub bad_frames: u64,
    pub missed_frames: u64,
}

/// Losses of an interval that have one cause.
#[derive(Clone, Debug, PartialEq)]
pub struct CauseGroup {
    pub cause: LossCause,
    pub why: CauseReason,
    /// Numbers of its losses.
    pub losses: Vec<usize>,
    pub figures: CauseFigures,
}

/// Figures behind a cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CauseFigures {
    /// The chance that losses of packets that die alike look like this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
    /// Runs of losses, and those of them at a long queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_long_queue: Option<u64>,
    /// Share of all packets at a long queue, and the waiting in microseconds from which on it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_at_long_queue: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_queue_us: Option<f64>,
    /// Packets that came round, or frames that the interface counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<u64>,
    /// Typical number of packets from a loss to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<u64>,
}

/// A setting that makes no sense, and what would.
pub type RuleError = crate::causes::ThresholdError;

impl EvidenceRule {
    /// Returns the rule unchanged if its settings are valid.
    pub fn checked(self) -> Result<Self, RuleError> {
        let check = |holds: bool, name, found: String, expected| match holds {
            true => Ok(()),
            false => Err(RuleError { name, found, expected }),
        };
        let Self { error, hops, few, blackhole, bursty_blackhole, interval } = self;
        check((1e-9..=0.05).contains(&error), "error", error.to_string(), "from 1e-9 to 0.05")?;
        check(hops < 255, "hops", hops.to_string(), "below 255")?;
        check(few >= 5, "few", few.to_string(), "at least 5")?;
        check(blackhole >= 3, "blackhole", blackhole.to_string(), "at least 3")?;
        check(
            bursty_blackhole >= blackhole,
            "bursty_blackhole",
            bursty_blackhole.to_string(),
            "no less than blackhole",
        )?;
        let (least, most) = (Span::from_ms(100), Span::from_ms(3_600_000));
        check((least..=most).contains(&interval), "interval", interval.to_string(), "between 100 ms and 1 h")?;
        Ok(self)
    }

    /// Judges an interval: every loss is in one group.
    pub fn judge(&self, interval: &IntervalEvidence) -> Vec<CauseGroup> {
        let mut groups = Vec::new();
        let losses = &interval.losses;
        let is_expired = |loss: &LossEvidence| loss.ttl.is_some_and(|ttl| ttl <= self.hops);
        let (expired, rest): (Vec<usize>, Vec<usize>) = (0..losses.len()).partition(|at| is_expired(&losses[*at]));
        let (known, unknown): (Vec<usize>, Vec<usize>) = rest.into_iter().partition(|at| losses[*at].place.is_some());
        let figures = CauseFigures { counted: Some(interval.rounds), ..CauseFigures::default() };
        let cause = if interval.rounds > 0 { LossCause::Loop } else { LossCause::Unknown };
        push(&mut groups, cause, CauseReason::Expired, expired, figures);
        push(&mut groups, LossCause::Unknown, CauseReason::NoEvidence, unknown, CauseFigures::default());
        if known.len() < self.few {
            push(&mut groups, LossCause::Unknown, CauseReason::Few, known, CauseFigures::default());
            return groups;
        }
        let holes = patterns::holes(self, interval, &known);
        let in_holes: Vec<usize> = holes.iter().flatten().copied().collect();
        let (mut looped, mut swallowed) = (Vec::new(), Vec::new());
        for hole in holes {
            let is_told = hole.iter().any(|at| losses[*at].is_told);
            if is_told { &mut looped } else { &mut swallowed }.extend(hole);
        }
        push(&mut groups, LossCause::Loop, CauseReason::Expired, looped, CauseFigures::default());
        push(&mut groups, LossCause::Blackhole, CauseReason::Flow, swallowed, CauseFigures::default());
        let rest: Vec<usize> = known.into_iter().filter(|at| !in_holes.contains(at)).collect();
        let (cause, why, figures) = self.rest(interval, &rest);
        push(&mut groups, cause, why, rest, figures);
        groups
    }

    /// Cause of the losses that are left, which is one for all.
    fn rest(&self, interval: &IntervalEvidence, rest: &[usize]) -> (LossCause, CauseReason, CauseFigures) {
        if rest.len() < self.few {
            return (LossCause::Unknown, CauseReason::Few, CauseFigures::default());
        }
        let counted = |count| CauseFigures { counted: Some(count), ..CauseFigures::default() };
        for (cause, count) in
            [(LossCause::Random, interval.bad_frames), (LossCause::Congestion, interval.missed_frames)]
        {
            if count.saturating_mul(2) >= rest.len() as u64 {
                return (cause, CauseReason::Counters, counted(count));
            }
        }
        let mut sorted = rest.to_vec();
        let place = |at: &usize| interval.losses[*at].place.map_or(0, |place| place.place);
        sorted.sort_by_key(place);
        let places: Vec<u64> = sorted.iter().map(place).collect();
        let queue = queue::QueueEvidence::new(interval, &sorted);
        if let Some(found) = queue.as_ref().and_then(|queue| queue.congestion(self.error)) {
            return found;
        }
        if let Some((why, figures)) = patterns::pattern(self.error, &places, interval, &sorted) {
            return (LossCause::Unknown, why, figures);
        }
        match queue {
            // Losses that shun a short queue are an active queue's, not a cable's.
            Some(queue) if queue.shuns_short() => (LossCause::Unknown, CauseReason::Queue, queue.figures()),
            Some(queue) => (LossCause::Random, CauseReason::Order, queue.figures()),
            None => (LossCause::Unknown, CauseReason::NoEvidence, CauseFigures::default()),
        }
    }
}

fn push(groups: &mut Vec<CauseGroup>, cause: LossCause, why: CauseReason, losses: Vec<usize>, figures: CauseFigures) {
    if !losses.is_empty() {
        groups.push(CauseGroup { cause, why, losses, figures });
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
