//! Sweeps: a list where one value is expected is as many points.
//!
//! Several lists are all combinations of their values. Points come in the order of the file: the last list changes
//! fastest, as the last digit of a counter does.

use super::error::KeyError;
use super::keys::{self, Keys};
use super::tree::{TreeNode, Value};

/// More than anybody waits for; fewer than fill the memory.
const MOST_POINTS: usize = 1_000;

/// One list of a sweep.
#[derive(Debug)]
struct SweepAxis {
    /// Path of the list as `--set` names it.
    path: String,
    /// The last part of it, for labels.
    key: String,
    values: Vec<TreeNode>,
}

/// One combination of values.
#[derive(Debug)]
pub struct Combination {
    /// `protect=ordered loss=1e-3`; empty if there is no sweep.
    pub label: String,
    pub tree: TreeNode,
}

/// All points of a tree whose keys have been checked.
pub fn expand(root: &TreeNode, keys: Keys) -> Result<Vec<Combination>, KeyError> {
    let mut axes = Vec::new();
    find(root, keys, "", &mut axes)?;
    let points = axes.iter().try_fold(1usize, |points, axis| points.checked_mul(axis.values.len()));
    let points = points.filter(|points| *points <= MOST_POINTS).ok_or_else(|| KeyError {
        place: root.place.clone(),
        key: axes.iter().map(|axis| axis.path.as_str()).collect::<Vec<_>>().join(", "),
        problem: format!("expected at most {MOST_POINTS} points in a sweep"),
    })?;
    Ok((0..points).map(|number| combination(root, keys, &axes, number)).collect())
}

fn combination(root: &TreeNode, keys: Keys, axes: &[SweepAxis], number: usize) -> Combination {
    let mut left = number;
    let mut chosen: Vec<&TreeNode> = Vec::new();
    for axis in axes.iter().rev() {
        chosen.push(&axis.values[left % axis.values.len()]);
        left /= axis.values.len();
    }
    chosen.reverse();
    let label = axes.iter().zip(&chosen).map(|(axis, value)| format!("{}={value}", name(axis, axes)));
    let label = label.collect::<Vec<_>>().join(" ");
    let mut tree = root.clone();
    let mut values = chosen.into_iter();
    choose(&mut tree, keys, &mut values);
    Combination { label, tree }
}

/// The key alone, if no other list has the same.
fn name<'a>(axis: &'a SweepAxis, axes: &[SweepAxis]) -> &'a str {
    let alone = axes.iter().filter(|other| other.key == axis.key).count() == 1;
    if alone { &axis.key } else { &axis.path }
}

fn find(table: &TreeNode, keys: Keys, at: &str, axes: &mut Vec<SweepAxis>) -> Result<(), KeyError> {
    for (key, node) in table.entries() {
        let Some(shape) = keys::shape(keys, key) else { continue };
        let (at, inner) = (keys::path(at, key), shape.keys().unwrap_or_default());
        match &node.value {
            Value::List(values) if shape.is_sweep(values) => axes.push(axis(at, key, node, values)?),
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    find(item, inner, &keys::item_path(&at, index, items.len()), axes)?;
                }
            }
            _ => find(node, inner, &at, axes)?,
        }
    }
    Ok(())
}

fn axis(path: String, key: &str, node: &TreeNode, values: &[TreeNode]) -> Result<SweepAxis, KeyError> {
    let wrong = |problem: String| Err(KeyError { place: node.place.clone(), key: path.clone(), problem });
    let printed: Vec<String> = values.iter().map(TreeNode::to_string).collect();
    if values.is_empty() {
        return wrong("expected a value, or a list of at least one".to_owned());
    }
    if let Some((_, twice)) = printed.iter().enumerate().find(|(at, value)| printed[..*at].contains(value)) {
        return wrong(format!("'{twice}' is there twice"));
    }
    Ok(SweepAxis { path, key: key.to_owned(), values: values.to_vec() })
}

/// Puts the values in place of their lists, which it meets in the order in which they were found.
fn choose<'a>(table: &mut TreeNode, keys: Keys, values: &mut impl Iterator<Item = &'a TreeNode>) {
    let Value::Table(entries) = &mut table.value else { return };
    for (key, node) in entries {
        let Some(shape) = keys::shape(keys, key) else { continue };
        let inner = shape.keys().unwrap_or_default();
        match &mut node.value {
            Value::List(list) if shape.is_sweep(list) => {
                if let Some(value) = values.next() {
                    *node = value.clone();
                }
            }
            Value::List(items) => items.iter_mut().for_each(|item| choose(item, inner, values)),
            _ => choose(node, inner, values),
        }
    }
}
