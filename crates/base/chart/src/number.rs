//! Numbers as people write them. What is no number becomes a dash.

use crate::table::thousands;

/// Stands where there is no value.
pub const NOTHING: &str = "–";

/// Four digits, with a power of ten where that is shorter to read.
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size @ 0.001..1e7 => {
            let decimals = (3.0 - size.log10().floor()).clamp(0.0, 6.0) as usize;
            decimal(value, decimals)
        }
        _ => scientific(value),
    }
}

/// Writes a value as a power of ten, such as 2.3 × 10⁻⁸.
pub(crate) fn scientific(value: f64) -> String {
    if !value.is_finite() {
        return NOTHING.into();
    }
    let text = format!("{value:.2e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.').replace('-', "−");
    match (mantissa.as_str(), exponent) {
        ("0", _) => "0".into(),
        (mantissa, "0") => mantissa.into(),
        ("1", exponent) => format!("10{}", superscript(exponent)),
        (mantissa, exponent) => format!("{mantissa}\u{a0}×\u{a0}10{}", superscript(exponent)),
    }
}

fn superscript(exponent: &str) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raised = |letter: char| letter.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]);
    exponent.chars().map(raised).collect()
}

/// Formats a number with at most that many decimals, none of them a zero at the end.
fn decimal(value: f64, decimals: usize) -> String {
    let sign = if value < 0.0 { "−" } else { "" };
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), thousands);
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

/// A share in percent, without the sign: 0.99999 is 99.999.
pub fn percent(share: f64) -> String {
    if share.is_finite() { decimal(share * 100.0, 6) } else { NOTHING.into() }
}

/// Microseconds, in the unit that makes them short.
pub fn time_us(us: f64) -> String {
    let (value, unit) = match us.abs() {
        us if us >= 0.9995e6 => (1e-6, "s"),
        us if us >= 0.9995e3 => (1e-3, "ms"),
        _ => (1.0, "µs"),
    };
    if !us.is_finite() {
        return NOTHING.into();
    }
    let value = us * value;
    let decimals = if value.abs() >= 100.0 { 0 } else { 2 };
    format!("{}\u{a0}{unit}", decimal(value, decimals))
}

/// Formats a duration for people.
pub fn seconds(seconds: f64) -> String {
    let whole = seconds.round();
    match whole {
        _ if !seconds.is_finite() => NOTHING.into(),
        whole if whole < 10.0 => format!("{}\u{a0}s", decimal(seconds, 1)),
        whole if whole < 120.0 => format!("{whole}\u{a0}s"),
        whole if whole < 7_200.0 => format!("{}\u{a0}min {}\u{a0}s", (whole / 60.0).floor(), whole % 60.0),
        whole => {
            format!("{}\u{a0}h {}\u{a0}min", thousands((whole / 3_600.0) as u64), (whole % 3_600.0 / 60.0).floor())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let values = [0.0, 0.921_73, 1.0, 24_387.0, 167.04, -3.5, 1e-8, 2.34e-10, 6e9];
        let written =
            ["0", "0.9217", "1", "24,387", "167", "−3.5", "10⁻⁸", "2.34\u{a0}×\u{a0}10⁻¹⁰", "6\u{a0}×\u{a0}10⁹"];
        assert_eq!(values.map(number), written);
        assert_eq!([1e-3, 1.0, 1e5].map(scientific), ["10⁻³", "1", "10⁵"]);
    }

    #[test]
    fn what_is_no_number_is_a_dash() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for write in [number, scientific, percent, time_us, seconds] {
                assert_eq!(write(value), NOTHING);
            }
        }
    }

    #[test]
    fn times_have_the_unit_that_makes_them_short() {
        let values = [0.1, 20.0, 167.4, 1e3, 3_400.0, 203_000.0, 1e6];
        let written = ["0.1 µs", "20 µs", "167 µs", "1 ms", "3.4 ms", "203 ms", "1 s"];
        assert_eq!(values.map(time_us), written.map(|text| text.replace(' ', "\u{a0}")));
        assert_eq!([0.5, 0.99, 0.999, 0.999_99].map(percent), ["50", "99", "99.9", "99.999"]);
    }

    #[test]
    fn durations_have_two_units_at_most() {
        let written = ["0.4 s", "12 s", "2 min 5 s", "2 h 30 min"];
        assert_eq!([0.42, 12.3, 125.0, 9_000.0].map(|value| seconds(value).replace('\u{a0}', " ")), written);
    }
}
