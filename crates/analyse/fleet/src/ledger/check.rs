//! The books added up anew: what must be true of a ledger after any change.

use super::{Capacity, Ledger, LinkState, least_paths, protection, speed};
use crate::fabric::LinkId;
use crate::penalty::Penalty;

impl Ledger<'_> {
    /// Panics if any sum is not what the links' states amount to. Checks nothing in release builds.
    pub fn check_invariants(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        self.paths.check_invariants();
        let links = (0..self.states.len() as u32).map(LinkId);
        for link in links.clone() {
            let disabled = self.state(link) == LinkState::Disabled;
            assert_ne!(self.paths.is_enabled(link), disabled, "{link:?}: paths and state differ");
        }
        let penalty: Penalty = self.states.iter().map(|state| self.penalty(*state)).sum();
        assert_eq!(self.totals.penalty, penalty, "the total penalty");
        self.check_counts(links.clone());
        self.check_least();
        self.check_capacity(links);
    }

    fn check_counts(&self, links: impl Iterator<Item = LinkId> + Clone) {
        let count = |is: fn(LinkState) -> bool| self.states.iter().filter(|state| is(**state)).count() as u32;
        assert_eq!(self.totals.disabled, count(|state| state == LinkState::Disabled), "disabled links");
        let corrupting = count(|state| matches!(state, LinkState::Corrupting { .. }));
        assert_eq!(self.totals.corrupting, corrupting, "corrupting links");
        assert_eq!(self.totals.protected, count(|state| protection(state).is_some()), "protected links");
        let mut listed: Vec<(usize, LinkId)> = Vec::new();
        for (segment, corrupting) in self.corrupting.iter().enumerate() {
            listed.extend(corrupting.iter().map(|link| (segment, *link)));
        }
        listed.sort_unstable_by_key(|(_, link)| link.index());
        let is_corrupting = |link: &LinkId| matches!(self.state(*link), LinkState::Corrupting { .. });
        let segment = |link: LinkId| (self.fabric().link(link).segment as usize, link);
        assert!(links.clone().filter(is_corrupting).map(segment).eq(listed), "lists of corrupting links");
        let mut protected = vec![0; self.pipes.protected.len()];
        for link in links.filter(|link| protection(self.state(*link)).is_some()) {
            self.pipes.of[link.index()].iter().for_each(|pipe| protected[*pipe as usize] += 1);
        }
        assert_eq!(self.pipes.protected, protected, "protected links of pipes");
        assert_eq!(self.pipes.most(), protected.iter().copied().max().unwrap_or(0), "most in a pipe");
    }

    fn check_least(&self) {
        let segments = self.fabric().segments().iter();
        let least = segments.clone().map(|segment| least_paths(&self.paths, &segment.tors)).min();
        assert_eq!(Some(self.totals.least_paths), least, "least paths");
        let tors = segments.flat_map(|segment| &segment.tors);
        let share = tors.map(|&tor| self.paths.ways(tor) as f64 / self.paths.full(tor) as f64).fold(1.0, f64::min);
        assert_eq!(self.totals.least_share, share, "least share of paths");
    }

    fn check_capacity(&self, links: impl Iterator<Item = LinkId>) {
        let mut anew = Capacity::new(self.fabric());
        links.for_each(|link| anew.shift(self.fabric(), link, 1.0, speed(self.state(link))));
        assert_eq!(self.capacity.now, anew.now, "bits a second between levels");
        let least = (0..self.fabric().segments().len()).map(|segment| anew.share(segment)).fold(1.0, f64::min);
        assert_eq!(self.totals.least_capacity, least, "least capacity");
    }
}
