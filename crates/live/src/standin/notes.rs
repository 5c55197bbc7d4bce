//! What was changed for a link, written down as it is done, so that it can be put back: by this daemon, or by another
//! program after it was killed.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

use super::Trouble;
use crate::control::RunDirectory;
use crate::net::{self, Address, Moved, Netlink, Offload, Route};

/// Something that was changed and can be put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    Made { name: String },
    Filtered { interface: String, made_clsact: bool },
    SwitchedOffGro { interface: String },
    TookOver { from: String, to: String, addresses: Vec<Vec<u8>>, routes: Vec<Vec<u8>> },
}

impl Change {
    /// Puts it back. What is no longer there need not be.
    pub fn undo(&self, netlink: &Netlink) -> net::Result<()> {
        match self {
            Self::Made { name } => match netlink.link(name)? {
                Some(link) => netlink.delete_link(link.index),
                None => Ok(()),
            },
            Self::Filtered { interface, made_clsact } => match netlink.link(interface)? {
                Some(link) => netlink.accept_on_ingress(link.index, *made_clsact),
                None => Ok(()),
            },
            Self::SwitchedOffGro { interface } => netlink.set_offload(interface, Offload::Gro, true),
            Self::TookOver { from, to, addresses, routes } => {
                let Some(from) = netlink.link(from)? else { return Ok(()) };
                // An interface that is gone has taken its addresses along; they come back all the same.
                let to = netlink.link(to)?.map_or(0, |link| link.index);
                let addresses = addresses.iter().cloned().filter_map(Address::from_bytes).collect();
                let routes = routes.iter().cloned().filter_map(Route::from_bytes).collect();
                Moved { from: from.index, to, addresses, routes }.restore(netlink)
            }
        }
    }
}

/// What was changed for a link, kept in a file while it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Notes {
    pub changes: Vec<Change>,
}

impl Notes {
    /// What an earlier daemon wrote down; nothing if there was none.
    pub fn read(directory: &RunDirectory, name: &str) -> Option<Self> {
        serde_json::from_slice(&fs::read(directory.notes(name)).ok()?).ok()
    }

    pub fn write(&self, directory: &RunDirectory, name: &str) -> io::Result<()> {
        if self.changes.is_empty() {
            return match fs::remove_file(directory.notes(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        fs::write(directory.notes(name), serde_json::to_vec(self)?)
    }

    /// Puts back, from the last on, all but the first `kept` changes. What could not be put back stays written down, and
    /// why is returned.
    pub fn undo(&mut self, netlink: &Netlink, kept: usize) -> Vec<String> {
        let mut failed = Vec::new();
        for at in (kept..self.changes.len()).rev() {
            match self.changes[at].undo(netlink) {
                Ok(()) => drop(self.changes.remove(at)),
                Err(error) => failed.push(error.to_string()),
            }
        }
        failed
    }
}

/// Takes down what a daemon that is gone left behind. False if there is nothing.
pub fn clean_up(directory: &RunDirectory, name: &str) -> Result<bool, Trouble> {
    let Some(mut notes) = Notes::read(directory, name) else { return Ok(false) };
    let failed = notes.undo(&Netlink::open()?, 0);
    notes.write(directory, name).map_err(|error| Trouble(error.to_string()))?;
    if failed.is_empty() { Ok(true) } else { Err(Trouble(failed.join("; "))) }
}
