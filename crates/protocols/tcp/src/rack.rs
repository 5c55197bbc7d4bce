//! RACK: a segment is lost when one that left sufficiently later has arrived. RFC 8985 §6.
//!
//! "Sufficiently" is the reordering window: a quarter of the smallest round trip, or nothing as long as no reordering
//! was ever seen and either three segments are known to have arrived out of order or losses are being repaired already
//! (§6.2, step 4; `tcp_rack_reo_wnd`). Each round in which a DSACK shows that a segment was sent again for nothing
//! widens it by another quarter, up to the smoothed round trip; sixteen recoveries without one take that back.

use machine::Out;
use units::{Span, Time};

use super::config::Reordering;
use super::connection::TcpConnection;
use super::detection::LossDetection;
use super::record::SegmentRecord;
use super::sites::TcpSite;

const PERSIST: u32 = 16;

#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// Send time and position of the arrived segment that was sent last.
    sent_at: Time,
    start: u64,
    /// Round trip of that segment.
    rtt: Span,
    reordering: Reordering,
    reordering_seen: bool,
    /// Quarters of the smallest round trip.
    steps: u32,
    /// Recoveries until `steps` is one again.
    persist: u32,
    dsack_seen: bool,
    /// Delivered when the window was last widened: what left before says nothing about its new size.
    widened_at: u64,
    degree: ReorderingDegree,
}

/// Distance by which segments have arrived out of order (`tp->reordering`).
#[derive(Clone, Copy, Debug)]
pub(super) struct ReorderingDegree {
    /// Degree of reordering, in segments.
    pub segments: u32,
    /// Number of reorderings.
    pub events: u32,
    /// Initial value, and upper limit.
    initial: u32,
    max: u32,
}

impl ReorderingDegree {
    fn new(detection: &LossDetection) -> Self {
        let initial = detection.threshold.max(1);
        Self { segments: initial, events: 0, initial, max: detection.max_threshold.max(initial) }
    }

    /// Notes reordering over `segments`.
    pub(super) fn grow(&mut self, segments: u64) {
        let seen = u32::try_from(segments).unwrap_or(u32::MAX);
        self.segments = self.segments.max(seen.min(self.max));
        self.events += 1;
    }

    /// True if reordering is so frequent that the window grows with whatever arrives (`tcp_may_raise_cwnd`).
    pub(super) fn has_grown(&self) -> bool {
        self.segments > self.initial
    }

    /// The retransmission timer went off although `arrived` segments arrived behind a missing one: the threshold was
    /// too high (`tcp_enter_loss`).
    pub(super) fn on_timeout(&mut self, arrived: u64) {
        if arrived >= u64::from(self.initial) {
            self.segments = self.segments.min(self.initial);
        }
    }
}

/// Verdict on a segment in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RackVerdict {
    /// The segment left after the latest that arrived.
    TooYoung,
    /// The segment will be lost unless it arrives within this time.
    Overdue(Span),
    Lost,
}

/// RACK's state at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct RackState {
    pub now: Time,
    pub sent_at: Time,
    pub start: u64,
    /// Round trip and reordering window.
    pub patience: Span,
}

impl RackState {
    #[inline]
    pub(super) fn verdict<O: Out<TcpConnection>>(&self, record: &SegmentRecord, out: &mut O) -> RackVerdict {
        if (self.sent_at, self.start) <= (record.sent_at, record.start) {
            return RackVerdict::TooYoung;
        }
        let left = self.patience.saturating_sub(self.now.since(record.sent_at));
        if TcpSite::Overdue.ask(out, left > Span::ZERO) {
            // Not at once, even where the time of a replay says so.
            RackVerdict::Overdue(left.max(Span::from_ps(1)))
        } else {
            RackVerdict::Lost
        }
    }
}

impl Rack {
    pub(super) fn new(reordering: Reordering, detection: &LossDetection) -> Self {
        Self {
            sent_at: Time::ZERO,
            start: 0,
            rtt: Span::ZERO,
            reordering,
            reordering_seen: false,
            steps: 1,
            persist: 0,
            dsack_seen: false,
            widened_at: 0,
            degree: ReorderingDegree::new(detection),
        }
    }

    /// Round trip of the segment that arrived last.
    pub(super) fn rtt(&self) -> Span {
        self.rtt
    }

    /// Step 2: of those that arrived, `newest` left last.
    #[inline]
    pub(super) fn on_arrival(&mut self, now: Time, newest: &SegmentRecord) {
        self.rtt = now.since(newest.sent_at);
        if newest.sent_after(self.sent_at, self.start) {
            self.sent_at = newest.sent_at;
            self.start = newest.start;
        }
    }

    /// A kernel takes the round trip of the segment it looks at last, which need not be the newest (`tcp_rack_advance`).
    pub(super) fn set_rtt(&mut self, rtt: Span) {
        self.rtt = rtt;
    }

    /// Step 3: a segment that left once arrived behind one that left later, `distance` bytes above it.
    pub(super) fn on_reordering(&mut self, distance: u64, mss: u64) {
        self.reordering_seen = true;
        self.degree.grow(distance.div_ceil(mss));
    }

    pub(super) fn degree(&self) -> &ReorderingDegree {
        &self.degree
    }

    pub(super) fn degree_mut(&mut self) -> &mut ReorderingDegree {
        &mut self.degree
    }

    pub(super) fn on_dsack(&mut self) {
        self.dsack_seen = true;
    }

    /// Step 4. `prior` of `delivered` bytes were delivered when the segment left that arrived now.
    #[inline]
    pub(super) fn adapt(&mut self, prior: u64, delivered: u64) {
        if self.reordering == Reordering::Fixed {
            return;
        }
        if prior < self.widened_at {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.steps = (self.steps + 1).min(255);
            self.dsack_seen = false;
            self.widened_at = delivered;
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    pub(super) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    #[inline]
    pub(super) fn reordering_window(&self, min_rtt: Span, srtt: Span, repairing: bool, sacked: u32) -> Span {
        if !self.reordering_seen && (repairing || sacked >= self.degree.segments) {
            return Span::ZERO;
        }
        (min_rtt / 4 * u64::from(self.steps)).min(srtt)
    }

    #[inline]
    pub(super) fn judge(&self, now: Time, reordering_window: Span) -> RackState {
        RackState { now, sent_at: self.sent_at, start: self.start, patience: self.rtt + reordering_window }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Span = Span::from_us(40);
    const SRTT: Span = Span::from_us(100);

    #[test]
    fn no_patience_with_three_arrived_unless_reordering_was_seen() {
        let mut rack = Rack::new(Reordering::Adaptive, &LossDetection::RACK);
        let windows = |rack: &Rack| {
            [(false, 2), (false, 3), (true, 0)]
                .map(|(repairing, sacked)| rack.reordering_window(MIN, SRTT, repairing, sacked))
        };
        assert_eq!(windows(&rack), [MIN / 4, Span::ZERO, Span::ZERO]);
        rack.on_reordering(2_000, 1_000);
        assert_eq!(windows(&rack), [MIN / 4; 3]);
    }

    #[test]
    fn a_dsack_widens_the_window_once_a_round() {
        let mut rack = Rack::new(Reordering::Adaptive, &LossDetection::RACK);
        rack.on_reordering(2_000, 1_000);
        let window = |rack: &Rack| rack.reordering_window(MIN, SRTT, false, 0);
        rack.on_dsack();
        rack.adapt(500, 1_000);
        assert_eq!(window(&rack), MIN / 2);
        rack.on_dsack();
        rack.adapt(900, 2_000);
        assert_eq!(window(&rack), MIN / 2, "that segment left before the window was widened");
        rack.on_dsack();
        rack.adapt(1_000, 3_000);
        assert_eq!(window(&rack), MIN / 4 * 3);
        (0..PERSIST).for_each(|_| rack.on_recovered());
        rack.adapt(4_000, 5_000);
        assert_eq!(window(&rack), MIN / 4);
    }

    #[test]
    fn the_smoothed_round_trip_is_the_most() {
        let mut rack = Rack::new(Reordering::Adaptive, &LossDetection::RACK);
        for round in 1..40 {
            rack.on_dsack();
            rack.adapt(round * 1_000, round * 1_000);
        }
        assert_eq!(rack.reordering_window(MIN, SRTT, false, 0), SRTT);
    }

    #[test]
    fn a_fixed_window_stays() {
        let mut rack = Rack::new(Reordering::Fixed, &LossDetection::RACK);
        rack.on_dsack();
        rack.adapt(1, 1);
        assert_eq!(rack.reordering_window(MIN, SRTT, false, 0), MIN / 4);
    }
}
