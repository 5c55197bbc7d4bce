//! The form of a plan's file, without a graph: every name once, one root, and parents that form a tree below it.

use std::collections::HashMap;

use super::file::about;
use super::{PlanFile, PlanFileError};

/// A row as far as the tree is concerned.
#[derive(Clone, Copy)]
struct TreeRow<'a> {
    parent: Option<&'a str>,
    backup: Option<&'a str>,
    is_cut_off: bool,
}

impl PlanFile {
    /// Refuses a plan that names a node twice, that listens to nodes without a row, or whose parents do not lead to the root.
    /// A walk along the parents of a plan that passes ends.
    pub(crate) fn check_tree(&self) -> Result<(), PlanFileError> {
        let rows = self.tree_rows()?;
        for (what, name) in [("the root", &self.root), ("the backup root", &self.backup_root)] {
            if !rows.contains_key(name.as_str()) {
                return Err(about(name, format_args!("is {what}, but the plan has no such node")));
            }
        }
        for name in self.tree_names() {
            self.check_row(name, &rows)?;
        }
        self.check_ways(&rows)
    }

    fn tree_names(&self) -> impl Iterator<Item = &str> {
        let uncovered = self.uncovered.iter().map(|row| row.node.as_str());
        self.plan.iter().map(|row| row.node.as_str()).chain(uncovered)
    }

    fn tree_rows(&self) -> Result<HashMap<&str, TreeRow<'_>>, PlanFileError> {
        let covered = self.plan.iter().map(|row| {
            let (parent, backup) = (row.parent.as_deref(), row.backup.as_deref());
            (row.node.as_str(), TreeRow { parent, backup, is_cut_off: false })
        });
        let uncovered = self.uncovered.iter().map(|row| {
            let parent = row.parent.as_deref();
            (row.node.as_str(), TreeRow { parent, backup: None, is_cut_off: parent.is_none() })
        });
        let mut rows = HashMap::new();
        for (name, row) in covered.chain(uncovered) {
            if rows.insert(name, row).is_some() {
                return Err(about(name, "is there twice"));
            }
        }
        Ok(rows)
    }

    fn check_row(&self, name: &str, rows: &HashMap<&str, TreeRow<'_>>) -> Result<(), PlanFileError> {
        let TreeRow { parent, backup, is_cut_off } = rows[name];
        match parent {
            Some(_) if name == self.root => return Err(about(name, "is the root, but has a parent")),
            None if name != self.root && !is_cut_off => return Err(about(name, "has no parent")),
            _ => (),
        }
        for (what, to) in [("parent", parent), ("backup parent", backup)] {
            if let Some(to) = to.filter(|to| !rows.contains_key(to)) {
                return Err(about(name, format_args!("has the {what} '{to}', which the plan does not have")));
            }
        }
        Ok(())
    }

    /// Every way along parents ends: at the root, or, of a node that is cut off, at once.
    fn check_ways(&self, rows: &HashMap<&str, TreeRow<'_>>) -> Result<(), PlanFileError> {
        let mut reaching: HashMap<&str, ()> = HashMap::from([(self.root.as_str(), ())]);
        for start in self.tree_names().filter(|name| !rows[name].is_cut_off) {
            let (mut way, mut here) = (Vec::new(), start);
            while !reaching.contains_key(here) {
                way.push(here);
                if way.len() > rows.len() {
                    return Err(about(start, "does not reach the root: parents form a loop"));
                }
                match rows[here].parent {
                    Some(up) => here = up,
                    None => return Err(about(start, "does not reach the root by its parents")),
                }
            }
            reaching.extend(way.into_iter().map(|name| (name, ())));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"{ "root": "a", "backup_root": "b", "plan": [
      { "node": "a" },
      { "node": "b", "parent": "a", "backup": "c" },
      { "node": "c", "parent": "d", "backup": "b" },
      { "node": "d", "parent": "a", "backup": "c" }
    ], "uncovered": [
      { "node": "e", "parent": "d" },
      { "node": "f" }
    ] }"#;

    fn problem(from: &str, to: &str) -> (Option<usize>, String) {
        assert!(PLAN.contains(from), "{from}");
        let error = PlanFile::parse(&PLAN.replacen(from, to, 1)).unwrap_err();
        (error.line, error.problem)
    }

    #[test]
    fn what_is_no_tree_is_refused_when_it_is_read() {
        PlanFile::parse(PLAN).unwrap();
        for (from, to, line, says) in [
            ("\"node\": \"d\"", "\"node\": \"b\"", Some(3), "'b' is there twice"),
            ("\"node\": \"d\"", "\"node\": \"a\"", Some(2), "'a' is there twice"),
            ("\"node\": \"f\"", "\"node\": \"c\"", Some(4), "'c' is there twice"),
            ("\"node\": \"a\"", "\"node\": \"a\", \"parent\": \"c\"", Some(2), "'a' is the root, but has a parent"),
            ("\"parent\": \"d\", ", "", Some(4), "'c' has no parent"),
            ("\"parent\": \"d\"", "\"parent\": \"x\"", Some(4), "'c' has the parent 'x', which the plan does not have"),
            ("\"backup\": \"b\"", "\"backup\": \"x\"", Some(4), "'c' has the backup parent 'x'"),
            (
                "\"parent\": \"a\", \"backup\": \"c\" }\n",
                "\"parent\": \"c\", \"backup\": \"c\" }\n",
                Some(4),
                "form a loop",
            ),
            ("\"parent\": \"d\" }", "\"parent\": \"f\" }", Some(7), "'e' does not reach the root by its parents"),
            ("\"root\": \"a\"", "\"root\": \"x\"", None, "'x' is the root, but the plan has no such node"),
            ("\"backup_root\": \"b\"", "\"backup_root\": \"x\"", None, "'x' is the backup root, but"),
        ] {
            let (at, problem) = problem(from, to);
            assert!(problem.contains(says), "{problem}");
            assert!(at == line || line.is_none(), "{at:?} {problem}");
        }
    }
}
