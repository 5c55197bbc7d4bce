//! Move of all addresses and routes from one interface to another.
//!
//! ```text
//!   take_over:   add addresses ▶ to    per route: add ▶ to, delete ◀ from    delete addresses ◀ from
//!   restore:     the same with the two interfaces exchanged
//! ```
//!
//! Invariants: what is moved is on at least one of the two interfaces at every moment (but for IPv6
//! multipath routes, which the kernel would merge); a move that fails is undone.

use super::super::Result;
use super::super::netlink::Netlink;
use super::{InterfaceAddress, UnicastRoute};

/// Addresses and routes that [`Netlink::take_over`] moved, in the order in which the kernel listed them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedAddresses {
    pub from: u32,
    pub to: u32,
    pub addresses: Vec<InterfaceAddress>,
    pub routes: Vec<UnicastRoute>,
}

#[derive(Clone, Copy)]
enum AddressChange {
    Add,
    Delete,
}

#[derive(Clone, Copy)]
enum MoveStep<'a> {
    Address(AddressChange, u32, &'a InterfaceAddress),
    Route(AddressChange, u32, &'a UnicastRoute),
}

impl MoveStep<'_> {
    fn index(self) -> u32 {
        match self {
            Self::Address(_, index, _) | Self::Route(_, index, _) => index,
        }
    }

    fn inverse(self) -> Self {
        let turn = |change| match change {
            AddressChange::Add => AddressChange::Delete,
            AddressChange::Delete => AddressChange::Add,
        };
        match self {
            Self::Address(change, index, address) => Self::Address(turn(change), index, address),
            Self::Route(change, index, route) => Self::Route(turn(change), index, route),
        }
    }
}

impl MovedAddresses {
    /// Moves everything. It is no error if an address or route is there already, or is gone with its interface.
    pub fn perform(&self, netlink: &Netlink) -> Result<()> {
        netlink.perform(&self.steps(self.from, self.to))
    }

    /// Adds these addresses and routes, each once.
    pub fn joined(mut self, addresses: Vec<InterfaceAddress>, routes: Vec<UnicastRoute>) -> Self {
        for address in addresses {
            if !self.addresses.iter().any(|known| (known.ip(), known.prefix()) == (address.ip(), address.prefix())) {
                self.addresses.push(address);
            }
        }
        for route in routes {
            if !self.routes.contains(&route) {
                self.routes.push(route);
            }
        }
        self
    }

    /// Restores the labels that these addresses had before: an interface that is renamed gives its addresses new ones.
    #[must_use]
    pub fn labelled_as(mut self, before: &[InterfaceAddress]) -> Self {
        for address in &mut self.addresses {
            let same = |known: &&InterfaceAddress| (known.ip(), known.prefix()) == (address.ip(), address.prefix());
            if let Some(known) = before.iter().find(same) {
                *address = address.labelled(known.label());
            }
        }
        self
    }

    /// Moves everything back. It is no error if an address or route is there already, or is gone with its interface.
    pub fn restore(&self, netlink: &Netlink) -> Result<()> {
        netlink.perform(&self.steps(self.to, self.from))
    }

    fn steps(&self, from: u32, to: u32) -> Vec<MoveStep<'_>> {
        let aged: Vec<&InterfaceAddress> = self.addresses_by_age().collect();
        let mut steps: Vec<_> = aged.iter().map(|address| MoveStep::Address(AddressChange::Add, to, address)).collect();
        for needs_others in [false, true] {
            for route in self.routes.iter().filter(|route| route.needs_others() == needs_others) {
                let (add, delete) = (
                    MoveStep::Route(AddressChange::Add, to, route),
                    MoveStep::Route(AddressChange::Delete, from, route),
                );
                let merges = route.is_v6() && route.has_several_hops();
                steps.extend(if merges { [delete, add] } else { [add, delete] });
            }
        }
        // The youngest first: with a primary address its secondaries would go too.
        steps.extend(aged.iter().rev().map(|address| MoveStep::Address(AddressChange::Delete, from, address)));
        steps
    }

    /// The kernel lists IPv4 addresses oldest first and IPv6 addresses youngest first.
    fn addresses_by_age(&self) -> impl Iterator<Item = &InterfaceAddress> {
        let v4 = self.addresses.iter().filter(|address| address.ip().is_ipv4());
        v4.chain(self.addresses.iter().rev().filter(|address| address.ip().is_ipv6()))
    }
}

impl Netlink {
    /// Moves all addresses and routes, but for IPv6 link-local ones, from one interface to another, which
    /// must be up. All or nothing.
    pub fn take_over(&self, from: u32, to: u32) -> Result<MovedAddresses> {
        let moved = self.movable(from, to)?;
        moved.perform(self)?;
        Ok(moved)
    }

    /// Addresses and routes that [`Netlink::take_over`] would move now.
    pub fn movable(&self, from: u32, to: u32) -> Result<MovedAddresses> {
        let (mut addresses, mut routes) = (self.addresses(from)?, self.all_routes(from)?);
        routes.retain(|route| !route.goes_along_with(&addresses));
        addresses.retain(|address| !address.belongs_to_link());
        Ok(MovedAddresses { from, to, addresses, routes })
    }

    fn perform(&self, steps: &[MoveStep<'_>]) -> Result<()> {
        for (position, step) in steps.iter().enumerate() {
            // From an interface that is gone nothing need be taken; asked about interface 0, the kernel takes it from any.
            if step.index() == 0 {
                continue;
            }
            let Err(mut error) = self.apply(*step) else { continue };
            // The failed step too: it may have been half done.
            let undone: Vec<Result<()>> = steps[..=position]
                .iter()
                .rev()
                .filter(|step| step.index() != 0)
                .map(|step| self.apply(step.inverse()))
                .collect();
            if let Some(Err(another)) = undone.into_iter().find(Result::is_err) {
                error.what.push_str(&format!(" (and not all could be put back: {another})"));
            }
            return Err(error);
        }
        Ok(())
    }

    /// Carries out one step of a move. It is no error if the address or route is there, or gone, already.
    fn apply(&self, step: MoveStep<'_>) -> Result<()> {
        const GONE: [i32; 3] = [libc::ENODEV, libc::ESRCH, libc::EADDRNOTAVAIL];
        let (result, harmless): (_, &[i32]) = match step {
            MoveStep::Address(AddressChange::Add, index, address) => {
                (self.add_address(index, address), &[libc::EEXIST])
            }
            MoveStep::Route(AddressChange::Add, index, route) => (self.add_route(index, route), &[libc::EEXIST]),
            MoveStep::Address(AddressChange::Delete, index, address) => (self.delete_address(index, address), &GONE),
            MoveStep::Route(AddressChange::Delete, index, route) => (self.delete_route(index, route), &GONE),
        };
        result.or_else(|error| if error.is_any_of(harmless) { Ok(()) } else { Err(error) })
    }
}
