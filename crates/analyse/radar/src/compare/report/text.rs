//! The losses as people read them.

use chart::table::{Align, Table, thousands};

use super::LossReport;
use crate::causes::CauseCounts;
use crate::loss::LossCause;

pub(super) fn describe(report: &LossReport, top: usize) -> String {
    let mut text = summary(report);
    for note in &report.notes {
        text += &format!("note: {note}\n");
    }
    if !report.comparison.lost.is_empty() {
        text += &format!("\n{}\n{}\n{}", causes(report), flows(report, top), first(report, top));
    }
    text
}

/// Summary of the whole page, in a few lines.
pub(super) fn summary(report: &LossReport) -> String {
    let comparison = &report.comparison;
    let losses = comparison.losses();
    let lost = match losses {
        0 => "no packet lost".to_owned(),
        losses => format!("{} lost ({})", packets(losses), percent(report.loss())),
    };
    let unnamed = match comparison.unnamed {
        0 => String::new(),
        unnamed => format!(", {} of them unnamed", thousands(unnamed)),
    };
    let other_way = match comparison.other_way {
        0 => String::new(),
        packets => format!(" ({} of them go the other way)", thousands(packets)),
    };
    let mut text = format!(
        "{lost}{unnamed} of {} judged; UP has {}{other_way}, DOWN {}\n",
        thousands(comparison.judged()),
        thousands(comparison.up.packets),
        thousands(comparison.down.packets)
    );
    if let Some(skew) = comparison.skew {
        let drift = match comparison.drift {
            drift if drift.abs() >= 1_000 => format!(", drifting by {}", time(drift)),
            _ => String::new(),
        };
        text += &format!("packets reach DOWN {} later by the captures' clocks{drift}\n", time(skew));
    }
    if let Some((at, (low, high))) = first_loss_down(report) {
        let [size, error] = [(low / 2 + high / 2) as i64 - at as i64, (high - low).div_ceil(2) as i64].map(time);
        text += &format!("times are UP's; DOWN's clock showed {size} more, ± {error}\n");
    }
    text += &format!("{:.2} s, {:.2} M packets/s\n", report.seconds, report.packets_per_second() / 1e6);
    text
}

/// Time of the first loss by UP's clock, and earliest and latest by DOWN's.
pub(super) fn first_loss_down(report: &LossReport) -> Option<(u64, (u64, u64))> {
    let at = report.comparison.lost.first()?.loss.at.0;
    Some((at, report.down_time(at)?))
}

fn causes(report: &LossReport) -> String {
    let mut table = Table::new(&[("cause", Align::Left), ("packets", Align::Right), ("share", Align::Right)]);
    let summary: CauseCounts = report.causes.iter().copied().collect();
    let mut causes: Vec<(LossCause, u64)> = summary.causes().collect();
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (cause, count) in causes {
        table.row(vec![cause.to_string(), thousands(count), percent(count as f64 / report.causes.len() as f64)]);
    }
    table.to_string()
}

fn flows(report: &LossReport, top: usize) -> String {
    let mut table =
        Table::new(&[("flow", Align::Left), ("lost", Align::Right), ("of", Align::Right), ("share", Align::Right)]);
    let flows = &report.comparison.flows;
    for flow in flows.iter().take(top) {
        let share = flow.lost as f64 / flow.packets.max(1) as f64;
        table.row(vec![flow.flow.to_string(), thousands(flow.lost), thousands(flow.packets), percent(share)]);
    }
    format!("{table}{}", more(flows.len(), top, "flows"))
}

fn first(report: &LossReport, top: usize) -> String {
    let mut table = Table::new(&[
        ("time (UTC)", Align::Left),
        ("flow", Align::Left),
        ("sequence", Align::Right),
        ("IP id", Align::Right),
        ("cause", Align::Left),
    ]);
    let lost = &report.comparison.lost;
    let number = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    for (lost, cause) in lost.iter().zip(&report.causes).take(top) {
        table.row(vec![
            utc(lost.loss.at.0),
            lost.loss.flow.to_string(),
            number(lost.loss.tcp.map(|segment| segment.seq.into())),
            number(lost.loss.ip_id.map(Into::into)),
            cause.to_string(),
        ]);
    }
    format!("{table}{}", more(lost.len(), top, "losses"))
}

fn more(all: usize, shown: usize, what: &str) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        more => format!("and {} more {what}: --top, --json, --html or --write has them\n", thousands(more as u64)),
    }
}

pub(crate) fn packets(number: u64) -> String {
    if number == 1 { "1 packet".into() } else { format!("{} packets", thousands(number)) }
}

pub(super) fn percent(share: f64) -> String {
    match 100.0 * share {
        percent if percent == 0.0 || percent >= 0.01 => format!("{percent:.2} %"),
        percent => format!("{percent:.1e} %"),
    }
}

/// Nanoseconds in the unit that makes them short.
pub(crate) fn time(ns: i64) -> String {
    let size = ns.unsigned_abs();
    match ns as f64 {
        ns if size < 1_000 => format!("{ns} ns"),
        ns if size < 1_000_000 => format!("{:.1} us", ns / 1e3),
        ns if size < 1_000_000_000 => format!("{:.3} ms", ns / 1e6),
        ns => format!("{:.3} s", ns / 1e9),
    }
}

/// Nanoseconds since 1970 as date and time.
pub(crate) fn utc(ns: u64) -> String {
    let (seconds, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March end with the day that comes and goes; 400 of them have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + 400 * era + next;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{fraction:09}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        let times = [
            (0, "1970-01-01 00:00:00.000000000"),
            (951_782_400_000_000_001, "2000-02-29 00:00:00.000000001"),
            (1_700_000_000_123_456_789, "2023-11-14 22:13:20.123456789"),
            (4_102_444_799_999_999_999, "2099-12-31 23:59:59.999999999"),
        ];
        for (ns, text) in times {
            assert_eq!(utc(ns), text);
        }
    }

    #[test]
    fn times_are_told_in_a_unit_that_fits() {
        assert_eq!([7, -1_500, 2_000_000, 3_000_000_000].map(time), ["7 ns", "-1.5 us", "2.000 ms", "3.000 s"]);
    }

    #[test]
    fn small_shares_are_not_nothing() {
        assert_eq!([0.0, 0.5, 1e-6].map(percent), ["0.00 %", "50.00 %", "1.0e-4 %"]);
    }
}
