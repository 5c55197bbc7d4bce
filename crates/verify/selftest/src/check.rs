//! Comparison of `explain`'s answers about a run with what happened.

use std::time::Duration;

use explain::answer::{ConnectionAnswer, ExplainAnswer};
use explain::terms::{EndSide, StreamDirection, TimeCause, TimerReason};
use linux::clock;

use crate::cases::{CasePlan, ExpectedCause};
use crate::counters::HostCounters;
use crate::run::TestRunRecord;
use crate::script::ScriptedFate;
use crate::wire::WireLoss;

const SIDES: [EndSide; 2] = [EndSide::Client, EndSide::Server];
/// Captures that the three answers are made from.
const VIEWS: [&str; 3] = ["client's capture", "server's capture", "both captures"];

/// Losses of a run: how many there were, and how many of them were named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LossCounts {
    pub dropped: u64,
    /// Losses that one capture alone can show, counted for each end, and those of them that it names.
    pub visible: u64,
    pub named: u64,
}

/// Errors found in a run; none if all is right.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunCheck {
    pub faults: Vec<String>,
    /// Losses that one capture alone could have shown; some of them may be missed.
    pub missed: Vec<String>,
    pub losses: LossCounts,
    /// The kernel did not do what the case tests.
    pub is_other: bool,
}

/// A loss as both sides tell it.
type NamedLoss = (EndSide, u32, u32);

pub(crate) fn check(plan: &CasePlan, record: &TestRunRecord, answers: &[ExplainAnswer; 3]) -> RunCheck {
    let mut found = RunCheck::default();
    let visible = [plan.visible[0], plan.visible[1], true];
    found.is_other = !is_intended(plan.expected, record);
    let is_other = found.is_other;
    if is_discarded(plan, record) {
        return RunCheck { is_other: true, ..RunCheck::default() };
    }
    for (place, answer) in answers.iter().enumerate() {
        let [connection] = &answer.connections[..] else {
            found.faults.push(format!("{}: {} connections instead of one", VIEWS[place], answer.connections.len()));
            continue;
        };
        let mut say = |fault: String| found.faults.push(format!("{}: {fault}", VIEWS[place]));
        if visible[place] {
            let near = SIDES[place % 2];
            if !is_other {
                check_cause(connection, near, plan.expected, &mut say);
            }
            check_counters(connection, record, &mut say);
            check_window_time(connection, record, &mut say);
        }
        check_losses(connection, place, &record.wire.dropped, visible[place], &mut found);
    }
    found.losses.dropped = record.wire.dropped.len() as u64;
    found
}

/// True if the kernel's counters are those of the case: a repair by a probe or by acknowledgements needs no timeout.
fn is_intended(expected: ExpectedCause, record: &TestRunRecord) -> bool {
    let sum = |of: fn(&HostCounters) -> u64| record.ends.iter().map(|end| of(&end.host)).sum::<u64>();
    let (timeouts, probes) = (sum(|host| host.timeouts), sum(|host| host.probes));
    match expected.cause {
        TimeCause::Probe => timeouts == 0 && probes > 0,
        TimeCause::Recovery => timeouts == 0 && probes == 0,
        // The second one, for nothing.
        TimeCause::Timeout if expected.why == Some(TimerReason::AckDelayed) => timeouts > 1,
        TimeCause::Timeout => timeouts > 0,
        _ => true,
    }
}

/// True if the receiver discarded a late segment that it still lacked: by its timestamp it was older than what had been
/// sent again meanwhile (PAWS). To its sender it was lost, and to the wire it was not.
fn is_discarded(plan: &CasePlan, record: &TestRunRecord) -> bool {
    let late = plan.rules.iter().filter(|rule| matches!(rule.fate, ScriptedFate::Late(_))).count() as u64;
    late > record.ends.iter().map(|end| end.socket.duplicates).sum()
}

/// The application next to the capture is told from the one far away.
fn as_seen(cause: TimeCause, side: EndSide, near: EndSide) -> TimeCause {
    if cause == TimeCause::Application && side != near { TimeCause::PeerApplication } else { cause }
}

fn check_cause(connection: &ConnectionAnswer, near: EndSide, expected: ExpectedCause, say: &mut dyn FnMut(String)) {
    let wanted = (as_seen(expected.cause, expected.side, near), expected.side);
    let Some(part) = connection.parts.iter().find(|part| part.cause != TimeCause::Idle) else {
        return say("no cause at all".into());
    };
    if (part.cause, part.side) != wanted {
        let parts = connection.parts.iter().take(4);
        let parts =
            parts.map(|part| format!("{} {} {:.1} ms", part.cause.name(), part.side.name(), part.ns as f64 / 1e6));
        let parts: Vec<String> = parts.collect();
        return say(format!("expected {} of the {}; said {}", wanted.0.name(), wanted.1.name(), parts.join(", ")));
    }
    let stalls = connection.stalls.iter().filter(|stall| (stall.cause, stall.side) == wanted);
    let why = stalls.max_by_key(|stall| stall.until_ns - stall.from_ns).and_then(|stall| stall.why);
    if expected.why.is_some() && why != expected.why {
        say(format!("why: expected {:?}, said {why:?}", expected.why));
    }
}

fn check_counters(connection: &ConnectionAnswer, record: &TestRunRecord, say: &mut dyn FnMut(String)) {
    let [client, server] = &record.ends;
    let rows = [
        ("timeouts", connection.timeouts, client.host.timeouts + server.host.timeouts),
        ("probes", connection.probes, client.host.probes + server.host.probes),
        ("spurious", connection.spurious, client.socket.duplicates + server.socket.duplicates),
    ];
    for (name, said, kernel) in rows {
        if u64::from(said) != kernel {
            say(format!("{name}: {said}, the kernel counted {kernel}"));
        }
    }
}

fn check_window_time(connection: &ConnectionAnswer, record: &TestRunRecord, say: &mut dyn FnMut(String)) {
    let tick = clock::tick().as_nanos() as u64;
    for (side, end) in SIDES.iter().zip(&record.ends) {
        let time_of = |causes: &[TimeCause]| -> u64 {
            let parts = connection.parts.iter().filter(|part| causes.contains(&part.cause) && part.side == *side);
            parts.map(|part| part.ns).sum()
        };
        let (said, kernel) = (time_of(&[TimeCause::ReceiveWindow]), end.socket.rwnd_limited);
        // The kernel's clock goes on while a full window waits for a timer; that wait is named after the timer.
        let timers = time_of(&[TimeCause::Probe, TimeCause::Timeout]);
        let tolerance = kernel / 10 + 2 * tick;
        if said > kernel + tolerance || said + timers + tolerance < kernel {
            let ms = |ns: u64| ns as f64 / 1e6;
            say(format!(
                "receive-window of the {}: {:.1} ms, the kernel says {:.1}",
                side.name(),
                ms(said),
                ms(kernel)
            ));
        }
    }
}

fn check_losses(
    connection: &ConnectionAnswer,
    place: usize,
    dropped: &[WireLoss],
    is_visible: bool,
    found: &mut RunCheck,
) {
    let side_of = |direction: StreamDirection| if direction == StreamDirection::Up { SIDES[0] } else { SIDES[1] };
    let named = connection.losses.iter().map(|loss| (side_of(loss.direction), loss.tcp_seq, loss.len));
    let named: Vec<NamedLoss> = named.collect();
    let all: Vec<NamedLoss> = dropped.iter().map(|packet| (packet.from, packet.seq, packet.len)).collect();
    let wrong = without(&named, &all);
    for (side, seq, len) in &wrong {
        let fault = format!("{}: no loss: seq {seq}, {len} bytes of the {}", VIEWS[place], side.name());
        found.faults.push(fault);
    }
    if place == 2 {
        for (side, seq, len) in without(&all, &named) {
            found.faults.push(format!("both captures: not named: seq {seq}, {len} bytes of the {}", side.name()));
        }
        return;
    }
    let near = SIDES[place];
    // An end's own acknowledgements that never arrive leave no trace with it, and a SYN none at the other end.
    let shows = |packet: &&WireLoss| packet.len > 0 || (packet.from == near) == packet.is_syn;
    let visible: Vec<NamedLoss> = dropped
        .iter()
        .filter(shows)
        .filter(|_| is_visible)
        .map(|packet| (packet.from, packet.seq, packet.len))
        .collect();
    let missed = without(&visible, &named);
    found.losses.visible += visible.len() as u64;
    found.losses.named += (visible.len() - missed.len()) as u64;
    for (side, seq, len) in missed {
        found.missed.push(format!("{}: not named: seq {seq}, {len} bytes of the {}", VIEWS[place], side.name()));
    }
}

/// Entries of the first that are not in the second, each as often as it is there.
fn without(of: &[NamedLoss], known: &[NamedLoss]) -> Vec<NamedLoss> {
    let mut known = known.to_vec();
    let mut is_unknown = |loss: &&NamedLoss| match known.iter().position(|other| other == *loss) {
        Some(place) => {
            known.swap_remove(place);
            false
        }
        None => true,
    };
    of.iter().filter(|loss| is_unknown(loss)).copied().collect()
}

/// True if the machine was so late that timers may have gone off for that reason alone.
pub(crate) fn is_late(plan: &CasePlan, lag: Option<Duration>) -> bool {
    const LEAST: Duration = Duration::from_millis(3);
    lag.is_none_or(|lag| lag > LEAST.max(plan.delay.each / 4))
}
