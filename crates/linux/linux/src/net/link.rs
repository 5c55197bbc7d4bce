//! Interfaces: veth pairs, what can be read from and set on any interface, and its neighbours.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;
use std::{io, thread};

use super::name::{ALTERNATIVE_NAME, PROPERTIES};
use super::netlink::{Netlink, NetlinkRequest, attribute, attributes, family, octets, text, u32_at, u64_at};
use super::{NetError, Result};

/// An interface as the kernel described it when asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceInfo {
    pub index: u32,
    pub name: String,
    /// Alternative names of the interface.
    pub altnames: Vec<String>,
    /// Zeros if its address is not six bytes long.
    pub mac: [u8; 6],
    pub mtu: u32,
    pub min_mtu: Option<u32>,
    pub max_mtu: Option<u32>,
    pub up: bool,
    pub carrier: bool,
    /// Frames can leave; this follows the carrier a little later, see [`Netlink::wait_until_running`].
    pub running: bool,
    pub alias: Option<String>,
    /// `veth`, `tun`, …; a plain network card has none.
    pub kind: Option<String>,
    pub num_rx_queues: u32,
    /// The bridge, bond or the like that it is part of.
    pub master: Option<u32>,
    /// The interface that it sends through: of a VLAN its parent, of a tunnel the one it is bound to. Of a veth the other end,
    /// and then not in this namespace perhaps.
    pub lower: Option<u32>,
    /// The bridge looks at VLAN tags; only of a bridge.
    pub filters_vlans: bool,
    /// The number by which rules can mean several interfaces at once.
    pub group: u32,
    /// An XDP program sees what arrives before anybody else does.
    pub has_xdp: bool,
}

/// An interface's counters since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceStatistics {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
}

/// Length of `ifinfomsg`.
const HEADER: usize = 16;
const VETH_PEER: u16 = 1;
const INET6_ADDR_GEN_MODE: u16 = 8;
const ADDR_GEN_MODE_NONE: u8 = 1;
/// Attribute of a VXLAN: the interface that it is bound to.
const VXLAN_LINK: u16 = 3;
const BRIDGE_VLAN_FILTERING: u16 = 7;
/// The mode in which a program is attached; zero without one.
const XDP_ATTACHED: u16 = 2;

/// `ifinfomsg`.
pub(super) fn header(index: u32, flags: u32, change: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..].copy_from_slice(&change.to_ne_bytes());
    header
}

impl InterfaceInfo {
    /// True if this is one of its names.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.altnames.iter().any(|other| other == name)
    }

    pub(super) fn parse(message: &[u8]) -> Option<Self> {
        let (flags, rest) = (u32_at(message, 8)?, message.get(HEADER..)?);
        let number = |kind| attribute(rest, kind).and_then(|value| u32_at(value, 0));
        let info = attribute(rest, libc::IFLA_LINKINFO).unwrap_or_default();
        let data = |kind: &str| {
            let is_kind = attribute(info, libc::IFLA_INFO_KIND).map(text).as_deref() == Some(kind);
            attribute(info, libc::IFLA_INFO_DATA).filter(|_| is_kind)
        };
        let number_in = |kind| u32_at(attribute(data("vxlan")?, kind)?, 0);
        Some(Self {
            index: u32_at(message, 4)?,
            name: text(attribute(rest, libc::IFLA_IFNAME)?),
            altnames: attributes(attribute(rest, PROPERTIES).unwrap_or_default())
                .filter(|(kind, _)| *kind == ALTERNATIVE_NAME)
                .map(|(_, name)| text(name))
                .collect(),
            mac: attribute(rest, libc::IFLA_ADDRESS).and_then(|mac| mac.try_into().ok()).unwrap_or_default(),
            mtu: number(libc::IFLA_MTU).unwrap_or(0),
            min_mtu: number(libc::IFLA_MIN_MTU).filter(|mtu| *mtu != 0),
            max_mtu: number(libc::IFLA_MAX_MTU).filter(|mtu| *mtu != 0),
            up: flags & libc::IFF_UP as u32 != 0,
            running: flags & libc::IFF_RUNNING as u32 != 0,
            carrier: attribute(rest, libc::IFLA_CARRIER) == Some(&[1]),
            alias: attribute(rest, libc::IFLA_IFALIAS).map(text),
            kind: attribute(info, libc::IFLA_INFO_KIND).map(text),
            num_rx_queues: number(libc::IFLA_NUM_RX_QUEUES).unwrap_or(1),
            master: number(libc::IFLA_MASTER),
            lower: number(libc::IFLA_LINK).or_else(|| number_in(VXLAN_LINK)).filter(|index| *index != 0),
            filters_vlans: data("bridge").and_then(|data| attribute(data, BRIDGE_VLAN_FILTERING)) == Some(&[1]),
            group: number(libc::IFLA_GROUP).unwrap_or(0),
            has_xdp: attribute(rest, libc::IFLA_XDP)
                .and_then(|xdp| attribute(xdp, XDP_ATTACHED))
                .is_some_and(|mode| mode != [0]),
        })
    }
}

impl InterfaceStatistics {
    fn parse(counters: &[u8]) -> Self {
        let counter = |position: usize| u64_at(counters, 8 * position).unwrap_or(0);
        Self {
            rx_packets: counter(0),
            tx_packets: counter(1),
            rx_bytes: counter(2),
            tx_bytes: counter(3),
            rx_errors: counter(4),
            tx_errors: counter(5),
            rx_dropped: counter(6),
            tx_dropped: counter(7),
        }
    }
}

impl Netlink {
    /// The interface of this name, if there is one.
    pub fn link(&self, name: &str) -> Result<Option<InterfaceInfo>> {
        match self.existing_link(name) {
            Ok(link) => Ok(Some(link)),
            Err(error) if error.is_any_of(&[libc::ENODEV]) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The interface of this name, which must exist.
    pub fn existing_link(&self, name: &str) -> Result<InterfaceInfo> {
        let request = NetlinkRequest::new(libc::RTM_GETLINK, 0, &header(0, 0, 0)).string(libc::IFLA_IFNAME, name);
        let answers = self.execute(format_args!("interface {name}"), request)?;
        let missing = || NetError::new(format!("interface {name}"), io::Error::from_raw_os_error(libc::ENODEV));
        answers.first().and_then(|message| InterfaceInfo::parse(message)).ok_or_else(missing)
    }

    pub fn links(&self) -> Result<Vec<InterfaceInfo>> {
        let request = NetlinkRequest::new(libc::RTM_GETLINK, libc::NLM_F_DUMP, &header(0, 0, 0));
        let answers = self.execute(format_args!("list interfaces"), request)?;
        Ok(answers.iter().filter_map(|message| InterfaceInfo::parse(message)).collect())
    }

    /// Makes two interfaces that are each other's wire.
    pub fn add_veth(&self, name: &str, peer: &str) -> Result<()> {
        let request = NetlinkRequest::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &header(0, 0, 0))
            .string(libc::IFLA_IFNAME, name)
            .nested(libc::IFLA_LINKINFO, |info| {
                info.string(libc::IFLA_INFO_KIND, "veth").nested(libc::IFLA_INFO_DATA, |data| {
                    data.nested(VETH_PEER, |inner| inner.raw(&header(0, 0, 0)).string(libc::IFLA_IFNAME, peer))
                })
            });
        self.execute(format_args!("add veth {name} with peer {peer}"), request).map(drop)
    }

    pub fn delete_link(&self, index: u32) -> Result<()> {
        self.execute_on(index, format_args!("delete"), NetlinkRequest::new(libc::RTM_DELLINK, 0, &header(index, 0, 0)))
    }

    pub fn set_up(&self, index: u32, up: bool) -> Result<()> {
        let flag = libc::IFF_UP as u32;
        let request = NetlinkRequest::new(libc::RTM_SETLINK, 0, &header(index, if up { flag } else { 0 }, flag));
        self.execute_on(index, format_args!("set {}", if up { "up" } else { "down" }), request)
    }

    /// Waits, for some seconds at most, until frames can leave. When the far end of a veth comes up, the
    /// kernel gives the near end its queue back only later, and drops without a trace what it is sent before.
    pub fn wait_until_running(&self, index: u32) -> Result<()> {
        const ATTEMPTS: usize = 10_000;
        for _ in 0..ATTEMPTS {
            if InterfaceInfo::parse(&self.describe(index)?).is_some_and(|link| link.running) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(1));
        }
        Err(NetError::new(format!("wait for {}", self.name_of(index)), io::ErrorKind::TimedOut.into()))
    }

    /// Sets the loopback interface up: in a new namespace it is down.
    pub fn set_loopback_up(&self) -> Result<()> {
        self.set_up(self.existing_link("lo")?.index, true)
    }

    /// Makes it part of a bridge, bond or the like; of none with `None`.
    pub fn set_master(&self, index: u32, master: Option<u32>) -> Result<()> {
        let request = change(index).number(libc::IFLA_MASTER, master.unwrap_or(0));
        self.execute_on(index, format_args!("change the master of"), request)
    }

    pub fn set_mac(&self, index: u32, mac: [u8; 6]) -> Result<()> {
        let request = change(index).attribute(libc::IFLA_ADDRESS, &mac);
        self.execute_on(index, format_args!("set the MAC address of"), request)
    }

    pub fn set_mtu(&self, index: u32, mtu: u32) -> Result<()> {
        self.execute_on(index, format_args!("set MTU {mtu} on"), change(index).number(libc::IFLA_MTU, mtu))
    }

    /// An empty alias removes it.
    pub fn set_alias(&self, index: u32, alias: &str) -> Result<()> {
        let request = change(index).attribute(libc::IFLA_IFALIAS, alias.as_bytes());
        self.execute_on(index, format_args!("set alias {alias:?} on"), request)
    }

    pub fn set_group(&self, index: u32, group: u32) -> Result<()> {
        self.execute_on(index, format_args!("set group {group} on"), change(index).number(libc::IFLA_GROUP, group))
    }

    /// Moves the interface into another namespace: there it is down, without addresses, and may have
    /// another index.
    pub fn set_namespace(&self, index: u32, namespace: &impl AsFd) -> Result<()> {
        let descriptor = namespace.as_fd().as_raw_fd() as u32;
        let request = change(index).number(libc::IFLA_NET_NS_FD, descriptor);
        self.execute_on(index, format_args!("change the namespace of"), request)
    }

    /// Keeps the kernel from giving the interface a link-local address, and so from talking on its own.
    pub fn no_ipv6_autoconf(&self, index: u32) -> Result<()> {
        let request = change(index).nested(libc::IFLA_AF_SPEC, |families| {
            families.nested(libc::AF_INET6 as u16, |inet6| inet6.attribute(INET6_ADDR_GEN_MODE, &[ADDR_GEN_MODE_NONE]))
        });
        self.execute_on(index, format_args!("turn off IPv6 autoconfiguration of"), request)
    }

    /// Adds a permanent neighbour entry, so that the kernel never asks for its address.
    pub fn add_neighbour(&self, index: u32, ip: IpAddr, mac: [u8; 6]) -> Result<()> {
        // `ndmsg`.
        let mut header = [0; 12];
        header[0] = family(ip);
        header[4..8].copy_from_slice(&index.to_ne_bytes());
        header[8..10].copy_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
        let request = NetlinkRequest::new(libc::RTM_NEWNEIGH, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, &header)
            .attribute(libc::NDA_DST, &octets(ip))
            .attribute(libc::NDA_LLADDR, &mac);
        self.execute_on(index, format_args!("add neighbour {ip} to"), request)
    }

    pub fn statistics(&self, index: u32) -> Result<InterfaceStatistics> {
        let message = self.describe(index)?;
        let counters = attribute(message.get(HEADER..).unwrap_or_default(), libc::IFLA_STATS64);
        Ok(counters.map(InterfaceStatistics::parse).unwrap_or_default())
    }

    /// Name for error messages, if the interface still has one.
    pub(super) fn name_of(&self, index: u32) -> String {
        let found = self.describe(index).ok().and_then(|message| InterfaceInfo::parse(&message));
        found.map_or_else(|| format!("interface {index}"), |link| link.name)
    }

    pub(super) fn describe(&self, index: u32) -> Result<Vec<u8>> {
        let request = NetlinkRequest::new(libc::RTM_GETLINK, 0, &header(index, 0, 0));
        let answers = self.execute(format_args!("interface {index}"), request)?;
        Ok(answers.into_iter().next().unwrap_or_default())
    }
}

fn change(index: u32) -> NetlinkRequest {
    NetlinkRequest::new(libc::RTM_SETLINK, 0, &header(index, 0, 0))
}

#[cfg(test)]
mod tests {
    use crate::net::testing::{in_namespaces, in_own_namespace};
    use crate::net::{Namespace, NetError, Netlink, Result, sys};

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x2a];

    #[test]
    fn a_veth_pair_takes_its_mac_mtu_and_alias_and_goes_as_a_pair() {
        in_own_namespace(|netlink| {
            netlink.add_veth("w0", "x0").unwrap();
            let made = netlink.existing_link("w0").unwrap();
            assert_eq!((made.kind.as_deref(), made.mtu, made.up), (Some("veth"), 1500, false));
            netlink.set_mac(made.index, MAC).unwrap();
            netlink.set_mtu(made.index, 9_000).unwrap();
            netlink.set_alias(made.index, "hitless: eth0").unwrap();
            for name in ["w0", "x0"] {
                netlink.set_up(netlink.existing_link(name).unwrap().index, true).unwrap();
            }
            let link = netlink.link("w0").unwrap().unwrap();
            assert_eq!((link.mac, link.mtu, link.up, link.carrier), (MAC, 9_000, true, true));
            assert_eq!((link.alias.as_deref(), link.max_mtu.is_some()), (Some("hitless: eth0"), true));
            netlink.set_alias(link.index, "").unwrap();
            assert_eq!(netlink.existing_link("w0").unwrap().alias, None);

            let names = |netlink: &Netlink| netlink.links().unwrap().into_iter().map(|link| link.name).collect();
            let before: Vec<String> = names(netlink);
            assert!(["lo", "w0", "x0"].iter().all(|name| before.contains(&name.to_string())), "{before:?}");
            netlink.delete_link(link.index).unwrap();
            assert_eq!((netlink.link("w0").unwrap(), netlink.link("x0").unwrap()), (None, None));
        });
    }

    #[test]
    fn an_interface_moves_to_another_namespace_and_keeps_its_mac() {
        in_namespaces(|[here, there]: [Namespace; 2]| {
            let netlink = here.with(Netlink::open).unwrap().unwrap();
            netlink.add_veth("w0", "x0").unwrap();
            let w0 = netlink.existing_link("w0").unwrap();
            netlink.set_mac(w0.index, MAC).unwrap();
            netlink.set_namespace(w0.index, &there).unwrap();
            assert_eq!(netlink.link("w0").unwrap(), None);
            let arrived = there.with(|| Netlink::open()?.existing_link("w0")).unwrap().unwrap();
            assert_eq!((arrived.mac, arrived.up), (MAC, false));
        });
    }

    #[test]
    fn refusals_say_in_one_line_what_and_why() {
        in_own_namespace(|netlink| {
            let said = |result: Result<()>| result.unwrap_err().to_string();
            assert_eq!(said(netlink.existing_link("nope").map(drop)), "interface nope: No such device");
            assert_eq!(said(netlink.set_up(77, true)), "set up interface 77: No such device");
            netlink.add_veth("w0", "x0").unwrap();
            let again = said(netlink.add_veth("w0", "x1"));
            assert_eq!(again, "add veth w0 with peer x1: File exists");
            let index = netlink.existing_link("w0").unwrap().index;
            let too_long = said(netlink.set_mtu(index, 70_000));
            assert_eq!(too_long, "set MTU 70000 on w0: Invalid argument (mtu greater than device maximum)");
        });
    }

    #[test]
    fn without_privilege_nothing_is_made_and_the_reason_is_clear() {
        in_own_namespace(|_| {
            sys::drop_capabilities().unwrap();
            let refused: NetError = Netlink::open().unwrap().add_veth("w0", "x0").unwrap_err();
            assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
            assert_eq!(refused.to_string(), "add veth w0 with peer x0: Operation not permitted");
        });
    }
}
