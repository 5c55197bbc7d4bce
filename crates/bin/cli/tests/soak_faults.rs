//! The fault bench as a user runs it: bad days for half a minute, and nothing that is not accounted for.

use std::process::{Command, Output, Stdio};

use linux::net::Namespace;
use serde_json::Value;

fn soak(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
    command.arg("soak").args(args).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn bad_days_leave_nothing_unaccounted_for() {
    if testkit::permitted(Namespace::new()).is_none() {
        return;
    }
    let output = soak(&["--faults", "--for", "30s", "--seed", "1", "--json"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let found: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    let totals = &found["totals"];
    for count in ["unaccounted", "duplicated", "reordered", "corrupted"] {
        assert_eq!(totals[count], 0, "{count}: {out}");
    }
    assert_eq!(found["left_behind"], serde_json::json!([]), "{out}");
    let count = |name: &str| totals[name].as_u64().unwrap();
    let parts = ["delivered", "given_up", "refused", "dropped", "unaccounted"].map(count);
    assert_eq!(count("sent"), parts.iter().sum::<u64>(), "{out}");
    assert_eq!(problems(&found), [""; 0], "{out}");
    let faults = found["faults"].as_array().unwrap();
    assert!(faults.len() >= 4 && faults.iter().any(|fault| fault["keyed"] == true), "{out}");
    assert_eq!(found["seed"], 1);
}

/// Problems of a run. One is left out: what came back by itself and late may be a machine's that has no time for us. What does not
/// come back within half a minute is a problem on any machine.
fn problems(found: &Value) -> Vec<&str> {
    let all = found["problems"].as_array().unwrap().iter().map(|problem| problem.as_str().unwrap());
    all.filter(|problem| !problem.contains(" only after ")).collect()
}

/// Whoever watches for each of these kinds (datagrams that a rule by name drops, stamped frames at a third host, what a host holds
/// after another, datagrams without a daemon) sees nothing.
#[test]
fn witnesses_of_names_namespaces_bridges_and_keepers_see_nothing_wrong() {
    if testkit::permitted(Namespace::new()).is_none() {
        return;
    }
    let mut kinds = vec!["renamed", "bridge", "keeper-killed", "namespace-reused"];
    match testkit::missing("nft") {
        Some(reason) => testkit::skip_part(reason),
        None => kinds.push("firewall"),
    }
    // The number of faults that fit into a time depends on the machine.
    for seconds in [24, 60, 180] {
        let output =
            soak(&["--faults", "--for", &format!("{seconds}s"), "--seed", "1", "--kinds", &kinds.join(","), "--json"]);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        let found: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
        assert_eq!(problems(&found), [""; 0], "{out}");
        assert_eq!(found["left_behind"], serde_json::json!([]), "{out}");
        let faults = found["faults"].as_array().unwrap();
        kinds.retain(|kind| !faults.iter().any(|fault| fault["kind"] == *kind));
        if kinds.is_empty() {
            return;
        }
    }
    panic!("{kinds:?} never came");
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line() {
    for (args, expected) in [
        (&["--faults", "--loss", "1e-3"][..], "'--faults' cannot be used with '--loss <LOSS>'"),
        (&["--faults", "--mode", "auto"], "'--faults' cannot be used with '--mode <MODE>'"),
        (&["--kinds", "kill"], "--faults"),
        (&["--lasting", "1s"], "--faults"),
        (&["--faults", "--kinds", "kill,earthquake"], "--kinds \"earthquake\": expected one or more of kill, stop"),
        (&["--faults", "--for", "1s"], ": expected 5s to 1000h"),
        (&["--faults", "--lasting", "1h"], "expected 10ms to 10m"),
        (&["--faults", "--lasting", "60s", "--for", "20s"], "--lasting 60s: --for must be 138s or more"),
        (&["--faults", "--backend", "pigeon"], "--backend pigeon"),
    ] {
        let output = soak(args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.lines().count() == 1 && said.contains(expected), "{args:?}: {said}");
    }
}
