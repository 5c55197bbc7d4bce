//! The collector: it decodes batches that are complete.

use radar::digest::DecodedDigest;
use radar::signature::Signature;
use units::{Span, Time};

use super::{Metering, SegmentLoss, UnnamedLosses};

impl Metering {
    /// Looks at every batch that is over, and whose last packets had time to arrive.
    #[cold]
    pub(super) fn look_until(&mut self, now: Time) {
        if let Some(clocked) = &mut self.clocked {
            clocked.look_until(now, &mut self.found);
            self.look_at = clocked.look_at;
            return;
        }
        while now >= self.look_at {
            let batch = self.next;
            for segment in 0..self.differences.len() {
                let Some(digests) = &mut self.differences[segment] else { continue };
                let digest = &mut digests[batch as usize % 2];
                let decoded = digest.decode();
                if decoded.left.is_some() {
                    digest.clear();
                }
                self.take_down(segment as u32, batch, decoded);
            }
            self.next += 1;
            self.look_at += self.config.batch;
            self.found.until = Time::ZERO + Span::from_ns(self.batch * self.next);
        }
    }

    fn take_down(&mut self, segment: u32, batch: u64, decoded: DecodedDigest) {
        let DecodedDigest { mut lost, extra, left } = decoded;
        self.found.batches += 1;
        self.found.lossy_batches += u64::from(!lost.is_empty() || left.is_some());
        self.found.extra += extra.iter().map(|(_, times)| u64::from(*times)).sum::<u64>();
        self.found.unnamed.extend(left.map(|left| UnnamedLosses { segment, batch, left }));
        lost.sort_unstable_by_key(|(signature, _)| (signature.loss(None).at, *signature));
        let each = |(signature, times): (Signature, u32)| {
            let loss = signature.loss(None);
            (0..times).map(move |_| SegmentLoss { segment, batch, loss, is_untimed: false })
        };
        self.found.losses.extend(lost.into_iter().flat_map(each));
    }
}
