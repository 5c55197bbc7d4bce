//! Traces of corruption: drawn ones have the statistics they were asked for; written ones are read or refused.

use std::collections::HashMap;
use std::time::Duration;

use fleet::fabric::{Facebook, SwitchNames};
use fleet::trace::{BucketSpread, CorruptionEvent, LossBucket, RepairTime, TABLE_1, TraceModel, parse, write_csv};
use fleet::{Fabric, LinkId};
use units::{Moment, Rate};

const YEAR: f64 = 365.0 * 24.0;
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// 24,576 links.
fn fabric() -> Fabric {
    Fabric::facebook(&Facebook::pods(64)).unwrap()
}

fn year(model: &TraceModel, seed: u64) -> Vec<CorruptionEvent> {
    model.generate(&fabric(), Moment::from_hours(YEAR), seed).unwrap()
}

/// Asserts that the share of `count` in `of` lies within four standard deviations of what is expected.
fn assert_share(count: usize, of: usize, expected: f64) {
    let deviation = (expected * (1.0 - expected) / of as f64).sqrt();
    let share = count as f64 / of as f64;
    assert!(
        (share - expected).abs() < 4.0 * deviation,
        "{count} of {of} is {share}, expected {expected} ± {deviation}"
    );
}

#[test]
fn a_year_of_the_papers_fabric_has_88_thousand_corruptions() {
    let fabric = Fabric::facebook(&Facebook::pods(261)).unwrap();
    let trace = TraceModel::default().generate(&fabric, Moment::from_hours(YEAR), 1).unwrap();
    let expected = 100_224.0 * YEAR / 10_000.0;
    assert!((trace.len() as f64 - expected).abs() < 4.0 * expected.sqrt(), "{} of {expected}", trace.len());
    assert!(trace.is_sorted_by_key(|corruption| (corruption.at, corruption.link)));
    assert!(trace.iter().all(|corruption| corruption.at < Moment::from_hours(YEAR)));
}

#[test]
fn the_first_corruption_of_a_link_comes_as_a_weibull_clock_says() {
    // So long that nearly every link has had its first.
    let long = Moment::from_hours(100_000.0);
    let fabric = Fabric::leaf_spine(200, 50, Rate::gbps(100)).unwrap();
    for (shape, share_before_mean) in [(1.0, 0.632_121), (3.0, 0.509_399), (0.5, 0.756_883)] {
        let model = TraceModel { shape, ..TraceModel::default() };
        let mut first: HashMap<LinkId, f64> = HashMap::new();
        for corruption in model.generate(&fabric, long, 7).unwrap() {
            first.entry(corruption.link).or_insert(corruption.at.as_hours());
        }
        let early = first.values().filter(|hours| **hours < model.mttf).count();
        assert_share(early, fabric.links().len(), share_before_mean);
    }
}

#[test]
fn links_fail_as_often_as_their_mean_time_says_whatever_the_shape() {
    let fabric = Fabric::leaf_spine(100, 50, Rate::gbps(100)).unwrap();
    let hours = 1e6;
    for shape in [0.7, 1.0, 2.0] {
        let model = TraceModel { shape, ..TraceModel::default() };
        let trace = model.generate(&fabric, Moment::from_hours(hours), 3).unwrap();
        let per_link = trace.len() as f64 / fabric.links().len() as f64;
        // A renewal process is ahead of its mean by (variance / mean² - 1) / 2: less than one here.
        assert!((per_link - hours / model.mttf).abs() < 1.0, "shape {shape}: {per_link}");
    }
}

#[test]
fn losses_fall_into_the_buckets_of_table_1() {
    let trace = year(&TraceModel::default(), 1);
    let total: f64 = TABLE_1.iter().map(|bucket| bucket.weight).sum();
    for LossBucket { from, to, weight } in TABLE_1 {
        let inside: Vec<f64> = trace.iter().map(|one| one.loss).filter(|loss| (from..to).contains(loss)).collect();
        assert_share(inside.len(), trace.len(), weight / total);
        let lower_half = inside.iter().filter(|loss| **loss < (from + to) / 2.0).count();
        assert_share(lower_half, inside.len(), 0.5);
    }
}

#[test]
fn losses_can_be_spread_over_orders_of_magnitude_instead() {
    let trace = year(&TraceModel { within: BucketSpread::LogUniform, ..TraceModel::default() }, 1);
    let first: Vec<f64> = trace.iter().map(|one| one.loss).filter(|loss| *loss < 1e-5).collect();
    assert_share(first.iter().filter(|loss| **loss < 1e-7).count(), first.len(), 1.0 / 3.0);
}

#[test]
fn four_of_five_repairs_take_two_days_and_the_others_four() {
    let trace = year(&TraceModel::default(), 1);
    let quick = trace.iter().filter(|corruption| corruption.repair == 2 * DAY).count();
    let slow = trace.iter().filter(|corruption| corruption.repair == 4 * DAY).count();
    assert_share(quick, trace.len(), 0.8);
    assert_eq!(quick + slow, trace.len());
}

#[test]
fn what_happens_to_a_link_depends_on_the_seed_and_its_number_alone() {
    let of_first = |pods| {
        let fabric = Fabric::facebook(&Facebook::pods(pods)).unwrap();
        let trace = TraceModel::default().generate(&fabric, Moment::from_hours(5.0 * YEAR), 4).unwrap();
        trace.into_iter().filter(|corruption| corruption.link.0 < 10).collect::<Vec<_>>()
    };
    assert_eq!(of_first(1), of_first(3));
    assert!(of_first(1).len() > 10);
    assert_eq!(year(&TraceModel::default(), 4), year(&TraceModel::default(), 4));
    assert_ne!(year(&TraceModel::default(), 4), year(&TraceModel::default(), 5));
}

#[test]
fn models_that_make_no_sense_are_refused() {
    let bucket =
        |from, to, weight| TraceModel { buckets: vec![LossBucket { from, to, weight }], ..TraceModel::default() };
    let wrong = [
        (
            TraceModel { mttf: 0.0, ..TraceModel::default() },
            "mean time to failure 0: expected a number of hours above 0",
        ),
        (
            TraceModel { mttf: f64::NAN, ..TraceModel::default() },
            "mean time to failure NaN: expected a number of hours above 0",
        ),
        (TraceModel { shape: 0.1, ..TraceModel::default() }, "shape 0.1: expected 0.3 to 100"),
        (bucket(0.0, 1.0, 1.0), "losses from 0 to 1: expected more than 0, not falling, and at most 1"),
        (bucket(0.2, 0.1, 1.0), "losses from 0.2 to 0.1: expected more than 0, not falling, and at most 1"),
        (bucket(0.1, 1.1, 1.0), "losses from 0.1 to 1.1: expected more than 0, not falling, and at most 1"),
        (bucket(0.1, 0.2, -1.0), "weight -1 of losses: expected 0 or more"),
        (bucket(0.1, 0.2, 0.0), "weights of losses: expected at least one above 0"),
        (TraceModel { repairs: vec![], ..TraceModel::default() }, "weights of repairs: expected at least one above 0"),
        (
            TraceModel { mttf: 1e-3, ..TraceModel::default() },
            "about 215286 million corruptions: expected at most 50 million",
        ),
    ];
    for (model, problem) in wrong {
        let error = model.generate(&fabric(), Moment::from_hours(YEAR), 1).unwrap_err();
        assert_eq!(error.to_string(), problem);
    }
    let one = TraceModel { repairs: vec![RepairTime { takes: DAY, weight: 0.1 }], ..TraceModel::default() };
    assert!(year(&one, 1).iter().all(|corruption| corruption.repair == DAY));
}

#[test]
fn a_trace_is_written_and_read_without_a_change() {
    let fabric = Fabric::facebook(&Facebook::pods(2)).unwrap();
    let trace = TraceModel::default().generate(&fabric, Moment::from_hours(YEAR), 9).unwrap();
    assert!(trace.len() > 500);
    let mut written = Vec::new();
    write_csv(&trace, &fabric, &mut written).unwrap();
    let text = String::from_utf8(written).unwrap();
    assert_eq!(parse("trace.csv", &text, &SwitchNames::of(&fabric)), Ok(trace));
}

const LINKS: &str = "lower,upper,lower_port,upper_port\nleaf0,spine0,eth1,eth7\nleaf1,spine0,eth1,eth8\n";

#[test]
fn rows_in_any_order_with_links_by_name_port_or_number_are_sorted() {
    let fabric = Fabric::parse("x.csv", LINKS).unwrap();
    let text = "hours,link,loss,repair_hours\n20,1,1e-4,\n0.5,leaf0--spine0,1%,12\n1,spine0/eth8,1,48\n";
    let at = |hours, link, loss, repair: u64| CorruptionEvent {
        at: Moment::from_hours(hours),
        link: LinkId(link),
        loss,
        repair: Duration::from_secs(repair * 3_600),
    };
    let expected = vec![at(0.5, 0, 0.01, 12), at(1.0, 1, 1.0, 48), at(20.0, 1, 1e-4, 48)];
    assert_eq!(parse("t.csv", text, &SwitchNames::of(&fabric)), Ok(expected));
    assert_eq!(parse("t.csv", "hours,link,loss", &SwitchNames::of(&fabric)), Ok(vec![]), "nothing may happen");
}

#[test]
fn a_wrong_trace_is_answered_with_its_line() {
    let fabric = Fabric::parse("x.csv", LINKS).unwrap();
    let names = SwitchNames::of(&fabric);
    let said = |row: &str| {
        let text = format!("hours,link,loss,repair_hours\n# a comment\n{row}\n");
        parse("t.csv", &text, &names).unwrap_err().to_string()
    };
    assert_eq!(
        said("1,laef0--spine0,1e-4,"),
        "t.csv:3: no link is called 'laef0--spine0': did you mean 'leaf0--spine0'?"
    );
    assert_eq!(said("1,2,1e-4,"), "t.csv:3: no link has number 2: expected less than 2, or a name");
    assert_eq!(said("1,,1e-4,"), "t.csv:3: no link");
    for hours in ["-1", "soon", "nan", "1e300"] {
        let hours_expected = format!("'{hours}': expected a number of hours between 0 and 8766000");
        assert_eq!(said(&format!("{hours},0,1e-4,")), format!("t.csv:3: hours: {hours_expected}"));
        assert_eq!(said(&format!("1,0,1e-4,{hours}")), format!("t.csv:3: repair_hours: {hours_expected}"));
    }
    for loss in ["0", "1.5", "-1e-3", "much"] {
        let problem =
            format!("t.csv:3: loss: '{loss}': expected a share of frames above 0 and at most 1, such as 1e-4");
        assert_eq!(said(&format!("1,0,{loss},")), problem);
    }
    assert_eq!(said("1,0"), "t.csv:3: expected hours,link,loss,repair_hours, found '1,0'");
    assert!(parse("t.csv", "", &names).unwrap_err().to_string().starts_with("t.csv:1: expected a header"));
}
