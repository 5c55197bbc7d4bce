//! Drawings as SVG: marks on a canvas of user units.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A chart with a name and a description for who does not see it, or an ornament beside text that says the same.
#[derive(Clone, Debug)]
pub struct Svg {
    width: u32,
    height: u32,
    opening: String,
    body: String,
}

impl Svg {
    /// `id` is unique on its page.
    pub fn new(id: &str, width: u32, height: u32, title: &str, description: &str) -> Self {
        let (id, title, description) = (escape(id), escape(title), escape(description));
        let opening = format!(
            r#" class="chart" role="img" aria-labelledby="{id}-title {id}-desc">
<title id="{id}-title">{title}</title>
<desc id="{id}-desc">{description}</desc>
"#
        );
        Self { width, height, opening, body: String::new() }
    }

    pub fn ornament(class: &str, width: u32, height: u32) -> Self {
        let opening = format!(r#" class="{class}" width="{width}" height="{height}" aria-hidden="true">"#);
        Self { width, height, opening, body: String::new() }
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.polyline(class, &[from, to]);
    }

    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        self.through("polyline", class, points);
    }

    pub(crate) fn polygon(&mut self, class: &str, points: &[(f64, f64)]) {
        self.through("polygon", class, points);
    }

    fn through(&mut self, element: &str, class: &str, points: &[(f64, f64)]) {
        let mut text = String::new();
        for (x, y) in points.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
            let _ = write!(text, "{x:.1},{y:.1} "); // a String takes everything
        }
        if !text.is_empty() {
            self.element(format_args!(r#"<{element} class="{class}" points="{}"/>"#, text.trim_end()));
        }
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

    /// `at` is on the text's base line.
    pub fn text(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        if x.is_finite() && y.is_finite() {
            self.element(format_args!(
                r#"<text class="{class}" text-anchor="{anchor}" x="{x:.1}" y="{y:.1}">{}</text>"#,
                escape(text)
            ));
        }
    }

    fn element(&mut self, element: fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "{element}");
    }
}

impl Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, height, opening, body } = self;
        write!(f, r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"{opening}{body}</svg>"#)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inserted_is_escaped_and_what_is_no_number_is_left_out() {
        let mut svg = Svg::new("a", 10, 10, "<b>", "x & y");
        svg.text("t", Anchor::Start, (1.0, 2.0), "\"1 < 2\"");
        svg.dot("d", (f64::NAN, 1.0), 2.0);
        svg.polyline("l", &[(0.0, 1.0), (1.0, f64::INFINITY), (2.0, 3.0)]);
        svg.polygon("p", &[(f64::NAN, 1.0)]);
        let text = svg.to_string();
        for part in ["&lt;b&gt;", "x &amp; y", "&quot;1 &lt; 2&quot;", r#"points="0.0,1.0 2.0,3.0""#] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!["NaN", "circle", "polygon"].iter().any(|part| text.contains(part)), "{text}");
    }

    #[test]
    fn an_ornament_is_hidden_from_who_does_not_see_it() {
        let text = Svg::ornament("key", 4, 2).to_string();
        assert!(
            text.contains(r#"viewBox="0 0 4 2""#) && text.contains(r#"aria-hidden="true""#) && !text.contains("<title")
        );
    }
}
