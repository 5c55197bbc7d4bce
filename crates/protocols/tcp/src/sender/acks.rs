//! Effects of an acknowledgement, in the order of Linux 5.4 (`tcp_ack`).

use machine::Out;
use units::{Span, Time};

use super::super::cc::{AckSample, CongestionControl};
use super::super::connection::{TcpConnection, TcpNote, TcpProgress};
use super::super::record::{DeliveredBytes, before, timestamp};
use super::super::segment::TcpSegment;
use super::super::sites::TcpSite;
use super::frto::TimeoutDoubt;
use super::{EcnResponse, Phase, TailLossProbe, TcpSender, UrgentSend};

/// State before an acknowledgement.
pub(super) struct AckBaseline {
    una: u64,
    segments: u64,
    flight: u64,
    pub(super) sacked: u64,
    sacked_end: Option<u64>,
    lost_ever: u64,
}

impl TcpSender {
    pub(crate) fn on_ack<O: Out<TcpConnection>>(&mut self, now: Time, segment: &TcpSegment, out: &mut O) {
        if segment.ack > self.nxt {
            return;
        }
        let before = self.before();
        // Nobody can have returned a segment that leaves now, so this timestamp proves nothing.
        let echo = if self.timestamps { segment.echo } else { timestamp(now) };
        let of_copies = if self.copies_by_timestamp { echo } else { timestamp(now) };
        let mut got = DeliveredBytes::new(now, self.rtt.min(), of_copies);
        let dsack = !segment.sack.is_empty() && self.take_sacks(segment, &mut got, out);
        let reopened = self.advance(now, segment, &mut got, out);
        let duplicate = self.counting.is_some() && self.count(segment, &before, reopened, &mut got);
        let says_nothing = self.una == before.una && got.bytes == 0 && !dsack && self.probed.is_none();
        let echoes = segment.ece && self.ecn != EcnResponse::Off;
        self.note_marks(echoes && before.una < self.nxt);
        // A kernel answers a mark last, if no loss is being repaired (`tcp_try_to_open`).
        if echoes && (self.socket.is_none() || says_nothing && !self.board.is_empty()) {
            self.heed_echo(now, before.flight);
        }
        if says_nothing {
            return;
        }
        self.learn(now, segment, &before, &got, out);
        self.end_probe(now, segment, &before, dsack, out);
        // Before the timer: once all is repaired, the tail may be probed.
        let advanced = self.una > before.una;
        let dubious = !advanced || duplicate || dsack || echoes || self.is_uneasy(&before);
        if self.socket.is_some() {
            self.glides();
        }
        let repaired_until = if let Phase::Recovery { until } = self.phase { until } else { 0 };
        let lost_beyond = self.leave_phase(now, echo, before.una, &got, out);
        if self.doubt != TimeoutDoubt::Off {
            self.judge_timeout(advanced, duplicate || self.board.sacked() > before.sacked);
        }
        // An acknowledgement that ends within a segment does not count to a kernel.
        let whole = self.socket.is_none() || self.board.segments() < before.segments;
        let restarts = advanced && whole || self.renews_timer(&got);
        if restarts && self.socket.is_none() {
            self.restart_timer(now, out);
        }
        self.timer.reorder_set = false;
        if self.looks_for_losses(dubious, &got, duplicate || self.repairs_next(&before)) && !self.board.is_empty() {
            self.detect_losses(now, out);
            self.note_marks(echoes);
        }
        if lost_beyond && self.phase == Phase::Open {
            self.enter_recovery(now, out);
        }
        // A kernel knows by now whether it repairs, unless it waits for reordering (`tcp_set_xmit_timer`).
        if restarts && self.socket.is_some() && !self.timer.reorder_set {
            self.restart_timer(now, out);
        }
        // An acknowledgement that shows a repair to be needless is looked at no further.
        let needless = self.una < repaired_until && self.phase == Phase::Open && !dsack;
        if echoes && self.socket.is_some() && !needless {
            self.heed_echo(now, before.flight);
        }
        if got.bytes > 0 {
            self.tell_control(now, segment, (&before, &got), out);
        }
        self.drop_stale_urgency();
        self.report(&before, out);
    }

    /// Decides for [`TcpSender::on_ack`] if this is a duplicate acknowledgement, where these count. Bytes that duplicates
    /// reported before are not delivered again.
    fn count(
        &mut self,
        segment: &TcpSegment,
        before: &AckBaseline,
        reopened: Option<bool>,
        got: &mut DeliveredBytes,
    ) -> bool {
        let outstanding = before.una < self.nxt && !self.board.is_empty() && self.duplicates_count();
        let holes = if self.socket.is_some() { self.board.lost_and_resent() } else { 1 };
        let Some(counter) = &mut self.counting else { return false };
        let duplicate = counter.on_ack(segment, self.una - before.una, reopened, outstanding);
        if duplicate {
            let counts = counter.limit(self.board.segments(), holes, 0, &mut self.rack);
            if counts || self.socket.is_none() {
                got.bytes += self.mss;
                got.segments += 1;
            }
        } else if self.una > before.una {
            let counted = counter.forget(got.segments);
            if self.socket.is_some() {
                counter.limit(self.board.segments(), holes, u64::from(got.segments), &mut self.rack);
            }
            got.bytes -= (counted * self.mss).min(got.bytes.saturating_sub(self.mss));
            got.segments -= counted as u32;
            // Only within a repair do the others still say something.
            let is_over = match self.phase {
                Phase::Open => true,
                Phase::Recovery { until } => self.una >= until,
                Phase::Loss { until } => self.una < until,
            };
            if self.socket.is_some() && is_over {
                counter.reset();
            }
        }
        duplicate
    }

    /// True if duplicates count. Without SACK, a socket counts none after a timeout until new data left, and none at
    /// the end of a repair.
    fn duplicates_count(&self) -> bool {
        match self.phase {
            _ if self.socket.is_none() => true,
            Phase::Open => true,
            Phase::Recovery { until } => self.una < until,
            Phase::Loss { until } => self.nxt > until && self.una < until,
        }
    }

    /// True if this acknowledgement names the next segment to repair: without SACK, each one that advances during a
    /// repair does.
    fn repairs_next(&self, before: &AckBaseline) -> bool {
        self.una > before.una && self.counting.as_ref().is_some_and(|counter| counter.is_newreno())
    }

    #[inline]
    fn before(&self) -> AckBaseline {
        AckBaseline {
            una: self.una,
            segments: self.board.segments(),
            flight: self.pipe(),
            sacked: self.board.sacked(),
            sacked_end: self.board.sacked_end(),
            lost_ever: self.board.lost_ever(),
        }
    }

    /// Marks the ranges that the blocks report. Returns true if the first block reports a duplicate (RFC 2883 §4).
    fn take_sacks<O: Out<TcpConnection>>(
        &mut self,
        segment: &TcpSegment,
        got: &mut DeliveredBytes,
        out: &mut O,
    ) -> bool {
        let position = |offset: i32| segment.ack.checked_add_signed(i64::from(offset));
        let blocks = segment.sack.blocks();
        let mut dsack = false;
        // In the order of the stream, as a kernel has it: of what arrived, it takes the round trip of the last.
        let mut order = [0, 1, 2, 3];
        if self.socket.is_some() {
            order.sort_by_key(|place| blocks.get(*place).map(|block| block.0));
        }
        for place in order {
            let Some(block) = blocks.get(place) else { continue };
            let (Some(from), Some(to)) = (position(block.0), position(block.1)) else { continue };
            if from >= to || to > self.nxt {
                continue;
            }
            let within_next = || blocks.get(1).is_some_and(|next| next.0 <= block.0 && block.1 <= next.1);
            if place == 0 && (from < segment.ack || within_next()) {
                dsack = true;
                self.on_dsack(from);
            } else if from >= self.una {
                self.board.sack(from, to, got, out);
            }
        }
        dsack
    }

    fn on_dsack(&mut self, from: u64) {
        self.rack.on_dsack();
        if let Some(socket) = &mut self.socket {
            socket.counters.dsacks += 1;
        }
        if let Some(undo) = &mut self.undo {
            undo.on_dsack(from);
        }
    }

    /// Advances the window; true if the segment was an update of it, which only a socket knows.
    #[inline]
    fn advance<O: Out<TcpConnection>>(
        &mut self,
        now: Time,
        segment: &TcpSegment,
        got: &mut DeliveredBytes,
        out: &mut O,
    ) -> Option<bool> {
        let mut reopened = None;
        if self.socket.is_some() {
            reopened = Some(self.update_window(now, segment, out));
        } else {
            // A peer without a socket never closes its window; one that does is taken to have room for a segment, since
            // there is no other way to learn when it opens again.
            let room = u64::from(segment.window).max(self.mss);
            self.edge = self.edge.max(segment.ack.saturating_add(room));
        }
        if segment.ack > self.una {
            self.una = segment.ack;
            self.board.ack(segment.ack, got, out);
        }
        reopened
    }

    /// Round trip, order of arrival and rate of delivery.
    #[inline]
    fn learn<O: Out<TcpConnection>>(
        &mut self,
        now: Time,
        segment: &TcpSegment,
        before: &AckBaseline,
        got: &DeliveredBytes,
        out: &mut O,
    ) {
        if got.bytes == 0 {
            return;
        }
        self.learn_rtt(now, segment, self.una > before.una, got, out);
        self.delivery.on_delivered(now, got.bytes);
        if before.sacked_end.is_some_and(|end| got.lowest < end) {
            let arrived = self.board.sacked_end().unwrap_or(self.una);
            self.rack.on_reordering(arrived.saturating_sub(got.lowest), self.mss);
        }
        if let Some(newest) = &got.newest {
            self.rack.on_arrival(now, newest);
            if self.socket.is_some()
                && let Some(last) = got.last_sent
            {
                self.rack.set_rtt(now.since(last));
            }
            self.rack.adapt(self.delivery.prior(newest), self.delivery.delivered());
        }
    }

    /// The first segment of those acknowledged waited longest for a delayed acknowledgement: the RTO must expect that.
    /// The last one measures the path. For segments sent again, only timestamps give a sample (RFC 7323 §4);
    /// timestamps from the future are ignored.
    #[inline]
    fn learn_rtt<O: Out<TcpConnection>>(
        &mut self,
        now: Time,
        segment: &TcpSegment,
        advanced: bool,
        got: &DeliveredBytes,
        out: &mut O,
    ) {
        let unsure = got.sacked_resent && self.socket.is_some() && got.sack_sent.is_none();
        let sample = match got.measured().filter(|_| !unsure) {
            Some((first, last)) => {
                let last = got.latest(self.socket.is_some()).unwrap_or(last);
                self.rtt.observe_min(now.since(last));
                now.since(first)
            }
            None if self.timestamps
                && advanced
                && !TcpSite::FutureEcho.ask(out, before(timestamp(now), segment.echo)) =>
            {
                Span::from_us(u64::from(timestamp(now).wrapping_sub(segment.echo)).max(1))
            }
            None => return,
        };
        self.rtt.sample(sample, self.una, self.nxt);
    }

    /// RFC 8985 §7.4.2: decides the fate of the probe, as far as this acknowledgement shows it.
    #[inline]
    fn end_probe<O: Out<TcpConnection>>(
        &mut self,
        now: Time,
        segment: &TcpSegment,
        before: &AckBaseline,
        dsack: bool,
        out: &mut O,
    ) {
        let Some(TailLossProbe { end, again }) = self.probed.filter(|probe| segment.ack >= probe.end) else { return };
        let news = self.una > before.una || self.board.sacked() > before.sacked || segment.len > 0;
        if !again || dsack || (segment.ack == end && !news) {
            self.probed = None;
        } else if segment.ack > end {
            self.probed = None;
            if self.phase == Phase::Open {
                self.reduce_for_probe(now, out);
            }
        }
    }

    /// True if the timer starts anew: what arrived by SACK left before the first missing segment did (again). Later ones do
    /// not renew it, or it would never go off while the rest of a window arrives (`tcp_clean_rtx_queue`).
    #[inline]
    fn renews_timer(&self, got: &DeliveredBytes) -> bool {
        let (Some(sent), Some(head)) = (got.sack_sent, self.board.head_sent_at()) else { return false };
        sent < head
    }

    /// RFC 3168 §6.1.2: once a window. DCTCP counts marks instead. `flight` includes what this acknowledgement delivers:
    /// the controller is notified of that delivery afterwards.
    fn heed_echo(&mut self, now: Time, flight: u64) {
        let is_news = if self.socket.is_some() && self.gentle_marks {
            !self.glides()
        } else {
            self.echo_heeded_until.is_none_or(|until| self.una > until)
        };
        if self.ecn == EcnResponse::Classic && is_news && self.phase == Phase::Open {
            self.echo_heeded_until = Some(self.nxt);
            self.tell_cwr = true;
            let prior = self.control.window();
            let glides = self.gentle_marks && self.control.reduces_gently();
            // A socket holds the reduction until it says that the mark is answered, whatever is delivered meanwhile.
            let held = if glides && self.socket.is_some() { u64::MAX } else { flight };
            self.control.on_echo(now, held);
            if glides {
                self.gliding = Some(self.nxt);
                self.prr = self.new_prr(prior);
                self.probed = None;
            }
        }
    }

    /// True while a reduction for a mark is under way; it ends once more is acknowledged than was in flight then.
    #[inline]
    fn glides(&mut self) -> bool {
        if self.gliding.is_some_and(|until| self.una > until) {
            self.gliding = None;
            if self.socket.is_some() {
                self.control.on_mark_answered();
            }
        }
        self.gliding.is_some() && self.phase == Phase::Open
    }

    #[inline]
    fn tell_control<O: Out<TcpConnection>>(
        &mut self,
        now: Time,
        segment: &TcpSegment,
        (before, got): (&AckBaseline, &DeliveredBytes),
        out: &mut O,
    ) {
        let lost = self.board.lost_ever() - before.lost_ever;
        let prior = got.newest.as_ref().map(|newest| self.delivery.prior(newest));
        let min_rtt = self.rtt.min();
        let srtt = self.rtt.srtt().unwrap_or_default();
        // A window grows only with what is acknowledged in order (`tcp_may_raise_cwnd`).
        let advanced = self.una - before.una;
        let reported = self.board.sacked() > before.sacked;
        let counts = advanced > 0 || self.socket.is_some() && reported && self.rack.degree().has_grown();
        let limited = counts && self.usage.is_limited(self.control.window(), self.control.threshold());
        let delivered = if self.socket.is_some() { u64::from(got.segments) * self.mss } else { got.bytes };
        let ack = AckSample {
            now,
            delivered,
            advanced,
            marked: if segment.ece && self.ecn != EcnResponse::Off { got.bytes } else { 0 },
            flight_before: before.flight,
            flight: self.pipe(),
            rtt: got.latest(self.socket.is_some()).map(|last| now.since(last)),
            srtt,
            round_start: prior.is_some_and(|prior| self.delivery.begins_round(prior)),
            window_limited: limited,
            in_recovery: self.phase != Phase::Open,
            rate: got.newest.as_ref().and_then(|newest| self.delivery.sample(newest, min_rtt, lost)),
        };
        self.control.on_ack(&ack, out);
        if matches!(self.phase, Phase::Recovery { .. }) || self.glides() {
            let speeds_up = if self.prr_follows_advances { advanced > 0 && lost == 0 } else { got.resent };
            self.prr.on_ack(delivered, self.pipe(), speeds_up, self.mss);
        }
        if let Some(socket) = &mut self.socket {
            socket.counters.on_delivered(got.segments, ack.marked > 0);
        }
    }

    #[inline]
    fn drop_stale_urgency(&mut self) {
        let stale = match self.urgent {
            None => false,
            Some(UrgentSend::Head) => self.board.lost() == 0,
            Some(UrgentSend::ProbeNew | UrgentSend::ProbeLast) => self.board.last_unsacked().is_none(),
            Some(UrgentSend::WindowProbe) => self.unsent() == 0,
        };
        if stale {
            self.urgent = None;
        }
    }

    #[inline]
    fn report<O: Out<TcpConnection>>(&self, before: &AckBaseline, out: &mut O) {
        if self.board.sacked() > before.sacked {
            out.note(TcpNote::Sacked { bytes: self.board.sacked(), pending: self.unsent() });
        }
        if self.una > before.una {
            out.complete(TcpProgress::Acknowledged(self.payload_below(self.una)));
        }
    }
}
