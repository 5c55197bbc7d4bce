//! Names of interfaces: their own, the others that they answer to, and the devices behind them. A name can be given to
//! another interface at any time; an index stays with its interface for as long as that exists.

use std::io;

use super::link::{InterfaceInfo, header};
use super::netlink::{Netlink, NetlinkRequest};
use super::{NetError, Result};

/// `IFNAMSIZ`, with the zero at its end.
const LONGEST: usize = 16;
/// A constant that libc lacks.
const NEW_LINK_PROPERTY: u16 = 108;
const DELETE_LINK_PROPERTY: u16 = 109;
pub(super) const PROPERTIES: u16 = 52;
pub(super) const ALTERNATIVE_NAME: u16 = 53;

impl Netlink {
    /// The interface of this index, if there is one.
    pub fn link_at(&self, index: u32) -> Result<Option<InterfaceInfo>> {
        match self.describe(index) {
            Ok(message) => Ok(InterfaceInfo::parse(&message)),
            Err(error) if error.is_any_of(&[libc::ENODEV, libc::EINVAL]) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The interface of this index, which must exist.
    pub fn existing(&self, index: u32) -> Result<InterfaceInfo> {
        let missing = || NetError::new(format!("interface {index}"), io::Error::from_raw_os_error(libc::ENODEV));
        self.link_at(index)?.ok_or_else(missing)
    }

    /// Gives an interface another name of its own. One that is up can have it since Linux 6.2.
    pub fn rename(&self, index: u32, name: &str) -> Result<()> {
        let request = NetlinkRequest::new(libc::RTM_SETLINK, 0, &header(index, 0, 0)).string(libc::IFLA_IFNAME, name);
        self.execute_on(index, format_args!("give the name {name} to"), request)
    }

    /// Lets an interface answer to another name as well.
    pub fn add_altname(&self, index: u32, name: &str) -> Result<()> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL | libc::NLM_F_APPEND;
        let request = altname(NEW_LINK_PROPERTY, flags, index, name);
        self.execute_on(index, format_args!("give the other name {name} to"), request)
    }

    /// A name that is gone already is no error.
    pub fn delete_altname(&self, index: u32, name: &str) -> Result<()> {
        let request = altname(DELETE_LINK_PROPERTY, 0, index, name);
        match self.execute_on(index, format_args!("take the other name {name} from"), request) {
            Err(error) if error.is_any_of(&[libc::ENOENT]) => Ok(()),
            deleted => deleted,
        }
    }
}

fn altname(kind: u16, flags: i32, index: u32, name: &str) -> NetlinkRequest {
    NetlinkRequest::new(kind, flags, &header(index, 0, 0))
        .nested(PROPERTIES, |properties| properties.string(ALTERNATIVE_NAME, name))
}

/// A name that is like `name` and that nobody has, by `is_taken`: `name` with a `w` behind it, shortened if it must be, and
/// with a number if somebody has that.
pub fn wire_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let with = |ending: &str| {
        let mut start = name.len().min(LONGEST - 1 - ending.len());
        while !name.is_char_boundary(start) {
            start -= 1;
        }
        format!("{}{ending}", &name[..start])
    };
    let numbered = (1..).map(|number: u32| with(&format!("w{number}")));
    std::iter::once(with("w")).chain(numbered).find(|name| !is_taken(name)).expect("numbers do not end")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::testing::{in_own_namespace, quiet_pair};

    #[test]
    fn the_name_of_a_wire_is_free_and_short_enough() {
        assert_eq!(wire_name("eth1", |_| false), "eth1w");
        assert_eq!(wire_name("eth1", |name| ["eth1w", "eth1w1"].contains(&name)), "eth1w2");
        assert_eq!(wire_name("enp175s0f1np123", |_| false), "enp175s0f1np12w");
        assert_eq!(wire_name("enp175s0f1np12w", |name| name.ends_with("2w")), "enp175s0f1np1w1");
    }

    #[test]
    fn an_interface_that_is_up_is_renamed_and_answers_to_all_its_names() {
        in_own_namespace(|netlink| {
            let [index, _] = quiet_pair(netlink, "w0", "x0");
            netlink.rename(index, "w0w").unwrap();
            netlink.add_altname(index, "uplink").unwrap();
            for name in ["w0w", "uplink"] {
                let link = netlink.existing_link(name).unwrap();
                assert_eq!((link.index, link.name.as_str(), link.up), (index, "w0w", true));
                assert_eq!(link.altnames, ["uplink"]);
            }
            assert_eq!(netlink.link("w0").unwrap(), None);
            netlink.delete_altname(index, "uplink").unwrap();
            netlink.delete_altname(index, "uplink").unwrap();
            assert!(netlink.link_at(index).unwrap().unwrap().altnames.is_empty());
            netlink.delete_link(index).unwrap();
            assert_eq!(netlink.link_at(index).unwrap(), None);
        });
    }
}
