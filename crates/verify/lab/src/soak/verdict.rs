//! Verdicts on a soak.

use serde::Serialize;

use super::traffic::TrafficTotals;
use super::{Soak, SoakSnapshot};

/// Bytes by which the program may grow after the first quarter.
pub(crate) const MOST_GROWTH: u64 = 8 << 20;
/// Probability that chance does not exceed what is allowed for: it does once in a thousand soaks.
const SURE: f64 = 0.999;

#[derive(Clone, Debug, Serialize)]
pub struct SoakVerdict {
    pub name: &'static str,
    pub holds: bool,
    pub because: String,
}

/// Memory that the program holds, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryUse {
    /// The most in the first quarter, in which buffers come to their size.
    pub first_quarter: u64,
    pub end: u64,
    pub growth: i64,
}

impl MemoryUse {
    pub fn of(looks: &[SoakSnapshot]) -> Self {
        let end = looks.last();
        let quarter = end.map_or(0.0, |end| end.at_seconds / 4.0);
        let early = looks.iter().filter(|look| look.at_seconds <= quarter);
        let first_quarter = early.map(|look| look.resident_bytes).max().unwrap_or(0);
        let end = end.map_or(0, |end| end.resident_bytes);
        Self { first_quarter, end, growth: end as i64 - first_quarter as i64 }
    }
}

/// LinkGuardian's Eq. 1: a frame and all N copies of it are lost with chance loss^(N+1), if losses are independent.
/// N may change on the way.
pub(crate) fn predicted(looks: &[SoakSnapshot], loss: f64) -> f64 {
    let between = |pair: &[SoakSnapshot]| {
        let copies = pair[0].copies.min(pair[1].copies);
        (pair[1].frames - pair[0].frames) as f64 * loss.powi(i32::from(copies) + 1)
    };
    looks.windows(2).map(between).sum()
}

/// Upper bound on a Poisson count with this mean.
fn most(mean: f64) -> u64 {
    let (mut count, mut chance) = (0, (-mean).exp());
    let mut sum = chance;
    while sum < SURE && chance > 0.0 {
        count += 1;
        chance *= mean / count as f64;
        sum += chance;
    }
    count
}

pub(crate) fn verdicts(soak: &Soak) -> Vec<SoakVerdict> {
    vec![equal(soak), quick(&soak.traffic), kept_up(soak), protected(&soak.looks), flat(&soak.memory)]
}

fn equal(soak: &Soak) -> SoakVerdict {
    let traffic = &soak.traffic;
    let sum = |of: fn(&TrafficTotals) -> u64| traffic.iter().map(of).sum::<u64>();
    let (differing, failed) = (sum(|traffic| traffic.differing), sum(|traffic| traffic.failed));
    let compared = traffic.iter().filter(|traffic| traffic.compared_bytes > 0);
    let counts: Vec<String> = compared.map(|traffic| format!("{} {}", traffic.completed, what(traffic.name))).collect();
    // One that was interrupted may not have come to it.
    let idle = traffic.iter().filter(|traffic| soak.complete && traffic.completed == 0);
    let idle: Vec<&str> = idle.map(|traffic| traffic.name).collect();
    let because = match traffic.iter().find_map(|traffic| traffic.first_failure.as_ref()) {
        _ if differing > 0 => format!("{differing} came back with other bytes than were sent"),
        Some(failure) => format!("{failed} failed, the first with: {failure}"),
        None if !idle.is_empty() => format!("nothing was completed by {}", idle.join(", ")),
        None if counts.is_empty() => "nothing was compared".to_owned(),
        None => {
            let megabytes = sum(|traffic| traffic.compared_bytes) / 1_000_000;
            format!("{}: {megabytes} MB compared, all equal", counts.join(", "))
        }
    };
    SoakVerdict { name: "equal", holds: differing + failed == 0 && idle.is_empty(), because }
}

/// Things that are counted of this kind of traffic.
pub fn what(name: &str) -> &'static str {
    match name {
        "transfers" => "transfers",
        "memcached" => "requests to memcached",
        "http" => "files over HTTP",
        _ => "runs of iperf3",
    }
}

fn quick(traffic: &[TrafficTotals]) -> SoakVerdict {
    let slow: u64 = traffic.iter().map(|traffic| traffic.over_1s).sum();
    let slowest = traffic.iter().filter_map(|traffic| traffic.slowest_us).reduce(f64::max).map(|us| us / 1e3);
    let because = match (slow, slowest) {
        (_, None) => "there were no requests to wait for".to_owned(),
        (0, Some(ms)) => format!("no request took over 1 s; the slowest took {ms:.1} ms"),
        (_, Some(ms)) => format!("requests that took over 1 s: {slow}; the slowest took {ms:.0} ms"),
    };
    SoakVerdict { name: "quick", holds: slow == 0, because }
}

fn kept_up(soak: &Soak) -> SoakVerdict {
    let given_up = soak.given_up;
    let (most, why) = match soak.given_up_predicted {
        Some(mean) => {
            let most = most(mean);
            (most, format!("Eq. 1 predicts {mean:.2} of {} frames, so at most {most}", soak.frames))
        }
        None => {
            let (burst, patience) = (soak.burst, soak.give_up_after_ms);
            let why = format!(
                "a frame is asked for again for {patience:.0} ms, which no burst of about {burst} frames outlasts, \
                 so none of {} is expected",
                soak.frames
            );
            (0, why)
        }
    };
    SoakVerdict { name: "given_up", holds: given_up <= most, because: format!("given up {given_up}: {why}") }
}

fn protected(looks: &[SoakSnapshot]) -> SoakVerdict {
    let bare = looks.iter().filter(|look| !look.active).count();
    let because = match bare {
        0 => "the link was protected at each look".to_owned(),
        _ => format!("the link was not protected at {bare} of {} looks", looks.len()),
    };
    SoakVerdict { name: "protected", holds: bare == 0, because }
}

fn flat(memory: &MemoryUse) -> SoakVerdict {
    let mb = |bytes: f64| bytes / f64::from(1 << 20);
    let because = format!(
        "the program held {:.1} MB in the first quarter and {:.1} MB at the end; up to {:.0} MB more are allowed",
        mb(memory.first_quarter as f64),
        mb(memory.end as f64),
        mb(MOST_GROWTH as f64)
    );
    SoakVerdict { name: "memory", holds: memory.growth <= MOST_GROWTH as i64, because }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at_seconds: f64, resident_bytes: u64, frames: u64, copies: u8) -> SoakSnapshot {
        SoakSnapshot { at_seconds, resident_bytes, frames, copies, ..SoakSnapshot::default() }
    }

    #[test]
    fn memory_is_held_against_the_first_quarter() {
        let looks = [look(0.0, 10, 0, 1), look(10.0, 50, 0, 1), look(20.0, 70, 0, 1), look(40.0, 80, 0, 1)];
        assert_eq!(MemoryUse::of(&looks), MemoryUse { first_quarter: 50, end: 80, growth: 30 });
        assert_eq!(MemoryUse::of(&[]).growth, 0);
    }

    #[test]
    fn the_prediction_follows_the_copies() {
        let looks = [look(0.0, 0, 0, 1), look(1.0, 0, 1_000_000, 1), look(2.0, 0, 3_000_000, 2)];
        assert!((predicted(&looks, 1e-3) - 3.0).abs() < 1e-9);
        let looks = [look(0.0, 0, 0, 2), look(1.0, 0, 1_000_000_000, 2)];
        assert!((predicted(&looks, 1e-3) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn chance_is_allowed_for() {
        assert_eq!([0.0, 1e-4, 0.01, 1.0, 100.0].map(most), [0, 0, 1, 5, 132]);
    }
}
