//! Addresses and routes of an interface.
//!
//! Addresses and routes are kept as the kernel's own messages, with what names the interface and what
//! is only the moment's state taken out: all other attributes come through a [move](transfer) unread, and
//! two dumps can be compared. They are plain bytes, so that a move can be undone by another process.

mod transfer;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Result;
use super::netlink::{KEPT_HOP_FLAGS, Netlink, NetlinkRequest, attribute, attributes, exchange_hops};
use super::netlink::{family, masked, octets, push, text, to_ip, u32_at};

pub use transfer::MovedAddresses;

/// An address with its prefix, flags, label and all other attributes, on no particular interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress(Vec<u8>);

/// A unicast route of any table but the kernel's own (`local`), through no particular interface.
///
/// One that uses a nexthop object is kept as the plain route that it amounts to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnicastRoute(Vec<u8>);

/// Length of `ifaddrmsg`.
const ADDRESS_HEADER: usize = 8;
/// Length of `rtmsg`.
const ROUTE_HEADER: usize = 12;
const NEXTHOP_OBJECT: u16 = 30;
/// Flags for the state of duplicate address detection of an address at the moment.
const DETECTION_STATE: u32 = libc::IFA_F_TENTATIVE | libc::IFA_F_DADFAILED;

impl InterfaceAddress {
    pub fn new(ip: IpAddr, prefix: u8) -> Self {
        let mut message = vec![family(ip), prefix, 0, 0, 0, 0, 0, 0];
        push(&mut message, libc::IFA_LOCAL, &octets(ip));
        push(&mut message, libc::IFA_ADDRESS, &octets(ip));
        Self(message)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads the bytes that [`InterfaceAddress::as_bytes`] gave.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let address = Self(bytes);
        (address.0.len() >= ADDRESS_HEADER && address.local().is_some()).then_some(address)
    }

    pub fn ip(&self) -> IpAddr {
        self.local().expect("checked when made")
    }

    pub fn prefix(&self) -> u8 {
        self.0[1]
    }

    fn local(&self) -> Option<IpAddr> {
        let rest = self.0.get(ADDRESS_HEADER..)?;
        to_ip(attribute(rest, libc::IFA_LOCAL).or_else(|| attribute(rest, libc::IFA_ADDRESS))?)
    }

    /// A dumped address without what belongs to its interface or to the moment.
    fn neutral(dumped: &[u8], interface: &str) -> Option<Self> {
        let mut message = dumped.get(..ADDRESS_HEADER)?.to_vec();
        message[2] &= !(DETECTION_STATE as u8);
        message[4..].fill(0);
        for (kind, value) in attributes(&dumped[ADDRESS_HEADER..]) {
            match kind {
                // The default label; on another interface it would be that one's name.
                libc::IFA_LABEL if text(value) == interface => {}
                libc::IFA_FLAGS => push(&mut message, kind, &(u32_at(value, 0)? & !DETECTION_STATE).to_ne_bytes()),
                // Behind the two lifetimes are the times of creation and of the last change.
                libc::IFA_CACHEINFO => push(&mut message, kind, &[value.get(..8)?, &[0; 8]].concat()),
                _ => push(&mut message, kind, value),
            }
        }
        Self::from_bytes(message)
    }

    fn flags(&self) -> u32 {
        let flags = attribute(&self.0[ADDRESS_HEADER..], libc::IFA_FLAGS).and_then(|value| u32_at(value, 0));
        flags.unwrap_or_else(|| u32::from(self.0[2]))
    }

    fn request(&self, kind: u16, flags: i32, index: u32, address_flags: u32) -> NetlinkRequest {
        let mut header = self.0[..ADDRESS_HEADER].to_vec();
        header[4..].copy_from_slice(&index.to_ne_bytes());
        let request = NetlinkRequest::new(kind, flags, &header).number(libc::IFA_FLAGS, address_flags);
        attributes(&self.0[ADDRESS_HEADER..])
            .filter(|(kind, _)| *kind != libc::IFA_FLAGS)
            .fold(request, |request, (kind, value)| request.attribute(kind, value))
    }

    fn label(&self) -> Option<&[u8]> {
        attribute(&self.0[ADDRESS_HEADER..], libc::IFA_LABEL)
    }

    /// A copy of the address with this label; without a label the kernel uses the interface's name.
    fn labelled(&self, label: Option<&[u8]>) -> Self {
        let mut message = self.0[..ADDRESS_HEADER].to_vec();
        let rest = attributes(&self.0[ADDRESS_HEADER..]).filter(|(kind, _)| *kind != libc::IFA_LABEL);
        rest.for_each(|(kind, value)| push(&mut message, kind, value));
        if let Some(label) = label {
            push(&mut message, libc::IFA_LABEL, label);
        }
        Self(message)
    }

    fn belongs_to_link(&self) -> bool {
        self.ip().is_ipv6() && self.0[3] == libc::RT_SCOPE_LINK
    }

    /// The network that is on the link because of this address.
    fn network(&self) -> (IpAddr, u8) {
        let near = attribute(&self.0[ADDRESS_HEADER..], libc::IFA_ADDRESS).and_then(to_ip).unwrap_or(self.ip());
        (masked(near, self.prefix()), self.prefix())
    }

    /// True if the kernel leaves the route to the network to the process that added the address.
    fn is_without_route(&self) -> bool {
        self.flags() & libc::IFA_F_NOPREFIXROUTE != 0 && !self.belongs_to_link()
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip(), self.prefix())
    }
}

impl UnicastRoute {
    /// A static route; without a gateway the destination is on the link.
    pub fn new(destination: IpAddr, prefix: u8, gateway: Option<IpAddr>) -> Self {
        let on_link = gateway.is_none() && destination.is_ipv4();
        let scope = if on_link { libc::RT_SCOPE_LINK } else { libc::RT_SCOPE_UNIVERSE };
        let (table, protocol, kind) = (libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, libc::RTN_UNICAST);
        let mut message = vec![family(destination), prefix, 0, 0, table, protocol, scope, kind, 0, 0, 0, 0];
        if prefix > 0 {
            push(&mut message, libc::RTA_DST, &octets(destination));
        }
        if let Some(gateway) = gateway {
            push(&mut message, libc::RTA_GATEWAY, &octets(gateway));
        }
        Self(message)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads the bytes that [`UnicastRoute::as_bytes`] gave.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() >= ROUTE_HEADER).then_some(Self(bytes))
    }

    /// The destination's network and its prefix.
    pub fn destination(&self) -> (IpAddr, u8) {
        let any: IpAddr = if self.is_v6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        (self.attribute(libc::RTA_DST).and_then(to_ip).unwrap_or(any), self.0[1])
    }

    pub(crate) fn gateway(&self) -> Option<IpAddr> {
        self.attribute(libc::RTA_GATEWAY).and_then(to_ip)
    }

    fn attribute(&self, kind: u16) -> Option<&[u8]> {
        attribute(&self.0[ROUTE_HEADER..], kind)
    }

    fn is_v6(&self) -> bool {
        self.0[0] == libc::AF_INET6 as u8
    }

    /// Network managers mark routes as the kernel's that they add for addresses without such a route.
    fn follows_from(&self, addresses: &[InterfaceAddress]) -> bool {
        self.0[5] == libc::RTPROT_KERNEL
            && !addresses.iter().any(|address| address.is_without_route() && address.network() == self.destination())
    }

    /// True if a move can leave the route to the kernel. With IPv6 addresses in one network that differ in metric, the
    /// kernel loses some of its own routes and forgets others.
    fn goes_along_with(&self, addresses: &[InterfaceAddress]) -> bool {
        let loses_count = matches!(self.destination().0, IpAddr::V6(network) if !network.is_unicast_link_local());
        self.follows_from(addresses) && !loses_count
    }

    fn has_several_hops(&self) -> bool {
        self.attribute(libc::RTA_MULTIPATH).is_some()
    }

    /// Routes to a gateway can be made only once the gateway itself can be reached.
    fn needs_others(&self) -> bool {
        [libc::RTA_GATEWAY, libc::RTA_VIA, libc::RTA_MULTIPATH].into_iter().any(|kind| self.attribute(kind).is_some())
    }

    /// A dumped route, if it is one of the interface that somebody may have made.
    fn neutral(dumped: &[u8], index: u32) -> Option<Self> {
        let (mut message, rest) = (dumped.get(..ROUTE_HEADER)?.to_vec(), &dumped[ROUTE_HEADER..]);
        let (table, flags) = (attribute(rest, libc::RTA_TABLE), u32_at(dumped, 8)?);
        let table = table.and_then(|table| u32_at(table, 0));
        let ours = table.is_some_and(|table| table != u32::from(libc::RT_TABLE_LOCAL))
            && dumped[7] == libc::RTN_UNICAST
            && flags & libc::RTM_F_CLONED == 0;
        message[8..].copy_from_slice(&(flags & u32::from(KEPT_HOP_FLAGS)).to_ne_bytes());
        let mut through_index = false;
        for (kind, value) in attributes(rest) {
            match kind {
                libc::RTA_OIF => through_index |= u32_at(value, 0) == Some(index),
                libc::RTA_MULTIPATH => {
                    let hops = exchange_hops(value, index, 0);
                    through_index |= hops != exchange_hops(value, 0, 0);
                    push(&mut message, kind, &hops);
                }
                libc::RTA_CACHEINFO | NEXTHOP_OBJECT => {}
                _ => push(&mut message, kind, value),
            }
        }
        (ours && through_index).then_some(Self(message))
    }

    fn request(&self, kind: u16, flags: i32, index: u32) -> NetlinkRequest {
        let mut request = NetlinkRequest::new(kind, flags, &self.0[..ROUTE_HEADER]);
        for (kind, value) in attributes(&self.0[ROUTE_HEADER..]) {
            request = match kind {
                libc::RTA_MULTIPATH => request.attribute(kind, &exchange_hops(value, 0, index)),
                _ => request.attribute(kind, value),
            };
        }
        if self.has_several_hops() { request } else { request.number(libc::RTA_OIF, index) }
    }
}

impl fmt::Display for UnicastRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (destination, prefix) = self.destination();
        write!(f, "{destination}/{prefix}")?;
        self.gateway().map_or(Ok(()), |gateway| write!(f, " via {gateway}"))
    }
}

impl Netlink {
    pub fn addresses(&self, index: u32) -> Result<Vec<InterfaceAddress>> {
        let name = self.name_of(index);
        let mut header = [0; ADDRESS_HEADER];
        header[4..].copy_from_slice(&index.to_ne_bytes());
        let request = NetlinkRequest::new(libc::RTM_GETADDR, libc::NLM_F_DUMP, &header);
        let answers = self.execute(format_args!("list the addresses of {name}"), request)?;
        let on_it = answers.iter().filter(|message| u32_at(message, 4) == Some(index));
        Ok(on_it.filter_map(|message| InterfaceAddress::neutral(message, &name)).collect())
    }

    /// The address can be used at once: IPv6 does not first ask whether somebody else has it.
    pub fn add_address(&self, index: u32, address: &InterfaceAddress) -> Result<()> {
        let what = format_args!("add {address} to");
        let (flags, quiet) = (address.flags(), address.flags() | libc::IFA_F_NODAD);
        let create = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        if address.ip().is_ipv4() || flags == quiet {
            return self.execute_on(index, what, address.request(libc::RTM_NEWADDR, create, index, flags));
        }
        self.execute_on(index, what, address.request(libc::RTM_NEWADDR, create, index, quiet))?;
        // The flag would stay with the address; replacing takes it off, and asks nobody either.
        self.execute_on(index, what, address.request(libc::RTM_NEWADDR, libc::NLM_F_REPLACE, index, flags))
    }

    pub fn delete_address(&self, index: u32, address: &InterfaceAddress) -> Result<()> {
        // A label that is another by now would keep it.
        let request = address.labelled(None).request(libc::RTM_DELADDR, 0, index, address.flags());
        self.execute_on(index, format_args!("delete {address} from"), request)
    }

    /// Unicast routes, without those that the kernel makes for addresses.
    pub fn routes(&self, index: u32) -> Result<Vec<UnicastRoute>> {
        let addresses = self.addresses(index)?;
        let mut routes = self.all_routes(index)?;
        routes.retain(|route| !route.follows_from(&addresses));
        Ok(routes)
    }

    fn all_routes(&self, index: u32) -> Result<Vec<UnicastRoute>> {
        let mut routes = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let mut header = [0; ROUTE_HEADER];
            header[0] = family as u8;
            let request =
                NetlinkRequest::new(libc::RTM_GETROUTE, libc::NLM_F_DUMP, &header).number(libc::RTA_OIF, index);
            let answers = self.execute(format_args!("list the routes of interface {index}"), request)?;
            routes.extend(answers.iter().filter_map(|message| UnicastRoute::neutral(message, index)));
        }
        Ok(routes)
    }

    pub fn add_route(&self, index: u32, route: &UnicastRoute) -> Result<()> {
        // Not exclusive: while it moves, the route is on two interfaces.
        let request = route.request(libc::RTM_NEWROUTE, libc::NLM_F_CREATE, index);
        self.execute_on(index, format_args!("add route {route} through"), request)
    }

    pub(crate) fn delete_route(&self, index: u32, route: &UnicastRoute) -> Result<()> {
        let request = route.request(libc::RTM_DELROUTE, 0, index);
        self.execute_on(index, format_args!("delete route {route} through"), request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::testing::{in_own_namespace, ip, quiet_pair};

    fn with(mut bytes: Vec<u8>, kind: u16, value: &[u8]) -> Vec<u8> {
        push(&mut bytes, kind, value);
        bytes
    }

    /// Two addresses in one subnet, one of them with a label and a broadcast address, and two of IPv6; a
    /// gateway that is itself behind a route, with a metric; a default route; and one of IPv6.
    fn furnish(netlink: &Netlink, index: u32) {
        let labelled = with(InterfaceAddress::new(ip("10.1.0.2"), 24).0, libc::IFA_LABEL, b"old:1\0");
        let labelled = InterfaceAddress::from_bytes(with(labelled, libc::IFA_BROADCAST, &[10, 1, 0, 255])).unwrap();
        let addresses = ["10.1.0.1/24", "192.168.7.7/32", "2001:db8::1/64", "2001:db8::2/64", "fd00::1/48"];
        for (address, prefix) in addresses.map(|text| text.split_once('/').unwrap()) {
            netlink.add_address(index, &InterfaceAddress::new(ip(address), prefix.parse().unwrap())).unwrap();
        }
        netlink.add_address(index, &labelled).unwrap();
        netlink.add_address(index, &InterfaceAddress::from_bytes(link_local()).unwrap()).unwrap();
        let through_another = with(
            UnicastRoute::new(ip("10.9.0.0"), 16, Some(ip("172.16.0.1"))).0,
            libc::RTA_PRIORITY,
            &77_u32.to_ne_bytes(),
        );
        let routes = [
            UnicastRoute::new(ip("172.16.0.1"), 32, None),
            UnicastRoute::from_bytes(with(through_another, libc::RTA_PREFSRC, &[10, 1, 0, 2])).unwrap(),
            UnicastRoute::new(ip("0.0.0.0"), 0, Some(ip("10.1.0.254"))),
            UnicastRoute::new(ip("::"), 0, Some(ip("fe80::1"))),
            UnicastRoute::new(ip("2001:db8:1::"), 48, Some(ip("2001:db8::fe"))),
            UnicastRoute::new(ip("2001:db8:2::"), 48, None),
        ];
        routes.iter().for_each(|route| netlink.add_route(index, route).unwrap());
    }

    /// A constant that libc lacks.
    const RT_PRIORITY: u16 = 9;

    fn link_local() -> Vec<u8> {
        let mut bytes = InterfaceAddress::new(ip("fe80::99"), 64).0;
        bytes[3] = libc::RT_SCOPE_LINK;
        bytes
    }

    type Dump = (Vec<InterfaceAddress>, Vec<UnicastRoute>);

    /// The kernel's own routes too: they must follow the addresses.
    fn dump(netlink: &Netlink, index: u32) -> Dump {
        (netlink.addresses(index).unwrap(), netlink.all_routes(index).unwrap())
    }

    fn told<T: fmt::Display>(list: &[T]) -> Vec<String> {
        list.iter().map(T::to_string).collect()
    }

    #[test]
    fn everything_but_the_link_local_address_moves_and_comes_back_as_it_was() {
        in_own_namespace(|netlink| {
            let ([old, _], [new, _]) = (quiet_pair(netlink, "old", "o"), quiet_pair(netlink, "new", "n"));
            furnish(netlink, old);
            let (before, new_before) = (dump(netlink, old), dump(netlink, new));
            let v4 = ["10.1.0.1/24", "192.168.7.7/32", "10.1.0.2/24"];
            let v6 = ["fd00::1/48", "2001:db8::2/64", "2001:db8::1/64", "fe80::99/64"];
            assert_eq!(told(&before.0), [&v4[..], &v6].concat());
            let routes_before = netlink.routes(old).unwrap();
            assert_eq!(routes_before.len(), 6, "{:?}", told(&routes_before));

            let moved = netlink.take_over(old, new).unwrap();
            let (addresses, routes) = dump(netlink, old);
            assert_eq!((told(&addresses), told(&routes)), (vec!["fe80::99/64".into()], vec!["fe80::/64".into()]));
            assert_eq!(netlink.addresses(new).unwrap(), before.0[..6]);
            assert_eq!(netlink.routes(new).unwrap(), routes_before);

            moved.restore(netlink).unwrap();
            assert_eq!((dump(netlink, old), dump(netlink, new)), (before.clone(), new_before));
            moved.restore(netlink).unwrap();
            assert_eq!(dump(netlink, old), before, "a second time changes nothing");
        });
    }

    #[test]
    fn a_move_that_fails_half_way_leaves_everything_where_it_was() {
        in_own_namespace(|netlink| {
            let ([old, _], [new, _]) = (quiet_pair(netlink, "old", "o"), quiet_pair(netlink, "new", "n"));
            furnish(netlink, old);
            netlink.set_up(new, false).unwrap();
            let before = (dump(netlink, old), dump(netlink, new));
            let error = netlink.take_over(old, new).unwrap_err();
            let expected = "add route 172.16.0.1/32 through new: Network is down";
            assert!(error.to_string().starts_with(expected), "{error}");
            assert_eq!((dump(netlink, old), dump(netlink, new)), before);
        });
    }

    #[test]
    fn what_was_moved_can_be_stored_and_restored_after_the_other_interface_is_gone() {
        in_own_namespace(|netlink| {
            let ([old, _], [new, _]) = (quiet_pair(netlink, "old", "o"), quiet_pair(netlink, "new", "n"));
            furnish(netlink, old);
            let before = dump(netlink, old);
            let moved = netlink.take_over(old, new).unwrap();
            netlink.delete_link(new).unwrap();
            let stored = MovedAddresses {
                addresses: moved
                    .addresses
                    .iter()
                    .map(|kept| InterfaceAddress::from_bytes(kept.0.clone()).unwrap())
                    .collect(),
                routes: moved.routes.iter().map(|kept| UnicastRoute::from_bytes(kept.0.clone()).unwrap()).collect(),
                ..moved
            };
            stored.restore(netlink).unwrap();
            assert_eq!(dump(netlink, old), before);
        });
    }

    #[test]
    fn a_network_managers_own_route_to_an_address_without_one_moves_too() {
        in_own_namespace(|netlink| {
            let ([old, _], [new, _]) = (quiet_pair(netlink, "old", "o"), quiet_pair(netlink, "new", "n"));
            let flags = libc::IFA_F_NOPREFIXROUTE.to_ne_bytes();
            let managed = InterfaceAddress(with(InterfaceAddress::new(ip("10.1.0.1"), 24).0, libc::IFA_FLAGS, &flags));
            netlink.add_address(old, &managed).unwrap();
            netlink.add_address(old, &InterfaceAddress::new(ip("10.2.0.1"), 24)).unwrap();
            let mut route = UnicastRoute::new(ip("10.1.0.0"), 24, None);
            route.0[5] = libc::RTPROT_KERNEL;
            netlink.add_route(old, &route).unwrap();
            let before = dump(netlink, old);
            assert_eq!(told(&netlink.routes(old).unwrap()), ["10.1.0.0/24"]);
            let moved = netlink.take_over(old, new).unwrap();
            assert_eq!((dump(netlink, old), dump(netlink, new)), ((vec![], vec![]), before.clone()));
            moved.restore(netlink).unwrap();
            assert_eq!((dump(netlink, old), dump(netlink, new)), (before, (vec![], vec![])));
        });
    }

    #[test]
    fn the_kernels_routes_for_addresses_of_different_metrics_follow_them() {
        in_own_namespace(|netlink| {
            let ([old, _], [new, _]) = (quiet_pair(netlink, "old", "o"), quiet_pair(netlink, "new", "n"));
            let flags = libc::IFA_F_NODAD.to_ne_bytes();
            for (address, metric) in [("2001:db8::1", 300_u32), ("2001:db8::2", 99), ("2001:db8::3", 700)] {
                let address = with(InterfaceAddress::new(ip(address), 64).0, RT_PRIORITY, &metric.to_ne_bytes());
                netlink.add_address(old, &InterfaceAddress(with(address, libc::IFA_FLAGS, &flags))).unwrap();
            }
            let before = dump(netlink, old);
            assert_eq!((before.1.len(), netlink.routes(old).unwrap()), (3, vec![]));
            let moved = netlink.take_over(old, new).unwrap();
            assert_eq!((dump(netlink, old), dump(netlink, new)), ((vec![], vec![]), before.clone()));
            moved.restore(netlink).unwrap();
            assert_eq!((dump(netlink, old), dump(netlink, new)), (before, (vec![], vec![])));
        });
    }

    fn two_hops(destination: &str, prefix: u8, hops: [(u32, &str); 2]) -> UnicastRoute {
        let hops = hops.map(|(index, gateway)| {
            let attributes = with(Vec::new(), libc::RTA_GATEWAY, &octets(ip(gateway)));
            let len = (8 + attributes.len()) as u16;
            [&len.to_ne_bytes()[..], &[0, 0], &index.to_ne_bytes(), &attributes].concat()
        });
        UnicastRoute(with(UnicastRoute::new(ip(destination), prefix, None).0, libc::RTA_MULTIPATH, &hops.concat()))
    }

    #[test]
    fn of_a_route_with_two_hops_only_the_one_through_the_interface_moves() {
        in_own_namespace(|netlink| {
            let ([old, _], [new, _]) = (quiet_pair(netlink, "old", "o"), quiet_pair(netlink, "new", "n"));
            let [third, _] = quiet_pair(netlink, "third", "t");
            for (index, v4, v6) in [(old, "10.1.0.1", "2001:db8:1::1"), (third, "10.2.0.1", "2001:db8:2::1")] {
                netlink.add_address(index, &InterfaceAddress::new(ip(v4), 24)).unwrap();
                netlink.add_address(index, &InterfaceAddress::new(ip(v6), 64)).unwrap();
            }
            let mut v4 = two_hops("10.9.0.0", 16, [(0, "10.1.0.254"), (third, "10.2.0.254")]);
            v4.0[6] = libc::RT_SCOPE_UNIVERSE;
            netlink.add_route(old, &v4).unwrap();
            let v6 = two_hops("2001:db8:9::", 48, [(0, "2001:db8:1::fe"), (third, "2001:db8:2::fe")]);
            netlink.add_route(old, &v6).unwrap();
            let before = [old, new, third].map(|index| dump(netlink, index));
            assert_eq!(netlink.routes(old).unwrap().len(), 2);

            let moved = netlink.take_over(old, new).unwrap();
            assert_eq!(dump(netlink, old), (vec![], vec![]));
            assert_eq!(dump(netlink, new), before[0]);
            moved.restore(netlink).unwrap();
            assert_eq!([old, new, third].map(|index| dump(netlink, index)), before);
        });
    }

    #[test]
    fn bytes_that_are_no_address_or_route_are_refused() {
        assert_eq!(InterfaceAddress::from_bytes(vec![0; 8]), None);
        assert_eq!(InterfaceAddress::from_bytes(InterfaceAddress::new(ip("10.0.0.1"), 8).0[..15].to_vec()), None);
        assert_eq!(UnicastRoute::from_bytes(vec![0; 11]), None);
    }
}
