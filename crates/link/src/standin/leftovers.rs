//! What an earlier daemon left of the same link: adopted, or a reason to refuse.

use super::find::mark;
use super::notes::{ChangeNotes, InterfaceChange};
use crate::config::{HostBackend, LinkConfig};
use crate::directory::RunDirectory;
use linux::LinkError;
use linux::net::Netlink;

/// What an earlier daemon left of the same link.
pub(super) struct Leftovers {
    /// The interface is there, and is this.
    pub host: Option<HostBackend>,
    pub notes: ChangeNotes,
    /// How many changes were noted.
    pub found: usize,
}

/// Whether an interface of this name, or a stand-in for this interface, is there already.
pub(super) fn left_by_another(
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
