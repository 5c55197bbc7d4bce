//! Keys of a scenario: every key of every table, and the shape of its value.

use settings::KeyShape::{self, Names, One, OneOr, Pairs, Several, Table, Tables};
use settings::Keys;
use sim::net::transports;
use sim::protocols;

pub(crate) const SCENARIO: Keys = &[
    ("name", One),
    ("label", One),
    ("topology", Table(TOPOLOGY)),
    ("switch", Table(SWITCH)),
    ("host", Table(HOST)),
    ("link", Tables(&LINK)),
    ("blackhole", Tables(BLACKHOLE)),
    ("detour", Tables(DETOUR)),
    ("radar", Table(RADAR)),
    ("pl2", Table(PL2)),
    ("restart", Tables(RESTART)),
    ("dead", Tables(DEAD)),
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
    ("file", One),
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
    ("int", OneOr(INT)),
    ("repeat_naks", One),
    ("repeat_requested", One),
    ("repeat_naked", One),
];

const INT: Keys = &[("charge", One)];

const ECN: Keys = &[("min", One), ("max", One), ("probability", One), ("at", One), ("per", One), ("classes", Several)];

const PFC: Keys = &[("alpha", One), ("per_rate", One), ("headroom", One), ("hysteresis", One)];

const HOST: Keys = &[
    ("latency", One),
    ("sigma", One),
    ("deviation", One),
    ("handshake", One),
    ("fin", One),
    ("processor", Table(PROCESSOR)),
];

const PROCESSOR: Keys = &[("per_packet", One), ("per_call", One), ("per_burst", One), ("burst", One)];

/// Keys before those of link protocols, and behind them.
const LINK_BEGIN: Keys = &[
    ("between", Several),
    ("among", One),
    ("toward", One),
    ("rate", One),
    ("delay", One),
    ("loss", One),
    ("protect", One),
    ("int_rate", One),
];

const LINK_END: Keys = &[("forward", Tables(FAULT)), ("reverse", Tables(FAULT))];

const FAULT: Keys =
    &[("at", One), ("loss", One), ("burst", One), ("bit_errors", One), ("frames", Several), ("every", One)];

const BLACKHOLE: Keys = &[("switch", One), ("to", One), ("from", One), ("until", One), ("expected", One)];

const DETOUR: Keys = &[("switch", One), ("to", One), ("next", One), ("from", One), ("until", One)];

const RADAR: Keys = &[("batch", One), ("timeout", One), ("cells", One), ("clock_error", One), ("black_boxes", Names)];

const PL2: Keys = &[
    ("scheduler", One),
    ("k", One),
    ("t", One),
    ("drop_above", One),
    ("slot", One),
    ("unit", One),
    ("contexts", One),
    ("unsolicited", One),
    ("recent", One),
    ("timeout", One),
    ("ingress_share", One),
    ("horizon", One),
    ("resets", One),
    ("hosts", One),
    ("early", One),
    ("software", One),
    ("answer", One),
    ("answer_sigma", One),
];

const RESTART: Keys = &[("switch", One), ("at", One)];

const DEAD: Keys = &[("host", One), ("at", One)];

/// Keys before those of transports, and behind them.
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
    ("fct", One),
    ("load", One),
    ("fan_in", One),
    ("every", One),
    ("start", One),
    ("stop", One),
    ("file", One),
    ("pattern", One),
    ("algorithm", One),
    ("ranks", Names),
    ("placement", One),
    ("channels", One),
    ("pieces", One),
    ("iterations", One),
    ("compute", One),
    ("barrier", One),
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

const RUN: Keys = &[("profile", One), ("until", One), ("seeds", Several)];

const MEASURE: Keys = &[
    ("rtt", One),
    ("sample", One),
    ("watch", Pairs),
    ("pcap", Pairs),
    ("queues", One),
    ("iterations", One),
    ("transfers", One),
];

/// Keys that decide which others of their table have an effect.
pub(crate) const DECIDING: [&str; 7] = ["kind", "protect", "transport", "recovery", "congestion", "timers", "work"];
