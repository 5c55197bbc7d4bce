//! One look at all ports, for a person or a script.
//!
//! Two polls an interval apart show what a port receives now, but at a low loss that is next to nothing; counters since
//! boot show more, but also what was repaired long ago. So a port is corrupting if either says so, unless the moment
//! speaks against the past: had the loss since boot lasted, ten bad frames would have shown in between, and none did.
//! A file of samples is replayed whole, and the result is what a monitor would have reported at its end.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::{Moment, poisson};

use super::watch::PortPoller;
use crate::config::MonitorConfig;
use crate::detect::{Limits, PortRow};
use crate::reading::ReceivedFrames;
use crate::source::Source;
use bus::message::{Condition, Evidence};

/// A port and what can be said about it at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortAssessment {
    pub port: String,
    pub condition: Condition,
    pub sticky: bool,
    /// Counts that the condition rests on.
    pub evidence: Evidence,
    /// True if the counts are all since the device started, over an unknown time.
    pub since_boot: bool,
    pub note: String,
}

impl From<PortRow> for PortAssessment {
    fn from(row: PortRow) -> Self {
        let PortRow { port, condition, sticky, evidence, note, why, has_signal: _ } = row;
        let note = if note.is_empty() { why } else { note };
        Self { port, condition, sticky, evidence, since_boot: false, note }
    }
}

/// Bad frames that a loss must have shown before their absence says that it is over.
const SHOWN: f64 = 10.0;

/// Returns every port, and a line for each problem; fails with `InvalidData` if nothing that was read makes sense. `now`
/// returns the time and `wait` lets some of it pass.
pub fn look_once(
    config: &MonitorConfig,
    sources: Vec<Box<dyn Source>>,
    now: impl Fn() -> Moment,
    wait: impl Fn(Duration),
) -> io::Result<(Vec<PortAssessment>, Vec<String>)> {
    let replays = config.replays();
    let mut config = config.clone();
    if !replays {
        // There is one difference to judge by.
        config.limits.raise_after = 1;
    }
    let mut watch = PortPoller::new(&config, sources, 0)?;
    let mut troubles: Vec<String> = Vec::new();
    loop {
        watch.poll(now(), now());
        let said = watch.remarks().into_iter().chain(watch.troubles().iter().cloned());
        let news: Vec<String> = said.filter(|line| !troubles.contains(line)).collect();
        troubles.extend(news);
        if if replays { watch.is_over() } else { watch.polls() >= 2 } {
            break;
        }
        if !replays {
            wait(config.interval);
        }
    }
    if let Some(why) = watch.nonsense() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let looked = |row: PortRow| {
        let total = watch.totals().get(&row.port).filter(|_| watch.polls() <= 2).copied();
        judge(row, total, &config.limits)
    };
    Ok((watch.rows().into_iter().map(looked).collect(), troubles))
}

/// Judges a port by the interval, and by all that was ever counted.
fn judge(row: PortRow, total: Option<ReceivedFrames>, limits: &Limits) -> PortAssessment {
    let PortRow { port, condition, sticky, evidence, mut note, why, has_signal: _ } = row;
    if condition == Condition::Corrupting && evidence.frames == 0 {
        // Nothing counted now; what was seen before is why.
        note = [note, why].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
    }
    let now = PortAssessment { port, condition, sticky, evidence, since_boot: false, note };
    let Some(total) = total.filter(|total| total.all > 0 && condition != Condition::Corrupting) else { return now };
    let boot = since_boot(total);
    let exceeds = boot.bad >= limits.least_bad && boot.low > limits.threshold.get();
    let is_over = evidence.bad == 0 && evidence.frames as f64 * boot.loss >= SHOWN;
    if exceeds && is_over {
        let note = format!("{} bad frames since boot, but none now", boot.bad);
        return PortAssessment { condition: Condition::Healthy, note, ..now };
    }
    let condition = if exceeds { Condition::Corrupting } else { Condition::Healthy };
    PortAssessment { condition, evidence: boot, since_boot: true, ..now }
}

fn since_boot(total: ReceivedFrames) -> Evidence {
    let all = total.all as f64;
    let (low, high) = poisson(total.bad);
    Evidence {
        frames: total.all,
        bad: total.bad,
        loss: total.bad as f64 / all,
        low: low / all,
        high: (high / all).min(1.0),
        seconds: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(condition: Condition, frames: u64, bad: u64) -> PortRow {
        let loss = if frames == 0 { 0.0 } else { bad as f64 / frames as f64 };
        let evidence = Evidence { frames, bad, loss, low: 0.0, high: 1.0, seconds: 1.0 };
        let (note, why) = (String::new(), String::new());
        PortRow { port: "eth1".into(), condition, sticky: false, evidence, note, why, has_signal: true }
    }

    fn verdict(condition: Condition, moment: (u64, u64), boot: (u64, u64)) -> (Condition, bool) {
        let total = ReceivedFrames { all: boot.0, bad: boot.1, bits: 64 };
        let looked = judge(row(condition, moment.0, moment.1), Some(total), &Limits::default());
        (looked.condition, looked.since_boot)
    }

    #[test]
    fn counters_since_boot_decide_where_the_moment_says_too_little() {
        use Condition::{Corrupting, Healthy, Unknown};
        assert_eq!(verdict(Unknown, (0, 0), (1_000_000_000, 100_000)), (Corrupting, true));
        assert_eq!(verdict(Healthy, (1_000, 0), (1_000_000_000, 100_000)), (Corrupting, true));
        assert_eq!(verdict(Healthy, (1_000, 0), (1_000_000_000, 3)), (Healthy, true));
        assert_eq!(verdict(Unknown, (0, 0), (500, 1)), (Healthy, true), "one bad frame is never a rate");
    }

    #[test]
    fn the_moment_goes_before_the_past_where_it_has_something_to_say() {
        use Condition::{Corrupting, Healthy};
        assert_eq!(verdict(Corrupting, (1_000_000, 50), (1_000_000_000, 51)), (Corrupting, false));
        assert_eq!(verdict(Healthy, (1_000_000, 0), (1_000_000_000, 100_000)), (Healthy, false));
    }

    #[test]
    fn a_port_that_nothing_counts_stays_unknown() {
        let looked = judge(row(Condition::Unknown, 0, 0), None, &Limits::default());
        assert_eq!(looked.condition, Condition::Unknown);
    }
}
