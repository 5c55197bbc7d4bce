//! The tables of docs/reproduce.md.

use report::claim::{EvidenceCounts, PointKind, Verdict, number};

use super::{DifferingRow, EvidenceGroup, FigureOverview, Overview, PaperOverview};

impl Overview {
    /// Claims by form, and points by kind and verdict, for each paper; every figure with its claims or the reason why there is none; every row that differs,
    /// with its reason.
    pub fn markdown(&self) -> String {
        let head = "| paper | claims: match | differ | too few | arithmetic | model checks | calibrated | noted | scale, seed, commit, date |\n\
                    | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
        let counts: String = self.papers.iter().map(PaperOverview::counts).collect();
        let figures: String = self.papers.iter().map(PaperOverview::figure_table).collect();
        format!("{}{head}{counts}\n{figures}", self.evidence_table())
    }

    /// Claims by form for each paper, all papers and the textbooks; empty without results.
    fn evidence_table(&self) -> String {
        let papers = self.papers.iter().filter_map(|paper| Some((paper.name, paper.results.as_ref()?.evidence)));
        let papers: String = papers.map(|(name, counts)| evidence_row(name, &counts)).collect();
        if papers.is_empty() {
            return papers;
        }
        let sums: String =
            self.evidence.iter().map(|sum| evidence_row(&format!("all {}", sum.of), &sum.counts)).collect();
        let head = "| claims | within 10 % of a number | a 0 met by 0 | within 25 % | match: numbers | ranges | one-sided | orders | words | in a band wider than 3 | differ: with a reason | open | too few |\n\
                    | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
        format!("{head}{papers}{sums}\n")
    }

    /// Sentences for the README, on the papers and on the textbooks.
    pub fn sentences(&self) -> Vec<String> {
        self.evidence.iter().map(EvidenceGroup::to_string).collect()
    }
}

fn evidence_row(name: &str, counts: &EvidenceCounts) -> String {
    let EvidenceCounts {
        numbers,
        within_10,
        within_25,
        zeros,
        ranges,
        one_sided,
        order,
        words,
        wide,
        differ,
        open,
        too_few,
    } = counts;
    let reason = differ - open;
    format!(
        "| {name} | {within_10} | {zeros} | {within_25} | {numbers} | {ranges} | {one_sided} | {order} | {words} | {wide} | {reason} | {open} | {too_few} |\n"
    )
}

impl PaperOverview {
    fn counts(&self) -> String {
        let Some(results) = &self.results else { return format!("| {} | | | | | | | | not run |\n", self.name) };
        let claims = [Verdict::Match, Verdict::Differs, Verdict::TooFew];
        let [matching, differing, few] = claims.map(|verdict| self.tally.count(PointKind::Claim, verdict));
        let of = |kind| format!("{} of {}", self.tally.count(kind, Verdict::Match), self.tally.judged(kind));
        let [arithmetic, checks, calibrated] =
            [PointKind::Arithmetic, PointKind::ModelCheck, PointKind::Calibrated].map(of);
        let noted: usize = PointKind::ALL.map(|kind| self.tally.count(kind, Verdict::Noted)).iter().sum();
        let short = |commit: &String| commit.chars().take(7).collect();
        let commits: Vec<String> = results.commits.iter().map(short).collect();
        format!(
            "| {} | {matching} | {differing} | {few} | {arithmetic} | {checks} | {calibrated} | {noted} | {}, {}, {}, {}{} |\n",
            self.name,
            results.scale,
            results.seed,
            commits.join(" and "),
            results.date,
            self.unfinished()
        )
    }

    fn figure_table(&self) -> String {
        let rows: String = self.figures.iter().map(FigureOverview::row).collect();
        let beyond: Vec<&str> = self.beyond().map(|claim| claim.id.as_str()).collect();
        let beyond =
            if beyond.is_empty() { String::new() } else { format!("\nNot in the paper: {}.\n", beyond.join(", ")) };
        format!(
            "### {}\n\n| figure | shows | claims, or why there is none | verdict |\n| --- | --- | --- | --- |\n{rows}{beyond}\n{}",
            self.name,
            self.differing_table()
        )
    }

    fn differing_table(&self) -> String {
        if self.differing.is_empty() {
            return String::new();
        }
        let rows: String = self.differing.iter().map(DifferingRow::row).collect();
        format!("| row that differs | paper | ours | band | why |\n| --- | --- | --- | --- | --- |\n{rows}\n")
    }
}

impl DifferingRow {
    fn row(&self) -> String {
        let ours = self.ours.map_or_else(|| "-".into(), number);
        let band = self.band.map(|band| band.to_string()).unwrap_or_default();
        let cells = [self.id.clone(), self.paper.to_string(), ours, band, self.why.clone()];
        format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
    }
}

impl FigureOverview {
    fn row(&self) -> String {
        format!("| {} | {} | {} | {} |\n", self.figure.name, self.figure.shows, self.claims(), self.said())
    }
}
