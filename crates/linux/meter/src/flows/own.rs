//! Addresses of the switch itself, and broadcast addresses of its networks: packets for those end here.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use linux::SystemError;
use linux::net::Netlink;

const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct OwnAddresses {
    all: BTreeSet<IpAddr>,
    next: Duration,
}

impl OwnAddresses {
    pub(super) fn new(netlink: &Netlink) -> Result<Self, SystemError> {
        Ok(Self { all: addresses(netlink)?, next: EVERY })
    }

    pub(super) fn has(&self, address: IpAddr) -> bool {
        self.all.contains(&address)
    }

    /// Reads them again now and then. If the kernel does not answer, those that were known stay.
    pub(super) fn refresh(&mut self, now: Duration) {
        if now >= self.next {
            self.next = now + EVERY;
            if let Ok(all) = Netlink::open().map_err(SystemError::from).and_then(|netlink| addresses(&netlink)) {
                self.all = all;
            }
        }
    }
}

fn addresses(netlink: &Netlink) -> Result<BTreeSet<IpAddr>, SystemError> {
    let mut all = BTreeSet::new();
    for link in netlink.links()? {
        for address in netlink.addresses(link.index)? {
            all.insert(address.ip());
            if let IpAddr::V4(ip) = address.ip() {
                let host_bits = u32::MAX.checked_shr(address.prefix().into()).unwrap_or(0);
                all.insert(Ipv4Addr::from(u32::from(ip) | host_bits).into());
            }
        }
    }
    Ok(all)
}
