//! Frames that were read from several interfaces, in the order in which they arrived.
//!
//! The kernel notes when it put a frame into a ring. A loop that has slept finds many frames in each ring, and by these
//! times it can serve them as if it had been awake.

use std::ops::Range;
use std::time::Duration;

use linux::clock::TwoClocks;
use units::Time;

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
    use units::Span;

    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
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
