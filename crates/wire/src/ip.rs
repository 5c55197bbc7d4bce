//! What of IP's header matters to transports and queues.

/// Protocols that IP carries.
pub const ICMP: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const ICMP_V6: u8 = 58;
pub const SCTP: u8 = 132;

/// RFC 3168: whether a packet may be marked, and whether it has been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Congestion can only be told by dropping it.
    #[default]
    NotCapable,
    Capable,
    /// Congestion was met.
    Experienced,
}

impl Ecn {
    /// As it leaves a queue that is too long: marked if it can be.
    #[must_use]
    pub fn marked(self) -> Self {
        match self {
            Self::NotCapable => Self::NotCapable,
            Self::Capable | Self::Experienced => Self::Experienced,
        }
    }
}
