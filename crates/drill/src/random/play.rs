//! Plays a random script to a subject, and compares what two of them sent.

use std::fmt;

use tcp::LinuxVersion;
use units::{Span, Time};

use super::{RandomAction, RandomScript};
use crate::language::{Setting, SocketCall, default_settings};
use crate::machine_subject::MachineSubject;
use crate::segment::{DrillSegment, EcnField, HeaderOption, TcpFlags};
use crate::subject::{DrillStop, Subject};

pub(super) const MSS: u32 = 1_000;
const SCALE: u8 = 7;
const LISTENER: i64 = 3;
const CONNECTION: i64 = 4;
/// What is sent after the last step is compared for this long.
const AFTERWARDS: Span = Span::from_ms(700);
/// Of which the end is left out: a timer may go off just before it or just after it.
const MARGIN: Span = Span::from_ms(60);
/// Two ticks of a slow kernel, and what a busy machine adds; and a share of the time since the step before.
const TOLERANCE: Span = Span::from_ms(14);
const TOLERANCE_SHARE: f64 = 0.05;

/// What a subject sent, counted from the end of the handshake.
#[derive(Clone, Debug, Default)]
pub(super) struct Played {
    segments: Vec<(Span, DrillSegment)>,
    /// The steps' times.
    steps: Vec<Span>,
    end: Span,
}

/// Where two runs differ first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Difference {
    at: usize,
    ours: Option<(Span, DrillSegment)>,
    kernel: Option<(Span, DrillSegment)>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let described = |sent: &Option<(Span, DrillSegment)>| match sent {
            Some((at, segment)) => format!("{segment} at {at}"),
            None => "nothing".to_owned(),
        };
        write!(f, "segment {}: ours {}, the kernel's {}", self.at + 1, described(&self.ours), described(&self.kernel))
    }
}

/// Our TCP with the ticks of this host's kernel.
pub(super) fn machine(version: LinuxVersion) -> MachineSubject {
    let tick = linux::clock::tick().as_micros().clamp(1, 1_000_000) as u32;
    MachineSubject::with_ticks(version, 1_000_000 / tick)
}

/// Opens a connection to a listening socket; the time at which it is open.
pub(super) fn handshake(script: &RandomScript, subject: &mut impl Subject) -> Result<Time, DrillStop> {
    let ecn = if script.ecn { "2" } else { "0" };
    let ecn = Setting::Sysctl { path: "net/ipv4/tcp_ecn".to_owned(), value: ecn.to_owned(), optional: false };
    default_settings().iter().chain([&ecn]).try_for_each(|setting| subject.configure(setting))?;
    subject.start();
    for call in [SocketCall::Socket, SocketCall::Bind, SocketCall::Listen { backlog: 1 }] {
        subject.call(LISTENER, &call)?;
    }
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
    let open = answer.at + script.rtt;
    subject.advance(open);
    subject.arrives(&acknowledgement(1, 257, false, &[]))?;
    let accepted = subject.call(LISTENER, &SocketCall::Accept)?;
    if accepted.value == CONNECTION { Ok(open) } else { DrillStop::failed("the connection was not accepted") }
}

fn syn_options(script: &RandomScript) -> Vec<HeaderOption> {
    let mut options = vec![HeaderOption::Mss(MSS as u16)];
    options.extend(if script.sack {
        vec![HeaderOption::SackPermitted]
    } else {
        vec![HeaderOption::Nop, HeaderOption::Nop]
    });
    options.extend([HeaderOption::Nop, HeaderOption::Nop, HeaderOption::Nop, HeaderOption::WindowScale(SCALE)]);
    options
}

fn acknowledgement(ack: u32, window: u16, marked: bool, blocks: &[(u32, u32)]) -> DrillSegment {
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

/// Plays all steps; an error if the subject cannot.
pub(super) fn play(script: &RandomScript, subject: &mut impl Subject) -> Result<Played, String> {
    let why = |stop: DrillStop| match stop {
        DrillStop::Failed(why) | DrillStop::NotApplicable(why) => why,
    };
    let start = handshake(script, subject).map_err(why)?;
    let mut played = Played::default();
    for step in &script.steps {
        subject.advance(start + step.at);
        act(&step.action, subject).map_err(why)?;
        played.steps.push(step.at);
    }
    played.end = played.steps.last().copied().unwrap_or_default() + AFTERWARDS;
    let deadline = start + played.end;
    while let Some(sent) = subject.next_sent(deadline) {
        played.segments.push((sent.at.since(start.min(sent.at)), sent.segment));
    }
    Ok(played)
}

/// On our TCP; an error if the script acknowledges what was not sent.
pub(super) fn on_machine(script: &RandomScript, version: LinuxVersion) -> Result<Played, String> {
    let played = play(script, &mut machine(version))?;
    let sent_before =
        |at: Span| played.segments.iter().filter(|(sent, _)| *sent <= at).map(|(_, segment)| segment.end()).max();
    let is_valid = script.steps.iter().all(|step| match &step.action {
        RandomAction::Acknowledge { ack, blocks, .. } => {
            let highest = blocks.iter().map(|(_, to)| *to).max().unwrap_or(*ack).max(*ack);
            highest <= sent_before(step.at).unwrap_or(1)
        }
        RandomAction::Write(_) => true,
    });
    if is_valid { Ok(played) } else { Err("it acknowledges what was not sent".to_owned()) }
}

/// Segment by segment: sequence numbers, flags but for PSH, marks and times.
pub(super) fn first_difference(ours: &Played, kernel: &Played) -> Option<Difference> {
    let (left, right) = (pieces(ours), pieces(kernel));
    let last = ours.end.saturating_sub(MARGIN);
    for at in 0..left.len().max(right.len()) {
        let (ours_at, kernel_at) = (left.get(at), right.get(at));
        let in_margin = |sent: Option<&(Span, DrillSegment)>| sent.is_none_or(|(at, _)| *at > last);
        if in_margin(ours_at) && in_margin(kernel_at) {
            return None;
        }
        let same = match (ours_at, kernel_at) {
            (Some((sent, segment)), Some((kernel_sent, kernel_segment))) => {
                let since_step = sent
                    .saturating_sub(ours.steps.iter().copied().filter(|step| step <= sent).max().unwrap_or_default());
                let allowed = TOLERANCE.max(since_step.scale(TOLERANCE_SHARE));
                let apart = sent.saturating_sub(*kernel_sent).max(kernel_sent.saturating_sub(*sent));
                compared(segment) == compared(kernel_segment) && apart <= allowed
            }
            _ => false,
        };
        if !same {
            return Some(Difference { at, ours: ours_at.cloned(), kernel: kernel_at.cloned() });
        }
    }
    None
}

/// What is compared of a segment.
fn compared(segment: &DrillSegment) -> (TcpFlags, u32, u32, u32, EcnField) {
    let flags = segment.flags.with(TcpFlags::PSH, false);
    (flags, segment.seq, segment.len, segment.ack, segment.ecn.unwrap_or_default())
}

/// Super-segments cut into segments.
fn pieces(played: &Played) -> Vec<(Span, DrillSegment)> {
    let mut pieces = Vec::new();
    for (at, segment) in &played.segments {
        let mut seq = segment.seq;
        loop {
            let len = segment.end().wrapping_sub(seq).min(MSS);
            // Only the first of a super-segment tells of a reduced window.
            let first = seq == segment.seq;
            let flags = segment.flags.with(TcpFlags::CWR, first && segment.is(TcpFlags::CWR));
            pieces.push((
                *at,
                DrillSegment { seq, len, flags, options: Some(Vec::new()), window: None, ..segment.clone() },
            ));
            seq = seq.wrapping_add(len);
            if seq == segment.end() {
                break;
            }
        }
    }
    pieces
}

/// What left at one time and follows each other, in one piece: where a kernel cuts it does not matter.
fn joined(played: &Played) -> Vec<(Span, DrillSegment)> {
    let mut joined: Vec<(Span, DrillSegment)> = Vec::new();
    for (at, segment) in &played.segments {
        let bare = DrillSegment { window: None, ecn: None, ..segment.clone() };
        let taken_in = joined.last_mut().is_some_and(|(last, whole)| last == at && whole.join(&bare));
        if !taken_in {
            joined.push((*at, bare));
        }
    }
    joined
}

/// The script as packetdrill reads it; what must leave is what our TCP sends.
pub(super) fn rendered(script: &RandomScript, version: LinuxVersion, found: &Difference) -> String {
    let seconds = |span: Span| format!("{:.6}", (script.rtt + span).as_secs());
    let syn = DrillSegment { options: Some(syn_options(script)), ..DrillSegment::default() };
    let ecn = if script.ecn { ("EW", "E", "2") } else { ("", "", "0") };
    let mut lines = vec![
        format!("// {found}"),
        format!("`../common/defaults.sh\nsysctl -q net.ipv4.tcp_ecn={}`", ecn.2),
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0".to_owned(),
        format!(
            "+0 < S{} 0:0(0) win 32768 {}",
            ecn.0,
            syn.to_string().rsplit_once(" <").map_or(String::new(), |(_, options)| format!("<{options}"))
        ),
        format!("+0 > S{}. 0:0(0) ack 1 <...>", ecn.1),
        format!("{} < . 1:1(0) ack 1 win 257\n+0 accept(3, ..., ...) = 4", seconds(Span::ZERO)),
    ];
    let mut events: Vec<(Span, u8, String)> = script.steps.iter().map(|step| (step.at, 0, step.to_string())).collect();
    let played = on_machine(script, version).unwrap_or_default();
    events.extend(joined(&played).into_iter().map(|(at, segment)| (at, 1, format!("> {segment}"))));
    // Stable: steps of one time before what they caused.
    events.sort_by_key(|(at, kind, _)| (*at, *kind));
    lines.extend(events.into_iter().map(|(at, _, text)| format!("{} {text}", seconds(at))));
    lines.join("\n") + "\n"
}

impl fmt::Display for super::RandomStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            RandomAction::Write(bytes) => write!(f, "write({CONNECTION}, ..., {bytes}) = {bytes}"),
            RandomAction::Acknowledge { ack, blocks, window, marked } => {
                write!(f, "< {}", acknowledgement(*ack, *window, *marked, blocks))
            }
        }
    }
}
