//! Time until flows are back at their rate after an event, from counts that were taken every few milliseconds.

use std::collections::VecDeque;
use std::time::Duration;

/// Counts of every flow by then.
#[derive(Clone, Debug)]
struct FlowSample {
    at: Duration,
    counts: Vec<u64>,
}

/// The counts of the last seconds.
#[derive(Debug, Default)]
pub(super) struct FlowHistory {
    samples: VecDeque<FlowSample>,
}

/// Samples are kept for this long.
const KEPT: Duration = Duration::from_secs(8);
/// A rate is one over this time.
const WINDOW: Duration = Duration::from_millis(50);
/// The rate before is one over this time.
const BEFORE: Duration = Duration::from_secs(1);
/// Flows are back at this share of it.
const SHARE: f64 = 0.95;

impl FlowHistory {
    pub(super) fn add(&mut self, at: Duration, counts: Vec<u64>) {
        self.samples.push_back(FlowSample { at, counts });
        while self.samples.front().is_some_and(|first| first.at + KEPT < at) {
            self.samples.pop_front();
        }
    }

    /// The longest that whoever takes the samples overslept between two times: as long as that, any daemon may have waited for
    /// a processor too.
    pub(super) fn latest_sample(&self, from: Duration, to: Duration, every: Duration) -> Duration {
        let within = self.samples.iter().filter(|sample| from <= sample.at && sample.at <= to);
        let times: Vec<Duration> = [from].into_iter().chain(within.map(|sample| sample.at)).chain([to]).collect();
        let gaps = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
        gaps.max().unwrap_or_default().saturating_sub(every)
    }

    /// Time after `event` until the flows that are asked for, taken together, were back at 0.95 of their rate before it;
    /// none if they have not been since. The first look is at `from`.
    pub(super) fn back_after(&self, event: Duration, from: Duration, flow: impl Fn(usize) -> bool) -> Option<Duration> {
        let total = |sample: &FlowSample| -> u64 {
            sample.counts.iter().enumerate().filter(|(number, _)| flow(*number)).map(|(_, count)| count).sum()
        };
        let rate = |from: &FlowSample, to: &FlowSample| {
            (total(to) - total(from)) as f64 / (to.at - from.at).as_secs_f64().max(f64::MIN_POSITIVE)
        };
        let at_event = self.samples.iter().rev().find(|sample| sample.at <= event)?;
        let first = self.samples.iter().find(|sample| sample.at + BEFORE >= event)?;
        let enough = rate(first, at_event) * SHARE;
        let begins = self.samples.iter().enumerate().filter(|(_, sample)| sample.at >= from.max(event));
        for (number, begin) in begins {
            let end = self.samples.iter().skip(number).find(|sample| sample.at >= begin.at + WINDOW)?;
            if rate(begin, end) >= enough {
                return Some(begin.at - event);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Two flows of one a millisecond; the first pauses from 2,000 ms until 2,120 ms.
    fn paused() -> FlowHistory {
        let mut history = FlowHistory::default();
        for at in (0..4_000_u64).step_by(5) {
            let first = if at < 2_000 { at } else { 2_000 + at.saturating_sub(2_120) };
            history.add(ms(at), vec![first, at]);
        }
        history
    }

    #[test]
    fn flows_are_back_when_their_rate_is_that_of_the_second_before() {
        let history = paused();
        let back = |flow: fn(usize) -> bool| history.back_after(ms(2_000), ms(2_000), flow);
        assert_eq!(back(|flow| flow == 1), Some(ms(0)), "the other one did not notice");
        assert_eq!(back(|flow| flow == 0), Some(ms(120)));
        assert_eq!(back(|_| true), Some(ms(115)), "0.95 of both together");
        assert_eq!(history.back_after(ms(2_000), ms(2_300), |flow| flow == 0), Some(ms(300)), "not looked before");
    }

    #[test]
    fn a_machine_that_did_not_run_for_a_while_is_known_by_its_samples() {
        let mut history = FlowHistory::default();
        (0..100).step_by(5).chain((160..300).step_by(5)).for_each(|at| history.add(ms(at), vec![at]));
        let late = |from, to| history.latest_sample(ms(from), ms(to), ms(5));
        assert_eq!(late(0, 90), ms(0));
        assert_eq!(late(50, 250), ms(60));
        assert_eq!(late(120, 150), ms(25), "no sample in between");
    }

    #[test]
    fn flows_that_do_not_come_back_have_no_time() {
        let mut history = FlowHistory::default();
        (0..3_000).step_by(5).for_each(|at| history.add(ms(at), vec![at.min(2_000)]));
        assert_eq!(history.back_after(ms(2_000), ms(2_000), |_| true), None);
        (3_000..20_000).step_by(5).for_each(|at| history.add(ms(at), vec![2_000]));
        assert!(history.samples.len() < 1_700, "only the last seconds are kept");
    }
}
