//! A settings file as it was written: values, each with its place.
//!
//! Everything else works on this tree, because only what was written can be overridden, swept over, or found wrong in
//! its line. Entries of a table are in the order of the file.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{KeyError, SourceLocation};
use super::place::{LineIndex, TomlError};

#[derive(Clone, Debug, PartialEq)]
pub struct TreeNode {
    pub place: SourceLocation,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    List(Vec<TreeNode>),
    Table(Vec<(String, TreeNode)>),
}

impl TreeNode {
    /// The table that a file is.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let lines = LineIndex::of(text);
        match DeTable::parse(text) {
            Ok(table) => table_of(table.get_ref(), SourceLocation::Line(1), &|at| SourceLocation::Line(lines.at(at))),
            Err(error) => {
                let TomlError { line, problem } = TomlError::new(text, &error);
                Err(KeyError { place: SourceLocation::Line(line), key: String::new(), problem })
            }
        }
    }

    /// A value in TOML's own syntax, all of it in one place.
    pub(crate) fn parse_value(text: &str, place: &SourceLocation) -> Option<Self> {
        let value = DeValue::parse(text).ok()?;
        node_of("", &value, &|_| place.clone()).ok()
    }

    /// A table without entries.
    pub fn empty() -> Self {
        Self { place: SourceLocation::Line(1), value: Value::Table(Vec::new()) }
    }

    /// Makes another value at the same place.
    pub fn beside(&self, value: Value) -> Self {
        Self { place: self.place.clone(), value }
    }

    /// Sets an entry of a table, or of a table within; tables on the way there are made.
    pub fn put(&mut self, path: &[&str], value: Value) {
        let empty = self.beside(Value::Table(Vec::new()));
        let (Value::Table(entries), [key, rest @ ..]) = (&mut self.value, path) else { return };
        let at = entries.iter().position(|(name, _)| name == key).unwrap_or_else(|| {
            entries.push(((*key).to_owned(), empty));
            entries.len() - 1
        });
        match rest {
            [] => entries[at].1.value = value,
            rest => entries[at].1.put(rest, value),
        }
    }

    pub fn entry(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// Entries of a table; empty for any other value.
    pub fn entries(&self) -> &[(String, Self)] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    /// A text, or a number as one.
    pub(crate) fn as_text(&self) -> Option<String> {
        match &self.value {
            Value::Text(text) => Some(text.clone()),
            Value::Integer(number) => Some(number.to_string()),
            Value::Float(number) => Some(number.to_string()),
            Value::Flag(_) | Value::List(_) | Value::Table(_) => None,
        }
    }
}

/// A number, as a text where it is beyond those of TOML.
pub fn number(number: u64) -> Value {
    i64::try_from(number).map_or_else(|_| Value::Text(number.to_string()), Value::Integer)
}

/// Short enough for a label.
impl fmt::Display for TreeNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Text(text) => f.write_str(text),
            Value::Integer(number) => number.fmt(f),
            Value::Float(number) => number.fmt(f),
            Value::Flag(flag) => flag.fmt(f),
            Value::List(nodes) => {
                let parts: Vec<String> = nodes.iter().map(Self::to_string).collect();
                f.write_str(&parts.join("+"))
            }
            Value::Table(entries) => {
                let parts: Vec<String> = entries.iter().map(|(key, node)| format!("{key}:{node}")).collect();
                f.write_str(&parts.join("+"))
            }
        }
    }
}

impl Serialize for TreeNode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            Value::Text(text) => serializer.serialize_str(text),
            Value::Integer(number) => serializer.serialize_i64(*number),
            Value::Float(number) => serializer.serialize_f64(*number),
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            Value::List(nodes) => serializer.collect_seq(nodes),
            Value::Table(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, node) in entries {
                    map.serialize_entry(key, node)?;
                }
                map.end()
            }
        }
    }
}

type PlaceOf<'a> = &'a dyn Fn(usize) -> SourceLocation;

fn table_of(table: &DeTable<'_>, place: SourceLocation, place_of: PlaceOf<'_>) -> Result<TreeNode, KeyError> {
    let mut entries = Vec::new();
    for (key, value) in table {
        let mut node = node_of(key.get_ref(), value, place_of)?;
        // A table that is only implied, by what is inside it, has no span of its own.
        if value.span().is_empty() {
            node.place = place_of(key.span().start);
        }
        entries.push((key.span().start, key.get_ref().to_string(), node));
    }
    entries.sort_by_key(|(at, _, _)| *at);
    let entries = entries.into_iter().map(|(_, key, node)| (key, node)).collect();
    Ok(TreeNode { place, value: Value::Table(entries) })
}

fn node_of(key: &str, value: &Spanned<DeValue<'_>>, place_of: PlaceOf<'_>) -> Result<TreeNode, KeyError> {
    let place = place_of(value.span().start);
    let wrong = |problem: &str| KeyError { place: place.clone(), key: key.to_owned(), problem: problem.to_owned() };
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            Value::Integer(parsed.map_err(|_| wrong("expected a number below 2^63"))?)
        }
        DeValue::Float(number) => Value::Float(number.as_str().parse().map_err(|_| wrong("expected a number"))?),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => return Err(wrong("expected anything but a date")),
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| node_of(key, item, place_of)).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => return table_of(table, place, place_of),
    };
    Ok(TreeNode { place, value })
}
