//! The details of what is missing, from reading the captures once more.
//!
//! Packets that are alike to the last bit share a signature. If some of them arrived, those were the ones whose times fit
//! best to the times of arrival.

use std::collections::{BTreeMap, HashSet};
use units::Timestamp;

use super::difference::{SignatureKey, SignatureMap, flow_hash};
use super::direction::CaptureDirections;
use super::merge::MergeResult;
use super::side::{AttemptStop, CapturedPacket};
use super::{CaptureRole, ComparisonContext, FlowLosses, MissingPacket, OutsideCounts};
use crate::loss::Loss;
use crate::packet::{Flow, TcpFields};
use crate::signature::{Signature, fold};

#[derive(Debug, Default)]
pub(crate) struct LossDetails {
    /// Lost packets in the order of UP, with those that may turn out to be outside of DOWN's capture.
    pub lost: Vec<MissingPacket>,
    /// Places of those packets among the packets of UP that were compared, and the number of the latter.
    pub positions: Vec<u64>,
    pub compared: u64,
    /// Packets only in DOWN while UP was taken, and before and after; all that have been named.
    pub only_down: u64,
    pub down_outside: u64,
    pub only_down_named: u64,
    /// Segments that only DOWN has.
    pub extra_segments: Vec<(Flow, TcpFields)>,
    /// UP lacks some packet altogether that DOWN has, not only a copy of one.
    pub up_lacks: bool,
    pub both_ways: bool,
    pub alike: u64,
    pub flow_packets: FlowPackets,
    pub directions: CaptureDirections,
}

/// Most equal packets that arrived among which the lost ones are told apart.
const MOST_ALIKE: u32 = 1_000;
/// Flows that are looked for on their way back.
const MOST_FLOWS: usize = 4_096;

/// Segments that only DOWN has, of which it is looked whether they overlap with lost ones.
pub(super) const MOST_EXTRA: usize = 1 << 16;

/// Packets that are alike, of which some are missing.
#[derive(Clone, Debug, Default)]
struct AlikePackets {
    lost: u32,
    seen: u32,
    /// Times at which the packets that arrived came to DOWN.
    arrived: Vec<i64>,
}

struct DetailSearch<'m> {
    merged: &'m MergeResult,
    groups: Vec<AlikePackets>,
    by_key: SignatureMap<SignatureKey, u32>,
    /// Packets only in DOWN that have not been met.
    extra: SignatureMap<SignatureKey, u32>,
    /// Lost packets, and those that are like them.
    candidates: Vec<(MissingPacket, u64, u32)>,
    details: LossDetails,
}

impl ComparisonContext<'_> {
    pub(super) fn details(&self, merged: &MergeResult, depth: usize) -> Result<LossDetails, AttemptStop> {
        let mut search = DetailSearch::new(merged);
        if search.by_key.is_empty() && search.extra.is_empty() {
            return Ok(LossDetails {
                compared: merged.up.packets - merged.up_skipped.packets(),
                ..LossDetails::default()
            });
        }
        let down_first = !search.extra.is_empty();
        let mut back = HashSet::new();
        if down_first {
            self.search_down(&mut search, &mut back, depth)?;
        }
        self.search_up(&mut search, &back, depth)?;
        if !down_first && search.groups.iter().any(|group| group.seen > group.lost) {
            self.search_down(&mut search, &mut back, depth)?;
        }
        Ok(search.finish())
    }

    fn search_down(
        &self,
        search: &mut DetailSearch<'_>,
        back: &mut HashSet<Flow>,
        depth: usize,
    ) -> Result<(), AttemptStop> {
        let merged = search.merged;
        let mut side = self.side(CaptureRole::Down, depth)?;
        let mut index = 0;
        let (first, last) = (
            merged.up.first().saturating_add(merged.clock.at_beginning()),
            merged.up.last().saturating_add(merged.clock.at_end()),
        );
        while let Some(seen) = side.next()? {
            let compared = is_compared(index, merged.down.packets, merged.down_skipped);
            index += 1;
            if !compared {
                continue;
            }
            let key = SignatureKey::of(&Signature::new(&seen.packet, self.options.fields));
            if let Some(group) = search.by_key.get(&key) {
                search.groups[*group as usize].arrive(seen.at);
            } else if let Some(left) = search.extra.get_mut(&key)
                && *left > 0
            {
                *left -= 1;
                let was_last = *left == 0;
                search.details.only_down_named += 1;
                if let Some(segment) = seen.packet.tcp.filter(|_| search.details.extra_segments.len() < MOST_EXTRA) {
                    search.details.extra_segments.push((seen.packet.flow, segment));
                }
                if (first..=last).contains(&seen.at) {
                    search.details.only_down += 1;
                    if back.len() < MOST_FLOWS {
                        back.insert(reversed(seen.packet.flow));
                    }
                } else {
                    search.details.down_outside += 1;
                    // UP could not have it.
                    if was_last {
                        search.extra.remove(&key);
                    }
                }
            }
        }
        Ok(())
    }

    fn search_up(&self, search: &mut DetailSearch<'_>, back: &HashSet<Flow>, depth: usize) -> Result<(), AttemptStop> {
        let merged = search.merged;
        let mut flows = FlowCounter::new(merged);
        let mut directions = CaptureDirections::default();
        let mut side = self.side(CaptureRole::Up, depth)?;
        let mut index = 0;
        while let Some(seen) = side.next()? {
            let signature = Signature::new(&seen.packet, self.options.fields);
            let place = flows.count(&signature, &seen.packet.flow);
            if !search.details.both_ways && !back.is_empty() && back.contains(&seen.packet.flow) {
                search.details.both_ways = true;
                if search.by_key.is_empty() {
                    return Ok(());
                }
            }
            let compared = is_compared(index, merged.up.packets, merged.up_skipped);
            index += 1;
            if compared {
                directions.count(&seen.packet.flow);
            }
            if compared && !merged.missing.is_left_out(&signature) {
                search.meet(&signature, &seen, place, self.options.ttl);
            }
        }
        search.details.up_lacks = !search.extra.is_empty();
        search.details.flow_packets = FlowPackets(flows.counts);
        search.details.directions = directions;
        Ok(())
    }
}

fn reversed(flow: Flow) -> Flow {
    Flow { src: flow.dst, dst: flow.src, src_port: flow.dst_port, dst_port: flow.src_port, ..flow }
}

fn is_compared(index: u64, packets: u64, skipped: OutsideCounts) -> bool {
    (skipped.before..packets.saturating_sub(skipped.after)).contains(&index)
}

impl<'m> DetailSearch<'m> {
    fn new(merged: &'m MergeResult) -> Self {
        let mut keys: Vec<(SignatureKey, i32)> =
            merged.missing.table.iter().map(|(key, of)| (*key, of.count)).collect();
        keys.sort_unstable();
        let mut search = Self {
            merged,
            groups: Vec::new(),
            by_key: SignatureMap::default(),
            extra: SignatureMap::default(),
            candidates: Vec::new(),
            details: LossDetails::default(),
        };
        for (key, count) in keys {
            if count > 0 {
                search.by_key.insert(key, search.groups.len() as u32);
                search.groups.push(AlikePackets { lost: count.unsigned_abs(), ..AlikePackets::default() });
            } else {
                search.extra.insert(key, count.unsigned_abs());
            }
        }
        search
    }

    #[inline]
    fn meet(&mut self, signature: &Signature, seen: &CapturedPacket, place: Option<u64>, ttl: u8) {
        let position = self.details.compared;
        self.details.compared += 1;
        let key = SignatureKey::of(signature);
        if !self.extra.is_empty() {
            self.extra.remove(&key);
        }
        let Some(number) = self.by_key.get(&key) else { return };
        let group = &mut self.groups[*number as usize];
        group.seen = group.seen.saturating_add(1);
        if group.is_beyond_telling() {
            return;
        }
        let packet = &seen.packet;
        let loss = Loss {
            at: Timestamp(seen.at.unsigned_abs()),
            flow: packet.flow,
            ip_id: packet.ip_id,
            tcp: packet.tcp,
            expired: packet.ttl <= ttl,
            place,
        };
        self.candidates.push((MissingPacket { loss, frame: seen.frame, len: seen.len }, position, *number));
    }

    /// Decides which of several packets that are alike did not arrive.
    fn finish(mut self) -> LossDetails {
        let MergeResult { clock, up, .. } = self.merged;
        let is_timed = clock.skew().is_some();
        let mut members: SignatureMap<u64, Vec<(i64, usize)>> = SignatureMap::default();
        for (at, (lost, _, number)) in self.candidates.iter().enumerate() {
            let group = &self.groups[*number as usize];
            if group.seen > group.lost {
                let time = i64::try_from(lost.loss.at.0).unwrap_or(i64::MAX);
                let time = time.saturating_add(clock.at(time, up.first(), up.last()).unwrap_or(0));
                members.entry(u64::from(*number)).or_default().push((time, at));
            }
        }
        let mut arrived = vec![false; self.candidates.len()];
        for (number, members) in &members {
            let group = &self.groups[*number as usize];
            let sent: Vec<i64> = members.iter().map(|(at, _)| *at).collect();
            match group.arrivals(&sent).filter(|_| is_timed) {
                Some(came) => members.iter().zip(came).for_each(|((_, at), came)| arrived[*at] = came),
                None => {
                    // Any of them: the first ones.
                    self.details.alike += u64::from(group.seen);
                    members.iter().skip(group.lost as usize).for_each(|(_, at)| arrived[*at] = true);
                    // Their places are none that could be called a row.
                    members.iter().for_each(|(_, at)| self.candidates[*at].0.loss.place = None);
                }
            }
        }
        let lost = self.candidates.iter().zip(arrived).filter(|(_, arrived)| !arrived).map(|(candidate, _)| candidate);
        for (lost, position, _) in lost {
            self.details.lost.push(*lost);
            self.details.positions.push(*position);
        }
        self.details
    }
}

impl AlikePackets {
    fn is_beyond_telling(&self) -> bool {
        self.seen > self.lost.saturating_add(MOST_ALIKE)
    }

    fn arrivals(&self, sent: &[i64]) -> Option<Vec<bool>> {
        if self.is_beyond_telling() { None } else { arrivals(sent, &self.arrived, self.lost as usize) }
    }

    fn arrive(&mut self, at: i64) {
        if self.arrived.len() < MOST_ALIKE as usize {
            self.arrived.push(at);
        }
    }
}

/// Decides which of these packets arrived if `lost` did not: in order, and with times that fit best. `None` if the numbers
/// do not add up, if nothing fits, or if the search would be too large.
fn arrivals(sent: &[i64], arrived: &[i64], lost: usize) -> Option<Vec<bool>> {
    const MOST: usize = 1 << 20;
    let width = lost + 1;
    if sent.len() != arrived.len() + lost || sent.len().saturating_mul(width) > MOST {
        return None;
    }
    // The least sum of differences when N of the packets so far have not arrived, by N.
    let mut costs = vec![u128::MAX; width];
    costs[0] = 0;
    let mut skips = vec![false; sent.len() * width];
    for (number, at) in sent.iter().enumerate() {
        for missing in (0..width).rev() {
            let skip = if missing == 0 { u128::MAX } else { costs[missing - 1] };
            let here = number.checked_sub(missing).and_then(|came| arrived.get(came));
            let fits = here.map_or(u128::MAX, |came| costs[missing].saturating_add(u128::from(came.abs_diff(*at))));
            // If two packets fit equally well, the earlier one was lost, and the later one is its retransmission.
            skips[number * width + missing] = skip < fits;
            costs[missing] = skip.min(fits);
        }
    }
    let mut came = vec![true; sent.len()];
    let mut missing = lost;
    for number in (0..sent.len()).rev() {
        if skips[number * width + missing] {
            came[number] = false;
            missing -= 1;
        }
    }
    (missing == 0).then_some(came)
}

/// The packets of flows that have losses.
#[derive(Debug, Default)]
pub(crate) struct FlowPackets(SignatureMap<u64, u64>);

impl FlowPackets {
    /// The flows of lost packets.
    pub(crate) fn flows(&self, lost: &[MissingPacket]) -> Vec<FlowLosses> {
        let mut losses: BTreeMap<Flow, u64> = BTreeMap::new();
        lost.iter().for_each(|lost| *losses.entry(lost.loss.flow).or_default() += 1);
        let packets = |flow: &Flow| self.0.get(&hash(flow)).copied().unwrap_or(0);
        let flows = losses.into_iter().map(|(flow, lost)| FlowLosses { flow, packets: packets(&flow), lost });
        let mut flows: Vec<FlowLosses> = flows.collect();
        flows.sort_by_key(|flow| std::cmp::Reverse(flow.lost));
        flows
    }
}

/// Counts the packets of flows that have losses.
struct FlowCounter {
    /// Filter by bits of the flow hash: false if no such packet is searched for.
    filter: Vec<bool>,
    counts: SignatureMap<u64, u64>,
}

impl FlowCounter {
    fn new(merged: &MergeResult) -> Self {
        let lost = || merged.missing.table.values().filter(|pending| pending.count > 0);
        let size = (lost().count() * 8).next_power_of_two().clamp(64, 1 << 24);
        let mut filter = vec![false; size];
        lost().for_each(|pending| filter[pending.flow as usize & (size - 1)] = true);
        Self { filter, counts: SignatureMap::default() }
    }

    /// The place of a packet in its flow, if that has losses.
    #[inline]
    fn count(&mut self, signature: &Signature, flow: &Flow) -> Option<u64> {
        if !self.filter[flow_hash(signature) as usize & (self.filter.len() - 1)] {
            return None;
        }
        let count = self.counts.entry(hash(flow)).or_default();
        *count += 1;
        Some(*count - 1)
    }
}

#[inline]
fn hash(flow: &Flow) -> u64 {
    let Flow { src, dst, protocol, src_port, dst_port } = *flow;
    let bits = |address| match address {
        std::net::IpAddr::V4(address) => (u64::from(u32::from(address)), 4),
        std::net::IpAddr::V6(address) => {
            let bits = u128::from(address);
            (bits as u64, (bits >> 64) as u64)
        }
    };
    let ((a, b), (c, d)) = (bits(src), bits(dst));
    let ports = u64::from(src_port) << 24 | u64::from(dst_port) << 8 | u64::from(protocol);
    let ends = fold(a ^ 0x243f_6a88_85a3_08d3, c ^ 0x1319_8a2e_0370_7344);
    fold(ends ^ ports, fold(b ^ 0xa409_3822_299f_31d0, d ^ 0x082e_fa98_ec4e_6c89) ^ 0x4528_21e6_38d0_1377)
}
