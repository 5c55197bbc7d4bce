//! The stand-in interface: made, adopted or taken down, and everything changed for it put back.
//!
//! ```text
//!   up     make or adopt hit0 ─▶ same MAC, MTU less the header ─▶ keep the kernel off the wire ─▶ take over
//!   down   the same backwards, from the notes of what was changed
//! ```
//!
//! Each change is written down before it is made (`notes`), so that `down` can put it back even after a daemon that was
//! killed at any moment, and so that the next daemon carries on where that one stopped: the interface survives it, with its
//! addresses and routes. Each step can be taken again. An error half way puts back what was done before it.
//!
//! Any protocol may run between its two sides ([`HostSide`], [`WireSide`]): the protected link, a host of a rack.
//!
//! | file | what it is |
//! | --- | --- |
//! | `attach`, `readiness` | its two sides opened; the interface, waited for |
//! | `bound`, `uppers`, `names`, `settings`, `offloads` | what the interface has and the stand-in gets, or what forbids it |
//! | `notes`, `ends`, `find`, `leftovers`, `open` | what was changed, put back or adopted; failing open |
//! | `backend`, `host_side`, `wire_side` | TAP, veth, packet sockets, and frames to and from them |
//! | `pool`, `queue`, `pace`, `tally` | frames in memory, frames that wait for the wire, its pace, counters |
//!
//! The kernel's own stack must not see what arrives on the wire, or every unprotected frame would be
//! received twice; a filter on ingress keeps it off, behind the packet socket. An interface that keeps addresses of
//! its own is left to the kernel as well.

mod attach;
pub mod backend;
mod bound;
mod config;
mod ends;
mod find;
mod host_side;
mod leftovers;
mod names;
mod notes;
mod offloads;
mod open;
mod pace;
mod pool;
mod queue;
mod readiness;
mod settings;
mod tally;
mod uppers;
mod wire_side;

use std::io;

use units::Rate;
use wire::ethernet::Mac;

use daemon::RunDirectory;
use daemon::keeper::{self, KeeperRelief};
use linux::SystemError;
use linux::net::{InterfaceAddress, InterfaceInfo, MovedAddresses, Netlink, Offload, Qdisc, StandInMark};

pub use attach::{StandInSides, longest_on, wire_socket};
pub use config::{HostBackend, StandInConfig, StandInDemands, WireBackend};
pub use find::{InterfaceState, find, own_name, speed as interface_speed, stands_in_for};
pub use host_side::{HostFrames, HostSide};
pub use names::{release_name, settle_name};
pub use notes::clean_up;
pub use open::KeptStandIn;
pub use pace::WirePace;
pub use pool::{FramePool, PoolFrame};
pub use queue::FrameQueue;
pub use readiness::{check_interface, wait_until_ready};
pub use tally::Tally;
pub use wire_side::{BATCH, WireSide, wait_for_sides};

use backend::Tap;
use ends::{LinkEnds, NotedInterface};
use find::{existing, room, speed};
use leftovers::{Leftovers, left_by_another};
use notes::{ChangeNotes, InterfaceChange};

/// The far end of a veth pair, where the daemon listens.
fn far_end(name: &str) -> String {
    format!("{name}_w")
}

/// Brings up a stand-in and opens both of its sides, for a protocol with these demands. Without a directory nothing is written
/// down: for namespaces that end with the program.
pub fn bring_up(
    config: &StandInConfig,
    directory: Option<&RunDirectory>,
    demands: &StandInDemands,
) -> Result<(StandInSides, StandIn), SystemError> {
    let mut stand_in = StandIn::up(config, directory, demands)?;
    match stand_in.sides(config, demands.ring) {
        Ok(sides) => Ok((sides, stand_in)),
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
    /// Directory of the notes; none if the changes cannot outlive the program.
    directory: Option<RunDirectory>,
    /// Its own name, whatever it is called while the link is up.
    name: String,
    /// Zero until it is made.
    index: u32,
    /// An earlier daemon left it.
    is_adopted: bool,
    /// It has the interface's name while the link is up.
    swaps: bool,
    notes: ChangeNotes,
    /// Number of the changes that an earlier daemon made.
    found: usize,
    host: HostBackend,
    mac: Mac,
    mtu: u32,
    wire_index: u32,
    wire_mtu: u32,
    rate: Option<Rate>,
    /// Keeper that passed frames until now, and goes on to wait until a successor has taken over.
    relief: Option<KeeperRelief>,
    /// Reason why super-frames do not pass the wire whole.
    no_super_frames: Option<&'static str>,
    /// Remarks for the user, a line each.
    pub remarks: Vec<String>,
}

impl StandIn {
    /// Makes the interface, or adopts the one that a killed daemon left.
    fn up(
        config: &StandInConfig,
        directory: Option<&RunDirectory>,
        demands: &StandInDemands,
    ) -> Result<Self, SystemError> {
        let netlink = Netlink::open()?;
        let wire = existing(&netlink, &config.interface)?;
        let mtu = room(config, wire.mtu, demands.overhead as u32)?;
        uppers::check(&netlink, config, &wire, mtu)?;
        if let Some(directory) = directory {
            directory.make().map_err(|error| SystemError(format!("{}: {error}", directory.path().display())))?;
        }
        let left = left_by_another(&netlink, config, &wire, directory)?;
        let took_over = left.notes.taken_over().is_some_and(|(_, done)| done);
        // An earlier daemon that took over decided about the names.
        let swaps = left.notes.swapped().is_some() || (!took_over && bound::swaps_names(config, &wire));
        if swaps && wire.name != config.interface && wire.answers_to(&config.interface) {
            let (other, name) = (&config.interface, &wire.name);
            return Err(SystemError(format!("{other} is another name of {name}; say {name}, or --keep-name")));
        }
        if config.take_over && !took_over {
            bound::check(&netlink, config, &wire, swaps)?;
        }
        let rate = config.rate.or_else(|| speed(&netlink, &wire.name));
        let mut stand_in = Self {
            netlink,
            directory: directory.cloned(),
            name: config.name.clone(),
            index: 0,
            is_adopted: left.host.is_some(),
            swaps,
            notes: ChangeNotes::default(),
            found: 0,
            host: config.host,
            mac: Mac(wire.mac),
            mtu,
            wire_index: wire.index,
            wire_mtu: wire.mtu,
            rate,
            // Before anything changes: it passes frames again if this daemon ends half way.
            relief: directory.and_then(|directory| keeper::relieve(directory, &config.name)),
            no_super_frames: demands.no_super_frames,
            remarks: Vec::new(),
        };
        match stand_in.build(config, &wire, left) {
            Ok(()) => Ok(stand_in),
            Err(trouble) => {
                stand_in.step_back();
                Err(trouble)
            }
        }
    }

    fn build(&mut self, config: &StandInConfig, wire: &InterfaceInfo, left: Leftovers) -> Result<(), SystemError> {
        (self.notes, self.found) = (left.notes, left.found);
        match left.host {
            Some((index, host)) => {
                self.know_ends(config, Some(index));
                self.host = host;
                self.note(InterfaceChange::Made { name: self.name.clone() })?;
                self.remarks.push(format!("{} was left by an earlier daemon and is adopted", self.name));
            }
            None => {
                self.know_ends(config, None);
                self.make(config)?;
                self.know_ends(config, Some(self.netlink.existing_link(&self.name)?.index));
                self.write_notes()?;
            }
        }
        self.prepare(config)?;
        if config.take_over {
            self.copy_settings(wire)?;
        }
        self.netlink.set_up(self.index, true)?;
        self.remark_on_mtu(config);
        if config.take_over {
            self.take_over(config, left.host.is_none())?;
        } else if !self.swaps {
            self.keep_own_name(config)?;
        }
        self.keep_kernel_off(config)
    }

    /// The two interfaces, by their indices as far as they have some.
    fn know_ends(&mut self, config: &StandInConfig, index: Option<u32>) {
        self.index = index.unwrap_or(0);
        let wire = NotedInterface::new(&config.interface, Some(self.wire_index));
        self.notes.ends = Some(LinkEnds { wire, stand_in: NotedInterface::new(&config.name, index) });
    }

    /// Everything that the stand-in has to have before it is up.
    fn prepare(&mut self, config: &StandInConfig) -> Result<(), SystemError> {
        let link = self.netlink.existing(self.index)?;
        if link.mac != self.mac.0 {
            self.netlink.set_mac(self.index, self.mac.0)?;
        }
        let (interface, own_name) = (config.interface.clone(), Some(config.name.clone()));
        let mark = StandInMark { interface, wire: Some(self.wire_index), own_name };
        self.netlink.set_alias(self.index, &mark.to_string())?;
        offloads::leave_tunnels_to_kernel(&self.netlink, &link.name)?;
        self.netlink.set_mtu(self.index, self.mtu)?;
        if self.host == HostBackend::Veth {
            self.prepare_far_end()?;
            self.take_long_frames(self.index)?;
        }
        Ok(())
    }

    fn remark_on_mtu(&mut self, config: &StandInConfig) {
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
    }

    fn make(&mut self, config: &StandInConfig) -> Result<(), SystemError> {
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
                return Err(SystemError(format!("{why}; use --backend veth, or load the tun module")));
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
    fn prepare_far_end(&self) -> Result<(), SystemError> {
        let far = self.netlink.existing_link(&far_end(&self.name))?;
        self.netlink.set_mtu(far.index, self.mtu)?;
        let _ = self.netlink.no_ipv6_autoconf(far.index);
        self.netlink.drop_all_on_ingress(far.index)?;
        self.netlink.set_up(far.index, true)?;
        Ok(())
    }

    /// Gives the stand-in everything that the interface has: its place in a bridge, its name, its neighbours, addresses and
    /// routes. Steps that an earlier daemon did not finish are done again.
    fn take_over(&mut self, config: &StandInConfig, is_new: bool) -> Result<(), SystemError> {
        self.leave_bridge()?;
        // While the interface has its name: addresses are labelled with it.
        let moved = self.addresses_to_move(config, is_new)?;
        // Also where an earlier daemon has given it, and its notes are lost: then the names are noted again.
        if self.swaps && (self.notes.swapped().is_none() || self.lacks_name(config)?) {
            self.close_wire_to_host(&config.interface)?;
            self.take_name(config)?;
        } else if !self.swaps {
            self.keep_own_name(config)?;
            self.copy_rules()?;
        }
        self.become_port()?;
        self.copy_neighbours(config)?;
        if let Some(moved) = moved {
            moved.perform(&self.netlink)?;
            let has = self.netlink.movable(self.index, self.wire_index)?;
            self.note(InterfaceChange::took_over(&config.interface, &self.name, &has, true))?;
        }
        // Nothing goes by the wire any more.
        self.open_wire_to_host()
    }

    /// Addresses and routes that are still to be moved, written down. Those that an earlier daemon did not finish, or that
    /// went with the interface that it had made, are in the notes.
    fn addresses_to_move(
        &mut self,
        config: &StandInConfig,
        is_new: bool,
    ) -> Result<Option<MovedAddresses>, SystemError> {
        let mut moved = self.netlink.movable(self.wire_index, self.index)?;
        if let Some((noted, done)) = self.notes.taken_over() {
            if !done || is_new {
                moved = moved.labelled_as(&noted.addresses).joined(noted.addresses, noted.routes);
            } else if moved.addresses.is_empty() && moved.routes.is_empty() {
                return Ok(None);
            }
        }
        self.note(InterfaceChange::took_over(&config.interface, &self.name, &moved, false))?;
        Ok(Some(moved))
    }

    fn keep_kernel_off(&mut self, config: &StandInConfig) -> Result<(), SystemError> {
        self.no_super_frames = self.no_super_frames.or_else(|| self.unordered_queues());
        if self.no_super_frames.is_none() {
            self.join_on_arrival()?;
        } else {
            let wire = self.netlink.existing(self.wire_index)?.name;
            if self.netlink.offload(&wire, Offload::Gro).unwrap_or(false) {
                // Frames joined on arrival are not what was on the wire.
                self.note(InterfaceChange::SwitchedOffGro { interface: config.interface.clone() })?;
                self.netlink.set_offload(&wire, Offload::Gro, false)?;
            }
        }
        self.no_joining_by_card()?;
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
        self.note_filter(&config.interface)?;
        self.netlink.drop_all_on_ingress(self.wire_index)?;
        Ok(())
    }

    fn note_filter(&mut self, interface: &str) -> Result<(), SystemError> {
        if self.notes.has(|change| matches!(change, InterfaceChange::Filtered { .. })) {
            return Ok(());
        }
        let made_clsact = self.netlink.qdisc_statistics(self.wire_index, Qdisc::Clsact)?.is_none();
        self.note(InterfaceChange::Filtered { interface: interface.to_owned(), made_clsact })
    }

    /// Writes down what is about to be changed.
    fn note(&mut self, change: InterfaceChange) -> Result<(), SystemError> {
        self.notes.put(change);
        self.write_notes()
    }

    fn write_notes(&self) -> Result<(), SystemError> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let named = |error: io::Error| SystemError(format!("{}: {error}", directory.notes(&self.name).display()));
        self.notes.write(directory, &self.name).map_err(named)
    }

    /// True if the interface that it stands in for has been deleted.
    pub fn is_interface_gone(&self) -> bool {
        matches!(self.netlink.link_at(self.wire_index), Ok(None))
    }

    /// Puts everything back, as far as it can be; what could not be is returned.
    pub fn down(&mut self) -> Vec<String> {
        let failed = self.undo(0);
        self.relief.take().into_iter().for_each(KeeperRelief::end);
        failed
    }

    /// The link is served again, and fails open if this daemon is killed too: the former keeper ends.
    pub fn dismiss_former_keeper(&mut self) {
        drop(self.relief.take().map(KeeperRelief::acknowledge));
    }

    /// Puts back what was changed just now, and leaves what was found.
    fn step_back(&mut self) {
        self.undo(self.found);
        // It may have been closed for names that were found.
        let _ = self.open_wire_to_host();
        self.open_again();
    }

    fn undo(&mut self, kept: usize) -> Vec<String> {
        let mut failed = self.notes.undo(&self.netlink, &self.name, kept);
        if let Some(directory) = &self.directory {
            failed.extend(self.notes.write(directory, &self.name).err().map(|error| error.to_string()));
        }
        failed
    }
}

fn is_link_local(address: &InterfaceAddress) -> bool {
    matches!(address.ip(), std::net::IpAddr::V6(ip) if ip.is_unicast_link_local())
}
