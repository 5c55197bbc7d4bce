//! Frames that were read from several interfaces, in the order in which they arrived.
//!
//! The kernel notes when it put a frame into a ring. A loop that has slept finds many frames in each ring, and by these
//! times it can serve them as if it had been awake. A time that makes no sense is replaced by the closest one that does:
//! after the ring was last found empty, and not later than now.

use std::ops::Range;
use std::time::Duration;

use linux::clock::{Clock, time_of_day};
use units::{Span, Time};

/// The two clocks are read again if more time than this passed between them, and how often at most.
const AT_ONCE: Span = Span::from_us(5);
const TRIES: u32 = 4;

#[derive(Debug, Default)]
pub(super) struct Arrivals {
    frames: Vec<ArrivedFrame>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct ArrivedFrame {
    stamp: Duration,
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
    /// What they show now. To be read after the frames: one that came while others were read would otherwise seem to have
    /// come before.
    pub(super) fn read(clock: &Clock) -> Self {
        let mut tries = 0;
        loop {
            let clocks = Self { now: clock.now(), time_of_day: time_of_day() };
            tries += 1;
            // Another thread may have had the processor between the two.
            if clock.now().since(clocks.now) < AT_ONCE || tries == TRIES {
                return clocks;
            }
        }
    }

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

    /// A frame with the kernel's stamp that did not come before `earliest`.
    pub(super) fn push(&mut self, stamp: Duration, earliest: Time, port: usize, frame: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(frame);
        self.frames.push(ArrivedFrame { stamp, at: earliest, port, bytes: start..self.bytes.len() });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// All of them, oldest first; those of one port in the order in which they were read.
    pub(super) fn in_order(&mut self, clocks: &TwoClocks) -> impl Iterator<Item = (Time, usize, &[u8])> {
        for frame in &mut self.frames {
            frame.at = clocks.arrival(frame.stamp, frame.at);
        }
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
        let day = Duration::from_secs(1_700_000_000);
        for (us, port, name) in [(3, 0, b"a"), (5, 0, b"b"), (1, 1, b"c"), (5, 1, b"d")] {
            arrivals.push(day + Duration::from_micros(us), Time::ZERO, port, name);
        }
        let clocks = TwoClocks { now: at(7), time_of_day: day + Duration::from_micros(7) };
        let order: Vec<(Time, u8)> = arrivals.in_order(&clocks).map(|(at, _, frame)| (at, frame[0])).collect();
        assert_eq!(order, [(at(1), b'c'), (at(3), b'a'), (at(5), b'b'), (at(5), b'd')]);
        arrivals.clear();
        assert!(arrivals.is_empty());
    }
}
