//! The latest of each key: found by SCAN, since KEYS would stop Redis for everybody, and read many at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use redis::{cmd, pipe};

use super::RedisBus;
use super::answer::{self, LONGEST};
use super::reply::MOST_BYTES;
use crate::BusError;
use crate::message::Message;

/// Keys per step of a scan, and keys read at once: as many of the longest as fit into one answer.
const SCANNED: usize = 1_000;
const READ: usize = MOST_BYTES / LONGEST - 1;
/// Bytes of all names that a scan may find, and of all messages that are read at once: those of some hundred thousand ports.
const MOST_NAMES: usize = 32 << 20;
const MOST_TEXTS: usize = 128 << 20;
/// Steps of a scan after which something is wrong.
const STEPS: usize = 1_000_000;

impl RedisBus {
    /// All keys that begin like this, without the prefix.
    pub(super) fn scan(&mut self, start: &str) -> Result<BTreeSet<String>, BusError> {
        let prefix = self.name("");
        let pattern = format!("{prefix}{}*", escaped(start));
        let doing = "looking for keys";
        let (mut cursor, mut found, mut bytes) = (0, BTreeSet::new(), 0);
        for _ in 0..STEPS {
            let mut scan = cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(SCANNED);
            let answer = self.line.ask(doing, &scan, Duration::ZERO)?;
            let Some((next, keys)) = answer::scanned(&answer) else { return Err(self.line.nonsense(doing, &answer)) };
            for key in keys.iter().filter_map(|key| key.strip_prefix(&prefix)) {
                bytes += if found.insert(key.to_owned()) { key.len() } else { 0 };
            }
            if bytes > MOST_NAMES {
                return Err(self.too_much(doing, MOST_NAMES));
            }
            if next == 0 {
                return Ok(found);
            }
            cursor = next;
        }
        Err(BusError::Down(format!("{}: {doing}: there is no end of it", self.line.address())))
    }

    fn too_much(&self, doing: &str, most: usize) -> BusError {
        let mb = most >> 20;
        BusError::Down(format!("{}: {doing}: more than {mb} MB of them: not all are ours", self.line.address()))
    }

    /// Calls `each` with every key and the text under it, empty where there is none; what is of another type is reported.
    pub(super) fn texts(
        &mut self,
        keys: &[String],
        mut each: impl FnMut(&mut Self, &str, &[u8]) -> Result<(), BusError>,
    ) -> Result<(), BusError> {
        for some in keys.chunks(READ) {
            let mut questions = pipe();
            for key in some {
                questions.cmd("GETRANGE").arg(self.name(key)).arg(0).arg(LONGEST);
            }
            let answers = self.line.ask_all("reading keys", &questions)?;
            for (key, answer) in some.iter().zip(&answers) {
                let text = answer.as_ref().and_then(answer::bytes);
                if text.is_none() {
                    self.foreign.add(format!("`{}` is not a text", self.name(key)));
                }
                each(self, key, text.unwrap_or_default())?;
            }
        }
        Ok(())
    }

    pub(super) fn read(&mut self, keys: &[String]) -> Result<Vec<Option<Message>>, BusError> {
        let (mut messages, mut bytes) = (Vec::new(), 0);
        self.texts(keys, |bus, key, text| {
            messages.push(match answer::decode(key, text) {
                _ if text.is_empty() => None,
                Ok(message) => Some(message),
                Err(why) => {
                    bus.foreign.add(format!("`{}` {why}", bus.name(key)));
                    None
                }
            });
            bytes += messages.last().map_or(0, |message| if message.is_some() { text.len() } else { 0 });
            if bytes > MOST_TEXTS { Err(bus.too_much("reading keys", MOST_TEXTS)) } else { Ok(()) }
        })?;
        Ok(messages)
    }

    /// The latest message of every key that begins like this.
    pub(super) fn all(&mut self, start: &str) -> Result<Vec<Message>, BusError> {
        let ours = |key: &String| key.starts_with("port:") || key.starts_with("order:");
        let keys: Vec<String> = self.scan(start)?.into_iter().filter(ours).collect();
        Ok(self.read(&keys)?.into_iter().flatten().collect())
    }
}

/// A text as a pattern that matches it alone.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\*?[]^-".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}
