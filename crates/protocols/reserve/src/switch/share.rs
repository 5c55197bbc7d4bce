//! The part of each port that is kept for frames that nobody reserved.
//!
//! PL2, §G. Slots are longer by this share; here what is not reserved is held to it, so that it cannot take more.

use units::{Bytes, Span, Time};
use wire::ethernet::on_wire;

use crate::params::RackParams;
use crate::registers::{RegisterArray, SharedPorts, Touch};

#[derive(Clone, Debug)]
pub(super) struct UnreservedShare {
    /// Picoseconds per byte at the share's rate, times 2¹⁶.
    per_byte: u64,
    /// Time by which a burst of unreserved frames may run ahead of the share.
    burst: Span,
    /// Times at which the share of each output has caught up with the frames that passed.
    used: RegisterArray<Time, SharedPorts>,
}

impl UnreservedShare {
    /// The share of frames without reservation. `None` without a share: then these frames take slots from reserved ones.
    pub(super) fn new(params: &RackParams) -> Option<Self> {
        let share = params.ingress_share.get();
        if params.ingress_share.is_zero() {
            return None;
        }
        let frame = Bytes::new(u64::from(params.full_frame()));
        let full = params.rate.span_of(frame).scale(1.0 / share);
        Some(Self {
            per_byte: (full.as_ps() << 16) / u64::from(params.full_frame()),
            burst: full * u64::from(params.ingress_burst.max(1) - 1),
            used: RegisterArray::new(usize::from(params.ports), Time::ZERO),
        })
    }

    /// Admits a frame to this port if it is within the share.
    pub(super) fn admits(&mut self, now: Time, once: Touch<SharedPorts>, to: u16, len: u32) -> bool {
        let takes = Span::from_ps((self.per_byte * u64::from(on_wire(len))).div_ceil(1 << 16));
        let burst = self.burst;
        self.used.touch(once, usize::from(to), |used| {
            let ahead = used.since(now);
            let passes = ahead <= burst;
            if passes {
                *used = now + ahead + takes;
            }
            passes
        })
    }
}

#[cfg(test)]
mod tests {
    use units::{Prob, Rate};

    use super::*;
    use crate::params::SchedulerKind;
    use crate::registers::PipelinePass;

    #[test]
    fn a_tenth_of_the_port_passes_after_the_first_burst() {
        let plain = RackParams::new(SchedulerKind::Clock, 6, Rate::gbps(100));
        assert!(UnreservedShare::new(&plain).is_none());
        let params = RackParams { ingress_share: Prob::literal(0.1), ..plain };
        let mut share = UnreservedShare::new(&params).expect("a share");
        let passed = |share: &mut UnreservedShare, slot: u64| {
            share.admits(Time::from_ps(slot * 123_040), PipelinePass::begin().shared, 3, 1_518)
        };
        assert_eq!((0..20).filter(|_| passed(&mut share, 0)).count(), 16);
        let rest = (1_000..11_000).filter(|slot| passed(&mut share, *slot)).count();
        assert!((1_000..=1_017).contains(&rest), "{rest} of 10,000");
    }
}
