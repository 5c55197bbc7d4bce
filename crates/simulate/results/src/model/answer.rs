//! Output of `--json` for the model of RDMA.

use roce::model::{
    Advice, Causes, Cost, Estimate, Forms, Goal, PenaltyTiming, TailProtection, TimeoutModel, TimeoutSetting,
};
use serde::Serialize;
use units::{Prob, Span};

use super::{RdmaQuestion, TimeoutShares, text};

#[derive(Debug, Serialize)]
pub struct RdmaAnswer {
    packet_corruption: f64,
    header_corruption: f64,
    ack_corruption: f64,
    bit_errors: Option<f64>,
    links: u32,
    corrupting: f64,
    mean_packets: f64,
    mean_inverse_packets: f64,
    tail_bytes: u64,
    gap_us: Option<f64>,
    unprotected: Outlook,
    protected: Outlook,
    advice: Option<AdviceResult>,
    simulated: Option<SimulatedResult>,
}

/// Shares of simulated flows that timed out; `flow_with_timeout` is what to hold against them.
#[derive(Debug, Serialize)]
struct SimulatedResult {
    flows: u64,
    unprotected: f64,
    unprotected_interval: Option<(f64, f64)>,
    protected: f64,
    protected_interval: Option<(f64, f64)>,
}

impl From<&TimeoutShares> for SimulatedResult {
    fn from(TimeoutShares { without, with }: &TimeoutShares) -> Self {
        Self {
            flows: without.flows,
            unprotected: without.share,
            unprotected_interval: without.interval,
            protected: with.share,
            protected_interval: with.interval,
        }
    }
}

/// Expected results of one setting.
#[derive(Debug, Serialize)]
struct Outlook {
    setting: SettingResult,
    per_packet: CausesResult,
    per_flow: CausesResult,
    flow_with_timeout: f64,
    retransmissions_per_flow: f64,
    penalty_us: PenaltyResult,
    cost: CostResult,
    cost_of_the_paper: CostResult,
}

#[derive(Debug, Serialize)]
struct SettingResult {
    dummies: u32,
    tail_repeat: u32,
    naks: u32,
    naked: u32,
    obeys_copies: bool,
}

#[derive(Debug, Serialize)]
struct CausesResult {
    nak: FormsResult,
    twice: FormsResult,
    tail: FormsResult,
    tail_ack: FormsResult,
    total: FormsResult,
}

#[derive(Debug, Serialize)]
struct FormsResult {
    exact: f64,
    approximate: f64,
    rounded: f64,
}

#[derive(Debug, Serialize)]
struct PenaltyResult {
    timeouts: f64,
    tails: f64,
    retransmissions: f64,
    total: f64,
}

#[derive(Debug, Serialize)]
struct CostResult {
    naks: f64,
    naked: f64,
    tail: f64,
    total: f64,
}

#[derive(Debug, Serialize)]
struct AdviceResult {
    reached: bool,
    goal_us: f64,
    late_allowed: f64,
    setting: Option<SettingResult>,
    wait_us: Option<f64>,
    late: Option<f64>,
    cost: Option<f64>,
    why: Vec<String>,
}

impl RdmaAnswer {
    pub fn new(question: &RdmaQuestion, simulated: Option<&TimeoutShares>) -> Self {
        let RdmaQuestion { model, setting, timing, .. } = question;
        Self {
            packet_corruption: model.packet_corruption().get(),
            header_corruption: model.header_corruption().get(),
            ack_corruption: model.ack_corruption().get(),
            bit_errors: model.corruption.bit_errors(&model.lengths).map(Prob::get),
            links: model.path.links,
            corrupting: model.path.corrupting.get(),
            mean_packets: model.flows.mean,
            mean_inverse_packets: model.flows.mean_inverse,
            tail_bytes: model.lengths.tail.get(),
            gap_us: timing.gap.map(Span::as_us),
            unprotected: Outlook::new(model, &TimeoutSetting::NONE, timing),
            protected: Outlook::new(model, setting, timing),
            advice: question.advice().map(|(goal, advice)| AdviceResult::new(model, timing, &goal, &advice)),
            simulated: simulated.map(Into::into),
        }
    }
}

impl Outlook {
    fn new(model: &TimeoutModel, setting: &TimeoutSetting, timing: &PenaltyTiming) -> Self {
        let Estimate { per_packet, per_flow, retransmissions, flow_with_timeout } = model.estimate(setting);
        let penalty = model.penalty(setting, timing);
        let costs = model.cost(setting);
        Self {
            setting: setting.into(),
            per_packet: (&per_packet).into(),
            per_flow: (&per_flow).into(),
            flow_with_timeout,
            retransmissions_per_flow: retransmissions,
            penalty_us: PenaltyResult {
                timeouts: penalty.timeouts.as_us(),
                tails: penalty.tails.as_us(),
                retransmissions: penalty.retransmissions.as_us(),
                total: penalty.total().as_us(),
            },
            cost: costs.path.into(),
            cost_of_the_paper: costs.paper.into(),
        }
    }
}

impl From<&TimeoutSetting> for SettingResult {
    fn from(setting: &TimeoutSetting) -> Self {
        let (dummies, tail_repeat) = match setting.tail {
            TailProtection::Dummies(dummies) => (dummies, 0),
            TailProtection::Repeat(copies) => (0, copies),
        };
        let TimeoutSetting { naks, naked, obeys_copies, .. } = *setting;
        Self { dummies, tail_repeat, naks, naked, obeys_copies }
    }
}

impl From<&Causes<Forms>> for CausesResult {
    fn from(causes: &Causes<Forms>) -> Self {
        let forms = |Forms { exact, approximate, rounded }| FormsResult { exact, approximate, rounded };
        let total = forms(causes.total());
        let Causes { nak, twice, tail, tail_ack } = causes.map(forms);
        Self { nak, twice, tail, tail_ack, total }
    }
}

impl From<Cost> for CostResult {
    fn from(cost: Cost) -> Self {
        Self { naks: cost.naks, naked: cost.naked, tail: cost.tail, total: cost.total() }
    }
}

impl AdviceResult {
    fn new(model: &TimeoutModel, timing: &PenaltyTiming, goal: &Goal, advice: &Advice) -> Self {
        let plan = match advice {
            Advice::Set(plan) => Some(plan),
            Advice::Unreachable(_) => None,
        };
        Self {
            reached: plan.is_some(),
            goal_us: goal.latency.as_us(),
            late_allowed: goal.late.get(),
            setting: plan.map(|plan| (&plan.setting).into()),
            wait_us: plan.and_then(|plan| plan.wait).map(Span::as_us),
            late: plan.map(|plan| plan.late),
            cost: plan.map(|plan| plan.cost),
            why: text::advice(model, timing, goal, advice),
        }
    }
}
