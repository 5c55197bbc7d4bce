//! RoCEv2 packets: InfiniBand specification, vol. 1, chapter 9 and annex A17.
//!
//! ```text
//!   Ethernet, VLAN tags   IPv4 or IPv6   UDP to 4791   BTH   RETH, AETH, ...   payload   pad   invariant CRC
//!                                                      └──────── Header ────────┘
//! ```
//!
//! [`RoceHeader`] is what is emitted and what is parsed: the base transport header (BTH) of a reliable connection, and of
//! what some opcodes have behind it the parts that mean something on the way: how much is written or read (RETH), and
//! how an answer turns out (AETH). Addresses, keys, operands and immediate data mean something to the hosts alone; they
//! are emitted as zeros and skipped when parsing.
//!
//! [`parse`] takes a frame to what it is: something else, RoCEv2, or [`MalformedRoce`]. [`CongestionNotification`] is the one
//! packet that belongs to no transport. [`icrc_is_valid`] looks at the
//! invariant CRC, which no switch does, and which covers everything that no switch may change.

mod cnp;
mod icrc;
mod opcode;
mod parse;

pub use cnp::CongestionNotification;
pub use icrc::{append_icrc, icrc_is_valid};
pub use opcode::Opcode;
pub use parse::{MalformedRoce, ParsedRoce, parse};

/// The UDP port that says what follows.
pub const PORT: u16 = 4_791;

/// Lengths of the base header and its extensions.
const BASE: usize = 12;
const RDMA: usize = 16;
const ACK: usize = 4;

/// Base transport header of a reliable connection, and what extends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoceHeader {
    /// Operation of the packet.
    pub opcode: Opcode,
    /// Queue pair of the receiver; 24 bits.
    pub queue_pair: u32,
    /// Packet sequence number; 24 bits.
    pub psn: u32,
    /// True if the sender asks for an acknowledgement.
    pub ack_request: bool,
    /// Bytes behind the payload that make it whole words: 0 to 3.
    pub pad: u8,
    /// The extended header that the opcode demands.
    pub extended: Option<ExtensionHeader>,
}

/// Header that some opcodes have behind the base header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum ExtensionHeader {
    /// RETH: how much is written or read.
    Rdma { len: u32 },
    /// AETH: whether all is well, and messages completed, 24 bits.
    Ack { syndrome: Syndrome, msn: u32 },
}

/// Syndrome of an answer: an acknowledgement with credits, receiver not ready, or a NAK with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syndrome(pub u8);

impl Syndrome {
    /// An ACK that says nothing of credits.
    pub const ACK: Self = Self(0x1f);
    /// A NAK of a PSN out of sequence.
    pub const SEQUENCE_ERROR: Self = Self(0x60);
}

/// The default partition, always.
const PARTITION: [u8; 2] = [0xff, 0xff];

impl RoceHeader {
    /// The invariant CRC behind the payload.
    pub const CHECK: usize = 4;

    /// Length of the base header and what extends it.
    pub fn size(&self) -> usize {
        let extended = match self.extended {
            None => 0,
            Some(ExtensionHeader::Rdma { .. }) => RDMA,
            Some(ExtensionHeader::Ack { .. }) => ACK,
        };
        BASE + extended + self.opcode.operands()
    }

    /// Appends the headers.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend([self.opcode as u8, (self.pad & 3) << 4]);
        out.extend(PARTITION);
        out.extend((self.queue_pair & 0xff_ffff).to_be_bytes());
        out.extend((u32::from(self.ack_request) << 31 | self.psn & 0xff_ffff).to_be_bytes());
        match self.extended {
            None => {}
            Some(ExtensionHeader::Rdma { len }) => {
                out.extend([0; RDMA - 4]);
                out.extend(len.to_be_bytes());
            }
            Some(ExtensionHeader::Ack { syndrome, msn }) => {
                out.extend((u32::from(syndrome.0) << 24 | msn & 0xff_ffff).to_be_bytes());
            }
        }
        out.resize(out.len() + self.opcode.operands(), 0);
    }
}
