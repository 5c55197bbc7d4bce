//! The page of `sim run --html`: iterations of a scenario's collectives.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use results::flows::FlowSummary;
use results::remedies::{IterationOrigin, IterationTrace, PageJob, iterations_page};
use scenario::Scenario;
use serde::Serialize;
use sim::net::NetworkOutcome;

use super::runs::PointRun;
use crate::output::{CommandResult, Failure};
use crate::results::{check_file, write_file};

/// Traces of jobs by point and job, each of the first seed that ended.
#[derive(Debug, Default)]
pub(super) struct TraceSet(Mutex<BTreeMap<(usize, usize), (u64, IterationTrace)>>);

impl TraceSet {
    /// Refuses what no page can be made of.
    pub(super) fn check(path: &Path, scenario: &Scenario) -> CommandResult {
        let has_job =
            scenario.points.iter().any(|point| (0..point.traffic_names().count()).any(|at| point.job(at).is_some()));
        if !has_job {
            let expected = "expected traffic with work = \"collective\", or a graph from a file";
            return Err(Failure::Usage(format!("--html {}: {expected}", path.display())));
        }
        check_file("--html", path)
    }

    pub(super) fn keep(&self, run: &PointRun<'_>, outcome: &NetworkOutcome) {
        let Ok(mut kept) = self.0.lock() else { return };
        for (at, job) in outcome.jobs.iter().enumerate() {
            let name =
                [run.point.label.as_str(), run.point.traffic_names().nth(usize::from(job.traffic)).unwrap_or_default()];
            let name: Vec<&str> = name.into_iter().filter(|part| !part.is_empty()).collect();
            let new = (run.seed, IterationTrace::of(name.join(" "), &job.outcome));
            let place = kept.entry((run.point.number, at)).or_insert_with(|| new.clone());
            if new.0 < place.0 {
                *place = new;
            }
        }
    }

    pub(super) fn write<C: Serialize>(
        self,
        path: &Path,
        command: &str,
        scenario: &Scenario,
        summaries: &[FlowSummary<'_, C>],
    ) -> CommandResult {
        let kept = self.0.into_inner().unwrap_or_default();
        let mut jobs = Vec::new();
        for (point, summary) in scenario.points.iter().zip(summaries) {
            for (at, job) in summary.collective.iter().enumerate() {
                let trace = kept.get(&(point.number, at)).map(|(_, trace)| trace);
                jobs.extend(trace.map(|trace| PageJob { trace, summary: job }));
            }
        }
        let text = summaries.iter().filter_map(|summary| serde_json::to_string_pretty(&summary.config).ok());
        let text = text.collect::<Vec<_>>().join("\n");
        let late: u64 = jobs.iter().map(|job| job.summary.late).sum();
        let all: u64 = jobs.iter().map(|job| job.summary.complete).sum();
        let answer = format!("{late} of {all} iterations are late.");
        let page = iterations_page(
            &jobs,
            IterationOrigin { answer: &answer, command: &format!("{command} --html FILE"), scenario: &text },
        );
        write_file("--html", path, |out| out.write_all(page.as_bytes()))
    }
}
