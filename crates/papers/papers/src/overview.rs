//! All papers at a glance: their claims, their figures with the claims that run them again or the reason why none does,
//! and how they came out in results that were saved.

mod evidence;
mod html;
mod markdown;

use chart::table::{Align, Table};
use report::claim::{
    Band, Claim, ClaimError, EvidenceCounts, PaperValue, PointKind, PointResult, SILENT, Verdict, VerdictTally,
};
use serde::Serialize;

use crate::saved::SavedResults;
use crate::{PAPERS, Paper, PaperFigure};

pub use evidence::EvidenceGroup;
pub use html::IndexInfo;

/// Every paper, with the saved results that there are of it.
#[derive(Clone, Debug, Serialize)]
pub struct Overview {
    pub papers: Vec<PaperOverview>,
    /// Claims by the form of what is printed, papers and textbooks apart.
    pub evidence: Vec<EvidenceGroup>,
}

#[derive(Clone, Debug, Serialize)]
pub struct PaperOverview {
    pub name: &'static str,
    pub title: &'static str,
    pub claims: Vec<ClaimOverview>,
    pub figures: Vec<FigureOverview>,
    /// Results that its verdicts come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<ResultsOrigin>,
    /// Rows of those results that differ from the paper.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differing: Vec<DifferingRow>,
    #[serde(skip)]
    tally: VerdictTally,
}

/// A row whose value lies outside its band, with the reason that its file gives.
#[derive(Clone, Debug, Serialize)]
pub struct DifferingRow {
    /// The claim's id and the point's.
    pub id: String,
    pub kind: PointKind,
    pub paper: PaperValue,
    pub ours: Option<f64>,
    pub band: Option<Band>,
    pub why: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct ClaimOverview {
    pub id: String,
    pub title: String,
    /// Place in the paper that makes it.
    pub paper: String,
    pub part: String,
    pub points: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct FigureOverview {
    #[serde(flatten)]
    pub figure: PaperFigure,
    /// Verdict of its points that were saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    #[serde(skip)]
    tally: VerdictTally,
}

#[derive(Clone, Debug, Serialize)]
pub struct ResultsOrigin {
    pub scale: String,
    pub seed: u64,
    /// Commit of the program that ran the latest of its claims.
    pub commit: String,
    /// Commits of all programs that ran one, the latest first.
    pub commits: Vec<String>,
    pub date: String,
    /// Number of the paper's claims that were run.
    pub claims: usize,
    /// Counts by kind and verdict.
    pub counts: Vec<VerdictCount>,
    /// Claims by the form of what the paper prints.
    pub evidence: EvidenceCounts,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct VerdictCount {
    pub kind: PointKind,
    pub verdict: Verdict,
    pub count: usize,
}

impl Overview {
    /// Combines saved results. Shows the larger scale of a paper that was saved at both.
    pub fn new(saved: &[SavedResults]) -> Result<Self, ClaimError> {
        let of = |paper: Paper| saved.iter().find(|results| results.run.paper == paper.name);
        let papers = PAPERS.into_iter().map(|paper| PaperOverview::new(paper, of(paper)));
        let papers: Vec<PaperOverview> = papers.collect::<Result<_, _>>()?;
        let counts = papers.iter().filter_map(|paper| Some((paper.name, paper.results.as_ref()?.evidence)));
        let evidence = EvidenceGroup::sums(counts);
        Ok(Self { papers, evidence })
    }

    /// Text for people: papers, then the figures of each.
    pub fn text(&self) -> String {
        let mut papers = Table::new(&[("paper", Align::Left), ("claims", Align::Right), ("results", Align::Left)]);
        for paper in &self.papers {
            papers.row(vec![paper.name.into(), paper.claims.len().to_string(), paper.state()]);
        }
        let figures: String = self.papers.iter().map(PaperOverview::text).collect();
        let evidence: String = self.evidence.iter().map(|group| format!("{group}\n")).collect();
        format!("{papers}\n{evidence}{figures}")
    }
}

impl PaperOverview {
    fn new(paper: Paper, saved: Option<&SavedResults>) -> Result<Self, ClaimError> {
        let all = paper.claims()?.claims;
        let claims = all.iter().map(|claim| ClaimOverview {
            id: claim.id.clone(),
            title: claim.title.clone(),
            paper: claim.paper.clone(),
            part: claim.part().to_owned(),
            points: claim.point.len(),
        });
        let figure = |figure: PaperFigure| {
            let tally = saved.map(|results| figure.tally(results.results())).unwrap_or_default();
            let verdict = (tally != VerdictTally::default()).then(|| tally.verdict());
            FigureOverview { figure, verdict, tally }
        };
        Ok(Self {
            name: paper.name,
            title: paper.title,
            claims: claims.collect(),
            figures: paper.figures()?.into_iter().map(figure).collect(),
            results: saved.map(|results| ResultsOrigin::new(results, &all)),
            differing: saved.map(|results| differing(results, &all)).unwrap_or_default(),
            tally: saved.map(SavedResults::tally).unwrap_or_default(),
        })
    }

    fn state(&self) -> String {
        match &self.results {
            None => String::new(),
            Some(origin) => {
                let ResultsOrigin { scale, seed, date, .. } = origin;
                format!("{} ({scale}, seed {seed}, {date}{})", self.tally, self.unfinished())
            }
        }
    }

    /// Says it if claims of the paper are missing.
    fn unfinished(&self) -> String {
        let run = self.results.as_ref().map_or(0, |origin| origin.claims);
        if run < self.claims.len() { format!("; {run} of {} claims", self.claims.len()) } else { String::new() }
    }

    fn text(&self) -> String {
        let mut figures = Table::new(&[
            ("figure", Align::Left),
            ("shows", Align::Left),
            ("claims, or why there is none", Align::Left),
            ("verdict", Align::Left),
        ]);
        for figure in &self.figures {
            let PaperFigure { name, shows, .. } = &figure.figure;
            figures.row(vec![name.clone(), shows.clone(), figure.claims(), figure.said()]);
        }
        format!("\n{}: {}\n{figures}", self.name, self.title)
    }

    /// Claims of no figure: what is not in the paper.
    fn beyond(&self) -> impl Iterator<Item = &ClaimOverview> {
        let is_listed = |id: &String| self.figures.iter().any(|figure| figure.figure.claims.contains(id));
        self.claims.iter().filter(move |claim| !is_listed(&claim.id))
    }
}

impl FigureOverview {
    /// Ids with what they leave out, or the reason why there is none.
    fn claims(&self) -> String {
        let PaperFigure { claims, not, missing, .. } = &self.figure;
        let ids = claims.join(", ");
        match (not, missing) {
            (Some(reason), _) => format!("none: {reason}"),
            (None, Some(missing)) => format!("{ids}; without {missing}"),
            (None, None) => ids,
        }
    }

    fn said(&self) -> String {
        if self.verdict.is_none() { String::new() } else { self.tally.to_string() }
    }
}

/// Reason of a row as its claim's file has it today: a result keeps the one of the day on which it was saved.
fn reason(point: &PointResult, claims: &[Claim]) -> String {
    let of_file = claims.iter().find_map(|claim| {
        let rest = point.id.strip_prefix(&claim.id)?.strip_prefix('.')?;
        claim.point.iter().find(|point| point.id == rest)
    });
    of_file.map(|point| point.why.clone()).filter(|why| !why.is_empty()).unwrap_or_else(|| SILENT.to_owned())
}

fn differing(saved: &SavedResults, claims: &[Claim]) -> Vec<DifferingRow> {
    let points = saved.claims.iter().flat_map(|claim| &claim.points);
    let differing = points.filter(|point| point.verdict == Verdict::Differs);
    let row = |point: &PointResult| DifferingRow {
        id: point.id.clone(),
        kind: point.kind,
        paper: point.paper.clone(),
        ours: point.ours,
        band: point.band,
        why: reason(point, claims),
    };
    differing.map(row).collect()
}

impl ResultsOrigin {
    fn new(saved: &SavedResults, claims: &[Claim]) -> Self {
        let tally = saved.tally();
        let points = saved.claims.iter().flat_map(|claim| &claim.points);
        let points: Vec<PointResult> =
            points.map(|point| PointResult { why: reason(point, claims), ..point.clone() }).collect();
        let counts = PointKind::ALL.into_iter().flat_map(|kind| {
            Verdict::ALL.map(|verdict| VerdictCount { kind, verdict, count: tally.count(kind, verdict) })
        });
        Self {
            scale: saved.run.scale.clone(),
            seed: saved.run.seed,
            commit: saved.run.commit.clone(),
            commits: saved.commits().into_iter().map(str::to_owned).collect(),
            date: saved.date.clone(),
            claims: saved.claims.len(),
            counts: counts.filter(|count| count.count > 0).collect(),
            evidence: EvidenceCounts::of(&points),
        }
    }
}
