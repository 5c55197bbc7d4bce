//! Controllers of congestion side by side: the same traffic through the same network under each of them (`hitless sim cc`).
//!
//! Each point is a scenario as TOML text, which the crate `scenario` reads: what is compared here can be printed, changed and
//! run again. Switches are set as each controller needs them: HPCC gets telemetry, DCQCN and DCTCP get ECN marks.
//!
//! | file | what it does |
//! | --- | --- |
//! | `networks` | networks and traffic, as text |
//! | `measure` | a run to a row |
//! | `fairness` | how evenly flows shared the time that they had in common |
//! | `text` | rows for people |

mod fairness;
mod measure;
mod networks;
#[cfg(test)]
mod tests;
mod text;

use scenario::Scenario;
use units::{Prob, Progress, nearest};

pub use measure::{CongestionRow, FlowPercentiles};
pub use networks::TrafficMix;
pub use text::describe;

/// Settings of a comparison.
#[derive(Clone, Debug)]
pub struct CongestionSettings {
    /// Controllers by the words of a scenario, one for each row.
    pub controllers: Vec<&'static str>,
    pub traffic: TrafficMix,
    /// Recovery of queue pairs from loss, by the word of a scenario.
    pub recovery: &'static str,
    pub pfc: bool,
    /// Share of packets that one link corrupts.
    pub loss: Prob,
    /// Protection of that link, by the word of a scenario.
    pub protect: String,
    /// Controllers of rate get a window as well.
    pub plus_window: bool,
    pub seed: u64,
}

/// Controllers that a scenario has a word for.
const CONTROLLERS: [&str; 7] = ["none", "fixed", "hpcc", "dcqcn", "timely", "dctcp", "swift"];
/// Controllers that are compared by default: all but `none` and `fixed`.
pub const COMPARED: [&str; 5] = ["hpcc", "dcqcn", "timely", "dctcp", "swift"];
const RECOVERIES: [&str; 3] = ["go-back-n", "irn", "melo"];

/// The controller of this name.
pub fn controller(name: &str) -> Result<&'static str, String> {
    choose(name, CONTROLLERS.map(|name| (name, name)))
}

/// The recovery of this name.
pub fn recovery(name: &str) -> Result<&'static str, String> {
    choose(name, RECOVERIES.map(|name| (name, name)))
}

/// One of a few by its name; or the nearest name, or all of them.
fn choose<T: Copy, const N: usize>(name: &str, choices: [(&'static str, T); N]) -> Result<T, String> {
    if let Some((_, choice)) = choices.iter().find(|(candidate, _)| *candidate == name) {
        return Ok(*choice);
    }
    let names = choices.map(|(name, _)| name);
    Err(match nearest(name, names) {
        Some(nearest) => format!("did you mean '{nearest}'?"),
        None => format!("expected one of {}", names.join(", ")),
    })
}

/// The scenario of one controller, as a file that `hitless sim run` takes.
pub fn scenario_text(settings: &CongestionSettings, controller: &str) -> String {
    networks::text(settings, controller)
}

/// Finds everything that is wrong before anything runs.
pub fn check(settings: &CongestionSettings) -> Result<(), String> {
    scenarios(settings).map(|_| ())
}

fn scenarios(settings: &CongestionSettings) -> Result<Vec<(&'static str, Scenario)>, String> {
    let read = |controller: &&'static str| {
        let text = scenario_text(settings, controller);
        // The only key whose value comes from the command line as it is.
        let by_option = |text: String| match text.split_once("link.protect: ") {
            Some((_, problem)) => format!("--protect: {problem}"),
            None => text,
        };
        let scenario = Scenario::parse("sim cc --scenario", &text, &[]);
        Ok((*controller, scenario.map_err(|error| by_option(error.to_string()))?))
    };
    settings.controllers.iter().map(read).collect()
}

/// A row for each controller, in their order; fewer if `progress` ended a run early.
pub fn compare(
    settings: &CongestionSettings,
    jobs: usize,
    progress: &(dyn Progress + Sync),
) -> Result<Vec<CongestionRow>, String> {
    let scenarios = scenarios(settings)?;
    progress.expect_parts(scenarios.len());
    let rows = parallel::map(&scenarios, jobs, |(controller, scenario)| {
        let row = scenario.points.first().map(|point| measure::row(settings, controller, point, progress));
        progress.part_done();
        row.unwrap_or(Ok(None))
    });
    rows.into_iter().filter_map(Result::transpose).collect()
}
