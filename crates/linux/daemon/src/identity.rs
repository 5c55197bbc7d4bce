//! Identity of a network namespace, to tell it from the one that gets its number when it is gone.
//!
//! The kernel gives the inode number of a namespace that is gone to the next one. State that is kept in files therefore says in
//! which namespace it was written, and is used in no other: the addresses of a host that is gone are nobody's. Since Linux 5.14 a
//! namespace has a cookie, unique until the machine starts again. Before, one is taken for another incarnation of itself
//! unless one of its interfaces still has both the index and the Ethernet address that it had.

use linux::net::{Namespace, Netlink};
use serde::{Deserialize, Serialize};

/// A network namespace, as state in files names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceIdentity {
    /// The machine's present run, as the kernel names it.
    boot: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cookie: Option<u64>,
    /// Index and Ethernet address of each interface that has one, where there is no cookie.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    interfaces: Vec<(u32, [u8; 6])>,
}

impl NamespaceIdentity {
    /// The calling thread's namespace.
    pub fn current() -> Self {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
        match Namespace::cookie() {
            Some(cookie) => Self { boot, cookie: Some(cookie), interfaces: Vec::new() },
            None => Self { boot, cookie: None, interfaces: interfaces() },
        }
    }

    /// True if both are the same namespace.
    pub fn fits(&self, other: &Self) -> bool {
        let shares_interface = || self.interfaces.iter().any(|interface| other.interfaces.contains(interface));
        self.boot == other.boot
            && match (self.cookie, other.cookie) {
                (Some(one), Some(another)) => one == another,
                (None, None) => shares_interface(),
                _ => false,
            }
    }
}

fn interfaces() -> Vec<(u32, [u8; 6])> {
    let links = Netlink::open().and_then(|netlink| netlink.links()).unwrap_or_default();
    links.into_iter().filter(|link| link.mac != [0; 6]).map(|link| (link.index, link.mac)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(boot: &str, cookie: Option<u64>, interfaces: &[(u32, [u8; 6])]) -> NamespaceIdentity {
        NamespaceIdentity { boot: boot.to_owned(), cookie, interfaces: interfaces.to_vec() }
    }

    #[test]
    fn a_namespace_is_the_same_only_with_the_same_cookie_of_the_same_boot() {
        let here = of("b1", Some(7), &[]);
        assert!(here.fits(&here.clone()));
        assert!(!here.fits(&of("b1", Some(8), &[])));
        assert!(!here.fits(&of("b2", Some(7), &[])), "cookies begin again with the machine");
        assert!(!here.fits(&of("b1", None, &[])));
    }

    #[test]
    fn without_cookies_one_interface_that_stayed_is_enough_and_none_is_not() {
        let (wire, other) = ((2, [2, 0, 0, 0, 0, 1]), (3, [2, 0, 0, 0, 0, 9]));
        let before = of("b1", None, &[wire, other]);
        // A driver was loaded again: one interface has another index.
        assert!(before.fits(&of("b1", None, &[(7, other.1), wire])));
        assert!(
            !before.fits(&of("b1", None, &[(2, [2, 0, 0, 0, 0, 5])])),
            "a pair of veth has a new address each time"
        );
        assert!(!before.fits(&of("b1", None, &[])) && !before.fits(&of("b2", None, &[wire])));
    }

    #[test]
    fn what_is_written_is_read() {
        let here = NamespaceIdentity::current();
        let text = serde_json::to_string(&here).unwrap();
        assert_eq!(serde_json::from_str::<NamespaceIdentity>(&text).unwrap(), here);
        assert!(here.cookie.is_none() || here.fits(&here));
    }
}
