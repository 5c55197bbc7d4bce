//! The switch's part: RSVs in, GRTs out, and whether a data frame may pass.
//!
//! PL2, §2, App. D.1 (Algorithms 1 and 2), D.4, D.5. Four schedulers decide when a burst may go:
//!
//! | | reserved is | counted down | after a loss |
//! | --- | --- | --- | --- |
//! | `paper` | a counter per port | when a frame arrives | leaks until a receiver resets |
//! | `departure` | a counter per port | when a frame leaves or is dropped | given back by the context's next RSV |
//! | `clock` | a time per port | – | nothing to give back: the slot passes |
//! | `late` | a time per port | – | the same; RSVs wait for their turn |
//!
//! Before them stands what is common to all ([`ReservingSwitch`]): RSVs that make no sense are refused with a reason, and
//! data frames are matched with what their context has reserved. A marked frame that no reservation covers, or that comes
//! too early, is treated as unsolicited: it passes if its port is nearly free and takes a slot of its own; otherwise it is
//! cut to its header and sent back, at the expense of its sender alone. `paper` has none of this: it believes everybody.
//!
//! Invariant: a frame touches each array once ([`crate::registers`]); nothing is allocated per frame.

mod clock;
mod contexts;
mod counters;
mod data;
mod departure;
mod late;
mod paper;
mod scheduler;
mod share;

use units::{Span, Time};
use wire::reserve::{Demand, Grant, HostKey, Refusal, Reservation, ReserveMessage, ReserveVerb};

pub use contexts::ContextReservation;
pub use counters::SwitchCounters;
pub use data::DataAnswer;
pub use scheduler::{Charge, FrameVisit, PortReservation};

use self::contexts::{ContextTable, RepeatedRsv};
use self::scheduler::{AdmittedRsv, AnyScheduler, PortTouches, RsvPlacement, Scheduler, UnusedUnits};
use self::share::UnreservedShare;
use crate::params::{RackParamError, RackParams, SchedulerKind, SlotTable};
use crate::registers::{PipelinePass, SlotStarts, Touch};

/// Ports behind which a message's sender and its peer are, as the driver knows them.
#[derive(Clone, Copy, Debug)]
pub struct MessageVisit {
    /// The port that it came in by.
    pub from: u16,
    /// The port behind which [`Reservation::peer`] is, if it is known.
    pub peer: Option<u16>,
    /// The port behind which the source address is, if it is known.
    pub source: Option<u16>,
    /// Comes back with a late answer; a driver finds the asker, or the frame that it holds, by it.
    pub token: u64,
}

/// Answer of the switch to a message from a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageAnswer {
    /// This goes back by the port that the message came in by.
    Reply(ReserveMessage),
    /// The RSV will be answered by [`ReservingSwitch::on_wake`]. An earlier RSV with this token will never be answered.
    Kept(Option<u64>),
    /// The message needs no answer.
    Done,
}

/// An answer that was not given at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateAnswer {
    /// The port that it leaves by: where the RSV came from.
    pub port: u16,
    /// The token of the RSV.
    pub token: u64,
    /// The answer.
    pub message: ReserveMessage,
}

/// The switch of a rack.
#[derive(Clone, Debug)]
pub struct ReservingSwitch {
    params: RackParams,
    slots: SlotTable,
    /// The run of this switch; never 0.
    epoch: u16,
    contexts: ContextTable,
    share: Option<UnreservedShare>,
    scheduler: AnyScheduler,
    /// Time at which to look for reservations that are never used; set only if they stay otherwise.
    sweep_at: Time,
    counters: SwitchCounters,
}

/// Timeouts after which an unused reservation is given back.
const UNUSED_FOR: u64 = 16;

impl ReservingSwitch {
    /// `epoch` is to differ from that of the run before; 0 becomes 1, as 0 stands for an epoch that is not known.
    pub fn new(params: RackParams, epoch: u16) -> Result<Self, RackParamError> {
        params.check()?;
        Ok(Self {
            params,
            slots: SlotTable::new(&params),
            epoch: epoch.max(1),
            contexts: ContextTable::new(params.ports, params.contexts),
            share: UnreservedShare::new(&params),
            scheduler: AnyScheduler::new(&params),
            sweep_at: Time::NEVER,
            counters: SwitchCounters::default(),
        })
    }

    /// Parameters of the rack.
    pub fn params(&self) -> &RackParams {
        &self.params
    }

    /// Counters since the start.
    pub fn counters(&self) -> &SwitchCounters {
        &self.counters
    }

    /// The run of this switch.
    pub fn epoch(&self) -> u16 {
        self.epoch
    }

    /// True if each GRT is to be copied to the receiver of its burst ([`Self::copy_for_receiver`]).
    pub fn copies_grants(&self) -> bool {
        self.params.scheduler == SchedulerKind::Paper
    }

    /// The copy of a GRT for the receiver; `sender` is the address of the one who asked.
    pub fn copy_for_receiver(reply: &ReserveMessage, sender: HostKey) -> Option<ReserveMessage> {
        let ReserveVerb::Grt(grant) = reply.verb else { return None };
        let about = Reservation { peer: sender, ..reply.about };
        Some(ReserveMessage { verb: ReserveVerb::Copy(grant), about })
    }

    /// A message from a host.
    pub fn on_message(&mut self, now: Time, at: MessageVisit, message: &ReserveMessage) -> MessageAnswer {
        match message.verb {
            ReserveVerb::Rsv => self.on_rsv(now, at, &message.about),
            ReserveVerb::Reset => self.on_reset(at, &message.about),
            ReserveVerb::Release => self.on_release(at, &message.about),
            // Messages that only switches send.
            ReserveVerb::Grt(_) | ReserveVerb::Copy(_) | ReserveVerb::Refused(_) | ReserveVerb::Cut(_) => {
                self.counters.nonsense += 1;
                MessageAnswer::Done
            }
        }
    }

    fn on_rsv(&mut self, now: Time, at: MessageVisit, about: &Reservation) -> MessageAnswer {
        self.counters.rsvs += 1;
        let to = match self.police(at, about) {
            Ok(to) => to,
            Err(reason) => return self.refuse(about, reason),
        };
        let context = self.contexts.index(at.from, about.id.context).unwrap_or_default();
        let rsv = AdmittedRsv { from: at.from, to, context, token: at.token, asked: now, about: *about, unused: None };
        if self.scheduler.tracks() { self.reserve_once(now, &rsv) } else { self.reserve_anew(now, &rsv) }
    }

    /// The port that the burst leaves by, or why the RSV is refused.
    fn police(&self, at: MessageVisit, about: &Reservation) -> Result<u16, Refusal> {
        let demand = about.demand;
        let to = at.peer.filter(|to| *to < self.params.ports).ok_or(Refusal::UnknownPort)?;
        let excessive = demand.frames > self.params.burst_frames() || demand.bytes > self.params.burst_bytes();
        let checks = [
            (at.source.is_some_and(|port| port != at.from), Refusal::ForeignSource),
            (about.switch_epoch != 0 && about.switch_epoch != self.epoch, Refusal::OldEpoch),
            (demand.frames == 0 || demand.bytes == 0 || excessive, Refusal::AboveLimit),
            (to == at.from, Refusal::OwnPort),
            (self.contexts.index(at.from, about.id.context).is_none(), Refusal::UnknownContext),
        ];
        checks.into_iter().find(|(applies, _)| *applies).map_or(Ok(to), |(_, reason)| Err(reason))
    }

    fn refuse(&mut self, about: &Reservation, reason: Refusal) -> MessageAnswer {
        self.counters.count_refusal(reason);
        self.reply(about, ReserveVerb::Refused(reason))
    }

    fn reply(&self, about: &Reservation, verb: ReserveVerb) -> MessageAnswer {
        MessageAnswer::Reply(self.message(about, verb))
    }

    fn message(&self, about: &Reservation, verb: ReserveVerb) -> ReserveMessage {
        ReserveMessage { verb, about: Reservation { switch_epoch: self.epoch, ..*about } }
    }

    /// Reserves, for schedulers that believe every RSV to be new.
    fn reserve_anew(&mut self, now: Time, rsv: &AdmittedRsv) -> MessageAnswer {
        let pass = PipelinePass::begin();
        let touches = PortTouches { input: pass.input, output: pass.output };
        let placement = self.scheduler.reserve(now, touches, rsv);
        self.answer(rsv, placement)
    }

    /// Reserves, for schedulers that know what a context has reserved: a repeated RSV gets its slot again.
    fn reserve_once(&mut self, now: Time, rsv: &AdmittedRsv) -> MessageAnswer {
        let pass = PipelinePass::begin();
        match self.contexts.open(pass.bursts, rsv, !self.scheduler.holds()) {
            RepeatedRsv::New(unused) => {
                let touches = PortTouches { input: pass.input, output: pass.output };
                self.place(now, rsv, unused, touches, pass.starts)
            }
            RepeatedRsv::Replaces => {
                let start = self.contexts.read_start(pass.starts, rsv.context);
                self.replace(now, rsv, start)
            }
            RepeatedRsv::Again => {
                let start = self.contexts.read_start(pass.starts, rsv.context);
                if let Some(grant) = same_slot(now, start) {
                    self.counters.repeated += 1;
                    return self.reply(&rsv.about, ReserveVerb::Grt(grant));
                }
                // It was refused or is kept. It passes the switch a second time, as if it had just come.
                let pass = PipelinePass::begin();
                let touches = PortTouches { input: pass.input, output: pass.output };
                self.place(now, rsv, None, touches, pass.starts)
            }
            RepeatedRsv::Stale => {
                self.counters.stale += 1;
                MessageAnswer::Done
            }
        }
    }

    /// An RSV for another burst than the one that its context has open, in a second pass through the switch.
    ///
    /// While the slot of that one is still to come, the context gets no other: clocks do not go back, and one who asks without
    /// end would take all slots of a port and use none.
    fn replace(&mut self, now: Time, rsv: &AdmittedRsv, start: Time) -> MessageAnswer {
        let pass = PipelinePass::begin();
        let slot = same_slot(now, start).filter(|_| start > now);
        let Some(grant) = slot else {
            let RepeatedRsv::New(unused) = self.contexts.open(pass.bursts, rsv, false) else {
                return MessageAnswer::Done;
            };
            let touches = PortTouches { input: pass.input, output: pass.output };
            return self.place(now, rsv, unused, touches, pass.starts);
        };
        if self.contexts.hand_over(pass.bursts, rsv) {
            self.counters.repeated += 1;
            return self.reply(&rsv.about, ReserveVerb::Grt(grant));
        }
        self.refuse(&rsv.about, Refusal::TooMany)
    }

    fn place(
        &mut self,
        now: Time,
        rsv: &AdmittedRsv,
        unused: Option<(u16, Demand)>,
        touches: PortTouches,
        starts: Touch<SlotStarts>,
    ) -> MessageAnswer {
        let unused = unused.map(|(to, demand)| UnusedUnits { from: rsv.from, to, units: self.slots.units(demand) });
        let rsv = &AdmittedRsv { unused, ..*rsv };
        let placement = self.scheduler.reserve(now, touches, rsv);
        let start = match placement {
            RsvPlacement::Granted(grant) => now + grant.chosen(),
            RsvPlacement::Kept(_) | RsvPlacement::TooMany => Time::NEVER,
        };
        self.contexts.set_start(starts, rsv.context, start);
        if self.scheduler.holds() && self.sweep_at == Time::NEVER {
            self.sweep_at = start + self.params.timeout * UNUSED_FOR;
        }
        self.answer(rsv, placement)
    }

    fn answer(&mut self, rsv: &AdmittedRsv, placement: RsvPlacement) -> MessageAnswer {
        match placement {
            RsvPlacement::Granted(grant) => {
                self.counters.grants += 1;
                self.reply(&rsv.about, ReserveVerb::Grt(grant))
            }
            RsvPlacement::Kept(replaced) => {
                self.counters.kept += 1;
                MessageAnswer::Kept(replaced)
            }
            RsvPlacement::TooMany => self.refuse(&rsv.about, Refusal::TooMany),
        }
    }

    /// A receiver misses frames that were granted to [`Reservation::peer`]. Only `paper` needs this; and only about
    /// the port of the receiver itself.
    fn on_reset(&mut self, at: MessageVisit, about: &Reservation) -> MessageAnswer {
        let believes = !self.scheduler.tracks()
            && about.switch_epoch == self.epoch
            && about.demand.frames <= self.params.burst_frames();
        if let Some(sender) = at.peer.filter(|sender| believes && *sender < self.params.ports) {
            self.counters.resets += 1;
            let units = self.slots.units(about.demand);
            let pass = PipelinePass::begin();
            let touches = PortTouches { input: pass.input, output: pass.output };
            self.scheduler.release(touches, UnusedUnits { from: sender, to: at.from, units });
        }
        MessageAnswer::Done
    }

    /// A sender does not need what it has reserved. `paper` leaves that to the receiver, which waits for the burst and resets:
    /// what both give back would be counted down twice.
    fn on_release(&mut self, at: MessageVisit, about: &Reservation) -> MessageAnswer {
        let foreign = at.source.is_some_and(|port| port != at.from);
        let Some(context) = self.contexts.index(at.from, about.id.context).filter(|_| !foreign) else {
            return MessageAnswer::Done;
        };
        self.counters.released += 1;
        if !self.scheduler.tracks() {
            return MessageAnswer::Done;
        }
        let pass = PipelinePass::begin();
        let touches = PortTouches { input: pass.input, output: pass.output };
        let granted = self.contexts.read_start(pass.starts, context) < Time::NEVER;
        if granted && !self.scheduler.holds() {
            // The slot passes by itself; until then the next burst of the context can have it.
            return MessageAnswer::Done;
        }
        let Some((to, demand)) = self.contexts.close(pass.bursts, context, about.id) else {
            return MessageAnswer::Done;
        };
        if granted {
            self.scheduler.release(touches, UnusedUnits { from: at.from, to, units: self.slots.units(demand) });
        }
        match self.scheduler.forget(context) {
            Some(token) => MessageAnswer::Kept(Some(token)),
            None => MessageAnswer::Done,
        }
    }

    /// Time at which the next late answer or the next sweep for unused reservations is due.
    #[inline]
    pub fn wake_at(&self) -> Time {
        self.scheduler.wake_at().min(self.sweep_at)
    }

    /// Gives the next answer that is due. To be called until it gives none.
    pub fn on_wake(&mut self, now: Time) -> Option<LateAnswer> {
        if self.sweep_at <= now {
            self.sweep(now);
        }
        while self.scheduler.wake_at() <= now {
            let pass = PipelinePass::begin();
            let touches = PortTouches { input: pass.input, output: pass.output };
            let Some((rsv, grant)) = self.scheduler.on_wake(now, touches) else { continue };
            self.contexts.set_start(pass.starts, rsv.context, now + grant.chosen());
            self.counters.grants += 1;
            let message = self.message(&rsv.about, ReserveVerb::Grt(grant));
            return Some(LateAnswer { port: rsv.from, token: rsv.token, message });
        }
        None
    }

    /// Gives back what was reserved long ago and never used.
    fn sweep(&mut self, now: Time) {
        let patience = self.params.timeout * UNUSED_FOR;
        let mut any = false;
        for port in 0..self.params.ports {
            for context in self.contexts.of_port(port) {
                match self.contexts.open_since(context) {
                    Some(start) if start + patience <= now => self.give_back(port, context),
                    open => any |= open.is_some(),
                }
            }
        }
        self.sweep_at = if any { now + patience } else { Time::NEVER };
    }

    /// Gives back the rest of a context's burst, which will not be used.
    fn give_back(&mut self, port: u16, context: u32) {
        let Some((to, demand)) = self.contexts.clear(context) else { return };
        self.counters.unused += 1;
        let pass = PipelinePass::begin();
        let touches = PortTouches { input: pass.input, output: pass.output };
        self.scheduler.release(touches, UnusedUnits { from: port, to, units: self.slots.units(demand) });
    }

    /// A port has lost its host: what it reserved is free again. `dropped` gets the tokens of RSVs that are not answered.
    pub fn on_port_down(&mut self, port: u16, mut dropped: impl FnMut(u64)) {
        if port >= self.params.ports {
            return;
        }
        for context in self.contexts.of_port(port) {
            if let Some(token) = self.scheduler.forget(context) {
                dropped(token);
            }
            self.give_back(port, context);
        }
        self.scheduler.on_port_down(port);
    }

    /// Reservation of a context of a port; `None` if there is no such context.
    pub fn context(&self, port: u16, context: u16) -> Option<ContextReservation> {
        self.contexts.index(port, context).map(|index| self.contexts.view(index))
    }

    /// Reservations at a port; none in a rack that is quiet.
    pub fn reserved(&self, now: Time, port: u16) -> PortReservation {
        self.scheduler.reserved(now, port)
    }
}

/// The slot that a burst has already, if it has one.
///
/// A slot that is over counts too: the burst is late, which the bound allows. A second slot would make frames early that are
/// already on their way because the answer to an earlier RSV only took long.
fn same_slot(now: Time, start: Time) -> Option<Grant> {
    let wait = start.since(now);
    (start < Time::NEVER).then_some(Grant { send: wait, recv: wait, kept: Span::ZERO })
}

#[cfg(test)]
mod tests;
