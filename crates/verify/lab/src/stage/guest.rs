//! A host that comes and goes: one interface whose cable leads to a place of its own, with an address and a default route.
//!
//! The kernel gives the number of a namespace that is gone to the next one, and a guest may ask for it: a host that begins where another
//! ended, as containers do.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use linux::net::{self, InterfaceAddress, Namespace, Netlink, UnicastRoute};

/// Namespaces that are made until one has the number that is wanted. The kernel numbers other things with the same numbers, so
/// they come with gaps.
const ATTEMPTS: usize = 100;
/// The kernel takes a namespace apart some time after its last user is gone, and gives its numbers back one by one: who asks in between
/// gets some of them for something else.
const TAKEN_APART: Duration = Duration::from_millis(300);
const ROUNDS: usize = 2;
const MTU: u32 = 1_600;

/// A host with one interface, `g0`.
#[derive(Debug)]
pub struct GuestHost {
    pub namespace: Namespace,
    /// Namespace of the far end of its cable.
    _far: Namespace,
}

impl GuestHost {
    pub const PLUG: &str = "g0";

    /// A host with this address, of a network of its own, whose first address is the gateway.
    pub fn new(address: Ipv4Addr) -> net::Result<Self> {
        Self::in_namespace(Namespace::new()?, address)
    }

    /// A host in the namespace number of a host that is gone, if that number is free.
    pub fn numbered(number: u64, address: Ipv4Addr) -> net::Result<Self> {
        for _ in 0..ROUNDS {
            std::thread::sleep(TAKEN_APART);
            // Those that have another number are kept until the right one was found, so that each is new.
            let mut others = Vec::new();
            for _ in 0..ATTEMPTS {
                let namespace = Namespace::new()?;
                if namespace.number()? == number {
                    return Self::in_namespace(namespace, address);
                }
                others.push(namespace);
            }
        }
        Self::new(address)
    }

    fn in_namespace(namespace: Namespace, address: Ipv4Addr) -> net::Result<Self> {
        let far = Namespace::new()?;
        let [first, second, third, _] = address.octets();
        let gateway = IpAddr::V4(Ipv4Addr::new(first, second, third, 1));
        far.with(|| -> net::Result<()> {
            let netlink = Netlink::open()?;
            netlink.add_veth(Self::PLUG, "far0")?;
            netlink.set_up(netlink.existing_link("far0")?.index, true)?;
            netlink.set_namespace(netlink.existing_link(Self::PLUG)?.index, &namespace)
        })??;
        namespace.with(|| -> net::Result<()> {
            let netlink = Netlink::open()?;
            netlink.set_loopback_up()?;
            let index = netlink.existing_link(Self::PLUG)?.index;
            netlink.set_mtu(index, MTU)?;
            netlink.add_address(index, &InterfaceAddress::new(address.into(), 24))?;
            netlink.set_up(index, true)?;
            netlink.wait_until_running(index)?;
            netlink.add_route(index, &UnicastRoute::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0, Some(gateway)))
        })??;
        Ok(Self { namespace, _far: far })
    }

    /// Settings of an interface, if it is there: its IPv4 addresses, and the routes of its own.
    pub fn holdings(&self, interface: &str) -> net::Result<Vec<String>> {
        self.namespace.with(|| {
            let netlink = Netlink::open()?;
            let Some(link) = netlink.link(interface)? else { return Ok(Vec::new()) };
            let addresses = netlink.addresses(link.index)?.into_iter().filter(|address| address.ip().is_ipv4());
            let mut all: Vec<String> = addresses.map(|address| address.to_string()).collect();
            all.extend(netlink.routes(link.index)?.iter().map(ToString::to_string));
            all.sort();
            Ok(all)
        })?
    }
}
