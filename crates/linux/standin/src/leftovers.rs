//! Remains of an earlier daemon of the same link: adopted, or a reason to refuse.

use super::notes::{ChangeNotes, InterfaceChange};
use super::{HostBackend, StandInConfig};
use daemon::RunDirectory;
use linux::SystemError;
use linux::net::{InterfaceInfo, Netlink, StandInMark};

/// Remains of an earlier daemon of the same link.
pub(super) struct Leftovers {
    /// The interface is there, of this index and kind.
    pub host: Option<(u32, HostBackend)>,
    pub notes: ChangeNotes,
    /// Number of changes in the notes.
    pub found: usize,
}

/// Finds an interface of this name, or a stand-in for this interface, that is there already.
pub(super) fn left_by_another(
    netlink: &Netlink,
    config: &StandInConfig,
    wire: &InterfaceInfo,
    directory: Option<&RunDirectory>,
) -> Result<Leftovers, SystemError> {
    let (name, interface) = (&config.name, &config.interface);
    let links = netlink.links()?;
    let mut notes = directory.map_or(Ok(ChangeNotes::default()), |directory| ChangeNotes::read(directory, name))?;
    let by_index = notes.ends_of(name).map_or(Ok(None), |ends| ends.stand_in(netlink))?.map(|link| link.index);
    let is_meant = |link: &InterfaceInfo| Some(link.index) == by_index || link.answers_to(name);
    // A stand-in for the same name, or for the same interface under another name.
    let is_for_it = |link: &InterfaceInfo| {
        StandInMark::of(link).is_some_and(|mark| mark.interface == *interface || mark.wire == Some(wire.index))
    };
    if let Some(other) = links.iter().find(|link| !is_meant(link) && is_for_it(link)) {
        let other = StandInMark::of(other).and_then(|mark| mark.own_name).unwrap_or_else(|| other.name.clone());
        return Err(SystemError(format!(
            "{interface} is protected already, by {other}; `hitless link down {other}` first"
        )));
    }
    let noted = notes.has(|change| matches!(change, InterfaceChange::Made { .. }));
    if let Some(ends) = notes.ends_of(name).filter(|ends| ends.wire.name != *interface) {
        return Err(SystemError(format!(
            "{name} was left by a daemon for {}; `hitless link down {name}` first, or choose another --name",
            ends.wire.name
        )));
    }
    if config.keep_name && notes.swapped().is_some() {
        return Err(SystemError(format!(
            "{name} was left by a daemon without --keep-name, and has the name of {interface}; `hitless link down {name}` first"
        )));
    }
    let Some(link) = links.iter().find(|link| is_meant(link)) else {
        let found = notes.changes.len();
        return Ok(Leftovers { host: None, notes, found });
    };
    // Noted, but not yet marked: the daemon was killed in between.
    let half_made = noted && link.alias.is_none();
    if StandInMark::of(link).is_none_or(|mark| mark.interface != *interface) && !half_made {
        return Err(SystemError(format!("the name {name} is taken by another interface; choose one with --name")));
    }
    let host = if link.kind.as_deref() == Some("veth") { HostBackend::Veth } else { HostBackend::Tap };
    if config.host != HostBackend::Auto && config.host != host {
        return Err(SystemError(format!("{name} is there already, as {host}; `hitless link down {name}` first")));
    }
    // Its notes may be lost, but it is ours: what is put back first was changed last.
    if !noted {
        notes.changes.insert(0, InterfaceChange::Made { name: name.clone() });
    }
    let found = notes.changes.len();
    Ok(Leftovers { host: Some((link.index, host)), notes, found })
}
