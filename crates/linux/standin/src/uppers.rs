//! Users of the interface that is to be protected, which would be cut off: the bridge or bond that it is part of, VLANs and
//! the like on top of it; with its addresses gone, also policy rules and neighbours that name it.
//!
//! The stand-in takes its place where that is the same thing: as the port of a bridge, for rules, for neighbours that somebody
//! wrote down. Everything else is refused, with what to do instead, before anything is changed: half a take-over would be a
//! host that has lost a network without anybody saying so.

use std::net::IpAddr;

use super::notes::InterfaceChange;
use super::{LinkEnds, StandIn, StandInConfig, SystemError, is_link_local};
use linux::net::{self, InterfaceInfo, Netlink, PolicyRule, PortSetting};

/// The least MTU of an interface that speaks IPv6 (RFC 8200 §5). The kernel takes IPv6 off one that has less.
const LEAST_FOR_IPV6: u32 = 1_280;

/// Refuses an interface that others depend on in a way that a stand-in cannot serve. `mtu` is what the stand-in will have.
pub(crate) fn check(
    netlink: &Netlink,
    config: &StandInConfig,
    wire: &InterfaceInfo,
    mtu: u32,
) -> Result<(), SystemError> {
    check_relatives(config, &netlink.links()?, wire, mtu)?;
    check_ipv6(netlink, config, wire, mtu)
}

/// Checks the interfaces above and beside it, of all interfaces there are.
fn check_relatives(
    config: &StandInConfig,
    links: &[InterfaceInfo],
    wire: &InterfaceInfo,
    mtu: u32,
) -> Result<(), SystemError> {
    let named = |link: &InterfaceInfo| match &link.kind {
        Some(kind) => format!("{} ({kind})", link.name),
        None => link.name.clone(),
    };
    // The other end of a veth is no upper of it.
    let is_upper = |link: &&InterfaceInfo| link.lower == Some(wire.index) && link.kind.as_deref() != Some("veth");
    let uppers: Vec<String> = links.iter().filter(is_upper).map(named).collect();
    let (interface, name) = (&config.interface, &config.name);
    if !uppers.is_empty() {
        return Err(SystemError(format!(
            "{interface} carries {}, which would be cut off; delete it, protect {interface}, then make it anew on {name} \
             (`ip link add link {name} ...`)",
            uppers.join(", ")
        )));
    }
    let Some(master) = wire.master else { return Ok(()) };
    let Some(master) = links.iter().find(|link| link.index == master) else {
        return Err(SystemError(format!(
            "{interface} is part of an interface of another namespace; take it out of there"
        )));
    };
    if master.kind.as_deref() != Some("bridge") {
        return Err(SystemError(format!(
            "{interface} is part of {}, which would be cut off; `ip link set dev {interface} nomaster`, protect \
             {interface}, then `ip link set dev {name} master {}`",
            named(master),
            master.name
        )));
    }
    check_port(config, links, wire, master, mtu)
}

fn check_port(
    config: &StandInConfig,
    links: &[InterfaceInfo],
    wire: &InterfaceInfo,
    bridge: &InterfaceInfo,
    mtu: u32,
) -> Result<(), SystemError> {
    let (interface, name, bridge_name) = (&config.interface, &config.name, &bridge.name);
    if !config.take_over {
        return Err(SystemError(format!(
            "{interface} is a port of the bridge {bridge_name}, which would be cut off; --take-over makes {name} the port \
             instead"
        )));
    }
    if bridge.filters_vlans {
        return Err(SystemError(format!(
            "{interface} is a port of the bridge {bridge_name}, which filters VLANs: hitless does not carry those of a port \
             over; `ip link set dev {interface} nomaster`, protect {interface}, then make {name} the port and give it its VLANs \
             (`bridge vlan add dev {name} ...`)"
        )));
    }
    let others = links.iter().filter(|link| link.master == Some(bridge.index) && link.index != wire.index);
    // The longest packets that pass the bridge today.
    let needed = others.map(|port| port.mtu.min(wire.mtu)).max().unwrap_or(0);
    if mtu < needed {
        let wanted = needed + (wire.mtu.saturating_sub(mtu));
        return Err(SystemError(format!(
            "{name} would have MTU {mtu} and drop what the other ports of {bridge_name} send, which have {needed}; \
             `ip link set dev {interface} mtu {wanted}` at both ends first"
        )));
    }
    Ok(())
}

/// Addresses that the kernel would not put on the stand-in.
fn check_ipv6(netlink: &Netlink, config: &StandInConfig, wire: &InterfaceInfo, mtu: u32) -> Result<(), SystemError> {
    if mtu >= LEAST_FOR_IPV6 || !config.take_over {
        return Ok(());
    }
    let addresses = netlink.addresses(wire.index)?;
    match addresses.iter().find(|address| address.ip().is_ipv6() && !is_link_local(address)) {
        None => Ok(()),
        Some(address) => Err(SystemError(format!(
            "{} has the address {}, and {} would have MTU {mtu}, less than the {LEAST_FOR_IPV6} that IPv6 needs; {}",
            config.interface,
            address.ip(),
            config.name,
            larger_mtu(config, wire.mtu, mtu)
        ))),
    }
}

fn larger_mtu(config: &StandInConfig, wire: u32, mtu: u32) -> String {
    match config.mtu {
        Some(_) => format!("use --mtu {LEAST_FOR_IPV6} or more"),
        None => format!("`ip link set dev {} mtu {}` at both ends", config.interface, LEAST_FOR_IPV6 + (wire - mtu)),
    }
}

impl StandIn {
    /// Says what a small MTU means for IPv6.
    pub(super) fn remark_on_ipv6(&mut self, config: &StandInConfig) {
        if self.mtu < LEAST_FOR_IPV6 {
            self.remarks.push(format!(
                "{} has MTU {}, less than the {LEAST_FOR_IPV6} that IPv6 needs: there is no IPv6 over it; {}",
                self.name,
                self.mtu,
                larger_mtu(config, self.wire_mtu, self.mtu)
            ));
        }
    }

    /// Takes the interface out of its bridge, if it is in one. Not both at once: the bridge would be a loop.
    pub(super) fn leave_bridge(&mut self) -> Result<(), SystemError> {
        let wire = self.netlink.existing(self.wire_index)?;
        let Some(bridge) = wire.master else { return Ok(()) };
        let settings = self.netlink.port_settings(self.wire_index)?;
        let bridge = self.netlink.links()?.into_iter().find(|link| link.index == bridge);
        let Some(bridge) = bridge else { return Err(SystemError(format!("the bridge of {} is gone", wire.name))) };
        let (from, to) = (wire.name, self.name.clone());
        self.note(InterfaceChange::MovedPort { from, to, bridge: bridge.name, settings, done: false })?;
        Ok(self.netlink.set_master(self.wire_index, None)?)
    }

    /// Makes the stand-in the port that is noted, unless it is that already or somebody has given it another place since.
    pub(super) fn become_port(&mut self) -> Result<(), SystemError> {
        let noted = self.notes.changes.iter().find(|change| matches!(change, InterfaceChange::MovedPort { .. }));
        let Some(InterfaceChange::MovedPort { from, to, bridge, settings, done }) = noted.cloned() else {
            return Ok(());
        };
        let Some(place) = self.netlink.link(&bridge)? else { return Ok(()) };
        let master = self.netlink.existing(self.index)?.master;
        if master.is_some_and(|master| done || master != place.index) {
            return Ok(());
        }
        self.netlink.make_port(self.index, place.index, &settings)?;
        self.remarks.push(format!("{to} is the port of {bridge} instead of {from}"));
        self.note(InterfaceChange::MovedPort { from, to, bridge, settings, done: true })
    }

    /// Rules go by names: they stay even if the stand-in has to be made anew. Where it gets the interface's name they mean it.
    pub(super) fn copy_rules(&mut self) -> Result<(), SystemError> {
        let noted = self.notes.changes.iter().find_map(|change| match change {
            InterfaceChange::CopiedRules { rules, done } => Some((rules.clone(), *done)),
            _ => None,
        });
        let rules = match noted {
            Some((_, true)) => return Ok(()),
            Some((rules, false)) => rules,
            None => {
                // Rules name the interface as it is called, whatever name the daemon was given.
                let interface = self.netlink.existing(self.wire_index)?.name;
                let rules = self.netlink.rules_renamed(&interface, &self.name)?;
                rules.iter().map(|rule| rule.as_bytes().to_vec()).collect()
            }
        };
        if rules.is_empty() {
            return Ok(());
        }
        self.note(InterfaceChange::CopiedRules { rules: rules.clone(), done: false })?;
        parsed(&rules).try_for_each(|rule| self.netlink.add_rule(&rule))?;
        self.note(InterfaceChange::CopiedRules { rules, done: true })
    }

    /// Noted, because an interface forgets them all when its last address is taken away. A stand-in that has none lost them,
    /// or was made anew; one that has some may have better ones by now.
    pub(super) fn copy_neighbours(&mut self, config: &StandInConfig) -> Result<(), SystemError> {
        let noted = self.notes.changes.iter().find_map(|change| match change {
            InterfaceChange::CopiedNeighbours { neighbours, done, .. } => Some((neighbours.clone(), *done)),
            _ => None,
        });
        let neighbours = match noted {
            Some((_, true)) if !self.netlink.static_neighbours(self.index)?.is_empty() => return Ok(()),
            Some((neighbours, _)) => neighbours,
            None => self.netlink.static_neighbours(self.wire_index)?,
        };
        if neighbours.is_empty() {
            return Ok(());
        }
        let interface = &config.interface;
        let change = |done| InterfaceChange::CopiedNeighbours {
            interface: interface.clone(),
            neighbours: neighbours.clone(),
            done,
        };
        self.note(change(false))?;
        neighbours.iter().try_for_each(|(ip, mac)| self.netlink.add_neighbour(self.index, *ip, *mac))?;
        self.note(change(true))
    }
}

/// Gives the interface its neighbours again.
pub(crate) fn return_neighbours(
    netlink: &Netlink,
    ends: &LinkEnds,
    neighbours: &[(IpAddr, [u8; 6])],
) -> net::Result<()> {
    let Some(wire) = ends.wire(netlink)? else { return Ok(()) };
    neighbours.iter().try_for_each(|(ip, mac)| netlink.add_neighbour(wire.index, *ip, *mac))
}

/// Puts a port back, with its settings, unless it has another place by now or its bridge is gone.
pub(crate) fn return_port(
    netlink: &Netlink,
    ends: &LinkEnds,
    bridge: &str,
    settings: &[PortSetting],
) -> net::Result<()> {
    let (Some(from), Some(bridge)) = (ends.wire(netlink)?, netlink.link(bridge)?) else { return Ok(()) };
    if let Some(to) = ends.stand_in(netlink)?.filter(|to| to.master == Some(bridge.index)) {
        netlink.set_master(to.index, None)?;
    }
    match from.master {
        // Somebody has given it another place since.
        Some(other) if other != bridge.index => Ok(()),
        // It may have its place and not yet all of its settings: an earlier daemon was killed in between.
        _ => netlink.make_port(from.index, bridge.index, settings),
    }
}

pub(crate) fn delete_rules(netlink: &Netlink, rules: &[Vec<u8>]) -> net::Result<()> {
    parsed(rules).try_for_each(|rule| netlink.delete_rule(&rule))
}

/// Rules as they were noted.
fn parsed(rules: &[Vec<u8>]) -> impl Iterator<Item = PolicyRule> {
    rules.iter().cloned().filter_map(PolicyRule::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str, kind: Option<&str>) -> InterfaceInfo {
        InterfaceInfo {
            index,
            name: name.to_owned(),
            altnames: Vec::new(),
            mac: [2, 0, 0, 0, 0, index as u8],
            mtu: 1_500,
            min_mtu: None,
            max_mtu: None,
            up: true,
            carrier: true,
            running: true,
            alias: None,
            kind: kind.map(str::to_owned),
            num_rx_queues: 1,
            master: None,
            lower: None,
            filters_vlans: false,
            group: 0,
            has_xdp: false,
        }
    }

    fn refusal(config: &StandInConfig, links: &[InterfaceInfo]) -> String {
        check_relatives(config, links, &links[0], 1_444).map_or_else(|trouble| trouble.0, |()| String::new())
    }

    #[test]
    fn members_of_bonds_teams_and_vrfs_are_refused_with_what_to_do() {
        for kind in ["bond", "team", "vrf", "openvswitch"] {
            let wire = InterfaceInfo { master: Some(9), ..link(2, "eth1", None) };
            let taking_over = StandInConfig { take_over: true, ..StandInConfig::new("eth1") };
            for config in [StandInConfig::new("eth1"), taking_over] {
                let said = refusal(&config, &[wire.clone(), link(9, "up0", Some(kind))]);
                assert!(said.contains(&format!("eth1 is part of up0 ({kind})")), "{said}");
                assert!(said.contains("`ip link set dev hit0 master up0`"), "{said}");
            }
        }
    }

    #[test]
    fn parents_of_vlans_macvlans_ipvlans_and_tunnels_are_refused_with_what_to_do() {
        for kind in ["vlan", "macvlan", "macvtap", "ipvlan", "macsec", "gre", "vxlan"] {
            let upper = InterfaceInfo { lower: Some(2), ..link(9, "eth1.5", Some(kind)) };
            let said = refusal(&StandInConfig::new("eth1"), &[link(2, "eth1", None), upper]);
            assert!(said.contains(&format!("eth1 carries eth1.5 ({kind})")), "{said}");
            assert!(said.contains("`ip link add link hit0 ...`"), "{said}");
        }
    }

    #[test]
    fn the_other_end_of_a_veth_is_no_upper() {
        let ends = [
            InterfaceInfo { lower: Some(3), ..link(2, "w0", Some("veth")) },
            InterfaceInfo { lower: Some(2), ..link(3, "x0", Some("veth")) },
        ];
        assert_eq!(refusal(&StandInConfig::new("w0"), &ends), "");
    }

    #[test]
    fn a_port_is_taken_over_only_where_the_bridge_goes_on_as_before() {
        let wire = InterfaceInfo { master: Some(9), ..link(2, "eth1", None) };
        let bridge = link(9, "br0", Some("bridge"));
        let small = InterfaceInfo { master: Some(9), mtu: 1_400, ..link(3, "guest", Some("tun")) };
        let taking_over = StandInConfig { take_over: true, ..StandInConfig::new("eth1") };
        assert_eq!(refusal(&taking_over, &[wire.clone(), bridge.clone(), small.clone()]), "");
        let said = refusal(&StandInConfig::new("eth1"), &[wire.clone(), bridge.clone(), small.clone()]);
        assert!(said.contains("--take-over makes hit0 the port instead"), "{said}");
        let filtering = InterfaceInfo { filters_vlans: true, ..bridge.clone() };
        let said = refusal(&taking_over, &[wire.clone(), filtering, small.clone()]);
        assert!(said.contains("filters VLANs") && said.contains("bridge vlan add dev hit0"), "{said}");
        let said = refusal(&taking_over, &[wire, bridge, InterfaceInfo { mtu: 9_000, ..small }]);
        assert!(said.contains("`ip link set dev eth1 mtu 1556` at both ends"), "{said}");
    }
}
