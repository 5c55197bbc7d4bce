//! The mark of an interface that stands in for another: its alias, which says for which one.
//!
//! ```text
//!   hit0   alias "hitless stand-in for eth1"                   eth1 has its name
//!   eth1   alias "hitless stand-in for eth1 (interface 7)"     interface 7 has another name, and its own is lent
//! ```

use std::fmt;

use super::Result;
use super::link::InterfaceInfo;
use super::netlink::Netlink;

/// What a stand-in says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandInMark {
    /// The name of the interface that it stands in for, as its users know it.
    pub interface: String,
    /// The index of that interface.
    pub wire: Option<u32>,
}

const START: &str = "hitless stand-in for ";

impl StandInMark {
    pub fn of(link: &InterfaceInfo) -> Option<Self> {
        Self::parse(link.alias.as_deref()?)
    }

    pub(super) fn parse(alias: &str) -> Option<Self> {
        let said = alias.strip_prefix(START)?;
        let with_index = said.strip_suffix(')').and_then(|said| said.split_once(" (interface "));
        Some(match with_index.and_then(|(interface, index)| Some((interface, index.parse().ok()?))) {
            Some((interface, index)) => Self { interface: interface.to_owned(), wire: Some(index) },
            None => Self { interface: said.to_owned(), wire: None },
        })
    }
}

impl fmt::Display for StandInMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{START}{}", self.interface)?;
        self.wire.map_or(Ok(()), |index| write!(f, " (interface {index})"))
    }
}

impl Netlink {
    /// The interface with the cable behind a name: the one of this name, or, if that stands in for it under its name, the one
    /// that lent it. Any interface of this name if nothing is marked.
    pub fn wire_of(&self, name: &str) -> Result<Option<InterfaceInfo>> {
        let named = self.link(name)?;
        let mark = named.as_ref().filter(|link| link.name == name).and_then(StandInMark::of);
        match mark.filter(|mark| mark.interface == name).and_then(|mark| mark.wire) {
            Some(index) => self.link_at(index),
            None => Ok(named),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::testing::{in_own_namespace, quiet_pair};

    #[test]
    fn a_mark_is_read_as_it_was_written_with_and_without_an_index() {
        for wire in [None, Some(7)] {
            let mark = StandInMark { interface: "eth1".to_owned(), wire };
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
            let mark = StandInMark { interface: "w0".to_owned(), wire: Some(wire) };
            netlink.set_alias(stand_in, &mark.to_string()).unwrap();
            assert_eq!((found("w0"), found("w0w"), found("nowhere")), (Some(wire), Some(wire), None));
            netlink.delete_link(wire).unwrap();
            assert_eq!(found("w0"), None, "its name is lent, but it is gone");
        });
    }
}
