//! The collector's answer to a meter: how many reports it has taken, how many it has refused, and why.
//!
//! ```text
//!   over TCP, to the meter (`frame`)
//!                    collector:64  life:64  taken:64  refused:64  reason …
//!   over Redis       PREFIX:digests:LIFE = `collector taken refused tag reason`, for a minute
//! ```
//!
//! Each answer has the counts of all reports so far, so the latest is enough. With a key, an answer without its tag is not
//! believed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(feature = "redis")]
use bus::key::OrderKey;
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

    #[cfg(feature = "redis")]
    fn tag(&self, key: &OrderKey) -> u64 {
        key.tag("radar answer entry", &[&self.to_bytes()])
    }

    /// The form in which it is kept in Redis.
    #[cfg(feature = "redis")]
    pub(crate) fn to_text(&self, key: Option<&OrderKey>) -> String {
        let tag = key.map_or("-".to_owned(), |key| self.tag(key).to_string());
        format!("{} {} {} {tag} {}", self.collector, self.taken, self.refused, self.reason)
    }

    /// `None` if it is none, or `Unsealed` if there is a key and the answer does not have its tag.
    #[cfg(feature = "redis")]
    pub(crate) fn from_text(life: u64, text: &str, key: Option<&OrderKey>) -> Option<ReceivedAnswer> {
        let mut parts = text.splitn(5, ' ');
        let mut number = || parts.next()?.parse().ok();
        let (collector, taken, refused) = (number()?, number()?, number()?);
        let (tag, reason) = (parts.next()?, parts.next()?);
        let answer = Self { collector, life, taken, refused, reason: shortened(reason) };
        Some(match key {
            Some(key) if tag.parse() != Ok(answer.tag(key)) => ReceivedAnswer::Unsealed,
            _ => ReceivedAnswer::Sealed(Self { reason: printable(&answer.reason), ..answer }),
        })
    }
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
    changed: BTreeSet<u64>,
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
            books.changed.remove(&oldest);
        }
        let new = || ReportAnswer { collector: self.collector, life, ..ReportAnswer::default() };
        let (answer, latest) = books.lives.entry(life).or_insert_with(|| (new(), 0));
        *latest = books.count;
        match refusal {
            None => answer.taken += 1,
            Some(why) => (answer.refused, answer.reason) = (answer.refused + 1, shortened(why)),
        }
        books.changed.insert(life);
    }

    /// A report without our seal: of the meter itself, unless sealed ones have come of it.
    #[cfg(feature = "redis")]
    pub(crate) fn note_forged(&self, life: u64, why: &str) {
        let is_known = self.lock().lives.get(&life).is_some_and(|(answer, _)| answer.taken > 0);
        if !is_known {
            self.note(life, Some(why));
        }
    }

    pub(crate) fn of(&self, life: u64) -> Option<ReportAnswer> {
        self.lock().lives.get(&life).map(|(answer, _)| answer.clone())
    }

    /// Some of those that have changed since they were last asked for.
    #[cfg(feature = "redis")]
    pub(crate) fn changed(&self, most: usize) -> Vec<ReportAnswer> {
        let books = &mut *self.lock();
        let lives: Vec<u64> = books.changed.iter().take(most).copied().collect();
        for life in &lives {
            books.changed.remove(life);
        }
        lives.iter().filter_map(|life| books.lives.get(life)).map(|(answer, _)| answer.clone()).collect()
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
        assert_eq!(ReportAnswer::from_text(7, &said.to_text(None), None), Some(ReceivedAnswer::Sealed(said.clone())));
        let hostile = ReportAnswer::parse(&answer(0, 1, "\x1b[2Jgone\n").to_bytes()).unwrap();
        assert_eq!(hostile.reason, " [2Jgone ");
        for bytes in [&[][..], &[0; 31], &[b'x'; HEAD + LONGEST_REASON + 1]] {
            assert_eq!(ReportAnswer::parse(bytes), None);
        }
        for text in ["", "1 2 3", "a b c d e", "1 2 3 -"] {
            assert_eq!(ReportAnswer::from_text(7, text, None), None, "{text}");
        }
    }

    #[test]
    fn with_a_key_an_answer_without_its_tag_is_not_believed() {
        let (key, other) = (OrderKey::new([7; 16]), OrderKey::new([8; 16]));
        let said = answer(5, 0, "");
        let heard = |text: &str| ReportAnswer::from_text(7, text, Some(&key));
        assert_eq!(heard(&said.to_text(Some(&key))), Some(ReceivedAnswer::Sealed(said.clone())));
        for text in [said.to_text(Some(&other)), said.to_text(None), said.to_text(Some(&key)).replacen('5', "6", 1)] {
            assert_eq!(heard(&text), Some(ReceivedAnswer::Unsealed), "{text}");
        }
        let of_another = ReportAnswer::from_text(8, &said.to_text(Some(&key)), Some(&key));
        assert_eq!(of_another, Some(ReceivedAnswer::Unsealed));
    }

    #[test]
    fn the_books_are_bounded_and_forged_reports_do_not_spoil_those_of_a_meter() {
        let books = ReportAnswers::new();
        books.note_forged(7, "no seal");
        books.note(7, None);
        books.note_forged(7, "no seal");
        let (taken, refused) = books.of(7).map(|answer| (answer.taken, answer.refused)).unwrap();
        assert_eq!((taken, refused), (1, 1), "what came before the first sealed one may be its own");
        (0..2 * MOST_LIVES as u64).for_each(|life| books.note(100 + life, None));
        let held = books.lock().lives.len();
        assert_eq!((held, books.of(7)), (MOST_LIVES, None));
        assert_eq!((books.changed(10).len(), books.changed(usize::MAX).len()), (10, MOST_LIVES - 10));
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
