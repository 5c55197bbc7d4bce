//! Graphs as files: one transfer on a line, columns by name, in any order of lines.
//!
//! ```text
//! id,after,src,dst,bytes,start,lane     # id, src, dst and bytes are needed
//! a,,h0,h1,1MB,0,0
//! b,a,h1,h2,1MB,,0                      # when a has arrived
//! c,acked:a b+3us,h0,h2,4096,,1         # when the sender of a has its acknowledgement, and 3 µs behind the arrival of b
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Write};

use units::{Bytes, Span};

use super::{GraphInput, GraphTransfer};
use crate::plan::InputEvent;

/// An error in a file, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphFileError {
    pub line: usize,
    pub problem: String,
}

impl fmt::Display for GraphFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for GraphFileError {}

const COLUMNS: [&str; 7] = ["id", "after", "src", "dst", "bytes", "start", "lane"];
const NEEDED: [&str; 4] = ["id", "src", "dst", "bytes"];
const ACKNOWLEDGED: &str = "acked:";

/// True if a text is a graph, and not a plain list of flows: its first line names a column `id`.
pub fn is_graph(text: &str) -> bool {
    let first = text.lines().map(content).find(|line| !line.is_empty());
    first.is_some_and(|line| line.split(',').any(|name| name.trim() == "id"))
}

fn content(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

/// Reads a file; `rank` gives the rank of a name.
pub fn parse(
    text: &str,
    mut rank: impl FnMut(&str) -> Result<u32, String>,
) -> Result<Vec<GraphTransfer>, GraphFileError> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, content(line)));
    let mut lines = lines.filter(|(_, line)| !line.is_empty());
    let wrong = |line: usize, problem: String| GraphFileError { line, problem };
    let Some((first, header)) = lines.next() else {
        return Err(wrong(1, "expected a line that names columns, with id, src, dst and bytes".to_owned()));
    };
    let columns = columns(header).map_err(|problem| wrong(first, problem))?;
    let mut list = Vec::new();
    let (mut places, mut waits) = (BTreeMap::new(), Vec::new());
    for (line, text) in lines {
        let row = row(text, &columns).map_err(|problem| wrong(line, problem))?;
        let id = row["id"];
        if places.insert(id, list.len() as u32).is_some() {
            return Err(wrong(line, format!("'{id}': there is a transfer of this id before")));
        }
        list.push(transfer(&row, &mut rank).map_err(|problem| wrong(line, problem))?);
        waits.push((line, row.get("after").copied().unwrap_or_default()));
    }
    for (one, (line, after)) in list.iter_mut().zip(waits) {
        let inputs = after.split_whitespace().map(|input| read_input(input, &places));
        one.after = inputs.collect::<Result<_, _>>().map_err(|problem| wrong(line, problem))?;
        check_inputs(one, places[one.name.as_str()]).map_err(|problem| wrong(line, problem))?;
    }
    Ok(list)
}

fn check_inputs(one: &GraphTransfer, place: u32) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for input in &one.after {
        if input.transfer == place {
            return Err(format!("'{}' waits for itself", one.name));
        }
        if !seen.insert((input.transfer, input.event)) {
            return Err(format!("'{}' waits twice for the same transfer", one.name));
        }
    }
    Ok(())
}

/// The columns of a header, in its order.
fn columns(header: &str) -> Result<Vec<&'static str>, String> {
    let mut columns = Vec::new();
    for name in header.split(',').map(str::trim) {
        let known = COLUMNS.into_iter().find(|known| *known == name);
        let known = known.ok_or_else(|| format!("no column is called '{name}': expected {}", COLUMNS.join(", ")))?;
        if columns.contains(&known) {
            return Err(format!("column '{name}' is there twice"));
        }
        columns.push(known);
    }
    match NEEDED.into_iter().find(|needed| !columns.contains(needed)) {
        Some(missing) => Err(format!("column '{missing}' is missing: expected {}", NEEDED.join(", "))),
        None => Ok(columns),
    }
}

fn row<'a>(line: &'a str, columns: &[&'static str]) -> Result<BTreeMap<&'static str, &'a str>, String> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    if cells.len() != columns.len() {
        return Err(format!("{} cells: expected {}, {}", cells.len(), columns.len(), columns.join(",")));
    }
    Ok(columns.iter().copied().zip(cells).collect())
}

fn transfer(
    row: &BTreeMap<&'static str, &str>,
    rank: &mut impl FnMut(&str) -> Result<u32, String>,
) -> Result<GraphTransfer, String> {
    let id = row["id"];
    if id.is_empty() || id.contains([':', '+']) || id.contains(char::is_whitespace) {
        return Err(format!("'{id}': expected an id without ':', '+' and spaces"));
    }
    let [src, dst] = [row["src"], row["dst"]];
    if src == dst {
        return Err(format!("'{src}' sends to itself"));
    }
    let text = row["bytes"];
    let bytes = text.parse::<Bytes>().map_err(|error| format!("'{text}': {error}"))?.get();
    if bytes == 0 {
        return Err(format!("'{text}': expected at least one byte"));
    }
    let not_before = row.get("start").copied().filter(|text| !text.is_empty()).map_or(Ok(Span::ZERO), span)?;
    let lane = row.get("lane").copied().filter(|text| !text.is_empty()).unwrap_or("0");
    let lane = lane.parse().map_err(|_| format!("'{lane}': expected a lane from 0 to {}", u16::MAX))?;
    let (src, dst) = (rank(src)?, rank(dst)?);
    Ok(GraphTransfer { name: id.to_owned(), src, dst, bytes, lane, not_before, after: Vec::new() })
}

/// A bare number is seconds.
fn span(text: &str) -> Result<Span, String> {
    let bare = text.ends_with(|last: char| last.is_ascii_digit() || last == '.');
    let span = if bare { format!("{text}s").parse::<Span>() } else { text.parse() };
    span.map_err(|error| format!("'{text}': {error}, or a number of seconds"))
}

fn read_input(text: &str, places: &BTreeMap<&str, u32>) -> Result<GraphInput, String> {
    let (event, rest) = match text.strip_prefix(ACKNOWLEDGED) {
        Some(rest) => (InputEvent::Acknowledged, rest),
        None => (InputEvent::Arrived, text),
    };
    let (id, delay) = match rest.split_once('+') {
        Some((id, delay)) => (id, span(delay)?),
        None => (rest, Span::ZERO),
    };
    let transfer = *places.get(id).ok_or_else(|| format!("after '{id}': no transfer has this id"))?;
    Ok(GraphInput { transfer, event, delay })
}

/// Writes a list as a file that reads the same; `host` gives the name of a rank.
pub fn write(list: &[GraphTransfer], host: impl Fn(u32) -> String, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "id,after,src,dst,bytes,start,lane")?;
    for one in list {
        let input = |input: &GraphInput| {
            let event = if input.event == InputEvent::Acknowledged { ACKNOWLEDGED } else { "" };
            let delay = if input.delay == Span::ZERO { String::new() } else { format!("+{}ps", input.delay.as_ps()) };
            format!("{event}{}{delay}", list[input.transfer as usize].name)
        };
        let after = one.after.iter().map(input).collect::<Vec<_>>().join(" ");
        let start = if one.not_before == Span::ZERO { String::new() } else { format!("{}ps", one.not_before.as_ps()) };
        let (name, src, dst) = (&one.name, host(one.src), host(one.dst));
        writeln!(out, "{name},{after},{src},{dst},{},{start},{}", one.bytes, one.lane)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(name: &str) -> Result<u32, String> {
        name.strip_prefix('h')
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| format!("no node is called '{name}'"))
    }

    const TEXT: &str = "id,after,src,dst,bytes,start,lane # a comment\n\nc,acked:a b+3us,h0,h2,4096,,1\n\
                        a,,h0,h1,1MB,0.5,0\nb,a,h1,h2,1MB,,\n";

    #[test]
    fn what_is_written_is_read_again() {
        let list = parse(TEXT, rank).unwrap();
        assert!(is_graph(TEXT) && !is_graph("start,src,dst,bytes\n") && !is_graph(""));
        let [c, a, b] = &list[..] else { panic!("{list:?}") };
        assert_eq!((a.not_before, a.bytes, c.lane), (Span::from_ms(500), 1_000_000, 1));
        let input = |transfer, event, delay| GraphInput { transfer, event, delay: Span::from_us(delay) };
        assert_eq!(b.after, [input(1, InputEvent::Arrived, 0)]);
        assert_eq!(c.after, [input(1, InputEvent::Acknowledged, 0), input(2, InputEvent::Arrived, 3)]);
        let mut out = Vec::new();
        write(&list, |rank| format!("h{rank}"), &mut out).unwrap();
        assert_eq!(parse(std::str::from_utf8(&out).unwrap(), rank), Ok(list));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let said = |lines: &str| parse(&format!("id,after,src,dst,bytes\n{lines}"), rank).unwrap_err().to_string();
        assert_eq!(said("a,,h0,h1"), "line 2: 4 cells: expected 5, id,after,src,dst,bytes");
        assert_eq!(said("a,,h0,h1,1\na,,h0,h1,1"), "line 3: 'a': there is a transfer of this id before");
        assert_eq!(said("a,b,h0,h1,1"), "line 2: after 'b': no transfer has this id");
        assert_eq!(said("a,a,h0,h1,1"), "line 2: 'a' waits for itself");
        assert_eq!(said("a,,h0,h1,1\nb,a a,h1,h2,1"), "line 3: 'b' waits twice for the same transfer");
        assert_eq!(said("a,,h0,h0,1"), "line 2: 'h0' sends to itself");
        assert_eq!(said("a,,h0,x,1"), "line 2: no node is called 'x'");
        assert_eq!(said("a,,h0,h1,0"), "line 2: '0': expected at least one byte");
        assert!(said("a b,,h0,h1,1").contains("expected an id without"));
        let header = |text| parse(text, rank).unwrap_err().to_string();
        assert_eq!(header("id,src,dst"), "line 1: column 'bytes' is missing: expected id, src, dst, bytes");
        assert!(header("id,src,dst,bytes,color").starts_with("line 1: no column is called 'color'"));
    }
}
