//! The stand-in interface: made, adopted or taken down, and everything changed for it put back.
//!
//! ```text
//!   up     make or adopt hit0 ─▶ same MAC, MTU less the header ─▶ keep the kernel off the wire ─▶ take over
//!   down   the same backwards, from the notes of what was changed
//! ```
//!
//! What will be changed is written down before it is changed (`notes`), so that `down` can put it back even after a daemon
//! that was killed at any moment, and so that the next daemon carries on where that one stopped: the interface survives
//! it, with its addresses and routes. Each step can be taken again. An error half way puts back what was done before it.
//!
//! The kernel's own stack must not see what arrives on the wire, or every unprotected frame would be
//! received twice; a filter on ingress keeps it off, behind the packet socket. An interface that keeps addresses of
//! its own is left to the kernel as well.

mod notes;
mod offloads;
mod open;
mod uppers;

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use guard::Params;
use units::{Bytes, Prob, Rate};
use wire::link::Class;

use crate::backend::{self, Host, PacketHost, PacketWire, Tap};
use crate::config::{HostBackend, LinkConfig, LinkMode, WireBackend};
use crate::datapath::{DatapathSetup, Link};
use crate::directory::RunDirectory;
use crate::frame::{self, Framing, Mac};
use crate::keeper;
use crate::seal::Seal;
use crate::status::LinkIdentity;
use linux::clock::instance;
use linux::net::{self, InterfaceAddress, Netlink, Offload, Qdisc};
use linux::packet::{PacketSocket, PacketSocketOptions};
use linux::{LinkError, no_permission};

pub use notes::clean_up;
use notes::{ChangeNotes, InterfaceChange};
pub(crate) use open::fail_open;

/// The alias that marks an interface as ours.
fn mark(interface: &str) -> String {
    format!("hitless stand-in for {interface}")
}

/// The far end of a veth pair, where the daemon listens.
fn far_end(name: &str) -> String {
    format!("{name}_w")
}

/// Everything that a link needs, up and ready to run. Without a directory nothing is written down: for
/// namespaces that end with the program.
pub fn bring_up(
    config: &LinkConfig,
    directory: Option<&RunDirectory>,
) -> Result<(Link, LinkIdentity, StandIn), LinkError> {
    let seal = config.sealing.seal().map_err(LinkError)?;
    let mut stand_in = StandIn::up(config, directory, frame::overhead(&seal))?;
    match stand_in.link(config, seal) {
        Ok((link, identity)) => Ok((link, identity, stand_in)),
        Err(trouble) => {
            stand_in.step_back();
            Err(trouble)
        }
    }
}

/// A stand-in interface that is up.
#[derive(Debug)]
pub struct StandIn {
    netlink: Netlink,
    /// Where notes are kept; nowhere if what was changed cannot outlive the program.
    directory: Option<RunDirectory>,
    name: String,
    notes: ChangeNotes,
    /// How many of the changes were made by an earlier daemon.
    found: usize,
    host: HostBackend,
    mac: Mac,
    mtu: u32,
    wire_index: u32,
    wire_mtu: u32,
    rate: Option<Rate>,
    /// What a user should know, a line each.
    pub remarks: Vec<String>,
}

impl StandIn {
    /// Makes the interface, or adopts the one that a killed daemon left.
    fn up(config: &LinkConfig, directory: Option<&RunDirectory>, overhead: usize) -> Result<Self, LinkError> {
        let netlink = Netlink::open()?;
        let wire = existing(&netlink, &config.interface)?;
        let mtu = room(config, wire.mtu, overhead as u32)?;
        uppers::check(&netlink, config, &wire, mtu)?;
        if let Some(directory) = directory {
            directory.make().map_err(|error| LinkError(format!("{}: {error}", directory.path().display())))?;
        }
        let left = left_by_another(&netlink, config, directory)?;
        let rate = config.rate.or_else(|| speed(&netlink, &config.interface));
        let mut stand_in = Self {
            netlink,
            directory: directory.cloned(),
            name: config.name.clone(),
            notes: ChangeNotes::default(),
            found: 0,
            host: config.host,
            mac: Mac(wire.mac),
            mtu,
            wire_index: wire.index,
            wire_mtu: wire.mtu,
            rate,
            remarks: Vec::new(),
        };
        match stand_in.build(config, left) {
            Ok(()) => Ok(stand_in),
            Err(trouble) => {
                stand_in.step_back();
                Err(trouble)
            }
        }
    }

    fn build(&mut self, config: &LinkConfig, left: Leftovers) -> Result<(), LinkError> {
        (self.notes, self.found) = (left.notes, left.found);
        match left.host {
            Some(host) => {
                self.host = host;
                self.note(InterfaceChange::Made { name: self.name.clone() })?;
                self.remarks.push(format!("{} was left by an earlier daemon and is adopted", self.name));
            }
            None => self.make(config)?,
        }
        let link = self.netlink.existing_link(&self.name)?;
        if link.mac != self.mac.0 {
            self.netlink.set_mac(link.index, self.mac.0)?;
        }
        self.netlink.set_alias(link.index, &mark(&config.interface))?;
        offloads::leave_tunnels_to_kernel(&self.netlink, &self.name)?;
        self.netlink.set_mtu(link.index, self.mtu)?;
        if self.host == HostBackend::Veth {
            self.prepare_far_end()?;
            self.take_long_frames(link.index)?;
        }
        self.netlink.set_up(link.index, true)?;
        if self.mtu < self.wire_mtu && config.mtu.is_none() {
            let needed = self.wire_mtu + (self.wire_mtu - self.mtu);
            self.remarks.push(format!(
                "{} has MTU {}: the header takes {} of {}'s {} bytes (for {} set both ends' wires to {needed})",
                self.name,
                self.mtu,
                self.wire_mtu - self.mtu,
                config.interface,
                self.wire_mtu,
                self.wire_mtu,
            ));
        }
        self.remark_on_ipv6(config);
        if config.take_over {
            self.take_place(config, link.index)?;
            self.take_over(&config.interface, link.index, left.host.is_none())?;
        }
        self.keep_kernel_off(config)
    }

    fn make(&mut self, config: &LinkConfig) -> Result<(), LinkError> {
        self.note(InterfaceChange::Made { name: self.name.clone() })?;
        let tap = match config.host {
            HostBackend::Veth => Err(None),
            HostBackend::Tap | HostBackend::Auto => Tap::open(&self.name)
                .and_then(|tap| tap.persist(true))
                .map_err(|error| Some(format!("no TAP interface: /dev/net/tun: {error}"))),
        };
        match tap {
            Ok(()) => self.host = HostBackend::Tap,
            Err(Some(why)) if config.host == HostBackend::Tap => {
                return Err(LinkError(format!("{why}; use --backend veth, or load the tun module")));
            }
            Err(why) => {
                self.remarks.extend(why.map(|why| format!("{why}; using a veth pair instead")));
                self.netlink.add_veth(&self.name, &far_end(&self.name))?;
                self.host = HostBackend::Veth;
            }
        }
        Ok(())
    }

    /// Prepares the interface on which the daemon listens. The kernel's stack gets nothing that arrives there.
    fn prepare_far_end(&self) -> Result<(), LinkError> {
        let far = self.netlink.existing_link(&far_end(&self.name))?;
        self.netlink.set_mtu(far.index, self.mtu)?;
        let _ = self.netlink.no_ipv6_autoconf(far.index);
        self.netlink.drop_all_on_ingress(far.index)?;
        self.netlink.set_up(far.index, true)?;
        Ok(())
    }

    /// Moves addresses and routes. What an earlier daemon did not finish, or what went with the interface that it had
    /// made, is in the notes.
    fn take_over(&mut self, interface: &str, index: u32, is_new: bool) -> Result<(), LinkError> {
        let mut moved = self.netlink.movable(self.wire_index, index)?;
        if let Some((noted, done)) = self.notes.taken_over() {
            if !done || is_new {
                moved = moved.joined(noted.addresses, noted.routes);
            } else if moved.addresses.is_empty() && moved.routes.is_empty() {
                return Ok(());
            }
        }
        self.note(InterfaceChange::took_over(interface, &self.name, &moved, false))?;
        moved.perform(&self.netlink)?;
        let has = self.netlink.movable(index, self.wire_index)?;
        self.note(InterfaceChange::took_over(interface, &self.name, &has, true))
    }

    fn keep_kernel_off(&mut self, config: &LinkConfig) -> Result<(), LinkError> {
        // Frames joined on arrival are not what was on the wire.
        if self.netlink.offload(&config.interface, Offload::Gro).unwrap_or(false) {
            self.note(InterfaceChange::SwitchedOffGro { interface: config.interface.clone() })?;
            self.netlink.set_offload(&config.interface, Offload::Gro, false)?;
        }
        self.no_joining_by_card(&config.interface)?;
        let keeps = self.netlink.addresses(self.wire_index)?;
        let keeps = keeps.iter().find(|address| !is_link_local(address));
        if let Some(address) = keeps {
            self.remarks.push(format!(
                "{} keeps its address {}: what it sends is not protected, and frames that arrive unprotected \
                 reach it and {} alike; --take-over moves addresses and routes to {}",
                config.interface,
                address.ip(),
                self.name,
                self.name
            ));
            return Ok(());
        }
        if !self.notes.has(|change| matches!(change, InterfaceChange::Filtered { .. })) {
            let made_clsact = self.netlink.qdisc_statistics(self.wire_index, Qdisc::Clsact)?.is_none();
            self.note(InterfaceChange::Filtered { interface: config.interface.clone(), made_clsact })?;
        }
        self.netlink.drop_all_on_ingress(self.wire_index)?;
        Ok(())
    }

    /// Writes down what is about to be changed.
    fn note(&mut self, change: InterfaceChange) -> Result<(), LinkError> {
        self.notes.put(change);
        self.write_notes()
    }

    fn write_notes(&self) -> Result<(), LinkError> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let named = |error: io::Error| LinkError(format!("{}: {error}", directory.notes(&self.name).display()));
        self.notes.write(directory, &self.name).map_err(named)
    }

    fn link(&mut self, config: &LinkConfig, seal: Seal) -> Result<(Link, LinkIdentity), LinkError> {
        let framing = Framing::new(self.mac, config.peer, seal);
        // The wire first: if it cannot be had, a keeper goes on with the host's side.
        let (wire, wire_backend) = self.open_wire(config)?;
        let host = self.open_host()?;
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
            longest: frame::longest_on(self.wire_mtu.min(LARGEST_RECEIVED)),
            framing,
            instance: instance(),
            init: config.init_action,
            rate: self.rate,
            queue: config.queue.unwrap_or(QUEUE),
            target: (config.mode != LinkMode::Auto).then_some(config.target_loss),
        };
        self.close_again(&config.interface)?;
        let identity = LinkIdentity {
            name: self.name.clone(),
            interface: config.interface.clone(),
            mode: config.mode.to_string(),
            host_backend: self.host.to_string(),
            wire_backend: wire_backend.to_string(),
            seal: config.sealing.to_string(),
            mtu: self.mtu,
        };
        Ok((Link::new(setup, host, wire), identity))
    }

    fn relieve_keeper(&self) -> Option<OwnedFd> {
        keeper::relieve(self.directory.as_ref()?, &self.name)
    }

    /// From the keeper that holds it, or anew. A keeper whose daemon has just ended may not be there to be relieved yet.
    fn open_tap(&self) -> io::Result<Tap> {
        let mut attempt = 1;
        loop {
            let tap = self
                .relieve_keeper()
                .map_or_else(|| Tap::open(&self.name), |kept| Tap::attached(kept.into(), &self.name));
            match tap {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && attempt < TAP_ATTEMPTS => {
                    attempt += 1;
                    std::thread::sleep(Duration::from_millis(10));
                }
                opened => return opened,
            }
        }
    }

    fn open_host(&self) -> Result<Box<dyn Host>, LinkError> {
        let opened = |error: io::Error| LinkError(format!("open {}: {error}", self.name));
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

    fn open_wire(&mut self, config: &LinkConfig) -> Result<(Box<dyn backend::Wire>, WireBackend), LinkError> {
        let interface = &config.interface;
        #[cfg(feature = "xdp")]
        if config.wire == WireBackend::Xdp {
            let trouble = |error| LinkError(format!("AF_XDP on {interface}: {error}; use --wire packet"));
            let wire = backend::XdpWire::open(self.wire_index, self.wire_mtu).map_err(trouble)?;
            return Ok((Box::new(wire), WireBackend::Xdp));
        }
        // Room for a window of the peer's, if it has the same, and for control. No more: a ring that outgrows the cache
        // costs each frame a miss.
        let frames = 2 * config.window.max(512) as usize;
        let options = PacketSocketOptions { vnet: true, ..wire_socket(self.wire_mtu, frames) };
        match PacketSocket::open(self.wire_index, &options).and_then(PacketSocket::with_super_frames) {
            Ok(socket) => Ok((Box::new(PacketWire::new(socket)), WireBackend::Packet)),
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(no_permission(&error)),
            Err(error) => Err(LinkError(format!("packet socket on {interface}: {error}"))),
        }
    }

    /// Puts everything back, as far as it can be; what could not be is returned.
    pub fn down(&mut self) -> Vec<String> {
        self.undo(0)
    }

    /// Puts back what was changed just now, and leaves what was found.
    fn step_back(&mut self) {
        self.undo(self.found);
        self.open_again();
    }

    fn undo(&mut self, kept: usize) -> Vec<String> {
        let mut failed = self.notes.undo(&self.netlink, kept);
        if let Some(directory) = &self.directory {
            failed.extend(self.notes.write(directory, &self.name).err().map(|error| error.to_string()));
        }
        failed
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

/// Room is kept for frames of a wire's MTU up to this; on interfaces without a wire it can be 65,535.
const LARGEST_RECEIVED: u32 = 16_000;

/// What may wait for the wire at most; how long it may stand is the queue's own business.
const QUEUE: Bytes = Bytes::new(4 << 20);

/// What there is of an interface that is to be protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceState {
    Ready(net::InterfaceInfo),
    Absent(String),
    Down(String),
    /// It can never be protected.
    Unsuitable(String),
}

/// Looks for the interface that is to be protected.
pub fn find(interface: &str) -> Result<InterfaceState, LinkError> {
    look_for(&Netlink::open()?, interface)
}

fn look_for(netlink: &Netlink, interface: &str) -> Result<InterfaceState, LinkError> {
    let Some(link) = netlink.link(interface)? else {
        return Ok(InterfaceState::Absent(format!(
            "there is no interface {interface}; `ip link` shows which there are"
        )));
    };
    Ok(if link.mac == [0; 6] {
        InterfaceState::Unsuitable(format!(
            "{interface} has no Ethernet address, so it is no link that can be protected"
        ))
    } else if !link.up {
        InterfaceState::Down(format!("{interface} is down; `ip link set dev {interface} up` first"))
    } else {
        InterfaceState::Ready(link)
    })
}

/// The interface that a stand-in stands in for, by its alias.
pub fn stands_in_for(link: &net::InterfaceInfo) -> Option<&str> {
    link.alias.as_deref()?.strip_prefix("hitless stand-in for ")
}

fn existing(netlink: &Netlink, interface: &str) -> Result<net::InterfaceInfo, LinkError> {
    match look_for(netlink, interface)? {
        InterfaceState::Ready(link) => Ok(link),
        InterfaceState::Absent(why) | InterfaceState::Down(why) | InterfaceState::Unsuitable(why) => {
            Err(LinkError(why))
        }
    }
}

/// Of opening a TAP that somebody has, every 10 ms: a keeper waits for its daemon's lock for a second at most.
const TAP_ATTEMPTS: u32 = 150;

/// The MTU that the wire leaves for the stand-in.
fn room(config: &LinkConfig, wire: u32, overhead: u32) -> Result<u32, LinkError> {
    const LEAST: u32 = LinkConfig::LEAST_MTU;
    let interface = &config.interface;
    let most = wire.saturating_sub(overhead);
    match config.mtu {
        Some(mtu) if mtu > most => Err(LinkError(format!(
            "an MTU of {mtu} needs {} on {interface}, which has {wire}: the header takes {overhead}; \
             `ip link set dev {interface} mtu {}` at both ends, or --mtu {most}",
            mtu + overhead,
            mtu + overhead,
        ))),
        None if most < LEAST => Err(LinkError(format!(
            "{interface} has an MTU of {wire}, too small: the header takes {overhead} and at least {LEAST} must be left; \
             `ip link set dev {interface} mtu 1500`"
        ))),
        mtu => Ok(mtu.unwrap_or(most).min(9_000)),
    }
}

fn speed(netlink: &Netlink, interface: &str) -> Option<Rate> {
    // Of interfaces without a wire, the speed is a figure of speech.
    let driver = netlink.driver(interface).ok()?;
    if matches!(driver.as_str(), "veth" | "tun" | "bridge" | "dummy") {
        return None;
    }
    format!("{}M", netlink.speed(interface).ok()??).parse().ok()
}

fn is_link_local(address: &InterfaceAddress) -> bool {
    matches!(address.ip(), std::net::IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// What an earlier daemon left of the same link.
struct Leftovers {
    /// The interface is there, and is this.
    host: Option<HostBackend>,
    notes: ChangeNotes,
    /// How many changes were noted.
    found: usize,
}

/// Whether an interface of this name, or a stand-in for this interface, is there already.
fn left_by_another(
    netlink: &Netlink,
    config: &LinkConfig,
    directory: Option<&RunDirectory>,
) -> Result<Leftovers, LinkError> {
    let (name, interface) = (&config.name, &config.interface);
    let ours = mark(interface);
    let links = netlink.links()?;
    if let Some(other) = links.iter().find(|link| link.name != *name && link.alias.as_ref() == Some(&ours)) {
        return Err(LinkError(format!(
            "{interface} is protected already, by {other}; `hitless link down {other}` first",
            other = other.name
        )));
    }
    let mut notes = directory.map_or(Ok(ChangeNotes::default()), |directory| ChangeNotes::read(directory, name))?;
    let noted = notes.has(|change| matches!(change, InterfaceChange::Made { .. }));
    if notes.wire().is_some_and(|wire| wire != interface) {
        return Err(LinkError(format!(
            "{name} was left by a daemon for {}; `hitless link down {name}` first, or choose another --name",
            notes.wire().unwrap_or_default()
        )));
    }
    let Some(link) = links.iter().find(|link| link.name == *name) else {
        let found = notes.changes.len();
        return Ok(Leftovers { host: None, notes, found });
    };
    // Noted, but not yet marked: the daemon was killed in between.
    let half_made = noted && link.alias.is_none();
    if link.alias.as_ref() != Some(&ours) && !half_made {
        return Err(LinkError(format!("the name {name} is taken by another interface; choose one with --name")));
    }
    let host = if link.kind.as_deref() == Some("veth") { HostBackend::Veth } else { HostBackend::Tap };
    if config.host != HostBackend::Auto && config.host != host {
        return Err(LinkError(format!("{name} is there already, as {host}; `hitless link down {name}` first")));
    }
    // Its notes may be lost, but it is ours: what is put back first was changed last.
    if !noted {
        notes.changes.insert(0, InterfaceChange::Made { name: name.clone() });
    }
    let found = notes.changes.len();
    Ok(Leftovers { host: Some(host), notes, found })
}
