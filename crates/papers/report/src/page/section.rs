//! One claim: what the paper says, what we found, and what to type to find it again.

use super::verdict;
use crate::claim::{ClaimResult, PaperValue, PointKind, PointResult, VerdictTally};
use crate::svg::escape;
use crate::table::thousands;
use chart::page::command;
use chart::{Chart, NOTHING, Palette, number, seconds};

impl ClaimResult {
    pub(super) fn tally(&self) -> VerdictTally {
        VerdictTally::of(&self.points)
    }

    /// Its place on the page, as it may stand in an address.
    pub(super) fn anchor(&self) -> String {
        anchor(&self.id)
    }

    /// `number` counts the sections of the page.
    pub(super) fn html(&self, number: usize, palette: &mut Palette) -> String {
        format!(
            r#"<section id="{anchor}" aria-labelledby="section-{number}">
<p class="about"><code>{id}</code><span>{tally}</span></p>
<h2 id="section-{number}">{title}</h2>
<p class="claim">{claim} <cite>{paper}</cite></p>
{charts}{rows}{notes}<div class="again">
{command}<p>took {seconds}</p>
</div>
</section>
"#,
            anchor = self.anchor(),
            id = escape(&self.id),
            tally = verdict::short(&self.tally()),
            title = escape(&self.title),
            claim = escape(&self.claim),
            paper = escape(&self.paper),
            rows = self.table(),
            charts = self.figures(number, palette),
            notes = self.notes(),
            command = if self.command.is_empty() { String::new() } else { command(&self.command) },
            seconds = seconds(self.seconds),
        )
    }

    fn figures(&self, number: usize, palette: &mut Palette) -> String {
        let figure = |(at, chart): (usize, &Chart)| chart.figure(&format!("chart-{number}-{}", at + 1), palette);
        let figures: String = self.charts.iter().enumerate().map(figure).collect();
        if figures.is_empty() { String::new() } else { format!("<div class=\"figures\">\n{figures}</div>\n") }
    }

    fn table(&self) -> String {
        if self.points.is_empty() {
            return "<p class=\"nothing\">No rows: nothing was measured for this claim.</p>\n".to_owned();
        }
        let rows: String = self.points.iter().map(|point| self.row(point)).collect();
        format!(
            r#"<div class="box rows" role="region" aria-label="{label}" tabindex="0">
<table>
<caption>The paper’s values and ours</caption>
<thead><tr>
<th scope="col" class="left">point</th><th scope="col">paper</th>
<th scope="col">ours</th><th scope="col" class="left">verdict</th>
</tr></thead>
{rows}</table>
</div>
"#,
            label = escape(&format!("{}: the paper’s values and ours", self.title)),
        )
    }

    /// A body of its own for each row, so that paper keeps its reason with it.
    fn row(&self, row: &PointResult) -> String {
        let point = row.id.strip_prefix(&self.id).map_or(row.id.as_str(), |rest| rest.trim_start_matches('.'));
        let counted = (row.n > 1).then(|| format!("n\u{a0}=\u{a0}{}", thousands(row.n)));
        let kind = match row.kind {
            PointKind::Claim => None,
            PointKind::Arithmetic => Some("arithmetic".to_owned()),
            PointKind::ModelCheck => Some("model check".to_owned()),
            PointKind::Calibrated => Some("calibrated".to_owned()),
            PointKind::Noted => None,
        };
        let allowed = row.band.map(|band| format!("band {band}"));
        let reasons = kind.into_iter().chain(allowed).chain(counted).chain(Some(row.why.clone()));
        let reasons: Vec<String> = reasons.filter(|part| !part.is_empty()).collect();
        let why = if reasons.is_empty() {
            String::new()
        } else {
            format!("<tr class=\"why\"><td colspan=\"4\">{}</td></tr>\n", escape(&reasons.join("; ")))
        };
        format!(
            r#"<tbody id="{id}">
<tr><th scope="row" class="left">{point}</th>{paper}<td>{ours}</td><td class="left">{verdict}</td></tr>
{why}</tbody>
"#,
            id = anchor(&row.id),
            point = parts(if point.is_empty() { &row.id } else { point }),
            paper = papers(&row.paper),
            ours = row.ours.map_or(NOTHING.into(), number),
            verdict = verdict::html(row.verdict),
        )
    }

    fn notes(&self) -> String {
        if self.notes.is_empty() {
            return String::new();
        }
        let notes: String = self.notes.iter().map(|note| format!("<li>{}</li>\n", escape(note))).collect();
        format!("<ul class=\"notes\">\n{notes}</ul>\n")
    }
}

fn papers(paper: &PaperValue) -> String {
    match paper {
        PaperValue::Number(value) => format!("<td>{}</td>", number(*value)),
        PaperValue::Words(words) => format!("<td class=\"words\">{}</td>", escape(words)),
    }
}

/// An id that may break after its dots, and nowhere else.
fn parts(id: &str) -> String {
    let parts: Vec<String> = id.split_inclusive('.').map(|part| format!("<span>{}</span>", escape(part))).collect();
    parts.join("<wbr>")
}

fn anchor(id: &str) -> String {
    id.chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '-' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_may_stand_in_an_address() {
        assert_eq!(anchor("lg.fig8.speed"), "lg.fig8.speed");
        assert_eq!(anchor("a b\"<c>/é"), "a-b--c---");
    }
}
