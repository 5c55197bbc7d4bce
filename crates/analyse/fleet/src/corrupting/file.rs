//! Files that say which links corrupt.
//!
//! The format is that of the monitor, one JSON object after another or a JSON list of them: the state of a port, or an
//! order to it. Or CSV:
//!
//! ```text
//! link,loss,state
//! pod3/tor7--pod3/fabric1,2e-5,corrupting
//! leaf3/eth1,1e-3,protected
//! pod3/tor8--pod3/fabric0,,disabled
//! ```
//!
//! A link is known by its name or by a port at one of its ends. It is corrupting if nothing else is said, and a link that
//! is disabled need not have a loss.

use std::path::Path;

use bus::{Message, Order, PortState};
use serde::de::IgnoredAny;
use serde_json::{Deserializer, Value};
use units::Prob;

use super::{FaultyLinks, LinkFault, PortReports};
use crate::fabric::table::{LineError, TableRow, TextTable, read, unknown};
use crate::fabric::{FileError, SwitchNames};

const COLUMNS: [&str; 3] = ["link", "loss", "state"];
const STATES: [&str; 3] = ["corrupting", "protected", "disabled"];

pub fn load(path: &Path, names: &SwitchNames<'_>) -> Result<FaultyLinks, FileError> {
    let (file, text) = read(path)?;
    parse(&file, &text, names)
}

/// Parses a file, JSON or CSV as it looks.
pub fn parse(file: &str, text: &str, names: &SwitchNames<'_>) -> Result<FaultyLinks, FileError> {
    let is_json = text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']);
    let read = if is_json { json(text, names) } else { csv(text, names) };
    read.map_err(|wrong| wrong.in_file(file))
}

fn csv(text: &str, names: &SwitchNames<'_>) -> Result<FaultyLinks, LineError> {
    let mut situation = FaultyLinks::default();
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Ok(situation);
    }
    let table = TextTable::parse(text, &COLUMNS, 2)?;
    for row in table.rows() {
        let name = table.cell(row, 0).ok_or_else(|| LineError::new(row.line, "no link"))?;
        let link = names.link(name).map_err(|unknown| LineError::new(row.line, unknown))?;
        situation.add(link, trouble(&table, row)?);
    }
    Ok(situation)
}

fn trouble(table: &TextTable<'_>, row: &TableRow<'_>) -> Result<LinkFault, LineError> {
    let loss = match table.cell(row, 1) {
        None => None,
        Some(text) => match text.parse::<Prob>() {
            Ok(loss) if !loss.is_zero() => Some(loss.get()),
            _ => {
                let expected = "expected a share of frames above 0 and at most 1, such as 1e-4";
                return Err(LineError::new(row.line, format_args!("loss '{text}': {expected}")));
            }
        },
    };
    match (table.cell(row, 2).unwrap_or("corrupting"), loss) {
        ("disabled", loss) => Ok(LinkFault::Disabled { loss }),
        ("corrupting", Some(loss)) => Ok(LinkFault::Corrupting { loss, protected: false }),
        ("protected", Some(loss)) => Ok(LinkFault::Corrupting { loss, protected: true }),
        (state @ ("corrupting" | "protected"), None) => {
            Err(LineError::new(row.line, format_args!("{state}, but no loss")))
        }
        (state, _) => Err(LineError::new(row.line, unknown("state", state, &STATES))),
    }
}

fn json(text: &str, names: &SwitchNames<'_>) -> Result<FaultyLinks, LineError> {
    let mut messages = messages(text)?;
    // Reports first, since they may say to which link a port belongs that an order is about.
    messages.sort_by_key(|(_, message)| matches!(message, Message::Order(_)));
    let mut reports = PortReports::new(names.fabric());
    for (line, message) in &messages {
        reports.hear(message).map_err(|nonsense| LineError::new(*line, nonsense))?;
    }
    Ok(reports.situation())
}

/// Messages that monitors publish, each with the line in which it begins.
pub(crate) fn messages(text: &str) -> Result<Vec<(usize, Message)>, LineError> {
    values(text)?.into_iter().map(|(line, value)| Ok((line, message(line, value)?))).collect()
}

/// Values one after another, or the items of one list, each with its first line.
fn values(text: &str) -> Result<Vec<(usize, Value)>, LineError> {
    let text = text.trim_start_matches('\u{feff}');
    let mut values = Vec::new();
    let (mut at, mut line) = (0, 1);
    let is_list = text.trim_start().starts_with('[');
    if is_list {
        serde_json::from_str::<Vec<IgnoredAny>>(text).map_err(|error| no_json(1, &error))?;
    }
    loop {
        let gap = text[at..].find(|letter: char| !is_between(letter, is_list)).unwrap_or(text.len() - at);
        line += text[at..at + gap].matches('\n').count();
        at += gap;
        if at == text.len() {
            return Ok(values);
        }
        let mut stream = Deserializer::from_str(&text[at..]).into_iter::<Value>();
        let value = match stream.next() {
            Some(Ok(value)) => value,
            Some(Err(error)) => return Err(no_json(line, &error)),
            None => return Ok(values),
        };
        let end = at + stream.byte_offset();
        values.push((line, value));
        line += text[at..end].matches('\n').count();
        at = end;
    }
}

/// Error of syntax in a text that begins in this line.
fn no_json(line: usize, error: &serde_json::Error) -> LineError {
    let text = error.to_string();
    // Its own place is one within that text.
    let what = text.split(" at line ").next().unwrap_or_default();
    let line = if error.is_eof() { line } else { line + error.line().saturating_sub(1) };
    LineError::new(line, format_args!("no JSON: {what}"))
}

fn is_between(letter: char, is_list: bool) -> bool {
    letter.is_ascii_whitespace() || is_list && matches!(letter, '[' | ',' | ']')
}

/// Reads a message as published, or without the envelope that names its kind.
fn message(line: usize, value: Value) -> Result<Message, LineError> {
    const EXPECTED: &str = "expected what a monitor publishes";
    let has = |key| value.get(key).is_some();
    let read = if has("port") || has("order") {
        serde_json::from_value(value)
    } else if has("kind") {
        serde_json::from_value::<Order>(value).map(Message::Order)
    } else {
        serde_json::from_value::<PortState>(value).map(Message::Port)
    };
    read.map_err(|error| LineError::new(line, format_args!("{EXPECTED}: {error}")))
}
