//! Facts that a replay shows about machines that nobody observed when they ran.

use std::fmt;
use std::str::FromStr;

use deter::LogSide;
use serde::Serialize;
use tcp::{TcpConnection, TcpNote, TcpSite, TcpTick, TcpTimer};
use units::{ParseError, Span, Time};

/// Kinds of facts that can be traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceKind {
    /// Retransmissions, timeouts, probes, reductions.
    Notes,
    /// The congestion window, the threshold and the phase when they change.
    Window,
    /// The smoothed round trip and the retransmission timeout when they change.
    Rtt,
    /// Timers as they are set, stopped, and expire.
    Timers,
    /// Decisions of time where the answer is the unusual one, and ticks, numbers that follow from the time, when they
    /// change.
    Decisions,
}

impl TraceKind {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Notes, "notes"),
        (Self::Window, "window"),
        (Self::Rtt, "rtt"),
        (Self::Timers, "timers"),
        (Self::Decisions, "decisions"),
    ];
}

impl FromStr for TraceKind {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: ParseError = ParseError::new("what to trace: notes, window, rtt, timers or decisions");
        Self::ALL.into_iter().find(|(_, name)| *name == text).map(|(kind, _)| kind).ok_or(EXPECTED)
    }
}

/// A fact of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayTraceLine {
    /// Time since the run began.
    pub time_ns: u64,
    /// `client` or `server`.
    pub end: &'static str,
    /// Kind of the fact.
    pub kind: TraceKind,
    /// The fact.
    pub what: String,
}

impl fmt::Display for ReplayTraceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", Span::from_ns(self.time_ns), self.end, self.what)
    }
}

/// Writes facts down.
pub(super) struct Tracer {
    kinds: Vec<TraceKind>,
    lines: Vec<ReplayTraceLine>,
    /// Text last written about each end's window, and about its round trip.
    last: [[String; 2]; 2],
}

impl Tracer {
    pub(super) fn new(kinds: &[TraceKind]) -> Self {
        Self { kinds: kinds.to_vec(), lines: Vec::new(), last: Default::default() }
    }

    /// All facts, if any kind was asked for.
    pub(super) fn finish(self) -> Option<Vec<ReplayTraceLine>> {
        (!self.kinds.is_empty()).then_some(self.lines)
    }

    fn line(&mut self, side: LogSide, now: Time, kind: TraceKind, what: impl FnOnce() -> String) {
        if self.kinds.contains(&kind) {
            let time_ns = now.as_ps() / 1_000;
            self.lines.push(ReplayTraceLine { time_ns, end: side.name(), kind, what: what() });
        }
    }

    pub(super) fn note(&mut self, side: LogSide, now: Time, note: TcpNote) {
        self.line(side, now, TraceKind::Notes, || format!("{note:?}"));
    }

    pub(super) fn armed(&mut self, side: LogSide, now: Time, timer: TcpTimer, at: Option<Time>) {
        self.line(side, now, TraceKind::Timers, || match at {
            Some(at) => format!("{timer:?} timer set for {}", at.since(Time::ZERO)),
            None => format!("{timer:?} timer stopped"),
        });
    }

    pub(super) fn expired(&mut self, side: LogSide, now: Time, timer: TcpTimer) {
        self.line(side, now, TraceKind::Timers, || format!("{timer:?} timer expired"));
    }

    pub(super) fn decided(&mut self, side: LogSide, now: Time, site: TcpSite) {
        self.line(side, now, TraceKind::Decisions, || format!("{site:?}: yes"));
    }

    pub(super) fn ticked(&mut self, side: LogSide, now: Time, tick: TcpTick, value: u64) {
        // Differences are kept as unsigned numbers; people want them as they are.
        self.line(side, now, TraceKind::Decisions, || format!("{tick:?}: {}", value as i64));
    }

    pub(super) fn called(&mut self, side: LogSide, now: Time, machine: &TcpConnection) {
        if self.kinds.contains(&TraceKind::Window) {
            let (window, threshold, phase) = (machine.window(), machine.threshold(), machine.phase());
            self.changed(side, now, TraceKind::Window, format!("window {window}, threshold {threshold}, {phase:?}"));
        }
        if self.kinds.contains(&TraceKind::Rtt) {
            let srtt = machine.srtt().map_or("no round trip".to_owned(), |srtt| format!("srtt {srtt}"));
            self.changed(side, now, TraceKind::Rtt, format!("{srtt}, RTO {}", machine.rto()));
        }
    }

    fn changed(&mut self, side: LogSide, now: Time, kind: TraceKind, what: String) {
        let last = &mut self.last[side as usize][usize::from(kind == TraceKind::Rtt)];
        if *last != what {
            last.clone_from(&what);
            self.line(side, now, kind, || what);
        }
    }
}
