//! Ground truth: the packets that the network itself reports as lost. Results are compared with it, never derived from it.

use machine::DropReason;
use radar::signature::Signature;
use units::Time;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrueDrops {
    /// Packets lost, by the link behind whose upstream end it happened and by cause; ordered.
    counts: Vec<((u32, DropReason), u64)>,
    /// Drops in the order in which they happened; only if asked for.
    pub dropped: Vec<TrueDrop>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrueDrop {
    pub at: Time,
    pub link: u32,
    pub why: DropReason,
    /// The link whose upstream meter it last passed, and its batch there.
    pub segment: u32,
    pub batch: u64,
    pub signature: Signature,
}

impl TrueDrops {
    pub(super) fn count(&mut self, link: u32, why: DropReason) {
        match self.counts.binary_search_by_key(&(link, why), |(key, _)| *key) {
            Ok(at) => self.counts[at].1 += 1,
            Err(at) => self.counts.insert(at, ((link, why), 1)),
        }
    }

    /// Packets lost, by link and cause.
    pub fn counts(&self) -> impl Iterator<Item = (u32, DropReason, u64)> + '_ {
        self.counts.iter().map(|((link, why), packets)| (*link, *why, *packets))
    }

    pub fn lost(&self) -> u64 {
        self.counts.iter().map(|(_, packets)| packets).sum()
    }
}
