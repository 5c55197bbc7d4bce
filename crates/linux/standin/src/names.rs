//! The name of the interface, which the stand-in has while the link is up, so that everything that goes by it goes on working:
//! rules of packet filters, policy rules, settings under `/proc/sys`, programs that are told a name.
//!
//! ```text
//!   before   eth1                    during   eth1 (altname hit0), the stand-in        after   eth1
//!                                             eth1w, the interface itself
//! ```
//!
//! The kernel names one interface at a time, so for a moment none is called eth1. Frames of either direction are dropped in
//! that moment: none may pass because a rule does not find its interface.
//!
//! While the interface is gone the stand-in is called hit0: somebody who makes it again gives it its name.

use super::notes::{ChangeNotes, InterfaceChange};
use super::{LinkEnds, StandIn, StandInConfig, SystemError};
use daemon::RunDirectory;
use linux::net::{self, InterfaceInfo, Netlink, StandInMark, wire_name};

impl StandIn {
    /// Blocks frames between the wire and the host, so that no rule by name misses one, until [`StandIn::open_wire_to_host`].
    pub(super) fn close_wire_to_host(&mut self, interface: &str) -> Result<(), SystemError> {
        self.note_filter(interface)?;
        self.netlink.drop_all_on_ingress(self.wire_index)?;
        Ok(self.netlink.drop_all_on_egress(self.wire_index)?)
    }

    /// Lets frames sent through the wire leave again. Frames that arrive there are still kept from the kernel.
    pub(super) fn open_wire_to_host(&self) -> Result<(), SystemError> {
        Ok(self.netlink.open_egress(self.wire_index)?)
    }

    /// True if the stand-in is still to get the interface's name.
    pub(super) fn lacks_name(&self, config: &StandInConfig) -> Result<bool, SystemError> {
        let named = self.netlink.existing(self.index)?;
        Ok(named.name != config.interface || !named.answers_to(&config.name))
    }

    /// Gives the stand-in the interface's name, and all others that it has.
    pub(super) fn take_name(&mut self, config: &StandInConfig) -> Result<(), SystemError> {
        let (wire, links) = (self.netlink.existing(self.wire_index)?, self.netlink.links()?);
        let stand_in = self.netlink.existing(self.index)?;
        // If the stand-in has the name already, all its alternative names but its own belong to the interface.
        let has_them = stand_in.name == config.interface;
        let lent_before = if has_them { stand_in.altnames } else { Vec::new() };
        let is_taken = |name: &str| links.iter().any(|link| link.answers_to(name));
        let lent = if wire.name == config.interface { wire_name(&wire.name, is_taken) } else { wire.name.clone() };
        let mut altnames = self.notes.swapped().map_or(lent_before, |(_, altnames)| altnames);
        altnames.extend(wire.altnames);
        altnames.retain(|name| *name != config.name);
        altnames.sort();
        altnames.dedup();
        self.note(InterfaceChange::SwappedNames { wire_name: lent.clone(), altnames: altnames.clone() })?;
        if wire.name != lent {
            self.netlink.rename(self.wire_index, &lent).map_err(|error| refused(config, &error))?;
        }
        if !has_them {
            self.netlink.rename(self.index, &config.interface).map_err(|error| refused(config, &error))?;
        }
        let missing = altnames.iter().chain([&config.name]);
        give_altnames(&self.netlink, self.wire_index, self.index, missing)?;
        self.remarks.push(format!(
            "the stand-in has the name {} (and {}), the interface itself is {lent} until the link is down",
            config.interface, config.name
        ));
        Ok(())
    }

    /// Gives a stand-in that has only its own name that name again, should somebody have given it another.
    pub(super) fn keep_own_name(&self, config: &StandInConfig) -> Result<(), SystemError> {
        let has = self.netlink.existing(self.index)?.name;
        if has == config.name { Ok(()) } else { Ok(self.netlink.rename(self.index, &config.name)?) }
    }
}

fn refused(config: &StandInConfig, error: &net::NetError) -> SystemError {
    SystemError(format!(
        "{error}; with --keep-name {} has a name of its own, and {} keeps its",
        config.name, config.interface
    ))
}

/// Moves other names of one interface to another. Names that somebody else has by now stay where they are.
fn give_altnames<'a>(
    netlink: &Netlink,
    from: u32,
    to: u32,
    names: impl Iterator<Item = &'a String>,
) -> net::Result<()> {
    for name in names {
        match netlink.link(name)? {
            Some(link) if link.index != from => {}
            found => {
                if found.is_some() {
                    netlink.delete_altname(from, name)?;
                }
                netlink.add_altname(to, name)?;
            }
        }
    }
    Ok(())
}

/// Gives the interface its names again, and the stand-in its own. Whoever is gone has none.
pub(crate) fn return_names(netlink: &Netlink, ends: &LinkEnds, altnames: &[String]) -> net::Result<()> {
    let stand_in = ends.stand_in(netlink)?;
    if let Some(stand_in) = &stand_in {
        take_own_name(netlink, stand_in, &ends.stand_in.name)?;
    }
    let Some(wire) = ends.wire(netlink)? else { return Ok(()) };
    if wire.name != ends.wire.name {
        netlink.delete_altname(wire.index, &ends.wire.name)?;
        netlink.rename(wire.index, &ends.wire.name)?;
    }
    let from = stand_in.map_or(0, |stand_in| stand_in.index);
    give_altnames(netlink, from, wire.index, altnames.iter())
}

fn take_own_name(netlink: &Netlink, stand_in: &InterfaceInfo, own_name: &str) -> net::Result<()> {
    if stand_in.name == own_name {
        return Ok(());
    }
    // A name cannot be an interface's own and another of it.
    netlink.delete_altname(stand_in.index, own_name)?;
    netlink.rename(stand_in.index, own_name)
}

/// Sees to it that the interface of a link can be found by its name, before a daemon looks for it: a stand-in may have the
/// name of an interface that is gone, and somebody may have deleted the stand-in that had its name.
pub fn settle_name(directory: &RunDirectory, name: &str, interface: &str) -> Result<(), SystemError> {
    release_name(interface)?;
    // Whoever reads them next says why they cannot be read.
    let Ok(notes) = ChangeNotes::read(directory, name) else { return Ok(()) };
    let (Some(ends), Some((lent, altnames))) = (notes.ends_of(name), notes.swapped()) else { return Ok(()) };
    let netlink = Netlink::open()?;
    let (stand_in, wire) = (ends.stand_in(&netlink)?, ends.wire(&netlink)?);
    match wire.filter(|wire| stand_in.is_none() && wire.name == lent) {
        Some(_) => Ok(return_names(&netlink, &ends, &altnames)?),
        None => Ok(()),
    }
}

/// Takes the name of an interface that is gone from its stand-in, so that it can be made again.
pub fn release_name(interface: &str) -> Result<(), SystemError> {
    let netlink = Netlink::open()?;
    let links = netlink.links()?;
    for link in links.iter().filter(|link| link.name == interface) {
        let Some(mark) = StandInMark::of(link).filter(|mark| mark.interface == interface) else { continue };
        let (None, Some(own_name)) = (mark.wire_among(&links), &mark.own_name) else { continue };
        // Those that were the interface's: whoever makes it again may give it these, too.
        for name in link.altnames.iter().filter(|name| *name != own_name) {
            netlink.delete_altname(link.index, name)?;
        }
        take_own_name(&netlink, link, own_name)?;
    }
    Ok(())
}
