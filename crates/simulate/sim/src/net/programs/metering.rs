//! LossRadar's meters at every interface of a network, and the collector behind them: li-thesis §5.3.4, §5.4.
//!
//! ```text
//!   switch A                                switch B
//!   tables ─▶ UM ─▶ buffer ─▶ port ══════▶ tables ─▶ UM, DM ─▶ buffer ─▶ …
//!             └────────────── segment A-B ──────────────────┘
//! ```
//!
//! A packet passes the upstream meter (UM) of a link when it has been routed to it, and the downstream meter (DM) when the
//! next switch has routed it on, or when it has come to its host: a packet lost in between is lost on that segment, in
//! the buffer before the link, on the wire or in the tables behind it. From UM to DM it carries when it passed the UM, from
//! which its batch follows, and which UM that was, so that switches in between need not have meters (*black boxes*, §5.4.2):
//! a DM has a meter for each UM that it hears from.
//!
//! Within a switch the UM comes before the DM, and the packet carries the old tag until the DM has read it (§5.6.2).
//! A packet that a switch drops on purpose has passed its DM and no UM: it is in nobody's losses (§5.6.2, *pre-filtering*).
//!
//! A collector subtracts the digests of downstream meters from that of their upstream meter. Sums do not mind the order, so here
//! each packet is taken out of the upstream digest when it passes a downstream meter: the same cells, and half the memory.
//!
//! Instead of by what packets carry, batches may be cut by the meters' own clocks (`clock_error`; `clocked`). Meters then keep
//! their latest packets, and say when a lost one passed.
//!
//! Links under a link protocol are segments like any others: copies carry the tags of their originals, and only what a
//! link gives up is lost.
//!
//! Invariant: the meters name exactly the lost packets, each on the segment that lost it, if digests are large enough and
//! every packet arrives within `timeout` of its batch's end. Batches that are open when the run ends are ignored, because
//! packets under way then are not lost.

mod analysis;
mod clocked;
mod collector;
mod placement;
mod truth;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use units::Timestamp;

use machine::{Conversation, DropReason, Forward, SwitchPort, SwitchProgram, Visit};
use radar::digest::{Digest, DigestShape, UndecodedPackets};
use radar::loss::Loss;
use radar::packet::{Flow, Packet as Seen};
use radar::signature::{Fields, Signature};
use units::{Span, Time};

use clocked::{ClockedMeters, MeterEnd};

pub use analysis::LossAnalysis;
pub use placement::Placement;
pub use truth::{TrueDrop, TrueDrops};

use super::NetworkProgram;
use crate::net::address;
use crate::net::index::Number;
use crate::net::packet::SimPacket;
use crate::topology::{NodeId, Topology};

/// The meter of a packet that has passed none.
const NO_METER: u32 = u32::MAX;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeteringConfig {
    pub batch: Span,
    /// Time from the end of a batch until it is looked at; no longer than a batch.
    pub timeout: Span,
    /// Cells of each digest.
    pub cells: usize,
    /// Error of each meter's clock, which cuts the batches, if packets carry no tag. At most a quarter of a batch, and not with
    /// black boxes, whose segments only a tag tells apart.
    pub clock_error: Option<Span>,
    /// Switches without meters.
    pub black_boxes: Vec<NodeId>,
    /// Every packet that is really lost is written down, to compare.
    pub keep_truth: bool,
}

impl Default for MeteringConfig {
    /// Settings of li-thesis §5.7: 10 ms, and 7.6 KB of 19 bytes a cell.
    fn default() -> Self {
        Self {
            batch: Span::from_ms(10),
            timeout: Span::from_ms(5),
            cells: 400,
            clock_error: None,
            black_boxes: Vec::new(),
            keep_truth: false,
        }
    }
}

/// Findings of the meters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeteringResult {
    /// Losses by batch, then by segment, then by time.
    pub losses: Vec<SegmentLoss>,
    /// Digests that could not be decoded to the end.
    pub unnamed: Vec<UnnamedLosses>,
    /// Packets that passed upstream meters, each at every one.
    pub metered: u64,
    /// Packets that were so late that they had been taken for lost.
    pub late: u64,
    /// Packets at a downstream meter that its upstream meter has not seen.
    pub extra: u64,
    /// Digests that were looked at, of all segments and batches; and how many of these had a loss.
    pub batches: u64,
    pub lossy_batches: u64,
    /// Time after which packets were not looked at, by the upstream meter's clock if clocks cut the batches.
    pub until: Time,
    /// Meters that a real network would have, and cells of each of their digests.
    pub meters: u64,
    pub cells: u64,
    pub truth: TrueDrops,
}

/// A lost packet, and the segment that lost it: the one that begins with this directed link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentLoss {
    pub segment: u32,
    pub batch: u64,
    pub loss: Loss,
    /// Nobody knows when it passed the upstream meter: its time is the beginning of its batch, and shows nothing of its cause.
    pub is_untimed: bool,
}

/// A digest with more losses than can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnnamedLosses {
    pub segment: u32,
    pub batch: u64,
    pub left: UndecodedPackets,
}

/// Tag that a packet carries from one meter to the next; its signature is here only to be computed once.
#[derive(Clone, Copy)]
pub(crate) struct MeterTag {
    signature: Signature,
    at: u64,
    batch: u64,
    /// The directed link whose upstream meter it passed.
    meter: u32,
    expired: bool,
}

#[derive(Debug)]
pub(crate) struct Metering {
    config: MeteringConfig,
    /// Nanoseconds of a batch.
    batch: u64,
    /// Difference between the upstream meter and all downstream meters, by directed link, of the two batches that are
    /// open.
    differences: Vec<Option<[Digest; 2]>>,
    /// True for each switch that has meters, and for each directed link that leads to a node with meters.
    has_meters: Vec<bool>,
    heard: Vec<bool>,
    /// The identification of the next packet for each end of a connection.
    ids: Vec<u16>,
    /// The first batch that has not been looked at, and when it will be.
    next: u64,
    look_at: Time,
    /// Instead of `differences`, where packets carry nothing.
    clocked: Option<ClockedMeters>,
    found: MeteringResult,
}

impl Metering {
    /// Meters with hashes of their own for each seed.
    pub(crate) fn new(topology: &Topology, config: MeteringConfig, seed: u64) -> Self {
        assert!(
            config.batch > Span::ZERO && config.timeout <= config.batch,
            "two batches are open at most: {config:?}"
        );
        let shape = DigestShape::new(config.cells, seed, Fields::ALL);
        let placement = Placement::of(topology, &config.black_boxes);
        let clocked = config.clock_error.map(|error| ClockedMeters::new(topology, &config, error, shape, seed));
        let carries = clocked.is_none();
        let digests = |link| (carries && placement.has_upstream(link)).then(|| [0; 2].map(|_| Digest::new(shape)));
        let black = |node: NodeId| config.black_boxes.contains(&node);
        let meters = placement.meters() as u64;
        let found = MeteringResult { meters, cells: shape.cells() as u64, ..MeteringResult::default() };
        Self {
            batch: config.batch.as_ps() / 1_000,
            differences: topology.directed().map(digests).collect(),
            has_meters: topology.switches().map(|switch| !black(switch)).collect(),
            heard: topology.directed().map(|link| !black(topology.to(link))).collect(),
            ids: Vec::new(),
            next: 0,
            look_at: clocked.as_ref().map_or(Time::ZERO + config.batch + config.timeout, |clocked| clocked.look_at),
            clocked,
            found,
            config,
        }
    }

    /// Closes all batches at the end of the run, and returns the findings.
    pub(crate) fn finish(mut self, ended: Time) -> MeteringResult {
        self.look_until(ended);
        self.found
    }

    #[inline]
    fn look_if_due(&mut self, now: Time) {
        if now >= self.look_at {
            self.look_until(now);
        }
    }

    /// A packet passes the meters of a switch that sends it by this port.
    #[inline]
    fn pass_switch(&mut self, now: Time, at: SwitchPort, frame: &SimPacket, tag: &mut MeterTag) {
        self.look_if_due(now);
        if self.has_meters[at.switch as usize] {
            let carried = *tag;
            self.pass_upstream(now, at.port, frame.route.time_to_live() == 0, tag);
            self.pass_downstream(now, &carried);
        }
    }

    /// A packet passes an upstream meter, and carries what the next downstream meter must know.
    #[inline]
    fn pass_upstream(&mut self, now: Time, link: u32, expired: bool, tag: &mut MeterTag) {
        if self.clocked.is_some() {
            self.look_if_due(now);
        }
        if let Some(clocked) = &mut self.clocked {
            if clocked.has(link) {
                *tag = MeterTag { at: 0, meter: link, expired, ..*tag };
                tag.batch = clocked.pass(now, link, MeterEnd::Upstream, &tag.carried());
                self.found.metered += 1;
            }
            return;
        }
        let Some(digests) = &mut self.differences[link as usize] else { return };
        let at = now.as_ps() / 1_000;
        *tag = MeterTag { at, batch: at / self.batch, meter: link, expired, ..*tag };
        self.found.metered += 1;
        digests[tag.batch as usize % 2].insert(&tag.carried());
    }

    /// A packet passes a downstream meter, which takes it out of what is missing.
    #[inline]
    fn pass_downstream(&mut self, now: Time, tag: &MeterTag) {
        if tag.meter == NO_METER {
            return;
        }
        if self.clocked.is_some() {
            self.look_if_due(now);
        }
        if let Some(clocked) = &mut self.clocked {
            clocked.pass(now, tag.meter, MeterEnd::Downstream, &tag.carried());
            return;
        }
        let Some(digests) = &mut self.differences[tag.meter as usize] else { return };
        if tag.batch < self.next {
            self.found.late += 1;
        } else {
            digests[tag.batch as usize % 2].remove(&tag.carried());
        }
    }
}

impl NetworkProgram for Metering {}

impl SwitchProgram for Metering {
    type Frame = SimPacket;
    type Tag = MeterTag;

    fn watches_hosts(&self) -> bool {
        true
    }

    #[inline]
    fn on_route(&mut self, now: Time, at: Visit, frame: &mut SimPacket, tag: &mut MeterTag) -> Forward {
        self.pass_switch(now, at.at, frame, tag);
        Forward::Pass
    }

    /// One packet came in and several go on: only the upstream meter sees them all.
    fn on_copied(&mut self, now: Time, at: SwitchPort, extra: u32, frame: &mut SimPacket, tag: &mut MeterTag) {
        if self.has_meters[at.switch as usize] {
            for _ in 0..extra {
                self.pass_upstream(now, at.port, frame.route.time_to_live() == 0, tag);
            }
        }
    }

    /// Counts a frame that was not lost on its way here.
    fn on_taken(&mut self, now: Time, at: SwitchPort, _frame: &mut SimPacket, tag: &mut MeterTag) {
        if self.has_meters[at.switch as usize] {
            self.pass_downstream(now, tag);
            tag.meter = NO_METER;
        }
    }

    fn on_sent(&mut self, now: Time, at: SwitchPort, frame: &mut SimPacket, tag: &mut MeterTag) {
        self.pass_switch(now, at, frame, tag);
    }

    fn on_host_sends(&mut self, now: Time, link: u32, who: Conversation, frame: &mut SimPacket, tag: &mut MeterTag) {
        self.look_if_due(now);
        let end = frame.to().index();
        if end >= self.ids.len() {
            self.ids.resize(end + 1, 0);
        }
        let id = &mut self.ids[end];
        tag.signature = Signature::new(&address::seen(who, frame, *id), Fields::ALL);
        *id = id.wrapping_add(1);
        self.pass_upstream(now, link, false, tag);
    }

    #[inline]
    fn on_host_receives(&mut self, now: Time, _link: u32, _frame: &mut SimPacket, tag: &mut MeterTag) {
        self.look_if_due(now);
        self.pass_downstream(now, tag);
    }

    fn on_drop(&mut self, now: Time, link: u32, why: DropReason, _frame: &mut SimPacket, tag: &mut MeterTag) {
        if why == DropReason::Filtered && self.heard[link as usize] {
            return self.pass_downstream(now, tag);
        }
        let keep = self.config.keep_truth;
        self.found.truth.count(link, why);
        self.found.truth.dropped.extend(keep.then(|| TrueDrop {
            at: now,
            link,
            why,
            segment: tag.meter,
            batch: tag.batch,
            signature: tag.carried(),
        }));
    }
}

impl MeterTag {
    /// The signature at both meters.
    #[inline]
    fn carried(&self) -> Signature {
        self.signature.carrying(Timestamp(self.at), self.expired)
    }
}

impl Default for MeterTag {
    /// Tag of a packet that has passed no meter.
    fn default() -> Self {
        let [src, dst] = [IpAddr::V4(Ipv4Addr::UNSPECIFIED); 2];
        let flow = Flow { src, dst, protocol: 0, src_port: 0, dst_port: 0 };
        let nothing = Seen { flow, ip_id: None, fragment: 0, tcp: None, ttl: 0, content: 0 };
        Self { signature: Signature::new(&nothing, Fields::ALL), at: 0, batch: 0, meter: NO_METER, expired: false }
    }
}

impl fmt::Debug for MeterTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} ns, meter {}", self.signature.flow(), self.at, self.meter)
    }
}
