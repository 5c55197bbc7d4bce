use report::claim::{RunScale, Verdict};
use report::runner::Effort;
use units::Unwatched;

use crate::Claims;

#[test]
fn what_the_thesis_measured_comes_out_again_but_for_its_counts_of_devices() {
    let claims = Claims::meant("sundial").unwrap().unwrap();
    let effort = Effort { scale: RunScale::Quick, jobs: 2, seed: 1, progress: &Unwatched };
    let reproduction = claims.reproduce(&effort).unwrap();
    let differs = reproduction.points().filter(|point| point.verdict == Verdict::Differs);
    let differs: Vec<&str> = differs.map(|point| point.id.as_str()).collect();
    assert_eq!(differs, ["sun.fail.impacted.all", "sun.fail.affected.sundial", "sun.fail.affected.ptp+dtp"]);
    assert!(reproduction.points().all(|point| point.verdict != Verdict::TooFew));
}
