//! The ruled area that lines are drawn in, and how much room text takes.
//!
//! Every chart is 360 units wide, so that its letters can still be read on a telephone. The stylesheet makes them
//! smaller in units where the page is wider; room is kept for them at their largest.

use crate::svg::{Anchor, Svg};

pub const WIDTH: f64 = 360.0;
/// Units that letters and digits take where they are largest; in most typefaces a little less.
const LETTER: f64 = 6.8;
const DIGIT: f64 = 7.7;
/// Distance from one line of text to the next.
pub(super) const LINE: f64 = 15.0;
/// Distance between an axis and the text beside it.
pub(super) const GAP: f64 = 5.0;

pub(super) fn width_of(text: &str) -> f64 {
    text.chars().map(|letter| if letter.is_ascii_digit() { DIGIT } else { LETTER }).sum()
}

/// Shortens a text to the room that there is.
pub(super) fn shortened(text: &str, room: f64) -> String {
    let letters = (room / LETTER).max(1.0) as usize;
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters - 1).chain(['…']).collect()
}

/// Ticks whose labels do not touch; a tick that would touch an earlier one is omitted.
pub(super) fn legible(
    ticks: impl IntoIterator<Item = (f64, String)>,
    length: impl Fn(&str) -> f64,
    gap: f64,
) -> Vec<(f64, String)> {
    let mut kept: Vec<(f64, String)> = Vec::new();
    for (at, text) in ticks {
        let free = |(other, word): &(f64, String)| (at - other).abs() >= (length(&text) + length(word)) / 2.0 + gap;
        if kept.iter().all(free) {
            kept.push((at, text));
        }
    }
    kept.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    kept
}

/// The place of a text's middle at which all of it is on the canvas.
fn centred(at: f64, text: &str) -> f64 {
    let half = width_of(text) / 2.0;
    at.min(WIDTH - half).max(half)
}

#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Area {
    /// Leaves room for half of the last tick's text.
    pub(super) const RIGHT: f64 = WIDTH - 12.0;
    /// Units that [`Area::foot`] takes below.
    pub const FOOT: f64 = 2.0 * LINE + 8.0;

    /// Frame with room on its left for the widest of these ticks.
    pub(super) fn beside<'a>(ticks: impl IntoIterator<Item = &'a (f64, String)>, top: f64, bottom: f64) -> Self {
        let widest = ticks.into_iter().map(|(_, text)| width_of(text)).fold(0.0, f64::max);
        Self { left: (widest + GAP).clamp(20.0, WIDTH / 3.0), right: Self::RIGHT, top, bottom }
    }

    /// Rules from left to right, with their values before them.
    pub(super) fn rows(&self, svg: &mut Svg, ticks: &[(f64, String)]) {
        for (at, text) in ticks {
            svg.line("grid", (self.left, *at), (self.right, *at));
            svg.text("tick mid", Anchor::End, (self.left - GAP, *at), text);
        }
    }

    /// Rules from top to bottom.
    pub fn columns(&self, svg: &mut Svg, ticks: &[(f64, String)]) {
        for (at, _) in ticks {
            svg.line("grid", (*at, self.top), (*at, self.bottom));
        }
    }

    /// Draws both axes with their ticks and labels. The label of the vertical axis stands above it, where it is read
    /// without turning one's head.
    pub(super) fn rule(&self, svg: &mut Svg, (x, y): (&str, &str), columns: &[(f64, String)], rows: &[(f64, String)]) {
        svg.text("quiet", Anchor::Start, (0.0, LINE - 4.0), &shortened(y, WIDTH));
        self.columns(svg, columns);
        self.rows(svg, rows);
        self.foot(svg, columns, x);
    }

    /// The axis below, with its ticks' values and its label.
    pub fn foot(&self, svg: &mut Svg, ticks: &[(f64, String)], label: &str) {
        svg.line("axis", (self.left, self.bottom), (self.right, self.bottom));
        let centres = ticks.iter().map(|(at, text)| (centred(*at, text), text.clone()));
        for (at, text) in legible(centres, width_of, GAP) {
            svg.text("tick", Anchor::Middle, (at, self.bottom + LINE + 1.0), &text);
        }
        let label = shortened(label, WIDTH);
        let middle = centred((self.left + self.right) / 2.0, &label);
        svg.text("quiet", Anchor::Middle, (middle, self.bottom + 2.0 * LINE + 2.0), &label);
    }
}

/// The visible part of a line: where many points fall into half a unit, only the first, the last and the extremes.
pub(super) fn reduced(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let column = |(x, _): &(f64, f64)| (x * 2.0).floor();
    let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
    let mut kept = Vec::new();
    for same in points.chunk_by(|a, b| column(a) == column(b)) {
        match (same, same.iter().min_by(by_height), same.iter().max_by(by_height)) {
            ([first, .., last], Some(least), Some(most)) if same.len() > 4 => {
                kept.extend([*first, *least, *most, *last]);
            }
            _ => kept.extend(same),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks<const N: usize>(ticks: [(f64, &str); N]) -> Vec<(f64, String)> {
        ticks.map(|(at, text)| (at, text.to_owned())).to_vec()
    }

    #[test]
    fn of_ticks_that_would_touch_the_first_in_the_list_is_kept() {
        let given = ticks([(40.0, "100"), (200.0, "1000"), (30.0, "50"), (100.0, "500")]);
        assert_eq!(legible(given, width_of, GAP), ticks([(40.0, "100"), (100.0, "500"), (200.0, "1000")]));
    }

    #[test]
    fn text_stays_on_the_canvas() {
        assert_eq!(centred(0.0, "100 ms"), width_of("100 ms") / 2.0);
        assert_eq!(centred(WIDTH, "100 ms"), WIDTH - width_of("100 ms") / 2.0);
        let short = shortened("a label that goes on and on", 10.0 * LETTER);
        assert_eq!((short.chars().count(), short.ends_with('…')), (10, true));
    }

    #[test]
    fn a_long_line_keeps_its_extremes() {
        let points: Vec<_> = (0..10_000).map(|at| (f64::from(at) / 1e4, f64::from(at % 997))).collect();
        let kept = reduced(&points);
        assert!(kept.len() <= 12, "{}", kept.len());
        assert!(kept.iter().any(|(_, y)| *y == 996.0) && kept.iter().any(|(_, y)| *y == 0.0));
        assert_eq!(reduced(&points[..3]), points[..3]);
    }
}
