//! Table of addresses and the ports behind which they are.
//!
//! An address belongs to the port that it was first heard at, its *home*, until it has been silent there for `aging`; a port
//! that goes down keeps its addresses for as long. Hosts do move (a virtual machine, a standby router, a cable that is put
//! into another port), so an address is given to another port once its own has been silent about it for
//! [`SILENT_BEFORE_MOVE`], at most [`MOST_MOVES`] times a minute. If the home is heard again within `aging`, the address
//! returns to it at once. So a host that sends in another's name has its traffic at most until that host's next frame:
//!
//! ```text
//!           silent for a second, heard elsewhere
//!    home ───────────────────────────────────────▶ away ── for `aging` ──▶ home is there
//!         ◀───────────────────────────────────────
//!                   heard at home again
//! ```
//!
//! An address that is bound to a port never moves.
//!
//! Invariant: no port has more than [`MOST_PER_PORT`] addresses, so a host that invents them does not crowd out others'.

use std::collections::HashMap;

use units::{Span, Time};

use super::class::HostAddress;

/// Addresses behind one port.
pub(super) const MOST_PER_PORT: usize = 1_024;
/// A port that was silent about an address for this long may lose it to another one.
const SILENT_BEFORE_MOVE: Span = Span::from_ms(1_000);
/// Moves of an address away from its port within [`MOVES_WITHIN`]; returns are not counted.
const MOST_MOVES: u8 = 3;
const MOVES_WITHIN: Span = Span::from_ms(60_000);

/// Result of the check of a frame's source address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceCheck {
    Known,
    /// The address was behind this other port until now.
    MovedFrom(usize),
    /// The table has no room for the address: frames to it are flooded.
    Unlearned,
    /// The address belongs to another port.
    Foreign,
}

#[derive(Debug)]
pub(super) struct AddressTable {
    aging: Span,
    entries: HashMap<HostAddress, AddressEntry>,
    /// Number of addresses of each port.
    counts: Vec<usize>,
}

#[derive(Debug)]
struct AddressEntry {
    port: usize,
    last_heard: Time,
    /// The port that it is away from, and since when.
    home: Option<(usize, Time)>,
    /// Moves since the time beside them.
    moves: (u8, Time),
    is_bound: bool,
}

impl AddressEntry {
    fn new(port: usize, now: Time) -> Self {
        Self { port, last_heard: now, home: None, moves: (0, now), is_bound: false }
    }

    /// Home port to which the address returns as soon as it is heard there, and since when it is away.
    fn home(&self, now: Time, aging: Span) -> Option<(usize, Time)> {
        self.home.filter(|(_, left)| now.since(*left) < aging)
    }

    fn is_over(&self, now: Time, aging: Span) -> bool {
        !self.is_bound && now.since(self.last_heard) >= aging
    }

    /// Counts a move to another port and returns the address's home after it; the outer `None` if it must stay.
    fn away(&mut self, now: Time, to: usize, aging: Span) -> Option<Option<(usize, Time)>> {
        let home = self.home(now, aging);
        if home.is_some_and(|(home, _)| home == to) {
            return Some(None);
        }
        if now.since(self.moves.1) >= MOVES_WITHIN {
            self.moves = (0, now);
        }
        if now.since(self.last_heard) < SILENT_BEFORE_MOVE || self.moves.0 == MOST_MOVES {
            return None;
        }
        self.moves.0 += 1;
        Some(home.or(Some((self.port, now))))
    }
}

impl AddressTable {
    pub(super) fn new(ports: usize, aging: Span) -> Self {
        Self { aging, entries: HashMap::new(), counts: vec![0; ports] }
    }

    /// Gives an address to a port permanently. False if the port has no room, or if another port has it already.
    #[must_use]
    pub(super) fn bind(&mut self, address: HostAddress, port: usize) -> bool {
        let is_taken = self.entries.get(&address).is_some_and(|entry| entry.port != port);
        if is_taken || self.counts[port] == MOST_PER_PORT {
            return false;
        }
        let entry = AddressEntry { is_bound: true, ..AddressEntry::new(port, Time::ZERO) };
        self.counts[port] += usize::from(self.entries.insert(address, entry).is_none());
        true
    }

    /// Notes that a frame from this address arrived at a port.
    pub(super) fn learn(&mut self, now: Time, port: usize, address: HostAddress) -> SourceCheck {
        if let Some(entry) = self.entries.get_mut(&address) {
            if entry.port == port {
                entry.last_heard = now;
                return SourceCheck::Known;
            }
            if entry.is_bound {
                return SourceCheck::Foreign;
            }
            let has_room = self.counts[port] < MOST_PER_PORT;
            if !entry.is_over(now, self.aging) {
                let home = if has_room { entry.away(now, port, self.aging) } else { None };
                let Some(home) = home else { return SourceCheck::Foreign };
                let from = std::mem::replace(&mut entry.port, port);
                self.counts[from] -= 1;
                self.counts[port] += 1;
                (entry.last_heard, entry.home) = (now, home);
                return SourceCheck::MovedFrom(from);
            }
            self.counts[entry.port] -= 1;
            self.entries.remove(&address);
        }
        if self.counts[port] == MOST_PER_PORT {
            return SourceCheck::Unlearned;
        }
        self.counts[port] += 1;
        self.entries.insert(address, AddressEntry::new(port, now));
        SourceCheck::Known
    }

    /// The port behind which an address is.
    pub(super) fn port_of(&self, now: Time, address: &HostAddress) -> Option<usize> {
        let entry = self.entries.get(address)?;
        (!entry.is_over(now, self.aging)).then_some(entry.port)
    }

    /// Forgets addresses that have been silent for too long.
    pub(super) fn age(&mut self, now: Time) {
        let Self { counts, aging, entries } = self;
        entries.retain(|_, entry| {
            let over = entry.is_over(now, *aging);
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
    use super::SourceCheck::{Foreign, Known, MovedFrom, Unlearned};
    use super::*;

    const AGING: Span = Span::from_ms(300_000);

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn address(number: usize) -> HostAddress {
        let [.., a, b] = (number as u64).to_be_bytes();
        [2, 0, 0, 0, a, b]
    }

    /// Frames from the first address, each at a time and a port, and what was made of them.
    fn heard(table: &mut AddressTable, frames: &[(u64, usize)]) -> Vec<SourceCheck> {
        frames.iter().map(|(ms, port)| table.learn(at(*ms), *port, address(1))).collect()
    }

    #[test]
    fn an_address_moves_once_its_port_has_been_silent_for_a_second() {
        let mut table = AddressTable::new(2, AGING);
        assert_eq!(heard(&mut table, &[(0, 0), (999, 1), (1_000, 1)]), [Known, Foreign, MovedFrom(0)]);
        assert_eq!(table.port_of(at(1_000), &address(1)), Some(1));
        assert_eq!((table.count(0), table.count(1)), (0, 1));
    }

    #[test]
    fn a_squatter_loses_the_address_with_the_next_frame_of_its_owner() {
        let mut table = AddressTable::new(3, AGING);
        assert_eq!(heard(&mut table, &[(0, 0), (2_000, 1)]), [Known, MovedFrom(0)]);
        // However often it says so: the owner's next frame takes the address back, and no third port gets it meanwhile.
        let busy: Vec<(u64, usize)> = (2_001..3_000).map(|ms| (ms, 1)).collect();
        assert!(heard(&mut table, &busy).iter().all(|check| *check == Known));
        assert_eq!(heard(&mut table, &[(3_000, 2), (3_001, 0), (3_002, 1)]), [Foreign, MovedFrom(1), Foreign]);
        // A third port that took it from the second one does not become its home either.
        assert_eq!(
            heard(&mut table, &[(5_000, 1), (7_000, 2), (7_001, 0)]),
            [MovedFrom(0), MovedFrom(1), MovedFrom(2)]
        );
    }

    #[test]
    fn an_address_moves_three_times_a_minute_and_returns_as_often_as_needed() {
        let mut table = AddressTable::new(2, AGING);
        heard(&mut table, &[(0, 0)]);
        for number in 0..3 {
            let since = 2_000 * (number + 1);
            assert_eq!(heard(&mut table, &[(since, 1), (since + 1, 0)]), [MovedFrom(0), MovedFrom(1)]);
        }
        assert_eq!(heard(&mut table, &[(9_000, 1), (59_999, 1)]), [Foreign, Foreign]);
        assert_eq!(heard(&mut table, &[(60_000, 1)]), [MovedFrom(0)]);
    }

    #[test]
    fn the_new_port_is_home_once_the_old_one_was_silent_for_the_aging_time() {
        let mut table = AddressTable::new(2, AGING);
        assert_eq!(heard(&mut table, &[(0, 0), (1_000, 1), (300_999, 1)]), [Known, MovedFrom(0), Known]);
        assert_eq!(heard(&mut table, &[(301_000, 0)]), [Foreign]);
    }

    #[test]
    fn an_address_that_has_been_silent_for_the_aging_time_is_anybodys() {
        let mut table = AddressTable::new(2, AGING);
        table.learn(at(0), 0, address(1));
        assert_eq!(table.port_of(at(300_000), &address(1)), None);
        assert_eq!(heard(&mut table, &[(300_000, 1), (300_001, 0)]), [Known, Foreign]);
        assert_eq!((table.count(0), table.count(1)), (0, 1));
    }

    #[test]
    fn a_bound_address_neither_moves_nor_ages() {
        let mut table = AddressTable::new(2, AGING);
        assert!(table.bind(address(1), 0) && table.bind(address(1), 0) && !table.bind(address(1), 1));
        assert_eq!(heard(&mut table, &[(400_000, 1), (400_001, 0), (500_000, 1)]), [Foreign, Known, Foreign]);
        table.age(at(2_000_000));
        assert_eq!(table.port_of(at(2_000_000), &address(1)), Some(0));
        assert_eq!((table.count(0), table.count(1)), (1, 0));
    }

    #[test]
    fn a_host_that_invents_addresses_takes_no_room_from_others() {
        let mut table = AddressTable::new(2, AGING);
        let learned = (0..5_000).filter(|number| table.learn(at(0), 0, address(*number)) == Known).count();
        assert_eq!((learned, table.count(0)), (MOST_PER_PORT, MOST_PER_PORT));
        assert_eq!(table.learn(at(0), 0, address(5_001)), Unlearned);
        assert_eq!(table.learn(at(0), 1, address(6_000)), Known);
        // Nor does it get others' once it has no room.
        assert_eq!(table.learn(at(2_000), 0, address(6_000)), Foreign);
        table.age(at(300_000));
        assert_eq!((table.count(0), table.count(1)), (0, 0));
    }
}
