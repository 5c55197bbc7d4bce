//! A meter's digest of the packets that passed it: LossRadar, li-thesis §5.3.1, with the two-way difference of §5.8.
//!
//! A packet goes into three cells. The digest of the meter upstream less that of the meter downstream
//! has only the packets that one of them did not see. A cell with one packet in it shows which packet it is. The
//! decoder takes that packet out of its other cells, which leaves other packets alone in theirs:
//!
//! ```text
//!   upstream     a+b  c+d  a+c  b+d  a+c  b+d      downstream   b  d  -  b+d  -  b+d      difference   a  c  a+c  -  a+c  -
//! ```
//!
//! The thesis adds packets up by XOR. Then two packets that are alike cancel out, and where IP packets have no
//! identification a retransmission is like its original. Here a cell has wrapping sums of 56-bit lanes, which cost the
//! same: a cell with `n` packets that are all alike has `n` times their lanes, so both the packet and `n` can be
//! decoded.
//!
//! Invariants: what is decoded is what one meter saw and the other did not, and each signature is there once; if that is not
//! all, [`DecodedDigest::left`] says how many packets are missing; subtracting and merging commute.

mod folding;
mod form;
mod sizing;

use std::fmt;

use crate::signature::{Fields, LANE_BITS, LANES, Signature, fold};

pub use crate::form::FormError;
pub use form::PackedDigest;

/// Cells that a packet goes into (the thesis's k).
pub(crate) const PLACES: usize = 3;
/// The largest number of equal packets that can be decoded from a cell.
const MOST_ALIKE: i64 = 127;

/// Parameters that two digests must share to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestShape {
    cells: u32,
    /// Number of times that the digest can be folded in half (`folding`).
    folds: u8,
    pub seed: u64,
    pub fields: Fields,
}

impl DigestShape {
    /// Shape with `cells` cells, but no fewer than a packet needs.
    pub fn new(cells: usize, seed: u64, fields: Fields) -> Self {
        Self { cells: cells.clamp(PLACES, Self::MOST_CELLS) as u32, folds: 0, seed, fields }
    }

    /// More than a gigabyte of cells is a mistake.
    pub const MOST_CELLS: usize = 12 << 20;

    pub fn cells(&self) -> usize {
        self.cells as usize
    }

    /// Memory use of a digest of this shape, in bytes.
    pub fn bytes(&self) -> usize {
        self.cells() * size_of::<DigestCell>()
    }

    /// Three cells, none of them twice: not even after folding.
    #[inline]
    fn places(&self, hash: u64) -> [usize; PLACES] {
        let other = fold(hash, 0x9e37_79b9_7f4a_7c15);
        let below = |part: u32, most: u32| ((u64::from(part) * u64::from(most)) >> 32) as u32;
        let cells = self.cells >> self.folds;
        let one = below((hash >> 32) as u32, cells);
        let mut two = below(hash as u32, cells - 1);
        two += u32::from(two >= one);
        let mut three = below((other >> 32) as u32, cells - 2);
        three += u32::from(three >= one.min(two));
        three += u32::from(three >= one.max(two));
        let mask = (1 << self.folds) - 1;
        let unfolded = |place: u32, nth: u32| (place + cells * (other as u32 >> (8 * nth) & mask)) as usize;
        [unfolded(one, 0), unfolded(two, 1), unfolded(three, 2)]
    }
}

/// Vouches that a cell's lanes are those of one packet.
#[inline]
fn check(hash: u64) -> u64 {
    fold(hash ^ 0xa54f_f53a_5f1d_36f1, 0xc2b2_ae3d_27d4_eb4f) >> (64 - LANE_BITS)
}

/// Sums over the packets in it. The lanes that IPv4 needs fit in the first 64 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub(crate) struct DigestCell {
    count: i64,
    check: u64,
    lanes: [u64; LANES],
}

impl DigestCell {
    #[inline]
    fn add(&mut self, signature: &Signature, check: u64, times: i64) {
        self.count = self.count.wrapping_add(times);
        self.check = self.check.wrapping_add(check.wrapping_mul(times as u64));
        for (sum, lane) in self.lanes.iter_mut().zip(signature.lanes()) {
            *sum = sum.wrapping_add(lane.wrapping_mul(times as u64));
        }
    }

    fn combine(&mut self, other: &Self, sign: u64) {
        self.count = self.count.wrapping_add(other.count.wrapping_mul(sign as i64));
        self.check = self.check.wrapping_add(other.check.wrapping_mul(sign));
        for (sum, lane) in self.lanes.iter_mut().zip(other.lanes) {
            *sum = sum.wrapping_add(lane.wrapping_mul(sign));
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Signature of the cell's packets if they are all alike, with its hash and their number.
    fn alike(&self, seed: u64) -> Option<(Signature, u64, i64)> {
        let times = self.count;
        if times == 0 || times.unsigned_abs() > MOST_ALIKE as u64 {
            return None;
        }
        let share = |sum: u64| {
            let sum = sum as i64;
            (sum.checked_rem(times)? == 0).then(|| (sum / times) as u64)
        };
        let mut lanes = [0; LANES];
        for (lane, sum) in lanes.iter_mut().zip(self.lanes) {
            *lane = share(sum)?;
        }
        let signature = Signature::from_lanes(lanes)?;
        let hash = signature.hash(seed);
        (share(self.check)? == check(hash)).then_some((signature, hash, times))
    }
}

/// The packets that passed a meter, in cells whose number depends on the losses to be found and not on the packets.
///
/// ```
/// use radar::digest::{Digest, DigestShape};
/// use radar::packet::{Flow, Packet};
/// use radar::signature::{Fields, Signature};
///
/// let flow = Flow { src: [10, 0, 0, 1].into(), dst: [10, 0, 0, 2].into(), protocol: 17, src_port: 4_000, dst_port: 53 };
/// let packet = |ip_id| Packet { flow, ip_id: Some(ip_id), fragment: 0, tcp: None, ttl: 64, content: 0 };
/// let shape = DigestShape::new(12, 1, Fields::ALL);
/// let (mut upstream, mut downstream) = (Digest::new(shape), Digest::new(shape));
/// for ip_id in 0..1_000 {
///     let signature = Signature::new(&packet(ip_id), Fields::ALL);
///     upstream.insert(&signature);
///     if ip_id != 617 {
///         downstream.insert(&signature);
///     }
/// }
///
/// upstream.subtract(&downstream)?;
/// let lost = upstream.decode().lost;
/// assert_eq!(lost, [(Signature::new(&packet(617), Fields::ALL), 1)]);
/// assert_eq!((lost[0].0.flow(), lost[0].0.ip_id()), (flow, Some(617)));
/// # Ok::<(), radar::digest::DigestMismatch>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    shape: DigestShape,
    cells: Vec<DigestCell>,
    /// Packets put in, less those taken out.
    packets: i64,
}

/// Error: two digests have different shapes, so there is no difference between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestMismatch {
    pub ours: DigestShape,
    pub theirs: DigestShape,
}

impl fmt::Display for DigestMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ours, theirs } = self;
        let what = if ours.base().cells != theirs.base().cells {
            format!("{} cells and {}", ours.cells(), theirs.cells())
        } else if ours.seed != theirs.seed {
            format!("seed {} and seed {}", ours.seed, theirs.seed)
        } else {
            "different fields of packets".to_owned()
        };
        write!(f, "digests of different shapes ({what}): start both meters with the same options")
    }
}

impl std::error::Error for DigestMismatch {}

/// Contents of a difference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecodedDigest {
    /// Packets that the first digest has more of: lost, or not yet arrived.
    pub lost: Vec<(Signature, u32)>,
    /// Packets that the second has more of.
    pub extra: Vec<(Signature, u32)>,
    /// Packets that could not be decoded, if any.
    pub left: Option<UndecodedPackets>,
}

/// Packets whose names are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndecodedPackets {
    /// Exact number of packets that the first digest has more than the second.
    pub net: i64,
    /// The first digest has at least `lost` packets that the second lacks; the second has at least `extra` that the
    /// first lacks.
    pub lost: u64,
    pub extra: u64,
}

impl Digest {
    pub fn new(shape: DigestShape) -> Self {
        Self { shape, cells: vec![DigestCell::default(); shape.cells()], packets: 0 }
    }

    pub fn shape(&self) -> DigestShape {
        self.shape
    }

    /// Packets put in, less those taken out.
    pub fn packets(&self) -> i64 {
        self.packets
    }

    pub fn clear(&mut self) {
        self.cells.fill(DigestCell::default());
        self.packets = 0;
    }

    /// A packet has passed.
    #[inline]
    pub fn insert(&mut self, signature: &Signature) {
        self.insert_hashed(signature, signature.hash(self.shape.seed));
    }

    /// A packet has passed at the other end: what [`subtract`](Self::subtract) does with all of them.
    #[inline]
    pub fn remove(&mut self, signature: &Signature) {
        self.remove_hashed(signature, signature.hash(self.shape.seed));
    }

    /// A call of its own: where it is inlined into a crate of many codegen units, its loop over lanes is not. Here the loop
    /// needs no multiplication.
    fn insert_hashed(&mut self, signature: &Signature, hash: u64) {
        self.put_hashed(signature, hash, 1);
    }

    /// A call of its own, as [`insert_hashed`](Self::insert_hashed).
    fn remove_hashed(&mut self, signature: &Signature, hash: u64) {
        self.put_hashed(signature, hash, -1);
    }

    #[inline(always)]
    fn put_hashed(&mut self, signature: &Signature, hash: u64, times: i64) {
        self.packets = self.packets.wrapping_add(times);
        let check = check(hash);
        for place in self.shape.places(hash) {
            self.cells[place].add(signature, check, times);
        }
    }

    pub fn merge(&mut self, other: &Self) -> Result<(), DigestMismatch> {
        self.combine(other, 1)
    }

    pub fn subtract(&mut self, other: &Self) -> Result<(), DigestMismatch> {
        self.combine(other, u64::MAX)
    }

    fn combine(&mut self, other: &Self, sign: u64) -> Result<(), DigestMismatch> {
        if self.shape != other.shape {
            return Err(DigestMismatch { ours: self.shape, theirs: other.shape });
        }
        for (cell, theirs) in self.cells.iter_mut().zip(&other.cells) {
            cell.combine(theirs, sign);
        }
        self.packets = self.packets.wrapping_add(other.packets.wrapping_mul(sign as i64));
        Ok(())
    }

    /// Does the same as [`merge`](Self::merge) with a digest that is still in the form in which it was sent; the cost is
    /// that of the cells that are written.
    pub(crate) fn merge_packed(&mut self, other: &PackedDigest) -> Result<(), DigestMismatch> {
        self.combine_packed(other, 1)
    }

    pub(crate) fn subtract_packed(&mut self, other: &PackedDigest) -> Result<(), DigestMismatch> {
        self.combine_packed(other, u64::MAX)
    }

    /// A larger one is folded on the way.
    fn combine_packed(&mut self, other: &PackedDigest, sign: u64) -> Result<(), DigestMismatch> {
        if !other.shape().folds_to(self.shape) {
            return Err(DigestMismatch { ours: self.shape, theirs: other.shape() });
        }
        for (place, theirs) in other.cells() {
            self.cells[place % self.shape.cells()].combine(&theirs, sign);
        }
        self.packets = self.packets.wrapping_add(other.packets().wrapping_mul(sign as i64));
        Ok(())
    }

    /// Memory use in bytes.
    pub fn bytes(&self) -> usize {
        self.shape.bytes()
    }

    /// Takes out every packet that can be decoded; the others stay in the digest.
    pub fn decode(&mut self) -> DecodedDigest {
        let mut decoded = DecodedDigest::default();
        let mut candidates: Vec<usize> = (0..self.cells.len()).collect();
        // A digest of packets has fewer than its cells. One that somebody made up must come to an end too.
        let mut most = self.cells.len();
        while let Some(at) = candidates.pop() {
            let Some((signature, hash, times)) = self.cells[at].alike(self.shape.seed) else { continue };
            let places = self.shape.places(hash);
            if !places.contains(&at) || most == 0 {
                continue;
            }
            most -= 1;
            self.put_hashed(&signature, hash, -times);
            candidates.extend(places.into_iter().filter(|place| *place != at));
            let list = if times > 0 { &mut decoded.lost } else { &mut decoded.extra };
            list.push((signature, times.unsigned_abs() as u32));
        }
        decoded.left = self.left();
        decoded
    }

    /// Packets still in the digest. A packet is in three cells, and in each a packet of the other digest may hide it: so
    /// there are at least a third of the packets that the cells show.
    fn left(&self) -> Option<UndecodedPackets> {
        if self.cells.iter().all(DigestCell::is_empty) {
            return None;
        }
        let least = |sign: i64| {
            let of = |cell: &DigestCell| cell.count.saturating_mul(sign).max(0) as u64;
            self.cells.iter().map(of).fold(0, u64::saturating_add).div_ceil(PLACES as u64)
        };
        Some(UndecodedPackets { net: self.packets, lost: least(1), extra: least(-1) })
    }

    /// Estimates the number of packets in a difference from the share of empty cells.
    pub fn estimate(&self) -> f64 {
        let empty = self.cells.iter().filter(|cell| cell.count == 0 && cell.check == 0).count();
        let cells = self.cells.len() as f64;
        -(cells / PLACES as f64) * ((empty as f64).max(0.5) / cells).ln()
    }
}

#[cfg(test)]
pub(crate) mod tests;
