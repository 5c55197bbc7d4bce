use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::digest::Digest;
use crate::digest::tests::packet;
use crate::segment::{MeterReport, MeteredSegment};
use crate::signature::{Fields, Signature};

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

/// A packet every 10 us; each meter has a clock with an error of its own, which may change.
struct Crossing<'a> {
    packets: u32,
    batch: i64,
    errors: [&'a dyn Fn(i64) -> i64; 2],
    way: &'a dyn Fn(u32) -> i64,
    lost: &'a dyn Fn(u32) -> bool,
}

/// Packets that were called lost, and those that really were.
#[derive(Debug, Default)]
struct Verdicts {
    called: BTreeSet<Signature>,
    truly: BTreeSet<Signature>,
    unnamed: u64,
}

impl Crossing<'_> {
    fn run(&self, slack: &ClockSlack) -> Verdicts {
        let shape = slack.shape(20, 100_000, Prob::literal(0.9999));
        let mut verdicts = Verdicts::default();
        let mut batches: [BTreeMap<u64, Digest>; 2] = Default::default();
        let mut put = |end: usize, at: i64, signature: &Signature| {
            let batch = ((at + (self.errors[end])(at)) / self.batch) as u64;
            batches[end].entry(batch).or_insert_with(|| Digest::new(shape)).insert(signature);
        };
        // Clocks are read long after they began.
        let begin = 1_000 * self.batch;
        for nth in 0..self.packets {
            let (sent, signature) = (begin + i64::from(nth) * 10 * US, Signature::new(&packet(nth), Fields::ALL));
            put(0, sent, &signature);
            if (self.lost)(nth) {
                verdicts.truly.insert(signature);
            } else {
                put(1, sent + (self.way)(nth), &signature);
            }
        }
        let mut segment = MeteredSegment::new(2, slack.patience());
        let last = begin + i64::from(self.packets) * 10 * US;
        let until = (last / self.batch) as u64 + 3 * slack.patience() + 40;
        for batch in 900..until {
            for (end, name) in ["a", "b"].into_iter().enumerate() {
                let seen = batches[end].remove(&batch).unwrap_or_else(|| Digest::new(shape));
                let nothing = Digest::new(shape);
                let (out, came) = if end == 0 { (seen, nothing) } else { (nothing, seen) };
                let report = MeterReport {
                    segment: "s".to_owned(),
                    end: name.to_owned(),
                    life: 1,
                    batch,
                    length: self.batch as u64,
                    missed: 0,
                    out,
                    out_number: None,
                    came,
                    came_number: None,
                    facts: crate::segment::ReportFacts::default(),
                };
                let finding = segment.on_report(report).unwrap();
                verdicts.called.extend(finding.losses.iter().map(|lost| lost.signature));
                verdicts.unnamed += finding.unnamed;
            }
        }
        verdicts
    }
}

fn slack(clock_error: i64, way: i64, batch: i64) -> ClockSlack {
    let [clock_error, way, batch] = [clock_error, way, batch].map(|ns| Span::from_ns(ns.unsigned_abs()));
    ClockSlack { clock_error, way, batch }
}

/// Clocks 6 ms apart, and batches of 1 ms.
fn far_apart() -> Crossing<'static> {
    Crossing {
        packets: 4_000,
        batch: MS,
        errors: [&|_| 3 * MS, &|_| -3 * MS],
        way: &|nth| i64::from(nth % 7) * 30 * US,
        lost: &|nth| nth % 997 == 500,
    }
}

#[test]
fn clocks_that_are_wrong_by_what_they_say_cost_no_false_loss() {
    let verdicts = far_apart().run(&slack(3 * MS, 180 * US, MS));
    assert_eq!(verdicts.called, verdicts.truly);
    assert_eq!((verdicts.called.len(), verdicts.unnamed), (4, 0));
    // The other way round, packets seem to arrive before they were sent.
    let turned = Crossing { errors: [&|_| -3 * MS, &|_| 3 * MS], ..far_apart() };
    let verdicts = turned.run(&slack(3 * MS, 180 * US, MS));
    assert_eq!(verdicts.called, verdicts.truly);
}

#[test]
fn a_bound_that_is_too_small_calls_packets_lost_that_arrived() {
    let verdicts = far_apart().run(&slack(MS, 180 * US, MS));
    assert!(verdicts.called.difference(&verdicts.truly).next().is_some() || verdicts.unnamed > 0, "{verdicts:?}");
    assert_ne!(verdicts.called, verdicts.truly);
}

#[test]
fn good_clocks_need_next_to_no_slack() {
    let sundial = slack(100, 10 * US, 10 * MS);
    assert_eq!((sundial.patience(), sundial.packets(1_000_000)), (1, 11));
    let ntp = slack(MS, 10 * US, 10 * MS);
    assert_eq!((ntp.patience(), ntp.packets(1_000_000)), (1, 2_010));
    let cells = |slack: &ClockSlack| slack.shape(100, 1_000_000, Prob::literal(0.99)).cells();
    assert!(cells(&sundial) < 220 && cells(&ntp) > 4_500, "{} {}", cells(&sundial), cells(&ntp));
    // Clocks that are off by many batches: a batch has no more packets than it has.
    assert_eq!(slack(100 * MS, 0, 10 * MS).packets(1_000_000), 10_000);
    assert_eq!(slack(100 * MS, 0, 10 * MS).patience(), 21);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_packet_is_called_lost_that_arrived(
        error in 0_i64..4 * MS,
        shares in [-1.0_f64..=1.0, -1.0_f64..=1.0],
        way in 1_i64..2 * MS,
        every in 50_u32..400,
    ) {
        let [one, other] = shares.map(|share| (error as f64 * share) as i64);
        let crossing = Crossing {
            packets: 3_000,
            batch: MS,
            errors: [&|_| one, &|_| other],
            way: &|nth| way * i64::from(nth * 7_919 % 101) / 101,
            lost: &|nth| nth % every == 3,
        };
        let verdicts = crossing.run(&slack(error, way, MS));
        prop_assert!(verdicts.called.is_subset(&verdicts.truly));
        prop_assert_eq!((verdicts.called.len(), verdicts.unnamed), (verdicts.truly.len(), 0));
    }
}
