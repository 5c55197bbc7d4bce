//! Switches that repeat NAKs and the packets that they ask for: `transport::roce::repeat` at every switch with hosts.

use machine::{SwitchPort, SwitchProgram};
use transport::roce::repeat::{Config, Counters, Repeater, Seen, Way};
use transport::roce::{Opcode, Packet as RocePacket};
use units::Time;

use super::packet::{Body, Packet};
use crate::topology::Topology;

#[derive(Debug)]
pub struct Repeating {
    /// By switch; only where there are hosts.
    switches: Vec<Option<Repeater>>,
    /// By directed link: whether it leads from a host, and to one.
    from_host: Vec<bool>,
    to_host: Vec<bool>,
}

impl Repeating {
    pub fn new(topology: &Topology, config: Config) -> Self {
        let from_host: Vec<bool> = topology.directed().map(|port| topology.is_host(topology.from(port))).collect();
        let to_host: Vec<bool> = topology.directed().map(|port| topology.is_host(topology.to(port))).collect();
        let has_hosts = |node| topology.directed().any(|port| topology.from(port) == node && to_host[port.index()]);
        let switches = topology.switches().map(|node| has_hosts(node).then(|| Repeater::new(config))).collect();
        Self { switches, from_host, to_host }
    }

    /// Of all switches together.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.switches.iter().flatten().for_each(|switch| sum += switch.counters());
        sum
    }
}

fn seen(packet: &RocePacket) -> Seen {
    match packet.opcode {
        Opcode::Acknowledge(_) if packet.is_nak() => Seen::Nak(packet.psn),
        Opcode::Send(_) | Opcode::Write(_) | Opcode::ReadRequest => Seen::Request(packet.psn),
        Opcode::Acknowledge(_) | Opcode::ReadResponse(_) => Seen::Other,
    }
}

impl SwitchProgram for Repeating {
    type Frame = Packet;
    type Tag = ();
    const WATCHES_DEPARTURES: bool = false;

    #[inline]
    fn on_route(&mut self, _now: Time, at: SwitchPort, frame: &mut Packet, _tag: &mut ()) -> u32 {
        let (Some(switch), Body::Roce(packet)) = (&mut self.switches[at.switch as usize], &frame.body) else {
            return 1;
        };
        let from_host = self.from_host.get(frame.came_by as usize).copied().unwrap_or_default();
        let way = Way { from_host, to_host: self.to_host[at.port as usize] };
        switch.on_packet(way, seen(packet), Some(frame.to() / 2))
    }

    #[inline]
    fn on_departure(&mut self, _now: Time, _at: SwitchPort, _left: u64, _frame: &mut Packet) {}
}
