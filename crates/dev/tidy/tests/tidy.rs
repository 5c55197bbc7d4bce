//! What holds of the whole workspace: which crate may use which, how long things may be, which names are free.
//!
//! A ceiling is what was there when it was last lowered. Lower it when you can; to raise one needs a reason in the commit.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::LazyLock;

use tidy::docs::{DocPage, read_pages};
use tidy::duplicates::duplicates;
use tidy::measure::{Measures, files_without_docs, long_files, long_functions};
use tidy::names::{Definition, count_names, percent, public_items, types_by_name, unused_public};
use tidy::source::{SourceFile, SourceText, parse_workspace, read_workspace};

const LONGEST_FUNCTION: usize = 70;
const LONGEST_FILE: usize = 450;
const LARGEST_CRATE: usize = 8_000;

/// Longer files, each with its own ceiling.
const LONG_FILES: [(&str, usize); 3] =
    [("crates/linux/link/src/standin.rs", 532), ("crates/verify/lab/src/soak/faults.rs", 500), ("crates/linux/emulator/src/lib.rs", 454)];

/// Larger crates, each with its own ceiling.
/// The simulator drives every protocol, and each new one brings its driver.
/// The lab and the binary have a demonstration, and commands, for each part of the toolkit.
/// Reports have the rules of experiment files besides.
const LARGE_CRATES: [(&str, usize); 4] = [("sim", 10_650), ("lab", 8_250), ("cli", 9_480), ("report", 8_260)];

/// Names that more than one type has.
const SHARED_TYPE_NAMES: [&str; 1] = ["Protection"];
/// In percent of the public names of libraries, those that nobody outside uses.
const UNUSED_PUBLIC_NAMES: f64 = 1.2;
/// Pairs of equal runs of six lines or more.
const DUPLICATES: usize = 2;

/// Each crate may use those of the rows above its own, and none of its own row.
const LAYERS: [&[&str]; 11] = [
    &["units", "chart", "files", "tidy"],
    &["wire", "faults", "bus", "settings"],
    &["machine", "congestion"],
    &["guard", "tcp", "roce", "homa", "reserve", "clock", "traffic", "testkit"],
    &["linux", "deter", "radar"],
    &["sim", "fleet", "drill", "link", "emulator", "meter", "explain"],
    &["rack", "load", "evidence", "selftest", "clocksim", "timekeeper"],
    &["scenario", "lab", "monitor"],
    &["report", "reality"],
    &["papers"],
    &["cli"],
];

/// What builds without Linux and Redis.
const PORTABLE: [&str; 13] = [
    "clock",
    "clocksim",
    "deter",
    "explain",
    "congestion",
    "reserve",
    "sim",
    "scenario",
    "settings",
    "traffic",
    "fleet",
    "report",
    "papers",
];
const LINUX: [&str; 13] = [
    "linux",
    "evidence",
    "selftest",
    "drill",
    "link",
    "emulator",
    "meter",
    "rack",
    "timekeeper",
    "load",
    "lab",
    "reality",
    "monitor",
];

static TEXTS: LazyLock<Vec<SourceText>> = LazyLock::new(|| read_workspace(&tidy::root()).unwrap());
static FILES: LazyLock<Vec<SourceFile<'static>>> = LazyLock::new(|| parse_workspace(&TEXTS));

/// Fails with a line for each of `found`, unless there is none.
fn expect_none(found: Vec<String>, advice: &str) {
    assert!(found.is_empty(), "{advice}:\n  {}", found.join("\n  "));
}

fn ceiling(exceptions: &[(&str, usize)], name: &str, limit: usize) -> usize {
    exceptions.iter().find(|(exception, _)| *exception == name).map_or(limit, |(_, ceiling)| *ceiling)
}

fn described((file, item): &Definition<'_, '_>) -> String {
    format!("{}: {} {}", file.place(item.line), item.keyword, item.name)
}

#[test]
fn functions_are_short() {
    let line = |found: Definition<'_, '_>| format!("{} has {} lines", described(&found), found.1.lines);
    let long = long_functions(&FILES, LONGEST_FUNCTION).into_iter().map(line).collect();
    expect_none(long, &format!("longer than {LONGEST_FUNCTION} lines: name its steps and move them out"));
}

#[test]
fn files_are_one_idea_each() {
    let too_long =
        |file: &&SourceFile<'_>| file.length() > ceiling(&LONG_FILES, &file.path.display().to_string(), LONGEST_FILE);
    let long = long_files(&FILES, LONGEST_FILE).into_iter().filter(too_long);
    let long = long.map(|file| format!("{} has {} lines", file.place(1), file.length())).collect();
    expect_none(long, &format!("longer than {LONGEST_FILE} lines without tests, or than before: find the second idea"));
}

#[test]
fn crates_are_small() {
    let mut crates: BTreeMap<&str, Measures> = BTreeMap::new();
    for file in FILES.iter() {
        *crates.entry(file.package).or_default() += &Measures::of_file(file);
    }
    let large = crates.iter().filter(|(name, of)| of.code_lines > ceiling(&LARGE_CRATES, name, LARGEST_CRATE));
    let large = large.map(|(name, of)| format!("crates/{name} has {} lines of code", of.code_lines)).collect();
    expect_none(large, &format!("larger than {LARGEST_CRATE} lines, or than before: split it or remove something"));
}

#[test]
fn every_file_says_what_it_is() {
    assert!(FILES.len() > 500, "{}", FILES.len());
    let silent = files_without_docs(&FILES).into_iter().map(|file| file.place(1)).collect();
    expect_none(silent, "open these files with `//!` and a sentence");
}

#[test]
fn type_names_are_unique() {
    let shared = types_by_name(&FILES).into_iter().filter(|(_, same)| same.len() > 1);
    let new = shared.filter(|(name, _)| !SHARED_TYPE_NAMES.contains(name)).flat_map(|(_, same)| same);
    let new = new.map(|found| described(&found)).collect();
    expect_none(new, "several types have one name; qualify it, say with its room's: `LinkStatus`, not `Status`");
}

#[test]
fn what_is_public_is_used() {
    let unused = unused_public(&FILES);
    let share = percent(count_names(&unused), count_names(&public_items(&FILES)));
    let lines = unused.iter().map(described).collect::<Vec<_>>().join("\n  ");
    let advice = "make the new ones `pub(crate)` or private";
    assert!(
        share <= UNUSED_PUBLIC_NAMES,
        "{share:.2} % of public names are used by no other crate; {advice}:\n  {lines}"
    );
}

#[test]
fn nothing_is_written_twice() {
    let found = duplicates(&FILES).into_iter().map(|duplicate| {
        let [one, other] = duplicate.places.map(|(file, line)| file.place(line));
        format!("{one} and {other}: {} lines", duplicate.lines)
    });
    let found: Vec<String> = found.collect();
    let count = found.len();
    assert!(count <= DUPLICATES, "{count} pairs of equal runs; write the new one once:\n  {}", found.join("\n  "));
}

/// The names in a manifest's `[dependencies]`, with their specifications.
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
    let ours: BTreeSet<&str> = FILES.iter().map(|file| file.package).collect();
    let used = |name: &str| {
        let manifest = fs::read_to_string(tidy::root().join("crates").join(name).join("Cargo.toml")).unwrap();
        dependencies(&manifest).into_iter().filter(|(name, _)| ours.contains(name.as_str())).collect()
    };
    ours.iter().map(|name| ((*name).to_owned(), used(name))).collect()
}

fn layer(name: &str) -> usize {
    let found = LAYERS.iter().position(|layer| layer.contains(&name));
    found.unwrap_or_else(|| panic!("crates/{name} is in no layer: give it a place in LAYERS and in ARCHITECTURE.md"))
}

#[test]
fn dependencies_point_one_way() {
    let mut wrong = Vec::new();
    for (from, used) in arrows() {
        // The test kit is a tool of tests; where it is optional, tests of others ask for it.
        let upward = used.keys().filter(|to| *to != "testkit" && layer(to) >= layer(&from));
        wrong.extend(upward.map(|to| format!("crates/{from}/Cargo.toml: {to}")));
    }
    expect_none(wrong, "a crate may use only what is below it: move what both need down");
}

#[test]
fn planner_simulator_and_reports_need_neither_linux_nor_redis() {
    let arrows = arrows();
    let mut wrong = Vec::new();
    for start in PORTABLE {
        let (mut seen, mut next) = (BTreeSet::new(), vec![start.to_owned()]);
        while let Some(name) = next.pop() {
            for (to, specification) in &arrows[&name] {
                if LINUX.contains(&to.as_str()) || to == "bus" && specification.contains("redis") {
                    wrong.push(format!("crates/{name}/Cargo.toml: {to}{specification} (needed by {start})"));
                }
                if seen.insert(to.clone()) {
                    next.push(to.clone());
                }
            }
        }
    }
    expect_none(wrong, "these build without Linux and Redis: move what needs them elsewhere");
}

#[test]
fn links_of_the_documentation_lead_somewhere() {
    let root = tidy::root();
    let pages = read_pages(&root).unwrap();
    let mut broken = Vec::new();
    for page in &pages {
        for (line, target) in page.links() {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let here = root.join(&page.path);
            let there = if file.is_empty() { here } else { here.parent().unwrap().join(file) }.canonicalize().ok();
            let is_there = |page: &&DocPage| root.join(&page.path).canonicalize().ok() == there;
            let anchors = || pages.iter().filter(is_there).flat_map(DocPage::anchors);
            if there.is_none() || !anchor.is_empty() && !anchors().any(|known| known == anchor) {
                broken.push(format!("{}:{line}: {target}", page.path.display()));
            }
        }
    }
    expect_none(broken, "these links lead nowhere: is the file or its heading named otherwise now?");
}
