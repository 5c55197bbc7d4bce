//! Batches cut by the meters' own clocks, without a tag in the packets: li-thesis §5.8, which leaves it open.
//!
//! Each node has a clock that is wrong by up to ε, and puts a packet into the batch that its clock shows. So a packet may be in one
//! batch upstream and in another downstream; the difference rolls on from batch to batch ([`RollingDifference`]), and a packet is
//! lost when it has been missing for as many batches as clocks and way allow ([`ClockSlack::patience`]). A meter knows the
//! segment by the port that a packet came by; packets carry nothing. Upstream meters keep a trail of what passed in the batches in
//! which a loss may still be found, as `radar::trail` does, and say when by their clocks a lost packet passed.
//!
//! Invariant: if no packet takes longer than `timeout` from meter to meter, none that arrives is called lost.

use faults::Random;
use radar::clock_slack::ClockSlack;
use radar::digest::{Digest, DigestShape};
use radar::loss::Loss;
use radar::rolling::{PacketDifference, RollingDifference};
use radar::signature::Signature;
use radar::trail::trail_hash;
use std::collections::VecDeque;
use units::Timestamp;
use units::{Span, Time};

use super::{MeteringConfig, MeteringResult, Placement, SegmentLoss, UnnamedLosses};
use crate::topology::Topology;

/// Batches that are open at once: clocks are wrong by a quarter of a batch at most.
const OPEN: usize = 2;

#[derive(Debug)]
pub(super) struct ClockedMeters {
    /// Nanoseconds.
    batch: u64,
    error: Span,
    patience: u64,
    /// Nanoseconds by which the clocks of the two meters of each directed link are ahead of true time.
    ahead: Vec<[i64; 2]>,
    segments: Vec<Option<ClockedSegment>>,
    next: u64,
    pub(super) look_at: Time,
}

/// Digests of both meters of a segment: upstream added, downstream taken out.
#[derive(Debug)]
struct ClockedSegment {
    open: [Digest; OPEN],
    rolling: RollingDifference,
    trail: SimTrail,
}

/// Packets that passed an upstream meter: hashes and times, in order.
#[derive(Debug, Default)]
struct SimTrail(VecDeque<(u64, u64)>);

/// Meter of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MeterEnd {
    Upstream,
    Downstream,
}

impl ClockedMeters {
    pub(super) fn new(
        topology: &Topology,
        config: &MeteringConfig,
        error: Span,
        shape: DigestShape,
        seed: u64,
    ) -> Self {
        assert!(error * 4 <= config.batch && config.black_boxes.is_empty(), "two batches are open at most: {config:?}");
        let placement = Placement::of(topology, &config.black_boxes);
        let ahead = |node: u64| clock_of(node, error, seed);
        let segment = |link| {
            placement.has_upstream(link).then(|| ClockedSegment {
                open: [0; OPEN].map(|_| Digest::new(shape)),
                rolling: RollingDifference::new(shape),
                trail: SimTrail::default(),
            })
        };
        let slack = ClockSlack { clock_error: error, way: config.timeout, batch: config.batch };
        Self {
            batch: config.batch.as_ps() / 1_000,
            error,
            patience: slack.patience(),
            ahead: topology
                .directed()
                .map(|link| [topology.from(link), topology.to(link)].map(|node| ahead(u64::from(node.0))))
                .collect(),
            segments: topology.directed().map(segment).collect(),
            next: 0,
            look_at: Time::ZERO + config.batch + error,
        }
    }

    pub(super) fn has(&self, link: u32) -> bool {
        self.segments[link as usize].is_some()
    }

    /// Counts a packet at one end of a segment; the batch that it is in there.
    pub(super) fn pass(&mut self, now: Time, link: u32, end: MeterEnd, signature: &Signature) -> u64 {
        let ahead = self.ahead[link as usize][end as usize];
        let at = (now.as_ps() / 1_000).saturating_add_signed(ahead);
        let batch = at / self.batch;
        debug_assert!(batch >= self.next && batch < self.next + OPEN as u64, "batch {batch}, {} is next", self.next);
        if let Some(segment) = &mut self.segments[link as usize] {
            let digest = &mut segment.open[batch as usize % OPEN];
            match end {
                MeterEnd::Upstream => {
                    digest.insert(signature);
                    segment.trail.0.push_back((trail_hash(signature), at));
                }
                MeterEnd::Downstream => digest.remove(signature),
            }
        }
        batch
    }

    /// Looks at every batch that is over by all clocks.
    #[cold]
    pub(super) fn look_until(&mut self, now: Time, found: &mut MeteringResult) {
        while now >= self.look_at {
            let (batch, length) = (self.next, self.batch);
            // Packets first missing in a batch before this one have had their time.
            let over = (batch + 1).saturating_sub(self.patience);
            for (number, segment) in self.segments.iter_mut().enumerate() {
                let Some(segment) = segment else { continue };
                let losses = found.losses.len();
                segment.close(batch);
                segment.settle(number as u32, over, length, found);
                // Losses of these batches were found before.
                segment.trail.forget(over.saturating_sub(1) * length);
                found.batches += 1;
                found.lossy_batches += u64::from(found.losses.len() > losses);
            }
            self.next += 1;
            self.look_at = Time::ZERO + Span::from_ns(self.batch * (self.next + 1)) + self.error;
            found.until = Time::ZERO + Span::from_ns(self.batch * over);
        }
    }
}

impl ClockedSegment {
    /// A batch is over by all clocks.
    fn close(&mut self, batch: u64) {
        let digest = &mut self.open[batch as usize % OPEN];
        // All digests of a run have one shape.
        let merged = self.rolling.difference().merge(digest);
        debug_assert!(merged.is_ok());
        digest.clear();
        self.rolling.look(batch);
    }

    /// Names what has been missing since before batch `over`.
    fn settle(&mut self, segment: u32, over: u64, length: u64, found: &mut MeteringResult) {
        let settled = self.rolling.settle(over, over);
        for PacketDifference { signature, times, since, .. } in settled.lost {
            let at = self.trail.time_of(&signature).filter(|_| times == 1);
            let loss = Loss { at: Timestamp(at.unwrap_or(since * length)), ..signature.loss(None) };
            let lost = SegmentLoss { segment, batch: since, loss, is_untimed: at.is_none() };
            found.losses.extend((0..times).map(|_| lost));
        }
        found.extra += settled.extra.iter().map(|extra| u64::from(extra.times)).sum::<u64>();
        let unnamed =
            settled.unnamed.map(|unnamed| UnnamedLosses { segment, batch: unnamed.since, left: unnamed.left });
        found.unnamed.extend(unnamed);
    }
}

impl SimTrail {
    fn forget(&mut self, before: u64) {
        while self.0.pop_front_if(|(_, at)| *at < before).is_some() {}
    }

    /// Time of the only packet with this signature.
    fn time_of(&self, signature: &Signature) -> Option<u64> {
        let hash = trail_hash(signature);
        let mut found = self.0.iter().filter(|(known, _)| *known == hash).map(|(_, at)| *at);
        found.next().filter(|_| found.next().is_none())
    }
}

/// Nanoseconds by which a node's clock is ahead: anything within ± ε, always the same.
fn clock_of(node: u64, error: Span, seed: u64) -> i64 {
    let most = error.as_ps() / 1_000;
    let drawn = Random::new(seed ^ node.wrapping_mul(0x9e37_79b9_7f4a_7c15), 5).below(2 * most + 1);
    drawn as i64 - most as i64
}
