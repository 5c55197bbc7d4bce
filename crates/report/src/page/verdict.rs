//! Verdicts that need no colour to be read: a sign and a word.

use crate::claim::{PointResult, Verdict};

pub(super) fn html(verdict: Verdict) -> String {
    signed("span", verdict, &verdict.to_string())
}

fn signed(element: &str, verdict: Verdict, words: &str) -> String {
    let sign = match verdict {
        Verdict::Match => "✓",
        Verdict::Differs => "≠",
        Verdict::Noted => "·",
        Verdict::Unmeasured => "?",
    };
    format!(r#"<{element} class="verdict {verdict}"><span aria-hidden="true">{sign}</span> {words}</{element}>"#)
}

/// How many points of a claim, or of all, match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VerdictCounts {
    matching: usize,
    differing: usize,
}

impl VerdictCounts {
    pub(super) fn of<'a>(points: impl IntoIterator<Item = &'a PointResult>) -> Self {
        let mut tally = Self { matching: 0, differing: 0 };
        for point in points {
            match point.verdict {
                Verdict::Match => tally.matching += 1,
                Verdict::Differs => tally.differing += 1,
                Verdict::Noted | Verdict::Unmeasured => {}
            }
        }
        tally
    }

    /// For a claim: what differs, if anything does.
    pub(super) fn html(self) -> String {
        match (self.matching, self.differing) {
            (0, 0) => r#"<span class="verdict none">nothing to judge</span>"#.to_owned(),
            (1, 0) => html(Verdict::Match),
            (0, 1) => html(Verdict::Differs),
            (matching, 0) => signed("span", Verdict::Match, &format!("all {matching} match")),
            (matching, differing) => {
                signed("span", Verdict::Differs, &format!("{differing} of {} differ", matching + differing))
            }
        }
    }

    /// For the page: both, in large figures.
    pub(super) fn summary(self) -> String {
        let matching = if self.matching == 1 { "value matches" } else { "values match" };
        let differing = if self.differing == 1 { "differs" } else { "differ" };
        format!(
            "<div class=\"count\">\n{}\n{}\n</div>\n",
            signed("p", Verdict::Match, &format!("<strong>{}</strong> {matching}", self.matching)),
            signed("p", Verdict::Differs, &format!("<strong>{}</strong> {differing}", self.differing)),
        )
    }
}
