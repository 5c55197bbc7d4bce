use report::claim::{RunScale, Verdict};
use report::runner::Effort;
use units::Unwatched;

use super::runs::jain;
use crate::Claims;

#[test]
fn single_bottlenecks_come_out_as_in_the_thesis() {
    for claim in ["hpcc.fig13", "hpcc.fig6", "hpcc.int.packed"] {
        let claims = Claims::meant(&format!("hpcc/{claim}")).unwrap().unwrap();
        let effort = Effort { scale: RunScale::Quick, jobs: 2, seed: 1, progress: &Unwatched };
        let reproduction = claims.reproduce(&effort).unwrap();
        let differs = reproduction.points().find(|point| ![Verdict::Match, Verdict::Noted].contains(&point.verdict));
        assert!(differs.is_none(), "{differs:?}");
    }
}

#[test]
fn jains_index_is_one_if_all_have_the_same() {
    assert_eq!(jain(&[2.0; 4]), 1.0);
    assert_eq!(jain(&[8.0, 0.0, 0.0, 0.0]), 0.25);
}

#[test]
fn what_is_computed_matches_but_for_the_lemmas_third_part() {
    let claims = Claims::meant("hpcc/computed").unwrap().unwrap();
    let effort = Effort { scale: RunScale::Quick, jobs: 1, seed: 1, progress: &Unwatched };
    let reproduction = claims.reproduce(&effort).unwrap();
    let differs: Vec<&str> = reproduction
        .points()
        .filter(|point| point.verdict == Verdict::Differs)
        .map(|point| point.id.as_str())
        .collect();
    let expected = ["not-constant", "counterexample.after-2"].map(|id| format!("hpcc.theory.{id}"));
    assert_eq!(differs, expected);
    assert!(reproduction.points().all(|point| point.verdict != Verdict::TooFew));
}
