//! One output port: two classes, served at a rate out of a bounded buffer.
//!
//! ```text
//!            ┌ urgent ┐
//!   admit ──▶┤        ├──▶ on the wire ──▶ departed
//!            └ bulk ──┘
//! ```
//!
//! The port lives in the time of the frames' arrivals, not in that of the loop that calls it: after a loop has slept, what
//! arrived meanwhile is served as it would have been. Frames must be admitted in the order of their arrival.
//!
//! Sizes are those on the wire: preamble, check and gap included.
//!
//! Invariants: what waits, the frame on the wire included, never exceeds the buffer; frames of a class leave in the order
//! they came; a frame on the wire is not interrupted.

use std::collections::VecDeque;

use reserve::Charge;
use units::{Bytes, Rate, Time};
use wire::ethernet::on_wire;

use super::class::TrafficClass;

/// Properties of a port.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// The interface.
    pub name: String,
    /// Rate at which frames leave.
    pub rate: Rate,
    /// Bytes that may wait, in their size on the wire, the frame that is leaving included.
    pub buffer: Bytes,
    /// The longest frame that it carries, frame check not counted.
    pub longest: usize,
    /// True if priorities of the frames that come in are believed.
    pub trusts_priority: bool,
}

/// A frame, and what its place in the queue is charged with.
#[derive(Debug)]
pub(super) struct QueuedFrame {
    pub bytes: Vec<u8>,
    pub charge: Charge,
}

#[derive(Debug)]
pub(super) struct OutputPort {
    rate: Rate,
    buffer: Bytes,
    /// Queues by class.
    queues: [VecDeque<QueuedFrame>; 2],
    /// The frame on the wire, and when it has left.
    sending: Option<(Time, QueuedFrame)>,
    held: Bytes,
    peak: Bytes,
    departed: VecDeque<QueuedFrame>,
}

/// Size of a frame on the wire, frame check included.
pub(super) fn wire_size(frame: &[u8]) -> Bytes {
    Bytes::new(u64::from(on_wire(frame.len() as u32 + 4)))
}

impl OutputPort {
    pub(super) fn new(config: &PortConfig) -> Self {
        Self {
            rate: config.rate,
            buffer: config.buffer,
            queues: [VecDeque::new(), VecDeque::new()],
            sending: None,
            held: Bytes::ZERO,
            peak: Bytes::ZERO,
            departed: VecDeque::new(),
        }
    }

    /// Takes in a frame that arrived at `now`. It comes back if there is no room.
    pub(super) fn admit(&mut self, now: Time, class: TrafficClass, frame: QueuedFrame) -> Result<(), QueuedFrame> {
        self.serve(now);
        let held = self.held + wire_size(&frame.bytes);
        if held > self.buffer {
            return Err(frame);
        }
        self.held = held;
        self.peak = self.peak.max(held);
        if self.sending.is_none() {
            self.send(now, frame);
        } else {
            self.queues[class as usize].push_back(frame);
        }
        Ok(())
    }

    /// Lets the port work until `now`.
    pub(super) fn serve(&mut self, now: Time) {
        while let Some((end, frame)) = self.sending.take_if(|(end, _)| *end <= now) {
            self.held -= wire_size(&frame.bytes);
            self.departed.push_back(frame);
            if let Some(next) = self.queues.iter_mut().find_map(VecDeque::pop_front) {
                self.send(end, next);
            }
        }
    }

    fn send(&mut self, start: Time, frame: QueuedFrame) {
        self.sending = Some((start + self.rate.span_of(wire_size(&frame.bytes)), frame));
    }

    /// The next frame that has left, and is to be put on the real interface.
    pub(super) fn take_departed(&mut self) -> Option<QueuedFrame> {
        self.departed.pop_front()
    }

    /// Time at which the frame on the wire has left; never if there is none.
    pub(super) fn next_departure(&self) -> Time {
        self.sending.as_ref().map_or(Time::NEVER, |(end, _)| *end)
    }

    /// Bytes that wait, as of the last time that the port was served.
    pub(super) fn held(&self) -> Bytes {
        self.held
    }

    /// The most that has waited since this was last reset.
    pub(super) fn peak(&self) -> Bytes {
        self.peak
    }

    pub(super) fn reset_peak(&mut self) {
        self.peak = self.held;
    }
}

#[cfg(test)]
mod tests {
    use units::Span;

    use super::TrafficClass::{Bulk, Urgent};
    use super::*;

    /// A full frame takes 12.304 µs at this rate.
    fn port(buffer: u64) -> OutputPort {
        OutputPort::new(&PortConfig {
            name: "p".to_owned(),
            rate: Rate::gbps(1),
            buffer: Bytes::new(buffer),
            longest: 1_514,
            trusts_priority: false,
        })
    }

    fn at(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    fn frame(name: u8) -> QueuedFrame {
        QueuedFrame { bytes: vec![name; 1_514], charge: Charge::default() }
    }

    fn left(port: &mut OutputPort, now: Time) -> Vec<u8> {
        port.serve(now);
        std::iter::from_fn(|| port.take_departed()).map(|frame| frame.bytes[0]).collect()
    }

    #[test]
    fn a_frame_leaves_when_its_last_bit_is_out() {
        let mut port = port(10_000);
        port.admit(at(1_000), Bulk, frame(1)).unwrap();
        assert_eq!(port.next_departure(), at(13_304));
        assert!(left(&mut port, at(13_303)).is_empty());
        assert_eq!(left(&mut port, at(13_304)), [1]);
        assert_eq!((port.held(), port.next_departure()), (Bytes::ZERO, Time::NEVER));
    }

    #[test]
    fn what_arrived_while_nobody_looked_was_served_meanwhile() {
        let mut port = port(3 * 1_538);
        // A frame every 12.4 µs for a millisecond, all handed over at its end: the wire kept up with them.
        for number in 0..80_u64 {
            port.admit(at(number * 12_400), Bulk, frame(number as u8)).unwrap();
        }
        assert_eq!(port.peak(), Bytes::new(1_538));
        assert_eq!(left(&mut port, at(1_000_000)).len(), 80);
    }

    #[test]
    fn a_full_buffer_refuses_and_the_peak_is_what_waited() {
        let mut port = port(2 * 1_538 + 100);
        let admitted: Vec<bool> = (1..=4).map(|name| port.admit(at(0), Bulk, frame(name)).is_ok()).collect();
        assert_eq!(admitted, [true, true, false, false]);
        assert!(
            port.admit(at(0), Bulk, QueuedFrame { bytes: vec![5; 60], ..frame(5) }).is_ok(),
            "there is room for a short one"
        );
        assert_eq!(port.peak(), Bytes::new(2 * 1_538 + 84));
        assert_eq!(left(&mut port, at(100_000)), [1, 2, 5]);
        port.reset_peak();
        assert_eq!(port.peak(), Bytes::ZERO);
    }

    #[test]
    fn the_urgent_class_goes_before_what_waits_but_not_before_what_is_leaving() {
        let mut port = port(100_000);
        for (name, class) in [(1, Bulk), (2, Bulk), (3, Urgent), (4, Bulk), (5, Urgent)] {
            port.admit(at(u64::from(name)), class, frame(name)).unwrap();
        }
        assert_eq!(left(&mut port, at(100_000)), [1, 3, 5, 2, 4]);
    }
}
