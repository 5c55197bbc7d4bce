//! A wire in the kernel: traffic control on the two interfaces drops, forwards and limits.
//!
//! It outlives a process that is killed. The holder of an interface's [`InterfaceClaim`](super::Claim) knows that no
//! such wire is in use there, and takes up what is left with [`Netlink::take_up_wire`].

use units::{Bytes, Prob, Rate};

use super::DirectionCounters;
use linux::net::{self, Netlink, Qdisc};

/// A wire in the kernel, with less than ours can do: independent loss and a rate. Taken up again when dropped.
#[derive(Debug)]
pub struct KernelWire<'a> {
    netlink: &'a Netlink,
    ends: [u32; 2],
    before: [DirectionCounters; 2],
}

impl<'a> KernelWire<'a> {
    pub fn lay(
        netlink: &'a Netlink,
        ends: [u32; 2],
        losses: [Prob; 2],
        rate: Option<Rate>,
        queue: Bytes,
    ) -> net::Result<Self> {
        let mut wire = Self { netlink, ends, before: [DirectionCounters::default(); 2] };
        for from in 0..2 {
            netlink.make_room_for_wire(ends[from])?;
            netlink.corrupt(ends[from], losses[from].get())?;
            netlink.forward(ends[from], ends[1 - from])?;
            if let Some(rate) = rate {
                netlink.set_tbf(ends[from], rate.bits_per_second(), 32 << 10, queue.get() as u32)?;
            }
        }
        wire.before = wire.seen()?;
        Ok(wire)
    }

    /// Counters of the wire since it was laid.
    pub fn counters(&self) -> net::Result<[DirectionCounters; 2]> {
        let now = self.seen()?;
        let since = |lane: usize| {
            let (now, before) = (&now[lane], &self.before[lane]);
            let (offered, dropped) = (now.offered - before.offered, now.dropped - before.dropped);
            let overflowed = now.overflowed - before.overflowed;
            DirectionCounters {
                offered,
                dropped,
                overflowed,
                offered_bytes: now.offered_bytes - before.offered_bytes,
                passed: offered.saturating_sub(dropped + overflowed),
                passed_bytes: now.passed_bytes - before.passed_bytes,
                too_long: 0,
            }
        };
        Ok([since(0), since(1)])
    }

    fn seen(&self) -> net::Result<[DirectionCounters; 2]> {
        let mut lanes = [DirectionCounters::default(); 2];
        for (from, lane) in lanes.iter_mut().enumerate() {
            let arrived = self.netlink.qdisc_statistics(self.ends[from], Qdisc::Clsact)?.unwrap_or_default();
            let left = self.netlink.qdisc_statistics(self.ends[1 - from], Qdisc::Root)?.unwrap_or_default();
            lane.offered = arrived.packets;
            lane.offered_bytes = arrived.bytes;
            lane.dropped = arrived.drops;
            lane.overflowed = left.drops;
            lane.passed_bytes = left.bytes;
        }
        Ok(lanes)
    }
}

impl Drop for KernelWire<'_> {
    fn drop(&mut self) {
        for end in self.ends {
            // An interface that went away took its filters along.
            let _ = self.netlink.take_up_wire(end);
        }
    }
}
