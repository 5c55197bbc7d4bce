//! Fields of IP's header that matter to transports and queues.

/// Protocol number of ICMP.
pub const ICMP: u8 = 1;
/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;
/// Protocol number of ICMPv6.
pub const ICMP_V6: u8 = 58;
/// Protocol number of SCTP.
pub const SCTP: u8 = 132;

/// RFC 3168: whether a packet may be marked, and whether it has been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// A queue can signal congestion only by dropping it.
    #[default]
    NotCapable,
    /// The packet may be marked, and has not been.
    Capable,
    /// Congestion was met.
    Experienced,
}

impl Ecn {
    /// Field of a packet that leaves a queue that is too long: marked if it can be.
    #[must_use]
    pub fn marked(self) -> Self {
        match self {
            Self::NotCapable => Self::NotCapable,
            Self::Capable | Self::Experienced => Self::Experienced,
        }
    }
}
