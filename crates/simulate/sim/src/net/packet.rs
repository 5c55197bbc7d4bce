//! Packets in flight: a slab of plain values.

use std::marker::PhantomData;

use wire::ip::Ecn;

use super::index::{EndId, Number, PacketId};
use super::transports::Body;
use crate::engine::grow_by_a_quarter;
use crate::topology::DirectedLink;

#[derive(Clone, Copy, Debug)]
pub struct SimPacket {
    /// Position in its route, which also identifies its end.
    pub route: RoutePosition,
    /// The port that it last left; `NOWHERE` while it has not left its host.
    pub came_by: DirectedLink,
    /// The next one in the same queue.
    pub next: PacketId,
    /// Length as an Ethernet frame, check included.
    pub len: u16,
    /// Priority; 0 goes first.
    pub class: u8,
    pub ecn: Ecn,
    pub body: Body,
}

/// Room for the hops of a flow in each direction. A packet that has made this many hops is going round in circles.
pub(super) const MOST_HOPS: u32 = 32;

/// A place in the network's list of hops: each connection has 32 places there, and as many back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutePosition(u32);

impl RoutePosition {
    /// First position in the route of an end's packets.
    pub fn of(end: EndId) -> Self {
        Self(end.0 * MOST_HOPS)
    }

    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    #[inline]
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The end whose packets take the route.
    #[inline]
    pub fn from(self) -> EndId {
        EndId(self.0 / MOST_HOPS)
    }

    /// The end that they are for.
    #[inline]
    pub fn to(self) -> EndId {
        EndId((self.0 / MOST_HOPS) ^ 1)
    }

    /// Hops that a packet at this place may still take.
    #[inline]
    pub(crate) fn time_to_live(self) -> u32 {
        MOST_HOPS - 1 - self.0 % MOST_HOPS
    }
}

impl SimPacket {
    /// Previous port of a packet that has not left its host.
    pub(crate) const NOWHERE: DirectedLink = DirectedLink(u32::MAX);

    /// The end of a connection that it is for.
    #[inline]
    pub fn to(&self) -> EndId {
        self.route.to()
    }
}

/// All packets of a network, by number. Numbers of packets that are gone are used again.
#[derive(Debug)]
pub(crate) struct Packets {
    slots: Vec<SimPacket>,
    free: PacketId,
}

impl Packets {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: PacketId::NONE }
    }

    #[inline]
    pub(crate) fn insert(&mut self, packet: SimPacket) -> PacketId {
        if self.free == PacketId::NONE {
            return self.append(packet);
        }
        let at = self.free;
        let slot = &mut self.slots[at.index()];
        self.free = slot.next;
        *slot = packet;
        at
    }

    #[cold]
    fn append(&mut self, packet: SimPacket) -> PacketId {
        grow_by_a_quarter(&mut self.slots);
        self.slots.push(packet);
        PacketId::at(self.slots.len() - 1)
    }

    /// The number must not be used again afterwards.
    #[inline]
    pub(crate) fn remove(&mut self, at: PacketId) -> SimPacket {
        let slot = &mut self.slots[at.index()];
        let packet = *slot;
        slot.next = self.free;
        self.free = at;
        packet
    }

    #[inline]
    pub(crate) fn get(&self, at: PacketId) -> &SimPacket {
        &self.slots[at.index()]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: PacketId) -> &mut SimPacket {
        &mut self.slots[at.index()]
    }

    /// Packets in flight now; walks the list of free numbers.
    pub(crate) fn count(&self) -> usize {
        let next = |id: &PacketId| Some(self.get(*id).next).filter(|next| *next != PacketId::NONE);
        let first = Some(self.free).filter(|first| *first != PacketId::NONE);
        self.slots.len() - std::iter::successors(first, next).count()
    }

    /// Packets in flight at most.
    pub(crate) fn most(&self) -> usize {
        self.slots.len()
    }
}

/// Tags that a switch program wrote on packets, or on something else that has a number. They take no memory if the program
/// writes nothing.
#[derive(Debug)]
pub(super) struct Tags<T, N = PacketId> {
    slots: Vec<T>,
    none: T,
    numbered_by: PhantomData<N>,
}

impl<T: Default, N> Default for Tags<T, N> {
    fn default() -> Self {
        Self { slots: Vec::new(), none: T::default(), numbered_by: PhantomData }
    }
}

impl<T: Copy + Default, N: Number> Tags<T, N> {
    /// True if anything is ever written.
    pub(super) const ANY: bool = size_of::<T>() > 0;

    /// The packet is new: its tag is made, or cleared.
    #[inline]
    pub(super) fn begin(&mut self, at: N, clear: impl FnOnce(&mut T)) {
        if Self::ANY {
            match self.slots.get_mut(at.index()) {
                Some(tag) => clear(tag),
                None => self.put(at, T::default()),
            }
        }
    }

    #[inline]
    pub(super) fn put(&mut self, at: N, tag: T) {
        if Self::ANY {
            if at.index() >= self.slots.len() {
                self.slots.resize(at.index() + 1, T::default());
            }
            self.slots[at.index()] = tag;
        }
    }

    #[inline]
    pub(super) fn get(&self, at: N) -> &T {
        if Self::ANY { &self.slots[at.index()] } else { &self.none }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: N) -> &mut T {
        if Self::ANY { &mut self.slots[at.index()] } else { &mut self.none }
    }

    /// Copies the tag of a packet to its copy `to`.
    #[inline]
    pub(super) fn copy(&mut self, from: N, to: N) {
        if Self::ANY {
            self.put(to, self.slots[from.index()]);
        }
    }
}

/// A packet as a link protocol holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketHandle {
    pub packet: PacketId,
    len: u32,
}

impl PacketHandle {
    pub(crate) fn new(packet: PacketId, len: u16) -> Self {
        Self { packet, len: u32::from(len) }
    }
}

impl machine::FrameBody for PacketHandle {
    #[inline]
    fn len(&self) -> u32 {
        self.len
    }
}

/// Packets waiting in line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fifo {
    head: PacketId,
    tail: PacketId,
}

impl Default for Fifo {
    fn default() -> Self {
        Self { head: PacketId::NONE, tail: PacketId::NONE }
    }
}

impl Fifo {
    pub(super) fn is_empty(&self) -> bool {
        self.head == PacketId::NONE
    }

    pub(super) fn push(&mut self, packets: &mut Packets, at: PacketId) {
        packets.get_mut(at).next = PacketId::NONE;
        match self.tail {
            PacketId::NONE => self.head = at,
            tail => packets.get_mut(tail).next = at,
        }
        self.tail = at;
    }

    pub(super) fn pop(&mut self, packets: &Packets) -> Option<PacketId> {
        if self.head == PacketId::NONE {
            return None;
        }
        let at = self.head;
        self.head = packets.get(at).next;
        if self.head == PacketId::NONE {
            self.tail = PacketId::NONE;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use machine::FrameBody as _;

    use super::*;

    fn packet() -> SimPacket {
        let body = Body::Datagrams(Default::default());
        let (route, next) = (RoutePosition(0), PacketId::NONE);
        SimPacket { route, came_by: SimPacket::NOWHERE, next, len: 64, class: 0, ecn: Ecn::NotCapable, body }
    }

    #[test]
    fn a_packet_is_small() {
        assert!(size_of::<SimPacket>() <= 80, "{}", size_of::<SimPacket>());
    }

    #[test]
    fn a_route_tells_whom_a_packet_is_for() {
        let to = |route| SimPacket { route: RoutePosition(route), ..packet() }.to().0;
        assert_eq!([0, 31, 32, 63, 64, 96].map(to), [1, 1, 0, 0, 3, 2]);
        assert_eq!(RoutePosition::of(EndId(3)).from(), EndId(3));
    }

    #[test]
    fn numbers_are_used_again_and_lines_keep_their_order() {
        let mut packets = Packets::new();
        let [a, b, c] = [0; 3].map(|_| packets.insert(packet()));
        let mut line = Fifo::default();
        [b, a, c].into_iter().for_each(|at| line.push(&mut packets, at));
        assert_eq!([0; 3].map(|_| line.pop(&packets)), [Some(b), Some(a), Some(c)]);
        assert!(line.is_empty() && line.pop(&packets).is_none());
        packets.remove(b);
        assert_eq!(packets.insert(packet()), b);
        assert_eq!(packets.most(), 3);
        assert_eq!(PacketHandle::new(a, 64).len(), 64);
    }
}
