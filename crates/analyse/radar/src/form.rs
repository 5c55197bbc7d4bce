//! Errors in bytes that should be a digest or a flowset.

use std::fmt;

/// The version of both forms; two ends must have the same.
pub(crate) const VERSION: u8 = 1;

/// The bytes are foreign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormError {
    /// Bytes that do not begin like a digest.
    Foreign,
    /// The version is not one that we know.
    Version(u8),
    /// The contents or the length are not valid.
    Malformed,
    /// They were changed on their way.
    Corrupted,
}

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("a table that is none of ours"),
            Self::Version(version) => write!(
                f,
                "a table of version {version}, and this program knows version {VERSION}: use the same at both ends"
            ),
            Self::Malformed => f.write_str("a table that contradicts itself"),
            Self::Corrupted => f.write_str("a table that was changed on its way: its checksum does not fit"),
        }
    }
}

impl std::error::Error for FormError {}
