//! The same year under two policies, event by event.

use fleet::Fabric;
use fleet::ledger::{LedgerTerms, PipeLayout};
use fleet::paths::Constraint;
use fleet::protection::{Protect, Protection, ProtectionTable};
use fleet::simulate::{FleetOutcome, FleetSample, FleetSetup, Policy, simulate};
use fleet::trace::CorruptionEvent;
use units::{Moment, Progress};

/// CorrOpt alone and with protection at one constraint.
#[derive(Debug)]
pub(crate) struct Years {
    pub share: f64,
    /// Links that began to corrupt, disabled ones as well.
    pub losses: u64,
    pub plain: FleetOutcome,
    pub guarded: FleetOutcome,
    /// Outcome with the protection that the authors measured; only for a year that is studied closely.
    authors: Option<FleetOutcome>,
    /// Day of each event, the penalty after it without protection, and with that which the authors measured.
    by_event: Vec<(f64, f64, f64)>,
    /// States after events; only for a year that is studied closely.
    pub samples: Vec<Moments>,
}

/// State after an event; pairs hold one value per policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    pub day: f64,
    pub penalty: (f64, f64),
    pub least_share: f64,
    pub capacity: (f64, f64),
}

/// Loss of a healthy link in the authors' simulator.
const HEALTHY: f64 = 1e-18;

impl Years {
    /// Runs a year. `None` if `progress` ended it.
    pub(crate) fn run(
        fabric: &Fabric,
        trace: &[CorruptionEvent],
        until: Moment,
        share: f64,
        closely: bool,
        progress: &(dyn Progress + Sync),
    ) -> Option<Self> {
        let terms =
            LedgerTerms { constraint: Constraint::new(share)?, healthy_loss: HEALTHY, pipes: PipeLayout::default() };
        let measured = ProtectionTable::measured();
        let run = |policy, protection: &dyn Protect| {
            let setup = FleetSetup { fabric, trace, until, policy, terms, protection, capable: None };
            let mut samples = Vec::new();
            let observer = |sample: &FleetSample| samples.extend(closely.then_some(*sample));
            let outcome = simulate(&setup, observer, progress);
            (outcome.until == until).then_some((outcome, samples))
        };
        let (plain, plain_samples) = run(Policy::CorrOpt, &measured)?;
        let (guarded, guarded_samples) = run(Policy::CorrOptGuard, &measured)?;
        let (authors, authors_samples) = if closely {
            run(Policy::CorrOptGuard, &AuthorsPoints).map(|(outcome, samples)| (Some(outcome), samples))?
        } else {
            (None, Vec::new())
        };
        let penalties = |(one, other): (&FleetSample, &FleetSample)| {
            (one.at.as_days(), one.totals.penalty.as_f64(), other.totals.penalty.as_f64())
        };
        let by_event = plain_samples.iter().zip(&authors_samples).map(penalties).collect();
        let samples = plain_samples.iter().zip(&guarded_samples).map(|(one, other)| Moments::of(one, other)).collect();
        let losses = trace.iter().filter(|corruption| corruption.at < until).count() as u64;
        Some(Self { share, losses, plain, guarded, authors, by_event, samples })
    }

    pub(crate) fn events(&self) -> u64 {
        self.plain.events
    }

    /// Orders of magnitude by which protection lowers the mean penalty.
    pub(crate) fn orders(&self) -> f64 {
        (self.plain.mean_penalty / self.guarded.mean_penalty).log10()
    }

    pub(crate) fn orders_authors(&self) -> Option<f64> {
        self.authors.map(|authors| (self.plain.mean_penalty / authors.mean_penalty).log10())
    }

    /// The same with the authors' points, of the penalties over some days.
    pub(crate) fn orders_within(&self, (from, to): (f64, f64)) -> Option<f64> {
        let (mut plain, mut guarded) = (0.0, 0.0);
        for pair in self.by_event.windows(2) {
            let days = pair[1].0.min(to) - pair[0].0.max(from);
            if days > 0.0 {
                plain += days * pair[0].1;
                guarded += days * pair[0].2;
            }
        }
        (guarded > 0.0).then(|| (plain / guarded).log10())
    }

    /// Quantile, over events, of the orders with the authors' points that are gained after each.
    pub(crate) fn orders_after_events(&self, quantile: f64) -> Option<f64> {
        let mut orders: Vec<f64> = self.by_event.iter().map(|(_, plain, guarded)| (plain / guarded).log10()).collect();
        orders.sort_by(f64::total_cmp);
        (!orders.is_empty()).then(|| at(&orders, quantile))
    }

    pub(crate) fn penalties(&self) -> String {
        format!("{:.2e} becomes {:.2e}", self.plain.mean_penalty, self.guarded.mean_penalty)
    }

    /// Share of events after which there is something to gain.
    pub(crate) fn gain_share(&self) -> f64 {
        let gained = self.samples.iter().filter(|moment| moment.gain() > 1.0).count();
        gained as f64 / self.samples.len().max(1) as f64
    }

    pub(crate) fn gain_by_time(&self) -> String {
        let (mut without, mut all) = (0.0, 0.0);
        for pair in self.samples.windows(2) {
            let days = pair[1].day - pair[0].day;
            all += days;
            without += if pair[0].gain() > 1.0 { 0.0 } else { days };
        }
        format!("{:.1} % of the time", 100.0 * without / all)
    }

    /// Quantile, over events, of the decrease of the least capacity.
    pub(crate) fn cost(&self, quantile: f64) -> f64 {
        at(&self.sorted(Moments::cost), quantile)
    }

    /// Distribution of gains: each gain with the share of events that do not exceed it.
    pub(crate) fn gains(&self) -> Vec<(f64, f64)> {
        shares(&self.sorted(Moments::gain))
    }

    /// Decreases in percent, by the share of events that do not exceed them.
    pub(crate) fn costs(&self) -> Vec<(f64, f64)> {
        shares(&self.sorted(|moment| 100.0 * moment.cost()))
    }

    /// About `points` moments between two days, or all.
    pub(crate) fn between(&self, (from, to): (f64, f64), points: usize) -> Vec<Moments> {
        let within: Vec<Moments> =
            self.samples.iter().filter(|moment| (from..=to).contains(&moment.day)).copied().collect();
        let mut next = from;
        let step = (to - from) / points as f64;
        within
            .into_iter()
            .filter(|moment| {
                let due = moment.day >= next;
                while due && moment.day >= next && step > 0.0 && points < usize::MAX {
                    next += step;
                }
                due
            })
            .collect()
    }

    fn sorted(&self, value: impl Fn(&Moments) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = self.samples.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    }
}

/// Points that the authors measured on their switch at 100G and put into their simulator: loss, the loss that is left, and
/// the share of the rate. The point nearest in loss counts.
#[derive(Debug)]
struct AuthorsPoints;

const AUTHORS: [(f64, f64, f64); 4] =
    [(1.43e-5, 5.97e-10, 0.9876), (9.16e-5, 7.56e-9, 0.9874), (1.16e-3, 1.29e-9, 0.9088), (1e-2, 1e-8, 0.6)];

impl Protect for AuthorsPoints {
    fn protect(&self, loss: f64) -> Protection {
        let distance = |point: &(f64, f64, f64)| (point.0 - loss).abs();
        let nearest = |one: &&(f64, f64, f64), other: &&(f64, f64, f64)| distance(one).total_cmp(&distance(other));
        let &(_, left, speed) = AUTHORS.iter().min_by(nearest).unwrap_or(&AUTHORS[0]);
        Protection { speed, loss: left, copies: fleet::protection::copies(loss) }
    }
}

impl Moments {
    fn of(plain: &FleetSample, guarded: &FleetSample) -> Self {
        Self {
            day: plain.at.as_days(),
            penalty: (plain.totals.penalty.as_f64(), guarded.totals.penalty.as_f64()),
            least_share: plain.totals.least_share,
            capacity: (plain.totals.least_capacity, guarded.totals.least_capacity),
        }
    }

    fn gain(&self) -> f64 {
        self.penalty.0 / self.penalty.1
    }

    fn cost(&self) -> f64 {
        self.capacity.0 - self.capacity.1
    }
}

fn at(sorted: &[f64], quantile: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((quantile * last as f64) as usize).copied().unwrap_or(f64::NAN)
}

fn shares(sorted: &[f64]) -> Vec<(f64, f64)> {
    const POINTS: usize = 400;
    (0..=POINTS).map(|i| i as f64 / POINTS as f64).map(|share| (at(sorted, share), share)).collect()
}
