//! The slowest few: a cumulative distribution from, say, its 99th percentile up (LinkGuardian Fig. 10 to 12).

use std::collections::BTreeSet;

use super::plot::{Area, LINE, WIDTH, legible};
use super::{Axis, Data, Drawing, Line, NOTHING, Palette, Scale, Style, percent};
use crate::svg::Svg;

/// Spacing of the axis of shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shares {
    /// Evenly, as in the paper.
    Even,
    /// Spacing by rarity: 99, 99.9 and 99.99 % are equally far apart.
    Rarity,
}

#[derive(Clone, Debug)]
pub struct TailChart {
    pub title: String,
    pub caption: String,
    /// The values, such as flow completion times.
    pub x: Axis,
    /// Plural noun of the things counted, such as `flows`.
    pub of: String,
    /// The share at which it begins, such as 0.99.
    pub from: f64,
    pub shares: Shares,
    /// A share to mark and to give the values of, such as 0.999.
    pub guide: Option<f64>,
    /// Lines of values and cumulative shares, as [`tail_points`] gives them.
    pub lines: Vec<Line>,
}

/// The shares that people ask for.
const PERCENTILES: [f64; 6] = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];
/// Error that floating point may add to a share.
const ALMOST: f64 = 1e-9;

/// The values of a sorted slice from a share up, each with the share of values that are not above it; a few hundred
/// of them, however many there are: at equal distances, at ever smaller ones towards the last, and the percentiles.
pub fn tail_points(sorted: &[f64], from: f64) -> Vec<(f64, f64)> {
    const EVEN: usize = 200;
    const RARE: usize = 150;
    let Some(last) = sorted.len().checked_sub(1) else { return Vec::new() };
    let count = sorted.len() as f64;
    let rank = |share: f64| ((share * count - 1e-6).ceil() as usize).saturating_sub(1).min(last);
    let first = rank(from);
    let length = last - first;
    let even = (0..=EVEN).map(|step| first + length * step / EVEN);
    let rare = (0..=RARE).map(|step| last - length.min((length as f64).powf(step as f64 / RARE as f64) as usize));
    let asked = PERCENTILES.into_iter().map(rank).filter(|at| *at >= first);
    let kept: BTreeSet<usize> = even.chain(rare).chain(asked).collect();
    kept.into_iter().map(|at| (sorted[at], (at + 1) as f64 / count)).collect()
}

impl TailChart {
    pub(super) fn draw(&self, id: &str, palette: &mut Palette) -> Option<Drawing> {
        const TOP: f64 = LINE + 7.0;
        const BOTTOM: f64 = TOP + 190.0;
        self.lines.iter().flat_map(Line::all).next()?;
        let y = self.shares(BOTTOM, TOP);
        let rows = self.guide.into_iter().chain(y.ticks()).map(|share| (y.at(share), percent(share)));
        let rows = legible(rows, |_| LINE, 0.0);
        let area = Area::beside(&rows, TOP, BOTTOM);
        let x = self.x.scale(self.values(), area.left, area.right);
        let columns = self.x.ticks(&x);

        let mut svg = Svg::new(id, WIDTH as u32, (BOTTOM + Area::FOOT) as u32, &self.title, &self.description());
        area.rule(&mut svg, (&self.x.label, &format!("cumulative % of {}", self.of)), &columns, &rows);
        let styles = super::styles(&self.lines.iter().collect::<Vec<_>>(), palette);
        let place = |(value, share): (f64, f64)| (x.at(value), y.at(share));
        for (line, style) in super::layered(&self.lines, &styles) {
            let points: Vec<_> = self.steps(line).into_iter().map(place).collect();
            line.draw(&mut svg, style, &points);
        }
        self.mark_guide(&mut svg, (&x, &y), &styles);
        for (line, style) in self.lines.iter().zip(&styles) {
            let paper = super::numbers(&line.paper).filter(|(_, share)| *share >= self.from);
            paper.for_each(|point| style.mark(&mut svg, place(point), true));
        }
        let marked = self.guide.is_some();
        let keys = self.lines.iter().zip(&styles);
        let keys = super::keys(keys.map(|(line, style)| (line, line.key(*style, marked), self.legend_text(line))));
        Some(Drawing { keys, svg, data: Some(self.data()) })
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        let all = self.lines.iter().flat_map(Line::all);
        all.filter(|(_, share)| *share >= self.from).map(|(value, _)| value)
    }

    fn shares(&self, from: f64, to: f64) -> Scale {
        match self.shares {
            Shares::Even => Scale::linear([self.from, 1.0], from, to),
            Shares::Rarity => {
                let rarest = self.lines.iter().filter_map(rarest).fold(f64::INFINITY, f64::min);
                Scale::rarity(self.from, rarest, from, to)
            }
        }
    }

    /// A distribution jumps at its values.
    fn steps(&self, line: &Line) -> Vec<(f64, f64)> {
        let mut before = self.from;
        let mut steps = Vec::new();
        for (value, share) in line.drawn().filter(|(_, share)| *share >= self.from) {
            steps.extend([(value, before), (value, share)]);
            before = share;
        }
        steps
    }

    fn mark_guide(&self, svg: &mut Svg, (x, y): (&Scale, &Scale), styles: &[Style]) {
        let Some(share) = self.guide else { return };
        let (height, (left, right)) = (y.at(share), x.places());
        svg.line("guide", (left, height), (right, height));
        for (line, style) in self.lines.iter().zip(styles).filter(|(line, _)| !line.reference) {
            if let Some(value) = value_at(line, share) {
                style.mark(svg, (x.at(value), height), false);
            }
        }
    }

    fn legend_text(&self, line: &Line) -> String {
        match self.guide.and_then(|share| Some((share, value_at(line, share)?))) {
            None => line.name.clone(),
            Some((share, value)) => format!("{}: {}\u{a0}{}", line.name, percentile(share), self.x.text(value)),
        }
    }

    fn description(&self) -> String {
        let told = |line: &Line| {
            let values = self.percentiles().into_iter().filter_map(|share| {
                Some(format!("{} % within {}", percent(share), self.x.text(value_at(line, share)?)))
            });
            let most = slowest(line).map(|value| format!("all within {}", self.x.text(value)));
            let values: Vec<String> = values.chain(most).collect();
            format!("{}: {}.", line.name, if values.is_empty() { "no data".to_owned() } else { values.join(", ") })
        };
        self.lines.iter().map(told).collect::<Vec<_>>().join(" ")
    }

    /// Percentiles for which at least one line has a value.
    fn percentiles(&self) -> Vec<f64> {
        let told = |share: &f64| self.lines.iter().any(|line| value_at(line, *share).is_some());
        PERCENTILES.into_iter().filter(|share| *share >= self.from - ALMOST).filter(told).collect()
    }

    fn data(&self) -> Data {
        let shares = self.percentiles();
        let text = |value: Option<f64>| value.map_or(NOTHING.to_owned(), |value| self.x.text(value));
        let mut rows = Vec::new();
        for line in &self.lines {
            let ours = shares.iter().map(|share| value_at(line, *share)).chain([slowest(line)]);
            rows.push((vec![line.name.clone()], ours.map(text).collect()));
            if !line.paper.is_empty() {
                let given = |share: f64| line.paper.iter().find(|(_, at)| (at - share).abs() < ALMOST);
                let paper = shares.iter().map(|share| given(*share).map(|(value, _)| *value)).chain([None]);
                rows.push((vec![format!("{}, paper", line.name)], paper.map(text).collect()));
            }
        }
        let heads = shares.iter().map(|share| percentile(*share)).chain(["max".to_owned()]);
        Data { caption: self.x.label.clone(), names: vec![String::new()], values: heads.collect(), rows }
    }
}

fn percentile(share: f64) -> String {
    format!("p{}", percent(share))
}

/// The least share that a line leaves above any of its values: one over how many there are.
fn rarest(line: &Line) -> Option<f64> {
    line.drawn().map(|(_, share)| 1.0 - share).filter(|left| *left > ALMOST).min_by(f64::total_cmp)
}

/// The value that a share does not exceed, if the line begins early enough and has values beyond it.
fn value_at(line: &Line, share: f64) -> Option<f64> {
    let one = rarest(line)?;
    let (_, first) = line.drawn().next()?;
    let (value, _) = line.drawn().find(|(_, at)| *at >= share - ALMOST)?;
    (first <= share + one && one <= 1.0 - share + ALMOST).then_some(value)
}

fn slowest(line: &Line) -> Option<f64> {
    line.drawn().last().filter(|(_, share)| *share >= 1.0 - ALMOST).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(count: u32) -> Line {
        let sorted: Vec<f64> = (1..=count).map(f64::from).collect();
        Line::new("x", tail_points(&sorted, 0.5))
    }

    #[test]
    fn few_points_stand_for_many_values() {
        let sorted: Vec<f64> = (1..=300_000).map(f64::from).collect();
        let points = tail_points(&sorted, 0.99);
        assert!(points.len() <= 400, "{}", points.len());
        assert_eq!((points[0], points[points.len() - 1]), ((297_000.0, 0.99), (300_000.0, 1.0)));
        assert!(points.is_sorted_by(|a, b| a.1 < b.1));
        assert!([299_700.0, 299_970.0, 299_997.0].iter().all(|value| points.iter().any(|(x, _)| x == value)));
    }

    #[test]
    fn the_tail_of_nothing_is_nothing_and_of_one_value_is_that_value() {
        assert!(tail_points(&[], 0.99).is_empty());
        assert_eq!(tail_points(&[7.0], 0.99), [(7.0, 1.0)]);
    }

    #[test]
    fn a_percentile_is_told_only_by_enough_values() {
        let line = line(1_000);
        assert_eq!(value_at(&line, 0.99), Some(990.0));
        assert_eq!(value_at(&line, 0.999), Some(999.0));
        assert_eq!(value_at(&line, 0.9999), None);
        assert_eq!(slowest(&line), Some(1_000.0));
        let odd: Vec<f64> = (1..=1_001).map(f64::from).collect();
        assert_eq!(value_at(&Line::new("no value is at 99 % exactly", tail_points(&odd, 0.99)), 0.99), Some(991.0));
        assert_eq!(value_at(&Line::new("late", vec![(5.0, 0.999), (6.0, 1.0)]), 0.99), None);
    }
}
