//! Questions of a collector that are open, and the end that each was put to.

use std::collections::BTreeMap;
use units::Timestamp;

use super::super::question::MeterQuestion;

/// Open questions of all meters; of more the oldest are forgotten.
const MOST_OPEN: usize = 4_096;
/// Nobody waits for a reply for longer.
const FORGOTTEN: u64 = 5_000_000_000;

/// Subject of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QuestionKind {
    /// More cells of a batch.
    More { batch: u64 },
    /// Packets of a trail; the segment knows which.
    Recall { token: u32 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpenQuestion {
    pub life: u64,
    pub segment: String,
    pub end: String,
    pub kind: QuestionKind,
    asked: Timestamp,
}

impl OpenQuestion {
    pub(super) fn new(now: Timestamp, life: u64, segment: &str, end: &str, kind: QuestionKind) -> Self {
        Self { life, segment: segment.to_owned(), end: end.to_owned(), kind, asked: now }
    }
}

#[derive(Debug, Default)]
pub(super) struct OpenQuestions {
    next: u32,
    open: BTreeMap<u32, OpenQuestion>,
    unsent: Vec<MeterQuestion>,
}

impl OpenQuestions {
    pub(super) fn ask(&mut self, question: OpenQuestion, body: Vec<u8>) {
        if self.open.len() >= MOST_OPEN {
            self.open.pop_first();
        }
        self.next = self.next.wrapping_add(1);
        self.unsent.push(MeterQuestion { life: question.life, number: self.next, body });
        self.open.insert(self.next, question);
    }

    /// Questions to be sent.
    pub(super) fn take(&mut self) -> Vec<MeterQuestion> {
        std::mem::take(&mut self.unsent)
    }

    /// The question that this incarnation replies to, once.
    pub(super) fn answered(&mut self, life: u64, number: u32) -> Option<OpenQuestion> {
        let is_of = self.open.get(&number).is_some_and(|open| open.life == life);
        if is_of { self.open.remove(&number) } else { None }
    }

    pub(super) fn forget_old(&mut self, now: Timestamp) {
        self.open.retain(|_, open| now.since(open.asked) < FORGOTTEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered_once_by_the_meter_that_was_asked_and_in_time() {
        let mut questions = OpenQuestions::default();
        let open = |at| OpenQuestion::new(Timestamp(at), 7, "cable", "a", QuestionKind::More { batch: 13 });
        questions.ask(open(0), vec![1]);
        let number = questions.take()[0].number;
        assert_eq!(questions.answered(8, number), None);
        assert_eq!(questions.answered(7, number), Some(open(0)));
        assert_eq!((questions.answered(7, number), questions.take().len()), (None, 0));
        (0..2 * MOST_OPEN).for_each(|_| questions.ask(open(1), vec![1]));
        assert_eq!(questions.open.len(), MOST_OPEN);
        questions.forget_old(Timestamp(1 + FORGOTTEN));
        assert_eq!(questions.open.len(), 0);
    }
}
