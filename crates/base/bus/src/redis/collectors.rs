//! Announcements and findings of collectors in Redis.
//!
//! | key | what is under it |
//! | --- | --- |
//! | `PREFIX:collectors` | a hash: the announcement of each collector by its name; gone a minute after the last one |
//! | `PREFIX:finding:SEGMENT` | the latest finding of a segment; gone a minute after it |
//!
//! Both are read by scripts or in parts, because whoever can write to Redis can write texts of any length and number: what
//! cannot be ours stays there.

use std::time::Duration;

use redis::{Value, cmd, pipe};

use super::address::RedisAddress;
use super::answer;
use super::line::RedisConnection;
use crate::BusError;
use crate::collectors::{Announcement, LONGEST, LatestFinding};
use crate::key::OrderKey;

const ANNOUNCE: &str = include_str!("announce.lua");
const COLLECTORS: &str = include_str!("collectors.lua");
/// Announcements that are read, ours or not.
const MOST_READ: usize = 1_024;
/// Milliseconds for which what is not said again stays.
const STAYS_MS: u64 = 60_000;
/// Findings written or read in one go, and read at all.
const AT_A_TIME: usize = 256;
const MOST_FINDINGS: usize = 65_536;
/// Steps of a scan after which something is wrong.
const STEPS: usize = 100_000;

/// Redis, as collectors and their meters use it.
#[derive(Debug)]
pub struct CollectorBoard {
    line: RedisConnection,
}

impl CollectorBoard {
    pub fn new(address: RedisAddress) -> Self {
        Self { line: RedisConnection::new(address) }
    }

    fn name(&self, key: &str) -> String {
        format!("{}:{key}", self.line.address().prefix)
    }

    /// Announces, or takes the announcement back if `text` is empty, unless something else than `believed` is there: that is
    /// returned.
    pub fn announce(&mut self, name: &str, believed: &str, text: &str) -> Result<Option<String>, BusError> {
        let mut script = cmd("EVAL");
        script.arg(ANNOUNCE).arg(1).arg(self.name("collectors"));
        script.arg(name).arg(believed).arg(text).arg(STAYS_MS).arg(LONGEST);
        let doing = "announcing a collector";
        let answer = self.line.ask(doing, &script, Duration::ZERO)?;
        match text_of(&answer) {
            Some(there) => Ok(Some(there).filter(|there| !there.is_empty())),
            None => Err(self.line.nonsense(doing, &answer)),
        }
    }

    /// Texts of all announcements, unread.
    pub fn announcements(&mut self) -> Result<Vec<String>, BusError> {
        let mut script = cmd("EVAL");
        script.arg(COLLECTORS).arg(1).arg(self.name("collectors")).arg(LONGEST).arg(MOST_READ);
        let doing = "reading which collectors there are";
        let answer = self.line.ask(doing, &script, Duration::ZERO)?;
        match &answer {
            Value::Array(texts) => Ok(texts.iter().filter_map(text_of).collect()),
            _ => Err(self.line.nonsense(doing, &answer)),
        }
    }

    /// Those that can be believed and have not expired, by name.
    pub fn collectors(&mut self, key: Option<&OrderKey>, now_ms: u64) -> Result<Vec<Announcement>, BusError> {
        let texts = self.announcements()?;
        let read = texts.iter().filter_map(|text| Announcement::parse(text, key).ok());
        let mut found: Vec<Announcement> = read.filter(|said| !said.is_over(now_ms)).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found.truncate(crate::collectors::MOST_COLLECTORS);
        Ok(found)
    }

    pub fn publish(&mut self, findings: &[LatestFinding], key: Option<&OrderKey>) -> Result<(), BusError> {
        for some in findings.chunks(AT_A_TIME) {
            let mut commands = pipe();
            for finding in some {
                let name = self.name(&format!("finding:{}", finding.segment));
                commands.cmd("SET").arg(name).arg(finding.to_text(key)).arg("PX").arg(STAYS_MS);
            }
            self.line.ask_all("publishing findings", &commands)?;
        }
        Ok(())
    }

    /// The latest finding of every segment that can be believed, in order.
    pub fn findings(&mut self, key: Option<&OrderKey>) -> Result<Vec<LatestFinding>, BusError> {
        let keys = self.finding_keys()?;
        let mut found = Vec::new();
        for some in keys.chunks(AT_A_TIME) {
            let mut questions = pipe();
            for key in some {
                questions.cmd("GETRANGE").arg(key).arg(0).arg(LONGEST);
            }
            let answers = self.line.ask_all("reading findings", &questions)?;
            let texts = answers.iter().flatten().filter_map(text_of);
            found.extend(texts.filter_map(|text| LatestFinding::parse(&text, key).ok()));
        }
        found.sort_by(|a, b| a.segment.cmp(&b.segment));
        found.dedup_by(|a, b| a.segment == b.segment);
        Ok(found)
    }

    /// Bytes that the server has allocated.
    pub fn memory(&mut self) -> Result<u64, BusError> {
        let doing = "asking for its memory";
        let answer = self.line.ask(doing, cmd("INFO").arg("memory"), Duration::ZERO)?;
        let text = text_of(&answer).unwrap_or_default();
        let used = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
        used.and_then(|used| used.trim().parse().ok()).ok_or_else(|| self.line.nonsense(doing, &answer))
    }

    fn finding_keys(&mut self) -> Result<Vec<String>, BusError> {
        // A prefix has no characters of patterns but braces, which are none in SCAN.
        let (pattern, doing) = (self.name("finding:*"), "looking for findings");
        let (mut cursor, mut found) = (0, std::collections::BTreeSet::new());
        for _ in 0..STEPS {
            let mut scan = cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(1_000);
            let answer = self.line.ask(doing, &scan, Duration::ZERO)?;
            let Some((next, keys)) = answer::scanned(&answer) else { return Err(self.line.nonsense(doing, &answer)) };
            found.extend(keys.into_iter().filter(|key| key.len() < LONGEST));
            if next == 0 || found.len() >= MOST_FINDINGS {
                return Ok(found.into_iter().take(MOST_FINDINGS).collect());
            }
            cursor = next;
        }
        Err(BusError::Down(format!("{}: {doing}: there is no end of it", self.line.address())))
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        _ => None,
    }
}
