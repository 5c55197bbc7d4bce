//! Evidence for the losses of one segment: what meters remember of the lost packets and of those around them.
//!
//! ```text
//!   losses ──lost?──▶ upstream meter: time, TTL, place ──▶ lines, at most two batches later
//!                       └─arrivals?──▶ downstream meter: when neighbours came ──▶ CauseAccount ──▶ causes
//! ```
//!
//! An answer is taken for what was asked, of the end that was asked, once. What is not answered in time is judged without.
//!
//! Invariant: memory is bounded by `MOST_RECORDS`; every loss is told once and judged once.

use std::collections::BTreeMap;

use radar::loss::LossCause;
use radar::rolling::map_bytes;
use radar::rounds::SeenRound;
use radar::rule::{CauseAccount, CauseRule, IntervalAccount, LossEvidence, LossPlace, SampledPacket};
use radar::segment::LostSignature;
use radar::signature::Signature;
use radar::trail::{ArrivalAnswer, LostAnswer, MOST_HASHES, TICK, TrailAnswer, TrailHash, TrailQuestion};
use units::Timestamp;

/// Losses of a segment that are remembered.
const MOST_RECORDS: usize = 1 << 15;
/// Batches that a line waits for an answer.
const LINE_WAITS: u64 = 2;
/// Nanoseconds after which a loss is judged without the answers that have not come.
const JUDGED_AFTER: u64 = 1_000_000_000;
/// Batches for which a loss that was judged is remembered, in case that it comes after all.
const REMEMBERED: u64 = 1_000;
/// Batches before the one in which a loss was found that are searched, too.
const BACK: u64 = 3;
/// Batches of a question.
const LONGEST: u64 = 200;

/// A question for the meter of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecallQuestion {
    pub end: usize,
    /// Number within the segment.
    pub token: u32,
    pub question: TrailQuestion,
}

/// A loss whose line is due, with what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecalledLoss {
    pub lost: LostSignature,
    /// Time at which it was found to be lost.
    pub found: Timestamp,
    pub at: Option<Timestamp>,
    pub ttl: Option<u8>,
}

#[derive(Debug)]
struct LossRecord {
    lost: LostSignature,
    found: Timestamp,
    is_told: bool,
    state: RecallState,
    at: Option<Timestamp>,
    ttl: Option<u8>,
    cause: LossCause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecallState {
    /// Its evidence is not complete.
    Open,
    /// It waits with others for the end of their interval.
    Counted,
    Judged,
}

/// A question without an answer yet, and the losses it is about.
#[derive(Debug)]
struct RecallRequest {
    asked: Timestamp,
    /// Time of the question's first batch.
    base: Timestamp,
    question: TrailQuestion,
    about: RecallSubject,
}

#[derive(Debug)]
enum RecallSubject {
    /// Numbers of losses, as in the question.
    Lost(Vec<u64>),
    /// Losses with their answers; each has a survivor and a sample in the question.
    Arrivals(Vec<PlacedLoss>),
}

/// A loss with its place, and the packets that the far end is asked for.
#[derive(Clone, Copy, Debug)]
struct PlacedLoss {
    number: u64,
    place: LossPlace,
    is_told: bool,
    survivor: Option<(TrailHash, Timestamp)>,
    sample: (TrailHash, Timestamp, u8),
}

#[derive(Debug)]
pub(crate) struct SegmentRecall {
    rule: CauseRule,
    next: u64,
    records: BTreeMap<u64, LossRecord>,
    by_signature: BTreeMap<(Option<usize>, Signature), u64>,
    tokens: u32,
    open: BTreeMap<u32, RecallRequest>,
    questions: Vec<RecallQuestion>,
    accounts: BTreeMap<Option<usize>, CauseAccount>,
    /// Latest place of each way, of which answers have the lowest bits.
    places: BTreeMap<usize, u64>,
}

impl SegmentRecall {
    pub(crate) fn new(rule: CauseRule) -> Self {
        Self {
            rule,
            next: 0,
            records: BTreeMap::new(),
            by_signature: BTreeMap::new(),
            tokens: 0,
            open: BTreeMap::new(),
            questions: Vec::new(),
            accounts: BTreeMap::new(),
            places: BTreeMap::new(),
        }
    }

    /// Approximate memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let records = self.records.len() + self.by_signature.len();
        let of_question = |open: &RecallRequest| open.question.hashes().len() * size_of::<PlacedLoss>();
        let open: usize = self.open.values().map(of_question).sum();
        let accounts: usize = self.accounts.values().map(CauseAccount::bytes).sum();
        map_bytes::<u64, LossRecord>(records) + 2 * open + map_bytes::<u32, RecallRequest>(self.open.len()) + accounts
    }

    /// Losses that were found; those of which nothing can be asked are returned, with their lines due.
    pub(crate) fn on_losses(&mut self, now: Timestamp, length: u64, losses: &[LostSignature]) -> Vec<RecalledLoss> {
        let mut unasked = Vec::new();
        let mut by_end: BTreeMap<usize, Vec<(TrailHash, u64)>> = BTreeMap::new();
        for lost in losses {
            if self.records.len() >= MOST_RECORDS {
                unasked.push(RecalledLoss { lost: *lost, found: now, at: None, ttl: None });
                continue;
            }
            let number = self.next;
            self.next += 1;
            let (state, cause) = (RecallState::Open, LossCause::Unknown);
            let record = LossRecord { lost: *lost, found: now, is_told: false, state, at: None, ttl: None, cause };
            self.records.insert(number, record);
            self.by_signature.insert((lost.from, lost.signature), number);
            match lost.from {
                Some(from) => by_end.entry(from).or_default().push((TrailHash::of(&lost.signature), number)),
                None => unasked.extend(self.without_evidence(number, length)),
            }
        }
        for (from, mut asked) in by_end {
            // The order of hashes is chance: those that are not asked are not of one kind.
            asked.sort_unstable();
            let beyond: Vec<u64> = asked.iter().skip(MOST_HASHES).map(|(_, number)| *number).collect();
            unasked.extend(beyond.into_iter().filter_map(|number| self.without_evidence(number, length)));
            asked.truncate(MOST_HASHES);
            self.ask_lost(now, length, from, &asked);
        }
        unasked
    }

    fn ask_lost(&mut self, now: Timestamp, length: u64, from: usize, asked: &[(TrailHash, u64)]) {
        let batch = |number: &u64| self.records.get(number).map(|record| record.lost.batch);
        let batches = || asked.iter().filter_map(|(_, number)| batch(number));
        let (Some(first), Some(last)) = (batches().min(), batches().max()) else { return };
        // Packets of a batch that did not decode are found later.
        let first = first.saturating_sub(BACK).max(last.saturating_sub(LONGEST));
        let hashes = asked.iter().map(|(hash, _)| *hash).collect();
        let question = TrailQuestion::Lost { batch: first as u16, batches: (last - first + 1) as u8, hashes };
        let about = RecallSubject::Lost(asked.iter().map(|(_, number)| *number).collect());
        self.ask(now, from, Timestamp(first.saturating_mul(length)), question, about);
    }

    fn ask(&mut self, now: Timestamp, end: usize, base: Timestamp, question: TrailQuestion, about: RecallSubject) {
        let token = self.tokens;
        self.tokens = self.tokens.wrapping_add(1);
        // The meter counts in these units.
        let base = Timestamp(base.0 / TICK * TICK);
        self.open.insert(token, RecallRequest { asked: now, base, question: question.clone(), about });
        self.questions.push(RecallQuestion { end, token, question });
    }

    /// Questions that are to be asked now.
    pub(crate) fn take_questions(&mut self) -> Vec<RecallQuestion> {
        std::mem::take(&mut self.questions)
    }

    /// An answer to an open question; bytes that are none count as no answer. Returns lines that are due.
    pub(crate) fn on_answer(
        &mut self,
        now: Timestamp,
        (length, patience): (u64, u64),
        token: u32,
        bytes: &[u8],
    ) -> Vec<RecalledLoss> {
        let Some(open) = self.open.remove(&token) else { return Vec::new() };
        let answer = TrailAnswer::from_bytes(&open.question, bytes).unwrap_or_else(|| open.question.unanswered());
        match (open.about, answer) {
            (RecallSubject::Lost(numbers), TrailAnswer::Lost(lost)) => {
                let asked: Vec<(u64, Option<LostAnswer>)> = numbers.into_iter().zip(lost).collect();
                self.on_lost(now, (length, patience), open.base, &asked)
            }
            (RecallSubject::Arrivals(placed), TrailAnswer::Arrivals(arrivals)) => {
                self.on_arrivals(open.base, &placed, &arrivals, length);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn on_lost(
        &mut self,
        now: Timestamp,
        (length, patience): (u64, u64),
        base: Timestamp,
        asked: &[(u64, Option<LostAnswer>)],
    ) -> Vec<RecalledLoss> {
        let mut due = Vec::new();
        let mut placed = Vec::new();
        for (number, answer) in asked {
            let Some(answer) = answer else {
                due.extend(self.without_evidence(*number, length));
                continue;
            };
            let Some(record) = self.records.get_mut(number).filter(|record| record.state == RecallState::Open) else {
                continue;
            };
            (record.at, record.ttl) = (Some(at(base, answer.time)), Some(answer.ttl));
            due.extend(record.tell());
            let Some(from) = record.lost.from else { continue };
            let known = self.places.entry(from).or_insert(u64::from(answer.place) + (1 << 32));
            *known = known.wrapping_add_signed(i64::from(answer.place.wrapping_sub(*known as u32) as i32));
            let place = LossPlace { place: *known, number: answer.number, others: answer.others, tag: answer.tag };
            let survivor = answer.survivor.map(|(hash, time)| (hash, at(base, time)));
            let sample = (answer.sample.0, at(base, answer.sample.1), answer.sample_tag);
            placed.push(PlacedLoss { number: *number, place, is_told: answer.is_told, survivor, sample });
        }
        // Two packets are asked for with each.
        for placed in placed.chunks(MOST_HASHES / 2) {
            self.ask_arrivals(now, (length, patience), placed);
        }
        due
    }

    fn ask_arrivals(&mut self, now: Timestamp, (length, patience): (u64, u64), placed: &[PlacedLoss]) {
        let from = placed.first().and_then(|first| self.records.get(&first.number)?.lost.from);
        let sent = || placed.iter().flat_map(|it| [it.survivor.map(|(_, at)| at), Some(it.sample.1)]).flatten();
        let (Some(from), Some(first), Some(last)) = (from, sent().min(), sent().max()) else { return };
        let first = (first.0 / length).saturating_sub(1);
        let batches = (last.0 / length + patience + 1).saturating_sub(first).clamp(1, LONGEST);
        let hashes = placed.iter().flat_map(|it| [it.survivor.map_or(it.sample.0, |(hash, _)| hash), it.sample.0]);
        let question =
            TrailQuestion::Arrivals { batch: first as u16, batches: batches as u8, hashes: hashes.collect() };
        let about = RecallSubject::Arrivals(placed.to_vec());
        self.ask(now, 1 - from.min(1), Timestamp(first.saturating_mul(length)), question, about);
    }

    fn on_arrivals(&mut self, base: Timestamp, placed: &[PlacedLoss], arrivals: &[ArrivalAnswer], length: u64) {
        for (placed, pair) in placed.iter().zip(arrivals.chunks(2)) {
            let arrived = |nth: usize| pair.get(nth).and_then(|arrival| arrival.0).map(|time| at(base, time));
            let waited = |sent: Timestamp, came: Timestamp| came.0 as i64 - sent.0 as i64;
            let of_survivor = placed.survivor.and_then(|(_, sent)| Some(waited(sent, arrived(0)?)));
            let (_, sent, tag) = placed.sample;
            let sample = SampledPacket { at: sent, tag, waited: arrived(1).map(|came| waited(sent, came)) };
            self.count(placed, of_survivor, sample, length);
        }
    }

    /// Evidence of a loss is complete: it waits for the end of its interval.
    fn count(&mut self, placed: &PlacedLoss, waited: Option<i64>, sample: SampledPacket, length: u64) {
        let Some(record) = self.records.get_mut(&placed.number).filter(|record| record.state == RecallState::Open)
        else {
            return;
        };
        record.state = RecallState::Counted;
        let known = record.lost.signature.loss(record.at);
        let loss = LossEvidence {
            at: record.at,
            ttl: record.ttl,
            place: Some(placed.place),
            waited,
            is_told: placed.is_told,
            ..LossEvidence::of(&known)
        };
        let about = record.at.unwrap_or(Timestamp(record.lost.batch * length));
        let from = record.lost.from;
        self.account(from).add(placed.number, about, loss, Some(sample));
    }

    /// Nothing more will be known of a loss: its line is due, unless it was told.
    fn without_evidence(&mut self, number: u64, length: u64) -> Option<RecalledLoss> {
        let record = self.records.get_mut(&number).filter(|record| record.state == RecallState::Open)?;
        record.state = RecallState::Counted;
        let due = record.tell();
        let loss =
            LossEvidence { at: record.at, ttl: record.ttl, ..LossEvidence::of(&record.lost.signature.loss(None)) };
        let (from, about) = (record.lost.from, Timestamp(record.lost.batch.saturating_mul(length)));
        self.account(from).add(number, about, loss, None);
        due
    }

    fn account(&mut self, from: Option<usize>) -> &mut CauseAccount {
        let rule = self.rule;
        self.accounts.entry(from).or_insert_with(|| CauseAccount::new(rule))
    }

    /// Packets that entered by an end in a batch, and those that came round there.
    pub(crate) fn on_batch(&mut self, from: Option<usize>, packets: u64) {
        if let Some(account) = self.accounts.get_mut(&from) {
            account.add_packets(packets);
        }
    }

    pub(crate) fn on_round(&mut self, from: Option<usize>, about: Timestamp, round: SeenRound) {
        self.account(from).add_round(about, round);
    }

    /// A packet came after all. Returns its line, if that is not told yet, and the cause with which it was counted.
    pub(crate) fn take_back(
        &mut self,
        late: &LostSignature,
    ) -> (Option<RecalledLoss>, Option<RecalledLoss>, LossCause) {
        let known = self.by_signature.get(&(late.from, late.signature)).copied();
        let Some((number, record)) = known.and_then(|number| Some((number, self.records.get_mut(&number)?))) else {
            return (None, None, LossCause::Unknown);
        };
        let due = record.tell();
        let taken_back = RecalledLoss { lost: *late, found: record.found, at: record.at, ttl: record.ttl };
        let cause = record.cause;
        record.lost.times = record.lost.times.saturating_sub(late.times);
        if record.lost.times == 0 {
            let (from, signature) = (record.lost.from, record.lost.signature);
            self.account(from).take_back(number);
            self.records.remove(&number);
            self.by_signature.remove(&(from, signature));
        }
        (due, Some(taken_back), cause)
    }

    /// Lines that have waited long enough; questions that will not be answered any more.
    pub(crate) fn overdue(&mut self, now: Timestamp, length: u64) -> Vec<RecalledLoss> {
        let is_late = |found: Timestamp| now.since(found) >= LINE_WAITS * length;
        let is_open = |record: &&mut LossRecord| record.state == RecallState::Open;
        let waiting = self.records.values_mut().filter(is_open).filter(|record| is_late(record.found));
        let mut due: Vec<RecalledLoss> = waiting.filter_map(LossRecord::tell).collect();
        let waits = JUDGED_AFTER.max(LINE_WAITS * length);
        self.open.retain(|_, open| now.since(open.asked) < waits);
        let given_up = self.records.iter().filter(|(_, it)| it.state == RecallState::Open);
        let given_up: Vec<u64> =
            given_up.filter(|(_, it)| now.since(it.found) >= 2 * waits).map(|(at, _)| *at).collect();
        due.extend(given_up.into_iter().filter_map(|number| self.without_evidence(number, length)));
        due
    }

    /// Intervals that are over at a time up to which all was compared, each with the end by which packets entered, and the
    /// losses that it judges.
    pub(crate) fn judge(
        &mut self,
        compared: Timestamp,
        now: Timestamp,
        length: u64,
    ) -> Vec<(Option<usize>, IntervalAccount)> {
        let is_open = |record: &&LossRecord| record.state == RecallState::Open;
        let oldest =
            self.records.values().filter(is_open).map(|record| record.lost.batch.saturating_sub(1) * length).min();
        let until = Timestamp(oldest.unwrap_or(u64::MAX).min(compared.0));
        let due = self.accounts.iter_mut().filter_map(|(from, account)| Some((*from, account.due(until)?)));
        let judged: Vec<_> = due.collect();
        self.forget(now, length);
        judged
    }

    /// Ends the input.
    pub(crate) fn end(&mut self, length: u64) -> (Vec<RecalledLoss>, Vec<(Option<usize>, IntervalAccount)>) {
        let is_open = |(_, record): &(&u64, &LossRecord)| record.state == RecallState::Open;
        let open: Vec<u64> = self.records.iter().filter(is_open).map(|(number, _)| *number).collect();
        let due = open.into_iter().filter_map(|number| self.without_evidence(number, length)).collect();
        (due, self.accounts.iter_mut().filter_map(|(from, account)| Some((*from, account.end()?))).collect())
    }

    /// A loss was judged: the packets that it stands for, which are counted with its cause from now on.
    pub(crate) fn on_judged(&mut self, number: u64, cause: LossCause) -> Option<LostSignature> {
        let record = self.records.get_mut(&number)?;
        (record.state, record.cause) = (RecallState::Judged, cause);
        Some(record.lost)
    }

    fn forget(&mut self, now: Timestamp, length: u64) {
        let is_old = |record: &LossRecord| {
            record.state == RecallState::Judged && now.since(record.found) > REMEMBERED.saturating_mul(length)
        };
        let old = self.records.iter().take_while(|(_, record)| is_old(record)).map(|(number, _)| *number);
        for number in old.collect::<Vec<_>>() {
            if let Some(record) = self.records.remove(&number) {
                self.by_signature.remove(&(record.lost.from, record.lost.signature));
            }
        }
    }
}

impl LossRecord {
    /// Its line, once.
    fn tell(&mut self) -> Option<RecalledLoss> {
        let is_new = !std::mem::replace(&mut self.is_told, true);
        is_new.then_some(RecalledLoss { lost: self.lost, found: self.found, at: self.at, ttl: self.ttl })
    }
}

/// Time of an answer, which counts from the first batch of its question.
fn at(base: Timestamp, time: u32) -> Timestamp {
    Timestamp(base.0.saturating_add_signed(i64::from(time as i32) * TICK as i64))
}
