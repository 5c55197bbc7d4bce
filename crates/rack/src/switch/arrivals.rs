//! Frames that were read from several interfaces, in the order in which they arrived.
//!
//! The kernel notes when it put a frame into a ring. A loop that has slept finds many frames in each ring, and by these
//! times it can serve them as if it had been awake. A time that makes no sense is replaced by the closest one that does:
//! after the ring was last found empty, and not later than now.

use std::ops::Range;
use std::time::Duration;

use units::{Span, Time};

#[derive(Debug, Default)]
pub(super) struct Arrivals {
    frames: Vec<ArrivedFrame>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct ArrivedFrame {
    at: Time,
    port: usize,
    bytes: Range<usize>,
}

/// A moment by two clocks: the loop's, and the time of day, which the kernel stamps frames with.
#[derive(Clone, Copy, Debug)]
pub(super) struct TwoClocks {
    pub now: Time,
    pub time_of_day: Duration,
}

impl TwoClocks {
    /// When a frame arrived that carries this stamp, not before `earliest`.
    pub(super) fn arrival(&self, stamp: Duration, earliest: Time) -> Time {
        let age = self.time_of_day.saturating_sub(stamp).min(Duration::from_secs(3_600));
        let age = Span::from_ns(age.as_nanos() as u64);
        Time::from_ps(self.now.as_ps().saturating_sub(age.as_ps())).max(earliest).min(self.now)
    }
}

impl Arrivals {
    pub(super) fn clear(&mut self) {
        self.frames.clear();
        self.bytes.clear();
    }

    pub(super) fn push(&mut self, at: Time, port: usize, frame: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(frame);
        self.frames.push(ArrivedFrame { at, port, bytes: start..self.bytes.len() });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// All of them, oldest first; those of one port in the order in which they were read.
    pub(super) fn in_order(&mut self) -> impl Iterator<Item = (Time, usize, &[u8])> {
        self.frames.sort_by_key(|frame| frame.at);
        self.frames.iter().map(|frame| (frame.at, frame.port, &self.bytes[frame.bytes.clone()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn a_stamp_becomes_a_time_of_the_loop_within_what_is_possible() {
        let day = Duration::from_secs(1_700_000_000);
        let clocks = TwoClocks { now: at(1_000), time_of_day: day };
        assert_eq!(clocks.arrival(day - Duration::from_micros(300), at(500)), at(700));
        assert_eq!(clocks.arrival(day - Duration::from_micros(900), at(500)), at(500), "the ring was empty then");
        assert_eq!(clocks.arrival(Duration::from_secs(7), at(500)), at(500), "no time of day");
        assert_eq!(clocks.arrival(day + Duration::from_secs(1), at(500)), at(1_000), "the clock was set back");
    }

    #[test]
    fn frames_of_several_ports_come_in_the_order_of_their_arrival() {
        let mut arrivals = Arrivals::default();
        for (us, port, name) in [(3, 0, b"a"), (5, 0, b"b"), (1, 1, b"c"), (5, 1, b"d")] {
            arrivals.push(at(us), port, name);
        }
        let order: Vec<u8> = arrivals.in_order().map(|(_, _, frame)| frame[0]).collect();
        assert_eq!(order, b"cabd");
        arrivals.clear();
        assert!(arrivals.is_empty());
    }
}
