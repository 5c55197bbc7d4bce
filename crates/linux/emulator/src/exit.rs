//! End of a direction of the wire: the stages that a frame passes there before it reaches the interface.

use std::io;

use linux::packet::PacketSocket;

use super::{DirectionCounters, Repeat, Rewrite};

/// A router, and room for the packet that it has in hand.
pub(super) struct RouterState {
    pub rewrite: Rewrite,
    pub scratch: Vec<u8>,
}

/// End of a direction: an interface, and before it the repeater if that is on this side, and the router.
pub(super) struct Exit<'a> {
    pub sink: &'a mut PacketSocket,
    pub repeat: Option<&'a mut Repeat>,
    pub rewrite: Option<&'a mut RouterState>,
    pub forth: bool,
}

impl Exit<'_> {
    pub(super) fn pass(&mut self, frame: &[u8], counters: &mut DirectionCounters) -> io::Result<()> {
        if let Some(repeat) = &mut self.repeat {
            repeat.on_arriving(frame);
        }
        let frame = match &mut self.rewrite {
            Some(RouterState { rewrite, scratch }) => {
                scratch.clear();
                scratch.extend_from_slice(frame);
                rewrite.apply(scratch, self.forth);
                scratch
            }
            None => frame,
        };
        match self.sink.send_frame(frame) {
            Ok(true) => {
                counters.passed += 1;
                counters.passed_bytes += frame.len() as u64;
                Ok(())
            }
            Ok(false) => {
                counters.overflowed += 1;
                Ok(())
            }
            // Too long for the far end's interface, or it is down: lost there, as on any wire.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EMSGSIZE | libc::ENETDOWN)) => {
                counters.overflowed += 1;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
