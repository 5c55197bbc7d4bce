//! Flows off their way: a hop that brings them no nearer to their destination, or a port that their route does not name.
//!
//! Where hosts are is learnt: the address that sends comes in at a port that leads out of the fabric, and the address that receives
//! is reached by such a port. An address that is seen at two switches has no place.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::{AccusedFlows, RuleInput};
use crate::fabricmap::findings::{FindingEvidence, FindingKind, FindingLog};
use crate::fabricmap::picture::{IN, OUT, PortPicture};
use crate::fabricmap::routes::PortRoutes;
use crate::flowset::FlowKey;

/// Addresses whose places are known.
const MOST: usize = 65_536;
/// Packets in a slot that make it sure.
const SURE: u64 = 2;

#[derive(Debug)]
pub(super) struct DetourRule {
    routes: Option<PortRoutes>,
    /// Switch of each host; `None` for an address at several.
    hosts: BTreeMap<IpAddr, Option<usize>>,
}

impl DetourRule {
    pub(super) fn new(routes: Option<PortRoutes>) -> Self {
        Self { routes, hosts: BTreeMap::new() }
    }

    pub(super) fn on_slot(&mut self, input: &RuleInput<'_>, looping: &AccusedFlows, log: &mut FindingLog) {
        let switches = input.picture.switches.iter().enumerate();
        let switches: Vec<_> = switches.filter_map(|(number, switch)| Some((number, switch.as_ref()?))).collect();
        for (number, switch) in &switches {
            switch.ports.iter().filter(|port| port.link.is_none()).for_each(|port| self.learn(*number, port));
        }
        for (number, switch) in switches {
            for port in switch.ports.iter().filter(|port| port.link.is_some()) {
                let found = self.off_route(input, number, port, looping);
                if found.is_empty() {
                    continue;
                }
                let by_port = self.routes.is_some();
                let place = match port.link.filter(|_| by_port) {
                    Some(end) => input.fabric.port_name(end),
                    None => input.fabric.switches()[number].clone(),
                };
                log.note(FindingEvidence {
                    kind: FindingKind::OffRoute,
                    place: vec![place],
                    why: if by_port { "routes" } else { "shortest-path" },
                    is_sure: found.iter().map(|(_, packets)| packets).sum::<u64>() >= SURE,
                    since: input.begin,
                    until: input.end,
                    flows: found,
                });
            }
        }
    }

    fn learn(&mut self, switch: usize, port: &PortPicture) {
        let came = port.ways[IN].flows.iter().map(|count| count.flow.flow().src);
        let left = port.ways[OUT].flows.iter().map(|count| count.flow.flow().dst);
        for address in came.chain(left) {
            let is_full = self.hosts.len() >= MOST;
            match self.hosts.get_mut(&address) {
                Some(known) if *known != Some(switch) => *known = None,
                Some(_) => {}
                None if is_full => {}
                None => _ = self.hosts.insert(address, Some(switch)),
            }
        }
    }

    /// Flows that leave by a port and should not.
    fn off_route(
        &self,
        input: &RuleInput<'_>,
        switch: usize,
        port: &PortPicture,
        looping: &AccusedFlows,
    ) -> Vec<(FlowKey, u64)> {
        let Some((link, end)) = port.link else { return Vec::new() };
        let next = input.fabric.switch_of((link, 1 - end));
        let name = &input.fabric.links()[link].ends[end].port;
        let is_off = |flow: &FlowKey| {
            let of = flow.flow();
            match &self.routes {
                Some(routes) => routes.ports(switch, of.dst).is_some_and(|ports| !ports.contains(name)),
                None => {
                    let Some(to) = self.hosts.get(&of.dst).copied().flatten() else { return false };
                    input.fabric.hops(switch, to).zip(input.fabric.hops(next, to)).is_some_and(|(here, on)| on >= here)
                }
            }
        };
        let flows = port.ways[OUT].flows.iter().filter(|count| !looping.contains(&count.flow) && is_off(&count.flow));
        flows.map(|count| (count.flow, count.packets.unwrap_or(1).into())).collect()
    }
}
