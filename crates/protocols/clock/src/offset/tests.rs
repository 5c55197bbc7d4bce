use proptest::prelude::*;

use super::*;

fn drift(ppm: f64) -> OffsetDrift {
    OffsetDrift::from_ppm(ppm).unwrap()
}

#[test]
fn half_the_round_trip_remains_and_grows_with_the_distance_in_time() {
    let mut facts = OffsetFacts::new(drift(100.0));
    // The other clock is 500 ahead; 30 there, 50 back.
    facts.at_most(1_000_000, 530);
    facts.at_least(1_000_000, 450);
    let band = facts.band().unwrap();
    assert_eq!(band.at(1_000_000), OffsetInterval::new(450, 530));
    assert_eq!(band.at(2_000_000), OffsetInterval::new(350, 630));
    assert_eq!(band.at(0), OffsetInterval::new(350, 630));
    assert_eq!(band.narrowest(), Some((1_000_000, 450, 530)));
}

#[test]
fn one_direction_bounds_one_side_only() {
    let mut facts = OffsetFacts::new(drift(100.0));
    facts.at_most(5, 10);
    let band = facts.band().unwrap();
    assert_eq!((band.at(5), band.is_bounded()), (OffsetInterval { low: None, high: Some(10) }, false));
    assert_eq!(OffsetFacts::new(drift(1.0)).band().unwrap().at(0), OffsetInterval::default());
}

#[test]
fn a_clock_that_was_set_is_found_where_it_was_set() {
    let mut facts = OffsetFacts::new(drift(200.0));
    for second in 0..10_i64 {
        let offset = if second < 6 { 0 } else { 5_000_000 };
        facts.at_most(second * 1_000_000_000, offset + 40_000);
        facts.at_least(second * 1_000_000_000 + 7, offset - 40_000);
    }
    let found = facts.band().unwrap_err();
    assert_eq!(found.between(), (5_000_000_000, 6_000_000_007));
    assert_eq!(found.change(), 4_920_000);
    assert!((4_900.0..5_000.0).contains(&found.ppm()), "{}", found.ppm());
}

#[test]
fn a_drift_above_the_bound_contradicts_itself_and_one_below_does_not() {
    let made = |bound: f64| {
        let mut facts = OffsetFacts::new(drift(bound));
        for ms in 0..1_000_i64 {
            // 40 ppm are 40 ns in a millisecond.
            facts.at_most(ms * 1_000_000, ms * 40 + 1_000);
            facts.at_least(ms * 1_000_000, ms * 40 - 1_000);
        }
        facts.band()
    };
    assert!((35.0..=42.1).contains(&made(30.0).unwrap_err().ppm()), "{:?}", made(30.0));
    let band = made(50.0).unwrap();
    let (low, high) = band.drift(0, 999_000_000).unwrap();
    assert!(low <= 40.0 && 40.0 <= high && high - low < 4.1, "{low} {high}");
}

#[test]
fn most_clocks_outvote_one_that_lies() {
    assert_eq!(most_agreed(&[(8, 12), (11, 13), (14, 15)]), Some(((11, 12), 2)));
    assert_eq!(most_agreed(&[(8, 12), (11, 13), (10, 12)]), Some(((11, 12), 3)));
    assert_eq!(most_agreed(&[(1, 5), (5, 9)]), Some(((5, 5), 2)));
    assert_eq!(most_agreed(&[(5, 1)]), None);
}

#[test]
fn nonsense_is_no_drift() {
    let refused = [-1.0, f64::NAN, f64::INFINITY, 100_001.0];
    assert!(refused.iter().all(|ppm| OffsetDrift::from_ppm(*ppm).is_none()));
    assert_eq!(drift(200.0).over(-1_000_000_000), 200_000);
    assert_eq!(drift(200.0).over(1), 1, "rounded up");
}

/// An offset that wanders by no more than the drift, and facts about it.
fn wandering() -> impl Strategy<Value = (i64, Vec<(i64, i64, u32, bool)>)> {
    let step = (1_i64..50_000_000, -1_000_i64..=1_000, 0_u32..100_000, any::<bool>());
    (-10_000_000_000_i64..10_000_000_000, proptest::collection::vec(step, 1..200))
}

proptest! {
    #[test]
    fn the_truth_is_always_inside((start, steps) in wandering(), ppm in 0_u32..500, slots in 1_usize..64) {
        let bound = drift(f64::from(ppm));
        let mut facts = OffsetFacts::new(bound).with_slots(slots);
        let mut all = OffsetFacts::new(bound);
        let (mut at, mut offset) = (0_i64, start);
        let mut truth = Vec::new();
        for (elapsed, share, delay, is_most) in steps {
            at += elapsed;
            // Never more than the drift allows: rounded towards nothing.
            offset += (i128::from(elapsed) * i128::from(ppm) * i128::from(share) / 1_000_000_000) as i64;
            truth.push((at, offset));
            for facts in [&mut facts, &mut all] {
                if is_most {
                    facts.at_most(at, offset + i64::from(delay));
                } else {
                    facts.at_least(at, offset - i64::from(delay));
                }
            }
        }
        let rounding = truth.len() as i64;
        let [band, strict] = [facts, all].map(|facts| facts.band().expect("the truth satisfies all facts"));
        for (at, offset) in truth {
            for band in [&band, &strict] {
                let known = band.at(at);
                prop_assert!(known.low.is_none_or(|low| low <= offset), "{known:?} {offset}");
                prop_assert!(known.high.is_none_or(|high| offset <= high), "{known:?} {offset}");
            }
            // Facts that were left out can only have made it wider, but for a nanosecond of rounding from fact to fact.
            let (wide, strict) = (band.at(at), strict.at(at));
            prop_assert!(wide.low.is_none_or(|low| strict.low.is_some_and(|strict| low <= strict + rounding)));
            prop_assert!(wide.high.is_none_or(|high| strict.high.is_some_and(|strict| high >= strict - rounding)));
        }
    }
}
