//! Formulas for a rack with reservations, which need no simulation.
//!
//! A context is in one of two states: its burst waits for its slot, or it asks (an exchange with the switch, and the sender's
//! software). With M contexts that all have something to send to one port, a round of all of them takes M · K slots if that
//! is longer than asking takes, so a burst waits M · K · slot minus the time of asking: the wait grows with the contexts, the
//! throughput only until the slots cover the time of asking.

use units::{Bytes, Rate, Span};
use wire::ethernet::{HEADER_AND_CHECK, on_wire};

use crate::SlotUnit;

/// Payload of a full frame.
const PAYLOAD: u32 = 1_500;
/// Slots are longer than a frame by this.
const MARGIN: f64 = 1.01;

/// A rack of equal hosts.
#[derive(Clone, Copy, Debug)]
pub struct RackModel {
    /// Rate of every port.
    pub rate: Rate,
    /// Hosts of the rack, the receiver included.
    pub hosts: u32,
    /// Contexts of each host.
    pub contexts: u32,
    /// Full frames of a burst.
    pub k: u32,
    /// Unit that a slot carries.
    pub unit: SlotUnit,
    /// Time from an RSV to its GRT, in an idle rack.
    pub exchange: Span,
    /// Additional time of the sender's software for each burst of a context.
    pub software: Span,
}

/// Messages of a workload, on average.
#[derive(Clone, Copy, Debug)]
pub struct MeanMessage {
    /// Payload.
    pub bytes: f64,
    /// Frames of at most 1,500 B of payload.
    pub frames: f64,
    /// Bytes that those frames take on the wire.
    pub wire_bytes: f64,
}

impl MeanMessage {
    /// Messages of one full frame each.
    pub fn full_frame() -> Self {
        let wire = f64::from(on_wire(PAYLOAD + HEADER_AND_CHECK));
        Self { bytes: PAYLOAD.into(), frames: 1.0, wire_bytes: wire }
    }
}

impl RackModel {
    fn frame_seconds(&self) -> f64 {
        let frame = Bytes::new(on_wire(PAYLOAD + HEADER_AND_CHECK).into());
        frame.get() as f64 * 8.0 / self.rate.bits_per_second() as f64
    }

    /// Time for which a full frame occupies a port, in seconds.
    fn slot(&self) -> f64 {
        self.frame_seconds() * MARGIN
    }

    /// Exchange and software of a burst, in seconds.
    fn asking(&self) -> f64 {
        self.exchange.as_secs() + self.software.as_secs()
    }

    /// Slots that a round of all contexts of `senders` hosts takes.
    fn round(&self, senders: u32) -> f64 {
        f64::from(senders) * f64::from(self.contexts) * f64::from(self.k)
    }

    /// The most that a port queues of reserved frames while all other hosts send to it.
    pub fn bound(&self) -> Bytes {
        let frame = u64::from(on_wire(PAYLOAD + HEADER_AND_CHECK));
        Bytes::new(frame * u64::from(self.hosts - 1) * u64::from(self.contexts) * u64::from(self.k))
    }

    /// Payload of full frames that `senders` hosts send to one, in bits per second.
    pub fn throughput(&self, senders: u32) -> f64 {
        let burst = self.asking() + f64::from(self.k) * self.slot();
        let frames = (self.round(senders) / burst).min(1.0 / self.slot());
        frames * f64::from(PAYLOAD) * 8.0
    }

    /// Time that a burst waits for its slot beside `senders` hosts that always have something to send to the same port, in
    /// seconds.
    pub fn wait(&self, senders: u32) -> f64 {
        (self.round(senders) * self.slot() - self.asking()).max(0.0)
    }

    /// Payload in bits per second at which a port is full of such messages.
    pub fn ceiling(&self, message: &MeanMessage) -> f64 {
        let wire = match self.unit {
            SlotUnit::Frames => message.frames * f64::from(on_wire(PAYLOAD + HEADER_AND_CHECK)),
            SlotUnit::Bytes => message.wire_bytes,
        };
        self.rate.bits_per_second() as f64 * message.bytes / wire
    }

    /// Time until this loss on hosts' links has halved what `senders` hosts send under the paper's scheduler, in seconds.
    ///
    /// A lost frame leaves its slot counted, a lost GRT all slots of its burst: two slots leak for 1 / loss frames. With L
    /// slots leaked, M · K of M · K + L slots are used, so L grows ever more slowly and is M · K after 3/4 · M · K / (loss ·
    /// frames per second).
    pub fn half_life(&self, senders: u32, loss: f64) -> Option<f64> {
        (loss > 0.0).then(|| 0.75 * self.round(senders) * self.frame_seconds() / loss)
    }

    /// The fewest contexts with which one host alone sends at 95 % of what slots allow, if at most this many are enough.
    pub fn contexts_to_fill(&self, most: u32) -> Option<u32> {
        let full = 0.95 / self.slot() * f64::from(PAYLOAD) * 8.0;
        (1..=most).find(|contexts| Self { contexts: *contexts, ..*self }.throughput(1) >= full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rack() -> RackModel {
        RackModel {
            rate: Rate::gbps(100),
            hosts: 6,
            contexts: 12,
            k: 4,
            unit: SlotUnit::Frames,
            exchange: Span::from_ns(2_050),
            software: Span::from_ns(3_500),
        }
    }

    #[test]
    fn the_bound_is_a_burst_of_every_context() {
        assert_eq!(rack().bound(), Bytes::new(5 * 12 * 4 * 1_538));
        assert_eq!(RackModel { contexts: 1, ..rack() }.bound(), Bytes::new(30_760));
    }

    /// 48 contexts of 4 slots of 124.27 ns are 23.86 µs, of which asking takes 5.55.
    #[test]
    fn a_burst_waits_for_a_round_of_all_others() {
        assert!((rack().wait(4) - 18.31e-6).abs() < 0.01e-6, "{}", rack().wait(4));
        assert_eq!(RackModel { contexts: 1, ..rack() }.wait(4), 0.0, "a round is shorter than asking");
    }

    #[test]
    fn throughput_grows_until_slots_cover_asking() {
        // 4 frames of 12,000 bits in 6.047 µs.
        assert!((RackModel { contexts: 1, ..rack() }.throughput(1) / 1e9 - 7.94).abs() < 0.01);
        // A slot of 124.27 ns for 12,000 bits.
        assert!((rack().throughput(2) / 1e9 - 96.56).abs() < 0.01);
        assert_eq!(rack().contexts_to_fill(64), Some(12));
        assert_eq!(rack().contexts_to_fill(4), None);
    }

    #[test]
    fn a_slot_for_each_frame_wastes_what_short_frames_leave() {
        let short = MeanMessage { bytes: 46.0, frames: 1.0, wire_bytes: 84.0 };
        assert!((rack().ceiling(&short) / 1e9 - 2.99).abs() < 0.01);
        let bytes = RackModel { unit: SlotUnit::Bytes, ..rack() };
        assert!((bytes.ceiling(&short) / 1e9 - 54.76).abs() < 0.01);
        assert!((rack().ceiling(&MeanMessage::full_frame()) / 1e9 - 97.53).abs() < 0.01);
    }

    /// 192 slots, 8.13 million frames a second, one in a thousand lost: 17.7 ms.
    #[test]
    fn loss_halves_the_papers_throughput() {
        let seconds = rack().half_life(4, 1e-3).expect("there is a loss");
        assert!((seconds * 1e3 - 17.72).abs() < 0.01, "{seconds}");
        assert_eq!(rack().half_life(4, 0.0), None);
    }
}
