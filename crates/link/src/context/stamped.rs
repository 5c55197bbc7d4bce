//! Stamped frames: on their way out, where those that follow each other become one super-frame, and off the wire.

use guard::LinkPacket;
use linux::offload::{FrameSink, GsoRun};
use wire::Seq;
use wire::checksum::Sum;
use wire::ethernet::IPV4;
use wire::link::{AddressStamp, SegmentSpan, StampProbe, StampedData};

use super::LinkContext;
use crate::backend::{RunPlace, WireFrame};
use crate::frame::{EmittedFrame, LONGEST_HEAD};
use crate::pool::{FramePool, PoolFrame};

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
    fn admits(&self, stamp: &StampedData) -> bool {
        stamp.number == self.next
            && (stamp.class, stamp.epoch) == (self.stamp.class, self.stamp.epoch)
            && (stamp.acknowledges.is_none() || stamp.acknowledges == self.stamp.acknowledges)
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

/// A probe looks like any other packet to what is between the two ends.
const PROBE_LEN: usize = 60;

impl LinkContext {
    /// What is sent now is not joined by what follows.
    pub(crate) fn end_run(&mut self) {
        self.run = None;
    }

    /// Puts a frame on its way with its number in its addresses; gives the packet back if it cannot have it there.
    #[inline]
    pub(super) fn put_stamped(&mut self, packet: LinkPacket<PoolFrame>) -> Option<LinkPacket<PoolFrame>> {
        if !self.stamper.is_used() {
            return Some(packet);
        }
        let stamp = packet.header.as_stampable();
        let is_for_peer = |frame: &PoolFrame| self.framing.is_for_peer(self.pool.get(frame));
        match (stamp, packet.body) {
            (Some(stamp), Some(frame)) if is_for_peer(&frame) => {
                let body = self.put_stamped_frame(stamp, frame);
                body.map(|frame| LinkPacket { body: Some(frame), ..packet })
            }
            (_, body) => Some(LinkPacket { body, ..packet }),
        }
    }

    /// Gives the frame back if it cannot be part of a super-frame.
    fn put_stamped_frame(&mut self, stamp: StampedData, frame: PoolFrame) -> Option<PoolFrame> {
        let bytes = self.pool.get(&frame);
        let joined = self.run.as_mut().filter(|run| run.admits(&stamp)).and_then(|run| run.join(bytes));
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
        self.tally.tx_stamped += 1;
        self.occupy_wire(outgoing.bytes());
        self.outgoing.push(outgoing);
        None
    }

    /// The addresses of a frame that others may follow; none for what is no TCP segment with data. Such a frame gains
    /// nothing from a stamp, and what joins frames on arrival might hold it back, as it may with any protocol it knows.
    fn begin_run(&mut self, stamp: StampedData, frame: &PoolFrame) -> Option<[u8; AddressStamp::LEN]> {
        let is_short = |segments: &GsoRun| segments.size() <= usize::from(SegmentSpan::LONGEST);
        let segments = GsoRun::begin(self.pool.get(frame)).filter(is_short)?;
        let run = SegmentSpan { first: segments.first_seq() as u16, size: segments.size() as u16 };
        let stamp = StampedData { lower: self.framing.is_lower(), run: Some(run), ..stamp };
        let addresses = AddressStamp::Data(stamp).emit();
        self.tally.tx_stamped_runs += 1;
        self.run = Some(StampedRun { stamp, addresses, next: stamp.number.next(), segments });
        Some(addresses)
    }

    /// Sends the probe that is due, if one is.
    pub(crate) fn probe(&mut self) {
        if let Some(token) = self.stamper.due(self.now) {
            let probe = StampProbe { lower: self.framing.is_lower(), token };
            self.put_probe(AddressStamp::Lesson(probe));
            self.put_probe(AddressStamp::Probe(probe));
        }
    }

    /// A probe of the peer's, or its answer to ours.
    pub(crate) fn on_probe(&mut self, stamp: AddressStamp) {
        match stamp {
            AddressStamp::Probe(StampProbe { token, .. }) => {
                self.put_probe(AddressStamp::Answer(StampProbe { lower: self.framing.is_lower(), token }));
            }
            AddressStamp::Answer(answer) => self.stamper.on_answer(self.now, answer),
            AddressStamp::Lesson(_) | AddressStamp::Data(_) => {}
        }
    }

    fn put_probe(&mut self, stamp: AddressStamp) {
        let mut head = [0; LONGEST_HEAD];
        head[..AddressStamp::LEN].copy_from_slice(&stamp.emit());
        head[12..14].copy_from_slice(&IPV4.to_be_bytes());
        // From and to addresses for documentation (RFC 5737), of a protocol for experiments (RFC 3692).
        let packet = [0x45, 0, 0, 20, 0, 0, 0x40, 0, 1, 253, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        head[14..34].copy_from_slice(&packet);
        let checksum = Sum::of(&packet).checksum();
        head[24..26].copy_from_slice(&checksum);
        self.put_on_wire(EmittedFrame { head, head_len: 34, skip: 0, padding: PROBE_LEN - 34 }, None);
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
