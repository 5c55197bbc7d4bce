//! Packets that one capture has and the other lacks, so far.
//!
//! Invariant: the digest never has more packets in it than can be decoded, because it is checked again before that many
//! have come. If more is pending than there is memory for, every second packet is left out of everything from then on, by a
//! bit of its hash: the remainder is still exact.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::side::AttemptStop;
use crate::digest::{Digest, DigestShape};
use crate::signature::{Fields, Signature, fold};

/// Stands for a signature in tables: two hashes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SignatureKey(u64, u64);

impl SignatureKey {
    #[inline]
    pub(crate) fn of(signature: &Signature) -> Self {
        Self(signature.hash(0x243f_6a88_85a3_08d3), signature.hash(0x1319_8a2e_0370_7344))
    }
}

impl std::hash::Hash for SignatureKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

/// Hasher for keys that are hashes already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = fold(self.0 ^ u64::from(*byte), 0x9e37_79b9_7f4a_7c15);
        }
    }

    #[inline]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

pub(crate) type SignatureMap<K, V> = HashMap<K, V, BuildHasherDefault<IdentityHasher>>;

/// One hash of a packet that is cheap: equal packets have equal ones.
#[inline]
pub(crate) fn quick(signature: &Signature) -> u64 {
    let lanes = &signature.0;
    let mixed = fold(lanes[0] ^ lanes[3] ^ 0x243f_6a88_85a3_08d3, lanes[1] ^ lanes[2] ^ 0x1319_8a2e_0370_7344);
    fold(mixed ^ lanes[5], 0x9e37_79b9_7f4a_7c15)
}

/// Hash that distinguishes the flow of a packet from most others, as far as its signature has the flow.
#[inline]
pub(crate) fn flow_hash(signature: &Signature) -> u32 {
    let lanes = &signature.0;
    (fold(lanes[0] ^ lanes[6] ^ lanes[7], lanes[1] >> 8 ^ lanes[8] ^ lanes[9] ^ 0xa409_3822_299f_31d0) >> 32) as u32
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingDifference {
    /// Number of packets that UP has more than DOWN.
    pub count: i32,
    pub flow: u32,
}

/// Packets that are missing on one side, by signature.
#[derive(Clone, Debug, Default)]
pub(crate) struct MissingPackets {
    pub table: SignatureMap<SignatureKey, PendingDifference>,
    /// Packets whose key has one of these bits are left out.
    mask: u64,
    most: usize,
}

impl MissingPackets {
    #[inline]
    pub(crate) fn is_left_out(&self, signature: &Signature) -> bool {
        self.mask != 0 && SignatureKey::of(signature).0 & self.mask != 0
    }

    /// The number of packets that each packet that is not left out stands for, itself included.
    pub(crate) fn scale(&self) -> u64 {
        1 << self.mask.count_ones()
    }

    fn add(&mut self, signature: &Signature, times: i32) {
        use std::collections::hash_map::Entry;
        match self.table.entry(SignatureKey::of(signature)) {
            Entry::Vacant(entry) => {
                entry.insert(PendingDifference { count: times, flow: flow_hash(signature) });
            }
            Entry::Occupied(mut entry) => {
                entry.get_mut().count = entry.get().count.saturating_add(times);
                if entry.get().count == 0 {
                    entry.remove();
                }
            }
        }
    }
}

/// Cells of the digest: small enough to stay in a processor's cache.
const CELLS: usize = 3 << 11;
/// Packets for each cell that are decoded all but certainly.
const FULL: f64 = 0.6;
/// Bytes for each missing packet, with its details later.
const BYTES_EACH: u64 = 192;

pub(crate) struct CaptureDifference {
    digest: Option<Digest>,
    /// Packets that may come before the digest must be looked at.
    unseen: usize,
    missing: MissingPackets,
}

impl CaptureDifference {
    /// An empty difference; unbounded if `memory` is `None`.
    pub(crate) fn new(fields: Fields, with_digest: bool, memory: Option<u64>) -> Self {
        let digest = with_digest.then(|| Digest::new(DigestShape::new(CELLS, 0x5851_f42d_4c95_7f2d, fields)));
        let most = memory.map_or(usize::MAX, |bytes| usize::try_from(bytes / BYTES_EACH).unwrap_or(usize::MAX).max(16));
        let missing = MissingPackets { most, ..MissingPackets::default() };
        Self { digest, unseen: Self::room(0.0), missing }
    }

    /// The number of packets that certainly fit beside `packets` others.
    fn room(packets: f64) -> usize {
        (CELLS as f64 * FULL - packets).max(1.0) as usize
    }

    #[inline]
    pub(crate) fn put(&mut self, signature: &Signature, is_up: bool) -> Result<(), AttemptStop> {
        if self.missing.is_left_out(signature) {
            return Ok(());
        }
        let Some(digest) = &mut self.digest else {
            self.missing.add(signature, if is_up { 1 } else { -1 });
            return self.keep_bound();
        };
        if is_up {
            digest.insert(signature);
        } else {
            digest.remove(signature);
        }
        self.unseen -= 1;
        if self.unseen == 0 { self.look() } else { Ok(()) }
    }

    #[cold]
    fn look(&mut self) -> Result<(), AttemptStop> {
        let estimate = self.digest.as_ref().map_or(0.0, Digest::estimate);
        if estimate > CELLS as f64 * FULL / 2.0 {
            self.drain()?;
            self.unseen = Self::room(0.0);
        } else {
            self.unseen = Self::room(estimate);
        }
        self.keep_bound()
    }

    /// Empties the digest into the table.
    fn drain(&mut self) -> Result<(), AttemptStop> {
        let Some(digest) = &mut self.digest else { return Ok(()) };
        let decoded = digest.decode();
        if decoded.left.is_some() {
            return Err(AttemptStop::Stuck);
        }
        decoded.lost.iter().for_each(|(signature, times)| self.missing.add(signature, *times as i32));
        decoded.extra.iter().for_each(|(signature, times)| self.missing.add(signature, -(*times as i32)));
        Ok(())
    }

    fn keep_bound(&mut self) -> Result<(), AttemptStop> {
        while self.missing.table.len() > self.missing.most && self.missing.scale() < 1 << 32 {
            self.leave_out_half()?;
        }
        Ok(())
    }

    #[cold]
    fn leave_out_half(&mut self) -> Result<(), AttemptStop> {
        self.drain()?;
        self.unseen = Self::room(0.0);
        // Other bits than those that say where in the table a key is.
        self.missing.mask = self.missing.mask << 1 | 1 << 24;
        let mask = self.missing.mask;
        self.missing.table.retain(|key, _| key.0 & mask == 0);
        self.missing.table.shrink_to_fit();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<MissingPackets, AttemptStop> {
        self.drain()?;
        self.keep_bound()?;
        Ok(self.missing)
    }
}
