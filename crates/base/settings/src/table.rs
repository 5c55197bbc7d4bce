//! Reading the tables of a file that is read once, from top to bottom, and has no sweeps: an inventory, a list of claims.
//!
//! Unlike [`SettingsReader`](crate::SettingsReader), a [`TableReader`] takes no number for a text, gives the items of a list
//! each with its line, and keeps no note of which keys were read, so that a list of a hundred thousand tables costs no more
//! than its tree. Keys in errors are those of the table, without the path to it.

use std::fmt::Display;

use crate::error::KeyError;
use crate::reader::ReadResult;
use crate::tree::{TreeNode, Value};

/// A table of a file, and the line in which it begins.
#[derive(Clone, Copy, Debug)]
pub struct TableReader<'a> {
    node: &'a TreeNode,
}

impl<'a> TableReader<'a> {
    /// Reader of the whole file.
    pub const fn new(root: &'a TreeNode) -> Self {
        Self { node: root }
    }

    /// Line in which the table begins.
    pub const fn line(&self) -> usize {
        self.node.place.line()
    }

    /// Line of a key's value.
    pub fn line_of(&self, key: &str) -> Option<usize> {
        self.node.entry(key).map(|node| node.place.line())
    }

    /// Keys in the order of the file, with the lines of their values.
    pub fn keys(&self) -> impl Iterator<Item = (&'a str, usize)> {
        self.node.entries().iter().map(|(key, value)| (key.as_str(), value.place.line()))
    }

    /// Error at a key; or, if the key was left out, at the table that lacks it.
    pub fn wrong(&self, key: &str, problem: impl Display) -> KeyError {
        let place = self.node.entry(key).unwrap_or(self.node).place.clone();
        KeyError { place, key: key.to_owned(), problem: problem.to_string() }
    }

    /// A text, with its line.
    pub fn text(&self, key: &str) -> ReadResult<Option<(&'a str, usize)>> {
        match self.node.entry(key) {
            None => Ok(None),
            Some(node) => text_of(node).map(Some).ok_or_else(|| self.wrong(key, "expected text in quotes")),
        }
    }

    /// A text that must be there, with its line.
    pub fn needed_text(&self, key: &str) -> ReadResult<(&'a str, usize)> {
        self.text(key)?.ok_or_else(|| self.wrong(key, "missing"))
    }

    /// Texts in a list, each with its line.
    pub fn texts(&self, key: &str) -> ReadResult<Option<Vec<(&'a str, usize)>>> {
        let wrong = || self.wrong(key, "expected a list of texts in quotes");
        let text = |item| text_of(item).ok_or_else(wrong);
        self.list(key, wrong)?.map(|items| items.iter().map(text).collect()).transpose()
    }

    /// A number of something.
    pub fn count(&self, key: &str) -> ReadResult<Option<u32>> {
        let number = match self.node.entry(key).map(|node| &node.value) {
            None => return Ok(None),
            Some(Value::Integer(number)) => u32::try_from(*number).ok(),
            Some(_) => None,
        };
        let expected = || self.wrong(key, "expected a whole number of at least 1, below 2^32");
        number.filter(|number| *number > 0).map(Some).ok_or_else(expected)
    }

    /// A number of something that must be there.
    pub fn needed_count(&self, key: &str) -> ReadResult<u32> {
        self.count(key)?.ok_or_else(|| self.wrong(key, "missing"))
    }

    /// A table within.
    pub fn table(&self, key: &str) -> ReadResult<Option<Self>> {
        let Some(node) = self.node.entry(key) else { return Ok(None) };
        let table = Self::of(node).ok_or_else(|| self.wrong(key, format_args!("expected a table: [{key}]")))?;
        Ok(Some(table))
    }

    /// Tables in a list; none if it was left out.
    pub fn tables(&self, key: &str) -> ReadResult<Vec<Self>> {
        let wrong = || self.wrong(key, format_args!("expected a list of tables: [[{key}]]"));
        let table = |item| Self::of(item).ok_or_else(wrong);
        self.list(key, wrong)?.unwrap_or_default().iter().map(table).collect()
    }

    fn of(node: &'a TreeNode) -> Option<Self> {
        matches!(node.value, Value::Table(_)).then_some(Self { node })
    }

    fn list(&self, key: &str, wrong: impl FnOnce() -> KeyError) -> ReadResult<Option<&'a [TreeNode]>> {
        match self.node.entry(key).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::List(items)) => Ok(Some(items)),
            Some(_) => Err(wrong()),
        }
    }
}

fn text_of(node: &TreeNode) -> Option<(&str, usize)> {
    match &node.value {
        Value::Text(text) => Some((text, node.place.line())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::SourceLocation;

    const FILE: &str =
        "ids = [\n\"a\",\n\"b\"]\n\n[shape]\nk = 4\nname = \"x\"\n\n[[link]]\nlower = \"a\"\n[[link]]\nlower = \"b\"\n";

    #[test]
    fn tables_keys_and_items_have_lines() {
        let root = TreeNode::parse(FILE).unwrap();
        let root = TableReader::new(&root);
        assert_eq!(root.texts("ids").unwrap().unwrap(), [("a", 2), ("b", 3)]);
        assert_eq!(root.keys().map(|(key, _)| key).collect::<Vec<_>>(), ["ids", "shape", "link"]);
        let shape = root.table("shape").unwrap().unwrap();
        assert_eq!((shape.line(), shape.line_of("k"), shape.line_of("j")), (5, Some(6), None));
        assert_eq!((shape.count("k"), shape.needed_text("name")), (Ok(Some(4)), Ok(("x", 7))));
        let links = root.tables("link").unwrap();
        assert_eq!(links.iter().map(TableReader::line).collect::<Vec<_>>(), [9, 11]);
        assert!(root.table("none").unwrap().is_none() && root.tables("none").unwrap().is_empty());
    }

    #[test]
    fn an_error_names_the_line_and_the_key() {
        let root = TreeNode::parse(FILE).unwrap();
        let root = TableReader::new(&root);
        let shape = root.table("shape").unwrap().unwrap();
        let said = |error: KeyError| (error.place, error.key, error.problem);
        let at = |line, key: &str, problem: &str| (SourceLocation::Line(line), key.to_owned(), problem.to_owned());
        assert_eq!(said(shape.text("k").unwrap_err()), at(6, "k", "expected text in quotes"));
        assert_eq!(said(shape.needed_text("kind").unwrap_err()), at(5, "kind", "missing"));
        let whole = "expected a whole number of at least 1, below 2^32";
        assert_eq!(said(shape.count("name").unwrap_err()), at(7, "name", whole));
        assert_eq!(said(root.table("ids").unwrap_err()), at(1, "ids", "expected a table: [ids]"));
        assert_eq!(said(root.tables("ids").unwrap_err()), at(1, "ids", "expected a list of tables: [[ids]]"));
        assert_eq!(said(root.texts("link").unwrap_err()), at(9, "link", "expected a list of texts in quotes"));
    }
}
