//! The reproduction as a page.

use super::{FleetFinding, LinkFinding, Reproduction};
use crate::chart::{Axis, Bar, BarsChart, Chart, Group};
use crate::experiment::{Row, Said};
use crate::page::{Page, Section};
use crate::study::Finding;

/// What the page says of how it was made.
#[derive(Clone, Debug)]
pub struct About {
    /// What was typed.
    pub command: String,
    pub scale: String,
    pub seed: u64,
    pub version: String,
    pub seconds: f64,
    /// Ended from the keyboard: some claims are missing.
    pub interrupted: bool,
}

impl Reproduction {
    pub fn page(&self, about: &About) -> Page {
        let link = self.link.iter().filter(|finding| !finding.rows.is_empty());
        let each = self.link_seconds / link.clone().count().max(1) as f64;
        let net = self.net.iter().filter(|finding| !finding.rows.is_empty() || !finding.gathered.is_empty());
        let lead = "LinkGuardian masks corruption loss by retransmission on the link itself. These are the claims of its \
                    paper (SIGCOMM 2023), each run again in hitless's simulator: the same protocol code that runs on \
                    real interfaces, with TCP and RDMA on top. The paper's value stands beside ours, and what differs \
                    says why.";
        let missing =
            if about.interrupted { " It was interrupted: what had not ended by then is missing." } else { "" };
        Page {
            title: "LinkGuardian, reproduced".into(),
            lead: format!("{lead}{missing}"),
            command: about.command.clone(),
            facts: vec![
                ("scale".into(), about.scale.clone()),
                ("seed".into(), about.seed.to_string()),
                ("version".into(), about.version.clone()),
                ("took".into(), crate::chart::seconds(about.seconds)),
            ],
            sections: link
                .map(|finding| link_section(finding, about, each))
                .chain(net.map(|finding| section(finding, about)))
                .chain(self.fleet.iter().map(|finding| fleet_section(finding, about)))
                .collect(),
        }
    }
}

fn command(id: &str, about: &About) -> String {
    format!("hitless reproduce linkguardian/{id} --scale {} --seed {}", about.scale, about.seed)
}

fn section(finding: &Finding, about: &About) -> Section {
    let study = &finding.study;
    Section {
        id: study.id.clone(),
        title: study.title.clone(),
        claim: study.claim.clone(),
        paper: study.paper.clone(),
        command: command(&study.id, about),
        charts: finding.charts(),
        rows: finding.rows.clone(),
        notes: study.notes.clone(),
        seconds: finding.seconds,
    }
}

/// Claims about one link share their runs, and with them the time that those took.
fn link_section(finding: &LinkFinding, about: &About, seconds: f64) -> Section {
    let experiment = &finding.experiment;
    Section {
        id: experiment.id.clone(),
        title: experiment.title.clone(),
        claim: format!("{}.", capitalised(&experiment.claim)),
        paper: experiment.paper.clone(),
        command: command(&experiment.id, about),
        charts: vec![Chart::Bars(bars(finding))],
        rows: finding.rows.clone(),
        notes: Vec::new(),
        seconds,
    }
}

fn fleet_section(finding: &FleetFinding, about: &About) -> Section {
    let claim = &finding.claim;
    Section {
        id: claim.id.clone(),
        title: claim.title.clone(),
        claim: claim.claim.clone(),
        paper: claim.paper.clone(),
        command: command(&claim.id, about),
        charts: finding.charts.clone(),
        rows: finding.rows.clone(),
        notes: claim.notes.clone(),
        seconds: finding.seconds,
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Every point beside the paper's; on a logarithmic axis where they are orders of magnitude apart.
fn bars(finding: &LinkFinding) -> BarsChart {
    let values = finding.rows.iter().filter_map(|row| row.ours).filter(|value| *value > 0.0);
    let (least, most) = values.fold((f64::MAX, 0.0f64), |(least, most), value| (least.min(value), most.max(value)));
    let label = finding.experiment.measure.replace('_', " ");
    let axis = if most > least * 100.0 { Axis::log(label) } else { Axis::linear(label) };
    let mut groups: Vec<Group> = Vec::new();
    for row in &finding.rows {
        let (group, bar) = bar(row, &finding.experiment.id);
        match groups.last_mut() {
            Some(last) if last.name == group => last.bars.push(bar),
            _ => groups.push(Group { name: group, bars: vec![bar] }),
        }
    }
    BarsChart { title: experiment_title(finding), caption: String::new(), axis, groups }
}

/// `25G.1e-3.ordered` is the bar `ordered` of the group `25G, 1e-3`.
fn bar(row: &Row, claim: &str) -> (String, Bar) {
    let point = row.id.strip_prefix(claim).unwrap_or(&row.id).trim_start_matches('.');
    let (group, name) = point.rsplit_once('.').unwrap_or((point, "ours"));
    let paper = if let Said::Number(value) = row.paper { Some(value) } else { None };
    (group.replace('.', ", "), Bar { name: name.to_owned(), ours: row.ours, paper })
}

fn experiment_title(finding: &LinkFinding) -> String {
    format!("{}, ours and the paper's", finding.experiment.title)
}
