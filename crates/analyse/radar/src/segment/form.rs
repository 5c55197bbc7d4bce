//! A report as bytes.
//!
//! ```text
//!   "HLRR"  version:8  segment  end  life:64  batch:64  length:64  missed:64  out number:32  came number:32  out  came  facts …
//! ```
//!
//! A name is a byte for its length and then itself; a digest is four bytes for its length and then its own form, which has
//! its own checksum; facts are in `facts`. Numbers are little-endian; a number of the link's that is not there is all ones.

use std::fmt;

use super::{MeterReport, ReportFacts};
use crate::digest::{Digest, FormError, PackedDigest};

const MAGIC: [u8; 4] = *b"HLRR";
const VERSION: u8 = 2;

/// Bytes that are no report of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportError {
    Foreign,
    Version(u8),
    Malformed,
    Digest(FormError),
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("not a meter's report"),
            Self::Version(version) => {
                write!(f, "a report of version {version}, and this program knows {VERSION}: use the same at both ends")
            }
            Self::Malformed => f.write_str("a meter's report that contradicts itself"),
            Self::Digest(error) => write!(f, "a meter's report with {error}"),
        }
    }
}

impl std::error::Error for ReportError {}

impl MeterReport {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(MAGIC);
        out.push(VERSION);
        for name in [&self.segment, &self.end] {
            let name = &name.as_bytes()[..name.floor_char_boundary(usize::from(u8::MAX))];
            out.push(name.len() as u8);
            out.extend(name);
        }
        for number in [self.life, self.batch, self.length, self.missed] {
            out.extend(number.to_le_bytes());
        }
        for number in [self.out_number, self.came_number] {
            out.extend(number.unwrap_or(u32::MAX).to_le_bytes());
        }
        for digest in [&self.out, &self.came] {
            let bytes = digest.to_bytes();
            out.extend((bytes.len() as u32).to_le_bytes());
            out.extend(bytes);
        }
        self.facts.put(&mut out);
        out
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ReportError> {
        Self::read(bytes, Digest::from_bytes)
    }
}

impl MeterReport<PackedDigest> {
    /// Does the same as [`MeterReport::from_bytes`], and takes no more memory than the bytes do.
    pub fn packed(bytes: &[u8]) -> Result<Self, ReportError> {
        Self::read(bytes, PackedDigest::from_bytes)
    }
}

impl<D> MeterReport<D> {
    fn read(bytes: &[u8], digest: impl Fn(&[u8]) -> Result<D, FormError>) -> Result<Self, ReportError> {
        let mut rest = ByteReader::new(bytes);
        if rest.array::<4>().map_err(|_| ReportError::Foreign)? != MAGIC {
            return Err(ReportError::Foreign);
        }
        match rest.array::<1>()? {
            [VERSION] => {}
            [other] => return Err(ReportError::Version(other)),
        }
        let (segment, end) = (rest.name()?, rest.name()?);
        let [life, batch, length, missed] =
            [rest.array()?, rest.array()?, rest.array()?, rest.array()?].map(u64::from_le_bytes);
        let number = |bytes| Some(u32::from_le_bytes(bytes)).filter(|number| *number != u32::MAX);
        let [out_number, came_number] = [rest.array()?, rest.array()?].map(number);
        let mut next = || digest(rest.digest()?).map_err(ReportError::Digest);
        let (out, came) = (next()?, next()?);
        let facts = ReportFacts::read(&mut rest)?;
        if length == 0 {
            return Err(ReportError::Malformed);
        }
        Ok(Self { segment, end, life, batch, length, missed, out, out_number, came, came_number, facts })
    }
}

pub(super) struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], ReportError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(ReportError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], ReportError> {
        self.take(N)?.try_into().map_err(|_| ReportError::Malformed)
    }

    fn name(&mut self) -> Result<String, ReportError> {
        let [len] = self.array()?;
        let bytes = self.take(usize::from(len))?;
        let name = str::from_utf8(bytes).map_err(|_| ReportError::Malformed)?;
        let is_plain = !name.is_empty() && !name.contains(char::is_control);
        if is_plain { Ok(name.to_owned()) } else { Err(ReportError::Malformed) }
    }

    fn digest(&mut self) -> Result<&'a [u8], ReportError> {
        let len = u32::from_le_bytes(self.array()?) as usize;
        self.take(len)
    }
}
