//! Notes of the changes for a link, written down before they are made, so that they can be put back: by this daemon, or by
//! another program after it was killed.
//!
//! A note is an intent. Undoing it shows whether it was carried out, in part or not at all: a setting that is not there
//! need not be put back. The file is replaced in one step, so that it is always whole; one that cannot be read is an error
//! and never taken for an empty one.

use std::fs;
use std::io;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{LinkEnds, NotedInterface, SystemError, names, offloads, settings, uppers};
use daemon::RunDirectory;
use daemon::keeper::{self, KeeperRelief};
use linux::net::{self, InterfaceAddress, MovedAddresses, NetError, Netlink, Offload, PortSetting, UnicastRoute};

/// Something that is changed and can be put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum InterfaceChange {
    Made {
        name: String,
    },
    /// The stand-in is set like the interface; not necessarily in all until it is done.
    CopiedSettings {
        done: bool,
    },
    Filtered {
        interface: String,
        made_clsact: bool,
    },
    /// The stand-in has the interface's name and its altnames, and the interface is called `wire_name`.
    SwappedNames {
        wire_name: String,
        altnames: Vec<String>,
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
    /// Settings of `from` that `to` has; not necessarily all of them until it is done.
    TookOver {
        from: String,
        to: String,
        addresses: Vec<Vec<u8>>,
        routes: Vec<Vec<u8>>,
        #[serde(default = "done")]
        done: bool,
    },
    /// No daemon serves the link, and the kernel passes frames between the two interfaces itself.
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

    /// True if both are the same change, perhaps with different details.
    fn is_kind_of(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Puts it back, to what it was after the `earlier` changes. A setting that is no longer there need not be put back.
    fn undo(&self, netlink: &Netlink, ends: &LinkEnds, earlier: &[Self]) -> net::Result<()> {
        match self {
            Self::Made { .. } => match ends.stand_in(netlink)? {
                Some(link) => netlink.delete_link(link.index),
                None => Ok(()),
            },
            // Carried back before anything else is undone.
            Self::CopiedSettings { .. } => Ok(()),
            Self::Filtered { made_clsact, .. } => match ends.wire(netlink)? {
                Some(wire) => {
                    netlink.open_egress(wire.index)?;
                    netlink.accept_on_ingress(wire.index, *made_clsact)
                }
                None => Ok(()),
            },
            Self::SwappedNames { altnames, .. } => names::return_names(netlink, ends, altnames),
            Self::SwitchedOffGro { .. } => set_gro(netlink, ends, true),
            Self::SwitchedOnGro { .. } => set_gro(netlink, ends, false),
            Self::MovedPort { bridge, settings, .. } => uppers::return_port(netlink, ends, bridge, settings),
            Self::CopiedRules { rules, .. } => uppers::delete_rules(netlink, rules),
            Self::CopiedNeighbours { neighbours, .. } => uppers::return_neighbours(netlink, ends, neighbours),
            Self::SwitchedOffFeatures { features, .. } => offloads::switch_on(netlink, ends, features),
            Self::TookOver { addresses, routes, done, .. } => {
                give_back(netlink, ends, &noted(addresses, routes), *done)
            }
            Self::FailedOpen { .. } => {
                let was_kept_off = earlier.iter().any(|change| matches!(change, Self::Filtered { .. }));
                match ends.wire(netlink)? {
                    // Rules by the interface's name would not see what the kernel receives here.
                    Some(wire) if was_kept_off => drop(netlink.drop_all_on_ingress(wire.index)?),
                    Some(wire) => netlink.accept_on_ingress(wire.index, false)?,
                    None => {}
                }
                ends.stand_in(netlink)?.map_or(Ok(()), |stand_in| netlink.keep_to_itself(stand_in.index))
            }
        }
    }
}

fn set_gro(netlink: &Netlink, ends: &LinkEnds, on: bool) -> net::Result<()> {
    match ends.wire(netlink)? {
        Some(wire) => netlink.set_offload(&wire.name, Offload::Gro, on),
        None => Ok(()),
    }
}

/// Reads the notes of a move, between no particular interfaces.
fn noted(addresses: &[Vec<u8>], routes: &[Vec<u8>]) -> MovedAddresses {
    MovedAddresses {
        from: 0,
        to: 0,
        addresses: addresses.iter().cloned().filter_map(InterfaceAddress::from_bytes).collect(),
        routes: routes.iter().cloned().filter_map(UnicastRoute::from_bytes).collect(),
    }
}

/// Moves everything that the stand-in has to the interface it stands in for, also what came later. The notes count only
/// where the stand-in itself does not show it: it is gone, or the move was never finished.
fn give_back(netlink: &Netlink, ends: &LinkEnds, noted: &MovedAddresses, done: bool) -> net::Result<()> {
    let Some(wire) = ends.wire(netlink)? else { return keep_addresses(netlink, ends) };
    let mut back = match ends.stand_in(netlink)? {
        Some(stand_in) => {
            let mut back = netlink.movable(stand_in.index, wire.index)?.labelled_as(&noted.addresses);
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
        // Like any interface that is down, it has addresses and no routes.
        back.routes.clear();
    }
    back.perform(netlink)
}

/// Refuses to lose the addresses of a host whose interface is gone: the stand-in has them until it is back.
fn keep_addresses(netlink: &Netlink, ends: &LinkEnds) -> net::Result<()> {
    let Some(stand_in) = ends.stand_in(netlink)? else { return Ok(()) };
    let kept = netlink.movable(stand_in.index, 0)?.addresses;
    let Some(address) = kept.first() else { return Ok(()) };
    let (wire, name, own) = (&ends.wire.name, &stand_in.name, &ends.stand_in.name);
    Err(NetError {
        what: format!(
            "{name} has {address}, and {wire} is gone: {name} keeps it until {wire} is there again (`ip link del {name}`, then \
             `hitless link down {own}`, gives it up)"
        ),
        source: io::Error::from_raw_os_error(libc::ENODEV),
        detail: None,
    })
}

/// Changes made for a link, kept in a file as long as they last.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ChangeNotes {
    /// The two interfaces; notes of earlier versions do not name them.
    #[serde(default)]
    pub ends: Option<LinkEnds>,
    pub changes: Vec<InterfaceChange>,
}

impl ChangeNotes {
    /// Reads the notes of an earlier daemon in this network namespace; they are empty if there was none.
    pub(crate) fn read(directory: &RunDirectory, name: &str) -> Result<Self, SystemError> {
        let path = directory.notes(name);
        let text = match directory.read_notes(name) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(Self::default()),
            Err(error) => return Err(SystemError(format!("{}: {error}", path.display()))),
        };
        serde_json::from_slice(&text).map_err(|error| {
            SystemError(format!(
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

    /// Returns the addresses and routes that were taken over, and whether all of them were.
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
            InterfaceChange::Made { .. }
            | InterfaceChange::CopiedRules { .. }
            | InterfaceChange::CopiedSettings { .. }
            | InterfaceChange::SwappedNames { .. } => None,
        })
    }

    /// The two interfaces of the link whose stand-in has this name of its own.
    pub(crate) fn ends_of(&self, name: &str) -> Option<LinkEnds> {
        let named =
            |wire: &str| LinkEnds { wire: NotedInterface::new(wire, None), stand_in: NotedInterface::new(name, None) };
        self.ends.clone().or_else(|| self.wire().map(named))
    }

    /// Present name of the interface that lent its own, and its other names.
    pub(crate) fn swapped(&self) -> Option<(String, Vec<String>)> {
        self.changes.iter().find_map(|change| match change {
            InterfaceChange::SwappedNames { wire_name, altnames } => Some((wire_name.clone(), altnames.clone())),
            _ => None,
        })
    }

    /// Puts back, from the last on, all but the first `kept` changes, of the link of this name. A change that could not be
    /// put back stays written down, and the reason is returned.
    pub(crate) fn undo(&mut self, netlink: &Netlink, name: &str, kept: usize) -> Vec<String> {
        // Without a wire nothing but the stand-in itself was changed.
        let ends = self.ends_of(name).unwrap_or_else(|| LinkEnds {
            wire: NotedInterface::new("", None),
            stand_in: NotedInterface::new(name, None),
        });
        let mut failed: Vec<String> =
            self.carry_back(netlink, &ends, kept).err().map(|error| error.to_string()).into_iter().collect();
        for at in (kept..self.changes.len()).rev() {
            // Deleting the stand-in would delete everything that could not be moved off it.
            if !failed.is_empty() && matches!(self.changes[at], InterfaceChange::Made { .. }) {
                continue;
            }
            match self.changes[at].undo(netlink, &ends, &self.changes[..at]) {
                Ok(()) => drop(self.changes.remove(at)),
                Err(error) => failed.push(error.to_string()),
            }
        }
        failed
    }

    /// Reads the settings made meanwhile, and the effect of names on labels of addresses, while everything is still in its
    /// place.
    fn carry_back(&mut self, netlink: &Netlink, ends: &LinkEnds, kept: usize) -> net::Result<()> {
        let changes = &mut self.changes[kept..];
        if let Some(InterfaceChange::TookOver { addresses, routes, done: true, .. }) =
            changes.iter_mut().find(|change| matches!(change, InterfaceChange::TookOver { .. }))
            && let (Some(stand_in), Some(wire)) = (ends.stand_in(netlink)?, ends.wire(netlink)?)
            && stand_in.up
        {
            let before = noted(addresses, routes).addresses;
            let has = netlink.movable(stand_in.index, wire.index)?.labelled_as(&before);
            *addresses = has.addresses.iter().map(|address| address.as_bytes().to_vec()).collect();
            *routes = has.routes.iter().map(|route| route.as_bytes().to_vec()).collect();
        }
        match changes.contains(&InterfaceChange::CopiedSettings { done: true }) {
            true => settings::return_settings(netlink, ends),
            false => Ok(()),
        }
    }
}

/// Reverts the changes that a dead daemon left behind. Returns `false` if there are none.
pub fn clean_up(directory: &RunDirectory, name: &str) -> Result<bool, SystemError> {
    let mut notes = ChangeNotes::read(directory, name)?;
    if notes.changes.is_empty() {
        return Ok(false);
    }
    let keeper = keeper::relieve(directory, name);
    let failed = notes.undo(&Netlink::open()?, name, 0);
    notes.write(directory, name).map_err(|error| SystemError(error.to_string()))?;
    if !failed.is_empty() {
        // The keeper goes on, and passes frames again.
        return Err(SystemError(failed.join("; ")));
    }
    keeper.into_iter().for_each(KeeperRelief::end);
    Ok(true)
}
