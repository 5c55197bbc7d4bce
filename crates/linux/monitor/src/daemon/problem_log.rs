//! Journal lines about problems that last. Each problem gets a line when it begins and when it is over, problems that come and
//! go get fewer lines, and a reminder lists those that last. The board (`/healthz`, metrics) always has the current ones.

use std::collections::BTreeMap;
use std::time::Duration;

use units::Moment;

/// A problem that comes back within this time is not reported again.
const AGAIN: Duration = Duration::from_secs(60);
/// Time after which all that lasts is told once more.
const REMINDER: Duration = Duration::from_secs(600);
/// Lines that are remembered; beyond them, older ones count as new.
const MOST: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct ProblemLog {
    /// Time of the last report of each, and true if it came back since without a report.
    told: BTreeMap<String, (Moment, bool)>,
    reminded: Option<Moment>,
}

impl ProblemLog {
    /// New and ended problems as lines to log, without those that were logged a moment ago.
    pub(super) fn worth_telling(
        &mut self,
        now: Moment,
        mut news: Vec<String>,
        mut over: Vec<String>,
    ) -> (Vec<String>, Vec<String>) {
        over.retain(|line| self.told.get(line).is_none_or(|(_, is_muted)| !is_muted));
        news.retain(|line| match self.told.get_mut(line) {
            Some((at, is_muted)) if now.since(*at) < AGAIN => {
                *is_muted = true;
                false
            }
            _ => {
                self.told.insert(line.clone(), (now, false));
                true
            }
        });
        if self.told.len() > MOST {
            self.told.retain(|_, (at, _)| now.since(*at) < AGAIN);
        }
        (news, over)
    }

    pub(super) fn is_reminder_due(&mut self, now: Moment, is_degraded: bool) -> bool {
        let since = *self.reminded.get_or_insert(now);
        if !is_degraded {
            self.reminded = None;
        }
        let is_due = is_degraded && now.since(since) >= REMINDER;
        if is_due {
            self.reminded = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_ms(seconds * 1_000)
    }

    #[test]
    fn a_problem_that_comes_and_goes_is_reported_once_a_minute() {
        let mut log = ProblemLog::default();
        let lines = |is: bool| if is { vec!["bus: away".to_owned()] } else { Vec::new() };
        let mut told = Vec::new();
        for second in 0..120 {
            let comes = second % 2 == 0;
            let (news, over) = log.worth_telling(at(second), lines(comes), lines(!comes));
            told.extend((!news.is_empty()).then_some((second, "new")));
            told.extend((!over.is_empty()).then_some((second, "over")));
        }
        assert_eq!(told, [(0, "new"), (1, "over"), (60, "new"), (61, "over")]);
    }

    #[test]
    fn what_lasts_is_told_again_every_ten_minutes() {
        let mut log = ProblemLog::default();
        let due: Vec<u64> = (0..2_000).filter(|second| log.is_reminder_due(at(*second), *second < 1_500)).collect();
        assert_eq!(due, [600, 1_200]);
        assert!(!log.is_reminder_due(at(2_000), true) && log.is_reminder_due(at(2_600), true));
    }
}
