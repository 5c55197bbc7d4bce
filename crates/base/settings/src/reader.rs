//! Reading a table of one point: values out of it, each checked, and a note of which were asked for.
//!
//! A key that no point asks for has no effect. Its author believes otherwise, so it is refused.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use units::{Bytes, ParseError, Span, nearest};

use super::error::KeyError;
use super::keys;
use super::tree::{TreeNode, Value};

/// Paths of keys that were asked for.
pub type UsedKeys = RefCell<BTreeSet<String>>;

#[derive(Clone, Debug)]
pub struct SettingsReader<'a> {
    node: &'a TreeNode,
    path: String,
    used: &'a UsedKeys,
}

pub type ReadResult<T> = Result<T, KeyError>;

impl<'a> SettingsReader<'a> {
    /// Reader of the whole file.
    pub fn new(node: &'a TreeNode, used: &'a UsedKeys) -> Self {
        Self { node, path: String::new(), used }
    }

    /// Error at a key; or, if the key was left out, at the table that lacks it.
    pub fn wrong(&self, key: &str, problem: impl Display) -> KeyError {
        let place = self.node.entry(key).unwrap_or(self.node).place.clone();
        KeyError { place, key: keys::path(&self.path, key), problem: problem.to_string() }
    }

    pub fn has(&self, key: &str) -> bool {
        self.node.entry(key).is_some()
    }

    fn entry(&self, key: &str) -> Option<&'a TreeNode> {
        self.used.borrow_mut().insert(keys::path(&self.path, key));
        self.node.entry(key)
    }

    pub fn needed<T>(&self, key: &str, value: Option<T>, expected: &str) -> ReadResult<T> {
        value.ok_or_else(|| self.wrong(key, format_args!("missing: expected {expected}")))
    }

    pub fn text(&self, key: &str) -> ReadResult<Option<String>> {
        let text = |node: &TreeNode| node.as_text().ok_or_else(|| self.wrong(key, "expected a text or a number"));
        self.entry(key).map(text).transpose()
    }

    pub fn parsed<T: FromStr<Err = ParseError>>(&self, key: &str) -> ReadResult<Option<T>> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        text.parse().map(Some).map_err(|error| self.wrong(key, format_args!("'{text}': {error}")))
    }

    /// A length of time.
    pub fn span(&self, key: &str, allowed: RangeInclusive<Span>) -> ReadResult<Option<Span>> {
        self.within(key, allowed)
    }

    /// A size.
    pub fn bytes(&self, key: &str, allowed: RangeInclusive<Bytes>) -> ReadResult<Option<Bytes>> {
        self.within(key, allowed)
    }

    /// A value with a unit, within `allowed`.
    fn within<T>(&self, key: &str, allowed: RangeInclusive<T>) -> ReadResult<Option<T>>
    where
        T: FromStr<Err = ParseError> + PartialOrd + Default + Display,
    {
        match self.parsed(key)? {
            Some(value) if !allowed.contains(&value) => {
                let (least, most) = allowed.into_inner();
                let some = if least > T::default() { "more than 0 and " } else { "" };
                Err(self.wrong(key, format_args!("{value}: expected {some}at most {most}")))
            }
            value => Ok(value),
        }
    }

    /// A whole number.
    pub fn whole(&self, key: &str, allowed: RangeInclusive<u64>) -> ReadResult<Option<u64>> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        match units::whole(&text) {
            Some(number) if allowed.contains(&number) => Ok(Some(number)),
            _ => {
                let (least, most) = allowed.into_inner();
                let expected = match most {
                    u64::MAX => format!("'{text}': expected a whole number of at least {least}"),
                    _ => format!("'{text}': expected a whole number from {least} to {most}"),
                };
                Err(self.wrong(key, expected))
            }
        }
    }

    /// A whole number that fits 32 bits.
    pub fn small(&self, key: &str, allowed: RangeInclusive<u32>) -> ReadResult<Option<u32>> {
        let allowed = u64::from(*allowed.start())..=u64::from(*allowed.end());
        Ok(self.whole(key, allowed)?.map(|number| number as u32))
    }

    /// A whole number that fits 8 bits.
    pub fn tiny(&self, key: &str, allowed: RangeInclusive<u8>) -> ReadResult<Option<u8>> {
        let allowed = u64::from(*allowed.start())..=u64::from(*allowed.end());
        Ok(self.whole(key, allowed)?.map(|number| number as u8))
    }

    /// Reads a number that satisfies `fits`.
    pub fn number(&self, key: &str, fits: impl Fn(f64) -> bool, expected: &str) -> ReadResult<Option<f64>> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        match text.parse::<f64>() {
            Ok(number) if fits(number) => Ok(Some(number)),
            _ => Err(self.wrong(key, format_args!("'{text}': expected {expected}"))),
        }
    }

    pub fn flag(&self, key: &str) -> ReadResult<Option<bool>> {
        match self.entry(key).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Flag(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.wrong(key, "expected true or false")),
        }
    }

    /// One of several, by name.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> ReadResult<Option<T>> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
            return Ok(Some(*value));
        }
        let names = || choices.iter().map(|(name, _)| *name);
        Err(self.wrong(
            key,
            match nearest(&text, names()) {
                Some(nearest) => format!("'{text}': did you mean '{nearest}'?"),
                None => format!("'{text}': expected one of {}", names().collect::<Vec<_>>().join(", ")),
            },
        ))
    }

    /// Texts or numbers, in a list or alone.
    pub fn several(&self, key: &str) -> ReadResult<Option<Vec<String>>> {
        let Some(node) = self.entry(key) else { return Ok(None) };
        let wrong = || self.wrong(key, "expected texts or numbers in a list");
        let texts = match &node.value {
            Value::List(items) => {
                items.iter().map(|item| item.as_text().ok_or_else(wrong)).collect::<ReadResult<_>>()?
            }
            _ => vec![node.as_text().ok_or_else(wrong)?],
        };
        Ok(Some(texts))
    }

    /// Two names.
    pub fn pair(&self, key: &str) -> ReadResult<Option<[String; 2]>> {
        let wrong = |_| self.wrong(key, "expected two nodes such as [\"h0\", \"sw0\"]");
        self.several(key)?.map(|names| names.try_into().map_err(wrong)).transpose()
    }

    pub fn pairs(&self, key: &str) -> ReadResult<Vec<[String; 2]>> {
        let wrong = || self.wrong(key, "expected a list of pairs of nodes such as [[\"h0\", \"sw0\"]]");
        let Some(node) = self.entry(key) else { return Ok(Vec::new()) };
        let Value::List(items) = &node.value else { return Err(wrong()) };
        let pair = |item: &TreeNode| match &item.value {
            Value::List(names) => {
                let names: Option<Vec<String>> = names.iter().map(TreeNode::as_text).collect();
                names.and_then(|names| names.try_into().ok()).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        };
        items.iter().map(pair).collect()
    }

    /// A table, an empty one if it was left out.
    pub fn table(&self, key: &str) -> Self {
        static NOTHING: TreeNode =
            TreeNode { place: super::error::SourceLocation::Line(1), value: Value::Table(Vec::new()) };
        self.inner(key).unwrap_or(Self { node: &NOTHING, path: keys::path(&self.path, key), used: self.used })
    }

    /// A table if there is one, and not a plain value.
    pub fn inner(&self, key: &str) -> Option<Self> {
        let node = self.entry(key)?;
        let is_table = matches!(node.value, Value::Table(_));
        is_table.then(|| Self { node, path: keys::path(&self.path, key), used: self.used })
    }

    pub fn tables(&self, key: &str) -> Vec<Self> {
        let (path, node) = (keys::path(&self.path, key), self.entry(key));
        let Some(Value::List(items)) = node.map(|node| &node.value) else { return Vec::new() };
        let reader = |(index, node)| Self { node, path: keys::item_path(&path, index, items.len()), used: self.used };
        items.iter().enumerate().map(reader).collect()
    }
}
