//! What a scenario may say: every key of every table, and what shape its value has.
//!
//! The shape tells a value from a sweep: where one value is expected, a list of them is one point of the sweep each.

use units::nearest;

use super::error::KeyError;
use super::tree::{TreeNode, Value};
use crate::net::transports;
use crate::protocols;

pub(crate) type Keys = &'static [(&'static str, KeyShape)];

#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyShape {
    /// A text, a number or a flag.
    One,
    /// The same, or a table.
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

pub(super) const SCENARIO: Keys = &[
    ("name", One),
    ("label", One),
    ("topology", Table(TOPOLOGY)),
    ("switch", Table(SWITCH)),
    ("host", Table(HOST)),
    ("link", Tables(&LINK)),
    ("blackhole", Tables(BLACKHOLE)),
    ("detour", Tables(DETOUR)),
    ("radar", Table(RADAR)),
    ("traffic", Tables(&TRAFFIC)),
    ("run", Table(RUN)),
    ("measure", Table(MEASURE)),
];

const TOPOLOGY: Keys = &[
    ("kind", One),
    ("rate", One),
    ("delay", One),
    ("hosts", Names),
    ("switches", Names),
    ("pairs", One),
    ("bottleneck", One),
    ("leaves", One),
    ("spines", One),
    ("hosts_per_leaf", One),
    ("fabric", One),
    ("k", One),
    ("link", Tables(WIRE)),
];

const WIRE: Keys = &[("between", Several), ("rate", One), ("delay", One)];

const SWITCH: Keys = &[
    ("buffer", One),
    ("alpha", One),
    ("port_limit", One),
    ("latency", One),
    ("ecn", OneOr(ECN)),
    ("pfc", Table(PFC)),
    ("repeat_naks", One),
    ("repeat_naked", One),
];

const ECN: Keys = &[("min", One), ("max", One), ("probability", One)];

const PFC: Keys = &[("alpha", One), ("headroom", One), ("hysteresis", One)];

const HOST: Keys = &[("latency", One), ("sigma", One), ("handshake", One)];

/// Before those of protocols and behind them.
const LINK_BEGIN: Keys = &[
    ("between", Several),
    ("among", One),
    ("toward", One),
    ("rate", One),
    ("delay", One),
    ("loss", One),
    ("protect", One),
];

const LINK_END: Keys = &[("forward", Tables(FAULT)), ("reverse", Tables(FAULT))];

const FAULT: Keys = &[("at", One), ("loss", One), ("burst", One), ("bit_errors", One), ("frames", Several)];

const BLACKHOLE: Keys = &[("switch", One), ("to", One), ("from", One), ("until", One), ("expected", One)];

const DETOUR: Keys = &[("switch", One), ("to", One), ("next", One), ("from", One), ("until", One)];

const RADAR: Keys = &[("batch", One), ("timeout", One), ("cells", One), ("black_boxes", Names)];

/// Before those of transports and behind them.
const TRAFFIC_BEGIN: Keys = &[("name", One), ("transport", One)];

const TRAFFIC_END: Keys = &[
    ("class", One),
    ("work", One),
    ("from", Names),
    ("to", Names),
    ("matched", One),
    ("connections", One),
    ("size", One),
    ("count", One),
    ("gap", One),
    ("reply", One),
    ("load", One),
    ("fan_in", One),
    ("every", One),
    ("start", One),
    ("stop", One),
    ("file", One),
];

const LINK: [(&str, KeyShape); count(protocols::KEYS, &[LINK_BEGIN, LINK_END])] =
    joined(LINK_BEGIN, protocols::KEYS, LINK_END);

const TRAFFIC: [(&str, KeyShape); count(transports::KEYS, &[TRAFFIC_BEGIN, TRAFFIC_END])] =
    joined(TRAFFIC_BEGIN, transports::KEYS, TRAFFIC_END);

const fn count(lists: &[Keys], more: &[Keys]) -> usize {
    let (mut sum, mut at) = (0, 0);
    while at < lists.len() {
        sum += lists[at].len();
        at += 1;
    }
    if more.is_empty() { sum } else { sum + count(more, &[]) }
}

/// One list of several, in their order.
const fn joined<const N: usize>(begin: Keys, middle: &[Keys], end: Keys) -> [(&'static str, KeyShape); N] {
    let mut all = [("", One); N];
    let mut len = put(&mut all, 0, begin);
    let mut at = 0;
    while at < middle.len() {
        len = put(&mut all, len, middle[at]);
        at += 1;
    }
    put(&mut all, len, end);
    all
}

const fn put(all: &mut [(&'static str, KeyShape)], from: usize, keys: Keys) -> usize {
    let mut at = 0;
    while at < keys.len() {
        all[from + at] = keys[at];
        at += 1;
    }
    from + at
}

const RUN: Keys = &[("until", One), ("seeds", Several)];

const MEASURE: Keys = &[("sample", One), ("watch", Pairs), ("pcap", Pairs)];

/// Keys that decide which others of their table have an effect.
pub(super) const DECIDING: [&str; 6] = ["kind", "protect", "transport", "recovery", "timers", "work"];

impl KeyShape {
    /// Whether these are points of a sweep, not one value.
    pub(super) fn is_sweep(self, list: &[TreeNode]) -> bool {
        let first = list.first().map(|node| &node.value);
        match self {
            One | OneOr(_) => true,
            Names => !matches!(first, None | Some(Value::Text(_))),
            Several => matches!(first, Some(Value::List(_))),
            Pairs | Table(_) | Tables(_) => false,
        }
    }

    /// The keys of what is in it.
    pub(crate) fn keys(self) -> Option<Keys> {
        match self {
            OneOr(keys) | Table(keys) | Tables(keys) => Some(keys),
            One | Names | Several | Pairs => None,
        }
    }

    /// Whether a table may stand here, and whether a list of tables may.
    fn holds(self) -> (bool, bool) {
        (matches!(self, OneOr(_) | Table(_)), matches!(self, Tables(_)))
    }
}

pub(super) fn shape(keys: Keys, key: &str) -> Option<KeyShape> {
    keys.iter().find(|(name, _)| *name == key).map(|(_, shape)| *shape)
}

/// What to say of a key that there is not.
pub(super) fn unknown(keys: Keys, key: &str) -> String {
    let known = || keys.iter().map(|(name, _)| *name);
    match nearest(key, known()) {
        Some(nearest) => format!("no such key: did you mean '{nearest}'?"),
        None => format!("no such key: expected one of {}", known().collect::<Vec<_>>().join(", ")),
    }
}

/// What a table, or a table within, is called: as `--set` names it, with a number where there are several.
pub(super) fn path(parent: &str, key: &str) -> String {
    if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") }
}

pub(super) fn item_path(parent: &str, index: usize, of: usize) -> String {
    if of == 1 { parent.to_owned() } else { format!("{parent}.{index}") }
}

/// Sorts entries as they are listed here, so that the same scenario is always written the same way.
pub(super) fn sort(node: &mut TreeNode, keys: Keys) {
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

/// That every key is known, and that tables are where tables are expected.
pub(super) fn check(node: &TreeNode, keys: Keys, at: &str) -> Result<(), KeyError> {
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
