//! A script that differs, with as few steps as still differ.

use super::RandomScript;
use super::compare::Difference;

/// Every try takes as long as the script.
const MOST_TRIES: usize = 40;

/// Leaves out halves, quarters and so on of the steps, as long as a difference remains.
pub(super) fn shrunk(
    script: RandomScript,
    found: Difference,
    differs: impl Fn(&RandomScript) -> Option<Difference>,
) -> (RandomScript, Difference) {
    let (mut best, mut found, mut tries) = (script, found, 0);
    let mut part = best.steps.len().div_ceil(2);
    while part > 0 {
        let mut from = 0;
        while from < best.steps.len() && tries < MOST_TRIES {
            let mut candidate = best.clone();
            candidate.steps.drain(from..(from + part).min(best.steps.len()));
            tries += 1;
            match differs(&candidate) {
                Some(still) => (best, found) = (candidate, still),
                None => from += part,
            }
        }
        part /= 2;
    }
    (best, found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{RandomAction, RandomStep};
    use units::Span;

    #[test]
    fn what_does_not_matter_is_left_out() {
        let steps = (1..=20).map(|bytes| RandomStep { at: Span::ZERO, action: RandomAction::Write(bytes) }).collect();
        let script = RandomScript { name: String::new(), sack: true, ecn: false, rtt: Span::from_ms(1), steps };
        let has =
            |script: &RandomScript, bytes| script.steps.iter().any(|step| step.action == RandomAction::Write(bytes));
        let (small, _) = shrunk(script, Difference::default(), |candidate| {
            (has(candidate, 3) && has(candidate, 17)).then(Difference::default)
        });
        assert_eq!(small.steps.len(), 2);
    }
}
