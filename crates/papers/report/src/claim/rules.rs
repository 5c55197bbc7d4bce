//! Rules for points, so that a verdict means something.
//!
//! - Every point has a kind. A calibrated one names its input: what was fitted, and to what.
//! - What the paper does not print is no claim of it (`NOT_PRINTED`). A claim has a band, a noted point has none.
//! - An order statement ("higher", "lower") has words and no band: it is judged against 1.
//! - The band of other words is a factor of 10 wide or less, unless they are an "at least" or "at most".
//! - What a reason may say is in `reasons`.
//! - A band contains the paper's number, whatever the kind, and what its words name as a range.
//! - A claim's band has two ends. If the paper says "at least" or "at most", the point does too (`says`): then one end
//!   may be open, and the other is the paper's number. Words with a band from 0 on are an "at most".
//! - A claim's band is half to twice the paper's number or tighter; that of a range half its lower to twice its upper
//!   end. If the paper's number is zero, the band is [0, 0]. `wide` says why a band is wider.
//! - Points that exclude each other have bands that share at most an end.

use std::fmt;

use super::{Band, Claim, ClaimError, ClaimPoint, PaperValue, PointKind, Says, StatementForm, number, reasons};

/// Words in place of the paper's value if the paper prints none.
const NOT_PRINTED: [&str; 11] = [
    "not in the paper",
    "not stated",
    "not said",
    "not given",
    "not measured",
    "not printed",
    "not computed",
    "not counted",
    "not shown",
    "not its form",
    "figure only",
];

/// Upper end by lower end of a band that stands for mere words.
const WIDEST_WORDS: f64 = 10.0;

/// Tolerance of a band's ends: it may exceed half to twice by this share, so that it needs few digits.
const DIGITS: f64 = 0.005;

pub(super) fn check(claim: &Claim, point: &ClaimPoint) -> Result<(), ClaimError> {
    let wrong = |key: &str, what: &dyn fmt::Display| Err(claim.error_at(point, key, what));
    let Some(kind) = point.kind else {
        return wrong(
            "id",
            &"no kind: expected kind = \"claim\", \"arithmetic\", \"model-check\", \"calibrated\" or \"noted\", here or once above the points",
        );
    };
    match (kind, &point.input) {
        (PointKind::Calibrated, None) => {
            return wrong("kind", &"calibrated: expected input = \"what was fitted, and to what\"");
        }
        (PointKind::Calibrated, Some(_)) | (_, None) => {}
        (_, Some(_)) => return wrong("input", &"input is a key of calibrated points: expected kind = \"calibrated\""),
    }
    if kind == PointKind::Claim && !is_printed(&point.paper) {
        let what = format_args!("{}, so not its claim: expected kind = \"model-check\" or \"noted\"", point.paper);
        return wrong("paper", &what);
    }
    reasons::check(claim, point)?;
    if point.form() == StatementForm::Order {
        return order(claim, point);
    }
    let Some(band) = point.band else { return no_band(claim, point, kind) };
    if kind == PointKind::Noted {
        return wrong("band", &"noted, so not judged: expected no band, or another kind");
    }
    contains(claim, point, band)?;
    if kind == PointKind::Claim {
        two_sided(claim, point, band)?;
        narrow(claim, point, band)?;
    }
    excludes(claim, point, band)
}

/// An order statement is made in words, and its band is no choice of the file.
fn order(claim: &Claim, point: &ClaimPoint) -> Result<(), ClaimError> {
    let has_number = point.paper.number().is_some() || point.range.is_some();
    let keys = [("band", point.band.is_some()), ("wide", point.wide.is_some()), ("excludes", point.excludes.is_some())];
    match keys.iter().find(|(_, given)| *given) {
        _ if has_number => {
            Err(claim.error_at(point, "says", "an order statement with a number: expected band = [low, high]"))
        }
        Some((key, _)) => {
            let what = format_args!("{key} beside says: expected neither, an order statement is judged against 1");
            Err(claim.error_at(point, key, what))
        }
        None => Ok(()),
    }
}

/// Keys that say something of a band.
fn no_band(claim: &Claim, point: &ClaimPoint, kind: PointKind) -> Result<(), ClaimError> {
    let keys = [("says", point.says.is_some()), ("wide", point.wide.is_some()), ("excludes", point.excludes.is_some())];
    match keys.iter().find(|(_, given)| *given) {
        Some((key, _)) => {
            Err(claim.error_at(point, key, format_args!("{key} without a band: expected band = [low, high]")))
        }
        None if kind == PointKind::Claim => {
            Err(claim.error_at(point, "id", "a claim without a band: expected band = [low, high], or kind = \"noted\""))
        }
        None => Ok(()),
    }
}

fn is_printed(paper: &PaperValue) -> bool {
    match paper {
        PaperValue::Number(_) => true,
        PaperValue::Words(words) => words != "a figure" && !NOT_PRINTED.iter().any(|not| words.contains(not)),
    }
}

/// The range that the paper gives: a number, or what its words say; `None` for mere words.
fn papers(point: &ClaimPoint) -> Option<Band> {
    let number = point.paper.number().map(|number| Band { low: number, high: number });
    number.or(point.range)
}

fn contains(claim: &Claim, point: &ClaimPoint, band: Band) -> Result<(), ClaimError> {
    if point.range.is_some() && point.paper.number().is_some() {
        return Err(claim.error_at(point, "range", "range is what words mean: expected words as the paper's value"));
    }
    match papers(point) {
        Some(papers) if !band.covers(&papers) => {
            let value = if papers.low == papers.high { number(papers.low) } else { papers.to_string() };
            let what = format_args!("band {band} excludes the paper's {value}: expected a band that contains it");
            Err(claim.error_at(point, "band", what))
        }
        None if names_range(&point.paper) => Err(claim.error_at(
            point,
            "paper",
            "words with a range of numbers: expected range = [low, high] beside them",
        )),
        _ => Ok(()),
    }
}

/// True if words have two numbers with `to` between them.
fn names_range(paper: &PaperValue) -> bool {
    let PaperValue::Words(words) = paper else { return false };
    let words: Vec<&str> = words.split_whitespace().collect();
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    words.windows(3).any(|three| three[1] == "to" && is_number(three[0]) && is_number(three[2]))
}

fn two_sided(claim: &Claim, point: &ClaimPoint, band: Band) -> Result<(), ClaimError> {
    let wrong = |what: &dyn fmt::Display| Err(claim.error_at(point, "band", what));
    let words_only = papers(point).is_none();
    let is_open_low = band.low == f64::NEG_INFINITY || (words_only && band.low == 0.0 && band.high != 0.0);
    let is_open_high = band.high == f64::INFINITY;
    match (point.says, is_open_low, is_open_high) {
        (None | Some(Says::AtMost), _, true) => wrong(&format_args!(
            "band {band} has no upper end: expected one, or says = \"at least\" if the paper says so"
        )),
        (None | Some(Says::AtLeast), true, _) => wrong(&format_args!(
            "band {band} has no lower end: expected one, or says = \"at most\" if the paper says so"
        )),
        (Some(says), _, _) => bounded(claim, point, band, says),
        (None, false, false) => Ok(()),
    }
}

/// The end that "at least" and "at most" name is the paper's.
fn bounded(claim: &Claim, point: &ClaimPoint, band: Band, says: Says) -> Result<(), ClaimError> {
    let Some(papers) = papers(point) else { return Ok(()) };
    let (end, named) = match says {
        Says::AtLeast => (band.low, papers.low),
        Says::AtMost => (band.high, papers.high),
        Says::Higher | Says::Lower => return Ok(()),
    };
    if end == named || point.wide.is_some() {
        return Ok(());
    }
    let (end, named) = (number(end), number(named));
    let what = format_args!("says names {named}, the band ends at {end}: expected {named}, or wide = \"why not\"");
    Err(claim.error_at(point, "band", what))
}

fn narrow(claim: &Claim, point: &ClaimPoint, band: Band) -> Result<(), ClaimError> {
    if point.says.is_some() {
        return Ok(());
    }
    let Some(papers) = papers(point) else { return words_narrow(claim, point, band) };
    if point.wide.is_some() {
        return Ok(());
    }
    if papers.low == 0.0 && papers.high == 0.0 {
        let what =
            format_args!("band {band} around zero: expected [0, 0], or wide = \"what the paper would print as 0\"");
        return if band.low == 0.0 && band.high == 0.0 { Ok(()) } else { Err(claim.error_at(point, "band", what)) };
    }
    let widest =
        Band { low: (papers.low / 2.0).min(2.0 * papers.low), high: (papers.high / 2.0).max(2.0 * papers.high) };
    let spare = |end: f64| end.abs() * DIGITS;
    if band.low >= widest.low - spare(widest.low) && band.high <= widest.high + spare(widest.high) {
        return Ok(());
    }
    let what =
        format_args!("band {band} is wider than {widest}: expected half to twice the paper's, or wide = \"why\"");
    Err(claim.error_at(point, "band", what))
}

/// `wide` is no excuse here: it is about a printed number.
fn words_narrow(claim: &Claim, point: &ClaimPoint, band: Band) -> Result<(), ClaimError> {
    if band.factor() <= WIDEST_WORDS * (1.0 + DIGITS) {
        return Ok(());
    }
    let what = format_args!(
        "band {band} of words is wider than a factor of {WIDEST_WORDS}: expected a narrower one, or says = \"higher\", \
         \"lower\", \"at least\" or \"at most\""
    );
    Err(claim.error_at(point, "band", what))
}

fn excludes(claim: &Claim, point: &ClaimPoint, band: Band) -> Result<(), ClaimError> {
    let Some(other) = &point.excludes else { return Ok(()) };
    let wrong = |what: &dyn fmt::Display| Err(claim.error_at(point, "excludes", what));
    let Some(other) = claim.point.iter().find(|one| one.id == *other && !std::ptr::eq(*one, point)) else {
        return wrong(&format_args!("excludes {other}: expected the id of another point of this claim"));
    };
    match other.band {
        None => wrong(&format_args!("excludes {}, which has no band: expected one", other.id)),
        Some(others) if band.overlaps(&others) => {
            let id = &other.id;
            wrong(&format_args!(
                "band {band} overlaps that of {id}, {others}: expected bands that share at most an end"
            ))
        }
        Some(_) => Ok(()),
    }
}
