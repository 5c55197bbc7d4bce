//! Settings of the interface: everything under `/proc/sys/net`, and the group by which rules can mean it. The stand-in gets
//! the same settings before it is up, and changes made meanwhile are the interface's afterwards.

use super::notes::InterfaceChange;
use super::{LinkEnds, StandIn, SystemError};
use linux::net::{self, InterfaceInfo, Netlink, adjust_settings, settings};

impl StandIn {
    /// Sets the stand-in like the interface. One that an earlier daemon left has its settings already, and perhaps newer ones.
    pub(super) fn copy_settings(&mut self, wire: &InterfaceInfo) -> Result<(), SystemError> {
        if self.is_adopted && self.notes.has(|change| matches!(change, InterfaceChange::CopiedSettings { done: true }))
        {
            return Ok(());
        }
        self.note(InterfaceChange::CopiedSettings { done: false })?;
        let stand_in = self.netlink.existing(self.index)?;
        set_alike(&self.netlink, wire, &stand_in).map_err(|error| {
            SystemError(format!(
                "{error}: {} would not be set like {}; /proc/sys/net must be writable (in a unit: ReadWritePaths=/proc/sys/net)",
                stand_in.name, wire.name
            ))
        })?;
        self.note(InterfaceChange::CopiedSettings { done: true })
    }
}

fn set_alike(netlink: &Netlink, like: &InterfaceInfo, link: &InterfaceInfo) -> net::Result<()> {
    let wanted = settings(&like.name).map_err(|source| net::NetError {
        what: format!("read the settings of {}", like.name),
        source,
        detail: None,
    })?;
    adjust_settings(&link.name, &wanted)?;
    if like.group != link.group {
        netlink.set_group(link.index, like.group)?;
    }
    Ok(())
}

/// Sets the interface like its stand-in, as far as both are there.
pub(crate) fn return_settings(netlink: &Netlink, ends: &LinkEnds) -> net::Result<()> {
    match (ends.stand_in(netlink)?, ends.wire(netlink)?) {
        (Some(stand_in), Some(wire)) => set_alike(netlink, &stand_in, &wire),
        _ => Ok(()),
    }
}
