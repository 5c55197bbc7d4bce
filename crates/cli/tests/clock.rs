//! Plans for clocks as a person meets them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// A folder of its own for each test, gone when it ends.
struct PlanFolder(PathBuf);

impl PlanFolder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hitless-clock-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }
}

impl Drop for PlanFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hitless")).arg("clock").args(args).output().unwrap()
}

fn json(args: &[&str]) -> Value {
    let output = run(&[args, &["--json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(args: &[&str], expected: &str) {
    let output = run(args);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
    assert!(error.contains(expected), "{args:?}: {error}");
}

#[test]
fn a_plan_is_made_checked_broken_and_changed() {
    let folder = PlanFolder::new("plan");
    let topology = folder.path("fabric.toml");
    let plan = json(&["plan", "--fat-tree", "4", "--write-topology", &topology]);
    assert_eq!((&plan["root"], &plan["complete"], &plan["nodes"]), (&"core0".into(), &true.into(), &20.into()));
    assert_eq!(
        (&plan["max_depth_backup"], &plan["eps_root_ns"], &plan["domains"]),
        (&10.into(), &123.into(), &4.into())
    );
    let rows = plan["plan"].as_array().unwrap();
    assert!(rows.iter().any(|row| *row == serde_json::json!({ "node": "core0", "depth": 0 })), "{rows:?}");
    let file = folder.file("plan.json", &plan.to_string());
    assert!(run(&["check", &file, "--topology", &topology]).status.success());

    let mut broken = plan.clone();
    let place = rows.iter().position(|row| row["depth"] == 3).unwrap();
    broken["plan"][place]["backup"] = broken["plan"][place]["parent"].clone();
    let broken = folder.file("broken.json", &broken.to_string());
    let output = run(&["check", &broken, "--topology", &topology]);
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{lines}");
    assert!(lines.contains("property 2: ") && lines.contains("failure node:") && lines.contains("epoch: "), "{lines}");

    let failed = folder.file("failed", "core0\n");
    let after = json(&["plan", "--topology", &topology, "--without", &failed]);
    assert_ne!((&after["root"], &after["epoch"]), (&plan["root"], &plan["epoch"]));
    let after = folder.file("after.json", &after.to_string());
    let change = json(&["diff", &file, &after]);
    assert!(change["steps"].as_array().unwrap().iter().any(|step| step["kind"] == "root"), "{change}");
    assert_eq!(json(&["diff", &file, &file])["steps"], serde_json::json!([]));
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let folder = PlanFolder::new("bad");
    let ring = folder.file("ring.csv", "lower,upper\na,b\nb,c\nc,d\nd,a\n");
    refused(&["plan", "--topology", &ring, "--root", "x"], "--root: no node is called 'x'");
    refused(
        &["plan", "--topology", &ring, "--root", "a", "--backup-root", "c"],
        "backup root 'c' is no child of the root",
    );
    let all = folder.file("all.csv", "domain,member\nd,a\nd,b\nd,d\n");
    refused(&["plan", "--topology", &ring, "--domains", &all, "--root", "a"], "all its children share a domain");
    let unknown = folder.file("unknown.csv", "domain,member\nd,x\n");
    refused(&["plan", "--topology", &ring, "--domains", &unknown], "unknown.csv:2: domain 'd': no node is called 'x'");
    let gone = folder.file("gone", "a\n");
    refused(&["plan", "--topology", &ring, "--without", &gone, "--root", "a"], "unreachable");
    refused(&["plan", "--topology", &ring, "--hosts", "dual"], "--hosts");
    refused(&["plan", "--fat-tree", "5"], "expected an even number");
    let no_plan = folder.file("no.json", "{\n}");
    refused(&["check", &no_plan, "--topology", &ring], "no.json:2: expected a plan");
    let plan = json(&["plan", "--topology", &ring]);
    let plan = folder.file("plan.json", &plan.to_string());
    refused(&["check", &plan, "--fat-tree", "4"], "another one?");
}

#[test]
fn what_corrupts_is_avoided_and_a_node_is_explained() {
    let folder = PlanFolder::new("avoid");
    let ring = folder.file("ring.csv", "lower,upper\na,b\nb,c\nc,d\nd,a\na,c\n");
    let bad = folder.file("bad.csv", "link,loss,state\na--c,1e-3,corrupting\n");
    let plan = json(&["plan", "--topology", &ring, "--root", "a", "--avoid", &bad]);
    let uses = |row: &Value, key: &str| row["node"] == "c" && row[key] == "a" || row["node"] == "a" && row[key] == "c";
    assert!(plan["plan"].as_array().unwrap().iter().all(|row| !uses(row, "parent") && !uses(row, "backup")), "{plan}");
    let output = run(&["plan", "--topology", &ring, "--root", "a", "--explain", "c"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("c listens to") && text.contains("it turns to"), "{text}");
}
