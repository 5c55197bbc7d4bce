//! Rules of the whole workspace: which crate may use which, how long things may be, which names are free.
//!
//! Lower a limit when you can; to raise one needs a reason in the commit.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use tidy::docs::{DocPage, read_pages};
use tidy::duplicates::duplicates;
use tidy::measure::{files_without_docs, long_files, long_functions};
use tidy::names::{Definition, count_names, percent, public_items, types_by_name, unused_public};
use tidy::prose::doc_lines;
use tidy::source::{SourceFile, SourceText, parse_workspace, read_workspace};
use tidy::walks::{Jumps, walks};

const LONGEST_FUNCTION: usize = 70;
const LONGEST_FILE: usize = 450;
/// Names that more than one type has.
const SHARED_TYPE_NAMES: [&str; 1] = ["Protection"];
/// In percent of the public names of libraries, those that nobody outside uses.
const UNUSED_PUBLIC_NAMES: f64 = 1.2;
/// In percent of documentation lines, those that begin with a question word or a preposition.
const ODD_OPENINGS: f64 = 1.0;
/// Words of the pages in docs/, without what a program has written.
const WORDS_OF_DOCS: usize = 45_000;
const WORDS_OF_README: usize = 900;
/// Walks of ARCHITECTURE.md, in order.
const WALKS: &str = "abcdefghi";
/// Jumps that a reader of a walk has to make, at most: crate switches and revisits of files.
const JUMPS: [(char, usize, usize); 2] = [('a', 12, 4), ('h', 8, 4)];
/// Pairs of equal runs of six lines or more.
const DUPLICATES: usize = 2;

/// Each folder under `crates/`, and the folders whose crates those in it may use, beside their own.
///
/// A planner, a simulator and what papers need build without Linux, and so neither use `linux` nor `verify`.
const FOLDERS: [(&str, &[&str]); 9] = [
    ("base", &[]),
    ("protocols", &["base"]),
    ("analyse", &["base", "protocols"]),
    ("simulate", &["base", "protocols", "analyse"]),
    ("linux", &["base", "protocols", "analyse"]),
    ("papers", &["base", "protocols", "analyse", "simulate"]),
    ("verify", &["base", "protocols", "analyse", "simulate", "linux"]),
    ("bin", &["base", "protocols", "analyse", "simulate", "linux", "papers", "verify"]),
    ("dev", &["base"]),
];
/// Folders whose crates build without Redis, too.
const WITHOUT_REDIS: [&str; 5] = ["base", "protocols", "analyse", "simulate", "papers"];

static TEXTS: LazyLock<Vec<SourceText>> = LazyLock::new(|| read_workspace(&tidy::root()).unwrap());
static FILES: LazyLock<Vec<SourceFile<'static>>> = LazyLock::new(|| parse_workspace(&TEXTS));

/// Rules, units and other files beside the code, in one text.
static CONTRIB: LazyLock<String> = LazyLock::new(|| text_below(&tidy::root().join("contrib")));

fn text_below(folder: &std::path::Path) -> String {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| if path.is_dir() { text_below(&path) } else { fs::read_to_string(path).unwrap_or_default() })
        .collect()
}

/// Fails with a line for each of `found`, unless there is none.
fn expect_none(found: Vec<String>, advice: &str) {
    assert!(found.is_empty(), "{advice}:\n  {}", found.join("\n  "));
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
    let long = long_files(&FILES, LONGEST_FILE).into_iter();
    let long = long.map(|file| format!("{} has {} lines", file.place(1), file.length())).collect();
    expect_none(long, &format!("longer than {LONGEST_FILE} lines without tests: find the second idea"));
}

#[test]
fn every_file_says_what_it_is() {
    assert!(FILES.len() > 500, "{}", FILES.len());
    let silent = files_without_docs(&FILES).into_iter().map(|file| file.place(1)).collect();
    expect_none(silent, "open these files with `//!` and a sentence");
}

#[test]
fn documentation_opens_with_a_noun_or_a_verb() {
    let lines = || FILES.iter().flat_map(|file| doc_lines(file).map(move |doc| (file, doc)));
    let share = percent(lines().filter(|(_, doc)| doc.is_odd()).count(), lines().count());
    assert!(
        share <= ODD_OPENINGS,
        "{share:.1} % of documentation lines begin with What, How, Of and the like: begin with a noun phrase or a verb \
         (`cargo run -p hitless-tidy -- --odd` lists them)"
    );
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

/// The names in a section of a manifest, with their specifications.
fn dependencies(manifest: &str, section: &str) -> BTreeMap<String, String> {
    let body = manifest.split(&format!("\n[{section}]\n")).nth(1).unwrap_or_default();
    let body = body.split("\n[").next().unwrap_or_default();
    let named = |line: &str| {
        let end = line.find(['.', ' ', '=']).filter(|_| !line.starts_with('#'))?;
        Some((line[..end].to_owned(), line[end..].to_owned()))
    };
    body.lines().filter_map(named).collect()
}

/// A crate of the workspace: its folder under `crates/`, and its manifest.
struct Package {
    folder: &'static str,
    manifest: String,
}

fn packages() -> BTreeMap<&'static str, Package> {
    let places: BTreeMap<_, _> = FILES.iter().map(|file| (file.package, file.folder)).collect();
    let read = |(name, folder): (&'static str, &'static str)| {
        let path = tidy::root().join("crates").join(folder).join(name).join("Cargo.toml");
        (name, Package { folder, manifest: fs::read_to_string(path).unwrap() })
    };
    places.into_iter().map(read).collect()
}

fn may_use(folder: &str) -> &'static [&'static str] {
    let found = FOLDERS.iter().find(|(name, _)| *name == folder);
    found
        .unwrap_or_else(|| {
            panic!("crates/{folder} is in no row of FOLDERS: give it one, and a place in ARCHITECTURE.md")
        })
        .1
}

#[test]
fn a_folder_uses_only_those_that_it_may() {
    let packages = packages();
    let mut wrong = Vec::new();
    for (from, package) in &packages {
        for (to, specification) in dependencies(&package.manifest, "dependencies") {
            let Some(used) = packages.get(to.as_str()) else { continue };
            // The test kit is a tool of tests; where it is optional, tests of others ask for it.
            let is_allowed =
                to == "testkit" || used.folder == package.folder || may_use(package.folder).contains(&used.folder);
            let has_redis = to == "bus" && specification.contains("redis");
            if !is_allowed || has_redis && WITHOUT_REDIS.contains(&package.folder) {
                wrong.push(format!("crates/{}/{from}/Cargo.toml: {to}{specification}", package.folder));
            }
        }
    }
    expect_none(wrong, "a crate may use only what FOLDERS says: move what both need to where both may look");
}

#[test]
fn every_folder_says_what_lives_there() {
    let silent = |folder: &str| !tidy::root().join("crates").join(folder).join("README.md").exists();
    let missing =
        FOLDERS.iter().map(|(folder, _)| *folder).filter(|folder| silent(folder)).map(str::to_owned).collect();
    expect_none(missing, "these folders of crates/ have no README.md");
}

#[test]
fn every_dependency_is_used() {
    let mut unused = Vec::new();
    for (name, package) in packages() {
        let named =
            |section: &str| dependencies(&package.manifest, section).into_keys().map(|key| key.replace('-', "_"));
        let uses = |word: &str, tests: bool| {
            let files = FILES.iter().filter(|file| file.package == name);
            files.filter(|file| tests || !file.is_test()).any(|file| file.names(word))
        };
        // What is optional may only pass a feature on.
        let is_feature = |word: &str| package.manifest.contains(&format!("dep:{}", word.replace('_', "-")));
        let of_code = named("dependencies").filter(|word| !uses(word, false) && !is_feature(word));
        unused.extend(of_code.map(|word| format!("crates/{}/{name}/Cargo.toml: {word}", package.folder)));
        // A crate names itself to test with a feature on; the test kit reports skips without being named.
        let is_tool = |word: &str| word == "testkit" || word == format!("hitless_{name}");
        let of_tests = named("dev-dependencies").filter(|word| !uses(word, true) && !is_tool(word));
        unused.extend(of_tests.map(|word| format!("crates/{}/{name}/Cargo.toml: {word} (for tests)", package.folder)));
    }
    expect_none(unused, "nothing in these crates names these dependencies: take them out");
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

#[test]
fn rows_of_tables_have_as_many_cells_as_their_heads() {
    let broken = read_pages(&tidy::root()).unwrap().into_iter().flat_map(|page| {
        let said = page
            .broken_rows()
            .map(|row| format!("{}:{}: {} cells, expected {}", page.path.display(), row.line, row.cells, row.expected));
        said.collect::<Vec<_>>()
    });
    expect_none(broken.collect(), "these rows of tables are broken");
}

#[test]
fn paths_in_pages_exist() {
    let root = tidy::root();
    let exists = |page: &DocPage, path: &str| {
        let beside = root.join(&page.path).parent().unwrap().join(path);
        let of_packages = packages().into_iter().map(|(name, of)| root.join("crates").join(of.folder).join(name));
        // Source files are named from wherever the sentence is.
        beside.exists()
            || [root.clone(), root.join("docs")].into_iter().chain(of_packages).any(|root| root.join(path).exists())
            || FILES.iter().any(|file| file.path.ends_with(path))
    };
    let pages = read_pages(&root).unwrap();
    // What has changed names files as they were then.
    let pages = pages.iter().filter(|page| !page.path.ends_with("CHANGELOG.md"));
    let missing = pages.flat_map(|page| {
        let missing = page.paths().filter(|(_, path)| !exists(page, path));
        missing.map(|(line, path)| format!("{}:{line}: {path}", page.path.display())).collect::<Vec<_>>()
    });
    expect_none(missing.collect(), "these pages name files that do not exist");
}

/// The pages in docs/ that `page` does not link to.
fn unlisted(page: &str) -> Vec<String> {
    let pages = read_pages(&tidy::root()).unwrap();
    let list = pages.iter().filter(|it| it.path.ends_with(page));
    let listed: Vec<&str> = list.flat_map(DocPage::links).map(|(_, to)| to.split('#').next().unwrap_or(to)).collect();
    let of_docs = pages.iter().filter(|it| it.path.starts_with("docs"));
    let names = of_docs.map(|it| it.path.file_name().unwrap().to_string_lossy().into_owned());
    let lists = ["README.md", "SUMMARY.md"];
    names.filter(|name| !lists.contains(&name.as_str()) && !listed.contains(&name.as_str())).collect()
}

#[test]
fn every_page_is_listed() {
    expect_none(unlisted("docs/README.md"), "docs/README.md does not link to these pages");
    expect_none(unlisted("docs/SUMMARY.md"), "these pages are no chapters of docs/SUMMARY.md");
}

#[test]
fn names_of_rust_in_pages_exist() {
    let crates: Vec<&str> = packages().into_keys().collect();
    let modules = |name: &str| FILES.iter().any(|file| file.path.with_extension("").ends_with(name));
    let exists = |name: &str| {
        let known = |segment: &str| {
            let is_of_libraries = ["std", "core", "alloc"].contains(&segment);
            is_of_libraries || crates.contains(&segment) || modules(segment) || FILES.iter().any(|it| it.names(segment))
        };
        name.starts_with("std::") || name.split("::").all(known) || CONTRIB.contains(name)
    };
    let pages = read_pages(&tidy::root()).unwrap();
    let pages = pages.iter().filter(|page| !page.path.ends_with("CHANGELOG.md"));
    let missing = pages.flat_map(|page| {
        let missing = page.rust_names().filter(|(_, name)| !exists(name));
        missing.map(|(line, name)| format!("{}:{line}: {name}", page.path.display())).collect::<Vec<_>>()
    });
    expect_none(missing.collect(), "these pages name crates, modules or types that do not exist");
}

#[test]
fn walks_are_complete_and_their_files_exist() {
    let pages = read_pages(&tidy::root()).unwrap();
    let page = pages.iter().find(|page| page.path.ends_with("ARCHITECTURE.md")).unwrap();
    let walks = walks(page);
    assert_eq!(walks.iter().map(|walk| walk.letter()).collect::<String>(), WALKS, "the walks of ARCHITECTURE.md");
    let mut wrong = Vec::new();
    for walk in &walks {
        match walk.files(&FILES) {
            Err(unknown) => wrong.extend(unknown.iter().map(|said| format!("{}: {said}", walk.title))),
            Ok(files) => {
                let jumps = Jumps::of(&files);
                let limits = JUMPS.iter().filter(|(letter, ..)| *letter == walk.letter());
                let over =
                    limits.filter(|(_, switches, revisits)| jumps.switches > *switches || jumps.revisits > *revisits);
                wrong.extend(over.map(|limit| format!("{}: {jumps:?}, at most {limit:?}", walk.title)));
            }
        }
    }
    expect_none(wrong, "walks of ARCHITECTURE.md");
}

#[test]
fn pages_are_short() {
    let pages = read_pages(&tidy::root()).unwrap();
    let words: usize = pages.iter().filter(|page| page.path.starts_with("docs")).map(DocPage::words).sum();
    assert!(words <= WORDS_OF_DOCS, "{words} words in docs/, at most {WORDS_OF_DOCS}");
    let readme = pages.iter().find(|page| page.path.as_os_str() == "README.md").unwrap().words();
    assert!(readme <= WORDS_OF_README, "{readme} words in README.md, at most {WORDS_OF_README}");
}
