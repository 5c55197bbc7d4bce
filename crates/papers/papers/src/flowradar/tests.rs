use report::claim::{PointResult, RunScale, Verdict};
use units::Unwatched;

use super::*;

#[test]
fn a_loop_is_seen_within_a_slot_and_a_blackhole_within_two() {
    let effort = Effort { scale: RunScale::Quick, jobs: 1, seed: 1, progress: &Unwatched };
    let reproduction = PAPER.claims().unwrap().select("fr.loop").unwrap().reproduce(&effort).unwrap();
    let differing: Vec<&PointResult> =
        reproduction.points().filter(|point| point.verdict == Verdict::Differs).collect();
    assert!(differing.is_empty(), "{differing:?}");
}

#[test]
fn every_claim_of_the_thesis_can_be_asked_for() {
    let claims = PAPER.claims().unwrap();
    let ids: Vec<&str> = claims.ids().collect();
    assert_eq!(
        ids,
        ["fr.memory", "fr.extra", "fr.time", "fr.export", "fr.counters", "fr.compare", "fr.loss", "fr.loop"]
    );
}
