//! Tables of switches that say what they should not: blackholes, detours, and what is filtered on purpose.
//!
//! LossRadar (li-thesis §5.2.1) has blackholes that drop whatever a match-action table should have forwarded; FlowRadar
//! (§4.6.1) has loops, from a rule that is new at one switch and old at the next. A [`Rule`] stands in a switch's ingress,
//! before its meters: what it drops is lost between the switch before and this one.
//!
//! Where a rule leads a packet off its route, nobody can follow a list of hops any more. Then all packets are forwarded as
//! switches do it, each asking its own table, and count the hops; for the others the tables give the same ways as the lists.

use machine::{SwitchProgram, Why};
use units::Time;

use super::forwarding::TO_HOST;
use super::packet::Packet;
use super::setup::Setup;
use super::world::Network;
use crate::topology::{DirectedLink, Kind, NodeId};

/// What a switch does to packets for one host, for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub switch: NodeId,
    pub to: NodeId,
    pub from: Time,
    /// From then on it is as it should be again.
    pub until: Time,
    pub action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// They are gone, and nobody is told.
    Drop,
    /// They are gone, as an access list wants it: the switch knows, and leaves them out of what it meters.
    Filter,
    /// They are sent by this port, wherever it leads.
    Send(DirectedLink),
}

#[derive(Debug)]
pub struct Rules {
    rules: Vec<(Rule, u64)>,
    /// By node: which of them are its own.
    of: Vec<Vec<usize>>,
    /// Whether any of them leads packets off their routes.
    detours: bool,
    pub expired: u64,
}

impl Rules {
    /// `None` if all is as it should be.
    pub fn new(setup: &Setup) -> Option<Self> {
        let mut of = vec![Vec::new(); setup.topology.nodes.len()];
        for (number, rule) in setup.rules.iter().enumerate() {
            let is = |node: NodeId, kind| setup.topology.nodes[node.index()].kind == kind;
            assert!(
                is(rule.switch, Kind::Switch) && is(rule.to, Kind::Host),
                "a rule of a switch, for a host: {rule:?}"
            );
            if let Action::Send(port) = rule.action {
                let ends = (setup.topology.from(port), is(setup.topology.to(port), Kind::Switch));
                assert_eq!(ends, (rule.switch, true), "from this switch to another: {rule:?}");
            }
            of[rule.switch.index()].push(number);
        }
        let detours = setup.rules.iter().any(|rule| matches!(rule.action, Action::Send(_)));
        let rules: Vec<(Rule, u64)> = setup.rules.iter().map(|rule| (*rule, 0)).collect();
        (!rules.is_empty()).then_some(Self { rules, of, detours, expired: 0 })
    }

    /// Packets that each rule was applied to.
    pub fn counts(&self) -> Vec<u64> {
        self.rules.iter().map(|(_, packets)| *packets).collect()
    }

    /// What a switch does to a packet for this host, if not what it should.
    fn apply(&mut self, now: Time, at: NodeId, to: NodeId) -> Option<Action> {
        let applies = |rule: &Rule| rule.to == to && (rule.from..rule.until).contains(&now);
        let number = *self.of[at.index()].iter().find(|number| applies(&self.rules[**number].0))?;
        let (rule, packets) = &mut self.rules[number];
        *packets += 1;
        Some(rule.action)
    }
}

impl<P: SwitchProgram<Frame = Packet>> Network<'_, P> {
    /// Where a packet goes that has come to the end of a hop, and perhaps to a switch that does not do what it should; `None`
    /// if it is lost there.
    #[cold]
    pub(super) fn hop_by_rules(&mut self, now: Time, id: u32) -> Option<u32> {
        let rules = self.rules.as_mut()?;
        let packet = self.packets.get_mut(id);
        let (link, to) = (DirectedLink(packet.came_by), packet.to());
        let host = self.ends[to as usize].host;
        let (at, destination) = (self.routes.leads_to(link), self.hosts[host as usize].node);
        if at == destination {
            return Some(TO_HOST | host);
        }
        let why = if rules.detours && packet.time_to_live() == 0 {
            rules.expired += 1;
            Why::Expired
        } else {
            let listed = self.hops[packet.route as usize];
            packet.route += 1;
            match rules.apply(now, at, destination) {
                None if !rules.detours => return Some(listed),
                None => match self.routes.next(at, destination, self.flows[to as usize / 2].hash) {
                    Some(port) => return Some(port.0),
                    None => Why::Blackhole,
                },
                Some(Action::Send(port)) => return Some(port.0),
                Some(Action::Drop) => Why::Blackhole,
                Some(Action::Filter) => Why::Filtered,
            }
        };
        self.lose(now, link.0, why, id);
        None
    }
}
