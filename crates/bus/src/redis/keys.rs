//! The latest of each key: found by SCAN, since KEYS would stop Redis for everybody, and read many at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use redis::{cmd, pipe};

use super::RedisBus;
use super::answer::{self, LONGEST};
use crate::BusError;
use crate::message::Message;

/// Keys looked at in one step of a scan, and keys read in one go.
const SCANNED: usize = 1_000;
const READ: usize = 500;
/// Steps of a scan after which something is wrong.
const STEPS: usize = 1_000_000;

impl RedisBus {
    /// All keys that begin like this, without the prefix.
    pub(super) fn scan(&mut self, start: &str) -> Result<BTreeSet<String>, BusError> {
        let prefix = self.name("");
        let pattern = format!("{prefix}{}*", escaped(start));
        let doing = "looking for keys";
        let (mut cursor, mut found) = (0, BTreeSet::new());
        for _ in 0..STEPS {
            let mut scan = cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(SCANNED);
            let answer = self.line.ask(doing, &scan, Duration::ZERO)?;
            let Some((next, keys)) = answer::scanned(&answer) else { return Err(self.line.nonsense(doing, &answer)) };
            found.extend(keys.iter().filter_map(|key| key.strip_prefix(&prefix)).map(str::to_owned));
            if next == 0 {
                return Ok(found);
            }
            cursor = next;
        }
        Err(BusError::Down(format!("{}: {doing}: there is no end of it", self.line.address())))
    }

    /// The texts under these keys, empty where there is none; what is of another type is reported.
    pub(super) fn texts(&mut self, keys: &[String]) -> Result<Vec<Vec<u8>>, BusError> {
        let mut texts = Vec::with_capacity(keys.len());
        for some in keys.chunks(READ) {
            let mut questions = pipe();
            for key in some {
                questions.cmd("GETRANGE").arg(self.name(key)).arg(0).arg(LONGEST);
            }
            let answers = self.line.ask_all("reading keys", &mut questions)?;
            for (key, answer) in some.iter().zip(&answers) {
                let text = answer.as_ref().and_then(answer::bytes);
                if text.is_none() {
                    self.foreign.add(format!("`{}` is not a text", self.name(key)));
                }
                texts.push(text.unwrap_or_default().to_vec());
            }
        }
        texts.resize(keys.len(), Vec::new());
        Ok(texts)
    }

    pub(super) fn read(&mut self, keys: &[String]) -> Result<Vec<Option<Message>>, BusError> {
        let texts = self.texts(keys)?;
        let mut messages = Vec::with_capacity(keys.len());
        for (key, text) in keys.iter().zip(texts) {
            messages.push(match answer::decode(key, &text) {
                _ if text.is_empty() => None,
                Ok(message) => Some(message),
                Err(why) => {
                    self.foreign.add(format!("`{}` {why}", self.name(key)));
                    None
                }
            });
        }
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
