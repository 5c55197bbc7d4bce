//! The Internet checksum (RFC 1071), fast enough to be taken of every frame.
//!
//! A [`Sum`] is a ones' complement sum in progress. It is kept in the order of memory, which RFC 1071 §2(B) allows, so
//! that words are loaded as they are; and it is additive, so that a part already known (a pseudo-header that the host
//! summed) is added or taken out instead of being read again. [`update`] carries a checksum on when a field changes.
//!
//! Invariant: adding bytes presumes that what was added before them had an even length.

/// A sum of 16-bit words with end-around carry, before it is folded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// Carries are kept in the upper halves and folded at the end: two such sums in turn keep the
    /// adder busy, and were faster than what the compiler makes of it with vectors of 128 bits.
    pub fn of(bytes: &[u8]) -> Self {
        let (blocks, tail) = bytes.as_chunks::<32>();
        let mut lanes = [0_u128; 2];
        for block in blocks {
            for (at, word) in block.as_chunks::<8>().0.iter().enumerate() {
                lanes[at % 2] += u128::from(u64::from_ne_bytes(*word));
            }
        }
        let sum = lanes[0] + lanes[1];
        let (low, high) = (sum as u64, (sum >> 64) as u64);
        Self((low >> 32) + (low & 0xffff_ffff) + high).and(Self::of_tail(tail))
    }

    #[inline]
    fn of_tail(tail: &[u8]) -> Self {
        let (words, rest) = tail.as_chunks::<4>();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        Self(words.iter().chain([&last]).map(|word| u64::from(u32::from_ne_bytes(*word))).sum())
    }

    /// Sum of the pseudo-header that TCP and UDP include; `addresses` are source and destination as they lie in an IPv4 or
    /// IPv6 header. The two versions differ only in padding, which does not change the sum.
    #[inline]
    pub fn pseudo_header(addresses: &[u8], protocol: u8, len: usize) -> Self {
        Self::of(addresses).and(Self::of_number(usize::from(protocol))).and(Self::of_number(len))
    }

    /// A number of at most 32 bits as it would stand in a header.
    #[inline]
    pub fn of_number(number: usize) -> Self {
        Self(u64::from((number as u32).to_be()))
    }

    /// The sum of both.
    #[inline]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// Takes out what was added before (RFC 1624 eqn. 3).
    #[inline]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 + u64::from(!other.fold()))
    }

    /// The sum itself, as the host leaves it in the field of a checksum to be completed.
    #[inline]
    pub fn folded(self) -> [u8; 2] {
        self.fold().to_ne_bytes()
    }

    /// The complement of the sum, as headers carry it.
    #[inline]
    pub fn checksum(self) -> [u8; 2] {
        (!self.fold()).to_ne_bytes()
    }

    /// Checksum for UDP: ones in place of zero, because a zero field means that no checksum was computed.
    #[inline]
    pub fn checksum_or_ones(self) -> [u8; 2] {
        match self.checksum() {
            [0, 0] => [0xff, 0xff],
            checksum => checksum,
        }
    }

    /// True if a sum that includes the checksum shows no error.
    #[inline]
    pub fn verifies(self) -> bool {
        self.fold() == 0xffff
    }

    #[inline]
    fn fold(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        sum as u16
    }
}

/// A checksum after `new` has taken the place of `old` in what it covers (RFC 1624 eqn. 3): what was right stays right,
/// what was wrong stays wrong. Both have the same even length.
#[inline]
pub fn update(checksum: [u8; 2], old: &[u8], new: &[u8]) -> [u8; 2] {
    Sum::of(&checksum.map(|byte| !byte)).without(Sum::of(old)).and(Sum::of(new)).checksum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_rfc_1071_is_found() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::of(&bytes).folded(), [0xdd, 0xf2]);
    }

    #[test]
    fn a_length_taken_out_and_another_put_in_is_the_sum_with_the_other() {
        let addresses = [192, 168, 0, 1, 10, 255, 3, 4];
        let long = Sum::pseudo_header(&addresses, 6, 60_020);
        let short = long.without(Sum::of_number(60_020)).and(Sum::of_number(1_468));
        assert_eq!(short.folded(), Sum::pseudo_header(&addresses, 6, 1_468).folded());
    }

    #[test]
    fn a_checksum_of_zero_is_sent_as_ones_and_verifies() {
        let sum = Sum::of(&[0xff, 0xff]);
        assert_eq!((sum.checksum(), sum.checksum_or_ones()), ([0, 0], [0xff, 0xff]));
        assert!(Sum::of(&[0xff, 0xff, 0xff, 0xff]).verifies());
    }
}
