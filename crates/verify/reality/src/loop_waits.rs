//! Waits in the loop of a bulk flow: for acknowledgements, and for the sender's answers to them.

use std::collections::VecDeque;

use capture::{CaptureError, CaptureReader};
use units::Span;
use wire::ip;
use wire::layers::IpLayer;

/// Time beyond the wire's that shows a wait for a timer: such a wait is not counted.
const TIMER: Span = Span::from_ms(10);

/// Mean waits of a turn of a flow's loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LoopWaits {
    /// Time from data to its acknowledgement, seen at the sender's interface: the wire and the receiver.
    pub acknowledged: Span,
    /// Time from an acknowledgement there to the next data: the sender.
    pub answered: Span,
}

impl LoopWaits {
    /// Measures a capture at the sender, which opened the only connection in it, over a wire with this round trip; `None`
    /// if there was nothing to measure.
    pub(super) fn of(capture: &[u8], wire: Span) -> Result<Option<Self>, CaptureError> {
        let longest = (wire + TIMER).as_ps() / 1_000;
        let mut reader = CaptureReader::new(capture)?;
        let mut flow = None;
        while let Some(record) = reader.next()? {
            let Some(segment) = record.link.and_then(|link| link.inside(record.bytes)).and_then(Segment::read) else {
                continue;
            };
            flow.get_or_insert_with(|| AckedFlow::new(&segment, longest)).on_segment(&segment, record.at.0);
        }
        Ok(flow.and_then(|flow| Some(Self { acknowledged: flow.trips.mean()?, answered: flow.turns.mean()? })))
    }

    pub(super) fn both(&self) -> Span {
        self.acknowledged + self.answered
    }
}

#[derive(Clone, Copy, Debug)]
struct WaitSum {
    count: u64,
    ns: u64,
    /// Longer ones are not counted.
    longest: u64,
}

impl WaitSum {
    fn new(longest: u64) -> Self {
        Self { count: 0, ns: 0, longest }
    }

    fn add(&mut self, ns: u64) {
        if ns < self.longest {
            self.count += 1;
            self.ns += ns;
        }
    }

    fn mean(self) -> Option<Span> {
        Some(Span::from_ns(self.ns.checked_div(self.count)?))
    }
}

/// Fields of a TCP segment that matter here.
#[derive(Clone, Copy, Debug)]
struct Segment {
    source: u16,
    seq: u32,
    ack: u32,
    len: u32,
}

impl Segment {
    fn read(bytes: &[u8]) -> Option<Self> {
        let layer = IpLayer::of(bytes, 0).filter(|layer| layer.protocol == ip::TCP)?;
        let header: &[u8; 13] = bytes.get(layer.transport..)?.first_chunk()?;
        let headers = layer.transport - layer.at + usize::from(header[12] >> 4) * 4;
        let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let len = layer.total.checked_sub(headers)? as u32;
        Some(Self { source: u16::from_be_bytes([header[0], header[1]]), seq: word(4), ack: word(8), len })
    }
}

/// Segments that the sender sent and has not heard of.
#[derive(Debug)]
struct AckedFlow {
    sender: u16,
    /// The ends of segments, and when they were sent; `None` once one before was sent again.
    sent: VecDeque<(u32, Option<u64>)>,
    /// Sequence number behind the last byte that was sent.
    end: u32,
    /// The first acknowledgement since data was sent.
    heard: Option<u64>,
    trips: WaitSum,
    turns: WaitSum,
}

impl AckedFlow {
    fn new(first: &Segment, longest: u64) -> Self {
        Self {
            sender: first.source,
            sent: VecDeque::new(),
            end: first.seq,
            heard: None,
            trips: WaitSum::new(longest),
            turns: WaitSum::new(longest),
        }
    }

    fn on_segment(&mut self, segment: &Segment, now: u64) {
        if segment.source != self.sender {
            self.on_ack(segment.ack, now);
        } else if segment.len > 0 {
            self.on_data(segment.seq.wrapping_add(segment.len), now);
        }
    }

    fn on_data(&mut self, end: u32, now: u64) {
        if let Some(heard) = self.heard.take() {
            self.turns.add(now.saturating_sub(heard));
        }
        if is_after(end, self.end) {
            self.sent.push_back((end, Some(now)));
            self.end = end;
        } else {
            // An acknowledgement of what follows waits for the copy (Karn's rule).
            self.sent.iter_mut().for_each(|(_, at)| *at = None);
        }
    }

    /// Measured against the newest segment that it covers.
    fn on_ack(&mut self, ack: u32, now: u64) {
        let mut newest = None;
        while let Some((_, at)) = self.sent.pop_front_if(|(end, _)| !is_after(*end, ack)) {
            newest = Some(at);
        }
        if let Some(at) = newest {
            self.heard.get_or_insert(now);
            at.into_iter().for_each(|at| self.trips.add(now.saturating_sub(at)));
        }
    }
}

fn is_after(one: u32, other: u32) -> bool {
    one.wrapping_sub(other) as i32 > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: u16 = 1;
    const ACKS: u16 = 2;
    const LONGEST: u64 = 1_000;

    fn waits(segments: &[(u64, u16, u32, u32, u32)]) -> [Option<Span>; 2] {
        let read = |&(at, source, seq, ack, len)| (at, Segment { source, seq, ack, len });
        let mut flow = AckedFlow::new(&read(&segments[0]).1, LONGEST);
        segments.iter().map(read).for_each(|(at, segment)| flow.on_segment(&segment, at));
        [flow.trips.mean(), flow.turns.mean()]
    }

    #[test]
    fn an_acknowledgement_is_measured_against_the_newest_segment_it_covers() {
        let sent = [
            (0, DATA, u32::MAX - 9, 0, 10),
            (5, DATA, 0, 0, 10),
            (40, ACKS, 0, 10, 0),
            (41, ACKS, 0, 10, 0),
            (47, DATA, 10, 0, 10),
        ];
        assert_eq!(waits(&sent), [Some(Span::from_ns(35)), Some(Span::from_ns(7))]);
    }

    #[test]
    fn nothing_is_measured_across_a_retransmission_or_a_timer() {
        let lost = [
            (0, DATA, 100, 0, 10),
            (1, DATA, 110, 0, 10),
            (50, DATA, 100, 0, 10),
            (90, ACKS, 0, 120, 0),
            (91, DATA, 120, 0, 10),
            (130, ACKS, 0, 130, 0),
            (130 + LONGEST, DATA, 130, 0, 10),
        ];
        assert_eq!(waits(&lost), [Some(Span::from_ns(39)), Some(Span::from_ns(1))]);
        assert_eq!(waits(&lost[..3]), [None, None]);
    }
}
