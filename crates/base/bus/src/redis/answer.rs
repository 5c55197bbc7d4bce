//! Parses the answers of Redis. An answer of another shape is `None`, and one that is not ours is reported as such.

use std::fmt;

use redis::Value;

use crate::message::{Message, PortState};

/// The longest text that can be ours.
pub(super) const LONGEST: usize = 65_536;

/// Number of an entry of a history: written `HISTORY:COUNT`, the microsecond in which the history began and a count from 1
/// without gaps. Zeros where there is no history yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EntryNumber {
    pub history: u64,
    pub count: u64,
}

impl EntryNumber {
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let (history, count) = std::str::from_utf8(text).ok()?.split_once(':')?;
        let number = Self { history: history.parse().ok()?, count: count.parse().ok()? };
        (number.count > 0).then_some(number)
    }
}

impl fmt::Display for EntryNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.history, self.count)
    }
}

/// An entry of the history.
#[derive(Debug)]
pub(super) struct HistoryEntry {
    pub id: String,
    /// `None` if it is not ours.
    pub number: Option<EntryNumber>,
    /// Or why it cannot be read.
    pub message: Result<Message, String>,
}

/// Result of a script.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScriptResult {
    Told,
    /// The key had another value than was believed.
    There(Option<Vec<u8>>),
    Foreign {
        key: String,
        what: String,
    },
}

/// A message as it is kept. Numbers that JSON does not have would make it unreadable; they are decoration, what the
/// message says is not.
pub(super) fn encode(message: &Message) -> Result<String, String> {
    let text = match message {
        Message::Port(state) => serde_json::to_string(&Message::Port(with_numbers(state.clone()))),
        Message::Order(_) => serde_json::to_string(message),
    };
    let text = text.map_err(|error| error.to_string())?;
    decode(&message.key(), text.as_bytes()).map_err(|why| format!("this message would not be understood: {why}"))?;
    Ok(text)
}

fn with_numbers(mut state: PortState) -> PortState {
    let evidence = &mut state.evidence;
    for number in [&mut evidence.loss, &mut evidence.low, &mut evidence.high, &mut evidence.seconds] {
        if !number.is_finite() {
            *number = 0.0;
        }
    }
    state
}

/// The message under a key, or the reason why it is foreign.
pub(super) fn decode(key: &str, text: &[u8]) -> Result<Message, String> {
    let message = decode_any(text)?;
    if message.key() == key { Ok(message) } else { Err(format!("is about `{}`", message.key())) }
}

fn decode_any(text: &[u8]) -> Result<Message, String> {
    if text.len() > LONGEST {
        return Err("is not ours: too long".to_owned());
    }
    serde_json::from_slice(text).map_err(|error| format!("is not a message of ours: {error}"))
}

pub(super) fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    }
}

pub(super) fn text(value: &Value) -> Option<String> {
    String::from_utf8(bytes(value)?.to_vec()).ok()
}

fn list(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

/// `[cursor, [key, …]]`; keys that are not text cannot be ours.
pub(super) fn scanned(value: &Value) -> Option<(u64, Vec<String>)> {
    match list(value)? {
        [cursor, keys] => Some((text(cursor)?.parse().ok()?, list(keys)?.iter().filter_map(text).collect())),
        _ => None,
    }
}

/// `[[stream, [entry, …]]]`, or nothing if there is nothing new.
pub(super) fn read(value: &Value) -> Option<Vec<HistoryEntry>> {
    match value {
        Value::Nil => Some(Vec::new()),
        _ => match list(value)? {
            [stream] => entries(list(stream)?.get(1)?),
            _ => None,
        },
    }
}

/// `[[id, [field, value, …]], …]`.
pub(super) fn entries(value: &Value) -> Option<Vec<HistoryEntry>> {
    list(value)?.iter().map(entry).collect()
}

fn entry(value: &Value) -> Option<HistoryEntry> {
    let [id, fields] = list(value)? else { return None };
    let fields = match fields {
        // Deleted while it was read.
        Value::Nil => &[],
        _ => list(fields)?,
    };
    let field = |name: &str| {
        fields.chunks_exact(2).find(|pair| bytes(&pair[0]) == Some(name.as_bytes())).and_then(|pair| bytes(&pair[1]))
    };
    let message = match field("message") {
        Some(text) => decode_any(text),
        None => Err("has no field `message`".to_owned()),
    };
    let number = field("number").and_then(EntryNumber::parse);
    Some(HistoryEntry { id: text(id)?, number, message })
}

pub(super) fn outcome(value: &Value) -> Option<ScriptResult> {
    let values = list(value)?;
    match (bytes(values.first()?)?, &values[1..]) {
        (b"told", []) => Some(ScriptResult::Told),
        (b"there", [Value::Nil]) => Some(ScriptResult::There(None)),
        (b"there", [there]) => Some(ScriptResult::There(Some(bytes(there)?.to_vec()))),
        (b"foreign", [key, what]) => Some(ScriptResult::Foreign { key: text(key)?, what: text(what)? }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn anything() -> impl Strategy<Value = Value> {
        let words = ["told", "there", "foreign", "message", "number", "0", "7:1", "1-1", "{}", ""];
        let leaf = prop_oneof![
            Just(Value::Nil),
            Just(Value::Okay),
            any::<i64>().prop_map(Value::Int),
            prop::collection::vec(any::<u8>(), 0..4).prop_map(Value::BulkString),
            prop::sample::select(words.to_vec()).prop_map(|word| Value::BulkString(word.into())),
            prop::sample::select(words.to_vec()).prop_map(|word| Value::SimpleString(word.into())),
        ];
        leaf.prop_recursive(4, 40, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec((inner.clone(), inner), 0..3).prop_map(Value::Map),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn an_answer_of_any_shape_is_taken_apart_or_refused(value in anything()) {
            let told = Value::Array(vec![Value::BulkString(b"told".to_vec())]);
            prop_assert_eq!(outcome(&value) == Some(ScriptResult::Told), value == told);
            for entry in read(&value).into_iter().chain(entries(&value)).flatten() {
                prop_assert!(entry.message.is_err(), "that was no message");
            }
            if let Some((_, keys)) = scanned(&value) {
                prop_assert!(keys.len() < 4);
            }
        }

        #[test]
        fn a_text_of_any_kind_is_not_a_message(text in prop::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(decode("port:a/1", &text).is_err());
        }
    }
}
