//! A plain invertible Bloom lookup table, which counts packets without a flow filter (§4.8). Every packet adds its flow, so
//! cells hold arithmetic sums of keys and of hashes. The sums need more bits than a key or a hash, by the logarithm of the
//! number of packets.

use num_bigint::BigUint;

const ROWS: usize = 3;
/// Bits of a key: addresses, ports and protocol.
const KEY_BITS: u32 = 104;
/// Bits of a hash with which fewer than one table in a thousand takes a mixed cell for a flow.
const HASH_BITS: f64 = 29.0;
/// Bits of the packet counter (§4.5.1).
const COUNTER_BITS: f64 = 32.0;

/// A sum of keys: a number of the machine's, or one of a library for numbers of any size.
pub(super) trait KeySum: Clone + Default {
    fn of(key: u128, packets: u64) -> Self;
    fn add(&mut self, other: &Self);
    fn take(&mut self, other: &Self);
    /// The key whose sum over this many packets this is, if it is the sum of a single key.
    fn key(&self, packets: u64) -> Option<u128>;
}

impl KeySum for u128 {
    fn of(key: u128, packets: u64) -> Self {
        key * Self::from(packets)
    }

    fn add(&mut self, other: &Self) {
        *self += other;
    }

    fn take(&mut self, other: &Self) {
        *self -= other;
    }

    fn key(&self, packets: u64) -> Option<u128> {
        let packets = Self::from(packets);
        self.is_multiple_of(packets).then(|| self / packets)
    }
}

impl KeySum for BigUint {
    fn of(key: u128, packets: u64) -> Self {
        Self::from(key) * packets
    }

    fn add(&mut self, other: &Self) {
        *self += other;
    }

    fn take(&mut self, other: &Self) {
        *self -= other;
    }

    fn key(&self, packets: u64) -> Option<u128> {
        if self % packets == Self::ZERO { (self / packets).try_into().ok() } else { None }
    }
}

#[derive(Clone, Debug, Default)]
struct IbltCell<Sum> {
    packets: u64,
    keys: Sum,
    hashes: u64,
}

#[derive(Clone, Debug)]
pub(super) struct PlainIblt<Sum> {
    cells: Vec<IbltCell<Sum>>,
    row: usize,
}

/// The nth flow's key.
pub(super) fn key(nth: u64) -> u128 {
    (u128::from(hash(nth.into())) << 64 | u128::from(nth)) & ((1 << KEY_BITS) - 1)
}

impl<Sum: KeySum> PlainIblt<Sum> {
    pub(super) fn new(cells: usize) -> Self {
        let row = cells.div_ceil(ROWS);
        Self { cells: vec![IbltCell::default(); row * ROWS], row }
    }

    /// Adds packets of a flow, one after the other or at once.
    pub(super) fn add(&mut self, key: u128, packets: u64) {
        let (hash, keys) = (hash(key), Sum::of(key, packets));
        for at in self.places(hash) {
            let cell = &mut self.cells[at];
            cell.packets += packets;
            cell.keys.add(&keys);
            cell.hashes = cell.hashes.wrapping_add(hash.wrapping_mul(packets));
        }
    }

    fn places(&self, hash: u64) -> [usize; ROWS] {
        let of = |row: usize| {
            let bits = hash.rotate_left(21 * row as u32).wrapping_mul(0xd6e8_feb8_6659_fd93);
            row * self.row + ((u128::from(bits) * self.row as u128) >> 64) as usize
        };
        [of(0), of(1), of(2)]
    }

    /// A flow that is alone in its cell, by what must then be true of the sums.
    fn alone(&self, at: usize) -> Option<(u128, u64)> {
        let IbltCell { packets, keys, hashes } = &self.cells[at];
        let key = if *packets == 0 { None } else { keys.key(*packets) }?;
        (hash(key).wrapping_mul(*packets) == *hashes).then_some((key, *packets))
    }

    /// Takes flows out, one after the other, and returns their number.
    pub(super) fn decode(mut self) -> u64 {
        let mut candidates: Vec<u32> = (0..self.cells.len() as u32).collect();
        let mut flows = 0;
        while let Some(at) = candidates.pop() {
            let Some((key, packets)) = self.alone(at as usize) else { continue };
            flows += 1;
            let (hash, keys) = (hash(key), Sum::of(key, packets));
            for at in self.places(hash) {
                let cell = &mut self.cells[at];
                cell.packets -= packets;
                cell.keys.take(&keys);
                cell.hashes = cell.hashes.wrapping_sub(hash.wrapping_mul(packets));
                if cell.packets > 0 {
                    candidates.push(at as u32);
                }
            }
        }
        flows
    }

    /// Bytes in a switch: sums are wider than what they sum by the bits that the most packets of a cell need.
    pub(super) fn switch_bytes(&self) -> f64 {
        let most = self.cells.iter().map(|cell| cell.packets).max().unwrap_or(0);
        self.bytes_for(f64::from(u64::BITS - most.leading_zeros()))
    }

    /// Bytes in a switch whose sums have room for as many packets as the counter can count.
    pub(super) fn widest_bytes(&self) -> f64 {
        self.bytes_for(COUNTER_BITS)
    }

    fn bytes_for(&self, wider: f64) -> f64 {
        self.cells.len() as f64 * (f64::from(KEY_BITS) + HASH_BITS + 2.0 * wider + COUNTER_BITS) / 8.0
    }
}

fn hash(key: u128) -> u64 {
    let mixed = (key as u64 ^ (key >> 64) as u64).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded<Sum: KeySum>(flows: u64, cells: usize) -> u64 {
        let mut table = PlainIblt::<Sum>::new(cells);
        (0..flows).for_each(|nth| table.add(key(nth), 1 + nth % 50));
        table.decode()
    }

    #[test]
    fn a_table_with_room_is_decoded_and_a_full_one_is_not() {
        assert_eq!(decoded::<u128>(10_000, 12_900), 10_000);
        let full = decoded::<u128>(10_000, 11_000);
        assert!(full < 9_000);
        assert_eq!(decoded::<BigUint>(10_000, 12_900), 10_000);
        assert_eq!(decoded::<BigUint>(10_000, 11_000), full);
    }
}
