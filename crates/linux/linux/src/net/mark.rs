//! Mark of a stand-in interface: an alias that names the interface it stands in for.
//!
//! ```text
//!   hitless stand-in for eth1 (interface 7, own name hit0)
//! ```
//!
//! Names change hands: a stand-in may have the name of the interface, which has another meanwhile. The mark says which is
//! which without any file.

use std::{fmt, io};

use super::link::InterfaceInfo;
use super::netlink::Netlink;
use super::{NetError, Result};

/// Facts that a stand-in states about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandInMark {
    /// The name of the interface that it stands in for, as its users know it.
    pub interface: String,
    /// The index of that interface; marks of earlier versions lack it.
    pub wire: Option<u32>,
    /// The name that it has when it does not have the interface's.
    pub own_name: Option<String>,
}

const START: &str = "hitless stand-in for ";

impl StandInMark {
    pub fn of(link: &InterfaceInfo) -> Option<Self> {
        Self::parse(link.alias.as_deref()?)
    }

    pub fn parse(alias: &str) -> Option<Self> {
        let said = alias.strip_prefix(START)?;
        let marked = said.strip_suffix(')').and_then(|said| {
            let (interface, rest) = said.split_once(" (interface ")?;
            let (index, own_name) = rest.split_once(", own name ")?;
            let (wire, own_name) = (Some(index.parse().ok()?), Some(own_name.to_owned()));
            Some(Self { interface: interface.to_owned(), wire, own_name })
        });
        Some(marked.unwrap_or_else(|| Self { interface: said.to_owned(), wire: None, own_name: None }))
    }

    /// The interface that it stands in for, if that is among these.
    pub fn wire_among<'a>(&self, links: &'a [InterfaceInfo]) -> Option<&'a InterfaceInfo> {
        links.iter().find(|link| Some(link.index) == self.wire)
    }
}

impl fmt::Display for StandInMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{START}{}", self.interface)?;
        match (self.wire, &self.own_name) {
            (Some(index), Some(own_name)) => write!(f, " (interface {index}, own name {own_name})"),
            _ => Ok(()),
        }
    }
}

impl Netlink {
    /// The interface with the cable behind a name: the one that a stand-in for this name stands in for, whatever it is
    /// called by now, or else the one of this name.
    pub fn wire_of(&self, name: &str) -> Result<Option<InterfaceInfo>> {
        let links = self.links()?;
        let marks = links.iter().filter_map(StandInMark::of).filter(|mark| mark.interface == name);
        if let Some(wire) = marks.filter_map(|mark| mark.wire_among(&links)).next() {
            return Ok(Some(wire.clone()));
        }
        let is_itself = |link: &InterfaceInfo| StandInMark::of(link).is_some_and(|mark| mark.interface == name);
        Ok(links.into_iter().find(|link| link.answers_to(name) && !is_itself(link)))
    }

    /// Finds the wire of a stand-in as [`Self::wire_of`] does, and fails if there is none.
    pub fn existing_wire_of(&self, name: &str) -> Result<InterfaceInfo> {
        let missing = || NetError::new(format!("interface {name}"), io::Error::from_raw_os_error(libc::ENODEV));
        self.wire_of(name)?.ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::testing::{in_own_namespace, quiet_pair};

    fn mark(wire: u32) -> StandInMark {
        StandInMark { interface: "w0".to_owned(), wire: Some(wire), own_name: Some("hit0".to_owned()) }
    }

    #[test]
    fn a_mark_is_read_as_it_was_written_and_that_of_an_earlier_version_too() {
        assert_eq!(mark(7).to_string(), "hitless stand-in for w0 (interface 7, own name hit0)");
        let plain = StandInMark { wire: None, own_name: None, ..mark(0) };
        for mark in [mark(7), plain] {
            assert_eq!(StandInMark::parse(&mark.to_string()), Some(mark));
        }
        assert_eq!(StandInMark::parse("uplink"), None);
    }

    #[test]
    fn the_wire_behind_a_name_is_found_whoever_has_the_name() {
        in_own_namespace(|netlink| {
            let [wire, _] = quiet_pair(netlink, "w0", "x0");
            let [stand_in, _] = quiet_pair(netlink, "hit0", "far");
            let found = |name: &str| netlink.wire_of(name).unwrap().map(|link| link.index);
            assert_eq!(found("w0"), Some(wire));
            netlink.rename(wire, "w0w").unwrap();
            netlink.rename(stand_in, "w0").unwrap();
            assert_eq!(found("w0"), Some(stand_in), "nothing says that it stands in for another");
            netlink.set_alias(stand_in, &mark(wire).to_string()).unwrap();
            netlink.add_altname(stand_in, "hit0").unwrap();
            assert_eq!((found("w0"), found("w0w"), found("nowhere")), (Some(wire), Some(wire), None));
            assert_eq!(found("hit0"), Some(stand_in), "under its own name it is itself");
            netlink.rename(stand_in, "other0").unwrap();
            assert_eq!(found("w0"), Some(wire), "whatever the two are called by now");
            netlink.rename(stand_in, "w0").unwrap();
            netlink.delete_link(wire).unwrap();
            assert_eq!(found("w0"), None, "its name is lent, but it is gone");
        });
    }
}
