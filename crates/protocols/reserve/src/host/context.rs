//! A context: one queue above, at most one burst open.

use std::collections::VecDeque;

use machine::{Out, QueueId};
use units::{Span, Time};
use wire::ethernet::on_wire;
use wire::reserve::{ATTEMPTS, BurstId, DataMark, Demand, HostKey, RESERVE_CLASSES, Reservation};

use super::ReservingHost;
use crate::frame::RackFrame;
use crate::params::{MAX_BURST, RackParams};

/// State of a context's burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContextState {
    /// There is no burst.
    Idle,
    /// The RSV of the burst is on its way or, if not yet `sent`, about to leave.
    Asking {
        /// Time at which the last RSV left.
        sent: Option<Time>,
        /// Ordinal of that RSV, from 0.
        attempt: u8,
    },
    /// The burst waits for its slot.
    Granted,
    /// The burst is being sent.
    Sending,
    /// The RSV was answered while copies of it were still being sent, and need not be sent again.
    Copying,
}

/// Marking with which the frames of a burst leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BurstMarking {
    /// Frames with a mark, in their slot.
    Reserved,
    /// Frames with the mark of unsolicited frames; a copy is kept in case they are cut.
    Unsolicited,
    /// Frames without a mark.
    Unmarked,
}

/// An unsolicited frame that may still be cut.
#[derive(Debug)]
struct SentFrame<B> {
    at: Time,
    burst: u32,
    index: u8,
    frame: B,
}

/// Result of assembling a burst from the queue above.
pub(super) enum BurstAssembly<B> {
    Nothing,
    /// A frame that does not reserve.
    Unreserved(B),
    Burst,
}

#[derive(Debug)]
pub(super) struct SendContext<B> {
    number: u16,
    /// True while it waits in the list of contexts that may have something to ask for.
    pub(super) listed: bool,
    pub(super) state: ContextState,
    pub(super) marking: BurstMarking,
    /// Number of the open burst, or of the last one.
    pub(super) burst: u32,
    pub(super) to: HostKey,
    class: u8,
    pub(super) demand: Demand,
    /// Frames of the burst that have not left.
    pub(super) frames: VecDeque<B>,
    /// Index of the next frame.
    index: u8,
    /// The paper's way: copies of the burst leave behind its RSV, this one next.
    pub(super) copying: Option<u8>,
    /// True once copies of the burst have left.
    pub(super) copied: bool,
    /// Frames that go before those of the queue above.
    backlog: VecDeque<B>,
    sent: VecDeque<SentFrame<B>>,
    /// Bitmap of the last 64 bursts that went unsolicited, the last one first.
    unsolicited: u64,
    /// Time before which nothing is sent unsolicited.
    reserve_until: Time,
    most_frames: usize,
    most_bytes: u32,
}

impl<B: RackFrame> SendContext<B> {
    pub(super) fn new(number: u16, rack: &RackParams) -> Self {
        let most_frames = usize::from(rack.burst_frames());
        Self {
            number,
            listed: false,
            state: ContextState::Idle,
            marking: BurstMarking::Reserved,
            burst: 0,
            to: HostKey::default(),
            class: 0,
            demand: Demand::default(),
            frames: VecDeque::with_capacity(most_frames),
            index: 0,
            copying: None,
            copied: false,
            backlog: VecDeque::with_capacity(1),
            sent: VecDeque::new(),
            unsolicited: 0,
            reserve_until: Time::ZERO,
            most_frames,
            most_bytes: rack.burst_bytes(),
        }
    }

    pub(super) fn lane(&self) -> QueueId {
        QueueId(self.number as u8)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state == ContextState::Idle
    }

    pub(super) fn is_granted(&self) -> bool {
        self.state == ContextState::Granted
    }

    pub(super) fn is_asking(&self, burst: u32, attempt: u8) -> bool {
        self.burst == burst
            && matches!(self.state, ContextState::Asking { sent: Some(_), attempt: current } if current == attempt)
    }

    pub(super) fn held_frames(&self) -> usize {
        self.frames.len() + self.backlog.len() + self.sent.len()
    }

    fn next_above<O: Out<ReservingHost<B>>>(&mut self, out: &mut O) -> Option<B> {
        self.backlog.pop_front().or_else(|| out.take(self.lane()))
    }

    /// True if there is more to send after this burst.
    #[inline]
    pub(super) fn has_more<O: Out<ReservingHost<B>>>(&self, out: &O) -> bool {
        !self.backlog.is_empty() || out.waiting(self.lane())
    }

    /// Takes the next burst from the queue above: frames of one class for one destination.
    pub(super) fn assemble<O: Out<ReservingHost<B>>>(&mut self, out: &mut O) -> BurstAssembly<B> {
        debug_assert!(self.frames.is_empty() && self.is_idle());
        let Some(first) = self.next_above(out) else { return BurstAssembly::Nothing };
        let Some(to) = first.destination().filter(|_| on_wire(first.len()) <= self.most_bytes) else {
            return BurstAssembly::Unreserved(first);
        };
        (self.to, self.class) = (to, first.class().min(RESERVE_CLASSES - 1));
        self.demand = Demand::default();
        self.add(first);
        while self.frames.len() < self.most_frames {
            let Some(next) = self.next_above(out) else { break };
            let fits = next.destination() == Some(to)
                && next.class().min(RESERVE_CLASSES - 1) == self.class
                && self.demand.bytes + on_wire(next.len()) <= self.most_bytes;
            if !fits {
                self.backlog.push_front(next);
                break;
            }
            self.add(next);
        }
        self.begin();
        BurstAssembly::Burst
    }

    fn add(&mut self, frame: B) {
        self.demand.frames += 1;
        self.demand.bytes += on_wire(frame.len());
        self.frames.push_back(frame);
    }

    /// Makes `frames` a burst of its own that is to be asked for.
    fn begin(&mut self) {
        self.burst = self.burst.wrapping_add(1);
        self.unsolicited <<= 1;
        self.index = 0;
        (self.copying, self.copied) = (None, false);
        self.marking = BurstMarking::Reserved;
        self.state = ContextState::Asking { sent: None, attempt: 0 };
    }

    /// Makes the rest of the burst another one, which is to be asked for.
    pub(super) fn begin_again(&mut self) {
        let bytes = self.frames.iter().map(|frame| on_wire(frame.len())).sum();
        self.demand = Demand { frames: self.frames.len() as u8, bytes };
        self.begin();
    }

    /// The RSV is to be sent once more.
    pub(super) fn ask_again(&mut self) {
        if let ContextState::Asking { sent, attempt } = &mut self.state {
            (*sent, *attempt) = (None, *attempt + 1);
        }
    }

    /// The RSV leaves.
    pub(super) fn asked(&mut self, now: Time) -> u8 {
        match &mut self.state {
            ContextState::Asking { sent, attempt } => {
                *sent = Some(now);
                *attempt
            }
            _ => 0,
        }
    }

    /// Contents of an RSV, or of a message that gives the reservation back; `None` if nothing is reserved or asked for.
    pub(super) fn reservation(&self, host_epoch: u16, switch_epoch: u16) -> Option<Reservation> {
        let attempt = match self.state {
            ContextState::Asking { attempt, .. } => attempt,
            ContextState::Granted if self.marking == BurstMarking::Reserved => 0,
            _ => return None,
        };
        let id = BurstId { host_epoch, context: self.number, burst: self.burst };
        let (class, peer, demand) = (self.class, self.to, self.demand);
        Some(Reservation { id, attempt: attempt % ATTEMPTS, class, switch_epoch, peer, demand })
    }

    /// The burst may leave without a mark.
    pub(super) fn grant_unmarked<O: Out<ReservingHost<B>>>(&mut self, out: &mut O) {
        if self.copied {
            // Copies of it have left: what is here would be the second ones.
            self.release_all(out);
        }
        self.marking = BurstMarking::Unmarked;
        self.state = ContextState::Granted;
    }

    fn release_all<O: Out<ReservingHost<B>>>(&mut self, out: &mut O) {
        self.frames.drain(..).for_each(|frame| out.release(frame));
    }

    /// The burst is over.
    pub(super) fn finish<O: Out<ReservingHost<B>>>(&mut self, out: &mut O) {
        self.release_all(out);
        (self.copying, self.copied) = (None, false);
        self.state = ContextState::Idle;
    }

    /// The mark of the frame with this index.
    #[inline]
    pub(super) fn mark(&self, host_epoch: u16, switch_epoch: u16, index: u8, unsolicited: bool) -> DataMark {
        let id = BurstId { host_epoch, context: self.number, burst: self.burst };
        DataMark { id, switch_epoch, class: self.class, unsolicited, index, of: self.demand.frames }
    }

    /// The next frame of the burst and its index.
    #[inline]
    pub(super) fn next_frame(&mut self) -> Option<(u8, B)> {
        let frame = self.frames.pop_front()?;
        let index = self.index;
        self.index += 1;
        Some((index, frame))
    }

    /// True if the burst may leave unsolicited: it is all that there is, and no frame was cut of late.
    pub(super) fn may_be_unsolicited<O: Out<ReservingHost<B>>>(&self, now: Time, out: &O) -> bool {
        let room = self.sent.len() + self.frames.len() <= usize::from(MAX_BURST);
        now >= self.reserve_until && room && !self.has_more(out)
    }

    /// The burst leaves unsolicited.
    pub(super) fn grant_unsolicited(&mut self) {
        (self.state, self.marking) = (ContextState::Granted, BurstMarking::Unsolicited);
        self.unsolicited |= 1;
    }

    /// True if a burst went unsolicited, as far back as is known.
    pub(super) fn was_unsolicited(&self, burst: u32) -> bool {
        self.unsolicited.checked_shr(self.burst.wrapping_sub(burst)).is_some_and(|bursts| bursts & 1 != 0)
    }

    /// Keeps a copy of an unsolicited frame.
    pub(super) fn remember(&mut self, at: Time, index: u8, frame: B) {
        self.sent.push_back(SentFrame { at, burst: self.burst, index, frame });
    }

    /// Releases unsolicited frames that were sent so long ago that the switch did not cut them.
    pub(super) fn forget_sent<O: Out<ReservingHost<B>>>(&mut self, now: Time, timeout: Span, out: &mut O) {
        while let Some(sent) = self.sent.pop_front_if(|sent| sent.at + timeout <= now) {
            out.release(sent.frame);
        }
    }

    /// A frame was cut, and with it all unsolicited ones behind it: they are to go again, before anything that has not
    /// left. How many these are.
    pub(super) fn take_back(&mut self, burst: u32, index: u8, until: Time) -> Option<usize> {
        let at = self.sent.iter().position(|sent| sent.burst == burst && sent.index == index)?;
        let cut = self.sent.split_off(at);
        let count = cut.len();
        self.reserve_until = until;
        let behind = std::mem::take(&mut self.backlog);
        self.backlog.extend(cut.into_iter().map(|sent| sent.frame).chain(self.frames.drain(..)).chain(behind));
        self.state = ContextState::Idle;
        Some(count)
    }

    pub(super) fn check_invariants(&self) {
        match self.state {
            ContextState::Idle => assert!(self.frames.is_empty(), "an idle context has no burst"),
            ContextState::Asking { .. } => {
                assert_eq!(self.frames.len(), usize::from(self.demand.frames), "nothing left before it was granted");
            }
            ContextState::Granted | ContextState::Sending | ContextState::Copying => (),
        }
        assert!(self.frames.len() <= self.most_frames && self.sent.len() <= usize::from(MAX_BURST));
    }
}
