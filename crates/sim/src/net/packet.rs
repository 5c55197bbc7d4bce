//! Packets in flight: a slab of plain values.

use transport::roce::selective;
use transport::{roce, tcp};
use wire::ip::Ecn;

use super::raw;
use crate::engine::grow_by_a_quarter;

/// Nothing, in lists of numbers.
pub const NONE: u32 = u32::MAX;

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    Tcp(tcp::Segment),
    Roce(roce::Packet),
    Selective(selective::Packet),
    Raw(raw::Datagram),
    /// Of TCP, before there is a connection to speak of.
    Handshake(Handshake),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    Syn,
    SynAck,
}

#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Where it goes next: a place in the network's list of hops, which also tells whose it is.
    pub route: u32,
    /// The port that it last left, for whoever has to pause that.
    pub came_by: u32,
    /// The next one in the same queue.
    pub next: u32,
    /// Length as an Ethernet frame, check included.
    pub len: u16,
    /// Priority; 0 goes first.
    pub class: u8,
    pub ecn: Ecn,
    pub body: Body,
}

/// Hops of a flow there; as many back. A packet that has been through so many is going round in circles.
pub const MOST_HOPS: u32 = 32;

impl Packet {
    /// The end of a connection that it is for: of the flow that its route belongs to, the odd one on the way there.
    #[inline]
    pub fn to(&self) -> u32 {
        self.route / (2 * MOST_HOPS) * 2 + u32::from(self.route % (2 * MOST_HOPS) < MOST_HOPS)
    }

    /// Hops that it may still take.
    #[inline]
    pub fn time_to_live(&self) -> u32 {
        MOST_HOPS - 1 - self.route % MOST_HOPS
    }
}

/// All packets of a network, by number. Numbers of packets that are gone are used again.
#[derive(Debug)]
pub struct Packets {
    slots: Vec<Packet>,
    free: u32,
}

impl Packets {
    pub fn new() -> Self {
        Self { slots: Vec::new(), free: NONE }
    }

    #[inline]
    pub fn insert(&mut self, packet: Packet) -> u32 {
        if self.free == NONE {
            return self.append(packet);
        }
        let at = self.free;
        let slot = &mut self.slots[at as usize];
        self.free = slot.next;
        *slot = packet;
        at
    }

    #[cold]
    fn append(&mut self, packet: Packet) -> u32 {
        grow_by_a_quarter(&mut self.slots);
        self.slots.push(packet);
        self.slots.len() as u32 - 1
    }

    /// Whoever removes a packet must not use its number again.
    #[inline]
    pub fn remove(&mut self, at: u32) -> Packet {
        let slot = &mut self.slots[at as usize];
        let packet = *slot;
        slot.next = self.free;
        self.free = at;
        packet
    }

    #[inline]
    pub fn get(&self, at: u32) -> &Packet {
        &self.slots[at as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, at: u32) -> &mut Packet {
        &mut self.slots[at as usize]
    }

    /// Packets in flight at most.
    pub fn most(&self) -> usize {
        self.slots.len()
    }
}

/// What a switch program wrote on each packet, by number. Nothing at all if it writes nothing.
#[derive(Debug, Default)]
pub struct Tags<T> {
    slots: Vec<T>,
    none: T,
}

impl<T: Copy + Default> Tags<T> {
    /// Whether anything is ever written.
    pub const ANY: bool = size_of::<T>() > 0;

    /// A packet of this number is new.
    #[inline]
    pub fn reset(&mut self, at: u32) {
        if Self::ANY {
            if at as usize >= self.slots.len() {
                self.slots.resize(at as usize + 1, T::default());
            }
            self.slots[at as usize] = T::default();
        }
    }

    #[inline]
    pub fn get_mut(&mut self, at: u32) -> &mut T {
        if Self::ANY { &mut self.slots[at as usize] } else { &mut self.none }
    }

    /// The packet of number `to` is a copy of the other.
    #[inline]
    pub fn copy(&mut self, from: u32, to: u32) {
        if Self::ANY {
            self.reset(to);
            self.slots[to as usize] = self.slots[from as usize];
        }
    }
}

/// A packet as a link protocol holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    pub packet: u32,
    len: u32,
}

impl Handle {
    pub fn new(packet: u32, len: u16) -> Self {
        Self { packet, len: u32::from(len) }
    }
}

impl guard::Body for Handle {
    #[inline]
    fn len(&self) -> u32 {
        self.len
    }
}

/// Packets waiting in line.
#[derive(Clone, Copy, Debug)]
pub struct Fifo {
    head: u32,
    tail: u32,
}

impl Default for Fifo {
    fn default() -> Self {
        Self { head: NONE, tail: NONE }
    }
}

impl Fifo {
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }

    pub fn push(&mut self, packets: &mut Packets, at: u32) {
        packets.get_mut(at).next = NONE;
        match self.tail {
            NONE => self.head = at,
            tail => packets.get_mut(tail).next = at,
        }
        self.tail = at;
    }

    pub fn pop(&mut self, packets: &Packets) -> Option<u32> {
        if self.head == NONE {
            return None;
        }
        let at = self.head;
        self.head = packets.get(at).next;
        if self.head == NONE {
            self.tail = NONE;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use guard::Body as _;

    use super::*;

    fn packet() -> Packet {
        let body = Body::Raw(raw::Datagram::default());
        Packet { route: 0, came_by: NONE, next: NONE, len: 64, class: 0, ecn: Ecn::NotCapable, body }
    }

    #[test]
    fn a_packet_is_small() {
        assert!(size_of::<Packet>() <= 80, "{}", size_of::<Packet>());
    }

    #[test]
    fn a_route_tells_whom_a_packet_is_for() {
        let to = |route| Packet { route, ..packet() }.to();
        assert_eq!([0, 31, 32, 63, 64, 96].map(to), [1, 1, 0, 0, 3, 2]);
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
        assert_eq!(Handle::new(a, 64).len(), 64);
    }
}
