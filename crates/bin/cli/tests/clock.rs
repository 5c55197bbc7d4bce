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

#[test]
fn a_simulation_of_the_testbed_has_the_values_of_the_thesis_and_the_same_bytes_each_time() {
    let folder = PlanFolder::new("simulate");
    let log = folder.path("log.csv");
    let found = json(&["simulate", "--testbed", "--for", "500ms", "--fail", "root@200ms", "--csv", &log]);
    let ns = |key: &str| found[key].as_f64().unwrap();
    // The error of nodes until their first message under the new plan differs from the normal one under it.
    assert!((42.0..44.5).contains(&ns("eps_normal_max_ns")), "{found}");
    assert!(
        (96.0..110.0).contains(&ns("eps_root_max_ns")) && (360.0..370.0).contains(&ns("root_recovery_us")),
        "{found}"
    );
    let counts = ["nodes", "elections", "second_roots", "evicted", "wrong"].map(|key| found[key].as_u64().unwrap());
    assert_eq!(counts, [828, 1, 0, 0, 0], "{found}");
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.starts_with("time_us,node,event,eps_ns,error_ns\n") && text.contains(",elected,"), "{}", &text[..200]);
    let again = json(&["simulate", "--testbed", "--for", "500ms", "--fail", "root@200ms", "--csv", &log]);
    let without_time = |mut found: Value| {
        found.as_object_mut().unwrap().remove("wall_seconds");
        found.to_string()
    };
    assert_eq!(without_time(found), without_time(again));
    assert_eq!(text, fs::read_to_string(&log).unwrap());
    // Told node by node, top-down.
    let told = json(&["simulate", "--testbed", "--for", "500ms", "--fail", "root@200ms", "--rollout", "50ms"]);
    assert_eq!((&told["wrong"], &told["second_roots"], &told["turns"]), (&0.into(), &0.into(), &827.into()), "{told}");
}

#[test]
fn a_bound_that_did_not_hold_is_never_silent() {
    let drift = |ppm: &str| {
        let broken = format!("broken:core0@{ppm}");
        let args = ["simulate", "--fat-tree", "4", "--domains", "none", "--for", "20ms", "--json", "--drift", &broken];
        let output = run(&args);
        assert!(output.status.success());
        (serde_json::from_slice::<Value>(&output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (found, said) = drift("100");
    assert_eq!((&found["bound_held"], &found["wrong"], &found["wrong_nodes"]), (&true.into(), &0.into(), &0.into()));
    assert!(!said.contains("warning"), "{said}");
    let (found, said) = drift("1000");
    assert_eq!((&found["bound_held"], &found["elections"]), (&false.into(), &1.into()), "{found}");
    let (wrong, nodes) = (found["wrong"].as_u64().unwrap(), found["wrong_nodes"].as_u64().unwrap());
    assert!(wrong > 0 && nodes > 1, "{found}");
    let expected = format!(
        "warning: ε did not hold: {nodes} clocks differed from their root's by more than it, at {wrong} instants"
    );
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn a_plan_and_its_check_say_that_a_host_of_one_link_is_not_covered() {
    let folder = PlanFolder::new("covers-all");
    let topology = folder.path("fabric.toml");
    for (hosts, covers) in [("single", false), ("none", true)] {
        let plan = json(&["plan", "--fat-tree", "4", "--hosts", hosts, "--write-topology", &topology]);
        assert_eq!((&plan["complete"], &plan["covers_all"]), (&true.into(), &covers.into()), "{hosts}: {plan}");
        assert_eq!(plan["uncovered"].as_array().unwrap().is_empty(), covers);
        let path = folder.file("plan.json", &plan.to_string());
        let check = ["check", &path, "--topology", &topology];
        let checked = json(&check);
        assert_eq!((&checked["holds"], &checked["covers_all"]), (&true.into(), &covers.into()), "{hosts}");
        let text = String::from_utf8(run(&check).stdout).unwrap();
        assert_eq!(text.contains("except by 16 nodes"), !covers, "{text}");
        let false_claim =
            plan.to_string().replace(&format!("\"covers_all\":{covers}"), &format!("\"covers_all\":{}", !covers));
        let path = folder.file("false.json", &false_claim);
        let output = run(&["check", &path, "--topology", &topology]);
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8(output.stdout).unwrap().starts_with("covers_all: the plan is said to"));
    }
}

#[test]
fn every_wave_and_waves_in_closed_form_give_the_same() {
    let run = |more: &[&str]| {
        json(&[&["simulate", "--fat-tree", "8", "--for", "20ms", "--fail", "node:core3@5ms"], more].concat())
    };
    let (short, full) = (run(&[]), run(&["--full"]));
    assert!(short["events"].as_u64() < full["events"].as_u64());
    for key in ["affected", "turns", "wrong", "waves"] {
        assert_eq!(short[key], full[key], "{key}");
    }
    // Single waves are rounded to picoseconds.
    for key in ["eps_normal_max_ns", "eps_failure_max_ns", "recovery_us_max", "impacted_ms"] {
        let [short, full] = [&short, &full].map(|found| found[key].as_f64().unwrap());
        assert!((short - full).abs() < 0.02, "{key}: {short} and {full}");
    }
}

#[test]
fn a_simulation_that_cannot_be_is_refused_in_one_line() {
    let folder = PlanFolder::new("simulate-bad");
    let simulate = |more: &[&str], expected: &str| {
        refused(&[&["simulate", "--fat-tree", "4", "--for", "10ms"], more].concat(), expected);
    };
    simulate(&["--fail", "link:a--b@1ms"], "--fail link:a--b@1ms: no link \"a--b\": expected A--B");
    simulate(&["--fail", "node:x@1ms"], "--fail node:x@1ms: no node \"x\" in this fabric");
    simulate(&["--fail", "domain:x@1ms"], "--fail domain:x@1ms: no domain \"x\"");
    simulate(&["--fail", "node:core0@soon"], "--fail node:core0@soon: expected a time with its unit");
    simulate(&["--fail", "root"], "--fail root: no time: expected WHAT@TIME");
    simulate(&["--fail", "tree@1ms"], "--fail tree@1ms: expected WHAT@TIME, with WHAT one of");
    simulate(&["--fail", "root@10ms"], "the run ends at 10");
    simulate(&["--fail", "random:many"], "--fail random:many: expected random: and a number");
    simulate(&["--drift", "broken:x@900"], "no node \"x\" in this fabric");
    simulate(&["--drift", "broken:x"], "expected const, walk, ramp, adversary or broken:NODE@PPM");
    simulate(&["--loss", "2"], "expected a probability");
    simulate(&["--scheme", "ntp"], "expected one of sundial, ptp");
    refused(&["simulate", "--fat-tree", "4", "--for", "0s"], "--for 0s: expected more than that");
    let broken = folder.file("broken.json", "{\n\"root\": 7\n}");
    refused(&["simulate", "--plan", &broken, "--for", "1ms"], "broken.json:2: expected a plan");
    let foreign =
        r#"{"root":"a","backup_root":"b","plan":[{"node":"a","depth":0},{"node":"b","parent":"x","depth":1}]}"#;
    let foreign = folder.file("foreign.json", foreign);
    refused(&["simulate", "--plan", &foreign, "--for", "1ms"], "the parent 'x', which the plan does not have");
    let nowhere = folder.path("none/log.csv");
    let output = run(&["simulate", "--fat-tree", "4", "--for", "1ms", "--csv", &nowhere]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && error.contains("none/log.csv: "), "{error}");
}

#[test]
fn a_simulation_that_is_interrupted_prints_what_it_knows() {
    let mut run = Command::new(env!("CARGO_BIN_EXE_hitless"));
    run.args(["clock", "simulate", "--testbed", "--for", "1h", "--full", "--json"]);
    let child = run.stdout(std::process::Stdio::piped()).spawn().unwrap();
    // It listens to Ctrl-C from its first event on, which comes after its plan.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &found["interrupted"], &found["wrong"]), (Some(130), &true.into(), &0.into()));
}

#[test]
fn plans_that_are_no_trees_are_refused_by_whoever_acts_on_them_and_listed_by_check() {
    let folder = PlanFolder::new("twice");
    let topology = folder.path("fabric.toml");
    let plan = json(&["plan", "--fat-tree", "4", "--write-topology", &topology]);
    let good = folder.file("good.json", &plan.to_string());
    // The root gets a second row, with a parent.
    let mut twice = plan.clone();
    let place = plan["plan"].as_array().unwrap().iter().position(|row| row["depth"] == 2).unwrap();
    twice["plan"][place]["node"] = plan["root"].clone();
    let bad = folder.file("twice.json", &serde_json::to_string_pretty(&twice).unwrap());
    for args in [
        &["diff", &bad, &good][..],
        &["diff", &good, &bad],
        &["simulate", "--plan", &bad, "--for", "1ms"],
        &["up", "--plan", &bad, "--node", "core1", "--link", "agg0.0=lo"],
        &["replan", &bad, "core1"],
    ] {
        refused(args, "'core0' is there twice");
        let output = run(args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.lines().count() == 1 && error.contains("twice.json:"), "{args:?}: {error}");
    }
    let listed = run(&["check", &bad, "--topology", &topology]);
    let lines = String::from_utf8_lossy(&listed.stdout);
    assert!(listed.status.code() == Some(1) && lines.contains("'core0' is there twice"), "{lines}");
    assert!(lines.contains("is missing"), "all that is wrong: {lines}");
}
