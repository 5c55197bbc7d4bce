//! The header of a protected link.
//!
//! LinkGuardian (SIGCOMM'23) §3.5 has three bytes on each protected frame and three for an acknowledgement that rides
//! along; so have we. Our format adds to the paper's: a class and an epoch in the first byte, and the gaps still open in
//! the acknowledgement.
//!
//! ```text
//!   tag       kind:3 class:1 era:1 feedback:1 epoch:2   number:16      (number only where a kind has one)
//!   feedback  hold:1 gaps:4 class:1 era:1 0:1           latest:16      then four bytes for each gap
//!   gap       first:16  era:1 round:7  frames:8
//! ```
//!
//! [`LinkHeader::parse`] accepts exactly what [`LinkHeader::emit`] writes and nothing else: a reserved bit that
//! is set, a gap of no frames, an unknown kind are all [`MalformedHeader`]. Numbers are big-endian.

use crate::Seq;

mod header;
mod probe;
mod session;
mod stamp;

pub use header::{LinkHeader, MalformedHeader};
pub use probe::{ProbeKind, ProbePaths, RESERVED_ADDRESS, StampProbe};
pub use session::{LinkAgreement, SessionKind, SessionMessage, SessionRefusal};
pub use stamp::{
    AddressStamp, MOST_SEGMENTS, MalformedStamp, STAMP_OFFER, SegmentSpan, StampTag, StampableFrame, StampedData,
};

/// EtherType of a protected frame: its own addresses lie outside.
pub const OWN: u16 = 0x88b5;
/// EtherType of a protected frame that lies inside whole.
pub const WHOLE: u16 = 0x88b6;

/// Byte in place of a link header: the frame is not protected, only sealed. No header starts with it.
pub const SEALED_BARE: u8 = 7 << 5;
/// Byte in place of a link header, with its kind in the lowest bits: two ends agree on a session of a keyed seal.
pub const GREETING: u8 = 7 << 5;

/// The version of this format; two ends must have the same.
pub const VERSION: u8 = 2;

/// Bytes that the header adds to a protected frame.
pub const DATA_HEADER: u32 = 3;

/// The most gaps that one acknowledgement lists.
pub const MAX_GAPS: usize = 8;

/// The longest header: a number and a full list of gaps.
pub const MAX_HEADER: usize = 6 + 4 * MAX_GAPS;

/// The two classes of traffic that one link can carry, each with its own sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Delivered in the order sent.
    Ordered = 0,
    /// Delivered as it comes.
    NonBlocking = 1,
}

impl Class {
    /// Both classes, in the order of their bits.
    pub const ALL: [Self; 2] = [Self::Ordered, Self::NonBlocking];

    const fn from_bit(set: bool) -> Self {
        if set { Self::NonBlocking } else { Self::Ordered }
    }
}

/// Epoch of the link to which a frame belongs, modulo four: enough to distinguish a frame that was in flight when an end
/// restarted from those that came after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Epoch(u8);

impl Epoch {
    /// Makes an epoch from `number` modulo four.
    pub const fn new(number: u32) -> Self {
        Self((number & 3) as u8)
    }

    /// Number from 0 to 3.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// Request of the receiver to send or to hold back new frames: a level that every acknowledgement repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FlowControl {
    /// Send them.
    #[default]
    Flow,
    /// Keep them back; retransmissions still flow.
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
    /// The most frames of one gap.
    pub const MAX_FRAMES: u32 = u8::MAX as u32;
    /// The highest count of requests.
    pub const MAX_ROUND: u8 = 127;

    /// # Panics
    /// If there are no frames, or more than fit.
    pub fn new(first: Seq, frames: u32, round: u8) -> Self {
        assert!((1..=Self::MAX_FRAMES).contains(&frames) && round <= Self::MAX_ROUND);
        Self { first, round, frames: frames as u8 }
    }

    /// The first missing frame.
    pub fn first(self) -> Seq {
        self.first
    }

    /// Number of missing frames.
    pub fn frames(self) -> u32 {
        u32::from(self.frames)
    }

    /// Number of times that they were requested before.
    pub fn round(self) -> u8 {
        self.round
    }

    /// True if this frame is among the missing ones.
    pub fn contains(self, seq: Seq) -> bool {
        (0..i32::from(self.frames)).contains(&seq.offset_from(self.first))
    }
}

/// Report of a receiver to the sender: everything up to `latest` has arrived or been given up, except the gaps listed. A gap
/// beyond `latest` may be listed too, and is a request as well.
#[derive(Clone, Debug, PartialEq)]
pub struct Feedback {
    /// The class that it is about.
    pub class: Class,
    /// The latest number received.
    pub latest: Seq,
    /// Request to send or to hold back new frames.
    pub wish: FlowControl,
    gaps: Option<Box<GapList>>,
}

/// Boxed wherever it occurs: nearly every acknowledgement has none, and every frame has room for one.
#[derive(Clone, Debug, Default, PartialEq)]
struct GapList {
    count: u8,
    gaps: [Gap; MAX_GAPS],
}

impl Feedback {
    /// Makes a report without gaps.
    #[inline]
    pub fn new(class: Class, latest: Seq, wish: FlowControl) -> Self {
        Self { class, latest, wish, gaps: None }
    }

    /// The gaps listed.
    pub fn gaps(&self) -> &[Gap] {
        self.gaps.as_ref().map_or(&[], |list| &list.gaps[..usize::from(list.count)])
    }

    /// True if any gap is listed.
    #[inline]
    pub fn has_gaps(&self) -> bool {
        self.gaps.is_some()
    }

    /// True if there is no room for another gap.
    pub fn is_full(&self) -> bool {
        self.gaps().len() == MAX_GAPS
    }

    /// # Panics
    /// If the list is full.
    pub fn push(&mut self, gap: Gap) {
        let list = self.gaps.get_or_insert_default();
        list.gaps[usize::from(list.count)] = gap;
        list.count += 1;
    }

    /// True if a listed gap contains this frame.
    pub fn lists(&self, seq: Seq) -> bool {
        self.gaps().iter().any(|gap| gap.contains(seq))
    }
}

/// Kind of a frame on a protected link. In the order of the codes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A frame that is not protected, with an acknowledgement riding on it.
    Plain,
    /// A protected frame, sent for the first time.
    Data(Class, Seq),
    /// A copy of a protected frame that was reported missing.
    Retransmission(Class, Seq),
    /// Announces the sequence number that was sent last; has no frame.
    Dummy(Class, Seq),
    /// Acknowledges at lowest priority; has no frame.
    Ack,
    /// Acknowledges at highest priority, because a gap opened or the wish changed; has no frame.
    Notice,
    /// Carries the life cycle of the link; has neither a frame nor an acknowledgement.
    Session,
    /// A frame as it came, without a header of ours.
    Bare,
}
