//! The three charts. A case has the same style in all of them.

use std::time::Duration;

use chart::svg::{Anchor, Svg};
use chart::table::micros as us;
use chart::{Area, Axis, Bar, BarGroup, BarsChart, Chart, Line, Palette, Shares, TailChart, WIDTH, figure, time_us};

use super::super::{DemoCase, DemoPlan, DemoResult};
use load::RoundTrips;

/// Chart of the times that the slowest requests took.
pub(crate) fn tail(story: &DemoResult) -> Chart {
    let line = |case: DemoCase| Line::new(case.title(), curve(&story.figures(case).round_trips));
    Chart::Tail(TailChart {
        title: "The tail of round trips".into(),
        caption:
            "All requests of all rounds together, which is why percentiles may differ from the medians over rounds \
                  below. Both axes are logarithmic."
                .into(),
        x: Axis::log("round trip").written(time_us),
        of: "requests".into(),
        from: 0.5,
        shares: Shares::Rarity,
        guide: Some(0.999),
        lines: DemoCase::ALL.map(line).to_vec(),
    })
}

/// Curve from the median up: times, and the share of requests that did not take longer.
fn curve(trips: &RoundTrips) -> Vec<(f64, f64)> {
    const STEPS_OF_A_DECADE: f64 = 24.0;
    if trips.count() == 0 {
        return Vec::new();
    }
    let us = |delay: Duration| delay.as_nanos() as f64 / 1e3;
    let rarest = 1.0 / trips.count() as f64;
    let steps = (0..).map(|step| 10f64.powf(-f64::from(step) / STEPS_OF_A_DECADE));
    let slower = steps.skip_while(|share| *share >= 0.5).take_while(|share| *share >= rarest);
    let shares = std::iter::once(0.5).chain(slower).map(|share| 1.0 - share);
    shares.map(|share| (us(trips.quantile(share)), share)).chain([(us(trips.max()), 1.0)]).collect()
}

/// Chart of the throughput of a bulk transfer, by case, at the loss of the plan and at a heavy one.
pub(crate) fn throughput(story: &DemoResult, plan: &DemoPlan) -> Chart {
    let group = |name: String, rate: fn(&DemoResult, DemoCase) -> Option<f64>| {
        let bar = |case: DemoCase| Some(Bar { name: case.title().into(), ours: Some(rate(story, case)?), paper: None });
        BarGroup { name, bars: DemoCase::ALL.into_iter().filter_map(bar).collect() }
    };
    let light = group(format!("at a loss of {} (none on the clean wires)", plan.loss), |story, case| {
        Some(story.figures(case).median.throughput_gbps)
    });
    let heavy = group(format!("at a loss of {:e}", plan.heavy_loss.get()), |story, case| {
        story.figures(case).median.throughput_at_1e2_gbps
    });
    Chart::Bars(BarsChart {
        title: "Bulk throughput".into(),
        caption: "One TCP flow (CUBIC); medians over rounds.".into(),
        axis: Axis::linear("throughput (Gbit/s)"),
        groups: [light, heavy].into_iter().filter(|group| !group.bars.is_empty()).collect(),
    })
}

/// Every round's 99.9th percentile, so that the spread shows.
pub(crate) fn rounds(story: &DemoResult, palette: &mut Palette) -> String {
    const STRIP: f64 = 48.0;
    const TITLE: &str = "The 99.9th percentile, round by round";
    let area = Area { left: 0.0, right: WIDTH, top: 0.0, bottom: 4.0 + STRIP * DemoCase::ALL.len() as f64 };
    let p999s = |case: DemoCase| story.figures(case).rounds.iter().map(|round| round.pingpong_p999_us);
    let height = (area.bottom + Area::FOOT) as u32;
    let mut svg = Svg::new("chart-rounds", WIDTH as u32, height, TITLE, &described(story));
    let axis = Axis::log("p99.9 of round trips").written(time_us);
    let x = axis.scale(DemoCase::ALL.into_iter().flat_map(p999s), 18.0, WIDTH - 20.0);
    let ticks = axis.ticks(&x);
    area.columns(&mut svg, &ticks);
    area.foot(&mut svg, &ticks, &axis.label);
    for (strip, (case, style)) in
        DemoCase::ALL.into_iter().zip(palette.styles(DemoCase::ALL.map(DemoCase::title))).enumerate()
    {
        let top = 4.0 + STRIP * strip as f64;
        let median = story.figures(case).median.pingpong_p999_us;
        svg.text("name halo", Anchor::Start, (0.0, top + 12.0), case.title());
        svg.text("value halo", Anchor::End, (WIDTH, top + 12.0), &format!("median {}", us(median)));
        let class = style.class();
        svg.line(&format!("median {class}"), (x.at(median), top + 19.0), (x.at(median), top + STRIP - 3.0));
        for (number, p999) in p999s(case).enumerate() {
            // Rounds that came to the same stand above one another.
            let lane = (number * 3 % 5) as f64 * 4.0;
            svg.dot(&format!("round {class}"), (x.at(p999), top + 24.0 + lane), 2.8);
        }
    }
    let caption = "A dot is one round’s 99.9th percentile; the stroke is their median. The axis is logarithmic.";
    figure(TITLE, caption, &svg)
}

/// A sentence for each case.
fn described(story: &DemoResult) -> String {
    let told = |case: DemoCase| {
        let rounds: Vec<String> = story.figures(case).rounds.iter().map(|round| us(round.pingpong_p999_us)).collect();
        format!("{}: {}.", case.title(), rounds.join(", "))
    };
    DemoCase::ALL.map(told).join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_ends_with_the_slowest_request() {
        let mut trips = RoundTrips::default();
        assert!(curve(&trips).is_empty());
        for us in 1..=1_000 {
            trips.record(Duration::from_micros(us));
        }
        let points = curve(&trips);
        let (slowest, share) = points[points.len() - 1];
        assert_eq!((points[0].1, share), (0.5, 1.0));
        assert!((slowest - 1_000.0).abs() < 2.0, "{slowest}");
        assert!(points.is_sorted_by(|(_, before), (_, after)| before < after));
        assert!(points.iter().any(|(_, share)| (share - 0.99).abs() < 1e-12), "the percentiles that people ask for");
    }
}
