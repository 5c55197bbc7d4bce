//! `sim check` as a user meets it: one small case, live and simulated.

use std::process::Command;

use linux::net::Namespace;
use serde_json::Value;

fn check(args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
    let out = command.args(["sim", "check", "--json"]).args(args).output().unwrap();
    let [said, complained] = [out.stdout, out.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (out.status.code(), said, complained)
}

#[test]
fn a_case_has_three_points_and_verdicts_do_not_fail_the_command() {
    let Some(_) = testkit::permitted(Namespace::new()) else { return };
    let case = ["--rate", "100M", "--congestion", "reno", "--losses", "1e-2", "--round-trips", "1ms"];
    let brief = ["--seconds", "0.5", "--requests", "50", "--rounds", "1"];
    let (code, said, complained) = check(&[&case[..], &brief].concat());
    assert_eq!(code, Some(0), "{complained}");
    let answer: Value = serde_json::from_str(&said).unwrap();
    let points = answer["points"].as_array().unwrap();
    let measures: Vec<&str> = points.iter().map(|point| point["measure"].as_str().unwrap()).collect();
    assert_eq!(measures, ["throughput", "p50", "p99"]);
    for point in points {
        assert_eq!((point["cc"].as_str(), point["loss"].as_f64()), (Some("reno"), Some(0.01)), "{point}");
        assert_eq!(point["rtt_us"].as_f64(), Some(1_000.0), "{point}");
        let [simulated, live, ratio] = ["simulated", "live", "ratio"].map(|key| point[key].as_f64().unwrap());
        assert!(simulated > 0.0 && live > 0.0 && (ratio - simulated / live).abs() < 1e-9, "{point}");
        let close = (0.8..=1.25).contains(&ratio);
        assert_eq!(point["verdict"], if close { "match" } else { "differs" }, "{point}");
        assert_eq!(point["why"].as_str().unwrap().is_empty(), close, "{point}");
    }
    assert!(answer["median_error"].as_f64().unwrap() >= 0.0);
}

#[test]
fn an_unknown_congestion_control_is_refused_before_anything_runs() {
    let (code, _, complained) = check(&["--congestion", "vegas"]);
    assert_eq!(code, Some(2));
    assert!(complained.contains("cubic") && complained.contains("bbr"), "{complained}");
}
