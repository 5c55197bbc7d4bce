//! Charts as SVG: scales, ticks, and marks on a canvas of user units.
//!
//! Marks carry classes; colours, strokes and the size of letters are the stylesheet's. Coordinates grow to the
//! right and downwards, as in SVG. Nothing that is not a finite number is ever drawn, and all text is escaped.

use std::fmt::{self, Display, Write};

/// Text as it may stand in an element or an attribute, in HTML as in SVG.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// A logarithmic scale over whole decades.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Log {
    /// Exponents of ten.
    low: i32,
    high: i32,
    from: f64,
    to: f64,
}

impl Log {
    /// The decades around all values that have a logarithm, at least one, drawn between `from` and `to`.
    pub fn around(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let logs = values.into_iter().filter(|value| value.is_finite() && *value > 0.0).map(f64::log10);
        let (low, high) =
            logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| (low.min(log), high.max(log)));
        let (low, high) = if low <= high { (low.floor() as i32, high.ceil() as i32) } else { (0, 1) };
        Self { low, high: high.max(low + 1), from, to }
    }

    /// Values beyond an end are drawn at that end.
    pub fn at(&self, value: f64) -> f64 {
        let log = if value > 0.0 { value.log10() } else { f64::NEG_INFINITY };
        let share = (log - f64::from(self.low)) / f64::from(self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Every power of ten on it.
    pub fn decades(&self) -> impl Iterator<Item = f64> + use<> {
        (self.low..=self.high).map(|exponent| 10f64.powi(exponent))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing with a name and a description for who does not see it.
#[derive(Clone, Debug)]
pub struct Svg {
    id: &'static str,
    width: u32,
    height: u32,
    title: String,
    description: String,
    body: String,
}

impl Svg {
    /// `id` is unique on its page.
    pub fn new(id: &'static str, width: u32, height: u32, title: &str, description: &str) -> Self {
        Self { id, width, height, title: escape(title), description: escape(description), body: String::new() }
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.polyline(class, &[from, to]);
    }

    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut text = String::new();
        for (x, y) in points.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
            let _ = write!(text, "{x:.1},{y:.1} "); // a String takes everything
        }
        self.element(format_args!(r#"<polyline class="{class}" points="{}"/>"#, text.trim_end()));
    }

    pub fn rectangle(&mut self, class: &str, (x, y): (f64, f64), width: f64, height: f64) {
        if [x, y, width, height].into_iter().all(f64::is_finite) {
            let (width, height) = (width.max(0.0), height.max(0.0));
            self.element(format_args!(
                r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#
            ));
        }
    }

    pub fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        if x.is_finite() && y.is_finite() {
            self.element(format_args!(r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius}"/>"#));
        }
    }

    pub fn text(&mut self, class: &str, anchor: Anchor, at: (f64, f64), text: &str) {
        self.lines(class, anchor, at, &[text]);
    }

    /// Lines of text one below the other; `at` is on the first one's base line.
    pub fn lines(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), lines: &[&str]) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let mut text = String::new();
        for (at, line) in lines.iter().enumerate() {
            // In ems, so that lines stay together at whatever size the stylesheet gives them.
            let _ = match at {
                0 => write!(text, "{}", escape(line)),
                _ => write!(text, r#"<tspan x="{x:.1}" dy="1.1em">{}</tspan>"#, escape(line)),
            };
        }
        if x.is_finite() && y.is_finite() {
            self.element(format_args!(
                r#"<text class="{class}" text-anchor="{anchor}" x="{x:.1}" y="{y:.1}">{text}</text>"#
            ));
        }
    }

    fn element(&mut self, element: fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "{element}");
    }
}

impl Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, width, height, title, description, body } = self;
        writeln!(
            f,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="{id}-title {id}-desc">
<title id="{id}-title">{title}</title>
<desc id="{id}-desc">{description}</desc>
{body}</svg>"#
        )
    }
}

/// Ticks along a horizontal axis that can be read: one that would touch the one before it is left out.
pub fn legible(ticks: impl IntoIterator<Item = (f64, String)>, letter: f64) -> Vec<(f64, String)> {
    let mut kept = Vec::new();
    let mut free = f64::NEG_INFINITY;
    for (x, text) in ticks {
        let half = text.chars().count() as f64 * letter / 2.0;
        if x - half >= free {
            free = x + half + letter;
            kept.push((x, text));
        }
    }
    kept
}

/// Places for labels as near to where they are wanted as can be, in the same order, `gap` apart and not beyond
/// `lowest` unless they are too many.
pub fn apart(wanted: &[f64], gap: f64, highest: f64, lowest: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut places = vec![0.0; wanted.len()];
    let mut free = highest;
    for &at in &order {
        places[at] = wanted[at].max(free);
        free = places[at] + gap;
    }
    let mut most = lowest;
    for &at in order.iter().rev() {
        places[at] = places[at].min(most);
        most = places[at] - gap;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_scale_ends_at_whole_decades() {
        let scale = Log::around([22.0, 200_000.0, 0.0, f64::NAN], 0.0, 100.0);
        assert_eq!(scale.decades().collect::<Vec<_>>(), [1e1, 1e2, 1e3, 1e4, 1e5, 1e6]);
        assert_eq!([10.0, 1e6, 1e3].map(|value| scale.at(value)), [0.0, 100.0, 40.0]);
        assert_eq!([0.0, f64::NAN, f64::INFINITY].map(|value| scale.at(value)), [0.0, 0.0, 100.0]);
    }

    #[test]
    fn a_scale_of_one_value_or_of_none_still_has_a_decade() {
        for values in [vec![10.0], vec![], vec![0.0]] {
            let scale = Log::around(values, 0.0, 100.0);
            assert_eq!(scale.decades().count(), 2);
            assert!(scale.at(10.0).is_finite());
        }
    }

    #[test]
    fn labels_that_are_wanted_at_one_place_stand_apart_within_bounds() {
        let places = apart(&[90.0, 10.0, 90.0, 95.0], 10.0, 0.0, 100.0);
        assert_eq!(places, [80.0, 10.0, 90.0, 100.0]);
    }

    #[test]
    fn ticks_that_would_touch_are_left_out() {
        let ticks = [(0.0, "90"), (10.0, "99"), (30.0, "99.9")].map(|(x, text)| (x, text.to_owned()));
        let kept: Vec<f64> = legible(ticks, 6.0).into_iter().map(|(x, _)| x).collect();
        assert_eq!(kept, [0.0, 30.0]);
    }

    #[test]
    fn what_is_inserted_is_escaped_and_what_is_no_number_is_left_out() {
        let mut svg = Svg::new("a", 10, 10, "<b>", "x & y");
        svg.text("t", Anchor::Start, (1.0, 2.0), "\"1 < 2\"");
        svg.dot("d", (f64::NAN, 1.0), 2.0);
        svg.polyline("l", &[(0.0, 1.0), (1.0, f64::INFINITY), (2.0, 3.0)]);
        let text = svg.to_string();
        for part in ["&lt;b&gt;", "x &amp; y", "&quot;1 &lt; 2&quot;", r#"points="0.0,1.0 2.0,3.0""#] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("NaN") && !text.contains("circle"), "{text}");
    }
}
