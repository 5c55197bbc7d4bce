//! The comparison as a table.

use chart::table::{Align, Table, micros};
use units::Prob;

use super::verdict::{CheckMeasure, CheckPoint, CheckVerdict, SimCheckReport};

impl SimCheckReport {
    pub fn text(&self) -> String {
        let mut table = Table::new(&[
            ("", Align::Left),
            ("round trip", Align::Right),
            ("measure", Align::Left),
            ("live", Align::Right),
            ("simulated", Align::Right),
            ("ratio", Align::Right),
            ("verdict", Align::Left),
        ]);
        for point in &self.points {
            let verdict = match point.verdict {
                CheckVerdict::Match => "match",
                CheckVerdict::Differs => "differs",
            };
            table.row(vec![
                format!("{}, loss {}", point.cc, Prob::literal(point.loss)),
                micros(point.rtt_us),
                point.measure.name().to_owned(),
                value(point.measure, point.live),
                value(point.measure, point.simulated),
                format!("{:.2}", point.ratio),
                verdict.to_owned(),
            ]);
        }
        let (all, differing) = (self.points.len(), self.differing());
        format!(
            "a wire of {} Gb/s, {} rounds; hosts take {:.0} µs, as with requests over a clean wire\n\n{table}\n{} of {all} \
             points within a quarter; the median error is {:.0} %\n{}",
            self.rate_gbps,
            self.rounds,
            self.host_latency_us,
            all - differing,
            self.median_error * 100.0,
            self.points.iter().filter_map(reason).collect::<String>()
        )
    }
}

impl CheckMeasure {
    fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::P50 => "p50",
            Self::P99 => "p99",
        }
    }
}

fn value(measure: CheckMeasure, value: f64) -> String {
    match measure {
        CheckMeasure::Throughput => format!("{value:.3} Gb/s"),
        CheckMeasure::P50 | CheckMeasure::P99 => micros(value),
    }
}

fn reason(point: &CheckPoint) -> Option<String> {
    let CheckPoint { cc, loss, rtt_us, measure, why, .. } = point;
    let line = || format!("\n{cc}, loss {}, {}, {}: {why}\n", Prob::literal(*loss), micros(*rtt_us), measure.name());
    (!why.is_empty()).then(line)
}
