//! Reports of a link about events, made without letting the wire or a slow reader get in its way.
//!
//! Any host that can send frames to a link can cause reports, so each kind is limited ([`crate::limiter`]).
//!
//! Reports are written by a thread of their own ([`LogWriter`]): standard error may be a pipe that nobody reads, and the
//! service manager's socket may be full. Reports that find no room are dropped and counted.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use guard::EndpointEvent;

use crate::datapath::{FrameFault, LinkEvent};
use crate::limiter::ReportTopic;

/// Reports that may wait to be written.
const WAITING: usize = 64;

/// Topic of a report. Each is limited on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogTopic {
    Stranger,
    Forged,
    Replayed,
    Unchecked,
    KeyMissing,
    Activated,
    Deactivated,
    PeerLost,
    Refused,
    Level,
}

impl LogTopic {
    pub(crate) fn of(news: &LinkEvent) -> Self {
        match news {
            LinkEvent::Trouble(FrameFault::Stranger(_), _) => Self::Stranger,
            LinkEvent::Trouble(FrameFault::Forged, _) => Self::Forged,
            LinkEvent::Trouble(FrameFault::Replayed, _) => Self::Replayed,
            LinkEvent::Trouble(FrameFault::Unchecked, _) => Self::Unchecked,
            LinkEvent::Trouble(FrameFault::KeyMissing, _) => Self::KeyMissing,
            LinkEvent::Endpoint(EndpointEvent::Activated) => Self::Activated,
            LinkEvent::Endpoint(EndpointEvent::Deactivated) => Self::Deactivated,
            LinkEvent::Endpoint(EndpointEvent::PeerLost) => Self::PeerLost,
            LinkEvent::Endpoint(EndpointEvent::Refused(_)) => Self::Refused,
            LinkEvent::Endpoint(EndpointEvent::Level(_)) => Self::Level,
        }
    }

    fn is_life_cycle(self) -> bool {
        matches!(self, Self::Activated | Self::Deactivated | Self::PeerLost | Self::Refused | Self::Level)
    }
}

impl ReportTopic for LogTopic {
    fn index(self) -> usize {
        self as usize
    }

    fn state(self) -> Option<usize> {
        self.is_life_cycle().then_some(0)
    }

    fn unit(self) -> &'static str {
        if self.is_life_cycle() { "times" } else { "frames" }
    }
}

/// A thread that writes reports.
#[derive(Debug)]
pub struct LogWriter {
    lines: SyncSender<String>,
    ended: Receiver<()>,
    /// Lines that found no room since the last that did.
    dropped: u64,
}

impl LogWriter {
    /// `write` may take as long as it likes, even for ever.
    pub fn start(mut write: impl FnMut(&str) + Send + 'static) -> io::Result<Self> {
        let (lines, waiting) = mpsc::sync_channel::<String>(WAITING);
        let (ends, ended) = mpsc::channel();
        // Not joined: nobody can end a write that hangs.
        thread::Builder::new().name("teller".to_owned()).spawn(move || {
            waiting.iter().for_each(|line| write(&line));
            drop(ends);
        })?;
        Ok(Self { lines, ended, dropped: 0 })
    }

    /// Never waits.
    pub fn tell(&mut self, line: &str) {
        if self.dropped > 0 {
            let remark = format!("{} reports were dropped here, because nobody read them", self.dropped);
            if self.lines.try_send(remark).is_err() {
                self.dropped += 1;
                return;
            }
            self.dropped = 0;
        }
        self.dropped += u64::from(self.lines.try_send(line.to_owned()).is_err());
    }

    /// Lets what waits be written, for so long at most. True if all of it was.
    pub fn finish(self, most: Duration) -> bool {
        let Self { lines, ended, .. } = self;
        drop(lines);
        ended.recv_timeout(most) == Err(RecvTimeoutError::Disconnected)
    }
}

#[cfg(test)]
mod tests {
    use units::{Span, Time};

    use super::*;
    use crate::frame::Mac;
    use crate::limiter::LogLimiter;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn thousands_of_strangers_frames_make_a_line_a_minute_with_their_number() {
        let mut limiter = LogLimiter::default();
        let mut lines = Vec::new();
        // Ten minutes, an address of its own each millisecond.
        for ms in 0..600_000_u64 {
            let from = Mac([2, 0, 0, 0, (ms >> 8) as u8, ms as u8]);
            lines.extend(limiter.admit(at(ms), LogTopic::Stranger, 1, &from.to_string()));
            lines.extend(limiter.due(at(ms)));
        }
        assert_eq!(lines.len(), 10, "{lines:?}");
        assert_eq!(lines[0], "02:00:00:00:00:00");
        assert!(lines[1].ends_with("(60000 frames since the last report)"), "{}", lines[1]);
        // What came last is reported too, though nothing follows it.
        assert_eq!(limiter.due(at(600_000)).map(|line| line.contains("59999 frames")), Some(true));
        assert_eq!(limiter.due(at(900_000)), None);
    }

    #[test]
    fn one_kind_of_trouble_does_not_hide_another() {
        let mut limiter = LogLimiter::default();
        assert!(limiter.admit(at(0), LogTopic::Stranger, 9, "stranger").is_some());
        assert!(limiter.admit(at(1), LogTopic::Stranger, 9, "stranger").is_none());
        assert_eq!(limiter.admit(at(1), LogTopic::Forged, 9, "forged").as_deref(), Some("forged"));
    }

    #[test]
    fn of_a_link_driven_up_and_down_the_first_events_and_the_last_state_are_reported() {
        let mut limiter = LogLimiter::default();
        let (mut lines, mut ms) = (Vec::new(), 0);
        for _ in 0..1_000 {
            for (topic, line) in [(LogTopic::PeerLost, "lost"), (LogTopic::Activated, "protected")] {
                ms += 10;
                lines.extend(limiter.admit(at(ms), topic, 1, line));
                lines.extend(limiter.due(at(ms)));
            }
        }
        assert_eq!(lines, ["lost", "protected", "lost", "protected", "lost", "protected"]);
        let last: Vec<String> = (ms..ms + 120_000).step_by(1_000).filter_map(|ms| limiter.due(at(ms))).collect();
        assert_eq!(last, ["protected (997 times since the last report)"]);
    }

    #[test]
    fn a_reader_that_blocks_for_ever_does_not_hold_up_who_tells() {
        let (_never, forever) = mpsc::channel::<()>();
        let (begins, begun) = mpsc::channel();
        let mut teller = LogWriter::start(move |_| {
            let _ = begins.send(());
            let _ = forever.recv();
        })
        .unwrap();
        teller.tell("this one is being written from now on");
        begun.recv().unwrap();
        for number in 0..10_000 {
            teller.tell(&number.to_string());
        }
        assert_eq!(teller.dropped, 10_000 - WAITING as u64);
        assert!(!teller.finish(Duration::from_millis(10)));
    }

    #[test]
    fn what_was_dropped_is_counted_and_the_rest_is_written_in_order() {
        let (heard, hears) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let mut teller = LogWriter::start(move |line| {
            let _ = wait.recv();
            let _ = heard.send(line.to_owned());
        })
        .unwrap();
        (0..WAITING + 10).for_each(|number| teller.tell(&number.to_string()));
        assert!((9..=10).contains(&teller.dropped), "{}", teller.dropped);
        drop(go);
        assert_eq!(hears.recv().as_deref(), Ok("0"));
        let dropped = teller.dropped;
        // Room comes once the thread has run.
        while teller.dropped > 0 {
            teller.tell("last");
        }
        assert!(teller.finish(Duration::from_secs(60)));
        let lines: Vec<String> = hears.iter().collect();
        assert_eq!(lines[0], "1");
        assert_eq!(lines[lines.len() - 1], "last");
        let remark = &lines[lines.len() - 2];
        let said: u64 = remark.split(' ').next().and_then(|number| number.parse().ok()).unwrap();
        assert!(said >= dropped && remark.contains("were dropped"), "{remark}");
    }
}
