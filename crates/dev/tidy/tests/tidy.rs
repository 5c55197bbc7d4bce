//! Rules of the whole workspace: which crate may use which, how long things may be, which names are free.
//!
//! Lower a limit when you can; to raise one needs a reason in the commit.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::LazyLock;

use tidy::docs::{DocPage, read_pages};
use tidy::duplicates::duplicates;
use tidy::manifests::{CratePackage, read_packages, unused_dependencies};
use tidy::measure::{files_without_docs, long_files, long_functions};
use tidy::names::{Definition, count_names, percent, public_items, types_by_name, unused_public};
use tidy::prose::{DocLine, comment_openings, doc_lines};
use tidy::references::{broken_names, broken_paths};
use tidy::source::{SourceFile, SourceText, parse_workspace, read_workspace};
use tidy::walks::{Jumps, walks};

const LONGEST_FUNCTION: usize = 70;
const LONGEST_FILE: usize = 450;
/// Names that more than one type has.
const SHARED_TYPE_NAMES: [&str; 1] = ["Protection"];
/// Files that replace others in a build without a feature, and have the names of those.
const REPLACEMENTS: [&str; 2] = ["args/absent.rs", "digests/no_redis.rs"];
/// In percent of the public names of libraries, those that nobody outside uses.
const UNUSED_PUBLIC_NAMES: f64 = 1.2;
/// In percent of documentation lines, and of plain comments, those that begin with a question word or a preposition.
const ODD_OPENINGS: f64 = 1.0;
/// Words of the pages in docs/, without what a program has written.
const WORDS_OF_DOCS: usize = 45_000;
const WORDS_OF_README: usize = 900;
/// Words before the generated reference.
const WORDS_OF_REPRODUCE: usize = 1_200;
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
    let share = |lines: Vec<DocLine<'_>>| percent(lines.iter().filter(|line| line.is_odd()).count(), lines.len());
    let (docs, comments) = (FILES.iter().flat_map(doc_lines), FILES.iter().flat_map(comment_openings));
    let shares = [share(docs.collect()), share(comments.collect())];
    assert!(
        shares.iter().all(|share| *share <= ODD_OPENINGS),
        "{shares:.1?} % of documentation lines and of plain comments begin with What, How, Of, The same and the like: begin \
         with a noun phrase or a verb (`cargo run -p hitless-tidy -- --odd` lists them)"
    );
}

#[test]
fn type_names_are_unique() {
    let is_replacement = |file: &SourceFile<'_>| REPLACEMENTS.iter().any(|name| file.path.ends_with(name));
    let of_default_build = types_by_name(&FILES).into_iter().map(|(name, same)| {
        let same: Vec<_> = same.into_iter().filter(|(file, _)| !is_replacement(file)).collect();
        (name, same)
    });
    let shared = of_default_build.filter(|(_, same)| same.len() > 1);
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

fn packages() -> BTreeMap<&'static str, CratePackage<'static>> {
    read_packages(&tidy::root(), &FILES).unwrap()
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
    for package in packages.values() {
        for (to, specification) in package.dependencies("dependencies") {
            let Some(used) = packages.get(to) else { continue };
            // The test kit is a tool of tests; where it is optional, tests of others ask for it.
            let is_allowed =
                to == "testkit" || used.folder == package.folder || may_use(package.folder).contains(&used.folder);
            let has_redis = to == "bus" && specification.contains("redis");
            if !is_allowed || has_redis && WITHOUT_REDIS.contains(&package.folder) {
                wrong.push(format!("{}: {to}{specification}", package.path()));
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
    let unused = unused_dependencies(&packages(), &FILES);
    expect_none(unused, "nothing in these crates names these dependencies: take them out");
}

/// The crates that a page names in code style, from `opening` up to the next closing word.
fn named_after(page: &str, opening: &str, closing: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(tidy::root().join(page)).unwrap();
    let list = text.split_once(opening).and_then(|(_, rest)| rest.split_once(closing));
    let list = list.unwrap_or_else(|| panic!("{page} has no sentence {opening:?} … {closing:?}")).0;
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn unsafe_is_where_the_pages_say() {
    let files = FILES.iter().filter(|file| file.names("unsafe"));
    let used: BTreeSet<String> = files.map(|file| file.package.to_owned()).collect();
    let packages = packages();
    let allowed = packages.values().filter(|package| package.allows_unsafe()).map(|package| package.name.to_owned());
    assert_eq!(allowed.collect::<BTreeSet<_>>(), used, "crates whose lints allow `unsafe`, and those that use it");
    let said = named_after("CONTRIBUTING.md", "9. `unsafe` only in", "in the modules");
    assert_eq!(said, used, "rule 9 of CONTRIBUTING.md, and the crates that use `unsafe`");
    let said = named_after("ARCHITECTURE.md", "(forbidden everywhere except in", "and there");
    assert_eq!(said, used, "ARCHITECTURE.md, and the crates that use `unsafe`");
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
    let broken = broken_paths(&root, &read_pages(&root).unwrap(), &FILES);
    expect_none(broken, "these pages name files that do not exist");
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
    let root = tidy::root();
    let broken = broken_names(&root, &read_pages(&root).unwrap(), &FILES).unwrap();
    expect_none(broken, "these pages name crates, modules or types that do not exist");
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
    for (path, limit) in [("README.md", WORDS_OF_README), ("docs/reproduce.md", WORDS_OF_REPRODUCE)] {
        let words = pages.iter().find(|page| page.path.as_os_str() == path).unwrap().words();
        assert!(words <= limit, "{words} words in {path}, at most {limit}");
    }
}
