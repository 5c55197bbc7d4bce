//! Two hosts on one machine, each in a namespace of its own, behind TUN interfaces.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};

use linux::SystemError;
use linux::net::{InterfaceAddress, Namespace, Netlink};
use linux::packet::PacketSocket;
use linux::tun::Tun;

const INTERFACE: &str = "tun0";
/// Bytes of a packet that captures keep.
pub(crate) const SNAP: usize = 128;
/// Packets that a capture may fall behind.
const RING: usize = 4_096;
/// Packets that wait for the wire.
const QUEUE: u32 = 10_000;

/// A setting of a host: a path below /proc/sys, and a value.
pub(crate) type HostSetting = (&'static str, String);

/// Settings that make one host like another, wherever the test runs.
const USUAL: [(&str, &str); 4] = [
    ("net/ipv4/tcp_no_metrics_save", "1"),
    ("net/ipv4/tcp_early_retrans", "3"),
    ("net/ipv4/tcp_recovery", "1"),
    ("net/ipv4/tcp_ecn", "0"),
];

pub(crate) fn address(end: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 1 + end as u8)
}

/// A host's namespace, its end of the wire, and a packet socket that sees what passes there.
#[derive(Debug)]
pub(crate) struct TestHost {
    pub namespace: Namespace,
    pub plug: HostPlug,
}

/// Parts of a host that the wire holds.
#[derive(Debug)]
pub(crate) struct HostPlug {
    pub tun: Tun,
    pub sniffer: PacketSocket,
}

impl TestHost {
    pub(crate) fn new(end: usize, settings: &[HostSetting]) -> Result<Self, SystemError> {
        let namespace = Namespace::new()?;
        let plug = namespace.with(|| plug_in(end, settings))??;
        Ok(Self { namespace, plug })
    }
}

fn plug_in(end: usize, settings: &[HostSetting]) -> Result<HostPlug, SystemError> {
    let usual = USUAL.iter().map(|(path, value)| (*path, *value));
    for (path, value) in usual.chain(settings.iter().map(|(path, value)| (*path, value.as_str()))) {
        fs::write(format!("/proc/sys/{path}"), value).map_err(|error| SystemError(format!("set {path}: {error}")))?;
    }
    let netlink = Netlink::open()?;
    netlink.set_loopback_up()?;
    let tun = Tun::open(INTERFACE).map_err(|error| SystemError(format!("make a TUN interface: {error}")))?;
    let index = netlink.existing_link(INTERFACE)?.index;
    netlink.no_ipv6_autoconf(index)?;
    // Segments leave one by one and finished, as a capture on a wire has them.
    netlink.set_offloads(INTERFACE, false)?;
    netlink.set_fifo(index, QUEUE)?;
    netlink.add_address(index, &InterfaceAddress::new(IpAddr::V4(address(end)), 24))?;
    netlink.set_up(index, true)?;
    let sniffer = PacketSocket::sniffer(index, SNAP, RING);
    let sniffer = sniffer.map_err(|error| SystemError(format!("packet socket on {INTERFACE}: {error}")))?;
    Ok(HostPlug { tun, sniffer })
}
