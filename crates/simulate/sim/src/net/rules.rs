//! Tables of switches that say what they should not: blackholes, detours, and what is filtered on purpose.
//!
//! LossRadar (li-thesis §5.2.1) has blackholes that drop packets a match-action table should have forwarded; FlowRadar
//! (§4.6.1) has loops, from a rule that is new at one switch and old at the next. A [`FaultyRule`] stands in a switch's ingress,
//! before its meters: what it drops is lost between the switch before and this one.
//!
//! A rule that leads a packet off its route makes its list of hops useless. Then all packets are forwarded as switches
//! forward them, each switch by its own table, and count the hops; for packets that no rule touches the tables give the
//! same paths as the lists.

use units::Time;

use super::setup::NetworkSetup;
use crate::topology::{DirectedLink, NodeId, NodeKind};

/// Wrong treatment of packets for one host by a switch, for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultyRule {
    pub switch: NodeId,
    pub to: NodeId,
    pub from: Time,
    /// Time from which on forwarding is right again.
    pub until: Time,
    pub action: FaultyAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultyAction {
    /// Drops packets without counting them.
    Drop,
    /// Drops packets as an access list does: the switch counts them, and leaves them out of what it meters.
    Filter,
    /// Sends packets by this port.
    Send(DirectedLink),
}

#[derive(Debug)]
pub(super) struct SwitchRules {
    rules: Vec<(FaultyRule, u64)>,
    /// Indices of each node's rules.
    of: Vec<Vec<usize>>,
    /// True if any of them leads packets off their routes.
    pub detours: bool,
    pub expired: u64,
}

impl SwitchRules {
    /// `None` if there are no rules.
    pub(super) fn new(setup: &NetworkSetup) -> Option<Self> {
        let mut of = vec![Vec::new(); setup.topology.nodes.len()];
        for (number, rule) in setup.rules.iter().enumerate() {
            let is = |node: NodeId, kind| setup.topology.nodes[node.index()].kind == kind;
            assert!(
                is(rule.switch, NodeKind::Switch) && is(rule.to, NodeKind::Host),
                "a rule of a switch, for a host: {rule:?}"
            );
            if let FaultyAction::Send(port) = rule.action {
                let ends = (setup.topology.from(port), is(setup.topology.to(port), NodeKind::Switch));
                assert_eq!(ends, (rule.switch, true), "from this switch to another: {rule:?}");
            }
            of[rule.switch.index()].push(number);
        }
        let detours = setup.rules.iter().any(|rule| matches!(rule.action, FaultyAction::Send(_)));
        let rules: Vec<(FaultyRule, u64)> = setup.rules.iter().map(|rule| (*rule, 0)).collect();
        (!rules.is_empty()).then_some(Self { rules, of, detours, expired: 0 })
    }

    /// Packets that each rule was applied to.
    pub(super) fn counts(&self) -> Vec<u64> {
        self.rules.iter().map(|(_, packets)| *packets).collect()
    }

    /// The rule of a switch for this host, if one applies now.
    pub(super) fn apply(&mut self, now: Time, at: NodeId, to: NodeId) -> Option<FaultyAction> {
        let applies = |rule: &FaultyRule| rule.to == to && (rule.from..rule.until).contains(&now);
        let number = *self.of[at.index()].iter().find(|number| applies(&self.rules[**number].0))?;
        let (rule, packets) = &mut self.rules[number];
        *packets += 1;
        Some(rule.action)
    }
}
