//! Advice on the setting that is worth its cost.
//!
//! "Packet corruption in RDMA" §4 and §5.2. The cheapest number of dummies and copies with which no more flows are late than
//! the goal allows; among equally cheap ones, that with fewer. A stronger mechanism never delays a flow, so the search starts
//! from the least of each mechanism that suffices while all others are at their strongest.
//!
//! A flow is taken to be late if what corruption adds exceeds the goal less the tail latency without corruption. Most flows are
//! faster than that tail, so this errs on the safe side.

use units::{Prob, Span};

use super::{CorruptionSeverity, PenaltyTiming, TailProtection, TimeoutModel, TimeoutSetting};

/// Most copies of NAKs, copies of NAKed packets, and dummies, each, that advice considers.
pub const MOST_COPIES: u32 = 8;

/// Goal that advice is to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Flows are to be complete within this,
    pub latency: Span,
    /// but for this share of them: 1e-3 for a p99.9.
    pub late: Prob,
    /// Same percentile of the latency without corruption.
    pub base: Span,
}

/// Result of [`TimeoutModel::advise`].
#[derive(Clone, Debug, PartialEq)]
pub enum Advice {
    /// The cheapest setting that reaches the goal.
    Set(AdvisedSetting),
    /// No setting with up to [`MOST_COPIES`] of everything reaches the goal.
    Unreachable(GoalObstacle),
}

/// A setting that reaches the goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdvisedSetting {
    /// The setting, with at most [`MOST_COPIES`] of each kind; dummies protect tails.
    pub setting: TimeoutSetting,
    /// The longest T with which a tail that dummies show is in time; none without dummies.
    pub wait: Option<Span>,
    /// Share of flows that are late.
    pub late: f64,
    /// Share of late flows without any help.
    pub late_unprotected: f64,
    /// Share of late flows with one dummy less, one copy of NAKs less, one of NAKed packets less; `None` where the
    /// setting has none.
    pub with_one_less: [Option<f64>; 3],
    /// Bytes more on a path, as a share.
    pub cost: f64,
}

/// Reason why no setting reaches the goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GoalObstacle {
    /// Flows are late without corruption.
    Base,
    /// Go-back-N alone makes too many flows late, even if it never needs a timeout.
    Repairs {
        /// Share of flows that are late, 0 to 1.
        late: f64,
        /// Losses of a flow that can be repaired in time.
        in_time: u64,
        /// Corruption of a full packet at which the goal would be reached with nothing set: what has to be hidden below.
        bearable: Prob,
    },
    /// Even with the most copies of everything, too many flows time out.
    Copies {
        /// Share of flows that are late even then, 0 to 1.
        late: f64,
        /// Bearable corruption, as in [`GoalObstacle::Repairs`].
        bearable: Prob,
    },
}

impl TimeoutModel {
    /// `timing.wait` is not looked at: the T that fits is part of the advice.
    pub fn advise(&self, goal: &Goal, timing: &PenaltyTiming, obeys_copies: bool) -> Advice {
        let Some(slack) = goal.latency.as_ps().checked_sub(goal.base.as_ps()).filter(|slack| *slack > 0) else {
            return Advice::Unreachable(GoalObstacle::Base);
        };
        let slack = Span::from_ps(slack);
        let timing = PenaltyTiming { wait: slack.saturating_sub(timing.rtt), ..*timing };
        let search = SettingSearch { model: self, goal, timing, slack, obeys_copies };
        match search.cheapest() {
            Some(counts) => Advice::Set(search.plan(counts)),
            None => Advice::Unreachable(search.obstacle()),
        }
    }
}

/// Dummies, copies of NAKs, copies of NAKed packets.
type Counts = [u32; 3];

struct SettingSearch<'a> {
    model: &'a TimeoutModel,
    goal: &'a Goal,
    timing: PenaltyTiming,
    slack: Span,
    obeys_copies: bool,
}

impl SettingSearch<'_> {
    fn setting(&self, [dummies, naks, naked]: Counts) -> TimeoutSetting {
        TimeoutSetting { naks, naked, tail: TailProtection::Dummies(dummies), obeys_copies: self.obeys_copies }
    }

    fn late(&self, counts: Counts) -> f64 {
        self.model.late(&self.setting(counts), &self.timing, self.slack)
    }

    fn cost(&self, counts: Counts) -> f64 {
        self.model.cost(&self.setting(counts)).path.total()
    }

    fn reaches(&self, counts: Counts) -> bool {
        self.late(counts) <= self.goal.late.get()
    }

    fn cheapest(&self) -> Option<Counts> {
        let mut least = [0; 3];
        for (at, least) in least.iter_mut().enumerate() {
            let with = |count| {
                let mut counts = [MOST_COPIES; 3];
                counts[at] = count;
                counts
            };
            *least = (0..=MOST_COPIES).find(|count| self.reaches(with(*count)))?;
        }
        let mut candidates: Vec<(f64, Counts)> = Vec::new();
        for dummies in least[0]..=MOST_COPIES {
            for naks in least[1]..=MOST_COPIES {
                for naked in least[2]..=MOST_COPIES {
                    let counts = [dummies, naks, naked];
                    candidates.push((self.cost(counts), counts));
                }
            }
        }
        let copies = |counts: &Counts| counts.iter().sum::<u32>();
        candidates
            .sort_by(|(cost, counts), (other, others)| cost.total_cmp(other).then(copies(counts).cmp(&copies(others))));
        candidates.into_iter().map(|(_, counts)| counts).find(|counts| self.reaches(*counts))
    }

    fn plan(&self, counts: Counts) -> AdvisedSetting {
        let one_less = |at: usize| {
            let mut fewer = counts;
            fewer[at] = counts[at].checked_sub(1)?;
            Some(self.late(fewer))
        };
        AdvisedSetting {
            setting: self.setting(counts),
            wait: (counts[0] > 0).then_some(self.timing.wait),
            late: self.late(counts),
            late_unprotected: self.late([0; 3]),
            with_one_less: [0, 1, 2].map(one_less),
            cost: self.cost(counts),
        }
    }

    fn obstacle(&self) -> GoalObstacle {
        let late = self.model.late_by_repairs(&self.timing, self.slack);
        let bearable = self.bearable();
        if late > self.goal.late.get() {
            let in_time = self.slack.as_ps().checked_div(self.timing.rtt.as_ps()).unwrap_or(0);
            GoalObstacle::Repairs { late, in_time, bearable }
        } else {
            GoalObstacle::Copies { late: self.late([MOST_COPIES; 3]), bearable }
        }
    }

    /// The most corruption with which the goal is reached with nothing set.
    fn bearable(&self) -> Prob {
        let reaches = |beta: Prob| {
            let corruption = match self.model.corruption {
                CorruptionSeverity::Drops(_) => CorruptionSeverity::Drops(beta),
                CorruptionSeverity::Bits(_) | CorruptionSeverity::Packets(_) => CorruptionSeverity::Packets(beta),
            };
            let model = TimeoutModel { corruption, ..self.model.clone() };
            model.late(&TimeoutSetting::NONE, &self.timing, self.slack) <= self.goal.late.get()
        };
        // Halved on a scale of logarithms: two digits are enough, the magnitude is what counts.
        let (mut low, mut high) = (-20.0, self.model.packet_corruption().get().log10());
        for _ in 0..12 {
            let middle = (low + high) / 2.0;
            if reaches(super::literal(10f64.powf(middle))) {
                low = middle;
            } else {
                high = middle;
            }
        }
        super::literal(10f64.powf(low))
    }
}
