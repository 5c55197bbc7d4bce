//! The two sides of a stand-in that is up, opened.
//!
//! The stand-in's side is a TAP, or a packet socket at the far end of a veth pair. A keeper that has held it since the last
//! daemon ended hands it over.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use units::Rate;
use wire::ethernet::{ETHERNET, Mac, TAG};

use super::{HostBackend, StandIn, StandInConfig, WireBackend, far_end};
use crate::backend::{self, Host, PacketHost, PacketWire, Tap};
use daemon::keeper;
use linux::packet::{PacketSocket, PacketSocketOptions, TransmitRing};
use linux::{SystemError, no_permission};

/// Room is kept for frames of a wire's MTU up to this; on interfaces without a wire it can be 65,535.
pub(super) const LARGEST_RECEIVED: u32 = 16_000;

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
    /// Reason why super-frames do not pass the wire whole, in one line.
    pub no_super_frames: Option<&'static str>,
}

impl std::fmt::Debug for StandInSides {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StandInSides").field("mac", &self.mac).field("mtu", &self.mtu).finish_non_exhaustive()
    }
}

impl StandIn {
    /// Opens both sides. A keeper that passed frames meanwhile is relieved.
    pub(super) fn sides(&mut self, config: &StandInConfig, ring: usize) -> Result<StandInSides, SystemError> {
        // The wire first: if it cannot be had, a keeper goes on with the host's side.
        let (wire, wire_backend) = self.open_wire(config, ring)?;
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
            no_super_frames: self.no_super_frames,
        })
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
            // The kept descriptor is useless if somebody has deleted the interface since.
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
                // Frames that the former daemon did not read; the kernel has passed newer ones since.
                tap.discard().map_err(opened)?;
            }
            return Ok(Box::new(tap));
        }
        self.relieve_keeper();
        let far = self.netlink.existing_link(&far_end(&self.name))?;
        let options = PacketSocketOptions {
            vnet: true,
            longest: 65_536 + ETHERNET + TAG,
            frames: 256,
            send_buffer: 4 << 20,
            promiscuous: true,
            outgoing_too: false,
        };
        Ok(Box::new(PacketHost::new(PacketSocket::open(far.index, &options).map_err(opened)?)))
    }

    fn open_wire(
        &mut self,
        config: &StandInConfig,
        ring: usize,
    ) -> Result<(Box<dyn backend::Wire>, WireBackend), SystemError> {
        let interface = &config.interface;
        let options = PacketSocketOptions { vnet: true, ..wire_socket(self.wire_mtu, ring) };
        match PacketSocket::open(self.wire_index, &options).and_then(PacketSocket::with_super_frames) {
            Ok(socket) => {
                // Without it they leave by the socket, and are not joined on every wire.
                let open = || TransmitRing::open(self.wire_index, options.send_buffer);
                let super_frames = self.no_super_frames.is_none().then(open).and_then(Result::ok);
                Ok((Box::new(PacketWire::new(socket, super_frames)), WireBackend::Packet))
            }
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(no_permission(&error)),
            Err(error) => Err(SystemError(format!("packet socket on {interface}: {error}"))),
        }
    }
}

/// The longest frame on a wire of this MTU: one with two tags (IEEE 802.1ad).
pub fn longest_on(mtu: u32) -> usize {
    mtu as usize + ETHERNET + 2 * TAG
}

/// A socket on a wire of this MTU.
pub fn wire_socket(mtu: u32, frames: usize) -> PacketSocketOptions {
    PacketSocketOptions {
        vnet: false,
        longest: longest_on(mtu),
        frames,
        // A retransmission cannot overtake frames in this buffer: about a millisecond at 1 Gbit/s.
        send_buffer: 128 << 10,
        promiscuous: true,
        outgoing_too: false,
    }
}
