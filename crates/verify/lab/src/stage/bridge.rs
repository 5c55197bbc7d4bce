//! A bridge that learns addresses, in the middle of hosts, and a third host that only listens.
//!
//! ```text
//!   host 0: w0 ──── x0 ┐
//!   host 1: w1 ──── x1 ├ bridge
//!          y1 ───── y0 ┘
//! ```
//!
//! Frames that the third host receives, beside those for everybody, are ones that the bridge has flooded: it knew no
//! better.

use std::io::IoSlice;

use linux::SystemError;
use linux::net::{self, Namespace, Netlink};
use linux::packet::PacketSocket;
use standin::wire_socket;
use units::Prob;
use wire::link::AddressStamp;

use super::hosts::{CabledHosts, give_address_among, mac};

/// Ways in which a bridge is unlike most.
#[derive(Clone, Copy, Debug, Default)]
pub struct BridgeKind {
    /// True for a hub, which learns nothing.
    pub is_hub: bool,
    /// True if the bridge passes on addresses that bridges keep to themselves.
    pub passes_reserved: bool,
}

/// A bridge, and the cable of the third host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WitnessedBridge {
    bridge: u32,
    /// The bridge's end of the cable, and the third host's.
    cable: [u32; 2],
}

impl WitnessedBridge {
    /// Joins these interfaces.
    pub(super) fn new(middle: &Netlink, ports: &[u32], mtu: u32, kind: BridgeKind) -> net::Result<Self> {
        let bridge = middle.add_bridge("br0", kind.passes_reserved)?;
        middle.no_ipv6_autoconf(bridge)?;
        middle.add_veth("y0", "y1")?;
        let cable = [middle.existing_link("y0")?.index, middle.existing_link("y1")?.index];
        for end in cable {
            let _ = middle.no_ipv6_autoconf(end);
            middle.set_mtu(end, mtu)?;
        }
        for port in ports.iter().chain(&cable[..1]) {
            match kind.is_hub {
                true => middle.make_hub_port(*port, bridge)?,
                false => middle.set_master(*port, Some(bridge))?,
            }
        }
        for index in [bridge, cable[0], cable[1]] {
            middle.set_up(index, true)?;
        }
        cable.iter().try_for_each(|end| middle.wait_until_running(*end))?;
        Ok(Self { bridge, cable })
    }

    pub(crate) fn forget(&self, middle: &Netlink) -> net::Result<()> {
        middle.flush_bridge(self.bridge)
    }

    /// Deletes the bridge: nothing joins its ports any more.
    pub(super) fn delete(self, middle: &Netlink) -> net::Result<()> {
        middle.delete_link(self.bridge)?;
        middle.delete_link(self.cable[0])
    }

    /// The third host, to be opened where the bridge is.
    pub(super) fn witness(&self, between: &Namespace, mtu: u32) -> Result<BridgeWitness, SystemError> {
        let open = || PacketSocket::open(self.cable[1], &wire_socket(mtu, 1_024));
        let socket = between.with(open)?;
        let socket = socket.map_err(|error| SystemError(format!("packet socket of the third host: {error}")))?;
        Ok(BridgeWitness { socket, sight: FloodedFrames::default() })
    }
}

/// Frames that a third host has received and that were not for everybody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FloodedFrames {
    pub frames: u64,
    /// Flooded data frames with their number in their addresses.
    pub stamped: u64,
}

/// A third host at a bridge.
#[derive(Debug)]
pub struct BridgeWitness {
    socket: PacketSocket,
    sight: FloodedFrames,
}

impl BridgeWitness {
    /// Frames flooded until now.
    pub fn look(&mut self) -> FloodedFrames {
        const BATCH: usize = 256;
        let Self { socket, sight } = self;
        let mut each = |frame: &[u8]| {
            sight.frames += u64::from(frame.first().is_some_and(|first| first & 1 == 0));
            sight.stamped += u64::from(matches!(AddressStamp::parse(frame), Ok(Some(AddressStamp::Data(_)))));
        };
        while socket.receive(BATCH, |frame| each(frame.bytes)) > 0 {}
        *sight
    }

    /// Sends a frame of its own; one that the wire has no room for is lost.
    pub fn send(&mut self, frame: &[u8]) {
        let _ = self.socket.send_one(&[IoSlice::new(frame)]);
    }
}

/// Hosts at one bridge, and a third that only listens.
#[derive(Debug)]
pub struct BridgedStage {
    pub hosts: Vec<Namespace>,
    between: Namespace,
    middle: Netlink,
    ports: Vec<u32>,
    bridge: WitnessedBridge,
    mtu: u32,
}

impl BridgedStage {
    /// Builds the stage in the current namespace, which it changes.
    pub fn new(hosts: usize, mtu: u32, kind: BridgeKind) -> net::Result<Self> {
        let CabledHosts { hosts, between, middle, ports } = CabledHosts::new(hosts, mtu)?;
        let bridge = WitnessedBridge::new(&middle, &ports, mtu, kind)?;
        Ok(Self { hosts, between, middle, ports, bridge, mtu })
    }

    /// Gives an interface of a host its address, and the way to the others.
    pub fn address(&self, host: usize, interface: &str) -> net::Result<()> {
        give_address_among(&self.hosts[host], host, self.hosts.len(), interface)
    }

    /// Loses a share of a host's frames before the bridge.
    pub fn set_loss(&self, host: usize, loss: Prob) -> net::Result<()> {
        self.middle.corrupt(self.ports[host], loss.get())
    }

    /// Addresses in the bridge's table that no host has.
    pub fn invented(&self) -> net::Result<Vec<[u8; 6]>> {
        let known: Vec<[u8; 6]> = (0..self.hosts.len()).map(mac).collect();
        Ok(self.bridge_table()?.into_iter().filter(|address| !known.contains(address)).collect())
    }

    fn bridge_table(&self) -> net::Result<Vec<[u8; 6]>> {
        self.middle.learnt(self.bridge.bridge)
    }

    /// The bridge forgets what it has learnt.
    pub fn forget(&self) -> net::Result<()> {
        self.bridge.forget(&self.middle)
    }

    pub fn witness(&self) -> Result<BridgeWitness, SystemError> {
        self.bridge.witness(&self.between, self.mtu)
    }
}
