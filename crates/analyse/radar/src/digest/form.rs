//! A digest as bytes, for files and networks.
//!
//! ```text
//!   "HLRD"  version:8  folds:3 fields:5  lanes:16  cells:32  seed:64  packets:64  cell …  CRC-32
//!   cell    [place:64]  count:64  check:64  and 64 bits for each lane that `lanes` has a bit for
//! ```
//!
//! Numbers are little-endian. Lanes that are zero in every cell are left out: a digest without IPv6 has no use for them.
//! If few cells have anything in them (nothing passed, or it is a difference), only those are written, each with its place,
//! in order; the highest bit of `lanes` marks this form.

use super::{Digest, DigestCell, DigestShape, PLACES};
use crate::form::{FormError, VERSION};
use crate::signature::{Fields, LANES};

const MAGIC: [u8; 4] = *b"HLRD";
const HEAD: usize = 28;
const CHECK: usize = 4;
const FIELD_BITS: u32 = 5;

impl Digest {
    pub fn to_bytes(&self) -> Vec<u8> {
        let (form, written) = self.form();
        let mut out = Vec::with_capacity(form.size(written));
        out.extend(MAGIC);
        out.extend([VERSION, self.shape.fields.to_bits() | self.shape.folds << FIELD_BITS]);
        out.extend((form.lanes | if form.is_sparse { SPARSE } else { 0 }).to_le_bytes());
        out.extend(self.shape.cells.to_le_bytes());
        out.extend(self.shape.seed.to_le_bytes());
        out.extend(self.packets.to_le_bytes());
        self.write_cells(form, &mut out);
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormError> {
        let ValidDigest { shape, packets, form, body } = ValidDigest::read(bytes)?;
        let mut digest = Self::new(shape);
        digest.packets = packets;
        for (place, cell) in form.cells(body) {
            digest.cells[place] = cell;
        }
        Ok(digest)
    }

    /// The shorter form, and how many cells are written in it.
    fn form(&self) -> (CellForm, usize) {
        let used = (0..LANES).filter(|lane| self.cells.iter().any(|cell| cell.lanes[*lane] != 0));
        let lanes = used.fold(0u16, |bits, lane| bits | 1 << lane);
        let filled = self.cells.iter().filter(|cell| !cell.is_empty()).count();
        let is_sparse = filled * 3 / 2 < self.cells.len() && self.cells.len() <= most_sparse(filled);
        (CellForm { lanes, is_sparse }, if is_sparse { filled } else { self.cells.len() })
    }

    fn write_cells(&self, form: CellForm, out: &mut Vec<u8>) {
        for (place, cell) in self.cells.iter().enumerate() {
            if form.is_sparse && cell.is_empty() {
                continue;
            }
            if form.is_sparse {
                out.extend((place as u64).to_le_bytes());
            }
            out.extend(cell.count.to_le_bytes());
            out.extend(cell.check.to_le_bytes());
            form.chosen().for_each(|lane| out.extend(cell.lanes[lane].to_le_bytes()));
        }
    }
}

/// A digest as it was sent. A few bytes may stand for thousands of empty cells: they take that room only where they are
/// added up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedDigest {
    shape: DigestShape,
    packets: i64,
    form: CellForm,
    body: Box<[u8]>,
    is_empty: bool,
}

impl PackedDigest {
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormError> {
        let ValidDigest { shape, packets, form, body } = ValidDigest::read(bytes)?;
        Ok(Self::new(shape, packets, form, body.into()))
    }

    fn new(shape: DigestShape, packets: i64, form: CellForm, body: Box<[u8]>) -> Self {
        let is_empty = form.cells(&body).all(|(_, cell)| cell.is_empty());
        Self { shape, packets, form, body, is_empty }
    }

    pub fn shape(&self) -> DigestShape {
        self.shape
    }

    /// Packets put in, less those taken out, as the sender of the digest claims.
    pub fn packets(&self) -> i64 {
        self.packets
    }

    /// True if nothing passed.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Memory use in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.body.len()
    }

    pub(super) fn cells(&self) -> impl Iterator<Item = (usize, DigestCell)> {
        self.form.cells(&self.body)
    }
}

impl From<&Digest> for PackedDigest {
    fn from(digest: &Digest) -> Self {
        let (form, written) = digest.form();
        let mut body = Vec::with_capacity(form.size(written) - HEAD - CHECK);
        digest.write_cells(form, &mut body);
        Self::new(digest.shape, digest.packets, form, body.into())
    }
}

/// Bytes that were found to be a digest.
struct ValidDigest<'a> {
    shape: DigestShape,
    packets: i64,
    form: CellForm,
    /// The cells that are written.
    body: &'a [u8],
}

impl<'a> ValidDigest<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, FormError> {
        let head: &[u8; HEAD] = bytes.first_chunk().ok_or(FormError::Foreign)?;
        if head[..4] != MAGIC {
            return Err(FormError::Foreign);
        }
        if head[4] != VERSION {
            return Err(FormError::Version(head[4]));
        }
        let folds = head[5] >> FIELD_BITS;
        let fields = Fields::from_bits(head[5] & ((1 << FIELD_BITS) - 1)).ok_or(FormError::Malformed)?;
        let lanes = u16::from_le_bytes([head[6], head[7]]);
        let form = CellForm { lanes: lanes & !SPARSE, is_sparse: lanes & SPARSE != 0 };
        let cells = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        let all = cells as usize;
        let fits =
            |written: &usize| *written == all || form.is_sparse && *written < all && all <= most_sparse(*written);
        form.written(bytes.len()).filter(fits).ok_or(FormError::Malformed)?;
        let can_fold = all.is_multiple_of(1 << folds) && all >> folds >= PLACES;
        if all > DigestShape::MOST_CELLS || !can_fold || form.lanes >> LANES != 0 {
            return Err(FormError::Malformed);
        }
        let (covered, check) = bytes.split_at(bytes.len() - CHECK);
        if check != crc32fast::hash(covered).to_le_bytes() {
            return Err(FormError::Corrupted);
        }
        let [seed, packets] = [word(&head[12..]), word(&head[20..])];
        let body = &covered[HEAD..];
        let mut from = 0;
        for (place, _) in form.cells(body) {
            if !(from..all).contains(&place) {
                return Err(FormError::Malformed);
            }
            from = place + 1;
        }
        Ok(Self { shape: DigestShape { cells, folds, seed, fields }, packets: packets as i64, form, body })
    }
}

const SPARSE: u16 = 1 << 15;

/// Largest number of cells of a digest whose form has only `written`, so that a few bytes cannot claim much memory.
fn most_sparse(written: usize) -> usize {
    (1 << 16).max(written.saturating_mul(16))
}

/// The first eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Fields that are written of each cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CellForm {
    lanes: u16,
    is_sparse: bool,
}

impl CellForm {
    fn chosen(self) -> impl Iterator<Item = usize> {
        (0..LANES).filter(move |lane| self.lanes >> lane & 1 == 1)
    }

    fn cell(self) -> usize {
        8 * (2 + usize::from(self.is_sparse) + self.lanes.count_ones() as usize)
    }

    fn size(self, cells: usize) -> usize {
        HEAD + cells * self.cell() + CHECK
    }

    /// The number of cells in a form of `bytes` bytes, if it ends with a whole cell.
    fn written(self, bytes: usize) -> Option<usize> {
        let all = bytes.checked_sub(HEAD + CHECK)?;
        all.is_multiple_of(self.cell()).then_some(all / self.cell())
    }

    /// The cells that are written, each with its place.
    fn cells(self, body: &[u8]) -> impl Iterator<Item = (usize, DigestCell)> {
        body.chunks_exact(self.cell()).enumerate().map(move |(nth, bytes)| {
            let mut words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
            let mut next = || words.next().unwrap_or(0);
            let place = if self.is_sparse { usize::try_from(next()).unwrap_or(usize::MAX) } else { nth };
            let mut cell = DigestCell { count: next() as i64, check: next(), ..DigestCell::default() };
            self.chosen().for_each(|lane| cell.lanes[lane] = next());
            (place, cell)
        })
    }
}
