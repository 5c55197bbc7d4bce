//! Hosts, switches and links; what they carry, and what becomes of it.
//!
//! [`NetworkSetup`] says what is simulated, [`run`] simulates it, [`NetworkOutcome`] says what was found. Routes are computed before the
//! run: a packet carries its position in a list of hops, and forwarding it is one look at that list.
//!
//! A packet's way, in the order of the files:
//!
//! | file | what it is |
//! | --- | --- |
//! | `setup`, `profile`, `build` | what is simulated; from a setup to a network |
//! | `world`, `events` | the network and its event loop; what can happen |
//! | `flows`, `lifecycle`, `handshake` | flows and the connections that carry them, from start to end |
//! | `jobs` | transfers that wait for each other, and what held them up |
//! | `end`, `transports` | one end of a connection; the transports, one file each |
//! | `host`, `processor`, `delivery`, `reserving_host` | hosts, what happens at their interfaces, and such as reserve before they send |
//! | `packet`, `fabric`, `port`, `marking`, `switch`, `pfc` | what is in flight; routes, queues, ECN, shared buffers, pauses |
//! | `forwarding`, `rules` | packets through switches, also through such as have wrong rules |
//! | `programs` | what switches do besides: meters, flow counters, repeaters, telemetry, one file each |
//! | `protected`, `link_layer` | links under a link protocol (`crate::protocols`, one file each) |
//! | `queue_replay` | all packets of a run, recorded and sent again through the same network, and how alike the queues are (DETER) |
//! | `observe`, `levels`, `outcome` | samples, counters, lengths of queues; what is known in the end |
//! | `index`, `address` | numbers that say what they number; what a packet would look like on a real wire |
//!
//! Scope: packets are stored and forwarded; a packet has arrived when its last bit has. Connections are established
//! before their first byte, unless a setup wants handshakes, and a flow is over when its application has what it waited
//! for. Classes are served in strict priority, but share a port's room and marking threshold.

pub mod address;
mod build;
mod delivery;
mod end;
mod events;
mod fabric;
mod flows;
mod forwarding;
mod handshake;
mod host;
mod index;
mod jobs;
mod levels;
mod lifecycle;
mod link_layer;
mod marking;
mod observe;
mod outcome;
mod packet;
mod pfc;
mod port;
mod processor;
mod profile;
mod programs;
mod protected;
pub mod queue_replay;
mod reserving_host;
mod rules;
mod setup;
mod switch;
pub mod transports;
mod world;

pub use end::FlowCounters;
pub use index::{ConnectionId, EndId, HostId, PacketId, SwitchId, TrafficId};
pub use levels::QueueLengths;
pub use marking::{Marking, MarkingPoint};
pub use outcome::{FlowRow, JobResult, NetworkOutcome, NetworkSample, PoolUse, PortCapture, PortSample};
pub use packet::{RoutePosition, SimPacket};
pub use pfc::{PauseTotals, Pfc, PfcHeadroom};
pub use port::PortCounters;
pub use processor::HostProcessor;
pub use profile::{HpccNs3Path, NetworkProfile};
pub use programs::reserving::RackOutcome;
pub use programs::{BegunConnection, DecisionSink, EndCall, NetworkProgram, NoProgram, counting, metering, recording};
pub use protected::LinkTally;
pub use reserving_host::RackSetup;
pub use rules::{FaultyAction, FaultyRule};
pub use setup::{HostLatency, IntCharge, IntSettings, LONGEST_SPAN, LinkSetup, NetworkSetup, Sampling, TrafficSetup};
pub use switch::SwitchSettings;
pub use transports::{
    Body, DATAGRAM_HEADERS, DatagramConfig, DatagramGaps, Handshake, HeaderWriter, IrnSetup, MeloSetup, TCP_HEADERS,
    TransportSetup,
};

pub(crate) use packet::PacketHandle;
pub(crate) use protected::{EndpointPair, ProtectContext};

use units::Progress;
use world::Network;

pub use crate::protocols::{GuardSetup, LlrSetup, Protection};
use crate::topology::Unreachable;

/// Simulates a network whose switches run what the setup asks for. If jobs may lose something, the same network is simulated
/// first without losses, to see what is late.
pub fn run(mut setup: NetworkSetup, progress: &dyn Progress) -> Result<NetworkOutcome, Unreachable> {
    if !find_baselines(&mut setup, progress)? {
        return Ok(NetworkOutcome { interrupted: true, ..NetworkOutcome::default() });
    }
    run_once(setup, progress)
}

/// Finds out what iterations of jobs take without losses, if they may have any; false if that was interrupted.
fn find_baselines(setup: &mut NetworkSetup, progress: &dyn Progress) -> Result<bool, Unreachable> {
    if !setup.needs_baseline() {
        return Ok(true);
    }
    let without = run_once(setup.without_losses(), progress)?;
    setup.baselines = vec![None; setup.traffic.len()];
    for job in without.jobs {
        setup.baselines[usize::from(job.traffic)] = Some(job.outcome.times);
    }
    Ok(!without.interrupted)
}

fn run_once(setup: NetworkSetup, progress: &dyn Progress) -> Result<NetworkOutcome, Unreachable> {
    if let Some(racks) = programs::reserving(&setup) {
        return run_racks(setup, racks, progress);
    }
    if let Some(mut telemetry) = programs::only_telemetry(&setup) {
        return run_with(setup, &mut telemetry, progress);
    }
    let Some(mut programs) = programs::of(&setup) else { return run_with(setup, &mut NoProgram, progress) };
    let mut outcome = run_with(setup, &mut programs, progress)?;
    programs::conclude(programs, &mut outcome);
    Ok(outcome)
}

/// Simulates a network whose hosts reserve, and whose switches may run other programs besides.
fn run_racks(
    setup: NetworkSetup,
    mut racks: programs::reserving::ReservingProgram,
    progress: &dyn Progress,
) -> Result<NetworkOutcome, Unreachable> {
    let Some(others) = programs::of(&setup) else {
        let mut outcome = run_with(setup, &mut racks, progress)?;
        programs::conclude_racks(racks, &mut outcome);
        return Ok(outcome);
    };
    let mut all = (racks, others);
    let mut outcome = run_with(setup, &mut all, progress)?;
    programs::conclude(all.1, &mut outcome);
    programs::conclude_racks(all.0, &mut outcome);
    Ok(outcome)
}

/// Simulates a network and records its TCP connections; otherwise the same as [`run`].
pub fn run_recorded(
    mut setup: NetworkSetup,
    recording: &mut recording::Recording<'_>,
    progress: &dyn Progress,
) -> Result<NetworkOutcome, Unreachable> {
    if !find_baselines(&mut setup, progress)? {
        return Ok(NetworkOutcome { interrupted: true, ..NetworkOutcome::default() });
    }
    let (racks, others) = (programs::reserving(&setup), programs::of(&setup));
    if racks.is_none() && others.is_none() {
        // Packets then carry a number, and not the room that telemetry would take.
        let mut alone = recording;
        let outcome = run_with(setup, &mut alone, progress)?;
        alone.finish();
        return Ok(outcome);
    }
    let mut all = (racks, (others, recording));
    let mut outcome = run_with(setup, &mut all, progress)?;
    let (racks, (others, recording)) = all;
    recording.finish();
    if let Some(others) = others {
        programs::conclude(others, &mut outcome);
    }
    if let Some(racks) = racks {
        programs::conclude_racks(racks, &mut outcome);
    }
    Ok(outcome)
}

/// Simulates a network whose switches all run a program; what the setup asks of switches besides is up to the program.
pub fn run_with<P: NetworkProgram>(
    setup: NetworkSetup,
    program: &mut P,
    progress: &dyn Progress,
) -> Result<NetworkOutcome, Unreachable> {
    Network::new(setup, program).run(progress)
}
