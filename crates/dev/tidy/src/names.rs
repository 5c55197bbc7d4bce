//! Names: types that share one, and public items that nobody outside their crate uses.
//!
//! Both go by the name alone: a method `new` counts as used because some other `new` is. The share of all shows whether a
//! surface grows.

use std::collections::{BTreeMap, BTreeSet};

use crate::lexer::TokenKind;
use crate::source::{SourceFile, SourceItem, Visibility};

/// An item, and the file that defines it.
pub type Definition<'f, 'a> = (&'f SourceFile<'a>, &'f SourceItem<'a>);

/// All items outside tests.
pub(crate) fn definitions<'f, 'a>(files: &'f [SourceFile<'a>]) -> impl Iterator<Item = Definition<'f, 'a>> {
    files.iter().flat_map(|file| file.definitions().iter().map(move |item| (file, item)))
}

/// The types of each name.
pub fn types_by_name<'f, 'a>(files: &'f [SourceFile<'a>]) -> BTreeMap<&'a str, Vec<Definition<'f, 'a>>> {
    let mut by_name: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (file, item) in definitions(files).filter(|(_, item)| item.is_type()) {
        by_name.entry(item.name).or_default().push((file, item));
    }
    by_name
}

/// The public items of crates with a library.
pub fn public_items<'f, 'a>(files: &'f [SourceFile<'a>]) -> Vec<Definition<'f, 'a>> {
    let roots = files.iter().filter(|file| file.path.ends_with("src/lib.rs"));
    let libraries: BTreeSet<&str> = roots.map(|file| file.package).collect();
    let is_public = |(file, item): &Definition<'_, '_>| {
        item.visibility == Visibility::Public && libraries.contains(file.package) && file.is_library()
    };
    definitions(files).filter(is_public).collect()
}

/// Public names that no other crate uses, and no program, test, bench or example of their own package. A type in a
/// public signature counts as used.
pub fn unused_public<'f, 'a>(files: &'f [SourceFile<'a>]) -> Vec<Definition<'f, 'a>> {
    let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut surfaces: BTreeSet<(&str, &str)> = BTreeSet::new();
    for file in files {
        surfaces.extend(file.surface.iter().map(|word| (file.package, *word)));
        let user = if file.is_library() { file.package } else { "" };
        for token in file.tokens.iter().filter(|token| token.kind == TokenKind::Word) {
            users.entry(token.text).or_default().insert(user);
        }
    }
    let is_unused = |(file, item): &Definition<'_, '_>| {
        let is_needed = item.is_type() && surfaces.contains(&(file.package, item.name));
        !is_needed && users[item.name].iter().all(|user| *user == file.package)
    };
    public_items(files).into_iter().filter(is_unused).collect()
}

/// Number of names among these: a name that a crate uses several times is one.
pub fn count_names(items: &[Definition<'_, '_>]) -> usize {
    items.iter().map(|(file, item)| (file.package, item.name)).collect::<BTreeSet<_>>().len()
}

/// Share in percent.
pub fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{SourceText, parse_workspace};

    #[test]
    fn what_only_its_own_library_names_is_unused() {
        let library = "pub struct A; pub struct N(pub u8); pub fn b() -> N {} pub fn c() { b() } pub(crate) fn d() {}";
        let texts = [
            SourceText::new("crates/x/a/src/lib.rs", library),
            SourceText::new("crates/x/a/src/main.rs", "fn main() { a::c() }"),
            SourceText::new("crates/x/a/tests/t.rs", "// A"),
            SourceText::new("crates/x/e/src/lib.rs", "use a::b; struct A;"),
        ];
        let names =
            |items: &[Definition<'_, '_>]| items.iter().map(|(_, item)| item.name.to_owned()).collect::<Vec<_>>();
        let files = parse_workspace(&texts);
        assert_eq!(names(&public_items(&files)), ["A", "N", "b", "c"]);
        assert_eq!(names(&unused_public(&files[..3])), ["A", "b"]);
        // By its name alone: another crate's own `A` hides that nobody uses this one.
        assert!(unused_public(&files).is_empty());
        assert_eq!(types_by_name(&files)["A"].len(), 2);
    }
}
