//! The fabrics of §3.6 with their plans, and runs on them.

use clock::graph::{Graph, HostLinks};
use clock::plan::{ClockPlan, PlanRequest, plan};
use clocksim::{ClockOutcome, ClockScheme, ClockSetup, simulate};
use report::claim::ClaimError;
use report::runner::Effort;

/// A fabric and the plan for it.
#[derive(Debug)]
pub(super) struct PlannedFabric {
    pub graph: Graph,
    pub plan: ClockPlan,
}

impl PlannedFabric {
    /// 276 switches and 552 servers, pods as domains (§3.6.1).
    pub(super) fn testbed() -> Result<Self, ClaimError> {
        Self::new(Graph::testbed(HostLinks::Dual).map_err(ClaimError::new)?, "pod")
    }

    /// 88,064 devices, aggregation blocks as domains (§3.6.2).
    pub(super) fn jupiter() -> Result<Self, ClaimError> {
        Self::new(Graph::jupiter(HostLinks::Dual).map_err(ClaimError::new)?, "agg")
    }

    fn new(graph: Graph, domains: &str) -> Result<Self, ClaimError> {
        let graph = graph.with_domains_named(domains).map_err(ClaimError::new)?;
        let plan = plan(&graph, &PlanRequest::default()).map_err(ClaimError::new)?;
        Ok(Self { graph, plan })
    }
}

/// Runs of all setups; `None` if they were stopped early.
pub(super) fn run_all(setups: &[ClockSetup<'_>], effort: &Effort<'_>) -> Result<Option<Vec<ClockOutcome>>, ClaimError> {
    effort.progress.expect_parts(setups.len());
    let outcomes = parallel::map(setups, effort.jobs, |setup| {
        let outcome = simulate(setup, effort.progress).map_err(ClaimError::new);
        effort.progress.part_done();
        outcome.map(|outcome| (!outcome.interrupted).then_some(outcome))
    });
    outcomes.into_iter().collect()
}

/// Converts a scheme's ε to its unit: µs for those that are orders of magnitude wider.
pub(super) fn in_its_unit(scheme: ClockScheme, ns: f64) -> f64 {
    match scheme {
        ClockScheme::Sundial | ClockScheme::Marzullo | ClockScheme::PtpFrequentSynchronous => ns,
        ClockScheme::Ptp | ClockScheme::PtpDtp | ClockScheme::PtpFrequent | ClockScheme::Huygens => ns / 1e3,
    }
}
