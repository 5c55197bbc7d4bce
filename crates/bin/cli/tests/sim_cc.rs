//! Congestion controls side by side, as a person compares them.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use serde_json::Value;

fn hitless(args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hitless")).args(["sim", "cc"]).args(args.split_whitespace()).output().unwrap()
}

fn stdout(args: &str) -> String {
    let output = hitless(args);
    assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn rows(args: &str) -> Vec<Value> {
    serde_json::from_str(&stdout(&format!("{args} --json"))).unwrap()
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_row_has_all_that_scripts_rely_on() {
    let rows = rows("--traffic incast --cc hpcc,dcqcn");
    assert_eq!(rows.iter().map(|row| row["cc"].as_str().unwrap()).collect::<Vec<_>>(), ["hpcc", "dcqcn"]);
    for row in &rows {
        let expected = "cc traffic recovery pfc loss protect flows complete slowdown fct_us goodput_gbps fairness queue_bytes \
                        rtt_us pauses paused_seconds dropped retransmitted timeouts";
        assert_eq!(keys(row), expected.split_whitespace().collect());
        for times in ["slowdown", "fct_us"] {
            assert_eq!(keys(&row[times]), BTreeSet::from(["mean", "p50", "p95", "p99", "max"]));
            assert!(row[times]["mean"].is_number() && row[times]["max"].is_number() && row[times]["p99"].is_null());
        }
        for lengths in ["queue_bytes", "rtt_us"] {
            assert_eq!(keys(&row[lengths]), BTreeSet::from(["p50", "p95", "p99", "max"]));
            assert!(row[lengths].as_object().unwrap().values().all(Value::is_number), "{row}");
        }
        assert_eq!(
            (&row["traffic"], &row["recovery"], &row["protect"]),
            (&"incast".into(), &"go-back-n".into(), &"none".into())
        );
        assert_eq!(
            (&row["pfc"], &row["loss"], &row["flows"], &row["complete"]),
            (&true.into(), &0.0.into(), &16.into(), &16.into())
        );
        assert!(row["pauses"].is_number() && row["paused_seconds"].is_number() && row["fairness"].is_number(), "{row}");
    }
}

#[test]
fn what_does_not_apply_is_null() {
    let rows = rows("--cc dctcp --pfc off --recovery irn --loss 1e-3 --protect nonblocking");
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert!(row["pauses"].is_null() && row["paused_seconds"].is_null(), "{row}");
    assert_eq!((&row["loss"], &row["protect"], &row["recovery"]), (&1e-3.into(), &"nonblocking".into(), &"irn".into()));
}

#[test]
fn the_table_has_a_line_for_each_controller() {
    let text = stdout("--cc hpcc,swift");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    for name in ["hpcc ", "swift "] {
        assert_eq!(text.lines().filter(|line| line.starts_with(name)).count(), 1, "{text}");
    }
    assert_eq!(text, stdout("--cc hpcc,swift --jobs 1"), "the same for any number of jobs");
}

#[test]
fn the_scenario_of_a_point_is_a_file_that_runs() {
    let text = stdout("--cc dcqcn --plus-window --loss 1e-3 --protect ordered --scenario");
    assert!(text.contains("plus_window = true") && text.contains("protect = \"ordered\""), "{text}");
    let path = std::env::temp_dir().join(format!("hitless-sim-cc-{}.toml", std::process::id()));
    std::fs::write(&path, &text).unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_hitless")).args(["sim", "run", "--json"]).arg(&path).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let points: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(points[0]["traffic"][0]["complete"], 16);
}

#[test]
fn mistakes_are_answered_with_what_is_expected() {
    for (args, expected) in [
        ("--cc hpc", "did you mean 'hpcc'?"),
        ("--cc hpcc,dcqnc", "did you mean 'dcqcn'?"),
        ("--cc reno", "expected one of none, fixed, hpcc, dcqcn, timely, dctcp, swift"),
        ("--traffic incats", "did you mean 'incast'?"),
        ("--recovery ir", "did you mean 'irn'?"),
        ("--recovery sack", "expected one of go-back-n, irn, melo"),
        ("--protect orderd", "--protect: 'orderd': did you mean 'ordered'?"),
        ("--pfc maybe", "on, off"),
        ("--loss 2", "--loss"),
    ] {
        let output = hitless(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args}: {said}");
        assert!(output.stdout.is_empty() && said.contains(expected) && said.lines().count() == 1, "{args}: {said}");
    }
}
