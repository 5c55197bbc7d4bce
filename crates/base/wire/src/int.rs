//! In-band telemetry of switches: records that hops write on a packet.
//!
//! HPCC (Li's thesis §2.5.1, Fig. 2.7). Behind UDP's header and before the base transport header stand
//!
//! ```text
//!   nHop (4)  pathID (12)                                 once; 0 when the sender emits it
//!   B (4)  TS (24, ns)  txBytes (20, 128 B)  qLen (16, 80 B)   for each switch, the first first
//! ```
//!
//! in network byte order. [`IntHop`] is exact, [`IntWord`] the 64 bits of Fig. 2.7: its queue saturates, its time and its bytes
//! wrap, and differences of two words are right as long as neither has wrapped more than once in between.

use std::fmt;

use units::{Bytes, Rate, Span, Time};

/// Record that one switch port writes on a packet that leaves it. Exact; counters never wrap in practice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntHop {
    /// Time at which the packet's first bit left.
    pub at: Time,
    /// Bytes that left the port before this packet, with preambles and gaps.
    pub tx_bytes: u64,
    /// Bytes that stayed in the queue; saturates.
    pub queue: u32,
    /// Rate of the port in Mb/s.
    pub rate_mbps: u32,
}

/// Telemetry that a data packet collected on its way and its acknowledgement brought back.
#[derive(Clone, Copy, Debug)]
pub struct TelemetrySample<'a> {
    /// XOR of the numbers of the switches on the path, 12 bits; a different value means a different path.
    pub path: u16,
    /// One entry for each switch, the first first.
    pub hops: &'a [IntHop],
}

impl IntHop {
    /// Bytes that had joined the port's queue until then, but for the packet itself, in the same unit as those that left.
    #[inline]
    pub fn rx_bytes(&self) -> u64 {
        self.tx_bytes.wrapping_add(u64::from(self.queue))
    }

    /// Rate of the port.
    pub fn rate(&self) -> Rate {
        Rate::from_bits_per_second(u64::from(self.rate_mbps) * 1_000_000)
    }
}

/// Telemetry of one hop in 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntWord(pub u64);

const TIME_BITS: u32 = 24;
const TX_BITS: u32 = 20;
const QUEUE_BITS: u32 = 16;

/// Rates that B can name, in Gb/s, by code; the other codes are free.
const SPEEDS_GBPS: [u32; 8] = [10, 25, 40, 50, 100, 200, 400, 800];

impl IntWord {
    /// Unit of the bytes sent.
    pub const TX_UNIT: u64 = 128;
    /// Unit of the queue's length.
    pub const QUEUE_UNIT: u32 = 80;
    /// Times are nanoseconds modulo this plus one.
    pub const TIME_MASK: u64 = (1 << TIME_BITS) - 1;
    /// Bytes sent are units modulo this plus one.
    pub const TX_MASK: u64 = (1 << TX_BITS) - 1;
    /// The longest queue, in units, that can be written.
    pub const QUEUE_MAX: u32 = (1 << QUEUE_BITS) - 1;
    /// Time after which time stamps repeat.
    pub const TIME_WRAP: Span = Span::from_ns(1 << TIME_BITS);

    /// `None` if B has no name for the port's rate.
    #[inline]
    pub fn pack(hop: &IntHop) -> Option<Self> {
        let speed = Self::speed_code(hop.rate_mbps)?;
        let time = (hop.at.as_ps() / 1_000) & Self::TIME_MASK;
        let tx = (hop.tx_bytes / Self::TX_UNIT) & Self::TX_MASK;
        let queue = (hop.queue / Self::QUEUE_UNIT).min(Self::QUEUE_MAX);
        Some(Self(speed << 60 | time << (TX_BITS + QUEUE_BITS) | tx << QUEUE_BITS | u64::from(queue)))
    }

    /// B for a port of this rate.
    #[inline]
    fn speed_code(rate_mbps: u32) -> Option<u64> {
        Some(match rate_mbps {
            10_000 => 0,
            25_000 => 1,
            40_000 => 2,
            50_000 => 3,
            100_000 => 4,
            200_000 => 5,
            400_000 => 6,
            800_000 => 7,
            _ => return None,
        })
    }

    /// True if B has a name for this rate.
    pub fn names(rate: Rate) -> bool {
        let mbps = rate.bits_per_second() / 1_000_000;
        rate.bits_per_second().is_multiple_of(1_000_000)
            && u32::try_from(mbps).is_ok_and(|mbps| Self::speed_code(mbps).is_some())
    }

    /// The fields as a hop that began at time 0, with bytes joined as far as they can be known: those that left and those that
    /// stay. `None` if B is a code without a meaning.
    #[inline]
    pub fn unpack(self) -> Option<IntHop> {
        let (tx_bytes, queue) = (self.tx_units() * Self::TX_UNIT, self.queue());
        Some(IntHop { at: Time::from_ps(self.time_ns() * 1_000), tx_bytes, queue, rate_mbps: self.rate_mbps()? })
    }

    /// Rate of the port; `None` for a code without a meaning.
    #[inline]
    pub fn rate_mbps(self) -> Option<u32> {
        SPEEDS_GBPS.get((self.0 >> 60) as usize).map(|gbps| gbps * 1_000)
    }

    /// Time at which the packet left, modulo the wrap.
    #[inline]
    pub fn time_ns(self) -> u64 {
        self.0 >> (TX_BITS + QUEUE_BITS) & Self::TIME_MASK
    }

    /// Units of bytes sent, modulo the wrap.
    #[inline]
    pub fn tx_units(self) -> u64 {
        self.0 >> QUEUE_BITS & Self::TX_MASK
    }

    /// Bytes in the queue, rounded down to units.
    #[inline]
    pub fn queue(self) -> u32 {
        (self.0 as u32 & Self::QUEUE_MAX) * Self::QUEUE_UNIT
    }

    /// Time from another word of the same port to this one, if less than a wrap lies between.
    pub fn time_since(self, before: Self) -> Span {
        Span::from_ns(self.time_ns().wrapping_sub(before.time_ns()) & Self::TIME_MASK)
    }

    /// Bytes that left since another word of the same port, if less than a wrap.
    pub fn bytes_since(self, before: Self) -> Bytes {
        Bytes::new((self.tx_units().wrapping_sub(before.tx_units()) & Self::TX_MASK) * Self::TX_UNIT)
    }

    /// Shortest time after which the bytes sent can be the same again at a port of this rate.
    pub fn bytes_wrap(rate: Rate) -> Span {
        rate.span_of(Bytes::new(Self::TX_UNIT << TX_BITS))
    }
}

/// All telemetry of a packet: Fig. 2.7 as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntHeader {
    path: u16,
    count: u8,
    words: [IntWord; IntHeader::MAX_HOPS],
}

/// Bytes that cannot be telemetry: fewer than the hops that they announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortInt {
    /// Bytes that the hops need, or the first two bytes.
    pub needed: usize,
    /// Bytes that are there.
    pub there: usize,
}

impl fmt::Display for ShortInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "telemetry needs {} bytes, and there are {}", self.needed, self.there)
    }
}

impl std::error::Error for ShortInt {}

impl Default for IntHeader {
    /// Header as the sender emits it.
    fn default() -> Self {
        Self { path: 0, count: 0, words: [IntWord(0); Self::MAX_HOPS] }
    }
}

impl IntHeader {
    /// nHop and pathID.
    pub const BASE: usize = 2;
    /// Bytes that each hop adds.
    pub const PER_HOP: usize = 8;
    /// Most hops that nHop can count.
    pub const MAX_HOPS: usize = 15;
    /// Bits of pathID.
    pub const PATH_MASK: u16 = 0x0fff;

    /// Length with this many hops: 42 bytes for 5.
    pub const fn len_with(hops: usize) -> usize {
        Self::BASE + Self::PER_HOP * hops
    }

    /// XOR of the numbers of the switches on the way.
    pub fn path(&self) -> u16 {
        self.path
    }

    /// Words of the switches, in the order in which the packet passed them.
    pub fn words(&self) -> &[IntWord] {
        &self.words[..usize::from(self.count)]
    }

    /// Adds the word of a switch when the packet leaves it. False, and nothing changes, if nHop cannot count further.
    #[must_use]
    pub fn push(&mut self, switch: u16, word: IntWord) -> bool {
        let Some(slot) = self.words.get_mut(usize::from(self.count)) else { return false };
        *slot = word;
        self.count += 1;
        self.path = (self.path ^ switch) & Self::PATH_MASK;
        true
    }

    /// Appends the bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend((u16::from(self.count) << 12 | self.path).to_be_bytes());
        out.extend(self.words().iter().flat_map(|word| word.0.to_be_bytes()));
    }

    /// Takes any bytes; what is behind the telemetry is not looked at.
    pub fn parse(bytes: &[u8]) -> Result<Self, ShortInt> {
        let there = bytes.len();
        let (base, mut rest) = bytes.split_first_chunk().ok_or(ShortInt { needed: Self::BASE, there })?;
        let base = u16::from_be_bytes(*base);
        let mut header = Self { path: base & Self::PATH_MASK, count: (base >> 12) as u8, ..Self::default() };
        let needed = Self::len_with(usize::from(header.count));
        for word in &mut header.words[..usize::from(header.count)] {
            let (first, behind) = rest.split_first_chunk().ok_or(ShortInt { needed, there })?;
            *word = IntWord(u64::from_be_bytes(*first));
            rest = behind;
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hop() -> impl Strategy<Value = IntHop> {
        (any::<u64>(), any::<u64>(), any::<u32>(), proptest::sample::select(&SPEEDS_GBPS[..])).prop_map(
            |(at, tx_bytes, queue, gbps)| IntHop { at: Time::from_ps(at), tx_bytes, queue, rate_mbps: gbps * 1_000 },
        )
    }

    #[test]
    fn a_word_has_the_bits_of_the_figure() {
        let hop = IntHop {
            at: Time::from_ps(0x00ab_cdef * 1_000),
            tx_bytes: 0x1_2345 * 128,
            queue: 0x6789 * 80,
            rate_mbps: 100_000,
        };
        assert_eq!(IntWord::pack(&hop), Some(IntWord(0x4abc_def1_2345_6789)));
    }

    #[test]
    fn five_hops_take_42_bytes() {
        assert_eq!(IntHeader::len_with(5), 42);
        let mut header = IntHeader::default();
        assert!((1..=5).all(|switch| header.push(switch, IntWord(u64::from(switch)))));
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        assert_eq!((bytes.len(), &bytes[..2]), (42, &[0x50, 0x01][..]));
        assert_eq!(bytes[2..10], [0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn a_queue_saturates_and_counters_wrap() {
        let rate_mbps = 400_000;
        let before =
            IntHop { at: Time::from_ps(16_777_215_000), tx_bytes: 134_217_600, rate_mbps, ..IntHop::default() };
        let after = IntHop { at: Time::from_ps(16_777_217_000), tx_bytes: 134_217_984, queue: 6_000_000, ..before };
        let [before, after] = [before, after].map(|hop| IntWord::pack(&hop).unwrap());
        assert_eq!(after.queue(), 65_535 * 80);
        assert_eq!((after.time_ns(), after.tx_units()), (1, 2));
        assert_eq!(after.time_since(before), Span::from_ns(2));
        assert_eq!(after.bytes_since(before), Bytes::new(384));
    }

    #[test]
    fn counters_wrap_when_the_arithmetic_says() {
        let ms = |gbps| IntWord::bytes_wrap(Rate::gbps(gbps)).as_us() / 1e3;
        assert!((ms(400) - 2.684).abs() < 0.001 && (ms(100) - 10.74).abs() < 0.01 && (ms(25) - 42.95).abs() < 0.01);
        assert!((IntWord::TIME_WRAP.as_us() - 16_777.216).abs() < 1e-6);
    }

    #[test]
    fn a_rate_without_a_name_is_refused() {
        for mbps in [0, 1, 92_000, 1_600_000, u32::MAX] {
            assert_eq!(IntWord::pack(&IntHop { rate_mbps: mbps, ..IntHop::default() }), None);
        }
        assert!(SPEEDS_GBPS.iter().all(|gbps| IntWord::names(Rate::gbps(u64::from(*gbps)))));
        assert!(!IntWord::names(Rate::from_bits_per_second(10_000_000_001)) && !IntWord::names(Rate::gbps(1_600)));
        assert!(
            (8..16).all(|code| IntWord(code << 60).rate_mbps().is_none() && IntWord(code << 60).unpack().is_none())
        );
    }

    #[test]
    fn no_switch_counts_beyond_fifteen() {
        let mut header = IntHeader::default();
        assert!((0..15).all(|_| header.push(0xffff, IntWord(7))));
        let full = header;
        assert!(!header.push(1, IntWord(9)));
        assert_eq!((header, header.path()), (full, 0xfff));
    }

    proptest! {
        #[test]
        fn what_is_unpacked_is_what_was_packed_to_a_unit(hop in hop()) {
            let seen = IntWord::pack(&hop).unwrap().unpack().unwrap();
            prop_assert_eq!(seen.rate_mbps, hop.rate_mbps);
            prop_assert_eq!(seen.at.as_ps() / 1_000, hop.at.as_ps() / 1_000 % (1 << 24));
            prop_assert_eq!(seen.tx_bytes / 128, hop.tx_bytes / 128 % (1 << 20));
            prop_assert_eq!(seen.queue, (hop.queue / 80).min(65_535) * 80);
            prop_assert_eq!(IntWord::pack(&seen), IntWord::pack(&hop));
        }

        #[test]
        fn differences_are_right_within_a_wrap(hop in hop(), ns in 0_u64..1 << 24, bytes in 0_u64..(1 << 27) - 128) {
            let at = Time::from_ps(hop.at.as_ps() / 2);
            let before = IntHop { at, tx_bytes: hop.tx_bytes / 2, ..hop };
            let after = IntHop { at: at + Span::from_ns(ns), tx_bytes: before.tx_bytes + bytes, ..hop };
            let [before, after] = [before, after].map(|hop| IntWord::pack(&hop).unwrap());
            prop_assert_eq!(after.time_since(before), Span::from_ns(ns));
            prop_assert!(after.bytes_since(before).get().abs_diff(bytes) < 128);
        }

        #[test]
        fn any_bytes_are_parsed_or_too_short(bytes in proptest::collection::vec(any::<u8>(), 0..140)) {
            match IntHeader::parse(&bytes) {
                Ok(header) => {
                    let mut again = Vec::new();
                    header.emit(&mut again);
                    prop_assert_eq!(&again[..], &bytes[..again.len()]);
                }
                Err(short) => prop_assert!(short.needed > short.there && short.there == bytes.len()),
            }
        }
    }
}
