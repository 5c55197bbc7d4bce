//! Rules for what a file says beside a value: `note`, and `why` for a row that differs.
//!
//! - A number of another row is written `(row ID: NUMBER)`, and the row exists. Its id without a number is refused.
//! - A reason that is not known begins with `Open: ` and says what was tried. No other reason uses the word.
//! - The `why` of a claim, and every `Open: `, names what anybody can check: a row with its number, or a command.

use std::fmt;

use super::{Claim, ClaimError, ClaimPoint, PointKind};

/// Beginning of a reason that is not known.
pub(super) const OPEN: &str = "Open: ";

const COMMAND: &str = "`hitless ";

/// Words that admit that a reason is not known.
const ADMISSIONS: [&str; 6] = ["open", "unknown", "not known", "not clear", "unclear", "unexplained"];

pub(super) fn check(claim: &Claim, point: &ClaimPoint) -> Result<(), ClaimError> {
    citations(claim, point)?;
    for (key, text) in [("note", &point.note), ("why", &point.why)] {
        if let Some(row) = bare_row(claim, text) {
            let what = format_args!("{row}: expected (row {row}: NUMBER), the number that it has");
            return Err(claim.error_at(point, key, what));
        }
    }
    reason(claim, point)
}

fn reason(claim: &Claim, point: &ClaimPoint) -> Result<(), ClaimError> {
    let wrong = |what: &dyn fmt::Display| Err(claim.error_at(point, "why", what));
    let is_open = point.why.starts_with(OPEN);
    if let Some(admission) = admission(&point.why).filter(|_| !is_open) {
        return wrong(&format_args!("“{admission}” in a reason: expected why = \"Open: what was tried\""));
    }
    let needs_evidence = is_open || (point.kind() == PointKind::Claim && !point.why.is_empty());
    let names_another = || point.citations().iter().any(|(key, cited)| *key == "why" && cited.row != point.id);
    if needs_evidence && !point.why.contains(COMMAND) && !names_another() {
        return wrong(
            &"a reason that nobody can check: expected (row ID: NUMBER) of another row, or a command, `hitless …`",
        );
    }
    Ok(())
}

fn admission(text: &str) -> Option<&'static str> {
    let words: Vec<String> = text
        .split(|letter: char| !letter.is_alphanumeric())
        .map(str::to_lowercase)
        .filter(|word| !word.is_empty())
        .collect();
    ADMISSIONS.into_iter().find(|admission| {
        let admission: Vec<&str> = admission.split(' ').collect();
        words.windows(admission.len()).any(|words| words == admission)
    })
}

fn citations(claim: &Claim, point: &ClaimPoint) -> Result<(), ClaimError> {
    for (key, text) in [("note", &point.note), ("why", &point.why)] {
        let wrong = |what: &dyn fmt::Display| Err(claim.error_at(point, key, what));
        match super::citations::of(text) {
            Err(text) => return wrong(&format_args!("(row {text}): expected (row ID: NUMBER)")),
            Ok(cited) => {
                if let Some(unknown) = cited.iter().find(|cited| !claim.may_cite(&cited.row)) {
                    let row = &unknown.row;
                    return wrong(&format_args!(
                        "(row {row}): expected the id of a point of this claim, or of another claim of the paper in full"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// A row of the claim that is named without the number that is meant: after the word `row`, alone in brackets or quotes,
/// or anywhere if its id has a dot and is no number.
fn bare_row<'a>(claim: &Claim, text: &'a str) -> Option<&'a str> {
    let is_row = |word: &&str| claim.point.iter().any(|one| one.id == *word);
    let said = without_evidence(text);
    let enclosed = said.iter().flat_map(|part| part.split(['(', ')', '“', '”', '"']).skip(1).step_by(2));
    let mut enclosed = enclosed.flat_map(|text| text.split(", ")).filter(is_row);
    let words = || said.iter().flat_map(|part| part.split_whitespace().map(trimmed));
    let mut after_row = words().zip(words().skip(1)).filter(|(before, _)| matches!(*before, "row" | "rows"));
    let has_dot = |word: &&str| word.contains('.') && word.parse::<f64>().is_err();
    enclosed
        .next()
        .or_else(|| after_row.find(|(_, word)| is_row(word)).map(|(_, word)| word))
        .or_else(|| words().filter(has_dot).find(|word| is_row(word) || claim.own_row(word).is_some()))
}

fn trimmed(word: &str) -> &str {
    word.trim_matches(['(', ')', '“', '”', '"', ',', ';', ':', '.'])
}

/// Parts of a text between citations and commands.
fn without_evidence(text: &str) -> Vec<&str> {
    let outside_commands = text.split('`').step_by(2);
    let outside = outside_commands.flat_map(|part| {
        let mut pieces = part.split("(row ");
        let first = pieces.next();
        first.into_iter().chain(pieces.map(|piece| piece.split_once(')').map_or("", |(_, rest)| rest)))
    });
    outside.collect()
}

/// Citations of other claims of the same paper. Only who has all of them can tell.
pub fn check_across(claims: &[Claim]) -> Result<(), ClaimError> {
    let is_row = |full: &str| claims.iter().any(|claim| claim.own_row(full).is_some());
    for (claim, point) in claims.iter().flat_map(|claim| claim.point.iter().map(move |point| (claim, point))) {
        let foreign =
            point.citations().into_iter().filter(|(_, cited)| !claim.point.iter().any(|one| one.id == cited.row));
        if let Some((key, unknown)) = foreign.into_iter().find(|(_, cited)| !is_row(&cited.row)) {
            let what = format_args!("(row {}): expected the full id of a row of this paper", unknown.row);
            return Err(claim.error_at(point, key, what));
        }
        let words = without_evidence(&point.why).into_iter().flat_map(|part| part.split_whitespace().map(trimmed));
        if let Some(row) = words.into_iter().find(|word| is_row(word)) {
            let what = format_args!("{row}: expected (row {row}: NUMBER), the number that it has");
            return Err(claim.error_at(point, "why", what));
        }
    }
    Ok(())
}

impl Claim {
    /// The point that a full id names, if it is one of this claim.
    pub(super) fn own_row(&self, full: &str) -> Option<&ClaimPoint> {
        let rest = full.strip_prefix(&self.id)?.strip_prefix('.')?;
        self.point.iter().find(|point| point.id == rest)
    }

    /// True for a point of this claim, and for what may be one of another claim of the paper: whoever has all of them knows.
    fn may_cite(&self, row: &str) -> bool {
        let is_own = self.point.iter().any(|one| one.id == row);
        let prefix = self.id.split_once('.').map_or(self.id.as_str(), |(prefix, _)| prefix);
        is_own || (row.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.')) && row != self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
    id = "x.y"
    title = "It"
    paper = "Fig. 1"
    claim = "It works."
    runner = "computed"
    kind = "claim"
    [[point]]
    id = "sparse"
    paper = 1.0
    band = [0.5, 2.0]
    [[point]]
    id = "a.b"
    paper = 1.0
    band = [0.5, 2.0]
    [[point]]
    id = "a"
    paper = 1.0
    band = [0.5, 2.0]
    why = "REASON"
"#;

    fn read(reason: &str) -> Result<Claim, ClaimError> {
        Claim::parse("fig1.toml", &FILE.replace("REASON", reason))
    }

    fn error(reason: &str) -> String {
        read(reason).unwrap_err().to_string()
    }

    #[test]
    fn a_reason_that_names_no_row_and_no_command_is_refused() {
        for reason in ["our hosts are slower", "see the notes", "as (row a: 0.91) has it"] {
            let error = error(reason);
            let expected = "fig1.toml:20: a: a reason that nobody can check: expected (row ID: NUMBER)";
            assert!(error.starts_with(expected), "{error}");
        }
        for reason in ["slower hosts fit (row sparse: 0.91)", "`hitless sim run a.toml` prints 0.91"] {
            assert!(read(reason).is_ok(), "{reason}");
        }
        let other_kind = FILE.replace("\"claim\"", "\"model-check\"").replace("REASON", "our hosts are slower");
        assert!(Claim::parse("fig1.toml", &other_kind).is_ok(), "only claims need evidence");
    }

    #[test]
    fn a_reason_that_is_not_known_begins_with_the_word_and_says_what_was_tried() {
        for reason in [
            "why the loop does it is open (row sparse: 0.91)",
            "as fast (row sparse: 0.91). Open: see the notes",
            "the paper's own is not known (row sparse: 0.91)",
        ] {
            let error = error(reason);
            assert!(
                error.starts_with("fig1.toml:20: a: “") && error.contains("expected why = \"Open: what"),
                "{error}"
            );
        }
        assert!(error("Open: nothing helped").contains("a reason that nobody can check"));
        for reason in ["Open: slower hosts fit, the paper's are unknown (row sparse: 0.91)", "opened (row a.b: 1)"] {
            assert!(read(reason).is_ok(), "{reason}");
        }
    }

    #[test]
    fn a_row_named_without_its_number_is_refused_with_and_without_a_dot() {
        for (reason, row) in [
            ("slower hosts fit (sparse)", "sparse"),
            ("slower hosts fit (a.b, sparse)", "a.b"),
            ("slower hosts fit “sparse”", "sparse"),
            ("slower hosts fit, see row sparse: 0.91", "sparse"),
            ("slower hosts fit, see a.b for more", "a.b"),
            ("slower hosts fit, see x.y.sparse for more", "x.y.sparse"),
            ("fits (row a.b: 0.91), and so does (sparse)", "sparse"),
        ] {
            let error = error(reason);
            assert!(
                error.contains(&format!("a: {row}: expected (row {row}: NUMBER), the number")),
                "{reason}: {error}"
            );
        }
        assert!(read("a sparse one of a few (row a.b: 0.91)").is_ok(), "a word of prose");
        let note = FILE.replace("why = \"REASON\"", "note = \"slower than (sparse)\"");
        assert!(Claim::parse("fig1.toml", &note).unwrap_err().to_string().contains("a: sparse: expected (row sparse"));
    }

    #[test]
    fn a_citation_names_a_row_of_the_claim_or_of_another_claim_in_full() {
        assert!(error("(row b: 0.91)").contains("a: (row b): expected the id of a point of this claim"));
        assert!(error("(row a)").contains("a: (row a): expected (row ID: NUMBER)"));
        let other = FILE.replace("x.y", "x.z").replace("why = \"REASON\"", "");
        let check = |reason: &str| check_across(&[read(reason).unwrap(), Claim::parse("other.toml", &other).unwrap()]);
        assert!(check("(row x.z.sparse: 0.91)").is_ok());
        let unknown = check("(row x.z.few: 0.91)").unwrap_err().to_string();
        assert_eq!(unknown, "fig1.toml:20: a: (row x.z.few): expected the full id of a row of this paper");
        let bare = check("(row sparse: 1) and x.z.sparse").unwrap_err().to_string();
        assert_eq!(bare, "fig1.toml:20: a: x.z.sparse: expected (row x.z.sparse: NUMBER), the number that it has");
    }
}
