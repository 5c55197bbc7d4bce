//! Traces from files and to files: a CSV of `hours,link,loss[,repair_hours]`.
//!
//! ```text
//! hours,link,loss,repair_hours
//! 0.5,pod3/tor7--pod3/fabric1,2e-5,48
//! 17.25,leaf3/eth1,1e-3,96
//! 20,4711,1e-4,
//! ```
//!
//! A link is known by its name, by a port at one of its ends or by its number: from 0
//! in the order in which `hitless fleet topology --write` has them. Rows may be in any order. Where no repair
//! is given it takes two days, as most do.

use std::io;
use std::path::Path;
use std::time::Duration;

use units::{Moment, Prob};

use super::{CorruptionEvent, DAY, sort};
use crate::fabric::table::{LineError, TextTable, read};
use crate::fabric::{Fabric, FileError, LinkId, SwitchNames};

const COLUMNS: [&str; 4] = ["hours", "link", "loss", "repair_hours"];

/// A thousand years.
const MOST_HOURS: f64 = 8_766_000.0;

pub fn load(path: &Path, names: &SwitchNames<'_>) -> Result<Vec<CorruptionEvent>, FileError> {
    let (file, text) = read(path)?;
    parse(&file, &text, names)
}

/// Parses a file.
pub fn parse(file: &str, text: &str, names: &SwitchNames<'_>) -> Result<Vec<CorruptionEvent>, FileError> {
    rows(text, names).map_err(|wrong| wrong.in_file(file))
}

/// Writes CSV, with links by name.
pub fn write_csv(trace: &[CorruptionEvent], fabric: &Fabric, out: &mut impl io::Write) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join(","))?;
    for CorruptionEvent { at, link, loss, repair } in trace {
        let repair = repair.as_secs_f64() / 3_600.0;
        writeln!(out, "{},{},{loss:e},{repair}", at.as_hours(), fabric.name(*link))?;
    }
    Ok(())
}

fn rows(text: &str, names: &SwitchNames<'_>) -> Result<Vec<CorruptionEvent>, LineError> {
    let table = TextTable::parse(text, &COLUMNS, 3)?;
    let mut trace = Vec::with_capacity(table.rows().len());
    for row in table.rows() {
        let wrong = |problem: String| LineError { line: row.line, problem };
        let cell = |column: usize| {
            let missing = || wrong(format!("no {}", COLUMNS[column]));
            table.cell(row, column).ok_or_else(missing)
        };
        let at = hours(cell(0)?).map_err(|problem| wrong(format!("hours: {problem}")))?;
        let link = link(cell(1)?, names).map_err(wrong)?;
        let loss = loss(cell(2)?).map_err(|problem| wrong(format!("loss: {problem}")))?;
        let repair = match table.cell(row, 3) {
            Some(text) => hours(text).map_err(|problem| wrong(format!("repair_hours: {problem}")))?,
            None => DAY.saturating_mul(2),
        };
        trace.push(CorruptionEvent { at: Moment::ZERO.after(at), link, loss, repair });
    }
    sort(&mut trace);
    Ok(trace)
}

/// Reads hours, rounded to the nearest millisecond, so that a written trace is read as it was.
fn hours(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(hours) if (0.0..=MOST_HOURS).contains(&hours) => {
            Ok(Duration::from_millis((hours * 3_600_000.0).round() as u64))
        }
        _ => Err(format!("'{text}': expected a number of hours between 0 and {MOST_HOURS}")),
    }
}

fn link(text: &str, names: &SwitchNames<'_>) -> Result<LinkId, String> {
    let links = names.fabric().links().len();
    match text.parse::<usize>() {
        Ok(number) if number < links => Ok(LinkId(number as u32)),
        Ok(number) => Err(format!("no link has number {number}: expected less than {links}, or a name")),
        Err(_) => names.link(text).map_err(|unknown| unknown.to_string()),
    }
}

fn loss(text: &str) -> Result<f64, String> {
    match text.parse::<Prob>() {
        Ok(loss) if !loss.is_zero() => Ok(loss.get()),
        _ => Err(format!("'{text}': expected a share of frames above 0 and at most 1, such as 1e-4")),
    }
}
