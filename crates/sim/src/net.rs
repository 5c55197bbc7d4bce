//! Hosts, switches and links; what they carry, and what becomes of it.
//!
//! [`Setup`] says what is simulated, [`run`] simulates it, [`Outcome`] says what came of it. Routes are computed before
//! the run: a packet carries its place in a list of hops, and forwarding it is one look at that list.
//!
//! | file | what it is |
//! | --- | --- |
//! | `packet`, `events` | what is in flight, what can happen |
//! | `port`, `switch` | queues, marking, shared buffers, PFC |
//! | `host`, `end`, `speech`, `raw` | hosts, and the ends of connections |
//! | `protect`, `repeating` | links under a link protocol, switches that repeat |
//! | `build`, `world`, `sampling` | from a setup to a network; the event loop; what is looked at while it runs |
//! | `forwarding`, `interfaces` | packets through switches and at hosts |
//! | `flows`, `handshake`, `progress` | flows from their start to their end |
//! | `rules`, `metering`, `counting` | switches that do what they should not; LossRadar's meters, FlowRadar's counters |
//! | `address` | what a packet would say of itself on a real wire |
//!
//! Scope: packets are stored and forwarded; a packet has arrived when its last bit has. Connections are established
//! before their first byte, unless a setup wants handshakes, and a flow is over when its application has what it waited for. Classes are served in strict
//! priority, but share a port's room and marking threshold.

pub mod address;
mod build;
pub mod counting;
mod end;
mod events;
mod flows;
mod forwarding;
mod handshake;
mod host;
mod interfaces;
pub mod metering;
mod outcome;
mod packet;
mod port;
mod progress;
mod protect;
pub mod raw;
mod repeating;
mod rules;
mod sampling;
mod setup;
mod speech;
mod switch;
mod world;

pub use end::Tally;
pub use outcome::{Captured, FlowRow, Outcome, PoolUse, PortSample, Sample};
pub use packet::{Body, Handshake, Packet};
pub use port::{Marking, PortCounters};
pub use protect::LinkTally;
pub use rules::{Action, Rule};
pub use setup::{Latency, LinkSetup, Memory, Protection, Sampling, Setup, Traffic, TransportSetup};
pub use speech::TCP_HEADERS;
pub use switch::{Pfc, SwitchSettings};

use machine::{SwitchPort, SwitchProgram};
use metering::Metering;
use repeating::Repeating;
use units::Time;
use world::Network;

use crate::link::Watch;
use crate::topology::Unreachable;

/// Simulates a network of switches that are plain, or have meters or repeat if the setup says so.
pub fn run(setup: Setup, watch: &dyn Watch) -> Result<Outcome, Unreachable> {
    if let Some(config) = &setup.radar {
        let mut program = Metering::new(&setup.topology, config.clone(), setup.seed);
        let outcome = run_with(setup, &mut program, watch)?;
        let found = program.finish(outcome.ended);
        return Ok(Outcome { radar: Some(found), ..outcome });
    }
    let Some(config) = setup.repeat else { return run_with(setup, &mut Plain, watch) };
    let mut program = Repeating::new(&setup.topology, config);
    let outcome = run_with(setup, &mut program, watch)?;
    Ok(Outcome { repeated: program.counters(), ..outcome })
}

/// Simulates a network whose switches all run a program.
pub fn run_with<P: SwitchProgram<Frame = Packet>>(
    setup: Setup,
    program: &mut P,
    watch: &dyn Watch,
) -> Result<Outcome, Unreachable> {
    Network::new(setup, program).run(watch)
}

/// Does nothing to any packet.
#[derive(Debug)]
pub struct Plain;

impl SwitchProgram for Plain {
    type Frame = Packet;
    type Tag = ();
    const WATCHES_DEPARTURES: bool = false;

    #[inline]
    fn on_route(&mut self, _now: Time, _at: SwitchPort, _frame: &mut Packet, _tag: &mut ()) -> u32 {
        1
    }

    #[inline]
    fn on_departure(&mut self, _now: Time, _at: SwitchPort, _left: u64, _frame: &mut Packet) {}
}
