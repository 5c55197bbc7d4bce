//! Manifests of the workspace's crates: what a registry shows of each.

use std::process::Command;

use serde_json::Value;

/// Categories of crates.io that fit a crate here; any other word is refused at publishing.
const CATEGORIES: [&str; 19] = [
    "authentication",
    "command-line-utilities",
    "concurrency",
    "config",
    "data-structures",
    "date-and-time",
    "development-tools",
    "development-tools::debugging",
    "development-tools::testing",
    "emulators",
    "encoding",
    "filesystem",
    "network-programming",
    "os::linux-apis",
    "parser-implementations",
    "rust-patterns",
    "science",
    "simulation",
    "visualization",
];
/// Limits of crates.io.
const MOST_WORDS: usize = 5;
const LONGEST_KEYWORD: usize = 20;

fn members() -> Vec<Value> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--format-version", "1", "--no-deps", "--locked"]).current_dir(tidy::root());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn words<'v>(package: &'v Value, key: &str) -> Vec<&'v str> {
    package[key].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

/// The complaint about a manifest, if there is one.
fn complaint(package: &Value) -> Option<&'static str> {
    let is_keyword = |word: &&str| {
        word.len() <= LONGEST_KEYWORD && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    let (keywords, categories) = (words(package, "keywords"), words(package, "categories"));
    let is_absent = |key: &str| package[key].as_str().is_none_or(str::is_empty);
    let rules = [
        (is_absent("description"), "no description"),
        (is_absent("license"), "no license"),
        (is_absent("readme"), "no readme"),
        (keywords.is_empty() || keywords.len() > MOST_WORDS, "one to five keywords are expected"),
        (!keywords.iter().all(is_keyword), "a keyword has at most 20 lower-case letters, digits and dashes"),
        (categories.is_empty() || categories.len() > MOST_WORDS, "one to five categories are expected"),
        (!categories.iter().all(|slug| CATEGORIES.contains(slug)), "a category is none of CATEGORIES"),
    ];
    rules.into_iter().find_map(|(is_wrong, said)| is_wrong.then_some(said))
}

#[test]
fn every_manifest_says_what_the_crate_is() {
    let members = members();
    assert!(members.len() > 30, "{}", members.len());
    let wrong = members.iter().filter_map(|it| Some(format!("{}: {}", it["manifest_path"], complaint(it)?)));
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_manifest_without_one_of_them_is_named() {
    let whole = serde_json::json!({
        "description": "A crate", "license": "MIT", "readme": "README.md", "keywords": ["tcp"], "categories": ["science"],
    });
    assert_eq!(complaint(&whole), None);
    for (key, value, expected) in [
        ("description", Value::Null, "no description"),
        ("readme", Value::Null, "no readme"),
        ("keywords", serde_json::json!(["a word"]), "a keyword has at most 20 lower-case letters, digits and dashes"),
        ("categories", serde_json::json!([]), "one to five categories are expected"),
        ("categories", serde_json::json!(["networks"]), "a category is none of CATEGORIES"),
    ] {
        let mut package = whole.clone();
        package[key] = value;
        assert_eq!(complaint(&package), Some(expected));
    }
}
