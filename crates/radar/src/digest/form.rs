//! A digest as bytes, for files and networks.
//!
//! ```text
//!   "HLRD"  version:8  fields:8  lanes:16  cells:32  seed:64  packets:64  cell …  CRC-32
//!   cell    [place:64]  count:64  check:64  and 64 bits for each lane that `lanes` has a bit for
//! ```
//!
//! Numbers are little-endian. Lanes that are zero in every cell are left out: a digest without IPv6 has no use for them.
//! Where few cells have anything in them (nothing passed, or it is a difference), only those are written, each with its
//! place, in order; the highest bit of `lanes` says so.

use super::{Digest, PLACES, Shape};
use crate::form::{FormError, VERSION};
use crate::signature::{Fields, LANES};

const MAGIC: [u8; 4] = *b"HLRD";
const HEAD: usize = 28;
const CHECK: usize = 4;

impl Digest {
    pub fn to_bytes(&self) -> Vec<u8> {
        let used = (0..LANES).filter(|lane| self.cells.iter().any(|cell| cell.lanes[*lane] != 0));
        let lanes = used.fold(0u16, |bits, lane| bits | 1 << lane);
        let filled = self.cells.iter().filter(|cell| !cell.is_empty()).count();
        let is_sparse = filled * 3 / 2 < self.cells.len() && self.cells.len() <= most_sparse(filled);
        let form = Form { lanes, is_sparse };
        let mut out = Vec::with_capacity(form.size(if is_sparse { filled } else { self.cells.len() }));
        out.extend(MAGIC);
        out.extend([VERSION, self.shape.fields.to_bits()]);
        out.extend((lanes | if is_sparse { SPARSE } else { 0 }).to_le_bytes());
        out.extend(self.shape.cells.to_le_bytes());
        out.extend(self.shape.seed.to_le_bytes());
        out.extend(self.packets.to_le_bytes());
        for (place, cell) in self.cells.iter().enumerate() {
            if is_sparse && cell.is_empty() {
                continue;
            }
            if is_sparse {
                out.extend((place as u64).to_le_bytes());
            }
            out.extend(cell.count.to_le_bytes());
            out.extend(cell.check.to_le_bytes());
            form.chosen().for_each(|lane| out.extend(cell.lanes[lane].to_le_bytes()));
        }
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormError> {
        let head: &[u8; HEAD] = bytes.first_chunk().ok_or(FormError::Foreign)?;
        if head[..4] != MAGIC {
            return Err(FormError::Foreign);
        }
        if head[4] != VERSION {
            return Err(FormError::Version(head[4]));
        }
        let fields = Fields::from_bits(head[5]).ok_or(FormError::Malformed)?;
        let lanes = u16::from_le_bytes([head[6], head[7]]);
        let form = Form { lanes: lanes & !SPARSE, is_sparse: lanes & SPARSE != 0 };
        let cells = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        let all = cells as usize;
        let fits =
            |written: &usize| *written == all || form.is_sparse && *written < all && all <= most_sparse(*written);
        let written = form.cells(bytes.len()).filter(fits).ok_or(FormError::Malformed)?;
        if !(PLACES..=Shape::MOST_CELLS).contains(&all) || form.lanes >> LANES != 0 {
            return Err(FormError::Malformed);
        }
        let (body, check) = bytes.split_at(bytes.len() - CHECK);
        if check != crc32fast::hash(body).to_le_bytes() {
            return Err(FormError::Corrupted);
        }
        let mut words = body[12..].as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().unwrap_or(0);
        let mut digest = Self::new(Shape { cells, seed: next(), fields });
        digest.packets = next() as i64;
        let mut from = 0;
        for nth in 0..written {
            let place = if form.is_sparse { next() as usize } else { nth };
            let cell = digest.cells.get_mut(place).filter(|_| place >= from).ok_or(FormError::Malformed)?;
            from = place + 1;
            (cell.count, cell.check) = (next() as i64, next());
            form.chosen().for_each(|lane| cell.lanes[lane] = next());
        }
        Ok(digest)
    }
}

const SPARSE: u16 = 1 << 15;

/// Cells of a digest of which only so many are written: a few bytes must not claim much memory.
fn most_sparse(written: usize) -> usize {
    (1 << 16).max(written.saturating_mul(16))
}

/// What is written of each cell.
#[derive(Clone, Copy)]
struct Form {
    lanes: u16,
    is_sparse: bool,
}

impl Form {
    fn chosen(self) -> impl Iterator<Item = usize> {
        (0..LANES).filter(move |lane| self.lanes >> lane & 1 == 1)
    }

    fn cell(self) -> usize {
        8 * (2 + usize::from(self.is_sparse) + self.lanes.count_ones() as usize)
    }

    fn size(self, cells: usize) -> usize {
        HEAD + cells * self.cell() + CHECK
    }

    /// How many cells so many bytes have, if they end with one.
    fn cells(self, bytes: usize) -> Option<usize> {
        let all = bytes.checked_sub(HEAD + CHECK)?;
        all.is_multiple_of(self.cell()).then_some(all / self.cell())
    }
}
