//! Reservations in the switch: messages of hosts read and answered, marks read and taken off.
//!
//! [`reserve::ReservingSwitch`] decides; here frames are read for it. A host has joined if a message or a mark came from its
//! port of late. One that has not gets frames without their marks, which it could not read.

use reserve::ReservingSwitch;
use units::Time;
use wire::ethernet::{ETHERNET, TYPE};
use wire::reserve::{DataMark, HostKey, OUI_EXTENDED, ReserveHeader, ReserveMessage};

use super::class::HostAddress;
use crate::presence;

/// Source of answers and destination of messages: a locally administered address that no host has.
pub const SWITCH_ADDRESS: [u8; 6] = [0x02, 0x68, 0x69, 0x00, 0x02, 0x00];

/// The reservations of a switch.
#[derive(Debug)]
pub(super) struct Reservations {
    pub switch: ReservingSwitch,
    /// Time at which a frame about reservations last came in at each port, if its host has not left since.
    heard: Vec<Option<Time>>,
}

/// A frame as reservations see it.
pub(super) enum ReserveFrame<'a> {
    /// Message for the switch itself.
    Message(ReserveMessage),
    /// Marked frame for a host; the bytes behind the mark begin with the frame's own EtherType.
    Marked(DataMark, &'a [u8]),
    Unmarked,
    /// A mark with another one, or with a message, behind it: once it is taken off, a host would believe what is inside.
    Malformed,
}

impl Reservations {
    pub(super) fn new(switch: ReservingSwitch, ports: usize) -> Self {
        Self { switch, heard: vec![None; ports] }
    }

    /// Reads a frame that came from a port. What is not ours, or of another version, passes as it is.
    pub(super) fn read<'a>(&mut self, now: Time, port: usize, frame: &'a [u8]) -> ReserveFrame<'a> {
        if frame[TYPE..ETHERNET] != OUI_EXTENDED.to_be_bytes() {
            return ReserveFrame::Unmarked;
        }
        let Ok((header, rest)) = ReserveHeader::parse(&frame[ETHERNET..]) else { return ReserveFrame::Unmarked };
        self.heard[port] = Some(now);
        match header {
            ReserveHeader::Message(message) => {
                self.heard[port] = presence::is_there(&message).unwrap_or(true).then_some(now);
                ReserveFrame::Message(message)
            }
            ReserveHeader::Mark(_) if is_ours(rest) => ReserveFrame::Malformed,
            ReserveHeader::Mark(mark) => ReserveFrame::Marked(mark, rest),
        }
    }

    /// True if the host behind a port reserves, as far as is known.
    pub(super) fn has_joined(&self, now: Time, port: usize) -> bool {
        self.heard[port].is_some_and(|heard| now.since(heard) < presence::GONE_AFTER)
    }

    /// A port has lost its host.
    pub(super) fn port_down(&mut self, port: usize) {
        self.heard[port] = None;
        self.switch.on_port_down(port as u16, |_| ());
    }

    /// The next answer that is due by now: the port, the host and the message.
    pub(super) fn next_answer(&mut self, now: Time) -> Option<(usize, HostAddress, ReserveMessage)> {
        let answer = self.switch.on_wake(now)?;
        Some((usize::from(answer.port), HostKey::new(answer.token).mac(), answer.message))
    }
}

/// True if these bytes, from an EtherType on, are a mark or a message.
fn is_ours(rest: &[u8]) -> bool {
    rest.split_first_chunk().is_some_and(|(ethertype, inner)| {
        u16::from_be_bytes(*ethertype) == OUI_EXTENDED && ReserveHeader::parse(inner).is_ok()
    })
}

/// A message of the switch as a frame, into an empty buffer.
pub(super) fn emit(to: HostAddress, message: &ReserveMessage, frame: &mut Vec<u8>) {
    frame.extend_from_slice(&to);
    frame.extend_from_slice(&SWITCH_ADDRESS);
    frame.extend_from_slice(&OUI_EXTENDED.to_be_bytes());
    ReserveHeader::Message(*message).emit(frame);
}
