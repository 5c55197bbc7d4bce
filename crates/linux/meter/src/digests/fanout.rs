//! A meter's way to one of several collectors, which announce themselves on a bus.
//!
//! ```text
//!   bus ──announcements──▶ CollectorSet ──highest hash of segment and name──▶ the collector of a batch
//!   words of collectors ─▶     ▲                                                  │ does not answer, or is silent
//!                              └───────────── down for a while ◀──────────────────┘ its heir takes the next batch
//! ```
//!
//! Announcements are hints. A collector that refuses a connection, or says nothing for a second, is passed over at
//! once, whatever it announces; with a key, it is told nothing before it has proved the key. The bus is read at the start, when
//! nobody is left, and now and then: news come with the words of the collectors.
//!
//! Around a planned change both collectors get the batches, and each report says who judges that batch. Both
//! ends of a segment see the same times, so they agree; where they do not, nobody has all reports that say so, and nothing is
//! judged.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::time::Duration;

use bus::collectors::{Announcement, CollectorSet, MOST_COLLECTORS, in_order};
use bus::key::OrderKey;
use linux::clock::{Clock, time_of_day};
use radar::segment::ReportMarks;

use super::answer::ReceivedAnswer;
use super::bus_watch::BusNews;
use super::report_queue::ReportTransport;
use super::tcp::TcpTransport;
use super::{Envelope, ReportSubject};

/// A connected collector that says nothing for so long does not work.
const SILENCE: Duration = Duration::from_secs(1);
/// Longest wait for a connection and for each word of the greeting.
const CONNECT: Duration = Duration::from_millis(500);
/// Batches that go to both collectors before a planned change, and the time that these last at least.
const AHEAD: u64 = 2;
const AHEAD_TIME: u64 = 300_000_000;
/// The first wait before a collector that was passed over is tried again, doubled up to the last, in milliseconds. It ends at
/// a multiple of itself, so that all ends of a segment try at the same time.
const FIRST_TRY_MS: u64 = 2_000;
const LAST_TRY_MS: u64 = 64_000;
/// Reports of flows change their collector at multiples of this, in nanoseconds.
const FLOW_BATCH: u64 = 10_000_000;
/// Questions that are open at a time, of all collectors.
const MOST_QUESTIONS: usize = 1_024;

#[derive(Debug)]
pub(crate) struct FanOut<'a> {
    key: Option<OrderKey>,
    news: &'a BusNews,
    known: CollectorSet,
    /// Collectors that were passed over.
    down: BTreeMap<String, DownCollector>,
    connected: BTreeMap<String, Destination>,
    /// Questions by the numbers that we give them: the collector, and its number.
    questions: BTreeMap<u32, (String, u32)>,
    next_question: u32,
    notes: Vec<String>,
    clock: Clock,
}

#[derive(Clone, Copy, Debug)]
struct DownCollector {
    incarnation: u64,
    /// In milliseconds since 1970.
    until_ms: u64,
    wait_ms: u64,
}

/// A collector that gets reports.
#[derive(Debug)]
struct Destination {
    incarnation: u64,
    transport: TcpTransport,
    /// Reports that others got: their numbers are left out here.
    offset: u64,
    /// The number of the report after the last one that it got.
    next: u64,
    /// It gets every report at present.
    is_active: bool,
    /// Bytes that it has said, and when it last said anything.
    bytes_heard: u64,
    heard: Duration,
}

/// Collectors of one batch.
#[derive(Debug, PartialEq, Eq)]
struct BatchPlan {
    judge: String,
    /// Those that get it beside the judge.
    others: Vec<String>,
}

impl<'a> FanOut<'a> {
    pub(crate) fn new(key: Option<OrderKey>, news: &'a BusNews) -> Self {
        Self {
            key,
            news,
            known: CollectorSet::default(),
            down: BTreeMap::new(),
            connected: BTreeMap::new(),
            questions: BTreeMap::new(),
            next_question: 0,
            notes: Vec::new(),
            clock: Clock::start(),
        }
    }

    fn learn(&mut self, announcements: impl IntoIterator<Item = Announcement>, now_ms: u64) {
        for announcement in announcements.into_iter().filter(|announcement| !announcement.is_over(now_ms)) {
            self.known.learn(announcement);
        }
        self.known.forget_old(now_ms);
        let known = &self.known;
        self.connected.retain(|name, to| to.is_active || known.get(name).is_some());
        self.down.retain(|name, down| known.get(name).is_some_and(|known| known.incarnation == down.incarnation));
    }

    /// True if a collector is not passed over at a time.
    fn is_up(&self, name: &str, at_ms: u64) -> bool {
        self.down.get(name).is_none_or(|down| at_ms >= down.until_ms)
    }

    /// The collector of a segment at a time: of those that take segments then; or, if the bus knows of none, of all that were
    /// ever known.
    fn collector(&self, segment: &str, at_ms: u64, now_ms: u64) -> Option<&str> {
        let is_alive = |known: &&Announcement| {
            let speaks = self.connected.get(&known.name).is_some_and(|of| of.is_active && of.transport.is_connected());
            (speaks || !known.is_over(now_ms)) && known.takes(at_ms)
        };
        let up = || self.known.iter().filter(|known| self.is_up(&known.name, at_ms));
        let announced = in_order(segment, up().filter(is_alive).map(|known| known.name.as_str()));
        let all = || in_order(segment, up().map(|known| known.name.as_str()));
        announced.first().copied().or_else(|| all().first().copied())
    }

    /// Finds out who gets a batch.
    fn plan(&self, subject: &ReportSubject, now_ms: u64) -> Option<BatchPlan> {
        let ReportSubject { segment, batch, length } = subject;
        let patience = self.known.iter().map(|known| known.patience).max().unwrap_or(1);
        let ahead = patience + AHEAD + AHEAD_TIME / (*length).max(1);
        // A batch belongs to whom its beginning belongs to.
        let begins = |batch: u64| batch.saturating_mul(*length).div_ceil(1_000_000);
        let (from, to) = (begins(batch.saturating_sub(patience)), begins(batch.saturating_add(ahead)));
        let judge = self.collector(segment, begins(*batch), now_ms)?.to_owned();
        let changes = self.known.iter().flat_map(|known| [Some(known.from_ms), known.until_ms]).flatten();
        let changes = changes.chain(self.down.values().map(|down| down.until_ms));
        let times = changes.filter(|at| (from..=to).contains(at)).chain([from, to]);
        let mut others: Vec<String> =
            times.filter_map(|at| self.collector(segment, at, now_ms)).map(str::to_owned).collect();
        others.sort_unstable();
        others.dedup();
        others.retain(|name| *name != judge);
        Some(BatchPlan { judge, others })
    }

    /// Passes a collector over for a while.
    fn pass_over(&mut self, name: &str, why: &str, now_ms: u64) {
        let incarnation = self.known.get(name).map_or(0, |known| known.incarnation);
        let before = self.down.get(name).filter(|down| down.incarnation == incarnation);
        let wait_ms = before.map_or(FIRST_TRY_MS, |down| (2 * down.wait_ms).min(LAST_TRY_MS));
        let until_ms = (now_ms / wait_ms + 2) * wait_ms;
        if before.is_none() {
            self.notes.push(format!("collector {name}: {why}; passed over, its heir takes the segment"));
        }
        self.down.insert(name.to_owned(), DownCollector { incarnation, until_ms, wait_ms });
        // Its numbers go on if it comes back.
        if let Some(to) = self.connected.get_mut(name) {
            to.is_active = false;
            to.transport.disconnect();
        }
    }

    /// Sends a report to one collector; false if it does not take it.
    fn send_to(&mut self, name: &str, envelope: &Envelope, marks: ReportMarks, now_ms: u64) -> bool {
        let Some(known) = self.known.get(name) else { return false };
        let now = self.clock.elapsed();
        let transport = || TcpTransport::with_patience(&known.address, self.key.clone(), CONNECT);
        let new = || Destination {
            incarnation: known.incarnation,
            transport: transport(),
            offset: 0,
            next: envelope.number,
            is_active: false,
            bytes_heard: 0,
            heard: now,
        };
        let to = self.connected.entry(name.to_owned()).or_insert_with(new);
        if to.incarnation != known.incarnation {
            (to.incarnation, to.transport, to.is_active) = (known.incarnation, transport(), false);
        }
        let begins = !to.is_active;
        // Reports that others got in between are not missing here.
        let offset = if begins { to.offset + envelope.number.saturating_sub(to.next) } else { to.offset };
        let marks = ReportMarks { begins, ..marks };
        let sent =
            Envelope { number: envelope.number.saturating_sub(offset), flags: marks.to_bits(), ..envelope.clone() };
        match to.transport.send(&sent) {
            Ok(()) => {
                if begins {
                    to.heard = self.clock.elapsed();
                }
                to.is_active = !marks.leaves;
                (to.offset, to.next) = (offset, envelope.number + 1);
                true
            }
            Err(why) => {
                self.pass_over(name, &why, now_ms);
                false
            }
        }
    }

    /// Sends a report to all that are to have it. An error if nobody could be found to judge it.
    fn route(&mut self, envelope: &Envelope, subject: &ReportSubject) -> Result<(), String> {
        let has_more = ReportMarks::from_bits(envelope.flags).has_more;
        // Each one that does not take it is passed over; a batch of the far future, by a clock that was set, belongs to none.
        for _ in 0..=MOST_COLLECTORS {
            let now_ms = now_ms();
            let Some(BatchPlan { judge, others }) = self.plan(subject, now_ms) else {
                self.news.want();
                return Err(self.lack());
            };
            let next = ReportSubject { batch: subject.batch + 1, ..subject.clone() };
            let stays = self.plan(&next, now_ms);
            let leaves = |name: &str| {
                stays.as_ref().is_some_and(|next| next.judge != name && !next.others.iter().any(|other| other == name))
            };
            let marks = |name: &str, judges| ReportMarks { has_more, judges, leaves: leaves(name), begins: false };
            let of_judge = marks(&judge, true);
            let of_others: Vec<_> = others.iter().map(|name| (name, marks(name, false))).collect();
            if !self.send_to(&judge, envelope, of_judge, now_ms) {
                continue;
            }
            for (name, marks) in of_others {
                self.send_to(name, envelope, marks, now_ms);
            }
            let gone = |name: &String| *name != judge && !others.contains(name);
            self.connected.iter_mut().filter(|(name, _)| gone(name)).for_each(|(_, to)| to.is_active = false);
            return Ok(());
        }
        Err(self.lack())
    }

    fn lack(&self) -> String {
        match self.news.problem() {
            Some(problem) => problem,
            None if self.known.is_empty() => {
                "no collector announces itself there: is `hitless radar collect --from` running, with the same --key?"
                    .to_owned()
            }
            None => "none of the collectors that announce themselves there answers".to_owned(),
        }
    }

    /// Notices collectors that have fallen silent.
    fn check_silence(&mut self) {
        let now = self.clock.elapsed();
        let is_silent =
            |to: &Destination| to.is_active && to.transport.is_connected() && now.saturating_sub(to.heard) >= SILENCE;
        let silent: Vec<String> =
            self.connected.iter().filter(|(_, to)| is_silent(to)).map(|(name, _)| name.clone()).collect();
        for name in silent {
            self.pass_over(&name, "connected, and silent for a second", now_ms());
        }
    }

    /// A question gets a number that no other collector's has.
    fn question(&mut self, from: &str, number: u32) -> u32 {
        if self.questions.len() >= MOST_QUESTIONS {
            self.questions.pop_first();
        }
        self.next_question = self.next_question.wrapping_add(1);
        self.questions.insert(self.next_question, (from.to_owned(), number));
        self.next_question
    }
}

impl ReportTransport for FanOut<'_> {
    fn send(&mut self, envelope: &Envelope) -> Result<(), String> {
        let now = now_ms();
        let announced = self.news.take();
        self.learn(announced, now);
        match &envelope.subject {
            Some(subject) => self.route(envelope, subject),
            None => {
                // Reports of flows: a collector needs those of all switches.
                let batch = time_of_day().as_nanos() as u64 / FLOW_BATCH;
                let subject = ReportSubject { segment: "flows".to_owned(), batch, length: FLOW_BATCH };
                self.route(envelope, &subject)
            }
        }
    }

    fn hear(&mut self, life: u64) -> Vec<ReceivedAnswer> {
        let announced = self.news.take();
        self.learn(announced, now_ms());
        let now = self.clock.elapsed();
        let mut heard: Vec<ReceivedAnswer> = self.notes.drain(..).map(ReceivedAnswer::Note).collect();
        let (mut words, mut asked) = (Vec::new(), Vec::new());
        for (name, to) in &mut self.connected {
            for answer in to.transport.hear(life) {
                match answer {
                    ReceivedAnswer::Word(word) => words.push(word),
                    ReceivedAnswer::Question { number, body } => asked.push((name.clone(), number, body)),
                    other => heard.push(other),
                }
            }
            // Some were taken in when a report was sent.
            let bytes = to.transport.bytes_heard();
            if std::mem::replace(&mut to.bytes_heard, bytes) != bytes {
                to.heard = now;
            }
        }
        for (name, number, body) in asked {
            let number = self.question(&name, number);
            heard.push(ReceivedAnswer::Question { number, body });
        }
        let key = self.key.clone();
        let texts = words.iter().filter_map(|word| std::str::from_utf8(word).ok()).flat_map(str::lines);
        let announced: Vec<Announcement> =
            texts.filter_map(|text| Announcement::parse(text, key.as_ref()).ok()).collect();
        self.learn(announced, now_ms());
        self.check_silence();
        heard
    }

    fn reply(&mut self, question: u32, body: &[u8]) -> Result<(), String> {
        let Some((name, number)) = self.questions.remove(&question) else { return Ok(()) };
        self.connected.get_mut(&name).map_or(Ok(()), |to| to.transport.reply(number, body))
    }

    fn is_connected(&self) -> bool {
        self.connected.values().any(|to| to.transport.is_connected())
    }

    fn descriptors(&self) -> Vec<RawFd> {
        self.connected.values().flat_map(|to| to.transport.descriptors()).collect()
    }

    fn longest_wait(&self) -> Duration {
        Duration::from_millis(200)
    }
}

fn now_ms() -> u64 {
    time_of_day().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u64 = 10_000_000;

    fn announcement(name: &str, from_ms: u64, until_ms: Option<u64>) -> Announcement {
        let address = "127.0.0.1:9".to_owned();
        let expires_ms = 2_000_000;
        Announcement { name: name.to_owned(), address, incarnation: 1, expires_ms, from_ms, until_ms, patience: 2 }
    }

    fn subject(batch: u64) -> ReportSubject {
        ReportSubject { segment: "cable".into(), batch, length: LENGTH }
    }

    fn fan(news: &BusNews, known: impl IntoIterator<Item = Announcement>) -> FanOut<'_> {
        let mut fan = FanOut::new(None, news);
        known.into_iter().for_each(|known| fan.known.learn(known));
        fan
    }

    /// Names of two collectors, in the order in which they take the segment.
    fn names() -> [&'static str; 2] {
        let order = in_order("cable", ["north", "south"]);
        [order[0], order[1]]
    }

    #[test]
    fn around_a_planned_change_both_get_the_batches_and_each_is_judged_once() {
        let (news, [first, second]) = (BusNews::default(), names());
        // The first joins at two million milliseconds less a thousand: in batch 199,900.
        let joins = fan(&news, [announcement(second, 0, None), announcement(first, 1_999_000, None)]);
        let mut both = Vec::new();
        for batch in 199_800..200_000 {
            let plan = joins.plan(&subject(batch), 1_998_000).unwrap();
            assert_eq!(plan.judge, if batch < 199_900 { second } else { first }, "batch {batch}");
            if !plan.others.is_empty() {
                both.push(batch);
            }
        }
        // Patience, two batches and 300 ms before; patience after.
        assert_eq!((both[0], both[both.len() - 1]), (199_900 - 34, 199_901));
        assert_eq!(both.len(), 36, "all in between");
        let leaves = fan(&news, [announcement(second, 0, None), announcement(first, 0, Some(1_999_000))]);
        let judge = |batch| leaves.plan(&subject(batch), 1_998_000).unwrap().judge;
        assert_eq!((judge(199_899), judge(199_900)), (first.to_owned(), second.to_owned()));
    }

    #[test]
    fn a_collector_that_was_passed_over_is_tried_again_at_a_time_that_all_ends_know() {
        let (news, [first, second]) = (BusNews::default(), names());
        let mut fan = fan(&news, [announcement(first, 0, None), announcement(second, 0, None)]);
        fan.pass_over(first, "refused", 1_990_500);
        assert_eq!(fan.down[first].until_ms, 1_994_000);
        let judge = |fan: &FanOut<'_>, ms: u64| fan.plan(&subject(ms / 10), 1_990_500).map(|plan| plan.judge);
        assert_eq!(judge(&fan, 1_993_990).as_deref(), Some(second));
        assert_eq!(judge(&fan, 1_994_000).as_deref(), Some(first));
        fan.pass_over(first, "refused", 1_994_010);
        assert_eq!((fan.down[first].wait_ms, fan.notes.len()), (4_000, 1));
        // Another run of it is tried at once.
        fan.learn([Announcement { incarnation: 2, expires_ms: 2_000_001, ..announcement(first, 0, None) }], 1_999_999);
        assert_eq!(judge(&fan, 1_994_010).as_deref(), Some(first));
    }

    #[test]
    fn with_nobody_announced_those_who_were_known_are_tried() {
        let news = BusNews::default();
        assert!(fan(&news, []).plan(&subject(1), 0).is_none());
        let fan = fan(&news, [announcement("north", 0, None)]);
        let judge = fan.plan(&subject(900_000), 9_000_000).map(|plan| plan.judge);
        assert_eq!(judge.as_deref(), Some("north"), "it has expired, but there is no other");
    }
}
