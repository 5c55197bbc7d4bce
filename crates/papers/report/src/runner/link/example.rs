//! Worked examples: a claim, and a measure that a claim can name.

use sim::link::{LinkSimMode, OfferedLoad};
use units::{Prob, Rate, Unwatched};

use super::{LinkRun, LinkTake, MEASURES, PointSetup};
use crate::claim::measure::{Measure, find};
use crate::claim::{Claim, MeasuredValue, RunScale, Verdict};
use crate::runner::{self, Effort};

/// Claim as in a file under `experiments/linkguardian`.
const CLAIM: &str = r#"
    id = "lg.example"
    title = "A link without loss"
    paper = "§4.1"
    claim = "Where nothing is lost, protection costs less than 1 % of the speed. A loss of 1e-3 needs two copies."
    runner = "link"

    [[point]]
    id = "speed"
    measure = "effective_speed"
    rate = "100G"
    loss = "0"
    mode = "ordered"
    kind = "claim"
    paper = 1.0
    band = [0.99, 1.0]

    [[point]]
    id = "copies"
    kind = "arithmetic"
    loss = "1e-3"
    paper = 2.0
    band = [2.0, 2.0]
"#;

#[test]
fn a_claim_is_read_run_and_judged() {
    assert_eq!(verdicts(CLAIM), [Verdict::Match, Verdict::Match]);
    let stricter = CLAIM.replace("band = [0.99, 1.0]", "band = [1.0, 1.0]");
    assert_eq!(verdicts(&stricter), [Verdict::Differs, Verdict::Match]);
}

fn verdicts(file: &str) -> Vec<Verdict> {
    let claim = Claim::parse("linkguardian/example.toml", file).unwrap();
    runner::check(&claim, &[]).unwrap();
    let effort = Effort { scale: RunScale::Quick, jobs: 1, seed: 1, progress: &Unwatched };
    let results = runner::run(&[claim], &[], &effort).unwrap();
    results[0].points.iter().map(|point| point.verdict).collect()
}

/// Measure as an entry of `MEASURES`.
const MEASURE: Measure<LinkTake> =
    Measure::new("sent_again", "1", "copies sent per frame found missing", |run: &LinkRun<'_>| {
        let (copies, missing) = (run.outcome?.retransmissions, run.outcome?.receiver.rx_missing_seq);
        (missing > 0).then(|| MeasuredValue::exact(copies as f64 / missing as f64, missing))
    });

#[test]
fn a_measure_is_an_entry_and_takes_a_value_from_a_run() {
    let table = [MEASURES, &[MEASURE]].concat();
    let take = find(&table, "sent_again").unwrap().take;

    let setup = PointSetup {
        rate: Rate::gbps(100),
        loss: Prob::literal(1e-2),
        mode: LinkSimMode::Ordered,
        load: OfferedLoad::Saturated,
    };
    let mut config = setup.config(RunScale::Quick, 1);
    (config.frames, config.copies) = (20_000, Some(2));
    let outcome = sim::link::run(&config, &Unwatched).unwrap();
    let measured = take(&LinkRun { loss: setup.loss, rate: Some(setup.rate), outcome: Some(&outcome) }).unwrap();
    assert!(measured.n > 100 && measured.value == 2.0, "{measured:?}");
    assert_eq!(
        take(&LinkRun { loss: setup.loss, rate: Some(setup.rate), outcome: None }),
        None,
        "without a run there is nothing to take"
    );
}
