//! Log lines written by a thread of their own: standard error may be a pipe that nobody reads, and the service manager's
//! socket may be full. Lines that find no room are dropped and counted.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

/// Lines that may wait to be written.
const WAITING: usize = 64;

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

    /// Queues a line for the log; never waits.
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
    use super::*;

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
