//! Reports of a kernel on its own connections: calls of applications, windows, phases.
//!
//! A recording (`hitless explain record`) is a pcapng file with two interfaces: frames, and events of the kernel as packets
//! of a link type for private use. An event is a line of text, so that any reader of captures shows it:
//!
//! | line | |
//! | --- | --- |
//! | `recorded INTERFACE` | the first line of a recording |
//! | `open LOCAL REMOTE` | the connection is established |
//! | `send LOCAL REMOTE BYTES` | a call has returned that handed this over |
//! | `receive LOCAL REMOTE BYTES` | a call has returned with this |
//! | `ack LOCAL REMOTE CWND SND_WND` | something arrived, and these are the windows just before: in segments, in bytes |
//! | `phase LOCAL REMOTE STATE` | open, disorder, cwr, recovery or loss |
//! | `again LOCAL REMOTE` | a segment is sent again |
//! | `missed COUNT` | events that were lost for want of room |
//!
//! Invariant: what was missed makes nothing a fact. After a gap, counts of bytes no longer say who had what when.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;

use capture::{CaptureError, CaptureReader};

use crate::packet::LATEST;

/// The link type of events: the first of those that are for private use.
pub const EVENT_LINK: u16 = 147;

/// A call has returned at this time; in all, this much has been handed over (or read).
type CallReturn = (u64, u64);

/// The phase of a sender's congestion control, as Linux numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelPhase {
    Open,
    Disorder,
    Cwr,
    Recovery,
    Loss,
}

impl KernelPhase {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Open, "open"),
        (Self::Disorder, "disorder"),
        (Self::Cwr, "cwr"),
        (Self::Recovery, "recovery"),
        (Self::Loss, "loss"),
    ];

    /// Converts the kernel's number.
    pub fn numbered(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).map(|(phase, _)| *phase)
    }
}

/// Event at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    Open,
    Sent(u64),
    Received(u64),
    /// Just before something arrived: the congestion window in segments, the peer's window in bytes.
    Windows {
        congestion: u64,
        receive: u64,
    },
    Phase(KernelPhase),
    Again,
}

/// Event at one end of a connection, with the connection's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelEvent {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub news: SocketEvent,
}

impl fmt::Display for KernelEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { local, remote, news } = self;
        match news {
            SocketEvent::Open => write!(f, "open {local} {remote}"),
            SocketEvent::Sent(bytes) => write!(f, "send {local} {remote} {bytes}"),
            SocketEvent::Received(bytes) => write!(f, "receive {local} {remote} {bytes}"),
            SocketEvent::Windows { congestion, receive } => write!(f, "ack {local} {remote} {congestion} {receive}"),
            SocketEvent::Phase(phase) => {
                write!(f, "phase {local} {remote} {}", KernelPhase::ALL[*phase as usize].1)
            }
            SocketEvent::Again => write!(f, "again {local} {remote}"),
        }
    }
}

impl KernelEvent {
    /// The event that a line says; nothing if it says none.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let verb = words.next()?;
        let [local, remote] = [words.next()?.parse().ok()?, words.next()?.parse().ok()?];
        let mut number = || words.next()?.parse::<u64>().ok();
        let news = match verb {
            "open" => SocketEvent::Open,
            "send" => SocketEvent::Sent(number()?),
            "receive" => SocketEvent::Received(number()?),
            "ack" => SocketEvent::Windows { congestion: number()?, receive: number()? },
            "phase" => {
                let name = words.next()?;
                SocketEvent::Phase(KernelPhase::ALL.iter().find(|(_, known)| *known == name)?.0)
            }
            "again" => SocketEvent::Again,
            _ => return None,
        };
        Some(Self { local, remote, news })
    }
}

/// A line of a recording.
#[derive(Clone, Copy, Debug)]
enum EventLine {
    Event(KernelEvent),
    Missed(u64),
}

impl EventLine {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(bytes).ok()?;
        match line.strip_prefix("missed ") {
            Some(count) => count.parse().ok().map(Self::Missed),
            None => KernelEvent::parse(line).map(Self::Event),
        }
    }
}

/// Events of one end from one opening of its ports to the next.
#[derive(Debug, Default)]
struct EndLife {
    from: u64,
    /// Recorded from its beginning, and nothing missed since: bytes of calls are positions of the stream.
    is_whole: bool,
    sends: Vec<CallReturn>,
    reads: Vec<CallReturn>,
    windows: Vec<(u64, u64, u64)>,
    losses: Vec<u64>,
}

/// Time at which the application handed data over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandOver {
    /// The data came with a call that had returned by then, or returned right behind.
    At(u64),
    /// The data was part of a call that returned only later: the application waited to hand over more.
    InCall,
}

/// A call that returns this soon after the segment left is the one that sent it.
const RETURN: u64 = 500_000;

impl EndLife {
    fn note(&mut self, at: u64, news: SocketEvent) {
        let add = |calls: &mut Vec<CallReturn>, bytes: u64| {
            let before = calls.last().map_or(0, |(_, total)| *total);
            calls.push((at, before.saturating_add(bytes)));
        };
        match news {
            SocketEvent::Sent(bytes) => add(&mut self.sends, bytes),
            SocketEvent::Received(bytes) => add(&mut self.reads, bytes),
            SocketEvent::Windows { congestion, receive } => self.windows.push((at, congestion, receive)),
            SocketEvent::Phase(KernelPhase::Loss) => self.losses.push(at),
            SocketEvent::Open | SocketEvent::Phase(_) | SocketEvent::Again => {}
        }
    }
}

/// Events of one end of a connection, and of those before and after it with the same ports.
#[derive(Debug, Default)]
pub(crate) struct EndEvidence {
    lives: Vec<EndLife>,
}

impl EndEvidence {
    /// A client hears of its opening when the answer to its SYN comes.
    fn life(&self, at: u64) -> Option<&EndLife> {
        let after = self.lives.partition_point(|life| life.from <= at.saturating_add(RETURN));
        self.lives.get(after.checked_sub(1)?)
    }

    fn note(&mut self, at: u64, news: SocketEvent) {
        if news == SocketEvent::Open || self.lives.is_empty() {
            self.lives.push(EndLife { from: at, is_whole: news == SocketEvent::Open, ..EndLife::default() });
        }
        if let Some(life) = self.lives.last_mut() {
            life.note(at, news);
        }
    }

    /// Time at which the byte with this number, counted from the first, was handed over; it is in a segment that left at
    /// `at`.
    pub(crate) fn handed_over(&self, byte: u64, at: u64) -> Option<HandOver> {
        let life = self.life(at).filter(|life| life.is_whole)?;
        let place = life.sends.partition_point(|(_, total)| *total <= byte);
        let (returned, _) = *life.sends.get(place)?;
        Some(if returned <= at.saturating_add(RETURN) { HandOver::At(returned.min(at)) } else { HandOver::InCall })
    }

    /// Bytes read by then.
    pub(crate) fn read_by(&self, at: u64) -> Option<u64> {
        let life = self.life(at).filter(|life| life.is_whole)?;
        let place = life.reads.partition_point(|(returned, _)| *returned <= at);
        Some(place.checked_sub(1).map_or(0, |place| life.reads[place].1))
    }

    /// The windows just before the kernel looked at what the capture has at `at`: in segments, and in bytes.
    pub(crate) fn windows_at(&self, at: u64) -> Option<(u64, u64)> {
        let life = self.life(at)?;
        let place = life.windows.partition_point(|(seen, ..)| *seen < at);
        let is_soon = |seen: u64| seen <= at.saturating_add(RETURN);
        let here = life.windows.get(place).filter(|(seen, ..)| is_soon(*seen));
        here.or_else(|| life.windows.get(place.checked_sub(1)?)).map(|(_, congestion, receive)| (*congestion, *receive))
    }

    /// True if the retransmission timer went off just before something left at `at`.
    pub(crate) fn timed_out(&self, at: u64) -> bool {
        let Some(life) = self.life(at) else { return false };
        let place = life.losses.partition_point(|when| *when <= at.saturating_add(RETURN));
        place.checked_sub(1).is_some_and(|place| life.losses[place].saturating_add(4 * RETURN) >= at)
    }
}

/// All that a recording says, by connection.
#[derive(Debug, Default)]
pub struct KernelEvidence {
    ends: HashMap<(SocketAddr, SocketAddr), Arc<EndEvidence>>,
    events: u64,
    missed: u64,
}

impl KernelEvidence {
    /// Reads the events of a recording; its frames are passed over. Processors write theirs one after the other, so that only
    /// their times show the order.
    pub fn read(source: impl Read) -> Result<Self, CaptureError> {
        let mut reader = CaptureReader::new(source)?;
        let mut lines: Vec<(u64, EventLine)> = Vec::new();
        loop {
            match reader.next() {
                Ok(Some(record)) if record.link_number == u32::from(EVENT_LINK) => {
                    lines.extend(EventLine::parse(record.bytes).map(|line| (record.at.0.min(LATEST), line)));
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(CaptureError::Truncated { packets, .. }) if packets > 0 => break,
                Err(error) => return Err(error),
            }
        }
        lines.sort_by_key(|(at, _)| *at);
        Ok(Self::of_lines(&lines))
    }

    fn of_lines(lines: &[(u64, EventLine)]) -> Self {
        let mut ends: HashMap<(SocketAddr, SocketAddr), EndEvidence> = HashMap::new();
        let (mut events, mut missed) = (0, 0);
        for (at, line) in lines {
            match line {
                EventLine::Event(event) => {
                    ends.entry((event.local, event.remote)).or_default().note(*at, event.news);
                    events += 1;
                }
                EventLine::Missed(count) => {
                    missed += count;
                    ends.values_mut().flat_map(|end| &mut end.lives).for_each(|life| life.is_whole = false);
                }
            }
        }
        let ends = ends.into_iter().map(|(pair, end)| (pair, Arc::new(end))).collect();
        Self { ends, events, missed }
    }

    pub fn events(&self) -> u64 {
        self.events
    }

    /// Events that the recorder had no room for.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    pub(crate) fn of(&self, local: SocketAddr, remote: SocketAddr) -> Option<Arc<EndEvidence>> {
        self.ends.get(&(local, remote)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(news: SocketEvent) -> KernelEvent {
        KernelEvent { local: "10.0.0.1:40000".parse().unwrap(), remote: "[2001:db8::1]:80".parse().unwrap(), news }
    }

    #[test]
    fn an_event_is_the_line_that_says_it() {
        let windows = SocketEvent::Windows { congestion: 10, receive: 65_535 };
        let all = [SocketEvent::Open, SocketEvent::Sent(1), SocketEvent::Received(0), windows, SocketEvent::Again];
        let phases = (0..5).map(|number| SocketEvent::Phase(KernelPhase::numbered(number).unwrap()));
        for news in all.into_iter().chain(phases) {
            let event = event(news);
            assert_eq!(KernelEvent::parse(&event.to_string()), Some(event));
        }
        assert_eq!(KernelPhase::numbered(5), None);
        for line in ["", "send 10.0.0.1:1 10.0.0.2:2", "send 10.0.0.1 10.0.0.2:2 5", "fly 10.0.0.1:1 10.0.0.2:2 5"] {
            assert_eq!(KernelEvent::parse(line), None, "{line}");
        }
    }

    #[test]
    fn bytes_are_handed_over_by_the_call_that_covers_them() {
        let mut end = EndEvidence::default();
        end.note(1_000, SocketEvent::Open);
        end.note(2_000_000, SocketEvent::Sent(100));
        end.note(9_000_000, SocketEvent::Sent(50));
        assert_eq!(end.handed_over(99, 3_000_000), Some(HandOver::At(2_000_000)));
        assert_eq!(end.handed_over(100, 8_900_000), Some(HandOver::At(8_900_000)), "its call returns right behind");
        assert_eq!(end.handed_over(100, 3_000_000), Some(HandOver::InCall));
        assert_eq!(end.handed_over(150, 10_000_000), None, "no call has been seen for it");
    }

    #[test]
    fn ports_that_are_used_again_begin_anew() {
        let mut end = EndEvidence::default();
        end.note(1_000, SocketEvent::Sent(7));
        assert_eq!(end.handed_over(0, 2_000), None, "recorded from its middle on");
        end.note(5_000_000, SocketEvent::Open);
        end.note(6_000_000, SocketEvent::Sent(7));
        end.note(6_500_000, SocketEvent::Received(3));
        assert_eq!(end.handed_over(6, 6_000_000), Some(HandOver::At(6_000_000)));
        assert_eq!((end.read_by(6_400_000), end.read_by(6_500_000)), (Some(0), Some(3)));
    }

    #[test]
    fn no_time_and_no_number_of_bytes_is_too_large() {
        let mut end = EndEvidence::default();
        end.note(u64::MAX - 1, SocketEvent::Open);
        end.note(u64::MAX - 1, SocketEvent::Sent(u64::MAX));
        end.note(u64::MAX, SocketEvent::Sent(7));
        end.note(u64::MAX, SocketEvent::Received(u64::MAX));
        end.note(u64::MAX, SocketEvent::Windows { congestion: 1, receive: 2 });
        end.note(u64::MAX, SocketEvent::Phase(KernelPhase::Loss));
        assert_eq!(end.handed_over(5, u64::MAX), Some(HandOver::At(u64::MAX - 1)));
        assert_eq!((end.read_by(u64::MAX), end.windows_at(u64::MAX)), (Some(u64::MAX), Some((1, 2))));
        assert!(end.timed_out(u64::MAX));
    }

    #[test]
    fn windows_are_those_before_the_arrival() {
        let mut end = EndEvidence::default();
        end.note(1_000_000, SocketEvent::Windows { congestion: 10, receive: 5 });
        end.note(9_000_000, SocketEvent::Windows { congestion: 20, receive: 6 });
        assert_eq!(end.windows_at(8_950_000), Some((20, 6)), "the kernel looks a little later than the capture");
        assert_eq!(end.windows_at(5_000_000), Some((10, 5)));
        assert_eq!(end.windows_at(400_000), None);
    }
}
