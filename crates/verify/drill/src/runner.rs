//! Runs a script against a subject, event by event.
//!
//! Events run at their times, in order. A segment that must leave is compared with the oldest that left and was not
//! compared yet: its fields, and its time within the tolerance. As packetdrill does, segments that follow each other are
//! joined until they are as long as the script says, and segments that the script does not mention are an error only
//! when another one is expected in their place.

mod compare;

use units::{Span, Time};

use crate::language::call::ScriptCall;
use crate::language::expression::{CheckError, Variables};
use crate::language::{CallResult, DrillScript, Event, EventAction, EventTime, ExpectedResult};
use crate::segment::DrillSegment;
use crate::subject::{DrillStop, SentSegment, Subject};
use compare::TimestampMap;

/// Time beyond the allowed one for which a segment or a call is waited for, so that a message can say when it came.
const PATIENCE: Span = Span::from_ms(1_000);

/// End of a run that stopped early, with the line of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DrillEnd {
    /// 0 if it is about no line.
    pub(crate) line: usize,
    pub(crate) stop: DrillStop,
}

/// Runs all events; the first that does not hold, with its line.
pub(crate) fn run<S: Subject>(script: &DrillScript, subject: &mut S) -> Result<(), DrillEnd> {
    let mut runner = ScriptRunner::new(script, subject);
    let mut started = false;
    for event in &script.events {
        if !started && !matches!(event.action, EventAction::Configure(_)) {
            runner.subject.start();
            started = true;
        }
        runner.event(event).map_err(|stop| DrillEnd { line: event.line, stop })?;
    }
    let Some((line, _)) = runner.blocked else { return Ok(()) };
    runner.finish_call().map_err(|stop| DrillEnd { line, stop })
}

/// A call that waits: when it started, when it must end, and with what.
#[derive(Clone, Debug)]
struct BlockedCall {
    started: Time,
    end: Time,
    expected: ExpectedResult,
}

struct ScriptRunner<'a, S> {
    script: &'a DrillScript,
    subject: &'a mut S,
    /// The time of the event before, by the script.
    last: Time,
    /// Time at which it really happened, which is later on a busy machine; segments that leave are timed from then.
    happened: Time,
    blocked: Option<(usize, BlockedCall)>,
    variables: Variables,
    timestamps: TimestampMap,
    /// A segment of which only the beginning was expected.
    rest: Option<SentSegment>,
}

impl<'a, S: Subject> ScriptRunner<'a, S> {
    fn new(script: &'a DrillScript, subject: &'a mut S) -> Self {
        Self {
            script,
            subject,
            last: Time::ZERO,
            happened: Time::ZERO,
            blocked: None,
            variables: Variables::default(),
            timestamps: TimestampMap::default(),
            rest: None,
        }
    }

    fn event(&mut self, event: &Event) -> Result<(), DrillStop> {
        let is_sent = matches!(event.action, EventAction::Leaves(_));
        let (from, to) = self.times(event.time, if is_sent { self.happened } else { self.last });
        if let EventAction::Leaves(expected) = &event.action {
            let at = self.leaves(expected, event.time, from, to)?;
            // A segment that left early was nevertheless expected now.
            self.last = at.max(self.last);
            self.happened = self.last;
            return Ok(());
        }
        if matches!(event.action, EventAction::Call(_) | EventAction::BlockingCall(..)) {
            self.finish_call()?;
        }
        self.subject.advance(from);
        self.act(event, from)?;
        self.last = from;
        self.happened = self.subject.now().max(from);
        Ok(())
    }

    fn act(&mut self, event: &Event, from: Time) -> Result<(), DrillStop> {
        match &event.action {
            EventAction::Call(ScriptCall { descriptor, call, expected }) => {
                compare_result(expected, &self.subject.call(*descriptor, call)?)
            }
            EventAction::BlockingCall(ScriptCall { descriptor, call, expected }, end) => {
                let end = match event.time {
                    EventTime::Relative { from: offset, .. } => from + end.saturating_sub(offset),
                    _ => Time::ZERO + *end,
                };
                let blocked = BlockedCall { started: from, end, expected: expected.clone() };
                self.blocked = Some((event.line, blocked));
                self.subject.start_call(*descriptor, call)
            }
            EventAction::Arrives(segment) => {
                let mut segment = segment.clone();
                self.timestamps.arriving(&mut segment);
                self.subject.arrives(&segment)
            }
            EventAction::Check(statements) => {
                let info = self.subject.info()?;
                self.variables.run(statements, &info).or_else(|error| match error {
                    CheckError::False(why) => DrillStop::failed(why),
                    CheckError::Unknown(name) => DrillStop::not_applicable(format!("{name} is not known")),
                })
            }
            EventAction::Configure(settings) => settings.iter().try_for_each(|setting| self.subject.configure(setting)),
            EventAction::Leaves(_) => Ok(()),
        }
    }

    /// Earliest and latest time of the event.
    fn times(&self, time: EventTime, base: Time) -> (Time, Time) {
        match time {
            EventTime::Any => (self.subject.now(), Time::NEVER),
            EventTime::Absolute { from, to } => (Time::ZERO + from, Time::ZERO + to),
            EventTime::Relative { from, to } => (base + from, base + to),
        }
    }

    fn tolerance(&self, since_last: Span) -> Span {
        self.script.tolerance.fixed.max(since_last.scale(self.script.tolerance.share))
    }

    fn leaves(&mut self, expected: &DrillSegment, time: EventTime, from: Time, to: Time) -> Result<Time, DrillStop> {
        let tolerance = self.tolerance(from.since(self.happened.min(from)));
        let latest = if time == EventTime::Any {
            self.subject.now() + PATIENCE * 10
        } else {
            to + tolerance + self.subject.coarseness()
        };
        let sent = self.joined(expected, latest + PATIENCE)?;
        let mut segment = sent.segment;
        self.timestamps.leaving(expected, &mut segment);
        compare::segments(expected, &segment, self.script, sent.at)?;
        let early = from.since(sent.at.min(from)) > tolerance && time != EventTime::Any;
        if early || sent.at > latest {
            let (from, to, at) = (seconds(from), seconds(to), seconds(sent.at));
            return DrillStop::failed(format!("{segment} left at {at} s, not between {from} and {to} s"));
        }
        Ok(sent.at)
    }

    /// The next segment, with those that follow it up to the expected length.
    fn joined(&mut self, expected: &DrillSegment, deadline: Time) -> Result<SentSegment, DrillStop> {
        let mut sent = match self.rest.take().or_else(|| self.subject.next_sent(deadline)) {
            Some(sent) => sent,
            None => return DrillStop::failed(format!("nothing left; expected {expected}")),
        };
        while sent.segment.len < expected.len {
            let Some(next) = self.subject.next_sent(deadline) else { break };
            if !sent.segment.join(&next.segment) {
                self.rest = Some(next);
                break;
            }
        }
        Ok(sent)
    }

    /// Waits for the call that was started, if one was.
    fn finish_call(&mut self) -> Result<(), DrillStop> {
        let Some((_, blocked)) = self.blocked.take() else { return Ok(()) };
        let tolerance = self.tolerance(blocked.end.since(blocked.started.min(blocked.end)));
        let Some((at, result)) = self.subject.call_ended(blocked.end + tolerance + PATIENCE) else {
            return DrillStop::failed(format!("a call did not return until {} s", seconds(self.subject.now())));
        };
        compare_result(&blocked.expected, &result)?;
        let early = blocked.end.since(at.min(blocked.end)) > tolerance;
        if early || at > blocked.end + tolerance {
            let (at, end) = (seconds(at), seconds(blocked.end));
            return DrillStop::failed(format!("a call returned at {at} s, not at {end} s"));
        }
        Ok(())
    }
}

fn seconds(time: Time) -> f64 {
    (time.since(Time::ZERO).as_us() / 10.0).round() / 1e5
}

fn compare_result(expected: &ExpectedResult, result: &CallResult) -> Result<(), DrillStop> {
    let named = |result: &CallResult| match &result.error {
        Some(error) => format!("-1 {error}"),
        None => result.value.to_string(),
    };
    let value_differs = expected.value.is_some_and(|value| value != result.value);
    if value_differs || (expected.value.is_some() && expected.error != result.error) {
        let wanted = match (&expected.error, expected.value) {
            (Some(error), _) => format!("-1 {error}"),
            (None, value) => value.unwrap_or_default().to_string(),
        };
        return DrillStop::failed(format!("the call returned {}, not {wanted}", named(result)));
    }
    match (expected.out, result.out) {
        (Some(wanted), got) if got != Some(wanted) => {
            let got = got.map_or("nothing".to_owned(), |got| got.to_string());
            DrillStop::failed(format!("the call reported {got}, not {wanted}"))
        }
        _ => Ok(()),
    }
}
