//! The link on a stand-in that is up: its parameters.

use daemon::RunDirectory;
use guard::Params;
use linux::SystemError;
use linux::clock::instance;
use standin::{InterfaceState, StandIn, StandInDemands, StandInSides, longest_on};
use units::{Bytes, Prob};
use wire::link::{AddressStamp, Class};

use crate::config::{LinkConfig, LinkMode};
use crate::datapath::{DatapathSetup, Link};
use crate::frame::{self, Framing};
use crate::seal::Seal;
use crate::status::LinkIdentity;

/// Most bytes that may wait for the wire; the queue itself limits how long it may stand.
const QUEUE: Bytes = Bytes::new(4 << 20);

/// Everything that a link needs, up and ready to run. Without a directory nothing is written down: for
/// namespaces that end with the program.
pub fn bring_up(
    config: &LinkConfig,
    directory: Option<&RunDirectory>,
) -> Result<(Link, LinkIdentity, StandIn), SystemError> {
    let seal = config.sealing.seal().map_err(SystemError)?;
    let demands = StandInDemands {
        overhead: frame::overhead(&seal),
        // Room for a window of the peer's, if it has the same, and for control. No more: a ring that outgrows the cache
        // costs each frame a miss.
        ring: 2 * config.window.max(512) as usize,
        no_super_frames: config.no_stamps().or_else(|| looks_stamped(&config.stand_in.interface)),
    };
    let (sides, stand_in) = standin::bring_up(&config.stand_in, directory, &demands)?;
    let (link, identity) = link_on(sides, config, seal);
    Ok((link, identity, stand_in))
}

/// Reason why frames from this interface cannot be told from stamped ones.
fn looks_stamped(interface: &str) -> Option<&'static str> {
    match standin::find(interface) {
        Ok(InterfaceState::Ready(found)) if found.mac[0] == AddressStamp::FIRST => {
            Some("the interface's own address begins as a stamp does")
        }
        _ => None,
    }
}

fn link_on(sides: StandInSides, config: &LinkConfig, seal: Seal) -> (Link, LinkIdentity) {
    let framing = Framing::new(sides.mac, config.peer, seal);
    let mtu = sides.mtu + (frame::ETHERNET + frame::TAG) as u32 + 4;
    let class = if config.mode == LinkMode::NonBlocking { Class::NonBlocking } else { Class::Ordered };
    // Enough for a loss of 1e-3; what is measured changes it.
    let copies = guard::copies_for(Prob::literal(1e-3), config.target_loss).map_or(1, |(n, _)| n.max(1));
    let mut params = Params::host(mtu, class, copies, config.window, config.give_up_after);
    params.seal = framing.seal_code();
    params.second_tag = frame::TAG as u32;
    if config.mode == LinkMode::Auto {
        params = params.automatic_up_to(Prob::literal(0.02), config.target_loss);
    }
    let setup = DatapathSetup {
        params,
        longest: longest_on(sides.wire_mtu),
        framing,
        instance: instance(),
        init: config.init_action,
        rate: sides.rate,
        queue: config.queue.unwrap_or(QUEUE),
        target: (config.mode != LinkMode::Auto).then_some(config.target_loss),
        no_stamps: sides.no_super_frames,
    };
    let identity = LinkIdentity {
        name: config.stand_in.name.clone(),
        interface: config.stand_in.interface.clone(),
        mode: config.mode.to_string(),
        host_backend: sides.host_backend,
        wire_backend: sides.wire_backend,
        seal: config.sealing.to_string(),
        mtu: sides.mtu,
    };
    (Link::new(setup, sides.host, sides.wire), identity)
}
