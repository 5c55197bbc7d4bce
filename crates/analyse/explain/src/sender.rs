//! One sender of a connection: what it has in flight, what it heard of it, and what its shadow makes of both.
//!
//! Times are the sender's own, as far as the capture shows them: what it sent at the time at which the capture has it,
//! and what it heard later by the round trip between capture and sender. For a sender next to the capture that is
//! nothing. Positions count bytes of the stream from [`ORIGIN`].

mod acks;
mod copies;
pub(crate) mod flight;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::evidence::EndEvidence;
use crate::ids::IdSequence;
use crate::losses::LossNotes;
use crate::shadow::{SackBlocks, Shadow};
use crate::terms::EndSide;

pub(crate) use copies::{CopyClock, CopyTrigger, HiddenCopies, TimerKind};
pub(crate) use flight::FlightSegment;

/// Positions begin here, so that some may come before.
pub(crate) const ORIGIN: u64 = 1 << 32;
/// The largest payload of a segment where no SYN says it.
pub(crate) const USUAL_MSS: u32 = 1_448;

/// Phase of loss recovery of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LossPhase {
    #[default]
    Open,
    /// Lasts until all below this position is acknowledged.
    Recovery(u64),
    Loss(u64),
}

/// State of the sender just before an acknowledgement reached it, which decides what it could send.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeldState {
    pub flight: u64,
    pub segments: usize,
    /// Bytes of the receiver's window that were left.
    pub room: u64,
    /// The last segment was smaller than a full one, and not acknowledged.
    pub is_small_out: bool,
    /// The shadow's congestion window.
    pub window: u64,
    pub phase: LossPhase,
}

/// An acknowledgement on its way to the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckArrival {
    /// Time at which the sender has it.
    pub at: u64,
    pub ack: u64,
    pub window: u16,
    pub blocks: SackBlocks,
    pub block_count: u8,
    /// TSval and TSecr.
    pub stamp: Option<u32>,
    pub echo: Option<u32>,
    /// True without payload.
    pub is_pure: bool,
}

impl AckArrival {
    pub(crate) fn blocks(&self) -> &[(u64, u64)] {
        &self.blocks[..usize::from(self.block_count)]
    }
}

#[derive(Debug)]
pub(crate) struct TrackedSender {
    pub side: EndSide,
    /// Sequence number at [`ORIGIN`].
    base: Option<u32>,
    /// Sent below, and acknowledged below: as the sender knows, and as the capture has seen.
    pub nxt: u64,
    pub una: u64,
    pub seen_una: u64,
    /// The receiver has room below.
    edge: u64,
    /// Scale of the receiver's window; `None` if no SYN has it.
    pub scale: Option<u8>,
    guessed_scale: u8,
    last_window: u16,
    pub mss: u32,
    /// The receiver's SYN has told it; otherwise it is a guess.
    pub mss_is_told: bool,
    pub sack_permitted: bool,
    segments: VecDeque<FlightSegment>,
    sacked: u64,
    sacked_segments: usize,
    on_way: VecDeque<AckArrival>,
    pub last_sent: u64,
    /// The last acknowledgement that reached the sender, and the last that was news.
    pub last_heard: u64,
    last_progress: u64,
    pub before: HeldState,
    before_at: u64,
    dup_acks: u32,
    hidden_dup_acks: u32,
    pub first_dup_at: Option<u64>,
    pub phase: LossPhase,
    is_probing: bool,
    probes_off: bool,
    pub reordering_seen: bool,
    /// Duplicates that had come when a late repair began: what its threshold had grown to.
    pub late_after: u32,
    last_trigger: Option<CopyTrigger>,
    pub shadow: Option<Box<Shadow>>,
    /// Reports of its kernel.
    pub known: Option<Arc<EndEvidence>>,
    /// Congestion window in segments, as the sender's kernel reports it.
    known_window: Option<u64>,
    hz: u32,
    pub ids: IdSequence,
    /// The capture is next to the receiver: it sees what arrives.
    pub arrivals_seen: bool,
    pub losses: LossNotes,
    pub bytes: u64,
    pub asked: u64,
    pub agreed: u64,
    pub timeouts: u32,
    pub probes: u32,
}

impl TrackedSender {
    pub(crate) fn new(side: EndSide, hz: u32, known: Option<Arc<EndEvidence>>) -> Self {
        Self {
            side,
            base: None,
            nxt: ORIGIN,
            una: ORIGIN,
            seen_una: ORIGIN,
            edge: ORIGIN,
            scale: None,
            guessed_scale: 0,
            last_window: 0,
            mss: USUAL_MSS,
            mss_is_told: false,
            sack_permitted: true,
            segments: VecDeque::new(),
            sacked: 0,
            sacked_segments: 0,
            on_way: VecDeque::new(),
            last_sent: 0,
            last_heard: 0,
            last_progress: 0,
            before: HeldState::default(),
            before_at: 0,
            dup_acks: 0,
            hidden_dup_acks: 0,
            first_dup_at: None,
            phase: LossPhase::Open,
            is_probing: false,
            probes_off: false,
            reordering_seen: false,
            late_after: 0,
            last_trigger: None,
            shadow: None,
            known,
            known_window: None,
            hz,
            ids: IdSequence::default(),
            arrivals_seen: false,
            losses: LossNotes::default(),
            bytes: 0,
            asked: 0,
            agreed: 0,
            timeouts: 0,
            probes: 0,
        }
    }

    /// Begins at the first sequence number: the one behind the SYN, or that of the first segment seen.
    pub(crate) fn begin(&mut self, seq: u32) {
        self.base.get_or_insert(seq);
    }

    /// The window of a SYN is never scaled.
    pub(crate) fn offer_first_window(&mut self, window: u16) {
        self.edge = self.edge.max(ORIGIN + u64::from(window));
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.base.is_some()
    }

    /// The position of a sequence number: the nearest to what was sent last.
    pub(crate) fn position(&self, seq: u32) -> u64 {
        let base = self.base.unwrap_or(seq);
        let next = base.wrapping_add(self.nxt.wrapping_sub(ORIGIN) as u32);
        self.nxt.wrapping_add_signed(i64::from(seq.wrapping_sub(next) as i32))
    }

    /// The sequence number at a position.
    pub(crate) fn sequence(&self, position: u64) -> u32 {
        self.base.unwrap_or(0).wrapping_add(position.wrapping_sub(ORIGIN) as u32)
    }

    /// Sent, and not known to have arrived.
    pub(crate) fn flight(&self) -> u64 {
        self.nxt.saturating_sub(self.una).saturating_sub(self.sacked)
    }

    pub(crate) fn flight_segments(&self) -> usize {
        self.segments.len() - self.sacked_segments
    }

    /// True if the last acknowledgement offered nothing new: what it acknowledged still fills the receive buffer. Linux delays
    /// acknowledgements of any number of segments while free space shrinks.
    pub(crate) fn keeps_its_edge(&self) -> bool {
        self.room() < self.before.room + u64::from(self.mss)
    }

    pub(crate) fn room(&self) -> u64 {
        self.edge.saturating_sub(self.nxt)
    }

    /// The window that the receiver offers, for charts.
    pub(crate) fn edge(&self) -> u64 {
        self.edge
    }

    /// Gives back the memory that only an active sender needs, because no more will be sent.
    pub(crate) fn release(&mut self) {
        self.hear_until(u64::MAX, 0);
        self.shadow = None;
        self.segments.shrink_to_fit();
        self.on_way.shrink_to_fit();
    }

    /// Approximate memory use of its lists and its shadow, in bytes.
    #[inline]
    pub(crate) fn bytes_held(&self) -> usize {
        // The shadow keeps what it has in flight, too.
        const SHADOW: usize = size_of::<Shadow>() + 1_024;
        let shadow = if self.shadow.is_some() { SHADOW + self.segments.capacity() * 64 } else { 0 };
        let flight = self.segments.capacity() * size_of::<FlightSegment>();
        let on_way = self.on_way.capacity() * size_of::<AckArrival>();
        shadow + flight + on_way + self.losses.bytes_held() + self.ids.bytes_held()
    }

    /// True if it waits for nothing, as far as the capture shows.
    pub(crate) fn is_quiet(&self) -> bool {
        self.seen_una >= self.nxt
    }

    pub(crate) fn held_now(&self) -> HeldState {
        HeldState {
            flight: self.flight(),
            segments: self.flight_segments(),
            room: self.room(),
            is_small_out: self.segments.back().is_some_and(|last| last.len < self.mss),
            window: self.window(),
            phase: self.phase,
        }
    }

    /// The congestion window: what its kernel says, or else its shadow.
    pub(crate) fn window(&self) -> u64 {
        if let Some(segments) = self.known_window {
            return segments * u64::from(self.mss);
        }
        self.shadow.as_ref().map_or(10 * u64::from(self.mss), |shadow| shadow.window())
    }

    pub(crate) fn is_window_known(&self) -> bool {
        self.known_window.is_some()
    }

    pub(crate) fn srtt(&self) -> Option<u64> {
        self.shadow.as_ref()?.srtt()
    }

    pub(crate) fn rto(&self) -> u64 {
        self.shadow.as_ref().map_or(1_000_000_000, |shadow| shadow.rto())
    }

    /// Time that a probe waits, with this many more segments in flight than were seen.
    pub(crate) fn probe_timeout(&self, missing: usize) -> u64 {
        let segments = self.segments.len() + missing;
        self.shadow.as_ref().map_or(1_000_000_000, |shadow| shadow.probe_timeout(segments))
    }

    /// One tick of its clock, in nanoseconds.
    pub(crate) fn tick(&self) -> u64 {
        1_000_000_000 / u64::from(self.hz.max(1))
    }
}
