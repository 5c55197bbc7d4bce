//! Reservations in a rack: what hosts and their switch say to each other, and the mark on a reserved frame.
//!
//! PL2, §2 and App. D. An RSV asks for room for a burst of frames to one destination, a GRT answers how long to wait. What
//! the paper does not have: identities that survive losses and restarts (epoch, context, burst, attempt), a refusal with
//! its reason, the header of an unsolicited frame that found no room (a cut), and the message by which a reservation is
//! given back.
//!
//! All of it travels under the OUI-extended EtherType with a locally administered identifier. A message fills the payload
//! of the shortest Ethernet frame; a mark stands before the EtherType of the frame that it marks:
//!
//! ```text
//!   prefix    02:68:69 00:02                                     both begin with it
//!   message   version:4 kind:4   class:3 attempt:5   host epoch:16   switch epoch:16   context:16   burst:32
//!             peer:48   frames:8   bytes:32   body:144
//!   body      GRT, copy: send:48 recv:48 kept:48 (ps)   refusal: reason:8 0…   cut: index:8 0…   others: 0…
//!   mark      version:4 kind:4   class:3 unsolicited:1 0:4   host epoch:16   switch epoch:16   context:16   burst:32
//!             index:8   of:8
//! ```
//!
//! [`ReserveHeader::parse`] accepts exactly what [`ReserveHeader::emit`] writes. Numbers are big-endian.

mod bytes;

use units::Span;

pub use bytes::MalformedReserve;

/// The OUI-extended EtherType.
pub const OUI_EXTENDED: u16 = 0x88b7;
/// The version of this format; messages of another one are malformed.
const RESERVE_VERSION: u8 = 1;
/// Length of a message: the payload of the shortest Ethernet frame.
pub const MESSAGE_LEN: usize = 46;
/// Bytes that a mark adds to the frame that it marks, together with the EtherType before it.
pub const MARK_LEN: usize = 19 + 2;
/// Classes are 0 to 7; 0 goes first.
pub const RESERVE_CLASSES: u8 = 8;
/// Attempts are counted modulo this.
pub const ATTEMPTS: u8 = 32;

/// A host of the rack as others name it: its MAC address, or any number below 2⁴⁸ in a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostKey(u64);

impl HostKey {
    /// Makes a key of a number; only its lowest 48 bits are kept.
    pub const fn new(number: u64) -> Self {
        Self(number & ((1 << 48) - 1))
    }

    /// Makes a key of a MAC address.
    pub const fn from_mac(mac: [u8; 6]) -> Self {
        let [a, b, c, d, e, f] = mac;
        Self(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// Key as a MAC address.
    pub const fn mac(self) -> [u8; 6] {
        let [_, _, a, b, c, d, e, f] = self.0.to_be_bytes();
        [a, b, c, d, e, f]
    }

    /// Key as a number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// Identifies a burst by the host's run, the context and a count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BurstId {
    /// The run of the host: another one after each restart.
    pub host_epoch: u16,
    /// The context that sends it.
    pub context: u16,
    /// Counted by the context.
    pub burst: u32,
}

/// Size of a burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Frames of the burst.
    pub frames: u8,
    /// Bytes that they take on the wire together, gaps and preambles included.
    pub bytes: u32,
}

/// Subject of a message: in the RSV itself, and echoed by every answer to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    /// The burst.
    pub id: BurstId,
    /// Number of this try, modulo [`ATTEMPTS`].
    pub attempt: u8,
    /// Class; 0 goes first.
    pub class: u8,
    /// The run of the switch as the asker knows it; 0 if it does not. In answers, the switch's own.
    pub switch_epoch: u16,
    /// Receiver of the burst; in copies to the receiver and in its resets, the sender.
    pub peer: HostKey,
    /// Size of the burst.
    pub demand: Demand,
}

/// The answer: how long both ports are taken, from the moment when the switch answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Time until the sender's port is free; the paper's sendTimeslot.
    pub send: Span,
    /// Time until the receiver's port is free; the paper's recvTimeslot.
    pub recv: Span,
    /// Time for which the switch kept the RSV before it answered.
    pub kept: Span,
}

impl Grant {
    /// Time to wait for both ports; the paper's chosenTimeslot.
    #[inline]
    pub fn chosen(&self) -> Span {
        self.send.max(self.recv)
    }
}

/// Reason why a switch refuses an RSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// More frames, or longer ones, than a burst may have.
    AboveLimit = 0,
    /// No port leads to the destination.
    UnknownPort = 1,
    /// The destination is behind the port that the RSV came from.
    OwnPort = 2,
    /// The sender has more reserved than its contexts allow.
    TooMany = 3,
    /// The RSV names another run of the switch.
    OldEpoch = 4,
    /// The source address belongs to another port.
    ForeignSource = 5,
    /// More contexts than the switch has room for.
    UnknownContext = 6,
}

impl Refusal {
    /// All reasons, in the order of their codes.
    pub const ALL: [Self; 7] = [
        Self::AboveLimit,
        Self::UnknownPort,
        Self::OwnPort,
        Self::TooMany,
        Self::OldEpoch,
        Self::ForeignSource,
        Self::UnknownContext,
    ];
}

/// Content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveVerb {
    /// A sender asks.
    Rsv,
    /// The switch answers.
    Grt(Grant),
    /// The switch shows the receiver what it has granted.
    Copy(Grant),
    /// The switch refuses.
    Refused(Refusal),
    /// The switch had no room for the unsolicited frame with this index, and for none behind it.
    Cut(u8),
    /// A receiver reports that this much of a burst did not come.
    Reset,
    /// A sender does not need its reservation any more.
    Release,
}

/// One message between a host and its switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReserveMessage {
    /// Content.
    pub verb: ReserveVerb,
    /// Subject.
    pub about: Reservation,
}

/// Mark on a frame that is part of a burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataMark {
    /// The burst.
    pub id: BurstId,
    /// The run of the switch that granted it.
    pub switch_epoch: u16,
    /// Class of the burst.
    pub class: u8,
    /// True if it was sent without waiting for a grant.
    pub unsolicited: bool,
    /// Index of the frame in the burst, from 0.
    pub index: u8,
    /// Number of frames in the burst.
    pub of: u8,
}

/// Header behind the EtherType.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveHeader {
    /// A message, and nothing else in the frame.
    Message(ReserveMessage),
    /// A mark; the frame's own EtherType and payload follow.
    Mark(DataMark),
}
