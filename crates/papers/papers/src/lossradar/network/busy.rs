//! Load of each switch for each host, at a moment: a blackhole at the busiest hits flows that are under way.

use std::collections::BTreeMap;

use machine::{Conversation, Forward, SwitchProgram, Visit};
use report::claim::ClaimError;
use report::runner::Effort;
use sim::net::{NetworkProgram, NetworkSetup, SimPacket, run_with};
use sim::topology::NodeId;
use units::{Span, Time};

/// Time before the moment that counts.
const WINDOW: Span = Span::from_ms(2);

/// Shorter frames are acknowledgements.
const DATA: u16 = 1_000;

/// Bytes that a switch forwards to a host.
pub(super) type HostLoad = (NodeId, NodeId, u64);

#[derive(Debug)]
struct LoadMeter {
    from: Time,
    switches: Vec<NodeId>,
    bytes: BTreeMap<(NodeId, NodeId), u64>,
}

impl NetworkProgram for LoadMeter {}

impl SwitchProgram for LoadMeter {
    type Frame = SimPacket;
    /// The host that it is for.
    type Tag = u32;

    fn watches_hosts(&self) -> bool {
        true
    }

    #[inline]
    fn on_route(&mut self, now: Time, at: Visit, frame: &mut SimPacket, to: &mut u32) -> Forward {
        if now >= self.from && frame.len >= DATA {
            let switch = self.switches[at.at.switch as usize];
            *self.bytes.entry((switch, NodeId(*to))).or_default() += u64::from(frame.len);
        }
        Forward::Pass
    }

    fn on_host_sends(&mut self, _now: Time, _link: u32, who: Conversation, _frame: &mut SimPacket, to: &mut u32) {
        *to = who.to;
    }
}

/// Switches with the hosts that they forward most to, and bytes, the most first; `None` if it was stopped early.
pub(super) fn busiest(
    setup: &NetworkSetup,
    at: Time,
    effort: &Effort<'_>,
) -> Result<Option<Vec<HostLoad>>, ClaimError> {
    let setup = NetworkSetup { until: at, radar: None, ..setup.clone() };
    let from = Time::ZERO + at.since(Time::ZERO + WINDOW);
    let mut program = LoadMeter { from, switches: setup.topology.switches().collect(), bytes: BTreeMap::new() };
    let outcome = run_with(setup, &mut program, effort.progress).map_err(ClaimError::new)?;
    let mut busy: Vec<_> = program.bytes.into_iter().map(|((switch, to), bytes)| (switch, to, bytes)).collect();
    busy.sort_by_key(|(switch, to, bytes)| (std::cmp::Reverse(*bytes), *switch, *to));
    Ok((!outcome.interrupted).then_some(busy))
}
