//! Chart of losses over time, and below it a strip for each of the flows that lost most.

use std::collections::{BTreeMap, BTreeSet};

use chart::svg::{Anchor, Svg, escape};
use chart::{self, Area, Axis, Palette, Style, WIDTH};

use super::super::LossReport;
use super::super::text::{time, utc};
use crate::loss::LossCause;
use crate::packet::Flow;

const BINS: usize = 120;
const FLOWS: usize = 12;
const TOP: f64 = 20.0;
const HEIGHT: f64 = 120.0;
/// The name of a flow, and below it its losses.
const STRIP: f64 = 30.0;
const MARK: f64 = 8.0;
const LEFT: f64 = 44.0;
const TITLE: &str = "Losses over time";

pub(super) fn figure(report: &LossReport, palette: &mut Palette) -> String {
    let timeline = Timeline::new(report, palette);
    let svg = timeline.draw();
    let other = timeline.down.map_or(String::new(), |down| {
        format!(" The bar below is DOWN's capture on the same axis: its clock is known to ± {}.", time(down.error))
    });
    let caption =
        format!("From {} UTC, the first frame of the capture upstream. Colours are causes.{other}", utc(timeline.from));
    format!("{}{}", timeline.legend(), chart::figure(TITLE, &caption, &svg))
}

struct Timeline {
    /// Seconds since the first frame of UP, flow and cause.
    losses: Vec<(f64, Flow, LossCause)>,
    styles: BTreeMap<LossCause, Style>,
    flows: Vec<Flow>,
    from: u64,
    seconds: f64,
    down: Option<DownSpan>,
}

/// DOWN's capture on UP's axis: seconds, and by how many nanoseconds they may be wrong.
#[derive(Clone, Copy, Debug)]
struct DownSpan {
    from: f64,
    until: f64,
    error: i64,
}

impl DownSpan {
    fn new(report: &LossReport, origin: u64) -> Option<Self> {
        let (first, last) = report.comparison.down.span?;
        let (first, last) = (report.up_time(first)?, report.up_time(last)?);
        let seconds = |at: u64| (at as f64 - origin as f64) / 1e9;
        let middle = |(low, high): (u64, u64)| seconds(low / 2 + high / 2);
        let error = [first, last].map(|(low, high)| (high - low).div_ceil(2));
        Some(Self { from: middle(first), until: middle(last), error: error[0].max(error[1]) as i64 })
    }
}

impl Timeline {
    fn new(report: &LossReport, palette: &mut Palette) -> Self {
        let (from, until) = report.comparison.up.span.unwrap_or_default();
        let losses = report.comparison.lost.iter().zip(&report.causes);
        let losses =
            losses.map(|(lost, cause)| (lost.loss.at.0.saturating_sub(from) as f64 / 1e9, lost.loss.flow, *cause));
        let names = LossCause::ALL.map(|cause| cause.to_string());
        let styles = LossCause::ALL.into_iter().zip(palette.styles(names.iter().map(String::as_str))).collect();
        Self {
            losses: losses.collect(),
            styles,
            flows: report.comparison.flows.iter().take(FLOWS).map(|flow| flow.flow).collect(),
            from,
            down: DownSpan::new(report, from),
            seconds: ((until - from) as f64 / 1e9).max(1e-9),
        }
    }

    fn area(&self) -> Area {
        Area { left: LEFT, right: WIDTH - 12.0, top: TOP, bottom: TOP + HEIGHT }
    }

    fn draw(&self) -> Svg {
        let area = self.area();
        let strips = (self.flows.len() + usize::from(self.down.is_some())) as f64 * STRIP;
        let bottom = area.bottom + strips + 6.0;
        let height = (bottom + Area::FOOT) as u32;
        let mut svg = Svg::new("timeline", WIDTH as u32, height, TITLE, &self.description());
        let axis = Axis::linear("seconds").within(0.0, self.seconds);
        let x = axis.scale([], area.left, area.right);
        let ticks = axis.ticks(&x);
        let whole = Area { bottom, ..area };
        whole.columns(&mut svg, &ticks);
        self.draw_bins(&mut svg, area, |at| x.at(at));
        for (number, flow) in self.flows.iter().enumerate() {
            let top = area.bottom + 6.0 + number as f64 * STRIP;
            svg.text("name halo", Anchor::Start, (0.0, top + 12.0), &flow.to_string());
            self.draw_strip(&mut svg, flow, top + STRIP - MARK - 4.0, |at| x.at(at));
        }
        if let Some(down) = self.down {
            self.draw_down(&mut svg, down, bottom - STRIP, |at| x.at(at));
        }
        whole.foot(&mut svg, &ticks, &axis.label);
        svg
    }

    /// DOWN's capture, and how far its ends may be off: at least as wide as can be seen.
    fn draw_down(&self, svg: &mut Svg, down: DownSpan, top: f64, x: impl Fn(f64) -> f64) {
        let text = format!("DOWN's capture, ± {}", time(down.error));
        svg.text("name halo", Anchor::Start, (0.0, top + 12.0), &text);
        let within = |at: f64| x(at.clamp(0.0, self.seconds));
        let (left, right) = (within(down.from), within(down.until));
        let middle = top + STRIP - MARK / 2.0 - 4.0;
        svg.line("grid", (left, middle), (right, middle));
        for end in [down.from, down.until] {
            let error = down.error as f64 / 1e9;
            let (low, high) = (within(end - error), within(end + error));
            svg.rectangle("bar", (low, middle - MARK / 2.0), (high - low).max(1.0), MARK);
        }
    }

    /// Draws the number of losses in each part of the time, one cause above the other.
    fn draw_bins(&self, svg: &mut Svg, area: Area, x: impl Fn(f64) -> f64) {
        let mut bins: Vec<BTreeMap<LossCause, u64>> = vec![BTreeMap::new(); BINS];
        for (at, _, cause) in &self.losses {
            let bin = ((at / self.seconds * BINS as f64) as usize).min(BINS - 1);
            *bins[bin].entry(*cause).or_default() += 1;
        }
        let most = bins.iter().map(|bin| bin.values().sum::<u64>()).max().unwrap_or(0);
        let axis = Axis::linear("lost packets");
        let y = axis.scale([most as f64], area.bottom, area.top);
        svg.text("quiet", Anchor::Start, (0.0, 11.0), &format!("lost packets in {:.3} s", self.seconds / BINS as f64));
        for (at, text) in axis.ticks(&y) {
            svg.line("grid", (area.left, at), (area.right, at));
            svg.text("tick mid", Anchor::End, (area.left - 5.0, at), &text);
        }
        for (number, bin) in bins.iter().enumerate() {
            let edge = |number: usize| x(number as f64 / BINS as f64 * self.seconds);
            let mut below = 0;
            for (cause, count) in bin {
                let (low, high) = (y.at(below as f64), y.at((below + count) as f64));
                let class = self.class(*cause);
                svg.rectangle(&class, (edge(number), high), (edge(number + 1) - edge(number)).max(1.0), low - high);
                below += count;
            }
        }
    }

    fn draw_strip(&self, svg: &mut Svg, flow: &Flow, top: f64, x: impl Fn(f64) -> f64) {
        let area = self.area();
        svg.line("grid", (area.left, top + MARK), (area.right, top + MARK));
        // Losses at the same spot are drawn once.
        let spot = |at: f64| (x(at) * 2.0) as i64;
        let spots: BTreeSet<(i64, LossCause)> =
            self.losses.iter().filter(|(_, of, _)| of == flow).map(|(at, _, cause)| (spot(*at), *cause)).collect();
        for (spot, cause) in spots {
            svg.rectangle(&self.class(cause), (spot as f64 / 2.0, top), 1.0, MARK);
        }
    }

    fn class(&self, cause: LossCause) -> String {
        format!("bar {}", self.styles.get(&cause).map_or(String::new(), |style| style.class()))
    }

    fn present(&self) -> BTreeMap<LossCause, u64> {
        let mut counts = BTreeMap::new();
        self.losses.iter().for_each(|(_, _, cause)| *counts.entry(*cause).or_default() += 1);
        counts
    }

    fn legend(&self) -> String {
        let entry = |(cause, count): (LossCause, u64)| {
            let mut key = Svg::ornament("key", 28, 12);
            key.rectangle(&self.class(cause), (2.0, 1.0), 24.0, 10.0);
            format!("<li>{key}{}</li>\n", escape(&format!("{cause} ({count})")))
        };
        let entries: String = self.present().into_iter().map(entry).collect();
        format!("<ul class=\"legend\">\n{entries}</ul>\n")
    }

    fn description(&self) -> String {
        let causes: Vec<String> = self.present().into_iter().map(|(cause, count)| format!("{cause} {count}")).collect();
        format!("Lost packets over {:.3} seconds, by cause: {}.", self.seconds, causes.join(", "))
    }
}
