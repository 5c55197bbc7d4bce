//! Causes that take the time of a bulk flow, live and simulated: both captured at the sender and explained.

use std::io::{self, Cursor, Read};

use capture::pcapng::{ETHERNET, EnhancedPacket, PcapngWriter};
use explain::ExplainOptions;
use explain::answer::ExplainAnswer;
use explain::terms::TimeCause;
use linux::SystemError;
use load::RoundTrips;
use sim::net::{HostLatency, PortCapture};
use units::{Span, StopFlag, Time, Unwatched};

use super::check::quantile;
use super::loop_waits::LoopWaits;
use super::plan::{CheckCase, CheckPlan};
use super::verdict::{CheckVerdict, judge};
use super::{live, simulated};

/// Causes that take less than this share of the time on both sides are not worth a word.
const SMALL: f64 = 0.03;
/// Causes that are named.
const MOST: usize = 4;
/// Rounds whose losses no other round has.
const OTHER_ROUNDS: std::ops::Range<u32> = 1_000..1_008;

/// The throughputs that differ, in Gb/s.
#[derive(Clone, Copy, Debug)]
pub(super) struct BulkDifference {
    pub simulated: f64,
    pub live: f64,
}

impl BulkDifference {
    /// Share of the difference that is gone if the simulated one is `changed`: 1 for all of it, more if it is less than
    /// live.
    fn explained_by(&self, changed: f64) -> f64 {
        (self.simulated - changed) / (self.simulated - self.live)
    }
}

/// Sentence about the causes that took the time of both, if they had these Gb/s; `None` if it was stopped.
pub(super) fn of_bulk(
    case: &CheckCase,
    plan: &CheckPlan,
    hosts: HostLatency,
    gbps: BulkDifference,
    stop: &StopFlag,
) -> Result<Option<String>, SystemError> {
    let Some(real) = live::capture(case, plan, 0, stop)? else { return Ok(None) };
    let Some(packets) = simulated::capture(case, plan, hosts, 0, stop)? else { return Ok(None) };
    let imitated = file(&packets).map_err(|error| SystemError(format!("a capture of the simulated flow: {error}")))?;
    let unread = |error| SystemError(format!("a capture: {error}"));
    let waits = |capture: &[u8]| LoopWaits::of(capture, case.delay * 2).map_err(unread);
    let waits = [waits(&real)?, waits(&imitated)?];
    let [real, imitated] = [real, imitated].map(|capture| explained(&capture, plan.hz));
    let time = sentence(&BulkTime::of(&real?), &BulkTime::of(&imitated?));
    let [Some(live), Some(imitated)] = waits else { return Ok(Some(time)) };
    let Some(slower) = of_waits(case, plan, hosts, [live, imitated], gbps, stop)? else { return Ok(None) };
    Ok(Some(format!("{time}; {slower}")))
}

/// Sentence about the throughput if simulated hosts took as much longer as the live flow's loop takes, if it does; `None`
/// if it was stopped.
fn of_waits(
    case: &CheckCase,
    plan: &CheckPlan,
    hosts: HostLatency,
    [live, imitated]: [LoopWaits; 2],
    had: BulkDifference,
    stop: &StopFlag,
) -> Result<Option<String>, SystemError> {
    let told = |waits: LoopWaits| {
        let LoopWaits { acknowledged, answered } = waits;
        format!("{:.0} and {:.0} µs", acknowledged.as_us(), answered.as_us())
    };
    let both = format!(
        "data waits for its acknowledgement, and that for the next data, {} live, {} simulated",
        told(live),
        told(imitated)
    );
    let longer = live.both().saturating_sub(imitated.both());
    let HostLatency::LogNormal { median, sigma } = hosts else { return Ok(Some(both)) };
    if longer == Span::ZERO {
        return Ok(Some(both));
    }
    // The mean of a log-normal variable is more than its median.
    let slower = HostLatency::LogNormal { median: median + (longer / 2).scale((-sigma * sigma / 2.0).exp()), sigma };
    let mut gbps = 0.0;
    for round in 0..plan.rounds {
        let Some(of_round) = simulated::bulk(case, plan, slower, round, stop)? else { return Ok(None) };
        gbps += of_round / f64::from(plan.rounds);
    }
    let share = 100.0 * had.explained_by(gbps);
    Ok(Some(format!(
        "{both}; simulated with hosts that take half of the difference each {gbps:.4} Gb/s: the longer loop explains {share:.0} % of \
         the difference"
    )))
}

/// Sentence about the part of chance in the throughput: simulated with other losses, and live once more with the same.
/// These are the simulation's as well, so it is chance only if they agree then. `None` if it was stopped.
pub(super) fn chance_of_bulk(
    case: &CheckCase,
    plan: &CheckPlan,
    hosts: HostLatency,
    had: BulkDifference,
    stop: &StopFlag,
) -> Result<Option<String>, SystemError> {
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for round in OTHER_ROUNDS {
        let Some(gbps) = simulated::bulk(case, plan, hosts, round, stop)? else { return Ok(None) };
        (least, most) = (least.min(gbps), most.max(gbps));
    }
    let mut again = 0.0;
    for round in 0..plan.rounds {
        let Some(gbps) = live::bulk(case, plan, round, stop)? else { return Ok(None) };
        again += gbps / f64::from(plan.rounds);
    }
    let so = if judge(had.simulated, again).1 == CheckVerdict::Match { "chance" } else { "not chance" };
    Ok(Some(format!(
        "simulated with {} other draws of losses {least:.4} to {most:.4} Gb/s; live once more {again:.4}: {so}",
        OTHER_ROUNDS.len()
    )))
}

/// Delays of the requests in a second live run with the same losses, as a text.
pub(super) fn chance_of_requests(
    case: &CheckCase,
    plan: &CheckPlan,
    stop: &StopFlag,
) -> Result<Option<String>, SystemError> {
    let Some(again) = live::requests(case, plan, 0, stop)? else { return Ok(None) };
    let [p50, p99] = [0.5, 0.99].map(|share| again.quantile(share).as_nanos() as f64 / 1e3);
    Ok(Some(format!("the first round once more live: p50 {p50:.0} µs, p99 {p99:.0} µs")))
}

/// Headers alone, as the live capture has them.
fn file(packets: &[PortCapture]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut writer = PcapngWriter::new(&mut out)?;
    let interface = writer.interface(ETHERNET, 0, Some("sender"))?;
    for captured in packets {
        let at = captured.at.since(Time::ZERO).as_ps() / 1_000;
        let len = u32::from(captured.packet.len).saturating_sub(4);
        writer.packet(&EnhancedPacket {
            interface,
            at,
            len,
            bytes: &captured.headers(),
            ..EnhancedPacket::default()
        })?;
    }
    Ok(out)
}

fn explained(capture: &[u8], hz: u32) -> Result<ExplainAnswer, SystemError> {
    let open = || -> io::Result<Box<dyn Read>> { Ok(Box::new(Cursor::new(capture.to_vec()))) };
    let options = ExplainOptions { hz, ..ExplainOptions::default() };
    let explanation = explain::explain(&open, &options, &Unwatched);
    explanation.map(|explanation| explanation.answer()).map_err(|error| SystemError(error.to_string()))
}

/// Causes that took the time of the longest connection in a capture.
#[derive(Debug, Default)]
struct BulkTime {
    /// Shares of its duration.
    shares: Vec<(TimeCause, f64)>,
    timeouts: u32,
    probes: u32,
    seconds: f64,
}

impl BulkTime {
    fn of(answer: &ExplainAnswer) -> Self {
        let Some(longest) = answer.connections.iter().max_by_key(|one| one.bytes_up + one.bytes_down) else {
            return Self::default();
        };
        let mut shares: Vec<(TimeCause, f64)> = Vec::new();
        for part in &longest.parts {
            let share = part.ns as f64 / longest.duration_ns.max(1) as f64;
            match shares.iter_mut().find(|(cause, _)| *cause == part.cause) {
                Some((_, sum)) => *sum += share,
                None => shares.push((part.cause, share)),
            }
        }
        let seconds = longest.duration_ns as f64 / 1e9;
        Self { shares, timeouts: longest.timeouts, probes: longest.probes, seconds }
    }

    fn share(&self, cause: TimeCause) -> f64 {
        self.shares.iter().find(|(own, _)| *own == cause).map_or(0.0, |(_, share)| *share)
    }
}

/// The causes whose shares differ most, the timers first.
fn sentence(live: &BulkTime, simulated: &BulkTime) -> String {
    let mut causes: Vec<TimeCause> = live.shares.iter().chain(&simulated.shares).map(|(cause, _)| *cause).collect();
    causes.sort_unstable();
    causes.dedup();
    let difference = |cause: &TimeCause| (live.share(*cause) - simulated.share(*cause)).abs();
    causes.retain(|cause| live.share(*cause).max(simulated.share(*cause)) >= SMALL);
    causes.sort_by(|one, other| difference(other).total_cmp(&difference(one)));
    let part = |cause: &TimeCause| {
        let [live, simulated] = [live, simulated].map(|time| time.share(*cause) * 100.0);
        format!("{} {live:.0} % live, {simulated:.0} % simulated", cause.name())
    };
    let timers =
        |time: &BulkTime| format!("{} probes and {} timeouts in {:.1} s", time.probes, time.timeouts, time.seconds);
    let parts: Vec<String> = causes.iter().take(MOST).map(part).collect();
    format!("of the sender's time: {}; {} live, {} simulated", parts.join("; "), timers(live), timers(simulated))
}

/// Sentence about the requests that waited for a timer on both sides, the time of the others, and the tail that hosts alone
/// have.
pub(super) fn of_requests(live: &RoundTrips, simulated: &[f64], clean: &RoundTrips) -> String {
    const TIMER_US: f64 = 100_000.0;
    let slow = simulated.iter().filter(|trip| **trip > TIMER_US).count();
    let slow_live = live.over(std::time::Duration::from_micros(TIMER_US as u64));
    let of = |trips: &RoundTrips, share| trips.quantile(share).as_nanos() as f64 / 1e3;
    format!(
        "p90 {:.0} µs live, {:.0} µs simulated; {slow_live} of {} waited for a timer live, {slow} of {} simulated; \
         without loss and with the shortest round trip the live median is {:.0} µs, p99 {:.0} µs",
        of(live, 0.9),
        quantile(simulated, 0.9),
        live.count(),
        simulated.len(),
        of(clean, 0.5),
        of(clean, 0.99)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_difference_is_named_first_and_small_parts_not_at_all() {
        let live = BulkTime {
            shares: vec![(TimeCause::Sending, 0.55), (TimeCause::Timeout, 0.43), (TimeCause::Probe, 0.02)],
            timeouts: 4,
            probes: 2,
            seconds: 2.0,
        };
        let simulated =
            BulkTime { shares: vec![(TimeCause::Sending, 0.99), (TimeCause::Probe, 0.01)], ..BulkTime::default() };
        let said = sentence(&live, &simulated);
        assert!(
            said.starts_with("of the sender's time: sending 55 % live, 99 % simulated; timeout 43 % live, 0 %"),
            "{said}"
        );
        assert!(!said.contains("probe 2 %"), "{said}");
        assert!(said.contains("2 probes and 4 timeouts in 2.0 s live"), "{said}");
    }

    #[test]
    fn what_a_change_explains_is_a_share_of_the_difference_either_way() {
        let faster = BulkDifference { simulated: 0.8, live: 0.6 };
        let slower = BulkDifference { simulated: 0.6, live: 0.8 };
        let close = |share: f64, expected: f64| (share - expected).abs() < 1e-9;
        assert!(close(faster.explained_by(0.65), 0.75) && close(faster.explained_by(0.8), 0.0));
        assert!(close(slower.explained_by(0.65), 0.25));
    }

    #[test]
    fn requests_that_waited_are_counted_on_both_sides() {
        let mut live = RoundTrips::default();
        [20, 21, 22, 210_000].iter().for_each(|us| live.record(std::time::Duration::from_micros(*us)));
        let mut clean = RoundTrips::default();
        [20, 20, 90].iter().for_each(|us| clean.record(std::time::Duration::from_micros(*us)));
        let said = of_requests(&live, &[30.0, 31.0, 32.0, 33.0], &clean);
        assert!(said.contains("1 of 4 waited for a timer live, 0 of 4 simulated"), "{said}");
        assert!(said.contains("live median is 20 µs, p99 90 µs"), "{said}");
    }
}
