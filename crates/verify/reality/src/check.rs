//! Every case live and simulated, and what their differences come from.

use linux::SystemError;
use load::RoundTrips;
use sim::net::HostLatency;
use units::samples::nearest_rank;
use units::{Bytes, Prob, Rate, Span, StopFlag};

use super::causes::BulkDifference;
use super::plan::{CheckCase, CheckPlan};
use super::verdict::{CheckMeasure, CheckPoint, CheckVerdict, SimCheckReport, judge, median_error};
use super::{causes, live, simulated};

/// Requests over the clean wire.
const CLEAN_REQUESTS: u32 = 5_000;

/// `None` if it was stopped.
pub fn check(plan: &CheckPlan, stop: &StopFlag, say: &dyn Fn(&str)) -> Result<Option<SimCheckReport>, SystemError> {
    let (mut points, mut typical) = (Vec::new(), Vec::new());
    let cases = plan.cases();
    let Some(shortest) = cases.iter().min_by_key(|case| case.delay) else {
        return Err(SystemError(
            "nothing to compare: expected a loss, a round trip and a congestion control".to_owned(),
        ));
    };
    for case in &cases {
        let round_trip = case.delay * 2;
        say(&format!("{}, loss {}, {round_trip}", case.congestion, case.loss));
        // Before each case: what hosts take changes with what else this machine does.
        let Some(clean) = clean_trips(shortest, plan, stop)? else { return Ok(None) };
        let hosts = hosts(shortest, &clean);
        typical.push(hosts.typical().as_us());
        let Some(of_case) = compare(case, plan, hosts, &clean, stop)? else { return Ok(None) };
        points.extend(of_case);
    }
    let median_error = median_error(&points);
    let rate_gbps = plan.rate.bits_per_second() as f64 / 1e9;
    typical.sort_by(f64::total_cmp);
    let host_latency_us = quantile(&typical, 0.5);
    Ok(Some(SimCheckReport { points, rate_gbps, rounds: plan.rounds, host_latency_us, median_error }))
}

/// Requests over a wire like this one that loses nothing: what hosts take.
fn clean_trips(like: &CheckCase, plan: &CheckPlan, stop: &StopFlag) -> Result<Option<RoundTrips>, SystemError> {
    let case = CheckCase { loss: Prob::literal(0.0), ..*like };
    let plan = CheckPlan { requests: CLEAN_REQUESTS, ..plan.clone() };
    live::requests(&case, &plan, 0, stop)
}

/// Half of what a round trip takes besides the wire, and how much that varies.
fn hosts(case: &CheckCase, trips: &RoundTrips) -> HostLatency {
    let at = |share| beyond(case, trips.quantile(share).as_nanos() as f64 / 1e3);
    let (median, high) = (at(0.5), at(0.9));
    // A standard normal exceeds 1.2816 once in ten times; two hosts together vary by 1/√2 of what one does.
    let sigma = (high.as_us() / median.as_us().max(0.001)).ln() / 1.2816 * std::f64::consts::SQRT_2;
    HostLatency::LogNormal { median: median / 2, sigma: sigma.clamp(0.0, 1.0) }
}

fn beyond(case: &CheckCase, round_trip_us: f64) -> Span {
    Span::from_ps((round_trip_us * 1e6) as u64).saturating_sub(wire_time(case.rate) + case.delay * 2)
}

/// Time of a request and its answer on the wire.
fn wire_time(rate: Rate) -> Span {
    rate.span_of(Bytes::new(2 * u64::from(wire::ethernet::on_wire(64 + sim::net::TCP_HEADERS))))
}

fn compare(
    case: &CheckCase,
    plan: &CheckPlan,
    hosts: HostLatency,
    clean: &RoundTrips,
    stop: &StopFlag,
) -> Result<Option<Vec<CheckPoint>>, SystemError> {
    let (mut live_gbps, mut simulated_gbps) = (0.0, 0.0);
    let (mut live_trips, mut simulated_trips) = (RoundTrips::default(), Vec::new());
    for round in 0..plan.rounds {
        let Some(gbps) = live::bulk(case, plan, round, stop)? else { return Ok(None) };
        let Some(trips) = live::requests(case, plan, round, stop)? else { return Ok(None) };
        live_gbps += gbps / f64::from(plan.rounds);
        live_trips.merge(&trips);
        // Simulates as many requests as there were live: in a short run, the rarest losses are few on either side.
        let done = CheckPlan { requests: u32::try_from(trips.count()).unwrap_or(u32::MAX).max(1), ..plan.clone() };
        let Some(gbps) = simulated::bulk(case, plan, hosts, round, stop)? else { return Ok(None) };
        let Some(trips) = simulated::requests(case, &done, hosts, round, stop)? else { return Ok(None) };
        simulated_gbps += gbps / f64::from(plan.rounds);
        simulated_trips.extend(trips);
    }
    simulated_trips.sort_by(f64::total_cmp);
    let of_live = |share| live_trips.quantile(share).as_nanos() as f64 / 1e3;
    let of_simulated = |share| quantile(&simulated_trips, share);
    let measured = [
        (CheckMeasure::Throughput, simulated_gbps, live_gbps),
        (CheckMeasure::P50, of_simulated(0.5), of_live(0.5)),
        (CheckMeasure::P99, of_simulated(0.99), of_live(0.99)),
    ];
    let mut points: Vec<CheckPoint> =
        measured.map(|(measure, simulated, live)| point(case, measure, simulated, live)).into();
    for point in points.iter_mut().filter(|point| point.verdict == CheckVerdict::Differs) {
        let (time, chance) = match point.measure {
            CheckMeasure::Throughput => {
                let had = BulkDifference { simulated: point.simulated, live: point.live };
                let time = causes::of_bulk(case, plan, hosts, had, stop)?;
                (time, causes::chance_of_bulk(case, plan, hosts, had, stop)?)
            }
            CheckMeasure::P50 | CheckMeasure::P99 => (
                Some(causes::of_requests(&live_trips, &simulated_trips, clean)),
                causes::chance_of_requests(case, plan, stop)?,
            ),
        };
        let (Some(time), Some(chance)) = (time, chance) else { return Ok(None) };
        point.why = format!("{time}; {chance}");
    }
    Ok(Some(points))
}

/// Value that a share of them did not exceed, as the live distribution counts; they are in order.
pub(super) fn quantile(trips: &[f64], share: f64) -> f64 {
    nearest_rank(trips, share).unwrap_or(f64::NAN)
}

fn point(case: &CheckCase, measure: CheckMeasure, simulated: f64, live: f64) -> CheckPoint {
    let (ratio, verdict) = judge(simulated, live);
    CheckPoint {
        cc: case.congestion.name(),
        loss: case.loss.get(),
        rtt_us: (case.delay * 2).as_us(),
        measure,
        simulated,
        live,
        ratio,
        verdict,
        why: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn both_sides_count_quantiles_alike() {
        let mut live = RoundTrips::default();
        let trips: Vec<f64> = (1..=200).map(f64::from).collect();
        trips.iter().for_each(|us| live.record(Duration::from_micros(*us as u64)));
        for share in [0.5, 0.9, 0.99, 0.999] {
            let (live, simulated) = (live.quantile(share).as_nanos() as f64 / 1e3, quantile(&trips, share));
            assert!((live / simulated - 1.0).abs() < 2e-3, "{share}: {live} and {simulated}");
        }
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn hosts_take_half_of_what_the_wire_does_not() {
        let case = CheckCase {
            rate: Rate::gbps(1),
            congestion: load::KernelCongestion::Cubic,
            loss: Prob::literal(0.0),
            delay: Span::from_us(25),
        };
        let mut trips = RoundTrips::default();
        (0..1_000).for_each(|_| trips.record(Duration::from_nanos(50_000 + 2_464 + 16_000)));
        let HostLatency::LogNormal { median, sigma } = hosts(&case, &trips) else { panic!("another distribution") };
        assert!((median.as_us() - 8.0).abs() < 0.2 && sigma < 0.01, "{median} {sigma}");
    }
}
