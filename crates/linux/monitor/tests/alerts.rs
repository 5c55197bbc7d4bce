//! The alert rules fire on what they should and on nothing else, and each says what to do.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

fn project() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", ".."].iter().collect()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(project().join(path)).unwrap()
}

/// Debian has it in the package `prometheus`.
fn promtool(arguments: &[&str]) -> Option<(bool, String)> {
    if !testkit::installed("promtool") {
        return None;
    }
    let ran =
        Command::new("promtool").args(arguments).current_dir(project().join("contrib/prometheus")).output().unwrap();
    let said = [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    Some((ran.status.success(), said))
}

/// Rests of the lines that begin with a word, however far they are indented.
fn all_after(text: &str, word: &str) -> Vec<String> {
    let after =
        |line: &str| line.trim_start().trim_start_matches("- ").strip_prefix(word).map(str::trim).map(str::to_owned);
    text.lines().filter_map(after).collect()
}

#[test]
fn promtool_understands_the_rules() {
    let Some((fine, said)) = promtool(&["check", "rules", "hitless.rules.yml"]) else { return };
    assert!(fine, "{said}");
}

/// Among them a monitor that dies: its series end, so rules on their increase stay silent.
#[test]
fn every_rule_fires_on_what_it_should_and_on_nothing_else() {
    let Some((fine, said)) = promtool(&["test", "rules", "hitless.rules.test.yml"]) else { return };
    assert!(fine, "{said}");
}

/// A reason that no link counts would make a rule that never fires.
#[test]
fn every_reason_that_a_rule_names_is_counted() {
    let rules = read("contrib/prometheus/hitless.rules.yml");
    let named = rules.split("reason=~\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    for reason in named.split('|') {
        assert!(link::metrics::REASONS.contains(&reason), "{reason}");
    }
}

#[test]
fn every_rule_is_tested_both_ways() {
    let alerts: BTreeSet<String> =
        all_after(&read("contrib/prometheus/hitless.rules.yml"), "alert:").into_iter().collect();
    let tests = read("contrib/prometheus/hitless.rules.test.yml");
    let tested: BTreeSet<String> = all_after(&tests, "alertname:").into_iter().collect();
    assert_eq!(alerts, tested);
    for alert in alerts {
        let cases: Vec<&str> =
            tests.split("- eval_time:").filter(|case| case.contains(&format!("alertname: {alert}\n"))).collect();
        assert!(cases.iter().any(|case| case.contains("exp_alerts")), "{alert} is never shown to fire");
        // Either at another time, or of another series that is there as well.
        let is_silent = cases.iter().any(|case| !case.contains("exp_alerts"));
        assert!(is_silent || tests.contains("instance=\"fine\""), "{alert} is never shown to be silent");
    }
}

#[test]
fn every_alert_has_an_entry_in_the_runbook_and_every_entry_an_alert() {
    let rules = read("contrib/prometheus/hitless.rules.yml");
    let alerts = all_after(&rules, "alert:");
    let entries = all_after(&read("docs/runbook.md"), "## ");
    assert_eq!(alerts, entries, "in the same order");
    let links: Vec<String> =
        alerts.iter().map(|alert| format!("\"docs/runbook.md#{}\"", alert.to_lowercase())).collect();
    assert_eq!(all_after(&rules, "runbook:"), links);
}
