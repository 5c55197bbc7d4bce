//! Keys of tables: which there are, and what shape their values have.
//!
//! The shape distinguishes a value from a sweep: where one value is expected, each one of a list is a point of it.

use units::nearest;

use super::error::KeyError;
use super::tree::{TreeNode, Value};

/// The keys of a table.
pub type Keys = &'static [(&'static str, KeyShape)];

#[derive(Clone, Copy, Debug)]
pub enum KeyShape {
    /// A text, a number or a flag.
    One,
    /// A text, a number, a flag, or a table.
    OneOr(Keys),
    /// One, or several names.
    Names,
    /// Several, always: two names, or numbers.
    Several,
    /// Pairs of names.
    Pairs,
    Table(Keys),
    Tables(Keys),
}

use KeyShape::{Names, One, OneOr, Pairs, Several, Table, Tables};

impl KeyShape {
    /// True if these are points of a sweep, not one value.
    pub(crate) fn is_sweep(self, list: &[TreeNode]) -> bool {
        let first = list.first().map(|node| &node.value);
        match self {
            One | OneOr(_) => true,
            Names => !matches!(first, None | Some(Value::Text(_))),
            Several => matches!(first, Some(Value::List(_))),
            Pairs | Table(_) | Tables(_) => false,
        }
    }

    /// The keys of what is in it.
    pub fn keys(self) -> Option<Keys> {
        match self {
            OneOr(keys) | Table(keys) | Tables(keys) => Some(keys),
            One | Names | Several | Pairs => None,
        }
    }

    /// True in the first place if a table may stand here, in the second if a list of tables may.
    fn holds(self) -> (bool, bool) {
        (matches!(self, OneOr(_) | Table(_)), matches!(self, Tables(_)))
    }
}

pub fn shape(keys: Keys, key: &str) -> Option<KeyShape> {
    keys.iter().find(|(name, _)| *name == key).map(|(_, shape)| *shape)
}

/// Message about an unknown key.
pub fn unknown(keys: Keys, key: &str) -> String {
    let known = || keys.iter().map(|(name, _)| *name);
    match nearest(key, known()) {
        Some(nearest) => format!("no such key: did you mean '{nearest}'?"),
        None => format!("no such key: expected one of {}", known().collect::<Vec<_>>().join(", ")),
    }
}

/// Path of a table, or of a table within: as `--set` names it, with a number where there are several.
pub fn path(parent: &str, key: &str) -> String {
    if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") }
}

pub fn item_path(parent: &str, index: usize, of: usize) -> String {
    if of == 1 { parent.to_owned() } else { format!("{parent}.{index}") }
}

/// Sorts entries as they are listed here, so that the same settings are always written the same way.
pub fn sort(node: &mut TreeNode, keys: Keys) {
    match &mut node.value {
        Value::Table(entries) => {
            entries.sort_by_key(|(key, _)| keys.iter().position(|(name, _)| name == key));
            for (key, value) in entries {
                sort(value, shape(keys, key).and_then(KeyShape::keys).unwrap_or_default());
            }
        }
        Value::List(items) => items.iter_mut().for_each(|item| sort(item, keys)),
        _ => {}
    }
}

/// Checks that every key is known, and that tables are where tables are expected.
pub fn check(node: &TreeNode, keys: Keys, at: &str) -> Result<(), KeyError> {
    for (key, value) in node.entries() {
        let at = path(at, key);
        let wrong = |problem| KeyError { place: value.place.clone(), key: at.clone(), problem };
        let shape = shape(keys, key).ok_or_else(|| wrong(unknown(keys, key)))?;
        check_value(value, shape, &at)?;
    }
    Ok(())
}

fn check_value(node: &TreeNode, shape: KeyShape, at: &str) -> Result<(), KeyError> {
    let wrong = |problem: String| KeyError { place: node.place.clone(), key: at.to_owned(), problem };
    let inner = shape.keys().unwrap_or_default();
    match (&node.value, shape.holds()) {
        (Value::Table(_), (true, _)) => check(node, inner, at),
        (Value::Table(_), (_, true)) => Err(wrong(format!("expected a list of tables: [[{at}]]"))),
        (Value::Table(_), _) => Err(wrong("expected a value, not a table".to_owned())),
        (Value::List(items), (_, true)) => {
            let all = items.len();
            items.iter().enumerate().try_for_each(|(index, item)| match &item.value {
                Value::Table(_) => check(item, inner, &item_path(at, index, all)),
                _ => Err(wrong(format!("expected a list of tables: [[{at}]]"))),
            })
        }
        (Value::List(items), (true, _)) if shape.is_sweep(items) => {
            items.iter().try_for_each(|item| check_value(item, shape, at))
        }
        (_, (_, true)) => Err(wrong(format!("expected a list of tables: [[{at}]]"))),
        _ if matches!(shape, Table(_)) => Err(wrong(format!("expected a table: [{at}]"))),
        _ => Ok(()),
    }
}
