//! `late`: clocks as in `clock`, but an RSV is answered only when its slot is a round trip away.
//!
//! Until then it is kept, one for each context, so a repeated RSV replaces the first one. Who is answered next is decided
//! late, when everybody has asked: lower classes first, then round robin over the ports that ask. Shares are thus equal
//! per host, however many contexts it has, and a request of class 0 waits for a horizon and not for all bursts reserved
//! before it. Now and then the turn is another class's, so that no class waits without bound.

mod kept;

use units::{Span, Time};
use wire::reserve::Grant;

use self::kept::KeptRsvs;
use super::clock::PortClocks;
use super::scheduler::{AdmittedRsv, Charge, FrameVisit, PortReservation, PortTouches, RsvPlacement, Scheduler};
use crate::params::RackParams;

/// Keeps RSVs and answers them late.
#[derive(Clone, Debug)]
pub(crate) struct LateScheduler {
    clocks: PortClocks,
    kept: KeptRsvs,
    horizon: Span,
    /// Earliest time at which a kept RSV is to be answered.
    wake_at: Time,
}

/// Inputs are not limited: an RSV for each context is all that is kept.
const ANY: Span = Span::from_ps(u64::MAX);

impl LateScheduler {
    pub(crate) fn new(params: &RackParams) -> Self {
        let kept = KeptRsvs::new(params.ports, params.contexts);
        Self { clocks: PortClocks::new(params), kept, horizon: params.horizon, wake_at: Time::NEVER }
    }

    /// Time at which the next RSV for this port is to be answered.
    #[inline]
    fn due_at(&self, to: u16) -> Time {
        Time::from_ps(self.clocks.output_free(to).as_ps().saturating_sub(self.horizon.as_ps()))
    }

    fn set_wake(&mut self) {
        self.wake_at = self.kept.outputs().map(|to| self.due_at(to)).min().unwrap_or(Time::NEVER);
    }

    #[inline]
    fn grant(&mut self, now: Time, touches: PortTouches, rsv: &AdmittedRsv) -> Grant {
        self.clocks.reserve(now, touches, rsv, ANY).unwrap_or_default()
    }
}

impl Scheduler for LateScheduler {
    #[inline]
    fn reserve(&mut self, now: Time, touches: PortTouches, rsv: &AdmittedRsv) -> RsvPlacement {
        let replaced = self.kept.remove_elsewhere(rsv);
        if replaced.is_none() && !self.kept.waits_for(rsv.to) && self.due_at(rsv.to) <= now {
            return RsvPlacement::Granted(self.grant(now, touches, rsv));
        }
        let replaced = self.kept.put(*rsv).or(replaced);
        self.set_wake();
        RsvPlacement::Kept(replaced)
    }

    #[inline]
    fn on_first_reserved(&mut self, now: Time, touches: PortTouches, frame: FrameVisit) -> Charge {
        self.clocks.answered(now, touches, frame)
    }

    #[inline]
    fn on_unasked(&mut self, now: Time, touches: PortTouches, frame: FrameVisit, limited: bool) -> Option<Charge> {
        self.clocks.unasked(now, touches, frame, limited)
    }

    fn forget(&mut self, context: u32) -> Option<u64> {
        let token = self.kept.remove(context).map(|rsv| rsv.token);
        self.set_wake();
        token
    }

    #[inline]
    fn wake_at(&self) -> Time {
        self.wake_at
    }

    fn on_wake(&mut self, now: Time, touches: PortTouches) -> Option<(AdmittedRsv, Grant)> {
        let to = self.kept.outputs().find(|to| self.due_at(*to) <= now);
        let granted = to.and_then(|to| self.kept.take_next(to)).map(|rsv| (rsv, self.grant(now, touches, &rsv)));
        self.set_wake();
        granted
    }

    fn reserved(&self, now: Time, port: u16) -> PortReservation {
        self.clocks.reserved(now, port)
    }

    fn on_port_down(&mut self, port: u16) {
        self.clocks.clear_input(port);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{admitted, admitted_in_class, params, touches};
    use super::*;
    use crate::params::SchedulerKind;

    fn rack() -> LateScheduler {
        LateScheduler::new(&params(SchedulerKind::Late))
    }

    /// Fills the horizon of port 5, so that whatever comes next is kept.
    fn busy() -> LateScheduler {
        let mut late = rack();
        while late.wake_at() == Time::NEVER {
            late.reserve(Time::ZERO, touches(), &admitted(4, 5, 4));
        }
        late.forget(admitted(4, 5, 4).context);
        late
    }

    fn answered(late: &mut LateScheduler) -> Vec<u16> {
        let mut order = Vec::new();
        while late.wake_at() < Time::NEVER {
            let now = late.wake_at();
            while let Some((rsv, grant)) = late.on_wake(now, touches()) {
                assert!(grant.recv <= late.horizon, "{grant:?}");
                assert_eq!(grant.kept, now.since(Time::ZERO));
                order.push(rsv.from);
            }
        }
        order
    }

    #[test]
    fn an_idle_port_answers_at_once() {
        let placement = rack().reserve(Time::ZERO, touches(), &admitted(0, 5, 4));
        assert_eq!(placement, RsvPlacement::Granted(Grant::default()));
    }

    #[test]
    fn kept_rsvs_are_answered_round_robin_over_their_ports() {
        let mut late = busy();
        for (from, context) in [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)] {
            let mut rsv = admitted(from, 5, 4);
            rsv.context += context;
            assert_eq!(late.reserve(Time::ZERO, touches(), &rsv), RsvPlacement::Kept(None));
        }
        assert_eq!(answered(&mut late), [1, 2, 0, 0, 0]);
    }

    #[test]
    fn a_lower_class_is_answered_first_but_not_for_ever() {
        let mut late = busy();
        late.reserve(Time::ZERO, touches(), &admitted_in_class(3, 5, 4, 1));
        for context in 0..12 {
            let mut rsv = admitted_in_class(0, 5, 4, 0);
            rsv.context += context;
            late.reserve(Time::ZERO, touches(), &rsv);
        }
        let order = answered(&mut late);
        assert_eq!(order.iter().position(|from| *from == 3), Some(8));
        assert_eq!(order.len(), 13);
    }

    #[test]
    fn a_repeated_rsv_replaces_itself_and_one_for_another_port_too() {
        let mut late = busy();
        let first = AdmittedRsv { token: 1, ..admitted(0, 5, 4) };
        late.reserve(Time::ZERO, touches(), &first);
        let again = AdmittedRsv { token: 2, ..first };
        assert_eq!(late.reserve(Time::ZERO, touches(), &again), RsvPlacement::Kept(Some(1)));
        let elsewhere = AdmittedRsv { token: 3, to: 3, ..first };
        assert_eq!(late.reserve(Time::ZERO, touches(), &elsewhere), RsvPlacement::Kept(Some(2)));
        assert_eq!(answered(&mut late), [0], "one context, one answer");
    }
}
