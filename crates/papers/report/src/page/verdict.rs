//! Verdicts that need no colour to be read: a sign and a word.

use crate::claim::{PointKind, Verdict, VerdictTally};

pub(super) fn html(verdict: Verdict) -> String {
    signed("span", verdict, &verdict.to_string())
}

fn signed(element: &str, verdict: Verdict, words: &str) -> String {
    let (sign, class) = match verdict {
        Verdict::Match => ("✓", "match"),
        Verdict::Differs => ("≠", "differs"),
        Verdict::TooFew => ("?", "too-few"),
        Verdict::Noted => ("·", "noted"),
    };
    format!(r#"<{element} class="verdict {class}"><span aria-hidden="true">{sign}</span> {words}</{element}>"#)
}

/// The verdict of a claim or a figure, and the number of points that have it.
pub fn short(tally: &VerdictTally) -> String {
    let kind = PointKind::ALL.into_iter().find(|kind| tally.judged(*kind) > 0);
    let Some(kind) = kind else { return r#"<span class="verdict none">nothing to judge</span>"#.to_owned() };
    let (verdict, judged) = (tally.verdict(), tally.judged(kind));
    let count = tally.count(kind, verdict);
    let of = if kind == PointKind::Claim { String::new() } else { format!(" ({kind})") };
    let words = match (verdict, count == judged) {
        (_, true) if judged == 1 => format!("{verdict}{of}"),
        (Verdict::Match, _) => format!("all {judged} match{of}"),
        (Verdict::Differs, _) => format!("{count} of {judged} differ{of}"),
        (Verdict::TooFew | Verdict::Noted, _) => format!("{count} of {judged} too few{of}"),
    };
    signed("span", verdict, &words)
}

/// Summary for the page: claims in large figures, then the rest.
pub fn summary(tally: &VerdictTally) -> String {
    let count = |verdict| tally.count(PointKind::Claim, verdict);
    let (matching, differing) = (count(Verdict::Match), count(Verdict::Differs));
    let large = |verdict, count: usize, words: &str| signed("p", verdict, &format!("<strong>{count}</strong> {words}"));
    format!(
        "<div class=\"count\">\n{}\n{}\n{}\n</div>\n<p class=\"kinds\">{tally}. Only claims count as matches of a paper.</p>\n",
        large(Verdict::Match, matching, if matching == 1 { "claim matches" } else { "claims match" }),
        large(Verdict::Differs, differing, if differing == 1 { "differs" } else { "differ" }),
        large(Verdict::TooFew, count(Verdict::TooFew), "too few"),
    )
}
