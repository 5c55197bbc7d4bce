//! Hosts around a place in the middle, each with one cable to it.
//!
//! ```text
//!   host 0: w0 ──── x0 ┐
//!   host 1: w1 ──── x1 ├ middle
//!   host 2: w2 ──── x2 ┘
//! ```

use std::net::{IpAddr, Ipv4Addr};

use linux::net::{self, InterfaceAddress, Namespace, Netlink};

/// The interface of each host.
const PLUGS: [&str; MOST_HOSTS] =
    ["w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9", "w10", "w11", "w12", "w13", "w14", "w15"];

/// Hosts that there can be.
const MOST_HOSTS: usize = 16;

/// A host of a stage, by its number. With two of them, 0 is on the left and 1 on the right.
pub fn address(host: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1 + host as u8))
}

/// The address of the interface that a host's cable is plugged into.
pub fn mac(host: usize) -> [u8; 6] {
    [0x02, 0x48, 0x49, 0x54, 0x00, 1 + host as u8]
}

/// The interface that a host's cable is plugged into.
pub fn plug(host: usize) -> &'static str {
    PLUGS[host]
}

/// The other end of that cable, in the middle.
pub(crate) fn inner(host: usize) -> String {
    format!("x{host}")
}

/// Hosts, and the middle that their cables lead to. Nothing joins them there yet.
#[derive(Debug)]
pub(crate) struct CabledHosts {
    pub hosts: Vec<Namespace>,
    /// Namespace of the other ends of their cables.
    pub between: Namespace,
    /// Opened there.
    pub middle: Netlink,
    /// Indices of those ends.
    pub ports: Vec<u32>,
}

impl CabledHosts {
    /// Call it in a namespace that may be changed.
    pub(crate) fn new(count: usize, mtu: u32) -> net::Result<Self> {
        let hosts = (0..count).map(|_| Namespace::new()).collect::<net::Result<Vec<_>>>()?;
        let between = Namespace::new()?;
        let middle = between.with(Netlink::open)??;
        let mut ports = Vec::new();
        for (number, host) in hosts.iter().enumerate() {
            ports.push(lay(&middle, host, number, mtu, |_, _| Ok(()))?);
        }
        // Until then a frame may vanish without a trace.
        for (number, host) in hosts.iter().enumerate() {
            wait_until_running(&middle, ports[number], host, number)?;
        }
        Ok(Self { hosts, between, middle, ports })
    }
}

/// One host's cable: its near end goes to the host and is ready there, the index of its far end is returned.
/// `configure` is called before it is up.
pub(super) fn lay(
    middle: &Netlink,
    host: &Namespace,
    number: usize,
    mtu: u32,
    configure: impl FnOnce(&Netlink, u32) -> net::Result<()> + Send,
) -> net::Result<u32> {
    middle.add_veth(&inner(number), plug(number))?;
    let (inner, outer) = (middle.existing_link(&inner(number))?, middle.existing_link(plug(number))?);
    middle.set_mtu(inner.index, mtu)?;
    middle.set_namespace(outer.index, host)?;
    let _ = middle.no_ipv6_autoconf(inner.index);
    middle.set_up(inner.index, true)?;
    host.with(|| -> net::Result<()> {
        let netlink = Netlink::open()?;
        netlink.set_loopback_up()?;
        let link = netlink.existing_link(plug(number))?;
        // Addresses of its own would greet the neighbours and be counted as traffic.
        let _ = netlink.no_ipv6_autoconf(link.index);
        netlink.set_mac(link.index, mac(number))?;
        netlink.set_mtu(link.index, mtu)?;
        // Whole super-frames would be lost at once, and checksums never written.
        netlink.set_offloads(plug(number), false)?;
        configure(&netlink, link.index)?;
        netlink.set_up(link.index, true)
    })??;
    Ok(inner.index)
}

pub(super) fn wait_until_running(middle: &Netlink, inner: u32, host: &Namespace, number: usize) -> net::Result<()> {
    host.with(|| {
        let netlink = Netlink::open()?;
        netlink.wait_until_running(netlink.existing_link(plug(number))?.index)
    })??;
    middle.wait_until_running(inner)
}

/// Gives an interface of a host its address, and the way to the `count` hosts that there are.
pub(crate) fn give_address_among(
    namespace: &Namespace,
    number: usize,
    count: usize,
    interface: &str,
) -> net::Result<()> {
    namespace.with(|| {
        let netlink = Netlink::open()?;
        let link = netlink.existing_link(interface)?;
        netlink.add_address(link.index, &InterfaceAddress::new(address(number), 24))?;
        // A lost question about an address would cost a second.
        let others = (0..count).filter(|other| *other != number);
        others.into_iter().try_for_each(|other| netlink.add_neighbour(link.index, address(other), mac(other)))
    })?
}
