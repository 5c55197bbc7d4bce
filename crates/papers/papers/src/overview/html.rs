//! One page over all papers: a table of every figure with its verdict.

use chart::page::{PageFrame, command};
use chart::svg::escape;
use report::page::{tally_summary, tally_words};

use super::{FigureOverview, Overview, PaperOverview};
use crate::textbook;
use report::claim::VerdictTally;

/// Origin of the page, and addresses of the papers' pages.
#[derive(Clone, Debug)]
pub struct IndexInfo {
    /// Command line that made it.
    pub command: String,
    /// Papers with a page of their own, and its address.
    pub pages: Vec<(String, String)>,
    /// Ended from the keyboard: some claims are missing.
    pub interrupted: bool,
}

/// A class of its own: `figures` is the grid of charts.
const CSS: &str = ".by-figure :is(th, td) { white-space: normal; vertical-align: top; } \
                   .by-figure th:first-child { white-space: nowrap; } \
                   @media (min-width: 40rem) { .by-figure td:last-child { white-space: nowrap; } }";

const FOOTER: &str = "<p>A figure differs if one of its claims does. Only claims, which the paper measured, count as \
                      matches of it; what was computed, fitted, or only held against a model of ours is counted \
                      apart.</p>\n";

impl Overview {
    pub fn html(&self, about: &IndexInfo) -> String {
        let mut all = VerdictTally::default();
        self.papers.iter().filter(|paper| paper.name != textbook::PAPER.name).for_each(|paper| all += paper.tally);
        let evidence: String = self
            .evidence
            .iter()
            .map(|group| format!("<p class=\"kinds\">{}</p>\n", escape(&group.to_string())))
            .collect();
        let missing =
            if about.interrupted { " It was interrupted: what had not ended by then is missing." } else { "" };
        let header = format!(
            "<p class=\"lead\">Every figure and table of the papers, with the claims that run it again or the reason why \
             none does.{missing}</p>\n{}{evidence}{}",
            tally_summary(&all),
            command(&about.command)
        );
        let main: String = self.papers.iter().map(|paper| paper.html(about)).collect();
        PageFrame { title: "The papers, reproduced", css: CSS, header: &header, main: &main, footer: FOOTER }.html()
    }
}

impl PaperOverview {
    fn html(&self, about: &IndexInfo) -> String {
        let rows: String = self.figures.iter().map(FigureOverview::html).collect();
        let page = about.pages.iter().find(|(name, _)| name == self.name);
        let link = page.map(|(_, address)| format!("<p><a href=\"{}\">rows and charts</a></p>\n", escape(address)));
        format!(
            r#"<section id="{name}" aria-labelledby="paper-{name}">
<p class="about"><code>{name}</code><span>{tally}</span></p>
<h2 id="paper-{name}">{title}</h2>
<p>{state}</p>
{link}<div class="box" role="region" aria-label="{title}: figures" tabindex="0">
<table class="by-figure">
<thead><tr>
<th scope="col" class="left">figure</th><th scope="col" class="left">shows</th>
<th scope="col" class="left">claims, or why there is none</th><th scope="col" class="left">verdict</th>
</tr></thead>
<tbody>
{rows}</tbody>
</table>
</div>
</section>
"#,
            name = escape(self.name),
            title = escape(self.title),
            tally = tally_words(&self.tally),
            state = escape(&self.state()),
            link = link.unwrap_or_default(),
        )
    }
}

impl FigureOverview {
    fn html(&self) -> String {
        let verdict = if self.verdict.is_some() { tally_words(&self.tally) } else { String::new() };
        format!(
            "<tr><th scope=\"row\" class=\"left\">{}</th><td class=\"left\">{}</td><td class=\"left\">{}</td>\
             <td class=\"left\">{verdict}</td></tr>\n",
            escape(&self.figure.name),
            escape(&self.figure.shows),
            escape(&self.claims()),
        )
    }
}
