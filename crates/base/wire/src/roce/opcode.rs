//! Opcodes of packets of a reliable connection (InfiniBand specification, vol. 1, table 38).

/// Three bits of the opcode give the transport, five the operation; a reliable connection's three are zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are the specification's")]
pub enum Opcode {
    SendFirst = 0,
    SendMiddle = 1,
    SendLast = 2,
    SendLastImmediate = 3,
    SendOnly = 4,
    SendOnlyImmediate = 5,
    WriteFirst = 6,
    WriteMiddle = 7,
    WriteLast = 8,
    WriteLastImmediate = 9,
    WriteOnly = 10,
    WriteOnlyImmediate = 11,
    ReadRequest = 12,
    ReadResponseFirst = 13,
    ReadResponseMiddle = 14,
    ReadResponseLast = 15,
    ReadResponseOnly = 16,
    Acknowledge = 17,
    AtomicAcknowledge = 18,
    CompareSwap = 19,
    FetchAdd = 20,
    SendLastInvalidate = 22,
    SendOnlyInvalidate = 23,
}

/// Extension of an opcode, one of those in [`super::ExtensionHeader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extension {
    None,
    Rdma,
    Ack,
}

impl Opcode {
    /// Every opcode of a reliable connection.
    pub const ALL: [Self; 23] = [
        Self::SendFirst,
        Self::SendMiddle,
        Self::SendLast,
        Self::SendLastImmediate,
        Self::SendOnly,
        Self::SendOnlyImmediate,
        Self::WriteFirst,
        Self::WriteMiddle,
        Self::WriteLast,
        Self::WriteLastImmediate,
        Self::WriteOnly,
        Self::WriteOnlyImmediate,
        Self::ReadRequest,
        Self::ReadResponseFirst,
        Self::ReadResponseMiddle,
        Self::ReadResponseLast,
        Self::ReadResponseOnly,
        Self::Acknowledge,
        Self::AtomicAcknowledge,
        Self::CompareSwap,
        Self::FetchAdd,
        Self::SendLastInvalidate,
        Self::SendOnlyInvalidate,
    ];

    /// `None` for other transports and for what is reserved.
    #[inline]
    pub fn from_code(code: u8) -> Option<Self> {
        // 21 alone is left out.
        let at = match code {
            0..=20 => code,
            22 | 23 => code - 1,
            _ => return None,
        };
        Self::ALL.get(usize::from(at)).copied()
    }

    /// Sent by a requester, with a PSN that it has counted.
    #[inline]
    pub fn is_request(self) -> bool {
        !matches!(
            self,
            Self::ReadResponseFirst
                | Self::ReadResponseMiddle
                | Self::ReadResponseLast
                | Self::ReadResponseOnly
                | Self::Acknowledge
                | Self::AtomicAcknowledge
        )
    }

    #[inline]
    pub(super) fn extension(self) -> Extension {
        match self {
            Self::WriteFirst | Self::WriteOnly | Self::WriteOnlyImmediate | Self::ReadRequest => Extension::Rdma,
            Self::ReadResponseFirst
            | Self::ReadResponseLast
            | Self::ReadResponseOnly
            | Self::Acknowledge
            | Self::AtomicAcknowledge => Extension::Ack,
            _ => Extension::None,
        }
    }

    /// Length of immediate data, the key to invalidate, or what an atomic operation works on.
    #[inline]
    pub(super) fn operands(self) -> usize {
        match self {
            Self::SendLastImmediate
            | Self::SendOnlyImmediate
            | Self::WriteLastImmediate
            | Self::WriteOnlyImmediate
            | Self::SendLastInvalidate
            | Self::SendOnlyInvalidate => 4,
            Self::AtomicAcknowledge => 8,
            Self::CompareSwap | Self::FetchAdd => 28,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_an_opcode_of_its_own_or_of_somebody_else() {
        let known: Vec<u8> = (0..=u8::MAX).filter(|code| Opcode::from_code(*code).is_some()).collect();
        assert_eq!(known, Opcode::ALL.map(|opcode| opcode as u8));
        assert!(Opcode::ALL.iter().all(|opcode| Opcode::from_code(*opcode as u8) == Some(*opcode)));
    }
}
