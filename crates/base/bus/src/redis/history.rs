//! The history: where an end is in it, what comes next, and what is missing.

use std::thread;
use std::time::{Duration, Instant};

use redis::{cmd, pipe};

use super::RedisBus;
use super::answer::{self, EntryNumber, HistoryEntry};
use crate::message::Message;
use crate::time::instant;
use crate::{Bus, BusError};

/// Entries asked for at a time.
const ENTRIES: usize = 1_000;
/// The longest that Redis is asked to wait for something new.
const LONGEST_BLOCK: Duration = Duration::from_secs(60);
/// The wait after a failure, doubled by each further one up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Last entry of the history that was read, and its number.
#[derive(Clone, Debug)]
pub(super) struct HistoryPosition {
    id: String,
    number: EntryNumber,
}

/// Time at which a subscriber may try again after a failure. A caller that calls `receive` in a loop would otherwise spin.
#[derive(Debug, Default)]
pub(super) struct RetryTimer {
    failures: u32,
    next: Option<(Instant, BusError)>,
}

impl RetryTimer {
    /// Waits for it up to `patience`, and returns what is left of that; the last error again if it has not come.
    pub(crate) fn wait(&mut self, patience: Duration) -> Result<Duration, BusError> {
        let Some((at, error)) = &self.next else { return Ok(patience) };
        let wait = at.saturating_duration_since(instant());
        thread::sleep(wait.min(patience));
        if wait > patience { Err(error.clone()) } else { Ok(patience.saturating_sub(wait)) }
    }

    pub(crate) fn note<T>(&mut self, result: &Result<T, BusError>) {
        match result {
            Ok(_) => *self = Self::default(),
            Err(error) => {
                let wait = (FIRST_WAIT * 2u32.pow(self.failures.min(10))).min(LONGEST_WAIT);
                self.failures = self.failures.saturating_add(1);
                self.next = Some((instant() + wait, error.clone()));
            }
        }
    }
}

impl RedisBus {
    /// The end of the history.
    pub(super) fn end_of_history(&mut self) -> Result<HistoryPosition, BusError> {
        // In this order: a message published in between would otherwise be taken for one that was read.
        let told = self.last_number()?;
        let events = self.name("events");
        let doing = format!("reading `{events}`");
        let mut last = cmd("XREVRANGE");
        last.arg(&events).arg("+").arg("-").arg("COUNT").arg(1);
        let answer = self.line.ask(&doing, &last, Duration::ZERO)?;
        let Some(entries) = answer::entries(&answer) else { return Err(self.line.nonsense(&doing, &answer)) };
        Ok(match entries.into_iter().next() {
            Some(HistoryEntry { id, number, .. }) => HistoryPosition { id, number: number.unwrap_or(told) },
            None => HistoryPosition { id: "0-0".to_owned(), number: told },
        })
    }

    fn last_number(&mut self) -> Result<EntryNumber, BusError> {
        let name = self.name("last");
        let mut question = pipe();
        // No more of it than a number of ours has.
        question.cmd("GETRANGE").arg(&name).arg(0).arg(100);
        let answer = self.line.ask_all(&format!("reading `{name}`"), &question)?.into_iter().next().flatten();
        if answer.as_ref().and_then(answer::bytes) == Some(b"") {
            return Ok(EntryNumber::default());
        }
        // Not a number, or not even a text: as if it were not there. The next message begins a new history.
        let number = answer.as_ref().and_then(answer::bytes).and_then(EntryNumber::parse);
        if number.is_none() {
            self.foreign.add(format!("`{name}` is not a number of ours; the next message begins a new history"));
        }
        Ok(number.unwrap_or_default())
    }

    /// Entries after a place in the history; true if that is all of them. If many entries are too long for one answer, fewer
    /// are asked for.
    fn after(&mut self, place: &HistoryPosition, patience: Duration) -> Result<(Vec<HistoryEntry>, bool), BusError> {
        let mut count = ENTRIES;
        loop {
            match self.some_after(place, count, patience) {
                Err(_) if self.line.was_too_long() && count > 1 => count /= 10,
                result => {
                    let entries = result?;
                    let is_all = entries.len() < count;
                    return Ok((entries, is_all));
                }
            }
        }
    }

    fn some_after(
        &mut self,
        place: &HistoryPosition,
        count: usize,
        patience: Duration,
    ) -> Result<Vec<HistoryEntry>, BusError> {
        let events = self.name("events");
        let doing = format!("reading `{events}`");
        let mut read = cmd("XREAD");
        read.arg("COUNT").arg(count);
        // Zero would mean for ever.
        let block = patience.min(LONGEST_BLOCK);
        if block.as_millis() > 0 {
            read.arg("BLOCK").arg(block.as_millis().to_string());
        }
        read.arg("STREAMS").arg(events).arg(&place.id);
        let answer = self.line.ask(&doing, &read, block)?;
        answer::read(&answer).ok_or_else(|| self.line.nonsense(&doing, &answer))
    }

    pub(super) fn receive_now(&mut self, patience: Duration) -> Result<Vec<Message>, BusError> {
        let Some(place) = self.place.clone() else { return self.catch_up() };
        let patience = if self.keys_due { Duration::ZERO } else { patience };
        let (entries, at_end) = match self.after(&place, patience) {
            Err(_) if self.line.was_too_long() => return self.skip_history(),
            result => result?,
        };
        if entries.is_empty() && !self.keys_due {
            return self.look_around(&place);
        }
        let mut messages = self.news(place, entries);
        if self.keys_due && at_end {
            match self.all("") {
                Ok(latest) => {
                    self.keys_due = false;
                    messages.extend(latest);
                }
                // An error would lose the messages taken from the history; the keys can wait.
                Err(error) if messages.is_empty() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(messages)
    }

    /// An entry that is longer than any of ours must not silence those behind it.
    fn skip_history(&mut self) -> Result<Vec<Message>, BusError> {
        let events = self.name("events");
        self.gaps.add(format!("`{events}` has an entry that is too long to be ours; starting over from the keys"));
        self.catch_up()
    }

    /// Takes entries in, and notices where some are missing.
    fn news(&mut self, mut place: HistoryPosition, entries: Vec<HistoryEntry>) -> Vec<Message> {
        let mut messages = Vec::with_capacity(entries.len());
        for HistoryEntry { id, number, message } in entries {
            if let Some(number) = number {
                if let Some(gap) = gap(place.number, number) {
                    self.gaps.add(format!("`{}`: {gap}; starting over from the keys", self.name("events")));
                    self.keys_due = true;
                }
                place.number = number;
            }
            match message {
                Ok(message) if number.is_some() => messages.push(message),
                Ok(_) => self.foreign.add(format!("`{}` entry {id} has no field `number`", self.name("events"))),
                Err(why) => self.foreign.add(format!("`{}` entry {id} {why}", self.name("events"))),
            }
            place.id = id;
        }
        self.place = Some(place);
        messages
    }

    /// Compares the number of the last entry with ours after a read without news. If they differ, entries were published that
    /// we cannot see, and the history starts over from the keys.
    fn look_around(&mut self, place: &HistoryPosition) -> Result<Vec<Message>, BusError> {
        let last = self.last_number()?;
        if last == place.number {
            return Ok(Vec::new());
        }
        let (entries, _) = self.after(place, Duration::ZERO)?;
        if !entries.is_empty() {
            return Ok(self.news(place.clone(), entries));
        }
        let (events, number) = (self.name("events"), place.number);
        self.gaps
            .add(format!("`{events}`: was at {number}, is at {last} without its entries; starting over from the keys"));
        self.catch_up()
    }
}

/// Description of what is missing between two entries that follow each other; `None` if nothing is.
fn gap(last: EntryNumber, next: EntryNumber) -> Option<String> {
    let new = last == EntryNumber::default();
    if last.history != next.history && !new {
        return Some(format!("after {last} comes {next}: Redis lost its data"));
    }
    match next.count.checked_sub(last.count) {
        Some(1) => None,
        Some(more @ 2..) => Some(format!("{} entries are missing after {last}", more - 1)),
        Some(0) | None => Some(format!("after {last} comes {next}: Redis lost the last of its data")),
    }
}
