//! Probability that corruption makes a flow late.
//!
//! "Packet corruption in RDMA" §3.1 and §5.2. A flow has some time to spare (`slack`) beyond what it takes without
//! corruption. A timeout uses it up, if the timer is longer; each loss that go-back-N repairs takes a round trip; a tail
//! that dummies show takes T and a round trip. Where the timer is so short that timeouts fit, they and repairs are each held
//! against all of the slack.

use units::Span;

use super::exact::GivenLinks;
use super::{PenaltyTiming, TailProtection, TimeoutModel, TimeoutSetting, any_of};

/// More round trips than this fit: no number of losses that is worth computing makes a flow late.
const MANY: u64 = 1 << 20;

/// Spare time of a flow, counted in the timeouts and repairs that fit in it.
#[derive(Clone, Copy, Debug)]
struct Slack {
    /// Timeouts of a flow that are in time; none, as a rule.
    timeouts: u64,
    /// Losses that go-back-N may repair.
    repairs: u64,
    /// Losses that go-back-N may repair if the tail is lost too and a dummy reveals it; `None` if the tail alone is late
    /// already.
    repairs_beside_tail: Option<u64>,
    /// A tail whose loss nothing shows is late.
    unseen_tail: f64,
    /// A tail without its ACK is.
    unacknowledged_tail: f64,
    /// Probability that only dummies reveal the tail.
    tail_waits_for_dummies: f64,
}

impl Slack {
    fn new(slack: Span, timing: &PenaltyTiming) -> Self {
        let fit = |left: Span, each: Span| left.as_ps().checked_div(each.as_ps()).unwrap_or(MANY).min(MANY);
        let timeouts = fit(slack, timing.rto);
        let within = |span| if timeouts == 0 { timing.nothing_within(span) } else { 0.0 };
        let next_flow = slack.saturating_sub(timing.rtt);
        Self {
            timeouts,
            repairs: fit(slack, timing.rtt),
            repairs_beside_tail: slack
                .as_ps()
                .checked_sub(timing.wait.as_ps().saturating_add(timing.rtt.as_ps()))
                .map(|left| fit(Span::from_ps(left), timing.rtt)),
            unseen_tail: if timing.rtt > slack { 1.0 } else { within(next_flow) },
            unacknowledged_tail: within(slack),
            tail_waits_for_dummies: timing.nothing_within(timing.wait.min(next_flow)),
        }
    }

    /// Probability that a flow of this many packets is late.
    fn late(&self, given: &GivenLinks, packets: u64) -> f64 {
        let body = packets - 1;
        let timeout = given.body_timeout();
        let repaired = if timeout < 1.0 { given.repaired() / (1.0 - timeout) } else { 0.0 };
        let beyond = |repairs| more_than(repairs, body, repaired);

        let tail = &given.tail;
        let beyond_all = beyond(self.repairs);
        let one_less = self.repairs.checked_sub(1).map_or(1.0, beyond);
        let beside_tail = self.repairs_beside_tail.map_or(1.0, beyond);
        let in_vain = if self.timeouts == 0 { tail.in_vain } else { 0.0 };
        // The next flow shows an unseen tail as a dummy does, and its NAK may be lost as well.
        let unseen = mix(self.unseen_tail, 1.0, in_vain + (1.0 - in_vain) * one_less);
        let unacknowledged = mix(self.unacknowledged_tail, 1.0, beyond_all);
        let shown = in_vain + (1.0 - in_vain) * mix(self.tail_waits_for_dummies, beside_tail, one_less);
        let clean = (1.0 - tail.unseen - tail.unacknowledged - tail.seen).max(0.0);

        let without_timeout =
            tail.unseen * unseen + tail.unacknowledged * unacknowledged + tail.seen * shown + clean * beyond_all;
        let timeout = more_than(self.timeouts, body, timeout);
        (timeout + (1.0 - timeout) * without_timeout).min(1.0)
    }
}

/// The one with probability `p`, the other else.
fn mix(p: f64, one: f64, other: f64) -> f64 {
    p * one + (1.0 - p) * other
}

impl TimeoutModel {
    /// Probability that corruption takes more of a flow's time than `slack`.
    pub fn late(&self, setting: &TimeoutSetting, timing: &PenaltyTiming, slack: Span) -> f64 {
        self.mean_late(&self.given(setting), timing, slack)
    }

    /// Probability of being late if no copy, dummy or ACK were ever lost: the part of go-back-N alone.
    pub(super) fn late_by_repairs(&self, timing: &PenaltyTiming, slack: Span) -> f64 {
        let setting = TimeoutSetting { tail: TailProtection::Dummies(1), ..TimeoutSetting::NONE };
        let mut given = self.given(&setting);
        for given in &mut given {
            let tail = &mut given.tail;
            (tail.seen, tail.unseen, tail.unacknowledged) = (tail.seen + tail.unseen, 0.0, 0.0);
            tail.in_vain = 0.0;
            (given.nak, given.twice) = (0.0, 0.0);
        }
        self.mean_late(&given, timing, slack)
    }

    fn mean_late(&self, given: &[GivenLinks], timing: &PenaltyTiming, slack: Span) -> f64 {
        let slack = Slack::new(slack, timing);
        let of_flows = |given: &GivenLinks| -> f64 {
            self.flows.shares.iter().map(|(packets, share)| share * slack.late(given, *packets)).sum()
        };
        given.iter().map(|given| given.weight * of_flows(given)).sum()
    }
}

/// Probability that more than `most` of `n` happen, each with probability `p`: the upper end of a binomial distribution.
fn more_than(most: u64, n: u64, p: f64) -> f64 {
    let mean = n as f64 * p;
    if most >= n || p <= 0.0 || (most as f64) > 40.0 + 2.0 * mean + 12.0 * mean.sqrt() {
        return 0.0;
    }
    if p >= 1.0 {
        return 1.0;
    }
    if most == 0 {
        return any_of(p, n as f64);
    }
    // Away from the mean each term is smaller than the one before.
    let odds = p / (1.0 - p);
    let beyond = if most as f64 > mean {
        sum(chance(most + 1, n, p), most + 1..n, |at| (n - at) as f64 / (at + 1) as f64 * odds)
    } else {
        1.0 - sum(chance(most, n, p), (1..=most).rev(), |at| at as f64 / (n - at + 1) as f64 / odds)
    };
    beyond.clamp(0.0, 1.0)
}

/// Sum of a first term and those that follow, each by its ratio to the one before, until they no longer count.
fn sum(first: f64, follow: impl Iterator<Item = u64>, ratio: impl Fn(u64) -> f64) -> f64 {
    let (mut term, mut sum) = (first, first);
    for at in follow {
        term *= ratio(at);
        sum += term;
        if term <= sum * 1e-17 {
            break;
        }
    }
    sum
}

/// Exactly `k` of `n`.
fn chance(k: u64, n: u64, p: f64) -> f64 {
    let ways = ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k);
    (ways + k as f64 * p.ln() + (n - k) as f64 * (-p).ln_1p()).exp()
}

fn ln_factorial(n: u64) -> f64 {
    if n < 16 {
        return (2..=n).map(|k| (k as f64).ln()).sum();
    }
    let x = n as f64;
    x * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI * x).ln() + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3))
        + 1.0 / (1_260.0 * x.powi(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_end_of_a_binomial_distribution_is_what_adding_up_says() {
        for (most, n, p, expected) in [
            (0, 10, 0.1, 0.651_321_559_9),
            (1, 10, 0.1, 0.263_901_070_9),
            (3, 10, 0.5, 0.828_125),
            (9, 10, 0.5, 0.000_976_562_5),
            (10, 10, 0.5, 0.0),
            (5, 1_000, 0.001, 5.880701e-04),
        ] {
            let ours = more_than(most, n, p);
            assert!((ours - expected).abs() <= 1e-6 * expected, "{most} of {n} at {p}: {ours}");
        }
        assert_eq!(more_than(3, 10, 1.0), 1.0);
    }

    #[test]
    fn what_is_far_above_and_far_below_the_mean_is_certain() {
        assert!(more_than(10, 100_000, 0.01) > 1.0 - 1e-12);
        assert!(more_than(2_000, 100_000, 0.01) < 1e-100);
        let (below, above) = (more_than(9_999, 1_000_000, 0.01), more_than(10_000, 1_000_000, 0.01));
        assert!(above < 0.5 && 0.5 < below && below - above < 0.005, "{below} {above}");
    }
}
