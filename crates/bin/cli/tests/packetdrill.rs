//! `hitless packetdrill` as a person meets it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn hitless(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hitless")).arg("packetdrill").args(args).output().unwrap()
}

fn scripts() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../verify/drill/tests/scripts").display().to_string()
}

struct ScriptFolder(PathBuf);

impl ScriptFolder {
    fn new(name: &str, scripts: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("hitless-packetdrill-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        for (name, text) in scripts {
            std::fs::write(path.join(name), text).unwrap();
        }
        Self(path)
    }

    fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for ScriptFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const OPENED: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n";

#[test]
fn all_scripts_of_a_folder_are_run_on_our_tcp() {
    let output = hitless(&[&scripts(), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["scripts"].as_array().unwrap();
    assert!(rows.len() >= 8);
    assert_eq!(report["passed"].as_u64(), Some(rows.len() as u64), "{report:#}");
    assert_eq!((&rows[0]["against"], &rows[0]["result"]), (&Value::from("machine"), &Value::from("passed")));
    assert_eq!((&rows[0]["line"], &rows[0]["why"]), (&Value::Null, &Value::Null));
}

#[test]
fn one_row_says_what_failed_and_one_what_was_not_understood() {
    let failing = format!("{OPENED}+.1 < S 0:0(0) win 100 <mss 1000>\n+0 > S. 0:0(0) ack 2 <...>\n");
    let unknown = format!("{OPENED}+0 epoll_create(1) = 4\n");
    let folder = ScriptFolder::new("rows", &[("a.pkt", &failing), ("b.pkt", &unknown), ("c.txt", "no script")]);
    let output = hitless(&[&folder.path(), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["scripts"].as_array().unwrap();
    let results: Vec<&str> = rows.iter().map(|row| row["result"].as_str().unwrap()).collect();
    assert_eq!(results, ["failed", "not-applicable"]);
    assert_eq!((rows[0]["line"].as_u64(), rows[1]["line"].as_u64()), (Some(5), Some(4)));
    assert!(rows[0]["why"].as_str().unwrap().contains("acknowledgement"), "{report:#}");
    assert!(rows[1]["why"].as_str().unwrap().contains("epoll_create"), "{report:#}");
    let counts = ["passed", "failed", "not_applicable"].map(|name| report[name].as_u64().unwrap());
    assert_eq!(counts, [0, 1, 1]);
}

#[test]
fn what_is_not_understood_alone_is_no_failure() {
    let folder = ScriptFolder::new("unknown", &[("a.pkt", "\u{0}\u{1}"), ("b.pkt", "")]);
    let output = hitless(&[&folder.path()]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("0 passed, 0 failed, 2 not applicable\n"), "{text}");
}

#[test]
fn wrong_input_is_answered_with_one_line() {
    let folder = ScriptFolder::new("empty", &[]);
    let empty = folder.path();
    for (args, said) in [
        (vec!["no-such-file.pkt"], "no-such-file.pkt"),
        (vec![empty.as_str()], "no .pkt file"),
        (vec![], "SCRIPT"),
        (vec!["--random", "3"], "--against both"),
        (vec!["--random", "0", "--against", "both"], "--random"),
        (vec!["--random", "3", "--against", "both", "--out", "no-such-folder"], "no-such-folder"),
        (vec!["x.pkt", "--profile", "windows"], "linux-4.4, linux-5.4 or linux"),
        (vec!["x.pkt", "--against", "moon"], "machine"),
        (vec!["x.pkt", "--seed", "3"], "--random"),
    ] {
        let output = hitless(&args);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(said), "{args:?}: {error}");
        assert_eq!(error.trim_end().lines().count(), 1, "{args:?}: {error}");
        assert!(output.stdout.is_empty());
    }
}

/// The kernel of this host, without root: a script that needs no times, or a row that says why it cannot be asked.
#[test]
fn the_kernel_is_asked_in_a_network_of_its_own() {
    if !testkit::rootless_namespaces() {
        return;
    }
    let script = format!("{OPENED}+0 close(3) = 0\n");
    let folder = ScriptFolder::new("kernel", &[("a.pkt", &script)]);
    let output = hitless(&[&folder.path(), "--against", "both", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["scripts"].as_array().unwrap();
    let results: Vec<(&str, &str)> =
        rows.iter().map(|row| (row["against"].as_str().unwrap(), row["result"].as_str().unwrap())).collect();
    assert_eq!(results, [("kernel", "passed"), ("machine", "passed")], "{report:#}");
}
