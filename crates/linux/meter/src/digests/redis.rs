//! Reports over Redis: a stream of bounded length, `PREFIX:digests`, with the fields `life`, `number` and `report`, and with a
//! key `tag`.
//!
//! Entries are read by a script, because any process that can write to the stream can write entries of any size: what
//! cannot be ours stays in Redis. A collector starts at the end of the stream; an entry that was trimmed before the
//! collector came to it is missing like any other report.

use std::time::Duration;
use std::{cmp, thread};

use redis::{Value, cmd};

use super::answer::{ReceivedAnswer, ReportAnswer};
use super::report_queue::ReportTransport;
use super::report_receiver::ReportGate;
use super::seal::entry_tag;
use super::{Envelope, LONGEST, flag};
use bus::BusError;
use bus::key::OrderKey;
use bus::redis::line::RedisConnection;
use linux::clock::Clock;

pub(super) use bus::redis::address::RedisAddress;

const READ: &str = include_str!("redis/read.lua");
const LAST: &str = include_str!("redis/last.lua");

/// Reports that Redis is asked to keep at most: some seconds of a few meters.
const KEPT: usize = 4_096;
/// Reports asked for at a time, and their bytes.
const AT_A_TIME: usize = 64;
const BYTES_AT_A_TIME: usize = 4 << 20;
/// The wait where there is nothing new: a script cannot wait for more.
const PAUSE: Duration = Duration::from_millis(4);
const WAIT: Duration = Duration::from_millis(50);
/// Looks before a failure is tried again.
const TRY_AGAIN: usize = 20;
/// Time between two rounds of answers, their number in a round, and the milliseconds for which they stay.
const ANSWER_EVERY: Duration = Duration::from_millis(200);
const ANSWERS: usize = 64;
const ANSWER_STAYS: u64 = 60_000;
/// The wait after answers could not be written.
const ANSWER_AGAIN: Duration = Duration::from_secs(10);
/// The longest answer, in bytes.
const LONGEST_ANSWER: usize = 500;

fn stream(address: &RedisAddress) -> String {
    format!("{}:digests", address.prefix)
}

/// The key under which a meter finds the answer.
fn answer_key(stream: &str, life: u64) -> String {
    format!("{stream}:{life}")
}

#[derive(Debug)]
pub(crate) struct RedisTransport {
    line: RedisConnection,
    stream: String,
    kept: usize,
    key: Option<OrderKey>,
    clock: Clock,
    heard: Duration,
}

impl RedisTransport {
    pub(crate) fn new(address: &RedisAddress, key: Option<OrderKey>) -> Self {
        let kept = cmp::min(address.history, KEPT);
        let line = RedisConnection::new(address.clone());
        Self { stream: stream(address), line, kept, key, clock: Clock::start(), heard: Duration::ZERO }
    }
}

impl ReportTransport for RedisTransport {
    fn send(&mut self, envelope: &Envelope) -> Result<(), String> {
        let Envelope { life, number, report, .. } = envelope;
        let mut add = cmd("XADD");
        add.arg(&self.stream).arg("MAXLEN").arg("~").arg(self.kept).arg("*");
        add.arg("life").arg(life).arg("number").arg(number).arg("report").arg(report);
        if let Some(key) = &self.key {
            add.arg("tag").arg(entry_tag(key, *life, *number, report));
        }
        self.line.ask("telling a report", &add, Duration::ZERO).map(drop).map_err(|error| error.to_string())
    }

    fn hear(&mut self, life: u64) -> Vec<ReceivedAnswer> {
        if self.clock.elapsed() < self.heard + ANSWER_EVERY {
            return Vec::new();
        }
        self.heard = self.clock.elapsed();
        let mut get = cmd("GETRANGE");
        get.arg(answer_key(&self.stream, life)).arg(0).arg(LONGEST_ANSWER);
        // The next report will show if Redis is gone.
        let answer = self.line.ask("reading an answer", &get, Duration::ZERO).ok();
        let text = answer.as_ref().and_then(text);
        text.and_then(|text| ReportAnswer::from_text(life, &text, self.key.as_ref())).into_iter().collect()
    }

    fn reply(&mut self, _question: u32, _body: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn is_connected(&self) -> bool {
        true
    }
}

/// Writes what meters are to hear.
struct AnswerKeys {
    line: RedisConnection,
    stream: String,
    next: Duration,
    said: bool,
}

impl AnswerKeys {
    fn write(&mut self, gate: &ReportGate<'_>) {
        if gate.now() < self.next {
            return;
        }
        self.next = gate.now() + ANSWER_EVERY;
        for answer in gate.answers().changed(ANSWERS) {
            let mut set = cmd("SET");
            set.arg(answer_key(&self.stream, answer.life)).arg(answer.to_text(gate.key)).arg("PX").arg(ANSWER_STAYS);
            if let Err(error) = self.line.ask("answering meters", &set, Duration::ZERO) {
                self.next = gate.now() + ANSWER_AGAIN;
                if !std::mem::replace(&mut self.said, true) {
                    gate.tell(&format!("{error}; meters cannot learn whether their reports are taken"));
                }
                return;
            }
            self.said = false;
        }
    }
}

/// Reads until the gate is closed.
pub(crate) fn follow(address: &RedisAddress, gate: &ReportGate<'_>) {
    let (line, stream) = (RedisConnection::new(address.clone()), stream(address));
    let mut answers = AnswerKeys { line: line.another(), stream: stream.clone(), next: Duration::ZERO, said: false };
    let mut reader = StreamReader { line, stream, place: None, key: gate.key };
    let mut said: Option<String> = None;
    while !gate.is_closed() {
        answers.write(gate);
        match reader.read() {
            Ok(entries) => {
                if said.take().is_some() {
                    gate.tell(&format!("{address}: connected again"));
                }
                if entries.is_empty() {
                    thread::sleep(PAUSE);
                }
                for entry in entries {
                    let envelope = match entry {
                        Ok(envelope) => envelope,
                        Err(what) => {
                            if let EntryError::Forged(life) = what {
                                gate.answers().note_forged(
                                    life,
                                    "was not sealed with the collector's key: give both the same --key",
                                );
                            }
                            gate.tell(&format!("`{}` has an entry that {}", reader.stream, what.in_words()));
                            continue;
                        }
                    };
                    if !gate.pass(envelope, None) {
                        return;
                    }
                }
            }
            Err(error) => {
                let why = error.to_string();
                if said.as_ref() != Some(&why) {
                    gate.tell(&why);
                    said = Some(why);
                }
                (0..TRY_AGAIN).filter(|_| !gate.is_closed()).for_each(|_| thread::sleep(WAIT));
            }
        }
    }
}

struct StreamReader<'a> {
    line: RedisConnection,
    stream: String,
    /// The last entry read; the end of the stream when it was first looked at.
    place: Option<String>,
    key: Option<&'a OrderKey>,
}

/// Reason why an entry is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryError {
    Foreign,
    /// A key is set, and the entry does not carry its tag; the incarnation that the entry names.
    Forged(u64),
}

impl EntryError {
    fn in_words(self) -> &'static str {
        match self {
            Self::Foreign => "is no report of ours",
            Self::Forged(_) => "was not sealed with our key; refused",
        }
    }
}

impl StreamReader<'_> {
    fn read(&mut self) -> Result<Vec<Result<Envelope, EntryError>>, BusError> {
        let doing = format!("reading `{}`", self.stream);
        let place = match self.place.clone() {
            Some(place) => place,
            None => self.end(&doing)?,
        };
        self.place = Some(place.clone());
        let mut read = cmd("EVAL");
        read.arg(READ).arg(1).arg(&self.stream);
        read.arg(&place).arg(AT_A_TIME).arg(LONGEST + 100).arg(BYTES_AT_A_TIME);
        let answer = self.line.ask(&doing, &read, Duration::ZERO)?;
        let Some(entries) = read_answer(&answer, self.key) else { return Err(self.line.nonsense(&doing, &answer)) };
        let Some((last, _)) = entries.last() else { return Ok(Vec::new()) };
        self.place = Some(last.clone());
        Ok(entries.into_iter().map(|(_, envelope)| envelope).collect())
    }

    fn end(&mut self, doing: &str) -> Result<String, BusError> {
        let mut last = cmd("EVAL");
        last.arg(LAST).arg(1).arg(&self.stream);
        let answer = self.line.ask(doing, &last, Duration::ZERO)?;
        text(&answer).ok_or_else(|| self.line.nonsense(doing, &answer))
    }
}

type StreamEntry = (String, Result<Envelope, EntryError>);

/// `[[id, [field, value, …]], …]`.
fn read_answer(value: &Value, key: Option<&OrderKey>) -> Option<Vec<StreamEntry>> {
    list(value)?.iter().map(|value| entry(value, key)).collect()
}

fn entry(value: &Value, key: Option<&OrderKey>) -> Option<StreamEntry> {
    let [id, fields] = list(value)? else { return None };
    let (envelope, tag) = match list(fields).and_then(envelope) {
        Some(found) => found,
        None => return Some((text(id)?, Err(EntryError::Foreign))),
    };
    let is_sealed = key.is_none_or(|key| tag == Some(entry_tag(key, envelope.life, envelope.number, &envelope.report)));
    Some((text(id)?, if is_sealed { Ok(envelope) } else { Err(EntryError::Forged(envelope.life)) }))
}

/// Report in the fields of an entry, and its tag if it has one.
fn envelope(fields: &[Value]) -> Option<(Envelope, Option<u64>)> {
    let field = |name: &str| {
        fields.chunks_exact(2).find(|pair| bytes(&pair[0]) == Some(name.as_bytes())).and_then(|pair| bytes(&pair[1]))
    };
    let number = |name: &str| std::str::from_utf8(field(name)?).ok()?.parse().ok();
    let report = field("report").filter(|report| report.len() <= LONGEST)?.to_vec();
    Some((Envelope { life: number("life")?, number: number("number")?, flags: flag::JUDGE, report }, number("tag")))
}

fn list(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    }
}

fn text(value: &Value) -> Option<String> {
    String::from_utf8(bytes(value)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn entry(fields: &[&str]) -> Value {
        Value::Array(vec![bulk("1-1"), Value::Array(fields.iter().map(|field| bulk(field)).collect())])
    }

    fn found(entries: Vec<Value>, key: Option<&OrderKey>) -> Vec<Result<Envelope, EntryError>> {
        let found = read_answer(&Value::Array(entries), key).unwrap();
        found.into_iter().map(|(_, envelope)| envelope).collect()
    }

    #[test]
    fn an_entry_that_is_not_ours_is_told_apart_from_an_answer_that_makes_no_sense() {
        let ours = Envelope { life: 7, number: 3, flags: flag::JUDGE, report: b"x".to_vec() };
        let fine = entry(&["life", "7", "number", "3", "report", "x"]);
        let strange = entry(&["life", "7", "number", "three", "report", "x"]);
        let long = entry(&[]);
        let all = found(vec![fine, strange, entry(&["message", "{}"]), long], None);
        assert_eq!(all, [Ok(ours), Err(EntryError::Foreign), Err(EntryError::Foreign), Err(EntryError::Foreign)]);
        assert_eq!(read_answer(&Value::Array(Vec::new()), None), Some(Vec::new()));
        assert_eq!(read_answer(&Value::Okay, None), None);
        assert_eq!(read_answer(&Value::Array(vec![Value::Int(3)]), None), None);
    }

    #[test]
    fn with_a_key_an_entry_needs_the_tag_of_its_life_and_number() {
        let key = OrderKey::new([7; 16]);
        let tag = entry_tag(&key, 7, 3, b"x").to_string();
        let sealed = entry(&["life", "7", "number", "3", "report", "x", "tag", &tag]);
        let renumbered = entry(&["life", "7", "number", "4", "report", "x", "tag", &tag]);
        let bare = entry(&["life", "7", "number", "3", "report", "x"]);
        let all = found(vec![sealed, renumbered, bare], Some(&key));
        assert!(all[0].is_ok());
        assert_eq!(all[1..], [Err(EntryError::Forged(7)), Err(EntryError::Forged(7))]);
    }
}
