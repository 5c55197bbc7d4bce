//! Payload: it ends a gap, and is new, late or sent again.

use super::TrackedConnection;
use crate::evidence::HandOver;
use crate::gaps::{GapContext, GapPieces, reaction_time};
use crate::ids::IdStep;
use crate::losses::LossNote;
use crate::packet::CapturedSegment;
use crate::sender::flight::Payload;
use crate::sender::{CopyClock, CopyTrigger, HiddenCopies, ORIGIN, TimerKind, TrackedSender};
use crate::stalls::{self, StallNote};
use crate::terms::{Certainty, EndSide, LossWitness, RepairKind, TimeCause, TimerReason};

/// Kind of a packet with payload, as its sender sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PayloadKind {
    New,
    /// The segment left before others that came earlier.
    Late,
    Again,
}

impl TrackedConnection {
    pub(super) fn on_payload(&mut self, segment: &CapturedSegment, side: EndSide) {
        let at = segment.at.max(self.time.at());
        let segments = segment.len.div_ceil(self.senders[side.index()].mss.max(1)) as u16;
        let step = self.follow_id(segment, side, segments);
        for end in [EndSide::Client, EndSide::Server] {
            // The way was measured once or twice: what left just before it had to be heard was an answer to it, unless its
            // time was that of a probe.
            let slack = (self.way(end) / 4).min(5_000_000);
            if end != side {
                self.senders[end.index()].hear_until(at, slack);
            } else if !self.is_timely_probe(segment, side, at) {
                let echo = self.echoed(segment, side);
                self.senders[end.index()].hear_echoed(at, slack, echo);
            }
        }
        let mss_is_told = self.senders.iter().all(|sender| sender.mss_is_told);
        let sender = &self.senders[side.index()];
        self.super_frames += u64::from(mss_is_told && segment.len > sender.mss);
        let start = sender.position(segment.seq);
        let stamp = segment.options.timestamps.map_or(0, |(value, _)| value);
        let payload = Payload { at, start, len: segment.len, stamp, number: segment.number };
        let kind = self.kind_of(&payload, side, step);
        self.senders[side.index()].arrivals_seen = self.way(side.other()) == 0 && self.way(side) > 0;
        let starts = self.starts_request(side, kind == PayloadKind::New);
        let handed = if kind == PayloadKind::New { self.handed_over(side, &payload) } else { None };
        let context = GapContext { handed, ..self.context(side, at, segment.len, starts) };
        match kind {
            PayloadKind::New => match self.hidden_copies(&context, &payload, side, step) {
                None => self.on_new(&context, payload, side),
                Some(hidden) => self.on_hidden_copy(&context, payload, side, hidden),
            },
            PayloadKind::Late => {
                self.spend_all(&context.before_late(&self.senders[side.index()]), side, segment.number, None);
                self.senders[side.index()].on_late(payload);
            }
            PayloadKind::Again => self.on_again(&context, payload, side),
        }
        self.note_payload(segment, side, at, kind);
    }

    /// True if a distant sender sent new data when a probe was due, before the next acknowledgement could have released it.
    fn is_timely_probe(&mut self, segment: &CapturedSegment, side: EndSide, at: u64) -> bool {
        let (way, echo) = (self.way(side), self.echoed(segment, side));
        let sender = &mut self.senders[side.index()];
        sender.hear_echoed(at, way / 32, echo);
        let start = sender.position(segment.seq);
        let is_new = start + u64::from(segment.len) > sender.nxt;
        way > 0 && is_new && sender.is_new_probe(at, segment.len, start.saturating_sub(sender.nxt))
    }

    /// The timestamp that a sender far away echoes, if it is that of the last packet that reached it: with data to acknowledge, it
    /// would be an earlier one (RFC 7323 §4.3).
    fn echoed(&self, segment: &CapturedSegment, side: EndSide) -> Option<u32> {
        let is_latest = self.owed_nothing && self.way(side) > 0;
        segment.options.timestamps.map(|(_, echo)| echo).filter(|_| is_latest)
    }

    fn note_payload(&mut self, segment: &CapturedSegment, side: EndSide, at: u64, kind: PayloadKind) {
        if let Some(request) = &mut self.request {
            request.bytes[side.index()] += if kind == PayloadKind::Again { 0 } else { u64::from(segment.len) };
        }
        self.previous = Some((side, segment.number));
        let sender = &self.senders[side.index()];
        if let Some(trace) = &mut self.trace {
            let start = sender.position(segment.seq);
            trace.on_payload(at, start + u64::from(segment.len), kind == PayloadKind::Again, sender);
        }
        // The other end's answer to new data measures the way there and back; copies have two answers.
        let answer = &mut self.answers[side.other().index()];
        match kind {
            PayloadKind::New if answer.awaited.is_none() => answer.awaited = Some((sender.nxt, segment.at)),
            PayloadKind::New | PayloadKind::Late => {}
            PayloadKind::Again => answer.awaited = None,
        }
    }

    fn context(&self, side: EndSide, at: u64, len: u32, starts_request: bool) -> GapContext {
        GapContext {
            from: self.time.at(),
            at,
            len,
            rtt: self.rtt(),
            way: self.way(side),
            previous: self.previous.map(|(side, _)| side),
            is_near: self.is_near(side),
            starts_request,
            handed: None,
            is_unread: self.is_unread(side.other(), at),
        }
    }

    /// Time at which the application handed over the data that leaves now, if the kernel next to the capture reports it.
    fn handed_over(&self, side: EndSide, payload: &Payload) -> Option<HandOver> {
        let known = self.senders[side.index()].known.as_ref().filter(|_| self.has_syn && self.is_near(side))?;
        known.handed_over(payload.start.checked_sub(ORIGIN)?, payload.at)
    }

    /// The application at this end had not read what its kernel had for it.
    fn is_unread(&self, side: EndSide, at: u64) -> bool {
        let arrived = self.senders[side.other().index()].seen_una.saturating_sub(ORIGIN);
        let known = self.senders[side.index()].known.as_ref().filter(|_| self.has_syn);
        known.and_then(|known| known.read_by(at)).is_some_and(|read| read < arrived)
    }

    pub(super) fn follow_id(&mut self, segment: &CapturedSegment, side: EndSide, segments: u16) -> IdStep {
        let rtt = self.rtt();
        // A missing packet left within this time. Two copies of the same data are a round trip apart.
        let is_within_rtt = segment.at.saturating_sub(self.last_packets[side.index()]) < rtt / 8 * 7;
        let sender = &mut self.senders[side.index()];
        let position = sender.nxt;
        let step = match segment.ip_id {
            Some(id) => sender.ids.follow(id, segments, segment.at, position),
            None => sender.ids.follow_zero(segments),
        };
        if step == IdStep::Ahead {
            let hole = sender.first_unseen().map(|hole| (hole.start, hole.len));
            let start = sender.position(segment.seq);
            let filled = sender.segment_at(start).filter(|segment| segment.is_unseen);
            // A copy that comes a round trip behind what showed the loss is the first one.
            let is_first_copy = filled.is_some_and(|hole| segment.at < hole.first_at.saturating_add(rtt / 2 * 3));
            let is_copy = segment.len > 0 && start < position && (is_within_rtt || is_first_copy);
            let copies = if is_copy && self.owed_nothing { sender.unseen_below(start) } else { u16::MAX };
            sender.ids.suspect(hole, copies);
        }
        step
    }

    /// A hole is filled by an original that was late, or by a copy: its number shows it, or else its time.
    fn kind_of(&self, payload: &Payload, side: EndSide, step: IdStep) -> PayloadKind {
        let sender = &self.senders[side.index()];
        if payload.start + u64::from(payload.len) > sender.nxt {
            return PayloadKind::New;
        }
        if step == IdStep::Late {
            return PayloadKind::Late;
        }
        let Some(hole) = sender.segment_at(payload.start).filter(|segment| segment.is_unseen) else {
            return PayloadKind::Again;
        };
        let is_late = match step {
            IdStep::InOrder | IdStep::Ahead if sender.ids.counts() => false,
            _ => payload.at.saturating_sub(hole.first_at) < self.way(side).max(1_000_000) / 2,
        };
        if is_late { PayloadKind::Late } else { PayloadKind::Again }
    }

    fn on_new(&mut self, context: &GapContext, payload: Payload, side: EndSide) {
        let rtt = Some(self.rtt()).filter(|rtt| *rtt > 0);
        let lost_at = self.lost_original(&payload, side, context.rtt);
        let sender = &self.senders[side.index()];
        // The capture has every packet of a sender next to it.
        let hole = if context.way > 0 { payload.start.saturating_sub(sender.nxt) } else { 0 };
        let is_probe = lost_at.is_none() && sender.is_new_probe(payload.at, payload.len, hole);
        let pieces = match lost_at {
            Some(_) => context.before_copy(sender, CopyTrigger::repair(sender.repair_in_phase()), payload.start),
            None => context.before_new(sender, is_probe),
        };
        let why = is_probe.then(|| sender.timer_reason(sender.una));
        let position = sender.una;
        if context.starts_request {
            self.close_request();
        }
        self.spend_all(&pieces, side, payload.number, why.map(|why| (why, position)));
        if context.starts_request {
            self.open_request(payload.at);
        }
        let sender = &mut self.senders[side.index()];
        if is_probe {
            sender.on_trigger(CopyTrigger::timer(TimerKind::Probe));
        }
        sender.on_new(payload, rtt, is_probe);
        if let Some(at) = lost_at {
            note_lost_original(sender, payload, at);
        }
    }

    /// Time at which a number was missing in this data's place, at least half a round trip before; `None` if there was no
    /// such gap.
    fn lost_original(&mut self, payload: &Payload, side: EndSide, rtt: u64) -> Option<u64> {
        let sender = &mut self.senders[side.index()];
        sender.ids.was_in_gap(payload.start, sender.mss, payload.at.saturating_sub(rtt / 2))
    }

    /// Earlier copies of new data that never came this far: its sender numbered more packets than the bytes that are missing
    /// explain, after a silence, and had nothing to acknowledge.
    fn hidden_copies(
        &self,
        context: &GapContext,
        payload: &Payload,
        side: EndSide,
        step: IdStep,
    ) -> Option<HiddenCopies> {
        let sender = &self.senders[side.index()];
        let is_far = self.way(side) > 0 && sender.ids.counts_a_little();
        let silence = context.at.saturating_sub(context.from);
        // No timer waits for less.
        let is_short = silence < context.rtt / 2 * 3 + sender.tick();
        if !is_far || step != IdStep::Ahead || is_short || !self.owed_nothing {
            return None;
        }
        let missing = payload.start.saturating_sub(sender.nxt).div_ceil(u64::from(sender.mss));
        let count = u64::from(sender.ids.last_gap(payload.at)).saturating_sub(missing) as u16;
        let last_heard_of = sender.last_sent.max(sender.last_heard).max(self.last_packets[side.index()]);
        let hidden = HiddenCopies {
            count,
            others: 0,
            is_lone: payload.start <= sender.nxt,
            goes_on: context.previous == Some(side),
            silence: payload.at.saturating_sub(last_heard_of),
            rtt: context.rtt,
        };
        (count > 0).then(|| sender.without_others(hidden))
    }

    /// New to the capture, and sent before.
    fn on_hidden_copy(&mut self, context: &GapContext, payload: Payload, side: EndSide, hidden: HiddenCopies) {
        let rtt = Some(self.rtt()).filter(|rtt| *rtt > 0);
        let sender = &mut self.senders[side.index()];
        let trigger = sender.hidden_trigger(hidden);
        let pieces = context.before_hidden(sender, trigger, sender.hidden_wait(hidden));
        let why = TrackedSender::hidden_reason(hidden);
        for number in 0..hidden.count {
            let repaired_by = if number == 0 && hidden.count > 1 { RepairKind::Probe } else { trigger.repair };
            sender.losses.push(payload.lost_before(context.from, repaired_by));
        }
        sender.ids.explain_last(hidden.count);
        if hidden.others > 0 {
            sender.ids.suspect(None, 0);
        }
        if context.starts_request {
            self.open_request(context.from);
        }
        self.spend_all(&pieces, side, payload.number, Some((why, payload.start)));
        let sender = &mut self.senders[side.index()];
        sender.on_hidden(hidden);
        sender.on_new(payload, rtt, true);
    }

    fn on_again(&mut self, context: &GapContext, payload: Payload, side: EndSide) {
        let clock = CopyClock { near: reaction_time(context.rtt), rtt: context.rtt, is_far: self.way(side) > 0 };
        let sender = &self.senders[side.index()];
        let again = sender.segment_at(payload.start);
        let start = again.map_or(payload.start, |segment| segment.start);
        let mut trigger = sender.copy_trigger(payload.at, start, clock);
        let known = sender.known.as_ref().filter(|_| context.is_near);
        if trigger.timer.is_none() && known.is_some_and(|known| known.timed_out(payload.at)) {
            trigger = CopyTrigger::timer(TimerKind::Retransmit);
        }
        let pieces = context.before_copy(sender, trigger, start);
        // Neither the original nor the copy whose number is missing came this far.
        let is_third = again.is_some_and(|segment| segment.is_unseen) && sender.ids.last_gap(payload.at) > 0;
        let why = match trigger.timer {
            Some(TimerKind::Retransmit) if is_third => Some((TimerReason::CopyLost, start)),
            Some(TimerKind::Probe) if sender.is_deaf_probe(payload.at, clock) => Some((TimerReason::AcksLost, start)),
            timer => timer.map(|_| (sender.timer_reason(start), start)),
        };
        self.spend_all(&pieces, side, payload.number, why);
        let sender = &mut self.senders[side.index()];
        sender.on_trigger(trigger);
        note_losses(sender, payload, trigger);
    }

    /// Every piece goes to the connection, to its request, and, if it is long, among the stalls.
    fn spend_all(&mut self, pieces: &GapPieces, side: EndSide, number: u64, timer: Option<(TimerReason, u64)>) {
        let before = self.previous.map_or(0, |(_, number)| number);
        for piece in pieces.iter() {
            let from = self.time.at();
            self.time.spend(piece.until, piece.cause, piece.side);
            if let Some(request) = &mut self.request {
                request.time.spend(piece.until, piece.cause, piece.side);
            }
            let is_timer = matches!(piece.cause, TimeCause::Timeout | TimeCause::Probe);
            let passed = self.time.at() - from;
            if passed > 0 && stalls::is_stall(piece.cause, passed, self.rtt()) {
                let (why, position) = timer.filter(|_| is_timer).unzip();
                let sent = position.and_then(|position| self.senders[side.index()].segment_at(position));
                let packets = [sent.map_or(before, |segment| segment.number), number];
                let sure = if self.has_syn { piece.sure } else { piece.sure.max(Certainty::Inferred) };
                let (cause, side, until) = (piece.cause, piece.side, self.time.at());
                let sender = &self.senders[side.index()];
                let (out, is_window_full) = (sender.flight_segments() as u32, sender.room() < u64::from(sender.mss));
                let stall = StallNote { from, until, cause, side, why, sure, packets, position, out, is_window_full };
                stalls::push(&mut self.stalls, stall);
            }
        }
    }
}

/// Sent again, although it is new to the capture.
fn note_lost_original(sender: &mut TrackedSender, payload: Payload, at: u64) {
    let repaired_by = sender.repair_in_phase();
    sender.on_trigger(CopyTrigger::repair(repaired_by));
    sender.losses.push(payload.lost_before(at, repaired_by));
}

/// Takes earlier transmissions for lost until something proves otherwise, except those that the capture has seen arrive.
fn note_losses(sender: &mut TrackedSender, payload: Payload, trigger: CopyTrigger) {
    let is_known = sender.duplicates() > 0;
    let (counts, arrivals_seen) = (sender.ids.counts(), sender.arrivals_seen);
    let mut notes: Vec<LossNote> = Vec::new();
    sender.on_copy(payload, trigger.timer.is_some(), |segment| {
        if arrivals_seen && !segment.is_unseen {
            return;
        }
        let seen_by = match (segment.is_unseen, counts, is_known) {
            (true, true, _) => LossWitness::IpId,
            (_, _, true) => LossWitness::Sack,
            _ => LossWitness::Copy,
        };
        notes.push(LossNote {
            at: segment.last_at,
            position: segment.start,
            len: segment.len,
            repaired_by: trigger.repair,
            repaired_at: payload.at,
            seen_by,
            is_spurious: false,
        });
    });
    if notes.is_empty() {
        sender.losses.count_spurious();
    }
    notes.into_iter().for_each(|note| sender.losses.push(note));
}
