//! A whole script: its options, and its events with their times.

use units::Span;

use super::call::{self, ScriptCall};
use super::cursor::{Cursor, NotUnderstood, Parsed};
use super::expression::{self, Statement};
use super::packet;
use super::shell::{self, Setting};
use crate::segment::DrillSegment;

/// Tolerance for the time of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tolerance {
    /// Least tolerance.
    pub(crate) fixed: Span,
    /// And at least this share of the time since the event before.
    pub(crate) share: f64,
}

/// A script lasts no longer, and neither does anything in it.
const A_DAY: Span = Span::from_ms(86_400_000);
/// A hundred times as late as it took.
const MOST_PERCENT: u64 = 10_000;

/// packetdrill's own: 4 ms, or 12.5 %.
impl Default for Tolerance {
    fn default() -> Self {
        Self { fixed: Span::from_ms(4), share: 0.125 }
    }
}

/// Time of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventTime {
    /// `*`: at any time.
    Any,
    /// Interval since the start.
    Absolute { from: Span, to: Span },
    /// Interval since the event before.
    Relative { from: Span, to: Span },
}

/// Action of an event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EventAction {
    Call(ScriptCall),
    /// A call that ends at a later time (since the start, or since the event before, as its own time).
    BlockingCall(ScriptCall, Span),
    /// A segment comes in.
    Arrives(DrillSegment),
    /// A segment must leave.
    Leaves(DrillSegment),
    /// Statements about TCP_INFO.
    Check(Vec<Statement>),
    /// Commands of the shell.
    Configure(Vec<Setting>),
}

/// One line of a script.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) line: usize,
    pub(crate) time: EventTime,
    pub(crate) action: EventAction,
}

/// A script that was understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DrillScript {
    pub(crate) tolerance: Tolerance,
    /// Length of a tick of timestamps; without it their values are not compared.
    pub(crate) timestamp_tick: Option<Span>,
    pub(crate) events: Vec<Event>,
}

impl DrillScript {
    /// The line and the reason if any part is not understood.
    pub(crate) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut script = Self::default();
        script.read(&mut Cursor::new(text)).map_err(|NotUnderstood { line, why }| (line, why))?;
        Ok(script)
    }

    fn read(&mut self, cursor: &mut Cursor<'_>) -> Parsed<()> {
        while cursor.take("--") {
            let name = cursor.word();
            cursor.expect("=")?;
            let value = cursor.take_while(|letter| !letter.is_whitespace());
            self.option(cursor, name, value)?;
        }
        let mut length: u64 = 0;
        while !cursor.at_end() {
            let line = cursor.line();
            let (time, until) = if cursor.sees("`") {
                (EventTime::Relative { from: Span::ZERO, to: Span::ZERO }, None)
            } else {
                event_time(cursor)?
            };
            length = length.saturating_add(match time {
                EventTime::Any | EventTime::Absolute { .. } => 0,
                EventTime::Relative { to, .. } => until.unwrap_or(to).max(to).as_ps(),
            });
            if length > A_DAY.as_ps() {
                return cursor.error("a time that is more than a day after the start".to_owned());
            }
            let action = action(cursor, until)?;
            self.events.push(Event { line, time, action });
        }
        if self.events.is_empty() { cursor.error("a script without events") } else { Ok(()) }
    }

    fn option(&mut self, cursor: &Cursor<'_>, name: &str, value: &str) -> Parsed<()> {
        let number = value.parse::<u64>().ok();
        let most = if name == "tolerance_percent" { MOST_PERCENT } else { A_DAY.as_ps() / 1_000_000 };
        match (name, number) {
            ("tolerance_usecs" | "tcp_ts_tick_usecs" | "tolerance_percent", Some(number)) if number > most => {
                return cursor.error(format!("--{name}={value}: expected at most {most}"));
            }
            ("tolerance_usecs", Some(us)) if us > 0 => self.tolerance.fixed = Span::from_us(us),
            ("tolerance_percent", Some(percent)) => self.tolerance.share = percent as f64 / 100.0,
            ("tcp_ts_tick_usecs", Some(us)) => self.timestamp_tick = (us > 0).then(|| Span::from_us(us)),
            ("ip_version", _) if value == "ipv4" => {}
            _ => return cursor.error(format!("an option that is not understood: --{name}={value}")),
        }
        Ok(())
    }
}

fn action(cursor: &mut Cursor<'_>, end: Option<Span>) -> Parsed<EventAction> {
    if cursor.take("`") {
        let line = cursor.line();
        let settings = shell::settings(cursor.until("`")?);
        return settings.map(EventAction::Configure).map_err(|why| NotUnderstood { line, why });
    }
    if cursor.take("%{") {
        let line = cursor.line();
        let statements = expression::statements(cursor.until("}%")?);
        return statements.map(EventAction::Check).map_err(|why| NotUnderstood { line, why });
    }
    if cursor.take("<") {
        return packet::segment(cursor).map(EventAction::Arrives);
    }
    if cursor.take(">") {
        return packet::segment(cursor).map(EventAction::Leaves);
    }
    let line = cursor.line();
    // It is read whole, and space behind it skipped, before it is known or not.
    let call = call::call(cursor).map_err(|NotUnderstood { why, .. }| NotUnderstood { line, why })?;
    Ok(match end {
        Some(end) => EventAction::BlockingCall(call, end),
        None => EventAction::Call(call),
    })
}

/// The time, and the end of a call that waits.
fn event_time(cursor: &mut Cursor<'_>) -> Parsed<(EventTime, Option<Span>)> {
    if cursor.take("*") {
        return Ok((EventTime::Any, None));
    }
    let relative = cursor.take("+");
    let from = seconds(cursor)?;
    let to = if cursor.take("~") {
        let _ = cursor.take("+");
        seconds(cursor)?
    } else {
        from
    };
    let end = if cursor.take("...") { Some(seconds(cursor)?) } else { None };
    let time = if relative { EventTime::Relative { from, to } } else { EventTime::Absolute { from, to } };
    Ok((time, end))
}

/// `1`, `.25`, `0.004`; to the microsecond.
fn seconds(cursor: &mut Cursor<'_>) -> Parsed<Span> {
    let whole = cursor.take_while(|letter| letter.is_ascii_digit()).to_owned();
    let mut fraction = String::new();
    if cursor.sees(".") && !cursor.sees("...") {
        cursor.expect(".")?;
        fraction = cursor.take_while(|letter| letter.is_ascii_digit()).to_owned();
    }
    if whole.is_empty() && fraction.is_empty() {
        return cursor.error(format!("expected a time before {:?}", cursor.excerpt()));
    }
    let micros = format!("{whole:0>1}{fraction:0<6}");
    match micros.parse::<u64>() {
        Ok(micros) if fraction.len() <= 6 && micros <= A_DAY.as_ps() / 1_000_000 => Ok(Span::from_us(micros)),
        _ => cursor.error(format!("a time that is not understood: {whole}.{fraction}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::{SocketCall, SocketOption};
    use crate::segment::{EcnField, HeaderOption, TcpFlags};

    fn only(text: &str) -> Event {
        let mut script = DrillScript::parse(text).unwrap();
        assert_eq!(script.events.len(), 1, "{script:?}");
        script.events.remove(0)
    }

    fn refused(text: &str) -> (usize, String) {
        DrillScript::parse(text).unwrap_err()
    }

    #[test]
    fn times_that_no_clock_can_count_are_refused() {
        let with = |option: &str| refused(&format!("{option}\n+0 close(3) = 0"));
        for option in ["--tolerance_usecs=9223372036854775808", "--tcp_ts_tick_usecs=86400000001"] {
            let (line, why) = with(option);
            assert!(line == 1 && why == format!("{option}: expected at most 86400000000"), "{line}: {why}");
        }
        assert_eq!(with("--tolerance_percent=10001").1, "--tolerance_percent=10001: expected at most 10000");
        assert!(refused("86401 close(3) = 0").1.contains("a time that is not understood"));
        assert!(DrillScript::parse(&"+43200 close(3) = 0\n".repeat(2)).is_ok());
        let (line, why) = refused(&"+43200 close(3) = 0\n".repeat(3));
        assert!(line == 3 && why.contains("more than a day"), "{line}: {why}");
    }

    #[test]
    fn times_are_absolute_relative_ranges_or_any() {
        let us = Span::from_us;
        let time = |text: &str| only(&format!("{text} close(3) = 0")).time;
        assert_eq!(time("0.25"), EventTime::Absolute { from: us(250_000), to: us(250_000) });
        assert_eq!(time("+.1"), EventTime::Relative { from: us(100_000), to: us(100_000) });
        assert_eq!(time("+.3~+.310"), EventTime::Relative { from: us(300_000), to: us(310_000) });
        assert_eq!(time("*"), EventTime::Any);
        let blocking = only("+.01 ... 0.011 connect(3, ..., ...) = 0");
        assert_eq!(blocking.time, EventTime::Relative { from: us(10_000), to: us(10_000) });
        assert!(matches!(blocking.action, EventAction::BlockingCall(_, end) if end == us(11_000)));
    }

    #[test]
    fn a_segment_has_all_its_fields() {
        let event = only("+0 < [ce] FP. 1:1001(1000) ack 5 win 257 <nop,sack 7:9 11:12,TS val 4 ecr 3>");
        let EventAction::Arrives(segment) = event.action else { panic!("{event:?}") };
        assert!(segment.is(TcpFlags::FIN) && segment.is(TcpFlags::PSH) && segment.is(TcpFlags::ACK));
        assert_eq!((segment.seq, segment.len, segment.ack, segment.window), (1, 1_000, 5, Some(257)));
        assert_eq!(segment.ecn, Some(EcnField::Experienced));
        let sack = HeaderOption::Sack(vec![(7, 9), (11, 12)]);
        let options = vec![HeaderOption::Nop, sack, HeaderOption::Timestamp { value: 4, echo: 3 }];
        assert_eq!(segment.options, Some(options));
        assert_eq!(segment.to_string(), "[ce] FP. 1:1001(1000) ack 5 win 257 <nop,sack 7:9 11:12,TS val 4 ecr 3>");
    }

    #[test]
    fn no_options_are_none_and_an_ellipsis_is_any() {
        let options = |text: &str| match only(text).action {
            EventAction::Leaves(segment) => segment.options,
            other => panic!("{other:?}"),
        };
        assert_eq!(options("+0 > . 1:1(0) ack 1"), Some(Vec::new()));
        assert_eq!(options("+0 > S 0:0(0) <...>"), None);
    }

    #[test]
    fn calls_with_structures_are_understood() {
        let call = |text: &str| match only(text).action {
            EventAction::Call(call) => call,
            other => panic!("{other:?}"),
        };
        let message =
            "+0 sendmsg(4, {msg_name(...)=...,\n msg_iov(2)=[{..., 100}, {..., 95}], msg_flags=0}, MSG_MORE) = 195";
        assert_eq!(call(message).call, SocketCall::Send { len: 195, more: true });
        let read = "+0 recvmsg(4, {msg_name(...)=..., msg_iov(1)=[{..., 10}], msg_flags=0, msg_control=[\
                    {cmsg_level=SOL_TCP, cmsg_type=TCP_CM_INQ, cmsg_data=7}]}, 0) = 10";
        assert_eq!(call(read).expected.out, Some(7));
        let refused = call("+0 write(4, ..., 9) = -1 EPIPE (Broken pipe)");
        assert_eq!((refused.expected.value, refused.expected.error.as_deref()), (Some(-1), Some("EPIPE")));
        let option = call("+0 getsockopt(4, SOL_TCP, TCP_MAXSEG, [1100], [4]) = 0");
        assert_eq!(option.call, SocketCall::GetOption { option: SocketOption::MaxSegment });
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        assert_eq!(refused("// a comment\n\n+0 fork() = 0").0, 3);
        assert!(refused("+0 epoll_create(1) = 3").1.contains("epoll_create"));
        assert!(refused("--ip_version=ipv6\n+0 close(3) = 0").1.contains("ip_version"));
        assert!(refused("+0 > udp (100)").1.contains("udp"));
        assert!(refused("+0 > . 1:1(0) ack 1 <FO 12>").1.contains("FO"));
        assert!(refused("+0 > . 1:3(1) ack 1").1.contains("1 bytes"));
        assert!(refused("+0 %{ import os }%").1.contains("import os"));
        assert!(refused("+0 `rm -r x`").1.contains("rm"));
        assert!(refused("+0 setsockopt(3, SOL_TCP, TCP_FASTOPEN, [1], 4) = 0").1.contains("setsockopt"));
        assert_eq!(refused("").1, "a script without events");
    }

    #[test]
    fn options_before_the_first_event_set_tolerances() {
        let script = DrillScript::parse("--tolerance_usecs=7000\n--tcp_ts_tick_usecs=1000\n0 close(3) = 0").unwrap();
        assert_eq!(script.tolerance.fixed, Span::from_ms(7));
        assert_eq!(script.timestamp_tick, Some(Span::from_ms(1)));
    }
}
