//! What holds of the whole workspace: which crate may use which, and that every file says what it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each crate may use those of the rows above its own, and none of its own row.
const LAYERS: [&[&str]; 9] = [
    &["units", "chart"],
    &["wire", "faults", "bus"],
    &["machine"],
    &["guard", "transport", "radar", "testkit"],
    &["linux"],
    &["sim", "fleet", "link", "emulator", "meter"],
    &["lab", "monitor"],
    &["report"],
    &["cli"],
];

/// What has to be had without Linux and Redis.
const PORTABLE: [&str; 3] = ["sim", "fleet", "report"];
const LINUX: [&str; 6] = ["linux", "link", "emulator", "meter", "lab", "monitor"];

fn crates() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), ".."].iter().collect()
}

/// The names in a manifest's `[dependencies]`, with what is said of them.
fn dependencies(manifest: &str) -> BTreeMap<String, String> {
    let body = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let body = body.split("\n[").next().unwrap_or_default();
    let named = |line: &str| {
        let end = line.find(['.', ' ', '='])?;
        Some((line[..end].to_owned(), line[end..].to_owned()))
    };
    body.lines().filter_map(named).collect()
}

/// Of each crate the crates of ours that it uses.
fn arrows() -> BTreeMap<String, BTreeMap<String, String>> {
    let entries = fs::read_dir(crates()).unwrap().map(|entry| entry.unwrap().path());
    let crates: BTreeMap<String, BTreeMap<String, String>> = entries
        .map(|path| {
            let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap();
            (path.file_name().unwrap().to_str().unwrap().to_owned(), dependencies(&manifest))
        })
        .collect();
    let ours: BTreeSet<String> = crates.keys().cloned().collect();
    let only_ours = |of: BTreeMap<String, String>| of.into_iter().filter(|(name, _)| ours.contains(name)).collect();
    crates.into_iter().map(|(name, of)| (name, only_ours(of))).collect()
}

fn layer(name: &str) -> usize {
    LAYERS.iter().position(|layer| layer.contains(&name)).unwrap_or_else(|| panic!("{name} is in no layer"))
}

#[test]
fn dependencies_point_one_way() {
    for (from, used) in arrows() {
        for to in used.keys() {
            // The test kit is a tool of tests; where it is optional, tests of others ask for it.
            if to != "testkit" {
                assert!(layer(to) < layer(&from), "{from} uses {to}");
            }
        }
    }
}

#[test]
fn planner_simulator_and_reports_need_neither_linux_nor_redis() {
    let arrows = arrows();
    for start in PORTABLE {
        let (mut seen, mut next) = (BTreeSet::new(), vec![start.to_owned()]);
        while let Some(name) = next.pop() {
            assert!(!LINUX.contains(&name.as_str()), "{start} needs {name}");
            let used = &arrows[&name];
            assert!(used.get("bus").is_none_or(|said| !said.contains("redis")), "{start} needs Redis, by {name}");
            next.extend(used.keys().filter(|to| seen.insert((*to).clone())).cloned());
        }
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_file_says_what_it_is() {
    let mut found = Vec::new();
    for entry in fs::read_dir(crates()).unwrap() {
        sources(&entry.unwrap().path().join("src"), &mut found);
    }
    assert!(found.len() > 500, "{}", found.len());
    // The tests of a file say it by their names.
    for path in found.iter().filter(|path| !path.ends_with("tests.rs")) {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.starts_with("//!"), "{}", path.display());
    }
}
