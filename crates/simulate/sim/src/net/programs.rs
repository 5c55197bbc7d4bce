//! Switch programs: what switches do besides forwarding, one file each, listed in [`Programs`].
//!
//! A program is an `impl` of [`SwitchProgram`] for [`SimPacket`]. To add one that a setup can ask for: write its file, add it
//! to [`Programs`], and make it in [`Programs::of`]. One that only an experiment needs is given to
//! [`run_with`](super::run_with), alone or beside others: `(A, B)` runs both.

pub mod counting;
mod ends;
pub mod metering;
pub mod recording;
mod repeating;
pub(super) mod reserving;
mod telemetry;

use machine::{Forward, SwitchOut, SwitchPort, SwitchProgram, Ticket, Visit};
use units::Time;

use super::events::NetworkEvent;
use super::index::{PacketId, SwitchId};
use super::outcome::NetworkOutcome;
use super::packet::{Packets, SimPacket};
use super::setup::NetworkSetup;
use super::world::Network;
use crate::topology::DirectedLink;
pub use ends::{BegunConnection, DecisionSink, EndCall, NetworkProgram};
use metering::Metering;
use repeating::RepeaterProgram;
use reserving::ReservingProgram;
pub(super) use telemetry::TelemetryProgram;

/// The programs that a setup can ask for; those that multiply packets before those that count them.
pub(super) type Programs = (Option<RepeaterProgram>, (Option<Metering>, Option<TelemetryProgram<MOST_INT_HOPS>>));

/// Switches that packed telemetry can count.
pub(super) const MOST_INT_HOPS: usize = wire::int::IntHeader::MAX_HOPS;
/// Switches that fit the room that is charged in advance: enough for most networks, and small.
pub(super) const USUAL_INT_HOPS: usize = 5;

/// The program that a setup asks for if it asks only for telemetry, and no way is long.
pub(super) fn only_telemetry(setup: &NetworkSetup) -> Option<TelemetryProgram<USUAL_INT_HOPS>> {
    let alone = setup.repeat.is_none() && setup.radar.is_none();
    let settings = setup.int.as_ref().filter(|settings| alone && settings.most_hops <= USUAL_INT_HOPS)?;
    Some(TelemetryProgram::new(setup, settings))
}

/// The programs of a setup; `None` if its switches only forward.
pub(super) fn of(setup: &NetworkSetup) -> Option<Programs> {
    let repeating = setup.repeat.map(|config| RepeaterProgram::new(&setup.topology, config));
    let metering = setup.radar.as_ref().map(|config| Metering::new(&setup.topology, config.clone(), setup.seed));
    let telemetry = setup.int.as_ref().map(|settings| TelemetryProgram::new(setup, settings));
    (repeating.is_some() || metering.is_some() || telemetry.is_some()).then_some((repeating, (metering, telemetry)))
}

/// The program of racks, if a setup asks for reservations. It stands before the others.
pub(super) fn reserving(setup: &NetworkSetup) -> Option<ReservingProgram> {
    setup.rack.as_ref().map(|rack| ReservingProgram::new(setup, rack))
}

/// Adds what racks did to what the run did.
///
/// # Panics
/// In debug builds if more data waited at a port than the bound allows.
pub(super) fn conclude_racks(program: ReservingProgram, outcome: &mut NetworkOutcome) {
    let rack = program.finish(outcome.ended);
    debug_assert_eq!(rack.violations, 0, "queues beyond the bound of {}: {:?}", rack.bound, rack.peaks);
    outcome.rack = Some(rack);
}

/// Adds what the programs found to what the run did.
pub(super) fn conclude((repeating, (metering, _)): Programs, outcome: &mut NetworkOutcome) {
    if let Some(repeating) = repeating {
        outcome.repeated = repeating.counters();
    }
    outcome.radar = metering.map(|metering| metering.finish(outcome.ended));
}

/// Does nothing to any packet.
#[derive(Debug)]
pub struct NoProgram;

impl NetworkProgram for NoProgram {}

impl SwitchProgram for NoProgram {
    type Frame = SimPacket;
    type Tag = ();

    #[inline]
    fn on_route(&mut self, _now: Time, _at: Visit, _frame: &mut SimPacket, _tag: &mut ()) -> Forward {
        Forward::Pass
    }
}

/// Actions that a program takes at a time of its own, until the network carries them out.
struct ProgramActions<'a> {
    packets: &'a mut Packets,
    actions: Vec<ProgramAction>,
}

enum ProgramAction {
    Release(Ticket, Forward),
    Send(SwitchPort, SimPacket),
}

impl SwitchOut<SimPacket> for ProgramActions<'_> {
    fn held(&mut self, ticket: Ticket) -> &mut SimPacket {
        self.packets.get_mut(PacketId(ticket.0))
    }

    fn release(&mut self, ticket: Ticket, forward: Forward) {
        self.actions.push(ProgramAction::Release(ticket, forward));
    }

    fn send(&mut self, at: SwitchPort, frame: SimPacket) {
        self.actions.push(ProgramAction::Send(at, frame));
    }
}

impl<P: NetworkProgram> Network<'_, P> {
    /// Schedules the time at which the program wants to act, if it is earlier than before.
    #[inline]
    pub(super) fn wake_program(&mut self, now: Time) {
        let at = self.program.wake_at();
        if at < self.program_wakes {
            self.program_wakes = at;
            self.queue.schedule(at.max(now), NetworkEvent::ProgramWakes);
        }
    }

    pub(super) fn program_acts(&mut self, now: Time) {
        if self.program_wakes <= now {
            self.program_wakes = Time::NEVER;
        }
        if self.program.wake_at() <= now {
            let mut out = ProgramActions { packets: &mut self.packets, actions: Vec::new() };
            self.program.on_wake(now, &mut out);
            for action in out.actions {
                self.act_for_program(now, action);
            }
        }
        self.wake_program(now);
    }

    fn act_for_program(&mut self, now: Time, action: ProgramAction) {
        match action {
            ProgramAction::Release(Ticket(id), forward) => {
                let id = PacketId(id);
                let Some(at) = self.held.remove(&id) else { return };
                let switch = self.fabric.ports[at].owner.switch();
                match forward {
                    Forward::Pass => self.send_for_program(now, switch, at, id),
                    other => self.forward(now, at, id, other),
                }
            }
            ProgramAction::Send(at, packet) => {
                self.hosts.ends[packet.to()].made += 1;
                let id = self.packets.insert(packet);
                self.tags.begin(id, P::clear);
                if P::REPLAYS {
                    return self.send_from_host(now, id);
                }
                self.send_for_program(now, SwitchId(at.switch), DirectedLink(at.port), id);
            }
        }
    }
}
