//! Parameters of a rack, checked before anything runs, and what they promise.
//!
//! PL2, App. D.3 and D.4 for K and t; §G for the share of what nobody reserved. The paper's slot is MTU / rate, which
//! overbooks the wire by preamble, gap and header; ours is the wire time of the longest frame and one percent more.

mod slots;

use std::fmt;

use units::{Bytes, Prob, Rate, Span};
use wire::ethernet::{HEADER_AND_CHECK, on_wire};

pub(crate) use slots::SlotTable;

/// Scheduler, which decides when a burst may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerKind {
    /// Counters as in Algorithm 1: counted down when a frame arrives.
    Paper,
    /// Counters that are counted down when a frame leaves or is dropped.
    Departure,
    /// A time for each port from which on it is free.
    Clock,
    /// Clocks; RSVs are kept and answered shortly before their slot.
    Late,
}

impl SchedulerKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Paper, Self::Departure, Self::Clock, Self::Late];

    /// Name of the scheduler in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Departure => "departure",
            Self::Clock => "clock",
            Self::Late => "late",
        }
    }
}

/// Unit that a slot carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotUnit {
    /// One frame, however long: as in the paper.
    Frames,
    /// The bytes that frames take on the wire.
    Bytes,
}

impl SlotUnit {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Frames, Self::Bytes];

    /// Name of the unit in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Frames => "frames",
            Self::Bytes => "bytes",
        }
    }
}

/// Parameters that the switch and the hosts of a rack must agree on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RackParams {
    /// Scheduler, which decides when a burst may go.
    pub scheduler: SchedulerKind,
    /// Ports of the switch.
    pub ports: u16,
    /// Rate of every port.
    pub rate: Rate,
    /// The longest frame, frame check included.
    pub mtu: u32,
    /// K: the most full frames of a burst.
    pub k: u8,
    /// t: with fewer slots than this reserved, frames may go unsolicited.
    pub t: u32,
    /// T: with more slots than this reserved, the paper's switch drops unsolicited frames.
    pub drop_above: u32,
    /// Time for which a full frame occupies a port, before `ingress_share` is added.
    pub slot: Span,
    /// Unit that a slot carries.
    pub unit: SlotUnit,
    /// Contexts of each host: reservations that it may have open.
    pub contexts: u16,
    /// Gives each context a destination of its own: then a host sends to a port with one context only.
    pub per_destination: bool,
    /// Lets hosts send without waiting for a grant.
    pub unsolicited: bool,
    /// Time after which an unanswered RSV is repeated.
    pub timeout: Span,
    /// Part of each port that is kept for frames that nobody reserved. With none, such frames pass and take their slots
    /// from those who reserve.
    pub ingress_share: Prob,
    /// Full frames that may come unreserved at once, if there is a share for them.
    pub ingress_burst: u32,
    /// Time before its slot at which a kept RSV is answered: a round trip. Only for `late`.
    pub horizon: Span,
    /// Time by which a frame may come before its slot without being treated as unsolicited.
    pub early: Span,
    /// Queue capacity of each port.
    pub buffer: Bytes,
}

/// A setting that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RackParamError {
    /// The key as written in settings.
    pub key: &'static str,
    /// Description of the error and of the expected value.
    pub expected: String,
}

impl fmt::Display for RackParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.expected)
    }
}

impl std::error::Error for RackParamError {}

/// The most that a port ever queues, by what causes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RackBound {
    /// Reserved frames: one burst of every context of every sender.
    pub reserved: Bytes,
    /// Frames that were sent without waiting for a grant.
    pub unsolicited: Bytes,
    /// Frames that nobody reserved, within their share.
    pub unreserved: Bytes,
    /// Reserved frames that come as early as is accepted.
    pub early: Bytes,
}

impl RackBound {
    /// All together.
    pub fn total(&self) -> Bytes {
        self.reserved + self.unsolicited + self.unreserved + self.early
    }
}

/// More ports than any one switch; a source port is a bit in a word.
pub(crate) const MAX_PORTS: u16 = 128;
/// Hosts number their contexts' queues with a byte, and one more is for frames that do not reserve.
pub const MAX_CONTEXTS: u16 = 255;
/// A receiver remembers in one word which frames of a burst it has.
pub(crate) const MAX_BURST: u8 = 64;

impl RackParams {
    /// The paper's values, with a slot of a full frame's wire time and one percent.
    pub fn new(scheduler: SchedulerKind, ports: u16, rate: Rate) -> Self {
        let mtu = 1_500 + HEADER_AND_CHECK;
        let slot = Self::wire_slot(rate, mtu);
        Self {
            scheduler,
            ports,
            rate,
            mtu,
            k: 4,
            t: 15,
            drop_above: 256,
            slot,
            unit: SlotUnit::Frames,
            contexts: 12,
            per_destination: false,
            unsolicited: false,
            timeout: Span::from_us(100),
            ingress_share: Prob::literal(0.0),
            ingress_burst: 16,
            horizon: Span::from_us(3),
            early: slot * 4,
            buffer: Bytes::new(1_500_000),
        }
    }

    /// The wire time of a full frame and one percent.
    pub fn wire_slot(rate: Rate, mtu: u32) -> Span {
        wire_time(rate, mtu).scale(1.01)
    }

    /// The slot exactly as printed: MTU / rate.
    pub fn printed_slot(rate: Rate, mtu: u32) -> Span {
        rate.span_of(Bytes::new(u64::from(mtu - HEADER_AND_CHECK)))
    }

    /// Checks that the parameters are possible and agree with each other.
    pub fn check(&self) -> Result<(), RackParamError> {
        let fail = |key, expected: String| Err(RackParamError { key, expected });
        if !(1..=MAX_BURST).contains(&self.k) {
            return fail("k", format!("{} frames in a burst; expected 1 to {MAX_BURST}", self.k));
        }
        if !(2..=MAX_PORTS).contains(&self.ports) {
            return fail("ports", format!("{} ports; expected 2 to {MAX_PORTS}", self.ports));
        }
        if !(1..=MAX_CONTEXTS).contains(&self.contexts) {
            return fail("contexts", format!("{} contexts a host; expected 1 to {MAX_CONTEXTS}", self.contexts));
        }
        if self.t > self.drop_above {
            let text = format!("{} slots are more than drop_above = {}; expected less", self.t, self.drop_above);
            return fail("t", text);
        }
        if self.slot < self.shortest_slot() {
            let text = format!("{} is shorter than a frame; expected at least {}", self.slot, self.shortest_slot());
            return fail("slot", text);
        }
        if self.ingress_share.get() >= 1.0 {
            return fail("ingress_share", "nothing is left to reserve; expected less than 1".to_owned());
        }
        if self.timeout == Span::ZERO {
            return fail("timeout", "an RSV would be repeated without end; expected a time above 0".to_owned());
        }
        self.check_buffer()
    }

    fn check_buffer(&self) -> Result<(), RackParamError> {
        let bound = self.bound(self.ports - 1).total();
        if bound <= self.buffer {
            return Ok(());
        }
        let (senders, contexts, k, buffer) = (self.ports - 1, self.contexts, self.k, self.buffer);
        let expected = format!(
            "{senders} hosts of {contexts} contexts and k = {k} may queue {bound}, more than the buffer of {buffer}; \
             expected fewer contexts, a smaller k or a larger buffer"
        );
        Err(RackParamError { key: "contexts", expected })
    }

    /// Checks that the ports of a switch are as fast as `rate` says. The schedule of one port says nothing about a slower
    /// one.
    pub fn check_rates(&self, rates: impl IntoIterator<Item = Rate>) -> Result<(), RackParamError> {
        match rates.into_iter().find(|rate| *rate != self.rate) {
            None => Ok(()),
            Some(other) => {
                let expected = format!("a port has {other}, another {}; expected ports of one rate", self.rate);
                Err(RackParamError { key: "rate", expected })
            }
        }
    }

    /// The paper's own slot leaves out preamble, gap and header; only the paper's scheduler may have it.
    fn shortest_slot(&self) -> Span {
        match self.scheduler {
            SchedulerKind::Paper => Self::printed_slot(self.rate, self.mtu),
            _ => wire_time(self.rate, self.mtu),
        }
    }

    /// Bytes that a full frame takes on the wire.
    pub fn full_frame(&self) -> u32 {
        on_wire(self.mtu)
    }

    /// The most frames of a burst: K; more if bytes are counted and frames are short.
    pub(crate) fn burst_frames(&self) -> u8 {
        match self.unit {
            SlotUnit::Frames => self.k,
            SlotUnit::Bytes => self.k.saturating_mul(16).min(MAX_BURST),
        }
    }

    /// The most bytes of a burst, on the wire.
    pub(crate) fn burst_bytes(&self) -> u32 {
        u32::from(self.k) * self.full_frame()
    }

    /// The most that a port queues while `senders` hosts send to it, none of them earlier than `early` allows. For `paper`
    /// this is no bound, only what a bound would be.
    pub fn bound(&self, senders: u16) -> RackBound {
        let frame = Bytes::new(u64::from(self.full_frame()));
        let contexts = if self.per_destination { 1 } else { u64::from(self.contexts) };
        RackBound {
            reserved: frame * (u64::from(senders) * contexts * u64::from(self.k)),
            unsolicited: if self.unsolicited { frame * u64::from(self.t + 1) } else { Bytes::ZERO },
            unreserved: if self.ingress_share.get() > 0.0 {
                frame * u64::from(self.ingress_burst)
            } else {
                Bytes::ZERO
            },
            early: if self.scheduler == SchedulerKind::Paper { Bytes::ZERO } else { self.rate.bytes_in(self.early) },
        }
    }
}

fn wire_time(rate: Rate, mtu: u32) -> Span {
    rate.span_of(Bytes::new(u64::from(on_wire(mtu))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rack() -> RackParams {
        RackParams::new(SchedulerKind::Clock, 6, Rate::gbps(100))
    }

    #[test]
    fn the_papers_rack_queues_369_kb_at_most() {
        assert_eq!(rack().check(), Ok(()));
        assert_eq!(rack().bound(5).reserved, Bytes::new(5 * 12 * 4 * 1_538));
        assert_eq!(RackParams { contexts: 1, ..rack() }.bound(5).reserved, Bytes::new(30_760));
        assert_eq!(RackParams { per_destination: true, ..rack() }.bound(5).reserved, Bytes::new(30_760));
    }

    #[test]
    fn nonsense_is_refused_with_its_key_and_what_is_expected() {
        let expect = |params: RackParams, text: &str| {
            let error = params.check().expect_err(text).to_string();
            assert!(error.starts_with(text), "{error}");
        };
        expect(RackParams { k: 0, ..rack() }, "k: 0 frames in a burst; expected 1 to 64");
        expect(RackParams { t: 300, ..rack() }, "t: 300 slots are more than drop_above = 256");
        expect(RackParams { slot: Span::from_ns(120), ..rack() }, "slot: 120 ns is shorter than a frame");
        expect(RackParams { contexts: 60, ..rack() }, "contexts: 5 hosts of 60 contexts and k = 4 may queue 1851");
        expect(RackParams { contexts: 0, ..rack() }, "contexts: 0 contexts");
        expect(RackParams { ports: 1, ..rack() }, "ports: 1 ports");
        expect(RackParams { timeout: Span::ZERO, ..rack() }, "timeout: an RSV");
        expect(RackParams { ingress_share: Prob::literal(1.0), ..rack() }, "ingress_share: nothing");
    }

    #[test]
    fn the_slot_as_printed_is_for_the_papers_scheduler_only() {
        let slot = RackParams::printed_slot(Rate::gbps(100), 1_518);
        assert_eq!(slot, Span::from_ns(120));
        assert_eq!(RackParams { slot, scheduler: SchedulerKind::Paper, ..rack() }.check(), Ok(()));
    }

    #[test]
    fn a_slower_port_is_refused() {
        assert_eq!(rack().check_rates([Rate::gbps(100); 3]), Ok(()));
        let error = rack().check_rates([Rate::gbps(100), Rate::gbps(25)]).expect_err("unequal");
        assert_eq!(error.to_string(), "rate: a port has 25G, another 100G; expected ports of one rate");
    }
}
