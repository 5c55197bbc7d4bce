//! Switches that repeat NAKs and the packets that they ask for: `transport::roce::repeat` at every switch with hosts.

use machine::{Forward, SwitchProgram, Visit};
use transport::roce::repeat::{Config, Counters, Repeater, Seen, Way};
use transport::roce::{Opcode, Packet as RocePacket};
use units::Time;

use crate::net::packet::Packet;
use crate::net::transports::Body;
use crate::topology::Topology;

#[derive(Debug)]
pub(crate) struct Repeating {
    /// By switch; only where there are hosts.
    switches: Vec<Option<Repeater>>,
    /// By directed link: whether it leads from a host, and to one.
    from_host: Vec<bool>,
    to_host: Vec<bool>,
}

impl Repeating {
    pub(crate) fn new(topology: &Topology, config: Config) -> Self {
        let from_host: Vec<bool> = topology.directed().map(|port| topology.is_host(topology.from(port))).collect();
        let to_host: Vec<bool> = topology.directed().map(|port| topology.is_host(topology.to(port))).collect();
        let has_hosts = |node| topology.directed().any(|port| topology.from(port) == node && to_host[port.index()]);
        let switches = topology.switches().map(|node| has_hosts(node).then(|| Repeater::new(config))).collect();
        Self { switches, from_host, to_host }
    }

    /// Of all switches together.
    pub(crate) fn counters(&self) -> Counters {
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

    #[inline]
    fn on_route(&mut self, _now: Time, at: Visit, frame: &mut Packet, _tag: &mut ()) -> Forward {
        let (Some(switch), Body::Roce(packet)) = (&mut self.switches[at.at.switch as usize], &frame.body) else {
            return Forward::Pass;
        };
        let from_host = self.from_host.get(frame.came_by.index()).copied().unwrap_or_default();
        let way = Way { from_host, to_host: self.to_host[at.at.port as usize] };
        match switch.on_packet(way, seen(packet), Some(frame.to().connection().0)) {
            1 => Forward::Pass,
            copies => Forward::Copies(copies),
        }
    }
}
