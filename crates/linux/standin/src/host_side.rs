//! Between the host's interface and the link: super-frames are cut on their way in, and joined on their way out.

use std::io;
use std::os::fd::{OwnedFd, RawFd};

use crate::backend::Host;
use crate::pool::{FramePool, PoolFrame};
use crate::tally::Tally;
use linux::offload::{self, Coalescer, FrameSink, segment};

/// Super-frames taken from the host in one go: few large ones, many small ones.
const HOST_BATCH: usize = 64;
const HOST_BATCH_BYTES: u64 = 512 << 10;

/// Destination of frames that the host sends, one after the other.
pub trait HostFrames: FrameSink {
    fn tally(&mut self) -> &mut Tally;
    /// The frame that was begun last is whole.
    fn end_frame(&mut self);
}

/// The host's interface, and what is being joined for it.
pub struct HostSide {
    host: Box<dyn Host>,
    coalescer: Coalescer<u32>,
}

impl std::fmt::Debug for HostSide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostSide").finish_non_exhaustive()
    }
}

impl HostSide {
    pub fn new(host: Box<dyn Host>) -> Self {
        Self { host, coalescer: Coalescer::default() }
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.host.fd()
    }

    pub(crate) fn error(&mut self) -> Option<io::Error> {
        self.host.error()
    }

    pub fn overflowed(&mut self) -> u64 {
        self.host.overflowed()
    }

    /// Returns a descriptor that keeps the carrier of the interface up as long as anybody has it.
    pub fn carrier(&self) -> Option<OwnedFd> {
        self.host.carrier()
    }

    /// Cuts what the host sends into frames, which join the queue. True if there was anything.
    pub fn receive(&mut self, frames: &mut impl HostFrames) -> io::Result<bool> {
        let mut any = false;
        let enough = frames.tally().host_rx_bytes + HOST_BATCH_BYTES;
        for _ in 0..HOST_BATCH {
            let more = self.host.receive(&mut |vnet, frame| {
                frames.tally().host_rx_bytes += frame.len() as u64;
                match segment(vnet, frame, frames) {
                    Ok(cut) => frames.tally().host_rx_frames += u64::from(cut.frames),
                    Err(_) => frames.tally().host_malformed += 1,
                }
                frames.end_frame();
            })?;
            any |= more;
            if !more || frames.tally().host_rx_bytes >= enough {
                break;
            }
        }
        Ok(any)
    }

    /// Hands everything that came off the wire to the host, joined where it can be.
    pub fn deliver(
        &mut self,
        delivered: &mut Vec<PoolFrame>,
        pool: &mut FramePool,
        tally: &mut Tally,
    ) -> io::Result<()> {
        if delivered.is_empty() {
            return Ok(());
        }
        let mut written = Ok(());
        for (number, frame) in delivered.iter().enumerate() {
            let bytes = pool.get(frame);
            tally.host_tx_frames += 1;
            tally.host_tx_bytes += bytes.len() as u64;
            match pool.is_unfinished(frame) {
                true => self.coalescer.push_unfinished(number as u32, bytes),
                false => self.coalescer.push(number as u32, bytes),
            }
            written = written.and(self.write_ready(delivered, pool, tally));
        }
        self.coalescer.flush();
        written = written.and(self.write_ready(delivered, pool, tally));
        // Also after an error: they would be delivered twice.
        while self.coalescer.pop().is_some() {}
        delivered.drain(..).for_each(|frame| pool.release(frame));
        written
    }

    fn write_ready(&mut self, delivered: &[PoolFrame], pool: &FramePool, tally: &mut Tally) -> io::Result<()> {
        while let Some(batch) = self.coalescer.pop() {
            let mut slices = [io::IoSlice::new(&[]); 1 + offload::MOST_JOINED];
            slices[0] = io::IoSlice::new(batch.prefix());
            for (slice, part) in slices[1..].iter_mut().zip(batch.parts()) {
                *slice = io::IoSlice::new(part.of(pool.get(&delivered[part.handle as usize])));
            }
            if !self.host.deliver(&slices[..1 + batch.parts().len()])? {
                tally.host_refused += batch.parts().len() as u64;
            }
        }
        Ok(())
    }
}
