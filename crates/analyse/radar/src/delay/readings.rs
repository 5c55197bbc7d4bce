//! Statements of a clock about itself, made while a capture was taken: true time was between two times when it showed
//! `local`.
//!
//! | a line | local time | true time |
//! | --- | --- | --- |
//! | `{"local_ns": …, "earliest_ns": …, "latest_ns": …}`, as `hitless clock now --follow` writes it | `local_ns` | between both |
//! | `TIME,` and a line of `chronyc -c tracking` | TIME, in seconds since 1970 | ± (system time + root delay ∕ 2 + root dispersion) |
//! | of chrony's tracking.log | date and time, of a second | ± the maximum error |
//! | `… within X and Y seconds …`, as ClockBound's examples print | the middle of X and Y | between X and Y |
//!
//! A clock that is not synchronised says nothing: such lines are passed over. So are empty lines, those that begin with `#`,
//! the banners of chrony's log, and what ClockBound's examples print of their own speed.

use std::fmt;

use clock::offset::{OffsetDrift, OffsetFacts};
use serde::Deserialize;

/// Nanoseconds since 1970; of true time, any common beginning does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStatement {
    /// Time that the system's clock showed; the same clock stamped the capture.
    pub local: i64,
    pub earliest: i64,
    pub latest: i64,
}

/// A line that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockFileError {
    /// Line number, from 1; 0 if it is about all of them.
    pub line: usize,
    pub what: String,
}

impl fmt::Display for ClockFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}

impl std::error::Error for ClockFileError {}

/// The readings of a file, in order of their times.
pub fn readings(text: &str) -> Result<Vec<ClockStatement>, ClockFileError> {
    let mut readings = Vec::new();
    for (nth, line) in text.lines().enumerate() {
        let reading = reading(line.trim()).map_err(|what| ClockFileError { line: nth + 1, what })?;
        readings.extend(reading);
    }
    if readings.is_empty() {
        let what = "has no reading of a synchronised clock; expected lines of `hitless clock now --follow`, of chrony or of \
                    ClockBound";
        return Err(ClockFileError { line: 0, what: what.into() });
    }
    readings.sort_by_key(|reading| reading.local);
    Ok(readings)
}

fn reading(line: &str) -> Result<Option<ClockStatement>, String> {
    let is_banner = line.is_empty() || line.starts_with(['#', '=']) || line.starts_with("Date");
    if is_banner || line.starts_with("It took ") || line.contains("Not synchronised") {
        return Ok(None);
    }
    let reading = if line.starts_with('{') {
        json(line)?
    } else if let Some((_, times)) = line.split_once("within ") {
        let wrong = "expected `within SECONDS and SECONDS`, as ClockBound prints";
        // A clock's statement is no bound while the clock does not know the time, or after its machine was moved.
        let status = times.split_once("status is").map(|(_, status)| status.to_ascii_lowercase()).unwrap_or_default();
        let is_known = !["unknown", "disrupted"].iter().any(|word| status.contains(word));
        Some(clock_bound(times).ok_or(wrong)?).filter(|_| is_known)
    } else if line.contains(',') {
        Some(tracking(line)?)
    } else {
        tracking_log(line)?
    };
    match reading {
        Some(ClockStatement { earliest, latest, .. }) if earliest > latest => {
            Err(format!("earliest ({earliest}) is later than latest ({latest})"))
        }
        reading => Ok(reading),
    }
}

#[derive(Deserialize)]
struct StatedTime {
    local_ns: Option<i64>,
    earliest_ns: Option<i64>,
    latest_ns: Option<i64>,
}

fn json(line: &str) -> Result<Option<ClockStatement>, String> {
    let StatedTime { local_ns, earliest_ns, latest_ns } =
        serde_json::from_str(line).map_err(|error| format!("not a reading: {error}"))?;
    let Some((earliest, latest)) = earliest_ns.zip(latest_ns) else { return Ok(None) };
    let local = local_ns.ok_or(
        "has no local_ns: what the system's clock showed, in nanoseconds since 1970, when it was read; \
         `hitless clock now --follow` writes it",
    )?;
    Ok(Some(ClockStatement { local, earliest, latest }))
}

fn clock_bound(times: &str) -> Option<ClockStatement> {
    let (earliest, latest) = times.split_once(" and ")?;
    let (earliest, latest) = (seconds(earliest.trim())?, seconds(latest.split_whitespace().next()?)?);
    Some(ClockStatement { local: earliest + (latest.saturating_sub(earliest)) / 2, earliest, latest })
}

/// Nanoseconds, exactly: a time of day has more digits than a float.
fn seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let (whole, fraction): (i64, u32) = (whole.parse().ok()?, digits.parse().ok()?);
    whole.checked_mul(1_000_000_000)?.checked_add(fraction.into())
}

/// A bound in seconds around the local time.
fn around(local: i64, bound: f64) -> Option<ClockStatement> {
    let bound = (bound.abs() * 1e9).ceil();
    let bound = (bound < 1e18).then_some(bound as i64)?;
    Some(ClockStatement { local, earliest: local.checked_sub(bound)?, latest: local.checked_add(bound)? })
}

/// `chronyc -c tracking` has 14 fields: the fifth is the system's offset, the eleventh and twelfth root delay and dispersion.
fn tracking(line: &str) -> Result<ClockStatement, String> {
    let fields: Vec<&str> = line.split(',').collect();
    if fields.len() == 14 {
        let what = "does not say when it was read; write: echo \"$(date +%s.%N),$(chronyc -c tracking)\"";
        return Err(what.into());
    }
    let expected =
        || format!("expected TIME and the 14 fields of `chronyc -c tracking`, found {} fields", fields.len());
    if fields.len() != 15 {
        return Err(expected());
    }
    let number = |nth: usize| fields[nth].trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let bound = |system: f64, delay: f64, dispersion: f64| system.abs() + delay.abs() / 2.0 + dispersion.abs();
    let bound = number(5).zip(number(11)).zip(number(12)).map(|((a, b), c)| bound(a, b, c));
    seconds(fields[0].trim()).zip(bound).and_then(|(local, bound)| around(local, bound)).ok_or_else(expected)
}

/// Date, time, address, stratum, frequency, skew, offset, leap, sources, deviation, correction, root delay and dispersion,
/// and the maximum error since the line before. The time is cut to seconds, so the reading may be up to a second later. A leap
/// of `?` means that the clock is not synchronised.
fn tracking_log(line: &str) -> Result<Option<ClockStatement>, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let expected = || {
        "expected JSON with local_ns, earliest_ns and latest_ns, a line of chrony's (TIME,`chronyc -c tracking`, or of its \
         tracking.log) or of ClockBound's"
            .to_owned()
    };
    let [date, time, .., most] = fields[..] else { return Err(expected()) };
    let error = most.parse::<f64>().ok().filter(|error| error.is_finite() && fields.len() == 14);
    let local = date_time(date, time);
    let reading = local.zip(error).and_then(|(local, error)| around(local, error)).ok_or_else(expected)?;
    Ok((fields[7] != "?").then_some(reading))
}

fn date_time(date: &str, time: &str) -> Option<i64> {
    let numbers = |text: &str, between| {
        let parts: Option<Vec<i64>> = text.split(between).map(|part| part.parse().ok()).collect();
        <[i64; 3]>::try_from(parts?).ok()
    };
    let ([year, month, day], [hour, minute, second]) = (numbers(date, '-')?, numbers(time, ':')?);
    let in_range = (1970..3000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !in_range || !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..=60).contains(&second) {
        return None;
    }
    // Years that begin in March end with the day that comes and goes.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    (((days * 24 + hour) * 60 + minute) * 60 + second).checked_mul(1_000_000_000)
}

/// Facts about the offset between both clocks, from their readings: one at each reading of UP's clock, with the readings of
/// DOWN's that are nearest to it in true time.
pub(super) fn facts(up: &[ClockStatement], down: &[ClockStatement], drift: OffsetDrift) -> OffsetFacts {
    let mut facts = OffsetFacts::new(drift);
    let mut down = down.to_vec();
    down.sort_by_key(|reading| reading.earliest);
    for one in up {
        let next = down.partition_point(|other| other.earliest < one.earliest);
        let near = [next.checked_sub(1).and_then(|before| down.get(before)), down.get(next)];
        for other in near.into_iter().flatten() {
            // True time between the readings, and what DOWN's clock counted meanwhile.
            let (least, most) = (one.earliest.saturating_sub(other.latest), one.latest.saturating_sub(other.earliest));
            let ahead = other.local.saturating_sub(one.local);
            facts.at_least(one.local, ahead.saturating_add(least).saturating_sub(drift.over(least)));
            facts.at_most(one.local, ahead.saturating_add(most).saturating_add(drift.over(most)));
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: i64 = 1_700_000_000_000_000_000;

    #[test]
    fn our_own_lines_are_read_and_silence_is_passed_over() {
        let text = "{\"node\":\"a\",\"local_ns\":10,\"earliest_ns\":7,\"latest_ns\":12,\"eps_ns\":3,\"state\":\"following\"}\n\
                    \n# a remark\n{\"node\":\"a\",\"local_ns\":5,\"earliest_ns\":null,\"latest_ns\":null}\n\
                    {\"local_ns\":4,\"earliest_ns\":1,\"latest_ns\":2}\n";
        let read = readings(text).unwrap();
        assert_eq!(
            read,
            [
                ClockStatement { local: 4, earliest: 1, latest: 2 },
                ClockStatement { local: 10, earliest: 7, latest: 12 }
            ]
        );
    }

    #[test]
    fn lines_of_chrony_and_clock_bound_are_read() {
        let chrony = "1700000000.000000001,A9FEA97B,169.254.169.123,4,1699999990.1,-0.000001000,0.0,0.0,1.2,0.0,0.1,0.000100000,\
                      0.000020000,16.1,Normal";
        let read = readings(chrony).unwrap();
        assert_eq!(read, [ClockStatement { local: AT + 1, earliest: AT + 1 - 71_000, latest: AT + 1 + 71_000 }]);
        let log = "=====\n   Date (UTC) Time     IP Address   St   Freq ppm   Skew ppm     Offset L Co\n\
                   2023-11-14 22:13:20 203.0.113.15 2 -3.541 0.075 -8.621e-06 N 2 2.940e-03 -2.084e-04 1.534e-02 3.472e-04 8.304e-03";
        let [ClockStatement { local, earliest, latest }] = readings(log).unwrap()[..] else { panic!("one reading") };
        assert_eq!(local, AT);
        // Rounded up, as bounds are.
        assert!((8_304_000..=8_304_001).contains(&(AT - earliest)) && latest - AT == AT - earliest);
        let bound = "When clockbound_now was called true time was somewhere within 1700000000.000000000 and 1700000000.000400000 \
                     seconds since Jan 1 1970. The clock status is Synchronized.";
        assert_eq!(
            readings(bound).unwrap(),
            [ClockStatement { local: AT + 200_000, earliest: AT, latest: AT + 400_000 }]
        );
    }

    #[test]
    fn years_beyond_64_bits_of_nanoseconds_are_refused() {
        let line = |year: u32| format!("{year}-04-12 22:13:20 a 2 -3.5 0.1 -8e-06 N 2 2e-03 -2e-04 1e-02 3e-04 8e-03");
        assert_eq!(readings(&line(2261)).unwrap().len(), 1);
        for year in [2263, 2600, 2999] {
            assert_eq!(readings(&line(year)).unwrap_err().line, 1);
        }
    }

    /// Output of chronyd 4.3, about a server on the same machine.
    #[test]
    fn real_output_of_chrony_is_read_and_what_it_says_before_it_is_synchronised_is_passed_over() {
        const SECOND: i64 = 1_000_000_000;
        let tracking = "1794896885.465348789,7F000001,127.0.0.1,9,1794896885.103887277,-0.000001504,-0.000000032,0.000000178,0.038,\
                        -0.000,0.079,0.000004986,0.000000664,1.0,Normal\n\
                        1794896902.675542493,00000000,,0,0.000000000,-0.000000076,0.000000000,0.000000000,0.038,0.000,0.000,\
                        1.000000000,1.000000000,0.0,Not synchronised\n";
        let [ClockStatement { local, earliest, latest }] = readings(tracking).unwrap()[..] else {
            panic!("one reading")
        };
        // 1.504 µs of offset, half of 4.986 µs of delay, 0.664 µs of dispersion.
        assert_eq!((local, local - earliest, latest - local), (1_794_896_885 * SECOND + 465_348_789, 4_661, 4_661));
        let log = "=====================================================================================================\n   \
                   Date (UTC) Time     IP Address   St   Freq ppm   Skew ppm     Offset L Co  Offset sd Rem. corr. Root delay \
                   Root disp. Max. error\n\
                   =====================================================================================================\n\
                   2026-11-17 06:27:53 0.0.0.0          0     -0.028      0.113  0.000e+00 ?  0  0.000e+00  7.062e-14  1.000e+00  \
                   1.000e+00  1.500e+00\n\
                   2026-11-17 06:28:05 127.0.0.1        9      0.038      0.079 -3.232e-08 N  1  1.608e-07 -1.531e-06  4.986e-06  \
                   5.224e-07  6.367e-06\n";
        let [ClockStatement { local, earliest, latest }] = readings(log).unwrap()[..] else { panic!("one reading") };
        assert_eq!((local, local - earliest, latest - local), (1_794_896_885 * SECOND, 6_367, 6_367));
    }

    #[test]
    fn a_clock_bound_that_does_not_know_the_time_says_nothing() {
        let said = |status: &str| {
            format!(
                "When clockbound_now was called true time was somewhere within 1700000000.000000000 and 1700000000.000400000 \
                 seconds since Jan 1 1970. The clock status is {status}.\nIt took 9.428327416 seconds to call clock bound \
                 100000000 times (10606335 tps).\n"
            )
        };
        let known = ["SYNCHRONIZED", "SYNCHRONIZED (1)", "\"Synchronized\"", "FREE_RUNNING"];
        assert!(known.iter().all(|status| readings(&said(status)).unwrap().len() == 1));
        assert!(["UNKNOWN", "Disrupted"].iter().all(|status| readings(&said(status)).is_err()));
    }

    #[test]
    fn what_is_none_says_its_line_and_what_to_do() {
        let wrong = [
            ("\n{\"earliest_ns\":1,\"latest_ns\":2}", "line 2: has no local_ns"),
            ("{\"local_ns\":1,\"earliest_ns\":3,\"latest_ns\":2}", "line 1: earliest (3) is later"),
            ("{", "line 1: not a reading"),
            ("A,B,4,1.1,0,0,0,0,0,0,0,0,16.1,Normal", "line 1: does not say when it was read"),
            ("1,2,3", "line 1: expected TIME and the 14 fields"),
            ("hello", "line 1: expected JSON"),
            ("2023-13-14 22:13:20 x 2 1 0 0 N 2 0 0 0 0 1", "line 1: expected JSON"),
            ("within a and b", "line 1: expected `within"),
            ("", "has no reading"),
        ];
        for (text, what) in wrong {
            let error = readings(text).unwrap_err().to_string();
            assert!(error.starts_with(what), "{text}: {error}");
        }
    }

    #[test]
    fn the_offset_between_two_clocks_follows_from_what_each_says() {
        // UP's clock is 300 behind true time, known to ± 10; DOWN's 700 ahead, known to ± 20.
        let up: Vec<ClockStatement> = (0..10)
            .map(|nth| nth * 1_000_000)
            .map(|at| ClockStatement { local: at - 300, earliest: at - 10, latest: at + 10 })
            .collect();
        let down: Vec<ClockStatement> = (0..10)
            .map(|nth| nth * 1_000_000 + 500)
            .map(|at| ClockStatement { local: at + 700, earliest: at - 20, latest: at + 20 })
            .collect();
        let drift = OffsetDrift::from_ppm(100.0).unwrap();
        let band = facts(&up, &down, drift).band().unwrap();
        let (low, high) = band.at(5_000_000).ends().unwrap();
        assert!(low <= 1_000 && 1_000 <= high && high - low <= 66, "{low} {high}");
    }
}
