//! The meter's side: reports leave from a thread of their own, so that a meter never waits for a network.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use radar::segment::{MeterReport, ReportMarks};
use units::StopFlag;

use super::answer::{CollectorVerdicts, ReceivedAnswer};
use super::bus_watch::BusNews;
use super::fanout::FanOut;
use super::kept::KeptReports;
use super::question::{NoResponder, QuestionResponder};
use super::run_length;
use super::tcp::TcpTransport;
use super::{CollectorAddress, Envelope, ReportSubject};
use bus::key::OrderKey;
use linux::clock::Clock;
use linux::poll;

/// Reports that may wait: a second or more of them.
const ROOM: usize = 256;
/// The wait after a failure, doubled by each further one up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Interval at which a waiting thread checks if the meter has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Failures that are put up with once the meter has ended.
const LAST_ATTEMPTS: u32 = 3;
/// Longest wait for the last reports to be acknowledged.
const FAREWELL: Duration = Duration::from_secs(3);
/// Time without an acknowledged report before a line says so, and between two lines about refused ones.
const UNHEARD: Duration = Duration::from_secs(5);
const REFUSED_EVERY: Duration = Duration::from_secs(10);

/// Queue into which the meter puts its reports.
#[derive(Debug)]
pub struct ReportQueue {
    queue: SyncSender<Envelope>,
    waker: Option<PipeWriter>,
    life: u64,
    number: u64,
    shared: Arc<SendShared>,
}

#[derive(Debug, Default)]
struct SendShared {
    /// The meter has ended.
    closing: StopFlag,
    sent: AtomicU64,
    bytes: AtomicU64,
    dropped: AtomicU64,
    heard: Mutex<AnswerState>,
    kept: KeptReports,
}

/// The answers of collectors so far.
#[derive(Debug, Default)]
struct AnswerState {
    verdicts: CollectorVerdicts,
    refusal: Option<String>,
    /// There has been a connection.
    was_connected: bool,
    problem: Option<String>,
}

/// Counts of reports, by result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportCounts {
    pub reports: u64,
    pub bytes: u64,
    /// Reports that found no room, because the other side was away or too slow.
    pub dropped: u64,
    /// Reports taken by a collector, as far as it has answered.
    pub taken: u64,
    pub refused: u64,
    /// Reason why the latest of those was refused.
    pub refusal: Option<String>,
    /// There has been a connection to a collector.
    pub was_connected: bool,
    /// The latest problem on the way to the collector.
    pub problem: Option<String>,
}

/// Takes them to their place. To be run on a thread.
#[derive(Debug)]
pub struct ReportSender {
    place: CollectorAddress,
    key: Option<OrderKey>,
    life: u64,
    queue: Receiver<Envelope>,
    woken: Option<PipeReader>,
    shared: Arc<SendShared>,
}

/// One way to the collector.
pub(super) trait ReportTransport {
    /// Sends a report. After an error it may or may not have arrived; sending it again does no harm.
    fn send(&mut self, envelope: &Envelope) -> Result<(), String>;

    /// Answers about the reports of this incarnation since the last call. Does not wait for any.
    fn hear(&mut self, life: u64) -> Vec<ReceivedAnswer>;

    /// Replies to a question that was heard; if the connection is gone since then, nobody waits for that.
    fn reply(&mut self, question: u32, body: &[u8]) -> Result<(), String>;

    fn is_connected(&self) -> bool;

    /// Descriptors that are readable when a collector says something.
    fn descriptors(&self) -> Vec<RawFd>;

    /// Longest wait between two attempts to send a report.
    fn longest_wait(&self) -> Duration {
        LONGEST_WAIT
    }
}

/// Queue of reports and its sender. `life` is the incarnation, a number that no other run of a meter has; with a key, reports
/// are sealed with it.
pub fn report_queue(place: CollectorAddress, life: u64, key: Option<OrderKey>) -> (ReportQueue, ReportSender) {
    let (queue, waiting) = mpsc::sync_channel(ROOM);
    // Without it a sender looks now and then.
    let (woken, waker) = io::pipe().map_or((None, None), |(woken, waker)| (Some(woken), Some(waker)));
    let shared = Arc::new(SendShared::default());
    let outlet = ReportQueue { queue, waker, life, number: 0, shared: Arc::clone(&shared) };
    (outlet, ReportSender { place, key, life, queue: waiting, woken, shared })
}

impl ReportQueue {
    /// Puts in a report in few cells, and keeps it whole for a while. False if there was no room.
    pub fn put_report(&mut self, report: &MeterReport) -> bool {
        let small = self.shared.kept.keep(report);
        let marks = ReportMarks { has_more: small.has_more, ..ReportMarks::default() };
        let MeterReport { segment, batch, length, .. } = report;
        let subject = ReportSubject { segment: segment.clone(), batch: *batch, length: *length };
        self.put_envelope(small.bytes, marks, Some(subject))
    }

    /// False if there was no room: the collector will miss it.
    pub fn put(&mut self, report: Vec<u8>) -> bool {
        self.put_envelope(report, ReportMarks::default(), None)
    }

    fn put_envelope(&mut self, report: Vec<u8>, marks: ReportMarks, subject: Option<ReportSubject>) -> bool {
        let envelope = Envelope { life: self.life, number: self.number, flags: marks.to_bits(), subject, report };
        self.number += 1;
        match self.queue.try_send(envelope) {
            Ok(()) => {
                // The pipe holds a byte for each report that waits: there is always room.
                let _ = self.waker.as_mut().map(|waker| waker.write(&[1]));
                true
            }
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.shared.dropped.fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }

    pub fn sent(&self) -> ReportCounts {
        self.shared.sent()
    }
}

impl Drop for ReportQueue {
    fn drop(&mut self) {
        self.shared.closing.stop();
    }
}

impl SendShared {
    fn sent(&self) -> ReportCounts {
        let [reports, bytes, dropped] =
            [&self.sent, &self.bytes, &self.dropped].map(|counter| counter.load(Ordering::Relaxed));
        let heard = self.heard();
        let (taken, refused) = heard.verdicts.totals(reports);
        let (refusal, problem) = (heard.refusal.clone(), heard.problem.clone());
        let was_connected = heard.was_connected;
        ReportCounts { reports, bytes, dropped, taken, refused, refusal, was_connected, problem }
    }

    fn heard(&self) -> MutexGuard<'_, AnswerState> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReportSender {
    /// Runs until the outlet is dropped and the waiting reports are sent or cannot be sent. Calls `tell` when the collector
    /// disappears and when it returns.
    pub fn run(self, tell: &dyn Fn(&str)) -> ReportCounts {
        self.run_with(tell, &NoResponder)
    }

    /// Does the same as [`run`](Self::run), with a part of the meter that replies to more kinds of questions.
    pub fn run_with(self, tell: &dyn Fn(&str), responder: &dyn QuestionResponder) -> ReportCounts {
        let place = match &self.place {
            CollectorAddress::Tcp(address) => {
                return self.carry(&mut TcpTransport::new(address, self.key.clone()), tell, responder);
            }
            CollectorAddress::Redis(place) => &place.0,
        };
        let news = BusNews::default();
        thread::scope(|scope| {
            scope.spawn(|| news.watch(place, self.key.as_ref()));
            let counts = self.carry(&mut FanOut::new(self.key.clone(), &news), tell, responder);
            news.end();
            counts
        })
    }

    fn carry(
        &self,
        way: &mut dyn ReportTransport,
        tell: &dyn Fn(&str),
        responder: &dyn QuestionResponder,
    ) -> ReportCounts {
        let mut said = false;
        let mut listener = AnswerListener::new(self, responder);
        loop {
            listener.listen(way, tell);
            let envelope = match self.queue.try_recv() {
                Ok(envelope) => Envelope { report: run_length::encode(&envelope.report), ..envelope },
                Err(TryRecvError::Empty) => {
                    self.pause(&way.descriptors());
                    continue;
                }
                Err(TryRecvError::Disconnected) => return listener.finish(way, tell),
            };
            self.take_wake();
            let mut failures = 0;
            while let Err(why) = way.send(&envelope) {
                self.shared.heard().problem = Some(why.clone());
                if !said {
                    said = true;
                    tell(&format!("{}: {why}; trying again, and what finds no room is dropped", self.place));
                }
                failures += 1;
                if self.is_closing() && failures >= LAST_ATTEMPTS {
                    let left = 1 + self.queue.try_iter().count() as u64;
                    self.shared.dropped.fetch_add(left, Ordering::Relaxed);
                    return listener.finish(way, tell);
                }
                self.wait((FIRST_WAIT * 2_u32.pow((failures - 1).min(10))).min(way.longest_wait()));
                listener.listen(way, tell);
            }
            if std::mem::take(&mut said) {
                let dropped = self.shared.dropped.load(Ordering::Relaxed);
                tell(&format!("{}: connected; {dropped} reports dropped so far", self.place));
            }
            self.shared.heard().problem = None;
            self.shared.sent.fetch_add(1, Ordering::Relaxed);
            self.shared.bytes.fetch_add(envelope.report.len() as u64, Ordering::Relaxed);
        }
    }

    /// Waits for a report or a word of the collector.
    fn pause(&self, collectors: &[RawFd]) {
        let Some(woken) = &self.woken else { return thread::sleep(LOOK_EVERY / 10) };
        let fds: Vec<(RawFd, bool)> =
            [woken.as_raw_fd()].iter().chain(collectors).map(|descriptor| (*descriptor, false)).collect();
        if poll::wait_for_any(&fds, LOOK_EVERY).is_err() {
            thread::sleep(LOOK_EVERY);
        }
    }

    /// A report was taken, and with it the byte that announced it.
    fn take_wake(&self) {
        let _ = self.woken.as_ref().map(|mut woken| woken.read(&mut [0]));
    }

    fn is_closing(&self) -> bool {
        self.shared.closing.is_stopped()
    }

    /// Waits, and ends soon after the meter does.
    fn wait(&self, mut most: Duration) {
        while !most.is_zero() {
            let step = most.min(LOOK_EVERY);
            thread::sleep(step);
            most = if self.is_closing() { Duration::ZERO } else { most - step };
        }
    }
}

/// Receives the collector's answers about reports, and reports problems to the user.
struct AnswerListener<'a> {
    sender: &'a ReportSender,
    responder: &'a dyn QuestionResponder,
    clock: Clock,
    /// Time at which reports were last acknowledged, or the first was sent; and their number.
    acknowledged: Option<(Duration, u64)>,
    is_unheard: bool,
    told_unsealed: bool,
    /// Time and count of the refusals that were last told.
    told_refused: Option<(Duration, u64)>,
}

impl<'a> AnswerListener<'a> {
    fn new(sender: &'a ReportSender, responder: &'a dyn QuestionResponder) -> Self {
        Self {
            sender,
            responder,
            clock: Clock::start(),
            acknowledged: None,
            is_unheard: false,
            told_unsealed: false,
            told_refused: None,
        }
    }

    fn listen(&mut self, way: &mut dyn ReportTransport, tell: &dyn Fn(&str)) {
        let (shared, place) = (&self.sender.shared, &self.sender.place);
        shared.heard().was_connected |= way.is_connected();
        for heard in way.hear(self.sender.life) {
            match heard {
                ReceivedAnswer::Sealed(answer) if answer.life == self.sender.life => {
                    let mut all = shared.heard();
                    all.verdicts.hear(&answer);
                    if answer.refused > 0 {
                        all.refusal = Some(answer.reason);
                    }
                }
                ReceivedAnswer::Sealed(_) | ReceivedAnswer::Word(_) => {}
                ReceivedAnswer::Note(line) => tell(&format!("{place}: {line}")),
                ReceivedAnswer::Question { number, body } => {
                    let reply = shared.kept.reply(&body).or_else(|| self.responder.reply(&body));
                    // A connection that is gone is noticed when the next report is sent.
                    let _ = reply.map(|reply| way.reply(number, &reply));
                }
                ReceivedAnswer::Unsealed => {
                    let why = "what answers has another key, or none: give meter and collector the same --key";
                    shared.heard().problem = Some(why.to_owned());
                    if !std::mem::replace(&mut self.told_unsealed, true) {
                        tell(&format!("{place}: {why}"));
                    }
                }
            }
        }
        let counts = shared.sent();
        self.tell_refused(&counts, tell);
        self.tell_unheard(&counts, tell);
    }

    fn tell_refused(&mut self, counts: &ReportCounts, tell: &dyn Fn(&str)) {
        let now = self.clock.elapsed();
        let is_due = match self.told_refused {
            None => counts.refused > 0,
            Some((at, told)) => counts.refused > told && now.saturating_sub(at) >= REFUSED_EVERY,
        };
        if is_due {
            self.told_refused = Some((now, counts.refused));
            let reason = counts.refusal.as_deref().unwrap_or_default();
            tell(&format!("{}: refuses reports, {} so far: {reason}", self.sender.place, counts.refused));
        }
    }

    fn tell_unheard(&mut self, counts: &ReportCounts, tell: &dyn Fn(&str)) {
        if counts.reports == 0 || !counts.was_connected {
            return;
        }
        let (now, place) = (self.clock.elapsed(), &self.sender.place);
        let answered = counts.taken + counts.refused;
        match &mut self.acknowledged {
            Some((at, last)) if *last == answered && answered < counts.reports => {
                if now.saturating_sub(*at) >= UNHEARD && !std::mem::replace(&mut self.is_unheard, true) {
                    let seconds = UNHEARD.as_secs();
                    tell(&format!(
                        "{place}: nobody has acknowledged a report for {seconds} s: does a collector run there?"
                    ));
                }
            }
            Some((at, last)) => {
                (*at, *last) = (now, answered);
                if std::mem::take(&mut self.is_unheard) {
                    tell(&format!("{place}: reports are acknowledged again"));
                }
            }
            None => self.acknowledged = Some((now, answered)),
        }
    }

    /// Waits a moment for what is said of the last reports.
    fn finish(mut self, way: &mut dyn ReportTransport, tell: &dyn Fn(&str)) -> ReportCounts {
        let until = self.clock.elapsed() + FAREWELL;
        loop {
            self.listen(way, tell);
            let counts = self.sender.shared.sent();
            let is_complete = counts.taken + counts.refused >= counts.reports || !counts.was_connected;
            if is_complete || self.clock.elapsed() >= until {
                return counts;
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}
