//! Packets that both captures have, each with its two times.
//!
//! Both captures are read at once, each as far as the other in time. A packet waits, under its signature, until as many others
//! have come as there is memory for: long enough to meet its counterpart even if a clock was set, and to know whether others
//! are alike to it. Those that are alike are paired in order, if both captures have equally many and their times on the way
//! differ by less than the time between them; otherwise nobody knows which is which, and they are counted only.

use std::collections::{HashMap, VecDeque};

use super::UnmeasuredCounts;
use crate::compare::clock::ClockOffset;
use crate::compare::difference::{SignatureKey, SignatureMap, quick};
use crate::compare::{AttemptStop, CaptureContents, CaptureRole, CaptureSide, CapturedPacket, ComparisonContext};
use crate::packet::Flow;
use crate::signature::{Fields, Signature};

/// Bytes for each packet that waits, with what tables leave free.
const BYTES_EACH: u64 = 160;
/// Flows that are told apart; of the packets of further ones, only their hosts.
const MOST_FLOWS: usize = 1 << 18;
/// Equal packets that are paired with each other.
const MOST_ALIKE: usize = 1_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct MatchedPacket {
    pub up: i64,
    pub down: i64,
}

impl MatchedPacket {
    /// DOWN's time beyond UP's.
    pub(super) fn difference(&self) -> i64 {
        self.down.saturating_sub(self.up)
    }
}

/// A flow, by its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowNumber(u32);

impl FlowNumber {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The flows of packets that both captures have, as UP has them.
#[derive(Debug, Default)]
pub(super) struct FlowTable {
    flows: Vec<Flow>,
    /// Packets of each that both captures have.
    packets: Vec<u64>,
    by_flow: HashMap<Flow, u32>,
}

impl FlowTable {
    fn number(&mut self, flow: &Flow) -> Option<FlowNumber> {
        if let Some(number) = self.by_flow.get(flow) {
            return Some(FlowNumber(*number));
        }
        let hosts = Flow { src_port: 0, dst_port: 0, protocol: 0, ..*flow };
        let flow = if self.flows.len() < MOST_FLOWS { *flow } else { hosts };
        if let Some(number) = self.by_flow.get(&flow) {
            return Some(FlowNumber(*number));
        }
        if self.flows.len() == 2 * MOST_FLOWS {
            return None;
        }
        let number = self.flows.len() as u32;
        self.by_flow.insert(flow, number);
        self.flows.push(flow);
        self.packets.push(0);
        Some(FlowNumber(number))
    }

    pub(super) fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Numbers of the flows, with the packets of each.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (FlowNumber, u64)> + '_ {
        self.packets.iter().enumerate().map(|(number, packets)| (FlowNumber(number as u32), *packets))
    }

    pub(super) fn packets_where(&self, which: impl Fn(FlowNumber) -> bool) -> u64 {
        self.numbers().filter(|(number, _)| which(*number)).map(|(_, packets)| packets).sum()
    }
}

/// Result of reading both captures.
#[derive(Debug)]
pub(super) struct MatchResult {
    pub contents: [CaptureContents; 2],
    pub matched: u64,
    pub unmeasured: UnmeasuredCounts,
}

/// Packets with one signature.
#[derive(Debug, Default)]
struct WaitingPackets {
    up: Option<i64>,
    down: Option<i64>,
    flow: Option<FlowNumber>,
    /// Sightings in either capture after the first ones.
    more: Option<Box<[Vec<i64>; 2]>>,
}

impl WaitingPackets {
    fn add(&mut self, at: i64, is_up: bool) {
        let first = if is_up { &mut self.up } else { &mut self.down };
        if first.is_none() {
            *first = Some(at);
        } else {
            self.more.get_or_insert_default()[usize::from(!is_up)].push(at);
        }
    }

    /// Times in either capture, in order.
    fn times(&self) -> [Vec<i64>; 2] {
        [(self.up, 0), (self.down, 1)].map(|(first, side)| {
            let more = self.more.iter().flat_map(|more| &more[side]).copied();
            let mut times: Vec<i64> = first.into_iter().chain(more).collect();
            times.sort_unstable();
            times
        })
    }

    /// Pairs up packets that are alike.
    fn pairs(&self) -> Option<Vec<MatchedPacket>> {
        let [ups, downs] = self.times();
        if ups.len() != downs.len() || ups.len() > MOST_ALIKE {
            return None;
        }
        let gap = |times: &[i64]| times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).min();
        let least_gap = gap(&ups).min(gap(&downs))?;
        let pairs: Vec<MatchedPacket> =
            ups.into_iter().zip(downs).map(|(up, down)| MatchedPacket { up, down }).collect();
        let differences = || pairs.iter().map(MatchedPacket::difference);
        let spread = differences().max()?.saturating_sub(differences().min()?);
        (spread < least_gap).then_some(pairs)
    }
}

/// A capture, and its next packet.
struct MatchLane<'a> {
    side: CaptureSide<'a>,
    ahead: Option<CapturedPacket>,
}

impl<'a> MatchLane<'a> {
    fn new(mut side: CaptureSide<'a>) -> Result<Self, AttemptStop> {
        let ahead = side.next()?;
        Ok(Self { side, ahead })
    }
}

pub(super) struct PacketMatch {
    fields: Fields,
    most: usize,
    clock: ClockOffset,
    waiting: SignatureMap<SignatureKey, WaitingPackets>,
    order: VecDeque<SignatureKey>,
    matched: u64,
    unmeasured: UnmeasuredCounts,
}

impl PacketMatch {
    pub(super) fn new(fields: Fields, memory: u64, begins: Option<i64>) -> Self {
        Self {
            fields,
            most: usize::try_from(memory / BYTES_EACH).unwrap_or(usize::MAX).max(16),
            clock: ClockOffset::new(begins),
            waiting: SignatureMap::default(),
            order: VecDeque::new(),
            matched: 0,
            unmeasured: UnmeasuredCounts::default(),
        }
    }

    pub(super) fn run(
        mut self,
        context: &ComparisonContext<'_>,
        depth: usize,
        flows: &mut FlowTable,
        take: &mut dyn FnMut(&MatchedPacket, FlowNumber, &Flow),
    ) -> Result<MatchResult, AttemptStop> {
        flows.packets.fill(0);
        let mut up = MatchLane::new(context.side(CaptureRole::Up, depth)?)?;
        let mut down = MatchLane::new(context.side(CaptureRole::Down, depth)?)?;
        loop {
            let is_up = match (&up.ahead, &down.ahead) {
                (Some(one), Some(other)) => one.at.saturating_add(self.clock.offset) <= other.at,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => break,
            };
            let lane = if is_up { &mut up } else { &mut down };
            let Some(packet) = lane.ahead.take() else { break };
            lane.ahead = lane.side.next()?;
            self.put(&packet, is_up, flows);
            while self.order.len() > self.most {
                self.settle_oldest(flows, take);
            }
        }
        while !self.order.is_empty() {
            self.settle_oldest(flows, take);
        }
        let contents = [up, down].map(|lane| lane.side.contents());
        Ok(MatchResult { contents, matched: self.matched, unmeasured: self.unmeasured })
    }

    fn put(&mut self, packet: &CapturedPacket, is_up: bool, flows: &mut FlowTable) {
        let signature = Signature::new(&packet.packet, self.fields);
        self.clock.see(quick(&signature), packet.at, is_up);
        let key = SignatureKey::of(&signature);
        let order = &mut self.order;
        let waiting = self.waiting.entry(key).or_insert_with(|| {
            order.push_back(key);
            WaitingPackets::default()
        });
        if is_up && waiting.flow.is_none() {
            waiting.flow = flows.number(&packet.packet.flow);
        }
        waiting.add(packet.at, is_up);
    }

    fn settle_oldest(&mut self, flows: &mut FlowTable, take: &mut dyn FnMut(&MatchedPacket, FlowNumber, &Flow)) {
        let Some(packets) = self.order.pop_front().and_then(|key| self.waiting.remove(&key)) else { return };
        let mut emit = |packet: &MatchedPacket, flow: FlowNumber| {
            self.matched += 1;
            flows.packets[flow.index()] += 1;
            take(packet, flow, &flows.flows[flow.index()]);
        };
        let unmeasured = &mut self.unmeasured;
        match (packets.up, packets.down, packets.flow, &packets.more) {
            (Some(up), Some(down), Some(flow), None) => emit(&MatchedPacket { up, down }, flow),
            (Some(_), Some(_), Some(flow), Some(_)) => match packets.pairs() {
                Some(pairs) => pairs.iter().for_each(|packet| emit(packet, flow)),
                None => {
                    let [ups, downs] = packets.times().map(|times| times.len() as u64);
                    unmeasured.alike += ups.max(downs);
                }
            },
            _ => {
                let [ups, downs] = packets.times().map(|times| times.len() as u64);
                unmeasured.only_up += ups;
                unmeasured.only_down += downs;
            }
        }
    }
}
