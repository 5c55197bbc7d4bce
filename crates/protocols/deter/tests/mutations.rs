//! Logs with bytes and blocks changed at random: they are refused, or replayed, and nothing panics.
//!
//! Checks would refuse nearly all of them at once. They are made right again, so that what a block holds is read.

use crc32fast::Hasher;
use deter::{ConnectionLog, LogFault, LogLevel, ReplayJitter, record_trial, replay, replay_jittered};
use testkit::{FuzzRandom, changed_bytes, fuzz_changes};

/// Magic, format, behaviour.
const PREFIX: usize = 12;
/// Longest content of a block.
const LONGEST: usize = 20_000;

/// A block: kind and content.
type LogBlock = (u8, Vec<u8>);

/// Blocks of a log that is right.
fn blocks(log: &[u8]) -> Vec<LogBlock> {
    let (mut at, mut blocks) = (PREFIX, Vec::new());
    while at < log.len() {
        let (kind, mut len, mut shift) = (log[at], 0, 0);
        loop {
            at += 1;
            len |= usize::from(log[at] & 0x7f) << shift;
            shift += 7;
            if log[at] < 0x80 {
                break;
            }
        }
        blocks.push((kind, log[at + 1..][..len].to_vec()));
        at += 1 + len + 4;
    }
    blocks
}

/// A log of these blocks, each with its length and its check.
fn signed(prefix: &[u8], blocks: &[LogBlock]) -> Vec<u8> {
    let check = |before: u32, bytes: &[u8]| {
        let mut hasher = Hasher::new();
        hasher.update(&before.to_le_bytes());
        hasher.update(bytes);
        hasher.finalize()
    };
    let (mut log, mut last) = (prefix.to_vec(), check(0, prefix));
    for (kind, content) in blocks {
        let begin = log.len();
        log.push(*kind);
        let mut len = content.len();
        while len >= 0x80 {
            log.push(len as u8 | 0x80);
            len >>= 7;
        }
        log.push(len as u8);
        log.extend(content);
        last = check(last, &log[begin..]);
        log.extend(last.to_le_bytes());
    }
    log
}

fn changed(random: &mut FuzzRandom, prefix: &[u8], samples: &[Vec<LogBlock>]) -> Vec<u8> {
    let mut blocks = random.one_of(samples).clone();
    let (at, to) = (random.below(blocks.len()), random.below(blocks.len()));
    match random.below(12) {
        0 => blocks.swap(at, to),
        1 => blocks.insert(to, blocks[at].clone()),
        2 if blocks.len() > 1 => drop(blocks.remove(at)),
        3 => blocks[at].0 = random.below(5) as u8,
        _ => {
            let contents: Vec<Vec<u8>> = vec![blocks[at].1.clone()];
            blocks[at].1 = changed_bytes(random, &contents, LONGEST);
        }
    }
    signed(prefix, &blocks)
}

/// Read as a whole and as far as it is there, and replayed by its own times and by a wrong clock.
fn read(bytes: &[u8]) -> bool {
    if let Ok(log) = ConnectionLog::read_so_far(bytes) {
        log.column_bytes();
        let jitter = ReplayJitter { seed: Some(1), ..ReplayJitter::default() };
        let _ = replay_jittered(&log, jitter, &mut ());
    }
    ConnectionLog::read(bytes).is_ok_and(|log| replay(&log, &mut ()).is_ok())
}

/// What no recorder writes in so few bytes would be replayed for ever.
#[test]
fn a_block_that_claims_more_calls_than_any_has_is_refused() {
    let log = record_trial(1, LogLevel::Times).unwrap();
    let mut blocks = blocks(&log);
    let block = &mut blocks[1].1;
    let end = block.iter().position(|byte| *byte < 0x80).unwrap();
    block.splice(..=end, [0xff; 8].into_iter().chain([0x3f]));
    let changed = signed(&log[..PREFIX], &blocks);
    assert_eq!(ConnectionLog::read_so_far(&changed).unwrap_err().fault, LogFault::Value("calls"));
}

#[test]
fn any_log_is_replayed_or_refused_without_a_panic() {
    let logs = [(1, LogLevel::Times), (2, LogLevel::Decisions)].map(|(seed, level)| record_trial(seed, level).unwrap());
    let prefix = &logs[0][..PREFIX];
    let samples = logs.each_ref().map(|log| blocks(log));
    for (log, blocks) in logs.iter().zip(&samples) {
        assert_eq!(&signed(prefix, blocks), log);
        assert!(read(log));
    }
    let mut replayed = 0;
    fuzz_changes(100_000, |random| changed(random, prefix, &samples), |bytes| replayed += u64::from(read(bytes)));
    assert!(replayed > 0, "some can still be replayed");
}
