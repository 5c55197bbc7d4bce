//! Plays a random script to a subject.

use tcp::LinuxVersion;
use units::{Span, Time};

use super::ticks::hz;
use super::{RandomAction, RandomScript};
use crate::language::{Setting, SocketCall, default_settings};
use crate::machine_subject::MachineSubject;
use crate::segment::{DrillSegment, HeaderOption, TcpFlags};
use crate::subject::{DrillStop, Subject};

pub(super) const MSS: u32 = 1_000;
const SCALE: u8 = 7;
const LISTENER: i64 = 3;
pub(super) const CONNECTION: i64 = 4;
/// Time after the last step for which segments are compared.
const AFTERWARDS: Span = Span::from_ms(700);
/// An event this close to a timer may come before it or after it, although the ticks are known.
const TOO_CLOSE: Span = Span::from_ms(2);

/// Times of a script's events at a subject, on its clock.
#[derive(Clone, Debug, Default)]
pub(super) struct PlayTimes {
    /// The peer's SYN, and its answer to the SYN-ACK.
    pub(super) syn: Time,
    pub(super) open: Time,
    pub(super) steps: Vec<Time>,
}

/// Times at which events are to happen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Schedule<'a> {
    /// Times of the script, from this SYN on.
    Planned(Time),
    /// Times at which they happened to another subject.
    Repeated(&'a PlayTimes),
}

impl Schedule<'_> {
    fn syn(&self) -> Time {
        match self {
            Self::Planned(syn) => *syn,
            Self::Repeated(timeline) => timeline.syn,
        }
    }

    fn open(&self, planned: Time) -> Time {
        match self {
            Self::Planned(_) => planned,
            Self::Repeated(timeline) => timeline.open,
        }
    }

    fn step(&self, number: usize, planned: Time) -> Time {
        match self {
            Self::Planned(_) => planned,
            Self::Repeated(timeline) => timeline.steps.get(number).copied().unwrap_or(planned),
        }
    }
}

/// Segments that a subject sent, and times of the events at it.
#[derive(Clone, Debug, Default)]
pub(super) struct PlayResult {
    pub(super) segments: Vec<(Time, DrillSegment)>,
    pub(super) timeline: PlayTimes,
    pub(super) end: Time,
    /// Uncertainty of the timeline's times.
    pub(super) doubt: Span,
}

/// Our TCP with ticks as long as those of this host's kernel, the first of them at `phase`.
pub(super) fn machine(version: LinuxVersion, phase: Span) -> MachineSubject {
    MachineSubject::with_ticks(version, hz(), phase)
}

/// Makes a listening socket; the subject's time begins.
pub(super) fn prepare(script: &RandomScript, subject: &mut impl Subject) -> Result<(), DrillStop> {
    let ecn = if script.ecn { "2" } else { "0" };
    let ecn = Setting::Sysctl { path: "net/ipv4/tcp_ecn".to_owned(), value: ecn.to_owned(), optional: false };
    default_settings().iter().chain([&ecn]).try_for_each(|setting| subject.configure(setting))?;
    subject.start();
    for call in [SocketCall::Socket, SocketCall::Bind, SocketCall::Listen { backlog: 1 }] {
        subject.call(LISTENER, &call)?;
    }
    Ok(())
}

/// Opens a connection to the listening socket; when the answer to the SYN-ACK came.
pub(super) fn handshake(
    script: &RandomScript,
    subject: &mut impl Subject,
    schedule: Schedule<'_>,
) -> Result<PlayTimes, DrillStop> {
    subject.advance(schedule.syn());
    let syn = subject.now();
    let flags = TcpFlags::SYN.with(TcpFlags::ECE, script.ecn).with(TcpFlags::CWR, script.ecn);
    subject.arrives(&DrillSegment {
        flags,
        window: Some(32_768),
        options: Some(syn_options(script)),
        ..DrillSegment::default()
    })?;
    let deadline = subject.now() + Span::from_ms(500);
    let Some(answer) = subject.next_sent(deadline).filter(|sent| sent.segment.is(TcpFlags::SYN)) else {
        return DrillStop::failed("no SYN-ACK");
    };
    subject.advance(schedule.open(answer.at + script.rtt));
    let open = subject.now();
    subject.arrives(&acknowledgement(1, 257, false, &[]))?;
    let accepted = subject.call(LISTENER, &SocketCall::Accept)?;
    if accepted.value != CONNECTION {
        return DrillStop::failed("the connection was not accepted");
    }
    Ok(PlayTimes { syn, open, steps: Vec::new() })
}

pub(super) fn syn_options(script: &RandomScript) -> Vec<HeaderOption> {
    let mut options = vec![HeaderOption::Mss(MSS as u16)];
    options.extend(if script.sack {
        vec![HeaderOption::SackPermitted]
    } else {
        vec![HeaderOption::Nop, HeaderOption::Nop]
    });
    options.extend([HeaderOption::Nop, HeaderOption::Nop, HeaderOption::Nop, HeaderOption::WindowScale(SCALE)]);
    options
}

pub(super) fn acknowledgement(ack: u32, window: u16, marked: bool, blocks: &[(u32, u32)]) -> DrillSegment {
    let sack = || vec![HeaderOption::Nop, HeaderOption::Nop, HeaderOption::Sack(blocks.to_vec())];
    DrillSegment {
        flags: TcpFlags::ACK.with(TcpFlags::ECE, marked),
        seq: 1,
        len: 0,
        ack,
        window: Some(window),
        options: Some(if blocks.is_empty() { Vec::new() } else { sack() }),
        ecn: None,
    }
}

pub(super) fn act(action: &RandomAction, subject: &mut impl Subject) -> Result<(), DrillStop> {
    match action {
        RandomAction::Write(bytes) => {
            let call = SocketCall::Send { len: u64::from(*bytes), more: false };
            let result = subject.call(CONNECTION, &call)?;
            if result.value == i64::from(*bytes) { Ok(()) } else { DrillStop::failed("not all was written") }
        }
        RandomAction::Acknowledge { ack, blocks, window, marked } => {
            subject.arrives(&acknowledgement(*ack, *window, *marked, blocks))
        }
    }
}

/// Plays all steps to a subject that is prepared; an error if it cannot. `look` sees the subject before each step.
pub(super) fn play<S: Subject>(
    script: &RandomScript,
    subject: &mut S,
    schedule: Schedule<'_>,
    mut look: impl FnMut(&S),
) -> Result<PlayResult, DrillStop> {
    let mut played = PlayResult { timeline: handshake(script, subject, schedule)?, ..PlayResult::default() };
    let open = played.timeline.open;
    for (number, step) in script.steps.iter().enumerate() {
        subject.advance(schedule.step(number, open + step.at));
        look(subject);
        let now = subject.now();
        act(&step.action, subject)?;
        played.timeline.steps.push(now);
        played.doubt = played.doubt.max(subject.now().since(now));
    }
    played.end = played.timeline.steps.last().copied().unwrap_or(open) + AFTERWARDS;
    while let Some(sent) = subject.next_sent(played.end) {
        played.segments.push((sent.at, sent.segment));
    }
    Ok(played)
}

/// Repeats a run on our TCP, with the ticks and times of the kernel. `None` if the outcome is chance: an event came too
/// close to a timer.
pub(super) fn repeated(
    script: &RandomScript,
    version: LinuxVersion,
    phase: Span,
    schedule: Schedule<'_>,
) -> Result<Option<PlayResult>, DrillStop> {
    let mut subject = machine(version, phase);
    prepare(script, &mut subject)?;
    let mut close = false;
    let played = play(script, &mut subject, schedule, |subject| {
        close |= subject.next_timer().is_some_and(|timer| timer.since(subject.now()) < TOO_CLOSE);
    })?;
    let steps = &played.timeline.steps;
    let by_timer = played.segments.iter().map(|(at, _)| at).filter(|at| !steps.contains(at));
    for at in by_timer {
        close |= steps.iter().any(|step| step > at && step.since(*at) < TOO_CLOSE);
    }
    check(script, &played)?;
    Ok((!close).then_some(played))
}

/// An error if the script acknowledges what was not sent.
fn check(script: &RandomScript, played: &PlayResult) -> Result<(), DrillStop> {
    for (step, at) in script.steps.iter().zip(&played.timeline.steps) {
        let RandomAction::Acknowledge { ack, blocks, .. } = &step.action else { continue };
        let highest = blocks.iter().map(|(_, to)| *to).max().unwrap_or(*ack).max(*ack);
        let sent = played.segments.iter().filter(|(sent, _)| sent <= at).map(|(_, segment)| segment.end()).max();
        if highest > sent.unwrap_or(1) {
            return DrillStop::failed("it acknowledges what was not sent");
        }
    }
    Ok(())
}
