//! Evidence for the causes of losses, from two captures: each once more.
//!
//! UP shows where a lost packet was among all packets of its way, and which one before it arrived; DOWN shows when that one
//! did. Packets drawn from all of UP show what is usual.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use units::Timestamp;

use super::side::{AttemptStop, CapturedPacket};
use super::{CaptureRole, Comparison, ComparisonContext, MissingPacket};
use crate::loss::LossCause;
use crate::packet::Flow;
use crate::rule::{CauseAccount, CauseLine, CauseRule, LossEvidence, LossPlace, SampledPacket};
use crate::signature::{Signature, fold};
use crate::trail::{NEAR, trail_hash};

/// Packets before a lost one among which a survivor is looked for.
const FAR: usize = 64;
/// Packets that are drawn at most, and at least for each loss.
const MOST_SAMPLES: u64 = 1 << 17;
const SAMPLES_OF_LOSS: u64 = 4;
const LEAST_SAMPLES: u64 = 4_096;

/// Evidence of two captures about each lost packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureEvidence {
    /// In the order of [`Comparison::lost`].
    pub losses: Vec<LossEvidence>,
    /// In the order of UP.
    pub samples: Vec<SampledPacket>,
}

#[derive(Clone, Copy)]
struct NearPacket {
    key: u64,
    flow: u64,
    at: i64,
    place: u64,
    number: u16,
    /// Its place among the lost ones.
    lost: Option<usize>,
    ttl: u8,
}

/// UP, packet by packet.
struct UpWalk<'c> {
    lost: &'c [MissingPacket],
    next: usize,
    window: VecDeque<NearPacket>,
    place: u64,
    numbers: BTreeMap<Flow, u16>,
    other_way: BTreeSet<IpAddr>,
    one_in: u64,
    /// Evidence found so far, with the survivors' keys and times.
    losses: Vec<LossEvidence>,
    survivors: Vec<Option<(u64, i64)>>,
    samples: Vec<(u64, i64, u8)>,
}

impl ComparisonContext<'_> {
    pub(super) fn evidence(&self, comparison: &Comparison) -> Result<CaptureEvidence, AttemptStop> {
        if comparison.lost.is_empty() {
            return Ok(CaptureEvidence::default());
        }
        let mut walk = UpWalk::new(comparison);
        let mut up = self.side(CaptureRole::Up, comparison.depth)?;
        while let Some(seen) = up.next()? {
            let key = trail_hash(&Signature::new(&seen.packet, self.options.fields));
            walk.on_packet(&seen, key);
        }
        walk.finish();
        let survivors = walk.survivors.iter().flatten().map(|(key, _)| *key);
        let mut wanted: HashMap<u64, Option<i64>> =
            survivors.chain(walk.samples.iter().map(|(key, ..)| *key)).map(|key| (key, None)).collect();
        let mut twice = BTreeSet::new();
        let mut down = self.side(CaptureRole::Down, comparison.depth)?;
        while let Some(seen) = down.next()? {
            let key = trail_hash(&Signature::new(&seen.packet, self.options.fields));
            if let Some(at) = wanted.get_mut(&key)
                && at.replace(seen.at).is_some()
            {
                twice.insert(key);
            }
        }
        let waited = |key: u64, sent: i64| {
            let came = wanted.get(&key).copied().flatten().filter(|_| !twice.contains(&key));
            came.map(|came| came.saturating_sub(sent))
        };
        let mut losses = walk.losses;
        for (loss, survivor) in losses.iter_mut().zip(&walk.survivors) {
            loss.waited = survivor.and_then(|(key, sent)| waited(key, sent));
        }
        let sample = |(key, sent, tag): &(u64, i64, u8)| SampledPacket {
            at: Timestamp(sent.unsigned_abs()),
            tag: *tag,
            waited: waited(*key, *sent),
        };
        Ok(CaptureEvidence { losses, samples: walk.samples.iter().map(sample).collect() })
    }
}

impl<'c> UpWalk<'c> {
    fn new(comparison: &'c Comparison) -> Self {
        let lost = &comparison.lost[..];
        let senders: BTreeSet<IpAddr> = lost.iter().map(|lost| lost.loss.flow.src).collect();
        let receivers = lost.iter().map(|lost| lost.loss.flow.dst);
        let wanted = (lost.len() as u64).saturating_mul(SAMPLES_OF_LOSS).clamp(LEAST_SAMPLES, MOST_SAMPLES);
        let evidence = |lost: &MissingPacket| LossEvidence { at: Some(lost.loss.at), ..LossEvidence::of(&lost.loss) };
        Self {
            lost,
            next: 0,
            window: VecDeque::new(),
            place: 0,
            numbers: lost.iter().map(|lost| (lost.loss.flow, 0)).collect(),
            other_way: receivers.filter(|address| !senders.contains(address)).collect(),
            one_in: (comparison.up.packets / wanted).max(1),
            losses: lost.iter().map(evidence).collect(),
            survivors: vec![None; lost.len()],
            samples: Vec::new(),
        }
    }

    fn on_packet(&mut self, seen: &CapturedPacket, key: u64) {
        let flow = seen.packet.flow;
        if self.other_way.contains(&flow.src) {
            return;
        }
        let lost = self.lost.get(self.next).is_some_and(|lost| {
            let loss = &lost.loss;
            lost.frame == seen.frame
                && loss.flow == flow
                && loss.tcp == seen.packet.tcp
                && loss.ip_id == seen.packet.ip_id
        });
        let number = self.numbers.get_mut(&flow).map_or(0, |number| {
            *number = number.wrapping_add(1);
            *number
        });
        let near = NearPacket {
            key,
            flow: flow_key(&flow),
            at: seen.at,
            place: self.place,
            number,
            lost: lost.then_some(self.next),
            ttl: seen.packet.ttl,
        };
        self.next += usize::from(lost);
        self.place += 1;
        if fold(self.place ^ 0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03).is_multiple_of(self.one_in) {
            self.samples.push((key, seen.at, tag(near.flow)));
        }
        self.window.push_back(near);
        if self.window.len() > FAR + NEAR + 1 {
            self.window.pop_front();
        }
        if let Some(at) = self.window.len().checked_sub(NEAR + 1) {
            self.look(at);
        }
    }

    /// A packet with as many behind it as there will be.
    fn look(&mut self, at: usize) {
        let it = self.window[at];
        let Some(lost) = it.lost else { return };
        let near = self.window.range(at.saturating_sub(NEAR)..(at + NEAR + 1).min(self.window.len()));
        let others = near.filter(|near| near.flow != it.flow).count() as u8;
        let before = self.window.range(at.saturating_sub(FAR)..at).rev().find(|before| before.lost.is_none());
        self.survivors[lost] = before.map(|before| (before.key, before.at));
        let loss = &mut self.losses[lost];
        loss.ttl = Some(it.ttl);
        loss.place = Some(LossPlace { place: it.place, number: it.number, others, tag: tag(it.flow) });
    }

    fn finish(&mut self) {
        let rest = self.window.len().saturating_sub(NEAR)..self.window.len();
        rest.for_each(|at| self.look(at));
    }
}

fn flow_key(flow: &Flow) -> u64 {
    let Flow { src, dst, protocol, src_port, dst_port } = *flow;
    let bits = |address| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    let half = |bits: u128| fold(bits as u64 ^ 0x243f_6a88_85a3_08d3, (bits >> 64) as u64 ^ 0x1319_8a2e_0370_7344);
    let ports = u64::from(src_port) << 24 | u64::from(dst_port) << 8 | u64::from(protocol);
    fold(half(bits(src)) ^ ports, half(bits(dst)).rotate_left(32) ^ 0xa409_3822_299f_31d0)
}

fn tag(flow: u64) -> u8 {
    (flow >> 24) as u8
}

impl CaptureEvidence {
    /// The cause of each loss, and of each interval.
    pub fn judge(&self, rule: &CauseRule) -> (Vec<LossCause>, Vec<CauseLine>) {
        let mut causes = vec![LossCause::Unknown; self.losses.len()];
        let (mut lines, mut account) = (Vec::new(), CauseAccount::new(*rule));
        let mut samples = self.samples.iter().peekable();
        let mut order: Vec<usize> = (0..self.losses.len()).collect();
        order.sort_by_key(|at| self.losses[*at].at);
        let mut judged = Vec::new();
        for at in order {
            let loss = &self.losses[at];
            let now = loss.at.unwrap_or_default();
            while let Some(sample) = samples.next_if(|sample| sample.at <= now) {
                account.add_sample(*sample);
            }
            judged.extend(account.due(now));
            account.add(at as u64, now, *loss, None);
        }
        samples.for_each(|sample| account.add_sample(*sample));
        judged.extend(account.end());
        for interval in judged {
            for group in &interval.groups {
                group.losses.iter().for_each(|nth| causes[interval.losses[*nth] as usize] = group.cause);
                lines.push(interval.line(group, group.losses.len() as u64));
            }
        }
        (causes, lines)
    }
}
