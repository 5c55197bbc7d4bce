//! Answers that are mostly the same, in a fraction of a bit each: a binary range coder whose probabilities follow what it
//! has coded (G. N. N. Martin, *Range encoding*, 1979; carries as in LZMA).
//!
//! A stream ends with as few bytes as tell it from others; behind its end a reader sees zeros.

/// Probabilities are of 2¹⁶, and never closer than this to either end.
const LEAST: u16 = 24;
/// Range below which a byte is written.
const NARROW: u32 = 1 << 24;
/// A probability follows by a part that falls with what was seen, down to 2⁻⁶.
const MOST_SEEN: u8 = 64;
/// Bits that encode the length of a number.
const LENGTH_BITS: usize = 6;

/// Estimated probability that the answer is no.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitModel {
    no: u16,
    seen: u8,
}

impl Default for BitModel {
    fn default() -> Self {
        Self { no: 1 << 15, seen: 2 }
    }
}

impl BitModel {
    #[inline]
    fn learn(&mut self, bit: bool) {
        let shift = self.seen.ilog2();
        if bit {
            self.no -= (self.no - LEAST) >> shift;
        } else {
            self.no += (u16::MAX - LEAST - self.no) >> shift;
        }
        self.seen = (self.seen + 1).min(MOST_SEEN);
    }
}

/// Models of a number that is mostly small: how many bits it has, and the highest of them.
#[derive(Clone, Debug)]
pub(crate) struct NumberModel {
    length: [BitModel; 1 << LENGTH_BITS],
    second: [BitModel; 1 << LENGTH_BITS],
}

impl Default for NumberModel {
    fn default() -> Self {
        Self { length: [BitModel::default(); 1 << LENGTH_BITS], second: [BitModel::default(); 1 << LENGTH_BITS] }
    }
}

/// Writes a stream.
#[derive(Debug)]
pub(crate) struct RangeEncoder {
    low: u64,
    range: u32,
    /// A byte that a carry may still change, and the number of bytes 0xff behind it.
    held: u8,
    behind: u64,
    out: Vec<u8>,
}

impl RangeEncoder {
    pub(crate) fn new() -> Self {
        Self { low: 0, range: u32::MAX, held: 0, behind: 0, out: Vec::new() }
    }

    #[inline]
    pub(crate) fn bit(&mut self, model: &mut BitModel, bit: bool) {
        let bound = (self.range >> 16) * u32::from(model.no);
        model.learn(bit);
        self.low += if bit { u64::from(bound) } else { 0 };
        self.range = if bit { self.range - bound } else { bound };
        while self.range < NARROW {
            self.range <<= 8;
            self.shift();
        }
    }

    /// A number below 2⁶³.
    pub(crate) fn number(&mut self, model: &mut NumberModel, value: u64) {
        let length = 63 - (value + 1).leading_zeros() as usize;
        let mut node = 1;
        for at in (0..LENGTH_BITS).rev() {
            let bit = length >> at & 1 == 1;
            self.bit(&mut model.length[node], bit);
            node = node << 1 | usize::from(bit);
        }
        if length > 0 {
            self.bit(&mut model.second[length], (value + 1) >> (length - 1) & 1 == 1);
            self.plain(value + 1, length as u32 - 1);
        }
    }

    /// The lowest bits of a word, about which nothing is known: up to eight at a time.
    fn plain(&mut self, word: u64, mut bits: u32) {
        while bits > 0 {
            let some = bits.min(8);
            bits -= some;
            self.range >>= some;
            self.low += u64::from(self.range) * (word >> bits & ((1 << some) - 1));
            while self.range < NARROW {
                self.range <<= 8;
                self.shift();
            }
        }
    }

    /// An answer that nothing is known about.
    pub(crate) fn even(&mut self, bit: bool) {
        self.plain(u64::from(bit), 1);
    }

    fn shift(&mut self) {
        if self.low < 0xff00_0000 || self.low > u64::from(u32::MAX) {
            let carry = (self.low >> 32) as u8;
            self.out.push(self.held.wrapping_add(carry));
            for _ in 0..self.behind {
                self.out.push(0xff_u8.wrapping_add(carry));
            }
            self.behind = 0;
            self.held = (self.low >> 24) as u8;
        } else {
            self.behind += 1;
        }
        self.low = (self.low & 0x00ff_ffff) << 8;
    }

    /// The whole stream.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        // Among the numbers that end the stream, takes the one with the most trailing zeros.
        let end = self.low + u64::from(self.range) - 1;
        let zeros = (0..=32).rev().find(|zeros| end >> zeros << zeros >= self.low).unwrap_or(0);
        self.low = end >> zeros << zeros;
        for _ in 0..5 {
            self.shift();
        }
        let kept = self.out.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.out.truncate(kept);
        // The first byte that is held is there before anything was coded.
        if self.out.is_empty() { self.out } else { self.out.split_off(1) }
    }
}

/// Reads a stream.
#[derive(Debug)]
pub(crate) struct RangeDecoder<'a> {
    bytes: &'a [u8],
    at: usize,
    range: u32,
    code: u32,
}

impl<'a> RangeDecoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self { bytes, at: 0, range: u32::MAX, code: 0 };
        for _ in 0..4 {
            decoder.shift();
        }
        decoder
    }

    fn shift(&mut self) {
        let next = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        self.code = self.code << 8 | u32::from(next);
    }

    #[inline]
    pub(crate) fn bit(&mut self, model: &mut BitModel) -> bool {
        let bound = (self.range >> 16) * u32::from(model.no);
        let bit = self.code >= bound;
        if bit {
            self.code -= bound;
            self.range -= bound;
        } else {
            self.range = bound;
        }
        model.learn(bit);
        while self.range < NARROW {
            self.range <<= 8;
            self.shift();
        }
        bit
    }

    pub(crate) fn number(&mut self, model: &mut NumberModel) -> u64 {
        let mut node = 1;
        for _ in 0..LENGTH_BITS {
            node = node << 1 | usize::from(self.bit(&mut model.length[node]));
        }
        let length = node - (1 << LENGTH_BITS);
        if length == 0 {
            return 0;
        }
        let first = 2 | u64::from(self.bit(&mut model.second[length]));
        self.plain(first, length as u32 - 1) - 1
    }

    /// These bits behind those of `word`.
    fn plain(&mut self, mut word: u64, mut bits: u32) -> u64 {
        while bits > 0 {
            let some = bits.min(8);
            bits -= some;
            self.range >>= some;
            // Bytes that nobody wrote may ask for more than there is.
            let part = (self.code / self.range).min((1 << some) - 1);
            self.code -= part * self.range;
            word = word << some | u64::from(part);
            while self.range < NARROW {
                self.range <<= 8;
                self.shift();
            }
        }
        word
    }

    pub(crate) fn even(&mut self) -> bool {
        self.plain(0, 1) == 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_and_numbers_come_back(bits in proptest::collection::vec(any::<(bool, u64)>(), 0..300), skew in 0u32..63) {
            let (mut encoder, mut model, mut numbers) = (RangeEncoder::new(), BitModel::default(), NumberModel::default());
            for (bit, value) in &bits {
                encoder.bit(&mut model, *bit && value % 3 == 0);
                encoder.number(&mut numbers, value >> (skew + 1));
            }
            let bytes = encoder.finish();
            let (mut decoder, mut model, mut numbers) = (RangeDecoder::new(&bytes), BitModel::default(), NumberModel::default());
            for (bit, value) in &bits {
                prop_assert_eq!(decoder.bit(&mut model), *bit && value % 3 == 0);
                prop_assert_eq!(decoder.number(&mut numbers), value >> (skew + 1));
            }
        }
    }

    #[test]
    fn what_is_always_the_same_takes_next_to_nothing() {
        let (mut encoder, mut model) = (RangeEncoder::new(), BitModel::default());
        (0..10_000).for_each(|_| encoder.bit(&mut model, false));
        assert!(encoder.finish().is_empty());
        let (mut encoder, mut model) = (RangeEncoder::new(), BitModel::default());
        (0..10_000).for_each(|_| encoder.bit(&mut model, true));
        let bytes = encoder.finish();
        assert!(bytes.len() < 12, "{}", bytes.len());
    }
}
