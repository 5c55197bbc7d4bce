//! A host's processor that can be busy: one queue of work, and what each piece of it takes.
//!
//! ```text
//!   arrives ──▶ ring ──(interrupt)──▶ polled one by one ──▶ run of segments ──▶ transport ──▶ burst ──▶ wire
//!                      HostLatency      per packet            per call                         per burst
//! ```
//!
//! Polling continues until the ring is empty, so packets that arrive meanwhile need no interrupt. Consecutive segments are
//! handed up as one (receive offload); a segment that does not follow, or an empty ring, ends the run. Packets leave in
//! bursts (segmentation offload): the processor prepares each burst, and its segments follow each other on the wire.

use std::collections::VecDeque;

use units::{Span, Time};

use super::events::NetworkEvent;
use super::index::{EndId, HostId, PacketId};
use super::programs::NetworkProgram;
use super::world::Network;

/// Times that the processor of a host needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostProcessor {
    /// Time for each packet received.
    pub per_packet: Span,
    /// Time for each run of segments that goes up as one, and each acknowledgement.
    pub per_call: Span,
    /// Time for each burst sent; an acknowledgement is one.
    pub per_burst: Span,
    /// The most bytes of a burst.
    pub burst: u32,
}

/// The processor of one host.
#[derive(Debug)]
pub(super) struct RunningProcessor {
    terms: HostProcessor,
    /// Time at which it has done all that it was asked for.
    free_at: Time,
    ring: VecDeque<PacketId>,
    /// True if it polls, or an interrupt is under way.
    polls: bool,
    /// The packet that it works on.
    in_hand: Option<PacketId>,
    run: Vec<PacketId>,
    next: Option<(EndId, u64, u32)>,
    sending: BurstState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BurstState {
    Idle,
    /// The processor prepares one until then.
    Prepared(Time),
    /// This much of it is left.
    OnWire(u32),
}

/// Most bytes that receive offload joins: an IP packet.
const LONGEST_RUN: u32 = 65_535;

impl RunningProcessor {
    pub(super) fn new(terms: HostProcessor) -> Self {
        Self {
            terms,
            free_at: Time::ZERO,
            ring: VecDeque::new(),
            polls: false,
            in_hand: None,
            run: Vec::new(),
            next: None,
            sending: BurstState::Idle,
        }
    }

    /// A packet is in the ring; whether an interrupt is needed for it.
    fn arrives(&mut self, packet: PacketId) -> bool {
        self.ring.push_back(packet);
        !std::mem::replace(&mut self.polls, true)
    }

    /// Adds work of this length, from now on at the earliest. Returns when it is done.
    fn work(&mut self, now: Time, span: Span) -> Time {
        self.free_at = self.free_at.max(now) + span;
        self.free_at
    }

    /// True if a packet ends the run before it; `stream` is its place in the stream of its connection.
    fn ends_run(&mut self, to: EndId, stream: Option<(u64, u32)>) -> bool {
        let Some((seq, len)) = stream else {
            self.next = None;
            return true;
        };
        let joined = self.next.filter(|(end, next, bytes)| *end == to && *next == seq && bytes + len <= LONGEST_RUN);
        self.next = Some((to, seq + u64::from(len), joined.map_or(len, |(.., bytes)| bytes + len)));
        joined.is_none()
    }

    /// Time at which data may be sent, if that is later than now: a burst is prepared first.
    pub(super) fn holds_data(&mut self, now: Time) -> Option<Time> {
        match self.sending {
            BurstState::OnWire(_) => None,
            BurstState::Prepared(at) if at <= now => {
                self.sending = BurstState::OnWire(self.terms.burst);
                None
            }
            BurstState::Prepared(at) => Some(at),
            BurstState::Idle => {
                let at = self.work(now, self.terms.per_burst);
                self.sending = BurstState::Prepared(at);
                Some(at)
            }
        }
    }

    /// A frame of this length was sent; `more` if there is something behind it.
    pub(super) fn sent(&mut self, len: u16, more: bool) {
        if let BurstState::OnWire(left) = self.sending {
            let left = left.saturating_sub(u32::from(len));
            self.sending = if more && left > 0 { BurstState::OnWire(left) } else { BurstState::Idle };
        }
    }
}

impl<P: NetworkProgram> Network<'_, P> {
    /// A packet has come to a host whose processor takes its time.
    pub(super) fn pass_to_processor(&mut self, now: Time, host: HostId, packet: PacketId) {
        let needs_interrupt = self.hosts[host].processor.as_mut().is_some_and(|processor| processor.arrives(packet));
        if needs_interrupt {
            let at = now + self.hosts[host].draw_latency();
            self.queue.schedule(at, NetworkEvent::Interrupt { host });
        }
    }

    /// The processor takes the next packet of the ring.
    pub(super) fn poll(&mut self, now: Time, host: HostId) {
        let Some(processor) = &mut self.hosts[host].processor else { return };
        let Some(packet) = processor.ring.pop_front() else {
            processor.polls = false;
            let run = std::mem::take(&mut processor.run);
            processor.next = None;
            return self.run_goes_up(now, host, run);
        };
        let held = self.packets.get(packet);
        let ends = processor.ends_run(held.to(), held.body.in_stream());
        // The run's results are sent before the packet that ends it is processed.
        let before = if ends { std::mem::take(&mut processor.run) } else { Vec::new() };
        self.run_goes_up(now, host, before);
        let Some(processor) = &mut self.hosts[host].processor else { return };
        let HostProcessor { per_packet, per_call, .. } = processor.terms;
        let at = processor.work(now, if ends { per_packet + per_call } else { per_packet });
        processor.in_hand = Some(packet);
        self.queue.schedule(at, NetworkEvent::HostReceives { host });
    }

    /// The processor is done with a packet.
    pub(super) fn polled(&mut self, now: Time, host: HostId) {
        let Some(processor) = &mut self.hosts[host].processor else { return };
        let Some(packet) = processor.in_hand.take() else { return };
        processor.run.push(packet);
        self.poll(now, host);
    }

    /// A run is handed to its transport, and what that has to say is said.
    fn run_goes_up(&mut self, now: Time, host: HostId, run: Vec<PacketId>) {
        if run.is_empty() {
            return;
        }
        for packet in run {
            self.hand_over(now, packet);
        }
        let port = self.hosts[host].port;
        self.serve(now, port);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processor() -> RunningProcessor {
        let us = Span::from_us;
        RunningProcessor::new(HostProcessor { per_packet: us(1), per_call: us(2), per_burst: us(4), burst: 3_000 })
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn one_interrupt_is_enough_until_the_ring_is_empty() {
        let mut processor = processor();
        assert!(processor.arrives(PacketId(1)) && !processor.arrives(PacketId(2)));
    }

    #[test]
    fn a_gap_another_connection_and_an_acknowledgement_end_a_run() {
        let mut processor = processor();
        let mut ends = |to, stream| processor.ends_run(EndId(to), stream);
        assert!(ends(1, Some((0, 1_000))) && !ends(1, Some((1_000, 1_000))));
        assert!(ends(1, Some((3_000, 1_000))), "a gap");
        assert!(ends(3, Some((4_000, 1_000))), "another connection");
        assert!(ends(3, None) && ends(3, Some((5_000, 1_000))), "an acknowledgement");
    }

    #[test]
    fn bursts_are_prepared_one_after_the_other() {
        let mut processor = processor();
        assert_eq!(processor.holds_data(at(10)), Some(at(14)));
        assert_eq!((processor.holds_data(at(12)), processor.holds_data(at(14))), (Some(at(14)), None));
        processor.sent(1_500, true);
        assert_eq!(processor.holds_data(at(15)), None, "the same burst");
        processor.sent(1_500, true);
        assert_eq!(processor.holds_data(at(15)), Some(at(19)), "another one");
        assert_eq!(processor.work(at(16), Span::from_us(1)), at(20), "busy until then");
    }
}
