//! A meter's latest packets, so that a collector can ask when a lost one passed.
//!
//! ```text
//!   packet ──record──▶ ring: 16 bytes each, in the order seen ◀──lost, arrivals── questions
//!     signature:40  time to live:8  number in its flow:16  │  flow:32  time:32 (64 ns)
//! ```
//!
//! A packet's *place* is its number among all packets of its way. Its number in its flow is counted modulo 65,536, with the
//! flows that share a counter, so two numbers that follow each other show that nothing of the flow passed in between; the
//! opposite may be another flow's packet.
//!
//! Invariants: memory is what the ring was given; what has left the ring is gone, and what is in it twice is not said to
//! be either.

mod form;

use std::collections::{HashMap, VecDeque};

use crate::packet::Flow;
use crate::signature::{Signature, fold};

pub use form::{ArrivalAnswer, LostAnswer, MOST_HASHES, TrailAnswer, TrailQuestion};

/// Nanoseconds of a unit of time.
pub const TICK: u64 = 64;
/// Bits of a signature's hash.
const HASH_BITS: u32 = 40;
/// Bytes of a packet in the ring.
const EACH: usize = 16;
/// Counters of packets by flow.
const FLOWS: usize = 1 << 16;
/// Batches whose beginnings are known.
const MOST_BATCHES: usize = 4_096;
/// Neighbours to each side among which a lost packet is placed.
pub const NEAR: usize = 8;
/// Packets before a lost one among which a survivor is looked for.
const FAR: usize = 64;
/// Longest time that is searched: beyond, 32 bits of time begin anew.
const LONGEST: u64 = 120_000_000_000;
/// Batches up to that of a loss from which a packet is drawn, so that not only what passed with losses is.
const SAMPLED: usize = 24;
const SEED: u64 = 0x7472_6169_6c00_0001;

/// Hash by which a packet is known at both ends of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrailHash(u64);

impl TrailHash {
    /// The lower 40 bits of a signature's hash: see [`trail_hash`].
    pub fn new(hash: u64) -> Self {
        Self(hash & ((1 << HASH_BITS) - 1))
    }

    pub fn of(signature: &Signature) -> Self {
        Self::new(trail_hash(signature))
    }
}

/// Hash of a signature of which trails keep 40 bits.
#[inline]
pub fn trail_hash(signature: &Signature) -> u64 {
    signature.hash(SEED)
}

/// Hash of a flow within one meter.
#[inline]
fn flow_hash(flow: &Flow) -> u32 {
    let Flow { src, dst, protocol, src_port, dst_port } = *flow;
    let bits = |address| match address {
        std::net::IpAddr::V4(address) => u64::from(u32::from(address)),
        std::net::IpAddr::V6(address) => {
            let bits = u128::from(address);
            fold(bits as u64 ^ SEED, (bits >> 64) as u64 ^ 0x1319_8a2e_0370_7344)
        }
    };
    let ports = u64::from(src_port) << 24 | u64::from(dst_port) << 8 | u64::from(protocol);
    fold(bits(src) ^ 0x243f_6a88_85a3_08d3, bits(dst).rotate_left(32) ^ ports ^ SEED) as u32
}

#[derive(Clone, Copy, Debug)]
struct TrailEntry {
    /// Signature, time to live, number in its flow.
    what: u64,
    /// Flow and time.
    when: u64,
}

impl TrailEntry {
    fn hash(self) -> u64 {
        self.what >> 24
    }

    fn ttl(self) -> u8 {
        (self.what >> 16) as u8
    }

    fn number(self) -> u16 {
        self.what as u16
    }

    fn flow(self) -> u32 {
        (self.when >> 32) as u32
    }

    fn tick(self) -> u32 {
        self.when as u32
    }
}

/// The latest packets of one way.
#[derive(Debug)]
pub struct Trail {
    room: usize,
    ring: Vec<TrailEntry>,
    /// Packets recorded so far.
    count: u64,
    /// Batches, each with the place of its first packet.
    begun: VecDeque<(u64, u64)>,
    flows: Vec<u16>,
}

impl Trail {
    /// A trail that takes so many bytes, besides 128 KB for flows; with none it keeps nothing.
    pub fn new(bytes: usize) -> Self {
        let room = bytes / EACH;
        let flows = if room > 0 { vec![0; FLOWS] } else { Vec::new() };
        Self { room, ring: Vec::new(), count: 0, begun: VecDeque::new(), flows }
    }

    pub fn is_kept(&self) -> bool {
        self.room > 0
    }

    /// A packet passes in this batch, at a time in nanoseconds; `hash` is [`trail_hash`] of its signature.
    #[inline]
    pub fn record(&mut self, batch: u64, at: u64, hash: u64, flow: &Flow, ttl: u8) {
        if self.room == 0 {
            return;
        }
        if self.begun.back().is_none_or(|(latest, _)| *latest < batch) {
            self.begin(batch);
        }
        let flow = flow_hash(flow);
        let number = &mut self.flows[flow as usize % FLOWS];
        *number = number.wrapping_add(1);
        let packet = TrailEntry {
            what: TrailHash::new(hash).0 << 24 | u64::from(ttl) << 16 | u64::from(*number),
            when: u64::from(flow) << 32 | u64::from((at / TICK) as u32),
        };
        if self.ring.len() < self.room {
            self.ring.push(packet);
        } else {
            let at = (self.count % self.room as u64) as usize;
            self.ring[at] = packet;
        }
        self.count += 1;
    }

    #[cold]
    fn begin(&mut self, batch: u64) {
        self.begun.push_back((batch, self.count));
        if self.begun.len() > MOST_BATCHES {
            self.begun.pop_front();
        }
    }

    /// The clock was set: batches begin anew, and earlier ones are gone.
    pub fn forget(&mut self) {
        self.ring.clear();
        self.begun.clear();
        self.count = 0;
    }

    fn at(&self, place: u64) -> Option<TrailEntry> {
        self.ring.get((place % self.room.max(1) as u64) as usize).copied()
    }

    /// Place of the first packet of a batch, or of a later one.
    fn first_of(&self, batch: u64) -> u64 {
        let at = self.begun.partition_point(|(begun, _)| *begun < batch);
        self.begun.get(at).map_or(self.count, |(_, place)| *place)
    }

    /// Places of the packets of batches, as far as the ring still has them.
    fn places(&self, from: u64, to: u64) -> std::ops::Range<u64> {
        let oldest = self.count - self.ring.len() as u64;
        self.first_of(from).max(oldest)..self.first_of(to).max(oldest)
    }

    /// Places of the batch that was open when a packet passed, and of some before it.
    fn batches_around(&self, place: u64) -> std::ops::Range<u64> {
        let at = self.begun.partition_point(|(_, begun)| *begun <= place);
        let end = self.begun.get(at).map_or(self.count, |(_, place)| *place);
        let begin = self.begun.get(at.saturating_sub(SAMPLED)).map_or(place, |(_, begin)| (*begin).min(place));
        begin.max(self.count - self.ring.len() as u64)..end
    }

    /// Whole batch number for the lowest bits of one, which is near the latest.
    fn whole_batch(&self, low: u16) -> Option<u64> {
        let (latest, _) = *self.begun.back()?;
        latest.checked_add_signed(i64::from(low.wrapping_sub(latest as u16) as i16))
    }

    /// Answers a question, in one pass over the batches that it names. `told` is true for flows of which a router said that
    /// a packet had expired. `length` is the duration of a batch in nanoseconds.
    pub fn answer(&self, question: &TrailQuestion, length: u64, told: impl Fn(u32) -> bool) -> TrailAnswer {
        let hashes = question.hashes();
        let nothing = || question.unanswered();
        let Some(first) = self.whole_batch(question.batch()).filter(|_| self.is_kept()) else { return nothing() };
        let batches = u64::from(question.batches()).max(1);
        if length.saturating_mul(batches) > LONGEST {
            return nothing();
        }
        // A packet at the end of a batch may be recorded after the first of the next.
        let places = self.places(first, first.saturating_add(batches + 1));
        let mut wanted: HashMap<u64, FoundPacket> = hashes.iter().map(|hash| (hash.0, FoundPacket::Gone)).collect();
        for place in places {
            let Some(found) = self.at(place).and_then(|packet| wanted.get_mut(&packet.hash())) else { continue };
            *found = if *found == FoundPacket::Gone { FoundPacket::At(place) } else { FoundPacket::Twice };
        }
        // Several losses may have one survivor, which is asked for as often.
        let found = hashes.iter().map(|hash| wanted[&hash.0]);
        let base = (first.wrapping_mul(length) / TICK) as u32;
        match question {
            TrailQuestion::Lost { .. } => {
                let lost = found.map(|found| self.lost(found, base, &wanted, &told));
                TrailAnswer::Lost(lost.collect())
            }
            TrailQuestion::Arrivals { .. } => {
                let arrival = |found: FoundPacket| match found {
                    FoundPacket::At(place) => ArrivalAnswer(self.at(place).map(|it| it.tick().wrapping_sub(base))),
                    FoundPacket::Gone | FoundPacket::Twice => ArrivalAnswer(None),
                };
                TrailAnswer::Arrivals(found.map(arrival).collect())
            }
        }
    }

    fn lost(
        &self,
        found: FoundPacket,
        base: u32,
        lost: &HashMap<u64, FoundPacket>,
        told: impl Fn(u32) -> bool,
    ) -> Option<LostAnswer> {
        let FoundPacket::At(place) = found else { return None };
        let packet = self.at(place)?;
        let oldest = self.count - self.ring.len() as u64;
        let near = place.saturating_sub(NEAR as u64).max(oldest)..(place + NEAR as u64 + 1).min(self.count);
        let others = near.filter_map(|at| self.at(at)).filter(|near| near.flow() != packet.flow()).count();
        let before = (place.saturating_sub(FAR as u64).max(oldest)..place).rev();
        let survivor = before.filter_map(|at| self.at(at)).find(|before| !lost.contains_key(&before.hash()));
        let around = self.batches_around(place);
        let drawn = fold(packet.what ^ SEED, packet.when | 1) % (around.end - around.start).max(1);
        let sample = self.at(around.start + drawn).unwrap_or(packet);
        Some(LostAnswer {
            time: packet.tick().wrapping_sub(base),
            ttl: packet.ttl(),
            place: place as u32,
            number: packet.number(),
            tag: tag(packet.flow()),
            others: others as u8,
            is_told: told(packet.flow()),
            survivor: survivor.map(|survivor| (TrailHash(survivor.hash()), survivor.tick().wrapping_sub(base))),
            sample: (TrailHash(sample.hash()), sample.tick().wrapping_sub(base)),
            sample_tag: tag(sample.flow()),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FoundPacket {
    Gone,
    At(u64),
    /// Several have the hash: nobody knows which was lost.
    Twice,
}

/// Eight bits that stand for a flow in an answer.
fn tag(flow: u32) -> u8 {
    (flow >> 24) as u8
}

/// Flows of which routers have said that packets expired (ICMP time exceeded), for as long as there is room.
#[derive(Debug, Default)]
pub struct ExpiredFlows {
    told: VecDeque<u32>,
}

/// Flows that are remembered.
const MOST_TOLD: usize = 256;

impl ExpiredFlows {
    /// A router said so of a packet of this flow.
    pub fn tell(&mut self, flow: &Flow) {
        let flow = flow_hash(flow);
        if self.told.contains(&flow) {
            return;
        }
        if self.told.len() >= MOST_TOLD {
            self.told.pop_front();
        }
        self.told.push_back(flow);
    }

    pub fn has(&self, flow: u32) -> bool {
        self.told.contains(&flow)
    }

    /// Forgets the oldest, now and then, so that what was said does not count forever.
    pub fn age(&mut self) {
        self.told.pop_front();
    }
}

#[cfg(test)]
mod tests;
