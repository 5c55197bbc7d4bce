//! Findings of the demonstration of clocks, and verdicts on what was aimed for.

use std::collections::BTreeMap;

use serde::Serialize;
use units::samples::upper_median;

use super::judge::{ClockSample, Judgement};
use super::network::NODES;
use super::ptp::Ptp4lOutcome;
use super::{ClockDemoPlan, ForgedFrames, KillKind};

/// One kill.
#[derive(Clone, Debug, Serialize)]
pub struct KillRow {
    /// Kind of the thing killed.
    pub kind: KillKind,
    /// Name of the thing killed.
    pub what: String,
    /// True if the root was among it.
    pub root: bool,
    /// Time since the judge began.
    pub at_seconds: f64,
    /// The longest that a clock that lived heard nothing; none if one never heard anything again.
    pub recovery_ms: Option<f64>,
    /// Clocks that never heard anything again: one that had turned before, and whose backup parent was killed, waits for a
    /// plan.
    pub stranded: Option<String>,
}

/// Node that a plan makes the root after the root was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlannedFor {
    /// The one that was stopped.
    #[serde(rename = "old")]
    OldRoot,
    /// The one that took over meanwhile, or would have.
    #[serde(rename = "new")]
    NewRoot,
    /// Any other node.
    #[serde(rename = "third")]
    ThirdNode,
}

impl PlannedFor {
    pub(super) const ALL: [Self; 3] = [Self::OldRoot, Self::NewRoot, Self::ThirdNode];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OldRoot => "old root",
            Self::NewRoot => "new root",
            Self::ThirdNode => "third node",
        }
    }
}

/// A root that was stopped, and a plan by hand.
#[derive(Clone, Debug, Serialize)]
pub struct StopRow {
    /// Time for which it did not run.
    pub stopped_ms: u64,
    /// Node that the plan made the root.
    pub planned_for: PlannedFor,
    /// Name of that node.
    pub root: String,
    /// True if a backup root had taken over.
    pub elected: bool,
    /// Time from the plan until there was one root of this plan and all others heard it; none if that never was so.
    pub healed_ms: Option<f64>,
    /// True if within a second more that was the planned one, and all listened to their parents: on a busy machine some
    /// turn, or its backup root takes over, for no other reason.
    pub is_as_planned: bool,
    /// Clock that did not, and its state.
    pub late: Option<String>,
}

/// ε while nothing was killed, of clocks at one depth.
#[derive(Clone, Debug, Serialize)]
pub struct DepthRow {
    /// Hops to the root.
    pub depth: u64,
    /// Readings.
    pub reads: u64,
    /// ε.
    pub p50_us: f64,
    /// ε.
    pub p99_us: f64,
    /// ε.
    pub max_us: f64,
}

/// Verdict on an aim.
#[derive(Clone, Debug, Serialize)]
pub struct ClockVerdict {
    /// Aim, in words.
    pub aim: &'static str,
    /// Finding, in words.
    pub found: String,
    /// True if the finding meets the aim.
    pub met: bool,
}

/// Findings of the demonstration.
#[derive(Debug, Serialize)]
pub struct ClockDemoResult {
    /// Clocks.
    pub nodes: usize,
    /// Processors of this machine.
    pub cores: usize,
    /// Processes that wanted a processor, on average over the last minute.
    pub load: Option<f64>,
    /// Time between waves.
    pub interval_us: f64,
    /// Readings that were judged.
    pub reads: u64,
    /// Readings whose interval did not contain the true time.
    pub wrong: u64,
    /// Readings of roots that never showed a page.
    pub unjudged: u64,
    /// Attempts at which a clock knew no time: it had just been started, or was replaced.
    pub without_time: u64,
    /// Margin by which the tightest interval contained the true time.
    pub worst_margin_ns: Option<i64>,
    /// A read of the page, median.
    pub read_ns: f64,
    /// Length of the whole demonstration.
    pub seconds: f64,
    /// ε while nothing was killed.
    pub eps_idle: Vec<DepthRow>,
    /// One for each kill.
    pub kills: Vec<KillRow>,
    /// One for each time that the root was stopped.
    pub stops: Vec<StopRow>,
    /// Median over all kills but forged frames.
    pub recovery_p50_ms: Option<f64>,
    /// Maximum over all kills but forged frames.
    pub recovery_max_ms: Option<f64>,
    /// The median for each kind.
    pub recovery_by_kind_ms: BTreeMap<&'static str, f64>,
    /// Kills after which somebody never heard anything again.
    pub unrecovered: usize,
    /// Backup roots that took over.
    pub elections: u64,
    /// Backup roots that took over while the root lived: it had not run for longer than the timeouts, which is a busy
    /// machine's doing.
    pub second_roots: u64,
    /// True if waves are sealed with a key.
    pub key: bool,
    /// Forged frames, and their effects.
    pub forged: ForgedFrames,
    /// Result of ptp4l with the same plan; `None` if it is not installed.
    pub ptp4l: Option<Ptp4lOutcome>,
    /// Verdicts on what was aimed for.
    pub verdicts: Vec<ClockVerdict>,
    #[serde(skip)]
    pub(super) samples: Vec<Vec<ClockSample>>,
    #[serde(skip)]
    pub(super) marks: Vec<f64>,
}

impl ClockVerdict {
    fn is_of_kills(&self) -> bool {
        self.aim.contains("recover") || self.aim.starts_with("all clocks that live")
    }
}

fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

impl ClockDemoResult {
    pub(super) fn new(plan: &ClockDemoPlan, judgement: Judgement, read_ns: f64) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        let idle = judgement.idle.iter().filter_map(|(depth, idle)| Some((*depth, idle.as_ref()?)));
        let eps_idle = idle.map(|(depth, idle)| DepthRow {
            depth,
            reads: idle.len(),
            p50_us: us(idle.value_at_quantile(0.5)),
            p99_us: us(idle.value_at_quantile(0.99)),
            max_us: us(idle.max()),
        });
        Self {
            nodes: NODES,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load: load(),
            interval_us: plan.interval.as_secs_f64() * 1e6,
            reads: judgement.reads,
            wrong: judgement.wrong,
            unjudged: judgement.unjudged,
            without_time: judgement.without_time,
            worst_margin_ns: judgement.worst_margin_ns,
            read_ns,
            seconds: judgement.seconds,
            eps_idle: eps_idle.collect(),
            kills: Vec::new(),
            stops: Vec::new(),
            recovery_p50_ms: None,
            recovery_max_ms: None,
            recovery_by_kind_ms: BTreeMap::new(),
            unrecovered: 0,
            elections: 0,
            second_roots: 0,
            key: plan.key,
            forged: ForgedFrames::default(),
            ptp4l: None,
            verdicts: Vec::new(),
            samples: judgement.samples,
            marks: judgement.marks,
        }
    }

    pub(super) fn add_kills(&mut self, kills: Vec<KillRow>, elections: u64) {
        let of_kills = kills.iter().filter(|kill| kill.kind != KillKind::Forged);
        let mut all: Vec<f64> = of_kills.filter_map(|kill| kill.recovery_ms).collect();
        self.recovery_p50_ms = upper_median(&mut all);
        self.recovery_max_ms = all.last().copied();
        for kind in KillKind::ALL {
            let of_kind = kills.iter().filter(|kill| kill.kind == kind).filter_map(|kill| kill.recovery_ms);
            if let Some(middle) = upper_median(&mut of_kind.collect::<Vec<_>>()) {
                self.recovery_by_kind_ms.insert(kind.name(), middle);
            }
        }
        self.unrecovered = kills.iter().filter(|kill| kill.recovery_ms.is_none()).count();
        let roots = kills.iter().filter(|kill| kill.root).count() as u64;
        (self.elections, self.second_roots) = (elections, elections.saturating_sub(roots));
        self.kills = kills;
    }

    /// Holds what was found against what was aimed for.
    pub(super) fn conclude(&mut self) {
        let ms = |value: Option<f64>| value.map_or("nothing was killed".to_owned(), |ms| format!("{ms:.1} ms"));
        let (has_kills, has_stops) = (!self.kills.is_empty(), !self.stops.is_empty());
        let deep = self.eps_idle.iter().find(|row| row.depth == 3);
        let deep_us = deep.map(|row| row.p99_us);
        self.verdicts = vec![
            ClockVerdict {
                aim: "no reading is wrong",
                found: format!(
                    "{} of {} readings, {} not judged: no page showed their root",
                    self.wrong, self.reads, self.unjudged
                ),
                met: self.wrong == 0 && self.unjudged == 0 && self.reads > 0,
            },
            ClockVerdict {
                aim: "all clocks that live hear a root again",
                found: format!("{} of {} kills", self.kills.len() - self.unrecovered, self.kills.len()),
                met: self.unrecovered == 0,
            },
            ClockVerdict {
                aim: "half of all recoveries take at most 5 ms",
                found: ms(self.recovery_p50_ms),
                met: self.recovery_p50_ms.is_some_and(|ms| ms <= 5.0),
            },
            ClockVerdict {
                aim: "every recovery takes at most 100 ms",
                found: ms(self.recovery_max_ms),
                met: self.recovery_max_ms.is_some_and(|ms| ms <= 100.0),
            },
            ClockVerdict {
                aim: "ε at depth 3 when idle is at most 20 µs in 99 % of readings",
                found: deep_us.map_or("no clock was so deep".to_owned(), |us| format!("{us:.1} µs")),
                met: deep_us.is_some_and(|us| us <= 20.0),
            },
            ClockVerdict {
                aim: "a read takes at most 100 ns",
                found: format!("{:.0} ns", self.read_ns),
                met: self.read_ns <= 100.0,
            },
        ];
        self.verdicts.retain(|verdict| has_kills || !verdict.is_of_kills());
        self.verdicts.extend(has_stops.then(|| self.healed_verdict()));
        self.verdicts.extend(self.key.then(|| self.forged_verdict()));
    }

    /// Times that a plan after a stop did not lead to one root that all follow.
    pub fn unhealed(&self) -> usize {
        self.stops.iter().filter(|stop| stop.healed_ms.is_none()).count()
    }

    fn healed_verdict(&self) -> ClockVerdict {
        let healed = self.stops.iter().filter_map(|stop| stop.healed_ms);
        let within = healed.clone().filter(|ms| *ms <= 1_000.0).count();
        let longest = healed.fold(0.0, f64::max);
        ClockVerdict {
            aim: "after a stop and a plan by hand, one root and all following within 1 s",
            found: format!("{within} of {} times, {longest:.0} ms at most", self.stops.len()),
            met: within == self.stops.len(),
        }
    }

    fn forged_verdict(&self) -> ClockVerdict {
        let ForgedFrames { sent, refused, roots_removed } = self.forged;
        ClockVerdict {
            aim: "no forged frame is believed",
            found: format!("{refused} of {sent} refused, {roots_removed} roots removed"),
            met: refused == sent && roots_removed == 0,
        }
    }
}
