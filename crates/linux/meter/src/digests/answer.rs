//! The collector's answer to a meter: how many reports it has taken, how many it has refused, and why.
//!
//! ```text
//!   collector:64  life:64  taken:64  refused:64  reason …
//! ```
//!
//! Each answer has the counts of all reports so far, so the latest is enough. With a key, an answer without its tag (`frame`)
//! is not believed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bus::key::nonce;

/// Meters that are remembered; the one that was silent longest is forgotten first.
const MOST_LIVES: usize = 4_096;
/// Collectors that a meter distinguishes; of the one that came first only the sums are kept then.
const MOST_COLLECTORS: usize = 16;
/// Bytes of a reason.
const LONGEST_REASON: usize = 300;
const HEAD: usize = 32;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReportAnswer {
    /// The run of the collector.
    pub collector: u64,
    /// Run of the meter that is answered.
    pub life: u64,
    pub taken: u64,
    pub refused: u64,
    /// Reason why the latest of those was refused.
    pub reason: String,
}

impl ReportAnswer {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [self.collector, self.life, self.taken, self.refused] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.reason.as_bytes());
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map(|word| u64::from_le_bytes(*word));
        let reason = bytes.get(HEAD..).filter(|reason| reason.len() <= LONGEST_REASON)?;
        Some(Self {
            collector: word(0)?,
            life: word(8)?,
            taken: word(16)?,
            refused: word(24)?,
            reason: printable(&String::from_utf8_lossy(reason)),
        })
    }

    /// The longest that it can be on a connection, without length and tag.
    pub(crate) const LONGEST: usize = HEAD + LONGEST_REASON;
}

/// An answer as the meter received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReceivedAnswer {
    Sealed(ReportAnswer),
    /// We have a key, and it has not, or another.
    Unsealed,
    /// No answer: the collector asks something.
    Question {
        number: u32,
        body: Vec<u8>,
    },
    /// The collector is alive, and may know of others.
    Word(Vec<u8>),
    /// No answer: a line for people about the way to collectors.
    Note(String),
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn shortened(text: &str) -> String {
    let mut end = text.len().min(LONGEST_REASON);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// The collector's books: counts of the reports of each meter.
#[derive(Debug)]
pub(crate) struct ReportAnswers {
    collector: u64,
    books: Mutex<AnswerBooks>,
}

#[derive(Debug, Default)]
struct AnswerBooks {
    /// Answers by incarnation, each with the number of the latest report.
    lives: BTreeMap<u64, (ReportAnswer, u64)>,
    count: u64,
}

impl ReportAnswers {
    pub(crate) fn new() -> Self {
        let number = |bytes: [u8; 16]| u64::from_le_bytes(*bytes.first_chunk().unwrap_or(&[0; 8]));
        Self { collector: nonce().map_or(0, number), books: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, AnswerBooks> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A report was taken, or refused for a reason.
    pub(crate) fn note(&self, life: u64, refusal: Option<&str>) {
        let books = &mut *self.lock();
        books.count += 1;
        if books.lives.len() >= MOST_LIVES
            && !books.lives.contains_key(&life)
            && let Some(oldest) = books.lives.iter().min_by_key(|(_, (_, latest))| *latest).map(|(life, _)| *life)
        {
            books.lives.remove(&oldest);
        }
        let new = || ReportAnswer { collector: self.collector, life, ..ReportAnswer::default() };
        let (answer, latest) = books.lives.entry(life).or_insert_with(|| (new(), 0));
        *latest = books.count;
        match refusal {
            None => answer.taken += 1,
            Some(why) => (answer.refused, answer.reason) = (answer.refused + 1, shortened(why)),
        }
    }

    pub(crate) fn of(&self, life: u64) -> Option<ReportAnswer> {
        self.lock().lives.get(&life).map(|(answer, _)| answer.clone())
    }
}

/// The meter's books: what collectors have said of its reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct CollectorVerdicts {
    /// The latest of each collector, in the order in which they came: one that was started again begins at zero.
    collectors: VecDeque<(u64, (u64, u64))>,
    /// Sums of collectors that are no longer distinguished.
    former: (u64, u64),
}

impl CollectorVerdicts {
    pub(crate) fn hear(&mut self, answer: &ReportAnswer) {
        let latest = (answer.taken, answer.refused);
        if let Some((_, known)) = self.collectors.iter_mut().find(|(collector, _)| *collector == answer.collector) {
            *known = latest;
            return;
        }
        if self.collectors.len() >= MOST_COLLECTORS
            && let Some((_, (taken, refused))) = self.collectors.pop_front()
        {
            self.former = (self.former.0.saturating_add(taken), self.former.1.saturating_add(refused));
        }
        self.collectors.push_back((answer.collector, latest));
    }

    /// Reports taken and refused, summed over the collectors; each at most `sent`.
    pub(crate) fn totals(&self, sent: u64) -> (u64, u64) {
        let all = || self.collectors.iter().map(|(_, latest)| latest).chain([&self.former]);
        let sum = |of: fn(&(u64, u64)) -> u64| all().map(of).fold(0, u64::saturating_add);
        (sum(|(taken, _)| *taken).min(sent), sum(|(_, refused)| *refused).min(sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(taken: u64, refused: u64, reason: &str) -> ReportAnswer {
        ReportAnswer { collector: 3, life: 7, taken, refused, reason: reason.to_owned() }
    }

    #[test]
    fn an_answer_is_read_as_it_was_written_and_never_prints_what_moves_a_cursor() {
        let said = answer(5, 2, "its clock is 90 s away: set both by NTP");
        assert_eq!(ReportAnswer::parse(&said.to_bytes()), Some(said.clone()));
        let hostile = ReportAnswer::parse(&answer(0, 1, "\x1b[2Jgone\n").to_bytes()).unwrap();
        assert_eq!(hostile.reason, " [2Jgone ");
        for bytes in [&[][..], &[0; 31], &[b'x'; HEAD + LONGEST_REASON + 1]] {
            assert_eq!(ReportAnswer::parse(bytes), None);
        }
    }

    #[test]
    fn the_books_are_bounded() {
        let books = ReportAnswers::new();
        books.note(7, None);
        books.note(7, Some("no seal"));
        let (taken, refused) = books.of(7).map(|answer| (answer.taken, answer.refused)).unwrap();
        assert_eq!((taken, refused), (1, 1));
        (0..2 * MOST_LIVES as u64).for_each(|life| books.note(100 + life, None));
        let held = books.lock().lives.len();
        assert_eq!((held, books.of(7)), (MOST_LIVES, None));
    }

    #[test]
    fn a_collector_that_was_started_again_adds_to_what_it_said_before() {
        let mut verdicts = CollectorVerdicts::default();
        verdicts.hear(&answer(100, 0, ""));
        verdicts.hear(&ReportAnswer { collector: 4, ..answer(20, 3, "") });
        verdicts.hear(&ReportAnswer { collector: 4, ..answer(30, 3, "") });
        assert_eq!((verdicts.totals(1_000), verdicts.totals(110)), ((130, 3), (110, 3)));
    }

    #[test]
    fn every_collector_counts_however_often_it_was_started_again() {
        let mut verdicts = CollectorVerdicts::default();
        let starts = 3 * MOST_COLLECTORS as u64;
        for collector in 0..starts {
            verdicts.hear(&ReportAnswer { collector, ..answer(5, 0, "") });
            verdicts.hear(&ReportAnswer { collector, ..answer(10, 1, "") });
        }
        assert_eq!(verdicts.totals(u64::MAX), (10 * starts, starts));
        assert_eq!(verdicts.collectors.len(), MOST_COLLECTORS);
    }
}
