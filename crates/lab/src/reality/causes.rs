//! Where the time of a bulk flow goes, live and simulated: both captured at the sender and explained.

use std::io::{self, Cursor, Read};

use explain::answer::ExplainAnswer;
use explain::terms::TimeCause;
use explain::{ExplainError, ExplainOptions, FlowFilter};
use linux::LinkError;
use load::RoundTrips;
use sim::net::{HostLatency, PortCapture};
use units::{StopFlag, Time, Unwatched};
use wire::pcapng::{ETHERNET, EnhancedPacket, PcapngWriter};

use super::check::quantile;
use super::plan::{CheckCase, CheckPlan};
use super::{live, simulated};

/// Causes that take less than this share of the time on both sides are not worth a word.
const SMALL: f64 = 0.03;
/// Causes that are named.
const MOST: usize = 4;

/// What both spent their time on, as a sentence; `None` if it was stopped.
pub(super) fn of_bulk(
    case: &CheckCase,
    plan: &CheckPlan,
    hosts: HostLatency,
    stop: &StopFlag,
) -> Result<Option<String>, LinkError> {
    let Some(real) = live::capture(case, plan, 0, stop)? else { return Ok(None) };
    let Some(packets) = simulated::capture(case, plan, hosts, 0, stop)? else { return Ok(None) };
    let imitated = file(&packets).map_err(|error| LinkError(format!("a capture of the simulated flow: {error}")))?;
    let [real, imitated] = [real, imitated].map(|capture| explained(&capture, plan.hz));
    Ok(Some(sentence(&BulkTime::of(&real?), &BulkTime::of(&imitated?))))
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

fn explained(capture: &[u8], hz: u32) -> Result<ExplainAnswer, LinkError> {
    let open = || -> io::Result<Box<dyn Read>> { Ok(Box::new(Cursor::new(capture.to_vec()))) };
    let options = ExplainOptions { flow: FlowFilter::default(), hz, evidence: None };
    let explanation = explain::explain(&open, &options, &Unwatched);
    explanation.map(|explanation| explanation.answer()).map_err(|error| match error {
        ExplainError::Capture(error) => LinkError(format!("a capture: {error}")),
        ExplainError::Interrupted => LinkError("a capture: not read to its end".to_owned()),
    })
}

/// What the longest connection of a capture spent its time on.
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

/// How many requests waited for a timer on both sides, and what the others took.
pub(super) fn of_requests(live: &RoundTrips, simulated: &[f64]) -> String {
    const TIMER_US: f64 = 100_000.0;
    let slow = simulated.iter().filter(|trip| **trip > TIMER_US).count();
    let slow_live = live.over(std::time::Duration::from_micros(TIMER_US as u64));
    let of_live = |share| live.quantile(share).as_nanos() as f64 / 1e3;
    format!(
        "p90 {:.0} µs live, {:.0} µs simulated; {slow_live} of {} waited for a timer live, {slow} of {} simulated",
        of_live(0.9),
        quantile(simulated, 0.9),
        live.count(),
        simulated.len()
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
    fn requests_that_waited_are_counted_on_both_sides() {
        let mut live = RoundTrips::default();
        [20, 21, 22, 210_000].iter().for_each(|us| live.record(std::time::Duration::from_micros(*us)));
        let said = of_requests(&live, &[30.0, 31.0, 32.0, 33.0]);
        assert!(said.contains("1 of 4 waited for a timer live, 0 of 4 simulated"), "{said}");
    }
}
