//! Between a protocol and the wire: frames are read and sent in batches.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use linux::offload::VnetHeader;
use linux::poll::{self, Readiness};
use units::Span;

use crate::backend::{Wire, WireFrame};
use crate::host_side::HostSide;
use crate::pool::FramePool;
use crate::tally::Tally;

/// Frames handled in one go: enough to share a system call, few enough that the other side's turn comes.
pub const BATCH: usize = 64;

/// Tries before a frame that the wire has no room for is dropped: about a tenth of a second.
const MOST_TRIES: u32 = 1_000;
/// Time after which a wire is tried again that had no room and does not say when it has.
const LOOK_AGAIN: Span = Span::from_us(100);

/// The wire's interface, and whether it takes frames now.
pub struct WireSide {
    wire: Box<dyn Wire>,
    /// The wire had no room for all that was to go out.
    blocked: bool,
    /// Attempts in a row for which it had no room at all.
    fruitless: u32,
}

impl std::fmt::Debug for WireSide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WireSide").field("blocked", &self.blocked).finish_non_exhaustive()
    }
}

impl WireSide {
    pub fn new(wire: Box<dyn Wire>) -> Self {
        Self { wire, blocked: false, fruitless: 0 }
    }

    /// Reason why super-frames cannot be sent and received here; `None` if they can.
    pub fn no_super_frames(&self) -> Option<&'static str> {
        self.wire.no_super_frames()
    }

    fn fd(&self) -> RawFd {
        self.wire.fd()
    }

    fn error(&mut self) -> Option<io::Error> {
        self.wire.error()
    }

    pub fn overflowed(&mut self) -> u64 {
        self.wire.overflowed()
    }

    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// True if poll says when a blocked wire has room again. A card whose own queue is full says nothing.
    fn says_when(&self) -> bool {
        self.blocked && self.fruitless < 2
    }

    /// Longest time to sleep before a blocked wire is tried again.
    fn longest_wait(&self, most: Span) -> Span {
        if self.blocked && !self.says_when() { most.min(LOOK_AGAIN) } else { most }
    }

    /// The wire has room again.
    fn unblock(&mut self) {
        self.blocked = false;
    }

    /// Up to a batch of what has arrived. True if there was anything.
    pub fn read(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        Ok(self.wire.receive(BATCH, each)? > 0)
    }

    /// Reads as [`WireSide::read`] does, but hands over frames that the kernel joined (GRO) uncut, with their offload header.
    pub fn read_joined(&mut self, each: &mut dyn FnMut(&VnetHeader, &[u8])) -> io::Result<bool> {
        Ok(self.wire.receive_joined(BATCH, each)? > 0)
    }

    /// Sends what is on its way out, as far as the wire has room. True if anything was sent.
    pub fn flush(
        &mut self,
        outgoing: &mut Vec<WireFrame>,
        pool: &mut FramePool,
        tally: &mut Tally,
    ) -> io::Result<bool> {
        if outgoing.is_empty() {
            return Ok(false);
        }
        let sent = self.send(outgoing, pool, tally);
        self.blocked = !outgoing.is_empty();
        sent
    }

    fn send(&mut self, outgoing: &mut Vec<WireFrame>, pool: &mut FramePool, tally: &mut Tally) -> io::Result<bool> {
        let sent = match self.wire.send(outgoing, pool) {
            Ok(sent) => sent,
            // One frame that the kernel will not have must not keep the others.
            Err(error) if is_about_the_frame(&error) => {
                tally.wire_refused += 1;
                outgoing.remove(0).frame.into_iter().for_each(|frame| pool.release(frame));
                return Ok(true);
            }
            Err(error) => {
                // A wire that is down takes nothing; what was to go out is lost, as on any wire.
                tally.wire_refused += outgoing.len() as u64;
                outgoing.drain(..).filter_map(|gone| gone.frame).for_each(|frame| pool.release(frame));
                return Err(error);
            }
        };
        for gone in outgoing.drain(..sent) {
            tally.wire_tx_frames += 1;
            tally.wire_tx_bytes += gone.bytes() as u64;
            if let Some(frame) = gone.frame {
                pool.release(frame);
            }
        }
        self.fruitless = if sent > 0 { 0 } else { self.fruitless + 1 };
        if self.fruitless > MOST_TRIES && !outgoing.is_empty() {
            // A filter or a queue that never has room for this one.
            self.fruitless = 0;
            tally.wire_refused += 1;
            outgoing.remove(0).frame.into_iter().for_each(|frame| pool.release(frame));
        }
        Ok(sent > 0)
    }
}

/// The kernel refuses this frame, not the wire.
fn is_about_the_frame(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMSGSIZE | libc::EINVAL | libc::ENOMEM))
}

/// Waits until either side has something to do, or `most` has passed, or `other` is readable.
pub fn wait_for_sides(
    wire: &mut WireSide,
    host: &mut HostSide,
    most: Span,
    other: std::os::fd::RawFd,
) -> io::Result<()> {
    let span = wire.longest_wait(most);
    let fds = [(wire.fd(), wire.says_when()), (host.fd(), false), (other, false)];
    let ready = poll::wait(&fds, Duration::from_nanos(span.as_ps() / 1_000))?;
    if ready[0] == Readiness::Ready {
        wire.unblock();
    }
    let failed = match ready {
        [Readiness::Failed, ..] => wire.error(),
        [_, Readiness::Failed, _] => host.error(),
        _ => None,
    };
    failed.map_or(Ok(()), Err)
}
