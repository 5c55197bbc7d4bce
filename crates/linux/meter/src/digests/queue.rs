//! Reports between the threads that read them and the one that compares them: as many as fit into a number of bytes.
//!
//! Reports wait as they were sent, which may be a thousandth of what they come to. A thread that reads a long one takes
//! room for it before it reads; a thread that finds no room waits, and so lets the meter wait.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use units::StopFlag;

use super::answer::ReportAnswers;
use super::question::{MeterQuestion, QuestionBooks};
use super::run_length;

const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Bytes that a report takes besides its contents.
const EACH: usize = 128;

/// Report that came from a meter, or its reply to a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedReport {
    /// Incarnation of the meter.
    pub life: u64,
    /// Reports that it had sent before and that did not come.
    pub missing: u64,
    /// Its marks: [`ReportMarks`](radar::segment::ReportMarks) as bits.
    pub flags: u8,
    /// The question to which this is the reply.
    pub question: Option<u32>,
    pub report: Vec<u8>,
}

/// End at which reports are put in.
#[derive(Clone, Debug)]
pub struct CollectorQueue {
    out: Sender<(ReceivedReport, usize)>,
    room: Arc<QueueBudget>,
    answers: Arc<ReportAnswers>,
    questions: Arc<QuestionBooks>,
    words: Arc<CollectorWords>,
}

/// End at which reports are taken out.
#[derive(Debug)]
pub struct CollectorReports {
    queue: Receiver<(ReceivedReport, usize)>,
    room: Arc<QueueBudget>,
    answers: Arc<ReportAnswers>,
    questions: Arc<QuestionBooks>,
    words: Arc<CollectorWords>,
}

#[derive(Debug)]
struct QueueBudget {
    most: usize,
    used: Mutex<usize>,
}

/// A collector's words to all its meters: that it compares, and which collectors there are.
#[derive(Debug, Default)]
pub struct CollectorWords {
    /// Turns of the thread that compares: who only listens is not alive.
    turns: AtomicU64,
    /// The announcements, with the number of their version.
    said: Mutex<(u64, Vec<u8>)>,
}

impl CollectorWords {
    pub fn say(&self, announcements: Vec<u8>) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.1 != announcements {
            *said = (said.0 + 1, announcements);
        }
    }

    fn turn(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Announcements that are newer than a version.
    pub(super) fn after(&self, version: u64) -> Option<(u64, Vec<u8>)> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        (said.0 > version).then(|| said.clone())
    }
}

/// A queue with room for `bytes` bytes of reports; one that is longer passes alone.
pub fn queue(bytes: usize) -> (CollectorQueue, CollectorReports) {
    let (out, queue) = mpsc::channel();
    let room = Arc::new(QueueBudget { most: bytes, used: Mutex::default() });
    let answers = Arc::new(ReportAnswers::new());
    let questions = Arc::new(QuestionBooks::default());
    let words = Arc::new(CollectorWords::default());
    let put = CollectorQueue {
        out,
        room: Arc::clone(&room),
        answers: Arc::clone(&answers),
        questions: Arc::clone(&questions),
        words: Arc::clone(&words),
    };
    (put, CollectorReports { queue, room, answers, questions, words })
}

/// Room that was taken and is given back, unless a report goes into the queue with it.
#[derive(Debug)]
pub(super) struct BudgetShare {
    room: Arc<QueueBudget>,
    bytes: usize,
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.room.give(self.bytes);
    }
}

impl QueueBudget {
    fn try_take(self: &Arc<Self>, bytes: usize) -> Option<BudgetShare> {
        let bytes = (bytes + EACH).min(self.most);
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        (*used + bytes <= self.most).then(|| {
            *used += bytes;
            BudgetShare { room: Arc::clone(self), bytes }
        })
    }

    fn give(&self, bytes: usize) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) -= bytes;
    }
}

impl CollectorQueue {
    /// Answers that meters are to hear.
    pub(super) fn answers(&self) -> &ReportAnswers {
        &self.answers
    }

    /// Questions that meters are to be asked.
    pub(super) fn questions(&self) -> &QuestionBooks {
        &self.questions
    }

    /// Words that meters are to hear.
    pub(super) fn words(&self) -> &CollectorWords {
        &self.words
    }

    /// Waits for room; `None` once it is time to end.
    pub(super) fn take(&self, bytes: usize, stop: &StopFlag) -> Option<BudgetShare> {
        loop {
            if let Some(taken) = self.room.try_take(bytes) {
                return Some(taken);
            }
            if stop.is_stopped() {
                return None;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Puts in a report that is still squeezed. False once nobody wants more.
    pub(super) fn put(&self, received: ReceivedReport, mut taken: BudgetShare) -> bool {
        let is_reply = received.question.is_some();
        debug_assert!(is_reply || run_length::is_encoded(&received.report), "was looked at before");
        let bytes = std::mem::take(&mut taken.bytes);
        let is_wanted = self.out.send((received, bytes)).is_ok();
        if !is_wanted {
            self.room.give(bytes);
        }
        is_wanted
    }
}

impl CollectorReports {
    /// Lets the meter know that a report of this incarnation was taken, or why it was refused.
    pub fn answer(&self, life: u64, refusal: Option<&str>) {
        self.answers.note(life, refusal);
    }

    /// Asks a meter something. False if too many questions wait for it.
    pub fn ask(&self, question: MeterQuestion) -> bool {
        self.questions.ask(question)
    }

    /// Words that meters are to hear, for another thread that knows them.
    pub fn words(&self) -> Arc<CollectorWords> {
        Arc::clone(&self.words)
    }

    pub fn recv_timeout(&self, most: Duration) -> Result<ReceivedReport, RecvTimeoutError> {
        self.words.turn();
        let (received, bytes) = self.queue.recv_timeout(most)?;
        self.room.give(bytes);
        if received.question.is_some() {
            return Ok(received);
        }
        let report = run_length::decode(&received.report).unwrap_or_default();
        Ok(ReceivedReport { report, ..received })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digests::run_length;

    #[test]
    fn no_more_bytes_wait_than_there_is_room_for_whatever_they_stand_for() {
        let (queue, reports) = queue(1_000);
        let stop = StopFlag::new();
        stop.stop();
        let zeros = run_length::encode(&vec![0; 1 << 20]);
        let put = |report: &[u8]| {
            let taken = queue.take(report.len(), &stop)?;
            Some(queue.put(ReceivedReport { life: 1, report: report.to_vec(), ..ReceivedReport::default() }, taken))
        };
        let kept = (0..100).take_while(|_| put(&zeros).is_some()).count();
        assert_eq!(kept, 1_000 / (EACH + zeros.len()));
        (0..kept).for_each(|_| assert_eq!(reports.recv_timeout(Duration::ZERO).unwrap().report.len(), 1 << 20));
        // Longer than all the room: alone, and nothing beside it.
        let long = run_length::encode(&[1; 5_000]);
        assert_eq!((put(&long), put(&zeros)), (Some(true), None));
        assert_eq!(reports.recv_timeout(Duration::ZERO).unwrap().report, [1; 5_000]);
        assert!(queue.take(10, &stop).is_some(), "room that was not used is given back");
        assert!(put(&long).is_some());
    }
}
