//! Manifests of the workspace's crates: where each crate lies, what it depends on, and whether it may use `unsafe`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use crate::source::SourceFile;

/// A crate of the workspace.
#[derive(Debug)]
pub struct CratePackage<'a> {
    /// The crate's name without `hitless-`, which is also its folder's.
    pub name: &'a str,
    /// The folder under `crates/` that it is in.
    pub folder: &'a str,
    manifest: String,
}

/// The crates of these files, by name.
pub fn read_packages<'a>(root: &Path, files: &[SourceFile<'a>]) -> io::Result<BTreeMap<&'a str, CratePackage<'a>>> {
    let folders: BTreeMap<&str, &str> = files.iter().map(|file| (file.package, file.folder)).collect();
    let read = |(name, folder)| {
        let manifest = fs::read_to_string(root.join("crates").join(folder).join(name).join("Cargo.toml"))?;
        Ok((name, CratePackage { name, folder, manifest }))
    };
    folders.into_iter().map(read).collect()
}

impl CratePackage<'_> {
    /// Path of its manifest from the root of the workspace.
    pub fn path(&self) -> String {
        format!("crates/{}/{}/Cargo.toml", self.folder, self.name)
    }

    /// The names in a section of the manifest, with their specifications.
    pub fn dependencies(&self, section: &str) -> BTreeMap<&str, &str> {
        let body = self.manifest.split(&format!("\n[{section}]\n")).nth(1).unwrap_or_default();
        let body = body.split("\n[").next().unwrap_or_default();
        let named = |line| {
            let end = str::find(line, ['.', ' ', '=']).filter(|_| !line.starts_with('#'))?;
            Some(line.split_at(end))
        };
        body.lines().filter_map(named).collect()
    }

    /// True unless its lints forbid `unsafe`, as those of the workspace do.
    pub fn allows_unsafe(&self) -> bool {
        !self.manifest.contains("\n[lints]\nworkspace = true\n")
    }

    /// True if a dependency only passes a feature on.
    fn is_feature(&self, dependency: &str) -> bool {
        self.manifest.contains(&format!("\"dep:{dependency}\""))
    }
}

/// Dependencies that no file of their crate names, each with its manifest.
pub fn unused_dependencies(packages: &BTreeMap<&str, CratePackage<'_>>, files: &[SourceFile<'_>]) -> Vec<String> {
    let mut unused = Vec::new();
    for package in packages.values() {
        let uses = |dependency: &str, in_tests: bool| {
            let word = dependency.replace('-', "_");
            let mut own = files.iter().filter(|file| file.package == package.name && (in_tests || !file.is_test()));
            own.any(|file| file.names(&word))
        };
        let of_code = package.dependencies("dependencies").into_keys();
        let of_code = of_code.filter(|name| !uses(name, false) && !package.is_feature(name));
        unused.extend(of_code.map(|name| format!("{}: {name}", package.path())));
        // A crate names itself to test with a feature on; the test kit reports skips without being named.
        let is_tool = |name: &str| name == "testkit" || name == format!("hitless-{}", package.name);
        let of_tests = package.dependencies("dev-dependencies").into_keys();
        let of_tests = of_tests.filter(|name| !uses(name, true) && !is_tool(name));
        unused.extend(of_tests.map(|name| format!("{}: {name} (for tests)", package.path())));
    }
    unused
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{SourceText, parse_workspace};

    const MANIFEST: &str = "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n\n[features]\nf = [\"dep:g-h\"]\n\n\
        [dependencies]\n# A comment = 1\nb.workspace = true\nc-d = { version = \"1\" }\ng-h = \"1\"\n\n\
        [dev-dependencies]\ne = \"1\"\ntestkit.workspace = true\n";

    fn package() -> BTreeMap<&'static str, CratePackage<'static>> {
        [("a", CratePackage { name: "a", folder: "x", manifest: MANIFEST.to_owned() })].into()
    }

    #[test]
    fn a_section_of_a_manifest_is_read() {
        let found = package();
        assert_eq!(found["a"].dependencies("dependencies").into_keys().collect::<Vec<_>>(), ["b", "c-d", "g-h"]);
        assert_eq!(found["a"].dependencies("dependencies")["b"], ".workspace = true");
        assert!(!found["a"].allows_unsafe());
    }

    #[test]
    fn dependencies_that_nothing_names_are_found() {
        let texts = [
            SourceText::new("crates/x/a/src/lib.rs", "use b::B;\n"),
            SourceText::new("crates/x/a/tests/t.rs", "use c_d::D;\n"),
        ];
        let unused = unused_dependencies(&package(), &parse_workspace(&texts));
        assert_eq!(unused, ["crates/x/a/Cargo.toml: c-d", "crates/x/a/Cargo.toml: e (for tests)"]);
    }
}
