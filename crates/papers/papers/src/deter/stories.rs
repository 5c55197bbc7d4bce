//! det.rto and det.late: what made senders wait, as stories of one connection each (§6.2.1, §6.5.2, §6.5.3, §6.5.4.3).
//!
//! A story is played on the stack that had the problem and on one that has not. Its capture, next to the sender, goes to
//! `explain`, which knows neither the script nor the stack.

use explain::terms::{TimeCause, TimerReason};
use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use tcp::{LinuxVersion, LossDetection, TcpConfig, TimerProfile};
use units::Span;

use super::stage::{FrameFate, Story, StoryOutcome, play};

/// Payload of a segment.
const MSS: u64 = 1_448;
/// The thesis's hosts: 250 ticks a second, timeouts of four ticks, round trips included.
const OLD_TIMERS: TimerProfile = TimerProfile::Linux { hz: 250, rto_min: Span::from_ms(15), phase: Span::ZERO };
/// Default timers of a kernel.
const RECEIVER_TIMERS: TimerProfile = TimerProfile::Linux { hz: 250, rto_min: Span::from_ms(200), phase: Span::ZERO };
/// Delay over a switch of 10G, hosts included.
const DELAY: Span = Span::from_us(50);
const ROUND_TRIP: Span = Span::from_us(100);
const ALWAYS: Span = Span::from_ms(10_000);
const GAP: Span = Span::from_ns(1_230);

/// Linux 4.4 without what repairs tails: neither probes nor early retransmit, which the thesis's hosts cannot have had.
fn old_stack() -> TcpConfig {
    let detection = LossDetection { probes: false, early_retransmit: false, ..LossDetection::LINUX_4_4 };
    TcpConfig {
        detection,
        profile: OLD_TIMERS,
        handshake_rtt: Some(ROUND_TRIP),
        ..TcpConfig::linux(LinuxVersion::V4_4)
    }
}

/// A kernel of today, with the same timers.
fn new_stack() -> TcpConfig {
    let profile = TimerProfile::Linux { hz: 1_000, rto_min: Span::from_ms(15), phase: Span::ZERO };
    TcpConfig { profile, handshake_rtt: Some(ROUND_TRIP), ..TcpConfig::linux(LinuxVersion::Current) }
}

/// The first copies of these segments are lost.
fn lost(lost: std::ops::Range<u64>) -> impl Fn(u64, u32) -> FrameFate {
    move |segment, copy| if copy == 0 && lost.contains(&segment) { FrameFate::Lost } else { FrameFate::Arrives }
}

/// Receivers with a timeout of 200 ms: a shorter one would acknowledge at once after a pause as long as the sender's timeout.
fn both(config: TcpConfig) -> [TcpConfig; 2] {
    [config, TcpConfig { profile: RECEIVER_TIMERS, ..config }]
}

/// The last wait for a timer, and why there was one.
fn last_reason(outcome: &StoryOutcome) -> Option<TimerReason> {
    let stalls = &outcome.explained.stalls;
    stalls.iter().rev().find(|stall| stall.cause == TimeCause::Timeout).and_then(|stall| stall.why)
}

/// A story whose application reads as soon as it can.
fn read_at_once<'a>(
    ends: [TcpConfig; 2],
    sends: &'a [(Span, u64)],
    fate: &'a dyn Fn(u64, u32) -> FrameFate,
) -> Story<'a> {
    Story { ends, delay: DELAY, gap: GAP, sends, reads_until: ALWAYS, reads_every: Span::ZERO, fate }
}

/// The last segment of a 30 KB flow is lost. Its copy is alone, quick acknowledgements are used up, the application is busy
/// elsewhere: the acknowledgement waits for longer than the sender.
fn ack_delayed(ends: [TcpConfig; 2], reads_until: Span) -> Result<StoryOutcome, ClaimError> {
    let warm_up = (Span::ZERO, 30 * MSS);
    let sends = [warm_up, (Span::from_ms(30), 21 * MSS)];
    play(&Story { reads_until, ..read_at_once(ends, &sends, &lost(50..51)) })
}

/// Seven segments, of which the fifth is lost.
fn few_dupacks(ends: [TcpConfig; 2]) -> Result<StoryOutcome, ClaimError> {
    let sends = [(Span::ZERO, 7 * MSS)];
    play(&read_at_once(ends, &sends, &lost(4..5)))
}

/// A receiver whose window grows with every segment, and no SACK: no acknowledgement equals the one before it.
fn hidden_dupacks(ends: [TcpConfig; 2]) -> Result<StoryOutcome, ClaimError> {
    let sends = [(Span::ZERO, 30 * MSS)];
    play(&read_at_once(ends, &sends, &lost(10..11)))
}

/// A queue next door fills up, and the threshold of this one falls: all that is sent for a while is lost.
fn whole_window(ends: [TcpConfig; 2]) -> Result<StoryOutcome, ClaimError> {
    let sends = [(Span::ZERO, 120 * MSS)];
    play(&read_at_once(ends, &sends, &lost(30..70)))
}

/// A flow to an application that reads every 250 ms, once the window is as large as the receive buffer. The free space shrinks in between, so
/// that acknowledgements wait for the timer of 40 ms, again and again.
fn seldom_read(ends: [TcpConfig; 2], reads_every: Span) -> Result<StoryOutcome, ClaimError> {
    let sends = [(Span::ZERO, 120 * MSS), (Span::from_ms(1_510), 260 * MSS)];
    play(&Story { reads_every, ..read_at_once(ends, &sends, &lost(0..0)) })
}

/// A story, the reason that explain should find, and how it goes on the stack that had it and on one that has not.
struct TimeoutStory {
    name: &'static str,
    reason: TimerReason,
    old: StoryOutcome,
    cured: StoryOutcome,
}

fn timeout_stories() -> Result<[TimeoutStory; 4], ClaimError> {
    let story = |name, reason, old, cured| TimeoutStory { name, reason, old, cured };
    let small = |config| TcpConfig { receive_buffer: 64 << 10, ..config };
    let large = |sack| TcpConfig { receive_buffer: 10 << 20, sack, ..old_stack() };
    Ok([
        story(
            "ack-delayed",
            TimerReason::AckDelayed,
            ack_delayed(both(small(old_stack())), Span::from_ms(35))?,
            // An application that reads: to read a pushed segment acknowledges it.
            ack_delayed(both(small(old_stack())), ALWAYS)?,
        ),
        story("few-dupacks", TimerReason::FewDupacks, few_dupacks(both(old_stack()))?, few_dupacks(both(new_stack()))?),
        story(
            "hidden-dupacks",
            TimerReason::HiddenDupacks,
            hidden_dupacks(both(large(false)))?,
            hidden_dupacks(both(large(true)))?,
        ),
        story(
            "shared-buffer",
            TimerReason::WholeWindow,
            whole_window(both(old_stack()))?,
            whole_window(both(new_stack()))?,
        ),
    ])
}

pub(super) fn rto(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    effort.progress.expect_parts(1);
    let mut computed = ComputedValues::default();
    let one = |value: f64| MeasuredValue::exact(value, 1);
    for TimeoutStory { name, reason, old, cured } in &timeout_stories()? {
        let is_named = last_reason(old) == Some(*reason);
        let says = format!("explain: {}", old.explained.verdict);
        computed.value(format!("{name}.named"), one(f64::from(u8::from(is_named))).with_note(says));
        computed.value(format!("{name}.ms"), one(last_request_ms(old)));
        computed.value(format!("{name}.timeouts"), one(f64::from(old.explained.timeouts)));
        computed.value(format!("{name}.cured.ms"), one(last_request_ms(cured)));
        computed.value(format!("{name}.cured.timeouts"), one(f64::from(cured.explained.timeouts)));
    }
    effort.progress.part_done();
    Ok(Some(computed))
}

/// Time of the last request, until the last packet with payload.
fn last_request_ms(outcome: &StoryOutcome) -> f64 {
    outcome.explained.requests.last().map_or(0.0, |request| request.duration_ns as f64 / 1e6)
}

/// Segments that overtake one: the threshold grows to about this.
const OVERTAKEN_BY: u64 = 45;

/// A segment of the first request is late by so many others; of a short request later one is lost, and a third request comes
/// 30 ms behind.
fn late_repair(ends: [TcpConfig; 2]) -> Result<StoryOutcome, ClaimError> {
    const FIRST: u64 = 400;
    let sends = [(Span::ZERO, FIRST * MSS), (Span::from_ms(20), 20 * MSS), (Span::from_ms(50), 60 * MSS)];
    let fate = |segment: u64, copy: u32| match (segment, copy) {
        (300, 0) => FrameFate::Late(Span::from_ps(GAP.as_ps() * OVERTAKEN_BY)),
        (segment, 0) if (FIRST + 4..FIRST + 15).contains(&segment) => FrameFate::Lost,
        _ => FrameFate::Arrives,
    };
    play(&read_at_once(ends, &sends, &fate))
}

/// Timeouts of 200 ms: the third request comes before one.
fn patient(config: TcpConfig) -> [TcpConfig; 2] {
    both(TcpConfig { profile: RECEIVER_TIMERS, ..config })
}

pub(super) fn late(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    effort.progress.expect_parts(1);
    let mut computed = ComputedValues::default();
    let (old, new) = (late_repair(patient(old_stack()))?, late_repair(patient(new_stack()))?);
    let one = |value: f64| MeasuredValue::exact(value, 1);
    let says = format!("explain: {}", old.explained.verdict);
    let is_named = late_ms(&old) > 0.0 && old.explained.verdict.contains("threshold");
    computed.value("old.threshold", one(f64::from(old.threshold)));
    computed.value("old.ms", one(repair_ms(&old)));
    computed.value("old.named", one(f64::from(u8::from(is_named))).with_note(says));
    computed.value("new.ms", one(repair_ms(&new)));
    computed.value("new.late-ms", one(late_ms(&new)));
    effort.progress.part_done();
    Ok(Some(computed))
}

/// Time of the slowest repair.
fn repair_ms(outcome: &StoryOutcome) -> f64 {
    let slowest = outcome.explained.losses.iter().filter_map(|loss| loss.after_ns).max();
    slowest.map_or(0.0, |ns| ns as f64 / 1e6)
}

/// Time that explain calls late recovery.
fn late_ms(outcome: &StoryOutcome) -> f64 {
    let parts = outcome.explained.parts.iter().filter(|part| part.cause == TimeCause::LateRecovery);
    parts.map(|part| part.ns as f64 / 1e6).sum()
}

/// Waits for delayed acknowledgements of the last request, in ms.
fn delayed_acks(outcome: &StoryOutcome) -> Vec<f64> {
    let stalls = outcome.explained.stalls.iter().filter(|stall| stall.cause == TimeCause::DelayedAck);
    stalls.map(|stall| (stall.until_ns - stall.from_ns) as f64 / 1e6).collect()
}

pub(super) fn unread(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    effort.progress.expect_parts(1);
    let ends = patient(TcpConfig { receive_buffer: 400_000, ..old_stack() });
    let (old, cured) = (seldom_read(ends, Span::from_ms(250))?, seldom_read(ends, Span::ZERO)?);
    let mut computed = ComputedValues::default();
    let waits = delayed_acks(&old);
    let one = |value: f64| MeasuredValue::exact(value, waits.len() as u64);
    let says = format!("explain: {}", old.explained.verdict);
    computed.value("waits", one(waits.len() as f64).with_note(says));
    computed.value("wait.ms", one(waits.iter().sum::<f64>() / waits.len().max(1) as f64));
    computed.value("timeouts", one(f64::from(old.explained.timeouts)));
    computed.value("ms", one(last_request_ms(&old)));
    computed.value("read.waits", one(delayed_acks(&cured).len() as f64));
    computed.value("read.ms", one(last_request_ms(&cured)));
    effort.progress.part_done();
    Ok(Some(computed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_timeout_is_named_and_disappears_elsewhere() {
        for TimeoutStory { name, reason, old, cured } in timeout_stories().unwrap() {
            assert_eq!(last_reason(&old), Some(reason), "{name}: {:#?}", old.explained);
            assert!(old.explained.timeouts > 0, "{name}");
            assert!(cured.explained.timeouts < old.explained.timeouts, "{name}: {:#?}", cured.explained);
            assert!(last_request_ms(&cured) < last_request_ms(&old), "{name}");
        }
    }

    #[test]
    fn an_application_that_seldom_reads_delays_acknowledgements_again_and_again() {
        let ends = patient(TcpConfig { receive_buffer: 400_000, ..old_stack() });
        let old = seldom_read(ends, Span::from_ms(250)).unwrap();
        let waits = delayed_acks(&old);
        assert!(waits.len() >= 2 && old.explained.timeouts == 0, "{waits:?} {:#?}", old.explained);
        assert_eq!(delayed_acks(&seldom_read(ends, Span::ZERO).unwrap()), Vec::<f64>::new());
    }

    #[test]
    fn a_threshold_that_has_grown_makes_a_repair_late_on_the_old_stack_only() {
        let old = late_repair(patient(old_stack())).unwrap();
        assert!(old.threshold > 40, "{}", old.threshold);
        assert!(late_ms(&old) > 20.0, "{:#?}", old.explained);
        assert!(old.explained.verdict.contains("threshold grown"), "{}", old.explained.verdict);
        let new = late_repair(patient(new_stack())).unwrap();
        assert_eq!(late_ms(&new), 0.0);
        assert!(repair_ms(&new) < repair_ms(&old) / 5.0);
    }
}
