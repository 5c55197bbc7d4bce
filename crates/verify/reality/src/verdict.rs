//! Each measure of a case, simulated and live, with its verdict.

use serde::Serialize;
use units::samples::upper_median;

/// Within a quarter, either way.
const WITHIN: f64 = 1.25;

/// Measures that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckMeasure {
    /// Gb/s of payload.
    Throughput,
    /// Median of round trips, in µs.
    P50,
    /// Their 99th percentile, in µs.
    P99,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckVerdict {
    Match,
    Differs,
}

/// One measure of one case.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CheckPoint {
    pub cc: &'static str,
    pub loss: f64,
    /// Time that the wire's delay adds to a round trip.
    pub rtt_us: f64,
    pub measure: CheckMeasure,
    pub simulated: f64,
    pub live: f64,
    /// Simulated over live.
    pub ratio: f64,
    pub verdict: CheckVerdict,
    /// Causes that took the time of both, where they differ; empty otherwise.
    pub why: String,
}

#[derive(Debug, Serialize)]
pub struct SimCheckReport {
    pub(super) points: Vec<CheckPoint>,
    pub(super) rate_gbps: f64,
    pub(super) rounds: u32,
    /// Time that a host takes to process a packet, from requests over a clean wire.
    pub(super) host_latency_us: f64,
    /// Median distance of the ratio from one, over all points.
    pub(super) median_error: f64,
}

/// Simulated over live, and whether that is close enough. What was not measured on either side differs.
pub(super) fn judge(simulated: f64, live: f64) -> (f64, CheckVerdict) {
    let ratio = simulated / live;
    let close = (1.0 / WITHIN..=WITHIN).contains(&ratio);
    (ratio, if close { CheckVerdict::Match } else { CheckVerdict::Differs })
}

/// Median distance of the ratios from one: 0.1 for 1.1 and for 1/1.1.
pub(super) fn median_error(points: &[CheckPoint]) -> f64 {
    let mut errors: Vec<f64> = points.iter().map(|point| point.ratio.max(1.0 / point.ratio) - 1.0).collect();
    upper_median(&mut errors).unwrap_or(0.0)
}

impl SimCheckReport {
    pub(super) fn differing(&self) -> usize {
        self.points.iter().filter(|point| point.verdict == CheckVerdict::Differs).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(simulated: f64, live: f64) -> CheckPoint {
        let (ratio, verdict) = judge(simulated, live);
        let why = String::new();
        CheckPoint {
            cc: "cubic",
            loss: 1e-3,
            rtt_us: 50.0,
            measure: CheckMeasure::P50,
            simulated,
            live,
            ratio,
            verdict,
            why,
        }
    }

    #[test]
    fn a_quarter_either_way_is_close_enough() {
        for (simulated, live, expected) in [
            (1.0, 1.0, CheckVerdict::Match),
            (1.25, 1.0, CheckVerdict::Match),
            (1.0, 1.25, CheckVerdict::Match),
            (1.26, 1.0, CheckVerdict::Differs),
            (1.0, 1.26, CheckVerdict::Differs),
            (f64::NAN, 1.0, CheckVerdict::Differs),
            (1.0, 0.0, CheckVerdict::Differs),
        ] {
            assert_eq!(judge(simulated, live).1, expected, "{simulated} for {live}");
        }
    }

    #[test]
    fn errors_count_the_same_either_way() {
        let points = [point(2.0, 1.0), point(1.0, 1.1), point(1.0, 1.0)];
        assert!((median_error(&points) - 0.1).abs() < 1e-9);
        assert_eq!(median_error(&[]), 0.0);
    }

    #[test]
    fn a_point_has_exactly_the_fields_of_the_contract() {
        let json = serde_json::to_value(point(1.0, 2.0)).unwrap();
        let mut fields: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["cc", "live", "loss", "measure", "ratio", "rtt_us", "simulated", "verdict", "why"]);
        assert_eq!(json["measure"], "p50");
        assert_eq!(json["verdict"], "differs");
        assert_eq!(serde_json::to_value(CheckMeasure::Throughput).unwrap(), "throughput");
    }
}
