//! Values by values: slowdown by size, throughput by loss.

use super::plot::{Area, LINE, WIDTH, legible};
use super::{Axis, Data, Drawing, Line, NOTHING, Palette};
use crate::svg::Svg;

#[derive(Clone, Debug)]
pub struct LinesChart {
    pub title: String,
    pub caption: String,
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line>,
}

/// More points than this are a curve: they are not marked one by one, nor listed in a table.
const FEW: usize = 40;

impl LinesChart {
    pub(super) fn draw(&self, id: &str, palette: &mut Palette) -> Option<Drawing> {
        const TOP: f64 = LINE + 7.0;
        const BOTTOM: f64 = TOP + 170.0;
        let all = || self.lines.iter().flat_map(Line::all);
        all().next()?;
        let y = self.y.scale(all().map(|(_, value)| value), BOTTOM, TOP);
        let rows = legible(self.y.ticks(&y), |_| LINE, 0.0);
        let area = Area::beside(&rows, TOP, BOTTOM);
        let x = self.x.scale(all().map(|(value, _)| value), area.left, area.right);
        let columns = self.x.ticks(&x);

        let mut svg = Svg::new(id, WIDTH as u32, (BOTTOM + Area::FOOT) as u32, &self.title, &self.description());
        area.rule(&mut svg, (&self.x.label, &self.y.label), &columns, &rows);
        let styles = super::styles(&self.lines.iter().collect::<Vec<_>>(), palette);
        let place = |(at, value): (f64, f64)| (x.at(at), y.at(value));
        for (line, style) in super::layered(&self.lines, &styles) {
            let points: Vec<_> = line.drawn().map(place).collect();
            line.draw(&mut svg, style, &points);
            if marked(line) {
                points.iter().for_each(|point| style.mark(&mut svg, *point, false));
            }
            super::numbers(&line.paper).for_each(|point| style.mark(&mut svg, place(point), true));
        }
        let keys = self.lines.iter().zip(&styles);
        let keys = super::keys(keys.map(|(line, style)| (line, line.key(*style, marked(line)), line.name.clone())));
        Some(Drawing { keys, svg, data: self.data(self.x.writer(&x)) })
    }

    fn description(&self) -> String {
        let told = |line: &Line| match (line.drawn().next(), line.drawn().last()) {
            (Some(first), Some(last)) => {
                let at = |(x, y): (f64, f64)| format!("{} at {}", self.y.text(y), self.x.text(x));
                format!("{}: from {} to {}.", line.name, at(first), at(last))
            }
            _ => format!("{}: no data.", line.name),
        };
        let lines: Vec<String> = self.lines.iter().map(told).collect();
        format!("{} by {}. {}", self.y.label, self.x.label, lines.join(" "))
    }

    fn data(&self, write_x: fn(f64) -> String) -> Option<Data> {
        let mut xs: Vec<f64> = self.lines.iter().flat_map(Line::all).map(|(x, _)| x).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        if xs.len() > FEW {
            return None;
        }
        let mut columns: Vec<(String, &[(f64, f64)])> = Vec::new();
        for line in &self.lines {
            columns.push((line.name.clone(), &line.points));
            if !line.paper.is_empty() {
                columns.push((format!("{}, paper", line.name), &line.paper));
            }
        }
        let value = |points: &[(f64, f64)], x: f64| {
            let found = points.iter().find(|(at, _)| *at == x);
            found.map_or(NOTHING.to_owned(), |(_, y)| self.y.text(*y))
        };
        let row = |x: f64| {
            let values = columns.iter().map(|(_, points)| value(points, x)).collect();
            (vec![write_x(x)], values)
        };
        Some(Data {
            caption: self.y.label.clone(),
            names: vec![self.x.label.clone()],
            values: columns.iter().map(|(name, _)| name.clone()).collect(),
            rows: xs.into_iter().map(row).collect(),
        })
    }
}

fn marked(line: &Line) -> bool {
    !line.reference && line.points.len() <= FEW
}
