//! The three charts, each 360 units wide, so that the letters can still be read on a telephone.

use live::demo::{Case, Figures, Plan, Story};
use live::load::RoundTrips;
use report::svg::{Anchor, Log, Svg, apart, legible};

use super::super::{gbps, title, us};

const WIDTH: f64 = 360.0;
/// Units that a letter takes where letters are largest.
const LETTER: f64 = 6.4;

/// How long the slowest requests took: the share of requests that are slower falls to the right, as in the papers.
pub fn tail(story: &Story) -> Svg {
    const PLOT: (f64, f64, f64, f64) = (50.0, 234.0, 22.0, 222.0);
    const STEPS_OF_A_DECADE: u32 = 24;
    let (left, right, top, bottom) = PLOT;
    let mut svg = Svg::new(
        "tail",
        WIDTH as u32,
        264,
        "Round trips of requests by percentile",
        &described(story, |figures| {
            let round = &figures.median;
            format!(
                "p50 {}, p99 {}, p99.9 {}, slowest {}",
                us(round.pingpong_p50_us),
                us(round.pingpong_p99_us),
                us(round.pingpong_p999_us),
                us(round.pingpong_max_us)
            )
        }),
    );
    let curves = Case::ALL.map(|case| curve(&story.figures(case).round_trips, STEPS_OF_A_DECADE));
    let y = Log::around(curves.iter().flatten().map(|(_, took)| *took), bottom, top);
    let rarest = curves.iter().flatten().map(|(share, _)| *share).fold(0.01, f64::min);
    let x = |share: f64| left + (0.5 / share).log10() / (0.5 / rarest).log10() * (right - left);

    svg.text("quiet", Anchor::Start, (0.0, 10.0), "round trip");
    for decade in y.decades() {
        svg.line("grid", (left, y.at(decade)), (right, y.at(decade)));
        svg.text("tick", Anchor::End, (left - 4.0, y.at(decade) + 4.0), &tick(decade));
    }
    let shares = std::iter::successors(Some(0.1), |share| Some(share / 10.0)).take_while(|share| *share >= rarest);
    let ticks = std::iter::once(0.5).chain(shares).map(|share| (x(share), percentile(share)));
    for (at, text) in legible(ticks, LETTER) {
        svg.line("grid", (at, top), (at, bottom));
        svg.text("tick", Anchor::Middle, (at, bottom + 17.0), &text);
    }
    svg.line("axis", (left, bottom), (right, bottom));
    svg.text("quiet", Anchor::Middle, ((left + right) / 2.0, bottom + 35.0), "percentile of requests");

    let ends = curves.each_ref().map(|points| points.last().map_or(bottom, |(_, took)| y.at(*took)));
    // Three lines of text each, the middle one of them beside the end of the curve.
    let places = apart(&ends, 50.0, top + 8.0, bottom - 12.0);
    for ((case, points), (end, place)) in Case::ALL.into_iter().zip(&curves).zip(ends.into_iter().zip(places)) {
        let Some((rarest, slowest)) = points.last() else { continue };
        let points: Vec<_> = points.iter().map(|(share, took)| (x(*share), y.at(*took))).collect();
        svg.polyline(&format!("curve {}", case.name()), &points);
        svg.dot(&format!("end {}", case.name()), (x(*rarest), end), 2.5);
        svg.line(&format!("leader {}", case.name()), (x(*rarest), end), (right + 9.0, place));
        let (wire, sender) = title(case).split_once(", ").unwrap_or((title(case), ""));
        let slowest = format!("max {}", us(*slowest));
        svg.lines(
            &format!("name {}", case.name()),
            Anchor::Start,
            (right + 11.0, place - 8.0),
            &[&format!("{wire},"), sender, &slowest],
        );
    }
    svg
}

/// Shares of requests that were slower, from a half down to the slowest one alone, and the time they exceeded.
fn curve(trips: &RoundTrips, steps_of_a_decade: u32) -> Vec<(f64, f64)> {
    if trips.count() == 0 {
        return Vec::new();
    }
    let us = |delay: std::time::Duration| delay.as_nanos() as f64 / 1e3;
    let last = 1.0 / trips.count() as f64;
    let mut points: Vec<_> = (0..)
        .map(|step| 0.5 * 10f64.powf(-f64::from(step) / f64::from(steps_of_a_decade)))
        .take_while(|share| *share > last)
        .map(|share| (share, us(trips.quantile(1.0 - share))))
        .collect();
    points.push((last.min(0.5), us(trips.max())));
    points
}

/// What a bulk transfer reached, by case, at the loss of the plan and at a heavy one.
pub fn throughput(story: &Story, plan: &Plan) -> Svg {
    const ROW: f64 = 34.0;
    let light = Case::ALL.map(|case| (case, Some(story.figures(case).median.throughput_gbps)));
    let heavy = Case::ALL.map(|case| (case, story.figures(case).median.throughput_at_1e2_gbps));
    let groups = [
        (format!("at a loss of {} (none on the clean wires)", plan.loss), light),
        (format!("at a loss of {:e}", plan.heavy_loss.get()), heavy),
    ];
    let groups = groups.map(|(heading, bars)| {
        let bars: Vec<_> = bars.into_iter().filter_map(|(case, rate)| Some((case, rate?))).collect();
        (heading, bars)
    });
    let bars = || groups.iter().flat_map(|(_, bars)| bars);
    let headings = groups.iter().filter(|(_, bars)| !bars.is_empty()).count();
    let height = headings as f64 * 28.0 + bars().count() as f64 * ROW;
    let description = described(story, |figures| {
        let heavy = figures.median.throughput_at_1e2_gbps.map(|rate| format!(", {} at heavy loss", gbps(rate)));
        format!("{}{}", gbps(figures.median.throughput_gbps), heavy.unwrap_or_default())
    });
    let mut svg = Svg::new("bulk", WIDTH as u32, height as u32, "Throughput of a bulk transfer", &description);
    let most = bars().map(|(_, rate)| *rate).filter(|rate| rate.is_finite()).fold(f64::MIN_POSITIVE, f64::max);
    // Room for a figure beside the longest bar.
    let longest = WIDTH - 13.0 * LETTER - 6.0;
    let mut y = 0.0;
    for (heading, bars) in groups.iter().filter(|(_, bars)| !bars.is_empty()) {
        svg.text("quiet", Anchor::Start, (0.0, y + 14.0), heading);
        y += 20.0;
        for (case, rate) in bars {
            let length = (rate / most * longest).max(1.0);
            svg.text(&format!("name {}", case.name()), Anchor::Start, (0.0, y + 12.0), title(*case));
            svg.rectangle(&format!("bar {}", case.name()), (0.0, y + 16.0), length, 12.0);
            svg.text("value", Anchor::Start, (length + 5.0, y + 26.0), &gbps(*rate));
            y += ROW;
        }
        y += 8.0;
    }
    svg
}

/// Every round's 99.9th percentile, so that the spread shows.
pub fn rounds(story: &Story) -> Svg {
    const STRIP: f64 = 48.0;
    const TOP: f64 = 4.0;
    let bottom = TOP + STRIP * Case::ALL.len() as f64;
    let p999s = |case: Case| story.figures(case).rounds.iter().map(|round| round.pingpong_p999_us);
    let mut svg = Svg::new(
        "rounds",
        WIDTH as u32,
        bottom as u32 + 40,
        "The 99.9th percentile of round trips, round by round",
        &described(story, |figures| {
            figures.rounds.iter().map(|round| us(round.pingpong_p999_us)).collect::<Vec<_>>().join(", ")
        }),
    );
    let x = Log::around(Case::ALL.into_iter().flat_map(p999s), 18.0, WIDTH - 20.0);
    for decade in x.decades() {
        // Not through the names, which stand at the top of each strip.
        for strip in 0..Case::ALL.len() {
            let y = TOP + STRIP * strip as f64;
            svg.line("grid", (x.at(decade), y + 17.0), (x.at(decade), y + STRIP));
        }
    }
    for (at, text) in legible(x.decades().map(|decade| (x.at(decade), tick(decade))), LETTER) {
        svg.text("tick", Anchor::Middle, (at, bottom + 17.0), &text);
    }
    svg.line("axis", (0.0, bottom), (WIDTH, bottom));
    svg.text("quiet", Anchor::Middle, (WIDTH / 2.0, bottom + 35.0), "p99.9 of round trips");
    for (strip, case) in Case::ALL.into_iter().enumerate() {
        let top = TOP + STRIP * strip as f64;
        let median = story.figures(case).median.pingpong_p999_us;
        svg.text(&format!("name {}", case.name()), Anchor::Start, (0.0, top + 12.0), title(case));
        svg.text("value", Anchor::End, (WIDTH, top + 12.0), &format!("median {}", us(median)));
        svg.line(&format!("median {}", case.name()), (x.at(median), top + 19.0), (x.at(median), top + STRIP - 3.0));
        for (number, p999) in p999s(case).enumerate() {
            // Rounds that came to the same stand above one another.
            let lane = (number * 3 % 5) as f64 * 4.0;
            svg.dot(&format!("round {}", case.name()), (x.at(p999), top + 24.0 + lane), 2.8);
        }
    }
    svg
}

/// A sentence for each case.
fn described(story: &Story, figures: impl Fn(&Figures) -> String) -> String {
    Case::ALL.map(|case| format!("{}: {}.", title(case), figures(story.figures(case)))).join(" ")
}

/// A power of ten of microseconds, with the unit that makes it short.
fn tick(us: f64) -> String {
    match us {
        us if us < 0.999e3 => format!("{} µs", (us * 1e3).round() / 1e3),
        us if us < 0.999e6 => format!("{:.0} ms", us / 1e3),
        us => format!("{:.0} s", us / 1e6),
    }
}

/// 0.001 of requests were slower: 99.9.
fn percentile(share: f64) -> String {
    let digits = (-share.log10()).round() as usize;
    format!("{:.*}", digits.saturating_sub(2), (1.0 - share) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_read_as_people_write_them() {
        assert_eq!(
            [0.1, 1.0, 100.0, 1e3, 1e5, 1e6, 1e7].map(tick),
            ["0.1 µs", "1 µs", "100 µs", "1 ms", "100 ms", "1 s", "10 s"]
        );
        assert_eq!([0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5].map(percentile), ["50", "90", "99", "99.9", "99.99", "99.999"]);
    }

    #[test]
    fn the_curve_ends_with_the_slowest_request() {
        let mut trips = RoundTrips::default();
        assert!(curve(&trips, 4).is_empty());
        for us in 1..=1_000 {
            trips.record(std::time::Duration::from_micros(us));
        }
        let points = curve(&trips, 4);
        let (share, slowest) = points[points.len() - 1];
        assert_eq!((points[0].0, share), (0.5, 1e-3));
        assert!((slowest - 1_000.0).abs() < 2.0, "{slowest}");
        assert!(points.is_sorted_by(|(_, before), (_, after)| before <= after));
    }
}
