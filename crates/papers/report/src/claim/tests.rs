use super::*;

const FILE: &str = r#"
    id = "x.y"
    title = "It"
    paper = "Fig. 1"
    claim = "It works."
    runner = "computed"
    kind = "claim"
    [[point]]
    id = "a"
    paper = 0.92
    band = [0.90, 0.94]
"#;

fn judge(measured: &MeasuredValue) -> PointResult {
    let claim = Claim::parse("x", FILE).unwrap();
    PointResult::judge(&claim, &claim.point[0], Some(measured))
}

fn error(text: &str) -> String {
    Claim::parse("fig1.toml", text).unwrap_err().to_string()
}

/// The file with another point `a`.
fn with_point(keys: &str) -> String {
    FILE.replace("paper = 0.92\n    band = [0.90, 0.94]", keys)
}

#[test]
fn the_band_decides() {
    assert_eq!(judge(&MeasuredValue::exact(0.91, 3)).verdict, Verdict::Match);
    assert_eq!(judge(&MeasuredValue::exact(0.95, 3)).verdict, Verdict::Differs);
    assert_eq!(judge(&MeasuredValue::exact(f64::NAN, 3)).verdict, Verdict::Differs);
    assert_eq!(judge(&MeasuredValue::exact(0.95, 3)).id, "x.y.a");
}

#[test]
fn an_interval_matches_within_the_band_and_differs_outside_and_is_too_few_in_between() {
    let counted = |value, interval| judge(&MeasuredValue::counted(value, 3, interval)).verdict;
    assert_eq!(counted(0.92, (0.91, 0.94)), Verdict::Match);
    assert_eq!(counted(0.0, (0.0, 0.5)), Verdict::Differs);
    assert_eq!(counted(0.97, (0.95, 0.99)), Verdict::Differs);
    assert_eq!(counted(0.0, (0.0, 0.91)), Verdict::TooFew);
    assert_eq!(counted(0.92, (0.0, 1.0)), Verdict::TooFew);
    assert_eq!(counted(0.96, (0.93, 0.99)), Verdict::TooFew);
}

#[test]
fn what_was_not_measured_is_too_few() {
    let claim = Claim::parse("x", FILE).unwrap();
    let result = PointResult::judge(&claim, &claim.point[0], None);
    assert_eq!((result.verdict, result.ours), (Verdict::TooFew, None));
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
        let error = error(&FILE.replace(from, to));
        assert!(error.contains("fig1.toml") && error.contains(expected), "{from}: {error}");
    }
}

#[test]
fn a_point_without_a_kind_is_refused_with_its_line() {
    let none = error(&FILE.replace("kind = \"claim\"", ""));
    assert!(none.starts_with("fig1.toml:9: a: no kind: expected kind = \"claim\", \"arithmetic\","), "{none}");
    let own = FILE.replace("kind = \"claim\"", "").replace("id = \"a\"", "id = \"a\"\nkind = \"arithmetic\"");
    assert_eq!(Claim::parse("x", &own).unwrap().point[0].kind(), PointKind::Arithmetic);
}

#[test]
fn a_calibration_names_its_input_and_nothing_else_does() {
    let silent = error(&FILE.replace("id = \"a\"", "id = \"a\"\n    kind = \"calibrated\""));
    assert!(silent.starts_with("fig1.toml:10: a: calibrated: expected input ="), "{silent}");
    let named = FILE.replace("id = \"a\"", "id = \"a\"\n    kind = \"calibrated\"\n    input = \"a latency, to this\"");
    assert_eq!(Claim::parse("x", &named).unwrap().point[0].kind(), PointKind::Calibrated);
    let claim = error(&with_point("paper = 1.0\n    input = \"a latency\""));
    assert!(claim.contains("fig1.toml:11: a: input is a key of calibrated points"), "{claim}");
}

#[test]
fn a_band_that_excludes_the_paper_is_refused_whatever_the_kind() {
    for kind in ["claim", "arithmetic", "model-check"] {
        let error = error(&FILE.replace("0.92", "0.99").replace("\"claim\"", &format!("\"{kind}\"")));
        assert!(error.starts_with("fig1.toml:11: a: band 0.9 to 0.94 excludes the paper's 0.99: expected"), "{error}");
    }
    let words = FILE.replace("0.92", "\"0.99 by Theorem 4\"").replace("\"claim\"", "\"model-check\"");
    assert!(Claim::parse("x", &words).is_ok());
}

#[test]
fn what_is_not_in_the_paper_is_no_claim_of_it() {
    let told = FILE.replace("0.92", "\"not in the paper\"");
    assert!(error(&told).contains("fig1.toml:10: a: not in the paper, so not its claim"), "{}", error(&told));
    assert!(Claim::parse("x", &told.replace("\"claim\"", "\"model-check\"")).is_ok());
}

#[test]
fn the_band_of_a_claim_has_two_ends_unless_the_paper_leaves_one_open() {
    for (keys, expected) in [
        ("paper = 4.0\n    band = [2.0, inf]", "has no upper end: expected one, or says = \"at least\""),
        ("paper = 4.0\n    band = [-inf, 5.0]", "has no lower end: expected one, or says = \"at most\""),
        ("paper = \"few\"\n    band = [0, 5]", "has no lower end"),
        ("paper = 4.0\n    says = \"at most\"\n    band = [4.0, inf]", "has no upper end"),
        ("paper = 4.0\n    says = \"at least\"\n    band = [3.0, inf]", "says names 4, the band ends at 3: expected 4"),
        ("paper = 4.0\n    says = \"roughly\"", "roughly"),
        ("paper = 4.0\n    says = \"at least\"", "says without a band"),
    ] {
        let error = error(&with_point(keys));
        assert!(error.contains("fig1.toml") && error.contains(expected), "{keys}: {error}");
    }
    for keys in [
        "paper = 4.0\n    says = \"at least\"\n    band = [4.0, inf]",
        "paper = 4.0\n    says = \"at least\"\n    band = [3.0, inf]\n    wide = \"two digits\"",
        "paper = 0.3\n    says = \"at most\"\n    band = [0, 0.3]",
        "paper = \"few\"\n    says = \"at most\"\n    band = [0, 5]",
        "paper = \"none\"\n    band = [0, 0]",
    ] {
        assert!(Claim::parse("x", &with_point(keys)).is_ok(), "{keys}");
    }
}

#[test]
fn the_band_of_a_claim_is_half_to_twice_the_paper_unless_it_says_why() {
    for (keys, expected) in [
        ("paper = 4.0\n    band = [1.9, 8.0]", "band 1.9 to 8 is wider than 2 to 8: expected half to twice"),
        ("paper = 4.0\n    band = [2.0, 8.1]", "wider than 2 to 8"),
        ("paper = -4.0\n    band = [-9.0, -2.0]", "wider than -8 to -2"),
        ("paper = 0\n    band = [0, 0.2]", "around zero: expected [0, 0]"),
        ("paper = \"2.11 to 3.11\"\n    band = [2.0, 4.0]", "expected range = [low, high]"),
        ("paper = \"2 to 3\"\n    range = [2, 3]\n    band = [2.5, 4]", "excludes the paper's 2 to 3"),
        ("paper = \"2 to 3\"\n    range = [2, 3]\n    band = [0.9, 4]", "wider than 1 to 6"),
    ] {
        let error = error(&with_point(keys));
        assert!(error.contains("fig1.toml:1") && error.contains(expected), "{keys}: {error}");
    }
    for keys in [
        "paper = 4.0\n    band = [2.0, 8.0]",
        "paper = 4.0\n    band = [1.0, 8.0]\n    wide = \"a figure with a logarithmic axis\"",
        "paper = -4.0\n    band = [-8.0, -2.0]",
        "paper = 0\n    band = [0, 0.2]\n    wide = \"the paper prints no digit behind the point\"",
        "paper = \"2 to 3\"\n    range = [2, 3]\n    band = [1, 6]",
    ] {
        assert!(Claim::parse("x", &with_point(keys)).is_ok(), "{keys}");
    }
}

#[test]
fn points_that_exclude_each_other_have_bands_that_do_not_overlap() {
    let other = |band: &str| {
        format!(
            "{FILE}    [[point]]\n    id = \"b\"\n    paper = \"not so\"\n    band = {band}\n    excludes = \"a\"\n"
        )
    };
    assert!(Claim::parse("x", &other("[0.94, 2.0]")).is_ok());
    let overlap = error(&other("[0.93, 2.0]"));
    assert!(overlap.starts_with("fig1.toml:16: b: band 0.93 to 2 overlaps that of a, 0.9 to 0.94"), "{overlap}");
    let unknown = error(&other("[0.94, 2.0]").replace("excludes = \"a\"", "excludes = \"c\""));
    assert!(unknown.contains("excludes c: expected the id of another point"), "{unknown}");
}

#[test]
fn a_point_as_json_has_its_kind_band_and_interval() {
    let json = |result: &PointResult| serde_json::to_value(result).unwrap();
    let exact = json(&judge(&MeasuredValue::exact(0.91, 3)));
    assert_eq!((&exact["kind"], &exact["verdict"]), (&"claim".into(), &"match".into()));
    assert_eq!((&exact["band"], &exact["interval"]), (&serde_json::json!([0.9, 0.94]), &serde_json::Value::Null));
    let counted = json(&judge(&MeasuredValue::counted(0.9, 3, (0.5, f64::INFINITY))));
    assert_eq!((&counted["interval"], &counted["verdict"]), (&serde_json::json!([0.5, null]), &"too few".into()));
    let open = with_point("paper = 4.0\n    says = \"at least\"\n    band = [4.0, inf]");
    let claim = Claim::parse("x", &open).unwrap();
    let open = json(&PointResult::judge(&claim, &claim.point[0], Some(&MeasuredValue::exact(5.0, 1))));
    assert_eq!((&open["band"], &open["verdict"]), (&serde_json::json!([4.0, null]), &"match".into()));
}

#[test]
fn numbers_are_short() {
    assert_eq!([0.0, 0.92, 1.0, 1e-10, 24_400.0].map(number), ["0", "0.92", "1", "1.00e-10", "24400"]);
}

#[test]
fn what_the_paper_does_not_print_is_no_claim_of_it() {
    for words in ["not stated", "in the figure only", "not measured", "not given by size", "not its form", "a figure"] {
        let told = FILE.replace("0.92", &format!("\"{words}\""));
        let expected =
            format!("fig1.toml:10: a: {words}, so not its claim: expected kind = \"model-check\" or \"noted\"");
        assert!(error(&told).starts_with(&expected), "{}", error(&told));
        assert!(Claim::parse("x", &told.replace("\"claim\"", "\"model-check\"")).is_ok());
    }
}

#[test]
fn a_claim_without_a_band_is_refused() {
    let shown = with_point("paper = 0.92");
    let expected = "fig1.toml:9: a: a claim without a band: expected band = [low, high], or kind = \"noted\"";
    assert_eq!(error(&shown), expected);
    assert!(Claim::parse("x", &shown.replace("\"claim\"", "\"noted\"")).is_ok());
}

#[test]
fn a_band_of_words_wider_than_a_factor_of_ten_is_refused() {
    for keys in [
        "paper = \"higher than with b\"\n    band = [1.1, 1000.0]",
        "paper = \"many\"\n    band = [10.0, 1e6]",
        "paper = \"below 200 KB\"\n    band = [1.0, 200.0]\n    wide = \"no printed number\"",
    ] {
        let error = error(&with_point(keys));
        assert!(error.starts_with("fig1.toml:11: a: band ") && error.contains("wider than a factor of 10"), "{error}");
    }
    for keys in [
        "paper = \"tens of ms\"\n    band = [10.0, 100.0]",
        "paper = \"many\"\n    says = \"at least\"\n    band = [10.0, 1e6]",
        "paper = \"below 200 KB\"\n    says = \"at most\"\n    band = [1.0, 200.0]",
    ] {
        assert!(Claim::parse("x", &with_point(keys)).is_ok(), "{keys}");
    }
}

#[test]
fn a_row_that_differs_without_a_reason_is_open() {
    let result = judge(&MeasuredValue::counted(0.97, 3, (0.95, 0.99)));
    assert_eq!(result.why, format!("95 %: 0.95 to 0.99; {SILENT}"));
    let counts = EvidenceCounts::of([&result, &judge(&MeasuredValue::exact(0.91, 3))]);
    assert_eq!((counts.differ, counts.open, counts.numbers), (1, 1, 1));
}

#[test]
fn an_order_statement_is_a_ratio_judged_against_one_with_its_interval() {
    let judge = |says: &str, ours: &MeasuredValue| {
        let claim =
            Claim::parse("x", &with_point(&format!("paper = \"{says} than b\"\n    says = \"{says}\""))).unwrap();
        PointResult::judge(&claim, &claim.point[0], Some(ours))
    };
    let counted = |value, interval| MeasuredValue::counted(value, 3, interval);
    assert_eq!(judge("higher", &counted(1.02, (1.01, 1.03))).verdict, Verdict::Match);
    assert_eq!(judge("higher", &counted(40.0, (30.0, f64::INFINITY))).verdict, Verdict::Match);
    assert_eq!(judge("higher", &counted(1.02, (0.99, 1.05))).verdict, Verdict::TooFew);
    assert_eq!(judge("higher", &counted(0.9, (0.8, 1.0))).verdict, Verdict::Differs);
    assert_eq!(judge("higher", &MeasuredValue::exact(1.0, 3)).verdict, Verdict::Differs);
    assert_eq!(judge("lower", &counted(0.05, (0.04, 0.06))).verdict, Verdict::Match);
    assert_eq!(judge("lower", &MeasuredValue::exact(1.1, 3)).verdict, Verdict::Differs);
    let result = judge("higher", &MeasuredValue::exact(2.0, 3));
    assert_eq!((result.form, result.band.map(|band| band.to_string())), (StatementForm::Order, Some("from 1".into())));
}

#[test]
fn an_order_statement_has_words_and_no_band() {
    for (keys, expected) in [
        ("paper = \"higher\"\n    says = \"higher\"\n    band = [1.1, 1000]", "band beside says: expected neither"),
        ("paper = 2.0\n    says = \"higher\"", "an order statement with a number: expected band = [low, high]"),
    ] {
        let error = error(&with_point(keys));
        assert!(error.starts_with("fig1.toml:1") && error.contains(expected), "{keys}: {error}");
    }
}

#[test]
fn a_noted_point_has_no_band() {
    let noted = FILE.replace("id = \"a\"", "id = \"a\"\n    kind = \"noted\"");
    assert!(error(&noted).contains("a: noted, so not judged: expected no band"), "{}", error(&noted));
    assert!(Claim::parse("x", &noted.replace("band = [0.90, 0.94]", "")).is_ok());
}

#[test]
fn a_kept_result_is_judged_again_only_by_what_can_raise_no_verdict() {
    let kept = judge(&MeasuredValue::counted(0.91, 3, (0.905, 0.915)));
    let under = |keys: &str| kept.under(&Claim::parse("x", &with_point(keys)).unwrap().point[0]);
    let verdict = |keys: &str| under(keys).map(|result| result.verdict);
    assert_eq!(verdict("paper = 0.92\n    band = [0.90, 0.94]"), Some(Verdict::Match));
    assert_eq!(verdict("paper = 0.92\n    band = [0.918, 0.94]"), Some(Verdict::Differs), "narrower");
    assert_eq!(verdict("paper = 0.92\n    kind = \"noted\""), Some(Verdict::Noted), "dropped");
    assert_eq!(verdict("paper = 0.92\n    band = [0.90, 0.95]"), None, "wider");
    assert_eq!(verdict("paper = 0.93\n    band = [0.90, 0.94]"), None, "another number");
}
