//! UDP headers (RFC 768).

use crate::ipv4::{self, finish, sum};

/// A header; the payload behind it is zeros, so that the checksum needs no look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub source: u16,
    pub destination: u16,
    /// Whether there is a checksum; RoCEv2 has its own and sends none.
    pub checked: bool,
}

impl Header {
    pub const LEN: usize = 8;

    /// Appends the header of a datagram that `ip` carries.
    pub fn emit(&self, ip: &ipv4::Header, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(self.source.to_be_bytes());
        out.extend(self.destination.to_be_bytes());
        out.extend(ip.payload.to_be_bytes());
        out.extend([0; 2]);
        if self.checked {
            // Zero would say that there is none; all ones are the same number.
            let check = match finish(ip.pseudo_sum() + sum(&out[start..])) {
                0 => 0xffff,
                check => check,
            };
            out[start + 6..start + 8].copy_from_slice(&check.to_be_bytes());
        }
    }
}
