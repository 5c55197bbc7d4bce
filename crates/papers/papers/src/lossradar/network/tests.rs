use report::claim::{RunScale, Verdict};
use report::runner::Effort;

use crate::lossradar::PAPER;

#[test]
fn claims_are_read_and_memory_is_the_theses() {
    let claims = PAPER.claims().unwrap();
    let in_network = claims.clone().select("net").unwrap();
    assert_eq!(in_network.ids().collect::<Vec<_>>(), ["lr.capture", "lr.cause", "lr.partial"]);
    let effort = Effort { scale: RunScale::Quick, jobs: 1, seed: 1, progress: &units::Unwatched };
    let reproduction = claims.select("lr.partial").unwrap().reproduce(&effort).unwrap();
    assert!(reproduction.points().all(|point| point.verdict == Verdict::Match), "{reproduction:?}");
}
