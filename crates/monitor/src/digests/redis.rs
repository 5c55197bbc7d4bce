//! Reports over Redis: a stream of bounded length, `PREFIX:digests`, with the fields `life`, `number` and `report`.
//!
//! A collector starts at the end of the stream; what was trimmed before it came to it is missing like any other report.

use std::time::Duration;
use std::{cmp, thread};

use redis::{Value, cmd};

use super::inlet::Gate;
use super::post::Way;
use super::{Envelope, LONGEST};
use crate::bus::BusError;
use crate::bus::redis::address::Address;
use crate::bus::redis::line::Line;

/// Reports that Redis is asked to keep at most: some seconds of a few meters.
const KEPT: usize = 4_096;
/// Reports asked for at a time.
const AT_A_TIME: usize = 64;
/// How long Redis is asked to wait for the next report.
const BLOCK: Duration = Duration::from_millis(100);
const WAIT: Duration = Duration::from_millis(50);
/// Looks before a failure is tried again.
const TRY_AGAIN: usize = 20;

fn stream(address: &Address) -> String {
    format!("{}:digests", address.prefix)
}

#[derive(Debug)]
pub struct RedisOut {
    line: Line,
    stream: String,
    kept: usize,
}

impl RedisOut {
    pub fn new(address: &Address) -> Self {
        let kept = cmp::min(address.history, KEPT);
        Self { stream: stream(address), line: Line::new(address.clone()), kept }
    }
}

impl Way for RedisOut {
    fn send(&mut self, envelope: &Envelope) -> Result<(), String> {
        let Envelope { life, number, report } = envelope;
        let mut add = cmd("XADD");
        add.arg(&self.stream).arg("MAXLEN").arg("~").arg(self.kept).arg("*");
        add.arg("life").arg(life).arg("number").arg(number).arg("report").arg(report);
        self.line.ask("telling a report", &add, Duration::ZERO).map(drop).map_err(|error| error.to_string())
    }
}

/// Reads until told to end.
pub fn follow(address: &Address, gate: &Gate<'_>) {
    let mut reader = Reader { line: Line::new(address.clone()), stream: stream(address), place: None };
    let mut said: Option<String> = None;
    while !gate.is_closed() {
        match reader.read() {
            Ok(entries) => {
                if said.take().is_some() {
                    gate.tell(&format!("{address}: connected again"));
                }
                for entry in entries {
                    let Some(envelope) = entry else {
                        gate.tell(&format!("`{}` has an entry that is no report of ours", reader.stream));
                        continue;
                    };
                    if !gate.pass(envelope) {
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

struct Reader {
    line: Line,
    stream: String,
    /// The last entry read; the end of the stream when it was first looked at.
    place: Option<String>,
}

impl Reader {
    /// `None` for an entry that is not ours.
    fn read(&mut self) -> Result<Vec<Option<Envelope>>, BusError> {
        let doing = format!("reading `{}`", self.stream);
        let place = match self.place.clone() {
            Some(place) => place,
            None => self.end(&doing)?,
        };
        self.place = Some(place.clone());
        let mut read = cmd("XREAD");
        read.arg("COUNT").arg(AT_A_TIME).arg("BLOCK").arg(BLOCK.as_millis().to_string());
        read.arg("STREAMS").arg(&self.stream).arg(&place);
        let answer = self.line.ask(&doing, &read, BLOCK)?;
        let Some(entries) = read_answer(&answer) else { return Err(self.line.nonsense(&doing, &answer)) };
        let Some((last, _)) = entries.last() else { return Ok(Vec::new()) };
        self.place = Some(last.clone());
        Ok(entries.into_iter().map(|(_, envelope)| envelope).collect())
    }

    fn end(&mut self, doing: &str) -> Result<String, BusError> {
        let mut last = cmd("XREVRANGE");
        last.arg(&self.stream).arg("+").arg("-").arg("COUNT").arg(1);
        let answer = self.line.ask(doing, &last, Duration::ZERO)?;
        match list(&answer) {
            Some([]) => Ok("0-0".to_owned()),
            Some([entry]) => {
                list(entry).and_then(|parts| text(parts.first()?)).ok_or_else(|| self.line.nonsense(doing, &answer))
            }
            _ => Err(self.line.nonsense(doing, &answer)),
        }
    }
}

type Entry = (String, Option<Envelope>);

/// `[[stream, [[id, [field, value, …]], …]]]`, or nothing if there is nothing new.
fn read_answer(value: &Value) -> Option<Vec<Entry>> {
    match value {
        Value::Nil => Some(Vec::new()),
        _ => match list(value)? {
            [stream] => list(list(stream)?.get(1)?)?.iter().map(entry).collect(),
            _ => None,
        },
    }
}

fn entry(value: &Value) -> Option<Entry> {
    let [id, fields] = list(value)? else { return None };
    Some((text(id)?, list(fields).and_then(envelope)))
}

fn envelope(fields: &[Value]) -> Option<Envelope> {
    let field = |name: &str| {
        fields.chunks_exact(2).find(|pair| bytes(&pair[0]) == Some(name.as_bytes())).and_then(|pair| bytes(&pair[1]))
    };
    let number = |name: &str| std::str::from_utf8(field(name)?).ok()?.parse().ok();
    let report = field("report").filter(|report| report.len() <= LONGEST)?.to_vec();
    Some(Envelope { life: number("life")?, number: number("number")?, report })
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

    #[test]
    fn an_entry_that_is_not_ours_is_told_apart_from_an_answer_that_makes_no_sense() {
        let entry = |fields: &[&str]| {
            Value::Array(vec![bulk("1-1"), Value::Array(fields.iter().map(|field| bulk(field)).collect())])
        };
        let answer = |entries: Vec<Value>| Value::Array(vec![Value::Array(vec![bulk("s"), Value::Array(entries)])]);
        let ours = Envelope { life: 7, number: 3, report: b"x".to_vec() };
        let fine = entry(&["life", "7", "number", "3", "report", "x"]);
        let strange = entry(&["life", "7", "number", "three", "report", "x"]);
        let found = read_answer(&answer(vec![fine, strange, entry(&["message", "{}"])])).unwrap();
        let found: Vec<Option<Envelope>> = found.into_iter().map(|(_, envelope)| envelope).collect();
        assert_eq!(found, [Some(ours), None, None]);
        assert_eq!(read_answer(&Value::Nil), Some(Vec::new()));
        assert_eq!(read_answer(&Value::Okay), None);
        assert_eq!(read_answer(&answer(vec![Value::Int(3)])), None);
    }
}
