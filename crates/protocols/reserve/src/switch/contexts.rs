//! Reservations of each context of each port that are not yet used.

use units::Time;
use wire::ethernet::on_wire;
use wire::reserve::{BurstId, DataMark, Demand};

use super::scheduler::AdmittedRsv;
use crate::registers::{CutContexts, OpenBursts, RegisterArray, SlotStarts, Touch};

/// The open burst of a context, or the last one if nothing of it is left.
#[derive(Clone, Copy, Debug, Default)]
struct OpenBurst {
    host_epoch: u16,
    to: u16,
    burst: u32,
    left: Demand,
    /// Bitmap by index of its frames that have come.
    came: u64,
    /// True once the context has asked for anything.
    used: bool,
}

/// Reservation of a context, as the control plane sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextReservation {
    /// The burst that it asked for last; 0 if it has not asked since its port came up.
    pub burst: u32,
    /// Frames of that burst that have not come.
    pub frames: u8,
    /// Bitmap by index of its frames that have come.
    pub came: u64,
    /// Time from which they may come; `None` while the RSV is not answered.
    pub start: Option<Time>,
}

/// Relation of an RSV to the last one of its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepeatedRsv {
    /// A new burst. The rest of the one before will not be used.
    New(Option<(u16, Demand)>),
    /// A new burst, while the rest of the one before is still open.
    Replaces,
    /// The RSV of a burst that has not been sent, repeated.
    Again,
    /// A burst that has been sent already.
    Stale,
}

/// All contexts of all ports.
#[derive(Clone, Debug)]
pub(super) struct ContextTable {
    per_port: u16,
    bursts: RegisterArray<OpenBurst, OpenBursts>,
    /// Times from which each burst may arrive; never while its RSV is kept or refused.
    starts: RegisterArray<Time, SlotStarts>,
    /// Set once an unsolicited frame was cut, so that those behind it must be cut too.
    cuts: RegisterArray<bool, CutContexts>,
}

impl ContextTable {
    pub(super) fn new(ports: u16, per_port: u16) -> Self {
        let all = usize::from(ports) * usize::from(per_port);
        Self {
            per_port,
            bursts: RegisterArray::new(all, OpenBurst::default()),
            starts: RegisterArray::new(all, Time::NEVER),
            cuts: RegisterArray::new(all, false),
        }
    }

    /// Index of a context in the arrays.
    #[inline]
    pub(super) fn index(&self, port: u16, context: u16) -> Option<u32> {
        let index = u32::from(port) * u32::from(self.per_port) + u32::from(context);
        (context < self.per_port && (index as usize) < self.bursts.len()).then_some(index)
    }

    pub(super) fn of_port(&self, port: u16) -> std::ops::Range<u32> {
        let first = u32::from(port) * u32::from(self.per_port);
        first..first + u32::from(self.per_port)
    }

    /// Opens a burst, unless it is open or over; or if something of the one before is left, and that is to be looked at first.
    pub(super) fn open(&mut self, once: Touch<OpenBursts>, rsv: &AdmittedRsv, looks: bool) -> RepeatedRsv {
        let id = rsv.about.id;
        self.bursts.touch(once, rsv.context as usize, |open| {
            if open.used && open.host_epoch == id.host_epoch {
                let ahead = id.burst.wrapping_sub(open.burst) as i32;
                if ahead < 0 || ahead == 0 && open.left.frames == 0 {
                    return RepeatedRsv::Stale;
                }
                if ahead == 0 && open.to == rsv.to {
                    return RepeatedRsv::Again;
                }
            }
            if looks && open.left.frames > 0 {
                return RepeatedRsv::Replaces;
            }
            let unused = (open.left.frames > 0).then_some((open.to, open.left));
            let (host_epoch, burst, left) = (id.host_epoch, id.burst, rsv.about.demand);
            *open = OpenBurst { host_epoch, to: rsv.to, burst, left, came: 0, used: true };
            RepeatedRsv::New(unused)
        })
    }

    /// Gives the place of a burst of which nothing has come to another one, if that is no larger and goes to the same port.
    pub(super) fn hand_over(&mut self, once: Touch<OpenBursts>, rsv: &AdmittedRsv) -> bool {
        let (id, demand) = (rsv.about.id, rsv.about.demand);
        self.bursts.touch(once, rsv.context as usize, |open| {
            let fits = open.to == rsv.to
                && open.came == 0
                && demand.frames <= open.left.frames
                && demand.bytes <= open.left.bytes;
            if fits {
                (open.host_epoch, open.burst, open.left) = (id.host_epoch, id.burst, demand);
            }
            fits
        })
    }

    /// True if a reservation covers this mark; a punctual frame uses it. A frame that comes twice is covered once, or its
    /// second coming would take the place of a frame that is not due yet.
    #[inline]
    pub(super) fn use_frame(
        &mut self,
        once: Touch<OpenBursts>,
        context: u32,
        to: u16,
        mark: &DataMark,
        len: u32,
        punctual: bool,
    ) -> bool {
        self.bursts.touch(once, context as usize, |open| {
            let bytes = on_wire(len);
            let bit = 1u64.checked_shl(mark.index.into()).unwrap_or(0);
            let covers = bit & !open.came != 0
                && open.burst == mark.id.burst
                && open.host_epoch == mark.id.host_epoch
                && open.to == to
                && open.left.frames > 0
                && open.left.bytes >= bytes;
            if covers && punctual {
                open.came |= bit;
                open.left.frames -= 1;
                open.left.bytes -= bytes;
            }
            covers
        })
    }

    /// Closes the burst with this identity; what was left of it.
    pub(super) fn close(&mut self, once: Touch<OpenBursts>, context: u32, id: BurstId) -> Option<(u16, Demand)> {
        self.bursts.touch(once, context as usize, |open| {
            let same = open.used && open.host_epoch == id.host_epoch && open.burst == id.burst;
            (same && open.left.frames > 0).then(|| (open.to, std::mem::take(&mut open.left)))
        })
    }

    /// Sets when the burst of a context may begin to arrive; when it might before.
    #[inline]
    pub(super) fn set_start(&mut self, once: Touch<SlotStarts>, context: u32, start: Time) -> Time {
        self.starts.touch(once, context as usize, |entry| std::mem::replace(entry, start))
    }

    /// Time from which the burst of a context may arrive.
    #[inline]
    pub(super) fn read_start(&mut self, once: Touch<SlotStarts>, context: u32) -> Time {
        self.starts.touch(once, context as usize, |entry| *entry)
    }

    /// A reserved frame came: what follows of this context is in order again.
    #[inline]
    pub(super) fn clear_cut(&mut self, once: Touch<CutContexts>, context: u32) {
        self.cuts.touch(once, context as usize, |cut| *cut = false);
    }

    /// Records whether an unsolicited frame was refused. Returns `true` if it must be cut, because it or one before it was refused.
    #[inline]
    pub(super) fn cut(&mut self, once: Touch<CutContexts>, context: u32, refused: bool) -> bool {
        self.cuts.touch(once, context as usize, |cut| {
            *cut |= refused;
            *cut
        })
    }

    /// Time from which the burst of a context might arrive, if any of it is still to come.
    pub(super) fn open_since(&self, context: u32) -> Option<Time> {
        let start = *self.starts.read(context as usize);
        (self.bursts.read(context as usize).left.frames > 0 && start < Time::NEVER).then_some(start)
    }

    /// Reads the reservation of a context.
    pub(super) fn view(&self, context: u32) -> ContextReservation {
        let open = self.bursts.read(context as usize);
        let start = Some(*self.starts.read(context as usize)).filter(|start| *start < Time::NEVER);
        ContextReservation { burst: open.burst, frames: open.left.frames, came: open.came, start }
    }

    /// Makes a context as new; what it had reserved.
    pub(super) fn clear(&mut self, context: u32) -> Option<(u16, Demand)> {
        let open = std::mem::take(self.bursts.write(context as usize));
        let start = std::mem::replace(self.starts.write(context as usize), Time::NEVER);
        *self.cuts.write(context as usize) = false;
        (open.left.frames > 0 && start < Time::NEVER).then_some((open.to, open.left))
    }
}
