//! The switch without I/O: frames and the times of their arrival in, frames out.
//!
//! ```text
//!   on_frame ──▶ header ──▶ source checked, learned ──▶ one port, or all others ──▶ its queue ──▶ take_departed
//! ```
//!
//! With reservations ([`SwitchCore::reserving`]) messages of hosts end here and are answered, and data frames pass as they
//! reserved it, are cut and sent back, or are dropped.
//!
//! Frames must come in the order of their arrival; [`SwitchCore::serve`] lets the ports work until a later time.
//!
//! A priority counts only at ports that are trusted with it. An address that moves to another port is remembered for the log.
//!
//! Invariant: every frame that came in is counted once, as refused at its input port (malformed, too long, a foreign source,
//! filtered, policed), as a message, or as forwarded; every copy offered to an output port is dropped, waiting or has departed.

use reserve::{Charge, DataAnswer, FrameVisit, MessageAnswer, MessageVisit, ReservingSwitch};
use units::{Span, Time};
use wire::ethernet::TYPE;
use wire::reserve::{DataMark, HostKey, ReserveMessage};

use super::class::{HostAddress, SwitchHeader, TrafficClass};
use super::port::{OutputPort, PortConfig, QueuedFrame, wire_size};
use super::reserving::{Reservations, ReserveFrame, SWITCH_ADDRESS, emit};
use super::table::{AddressTable, SourceCheck};

units::counters! {
    /// Counters of a port: first as an input, then as an output. They count frames, unless they say bytes.
    SwitchPortCounters:
    /// Frames that came in.
    received,
    /// Bytes that came in, frame check not counted.
    received_bytes,
    /// Frames that came faster than they could be read.
    ring_overflow,
    /// Frames that are no Ethernet frames.
    malformed,
    /// Frames longer than the port that they came in at, or were to leave by, carries.
    too_long,
    /// Frames with the address of a host behind another port, or the switch's own.
    foreign_source,
    /// Frames from an address that was behind another port until then.
    moved,
    /// Frames for the host that they came from, or for this port alone: not forwarded.
    filtered,
    /// Frames for a group, or for an address that is not known: sent to all other ports.
    flooded,
    /// Frames from an address that there is no room for.
    unlearned,
    /// Messages of hosts that reserve.
    messages,
    /// Frames that lacked a required reservation: cut and sent back, or dropped.
    policed,
    /// Frames that were to leave here, answers to messages included.
    offered,
    /// Bytes that were to leave here, frame check not counted.
    offered_bytes,
    /// Frames that found the buffer full.
    dropped,
    /// Frames that left.
    passed,
    /// Bytes that left, frame check not counted.
    passed_bytes,
    /// Bytes of the frames on the wire, with frame check, preamble and gap.
    wire_bytes,
    /// Frames that left the switch, but for which the interface had no room.
    refused,
}

/// A switch; see the module.
#[derive(Debug)]
pub struct SwitchCore {
    ports: Vec<RackPort>,
    table: AddressTable,
    reserving: Option<Reservations>,
    /// Moves that nobody has asked for yet.
    moves: Vec<AddressMove>,
    /// Buffers of frames that are gone.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct RackPort {
    output: OutputPort,
    longest: usize,
    trusts_priority: bool,
    counters: SwitchPortCounters,
}

/// An address that was heard at another port than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressMove {
    /// The address.
    pub address: [u8; 6],
    /// The port that it was behind.
    pub from: usize,
    /// The port that it is behind.
    pub to: usize,
}

/// A frame on its way: all of it, and its mark with what stands behind that.
#[derive(Clone, Copy)]
struct ForwardedFrame<'a> {
    bytes: &'a [u8],
    mark: Option<(DataMark, &'a [u8])>,
}

/// Buffers kept for frames to come.
const MOST_SPARE: usize = 4_096;
/// Moves that may wait to be asked for.
const MOST_MOVES_KEPT: usize = 16;

impl SwitchCore {
    /// An address that has been silent for `aging` is forgotten.
    pub fn new(ports: &[PortConfig], aging: Span) -> Self {
        let port = |config: &PortConfig| RackPort {
            output: OutputPort::new(config),
            longest: config.longest,
            trusts_priority: config.trusts_priority,
            counters: SwitchPortCounters::default(),
        };
        Self {
            ports: ports.iter().map(port).collect(),
            table: AddressTable::new(ports.len(), aging),
            reserving: None,
            moves: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Gives an address to a port permanently. False if the port has no room for it, or if another port has it.
    #[must_use]
    pub fn bind(&mut self, address: [u8; 6], port: usize) -> bool {
        address != SWITCH_ADDRESS && self.table.bind(address, port)
    }

    /// Lets hosts reserve. The switch must have been made for as many ports.
    #[must_use]
    pub fn reserving(self, switch: ReservingSwitch) -> Self {
        let ports = self.ports.len();
        assert_eq!(usize::from(switch.params().ports), ports, "one port each");
        Self { reserving: Some(Reservations::new(switch, ports)), ..self }
    }

    /// A frame arrived at a port.
    pub fn on_frame(&mut self, now: Time, port: usize, frame: &[u8]) {
        let RackPort { counters, longest, trusts_priority, .. } = &mut self.ports[port];
        counters.received += 1;
        counters.received_bytes += frame.len() as u64;
        let Some(header) = SwitchHeader::of(frame, *trusts_priority) else {
            counters.malformed += 1;
            return;
        };
        if frame.len() > *longest {
            counters.too_long += 1;
            return;
        }
        match self.source(now, port, header.from) {
            SourceCheck::Known => {}
            SourceCheck::MovedFrom(from) => self.note_move(AddressMove { address: header.from, from, to: port }),
            SourceCheck::Unlearned => self.ports[port].counters.unlearned += 1,
            SourceCheck::Foreign => {
                self.ports[port].counters.foreign_source += 1;
                return;
            }
        }
        let counters = &mut self.ports[port].counters;
        if header.is_port_control {
            counters.filtered += 1;
            return;
        }
        let read = self.reserving.as_mut().map_or(ReserveFrame::Unmarked, |reserving| reserving.read(now, port, frame));
        match read {
            ReserveFrame::Malformed => self.ports[port].counters.malformed += 1,
            ReserveFrame::Message(message) => self.on_message(now, port, header.from, &message),
            ReserveFrame::Marked(mark, rest) => {
                self.forward(now, port, &header, ForwardedFrame { bytes: frame, mark: Some((mark, rest)) });
            }
            ReserveFrame::Unmarked => {
                self.forward(now, port, &header, ForwardedFrame { bytes: frame, mark: None });
            }
        }
    }

    /// Looks a source address up. No host has the switch's own address: hosts that reserve believe messages from there.
    fn source(&mut self, now: Time, port: usize, address: HostAddress) -> SourceCheck {
        if address == SWITCH_ADDRESS { SourceCheck::Foreign } else { self.table.learn(now, port, address) }
    }

    fn note_move(&mut self, moved: AddressMove) {
        self.ports[moved.to].counters.moved += 1;
        if self.moves.len() < MOST_MOVES_KEPT {
            self.moves.push(moved);
        }
    }

    /// Addresses that have moved since this was last called, at most 16 of them.
    pub fn take_moves(&mut self) -> Vec<AddressMove> {
        std::mem::take(&mut self.moves)
    }

    fn on_message(&mut self, now: Time, from: usize, host: HostAddress, message: &ReserveMessage) {
        self.ports[from].counters.messages += 1;
        let Some(reserving) = &mut self.reserving else { return };
        let peer = message.about.peer.mac();
        let peer_port = self.table.port_of(now, &peer);
        let visit = MessageVisit {
            from: from as u16,
            peer: peer_port.map(|port| port as u16),
            // An address of another port was refused before.
            source: Some(from as u16),
            token: HostKey::from_mac(host).number(),
        };
        let copies = reserving.switch.copies_grants();
        let MessageAnswer::Reply(reply) = reserving.switch.on_message(now, visit, message) else { return };
        self.answer(now, from, host, &reply);
        let copy = ReservingSwitch::copy_for_receiver(&reply, HostKey::from_mac(host)).filter(|_| copies);
        if let (Some(copy), Some(port)) = (copy, peer_port) {
            self.answer(now, port, peer, &copy);
        }
    }

    /// Sends a message of the switch to a host.
    fn answer(&mut self, now: Time, port: usize, host: HostAddress, message: &ReserveMessage) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        emit(host, message, &mut bytes);
        self.queue(now, port, TrafficClass::Urgent, QueuedFrame { bytes, charge: Charge::default() });
    }

    fn forward(&mut self, now: Time, from: usize, header: &SwitchHeader, frame: ForwardedFrame<'_>) {
        let known = if header.is_to_group() { None } else { self.table.port_of(now, &header.to) };
        match known {
            Some(to) if to == from => self.ports[from].counters.filtered += 1,
            Some(to) => self.offer(now, from, to, header, frame),
            None => {
                self.ports[from].counters.flooded += 1;
                for to in (0..self.ports.len()).filter(|to| *to != from) {
                    self.offer(now, from, to, header, frame);
                }
            }
        }
    }

    fn offer(&mut self, now: Time, from: usize, to: usize, header: &SwitchHeader, frame: ForwardedFrame<'_>) {
        if frame.bytes.len() > self.ports[to].longest {
            self.ports[from].counters.too_long += 1;
            return;
        }
        let Some(charge) = self.admission(now, from, to, header, &frame) else { return };
        let mut bytes = self.spare.pop().unwrap_or_default();
        match frame.mark.filter(|_| !self.reserving.as_ref().is_some_and(|reserving| reserving.has_joined(now, to))) {
            Some((_, rest)) => bytes.extend(frame.bytes[..TYPE].iter().chain(rest)),
            None => bytes.extend_from_slice(frame.bytes),
        }
        self.queue(now, to, header.class, QueuedFrame { bytes, charge });
    }

    /// Charge for a frame's place in the queue; `None` if the frame goes no further.
    fn admission(
        &mut self,
        now: Time,
        from: usize,
        to: usize,
        header: &SwitchHeader,
        frame: &ForwardedFrame<'_>,
    ) -> Option<Charge> {
        let Some(reserving) = &mut self.reserving else { return Some(Charge::default()) };
        let visit = FrameVisit { from: from as u16, to: to as u16, len: frame.bytes.len() as u32 + 4 };
        match reserving.switch.on_data(now, visit, frame.mark.as_ref().map(|(mark, _)| mark)) {
            DataAnswer::Pass(charge) => return Some(charge),
            DataAnswer::Cut(message) => self.answer(now, from, header.from, &message),
            DataAnswer::Drop => {}
        }
        self.ports[from].counters.policed += 1;
        None
    }

    /// Puts a frame into the queue of a port, or drops it.
    fn queue(&mut self, now: Time, to: usize, class: TrafficClass, frame: QueuedFrame) {
        let RackPort { output, counters, .. } = &mut self.ports[to];
        counters.offered += 1;
        counters.offered_bytes += frame.bytes.len() as u64;
        if let Err(dropped) = output.admit(now, class, frame) {
            counters.dropped += 1;
            self.gone(dropped);
        }
    }

    /// Called after a frame has left its queue or was dropped at it.
    fn gone(&mut self, frame: QueuedFrame) {
        if let Some(reserving) = &mut self.reserving {
            reserving.switch.on_gone(frame.charge);
        }
        self.recycle(frame.bytes);
    }

    fn recycle(&mut self, mut frame: Vec<u8>) {
        if self.spare.len() < MOST_SPARE {
            frame.clear();
            self.spare.push(frame);
        }
    }

    /// Lets every port work until `now`, and gives the answers that are due.
    pub fn serve(&mut self, now: Time) {
        while let Some((port, host, message)) = self.reserving.as_mut().and_then(|reserving| reserving.next_answer(now))
        {
            self.answer(now, port, host, &message);
        }
        self.ports.iter_mut().for_each(|port| port.output.serve(now));
    }

    /// Hands over what has left a port, oldest first; `send` says whether the interface had room. True if there was anything.
    pub fn take_departed<E>(&mut self, port: usize, mut send: impl FnMut(&[u8]) -> Result<bool, E>) -> Result<bool, E> {
        let mut any = false;
        while let Some(frame) = self.ports[port].output.take_departed() {
            any = true;
            let sent = send(&frame.bytes);
            let counters = &mut self.ports[port].counters;
            match sent {
                Ok(true) => {
                    counters.passed += 1;
                    counters.passed_bytes += frame.bytes.len() as u64;
                    counters.wire_bytes += wire_size(&frame.bytes).get();
                }
                Ok(false) | Err(_) => counters.refused += 1,
            }
            self.gone(frame);
            sent?;
        }
        Ok(any)
    }

    /// Time at which the next frame leaves any port, or the next answer is due.
    pub fn next_event(&self) -> Time {
        let answer = self.reserving.as_ref().map_or(Time::NEVER, |reserving| reserving.switch.wake_at());
        self.ports.iter().map(|port| port.output.next_departure()).fold(answer, Time::min)
    }

    /// The part that decides about reservations, if hosts may reserve.
    pub fn reservations(&self) -> Option<&ReservingSwitch> {
        self.reserving.as_ref().map(|reserving| &reserving.switch)
    }

    /// Forgets addresses that have been silent for too long. Once a second is enough.
    pub fn age(&mut self, now: Time) {
        self.table.age(now);
    }

    /// A port went down. Its addresses are kept: its host may be back in a moment, and another one must not get its traffic.
    pub fn port_down(&mut self, port: usize) {
        if let Some(reserving) = &mut self.reserving {
            reserving.port_down(port);
        }
    }

    /// Frames that came faster than they could be read.
    pub(crate) fn count_overflow(&mut self, port: usize, frames: u64) {
        self.ports[port].counters.ring_overflow += frames;
    }

    /// A frame that could not be read as one.
    pub(crate) fn count_malformed(&mut self, port: usize) {
        let counters = &mut self.ports[port].counters;
        counters.received += 1;
        counters.malformed += 1;
    }

    /// Counters of a port.
    pub fn counters(&self, port: usize) -> SwitchPortCounters {
        self.ports[port].counters
    }

    /// Bytes that wait at a port, and the most that have since [`SwitchCore::reset_peaks`].
    pub fn occupancy(&self, port: usize) -> (u64, u64) {
        let output = &self.ports[port].output;
        (output.held().get(), output.peak().get())
    }

    /// Addresses that are known behind a port.
    pub fn addresses(&self, port: usize) -> usize {
        self.table.count(port)
    }

    /// Number of ports.
    pub fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Peaks begin again at what waits now.
    pub fn reset_peaks(&mut self) {
        self.ports.iter_mut().for_each(|port| port.output.reset_peak());
    }
}
