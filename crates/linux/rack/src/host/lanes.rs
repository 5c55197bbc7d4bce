//! Assignment of contexts to destinations.

use std::collections::BTreeMap;

use machine::QueueId;
use wire::reserve::HostKey;

/// More destinations than a rack has; those beyond are not remembered.
const MOST: usize = 1_024;

/// Contexts are given to destinations in the order in which these appear, and kept. Once all are given, further destinations
/// share them. A destination never has two.
#[derive(Debug)]
pub(super) struct LaneTable {
    lanes: u8,
    known: BTreeMap<HostKey, u8>,
}

impl LaneTable {
    pub(super) fn new(lanes: u8) -> Self {
        Self { lanes, known: BTreeMap::new() }
    }

    pub(super) fn lane(&mut self, to: HostKey) -> QueueId {
        if let Some(lane) = self.known.get(&to) {
            return QueueId(*lane);
        }
        let number = self.known.len();
        let lane = match u8::try_from(number) {
            Ok(number) if number < self.lanes => number,
            _ => (to.number() % u64::from(self.lanes)) as u8,
        };
        if number < MOST {
            self.known.insert(to, lane);
        }
        QueueId(lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_keeps_its_context_and_shares_it_only_if_there_are_too_few() {
        let mut table = LaneTable::new(3);
        let mut lane = |host: u64| table.lane(HostKey::new(host)).0;
        assert_eq!([70, 80, 90].map(&mut lane), [0, 1, 2]);
        let shared: Vec<u8> = (1_000..4_000).map(&mut lane).collect();
        assert_eq!((1_000..4_000).map(&mut lane).collect::<Vec<_>>(), shared, "also those that are not remembered");
        assert!(shared.iter().all(|lane| *lane < 3));
        assert_eq!([90, 80, 70].map(&mut lane), [2, 1, 0]);
    }
}
