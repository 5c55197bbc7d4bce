//! The header of a protected link.
//!
//! LinkGuardian (SIGCOMM'23) §3.5 has three bytes on each protected frame and three for an
//! acknowledgement that rides along; so have we. What is new beside the paper: a class and an epoch in
//! the first byte, and the gaps still open in the acknowledgement.
//!
//! ```text
//!   tag       kind:3 class:1 era:1 feedback:1 epoch:2   number:16      (number only where a kind has one)
//!   feedback  hold:1 gaps:4 class:1 era:1 0:1           latest:16      then four bytes for each gap
//!   gap       first:16  era:1 round:7  frames:8
//! ```
//!
//! [`Header::parse`] accepts exactly what [`Header::emit`] writes and nothing else: a reserved bit that
//! is set, a gap of no frames, an unknown kind are all [`Malformed`]. Numbers are big-endian.

use crate::Seq;

mod session;

pub use session::{Agreement, Refusal, Session, SessionKind};

/// The version of this format; two ends must have the same.
pub const VERSION: u8 = 1;

/// The most gaps that one acknowledgement lists.
pub const MAX_GAPS: usize = 8;

/// The longest header: a life-cycle message with a full list of gaps.
pub const MAX_HEADER: usize = 1 + Session::LEN + 3 + 4 * MAX_GAPS;

/// The two classes of traffic that one link can carry, each with its own sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Delivered in the order sent.
    Ordered = 0,
    /// Delivered as it comes.
    NonBlocking = 1,
}

impl Class {
    pub const ALL: [Self; 2] = [Self::Ordered, Self::NonBlocking];

    const fn from_bit(set: bool) -> Self {
        if set { Self::NonBlocking } else { Self::Ordered }
    }
}

/// Which life of the link a frame belongs to, modulo four: enough to tell a frame that was in flight
/// when an end restarted from those that came after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Epoch(u8);

impl Epoch {
    pub const fn new(number: u32) -> Self {
        Self((number & 3) as u8)
    }

    pub const fn number(self) -> u8 {
        self.0
    }
}

/// What the receiver wants of the sender's new frames: a level that every acknowledgement repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Wish {
    #[default]
    Flow,
    Hold,
}

/// Consecutive frames that the receiver misses, and how often it has asked for them before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Gap {
    first: Seq,
    round: u8,
    frames: u8,
}

impl Gap {
    pub const MAX_FRAMES: u32 = u8::MAX as u32;
    pub const MAX_ROUND: u8 = 127;

    /// # Panics
    /// If there are no frames, or more than fit.
    pub fn new(first: Seq, frames: u32, round: u8) -> Self {
        assert!((1..=Self::MAX_FRAMES).contains(&frames) && round <= Self::MAX_ROUND);
        Self { first, round, frames: frames as u8 }
    }

    pub fn first(self) -> Seq {
        self.first
    }

    pub fn frames(self) -> u32 {
        u32::from(self.frames)
    }

    pub fn round(self) -> u8 {
        self.round
    }

    pub fn contains(self, seq: Seq) -> bool {
        (0..i32::from(self.frames)).contains(&seq.offset_from(self.first))
    }
}

/// What a receiver tells the sender: everything up to `latest` has arrived or been given up, except
/// the gaps listed. A gap beyond `latest` may be listed too: it is a request all the same.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    pub class: Class,
    pub latest: Seq,
    pub wish: Wish,
    count: u8,
    gaps: [Gap; MAX_GAPS],
}

impl Feedback {
    pub fn new(class: Class, latest: Seq, wish: Wish) -> Self {
        Self { class, latest, wish, count: 0, gaps: [Gap::default(); MAX_GAPS] }
    }

    pub fn gaps(&self) -> &[Gap] {
        &self.gaps[..usize::from(self.count)]
    }

    /// Whether there is room for another gap.
    pub fn is_full(&self) -> bool {
        usize::from(self.count) == MAX_GAPS
    }

    /// # Panics
    /// If the list is full.
    pub fn push(&mut self, gap: Gap) {
        self.gaps[usize::from(self.count)] = gap;
        self.count += 1;
    }

    pub fn lists(&self, seq: Seq) -> bool {
        self.gaps().iter().any(|gap| gap.contains(seq))
    }

    fn len(&self) -> usize {
        3 + 4 * usize::from(self.count)
    }
}

impl PartialEq for Feedback {
    fn eq(&self, other: &Self) -> bool {
        (self.class, self.latest, self.wish, self.gaps()) == (other.class, other.latest, other.wish, other.gaps())
    }
}

/// What a frame on a protected link is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A frame that is not protected, with an acknowledgement riding on it.
    Plain,
    /// A protected frame, sent for the first time.
    Data(Class, Seq),
    /// A copy of a protected frame that was reported missing.
    Retransmission(Class, Seq),
    /// No frame: says which sequence number was the latest sent.
    Dummy(Class, Seq),
    /// No frame: an acknowledgement at lowest priority.
    Ack,
    /// No frame: an acknowledgement at highest priority, because a gap opened or the wish changed.
    Notice,
    /// No frame: life cycle of the link.
    Session(Session),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    pub epoch: Epoch,
    pub kind: Kind,
    pub feedback: Option<Feedback>,
}

/// Bytes that are no header of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl Header {
    /// Bytes on the wire.
        pub fn wire_len(&self) -> usize {
        let tag = match self.kind {
            Kind::Plain | Kind::Ack | Kind::Notice => 1,
            Kind::Data(..) | Kind::Retransmission(..) | Kind::Dummy(..) => 3,
            Kind::Session(_) => 1 + Session::LEN,
        };
        tag + self.feedback.as_ref().map_or(0, Feedback::len)
    }

    /// Whether a frame follows the header.
    pub fn has_body(&self) -> bool {
        matches!(self.kind, Kind::Plain | Kind::Data(..) | Kind::Retransmission(..))
    }

    /// Writes the header to the front of `out` and returns its length.
    ///
    /// # Panics
    /// If `out` is shorter than [`MAX_HEADER`].
    pub fn emit(&self, out: &mut [u8]) -> usize {
        let (code, class, number) = match self.kind {
            Kind::Plain => (0, Class::Ordered, None),
            Kind::Data(class, seq) => (1, class, Some(seq)),
            Kind::Retransmission(class, seq) => (2, class, Some(seq)),
            Kind::Dummy(class, seq) => (3, class, Some(seq)),
            Kind::Ack => (4, Class::Ordered, None),
            Kind::Notice => (5, Class::Ordered, None),
            Kind::Session(_) => (6, Class::Ordered, None),
        };
        let era = number.is_some_and(Seq::era);
        out[0] = code << 5
            | (class as u8) << 4
            | u8::from(era) << 3
            | u8::from(self.feedback.is_some()) << 2
            | self.epoch.0;
        let mut at = 1;
        if let Some(seq) = number {
            out[at..at + 2].copy_from_slice(&seq.number().to_be_bytes());
            at += 2;
        }
        if let Kind::Session(session) = self.kind {
            session.emit(&mut out[at..at + Session::LEN]);
            at += Session::LEN;
        }
        if let Some(feedback) = &self.feedback {
            at += emit_feedback(feedback, &mut out[at..]);
        }
        at
    }

    /// Reads a header from the front of `bytes`; also how many bytes it took.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let mut rest = Reader(bytes);
        let tag = rest.byte()?;
        let class = Class::from_bit(tag & 0x10 != 0);
        let code = tag >> 5;
        let kind = match code {
            1..=3 => {
                let seq = Seq::new(rest.word()?, tag & 0x08 != 0);
                match code {
                    1 => Kind::Data(class, seq),
                    2 => Kind::Retransmission(class, seq),
                    _ => Kind::Dummy(class, seq),
                }
            }
            _ if tag & 0x18 != 0 => return Err(Malformed),
            0 => Kind::Plain,
            4 => Kind::Ack,
            5 => Kind::Notice,
            6 => Kind::Session(Session::parse(rest.take(Session::LEN)?).ok_or(Malformed)?),
            _ => return Err(Malformed),
        };
        let feedback = if tag & 0x04 != 0 { Some(parse_feedback(&mut rest)?) } else { None };
        if feedback.is_none() && matches!(kind, Kind::Ack | Kind::Notice | Kind::Plain) {
            return Err(Malformed);
        }
        let header = Header { epoch: Epoch(tag & 3), kind, feedback };
        Ok((header, bytes.len() - rest.0.len()))
    }
}

fn emit_feedback(feedback: &Feedback, out: &mut [u8]) -> usize {
    out[0] = u8::from(feedback.wish == Wish::Hold) << 7
        | feedback.count << 3
        | (feedback.class as u8) << 2
        | u8::from(feedback.latest.era()) << 1;
    out[1..3].copy_from_slice(&feedback.latest.number().to_be_bytes());
    for (gap, bytes) in feedback.gaps().iter().zip(out[3..].chunks_exact_mut(4)) {
        bytes[..2].copy_from_slice(&gap.first.number().to_be_bytes());
        bytes[2] = u8::from(gap.first.era()) << 7 | gap.round;
        bytes[3] = gap.frames;
    }
    feedback.len()
}

fn parse_feedback(rest: &mut Reader<'_>) -> Result<Feedback, Malformed> {
    let flags = rest.byte()?;
    let latest = Seq::new(rest.word()?, flags & 0x02 != 0);
    let count = usize::from(flags >> 3 & 0x0f);
    if flags & 0x01 != 0 || count > MAX_GAPS {
        return Err(Malformed);
    }
    let wish = if flags & 0x80 != 0 { Wish::Hold } else { Wish::Flow };
    let mut feedback = Feedback::new(Class::from_bit(flags & 0x04 != 0), latest, wish);
    for _ in 0..count {
        let number = rest.word()?;
        let (mark, frames) = (rest.byte()?, rest.byte()?);
        if frames == 0 {
            return Err(Malformed);
        }
        feedback.push(Gap { first: Seq::new(number, mark & 0x80 != 0), round: mark & 0x7f, frames });
    }
    Ok(feedback)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = tail;
        Ok(head)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn word(&mut self) -> Result<u16, Malformed> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn feedback() -> Feedback {
        let mut feedback = Feedback::new(Class::NonBlocking, Seq::new(65_535, true), Wish::Hold);
        feedback.push(Gap::new(Seq::new(7, false), 3, 1));
        feedback.push(Gap::new(Seq::new(65_530, true), 255, 127));
        feedback
    }

    fn round_trip(header: Header) {
        let mut bytes = [0; MAX_HEADER];
        let len = header.emit(&mut bytes);
        assert_eq!(len, header.wire_len());
        assert_eq!(Header::parse(&bytes[..len]), Ok((header, len)));
        for shorter in 0..len {
            assert_eq!(Header::parse(&bytes[..shorter]), Err(Malformed), "{header:?} cut to {shorter}");
        }
    }

    #[test]
    fn every_kind_survives_the_wire_and_no_part_of_it_is_a_header() {
        let seq = Seq::new(0x1234, true);
        let session = Session {
            kind: SessionKind::Hello,
            instance: 0xdead_beef,
            heard: 7,
            epoch: 3,
            agreement: Agreement { version: VERSION, classes: 3, protects: 1, window: 1_024, mtu: 1_522 },
        };
        for feedback in [None, Some(feedback())] {
            for kind in [
                Kind::Data(Class::Ordered, seq),
                Kind::Retransmission(Class::NonBlocking, seq),
                Kind::Dummy(Class::Ordered, seq),
                Kind::Session(session),
            ] {
                round_trip(Header { epoch: Epoch::new(2), kind, feedback });
            }
        }
        for kind in [Kind::Plain, Kind::Ack, Kind::Notice] {
            round_trip(Header { epoch: Epoch::new(1), kind, feedback: Some(feedback()) });
        }
    }

    #[test]
    fn a_protected_frame_pays_three_bytes_and_an_acknowledgement_three_more() {
        let mut header =
            Header { epoch: Epoch::default(), kind: Kind::Data(Class::Ordered, Seq::default()), feedback: None };
        assert_eq!(header.wire_len(), 3);
        header.feedback = Some(Feedback::new(Class::Ordered, Seq::default(), Wish::Flow));
        assert_eq!(header.wire_len(), 6);
    }

    proptest! {
        #[test]
        fn what_parses_is_what_would_be_written(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok((header, len)) = Header::parse(&bytes) {
                let mut again = [0; MAX_HEADER];
                prop_assert_eq!(header.emit(&mut again), len);
                prop_assert_eq!(&again[..len], &bytes[..len]);
            }
        }
    }
}
