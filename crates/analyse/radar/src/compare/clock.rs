//! Offset between the clocks of two captures, from packets that both have.
//!
//! One packet in many is remembered until it is seen on the other side too. The merge uses the median of the last few
//! differences, so clocks may drift and jump; the offset includes the way between the captures.

use std::collections::HashMap;

use units::samples::upper_median;

/// One packet in 64 is timed: one whose hash has zeros in these bits. Both captures time the same packets.
const TIMED: u64 = (1 << 6) - 1;
const SLOTS: usize = 1 << 12;
/// Differences that make a median.
const RECENT: usize = 32;
/// Differences that are kept of a whole capture.
const KEPT: usize = 1 << 13;

#[derive(Clone, Copy, Debug, Default)]
struct OffsetSlot {
    hash: u64,
    at: i64,
    is_up: bool,
    is_free: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ClockOffset {
    /// Offset from UP's time to DOWN's, now; zero as long as it is not known.
    pub offset: i64,
    /// The offset at the beginning, if packets near it showed it.
    begins: Option<i64>,
    slots: Vec<OffsetSlot>,
    recent: Vec<i64>,
    kept: Vec<i64>,
    /// One difference in `every` is kept.
    every: usize,
    found: usize,
}

impl ClockOffset {
    pub(crate) fn new(begins: Option<i64>) -> Self {
        let free = OffsetSlot { is_free: true, ..OffsetSlot::default() };
        Self {
            offset: begins.unwrap_or(0),
            begins,
            slots: vec![free; SLOTS],
            recent: Vec::with_capacity(RECENT),
            kept: Vec::new(),
            every: 1,
            found: 0,
        }
    }

    /// True if the offset is known from packets that both captures have.
    pub(crate) fn is_known(&self) -> bool {
        self.begins.is_some() || !self.kept.is_empty()
    }

    #[inline]
    pub(crate) fn see(&mut self, hash: u64, at: i64, is_up: bool) {
        if hash & TIMED == 0 {
            self.time(hash, at, is_up);
        }
    }

    fn time(&mut self, hash: u64, at: i64, is_up: bool) {
        let slot = &mut self.slots[(hash >> 32) as usize % SLOTS];
        if !slot.is_free && slot.hash == hash && slot.is_up != is_up {
            let difference = if is_up { slot.at.saturating_sub(at) } else { at.saturating_sub(slot.at) };
            slot.is_free = true;
            self.note(difference);
        } else {
            *slot = OffsetSlot { hash, at, is_up, is_free: false };
        }
    }

    fn note(&mut self, difference: i64) {
        if self.found.is_multiple_of(self.every) {
            self.kept.push(difference);
        }
        self.found += 1;
        if self.kept.len() == KEPT {
            let mut at = 0;
            self.kept.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every *= 2;
        }
        self.recent.push(difference);
        if self.recent.len() == RECENT {
            self.offset = upper_median(&mut self.recent).unwrap_or(self.offset);
            self.recent.clear();
        }
    }

    /// Offset over the whole captures.
    pub(crate) fn skew(&self) -> Option<i64> {
        if self.kept.len() < RECENT { self.begins } else { upper_median(&mut self.kept.clone()) }
    }

    /// Change of the offset from the beginning to the end.
    pub(crate) fn drift(&self) -> i64 {
        if self.kept.len() < 2 * RECENT { 0 } else { self.at_end().saturating_sub(self.at_beginning()) }
    }

    /// Offset at a time between the beginning and the end of UP, in proportion; `None` if it is unknown.
    pub(crate) fn at(&self, time: i64, first: i64, last: i64) -> Option<i64> {
        let skew = self.skew()?;
        if self.kept.len() < 2 * RECENT || last <= first {
            return Some(skew);
        }
        let share = (time.saturating_sub(first)) as f64 / (last - first) as f64;
        Some(self.at_beginning().saturating_add((self.drift() as f64 * share.clamp(0.0, 1.0)) as i64))
    }

    pub(crate) fn at_beginning(&self) -> i64 {
        let first = || upper_median(&mut self.kept[..self.kept.len().min(RECENT)].to_vec());
        self.begins.or_else(first).unwrap_or(0)
    }

    pub(crate) fn at_end(&self) -> i64 {
        if self.kept.len() < RECENT {
            return self.at_beginning();
        }
        upper_median(&mut self.kept[self.kept.len() - RECENT..].to_vec()).unwrap_or(0)
    }
}

/// The offset between packets with a time and a hash each, from those that both lists have once.
pub(crate) fn offset(up: &[(u64, i64)], down: &[(u64, i64)]) -> Option<i64> {
    let up = once(up);
    let down = once(down);
    let mut differences: Vec<i64> =
        up.iter().filter_map(|(hash, at)| Some(down.get(hash)?.saturating_sub(*at))).collect();
    upper_median(&mut differences)
}

/// Times of the packets that are alike to no other.
fn once(packets: &[(u64, i64)]) -> HashMap<u64, i64> {
    let mut times: HashMap<u64, Option<i64>> = HashMap::with_capacity(packets.len());
    for (hash, at) in packets {
        times.entry(*hash).and_modify(|time| *time = None).or_insert(Some(*at));
    }
    times.into_iter().filter_map(|(hash, at)| Some((hash, at?))).collect()
}

/// The packets with the smallest hashes of a whole capture: of two captures that overlap, partly the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sketch {
    packets: Vec<(u64, i64)>,
    /// Largest hash that still belongs to the smallest ones.
    most: Option<u64>,
}

impl Sketch {
    const SIZE: usize = 1 << 12;

    pub(crate) fn see(&mut self, hash: u64, at: i64) {
        // The low bits choose what is timed; these do not.
        let rank = hash.rotate_left(32);
        if self.most.is_some_and(|most| rank > most) {
            return;
        }
        self.packets.push((rank, at));
        if self.packets.len() == 2 * Self::SIZE {
            self.packets.select_nth_unstable(Self::SIZE);
            self.packets.truncate(Self::SIZE);
            self.most = self.packets.iter().map(|(rank, _)| *rank).max();
        }
    }

    pub(crate) fn packets(&self) -> &[(u64, i64)] {
        &self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn mixed(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    #[test]
    fn a_drifting_clock_is_followed() {
        let mut clock = ClockOffset::new(Some(1_000));
        for number in 0..1_000_000_u64 {
            let at = number as i64 * 1_000;
            clock.see(mixed(number), at, true);
            clock.see(mixed(number), at + 1_000 + at / 10_000, false);
        }
        assert!((clock.offset - 101_000).abs() < 2_000, "{}", clock.offset);
        assert!((clock.drift() - 100_000).abs() < 3_000, "{}", clock.drift());
        assert!((clock.skew().unwrap() - 51_000).abs() < 2_000, "{:?}", clock.skew());
    }

    #[test]
    fn packets_that_come_twice_do_not_tell_the_time() {
        let up = [(1, 10), (2, 20), (2, 30), (3, 40)];
        let down = [(2, 999_999), (1, 110), (3, 140), (3, 150)];
        assert_eq!(offset(&up, &down), Some(100));
        assert_eq!(offset(&up, &[(7, 1)]), None);
    }

    #[test]
    fn sketches_of_captures_that_overlap_share_packets() {
        let sketch = |numbers: std::ops::Range<u64>, ahead: i64| {
            let mut sketch = Sketch::default();
            numbers.for_each(|number| sketch.see(mixed(number), number as i64 + ahead));
            sketch
        };
        let [up, down] = [sketch(0..300_000, 0), sketch(250_000..600_000, 77)];
        assert_eq!(offset(up.packets(), down.packets()), Some(77));
        assert!(up.packets().len() < 2 * Sketch::SIZE);
    }
}
