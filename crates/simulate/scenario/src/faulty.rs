//! `[[blackhole]]` and `[[detour]]`: what the tables of switches say that they should not.

use settings::{ReadResult, SettingsReader};
use sim::net::{FaultyAction, FaultyRule, LONGEST_SPAN};
use sim::topology::{NodeId, Topology};
use units::{Span, Time};

/// A switch that drops what is for a host.
pub(crate) fn blackhole(table: &SettingsReader<'_>, topology: &Topology) -> ReadResult<FaultyRule> {
    let expected = table.flag("expected")?.unwrap_or(false);
    rule(table, topology, if expected { FaultyAction::Filter } else { FaultyAction::Drop })
}

/// A switch that sends what is for a host somewhere else.
pub(crate) fn detour(table: &SettingsReader<'_>, topology: &Topology) -> ReadResult<FaultyRule> {
    let name = |key| table.needed(key, table.text(key)?, "the name of a switch");
    let (switch, next) = (name("switch")?, name("next")?);
    let port = topology.link_between(&switch, &next).map_err(|error| table.wrong("next", error))?;
    if topology.is_host(topology.to(port)) {
        return Err(table.wrong("next", format_args!("'{next}' is a host: expected a switch")));
    }
    rule(table, topology, FaultyAction::Send(port))
}

fn rule(table: &SettingsReader<'_>, topology: &Topology, action: FaultyAction) -> ReadResult<FaultyRule> {
    let switch = node(table, "switch", topology, false)?;
    let to = node(table, "to", topology, true)?;
    let time = |key| Ok(table.span(key, Span::ZERO..=LONGEST_SPAN)?.map(|span| Time::ZERO + span));
    let (from, until) = (time("from")?.unwrap_or(Time::ZERO), time("until")?.unwrap_or(Time::NEVER));
    if until <= from {
        return Err(table.wrong("until", "expected later than from"));
    }
    Ok(FaultyRule { switch, to, from, until, action })
}

/// A host or a switch, by name.
pub(crate) fn node(table: &SettingsReader<'_>, key: &str, topology: &Topology, is_host: bool) -> ReadResult<NodeId> {
    let expected = if is_host { "a host" } else { "a switch" };
    let name = table.needed(key, table.text(key)?, &format!("the name of {expected}"))?;
    let node = topology.node(&name).map_err(|error| table.wrong(key, error))?;
    if topology.is_host(node) != is_host {
        let is = if is_host { "a switch" } else { "a host" };
        return Err(table.wrong(key, format_args!("'{name}' is {is}: expected {expected}")));
    }
    Ok(node)
}
