//! Groups of bars, each with its name and value: goodput by loss and scheme (LinkGuardian Table 3).

use super::plot::{Area, GAP, LINE, WIDTH, shortened, width_of};
use super::style::paper_mark;
use super::{Axis, Data, Drawing, NOTHING, Palette, Scale, Style};
use crate::svg::{Anchor, Svg};

#[derive(Clone, Debug)]
pub struct BarsChart {
    pub title: String,
    pub caption: String,
    pub axis: Axis,
    pub groups: Vec<BarGroup>,
}

#[derive(Clone, Debug)]
pub struct BarGroup {
    pub name: String,
    pub bars: Vec<Bar>,
}

#[derive(Clone, Debug)]
pub struct Bar {
    pub name: String,
    pub ours: Option<f64>,
    pub paper: Option<f64>,
}

impl Bar {
    fn ours(&self) -> Option<f64> {
        self.ours.filter(|value| value.is_finite())
    }

    fn paper(&self) -> Option<f64> {
        self.paper.filter(|value| value.is_finite())
    }
}

const ROW: f64 = 16.0;
const THICK: f64 = 10.0;
const BETWEEN: f64 = 8.0;

/// Layout of names: in a column before the bars, or above each bar when they would leave too little for it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct NameLayout {
    column: f64,
    above: f64,
}

impl BarsChart {
    fn bars(&self) -> impl Iterator<Item = &Bar> {
        self.groups.iter().flat_map(|group| &group.bars)
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.bars().flat_map(|bar| [bar.ours(), bar.paper()]).flatten()
    }

    pub(super) fn draw(&self, id: &str, palette: &mut Palette) -> Option<Drawing> {
        self.values().next()?;
        let names = self.names();
        let area = self.area(names);
        let x = self.scale(area.left, area.right);
        let columns = self.axis.ticks(&x);
        let mut svg = Svg::new(id, WIDTH as u32, (area.bottom + Area::FOOT) as u32, &self.title, &self.description());
        area.columns(&mut svg, &columns);
        area.foot(&mut svg, &columns, &self.axis.label);
        let mut y = 0.0;
        for group in &self.groups {
            if !group.name.is_empty() {
                svg.text("group halo", Anchor::Start, (0.0, y + LINE - 4.0), &shortened(&group.name, WIDTH));
                y += LINE;
            }
            let styles = palette.styles(group.bars.iter().map(|bar| bar.name.as_str()));
            for (bar, style) in group.bars.iter().zip(styles) {
                y += names.above;
                self.draw_bar(&mut svg, bar, style, &x, names, y);
                y += ROW;
            }
            y += BETWEEN;
        }
        // Bars carry their names, so that only the paper's marks need a legend.
        let paper = self.bars().any(|bar| bar.paper().is_some());
        Some(Drawing { keys: paper.then(super::paper_key).into_iter().collect(), svg, data: Some(self.data()) })
    }

    /// All groups, with room for a value beside the longest bar.
    fn area(&self, names: NameLayout) -> Area {
        let heads = self.groups.iter().filter(|group| !group.name.is_empty()).count() as f64;
        let rows = self.bars().count() as f64 * (ROW + names.above);
        let bottom = heads * LINE + rows + self.groups.len() as f64 * BETWEEN;
        let widest = self.bars().map(|bar| width_of(&self.value_text(bar))).fold(0.0, f64::max);
        Area { left: names.column, right: (WIDTH - 2.0 * GAP - widest).max(names.column + LINE), top: 0.0, bottom }
    }

    fn names(&self) -> NameLayout {
        const WIDEST: f64 = WIDTH / 3.0;
        let widest = self.bars().map(|bar| width_of(&bar.name)).fold(0.0, f64::max);
        if widest <= WIDEST {
            NameLayout { column: widest + GAP, above: 0.0 }
        } else {
            NameLayout { column: 1.0, above: LINE }
        }
    }

    /// A logarithmic one begins a decade below the least value, so that this too has a bar.
    fn scale(&self, from: f64, to: f64) -> Scale {
        let least = self.values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        let base = self.axis.log.then_some(least / 10.0);
        self.axis.scale(self.values().chain(base), from, to)
    }

    fn draw_bar(&self, svg: &mut Svg, bar: &Bar, style: Style, x: &Scale, names: NameLayout, y: f64) {
        let (base, _) = x.places();
        let middle = y + ROW / 2.0;
        let name_at = if names.above > 0.0 { y - LINE / 2.0 + 1.0 } else { middle };
        svg.text("name halo mid", Anchor::Start, (0.0, name_at), &shortened(&bar.name, WIDTH));
        let mut end = base;
        if let Some(ours) = bar.ours() {
            let zero = if self.axis.log { base } else { x.at(0.0) };
            let (from, to) = (zero.min(x.at(ours)), zero.max(x.at(ours)));
            svg.rectangle(&format!("bar {}", style.class()), (from, middle - THICK / 2.0), (to - from).max(1.0), THICK);
            end = end.max(to);
        }
        if let Some(paper) = bar.paper() {
            paper_mark(svg, (x.at(paper), middle));
            end = end.max(x.at(paper) + GAP);
        }
        svg.text("value halo mid", Anchor::Start, (end + GAP, middle), &self.value_text(bar));
    }

    fn value_text(&self, bar: &Bar) -> String {
        bar.ours().map_or(NOTHING.to_owned(), |value| self.axis.text(value))
    }

    fn description(&self) -> String {
        let bar = |bar: &Bar| {
            let paper = bar.paper().map_or(String::new(), |paper| format!(" (paper {})", self.axis.text(paper)));
            format!("{} {}{paper}", bar.name, self.value_text(bar))
        };
        let group = |group: &BarGroup| {
            let bars: Vec<String> = group.bars.iter().map(bar).collect();
            format!("{}: {}.", group.name, bars.join(", "))
        };
        let groups: Vec<String> = self.groups.iter().map(group).collect();
        format!("{}. {}", self.axis.label, groups.join(" "))
    }

    fn data(&self) -> Data {
        let row = |group: &BarGroup, bar: &Bar| {
            let values = [bar.ours(), bar.paper()];
            let values = values.map(|value| value.map_or(NOTHING.to_owned(), |value| self.axis.text(value)));
            (vec![group.name.clone(), bar.name.clone()], values.to_vec())
        };
        let rows = self.groups.iter().flat_map(|group| group.bars.iter().map(move |bar| row(group, bar)));
        Data {
            caption: self.axis.label.clone(),
            names: vec![String::new(), String::new()],
            values: vec!["ours".into(), "paper".into()],
            rows: rows.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(axis: Axis, values: &[f64]) -> BarsChart {
        let bar = |value: &f64| Bar { name: "ordered".into(), ours: Some(*value), paper: None };
        let group = BarGroup { name: "25G".into(), bars: values.iter().map(bar).collect() };
        BarsChart { title: "t".into(), caption: String::new(), axis, groups: vec![group] }
    }

    #[test]
    fn the_least_of_logarithmic_bars_has_a_length() {
        let scale = chart(Axis::log("loss"), &[1e-8, 1e-10, 0.0]).scale(100.0, 300.0);
        assert!(scale.at(1e-10) > 120.0, "{scale:?}");
        assert_eq!(scale.at(0.0), 100.0);
    }

    #[test]
    fn long_names_stand_above_their_bars() {
        let mut chart = chart(Axis::linear("Gbit/s"), &[1.0]);
        assert_eq!(chart.names().above, 0.0);
        chart.groups[0].bars[0].name = "corrupting wire, plain TCP".into();
        assert_eq!(chart.names().above, LINE);
    }
}
