//! Format of a line: CSV under a header, or a JSON object.

use serde::Deserialize;
use units::{Moment, nearest};

use crate::reading::{CarrierState, Phy, Reading, ReceivedFrames};

/// The columns, in the order in which they are recorded.
/// The host of a port has a column of its own or stands before it, as in HOST/PORT; it is recorded so.
pub(crate) const COLUMNS: [&str; 10] =
    ["time_ms", "port", "identity", "carrier", "all", "bad", "bits", "symbol_errors", "corrected", "uncorrectable"];
/// The kernel's are shorter; those of a switch need not be.
const LONGEST_NAME: usize = 64;
const HOST: &str = "host";
const REQUIRED: [&str; 4] = ["time_ms", "port", "all", "bad"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SampleLine {
    /// A blank line, a comment, a header, or a line after a header that was reported to make no sense.
    Nothing,
    Sample(Reading),
    Nonsense(String),
}

/// Knowledge of the lines to come.
#[derive(Debug, Default)]
pub(crate) enum SampleFormat {
    #[default]
    NoHeader,
    /// The lines after it mean nothing, which was reported once and not for every line.
    BadHeader,
    Header(Vec<String>),
}

/// A sample as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SampleRecord {
    time_ms: u64,
    host: Option<String>,
    port: String,
    identity: Option<u64>,
    carrier: Option<String>,
    // With a function of their own these may be null but not left out.
    #[serde(deserialize_with = "Option::deserialize")]
    all: Option<u64>,
    #[serde(deserialize_with = "Option::deserialize")]
    bad: Option<u64>,
    bits: Option<u64>,
    symbol_errors: Option<u64>,
    corrected: Option<u64>,
    uncorrectable: Option<u64>,
}

impl SampleFormat {
    pub(crate) fn read(&mut self, line: &str) -> SampleLine {
        if line.is_empty() || line.starts_with('#') {
            return SampleLine::Nothing;
        }
        let read = if line.starts_with('{') { json(line).map(Some) } else { self.csv(line) };
        match read.and_then(|written| written.map(SampleRecord::check).transpose()) {
            Ok(Some(reading)) => SampleLine::Sample(reading),
            Ok(None) => SampleLine::Nothing,
            Err(why) => SampleLine::Nonsense(why),
        }
    }

    fn csv(&mut self, line: &str) -> Result<Option<SampleRecord>, String> {
        let fields = split(line)?;
        if fields.iter().any(|field| field == "time_ms") {
            *self = Self::BadHeader;
            *self = Self::Header(header(fields)?);
            return Ok(None);
        }
        match self {
            Self::BadHeader => Ok(None),
            Self::NoHeader => {
                *self = Self::BadHeader;
                Err(format!("`{line}`: expected a header such as {}", COLUMNS.join(",")))
            }
            Self::Header(columns) if columns.len() != fields.len() => {
                Err(format!("{} fields, but the header has {}", fields.len(), columns.len()))
            }
            Self::Header(columns) => CsvRow { columns, fields: &fields }.written().map(Some),
        }
    }
}

/// The columns that a header names.
fn header(fields: Vec<String>) -> Result<Vec<String>, String> {
    for (at, field) in fields.iter().enumerate() {
        if !COLUMNS.contains(&field.as_str()) && field != HOST {
            let meant = nearest(field, COLUMNS.into_iter().chain([HOST]))
                .map(|meant| format!("; did you mean {meant}?"))
                .unwrap_or_default();
            return Err(format!("unknown column `{field}`{meant}"));
        }
        if fields[..at].contains(field) {
            return Err(format!("column `{field}` is there twice"));
        }
    }
    match REQUIRED.iter().find(|column| !fields.iter().any(|field| field == *column)) {
        Some(missing) => Err(format!("no column `{missing}`: expected at least {}", REQUIRED.join(","))),
        None => Ok(fields),
    }
}

/// A line of CSV under its header.
struct CsvRow<'a> {
    columns: &'a [String],
    fields: &'a [String],
}

impl CsvRow<'_> {
    fn field(&self, column: &str) -> Option<&String> {
        let at = self.columns.iter().position(|name| name == column)?;
        Some(&self.fields[at]).filter(|field| !field.is_empty())
    }

    fn number(&self, column: &str) -> Result<Option<u64>, String> {
        let parse = |field: &String| field.parse().map_err(|_| format!("{column}: `{field}`: expected a whole number"));
        self.field(column).map(parse).transpose()
    }

    fn written(&self) -> Result<SampleRecord, String> {
        Ok(SampleRecord {
            time_ms: self.number("time_ms")?.ok_or("time_ms: expected a whole number")?,
            host: self.field(HOST).cloned(),
            port: self.field("port").cloned().unwrap_or_default(),
            identity: self.number("identity")?,
            carrier: self.field("carrier").cloned(),
            all: self.number("all")?,
            bad: self.number("bad")?,
            bits: self.number("bits")?,
            symbol_errors: self.number("symbol_errors")?,
            corrected: self.number("corrected")?,
            uncorrectable: self.number("uncorrectable")?,
        })
    }
}

impl SampleRecord {
    /// `PORT`, or `HOST/PORT`.
    fn name(&self) -> Result<String, String> {
        let (host, port) = match (&self.host, self.port.rsplit_once('/')) {
            (Some(_), Some(_)) => return Err(format!("port `{}`: expected no host in it beside `host`", self.port)),
            (Some(host), None) => (Some(host.as_str()), self.port.as_str()),
            (None, Some((host, port))) => (Some(host), port),
            (None, None) => (None, self.port.as_str()),
        };
        let is_name =
            |name: &str| !name.is_empty() && name.len() <= LONGEST_NAME && !name.contains(char::is_whitespace);
        if port.is_empty() || port.len() > LONGEST_NAME {
            return Err(format!("port: expected a name of at most {LONGEST_NAME} letters"));
        }
        match host {
            None => Ok(port.to_owned()),
            Some(host) if is_name(host) => Ok(format!("{host}/{port}")),
            Some(_) => Err(format!("host: expected a name of at most {LONGEST_NAME} letters without spaces")),
        }
    }

    fn check(self) -> Result<Reading, String> {
        let port = self.name()?;
        let carrier = match self.carrier.as_deref() {
            None | Some("up") => CarrierState::Up,
            Some("lost") => CarrierState::Lost,
            Some("off") => CarrierState::Off,
            Some(other) => return Err(format!("carrier: `{other}`: expected up, lost or off")),
        };
        let bits = match self.bits {
            None | Some(64) => 64,
            Some(32) => 32,
            Some(other) => return Err(format!("bits: {other}: expected 32 or 64")),
        };
        let frames = match (self.all, self.bad) {
            (None, None) => None,
            (Some(all), Some(bad)) => Some(frames(all, bad, bits)?),
            _ => return Err("all and bad: expected both or neither".to_owned()),
        };
        let Self { symbol_errors, corrected, uncorrectable, .. } = self;
        Ok(Reading {
            port,
            identity: self.identity.unwrap_or(0),
            at: Moment::from_ms(self.time_ms),
            carrier,
            frames,
            phy: Phy { symbol_errors, corrected, uncorrectable },
        })
    }
}

/// Counters of 32 bits wrap one by one, so there `all` may be the smaller.
fn frames(all: u64, bad: u64, bits: u32) -> Result<ReceivedFrames, String> {
    if bits == 32 && all.max(bad) > u64::from(u32::MAX) {
        return Err(format!("all {all}, bad {bad}: more than 32 bits"));
    }
    if bits == 64 && bad > all {
        return Err(format!("{bad} bad of all {all}: expected no more bad frames than frames"));
    }
    Ok(ReceivedFrames { all, bad, bits })
}

fn json(line: &str) -> Result<SampleRecord, String> {
    serde_json::from_str(line).map_err(|error| {
        let why = error.to_string();
        // The line is one of the file's, not of the object's.
        why.split(" at line ").next().unwrap_or_default().to_owned()
    })
}

/// The fields of a line; one in quotes may have commas in it, and doubled quotes.
fn split(line: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let (field, tail) = match rest.trim_start().strip_prefix('"') {
            Some(quoted) => unquote(quoted).ok_or("a quote that does not end, or something behind it")?,
            None => {
                let (field, tail) = rest.split_once(',').map_or((rest, None), |(field, tail)| (field, Some(tail)));
                (field.trim().to_owned(), tail)
            }
        };
        fields.push(field);
        match tail {
            Some(tail) => rest = tail,
            None => return Ok(fields),
        }
    }
}

/// Text up to the closing quote, and the text behind the comma that follows.
fn unquote(quoted: &str) -> Option<(String, Option<&str>)> {
    let (mut field, mut rest) = (String::new(), quoted);
    loop {
        let (part, tail) = rest.split_once('"')?;
        field.push_str(part);
        match tail.strip_prefix('"') {
            Some(tail) => {
                field.push('"');
                rest = tail;
            }
            None if tail.trim().is_empty() => return Some((field, None)),
            None => return tail.trim_start().strip_prefix(',').map(|tail| (field, Some(tail))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(meaning: SampleLine) -> Reading {
        match meaning {
            SampleLine::Sample(reading) => reading,
            other => panic!("{other:?}"),
        }
    }

    fn nonsense(meaning: SampleLine) -> String {
        match meaning {
            SampleLine::Nonsense(why) => why,
            other => panic!("{other:?}"),
        }
    }

    fn short() -> SampleFormat {
        let mut format = SampleFormat::default();
        assert_eq!(format.read("time_ms, port, all, bad"), SampleLine::Nothing);
        format
    }

    #[test]
    fn a_line_of_csv_and_the_same_as_json_say_the_same() {
        let mut format = SampleFormat::default();
        format.read(&COLUMNS.join(","));
        let csv = sample(format.read("1000,eth0,7,lost,500,3,32,1,2,"));
        let json = r#"{"time_ms":1000,"port":"eth0","identity":7,"carrier":"lost","all":500,"bad":3,"bits":32,
            "symbol_errors":1,"corrected":2}"#;
        assert_eq!(sample(format.read(json)), csv);
        let phy = Phy { symbol_errors: Some(1), corrected: Some(2), uncorrectable: None };
        let frames = Some(ReceivedFrames { all: 500, bad: 3, bits: 32 });
        let at = Moment::from_ms(1_000);
        assert_eq!(csv, Reading { port: "eth0".into(), identity: 7, at, carrier: CarrierState::Lost, frames, phy });
    }

    #[test]
    fn four_columns_are_enough_and_both_counters_may_be_absent() {
        let mut format = short();
        let reading = sample(format.read("5,\"eth0,1\",9,0"));
        assert_eq!((reading.port.as_str(), reading.identity, reading.carrier), ("eth0,1", 0, CarrierState::Up));
        assert_eq!(sample(format.read("6,eth0,,")).frames, None);
        assert_eq!(sample(format.read(r#"{"time_ms":6,"port":"eth0","all":null,"bad":null}"#)).frames, None);
        assert!(nonsense(format.read(r#"{"time_ms":6,"port":"eth0","all":4}"#)).contains("missing field `bad`"));
    }

    #[test]
    fn lines_that_make_no_sense_say_what_was_expected() {
        let mut format = short();
        let mut why = |line: &str| nonsense(format.read(line));
        assert_eq!(why("1,eth0,ten,0"), "all: `ten`: expected a whole number");
        assert_eq!(why("1,eth0,-1,0"), "all: `-1`: expected a whole number");
        assert_eq!(why("1,eth0,10"), "3 fields, but the header has 4");
        assert_eq!(why(",eth0,10,0"), "time_ms: expected a whole number");
        assert_eq!(why("1,,10,0"), "port: expected a name of at most 64 letters");
        assert_eq!(why("1,eth0,10,"), "all and bad: expected both or neither");
        assert_eq!(why("1,eth0,10,11"), "11 bad of all 10: expected no more bad frames than frames");
        assert_eq!(why("1,\"eth0,10,11"), "a quote that does not end, or something behind it");
        assert_eq!(why("{\"time_ms\": 1"), "EOF while parsing an object");
        let object = r#"{"time_ms":1,"port":"e","all":1,"bad":0,"bits":48}"#;
        assert_eq!(why(object), "bits: 48: expected 32 or 64");
        assert!(why(&object.replace("bits", "bit")).starts_with("unknown field `bit`"));
        assert!(why(&object.replace("\"bits\":48", "\"carrier\":\"on\"")).contains("expected up, lost or off"));
        assert!(why(&object.replace("48", "32").replace("\"all\":1", "\"all\":4294967296")).contains("32 bits"));
    }

    #[test]
    fn a_bad_header_is_told_once_and_a_good_one_mends_it() {
        let mut format = SampleFormat::default();
        assert!(nonsense(format.read("1000,eth0,5,0")).contains("expected a header such as time_ms,port"));
        assert_eq!(format.read("2000,eth0,5,0"), SampleLine::Nothing);
        assert_eq!(nonsense(format.read("time_ms,prot,all,bad")), "unknown column `prot`; did you mean port?");
        assert_eq!(format.read("2000,eth0,5,0"), SampleLine::Nothing);
        let missing = nonsense(format.read("time_ms,port,all"));
        assert_eq!(missing, "no column `bad`: expected at least time_ms,port,all,bad");
        assert_eq!(nonsense(format.read("time_ms,port,all,bad,bad")), "column `bad` is there twice");
        format.read("port,time_ms,bad,all");
        assert_eq!(sample(format.read("eth0,2000,0,5")).frames.map(|frames| frames.all), Some(5));
    }

    #[test]
    fn a_counter_of_32_bits_that_wrapped_may_be_smaller_than_that_of_bad_frames() {
        let line = r#"{"time_ms":1,"port":"e","all":3,"bad":9,"bits":32}"#;
        assert_eq!(
            sample(SampleFormat::default().read(line)).frames,
            Some(ReceivedFrames { all: 3, bad: 9, bits: 32 })
        );
    }
}
