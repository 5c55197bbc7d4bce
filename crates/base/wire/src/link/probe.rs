//! The probe: two ends find out whether a cable joins them, or a switch that learns addresses.
//!
//! ```text
//!   111:3 kind:5   proved:1 0:4 paths:3   token:16   instance:32   heard:32
//! ```
//!
//! A question (kind 8) is sent several times with one token, each time to another address. The frame shows which address it
//! was, not the question itself:
//!
//! | path | to | from | arrives |
//! | --- | --- | --- | --- |
//! | [`ProbePaths::RESERVED`] | 01:80:c2:00:00:0e | the sender's own | unless a bridge is between: none passes it on (IEEE 802.1Q, table 8-1) |
//! | [`ProbePaths::RETURN`] | the sender's own | the sender's own | unless something between learns addresses: by this very frame it learns that the target is where it came from |
//! | [`ProbePaths::STAMPED`] | a stamp's | a stamp's ([`super::AddressStamp::Probe`]) | unless frames with strange addresses are dropped |
//! | none of these | the peer's | the sender's own | wherever other frames arrive; it comes last, and is answered |
//!
//! The answer (kind 9) lists the paths by which the question arrived. Hence one answer reveals a path that does not lead to
//! the peer, and a lost frame can only hide a path, never add one: no number of lost frames makes a switch look like a cable.
//!
//! `instance` and `heard` are those of the life cycle; `proved` says that the sender's own questions arrived by every path.

use super::MalformedHeader;

const QUESTION: u8 = 7 << 5 | 8;
const ANSWER: u8 = 7 << 5 | 9;
const PROVED: u8 = 1 << 7;

/// The group address that no bridge passes on, not even one with two ports ("Nearest Bridge").
pub const RESERVED_ADDRESS: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e];

/// Ways that a question can take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbePaths(u8);

impl ProbePaths {
    /// No path but the plain one, to the peer's own address.
    pub const NONE: Self = Self(0);
    /// Path to an address that no bridge passes on.
    pub const RESERVED: Self = Self(1);
    /// Path to the sender's own address.
    pub const RETURN: Self = Self(2);
    /// Path with the addresses of a stamp.
    pub const STAMPED: Self = Self(4);
    /// Paths that lead to the other end of a cable and to nobody else.
    pub const CABLE: Self = Self(1 | 2);
    /// Every one of them.
    pub const ALL: Self = Self(1 | 2 | 4);

    /// True if all of `others` are among these.
    pub const fn include(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// These and the others.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }
}

/// A question or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// Asks by which paths it has come.
    Question,
    /// An answer, with the paths that it names.
    Answer(ProbePaths),
}

/// Question or answer of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampProbe {
    /// Kind of the question or answer.
    pub kind: ProbeKind,
    /// The sender's own questions come by every path.
    pub proved: bool,
    /// A question and its answer have the same token.
    pub token: u16,
    /// The sender's instance.
    pub instance: u32,
    /// The instance that it is for.
    pub heard: u32,
}

impl StampProbe {
    /// Length on the wire, in bytes.
    pub const LEN: usize = 12;

    /// True if a link header that begins with this byte is a probe.
    #[inline]
    pub const fn marks(first: u8) -> bool {
        first == QUESTION || first == ANSWER
    }

    /// Emits the probe.
    pub fn emit(&self) -> [u8; Self::LEN] {
        let (kind, paths) = match self.kind {
            ProbeKind::Question => (QUESTION, 0),
            ProbeKind::Answer(paths) => (ANSWER, paths.0),
        };
        let mut out = [0; Self::LEN];
        (out[0], out[1]) = (kind, if self.proved { PROVED } else { 0 } | paths);
        out[2..4].copy_from_slice(&self.token.to_be_bytes());
        out[4..8].copy_from_slice(&self.instance.to_be_bytes());
        out[8..12].copy_from_slice(&self.heard.to_be_bytes());
        out
    }

    /// Reads what stands at the beginning of `bytes`; what follows is padding.
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedHeader> {
        let bytes: &[u8; Self::LEN] = bytes.first_chunk().ok_or(MalformedHeader)?;
        let long = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let kind = match bytes[0] {
            QUESTION => ProbeKind::Question,
            ANSWER => ProbeKind::Answer(ProbePaths(bytes[1] & ProbePaths::ALL.0)),
            _ => return Err(MalformedHeader),
        };
        let token = u16::from_be_bytes([bytes[2], bytes[3]]);
        let probe = Self { kind, proved: bytes[1] & PROVED != 0, token, instance: long(4), heard: long(8) };
        if probe.emit() == *bytes { Ok(probe) } else { Err(MalformedHeader) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::link::LinkHeader;

    #[test]
    fn paths_are_compared() {
        let (reserved, both) = (ProbePaths::RESERVED, ProbePaths::RESERVED.with(ProbePaths::RETURN));
        assert_eq!(both, ProbePaths::CABLE);
        assert!(both.include(reserved) && !reserved.include(both) && ProbePaths::ALL.include(ProbePaths::STAMPED));
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_is_read_and_is_no_link_header(
            paths in proptest::option::of(0..8u8),
            proved in any::<bool>(),
            token in any::<u16>(),
            instance in any::<u32>(),
            heard in any::<u32>(),
            padding in 0..48usize,
        ) {
            let kind = paths.map_or(ProbeKind::Question, |paths| ProbeKind::Answer(ProbePaths(paths)));
            let probe = StampProbe { kind, proved, token, instance, heard };
            let bytes = [&probe.emit()[..], &vec![0; padding]].concat();
            prop_assert!(StampProbe::marks(bytes[0]));
            prop_assert_eq!(StampProbe::parse(&bytes), Ok(probe));
            prop_assert!(LinkHeader::parse(&bytes).is_err());
        }

        #[test]
        fn what_is_read_is_what_would_be_written(bytes in any::<[u8; 12]>(), len in 0..13usize, kind in 0..4u8) {
            let mut bytes = bytes;
            bytes[0] = [QUESTION, ANSWER, ANSWER, bytes[0]][usize::from(kind)];
            match StampProbe::parse(&bytes[..len]) {
                Ok(probe) => prop_assert_eq!(&probe.emit()[..], &bytes[..len]),
                Err(MalformedHeader) => prop_assert!(len < 12 || !StampProbe::marks(bytes[0]) || bytes[1] & 0x7f != 0),
            }
        }
    }
}
