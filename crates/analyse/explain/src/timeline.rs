//! Time that is spent once: every nanosecond from the beginning to the last payload belongs to one cause.
//!
//! A [`SpentTime`] only moves forward, and what it passes over it adds to a cause. So the parts add up to the duration
//! by construction: there is no other way to add to a part, and none to move without adding.

use super::terms::{EndSide, TimeCause};

const CAUSES: usize = TimeCause::ALL.len();

/// Nanoseconds by cause and end; small, because a capture has many requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartSums(Vec<(TimeCause, EndSide, u64)>);

impl PartSums {
    fn add(&mut self, cause: TimeCause, side: EndSide, ns: u64) {
        match self.0.iter_mut().find(|(known, end, _)| (*known, *end) == (cause, side)) {
            Some((_, _, sum)) => *sum += ns,
            None => {
                debug_assert!(self.0.len() < 2 * CAUSES, "a cause is listed once for each end");
                self.0.push((cause, side, ns));
            }
        }
    }

    /// The largest first.
    pub(crate) fn sorted(&self) -> Vec<(TimeCause, EndSide, u64)> {
        let mut parts = self.0.clone();
        parts.sort_by_key(|(cause, side, ns)| (std::cmp::Reverse(*ns), *cause, *side));
        parts
    }
}

/// A clock that is spent.
#[derive(Clone, Debug)]
pub(crate) struct SpentTime {
    start: u64,
    at: u64,
    parts: PartSums,
}

impl SpentTime {
    pub(crate) fn new(start: u64) -> Self {
        Self { start, at: start, parts: PartSums::default() }
    }

    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Time up to which everything is spent.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    pub(crate) fn duration(&self) -> u64 {
        self.at - self.start
    }

    pub(crate) fn parts(&self) -> &PartSums {
        &self.parts
    }

    /// Spends the time until then; nothing if that has passed.
    pub(crate) fn spend(&mut self, until: u64, cause: TimeCause, side: EndSide) {
        if until > self.at {
            self.parts.add(cause, side, until - self.at);
            self.at = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_add_up_whatever_is_spent(
            start in 0..u64::MAX / 2,
            steps in proptest::collection::vec((0..u64::from(u32::MAX), 0..CAUSES, any::<bool>()), 0..100),
        ) {
            let mut time = SpentTime::new(start);
            for (until, cause, client) in steps {
                let side = if client { EndSide::Client } else { EndSide::Server };
                time.spend(start + until, TimeCause::ALL[cause], side);
            }
            let sum: u64 = time.parts().sorted().iter().map(|(_, _, ns)| ns).sum();
            prop_assert_eq!(sum, time.duration());
        }
    }
}
