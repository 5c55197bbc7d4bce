//! Keys of a scenario that had an effect.

use std::collections::BTreeSet;

use settings::tree::{TreeNode, Value};
use settings::{KeyError, SourceLocation, keys};

use crate::keys::DECIDING;

/// A copy of the scenario without keys that had no effect.
pub(crate) fn used_only(node: &TreeNode, at: &str, used: &BTreeSet<String>) -> TreeNode {
    let value = match &node.value {
        Value::Table(entries) => {
            let asked_for = |(key, value): &(String, TreeNode)| {
                let path = keys::path(at, key);
                used.contains(&path).then(|| (key.clone(), used_only(value, &path, used)))
            };
            Value::Table(entries.iter().filter_map(asked_for).collect())
        }
        Value::List(items) => {
            let item = |(index, item)| used_only(item, &keys::item_path(at, index, items.len()), used);
            Value::List(items.iter().enumerate().map(item).collect())
        }
        value => value.clone(),
    };
    TreeNode { place: node.place.clone(), value }
}

/// The first key that nobody asked for, and the values that made it meaningless.
pub(crate) fn unused(node: &TreeNode, at: &str, used: &BTreeSet<String>) -> Option<KeyError> {
    node.entries().iter().find_map(|(key, value)| {
        let path = keys::path(at, key);
        if !used.contains(&path) {
            let problem = || format!("has no effect{}", reasons(node));
            // Keys within such a key have no effect either, and are not listed.
            return (!is_overruled(node)).then(|| KeyError {
                place: value.place.clone(),
                key: path,
                problem: problem(),
            });
        }
        match &value.value {
            Value::Table(_) => unused(value, &path, used),
            Value::List(items) => {
                let item = |(index, item)| unused(item, &keys::item_path(&path, index, items.len()), used);
                items.iter().enumerate().find_map(item)
            }
            _ => None,
        }
    })
}

/// True if the command line decided the meaning of the rest of a table: then the file may have more keys than are needed.
fn is_overruled(table: &TreeNode) -> bool {
    let said = |(key, value): &(String, TreeNode)| {
        DECIDING.contains(&key.as_str()) && matches!(value.place, SourceLocation::Set(_))
    };
    table.entries().iter().any(said)
}

fn reasons(table: &TreeNode) -> String {
    let deciding = table.entries().iter().filter(|(key, _)| DECIDING.contains(&key.as_str()));
    let said: Vec<String> = deciding.map(|(key, value)| format!("{key} = {value}")).collect();
    if said.is_empty() { String::new() } else { format!(" with {}", said.join(", ")) }
}
