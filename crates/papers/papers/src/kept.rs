//! Reasons of the files held against kept results: what differs has one, and it quotes the numbers that rows have.

use report::claim::{Citation, Claim, ClaimError, ClaimPoint, Verdict, number};

use crate::{Claims, SavedResults};

impl Claims {
    /// Refuses a row of kept results that differs and has no `why` in its file, and a number that a file quotes from a row
    /// whose kept value is another one.
    pub fn check_reasons(&self, kept: &SavedResults) -> Result<(), ClaimError> {
        for (claim, point) in self.claims.iter().flat_map(|claim| claim.point.iter().map(move |point| (claim, point))) {
            is_given(claim, point, kept)?;
            point.citations().iter().try_for_each(|(key, cited)| is_true(claim, point, key, cited, kept))?;
        }
        Ok(())
    }
}

fn is_given(claim: &Claim, point: &ClaimPoint, kept: &SavedResults) -> Result<(), ClaimError> {
    let row = kept.row(&format!("{}.{}", claim.id, point.id));
    match row.filter(|row| row.verdict == Verdict::Differs && point.why.is_empty()) {
        Some(row) => {
            let ours = row.ours.map_or_else(|| "none".into(), number);
            let what = format_args!(
                "differs ({ours}) without a reason: expected why = \"a reason\" or \"Open: what was tried\""
            );
            Err(claim.error_at(point, "id", what))
        }
        None => Ok(()),
    }
}

/// A row of a claim that was not kept is not checked.
fn is_true(
    claim: &Claim,
    point: &ClaimPoint,
    key: &str,
    cited: &Citation,
    kept: &SavedResults,
) -> Result<(), ClaimError> {
    let own = format!("{}.{}", claim.id, cited.row);
    let Some(row) = kept.row(&own).or_else(|| kept.row(&cited.row)) else { return Ok(()) };
    if row.ours.is_some_and(|ours| cited.is_of(ours)) {
        return Ok(());
    }
    let ours = row.ours.map_or_else(|| "none".into(), number);
    let what =
        format_args!("(row {}: {}): expected {ours}, which the kept results have", cited.row, number(cited.value));
    Err(claim.error_at(point, key, what))
}

#[cfg(test)]
mod tests {
    use report::claim::{Band, PaperValue, PointKind, PointResult, StatementForm};

    use super::*;
    use crate::{SavedClaim, SavedRun};

    const FILE: &str = r#"
id = "x.y"
title = "It"
paper = "Fig. 1"
claim = "It works."
runner = "link"
kind = "claim"
[[point]]
id = "a"
paper = 1.0
band = [0.5, 2.0]
WHY
[[point]]
id = "slow"
paper = 1.0
band = [0.5, 2.0]
"#;

    /// `a` differs with 7, `slow` has 1.234.
    fn check(why: &str) -> Result<(), String> {
        let row = |id: &str, ours: f64, verdict: Verdict| PointResult {
            id: format!("x.y.{id}"),
            kind: PointKind::Claim,
            form: StatementForm::Number,
            paper: PaperValue::Number(1.0),
            ours: Some(ours),
            n: 1,
            interval: None,
            band: Some(Band { low: 0.5, high: 2.0 }),
            verdict,
            why: String::new(),
        };
        let run = SavedRun { paper: "melo".into(), scale: "full".into(), seed: 1, commit: "c".into() };
        let points = vec![row("a", 7.0, Verdict::Differs), row("slow", 1.234, Verdict::Match)];
        let mut kept = SavedResults::new(run);
        kept.claims.push(SavedClaim { id: "x.y".into(), seconds: 1.0, points, commit: None });
        let claim = Claim::parse("fig1.toml", &FILE.replace("WHY", why)).map_err(|error| error.to_string())?;
        let claims = Claims { paper: crate::textbook::PAPER, claims: vec![claim] };
        claims.check_reasons(&kept).map_err(|error| error.to_string())
    }

    #[test]
    fn a_kept_row_that_differs_without_why_is_refused() {
        let expected =
            "fig1.toml:9: a: differs (7) without a reason: expected why = \"a reason\" or \"Open: what was tried\"";
        assert_eq!(check(""), Err(expected.into()));
        assert_eq!(check("why = \"slower hosts (row slow: 1.23)\""), Ok(()));
    }

    #[test]
    fn a_number_that_its_row_does_not_have_is_refused() {
        let wrong = check("why = \"slower hosts (row slow: 1.24)\"");
        assert_eq!(wrong, Err("fig1.toml:12: a: (row slow: 1.24): expected 1.234, which the kept results have".into()));
        let in_note = check("note = \"twice (row slow: 9)\"\nwhy = \"slower hosts (row slow: 1.2)\"");
        assert_eq!(in_note, Err("fig1.toml:12: a: (row slow: 9): expected 1.234, which the kept results have".into()));
    }
}
