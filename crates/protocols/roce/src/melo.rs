//! MELO: selective retransmission with almost no memory on the chip.
//!
//! "Memory Efficient Loss Recovery for Hardware-based Transport in Datacenter" (APNet'17) §3. A bitmap for each connection
//! would be larger than all the rest that a NIC keeps of it. But what is out of order at any time, over all connections,
//! is no more than bandwidth times round trip: they share one small [`BlockPool`] of bits, a block at a time.
//!
//! | paper | here |
//! | --- | --- |
//! | §3.2.2 off-chip re-ordering buffer | the receiver of [`selective`](super::selective) |
//! | §3.2.3 bits allocation, Fig. 3(a, b) | [`BlockPool`] |
//! | §3.2.3 bits block concatenation, Fig. 3(c) | `bitmap` |
//! | §3.2.3 and §3.2.4 at the receiver: front, end, three latest holes | [`ReceiveTrack`] |
//! | §3.2.4 at the sender: the receiver's bitmap, restored from NACKs | [`Resend`] |
//! | §3.2.4 what it takes | [`ChipMemory`] |
//! | §3.2.5 not enough bits, swapping | [`Melo`] |
//!
//! **Not enough bits.** A packet that there are no bits for is dropped, as go-back-N drops it. What brings it back: a
//! receiver that tracks nothing sends a bare NACK, once for each expected PSN, and its sender goes back there. A connection
//! that tracks something has already reported its first hole. Once bits are free again, a later packet makes a hole of what
//! was dropped, and the receiver reports it. If nothing comes later, or the report is lost, the sender times out. A sender
//! without bits goes back to the first hole that it could not keep. A receiver has no timer: if its peer dies behind a gap,
//! the blocks stay taken until the connection is swapped out or dropped.
//!
//! Invariants: on the chip a connection takes 20 bytes at the receiver and 8 at the sender, and blocks; each block of a
//! pool is free or in the bitmap of one connection, never both; a connection that ends gives its blocks back.

mod account;
pub mod bench;
mod bitmap;
mod pool;
mod resend;
mod track;

use std::cell::{Ref, RefCell};
use std::ops::Range;
use std::rc::Rc;

use super::psn::{Numbering, Psn};
use super::selective::{ForgottenState, Gaps, Hole, Holes, LossRecovery, NackInfo, PacketArrival, SendWindow};

pub use account::{ChipMemory, QP_CONTEXT};
pub use pool::{BlockPointer, BlockPool, PoolConfig, PoolError, PoolUsage};
pub use resend::Resend;
pub use track::{ArrivalPosition, OffChip, ReceiveTrack};

/// The two pools of a NIC. A clone is a handle on the same pools.
#[derive(Debug)]
pub struct Nic<S = u8> {
    receive: Rc<RefCell<BlockPool<S>>>,
    send: Rc<RefCell<BlockPool<S>>>,
}

impl<S> Clone for Nic<S> {
    fn clone(&self) -> Self {
        Self { receive: Rc::clone(&self.receive), send: Rc::clone(&self.send) }
    }
}

impl<S: BlockPointer> Nic<S> {
    /// Makes two equal pools, as in the paper: a sender never needs more bits than its receiver.
    pub fn new(config: PoolConfig) -> Result<Self, PoolError> {
        let pool = || BlockPool::new(config).map(|pool| Rc::new(RefCell::new(pool)));
        Ok(Self { receive: pool()?, send: pool()? })
    }

    /// Pool that the receivers of this NIC share. Release the reference at once: a connection of this NIC that receives, is
    /// swapped out or dropped while it is held panics.
    pub fn receive(&self) -> Ref<'_, BlockPool<S>> {
        self.receive.borrow()
    }

    /// Pool that its senders share; release it in the same way, before one of them hears or sends anything.
    pub fn send(&self) -> Ref<'_, BlockPool<S>> {
        self.send.borrow()
    }
}

/// State of a swapped-out connection that is kept off the chip.
#[derive(Debug)]
struct SwappedConnection {
    track: OffChip,
    resend: Vec<bool>,
}

/// NACK that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DueNack {
    Nothing,
    /// A hole is new.
    Holes,
    /// State in which something was dropped and nothing is tracked.
    Bare,
}

/// A connection, with both halves and its share of the pools.
#[derive(Debug)]
pub struct Melo<S: BlockPointer = u8> {
    nic: Nic<S>,
    numbering: Numbering,
    track: ReceiveTrack<S>,
    resend: Resend<S>,
    /// State of NAKs, as in go-back-N: one is due, or one was sent for this ePSN.
    due: DueNack,
    bare_sent: bool,
    away: Option<Box<SwappedConnection>>,
}

impl<S: BlockPointer> Melo<S> {
    pub(super) fn new(nic: &Nic<S>, first: Psn) -> Self {
        Self {
            nic: nic.clone(),
            numbering: Numbering::starting_at(first),
            track: ReceiveTrack::new(first),
            resend: Resend::new(first),
            due: DueNack::Nothing,
            bare_sent: false,
            away: None,
        }
    }

    /// The receiving half; empty while the connection is swapped out.
    pub fn track(&self) -> &ReceiveTrack<S> {
        &self.track
    }

    pub(super) fn swap_out(&mut self) {
        if self.away.is_some() {
            return;
        }
        let track = self.track.swap_out(&mut self.nic.receive.borrow_mut());
        let resend = self.resend.swap_out(&mut self.nic.send.borrow_mut());
        self.away = Some(Box::new(SwappedConnection { track, resend }));
    }

    fn swap_in(&mut self, away: SwappedConnection, una: u64) -> ForgottenState {
        let mut forgotten = ForgottenState::default();
        if !self.track.swap_in(&mut self.nic.receive.borrow_mut(), away.track) {
            forgotten.arrivals = true;
            // The sender believes that most of it is here, so say otherwise even if a bare NACK went out before.
            self.due = DueNack::Bare;
        }
        if !self.resend.swap_in(&mut self.nic.send.borrow_mut(), &away.resend) {
            forgotten.resend_from = self.numbering.place(self.resend.known_before(), una);
        }
        forgotten
    }

    /// Takes in the part of a hole that is news.
    fn learn_hole(&mut self, hole: Range<u64>, una: u64) -> NackInfo {
        let known = self.numbering.place(self.resend.known_before(), una).unwrap_or(una);
        let start = hole.start.max(known);
        if start >= hole.end {
            return NackInfo::Nothing;
        }
        let len = (hole.end - start) as u32;
        if self.resend.learn(&mut self.nic.send.borrow_mut(), self.numbering.psn(start), len) {
            NackInfo::News
        } else {
            NackInfo::GoBack(start)
        }
    }

    /// Places of a hole of a NACK; `None` if the hole is impossible.
    fn hole_at(&self, hole: Hole, expected: u64, sent: u64) -> Option<Range<u64>> {
        let base = self.numbering.psn(expected).number() as u16;
        let start = expected + u64::from(hole.start.wrapping_sub(base));
        let end = start + u64::from(hole.len);
        // Something behind it arrived, so something behind it was sent.
        (end < sent).then_some(start..end)
    }
}

impl<S: BlockPointer> LossRecovery for Melo<S> {
    #[inline]
    fn arrive(&mut self, place: u64) -> PacketArrival {
        match self.track.arrive(&mut self.nic.receive.borrow_mut(), self.numbering.psn(place)) {
            ArrivalPosition::Next { passed, filled } => {
                self.bare_sent = false;
                if self.due == DueNack::Holes && self.track.is_empty() {
                    self.due = DueNack::Nothing;
                }
                PacketArrival::Next { passed: u64::from(passed), filled }
            }
            ArrivalPosition::Ahead { hole } => {
                // A sender that has not heard yet that everything was forgotten would take these holes for all there are.
                if hole && self.due != DueNack::Bare {
                    self.due = DueNack::Holes;
                }
                PacketArrival::Ahead
            }
            ArrivalPosition::NoBits => {
                if self.track.is_empty() && !self.bare_sent {
                    self.due = DueNack::Bare;
                }
                PacketArrival::Dropped
            }
            ArrivalPosition::Middle | ArrivalPosition::Behind => PacketArrival::Dropped,
        }
    }

    fn owes_nack(&self) -> bool {
        self.due != DueNack::Nothing
    }

    fn next_nack(&mut self) -> Option<Gaps> {
        match std::mem::replace(&mut self.due, DueNack::Nothing) {
            DueNack::Nothing => None,
            DueNack::Holes => Some(Gaps::Holes(self.track.holes())),
            DueNack::Bare => {
                self.bare_sent = true;
                Some(Gaps::Holes(Holes::none()))
            }
        }
    }

    fn learn(&mut self, gaps: Gaps, expected: u64, window: SendWindow) -> NackInfo {
        let Gaps::Holes(holes) = gaps else { return NackInfo::Invalid };
        if holes.is_empty() {
            if expected < window.una {
                return NackInfo::Nothing;
            }
            self.restart(window.una);
            return NackInfo::GoBack(window.una);
        }
        let mut learned = NackInfo::Nothing;
        for hole in holes.iter() {
            let Some(hole) = self.hole_at(hole, expected, window.sent) else { return NackInfo::Invalid };
            // Packets behind the cursor will be sent in any case.
            match self.learn_hole(hole.start.max(window.una)..hole.end.min(window.cursor), window.una) {
                NackInfo::Nothing => {}
                NackInfo::News => learned = NackInfo::News,
                other => return other,
            }
        }
        learned
    }

    #[inline]
    fn again(&self, una: u64) -> Option<u64> {
        self.resend.front().and_then(|psn| self.numbering.place(psn, una))
    }

    fn sent_again(&mut self) {
        self.resend.pass_front(&mut self.nic.send.borrow_mut());
    }

    fn has_arrived(&self, _place: u64) -> bool {
        false
    }

    #[inline]
    fn acknowledged(&mut self, una: u64) {
        self.resend.acknowledged(&mut self.nic.send.borrow_mut(), self.numbering.psn(una));
    }

    fn restart(&mut self, una: u64) {
        self.resend.clear(&mut self.nic.send.borrow_mut(), self.numbering.psn(una));
    }

    #[inline]
    fn bring_in(&mut self, una: u64) -> Option<ForgottenState> {
        let away = self.away.take()?;
        Some(self.swap_in(*away, una))
    }

    fn close(&mut self) {
        self.away = None;
        self.track.clear(&mut self.nic.receive.borrow_mut());
        let at = self.resend.known_before();
        self.resend.clear(&mut self.nic.send.borrow_mut(), at);
    }

    fn check_invariants(&self) {
        let (receive, send) = (self.nic.receive(), self.nic.send());
        receive.check_invariants(self.track.blocks(&receive));
        send.check_invariants(self.resend.blocks(&send));
    }
}

impl<S: BlockPointer> Drop for Melo<S> {
    fn drop(&mut self) {
        self.close();
    }
}
