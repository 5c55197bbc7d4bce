//! Failing open: while nobody serves a link, the kernel passes frames between the stand-in and the wire by itself.
//!
//! ```text
//!   hit0 ── egress: leave through eth1 ──▶ eth1          as if hit0 were eth1, unprotected
//!   hit0 ◀── ingress: arrive at hit0 ───── eth1
//! ```
//!
//! A keeper does this when its daemon is gone ([`daemon::keeper`]); the next daemon takes the frames back. Addresses and
//! routes stay where they are, so connections go on.

use std::time::Duration;

use daemon::RunDirectory;
use daemon::keeper::FailsOpen;
use linux::net::Netlink;

use super::notes::{ChangeNotes, InterfaceChange};
use super::{LinkEnds, NotedInterface, StandIn, SystemError};

/// Time that the kernel may take to hand over the frames in its queues.
const SETTLES: Duration = Duration::from_millis(5);

/// Stand-ins, as a keeper sees them.
#[derive(Clone, Copy, Debug)]
pub struct KeptStandIn;

impl FailsOpen for KeptStandIn {
    fn fail_open(&self, directory: &RunDirectory, name: &str) -> Result<bool, SystemError> {
        let mut notes = ChangeNotes::read(directory, name)?;
        let netlink = Netlink::open()?;
        // If nothing but the stand-in was changed, the stand-in names its interface itself.
        let alias = netlink.link(name)?.as_ref().and_then(super::stands_in_for);
        if notes.ends_of(name).is_none() {
            notes.ends = alias.map(|wire| LinkEnds {
                wire: NotedInterface::new(&wire, None),
                stand_in: NotedInterface::new(name, None),
            });
        }
        let Some(ends) = notes.ends_of(name) else { return Ok(false) };
        notes.put(InterfaceChange::FailedOpen { name: name.to_owned(), interface: ends.wire.name.clone() });
        notes.write(directory, name).map_err(|error| SystemError(error.to_string()))?;
        pass(&netlink, &notes, &ends)
    }

    fn release_name(&self, directory: &RunDirectory, name: &str) -> Result<(), SystemError> {
        ChangeNotes::read(directory, name)?.ends_of(name).map_or(Ok(()), |ends| super::release_name(&ends.wire.name))
    }
}

/// Lets the kernel pass frames between both interfaces. Frames that the kernel's own stack receives at the wire it goes on
/// receiving.
fn pass(netlink: &Netlink, notes: &ChangeNotes, ends: &LinkEnds) -> Result<bool, SystemError> {
    let (Some(stand_in), Some(wire)) = (ends.stand_in(netlink)?, ends.wire(netlink)?) else { return Ok(false) };
    let wire_too = !notes.has(|change| matches!(change, InterfaceChange::Filtered { .. }));
    // A daemon that was killed while names changed hands left it closed.
    netlink.open_egress(wire.index)?;
    netlink.pass_to_each_other(stand_in.index, wire.index, wire_too)?;
    Ok(true)
}

fn is_open(change: &InterfaceChange) -> bool {
    matches!(change, InterfaceChange::FailedOpen { .. })
}

impl StandIn {
    /// True if the kernel passes frames by itself.
    pub(super) fn is_failing_open(&self) -> bool {
        self.notes.has(is_open)
    }

    /// Ends failing open: a daemon serves the link again. Arriving frames were kept from the kernel before the wire was
    /// opened: a frame may be lost in between, none comes twice.
    pub(super) fn close_again(&mut self) -> Result<(), SystemError> {
        if !self.is_failing_open() {
            return Ok(());
        }
        if !self.notes.has(|change| matches!(change, InterfaceChange::Filtered { .. })) {
            self.netlink.accept_on_ingress(self.wire_index, false)?;
        }
        self.netlink.keep_to_itself(self.index)?;
        // The kernel's last frames may still be in the queue of another processor; ours must not overtake them.
        std::thread::sleep(SETTLES);
        let found = self.notes.changes.len();
        self.notes.changes.retain(|change| !is_open(change));
        self.found -= (found - self.notes.changes.len()).min(self.found);
        self.write_notes()
    }

    /// A daemon that could not begin leaves the link as it found it.
    pub(super) fn open_again(&self) {
        if let Some(ends) = self.notes.ends_of(&self.name)
            && self.is_failing_open()
        {
            let _ = pass(&self.netlink, &self.notes, &ends);
        }
    }
}
