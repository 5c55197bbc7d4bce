//! Evidence from identifications of IPv4: packets of a sender that never came this far, and packets that came late.
//!
//! Linux numbers the packets of a connection one by one, also those that may not be fragmented; a super-frame takes one
//! number for each of its segments. Stacks that number otherwise make many steps that do not fit: their numbers are not
//! used.

/// Largest gap; a number further ahead means another way of numbering.
const WIDEST: i16 = 512;
/// Open gaps of one sender.
const MOST_GAPS: usize = 64;

/// A gap in the identifications of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdGap {
    first: u16,
    count: u16,
    /// Gaps in the identifications that data missed elsewhere accounts for.
    explained: u16,
    /// Time of the packet behind the gap, and the position up to which its sender had sent until then.
    pub at: u64,
    pub position: u64,
    /// Data that was missing before the gap: the gap may be a copy of it.
    pub hole: Option<(u64, u32)>,
    /// Number of identifications that may be copies of data that was missing before. The others are new data.
    copies: u16,
}

impl IdGap {
    /// Numbers of which nothing else is known.
    pub(crate) fn unexplained(&self) -> u16 {
        self.count.saturating_sub(self.explained)
    }

    /// Missing numbers that may be copies of missing data.
    pub(crate) fn unexplained_copies(&self) -> u16 {
        self.unexplained().min(self.copies)
    }
}

/// Relation of a packet's number to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdStep {
    InOrder,
    /// The number skips others.
    Ahead,
    /// The number was skipped before: the packet left earlier than others that came before it.
    Late,
    /// The number says nothing about order.
    Unrelated,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct IdSequence {
    expected: Option<u16>,
    fitting: u32,
    unfitting: u32,
    gaps: Vec<IdGap>,
}

impl IdSequence {
    /// A packet of as many segments.
    pub(crate) fn follow(&mut self, id: u16, segments: u16, at: u64, position: u64) -> IdStep {
        let Some(expected) = self.expected.replace(id.wrapping_add(segments)) else { return IdStep::Unrelated };
        match id.wrapping_sub(expected) as i16 {
            0 => {
                self.fitting += 1;
                IdStep::InOrder
            }
            ahead @ 1..=WIDEST => {
                self.fitting += 1;
                if self.gaps.len() < MOST_GAPS {
                    self.gaps.push(IdGap {
                        first: expected,
                        count: ahead as u16,
                        explained: 0,
                        at,
                        position,
                        hole: None,
                        copies: u16::MAX,
                    });
                }
                IdStep::Ahead
            }
            behind if behind < 0 && self.fill(id, segments) => {
                self.expected = Some(expected);
                IdStep::Late
            }
            behind => {
                self.unfitting += 1;
                if behind < 0 {
                    self.expected = Some(expected);
                }
                IdStep::Unrelated
            }
        }
    }

    /// A packet whose number is zero: it follows 65,535, or its stack does not count.
    pub(crate) fn follow_zero(&mut self, segments: u16) -> IdStep {
        if self.expected != Some(0) {
            return IdStep::Unrelated;
        }
        self.expected = Some(segments);
        IdStep::InOrder
    }

    /// Notes the possible contents of the latest gap: copies of a hole, `copies` at most, and new data.
    pub(crate) fn suspect(&mut self, hole: Option<(u64, u32)>, copies: u16) {
        if let Some(gap) = self.gaps.last_mut() {
            (gap.hole, gap.copies) = (hole, copies);
        }
    }

    /// Time of the gap, found before `before`, that held the data at this position, which looks new; `None` if no gap did.
    pub(crate) fn was_in_gap(&mut self, position: u64, mss: u32, before: u64) -> Option<u64> {
        let held = |gap: &&mut IdGap| {
            let end = gap.position + u64::from(gap.count) * u64::from(mss);
            gap.unexplained() > gap.copies && gap.at < before && (gap.position..end).contains(&position)
        };
        let gap = self.gaps.iter_mut().rev().find(held)?;
        gap.explained = gap.explained.saturating_add(1);
        Some(gap.at)
    }

    /// Number of identifications that the packet at `at` left out, if it came last; 0 if it left out none.
    pub(crate) fn last_gap(&self, at: u64) -> u16 {
        self.gaps.last().filter(|gap| gap.at == at).map_or(0, |gap| gap.count)
    }

    /// The last numbers of the last gap are known to be copies of data.
    pub(crate) fn explain_last(&mut self, count: u16) {
        if let Some(gap) = self.gaps.last_mut() {
            gap.explained = gap.explained.saturating_add(count);
        }
    }

    /// Explains missing identifications before the latest packet by `missing` segments of new data. Segments that the packet
    /// does not leave out itself were passed over earlier, by copies that left behind them.
    pub(crate) fn explain_earlier(&mut self, missing: u16, at: u64) {
        let mut left = missing.saturating_sub(self.last_gap(at));
        for gap in self.gaps.iter_mut().rev().filter(|gap| gap.at < at) {
            let explained = left.min(gap.unexplained());
            gap.explained = gap.explained.saturating_add(explained);
            left -= explained;
        }
    }

    /// Takes these numbers out of the gap that has them; false if no gap has them.
    fn fill(&mut self, id: u16, segments: u16) -> bool {
        let holds = |gap: &IdGap| id.wrapping_sub(gap.first) < gap.count;
        let Some(place) = self.gaps.iter().position(holds) else { return false };
        let gap = self.gaps[place];
        let before = id.wrapping_sub(gap.first);
        let filled = before.saturating_add(segments);
        let after = gap.count.saturating_sub(filled);
        // A late segment was not lost, whatever explained its absence.
        self.gaps[place].explained = gap.explained.saturating_sub(segments).min(before);
        self.gaps[place].count = before;
        if after > 0 {
            self.gaps.push(IdGap {
                first: id.wrapping_add(segments),
                count: after,
                explained: gap.explained.saturating_sub(filled),
                ..gap
            });
        }
        self.gaps.retain(|gap| gap.count > 0);
        true
    }

    #[inline]
    pub(crate) fn bytes_held(&self) -> usize {
        self.gaps.capacity() * size_of::<IdGap>()
    }

    /// True if numbers of this sender count its packets.
    pub(crate) fn counts(&self) -> bool {
        self.fitting >= 2 && self.fitting >= 16 * self.unfitting
    }

    /// True if numbers of this sender count its packets, as far as few packets show.
    pub(crate) fn counts_a_little(&self) -> bool {
        self.unfitting == 0 || self.counts()
    }

    /// Gaps that nothing filled.
    pub(crate) fn gaps(&self) -> &[IdGap] {
        if self.counts() { &self.gaps } else { &[] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(sequence: &mut IdSequence, ids: &[u16]) -> Vec<IdStep> {
        ids.iter().map(|id| sequence.follow(*id, 1, 0, 0)).collect()
    }

    #[test]
    fn a_late_packet_fills_its_gap_and_a_lost_one_leaves_it() {
        let mut sequence = IdSequence::default();
        let steps = follow(&mut sequence, &[65_534, 65_535, 2, 1, 3, 0, 5]);
        let late = [steps[3], steps[5]];
        assert_eq!((late, steps[2]), ([IdStep::Late; 2], IdStep::Ahead));
        let gaps: Vec<_> = sequence.gaps().iter().map(|gap| (gap.first, gap.count)).collect();
        assert_eq!(gaps, [(4, 1)]);
    }

    #[test]
    fn numbers_that_do_not_count_show_nothing() {
        let mut sequence = IdSequence::default();
        follow(&mut sequence, &[7, 9_000, 40, 20_000, 22, 23, 25]);
        assert!(sequence.gaps().is_empty());
    }
}
