//! What a scenario may say: every key of every table, and what shape its value has.
//!
//! The shape tells a value from a sweep: where one value is expected, a list of them is one point of the sweep each.

use units::nearest;

use super::error::Wrong;
use super::tree::{Node, Value};

pub(super) type Keys = &'static [(&'static str, Shape)];

#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
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

use Shape::{Names, One, OneOr, Pairs, Several, Table, Tables};

pub(super) const SCENARIO: Keys = &[
    ("name", One),
    ("label", One),
    ("topology", Table(TOPOLOGY)),
    ("switch", Table(SWITCH)),
    ("host", Table(HOST)),
    ("link", Tables(LINK)),
    ("blackhole", Tables(BLACKHOLE)),
    ("detour", Tables(DETOUR)),
    ("radar", Table(RADAR)),
    ("traffic", Tables(TRAFFIC)),
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

const LINK: Keys = &[
    ("between", Several),
    ("among", One),
    ("toward", One),
    ("rate", One),
    ("delay", One),
    ("loss", One),
    ("protect", One),
    ("profile", One),
    ("protect_reverse", One),
    ("target_loss", One),
    ("copies", One),
    ("control_copies", One),
    ("dummy_copies", One),
    ("asks", One),
    ("backpressure", One),
    ("reorder", One),
    ("paper_acks", One),
    ("endless_dummies", One),
    ("tail", One),
    ("max_consecutive", One),
    ("activate_at", One),
    ("k", One),
    ("h", One),
    ("ordered", One),
    ("forward", Tables(FAULT)),
    ("reverse", Tables(FAULT)),
];

const FAULT: Keys = &[("at", One), ("loss", One), ("burst", One), ("bit_errors", One), ("frames", Several)];

const BLACKHOLE: Keys = &[("switch", One), ("to", One), ("from", One), ("until", One), ("expected", One)];

const DETOUR: Keys = &[("switch", One), ("to", One), ("next", One), ("from", One), ("until", One)];

const RADAR: Keys = &[("batch", One), ("timeout", One), ("cells", One), ("black_boxes", Names)];

const TRAFFIC: Keys = &[
    ("name", One),
    ("transport", One),
    ("timers", One),
    ("hz", One),
    ("rto_min", One),
    ("max_ack_delay", One),
    ("mss", One),
    ("initial_window", One),
    ("receive_buffer", One),
    ("ecn", One),
    ("reordering", One),
    ("idle_restart", One),
    ("mtu", One),
    ("timeout", One),
    ("retries", One),
    ("ack_every", One),
    ("outstanding", One),
    ("naks", One),
    ("obey", One),
    ("dummies", One),
    ("dummies_after", One),
    ("tail_copies", One),
    ("queue_pairs", One),
    ("recovery", One),
    ("timeout_low", One),
    ("pool", One),
    ("block", One),
    ("payload", One),
    ("rate", One),
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

const RUN: Keys = &[("until", One), ("seeds", Several)];

const MEASURE: Keys = &[("sample", One), ("watch", Pairs), ("pcap", Pairs)];

/// Keys that decide which others of their table have an effect.
pub(super) const DECIDING: [&str; 6] = ["kind", "protect", "transport", "recovery", "timers", "work"];

impl Shape {
    /// Whether these are points of a sweep, not one value.
    pub fn is_sweep(self, list: &[Node]) -> bool {
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

    /// Whether a table may stand here, and whether a list of tables may.
    fn holds(self) -> (bool, bool) {
        (matches!(self, OneOr(_) | Table(_)), matches!(self, Tables(_)))
    }
}

pub(super) fn shape(keys: Keys, key: &str) -> Option<Shape> {
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
pub(super) fn sort(node: &mut Node, keys: Keys) {
    match &mut node.value {
        Value::Table(entries) => {
            entries.sort_by_key(|(key, _)| keys.iter().position(|(name, _)| name == key));
            for (key, value) in entries {
                sort(value, shape(keys, key).and_then(Shape::keys).unwrap_or_default());
            }
        }
        Value::List(items) => items.iter_mut().for_each(|item| sort(item, keys)),
        _ => {}
    }
}

/// That every key is known, and that tables are where tables are expected.
pub(super) fn check(node: &Node, keys: Keys, at: &str) -> Result<(), Wrong> {
    for (key, value) in node.entries() {
        let at = path(at, key);
        let wrong = |problem| Wrong { place: value.place.clone(), key: at.clone(), problem };
        let shape = shape(keys, key).ok_or_else(|| wrong(unknown(keys, key)))?;
        check_value(value, shape, &at)?;
    }
    Ok(())
}

fn check_value(node: &Node, shape: Shape, at: &str) -> Result<(), Wrong> {
    let wrong = |problem: String| Wrong { place: node.place.clone(), key: at.to_owned(), problem };
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
