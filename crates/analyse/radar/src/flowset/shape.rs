//! Size of an encoded flowset, and the place of a flow in it.

use std::fmt;

use super::key::FlowKey;
use crate::signature::fold;

/// Cells that a flow goes into, at most.
pub(super) const MOST_ROWS: usize = 4;
/// Bits of a flow that lie in the same word of the filter.
pub(super) const BITS_IN_WORD: u8 = 4;

/// The size of a switch's flowset, and its hash functions. Switches that are decoded together need seeds that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowsetShape {
    rows: u8,
    row: u32,
    filter_hashes: u8,
    filter_words: u32,
    pub seed: u64,
}

impl FlowsetShape {
    /// More than a gigabyte of cells is a mistake.
    pub const MOST_CELLS: usize = 32 << 20;
    pub(crate) const MOST_FILTER_WORDS: u32 = 64 << 20;
    pub(crate) const MOST_FILTER_HASHES: u8 = 32;

    /// A shape with at least `cells` cells in all. `rows` is the thesis's k_c, which is 3 or 4, and the filter's
    /// numbers are its k_f and m_f. Impossible sizes become the next possible ones. The filter has words of 64 bits,
    /// and four hashes for each word that a flow has bits in.
    pub fn new(rows: u8, cells: usize, filter_hashes: u8, filter_bits: u64, seed: u64) -> Self {
        let rows = rows.clamp(3, MOST_ROWS as u8);
        let row = cells.div_ceil(rows.into()).clamp(1, Self::MOST_CELLS / usize::from(rows)) as u32;
        let filter_hashes = filter_hashes.clamp(1, Self::MOST_FILTER_HASHES).next_multiple_of(BITS_IN_WORD);
        let filter_words = filter_bits.div_ceil(64).clamp(1, Self::MOST_FILTER_WORDS.into()) as u32;
        Self { rows, row, filter_hashes, filter_words, seed }
    }

    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Cells that each flow goes into: the thesis's k_c.
    pub fn rows(&self) -> usize {
        self.rows.into()
    }

    pub(super) fn row(&self) -> usize {
        self.row as usize
    }

    /// The thesis's m_c.
    pub fn cells(&self) -> usize {
        self.rows() * self.row()
    }

    /// The thesis's m_f.
    pub fn filter_bits(&self) -> u64 {
        u64::from(self.filter_words) * 64
    }

    pub(super) fn filter_words(&self) -> u32 {
        self.filter_words
    }

    /// The thesis's k_f.
    pub fn filter_hashes(&self) -> u8 {
        self.filter_hashes
    }

    /// Bytes that it would take in a switch whose keys have 13 bytes and packet counters 4, and whose flow counters are as
    /// wide as `flows` needs: the account of §4.5.1.
    pub fn switch_bytes(&self, flows: u64) -> f64 {
        let counter = f64::from(u64::BITS - flows.max(1).leading_zeros());
        self.cells() as f64 * (13.0 + 4.0 + counter / 8.0) + f64::from(self.filter_words) * 8.0
    }
}

impl fmt::Display for FlowsetShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, row, filter_hashes, seed, .. } = self;
        let filter_bits = self.filter_bits();
        write!(f, "{rows} rows of {row} cells, a filter of {filter_hashes} hashes and {filter_bits} bits, seed {seed}")
    }
}

/// Two flowsets that cannot be put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowsetMismatch {
    pub ours: FlowsetShape,
    pub theirs: FlowsetShape,
}

impl fmt::Display for FlowsetMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ours, theirs } = self;
        write!(f, "flowsets of different shapes ({ours}; and {theirs}): start both meters with the same options")
    }
}

impl std::error::Error for FlowsetMismatch {}

/// Places of a flow: one cell of each row.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellPlaces {
    at: [u32; MOST_ROWS],
    rows: u8,
}

impl CellPlaces {
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.at[..usize::from(self.rows)].iter().map(|at| *at as usize)
    }

    /// Seeds of as many rows as there could be; a flowset uses the first of them.
    #[inline]
    pub(crate) fn all(&self) -> [u32; MOST_ROWS] {
        self.at
    }

    #[inline]
    pub(crate) fn contains(&self, cell: usize) -> bool {
        self.iter().any(|at| at == cell)
    }
}

/// The hash functions of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hashing {
    shape: FlowsetShape,
    /// Factors of their own, not only offsets: two flows that share a cell at one switch are not to share one at the next.
    salt: [u64; 2],
}

impl Hashing {
    pub(crate) fn new(shape: FlowsetShape) -> Self {
        let first = fold(shape.seed ^ 0x9b05_688c_2b3e_6c1f, 0x1f83_d9ab_fb41_bd6b);
        let second = fold(first ^ shape.seed, 0x5be0_cd19_137e_2179);
        Self { shape, salt: [first, second | 1] }
    }

    pub(crate) fn shape(&self) -> &FlowsetShape {
        &self.shape
    }

    /// Hash of a flow at this switch.
    #[inline]
    pub(crate) fn of(&self, key: &FlowKey) -> u64 {
        self.of_hash(key.hash())
    }

    /// Hash, at this switch, of a flow whose own hash is known.
    #[inline]
    pub(crate) fn of_hash(&self, flow: u64) -> u64 {
        fold(flow ^ self.salt[0], self.salt[1])
    }

    #[inline]
    pub(crate) fn places(&self, hash: u64) -> CellPlaces {
        let other = fold(hash, 0x9e37_79b9_7f4a_7c15);
        let row = self.shape.row;
        let parts = [(hash >> 32) as u32, hash as u32, (other >> 32) as u32, other as u32];
        let mut at = parts.map(|part| within(part, row));
        (0..).zip(&mut at).for_each(|(nth, at)| *at = at.wrapping_add(row.wrapping_mul(nth)));
        CellPlaces { at, rows: self.shape.rows }
    }

    /// Places of a flow in the flow filter: words, and the bits of each. Bits that lie together are read together; with
    /// four to a word, false positives are hardly more than if each lay anywhere.
    #[inline]
    pub(crate) fn filter_words(&self, hash: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let FlowsetShape { filter_words, filter_hashes, .. } = self.shape;
        (1..=u64::from(filter_hashes) / u64::from(BITS_IN_WORD)).map(move |nth| {
            let hash = fold(hash ^ 0xcbbb_9d5d_c105_9ed8_u64.wrapping_mul(nth), 0x629a_292a_367c_d507);
            let bits = (0..BITS_IN_WORD).fold(0, |bits, nth| bits | 1 << (hash >> (6 * nth) & 63));
            (within((hash >> 32) as u32, filter_words) as usize, bits)
        })
    }
}

/// A number below `size`, in proportion.
#[inline]
fn within(part: u32, size: u32) -> u32 {
    ((u64::from(part) * u64::from(size)) >> 32) as u32
}
