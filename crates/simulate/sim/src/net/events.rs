//! Events of the simulation.

use super::fabric::Hop;
use super::index::{ConnectionId, EndId, HostId, PacketId, TrafficId};
use crate::topology::{DirectedLink, TopologyLinkId};

/// Plain values of twelve bytes: the queue copies them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NetworkEvent {
    /// A packet has arrived at the node that its last hop led to.
    Arrive {
        packet: PacketId,
        /// Next hop, fixed when the packet leaves: the port is read while the packet is in the cache, not after it.
        hop: Hop,
    },
    /// A port may be free, or was asked to look again.
    Look {
        port: DirectedLink,
    },
    /// A host's processor is interrupted for what its interface has received; it has processed it.
    Interrupt {
        host: HostId,
    },
    HostReceives {
        host: HostId,
    },
    /// A packet comes out of the pipeline of a host's interface.
    PipeEnds {
        host: HostId,
        packet: PacketId,
    },
    /// The first of a host's ends that pace may send again.
    HostWakes {
        host: HostId,
    },
    EndTimer {
        end: EndId,
        slot: u8,
    },
    /// A frame of a link protocol arrives that left by this port, or is acted upon if the hardware is slow about it.
    LinkArrive {
        port: DirectedLink,
        frame: u32,
    },
    LinkActs {
        port: DirectedLink,
        frame: u32,
    },
    LinkTimer {
        port: DirectedLink,
        slot: u8,
    },
    /// A link's protocol is switched on.
    Activate {
        link: TopologyLinkId,
    },
    /// A pause or its end arrives at the port that is to obey it.
    Pause {
        port: DirectedLink,
        class: u8,
        hold: bool,
        /// Hops from the port whose queue caused the pause.
        hops: u8,
    },
    /// The next flow of a workload begins.
    FlowStarts {
        traffic: TrafficId,
    },
    /// A handshake that has not been answered is tried again.
    Shake {
        connection: ConnectionId,
    },
    /// A timer of a host that reserves; a message of the switch reaches its thread; a thread may ask for its next burst.
    RackTimer {
        host: HostId,
        slot: u8,
    },
    RackAnswers {
        host: HostId,
        packet: PacketId,
    },
    ThreadIsFree {
        host: HostId,
        lane: u8,
    },
    /// A host dies.
    HostDies {
        host: HostId,
    },
    /// The switch program acts at a time of its own.
    ProgramWakes,
    /// Time to look at everything that is watched.
    Sample,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_twelve_bytes() {
        assert_eq!(size_of::<NetworkEvent>(), 12);
    }
}
