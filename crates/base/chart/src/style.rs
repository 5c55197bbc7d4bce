//! Styles that distinguish lines: by colour, by dashes and by the shape of their marks.
//!
//! Colours and dashes are the stylesheet's, one class for each style. Filled marks are ours, hollow ones the paper's.

use std::f64::consts::TAU;

use crate::svg::{Svg, escape};

const STYLES: usize = 8;
const MARK: f64 = 3.4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Style(usize);

impl Style {
    /// Style of a line that stands alone.
    pub(super) const ONLY: Self = Self(0);

    fn new(number: usize) -> Self {
        Self(number % STYLES)
    }

    pub fn class(self) -> String {
        format!("s{}", self.0)
    }

    /// A mark of this style's shape; hollow if it is the paper's.
    pub(super) fn mark(self, svg: &mut Svg, (x, y): (f64, f64), hollow: bool) {
        let class = format!("mark{} {}", if hollow { " hollow" } else { "" }, self.class());
        if self.0 == 0 {
            svg.dot(&class, (x, y), MARK);
        } else {
            let corners: Vec<_> = self.outline().into_iter().map(|(dx, dy)| (x + dx * MARK, y + dy * MARK)).collect();
            svg.polygon(&class, &corners);
        }
    }

    /// Corners around the origin, a unit or a little more away from it.
    fn outline(self) -> Vec<(f64, f64)> {
        match self.0 {
            1 => regular(4, 0.125, &[1.3]),
            2 => regular(3, 0.0, &[1.4]),
            3 => regular(4, 0.0, &[1.4]),
            4 => regular(3, 0.5, &[1.4]),
            5 => cross(0.0),
            6 => cross(0.125),
            _ => regular(10, 0.0, &[1.5, 0.65]),
        }
    }
}

/// The paper's value where the shape has nothing to distinguish.
pub(super) fn paper_mark(svg: &mut Svg, at: (f64, f64)) {
    svg.dot("mark hollow", at, MARK);
}

/// Corners at equal angles, the first one `turn` of a full turn from the top, at these distances in turn.
fn regular(corners: usize, turn: f64, distances: &[f64]) -> Vec<(f64, f64)> {
    let angle = |at: usize| (at as f64 / corners as f64 + turn) * TAU;
    let point = |(at, far): (usize, &f64)| (angle(at).sin() * far, -angle(at).cos() * far);
    distances.iter().cycle().take(corners).enumerate().map(point).collect()
}

fn cross(turn: f64) -> Vec<(f64, f64)> {
    const ARM: f64 = 1.4;
    const HALF: f64 = 0.45;
    let (sin, cos) = (turn * TAU).sin_cos();
    let quarters = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)];
    let arm =
        |(x, y): (f64, f64)| [(ARM, -HALF), (ARM, HALF), (HALF, HALF)].map(|(u, v)| (u * x - v * y, u * y + v * x));
    quarters.into_iter().flat_map(arm).map(|(x, y)| (x * cos - y * sin, x * sin + y * cos)).collect()
}

/// Gives a name the same style in all charts of a page.
#[derive(Clone, Debug, Default)]
pub struct Palette {
    names: Vec<String>,
}

impl Palette {
    /// Styles for the lines of one chart: those they had before, unless that would make two of them alike.
    pub fn styles<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) -> Vec<Style> {
        let mut taken: Vec<Style> = Vec::new();
        for name in names {
            let wanted = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
                self.names.push(name.to_owned());
                self.names.len() - 1
            });
            let free = (wanted..wanted + STYLES).map(Style::new).find(|style| !taken.contains(style));
            taken.push(free.unwrap_or(Style::new(wanted)));
        }
        taken
    }
}

/// Symbol of a legend's entry before its text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LegendKey {
    Line(Style),
    MarkedLine(Style),
    Reference,
    Paper,
    Mark(Style),
    /// No mark is drawn.
    None,
}

impl LegendKey {
    fn svg(self) -> Svg {
        const ENDS: [(f64, f64); 2] = [(1.0, 6.0), (27.0, 6.0)];
        const MIDDLE: (f64, f64) = (14.0, 6.0);
        let mut svg = Svg::ornament("key", 28, 12);
        match self {
            Self::Line(style) | Self::MarkedLine(style) => {
                svg.polyline(&format!("curve {}", style.class()), &ENDS);
                if self == Self::MarkedLine(style) {
                    style.mark(&mut svg, MIDDLE, false);
                }
            }
            Self::Reference => svg.polyline("reference", &ENDS),
            Self::Paper => paper_mark(&mut svg, MIDDLE),
            Self::Mark(style) => style.mark(&mut svg, MIDDLE, false),
            Self::None => {}
        }
        svg
    }
}

/// Returns an empty string without keys: then there is nothing to distinguish.
pub(super) fn legend(keys: &[(LegendKey, String)]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    let keys: String = keys.iter().map(|(key, text)| format!("<li>{}{}</li>\n", key.svg(), escape(text))).collect();
    format!("<ul class=\"legend\">\n{keys}</ul>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_style_on_a_page() {
        let mut palette = Palette::default();
        let first = palette.styles(["no loss", "loss", "ordered"]);
        let second = palette.styles(["ordered", "Wharf", "no loss"]);
        assert_eq!((second[0], second[2]), (first[2], first[0]));
        assert!(!first.contains(&second[1]));
    }

    #[test]
    fn lines_of_one_chart_differ_whatever_came_before() {
        let mut palette = Palette::default();
        palette.styles(["a", "b", "c", "d", "e", "f", "g", "h"]);
        let styles = palette.styles(["a", "i", "b", "j"]);
        assert!((1..4).all(|at| !styles[..at].contains(&styles[at])), "{styles:?}");
    }

    #[test]
    fn every_style_has_a_mark_of_its_own_within_reach() {
        let outlines: Vec<_> = (1..STYLES).map(|number| Style::new(number).outline()).collect();
        for (at, outline) in outlines.iter().enumerate() {
            assert!(outline.iter().all(|(x, y)| x.hypot(*y) <= 1.5 + 1e-9));
            assert!(!outlines[..at].contains(outline));
        }
    }
}
