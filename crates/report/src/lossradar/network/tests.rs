use super::*;

#[test]
fn claims_are_read_and_memory_is_the_theses() {
    let mut part = InNetwork::read().unwrap();
    assert_eq!(part.ids(), ["lr.capture", "lr.cause", "lr.partial"]);
    part.retain(&|id| id == "lr.partial");
    let effort = Effort { scale: Scale::Quick, jobs: 1, seed: 1, watch: &sim::link::Unwatched };
    let found = part.run(&effort).unwrap();
    assert!(found[0].rows.iter().all(|row| row.verdict == crate::experiment::Verdict::Match), "{:?}", found[0].rows);
}
