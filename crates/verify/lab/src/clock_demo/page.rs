//! The demonstration of clocks as a page: one file that needs nothing else.

use chart::page::PageFrame;
use chart::svg::escape;
use chart::table::thousands;
use chart::{Axis, Chart, Line, Palette, Panel, SeriesChart};

use super::judge::ClockSample;
use super::{ClockDemoResult, text};

/// Points of a line; more cannot be seen.
const POINTS: usize = 400;

pub fn page(result: &ClockDemoResult) -> String {
    let header = format!(
        "<p class=\"lead\">Eight clocks on the corners of a cube, each a process with an oscillator that is off by up to \
         100 ppm, while links, nodes, a domain and the root are killed. {} readings by another process, {} wrong.</p>\n",
        thousands(result.reads),
        thousands(result.wrong)
    );
    let mut palette = Palette::default();
    let charts: String = [over_time(result), recoveries(result)]
        .into_iter()
        .enumerate()
        .map(|(number, chart)| chart.figure(&format!("chart-{number}"), &mut palette))
        .collect();
    PageFrame {
        title: "Clocks that know how wrong they are",
        css: "",
        header: &header,
        main: &format!("{charts}<pre>{}</pre>\n", escape(&text(result))),
        footer: "",
    }
    .html()
}

/// Largest value of each stretch of time, so that no peak is lost.
fn thinned(samples: &[ClockSample], value: fn(&ClockSample) -> f64) -> Vec<(f64, f64)> {
    let stretch = samples.len().div_ceil(POINTS).max(1);
    let largest = |samples: &[ClockSample]| samples.iter().map(value).fold(0.0, f64::max);
    samples.chunks(stretch).map(|samples| (samples[0].seconds, largest(samples))).collect()
}

fn over_time(result: &ClockDemoResult) -> Chart {
    let panel = |node: usize, samples: &Vec<ClockSample>| Panel {
        y: Axis::log(format!("h{node} (µs)")),
        lines: vec![
            Line::new("ε", thinned(samples, |sample| sample.eps_us.max(0.01))),
            Line::new("true error", thinned(samples, |sample| sample.error_us.max(0.01))),
        ],
    };
    let samples = result.samples.iter().enumerate().filter(|(_, samples)| !samples.is_empty());
    Chart::Series(SeriesChart {
        title: "By how much each clock may be wrong, and is".into(),
        caption: "The largest values of each stretch of time. The line of ε must be above the other one everywhere. A clock that \
                  was killed has a page that nobody writes any more: its ε grows until it is back. The first eight kills are marked."
            .into(),
        time: Axis::linear("s"),
        panels: samples.map(|(node, samples)| panel(node, samples)).collect(),
        events: result.marks.iter().zip(&result.kills).take(8).map(|(at, kill)| (*at, kill.what.clone())).collect(),
    })
}

fn recoveries(result: &ClockDemoResult) -> Chart {
    let mut lines: Vec<Line> = Vec::new();
    for kill in &result.kills {
        let Some(ms) = kill.recovery_ms else { continue };
        match lines.iter_mut().find(|line| line.name == kill.kind.name()) {
            Some(line) => line.points.push((kill.at_seconds, ms)),
            None => lines.push(Line::new(kill.kind.name(), vec![(kill.at_seconds, ms)])),
        }
    }
    Chart::Lines(chart::LinesChart {
        title: "How long somebody heard nothing after a kill".into(),
        caption: "The longest silence of any clock that lived; one point for each kill.".into(),
        x: Axis::linear("s"),
        y: Axis::log("ms"),
        lines,
    })
}
