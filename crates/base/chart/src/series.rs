//! Charts of events over time: panels above one another that share the axis of time (LinkGuardian Fig. 9, Fig. 21).

use super::plot::{Area, GAP, LINE, WIDTH, legible, shortened, width_of};
use super::{Axis, Data, Drawing, Line, NOTHING, Palette, Scale, Style};
use crate::svg::{Anchor, Svg};

#[derive(Clone, Debug)]
pub struct SeriesChart {
    pub title: String,
    pub caption: String,
    pub time: Axis,
    pub panels: Vec<Panel>,
    /// Start of each event, and its name.
    pub events: Vec<(f64, String)>,
}

#[derive(Clone, Debug)]
pub struct Panel {
    pub y: Axis,
    pub lines: Vec<Line>,
}

const PANEL: f64 = 62.0;
/// A panel's name stands so far above its plot that it clears the value at the upper end of the axis.
const NAME: f64 = LINE / 2.0 + 3.5;
const PITCH: f64 = LINE + PANEL + 17.0;

impl SeriesChart {
    fn lines(&self) -> impl Iterator<Item = (&Panel, &Line)> {
        self.panels.iter().flat_map(|panel| panel.lines.iter().map(move |line| (panel, line)))
    }

    fn events(&self) -> impl Iterator<Item = &(f64, String)> {
        self.events.iter().filter(|(at, _)| at.is_finite())
    }

    pub(super) fn draw(&self, id: &str, palette: &mut Palette) -> Option<Drawing> {
        self.lines().flat_map(|(_, line)| line.drawn()).next()?;
        let left = self.panels.iter().map(|panel| panel.area(0.0).left).fold(0.0, f64::max);
        let times = self.lines().flat_map(|(_, line)| line.drawn()).map(|(at, _)| at);
        let x = self.time.scale(times.chain(self.events().map(|(at, _)| *at)), left, Area::RIGHT);
        let labels = self.labels(&x);
        let lanes = labels.iter().map(|label| label.lane + 1).max().unwrap_or(0);
        let top = |panel: usize| lanes as f64 * LINE + panel as f64 * PITCH;
        let areas = self.panels.iter().enumerate().map(|(at, panel)| Area { left, ..panel.area(top(at)) });
        let areas: Vec<Area> = areas.collect();
        let last = areas.last()?;
        let told = self.told_apart(palette);

        let mut svg = Svg::new(id, WIDTH as u32, (last.bottom + Area::FOOT) as u32, &self.title, &self.description());
        let columns = self.time.ticks(&x);
        areas.iter().for_each(|area| area.columns(&mut svg, &columns));
        labels.iter().for_each(|label| label.draw(&mut svg, &areas));
        for (panel, area) in self.panels.iter().zip(&areas) {
            panel.draw(&mut svg, *area, &x, &told);
        }
        last.foot(&mut svg, &columns, &self.time.label);
        let keys = super::keys(told.iter().map(|(line, style)| (*line, line.key(*style, false), line.name.clone())));
        Some(Drawing { keys, svg, data: Some(self.data()) })
    }

    /// Lines that the legend distinguishes: those that share a panel. A line alone is named by its panel, and a single
    /// line among references is easily recognized.
    fn told_apart(&self, palette: &mut Palette) -> Vec<(&Line, Style)> {
        let mut lines: Vec<&Line> = Vec::new();
        for line in self.panels.iter().filter(|panel| panel.lines.len() > 1).flat_map(|panel| &panel.lines) {
            if lines.iter().all(|known| known.name != line.name) {
                lines.push(line);
            }
        }
        let alone = lines.iter().filter(|line| !line.reference).count() < 2;
        let styles = if alone { vec![Style::ONLY; lines.len()] } else { super::styles(&lines, palette) };
        lines.into_iter().zip(styles).collect()
    }

    /// Labels of the events, each in the highest lane that is free.
    fn labels(&self, x: &Scale) -> Vec<EventLabel> {
        let mut labels: Vec<EventLabel> = Vec::new();
        for (at, text) in self.events() {
            let text = shortened(text, WIDTH / 2.0);
            let label = |lane| EventLabel::new(x.at(*at), text.clone(), lane);
            let free = (0..).map(label).find(|label| labels.iter().all(|other| !label.touches(other)));
            labels.extend(free);
        }
        labels
    }

    fn description(&self) -> String {
        let events: Vec<String> =
            self.events().map(|(at, text)| format!("{text} at {}", self.time.text(*at))).collect();
        let panels: Vec<&str> = self.panels.iter().map(|panel| panel.y.label.as_str()).collect();
        let events = if events.is_empty() { String::new() } else { format!(" Events: {}.", events.join(", ")) };
        format!("Over {}: {}.{events}", self.time.label, panels.join("; "))
    }

    /// Means between events: what the eye takes from the panels.
    fn data(&self) -> Data {
        let mut begins: Vec<(f64, String)> = self.events().cloned().collect();
        begins.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        begins.insert(0, (f64::NEG_INFINITY, "at first".to_owned()));
        let ends = begins.iter().skip(1).map(|(at, _)| *at).chain([f64::INFINITY]);
        let phases: Vec<(f64, f64)> = begins.iter().map(|(at, _)| *at).zip(ends).collect();
        let row = |(panel, line): (&Panel, &Line)| {
            let mean = |phase: &(f64, f64)| mean(line, *phase).map_or(NOTHING.to_owned(), |mean| panel.y.text(mean));
            let name =
                if panel.lines.len() > 1 { format!("{}: {}", panel.y.label, line.name) } else { panel.y.label.clone() };
            (vec![name], phases.iter().map(mean).collect())
        };
        Data {
            caption: "Means between events".into(),
            names: vec![String::new()],
            values: begins.iter().map(|(_, text)| text.clone()).collect(),
            rows: self.lines().map(row).collect(),
        }
    }
}

/// The mean over time, for any distances between points.
fn mean(line: &Line, (from, to): (f64, f64)) -> Option<f64> {
    let points: Vec<(f64, f64)> = line.drawn().collect();
    let (mut sum, mut time) = (0.0, 0.0);
    for pair in points.windows(2) {
        let [(began, first), (ended, last)] = pair else { continue };
        let (left, right) = (began.max(from), ended.min(to));
        if left < right {
            let at = |t: f64| first + (last - first) * (t - began) / (ended - began);
            sum += (at(left) + at(right)) / 2.0 * (right - left);
            time += right - left;
        }
    }
    (time > 0.0).then(|| sum / time)
}

impl Panel {
    /// Area of the plot below the panel's name, if the panel begins at `top`.
    fn area(&self, top: f64) -> Area {
        let top = top + LINE - 2.0 + NAME;
        let y = self.scale(top + PANEL, top);
        Area::beside(&self.rows(&y), top, top + PANEL)
    }

    fn scale(&self, from: f64, to: f64) -> Scale {
        self.y.scale(self.lines.iter().flat_map(Line::drawn).map(|(_, value)| value), from, to)
    }

    fn rows(&self, y: &Scale) -> Vec<(f64, String)> {
        legible(self.y.ticks(y), |_| LINE, GAP)
    }

    fn draw(&self, svg: &mut Svg, area: Area, x: &Scale, told: &[(&Line, Style)]) {
        let y = self.scale(area.bottom, area.top);
        area.rows(svg, &self.rows(&y));
        for line in &self.lines {
            let style = told.iter().find(|(other, _)| other.name == line.name).map_or(Style::ONLY, |(_, style)| *style);
            let points: Vec<_> = line.drawn().map(|(at, value)| (x.at(at), y.at(value))).collect();
            line.draw(svg, style, &points);
        }
        svg.line("axis", (area.left, area.bottom), (area.right, area.bottom));
        let none = self.lines.iter().flat_map(Line::drawn).next().is_none();
        let name = format!("{}{}", self.y.label, if none { ": no data" } else { "" });
        svg.text("quiet halo", Anchor::Start, (0.0, area.top - NAME), &shortened(&name, WIDTH));
    }
}

/// An event's text beside its line, on the side that has room.
struct EventLabel {
    at: f64,
    text: String,
    lane: usize,
    anchor: Anchor,
}

impl EventLabel {
    fn new(at: f64, text: String, lane: usize) -> Self {
        let anchor = if at + GAP + width_of(&text) <= WIDTH { Anchor::Start } else { Anchor::End };
        Self { at, text, lane, anchor }
    }

    /// Range that it covers from left to right, its line included.
    fn span(&self) -> (f64, f64) {
        let reach = GAP + width_of(&self.text);
        if self.anchor == Anchor::Start { (self.at - GAP, self.at + reach) } else { (self.at - reach, self.at + GAP) }
    }

    fn touches(&self, other: &Self) -> bool {
        let ((left, right), (from, to)) = (self.span(), other.span());
        self.lane == other.lane && left < to && from < right
    }

    /// Draws the event. Its line leads down to the first panel, and leaves the names of the others free.
    fn draw(&self, svg: &mut Svg, panels: &[Area]) {
        let top = self.lane as f64 * LINE;
        let aside = if self.anchor == Anchor::Start { GAP } else { -GAP };
        for (at, panel) in panels.iter().enumerate() {
            let from = if at == 0 { top + 2.0 } else { panel.top };
            svg.line("event", (self.at, from), (self.at, panel.bottom));
        }
        svg.text("event halo", self.anchor, (self.at + aside, top + LINE - 4.0), &self.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(events: &[(f64, &str)]) -> SeriesChart {
        let line = Line::new("goodput", (0..=10).map(|at| (f64::from(at), f64::from(at % 3))).collect());
        SeriesChart {
            title: "t".into(),
            caption: String::new(),
            time: Axis::linear("time (s)"),
            panels: vec![Panel { y: Axis::linear("throughput (Gb/s)"), lines: vec![line] }],
            events: events.iter().map(|(at, text)| (*at, (*text).to_owned())).collect(),
        }
    }

    #[test]
    fn labels_of_events_never_touch() {
        let chart = chart(&[(2.0, "loss starts"), (2.5, "protection on"), (9.5, "loss ends")]);
        let labels = chart.labels(&Scale::linear([0.0, 10.0], 40.0, 348.0));
        assert_eq!(labels.iter().map(|label| label.lane).collect::<Vec<_>>(), [0, 1, 0]);
        assert_eq!(labels[2].anchor, Anchor::End);
    }

    #[test]
    fn the_numbers_are_means_between_events() {
        let data = chart(&[(3.0, "loss starts")]).data();
        assert_eq!(data.values, ["at first", "loss starts"]);
        assert_eq!(data.rows, [(vec!["throughput (Gb/s)".to_owned()], vec!["1".to_owned(), "0.9286".to_owned()])]);
        let speed = Line::reference("speed", vec![(0.0, 8.0), (4.0, 8.0), (4.0, 6.0), (10.0, 6.0)]);
        assert_eq!(
            [(2.0, 3.0), (4.0, 9.0), (11.0, 12.0)].map(|phase| mean(&speed, phase)),
            [Some(8.0), Some(6.0), None]
        );
    }
}
