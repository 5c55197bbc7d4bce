//! Decisions of time at one end: the answers of [`TcpSite`] and the numbers of [`TcpTick`].
//!
//! No is the usual answer and is not written: each site has the numbers of noes before each yes. For a number, the log has
//! the reads since the last change, and the change. Both are plain bytes while a block is recorded, and coded when it is
//! full.

use machine::{Out, Port, QueueId, TimeSite};
use tcp::{TcpConnection, TcpNote, TcpProgress, TcpSegment, TcpSite, TcpTick, TcpTimer};
use units::Time;

use crate::bytes::{LogReader, put};
use crate::coder::{BitModel, NumberModel, RangeDecoder, RangeEncoder};
use crate::log::LogFault;

const SITES: usize = TcpSite::ALL.len();
const TICKS: usize = TcpTick::ALL.len();
/// Answers of a block are fewer than this.
const MOST: u64 = 1 << 24;

/// The answers of a block that is being recorded.
#[derive(Debug, Default)]
pub struct DecisionLog {
    /// Noes since the last yes.
    noes: [u32; SITES],
    /// A site and the noes before it, for each yes.
    answers: Vec<u8>,
    /// Reads since the last change, and what was read.
    reads: [u32; TICKS],
    last: [u64; TICKS],
    /// A site, the reads before it and the change, for each.
    changes: Vec<u8>,
}

impl DecisionLog {
    /// Records an answer.
    #[inline]
    pub fn decide(&mut self, site: TimeSite, yes: bool) {
        let noes = &mut self.noes[usize::from(site.0)];
        if yes {
            let before = std::mem::take(noes);
            self.answers.push(site.0);
            put(&mut self.answers, u64::from(before));
        } else {
            *noes += 1;
        }
    }

    /// Records a number that was read.
    #[inline]
    pub fn tick(&mut self, site: TimeSite, value: u64) {
        let at = usize::from(site.0);
        let change = value.wrapping_sub(self.last[at]) as i64;
        if change == 0 {
            self.reads[at] += 1;
        } else {
            self.changes.push(site.0);
            put(&mut self.changes, u64::from(std::mem::take(&mut self.reads[at])));
            put(&mut self.changes, zigzag(change));
            self.last[at] = value;
        }
    }

    /// Codes the block, and begins the next one: answers, numbers.
    pub(crate) fn encode(&mut self) -> [Vec<u8>; 2] {
        let (mut answers, mut changes) = ([const { Vec::new() }; SITES], [const { Vec::new() }; TICKS]);
        let mut reader = LogReader::new(&self.answers);
        while let (Ok(site), Ok(noes)) = (reader.byte(), reader.number()) {
            answers[usize::from(site)].push([noes]);
        }
        let mut reader = LogReader::new(&self.changes);
        while let (Ok(site), Ok(reads), Ok(change)) = (reader.byte(), reader.number(), reader.number()) {
            changes[usize::from(site)].push([reads, change]);
        }
        (self.noes, self.reads) = ([0; SITES], [0; TICKS]);
        self.answers.clear();
        self.changes.clear();
        [encode(&answers), encode(&changes)]
    }
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// The lists of all sites, each entry of `N` numbers. Empty lists take next to nothing.
fn encode<const N: usize>(lists: &[Vec<[u64; N]>]) -> Vec<u8> {
    let (mut encoder, mut count) = (RangeEncoder::new(), NumberModel::default());
    let (mut filled, mut large) = (BitModel::default(), BitModel::default());
    for list in lists {
        encoder.bit(&mut filled, !list.is_empty());
        if list.is_empty() {
            continue;
        }
        encoder.number(&mut count, list.len() as u64);
        let mut models: [NumberModel; N] = std::array::from_fn(|_| NumberModel::default());
        for entry in list {
            for (model, value) in models.iter_mut().zip(entry) {
                // The coder takes numbers below 2⁶³.
                encoder.bit(&mut large, value >> 62 != 0);
                if value >> 62 != 0 {
                    encoder.even(value >> 63 == 1);
                    encoder.even(value >> 62 & 1 == 1);
                }
                encoder.number(model, value & (u64::MAX >> 2));
            }
        }
    }
    encoder.finish()
}

fn decode<const N: usize>(bytes: &[u8], sites: usize) -> Result<Vec<Vec<[u64; N]>>, LogFault> {
    let (mut decoder, mut count) = (RangeDecoder::new(bytes), NumberModel::default());
    let (mut filled, mut large) = (BitModel::default(), BitModel::default());
    let mut lists = Vec::with_capacity(sites);
    for _ in 0..sites {
        let entries = if decoder.bit(&mut filled) { decoder.number(&mut count) } else { 0 };
        if entries > MOST {
            return Err(LogFault::Value("number of decisions"));
        }
        let mut models: [NumberModel; N] = std::array::from_fn(|_| NumberModel::default());
        let mut entry = || {
            std::array::from_fn(|at| {
                let mut high = 0;
                if decoder.bit(&mut large) {
                    high = u64::from(decoder.even()) << 63;
                    high |= u64::from(decoder.even()) << 62;
                }
                high | decoder.number(&mut models[at])
            })
        };
        lists.push((0..entries).map(|_| entry()).collect());
    }
    Ok(lists)
}

/// Gives the answers of a log, in the order in which they are asked for.
#[derive(Debug, Default)]
pub(crate) struct DecisionCursor {
    /// Entries of the block for each site, the last first; the last entry counts the noes left before the next yes.
    answers: Vec<Vec<[u64; 1]>>,
    changes: Vec<Vec<[u64; 2]>>,
    values: [u64; TICKS],
}

impl DecisionCursor {
    /// Goes on with the next block. False if answers of the last one were not asked for.
    pub(crate) fn next_block(&mut self, answers: &[u8], changes: &[u8]) -> Result<bool, LogFault> {
        let is_used_up = self.is_used_up();
        self.answers = decode(answers, SITES)?;
        self.changes = decode(changes, TICKS)?;
        self.answers.iter_mut().for_each(|list| list.reverse());
        self.changes.iter_mut().for_each(|list| list.reverse());
        Ok(is_used_up)
    }

    /// True if all answers were asked for.
    pub(crate) fn is_used_up(&self) -> bool {
        self.answers.iter().all(Vec::is_empty) && self.changes.iter().all(Vec::is_empty)
    }

    pub(crate) fn decide(&mut self, site: TimeSite) -> bool {
        let Some(list) = self.answers.get_mut(usize::from(site.0)) else { return false };
        match list.last_mut() {
            None => false,
            Some([0]) => list.pop().is_some(),
            Some([noes]) => {
                *noes -= 1;
                false
            }
        }
    }

    /// The number, and whether it is another than the last.
    pub(crate) fn tick(&mut self, site: TimeSite) -> (u64, bool) {
        let at = usize::from(site.0);
        let (Some(list), Some(value)) = (self.changes.get_mut(at), self.values.get_mut(at)) else { return (0, false) };
        match list.last_mut() {
            None => (*value, false),
            Some([0, change]) => {
                *value = value.wrapping_add((*change >> 1) ^ (*change & 1).wrapping_neg());
                list.pop();
                (*value, true)
            }
            Some([reads, _]) => {
                *reads -= 1;
                (*value, false)
            }
        }
    }
}

/// A sink whose answers are recorded.
#[derive(Debug)]
pub(crate) struct RecordingSink<'a, O> {
    /// The sink itself.
    pub out: &'a mut O,
    /// Log of answers; `None` if the log has the time of every call instead.
    pub decisions: Option<&'a mut DecisionLog>,
}

impl<O: Out<TcpConnection>> Out<TcpConnection> for RecordingSink<'_, O> {
    fn transmit(&mut self, port: Port, segment: TcpSegment) {
        self.out.transmit(port, segment);
    }
    fn wake(&mut self, port: Port) {
        self.out.wake(port);
    }
    fn waiting(&self, lane: QueueId) -> bool {
        self.out.waiting(lane)
    }
    fn take(&mut self, lane: QueueId) -> Option<()> {
        self.out.take(lane)
    }
    fn keep(&mut self, inner: &()) {
        self.out.keep(inner);
    }
    fn release(&mut self, inner: ()) {
        self.out.release(inner);
    }
    fn deliver(&mut self, lane: QueueId, inner: ()) {
        self.out.deliver(lane, inner);
    }
    fn arm(&mut self, key: TcpTimer, at: Time) {
        self.out.arm(key, at);
    }
    fn disarm(&mut self, key: TcpTimer) {
        self.out.disarm(key);
    }
    fn complete(&mut self, done: TcpProgress) {
        self.out.complete(done);
    }
    fn note(&mut self, note: TcpNote) {
        self.out.note(note);
    }
    fn decide(&mut self, site: TimeSite, computed: bool) -> bool {
        if let Some(decisions) = &mut self.decisions {
            decisions.decide(site, computed);
        }
        computed
    }
    fn tick(&mut self, site: TimeSite, computed: u64) -> u64 {
        if let Some(decisions) = &mut self.decisions {
            decisions.tick(site, computed);
        }
        computed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn answers_come_back_in_their_order(
            blocks in proptest::collection::vec(
                proptest::collection::vec((0u8..SITES as u8, any::<bool>(), 0u8..TICKS as u8, prop_oneof![0u64..3, any::<u64>()]), 0..200),
                1..4,
            ),
        ) {
            let (mut log, mut cursor) = (DecisionLog::default(), DecisionCursor::default());
            for block in &blocks {
                for (site, yes, tick, value) in block {
                    log.decide(TimeSite(*site), *yes);
                    log.tick(TimeSite(*tick), *value);
                }
                let [answers, changes] = log.encode();
                prop_assert!(cursor.next_block(&answers, &changes).unwrap());
                for (site, yes, tick, value) in block {
                    prop_assert_eq!(cursor.decide(TimeSite(*site)), *yes);
                    prop_assert_eq!(cursor.tick(TimeSite(*tick)).0, *value);
                }
                prop_assert!(cursor.is_used_up());
            }
        }
    }

    #[test]
    fn usual_answers_take_nothing() {
        let mut log = DecisionLog::default();
        (0..10_000).for_each(|n| log.decide(TimeSite((n % SITES) as u8), false));
        assert_eq!(log.encode(), [vec![], vec![]]);
    }
}
