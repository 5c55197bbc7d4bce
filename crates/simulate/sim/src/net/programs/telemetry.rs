//! In-band telemetry: every switch port writes what it knows of itself on the data packets that ask for it.
//!
//! HPCC (Li's thesis §2.3, §2.5). A packet is stamped when it leaves its queue: the time at which its first bit leaves, the bytes
//! that have left the port before it, what stays in the queue, and the port's rate. All bytes are
//! those of the wire, with preamble and gap, so that rate and bytes have the same unit. Acknowledgements carry what they bring
//! back and are not stamped; nor do hosts stamp.
//!
//! Telemetry is charged in advance, as room for five switches. If only what is filled is charged, every switch makes the
//! packet longer when it routes it.

use machine::{Forward, SwitchPort, SwitchProgram, Visit};
use units::Time;
use wire::ethernet::WireFraming;
use wire::int::{IntHeader, IntHop, TelemetrySample};

use super::NetworkProgram;
use crate::net::packet::SimPacket;
use crate::net::setup::{IntCharge, IntSettings, NetworkSetup};

/// Telemetry that a packet has collected, with room for `N` switches; a longer path is not written down.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct IntStack<const N: usize> {
    path: u16,
    len: u8,
    hops: [IntHop; N],
}

impl<const N: usize> Default for IntStack<N> {
    fn default() -> Self {
        Self { path: 0, len: 0, hops: [IntHop::default(); N] }
    }
}

/// Writes telemetry, at every port of every switch.
#[derive(Debug)]
pub(crate) struct TelemetryProgram<const N: usize> {
    ports: Vec<PortTelemetry>,
    charge: IntCharge,
    framing: WireFraming,
}

/// Telemetry of a port.
#[derive(Clone, Copy, Debug)]
struct PortTelemetry {
    tx_bytes: u64,
    rate_mbps: u32,
}

impl<const N: usize> TelemetryProgram<N> {
    pub(crate) fn new(setup: &NetworkSetup, settings: &IntSettings) -> Self {
        let topology = &setup.topology;
        let port = |at| {
            let given = settings.rates.iter().find(|(port, _)| *port == at).map(|(_, rate)| *rate);
            let rate = given.unwrap_or(topology.link(at.link()).rate);
            let rate_mbps = (rate.bits_per_second() / 1_000_000).min(u64::from(u32::MAX)) as u32;
            PortTelemetry { tx_bytes: 0, rate_mbps }
        };
        Self {
            ports: topology.directed().map(port).collect(),
            charge: settings.charge,
            framing: setup.profile.framing(),
        }
    }
}

impl<const N: usize> NetworkProgram for TelemetryProgram<N> {}

impl<const N: usize> SwitchProgram for TelemetryProgram<N> {
    type Frame = SimPacket;
    type Tag = IntStack<N>;

    fn watches_departures(&self) -> bool {
        true
    }

    #[inline]
    fn on_route(&mut self, _now: Time, _at: Visit, frame: &mut SimPacket, _tag: &mut IntStack<N>) -> Forward {
        if self.charge == IntCharge::Filled && frame.body.collects_telemetry() {
            frame.len += IntCharge::HOP;
        }
        Forward::Pass
    }

    #[inline]
    fn on_departure(&mut self, now: Time, at: SwitchPort, left: u64, frame: &mut SimPacket, tag: &mut IntStack<N>) {
        let port = &mut self.ports[at.port as usize];
        if frame.body.collects_telemetry() && usize::from(tag.len) < N {
            tag.hops[usize::from(tag.len)] = IntHop {
                at: now,
                tx_bytes: port.tx_bytes,
                queue: left.min(u64::from(u32::MAX)) as u32,
                rate_mbps: port.rate_mbps,
            };
            tag.len += 1;
            tag.path ^= (at.switch as u16).wrapping_add(1) & IntHeader::PATH_MASK;
        }
        port.tx_bytes += u64::from(self.framing.on_wire(u32::from(frame.len)));
    }

    #[inline]
    fn clear(tag: &mut IntStack<N>) {
        (tag.path, tag.len) = (0, 0);
    }

    #[inline]
    fn telemetry(tag: &IntStack<N>) -> Option<TelemetrySample<'_>> {
        let hops = &tag.hops[..usize::from(tag.len)];
        (!hops.is_empty()).then_some(TelemetrySample { path: tag.path, hops })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_with_telemetry_of_five_switches_is_small() {
        let bytes = size_of::<SimPacket>() + size_of::<IntStack<5>>();
        assert!(bytes <= 260, "{bytes}");
    }
}
