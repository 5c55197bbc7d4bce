//! The header itself: packed in memory, written and read as bytes.

use super::{Class, Epoch, Feedback, FlowControl, FrameKind, Gap, GapList, MAX_GAPS, SessionMessage, StampableFrame};
use crate::Seq;

/// A header, packed about as tightly as on the wire.
///
/// Every frame in flight carries one, and it is moved several times on its way; two words move at no cost, where a struct
/// of many small fields stalls the processor on each move. Rare fields are boxed.
///
/// ```text
///   bits   code:3 class:1 number and era:17 epoch:2 has feedback:1 | hold:1 class:1 latest and era:17
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LinkHeader {
    bits: u64,
    rare: Option<Box<RareFields>>,
}

#[derive(Clone, Debug, PartialEq)]
enum RareFields {
    Gaps(GapList),
    Session(SessionMessage),
}

/// Bytes that are no header of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedHeader;

const PLAIN: u8 = 0;
const DATA: u8 = 1;
const RETRANSMISSION: u8 = 2;
const DUMMY: u8 = 3;
const ACK: u8 = 4;
const NOTICE: u8 = 5;
const SESSION: u8 = 6;
/// Stands for no header; never on the wire.
const BARE: u8 = 7;

const CLASS_AT: u32 = 3;
const SEQ_AT: u32 = 4;
const EPOCH_AT: u32 = 21;
const FEEDBACK_AT: u32 = 23;
const HOLD_AT: u32 = 24;
const FEEDBACK_CLASS_AT: u32 = 25;
const LATEST_AT: u32 = 26;

impl LinkHeader {
    /// Absence of a header: the frame passes unprotected.
    pub const BARE: Self = Self { bits: BARE as u64, rare: None };

    /// # Panics
    /// If this is a life-cycle message: see [`LinkHeader::session`].
    #[inline(always)]
    pub fn new(epoch: Epoch, kind: FrameKind, feedback: Option<Feedback>) -> Self {
        let (code, class, seq) = match kind {
            FrameKind::Plain => (PLAIN, Class::Ordered, Seq::default()),
            FrameKind::Data(class, seq) => (DATA, class, seq),
            FrameKind::Retransmission(class, seq) => (RETRANSMISSION, class, seq),
            FrameKind::Dummy(class, seq) => (DUMMY, class, seq),
            FrameKind::Ack => (ACK, Class::Ordered, Seq::default()),
            FrameKind::Notice => (NOTICE, Class::Ordered, Seq::default()),
            FrameKind::Session => panic!("a life-cycle message has a text"),
            FrameKind::Bare => return Self::BARE,
        };
        let mut bits = u64::from(code)
            | (class as u64) << CLASS_AT
            | u64::from(seq.bits()) << SEQ_AT
            | u64::from(epoch.number()) << EPOCH_AT;
        let mut rare = None;
        if let Some(feedback) = feedback {
            bits |= 1 << FEEDBACK_AT
                | u64::from(feedback.wish == FlowControl::Hold) << HOLD_AT
                | (feedback.class as u64) << FEEDBACK_CLASS_AT
                | u64::from(feedback.latest.bits()) << LATEST_AT;
            rare = feedback.gaps.map(|list| Box::new(RareFields::Gaps(*list)));
        }
        Self { bits, rare }
    }

    /// A life-cycle message.
    pub fn session(epoch: Epoch, message: SessionMessage) -> Self {
        let bits = u64::from(SESSION) | u64::from(epoch.number()) << EPOCH_AT;
        Self { bits, rare: Some(Box::new(RareFields::Session(message))) }
    }

    fn code(&self) -> u8 {
        (self.bits & 7) as u8
    }

    fn bit(&self, at: u32) -> bool {
        self.bits >> at & 1 != 0
    }

    fn class(&self) -> Class {
        Class::from_bit(self.bit(CLASS_AT))
    }

    fn seq(&self) -> Seq {
        Seq::from_bits((self.bits >> SEQ_AT) as u32)
    }

    fn latest(&self) -> Seq {
        Seq::from_bits((self.bits >> LATEST_AT) as u32)
    }

    /// The epoch that the frame belongs to.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        Epoch::new((self.bits >> EPOCH_AT) as u32)
    }

    /// Kind of the frame.
    #[inline]
    pub fn kind(&self) -> FrameKind {
        match self.code() {
            PLAIN => FrameKind::Plain,
            DATA => FrameKind::Data(self.class(), self.seq()),
            RETRANSMISSION => FrameKind::Retransmission(self.class(), self.seq()),
            DUMMY => FrameKind::Dummy(self.class(), self.seq()),
            ACK => FrameKind::Ack,
            NOTICE => FrameKind::Notice,
            SESSION => FrameKind::Session,
            _ => FrameKind::Bare,
        }
    }

    /// The text of a life-cycle message.
    pub fn message(&self) -> Option<&SessionMessage> {
        match self.rare.as_deref() {
            Some(RareFields::Session(message)) => Some(message),
            Some(RareFields::Gaps(_)) | None => None,
        }
    }

    /// The wish of the acknowledgement, if there is one.
    pub fn wish(&self) -> Option<FlowControl> {
        self.bit(FEEDBACK_AT).then(|| if self.bit(HOLD_AT) { FlowControl::Hold } else { FlowControl::Flow })
    }

    /// The number, if this is a frame of `class` and `epoch` sent for the first time, with nothing
    /// riding on it: one comparison for what nearly every frame is.
    #[inline(always)]
    pub fn as_data(&self, epoch: Epoch, class: Class) -> Option<Seq> {
        const MASK: u64 = 7 | 1 << CLASS_AT | 3 << EPOCH_AT | 1 << FEEDBACK_AT;
        let wanted = u64::from(DATA) | (class as u64) << CLASS_AT | u64::from(epoch.number()) << EPOCH_AT;
        (self.bits & MASK == wanted).then(|| self.seq())
    }

    /// Latest number and flow control of an explicit acknowledgement for `class` and `epoch` that lists no gaps; `None` for
    /// any other header.
    #[inline(always)]
    pub fn as_ack(&self, epoch: Epoch, class: Class) -> Option<(Seq, FlowControl)> {
        const MASK: u64 = 7 | 3 << EPOCH_AT | 1 << FEEDBACK_CLASS_AT;
        let wanted = u64::from(ACK) | u64::from(epoch.number()) << EPOCH_AT | (class as u64) << FEEDBACK_CLASS_AT;
        let wish = if self.bit(HOLD_AT) { FlowControl::Hold } else { FlowControl::Flow };
        (self.bits & MASK == wanted && self.rare.is_none()).then(|| (self.latest(), wish))
    }

    /// Contents of a stamp for this frame, if a stamp can carry them: the frame is sent for the first time, and the
    /// acknowledgement that rides on it lists no gaps and holds nothing back. The caller adds the tag, and how the frame
    /// was cut.
    #[inline]
    pub fn as_stampable(&self) -> Option<StampableFrame> {
        if self.code() != DATA || self.bit(HOLD_AT) || self.rare.is_some() {
            return None;
        }
        let acknowledged = (Class::from_bit(self.bit(FEEDBACK_CLASS_AT)), self.latest());
        Some(StampableFrame {
            class: self.class(),
            number: self.seq(),
            acknowledges: self.bit(FEEDBACK_AT).then_some(acknowledged),
        })
    }

    /// The acknowledgement, if the frame carries one.
    #[inline]
    pub fn feedback(&self) -> Option<Feedback> {
        let wish = self.wish()?;
        let class = Class::from_bit(self.bit(FEEDBACK_CLASS_AT));
        let mut feedback = Feedback::new(class, self.latest(), wish);
        if let Some(RareFields::Gaps(list)) = self.rare.as_deref() {
            feedback.gaps = Some(Box::new(list.clone()));
        }
        Some(feedback)
    }

    /// Bytes on the wire.
    #[inline]
    pub fn wire_len(&self) -> usize {
        let tag = match self.code() {
            PLAIN | ACK | NOTICE => 1,
            DATA | RETRANSMISSION | DUMMY => 3,
            SESSION => 1 + SessionMessage::LEN,
            _ => 0,
        };
        let feedback = if self.bit(FEEDBACK_AT) { 3 + 4 * self.listed().len() } else { 0 };
        tag + feedback
    }

    #[inline]
    fn listed(&self) -> &[Gap] {
        match self.rare.as_deref() {
            Some(RareFields::Gaps(list)) => &list.gaps[..usize::from(list.count)],
            Some(RareFields::Session(_)) | None => &[],
        }
    }

    /// True if a frame follows the header.
    pub fn has_body(&self) -> bool {
        matches!(self.code(), PLAIN | DATA | RETRANSMISSION | BARE)
    }

    /// Writes the header to the front of `out` and returns its length.
    ///
    /// # Panics
    /// If `out` is shorter than [`super::MAX_HEADER`].
    pub fn emit(&self, out: &mut [u8]) -> usize {
        let code = self.code();
        if code == BARE {
            return 0;
        }
        out[0] = code << 5
            | (self.class() as u8) << 4
            | u8::from(self.seq().era()) << 3
            | u8::from(self.bit(FEEDBACK_AT)) << 2
            | self.epoch().number();
        let mut at = 1;
        if matches!(code, DATA | RETRANSMISSION | DUMMY) {
            out[at..at + 2].copy_from_slice(&self.seq().number().to_be_bytes());
            at += 2;
        }
        if let Some(session) = self.message() {
            session.emit(&mut out[at..at + SessionMessage::LEN]);
            at += SessionMessage::LEN;
        }
        if self.bit(FEEDBACK_AT) {
            at += self.emit_feedback(&mut out[at..]);
        }
        at
    }

    fn emit_feedback(&self, out: &mut [u8]) -> usize {
        let gaps = self.listed();
        out[0] = u8::from(self.bit(HOLD_AT)) << 7
            | (gaps.len() as u8) << 3
            | u8::from(self.bit(FEEDBACK_CLASS_AT)) << 2
            | u8::from(self.latest().era()) << 1;
        out[1..3].copy_from_slice(&self.latest().number().to_be_bytes());
        for (gap, bytes) in gaps.iter().zip(out[3..].chunks_exact_mut(4)) {
            bytes[..2].copy_from_slice(&gap.first.number().to_be_bytes());
            bytes[2] = u8::from(gap.first.era()) << 7 | gap.round;
            bytes[3] = gap.frames;
        }
        3 + 4 * gaps.len()
    }

    /// Reads a header from the front of `bytes`; also how many bytes it took.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), MalformedHeader> {
        let mut rest = HeaderReader(bytes);
        let tag = rest.byte()?;
        let (code, has_feedback) = (tag >> 5, tag & 0x04 != 0);
        let class = Class::from_bit(tag & 0x10 != 0);
        let kind = match code {
            DATA | RETRANSMISSION | DUMMY => {
                let seq = Seq::new(rest.word()?, tag & 0x08 != 0);
                match code {
                    DATA => FrameKind::Data(class, seq),
                    RETRANSMISSION => FrameKind::Retransmission(class, seq),
                    _ => FrameKind::Dummy(class, seq),
                }
            }
            _ if tag & 0x18 != 0 => return Err(MalformedHeader),
            PLAIN if has_feedback => FrameKind::Plain,
            ACK if has_feedback => FrameKind::Ack,
            NOTICE if has_feedback => FrameKind::Notice,
            SESSION if !has_feedback => FrameKind::Session,
            _ => return Err(MalformedHeader),
        };
        let epoch = Epoch::new(u32::from(tag & 3));
        let header = if kind == FrameKind::Session {
            LinkHeader::session(epoch, SessionMessage::parse(rest.take(SessionMessage::LEN)?).ok_or(MalformedHeader)?)
        } else {
            LinkHeader::new(epoch, kind, if has_feedback { Some(parse_feedback(&mut rest)?) } else { None })
        };
        Ok((header, bytes.len() - rest.0.len()))
    }
}

fn parse_feedback(rest: &mut HeaderReader<'_>) -> Result<Feedback, MalformedHeader> {
    let flags = rest.byte()?;
    let latest = Seq::new(rest.word()?, flags & 0x02 != 0);
    let count = usize::from(flags >> 3 & 0x0f);
    if flags & 0x01 != 0 || count > MAX_GAPS {
        return Err(MalformedHeader);
    }
    let wish = if flags & 0x80 != 0 { FlowControl::Hold } else { FlowControl::Flow };
    let mut feedback = Feedback::new(Class::from_bit(flags & 0x04 != 0), latest, wish);
    for _ in 0..count {
        let number = rest.word()?;
        let (mark, frames) = (rest.byte()?, rest.byte()?);
        if frames == 0 {
            return Err(MalformedHeader);
        }
        feedback.push(Gap { first: Seq::new(number, mark & 0x80 != 0), round: mark & 0x7f, frames });
    }
    Ok(feedback)
}

struct HeaderReader<'a>(&'a [u8]);

impl<'a> HeaderReader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], MalformedHeader> {
        let (head, tail) = self.0.split_at_checked(len).ok_or(MalformedHeader)?;
        self.0 = tail;
        Ok(head)
    }

    fn byte(&mut self) -> Result<u8, MalformedHeader> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn word(&mut self) -> Result<u16, MalformedHeader> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::link::{LinkAgreement, MAX_HEADER, SessionKind, VERSION};

    fn feedback() -> Feedback {
        let mut feedback = Feedback::new(Class::NonBlocking, Seq::new(65_535, true), FlowControl::Hold);
        feedback.push(Gap::new(Seq::new(7, false), 3, 1));
        feedback.push(Gap::new(Seq::new(65_530, true), 255, 127));
        feedback
    }

    fn round_trip(header: LinkHeader) {
        let mut bytes = [0; MAX_HEADER];
        let len = header.emit(&mut bytes);
        assert_eq!(len, header.wire_len());
        assert_eq!(LinkHeader::parse(&bytes[..len]), Ok((header.clone(), len)));
        for shorter in 0..len {
            assert_eq!(LinkHeader::parse(&bytes[..shorter]), Err(MalformedHeader), "{header:?} cut to {shorter}");
        }
    }

    fn check(kind: FrameKind, feedback: Option<Feedback>) {
        let header = LinkHeader::new(Epoch::new(2), kind, feedback.clone());
        assert_eq!((header.epoch(), header.kind(), header.feedback()), (Epoch::new(2), kind, feedback));
        round_trip(header);
    }

    #[test]
    fn every_kind_survives_the_wire_and_no_part_of_it_is_a_header() {
        let seq = Seq::new(0x1234, true);
        for feedback in [None, Some(feedback())] {
            for kind in [
                FrameKind::Data(Class::Ordered, seq),
                FrameKind::Retransmission(Class::NonBlocking, seq),
                FrameKind::Dummy(Class::Ordered, seq),
            ] {
                check(kind, feedback.clone());
            }
        }
        for kind in [FrameKind::Plain, FrameKind::Ack, FrameKind::Notice] {
            check(kind, Some(feedback()));
        }
        let session = SessionMessage {
            kind: SessionKind::Hello { asked: false },
            instance: 0xdead_beef,
            heard: 7,
            epoch: 3,
            agreement: LinkAgreement {
                version: VERSION,
                classes: 3,
                protects: true,
                seal: 2,
                window: 1_024,
                mtu: 1_522,
            },
        };
        let header = LinkHeader::session(Epoch::new(2), session);
        assert_eq!((header.kind(), header.message()), (FrameKind::Session, Some(&session)));
        round_trip(header);
    }

    #[test]
    fn a_protected_frame_pays_three_bytes_and_an_acknowledgement_three_more() {
        let len = |feedback| {
            LinkHeader::new(Epoch::default(), FrameKind::Data(Class::Ordered, Seq::default()), feedback).wire_len()
        };
        assert_eq!(len(None), 3);
        assert_eq!(len(Some(Feedback::new(Class::Ordered, Seq::default(), FlowControl::Flow))), 6);
        assert_eq!(LinkHeader::BARE.wire_len(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_parses_is_what_would_be_written(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok((header, len)) = LinkHeader::parse(&bytes) {
                let mut again = [0; MAX_HEADER];
                prop_assert_eq!(header.emit(&mut again), len);
                prop_assert_eq!(&again[..len], &bytes[..len]);
            }
        }
    }
}
