//! Charts like the papers' as figures of an HTML page, the page around them, and plain tables, for people to look at.
//!
//! A chart is plain data; [`Chart::figure`] makes it a `<figure>`: its title, a legend, the drawing, and the numbers
//! in a table that can be opened. A chart without a single number says so instead of drawing one. The same data
//! gives the same bytes. Charts are drawn on the canvas of [`svg`]; [`page`] is the document around them, one file that needs
//! nothing else; [`table`] is for terminals.

mod bars;
mod data;
mod lines;
mod number;
pub mod page;
mod plot;
mod points;
mod scale;
mod series;
mod style;
pub mod svg;
pub mod table;
mod tail;

pub use bars::{Bar, BarGroup, BarsChart};
pub use data::Data;
pub use lines::LinesChart;
pub use number::{NOTHING, number, percent, seconds, time_us};
pub use plot::{Area, WIDTH};
pub use points::{Dot, PointsChart};
pub use scale::{Axis, Scale};
pub use series::{Panel, SeriesChart};
pub use style::{Palette, Style};
pub use tail::{Shares, TailChart, tail_points};

use crate::svg::{Svg, escape};
use style::LegendKey;

#[derive(Clone, Debug)]
pub enum Chart {
    Tail(TailChart),
    Series(SeriesChart),
    Bars(BarsChart),
    Lines(LinesChart),
    Points(PointsChart),
}

/// A name and points from left to right. Points that are no numbers are left out.
#[derive(Clone, Debug)]
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    /// Points that the paper gives for the same, drawn as hollow marks.
    pub paper: Vec<(f64, f64)>,
    /// A bound or an expectation rather than a result: dashed, and in no colour of its own.
    pub reference: bool,
}

impl Line {
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, paper: Vec::new(), reference: false }
    }

    pub fn reference(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { reference: true, ..Self::new(name, points) }
    }

    #[must_use]
    pub fn with_paper(self, paper: Vec<(f64, f64)>) -> Self {
        Self { paper, ..self }
    }

    fn drawn(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        numbers(&self.points)
    }

    /// Ours and the paper's.
    fn all(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.drawn().chain(numbers(&self.paper))
    }

    fn key(&self, style: Style, marked: bool) -> LegendKey {
        match (self.reference, marked) {
            (true, _) => LegendKey::Reference,
            (false, true) => LegendKey::MarkedLine(style),
            (false, false) => LegendKey::Line(style),
        }
    }

    /// Draws the line as it can be seen on the canvas.
    fn draw(&self, svg: &mut Svg, style: Style, points: &[(f64, f64)]) {
        const DENSE: usize = 400;
        let points = plot::reduced(points);
        let dense = if points.len() > DENSE { " dense" } else { "" };
        let class = if self.reference { "reference".to_owned() } else { format!("curve{dense} {}", style.class()) };
        svg.polyline(&class, &points);
    }
}

fn numbers(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> + '_ {
    points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite())
}

/// Styles for lines; references take none from the others.
fn styles(lines: &[&Line], palette: &mut Palette) -> Vec<Style> {
    let named = lines.iter().filter(|line| !line.reference).map(|line| line.name.as_str());
    let mut given = palette.styles(named).into_iter();
    let style = |line: &&Line| if line.reference { None } else { given.next() };
    lines.iter().map(style).map(|style| style.unwrap_or(Style::ONLY)).collect()
}

/// Lines in the order of drawing: solid ones first, so that they show through the gaps of dashed ones.
fn layered<'a>(lines: &'a [Line], styles: &[Style]) -> Vec<(&'a Line, Style)> {
    let mut layers: Vec<(&Line, Style)> = lines.iter().zip(styles.iter().copied()).collect();
    layers.sort_by_key(|(_, style)| *style);
    layers
}

/// Parts of a chart that has anything to draw.
struct Drawing {
    keys: Vec<(LegendKey, String)>,
    svg: Svg,
    data: Option<Data>,
}

impl Chart {
    pub fn title(&self) -> &str {
        match self {
            Self::Tail(chart) => &chart.title,
            Self::Series(chart) => &chart.title,
            Self::Bars(chart) => &chart.title,
            Self::Lines(chart) => &chart.title,
            Self::Points(chart) => &chart.title,
        }
    }

    fn caption(&self) -> &str {
        match self {
            Self::Tail(chart) => &chart.caption,
            Self::Series(chart) => &chart.caption,
            Self::Bars(chart) => &chart.caption,
            Self::Lines(chart) => &chart.caption,
            Self::Points(chart) => &chart.caption,
        }
    }

    fn draw(&self, id: &str, palette: &mut Palette) -> Option<Drawing> {
        match self {
            Self::Tail(chart) => chart.draw(id, palette),
            Self::Series(chart) => chart.draw(id, palette),
            Self::Bars(chart) => chart.draw(id, palette),
            Self::Lines(chart) => chart.draw(id, palette),
            Self::Points(chart) => chart.draw(id, palette),
        }
    }

    /// `id` is unique on its page.
    pub fn figure(&self, id: &str, palette: &mut Palette) -> String {
        let body = match self.draw(id, palette) {
            None => "<p class=\"nothing\">No data: there is nothing to draw.</p>\n".to_owned(),
            Some(Drawing { keys, svg, data }) => {
                let data = data.map_or(String::new(), |data| {
                    format!("<details>\n<summary>The numbers</summary>\n{}</details>\n", data.html())
                });
                format!("{}{}{data}", style::legend(&keys), canvas(&svg))
            }
        };
        framed(self.title(), self.caption(), &body)
    }
}

/// Any other drawing, in a figure like those of the charts.
pub fn figure(title: &str, caption: &str, svg: &Svg) -> String {
    framed(title, caption, &canvas(svg))
}

/// Wraps a drawing in the element whose width the size of its letters follows.
fn canvas(svg: &Svg) -> String {
    format!("<div class=\"canvas\">\n{svg}\n</div>\n")
}

fn framed(title: &str, caption: &str, body: &str) -> String {
    let caption = match caption {
        "" => String::new(),
        caption => format!("<p>{}</p>", escape(caption)),
    };
    format!("<figure>\n<figcaption><strong>{}</strong>{caption}</figcaption>\n{body}</figure>\n", escape(title))
}

/// Legend entries of lines, with the paper's mark if it has any.
fn keys<'a>(lines: impl IntoIterator<Item = (&'a Line, LegendKey, String)>) -> Vec<(LegendKey, String)> {
    let mut keys = Vec::new();
    let mut paper = false;
    for (line, key, text) in lines {
        let none = if line.drawn().next().is_none() { " (no data)" } else { "" };
        keys.push((key, format!("{text}{none}")));
        paper |= numbers(&line.paper).next().is_some();
    }
    keys.extend(paper.then(paper_key));
    keys
}

fn paper_key() -> (LegendKey, String) {
    (LegendKey::Paper, "hollow marks: the paper".to_owned())
}

#[cfg(test)]
mod tests;
