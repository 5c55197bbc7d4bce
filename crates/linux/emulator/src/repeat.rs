//! The switch between hosts and fabric that repeats NAKs and what they ask for, on real frames.
//!
//! "Packet corruption in RDMA" §5.1. [`roce::repeat`] is the protocol; here frames are read for it:
//!
//! ```text
//!   hosts ── A ──▶ repeater ──copies──▶ wire ──▶ B ── fabric
//!   hosts ── A ◀── repeater ◀────────── wire ◀── B ── fabric
//! ```
//!
//! A frame from the hosts is seen before it enters the wire, so that each copy takes its own chances there; one from the
//! fabric as it comes out, because a NAK that the wire has dropped asks for nothing. One whose bits the wire only flips is
//! passed on and read as it comes: only its host checks the ICRC.
//!
//! Invariants: a frame is never altered, held back or dropped here; RoCEv2 that is malformed is counted and passes once.

use roce::Psn;
use roce::repeat::{self, PacketView, PortPair, Repeater};
use wire::roce::{self as format, ExtensionHeader, Opcode, ParsedRoce, Syndrome};

/// Counters of the repeater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RepeatCounters {
    /// RoCEv2 frames of any transport, both ways, malformed ones included.
    pub roce: u64,
    /// Frames to RoCEv2's port with other contents.
    pub malformed: u64,
    pub nak_copies: u64,
    /// Copies of packets that NAKs asked for.
    pub naked_copies: u64,
}

#[derive(Debug)]
pub struct Repeat {
    repeater: Repeater,
    seen: u64,
    malformed: u64,
}

impl Repeat {
    pub fn new(config: repeat::RepeaterConfig) -> Self {
        Self { repeater: Repeater::new(config), seen: 0, malformed: 0 }
    }

    /// Number of times that a frame of the hosts enters the wire: itself and its copies.
    #[inline]
    pub fn on_leaving(&mut self, frame: &[u8]) -> u32 {
        self.on_frame(frame, PortPair { from_host: true, to_host: false })
    }

    /// A frame has come out of the wire, for the hosts. What it asks for is remembered.
    #[inline]
    pub fn on_arriving(&mut self, frame: &[u8]) {
        self.on_frame(frame, PortPair { from_host: false, to_host: true });
    }

    fn on_frame(&mut self, frame: &[u8], way: PortPair) -> u32 {
        let parsed = format::parse(frame);
        self.seen += u64::from(parsed != Ok(ParsedRoce::Foreign));
        match parsed {
            // The content of a packet does not show which connection it belongs to.
            Ok(ParsedRoce::Reliable { header, .. }) => self.repeater.on_packet(way, seen(&header), None),
            Ok(ParsedRoce::Foreign | ParsedRoce::Other { .. }) => 1,
            Err(_) => {
                self.malformed += 1;
                1
            }
        }
    }

    pub fn counters(&self) -> RepeatCounters {
        let repeat::Counters { naks, naked, .. } = self.repeater.counters();
        RepeatCounters { roce: self.seen, malformed: self.malformed, nak_copies: naks, naked_copies: naked }
    }
}

/// View that a switch has of a packet.
fn seen(header: &format::RoceHeader) -> PacketView {
    let psn = Psn::new(header.psn);
    match (header.opcode, header.extended) {
        (Opcode::Acknowledge, Some(ExtensionHeader::Ack { syndrome: Syndrome::SEQUENCE_ERROR, .. })) => {
            PacketView::Nak(psn)
        }
        (opcode, _) if opcode.is_request() => PacketView::Request(psn),
        _ => PacketView::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(opcode: Opcode, extended: Option<ExtensionHeader>) -> format::RoceHeader {
        format::RoceHeader { opcode, queue_pair: 5, psn: 77, ack_request: false, pad: 0, extended }
    }

    #[test]
    fn every_request_counts_and_of_the_answers_only_a_nak_of_the_sequence() {
        let requests =
            Opcode::ALL.iter().filter(|opcode| seen(&header(**opcode, None)) == PacketView::Request(Psn::new(77)));
        assert_eq!(requests.count(), Opcode::ALL.len() - 6, "four READ responses and two acknowledgements");
        let answer = |syndrome| Some(ExtensionHeader::Ack { syndrome: Syndrome(syndrome), msn: 1 });
        let naks: Vec<u8> = (0..=u8::MAX)
            .filter(|syndrome| seen(&header(Opcode::Acknowledge, answer(*syndrome))) == PacketView::Nak(Psn::new(77)))
            .collect();
        assert_eq!(naks, [0x60]);
        assert_eq!(seen(&header(Opcode::AtomicAcknowledge, answer(0x60))), PacketView::Other);
    }

    #[test]
    fn bytes_of_any_kind_pass_once() {
        let mut repeat = Repeat::new(repeat::RepeaterConfig::new(1, 3));
        let frames = [&[][..], &[0; 13], &[0xff; 60], b"anything at all"];
        assert!(frames.iter().all(|frame| repeat.on_leaving(frame) == 1));
        assert_eq!(repeat.counters(), RepeatCounters::default());
    }
}
