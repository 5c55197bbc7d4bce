//! Settings on which the switch and the hosts of a live rack must agree.
//!
//! Both sides are given the same few settings; everything else follows from them here, so that it is the same at both.

use reserve::{RackParamError, RackParams, SchedulerKind, SlotUnit};
use units::{Bytes, Prob, Rate, Span};
use wire::ethernet::{HEADER_AND_CHECK, on_wire};

/// A slot is this much longer than a full frame: a queue that has formed drains, and answers of the switch have room, which
/// nobody reserves.
const SLOT_MARGIN: f64 = 1.02;
/// Hosts in software answer within microseconds, and now and then within milliseconds.
const TIMEOUT: Span = Span::from_ms(10);
/// A round trip between a host and the switch, both in software and not alone on their processors.
const HORIZON: Span = Span::from_ms(1);
/// Contexts of a host that has one for each destination; with more destinations some share one.
const PER_DESTINATION: u16 = 32;

/// The settings that a rack has in common.
#[derive(Clone, Copy, Debug)]
pub struct RackAgreement {
    /// Scheduler that decides when a burst may leave.
    pub scheduler: SchedulerKind,
    /// Rate of every port.
    pub rate: Rate,
    /// MTU of the interfaces that the cables are plugged into.
    pub wire_mtu: u32,
    /// The most full frames of a burst.
    pub k: u8,
    /// Reservations that a host may have open; one for each destination if there is no number.
    pub contexts: Option<u16>,
}

impl RackAgreement {
    /// Parameters of a switch with this number of ports, each with this buffer.
    pub fn at_switch(&self, ports: u16, buffer: Bytes) -> Result<RackParams, RackParamError> {
        self.at_sharing_switch(ports, buffer, Prob::literal(0.0))
    }

    /// The parameters at a switch that keeps a part of each port for frames without a reservation. Hosts need not know of
    /// it: every grant tells them the time of their slot. Hosts of the paper are told the number of slots before theirs,
    /// and so they would have to know the length of a slot.
    pub fn at_sharing_switch(
        &self,
        ports: u16,
        buffer: Bytes,
        ingress_share: Prob,
    ) -> Result<RackParams, RackParamError> {
        if self.scheduler == SchedulerKind::Paper && !ingress_share.is_zero() {
            let expected =
                "hosts of the scheduler paper do not know how long a slot is then; expected another scheduler";
            return Err(RackParamError { key: "ingress_share", expected: expected.to_owned() });
        }
        // The longest frame of a stand-in with its mark: a full one of its wire.
        let mtu = self.wire_mtu + HEADER_AND_CHECK;
        let slot = self.rate.span_of(Bytes::new(u64::from(on_wire(mtu)))).scale(SLOT_MARGIN);
        let params = RackParams {
            mtu,
            slot,
            // TCP's acknowledgements would take whole slots.
            unit: if self.scheduler == SchedulerKind::Paper { SlotUnit::Frames } else { SlotUnit::Bytes },
            k: self.k,
            contexts: self.contexts.unwrap_or(PER_DESTINATION),
            per_destination: self.contexts.is_none(),
            unsolicited: true,
            timeout: TIMEOUT,
            horizon: HORIZON,
            early: slot,
            ingress_share,
            buffer,
            ..RackParams::new(self.scheduler, ports, self.rate)
        };
        params.check().map(|()| params)
    }

    /// The parameters at a host, which does not know how many ports the switch has, nor what they can hold.
    pub fn at_host(&self) -> Result<RackParams, RackParamError> {
        self.at_switch(2, Bytes::new(u64::MAX / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_count_alike_and_a_host_knows_no_buffer() {
        let agreement = RackAgreement {
            scheduler: SchedulerKind::Late,
            rate: Rate::gbps(1),
            wire_mtu: 1_521,
            k: 4,
            contexts: None,
        };
        let (switch, host) =
            (agreement.at_switch(6, Bytes::new(128_000)).expect("valid"), agreement.at_host().expect("valid"));
        assert_eq!((switch.slot, switch.unit, switch.contexts), (host.slot, host.unit, host.contexts));
        assert_eq!(switch.bound(5).reserved, Bytes::new(5 * 4 * 1_559));
        assert!(switch.bound(5).total() <= Bytes::new(64_000), "half of the demonstration's buffer");
        assert!(RackAgreement { contexts: Some(40), ..agreement }.at_switch(6, Bytes::new(128_000)).is_err());
        assert!(RackAgreement { contexts: Some(40), ..agreement }.at_host().is_ok());
        assert!(RackAgreement { k: 0, ..agreement }.at_host().is_err());
    }

    #[test]
    fn a_share_for_others_adds_its_burst_to_the_bound_and_is_not_for_the_papers_hosts() {
        let agreement = RackAgreement {
            scheduler: SchedulerKind::Late,
            rate: Rate::gbps(1),
            wire_mtu: 1_500,
            k: 4,
            contexts: None,
        };
        let (buffer, share) = (Bytes::new(128_000), Prob::literal(0.1));
        let without = agreement.at_switch(3, buffer).expect("valid").bound(2).total();
        let with = agreement.at_sharing_switch(3, buffer, share).expect("valid");
        assert_eq!(with.bound(2).total(), without + Bytes::new(16 * 1_538));
        let paper = RackAgreement { scheduler: SchedulerKind::Paper, ..agreement };
        assert!(paper.at_switch(3, buffer).is_ok() && paper.at_sharing_switch(3, buffer, share).is_err());
    }
}
