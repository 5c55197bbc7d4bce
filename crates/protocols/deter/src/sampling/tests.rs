use proptest::prelude::*;

use super::*;

fn us(us: f64) -> Time {
    Time::from_ps((us * 1e6) as u64)
}

fn largest_error(times: &[Time], inferred: &[Time]) -> Span {
    assert_eq!(times.len(), inferred.len());
    let error = |(real, inferred): (&Time, &Time)| real.since(*inferred).max(inferred.since(*real));
    times.iter().zip(inferred).map(error).max().unwrap_or(Span::ZERO)
}

#[test]
fn an_even_flow_needs_one_sample() {
    let times: Vec<Time> = (0..10_000).map(|n| Time::from_ps(7_000_123 + 1_230_400 * n)).collect();
    let samples = sample(&times, Span::from_us(2));
    assert_eq!(samples.len(), 1, "{samples:?}");
    assert!(largest_error(&times, &send_times(&samples, times.len())) <= Span::from_us(2));
}

#[test]
fn packets_within_the_threshold_of_a_sample_have_a_finite_distance() {
    let times = [0.0, 0.5, 1.0, 100.0].map(us);
    let samples = sample(&times, Span::from_us(5));
    assert_eq!(samples.iter().map(|sample| sample.index).collect::<Vec<_>>(), [0, 3]);
    assert!(samples[0].gap <= Span::from_us(3), "{samples:?}");
}

#[test]
fn the_last_packet_is_sampled_when_the_flow_is_over() {
    assert_eq!(sample(&[us(3.0)], Span::from_us(5)), [SendTimeSample { index: 0, at: us(3.0), gap: Span::ZERO }]);
    assert_eq!(sample(&[], Span::from_us(5)), []);
}

#[test]
fn a_rate_that_changes_within_a_burst_misleads_gaps_and_not_distances() {
    let fast = (0..200).map(|n| us(1.23 * f64::from(n)));
    let slow = (0..200).map(|n| us(1.23 * 200.0 + 2.46 * f64::from(n)));
    let times: Vec<Time> = fast.chain(slow).collect();
    let gaps = by_gaps(&times, Span::from_us(5));
    assert_eq!(gaps.len(), 1);
    assert!(largest_error(&times, &send_times(&gaps, times.len())) > Span::from_us(100));
    let samples = sample(&times, Span::from_us(5));
    assert!(samples.len() <= 3, "{samples:?}");
}

#[test]
fn bytes_that_are_cut_or_out_of_order_are_refused_with_their_place() {
    let bytes = encode(&sample(&[0.0, 300.0, 400.0, 1_000.0].map(us), Span::from_us(5)));
    let whole = decode(&bytes).unwrap().len();
    let errors = (1..bytes.len()).filter(|len| decode(&bytes[..*len]).is_err()).count();
    assert_eq!(errors, bytes.len() - whole, "all but the cuts between samples");
    assert_eq!(decode(&[1, 2, 0, 0, 2, 0]), Err(SampleError { at: 3 }), "the same packet again");
    assert_eq!(decode(&[0x80; 12]), Err(SampleError { at: 0 }));
}

/// Times as hosts have them: bursts, paces and pauses, of any length.
fn times() -> impl Strategy<Value = Vec<Time>> {
    let gap = prop_oneof![Just(0), 0u64..3_000, 0u64..3_000_000, 1_230_400u64..1_230_500, 0u64..50_000_000_000];
    let stretch = (gap, 1usize..200, 0u64..2_000).prop_map(|(gap, count, jitter)| vec![(gap, jitter); count]);
    (0..u64::MAX / 1_024, prop::collection::vec(stretch, 0..8)).prop_map(|(start, stretches)| {
        let mut at = start;
        let mut odd = start;
        let mut step = |(gap, jitter): (u64, u64)| {
            odd = odd.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            at += gap + (odd >> 33) % (jitter + 1);
            Time::from_ps(at)
        };
        stretches.into_iter().flatten().map(&mut step).collect()
    })
}

proptest! {
    #[test]
    fn no_time_is_off_by_more_than_the_threshold_and_none_runs_backwards(times in times(), ns in 1u64..20_000) {
        let samples = decode(&encode(&sample(&times, Span::from_ns(ns)))).unwrap();
        let inferred = send_times(&samples, times.len());
        prop_assert!(largest_error(&times, &inferred) <= Span::from_ns(ns));
        prop_assert!(inferred.is_sorted());
    }

    #[test]
    fn any_bytes_are_samples_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(samples) = decode(&bytes) {
            prop_assert!(samples.is_sorted_by(|one, next| one.index < next.index));
        }
    }
}
