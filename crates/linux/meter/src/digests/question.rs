//! Questions of a collector to its meters, and their replies, on the connections on which reports come.
//!
//! ```text
//!   Collector ──ask──▶ QuestionBooks ──▶ the thread of that meter's connection ══question══▶ ReportSender
//!             ◀─────────── queue ◀────── takes replies to its own questions only ◀══reply═══ QuestionResponder
//! ```
//!
//! | kind | question | reply |
//! | --- | --- | --- |
//! | 2, 3 | packets of the trail (`radar::trail::TrailQuestion`) | their times and places (`radar::trail::TrailAnswer`) |
//! | 1 | a batch in more cells (`radar::segment::MoreQuestion`) | that report, or nothing if it is gone |
//!
//! The kind is the first byte of a question. Bounds: `MOST_OPEN` questions wait for one meter, and as many are open on
//! its connection; what is beyond is not asked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{PipeWriter, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Questions that wait for a meter or are open on a connection.
const MOST_OPEN: usize = 256;
/// Meters for which questions may wait.
const MOST_LIVES: usize = 4_096;
/// Bytes of a question.
pub(crate) const LONGEST_QUESTION: usize = 16 << 10;

/// A question for one incarnation of a meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterQuestion {
    pub life: u64,
    /// A number that no other question of this collector has.
    pub number: u32,
    /// The kind, and what belongs to it.
    pub body: Vec<u8>,
}

/// A meter's part that knows answers to some kinds of questions.
pub trait QuestionResponder: Sync {
    /// The reply to a question; `None` if it is of a kind that is not known here, or makes no sense.
    fn reply(&self, body: &[u8]) -> Option<Vec<u8>>;
}

/// Knows nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoResponder;

impl QuestionResponder for NoResponder {
    fn reply(&self, _body: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// Questions that wait for the threads of connections.
#[derive(Debug, Default)]
pub(crate) struct QuestionBooks(Mutex<BTreeMap<u64, WaitingQuestions>>);

/// Questions for one meter, and what wakes the thread of its connection.
#[derive(Debug, Default)]
struct WaitingQuestions {
    questions: VecDeque<(u32, Vec<u8>)>,
    waker: Option<PipeWriter>,
}

impl QuestionBooks {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, WaitingQuestions>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False if too many wait already.
    pub(crate) fn ask(&self, question: MeterQuestion) -> bool {
        let books = &mut *self.lock();
        if books.len() >= MOST_LIVES && !books.contains_key(&question.life) {
            return false;
        }
        let waiting = books.entry(question.life).or_default();
        let has_room = waiting.questions.len() < MOST_OPEN && question.body.len() <= LONGEST_QUESTION;
        if has_room {
            waiting.questions.push_back((question.number, question.body));
        }
        // A byte is read before the next one is written, so the pipe is never full.
        if waiting.questions.len() == 1
            && let Some(waker) = &mut waiting.waker
        {
            let _ = waker.write(&[1]);
        }
        has_room
    }

    pub(crate) fn take(&self, life: u64) -> VecDeque<(u32, Vec<u8>)> {
        self.lock().get_mut(&life).map(|waiting| std::mem::take(&mut waiting.questions)).unwrap_or_default()
    }

    /// A thread serves this meter from now on, and is woken when there are questions.
    pub(crate) fn serve(&self, life: u64, waker: PipeWriter) {
        let books = &mut *self.lock();
        if books.len() < MOST_LIVES || books.contains_key(&life) {
            books.entry(life).or_default().waker = Some(waker);
        }
    }

    /// The connection of a meter has ended.
    pub(crate) fn leave(&self, life: u64) {
        self.lock().remove(&life);
    }
}

/// Questions that were asked on one connection and have no reply yet.
#[derive(Debug, Default)]
pub(crate) struct ConnectionQuestions(BTreeSet<u32>);

impl ConnectionQuestions {
    pub(crate) fn asked(&mut self, number: u32) {
        if self.0.len() >= MOST_OPEN {
            self.0.pop_first();
        }
        self.0.insert(number);
    }

    /// True for a question that was asked here and has no reply yet.
    pub(crate) fn answered(&mut self, number: u32) -> bool {
        self.0.remove(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_bounded_and_a_reply_counts_once_on_the_connection_that_was_asked() {
        let books = QuestionBooks::default();
        let ask = |life, number| books.ask(MeterQuestion { life, number, body: vec![1] });
        assert_eq!((0..2 * MOST_OPEN as u32).filter(|number| ask(7, *number)).count(), MOST_OPEN);
        assert!(!books.ask(MeterQuestion { life: 8, number: 0, body: vec![0; LONGEST_QUESTION + 1] }));
        assert_eq!((0..2 * MOST_LIVES as u64).filter(|life| ask(100 + life, 0)).count(), MOST_LIVES - 2);
        assert_eq!((books.take(7).len(), books.take(7).len()), (MOST_OPEN, 0));
        let mut asked = ConnectionQuestions::default();
        (0..2 * MOST_OPEN as u32).for_each(|number| asked.asked(number));
        assert!(asked.answered(300) && !asked.answered(300) && !asked.answered(3) && !asked.answered(9_999));
    }
}
