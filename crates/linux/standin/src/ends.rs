//! The two interfaces of a link, known by their indices: a name can be another's by now.
//!
//! An index is of no use once its interface is gone. An interface that has come back in its place is found by the name that
//! it had.

use serde::{Deserialize, Serialize};

use linux::net::{self, InterfaceInfo, Netlink, StandInMark};

/// An interface as it was when it was written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotedInterface {
    pub name: String,
    /// `None` while it is still to be made, and in the notes of earlier versions.
    pub index: Option<u32>,
}

/// The interface that is protected, by the name that its users know, and the stand-in, by its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinkEnds {
    pub wire: NotedInterface,
    pub stand_in: NotedInterface,
}

impl NotedInterface {
    pub(crate) fn new(name: &str, index: Option<u32>) -> Self {
        Self { name: name.to_owned(), index }
    }

    /// The very interface that was written down, whatever it is called by now.
    fn same(&self, netlink: &Netlink) -> net::Result<Option<InterfaceInfo>> {
        self.index.map_or(Ok(None), |index| netlink.link_at(index))
    }
}

impl LinkEnds {
    /// The protected interface, or what has come back in its place.
    pub(crate) fn wire(&self, netlink: &Netlink) -> net::Result<Option<InterfaceInfo>> {
        if let Some(wire) = self.wire.same(netlink)? {
            return Ok(Some(wire));
        }
        // The stand-in may have its name.
        let is_stand_in = |link: &InterfaceInfo| {
            Some(link.index) == self.stand_in.index
                || StandInMark::of(link).is_some_and(|mark| mark.interface == self.wire.name)
        };
        Ok(netlink.link(&self.wire.name)?.filter(|link| !is_stand_in(link)))
    }

    /// Finds the stand-in by its recorded index; without a record, by its own name.
    pub(crate) fn stand_in(&self, netlink: &Netlink) -> net::Result<Option<InterfaceInfo>> {
        match self.stand_in.index {
            Some(_) => self.stand_in.same(netlink),
            None => Ok(netlink.link(&self.stand_in.name)?.filter(|link| Some(link.index) != self.wire.index)),
        }
    }
}
