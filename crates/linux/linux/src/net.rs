//! The machine's network, as far as a protected link and its tests need it: interfaces, addresses and
//! routes, traffic control, offloads and network namespaces.
//!
//! Raw netlink, ioctls and files below `/proc/sys/net`; no other program is called, so what works here works without any tool
//! installed, and without root inside a user namespace ([`become_root_of_own_namespaces`]).
//!
//! | file | what it speaks |
//! | --- | --- |
//! | `sys` | the system calls; all `unsafe` is there |
//! | `netlink` | messages, attributes, acknowledgements, dumps |
//! | `link` | interfaces: veth pairs, MAC, MTU, alias, neighbours, counters |
//! | `name`, `mark` | names, and the interface that stands in for another |
//! | `settings` | what is set for an interface under `/proc/sys/net` |
//! | `address` | addresses and routes; [`Netlink::take_over`] moves them all |
//! | `rule` | policy rules and written-down neighbours, for another interface too |
//! | `bridge` | bridges, and what they have learnt |
//! | `port` | ports of bridges, with their settings |
//! | `firewall`, `xtables` | rules of the packet filter that mean an interface |
//! | `tc` | random loss, forwarding and rate limits in the kernel; their counters |
//! | `ethtool` | offloads, speed, driver and its own counters |
//! | `stats` | what ports count, under standard names |
//! | `namespace` | network namespaces for threads and programs |
//!
//! Invariants: a [`Netlink`] acts in the namespace in which it was opened, whichever thread uses it.
//! Interfaces are named by index, which a move to another namespace may change.

mod address;
mod bridge;
mod ethtool;
mod firewall;
mod link;
mod mark;
mod name;
mod namespace;
mod netlink;
mod port;
mod rule;
mod settings;
mod stats;
mod sys;
mod tc;
mod xtables;

pub use address::{InterfaceAddress, MovedAddresses, UnicastRoute};
pub use ethtool::Offload;
pub use firewall::{FirewallMention, MentionKind};
pub use link::{InterfaceInfo, InterfaceStatistics};
pub use mark::StandInMark;
pub use name::wire_name;
pub use namespace::{Namespace, NetworkPrivilege, become_root_of_own_namespaces};
pub use netlink::Netlink;
pub use port::PortSetting;
pub use rule::PolicyRule;
pub use settings::{InterfaceSettings, adjust_settings, settings};
pub use stats::{EthtoolSocket, PortInfo, StandardStatistics};
pub use tc::{BpfInstruction, Filter, FilterAction, FilterDirection, Qdisc, QdiscStatistics};
pub use xtables::xtables_mentions;

use std::{fmt, io};

/// Error with the operation and the kernel's refusal, in one line.
#[derive(Debug)]
pub struct NetError {
    pub what: String,
    pub source: io::Error,
    /// The kernel's own words, where it gave some.
    pub detail: Option<String>,
}

pub type Result<T> = std::result::Result<T, NetError>;

impl NetError {
    fn new(what: impl Into<String>, source: io::Error) -> Self {
        Self { what: what.into(), source, detail: None }
    }

    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    pub fn raw_os_error(&self) -> Option<i32> {
        self.source.raw_os_error()
    }

    fn is_any_of(&self, codes: &[i32]) -> bool {
        self.raw_os_error().is_some_and(|code| codes.contains(&code))
    }
}

/// `add veth w0: File exists`; the error number, which says nothing to a reader, is left out.
impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut source = self.source.to_string();
        if let Some(number) = source.find(" (os error ") {
            source.truncate(number);
        }
        write!(f, "{}: {source}", self.what)?;
        self.detail.as_ref().map_or(Ok(()), |detail| write!(f, " ({detail})"))
    }
}

impl std::error::Error for NetError {}

impl From<NetError> for io::Error {
    fn from(error: NetError) -> Self {
        Self::new(error.kind(), error)
    }
}

/// Helpers for tests of this crate and of others.
#[cfg(any(test, feature = "testing"))]
pub mod testing {
    use std::net::IpAddr;

    use super::*;

    /// Runs a story in `N` fresh namespaces, or skips the test where they may not be made.
    pub fn in_namespaces<const N: usize>(story: impl FnOnce([Namespace; N])) {
        let made: Result<Vec<Namespace>> = (0..N).map(|_| Namespace::new()).collect();
        let Some(namespaces) = testkit::permitted(made) else { return };
        story(namespaces.try_into().expect("as many as were asked for"));
    }

    /// One fresh namespace with an open socket in it.
    pub fn in_own_namespace(story: impl FnOnce(&Netlink) + Send) {
        in_namespaces(|[namespace]| namespace.with(|| story(&Netlink::open().unwrap())).unwrap());
    }

    pub fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// A pair of interfaces that are up and send nothing of their own.
    pub fn quiet_pair(netlink: &Netlink, name: &str, peer: &str) -> [u32; 2] {
        netlink.add_veth(name, peer).unwrap();
        [name, peer].map(|name| {
            let index = netlink.existing_link(name).unwrap().index;
            netlink.no_ipv6_autoconf(index).unwrap();
            netlink.set_up(index, true).unwrap();
            index
        })
    }
}
