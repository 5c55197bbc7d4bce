//! Which address is behind which port.
//!
//! An address belongs to the port that it was first heard at, until it has been silent there for `aging` or the port went
//! down. A frame that carries it from another port is not believed: otherwise a host could take away another's traffic by
//! sending one frame in its name.
//!
//! Invariant: no port has more than [`MOST_PER_PORT`] addresses, so a host that invents them does not crowd out others'.

use std::collections::HashMap;

use units::{Span, Time};

use super::class::HostAddress;

/// Addresses behind one port.
const MOST_PER_PORT: usize = 1_024;

/// What was made of a frame's source address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceCheck {
    Known,
    /// There is no room for it: frames to it are flooded.
    Unlearned,
    /// It belongs to another port.
    Foreign,
}

#[derive(Debug)]
pub(super) struct AddressTable {
    aging: Span,
    entries: HashMap<HostAddress, AddressEntry>,
    /// How many addresses each port has.
    counts: Vec<usize>,
}

#[derive(Debug)]
struct AddressEntry {
    port: usize,
    last_heard: Time,
}

impl AddressTable {
    pub(super) fn new(ports: usize, aging: Span) -> Self {
        Self { aging, entries: HashMap::new(), counts: vec![0; ports] }
    }

    /// Notes that a frame from this address arrived at a port.
    pub(super) fn learn(&mut self, now: Time, port: usize, address: HostAddress) -> SourceCheck {
        if let Some(entry) = self.entries.get_mut(&address) {
            if entry.port == port {
                entry.last_heard = now;
                return SourceCheck::Known;
            }
            if now.since(entry.last_heard) < self.aging {
                return SourceCheck::Foreign;
            }
            self.counts[entry.port] -= 1;
            self.entries.remove(&address);
        }
        if self.counts[port] == MOST_PER_PORT {
            return SourceCheck::Unlearned;
        }
        self.counts[port] += 1;
        self.entries.insert(address, AddressEntry { port, last_heard: now });
        SourceCheck::Known
    }

    /// The port behind which an address is.
    pub(super) fn port_of(&self, now: Time, address: &HostAddress) -> Option<usize> {
        let entry = self.entries.get(address)?;
        (now.since(entry.last_heard) < self.aging).then_some(entry.port)
    }

    /// Forgets addresses that have been silent for too long.
    pub(super) fn age(&mut self, now: Time) {
        let aging = self.aging;
        self.forget(|entry| now.since(entry.last_heard) >= aging);
    }

    /// Forgets the addresses behind a port: its cable may lead to another host now.
    pub(super) fn forget_port(&mut self, port: usize) {
        self.forget(|entry| entry.port == port);
    }

    fn forget(&mut self, is_over: impl Fn(&AddressEntry) -> bool) {
        let counts = &mut self.counts;
        self.entries.retain(|_, entry| {
            let over = is_over(entry);
            counts[entry.port] -= usize::from(over);
            !over
        });
    }

    /// Addresses known at each port.
    pub(super) fn count(&self, port: usize) -> usize {
        self.counts[port]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGING: Span = Span::from_ms(1_000);

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn address(number: usize) -> HostAddress {
        let [.., a, b] = (number as u64).to_be_bytes();
        [2, 0, 0, 0, a, b]
    }

    #[test]
    fn an_address_moves_once_it_has_been_silent_and_not_before() {
        let mut table = AddressTable::new(2, AGING);
        assert_eq!(table.learn(at(0), 0, address(1)), SourceCheck::Known);
        assert_eq!(table.learn(at(900), 1, address(1)), SourceCheck::Foreign);
        assert_eq!(table.learn(at(901), 0, address(1)), SourceCheck::Known);
        assert_eq!(table.learn(at(1_900), 1, address(1)), SourceCheck::Foreign);
        assert_eq!(table.port_of(at(1_900), &address(1)), Some(0));
        assert_eq!(table.learn(at(1_901), 1, address(1)), SourceCheck::Known);
        assert_eq!(table.port_of(at(1_901), &address(1)), Some(1));
        assert_eq!((table.count(0), table.count(1)), (0, 1));
    }

    #[test]
    fn a_port_that_went_down_has_no_addresses() {
        let mut table = AddressTable::new(2, AGING);
        table.learn(at(0), 0, address(1));
        table.learn(at(0), 1, address(2));
        table.forget_port(0);
        assert_eq!((table.count(0), table.count(1)), (0, 1));
        assert_eq!(table.learn(at(1), 1, address(1)), SourceCheck::Known);
    }

    #[test]
    fn a_host_that_invents_addresses_takes_no_room_from_others() {
        let mut table = AddressTable::new(2, AGING);
        let learned = (0..5_000).filter(|number| table.learn(at(0), 0, address(*number)) == SourceCheck::Known).count();
        assert_eq!((learned, table.count(0)), (MOST_PER_PORT, MOST_PER_PORT));
        assert_eq!(table.learn(at(0), 1, address(6_000)), SourceCheck::Known);
        table.age(at(1_000));
        assert_eq!((table.count(0), table.count(1)), (0, 0));
    }
}
