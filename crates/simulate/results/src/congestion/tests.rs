use units::Unwatched;

use super::fairness::jain;
use super::*;

fn settings(traffic: TrafficMix) -> CongestionSettings {
    CongestionSettings {
        controllers: COMPARED.to_vec(),
        traffic,
        recovery: "go-back-n",
        pfc: true,
        loss: Prob::literal(0.0),
        protect: "none".to_owned(),
        plus_window: false,
        seed: 1,
    }
}

fn mix(name: &str) -> TrafficMix {
    TrafficMix::named(name).unwrap()
}

#[test]
fn every_combination_is_a_scenario() {
    for traffic in ["incast", "long-short", "mice", "joining", "websearch", "hadoop"] {
        for recovery in RECOVERIES {
            for (pfc, plus_window, loss, protect) in
                [(true, false, 0.0, "none"), (false, true, 1e-3, "ordered"), (true, true, 0.0, "uec-llr")]
            {
                let settings = CongestionSettings {
                    controllers: CONTROLLERS.to_vec(),
                    recovery,
                    pfc,
                    plus_window,
                    loss: Prob::new(loss).unwrap(),
                    protect: protect.to_owned(),
                    ..settings(mix(traffic))
                };
                assert_eq!(check(&settings), Ok(()), "{traffic} {recovery} {protect}");
            }
        }
    }
}

#[test]
fn unknown_names_are_answered_with_the_nearest() {
    assert_eq!(controller("hpc"), Err("did you mean 'hpcc'?".to_owned()));
    assert_eq!(TrafficMix::named("hadop"), Err("did you mean 'hadoop'?".to_owned()));
    let expected = "expected one of go-back-n, irn, melo";
    assert_eq!(recovery("selective"), Err(expected.to_owned()));
    let wrong = CongestionSettings { protect: "orderd".to_owned(), ..settings(mix("incast")) };
    let said = check(&wrong).unwrap_err();
    assert_eq!(said, "--protect: 'orderd': did you mean 'ordered'?");
}

#[test]
fn jains_index_is_one_for_equals_and_one_nth_for_one_alone() {
    assert_eq!(jain(&[5.0; 4]), Some(1.0));
    assert_eq!(jain(&[7.0, 0.0, 0.0, 0.0]), Some(0.25));
    assert_eq!(jain(&[]), None);
    assert_eq!(jain(&[0.0, 0.0]), None);
}

#[test]
fn an_incast_fills_the_queue_with_dcqcn_longer_than_with_hpcc() {
    let settings = CongestionSettings { controllers: vec!["hpcc", "dcqcn"], ..settings(mix("incast")) };
    let rows = compare(&settings, 2, &Unwatched).unwrap();
    let [hpcc, dcqcn] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((hpcc.cc, dcqcn.cc), ("hpcc", "dcqcn"));
    for row in &rows {
        assert_eq!((row.flows, row.complete, row.dropped), (16, 16, 0), "{row:?}");
        assert!(row.goodput_gbps > 50.0 && row.slowdown.p50 >= Some(1.0), "{row:?}");
        assert_eq!((row.slowdown.p99, row.traffic), (None, "incast"), "16 flows have no 99th percentile");
        assert!(row.fairness.is_some_and(|jain| (0.5..=1.0).contains(&jain)), "{row:?}");
    }
    let median = |row: &CongestionRow| row.queue_bytes.unwrap().p50.unwrap();
    assert!(median(hpcc) < 10_000 && median(dcqcn) > 20 * median(hpcc), "{rows:?}");
    assert!(hpcc.rtt_us.unwrap().p50 < dcqcn.rtt_us.unwrap().p50, "{rows:?}");
}

#[test]
fn corruption_costs_and_protection_gives_back() {
    let clean = CongestionSettings { controllers: vec!["hpcc"], ..settings(mix("incast")) };
    let lossy = CongestionSettings { loss: Prob::new(1e-2).unwrap(), ..clean.clone() };
    let protected = CongestionSettings { protect: "ordered".to_owned(), ..lossy.clone() };
    let run = |settings: &CongestionSettings| compare(settings, 1, &Unwatched).unwrap().remove(0);
    let (lossy, protected) = (run(&lossy), run(&protected));
    assert!(lossy.retransmitted > 0 && protected.retransmitted == 0, "{lossy:?} {protected:?}");
    assert!(lossy.slowdown.max > protected.slowdown.max, "{lossy:?} {protected:?}");
    let without = CongestionSettings { pfc: false, ..clean };
    assert_eq!((run(&without).pauses, run(&without).paused_seconds), (None, None));
}

#[test]
fn runs_at_the_same_time_change_nothing() {
    let settings = CongestionSettings { controllers: vec!["swift", "dctcp"], ..settings(mix("incast")) };
    let [one, two] = [1, 2].map(|jobs| format!("{:?}", compare(&settings, jobs, &Unwatched).unwrap()));
    assert_eq!(one, two);
}

#[test]
fn the_table_fits_into_a_hundred_columns() {
    let settings = settings(mix("incast"));
    let rows = compare(&settings, 2, &Unwatched).unwrap();
    let text = describe(&settings, &rows);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert_eq!(text.lines().filter(|line| COMPARED.iter().any(|cc| line.starts_with(cc))).count(), 5, "{text}");
}
