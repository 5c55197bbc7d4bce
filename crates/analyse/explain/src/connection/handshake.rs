//! The handshake: its time, and what its options say.

use super::TrackedConnection;
use crate::losses::LossNote;
use crate::packet::CapturedSegment;
use crate::sender::ORIGIN;
use crate::stalls::StallNote;
use crate::terms::{Certainty, EndSide, LossWitness, RepairKind, TimeCause};

/// Bytes of each segment that timestamps take.
const TIMESTAMPS: u16 = 12;
/// Smallest payload of a segment with timestamps: Linux takes no smaller MSS than 48 (`TCP_MIN_SND_MSS`).
const LEAST_PAYLOAD: u16 = 36;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeStep {
    Syn,
    SynAck,
    Done,
}

/// Progress of the handshake.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandshakeState {
    step: HandshakeStep,
    /// The last SYN and SYN-ACK, unless they were repeated, which makes their answers ambiguous.
    asked_at: [Option<u64>; 2],
    last_number: u64,
    /// Records a SYN of the other end.
    is_answered: bool,
}

impl HandshakeState {
    pub(super) fn new(first: &CapturedSegment) -> Self {
        let step = if first.syn() { HandshakeStep::Syn } else { HandshakeStep::Done };
        Self { step, asked_at: [None; 2], last_number: 0, is_answered: !first.syn() || first.has_ack() }
    }

    /// A SYN was seen, and no SYN that answers it.
    pub(super) fn is_unanswered(&self) -> bool {
        !self.is_answered
    }
}

impl TrackedConnection {
    pub(super) fn on_syn(&mut self, segment: &CapturedSegment, side: EndSide) {
        let number = segment.seq.wrapping_add(1);
        let is_again = self.senders[side.index()].has_begun();
        self.senders[side.index()].begin(number);
        self.take_options(segment, side);
        if is_again {
            self.on_syn_again(segment, side);
        } else {
            self.time.spend(segment.at, TimeCause::Handshake, side);
            self.handshake.asked_at[side.index()] = Some(segment.at);
        }
        self.senders[side.other().index()].offer_first_window(segment.window);
        if segment.has_ack() {
            self.senders[side.other().index()].begin(segment.ack);
            let asked = self.handshake.asked_at[side.other().index()];
            if let Some(asked) = asked.filter(|_| !is_again) {
                self.answers[side.index()].sample(segment.at.saturating_sub(asked));
            }
            self.handshake.step = HandshakeStep::SynAck;
            self.handshake.is_answered = true;
        }
        self.handshake.last_number = segment.number;
    }

    /// One of the SYNs or its answer was lost: the time since the last one.
    fn on_syn_again(&mut self, segment: &CapturedSegment, side: EndSide) {
        if self.handshake.step == HandshakeStep::Done {
            return;
        }
        let from = self.time.at();
        self.time.spend(segment.at, TimeCause::SynLost, side);
        self.handshake.asked_at = [None; 2];
        let stall = StallNote {
            from,
            until: segment.at.max(from),
            cause: TimeCause::SynLost,
            side,
            why: None,
            sure: Certainty::Seen,
            packets: [self.handshake.last_number, segment.number],
            position: None,
            out: 0,
            is_window_full: false,
        };
        crate::stalls::push(&mut self.stalls, stall);
        if !segment.has_ack() {
            self.senders[side.index()].timeouts += 1;
            self.note_lost_syn(from, segment.at, side);
        }
    }

    /// The first one, or its answer: the capture does not show which, and the first is likelier to be dropped.
    fn note_lost_syn(&mut self, at: u64, repaired_at: u64, side: EndSide) {
        let (repaired_by, seen_by) = (RepairKind::Timeout, LossWitness::Copy);
        let note = LossNote { at, position: ORIGIN - 1, len: 0, repaired_by, repaired_at, seen_by, is_spurious: false };
        self.senders[side.index()].losses.push(note);
    }

    /// Options of a SYN hold for what the other end sends.
    fn take_options(&mut self, segment: &CapturedSegment, side: EndSide) {
        let options = &segment.options;
        let stamps = if options.timestamps.is_some() { TIMESTAMPS } else { 0 };
        let own_is_known = segment.has_ack();
        let peer = &mut self.senders[side.other().index()];
        if let Some(mss) = options.mss {
            peer.mss = u32::from(mss.saturating_sub(stamps).max(LEAST_PAYLOAD));
            peer.mss_is_told = true;
        }
        if !options.cut {
            peer.sack_permitted = options.sack_permitted;
            peer.scale = Some(options.scale.unwrap_or(0));
        }
        if own_is_known {
            self.agree_on_options(options.scale.is_some(), options.sack_permitted, options.timestamps.is_some());
        }
    }

    /// Scaling, SACK and timestamps are used only if both ends offer them; segments are as long as either end allows.
    fn agree_on_options(&mut self, scales: bool, sacks: bool, stamps: bool) {
        let [client, server] = &mut self.senders;
        if !scales {
            (client.scale, server.scale) = (client.scale.map(|_| 0), server.scale.map(|_| 0));
        }
        let both = client.sack_permitted && server.sack_permitted && sacks;
        (client.sack_permitted, server.sack_permitted) = (both, both);
        if !stamps {
            server.mss += u32::from(TIMESTAMPS) * u32::from(server.mss < client.mss);
        }
        let mss = client.mss.min(server.mss);
        (client.mss, server.mss) = (mss, mss);
    }

    /// The client answers the SYN-ACK.
    pub(super) fn finish_handshake(&mut self, segment: &CapturedSegment, side: EndSide) {
        if self.handshake.step == HandshakeStep::Done {
            return;
        }
        let is_answer = side == EndSide::Client && self.handshake.step == HandshakeStep::SynAck;
        if let Some(asked) = self.handshake.asked_at[EndSide::Server.index()].filter(|_| is_answer) {
            self.answers[side.index()].sample(segment.at.saturating_sub(asked));
        }
        self.time.spend(segment.at, TimeCause::Handshake, EndSide::Client);
        self.handshake.step = HandshakeStep::Done;
    }
}
