//! Both ends of a connection as a key of few bytes.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// An address and a port; addresses of IPv6 by their number in a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct EndKey {
    address: u32,
    port: u16,
    is_six: bool,
}

/// Two ends, the lower one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PairKey([EndKey; 2]);

/// Numbers addresses of IPv6 in the order in which they come.
#[derive(Debug, Default)]
pub(crate) struct AddressBook {
    numbers: HashMap<Ipv6Addr, u32>,
    addresses: Vec<Ipv6Addr>,
}

impl AddressBook {
    /// The key of two ends, and whether the first one comes first in it.
    pub(crate) fn pair(&mut self, one: SocketAddr, other: SocketAddr) -> (PairKey, bool) {
        let (one, other) = (self.end(one), self.end(other));
        if one <= other { (PairKey([one, other]), true) } else { (PairKey([other, one]), false) }
    }

    fn end(&mut self, end: SocketAddr) -> EndKey {
        let (address, is_six) = match end.ip() {
            IpAddr::V4(address) => (address.to_bits(), false),
            IpAddr::V6(address) => (self.number(address), true),
        };
        EndKey { address, port: end.port(), is_six }
    }

    fn number(&mut self, address: Ipv6Addr) -> u32 {
        let addresses = &mut self.addresses;
        *self.numbers.entry(address).or_insert_with(|| {
            addresses.push(address);
            addresses.len() as u32 - 1
        })
    }

    /// The ends of a pair, the one that comes first in it before the other if `first`.
    pub(crate) fn ends(&self, PairKey(ends): PairKey, first: bool) -> (SocketAddr, SocketAddr) {
        let [one, other] = ends.map(|end| self.address(end));
        if first { (one, other) } else { (other, one) }
    }

    fn address(&self, end: EndKey) -> SocketAddr {
        let six = || self.addresses.get(end.address as usize).copied().unwrap_or(Ipv6Addr::UNSPECIFIED);
        let address = if end.is_six { IpAddr::V6(six()) } else { IpAddr::V4(Ipv4Addr::from_bits(end.address)) };
        SocketAddr::new(address, end.port)
    }

    pub(crate) fn bytes(&self) -> usize {
        const EACH: usize = size_of::<Ipv6Addr>() + size_of::<(Ipv6Addr, u32)>() + 1;
        self.addresses.capacity() * EACH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_have_one_key_and_keys_give_their_ends_back() {
        let mut book = AddressBook::default();
        let ends: [SocketAddr; 4] =
            ["10.0.0.1:80", "10.0.0.1:443", "[2001:db8::1]:80", "[::1]:9"].map(|end| end.parse().unwrap());
        for one in ends {
            for other in ends {
                let ((there, first), (back, _)) = (book.pair(one, other), book.pair(other, one));
                assert_eq!((there, book.ends(there, first)), (back, (one, other)));
            }
        }
        assert_eq!(size_of::<PairKey>(), 16);
    }
}
