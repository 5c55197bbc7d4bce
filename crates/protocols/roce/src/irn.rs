//! IRN-style selective repeat: what MELO is measured against, with all the memory it wants.
//!
//! "Revisiting Network Support for RDMA" (SIGCOMM'18) §3.1 and §3.2. Each end of each connection has a bitmap as long as
//! what may be outstanding, which is one bandwidth-delay product (BDP-FC). The receiver places any packet and reports
//! each that comes out of order; the sender enters recovery with the first such NACK and leaves it when everything is
//! acknowledged that had been sent by then:
//!
//! ```text
//!             NACK                                    una >= recover
//!   Normal ──────────▶ Recovery, recover = sent ────────────────────▶ Normal
//!                         each packet that is not known to have arrived, and lies before one
//!                         that did, is sent again, once in this recovery
//! ```
//!
//! The next recovery begins at una again, and sends once more what the last one sent and the receiver has not reported
//! yet, although fills may still be on their way. A packet that is lost twice waits for that, or for the timeout. The
//! timeout is short while few packets are outstanding: no later packet may follow whose arrival would show the loss.
//!
//! Invariant: bitmaps hold bits only for places of the current window.

mod ring;

use std::collections::VecDeque;

use units::Span;

use super::psn::{Numbering, Psn};
use super::selective::{ForgottenState, Gaps, LossRecovery, NackInfo, PacketArrival, SendWindow};
use ring::BitRing;

/// Timeout when hardly anything is outstanding; otherwise it is the connection's timeout (RTO_high).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// RTO_low.
    pub low: Span,
    /// Number of outstanding packets below which the low timeout applies.
    pub few: u32,
}

impl Timeouts {
    /// Setting in which no number of packets counts as few.
    pub(crate) const ALWAYS_HIGH: Self = Self { low: Span::ZERO, few: 0 };

    /// Time to wait for progress with this many packets outstanding.
    pub(super) fn choose(self, high: Span, outstanding: u64) -> Span {
        if outstanding < u64::from(self.few) { self.low.min(high) } else { high }
    }
}

impl Default for Timeouts {
    /// The paper's: 100 µs with fewer than three packets. Its RTO_high is 320 µs.
    fn default() -> Self {
        Self { low: Span::from_us(100), few: 3 }
    }
}

/// A connection, with both halves: two bitmaps of one bit for each packet that may be outstanding.
#[derive(Debug)]
pub struct Irn {
    numbering: Numbering,

    /// ePSN, as a place.
    next: u64,
    arrived: BitRing,
    /// Number of bits of `arrived` that are set.
    ahead: u64,
    /// Places that arrived out of order and are still to be reported.
    owed: VecDeque<u64>,

    una: u64,
    sacked: BitRing,
    /// Place whose acknowledgement ends the recovery.
    recover: Option<u64>,
    /// Place to send again next, if it lies before `lost_before`.
    again: u64,
    lost_before: u64,
}

impl Irn {
    pub(super) fn new(max_outstanding: u32, first: Psn) -> Self {
        Self {
            numbering: Numbering::starting_at(first),
            next: 0,
            arrived: BitRing::new(max_outstanding),
            ahead: 0,
            owed: VecDeque::new(),
            una: 0,
            sacked: BitRing::new(max_outstanding),
            recover: None,
            again: 0,
            lost_before: 0,
        }
    }

    /// Bits of each of the two bitmaps.
    pub fn bitmap_bits(&self) -> u64 {
        self.sacked.bits()
    }

    fn on_next(&mut self) -> PacketArrival {
        let (from, filled) = (self.next, self.ahead > 0);
        self.next += 1;
        while self.arrived.take(self.next) {
            self.next += 1;
            self.ahead -= 1;
        }
        self.owed.retain(|place| *place >= self.next);
        PacketArrival::Next { passed: self.next - from, filled }
    }

    /// Moves on to the next that is not known to have arrived.
    fn step_over_sacked(&mut self) {
        self.again = self.again.max(self.una);
        while self.again < self.lost_before && self.sacked.get(self.again) {
            self.again += 1;
        }
    }
}

impl LossRecovery for Irn {
    #[inline]
    fn arrive(&mut self, place: u64) -> PacketArrival {
        if place == self.next {
            return self.on_next();
        }
        // Each is queued at most once, so that copies cannot make the queue longer than the window.
        if !self.owed.contains(&place) {
            self.owed.push_back(place);
        }
        if self.arrived.get(place) {
            return PacketArrival::Held;
        }
        self.arrived.set(place);
        self.ahead += 1;
        PacketArrival::Ahead
    }

    fn owes_nack(&self) -> bool {
        !self.owed.is_empty()
    }

    fn next_nack(&mut self) -> Option<Gaps> {
        self.owed.pop_front().map(|place| Gaps::Sacked(self.numbering.psn(place)))
    }

    fn learn(&mut self, gaps: Gaps, expected: u64, window: SendWindow) -> NackInfo {
        let Gaps::Sacked(psn) = gaps else { return NackInfo::Invalid };
        let place = self.numbering.place(psn, expected).filter(|place| (expected + 1..window.sent).contains(place));
        let Some(place) = place else { return NackInfo::Invalid };
        if place < window.una || self.sacked.get(place) {
            return NackInfo::Nothing;
        }
        self.sacked.set(place);
        if self.recover.is_none() {
            self.recover = Some(window.sent);
            (self.again, self.lost_before) = (window.una, window.una);
        }
        // Packets behind the cursor will be sent in any case.
        self.lost_before = self.lost_before.max(place.min(window.cursor));
        self.step_over_sacked();
        NackInfo::News
    }

    #[inline]
    fn again(&self, _una: u64) -> Option<u64> {
        (self.again < self.lost_before).then_some(self.again)
    }

    fn sent_again(&mut self) {
        self.again += 1;
        self.step_over_sacked();
    }

    fn has_arrived(&self, place: u64) -> bool {
        self.sacked.get(place)
    }

    #[inline]
    fn acknowledged(&mut self, una: u64) {
        (self.una..una).for_each(|place| _ = self.sacked.take(place));
        self.una = una;
        self.recover = self.recover.filter(|recover| una < *recover);
        self.step_over_sacked();
    }

    fn restart(&mut self, una: u64) {
        self.recover = None;
        (self.again, self.lost_before) = (una, una);
    }

    fn bring_in(&mut self, _una: u64) -> Option<ForgottenState> {
        None
    }

    fn close(&mut self) {}
}
