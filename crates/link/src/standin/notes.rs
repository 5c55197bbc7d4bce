//! What is changed for a link, written down before it is done, so that it can be put back: by this daemon, or by another
//! program after it was killed.
//!
//! A note is an intent. Whether it was carried out, in part or not at all, is seen when it is undone: what is not there
//! need not be put back. The file is replaced in one step, so that it is always whole; one that cannot be read is an
//! error and never taken for an empty one.

use std::fs;
use std::io;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{LinkError, offloads, uppers};
use crate::directory::RunDirectory;
use crate::keeper::{self, KeeperRelief};
use linux::net::{self, InterfaceAddress, MovedAddresses, Netlink, Offload, PortSetting, UnicastRoute};

/// Something that is changed and can be put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum InterfaceChange {
    Made {
        name: String,
    },
    Filtered {
        interface: String,
        made_clsact: bool,
    },
    SwitchedOffGro {
        interface: String,
    },
    SwitchedOnGro {
        interface: String,
    },
    MovedPort {
        from: String,
        to: String,
        bridge: String,
        settings: Vec<PortSetting>,
        #[serde(default = "done")]
        done: bool,
    },
    CopiedRules {
        rules: Vec<Vec<u8>>,
        #[serde(default = "done")]
        done: bool,
    },
    CopiedNeighbours {
        interface: String,
        neighbours: Vec<(IpAddr, [u8; 6])>,
        #[serde(default = "done")]
        done: bool,
    },
    SwitchedOffFeatures {
        interface: String,
        features: Vec<String>,
    },
    /// What `to` has of `from`'s; not necessarily all of it until it is done.
    TookOver {
        from: String,
        to: String,
        addresses: Vec<Vec<u8>>,
        routes: Vec<Vec<u8>>,
        #[serde(default = "done")]
        done: bool,
    },
    /// Nobody serves the link, and the kernel passes frames between the two interfaces itself.
    FailedOpen {
        name: String,
        interface: String,
    },
}

/// Notes of earlier versions were written when it was.
fn done() -> bool {
    true
}

impl InterfaceChange {
    pub(crate) fn took_over(from: &str, to: &str, moved: &MovedAddresses, done: bool) -> Self {
        Self::TookOver {
            from: from.to_owned(),
            to: to.to_owned(),
            addresses: moved.addresses.iter().map(|address| address.as_bytes().to_vec()).collect(),
            routes: moved.routes.iter().map(|route| route.as_bytes().to_vec()).collect(),
            done,
        }
    }

    /// The same change, though perhaps with other particulars.
    fn is_kind_of(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Puts it back. What is no longer there need not be.
    pub(crate) fn undo(&self, netlink: &Netlink) -> net::Result<()> {
        match self {
            Self::Made { name } => match netlink.link(name)? {
                Some(link) => netlink.delete_link(link.index),
                None => Ok(()),
            },
            Self::Filtered { interface, made_clsact } => match netlink.link(interface)? {
                Some(link) => netlink.accept_on_ingress(link.index, *made_clsact),
                None => Ok(()),
            },
            Self::SwitchedOffGro { interface } => match netlink.link(interface)? {
                Some(_) => netlink.set_offload(interface, Offload::Gro, true),
                None => Ok(()),
            },
            Self::SwitchedOnGro { interface } => match netlink.link(interface)? {
                Some(_) => netlink.set_offload(interface, Offload::Gro, false),
                None => Ok(()),
            },
            Self::MovedPort { from, to, bridge, settings, .. } => {
                uppers::return_port(netlink, from, to, bridge, settings)
            }
            Self::CopiedRules { rules, .. } => uppers::delete_rules(netlink, rules),
            Self::CopiedNeighbours { interface, neighbours, .. } => {
                uppers::return_neighbours(netlink, interface, neighbours)
            }
            Self::SwitchedOffFeatures { interface, features } => offloads::switch_on(netlink, interface, features),
            Self::TookOver { from, to, addresses, routes, done } => {
                give_back(netlink, from, to, &noted(addresses, routes), *done)
            }
            Self::FailedOpen { name, interface } => {
                if let Some(wire) = netlink.link(interface)? {
                    netlink.accept_on_ingress(wire.index, false)?;
                }
                netlink.link(name)?.map_or(Ok(()), |stand_in| netlink.keep_to_itself(stand_in.index))
            }
        }
    }
}

/// What was written down of a move, between no particular interfaces.
fn noted(addresses: &[Vec<u8>], routes: &[Vec<u8>]) -> MovedAddresses {
    MovedAddresses {
        from: 0,
        to: 0,
        addresses: addresses.iter().cloned().filter_map(InterfaceAddress::from_bytes).collect(),
        routes: routes.iter().cloned().filter_map(UnicastRoute::from_bytes).collect(),
    }
}

/// Moves everything that the stand-in has to the interface it stands in for, also what came later. What was noted counts only
/// where the stand-in itself does not show it: it is gone, or the move was never finished.
fn give_back(netlink: &Netlink, wire: &str, stand_in: &str, noted: &MovedAddresses, done: bool) -> net::Result<()> {
    let Some(wire) = netlink.link(wire)? else { return Ok(()) };
    let mut back = match netlink.link(stand_in)? {
        Some(stand_in) => {
            let mut back = netlink.movable(stand_in.index, wire.index)?;
            if !done {
                back = back.joined(noted.addresses.clone(), Vec::new());
            }
            if !done || !stand_in.up {
                // The routes of an interface that is set down are gone.
                back = back.joined(Vec::new(), noted.routes.clone());
            }
            back
        }
        None => MovedAddresses { to: wire.index, ..noted.clone() },
    };
    if !wire.up {
        // As with any interface that is down: it has addresses, and no routes.
        back.routes.clear();
    }
    back.perform(netlink)
}

/// What is changed for a link, kept in a file while it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ChangeNotes {
    pub changes: Vec<InterfaceChange>,
}

impl ChangeNotes {
    /// What an earlier daemon wrote down in this network namespace; nothing if there was none.
    pub(crate) fn read(directory: &RunDirectory, name: &str) -> Result<Self, LinkError> {
        let path = directory.notes(name);
        let text = match directory.read_notes(name) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(Self::default()),
            Err(error) => return Err(LinkError(format!("{}: {error}", path.display()))),
        };
        serde_json::from_slice(&text).map_err(|error| {
            LinkError(format!(
                "{}: not the notes of a link ({error}); put back by hand what `ip address` and `ip route` show of {name}, \
                 then remove the file",
                path.display()
            ))
        })
    }

    /// Writes in one step: a reader finds either the old notes or the new ones.
    pub(crate) fn write(&self, directory: &RunDirectory, name: &str) -> io::Result<()> {
        if self.changes.is_empty() {
            return match fs::remove_file(directory.notes(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        directory.write_notes(name, self)
    }

    pub(crate) fn has(&self, matches: impl Fn(&InterfaceChange) -> bool) -> bool {
        self.changes.iter().any(matches)
    }

    /// Notes a change in place of what was noted of its kind, and otherwise as the latest.
    pub(crate) fn put(&mut self, change: InterfaceChange) {
        match self.changes.iter_mut().find(|noted| noted.is_kind_of(&change)) {
            Some(noted) => *noted = change,
            None => self.changes.push(change),
        }
    }

    /// Features that were switched off.
    pub(crate) fn switched_off(&self) -> Vec<String> {
        let features = self.changes.iter().filter_map(|change| match change {
            InterfaceChange::SwitchedOffFeatures { features, .. } => Some(features.clone()),
            _ => None,
        });
        features.flatten().collect()
    }

    /// What was taken over, and whether all of it was.
    pub(crate) fn taken_over(&self) -> Option<(MovedAddresses, bool)> {
        self.changes.iter().find_map(|change| match change {
            InterfaceChange::TookOver { addresses, routes, done, .. } => Some((noted(addresses, routes), *done)),
            _ => None,
        })
    }

    /// The interface that was protected, if the notes name it.
    pub(crate) fn wire(&self) -> Option<&str> {
        self.changes.iter().find_map(|change| match change {
            InterfaceChange::Filtered { interface, .. }
            | InterfaceChange::SwitchedOffGro { interface }
            | InterfaceChange::SwitchedOnGro { interface } => Some(interface.as_str()),
            InterfaceChange::TookOver { from, .. } | InterfaceChange::MovedPort { from, .. } => Some(from.as_str()),
            InterfaceChange::FailedOpen { interface, .. }
            | InterfaceChange::CopiedNeighbours { interface, .. }
            | InterfaceChange::SwitchedOffFeatures { interface, .. } => Some(interface.as_str()),
            InterfaceChange::Made { .. } | InterfaceChange::CopiedRules { .. } => None,
        })
    }

    /// Puts back, from the last on, all but the first `kept` changes. What could not be put back stays written down, and
    /// why is returned.
    pub(crate) fn undo(&mut self, netlink: &Netlink, kept: usize) -> Vec<String> {
        let mut failed = Vec::new();
        for at in (kept..self.changes.len()).rev() {
            // What could not be moved off it would go with it.
            if !failed.is_empty() && matches!(self.changes[at], InterfaceChange::Made { .. }) {
                continue;
            }
            match self.changes[at].undo(netlink) {
                Ok(()) => drop(self.changes.remove(at)),
                Err(error) => failed.push(error.to_string()),
            }
        }
        failed
    }
}

/// Takes down what a daemon that is gone left behind. False if there is nothing.
pub fn clean_up(directory: &RunDirectory, name: &str) -> Result<bool, LinkError> {
    let mut notes = ChangeNotes::read(directory, name)?;
    if notes.changes.is_empty() {
        return Ok(false);
    }
    let keeper = keeper::relieve(directory, name);
    let failed = notes.undo(&Netlink::open()?, 0);
    notes.write(directory, name).map_err(|error| LinkError(error.to_string()))?;
    if !failed.is_empty() {
        // The keeper goes on, and passes frames again.
        return Err(LinkError(failed.join("; ")));
    }
    keeper.into_iter().for_each(KeeperRelief::end);
    Ok(true)
}
