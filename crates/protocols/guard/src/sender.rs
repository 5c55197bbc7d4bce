//! The sending side of one class: number the frames, keep them, send again what is missing.
//!
//! LinkGuardian (SIGCOMM'23) §3 and App. A.2. Frames are kept from `base` to `next`; what the receiver
//! has reported on reaches up to `reported`. A kept frame is freed when a report covers it and does not
//! list it as missing, and only then: in the paper any later acknowledgement frees it, so that a lost
//! notice loses its frame.
//!
//! ```text
//!     base            reported          next
//!      │  freed, but    │  in flight      │
//!   ───┼──for the held──┼─────────────────┼──▶
//! ```
//!
//! A report never claims a frame that was not received or given up at the time; so reports may arrive
//! late, twice or out of order, and none frees too much.
//!
//! Invariants: the window stays within its bounds in frames and bytes; `held` is exactly the kept
//! frames before `reported`.

use std::collections::VecDeque;

use machine::{FrameBody, Out, QueueId};
use units::Bytes;
use wire::Seq;
use wire::link::{Feedback, FlowControl};

use crate::counters::Counters;
use crate::dummies::Dummies;
use crate::endpoint::Endpoint;
use crate::params::Params;

#[derive(Debug)]
struct WindowSlot<B> {
    /// `None` once freed.
    body: Option<B>,
    /// Requests served, so that a copy of a request is not served again.
    rounds: u8,
    queued: bool,
    /// The paper's sender keeps a requested frame until it has been sent.
    free_when_sent: bool,
}

impl<B> Default for WindowSlot<B> {
    fn default() -> Self {
        Self { body: None, rounds: 0, queued: false, free_when_sent: false }
    }
}

#[derive(Debug)]
pub(crate) struct Sender<B> {
    first: Seq,
    base: Seq,
    reported: Seq,
    next: Seq,
    /// A ring with a slot for each number, modulo its length: a power of two above the window.
    ring: Box<[WindowSlot<B>]>,
    held: Vec<Seq>,
    bytes: Bytes,
    peak: Bytes,
    requested: VecDeque<Seq>,
    copies_sent: u8,
    wish: FlowControl,
    pub(crate) dummies: Dummies,
    max_frames: i32,
    max_bytes: Bytes,
    mtu: u32,
    paper_acks: bool,
}

/// A report that no receiver of ours could have sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ImpossibleAck;

impl<B: FrameBody> Sender<B> {
    /// The window in use is the smaller one of the two ends': the receiver has room for its own.
    pub(crate) fn new(params: &Params, peer_window: u32) -> Self {
        let first = params.first_seq;
        let max_frames = params.window_frames.min(peer_window).min(Seq::MAX_WINDOW);
        let ring = (max_frames as usize + 1).next_power_of_two();
        Self {
            first,
            base: first,
            reported: first,
            next: first,
            ring: std::iter::repeat_with(WindowSlot::default).take(ring).collect(),
            held: Vec::new(),
            bytes: Bytes::ZERO,
            peak: Bytes::ZERO,
            requested: VecDeque::new(),
            copies_sent: 0,
            wish: FlowControl::Flow,
            dummies: Dummies::new(params.dummies),
            max_frames: max_frames as i32,
            max_bytes: params.window_bytes,
            mtu: params.mtu + params.second_tag,
            paper_acks: params.paper_acks,
        }
    }

    /// True if everything sent was received or given up.
    #[inline]
    pub(crate) fn is_drained(&self) -> bool {
        self.base == self.next
    }

    /// The peer has acknowledged a frame.
    pub(crate) fn is_answered(&self) -> bool {
        self.reported != self.first
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.wish == FlowControl::Hold
    }

    pub(crate) fn is_retransmitting(&self) -> bool {
        !self.requested.is_empty() || !self.held.is_empty()
    }

    #[inline]
    pub(crate) fn has_requests(&self) -> bool {
        !self.requested.is_empty()
    }

    pub(crate) fn latest_sent(&self) -> Seq {
        self.next.previous()
    }

    pub(crate) fn buffered(&self) -> Bytes {
        self.bytes
    }

    pub(crate) fn peak(&self) -> Bytes {
        self.peak
    }

    /// True if a new frame may go on the wire now.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.wish == FlowControl::Flow
            && self.next.offset_from(self.base) < self.max_frames
            && self.bytes + Bytes::new(u64::from(self.mtu)) <= self.max_bytes
    }

    /// True if dummies are called for when there is nothing else to send.
    #[inline]
    pub(crate) fn wants_dummies(&self) -> bool {
        !self.is_drained() || self.is_paused() || self.dummies.is_endless()
    }

    #[inline(always)]
    fn slot(&mut self, seq: Seq) -> &mut WindowSlot<B> {
        let at = usize::from(seq.number()) & (self.ring.len() - 1);
        &mut self.ring[at]
    }

    /// The slot of a frame that is in the window and not freed yet.
    fn kept(&mut self, seq: Seq) -> Option<&mut WindowSlot<B>> {
        let inside = seq.offset_from(self.base) >= 0 && seq.offset_from(self.next) < 0;
        inside.then(|| self.slot(seq)).filter(|slot| slot.body.is_some())
    }

    /// Takes a frame into the window; its number.
    #[inline(always)]
    pub(crate) fn push(&mut self, kept: B) -> Seq {
        let seq = self.next;
        self.bytes += Bytes::new(u64::from(kept.len()));
        self.peak = self.peak.max(self.bytes);
        *self.slot(seq) = WindowSlot { body: Some(kept), ..WindowSlot::default() };
        self.next = seq.next();
        self.dummies.restart();
        seq
    }

    /// Takes a report of the receiver. Returns the number of frames that it reports missing for the first time.
    pub(crate) fn on_feedback<O>(&mut self, feedback: &Feedback, out: &mut O) -> Result<u32, ImpossibleAck>
    where
        O: Out<Endpoint<B>>,
    {
        if !feedback.has_gaps() && self.is_in_order() {
            return self.on_ack(feedback.latest, feedback.wish, out).map(|()| 0);
        }
        let covered = feedback.latest.next();
        if covered.offset_from(self.next) > 0 {
            return Err(ImpossibleAck);
        }
        self.wish = feedback.wish;
        self.free_covered(covered, feedback, out);
        while self.base != self.reported && self.slot(self.base).body.is_none() {
            self.base = self.base.next();
        }
        Ok(feedback.gaps().iter().map(|gap| self.request(gap.first(), gap.frames(), gap.round())).sum())
    }

    /// True if a report speaks of what is outstanding now, not of what was settled before. A receiver that lost its place
    /// says the same stale thing for ever, and must not pass for one that answers.
    #[inline(always)]
    pub(crate) fn is_fresh(&self, latest: Seq) -> bool {
        latest.next().offset_from(self.base) >= 0
    }

    /// True if nothing is missing as far as we know: a report without gaps frees all that it covers.
    #[inline(always)]
    pub(crate) fn is_in_order(&self) -> bool {
        self.held.is_empty() && self.requested.is_empty()
    }

    /// A report without gaps while [`Self::is_in_order`].
    #[inline(always)]
    pub(crate) fn on_ack<O: Out<Endpoint<B>>>(
        &mut self,
        latest: Seq,
        wish: FlowControl,
        out: &mut O,
    ) -> Result<(), ImpossibleAck> {
        let covered = latest.next();
        if covered.offset_from(self.next) > 0 {
            return Err(ImpossibleAck);
        }
        self.wish = wish;
        while covered.offset_from(self.base) > 0 {
            if let Some(body) = self.slot(self.base).body.take() {
                self.bytes -= Bytes::new(u64::from(body.len()));
                out.release(body);
            }
            self.base = self.base.next();
            self.reported = self.base;
        }
        Ok(())
    }

    fn free_covered<O: Out<Endpoint<B>>>(&mut self, covered: Seq, feedback: &Feedback, out: &mut O) {
        let before = self.held.len();
        while covered.offset_from(self.reported) > 0 {
            let seq = self.reported;
            if feedback.lists(seq) || !self.free(seq, out) {
                self.held.push(seq);
            }
            self.reported = seq.next();
        }
        // A frame held from an earlier report may have arrived since.
        let mut at = 0;
        for _ in 0..before {
            let seq = self.held[at];
            let settled = covered.offset_from(seq) > 0 && !feedback.lists(seq);
            if settled && self.free(seq, out) {
                self.held.swap_remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// Frees a frame, or marks it to be freed when sent. True if nothing is kept.
    fn free<O: Out<Endpoint<B>>>(&mut self, seq: Seq, out: &mut O) -> bool {
        let keep_until_sent = self.paper_acks;
        let slot = self.slot(seq);
        if keep_until_sent && slot.queued {
            slot.free_when_sent = true;
            return false;
        }
        if let Some(body) = slot.body.take() {
            self.bytes -= Bytes::new(u64::from(body.len()));
            out.release(body);
        }
        true
    }

    fn request(&mut self, first: Seq, frames: u32, round: u8) -> u32 {
        let mut fresh = 0;
        for n in 0..frames {
            let seq = first.plus(n);
            let Some(slot) = self.kept(seq).filter(|slot| slot.rounds <= round) else { continue };
            fresh += u32::from(slot.rounds == 0);
            slot.rounds = round + 1;
            if !slot.queued {
                slot.queued = true;
                self.requested.push_back(seq);
            }
        }
        fresh
    }

    /// The next copy to be sent again, if any: its number and a handle on the frame.
    pub(crate) fn next_copy<O: Out<Endpoint<B>>>(&mut self, copies: u8, out: &mut O) -> Option<(Seq, B)> {
        while let Some(&seq) = self.requested.front() {
            let Some(body) = self.kept(seq).and_then(|slot| slot.body.as_ref()).map(|body| out.keep(body)) else {
                self.requested.pop_front();
                self.copies_sent = 0;
                continue;
            };
            self.copies_sent += 1;
            if self.copies_sent >= copies {
                let slot = self.slot(seq);
                slot.queued = false;
                let free = slot.free_when_sent;
                self.requested.pop_front();
                self.copies_sent = 0;
                if free {
                    self.free(seq, out);
                    self.held.retain(|held| *held != seq);
                }
            }
            self.dummies.restart();
            return Some((seq, body));
        }
        None
    }

    /// Takes the next frame of the queue above, unless this sender must hold back.
    #[inline(always)]
    pub(crate) fn take<O: Out<Endpoint<B>>>(
        &mut self,
        fed: QueueId,
        counters: &mut Counters,
        out: &mut O,
    ) -> Option<B> {
        while self.has_room() {
            let body = out.take(fed)?;
            if body.len() <= self.mtu {
                return Some(body);
            }
            counters.tx_oversize += 1;
            out.release(body);
        }
        None
    }

    /// Lets go of everything not acknowledged, and of itself: how many frames that were.
    pub(crate) fn flush<O: Out<Endpoint<B>>>(mut self, out: &mut O) -> u64 {
        let mut flushed = 0;
        while self.base != self.next {
            if let Some(body) = self.slot(self.base).body.take() {
                out.release(body);
                flushed += 1;
            }
            self.base = self.base.next();
        }
        flushed
    }

    /// True if this class wants a dummy: something is unacknowledged or paused, and no frame may go.
    #[inline]
    pub(crate) fn is_dry<O: Out<Endpoint<B>>>(&self, fed: Option<QueueId>, out: &O) -> bool {
        self.wants_dummies() && (!self.has_room() || fed.is_none_or(|lane| !out.waiting(lane)))
    }
    /// Panics if the module's invariants do not hold.
    pub(crate) fn check_invariants(&self) {
        let (outstanding, reported) = (self.next.offset_from(self.base), self.reported.offset_from(self.base));
        assert!((0..=self.max_frames).contains(&outstanding), "{outstanding} frames in the window");
        assert!((0..=outstanding).contains(&reported), "{reported} of {outstanding} frames are reported");
        let slot = |seq: Seq| &self.ring[usize::from(seq.number()) & (self.ring.len() - 1)];
        let (mut bytes, mut held, mut queued) = (Bytes::ZERO, 0, 0);
        for at in 0..outstanding as u32 {
            let seq = self.base.plus(at);
            let Some(body) = &slot(seq).body else {
                assert!((at as i32) < reported, "freed before it was reported");
                continue;
            };
            bytes += Bytes::new(u64::from(body.len()));
            held += usize::from((at as i32) < reported);
            queued += usize::from(slot(seq).queued);
        }
        assert_eq!(bytes, self.bytes, "bytes in the window");
        assert!(bytes <= self.peak && self.peak <= self.max_bytes, "{bytes:?} in the window");
        assert_eq!(held, self.held.len(), "frames kept though reported");
        let is_held = |seq: &Seq| seq.offset_from(self.reported) < 0 && slot(*seq).body.is_some();
        assert!(self.held.iter().all(is_held), "held, and not there: {:?}", self.held);
        assert!(queued <= self.requested.len(), "queued, and not asked for: {:?}", self.requested);
    }
}
