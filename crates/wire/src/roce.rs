//! RoCEv2 headers: InfiniBand specification, vol. 1, chapter 9 and annex A17.

/// The UDP port that says what follows.
pub const PORT: u16 = 4_791;

/// Base transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub opcode: Opcode,
    /// Of the receiver; 24 bits.
    pub queue_pair: u32,
    pub psn: u32,
    pub ack_request: bool,
    pub extended: Option<Extended>,
}

/// Of a reliable connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    SendFirst = 0,
    SendMiddle = 1,
    SendLast = 2,
    SendOnly = 4,
    WriteFirst = 6,
    WriteMiddle = 7,
    WriteLast = 8,
    WriteOnly = 10,
    ReadRequest = 12,
    ReadResponseFirst = 13,
    ReadResponseMiddle = 14,
    ReadResponseLast = 15,
    ReadResponseOnly = 16,
    Acknowledge = 17,
}

/// What some opcodes have behind the base header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extended {
    /// RETH: how much is written or read.
    Rdma { len: u32 },
    /// AETH: whether all is well, and messages completed, 24 bits.
    Ack { nak: bool, msn: u32 },
}

/// Whatever partition: the default one.
const PARTITION: [u8; 2] = [0xff, 0xff];
/// An ACK that says nothing of credits; a NAK of a PSN out of sequence.
const ACK: u8 = 0x1f;
const NAK_SEQUENCE: u8 = 0x60;

impl Header {
    /// The invariant CRC behind the payload.
    pub const CHECK: usize = 4;

    /// Length of the base header and what extends it.
    pub fn size(&self) -> usize {
        12 + match self.extended {
            None => 0,
            Some(Extended::Rdma { .. }) => 16,
            Some(Extended::Ack { .. }) => 4,
        }
    }

    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend([self.opcode as u8, 0]);
        out.extend(PARTITION);
        out.extend((self.queue_pair & 0xff_ffff).to_be_bytes());
        out.extend((u32::from(self.ack_request) << 31 | self.psn & 0xff_ffff).to_be_bytes());
        match self.extended {
            None => {}
            Some(Extended::Rdma { len }) => {
                // Address and key mean something to the hosts alone.
                out.extend([0; 12]);
                out.extend(len.to_be_bytes());
            }
            Some(Extended::Ack { nak, msn }) => {
                let syndrome = if nak { NAK_SEQUENCE } else { ACK };
                out.extend((u32::from(syndrome) << 24 | msn & 0xff_ffff).to_be_bytes());
            }
        }
    }
}
