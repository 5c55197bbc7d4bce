//! Data frames: passed, cut and sent back, or dropped.

use units::Time;
use wire::reserve::{DataMark, Demand, HostKey, Reservation, ReserveMessage, ReserveVerb};

use super::ReservingSwitch;
use super::scheduler::{Charge, FrameVisit, PortTouches, Scheduler};
use crate::registers::PipelinePass;

/// Verdict of the switch on a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataAnswer {
    /// The frame joins its queue; the charge is handed back when it leaves or is dropped there.
    Pass(Charge),
    /// The frame is cut: this message goes back to its sender instead.
    Cut(ReserveMessage),
    /// The frame is dropped.
    Drop,
}

impl ReservingSwitch {
    /// A data frame has been routed to a port. One that goes to several ports is several visits.
    #[inline]
    pub fn on_data(&mut self, now: Time, frame: FrameVisit, mark: Option<&DataMark>) -> DataAnswer {
        debug_assert!(frame.from < self.params.ports && frame.to < self.params.ports);
        let Some(mark) = mark else { return self.on_unmarked(now, frame) };
        if !self.scheduler.tracks() {
            return self.on_believed(now, frame, mark);
        }
        let Some(context) = self.contexts.index(frame.from, mark.id.context) else {
            self.counters.uncovered += 1;
            return self.on_unmarked(now, frame);
        };
        let PipelinePass { input, output, bursts, starts, cuts, .. } = PipelinePass::begin();
        let touches = PortTouches { input, output };
        let current = mark.switch_epoch == self.epoch && !mark.unsolicited;
        let start = self.contexts.read_start(starts, context);
        let punctual = self.is_punctual(now, start);
        let covered = current && self.contexts.use_frame(bursts, context, frame.to, mark, frame.len, punctual);
        if covered && punctual {
            self.counters.reserved += 1;
            self.contexts.clear_cut(cuts, context);
            let charge = match mark.index {
                0 => self.scheduler.on_first_reserved(now, touches, frame),
                _ => self.scheduler.on_reserved(touches, frame),
            };
            return self.pass(charge);
        }
        self.counters.early += u64::from(covered);
        self.counters.uncovered += u64::from(!covered && !mark.unsolicited);
        let charge = self.scheduler.on_unasked(now, touches, frame, true);
        let refused = charge.is_none();
        let cut = if mark.unsolicited { self.contexts.cut(cuts, context, refused) } else { refused };
        match charge.filter(|_| !cut) {
            Some(charge) => {
                self.counters.unsolicited += 1;
                self.pass(charge)
            }
            None => {
                self.give_up_charge(charge);
                DataAnswer::Cut(self.cut_message(mark, frame))
            }
        }
    }

    /// A frame that is not leaves its reservation as it is: it may still be used, or is given back.
    fn is_punctual(&self, now: Time, start: Time) -> bool {
        start < Time::NEVER && start.since(now) <= self.params.early
    }

    /// A frame that found room is cut because one before it was: its charge will not be counted down by its departure.
    fn give_up_charge(&mut self, charge: Option<Charge>) {
        if let Some(charge) = charge {
            self.on_gone(Charge { epoch: self.epoch, ..charge });
        }
    }

    fn cut_message(&mut self, mark: &DataMark, frame: FrameVisit) -> ReserveMessage {
        self.counters.cut += 1;
        let demand = Demand { frames: mark.of, bytes: frame.len };
        let about = Reservation {
            id: mark.id,
            attempt: 0,
            class: mark.class,
            switch_epoch: 0,
            peer: HostKey::default(),
            demand,
        };
        self.message(&about, ReserveVerb::Cut(mark.index))
    }

    fn pass(&self, charge: Charge) -> DataAnswer {
        let epoch = if charge.units == 0 { 0 } else { self.epoch };
        DataAnswer::Pass(Charge { epoch, ..charge })
    }

    /// Accepts every mark without a check, as `paper` does. A mark of an earlier run was not counted in this one.
    fn on_believed(&mut self, now: Time, frame: FrameVisit, mark: &DataMark) -> DataAnswer {
        if mark.switch_epoch != self.epoch {
            self.counters.uncovered += 1;
            return DataAnswer::Pass(Charge::default());
        }
        let pass = PipelinePass::begin();
        let touches = PortTouches { input: pass.input, output: pass.output };
        if !mark.unsolicited {
            self.counters.reserved += 1;
            return DataAnswer::Pass(self.scheduler.on_reserved(touches, frame));
        }
        match self.scheduler.on_unasked(now, touches, frame, true) {
            Some(charge) => {
                self.counters.unsolicited += 1;
                DataAnswer::Pass(charge)
            }
            None => {
                self.counters.dropped += 1;
                DataAnswer::Drop
            }
        }
    }

    fn on_unmarked(&mut self, now: Time, frame: FrameVisit) -> DataAnswer {
        let pass = PipelinePass::begin();
        if let Some(share) = &mut self.share {
            if !share.admits(now, pass.shared, frame.to, frame.len) {
                self.counters.policed += 1;
                return DataAnswer::Drop;
            }
            self.counters.unreserved += 1;
            return DataAnswer::Pass(Charge::default());
        }
        self.counters.unreserved += 1;
        let touches = PortTouches { input: pass.input, output: pass.output };
        let charge = self.scheduler.on_unasked(now, touches, frame, false).unwrap_or_default();
        self.pass(charge)
    }

    /// A frame that passed with this charge has left its queue, or was dropped at it.
    #[inline]
    pub fn on_gone(&mut self, charge: Charge) {
        if charge.epoch != self.epoch {
            return;
        }
        let pass = PipelinePass::begin();
        self.scheduler.on_gone(PortTouches { input: pass.input, output: pass.output }, charge);
    }
}
