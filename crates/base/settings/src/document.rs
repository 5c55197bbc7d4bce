//! Settings as data: read from JSON, for instance from a result that says which settings it came from.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::error::SourceLocation;
use super::tree::{self, TreeNode, Value};

/// The keys and values of a settings file, without their lines.
#[derive(Clone, Debug)]
pub struct SettingsDocument(pub TreeNode);

impl<'de> Deserialize<'de> for SettingsDocument {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyValue).map(Self)
    }
}

struct AnyValue;

fn node<E>(value: Value) -> Result<TreeNode, E> {
    Ok(TreeNode { place: SourceLocation::Line(1), value })
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = TreeNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of a scenario")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<TreeNode, E> {
        node(Value::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<TreeNode, E> {
        node(Value::Integer(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<TreeNode, E> {
        node(tree::number(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<TreeNode, E> {
        node(Value::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<TreeNode, E> {
        node(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<TreeNode, A::Error> {
        let mut list = Vec::new();
        while let Some(SettingsDocument(item)) = items.next_element()? {
            list.push(item);
        }
        node(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<TreeNode, A::Error> {
        let mut table: Vec<(String, TreeNode)> = Vec::new();
        while let Some((key, SettingsDocument(value))) = entries.next_entry::<String, SettingsDocument>()? {
            table.retain(|(name, _)| *name != key);
            table.push((key, value));
        }
        node(Value::Table(table))
    }
}
