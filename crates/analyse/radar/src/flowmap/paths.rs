//! Loops and blackholes that last no longer than a slot: li-thesis §4.6.1.

use std::collections::BTreeSet;

use crate::flowset::FlowKey;

use super::{FlowmapThresholds, SlotView, SwitchCounts, SwitchPath};

/// A flow that went round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardingLoop {
    pub flow: FlowKey,
    /// The switches of the cycle, by number.
    pub switches: Vec<usize>,
    /// They had more packets than switches outside. If not, the flow may have changed its path within the slot.
    pub is_confirmed: bool,
}

/// A flow that ended where it should not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blackhole {
    pub flow: FlowKey,
    /// The last switch that saw it, or all of it, and the one that did not.
    pub after: usize,
    pub before: usize,
    /// Packets at both, where they are known.
    pub packets: [Option<u32>; 2],
}

/// Flows whose switches form a cycle, in a network in which each switch has these neighbours.
pub fn loops(
    slot: &SlotView,
    neighbours: &[Vec<usize>],
    route: SwitchPath<'_>,
    thresholds: &FlowmapThresholds,
) -> Vec<ForwardingLoop> {
    let of_flow = |(flow, seen): (&FlowKey, &SwitchCounts)| {
        let pair = || to_and_fro(seen, neighbours, &route(flow), thresholds);
        let (switches, is_confirmed) = cycle(seen, neighbours).or_else(pair)?;
        Some(ForwardingLoop { flow: *flow, switches, is_confirmed })
    };
    slot.flows().filter_map(of_flow).collect()
}

/// Switches that are left when those with fewer than two neighbours among them have gone; a path leaves none.
fn cycle(seen: &SwitchCounts, neighbours: &[Vec<usize>]) -> Option<(Vec<usize>, bool)> {
    let mut left: BTreeSet<usize> = seen.keys().copied().collect();
    loop {
        let links =
            |switch: &usize| neighbours.get(*switch).into_iter().flatten().filter(|next| left.contains(next)).count();
        let ends: Vec<usize> = left.iter().copied().filter(|switch| links(switch) < 2).collect();
        if ends.is_empty() {
            break;
        }
        ends.iter().for_each(|switch| _ = left.remove(switch));
    }
    let most = |is_inside: bool| {
        let side = seen.iter().filter(|(switch, _)| left.contains(*switch) == is_inside);
        side.filter_map(|(_, packets)| *packets).max()
    };
    let is_confirmed = most(false).is_some_and(|outside| most(true) > Some(outside));
    (!left.is_empty()).then(|| (left.iter().copied().collect(), is_confirmed))
}

/// Two neighbours that both have many more packets than came to them. Switches behind them say nothing: they have fewer, too, if
/// packets are lost. Where the route is not known, any other switch may be before them.
fn to_and_fro(
    seen: &SwitchCounts,
    neighbours: &[Vec<usize>],
    route: &[usize],
    thresholds: &FlowmapThresholds,
) -> Option<(Vec<usize>, bool)> {
    let counted = |(switch, packets): (&usize, &Option<u32>)| Some(((*packets)?, *switch));
    let mut by_packets: Vec<(u32, usize)> = seen.iter().filter_map(counted).collect();
    by_packets.sort_unstable_by(|one, two| two.cmp(one));
    let [(_, one), (inside, two), ref others @ ..] = by_packets[..] else { return None };
    let before = route.split(|switch| *switch == one || *switch == two).next().unwrap_or_default();
    let is_outside = |switch: usize| route.is_empty() || before.contains(&switch);
    let (outside, _) = others.iter().find(|(_, switch)| is_outside(*switch))?;
    let are_neighbours = neighbours.get(one).is_some_and(|list| list.contains(&two));
    let many = f64::from(inside) >= thresholds.loop_factor * f64::from((*outside).max(1));
    (are_neighbours && many).then(|| (vec![one.min(two), one.max(two)], true))
}

/// Flows that stopped on their way, or most of whose packets did.
pub fn blackholes(slot: &SlotView, route: SwitchPath<'_>, thresholds: &FlowmapThresholds) -> Vec<Blackhole> {
    slot.flows().filter_map(|(flow, seen)| blackhole(flow, seen, &route(flow), thresholds)).collect()
}

fn blackhole(
    flow: &FlowKey,
    seen: &SwitchCounts,
    route: &[usize],
    thresholds: &FlowmapThresholds,
) -> Option<Blackhole> {
    let last = route.iter().rposition(|switch| seen.contains_key(switch))?;
    let found = |at: usize| {
        let [after, before] = [route[at], route[at + 1]];
        let packets = [after, before].map(|switch| seen.get(&switch).copied().flatten());
        Blackhole { flow: *flow, after, before, packets }
    };
    if last + 1 < route.len() {
        return Some(found(last));
    }
    let falls = |hole: &Blackhole| match hole.packets {
        [Some(above), Some(below)] => {
            let lost = f64::from(above.saturating_sub(below));
            above >= thresholds.blackhole_packets && lost >= thresholds.blackhole_share * f64::from(above)
        }
        _ => false,
    };
    (0..last).map(found).find(falls)
}
