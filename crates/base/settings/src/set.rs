//! `--set key=value`: what the command line says instead of the file.
//!
//! A key is a path such as `run.until`, `link.forward.loss` or, where there are several tables, `traffic.1.size`. A
//! value needs no quotes; commas make a list; anything in brackets or braces is TOML.

use super::error::{KeyError, SourceLocation};
use super::keys::{self, KeyShape, Keys};
use super::tree::{TreeNode, Value};

/// Puts what one `--set` says into the tree.
pub fn apply(root: &mut TreeNode, keys: Keys, argument: &str) -> Result<(), KeyError> {
    let place = SourceLocation::Set(argument.to_owned());
    let wrong = |problem: String| KeyError { place: place.clone(), key: String::new(), problem };
    let (key, value) = argument
        .split_once('=')
        .ok_or_else(|| wrong("expected a key and a value such as traffic.size=143".to_owned()))?;
    let path: Vec<&str> = key.trim().split('.').collect();
    put(root, keys, &path, value_of(value.trim(), &place), "").map_err(wrong)
}

fn value_of(text: &str, place: &SourceLocation) -> TreeNode {
    if text.starts_with(['[', '{', '"'])
        && let Some(node) = TreeNode::parse_value(text, place)
    {
        return node;
    }
    let mut parts: Vec<TreeNode> = text.split(',').map(|part| plain(part.trim(), place)).collect();
    match parts.len() {
        1 => parts.remove(0),
        _ => TreeNode { place: place.clone(), value: Value::List(parts) },
    }
}

/// A number or a flag if it looks like one, or else a text.
fn plain(text: &str, place: &SourceLocation) -> TreeNode {
    let text_itself = || TreeNode { place: place.clone(), value: Value::Text(text.to_owned()) };
    match TreeNode::parse_value(text, place) {
        Some(node) if matches!(node.value, Value::Integer(_) | Value::Flag(_)) => node,
        _ => text_itself(),
    }
}

fn put(table: &mut TreeNode, keys: Keys, path: &[&str], value: TreeNode, at: &str) -> Result<(), String> {
    let [key, rest @ ..] = path else { return Err(format!("expected a key of {at}")) };
    let at = keys::path(at, key);
    let shape = keys::shape(keys, key).ok_or_else(|| format!("{at}: {}", keys::unknown(keys, key)))?;
    let entry = slot(table, key, &value.place)?;
    if rest.is_empty() {
        *entry = value;
        return Ok(());
    }
    let inner = shape.keys().ok_or_else(|| format!("{at}: expected nothing behind it"))?;
    if let KeyShape::Tables(_) = shape {
        let (item, rest, at) = item(entry, rest, &at)?;
        return put(item, inner, rest, value, &at);
    }
    put(entry, inner, rest, value, &at)
}

/// The entry of this key, a new empty table if there is none yet.
fn slot<'a>(table: &'a mut TreeNode, key: &str, place: &SourceLocation) -> Result<&'a mut TreeNode, String> {
    let Value::Table(entries) = &mut table.value else { return Err("expected a table to put it in".to_owned()) };
    let index = entries.iter().position(|(name, _)| name == key).unwrap_or(entries.len());
    if index == entries.len() {
        entries.push((key.to_owned(), TreeNode { place: place.clone(), value: Value::Table(Vec::new()) }));
    }
    Ok(&mut entries[index].1)
}

/// The table meant by the first part of a path, the rest of the path, and what the table is called.
fn item<'a, 'b>(
    list: &'a mut TreeNode,
    path: &'b [&'b str],
    at: &str,
) -> Result<(&'a mut TreeNode, &'b [&'b str], String), String> {
    let Value::List(items) = &mut list.value else { return Err(format!("{at}: the file has no [[{at}]]")) };
    let all = items.len();
    let (index, rest) = match path.split_first().and_then(|(first, rest)| Some((first.parse::<usize>().ok()?, rest))) {
        Some(numbered) => numbered,
        None if all == 1 => (0, path),
        None => {
            return Err(format!("{at}: there are {all} of them: expected {at}.0 to {at}.{}", all.saturating_sub(1)));
        }
    };
    match items.get_mut(index) {
        Some(item) => Ok((item, rest, keys::item_path(at, index, all))),
        None => Err(format!("{at}.{index}: expected {at}.0 to {at}.{}", all.saturating_sub(1))),
    }
}
