//! Frames of somebody who has no key, in the name of a node and on its link to the root: what the node said, said again; the same with a
//! bit changed; and that the root has a successor.

use std::time::Duration;

use linux::SystemError;
use linux::clock::Clock;
use linux::net::{Namespace, Netlink};
use linux::stamps::StampedSocket;
use serde::Serialize;
use wire::exchange::ExchangeFrame;
use wire::reserve::OUI_EXTENDED;
use wire::sync::{SyncEpoch, SyncTerm};

/// Addresses and EtherType.
const ETHERNET: usize = 14;
/// Offset in a sealed frame at which the words about its sender begin.
const SEALED_PREFIX: usize = 5;
/// Clocks' frames go to this address.
const GROUP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
/// A node asks its parent at every interval, of at most a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(3);

/// Forged frames, and their effects.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ForgedFrames {
    /// Sent to roots.
    pub sent: u64,
    /// Sent frames that the root counted and did not believe because of their seals.
    pub refused: u64,
    /// Roots that were no longer the root a moment later.
    pub roots_removed: u64,
}

fn socket(host: &Namespace, interface: &str) -> Result<StampedSocket, SystemError> {
    let opened = host.with(|| {
        let index = Netlink::open()?.existing_link(interface)?.index;
        Ok(StampedSocket::open(index, OUI_EXTENDED, GROUP)
            .map_err(|error| SystemError(format!("{interface}: {error}"))))
    });
    opened?.map_err(|error: linux::net::NetError| SystemError(error.to_string()))?
}

/// Listens at the root's end of a link and sends from the other one; how many frames were sent.
pub(super) fn forge(ends: [(&Namespace, &str); 2], plan: u32) -> Result<u64, SystemError> {
    let [(root, at_root), (child, at_child)] = ends;
    let recorded = next_frame(&mut socket(root, at_root)?)?;
    let mut altered = recorded.clone();
    altered[ETHERNET + 20] ^= 1;
    let mut socket = socket(child, at_child)?;
    let frames = [lie(&recorded, plan), recorded, altered];
    for frame in &frames {
        socket.send(frame).map_err(|error| SystemError(format!("send on {at_child}: {error}")))?;
    }
    Ok(frames.len() as u64)
}

/// The next frame that comes from the other end.
fn next_frame(socket: &mut StampedSocket) -> Result<Vec<u8>, SystemError> {
    let (clock, mut frame) = (Clock::start(), vec![0; 512]);
    while clock.elapsed() < PATIENCE {
        match socket.receive(&mut frame).map_err(|error| SystemError(error.to_string()))? {
            Some(received) if !received.outgoing && received.len > 2 * ETHERNET + SEALED_PREFIX => {
                frame.truncate(received.len);
                return Ok(frame);
            }
            Some(_) => {}
            None => std::thread::sleep(Duration::from_micros(200)),
        }
    }
    Err(SystemError("no frame came to the root that could be forged".to_owned()))
}

/// Forges a frame that says that the plan's backup root has taken over, from the sender of the recorded frame.
fn lie(recorded: &[u8], plan: u32) -> Vec<u8> {
    let (head, body) = recorded.split_at(ETHERNET);
    let said = ExchangeFrame::parse(body).unwrap_or_else(|_| {
        // Sealed: its sender is all that can be read.
        let sender = body[SEALED_PREFIX..].first_chunk().map_or(0, |sender| u32::from_be_bytes(*sender));
        ExchangeFrame { sender, number: 1, ..ExchangeFrame::default() }
    });
    let (epoch, term) = (SyncEpoch { plan, elected: true }, SyncTerm::after(said.term, said.sender));
    let mut lie = head.to_vec();
    ExchangeFrame { epoch, term, given: plan, synchronized: true, wave: None, ..said }.emit(&mut lie);
    lie
}
