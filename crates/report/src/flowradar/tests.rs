use sim::link::Unwatched;

use super::*;
use crate::experiment::{Row, Scale, Verdict};
use crate::paper::Part;

fn effort() -> Effort<'static> {
    Effort { scale: Scale::Quick, jobs: 1, seed: 1, watch: &Unwatched }
}

#[test]
fn a_loop_is_seen_within_a_slot_and_a_blackhole_within_two() {
    let mut part = Coded::read("net", &IN_NETWORKS).unwrap();
    part.retain(&|id| id == "fr.loop");
    let found = part.run(&effort()).unwrap().remove(0);
    let differing: Vec<&Row> = found.rows.iter().filter(|row| row.verdict == Verdict::Differs).collect();
    assert!(differing.is_empty(), "{differing:?}");
}

#[test]
fn every_claim_of_the_thesis_can_be_asked_for() {
    let claims = PAPER.claims().unwrap();
    let ids: Vec<&str> = claims.ids().collect();
    assert_eq!(ids, ["fr.memory", "fr.extra", "fr.time", "fr.export", "fr.loss", "fr.loop"]);
}
