//! Licences, sources and versions of hitless's dependencies, held against `deny.toml`.
//!
//! `cargo deny check licenses bans sources` says the same and more; this needs only cargo.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::Value;

/// Packages of which two versions are built. Each is somebody else's to unify; a new one needs a look.
const TWO_VERSIONS: usize = 5;

/// Every package that is built for Linux.
fn packages() -> Vec<Value> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"]);
    let output = command.current_dir(tidy::root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let used: BTreeSet<&str> =
        metadata["resolve"]["nodes"].as_array().unwrap().iter().filter_map(|node| node["id"].as_str()).collect();
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().filter(|package| used.contains(package["id"].as_str().unwrap())).cloned().collect()
}

/// The licences that `deny.toml` allows.
fn allowed() -> BTreeSet<String> {
    let text = fs::read_to_string(tidy::root().join("deny.toml")).unwrap();
    let list = text.split_once("allow = [").and_then(|(_, rest)| rest.split_once(']')).unwrap().0;
    list.split(',').map(|name| name.trim().trim_matches('"').to_owned()).filter(|name| !name.is_empty()).collect()
}

/// True if an SPDX expression can be met with allowed licences. Older packages write `/` for `OR`.
fn can_be_met(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    let one_of = |part: &str| part.split(" OR ").any(|name| allowed.contains(name.trim()));
    plain.split(" AND ").all(one_of)
}

#[test]
fn every_licence_is_one_of_those_allowed() {
    let allowed = allowed();
    let refused = packages().into_iter().filter(|package| {
        let licence = package["license"].as_str().unwrap_or_default();
        !can_be_met(licence, &allowed)
    });
    let refused: Vec<String> = refused.map(|package| format!("{}: {}", package["name"], package["license"])).collect();
    assert!(refused.is_empty(), "licences that deny.toml does not allow: {refused:#?}");
}

#[test]
fn expressions_are_read_as_spdx_has_them() {
    let allowed = ["MIT", "Unicode-3.0"].map(str::to_owned).into();
    for (expression, expected) in [
        ("MIT OR GPL-3.0", true),
        ("GPL-3.0/MIT", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("MIT AND GPL-3.0", false),
        ("", false),
    ] {
        assert_eq!(can_be_met(expression, &allowed), expected, "{expression}");
    }
}

#[test]
fn everything_comes_from_the_registry_with_a_checksum() {
    let lock = fs::read_to_string(tidy::root().join("Cargo.lock")).unwrap();
    for package in lock.split("[[package]]").skip(1) {
        let name = package.lines().find_map(|line| line.strip_prefix("name = ")).unwrap();
        let source = package.lines().find_map(|line| line.strip_prefix("source = "));
        let has_checksum = package.contains("\nchecksum = ");
        match source {
            Some(source) => assert!(source.starts_with("\"registry+") && has_checksum, "{name}: {source}"),
            None => assert!(name.trim_matches('"').starts_with("hitless"), "{name} has no source"),
        }
    }
}

#[test]
fn few_packages_are_built_twice() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages() {
        let [name, version] = ["name", "version"].map(|key| package[key].as_str().unwrap().to_owned());
        versions.entry(name).or_default().insert(version);
    }
    let twice: Vec<_> = versions.into_iter().filter(|(_, versions)| versions.len() > 1).collect();
    assert!(twice.len() <= TWO_VERSIONS, "{twice:#?}");
}
