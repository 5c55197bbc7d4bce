//! A switch that repeats what must not be lost: NAKs, and the packets that they ask for.
//!
//! "Packet corruption in RDMA" §4.1, §4.2 and §5.1. A top-of-rack switch knows nothing of connections; it looks at what
//! passes between its hosts and the fabric:
//!
//! ```text
//!   responder ──NAK──▶ its ToR ══NAK, NAK══▶ requester's ToR ──NAK, NAK──▶ requester      ePSN remembered
//!   responder ◀─────── its ToR ◀══════════ requester's ToR ◀──packet with that PSN──       repeated, ePSN forgotten
//!                                     copies
//! ```
//!
//! Packets name only the queue pair that they are for, so a NAK cannot be matched with the connection that it belongs to:
//! the first packet from below with the remembered PSN is repeated, whosever it is. Now and then that is the wrong one, and
//! the right one goes alone. ePSNs are kept in an array of registers, one for each value of their lowest bits, as a switch
//! has them: a second ePSN with the same bits takes the place of the first.
//!
//! Invariants: [`RepeaterConfig::registers`] alone fixes the memory use; nothing is ever held back or dropped.

use super::psn::Psn;

/// Packets to repeat, and numbers of copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeaterConfig {
    /// Copies of a NAK that a host below sends, besides the NAK itself.
    pub naks: u32,
    /// Copies of the packet that a NAK asked for, besides the packet itself.
    pub naked: u32,
    /// ePSNs that can be remembered; rounded up to a power of two.
    pub registers: u32,
}

impl RepeaterConfig {
    pub(crate) const REGISTERS: u32 = 4_096;

    /// Makes a repeater with 4,096 registers.
    pub fn new(naks: u32, naked: u32) -> Self {
        Self { naks, naked, registers: Self::REGISTERS }
    }
}

/// Parts of a packet that a switch sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketView {
    /// A NAK of a PSN out of sequence, with the ePSN that it carries.
    Nak(Psn),
    /// Any packet that a requester sends.
    Request(Psn),
    /// Passes once and changes nothing: responses, ACKs, other traffic.
    Other,
}

/// Ports between which a packet passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPair {
    /// The packet came from a host below this switch.
    pub from_host: bool,
    /// The packet leaves to a host below this switch.
    pub to_host: bool,
}

units::counters! {
    /// Copies and register conflicts since the start.
    Counters:
    /// Copies of NAKs sent.
    naks,
    /// Copies sent of packets that a NAK asked for.
    naked,
    /// Packets repeated that belonged to another connection than the NAK; only where that is known.
    wrong,
    /// ePSNs that lost their register to another.
    overwritten,
}

#[derive(Clone, Copy, Debug)]
struct Register {
    psn: Psn,
    /// Owner of the NAK, to count wrong copies with. A real switch does not know it.
    whose: Option<u32>,
}

/// The registers of one switch.
#[derive(Debug)]
pub struct Repeater {
    config: RepeaterConfig,
    registers: Vec<Option<Register>>,
    counters: Counters,
}

impl Repeater {
    /// All registers are empty; there are 1 to 2²⁴ of them.
    pub fn new(config: RepeaterConfig) -> Self {
        let registers = config.registers.clamp(1, 1 << 24).next_power_of_two() as usize;
        Self { config, registers: vec![None; registers], counters: Counters::default() }
    }

    /// Counters since the start, of copies only.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Number of times that this packet is to leave: itself and its copies. `whose` is its connection, where that is known.
    #[inline]
    pub fn on_packet(&mut self, way: PortPair, seen: PacketView, whose: Option<u32>) -> u32 {
        match seen {
            PacketView::Other => 1,
            PacketView::Nak(psn) => self.on_nak(way, psn, whose),
            PacketView::Request(psn) if way.from_host => self.on_request(psn, whose),
            PacketView::Request(_) => 1,
        }
    }

    fn on_nak(&mut self, way: PortPair, psn: Psn, whose: Option<u32>) -> u32 {
        if way.to_host && self.config.naked > 0 {
            let register = self.register(psn);
            let lost = register.is_some_and(|other| other.psn != psn);
            *register = Some(Register { psn, whose });
            self.counters.overwritten += u64::from(lost);
        }
        if !way.from_host {
            return 1;
        }
        self.counters.naks += u64::from(self.config.naks);
        1 + self.config.naks
    }

    #[inline]
    fn on_request(&mut self, psn: Psn, whose: Option<u32>) -> u32 {
        let Some(kept) = self.register(psn).take_if(|kept| kept.psn == psn) else { return 1 };
        self.counters.wrong += u64::from(kept.whose != whose);
        self.counters.naked += u64::from(self.config.naked);
        1 + self.config.naked
    }

    fn register(&mut self, psn: Psn) -> &mut Option<Register> {
        let mask = self.registers.len() - 1;
        &mut self.registers[psn.number() as usize & mask]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: PortPair = PortPair { from_host: true, to_host: false };
    const DOWN: PortPair = PortPair { from_host: false, to_host: true };

    fn repeater() -> Repeater {
        Repeater::new(RepeaterConfig { naks: 1, naked: 3, registers: 16 })
    }

    #[test]
    fn a_nak_is_repeated_where_it_leaves_its_host_and_nowhere_else() {
        let mut switch = repeater();
        let nak = PacketView::Nak(Psn::new(7));
        assert_eq!(switch.on_packet(UP, nak, None), 2);
        assert_eq!(switch.on_packet(DOWN, nak, None), 1);
        assert_eq!(switch.on_packet(PortPair { from_host: false, to_host: false }, nak, None), 1);
        assert_eq!(switch.counters(), Counters { naks: 1, ..Counters::default() });
    }

    #[test]
    fn the_first_packet_that_a_nak_asked_for_is_repeated_once() {
        let mut switch = repeater();
        let packet = |number| PacketView::Request(Psn::new(number));
        assert_eq!(switch.on_packet(UP, packet(7), None), 1);
        switch.on_packet(DOWN, PacketView::Nak(Psn::new(7)), None);
        let leaving = [8, 7, 7, 8].map(|number| switch.on_packet(UP, packet(number), None));
        assert_eq!(leaving, [1, 4, 1, 1]);
        switch.on_packet(DOWN, PacketView::Nak(Psn::new(8)), None);
        assert_eq!(switch.on_packet(DOWN, packet(8), None), 1, "not of a host below");
        assert_eq!(switch.counters().naked, 3);
    }

    #[test]
    fn a_packet_of_another_connection_with_the_same_psn_is_repeated_instead_and_counted() {
        let mut switch = repeater();
        switch.on_packet(DOWN, PacketView::Nak(Psn::new(7)), Some(1));
        assert_eq!(switch.on_packet(UP, PacketView::Request(Psn::new(7)), Some(2)), 4);
        assert_eq!(switch.on_packet(UP, PacketView::Request(Psn::new(7)), Some(1)), 1);
        assert_eq!((switch.counters().wrong, switch.counters().naked), (1, 3));
    }

    #[test]
    fn two_epsns_with_the_same_lowest_bits_share_a_register() {
        let mut switch = repeater();
        switch.on_packet(DOWN, PacketView::Nak(Psn::new(7)), None);
        switch.on_packet(DOWN, PacketView::Nak(Psn::new(7)), None);
        switch.on_packet(DOWN, PacketView::Nak(Psn::new(7 + 16)), None);
        let leaving = [7, 7 + 16].map(|number| switch.on_packet(UP, PacketView::Request(Psn::new(number)), None));
        assert_eq!((leaving, switch.counters().overwritten), ([1, 4], 1));
    }
}
