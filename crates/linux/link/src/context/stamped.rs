//! Stamped frames: on their way out, where those that follow each other become one super-frame, and off the wire.

use guard::{LinkPacket, SessionIdentity};
use linux::offload::{FrameSink, GsoRun};
use standin::backend::{LONGEST_HEAD, RunPlace, WireFrame};
use standin::{FramePool, PoolFrame};
use wire::Seq;
use wire::checksum::Sum;
use wire::ethernet::IPV4;
use wire::link::{AddressStamp, ProbeKind, ProbePaths, SegmentSpan, StampProbe, StampTag, StampableFrame, StampedData};

use super::LinkContext;
use crate::frame::{ETHERNET, EmittedFrame};

/// Frames with one stamp, the latest of which has yet to be sent.
#[derive(Debug)]
pub(super) struct StampedRun {
    stamp: StampedData,
    addresses: [u8; AddressStamp::LEN],
    /// The number of the frame that may follow.
    next: Seq,
    segments: GsoRun,
}

impl StampedRun {
    fn admits(&self, frame: &StampableFrame, tag: StampTag) -> bool {
        let first = &self.stamp.frame;
        frame.number == self.next
            && frame.class == first.class
            && (frame.acknowledges.is_none() || frame.acknowledges == first.acknowledges)
            && tag == self.stamp.tag
    }

    /// The addresses of a frame that continues the run.
    fn join(&mut self, frame: &[u8]) -> Option<[u8; AddressStamp::LEN]> {
        if !self.segments.join(frame) {
            return None;
        }
        self.next = self.next.next();
        Some(self.addresses)
    }
}

/// A stamped probe looks like any other packet to what is between the two ends: from and to addresses for documentation
/// (RFC 5737), of a protocol for experiments (RFC 3692).
const PROBE_PACKET: [u8; 20] = [0x45, 0, 0, 32, 0, 0, 0x40, 0, 1, 253, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
/// Offset of the probe in such a frame.
const STAMPED_PROBE_AT: usize = ETHERNET + PROBE_PACKET.len();

impl LinkContext {
    /// Ends the current run: frames sent until now are not joined by those that follow.
    pub(crate) fn end_run(&mut self) {
        self.run = None;
    }

    /// Sends a frame with its number in its addresses; returns the packet if its number does not fit there.
    #[inline]
    pub(super) fn put_stamped(&mut self, packet: LinkPacket<PoolFrame>) -> Option<LinkPacket<PoolFrame>> {
        if !self.stamper.is_used() {
            return Some(packet);
        }
        let stamp = packet.header.as_stampable();
        let is_for_peer = |frame: &PoolFrame| self.framing.is_for_peer(self.memory.pool.get(frame));
        match (stamp, packet.body) {
            (Some(stamp), Some(frame)) if is_for_peer(&frame) => {
                let body = self.put_stamped_frame(stamp, frame);
                body.map(|frame| LinkPacket { body: Some(frame), ..packet })
            }
            (_, body) => Some(LinkPacket { body, ..packet }),
        }
    }

    /// Gives the frame back if it cannot be part of a super-frame.
    fn put_stamped_frame(&mut self, stamp: StampableFrame, frame: PoolFrame) -> Option<PoolFrame> {
        let bytes = self.memory.pool.get(&frame);
        let tag = self.stamper.own_tag();
        let joined = self.run.as_mut().filter(|run| run.admits(&stamp, tag)).and_then(|run| run.join(bytes));
        let (addresses, run) = match joined {
            Some(addresses) => (addresses, RunPlace::Next),
            None => match self.begin_run(stamp, &frame) {
                Some(addresses) => (addresses, RunPlace::First),
                None => return Some(frame),
            },
        };
        let mut head = [0; LONGEST_HEAD];
        head[..AddressStamp::LEN].copy_from_slice(&addresses);
        let (head_len, skip) = (AddressStamp::LEN, AddressStamp::LEN);
        let outgoing = WireFrame { head, head_len, frame: Some(frame), skip, padding: 0, run };
        self.statistics.tally.tx_stamped += 1;
        self.actions.send(self.now, outgoing);
        None
    }

    /// The addresses of a frame that others may follow; none for a frame that is no TCP segment with data. Such a frame
    /// gains nothing from a stamp, and what joins frames on arrival might hold it back, as it may with any protocol it
    /// knows.
    fn begin_run(&mut self, frame: StampableFrame, body: &PoolFrame) -> Option<[u8; AddressStamp::LEN]> {
        let is_short = |segments: &GsoRun| segments.size() <= usize::from(SegmentSpan::LONGEST);
        let segments = GsoRun::begin(self.memory.pool.get(body)).filter(is_short)?;
        let run = SegmentSpan { first: segments.first_seq() as u16, size: segments.size() as u16 };
        let stamp = StampedData { tag: self.stamper.own_tag(), frame, run, pushed: false };
        let addresses = AddressStamp::Data(stamp).emit();
        self.statistics.tally.tx_stamped_runs += 1;
        self.run = Some(StampedRun { stamp, addresses, next: frame.number.next(), segments });
        Some(addresses)
    }

    /// Asks the question that is due, if one is, by each of its paths and then by the plain one.
    pub(crate) fn probe(&mut self) {
        let Some(round) = self.stamper.due(self.now) else { return };
        let question = self.stamp_probe(ProbeKind::Question, round.token);
        for path in [ProbePaths::RESERVED, ProbePaths::RETURN, ProbePaths::STAMPED] {
            if round.paths.include(path) {
                self.put_probe(&question, path);
            }
        }
        self.put_probe(&question, ProbePaths::NONE);
    }

    /// A probe behind a header of ours; false if it is not of this session.
    pub(crate) fn on_probe(&mut self, probe: &StampProbe, path: ProbePaths, session: SessionIdentity) -> bool {
        let SessionIdentity { instance, peer, .. } = session;
        if !self.stamper.is_agreed() || (probe.instance, probe.heard) != (peer, instance) {
            return false;
        }
        let StampProbe { kind, proved, token, .. } = *probe;
        match kind {
            // Answers come from the peer's own address and by no other way.
            ProbeKind::Answer(_) if path != ProbePaths::NONE => return false,
            ProbeKind::Answer(paths) => self.stamper.on_answer(self.now, token, paths, proved),
            ProbeKind::Question if path != ProbePaths::NONE => self.stamper.on_question_by(token, path),
            ProbeKind::Question => {
                let paths = self.stamper.on_question(self.now, token, proved);
                let answer = self.stamp_probe(ProbeKind::Answer(paths), token);
                self.put_probe(&answer, ProbePaths::NONE);
            }
        }
        true
    }

    /// A frame with the addresses of a stamped probe.
    pub(crate) fn on_stamped_probe(&mut self, bytes: &[u8], session: SessionIdentity) {
        let probe = bytes.get(STAMPED_PROBE_AT..).and_then(|bytes| StampProbe::parse(bytes).ok());
        match probe {
            Some(probe) if probe.instance == session.instance => self.statistics.tally.rx_looped += 1,
            Some(probe) if self.on_probe(&probe, ProbePaths::STAMPED, session) => {}
            Some(_) => self.statistics.tally.rx_stamp_dropped += 1,
            None => self.statistics.tally.rx_stamp_bad += 1,
        }
    }

    fn stamp_probe(&self, kind: ProbeKind, token: u16) -> StampProbe {
        let SessionIdentity { instance, peer, .. } = self.stamper.session();
        StampProbe { kind, proved: self.stamper.has_proved(), token, instance, heard: peer }
    }

    fn put_probe(&mut self, probe: &StampProbe, path: ProbePaths) {
        let emitted = match path {
            ProbePaths::STAMPED => self.stamped_probe(probe),
            _ => self.framing.emit_probe(probe, path),
        };
        self.put_on_wire(emitted, None);
    }

    fn stamped_probe(&self, probe: &StampProbe) -> EmittedFrame {
        let mut emitted = EmittedFrame { head: [0; LONGEST_HEAD], head_len: AddressStamp::LEN, skip: 0, padding: 0 };
        let stamp = AddressStamp::Probe { lower: self.framing.is_lower() };
        emitted.head[..AddressStamp::LEN].copy_from_slice(&stamp.emit());
        let mut packet = PROBE_PACKET;
        let checksum = Sum::of(&packet).checksum();
        packet[10..12].copy_from_slice(&checksum);
        for part in [&IPV4.to_be_bytes()[..], &packet, &probe.emit()] {
            emitted.put(part);
        }
        emitted
    }
}

/// The segments of a super-frame off the wire, each in a slot of its own.
#[derive(Debug)]
pub(crate) struct ReceivedRun<'a> {
    pub pool: &'a mut FramePool,
    pub frames: &'a mut Vec<PoolFrame>,
}

impl FrameSink for ReceivedRun<'_> {
    fn next(&mut self, len: usize) -> Option<&mut [u8]> {
        let frame = self.pool.claim(len)?;
        self.frames.push(frame);
        self.frames.last().map(|frame| self.pool.get_mut(frame))
    }

    fn takes_unfinished(&self) -> bool {
        true
    }

    fn leave_unfinished(&mut self) {
        if let Some(frame) = self.frames.last() {
            self.pool.leave_unfinished(frame);
        }
    }
}
