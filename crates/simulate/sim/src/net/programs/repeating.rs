//! Switches that repeat NAKs and the packets that they ask for: `roce::repeat` at every switch with hosts.

use machine::{Forward, SwitchProgram, Visit};
use roce::repeat::{Counters, PacketView, PortPair, Repeater, RepeaterConfig};
use roce::{RoceOperation, RocePacket};
use units::Time;

use super::NetworkProgram;
use crate::net::packet::SimPacket;
use crate::net::transports::Body;
use crate::topology::Topology;

#[derive(Debug)]
pub(crate) struct RepeaterProgram {
    /// Repeater of each switch that has hosts.
    switches: Vec<Option<Repeater>>,
    /// True for each directed link that leads from a host, and for each that leads to one.
    from_host: Vec<bool>,
    to_host: Vec<bool>,
}

impl RepeaterProgram {
    pub(crate) fn new(topology: &Topology, config: RepeaterConfig) -> Self {
        let from_host: Vec<bool> = topology.directed().map(|port| topology.is_host(topology.from(port))).collect();
        let to_host: Vec<bool> = topology.directed().map(|port| topology.is_host(topology.to(port))).collect();
        let has_hosts = |node| topology.directed().any(|port| topology.from(port) == node && to_host[port.index()]);
        let switches = topology.switches().map(|node| has_hosts(node).then(|| Repeater::new(config))).collect();
        Self { switches, from_host, to_host }
    }

    /// Counters of all switches together.
    pub(crate) fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.switches.iter().flatten().for_each(|switch| sum += switch.counters());
        sum
    }
}

fn seen(packet: &RocePacket) -> PacketView {
    match packet.opcode {
        RoceOperation::Acknowledge(_) if packet.is_nak() => PacketView::Nak(packet.psn),
        RoceOperation::Send(_) | RoceOperation::Write(_) | RoceOperation::ReadRequest => {
            PacketView::Request(packet.psn)
        }
        RoceOperation::Acknowledge(_) | RoceOperation::ReadResponse(_) | RoceOperation::Notification => {
            PacketView::Other
        }
    }
}

impl NetworkProgram for RepeaterProgram {}

impl SwitchProgram for RepeaterProgram {
    type Frame = SimPacket;
    type Tag = ();

    #[inline]
    fn on_route(&mut self, _now: Time, at: Visit, frame: &mut SimPacket, _tag: &mut ()) -> Forward {
        let (Some(switch), Body::Roce(packet)) = (&mut self.switches[at.at.switch as usize], &frame.body) else {
            return Forward::Pass;
        };
        let from_host = self.from_host.get(frame.came_by.index()).copied().unwrap_or_default();
        let way = PortPair { from_host, to_host: self.to_host[at.at.port as usize] };
        match switch.on_packet(way, seen(packet), Some(frame.to().connection().0)) {
            1 => Forward::Pass,
            copies => Forward::Copies(copies),
        }
    }
}
