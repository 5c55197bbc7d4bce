//! `hitless radar acl`: rules and losses in, suspects out.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

const RULES: &str = "# what the switch was given
@10.9.0.0/16 10.2.0.0/16 0 : 65535 0 : 65535 0x06/0xFF deny
@10.0.0.0/8 10.2.0.0/16 0 : 65535 443 : 443 0x06/0xFF accept
";
const LOSS: &str =
    r#"{"kind": "loss", "src": "10.1.0.1", "dst": "10.2.0.1", "proto": 6, "src_port": 9, "dst_port": 443}"#;

fn acl(name: &str, rules: &str, losses: &str, more: &[&str]) -> Output {
    let folder = std::env::temp_dir().join(format!("hitless-acl-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let [list, lost] = [("rules.txt", rules), ("losses.json", losses)].map(|(file, text)| {
        let path = folder.join(file);
        fs::write(&path, text).unwrap();
        path
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
    let output = command.args(["radar", "acl"]).args([&list, &lost]).args(more).output().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    output
}

#[test]
fn a_collectors_losses_name_the_rules_that_may_be_corrupted() {
    let output = acl("suspects", RULES, LOSS, &["--json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let suspects: Vec<u64> =
        answer["candidates"].as_array().unwrap().iter().map(|rule| rule["number"].as_u64().unwrap()).collect();
    assert_eq!((suspects, &answer["flows"]), (vec![1, 2], &Value::from(1)));
}

#[test]
fn what_is_no_rule_is_named_with_its_line() {
    let output = acl("wrong", "@10.9.0.0/16 everywhere", LOSS, &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("rules.txt: line 1: \"everywhere\" where an address"), "{said}");
}
