//! Implements one direction of the wire: its faults, its rate, its delay, and its counters.

use std::collections::VecDeque;
use std::io;

use faults::{FaultSchedule, Random, RunningSchedule};
use units::{Bytes, Rate, Span, Time};
use wire::ethernet::on_wire;

use super::exit::Exit;

/// One direction of the wire.
#[derive(Clone, Debug, Default)]
pub struct DirectionConfig {
    pub faults: FaultSchedule,
    pub rate: Option<Rate>,
    pub delay: Span,
}

/// Counters of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DirectionCounters {
    /// Frames put into the wire.
    pub offered: u64,
    pub offered_bytes: u64,
    /// Frames corrupted: dropped, unless they are passed on.
    pub dropped: u64,
    /// Frames that came out at the far end.
    pub passed: u64,
    pub passed_bytes: u64,
    /// Frames that found the queue of a wire with a rate full: not corruption.
    pub overflowed: u64,
    /// Frames longer than the wire's: the sender left segmentation undone, and it could not be done here.
    pub too_long: u64,
}

impl DirectionCounters {
    /// A frame that cannot be cut into what a wire carries.
    pub(super) fn refuse(&mut self, len: usize) {
        self.offered += 1;
        self.offered_bytes += len as u64;
        self.overflowed += 1;
        self.too_long += 1;
    }
}

#[derive(Debug)]
pub(super) struct WireDirection {
    faults: RunningSchedule,
    rate: Option<Rate>,
    delay: Span,
    free_at: Time,
    /// Time at which the port was last found empty.
    pub empty_at: Time,
    /// Frames on the wire, each with when it comes out.
    pub in_flight: VecDeque<(Time, Vec<u8>)>,
    pub spare: Vec<Vec<u8>>,
    pub counters: DirectionCounters,
}

impl WireDirection {
    pub(super) fn new(lane: &DirectionConfig, seed: u64, stream: u64) -> Self {
        Self {
            faults: lane.faults.run(seed, stream),
            rate: lane.rate,
            delay: lane.delay,
            free_at: Time::ZERO,
            empty_at: Time::ZERO,
            in_flight: VecDeque::new(),
            spare: Vec::new(),
            counters: DirectionCounters::default(),
        }
    }

    fn is_plain(&self) -> bool {
        self.rate.is_none() && self.delay == Span::ZERO
    }

    /// Time at which a frame that came at `arrived` comes out; `None` if the queue before the wire is full.
    fn admit(&mut self, arrived: Time, len: usize, queue: Bytes) -> Option<Time> {
        let Some(rate) = self.rate else { return Some(arrived + self.delay) };
        let waiting = rate.bytes_in(self.free_at.since(arrived));
        if waiting + Bytes::new(len as u64) > queue {
            self.counters.overflowed += 1;
            return None;
        }
        self.free_at = self.free_at.max(arrived) + rate.span_of(Bytes::new(u64::from(on_wire(len as u32 + 4))));
        Some(self.free_at + self.delay)
    }
}

/// False if the frame was corrupted.
pub(super) fn carry_one(
    arrived: Time,
    bytes: &[u8],
    direction: &mut WireDirection,
    exit: &mut Exit<'_>,
    queue: Bytes,
    flip: Option<&mut Random>,
    longest: usize,
) -> io::Result<bool> {
    direction.counters.offered += 1;
    direction.counters.offered_bytes += bytes.len() as u64;
    direction.counters.too_long += u64::from(bytes.len() > longest);
    let Some(out_at) = direction.admit(arrived, bytes.len(), queue) else { return Ok(true) };
    let corrupted = direction.faults.at(arrived).corrupts(bytes.len() as u32 + 4);
    direction.counters.dropped += u64::from(corrupted);
    if corrupted && flip.is_none() {
        return Ok(false);
    }
    if direction.is_plain() && !corrupted {
        return exit.pass(bytes, &mut direction.counters).map(|()| true);
    }
    let mut frame = direction.spare.pop().unwrap_or_default();
    frame.clear();
    frame.extend_from_slice(bytes);
    if let Some(random) = flip.filter(|_| corrupted) {
        let bit = (random.unit() * (frame.len() * 8) as f64) as usize;
        frame[bit / 8] ^= 1 << (bit % 8);
    }
    if direction.is_plain() {
        exit.pass(&frame, &mut direction.counters)?;
        direction.spare.push(frame);
        return Ok(!corrupted);
    }
    direction.in_flight.push_back((out_at, frame));
    Ok(!corrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: Bytes = Bytes::new(1_000_000);

    fn at_us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn direction(rate: Option<Rate>) -> WireDirection {
        let lane = DirectionConfig { rate, delay: Span::from_ms(10), ..DirectionConfig::default() };
        WireDirection { empty_at: at_us(1_000), ..WireDirection::new(&lane, 1, 0) }
    }

    #[test]
    fn a_frame_enters_when_it_came_however_long_the_port_was_empty_before() {
        for rate in [None, Some(Rate::gbps(1))] {
            let out = direction(rate).admit(at_us(8_950), 64, QUEUE).unwrap();
            assert!((at_us(18_950)..at_us(18_952)).contains(&out), "{out:?}");
        }
    }

    #[test]
    fn frames_that_came_together_leave_one_after_the_other() {
        let mut direction = direction(Some(Rate::gbps(1)));
        let [first, second] = [1_514, 1_514].map(|len| direction.admit(at_us(2_000), len, QUEUE).unwrap());
        assert_eq!(second.since(first), Rate::gbps(1).span_of(Bytes::new(1_538)));
    }
}
