//! Plan of a demonstration, and its results.

use std::time::Duration;

use link::config::LinkMode;
use serde::Serialize;
use standin::{HostBackend, WireBackend};
use units::{Prob, Rate};

use crate::stage::WireCount;
use load::RoundTrips;

#[derive(Clone, Debug)]
pub struct DemoPlan {
    pub loss: Prob,
    /// Loss rate at which the kernel's congestion control collapses.
    pub heavy_loss: Prob,
    pub rate: Option<Rate>,
    pub rounds: u32,
    pub round_trips: u32,
    pub bulk: Duration,
    pub mode: LinkMode,
    pub host: HostBackend,
    pub wire: WireBackend,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemoCase {
    Clean,
    Corrupting,
    Protected,
    CleanChain,
}

impl DemoCase {
    pub const ALL: [Self; 4] = [Self::Clean, Self::Corrupting, Self::Protected, Self::CleanChain];

    pub(super) fn is_protected(self) -> bool {
        matches!(self, Self::Protected | Self::CleanChain)
    }

    pub(super) fn has_loss(self) -> bool {
        matches!(self, Self::Corrupting | Self::Protected)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Corrupting => "corrupting",
            Self::Protected => "protected",
            Self::CleanChain => "clean_chain",
        }
    }

    /// Title of the case in text.
    pub fn title(self) -> &'static str {
        match self {
            Self::Clean => "clean wire, plain TCP",
            Self::Corrupting => "corrupting wire, plain TCP",
            Self::Protected => "corrupting wire, hitless",
            Self::CleanChain => "clean wire, hitless",
        }
    }
}

/// Figures of one case in one round.
#[derive(Clone, Debug, Serialize)]
pub struct DemoRound {
    pub throughput_gbps: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_at_1e2_gbps: Option<f64>,
    pub pingpong_p50_us: f64,
    pub pingpong_p99_us: f64,
    pub pingpong_p999_us: f64,
    pub pingpong_max_us: f64,
    /// The median beside a bulk flow.
    pub pingpong_beside_bulk_p50_us: f64,
    pub over_100ms: u64,
    pub wire: WireCount,
    /// Segments that TCP sent again.
    pub tcp_retransmitted: u64,
}

/// Figures of one case: medians over rounds, sums of what is counted.
#[derive(Clone, Debug, Serialize)]
pub struct DemoFigures {
    #[serde(flatten)]
    pub median: DemoRound,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<DemoRecovery>,
    pub rounds: Vec<DemoRound>,
    /// All round trips, for a chart.
    #[serde(skip)]
    pub round_trips: RoundTrips,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct DemoRecovery {
    pub recovered: u64,
    pub given_up: u64,
    /// Recovery times of the frames of requests and responses.
    pub recovery_p50_us: Option<f64>,
    pub recovery_p99_us: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct DemoResult {
    pub clean: DemoFigures,
    pub corrupting: DemoFigures,
    pub protected: DemoFigures,
    pub clean_chain: DemoFigures,
    pub simulated: bool,
    pub backend: String,
    pub rootless: bool,
    pub loss: f64,
    pub rate_gbps: Option<f64>,
    /// Rounds that were completed.
    pub completed: u32,
}

impl DemoResult {
    pub fn figures(&self, case: DemoCase) -> &DemoFigures {
        match case {
            DemoCase::Clean => &self.clean,
            DemoCase::Corrupting => &self.corrupting,
            DemoCase::Protected => &self.protected,
            DemoCase::CleanChain => &self.clean_chain,
        }
    }
}

impl DemoFigures {
    /// Combines the rounds, of which there is at least one.
    pub fn of(rounds: Vec<(DemoRound, RoundTrips)>) -> Self {
        let mut round_trips = RoundTrips::default();
        rounds.iter().for_each(|(_, trips)| round_trips.merge(trips));
        let rounds: Vec<DemoRound> = rounds.into_iter().map(|(round, _)| round).collect();
        let middle = |value: fn(&DemoRound) -> f64| median(rounds.iter().map(value).collect());
        let median = DemoRound {
            throughput_gbps: middle(|round| round.throughput_gbps),
            throughput_at_1e2_gbps: rounds[0]
                .throughput_at_1e2_gbps
                .map(|_| middle(|round| round.throughput_at_1e2_gbps.unwrap_or(0.0))),
            pingpong_p50_us: middle(|round| round.pingpong_p50_us),
            pingpong_p99_us: middle(|round| round.pingpong_p99_us),
            pingpong_p999_us: middle(|round| round.pingpong_p999_us),
            pingpong_max_us: rounds.iter().map(|round| round.pingpong_max_us).fold(0.0, f64::max),
            pingpong_beside_bulk_p50_us: middle(|round| round.pingpong_beside_bulk_p50_us),
            over_100ms: rounds.iter().map(|round| round.over_100ms).sum(),
            wire: rounds.iter().fold(WireCount::default(), |sum, round| sum + round.wire),
            tcp_retransmitted: rounds.iter().map(|round| round.tcp_retransmitted).sum(),
        };
        Self { median, recovery: None, rounds, round_trips }
    }
}

/// The median of the values; not a number if there are none.
pub fn median(mut values: Vec<f64>) -> f64 {
    units::samples::median(&mut values).unwrap_or(f64::NAN)
}
