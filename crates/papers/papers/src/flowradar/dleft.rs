//! d-left hashing: a flow goes into the emptiest of d buckets, one in each part of the table (§4.8).

use faults::Random;

/// The share of flows that find all their buckets full, in a table of this many cells, `deep` in each bucket.
pub(super) fn overflow(flows: u64, cells: usize, parts: usize, deep: u8, seed: u64) -> f64 {
    let buckets = cells / parts / usize::from(deep);
    let mut loads = vec![0_u8; parts * buckets];
    let mut random = Random::new(seed, flows);
    let refused = (0..flows).filter(|_| {
        let mut bucket = |part: usize| part * buckets + random.below(buckets as u64) as usize;
        // The first of those that are equal is the leftmost.
        let emptiest = (0..parts).map(&mut bucket).collect::<Vec<_>>().into_iter().min_by_key(|at| loads[*at]);
        let Some(at) = emptiest.filter(|at| loads[*at] < deep) else { return true };
        loads[at] += 1;
        false
    });
    refused.count() as f64 / flows as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_overflows_when_it_must_and_not_when_it_is_empty() {
        assert_eq!(overflow(100, 40_000, 4, 1, 1), 0.0);
        let overflow = overflow(2_000, 1_000, 4, 1, 1);
        assert!((0.5..0.6).contains(&overflow), "{overflow}");
    }
}
