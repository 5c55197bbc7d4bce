//! The link on a stand-in that is up: its two sides opened, and its parameters.
//!
//! The stand-in's side is a TAP, or a packet socket at the far end of a veth pair. A keeper that has held it since the last
//! daemon ended hands it over.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use guard::Params;
use units::{Bytes, Prob, Rate};
use wire::link::Class;

use super::{StandIn, far_end};
use crate::backend::{self, Host, PacketHost, PacketWire, Tap};
use crate::config::{HostBackend, LinkConfig, LinkMode, WireBackend};
use crate::datapath::{DatapathSetup, Link};
use crate::frame::{self, Framing, Mac};
use crate::seal::Seal;
use crate::status::LinkIdentity;
use daemon::keeper;
use linux::clock::instance;
use linux::packet::{PacketSocket, PacketSocketOptions, TransmitRing};
use linux::{SystemError, no_permission};

/// Room is kept for frames of a wire's MTU up to this; on interfaces without a wire it can be 65,535.
pub(super) const LARGEST_RECEIVED: u32 = 16_000;

/// Most bytes that may wait for the wire; the queue itself limits how long it may stand.
const QUEUE: Bytes = Bytes::new(4 << 20);

/// Attempts to open a TAP that somebody has, every 10 ms: a keeper waits for its daemon's lock for a second at most.
const TAP_ATTEMPTS: u32 = 150;

/// Sides and properties of a stand-in that is up, for a daemon.
pub struct StandInSides {
    pub host: Box<dyn Host>,
    pub wire: Box<dyn backend::Wire>,
    /// Address of both interfaces.
    pub mac: Mac,
    /// MTU of the stand-in.
    pub mtu: u32,
    pub wire_mtu: u32,
    /// `None` if nobody knows it.
    pub rate: Option<Rate>,
    pub host_backend: String,
    pub wire_backend: String,
}

impl std::fmt::Debug for StandInSides {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StandInSides").field("mac", &self.mac).field("mtu", &self.mtu).finish_non_exhaustive()
    }
}

impl StandIn {
    /// Opens both sides. A keeper that passed frames meanwhile is relieved.
    pub(super) fn sides(&mut self, config: &LinkConfig) -> Result<StandInSides, SystemError> {
        // The wire first: if it cannot be had, a keeper goes on with the host's side.
        let (wire, wire_backend) = self.open_wire(config)?;
        let host = self.open_host()?;
        self.close_again()?;
        Ok(StandInSides {
            host,
            wire,
            mac: self.mac,
            mtu: self.mtu,
            wire_mtu: self.wire_mtu.min(LARGEST_RECEIVED),
            rate: self.rate,
            host_backend: self.host.to_string(),
            wire_backend: wire_backend.to_string(),
        })
    }

    pub(super) fn link(&mut self, config: &LinkConfig, seal: Seal) -> Result<(Link, LinkIdentity), SystemError> {
        let framing = Framing::new(self.mac, config.peer, seal);
        let StandInSides { host, wire, wire_mtu, host_backend, wire_backend, .. } = self.sides(config)?;
        let mtu = self.mtu + (frame::ETHERNET + frame::TAG) as u32 + 4;
        let class = if config.mode == LinkMode::NonBlocking { Class::NonBlocking } else { Class::Ordered };
        // Enough for a loss of 1e-3; what is measured changes it.
        let copies = guard::copies_for(Prob::literal(1e-3), config.target_loss).map_or(1, |(n, _)| n.max(1));
        let mut params = Params::host(mtu, class, copies, config.window, config.give_up_after);
        params.seal = framing.seal_code();
        params.second_tag = frame::TAG as u32;
        if config.mode == LinkMode::Auto {
            params = params.automatic_up_to(Prob::literal(0.02), config.target_loss);
        }
        let setup = DatapathSetup {
            params,
            longest: frame::longest_on(wire_mtu),
            framing,
            instance: instance(),
            init: config.init_action,
            rate: self.rate,
            queue: config.queue.unwrap_or(QUEUE),
            target: (config.mode != LinkMode::Auto).then_some(config.target_loss),
            no_stamps: self.no_stamps,
        };
        let identity = LinkIdentity {
            name: self.name.clone(),
            interface: config.interface.clone(),
            mode: config.mode.to_string(),
            host_backend,
            wire_backend,
            seal: config.sealing.to_string(),
            mtu: self.mtu,
        };
        Ok((Link::new(setup, host, wire), identity))
    }

    /// Takes over the descriptor that the keeper held; the keeper ends when this daemon has a keeper of its own.
    fn relieve_keeper(&mut self) -> Option<OwnedFd> {
        if self.relief.is_none() {
            // One whose daemon has just ended is there late.
            self.relief = keeper::relieve(self.directory.as_ref()?, &self.name);
        }
        self.relief.as_mut()?.take_held()
    }

    /// Opens the TAP, from the keeper that holds it, or anew. A keeper whose daemon has just ended may not be there to be
    /// relieved yet.
    fn open_tap(&mut self) -> io::Result<Tap> {
        let name = self.netlink.existing(self.index).map_err(io::Error::from)?.name;
        let mut attempt = 1;
        loop {
            // What it kept is of no use if somebody has deleted the interface since.
            let kept = self.relieve_keeper().and_then(|kept| Tap::attached(kept.into()).ok());
            let tap = kept.map_or_else(|| Tap::open(&name), Ok);
            match tap {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && attempt < TAP_ATTEMPTS => {
                    attempt += 1;
                    std::thread::sleep(Duration::from_millis(10));
                }
                opened => return opened,
            }
        }
    }

    fn open_host(&mut self) -> Result<Box<dyn Host>, SystemError> {
        let name = self.name.clone();
        let opened = |error: io::Error| SystemError(format!("open {name}: {error}"));
        if self.host == HostBackend::Tap {
            let mut tap = self.open_tap().map_err(opened)?;
            if self.is_failing_open() {
                // What the former daemon did not fetch; the kernel has passed newer frames since.
                tap.discard().map_err(opened)?;
            }
            return Ok(Box::new(tap));
        }
        self.relieve_keeper();
        let far = self.netlink.existing_link(&far_end(&self.name))?;
        let options = PacketSocketOptions {
            vnet: true,
            longest: 65_536 + frame::ETHERNET + frame::TAG,
            frames: 256,
            send_buffer: 4 << 20,
            promiscuous: true,
            outgoing_too: false,
        };
        Ok(Box::new(PacketHost::new(PacketSocket::open(far.index, &options).map_err(opened)?)))
    }

    fn open_wire(&mut self, config: &LinkConfig) -> Result<(Box<dyn backend::Wire>, WireBackend), SystemError> {
        let interface = &config.interface;
        // Room for a window of the peer's, if it has the same, and for control. No more: a ring that outgrows the cache
        // costs each frame a miss.
        let frames = 2 * config.window.max(512) as usize;
        let options = PacketSocketOptions { vnet: true, ..wire_socket(self.wire_mtu, frames) };
        match PacketSocket::open(self.wire_index, &options).and_then(PacketSocket::with_super_frames) {
            Ok(socket) => {
                // Without it they leave by the socket, and are not joined on every wire.
                let open = || TransmitRing::open(self.wire_index, options.send_buffer);
                let super_frames = self.no_stamps.is_none().then(open).and_then(Result::ok);
                Ok((Box::new(PacketWire::new(socket, super_frames)), WireBackend::Packet))
            }
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(no_permission(&error)),
            Err(error) => Err(SystemError(format!("packet socket on {interface}: {error}"))),
        }
    }
}

/// A socket on a wire of this MTU.
pub fn wire_socket(mtu: u32, frames: usize) -> PacketSocketOptions {
    PacketSocketOptions {
        vnet: false,
        longest: frame::longest_on(mtu),
        frames,
        // What is on its way out cannot be overtaken by a retransmission: about a millisecond at 1 Gbit/s.
        send_buffer: 128 << 10,
        promiscuous: true,
        outgoing_too: false,
    }
}
