//! Numbers that say what they number, and lists that take no other.
//!
//! Everything in a network is found by number: plain values of four bytes, so that events and packets stay small. Ports are
//! numbered as directed links are ([`DirectedLink`]).

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use crate::topology::{DirectedLink, NodeId, TopologyLinkId};

/// A number that is a place in a list.
pub(crate) trait Number: Copy {
    fn index(self) -> usize;
    fn at(index: usize) -> Self;
}

macro_rules! number {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct $name(pub u32);

            impl Number for $name {
                #[inline]
                fn index(self) -> usize {
                    self.0 as usize
                }

                #[inline]
                fn at(index: usize) -> Self {
                    Self(index as u32)
                }
            }
        )*
    };
}

number! {
    /// A host, among the hosts of a network.
    HostId,
    /// A switch, among its switches.
    SwitchId,
    /// A packet in flight. Numbers of packets that are gone are used again.
    PacketId,
    /// A connection. Numbers of connections whose last packet has ended are used again.
    ConnectionId,
    /// One end of a connection: twice the connection, plus one at the host that its flows go to.
    EndId,
    /// A kind of traffic, in the order of the setup.
    TrafficId,
}

impl PacketId {
    /// No packet, in lists of numbers.
    pub const NONE: Self = Self(u32::MAX);
}

impl ConnectionId {
    /// The end where its flows begin.
    #[inline]
    pub fn source(self) -> EndId {
        EndId(self.0 * 2)
    }

    /// The end that they are for.
    #[inline]
    pub(crate) fn destination(self) -> EndId {
        EndId(self.0 * 2 + 1)
    }

    #[inline]
    pub fn ends(self) -> [EndId; 2] {
        [EndId(self.0 * 2), EndId(self.0 * 2 + 1)]
    }
}

impl EndId {
    #[inline]
    pub fn connection(self) -> ConnectionId {
        ConnectionId(self.0 / 2)
    }

    /// True if flows begin at this end.
    #[inline]
    pub(crate) fn is_source(self) -> bool {
        self.0.is_multiple_of(2)
    }
}

macro_rules! numbers_of_the_topology {
    ($($name:ident),*) => {
        $(impl Number for $name {
            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }

            #[inline]
            fn at(index: usize) -> Self {
                Self(index as u32)
            }
        })*
    };
}

numbers_of_the_topology!(DirectedLink, TopologyLinkId, NodeId);

/// A list whose places have a type.
pub(crate) struct IndexVec<I, T> {
    items: Vec<T>,
    number: PhantomData<fn(I)>,
}

impl<I: Number, T> IndexVec<I, T> {
    pub(crate) fn new() -> Self {
        Self { items: Vec::new(), number: PhantomData }
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// Items with their numbers.
    pub(crate) fn enumerate(&self) -> impl Iterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(index, item)| (I::at(index), item))
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::at)
    }

    /// Into a place of the list, or behind its last.
    pub(crate) fn put(&mut self, at: I, item: T) {
        match self.items.get_mut(at.index()) {
            Some(slot) => *slot = item,
            None => self.items.push(item),
        }
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        &self.items
    }
}

impl<I: Number, T> Index<I> for IndexVec<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, at: I) -> &T {
        &self.items[at.index()]
    }
}

impl<I: Number, T> IndexMut<I> for IndexVec<I, T> {
    #[inline]
    fn index_mut(&mut self, at: I) -> &mut T {
        &mut self.items[at.index()]
    }
}

impl<I: Number, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<S: IntoIterator<Item = T>>(items: S) -> Self {
        Self { items: items.into_iter().collect(), number: PhantomData }
    }
}

impl<I, T: fmt::Debug> fmt::Debug for IndexVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.items.fmt(f)
    }
}
