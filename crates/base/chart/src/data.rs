//! Tables of an HTML page: the numbers behind a chart, or those that need none.

use crate::svg::escape;

/// Texts to the left, numbers to the right.
#[derive(Clone, Debug, Default)]
pub struct Data {
    pub caption: String,
    /// The heads of the columns that name a row.
    pub names: Vec<String>,
    /// The heads of the columns of values.
    pub values: Vec<String>,
    pub rows: Vec<(Vec<String>, Vec<String>)>,
}

impl Data {
    /// May be wider than a small screen, so it scrolls within a box of its own, which a keyboard can reach.
    pub fn html(&self) -> String {
        let caption = escape(&self.caption);
        let names: String = self.names.iter().map(|name| head(name, r#" class="left""#)).collect();
        let values: String = self.values.iter().map(|name| head(name, "")).collect();
        let rows: String = self.rows.iter().map(|(names, values)| row(names, values)).collect();
        format!(
            r#"<div class="box" role="region" aria-label="{caption}" tabindex="0">
<table>
<caption>{caption}</caption>
<thead><tr>{names}{values}</tr></thead>
<tbody>
{rows}</tbody>
</table>
</div>
"#
        )
    }
}

fn head(name: &str, class: &str) -> String {
    match name {
        "" => "<td></td>".to_owned(),
        name => format!(r#"<th scope="col"{class}>{}</th>"#, escape(name)),
    }
}

fn row(names: &[String], values: &[String]) -> String {
    let names: String =
        names.iter().map(|name| format!(r#"<th scope="row" class="left">{}</th>"#, escape(name))).collect();
    let values: String = values.iter().map(|value| format!("<td>{}</td>", escape(value))).collect();
    format!("<tr>{names}{values}</tr>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_escaped_and_rows_named() {
        let data = Data {
            caption: "a & b".into(),
            names: vec![String::new()],
            values: vec!["<x>".into()],
            rows: vec![(vec!["p".into()], vec!["1 < 2".into()])],
        };
        let html = data.html();
        for part in ["<caption>a &amp; b</caption>", "&lt;x&gt;", "1 &lt; 2", r#"<th scope="row" class="left">p</th>"#]
        {
            assert!(html.contains(part), "{part} in {html}");
        }
    }
}
