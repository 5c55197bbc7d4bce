use super::*;

const FILE: &str = r#"
    id = "x.y"
    title = "It"
    paper = "Fig. 1"
    claim = "It works."
    runner = "computed"
    [[point]]
    id = "a"
    paper = 0.92
    band = [0.90, 0.94]
"#;

fn judge(measured: MeasuredValue) -> PointResult {
    let claim = Claim::parse("x", FILE).unwrap();
    PointResult::judge(&claim, &claim.point[0], Some(&measured))
}

#[test]
fn the_band_decides() {
    assert_eq!(judge(MeasuredValue::exact(0.91, 3)).verdict, Verdict::Match);
    assert_eq!(judge(MeasuredValue::exact(0.95, 3)).verdict, Verdict::Differs);
    assert_eq!(judge(MeasuredValue::exact(0.95, 3)).id, "x.y.a");
}

#[test]
fn a_count_matches_unless_it_excludes_the_band() {
    let counted = |interval| judge(MeasuredValue::counted(0.0, 3, interval)).verdict;
    assert_eq!(counted((0.0, 0.91)), Verdict::Match);
    assert_eq!(counted((0.0, 0.5)), Verdict::Differs);
}

#[test]
fn mistakes_in_a_file_are_errors_that_name_them() {
    for (from, to, expected) in [
        ("band", "bandd", "bandd"),
        ("[0.90, 0.94]", "[0.94, 0.90]", "0.94 to 0.9"),
        ("runner = \"computed\"", "", "runner"),
        ("id = \"a\"", "id = \"a\"\nconstraint = 0.5", "constraint is a key of runner Fleet"),
        ("id = \"a\"", "id = \"a\"\nkind = \"guess\"", "guess"),
        ("[[point]]", "scenario = \"s.toml\"\n[[point]]", "scenario is a key of runner Network"),
    ] {
        let error = Claim::parse("fig1.toml", &FILE.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains("fig1.toml") && error.contains(expected), "{from}: {error}");
    }
}

#[test]
fn a_claim_that_excludes_the_paper_is_refused_and_a_model_check_is_not() {
    let excluding = FILE.replace("0.92", "0.99");
    let error = Claim::parse("x", &excluding).unwrap_err().to_string();
    assert!(error.contains("a: band 0.9 to 0.94 excludes the paper's 0.99"), "{error}");
    let checked = Claim::parse("x", &excluding.replace("id = \"a\"", "id = \"a\"\nkind = \"model-check\"")).unwrap();
    assert_eq!(checked.point[0].kind, PointKind::ModelCheck);
}

#[test]
fn numbers_are_short() {
    assert_eq!([0.0, 0.92, 1.0, 1e-10, 24_400.0].map(number), ["0", "0.92", "1", "1.00e-10", "24400"]);
}
