//! Frames that wait for the wire: a queue for each flow, all served in turn, none standing (FQ-CoDel, RFC 8290 and 8289).
//!
//! A bulk flow fills any queue it is given. Here it fills its own: a request that finds its flow's queue empty goes
//! before it. And a queue that has been longer than a millisecond for twenty of them is shortened by drops, ever more often,
//! until the flow gives in; a burst that passes, such as what piled up while this process was not running, is left alone.
//!
//! On a wire known to be slow, a millisecond is only a few frames: fewer than keep the wire busy, and too few for three
//! duplicate acknowledgements, so that a flow would wait for timeouts. There the queue may be as
//! long as `STANDING` frames take, and the interval is twenty times that, by RFC 8289 §4.2 and 4.3 (a target of 5 to 10 %
//! of the interval); at 39 Mbit/s these are its 5 and 100 ms.
//!
//! Invariants: frames of a flow leave in the order they came; all flows together stay within the limits, and what does
//! not fit is taken from the longest queue; flows that wait are listed exactly once, as new or old.

use std::collections::VecDeque;

use machine::FrameBody;
use units::{Bytes, Rate, Span, Time};
use wire::ip;
use wire::layers::Layers;
use wire::reserve::OUI_EXTENDED;

use crate::pool::{FramePool, PoolFrame};

/// Time that a frame may wait for the wire without anybody's having sent too much, on a wire of any speed.
const TARGET: Span = Span::from_ms(1);
/// Number of full frames whose time a frame may wait on a slow wire.
const STANDING: u64 = 16;
const FULL_FRAME: u64 = 1_538;
/// Interval, in multiples of the target, for which a queue may be longer.
const PATIENCE: u64 = 20;
/// Queues; two flows that share one share its fate.
const FLOWS: usize = 256;
/// A turn: one full frame, or as much as a super-frame has.
const QUANTUM: i64 = 1_518;
const LONG_QUANTUM: i64 = 65_536;

#[derive(Debug)]
pub struct FrameQueue {
    flows: Box<[FlowQueue]>,
    /// Flows that had nothing waiting and now do; they go first, once.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    bytes: Bytes,
    frames: usize,
    limit: Bytes,
    most_frames: usize,
    target: Span,
    /// Bytes that a flow sends before it is the next one's turn.
    quantum: i64,
    dropped: u64,
}

#[derive(Debug, Default)]
struct FlowQueue {
    frames: VecDeque<(Time, PoolFrame)>,
    bytes: u64,
    /// Bytes that the flow may still send in this turn.
    credit: i64,
    listed: bool,
    delay: CodelState,
}

impl FrameQueue {
    /// `rate` is the wire's, if it is known.
    pub fn new(limit: Bytes, most_frames: usize, rate: Option<Rate>) -> Self {
        let standing = rate.map_or(Span::ZERO, |rate| rate.span_of(Bytes::new(STANDING * FULL_FRAME)));
        Self {
            flows: (0..FLOWS).map(|_| FlowQueue::default()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: Bytes::ZERO,
            frames: 0,
            limit,
            most_frames,
            target: TARGET.max(standing),
            quantum: QUANTUM,
            dropped: 0,
        }
    }

    /// Sets whether a flow's turn is long enough for frames that leave as one super-frame.
    #[inline]
    pub fn keep_runs(&mut self, keep: bool) {
        self.quantum = if keep { LONG_QUANTUM } else { QUANTUM };
    }

    #[inline]
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes == Bytes::ZERO
    }

    /// Frames dropped so far.
    #[inline]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// All that waits, in no order that matters.
    pub fn frames(&self) -> impl Iterator<Item = &PoolFrame> {
        self.flows.iter().flat_map(|flow| flow.frames.iter().map(|(_, frame)| frame))
    }

    /// Time begins again; what waits has waited for nothing yet.
    pub fn start_over(&mut self) {
        for flow in &mut self.flows {
            flow.delay = CodelState::default();
            flow.frames.iter_mut().for_each(|(since, _)| *since = Time::ZERO);
        }
        self.dropped = 0;
    }

    pub fn push(&mut self, now: Time, frame: PoolFrame, pool: &mut FramePool) {
        let number = flow_of(pool.get(&frame));
        let len = u64::from(frame.len());
        let flow = &mut self.flows[number];
        flow.frames.push_back((now, frame));
        flow.bytes += len;
        self.bytes += Bytes::new(len);
        self.frames += 1;
        if !flow.listed {
            flow.listed = true;
            flow.credit = self.quantum;
            self.new.push_back(number);
        }
        while self.bytes > self.limit || self.frames > self.most_frames {
            self.drop_from_longest(pool);
        }
    }

    /// The first frame of the longest queue: its sender learns of it soonest.
    fn drop_from_longest(&mut self, pool: &mut FramePool) {
        let longest = (0..FLOWS).max_by_key(|number| self.flows[*number].bytes).unwrap_or(0);
        if let Some((_, frame)) = self.take_from(longest) {
            self.dropped += 1;
            pool.release(frame);
        }
    }

    fn take_from(&mut self, number: usize) -> Option<(Time, PoolFrame)> {
        let flow = &mut self.flows[number];
        let (since, frame) = flow.frames.pop_front()?;
        flow.bytes -= u64::from(frame.len());
        self.bytes -= Bytes::new(u64::from(frame.len()));
        self.frames -= 1;
        Some((since, frame))
    }

    /// The next frame for the wire.
    pub fn pop(&mut self, now: Time, pool: &mut FramePool) -> Option<PoolFrame> {
        loop {
            let (number, is_new) = match self.new.front() {
                Some(number) => (*number, true),
                None => (*self.old.front()?, false),
            };
            if self.flows[number].credit <= 0 {
                self.flows[number].credit += self.quantum;
                self.end_turn(number, is_new);
                continue;
            }
            let Some(frame) = self.pop_from(number, now, pool) else {
                // A flow that was new has its turn among the old ones before it is forgotten, or it could be new again
                // at once and starve them.
                if is_new && !self.old.is_empty() {
                    self.end_turn(number, true);
                } else {
                    self.flows[number].listed = false;
                    if is_new {
                        self.new.pop_front()
                    } else {
                        self.old.pop_front()
                    };
                }
                continue;
            };
            self.flows[number].credit -= i64::from(frame.len());
            return Some(frame);
        }
    }

    fn end_turn(&mut self, number: usize, is_new: bool) {
        if is_new {
            self.new.pop_front()
        } else {
            self.old.pop_front()
        };
        self.old.push_back(number);
    }

    /// The next frame of a flow, after those that its delay costs.
    fn pop_from(&mut self, number: usize, now: Time, pool: &mut FramePool) -> Option<PoolFrame> {
        loop {
            let (since, frame) = self.take_from(number)?;
            let flow = &mut self.flows[number];
            // The last one always goes: there is nobody it could be in the way of.
            let standing = now.since(since) > self.target && !flow.frames.is_empty();
            if !flow.delay.drops(now, standing, self.target * PATIENCE) {
                return Some(frame);
            }
            self.dropped += 1;
            pool.release(frame);
        }
    }
}

/// State of CoDel: since when a queue has been too long, and when it drops the next frame.
#[derive(Debug, Default)]
struct CodelState {
    /// Time at which it will have been too long for too long.
    patience_until: Option<Time>,
    dropping: bool,
    next_drop: Time,
    drops: u32,
}

impl CodelState {
    /// True if the frame at hand is to be dropped. `standing` says if it found the queue too long, which may last for
    /// `interval`.
    fn drops(&mut self, now: Time, standing: bool, interval: Span) -> bool {
        if !standing {
            self.patience_until = None;
            self.dropping = false;
            return false;
        }
        let until = *self.patience_until.get_or_insert(now + interval);
        if self.dropping {
            if now < self.next_drop {
                return false;
            }
            self.drops += 1;
            self.next_drop += self.pause(interval);
            return true;
        }
        if now < until {
            return false;
        }
        self.dropping = true;
        // If it was dropping until a moment ago, it carries on about where it was.
        let recent = now.since(self.next_drop) < interval * 16;
        self.drops = if recent && self.drops > 2 { self.drops - 2 } else { 1 };
        self.next_drop = now + self.pause(interval);
        true
    }

    fn pause(&self, interval: Span) -> Span {
        interval.scale(1.0 / f64::from(self.drops.max(1)).sqrt())
    }
}

/// Index of the queue that a frame belongs to: by its VLANs, addresses and ports, as far as it has any.
#[inline]
fn flow_of(frame: &[u8]) -> usize {
    // FNV-1a.
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let (kind, vlans, ip) = match Layers::of(frame) {
        Some(Layers { ethertype, vlans, ip, .. }) => (ethertype, vlans, ip),
        None => (0, [0; 2], None),
    };
    let (addresses, protocol, ports) = match ip {
        // Later fragments have no ports, so none of a packet's fragments may go by them.
        Some(ip) if ip.fragment.is_some() => (ip.addresses(frame), 0, None),
        Some(ip) => {
            let ports = if has_ports(ip.protocol) { frame.get(ip.transport..ip.transport + 4) } else { None };
            (ip.addresses(frame), ip.protocol, ports)
        }
        // Frames of a rack's hosts are scheduled already, and a message must not overtake the data before it.
        None if kind == OUI_EXTENDED => (&[][..], 0, None),
        None => (frame.get(..12).unwrap_or_default(), 0, None),
    };
    let vlans = (u64::from(vlans[0]) << 12 | u64::from(vlans[1])).wrapping_mul(PRIME);
    let mut hash = BASIS ^ vlans ^ u64::from(kind) << 8 ^ u64::from(protocol);
    for byte in addresses.iter().chain(ports.unwrap_or_default()) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    }
    (hash >> 24) as usize % FLOWS
}

fn has_ports(protocol: u8) -> bool {
    matches!(protocol, ip::TCP | ip::UDP | ip::SCTP)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A UDP frame of a flow that remembers its number.
    fn frame(pool: &mut FramePool, flow: u8, number: u16, len: usize) -> PoolFrame {
        let frame = pool.claim(len.max(60)).unwrap();
        let bytes = pool.get_mut(&frame);
        bytes.fill(0);
        bytes[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
        bytes[23] = 17;
        bytes[33] = flow;
        bytes[34..36].copy_from_slice(&[flow, flow]);
        bytes[50..52].copy_from_slice(&number.to_be_bytes());
        frame
    }

    fn number(pool: &FramePool, frame: &PoolFrame) -> (u8, u16) {
        let bytes = pool.get(frame);
        (bytes[33], u16::from_be_bytes([bytes[50], bytes[51]]))
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn mbps(megabits: u64) -> Rate {
        format!("{megabits}M").parse().unwrap()
    }

    #[test]
    fn a_request_goes_before_the_bulk_that_came_before_it() {
        let mut pool = FramePool::new(200, 1_514);
        let mut queue = FrameQueue::new(Bytes::new(1 << 20), 10_000, None);
        for n in 0..100 {
            let bulk = frame(&mut pool, 1, n, 1_514);
            queue.push(at(0), bulk, &mut pool);
        }
        assert!(queue.pop(at(1), &mut pool).is_some());
        let request = frame(&mut pool, 2, 0, 64);
        queue.push(at(2), request, &mut pool);
        let next: Vec<(u8, u16)> =
            (0..3).filter_map(|_| queue.pop(at(3), &mut pool).map(|frame| number(&pool, &frame))).collect();
        assert!(next.contains(&(2, 0)), "{next:?}");
    }

    #[test]
    fn a_message_of_a_rack_does_not_overtake_the_data_before_it() {
        let mut pool = FramePool::new(200, 1_514);
        let mut queue = FrameQueue::new(Bytes::new(1 << 20), 10_000, None);
        for (to, len) in [(7, 1_514), (7, 1_514), (9, 60)] {
            let frame = pool.claim(len).unwrap();
            let bytes = pool.get_mut(&frame);
            bytes.fill(0);
            bytes[5] = to;
            bytes[12..14].copy_from_slice(&OUI_EXTENDED.to_be_bytes());
            queue.push(at(0), frame, &mut pool);
        }
        let next = |_| queue.pop(at(1), &mut pool).map(|frame| pool.get(&frame)[5]);
        assert_eq!([0; 3].map(next), [Some(7), Some(7), Some(9)]);
    }

    #[test]
    fn flows_get_equal_shares_and_keep_their_order() {
        let mut pool = FramePool::new(1_000, 1_514);
        let mut queue = FrameQueue::new(Bytes::new(4 << 20), 10_000, None);
        for n in 0..300 {
            let (long, short) = (frame(&mut pool, 1, n, 1_514), frame(&mut pool, 2, n, 500));
            queue.push(at(0), long, &mut pool);
            queue.push(at(0), short, &mut pool);
        }
        let (mut bytes, mut next) = ([0u64; 3], [0u16; 3]);
        for _ in 0..200 {
            let frame = queue.pop(at(10), &mut pool).unwrap();
            let (flow, number) = number(&pool, &frame);
            assert_eq!(number, next[usize::from(flow)]);
            next[usize::from(flow)] += 1;
            bytes[usize::from(flow)] += u64::from(frame.len());
        }
        assert!(bytes[1].abs_diff(bytes[2]) < 4_000, "{bytes:?}");
    }

    #[test]
    fn a_burst_passes_whole_and_a_standing_queue_is_shortened() {
        let mut pool = FramePool::new(2_000, 1_514);
        let mut queue = FrameQueue::new(Bytes::new(8 << 20), 10_000, None);
        // 400 frames at once, drained within the interval: none is dropped.
        for n in 0..400 {
            let one = frame(&mut pool, 1, n, 1_514);
            queue.push(at(0), one, &mut pool);
        }
        let drained =
            (0..400).filter_map(|n| queue.pop(at(n * 12), &mut pool).map(|frame| pool.release(frame))).count();
        assert_eq!((drained, queue.dropped()), (400, 0));
        // One in, one out, behind a queue that stands: it loses frames until it is short.
        for n in 0..400 {
            let one = frame(&mut pool, 1, n, 1_514);
            queue.push(at(10_000), one, &mut pool);
        }
        for n in 0..200_000u64 {
            let one = frame(&mut pool, 1, n as u16, 1_514);
            queue.push(at(10_000 + n * 12), one, &mut pool);
            if let Some(frame) = queue.pop(at(10_000 + n * 12), &mut pool) {
                pool.release(frame);
            }
        }
        assert!(queue.dropped() > 300, "{}", queue.dropped());
        assert!(queue.bytes() < Bytes::new(150_000), "{}", queue.bytes().get());
    }

    /// A flow in the manner of Reno: it sends what its window allows, adds a frame for each window that arrives, halves it
    /// when it hears of a drop, and waits for its timer if too few frames follow to hear of one. Frames that arrived.
    fn reno(rate: Rate, told: Option<Rate>, round_trip: Span, span: Span) -> u64 {
        const TIMER: Span = Span::from_ms(200);
        let slot = rate.span_of(Bytes::new(FULL_FRAME));
        let mut pool = FramePool::new(3_000, 1_514);
        let mut queue = FrameQueue::new(Bytes::new(4 << 20), 10_000, told);
        let (mut window, mut outstanding, mut arrived) = (10.0f64, 0u64, 0);
        let (mut now, mut deaf_until, mut quiet_until) = (Time::ZERO, Time::ZERO, Time::ZERO);
        let mut returning: VecDeque<Time> = VecDeque::new();
        while now < Time::ZERO + span {
            while returning.front().is_some_and(|at| *at <= now) {
                returning.pop_front();
                outstanding -= 1;
                window += 1.0 / window;
            }
            while now >= quiet_until && (outstanding as f64) < window {
                let one = frame(&mut pool, 1, 0, 1_514);
                queue.push(now, one, &mut pool);
                outstanding += 1;
            }
            let dropped = queue.dropped();
            if let Some(frame) = queue.pop(now, &mut pool) {
                pool.release(frame);
                arrived += 1;
                returning.push_back(now + slot + round_trip);
            }
            let lost = queue.dropped() - dropped;
            outstanding -= lost;
            // One reduction for all that is lost within a window.
            if lost > 0 && now >= deaf_until {
                if outstanding < 4 {
                    quiet_until = now + TIMER;
                }
                window = (window / 2.0).max(2.0);
                deaf_until = now + round_trip + slot * outstanding;
            }
            now += slot;
        }
        arrived
    }

    #[test]
    fn a_flow_on_a_slow_wire_gets_nearly_all_of_it() {
        let (slow, fast) = (mbps(45), Rate::gbps(1));
        for round_trip in [Span::from_us(300), Span::from_ms(2), Span::from_ms(10)] {
            let share = |rate: Rate, told| {
                let span = Span::from_ms(5_000);
                let most = rate.bytes_in(span).get() / FULL_FRAME;
                reno(rate, told, round_trip, span) as f64 / most as f64
            };
            let (known, unknown) = (share(slow, Some(slow)), share(slow, None));
            assert!(known > 0.93, "{round_trip:?}: {known:.3}, not knowing the rate {unknown:.3}");
            assert_eq!(share(fast, Some(fast)), share(fast, None), "a millisecond is enough for it");
        }
    }

    #[test]
    fn the_target_is_what_a_few_frames_take_and_a_millisecond_at_least() {
        let target = |rate| FrameQueue::new(Bytes::new(1 << 20), 100, rate).target;
        assert_eq!(target(None), TARGET);
        assert_eq!(target(Some(Rate::gbps(10))), TARGET);
        let slow = target(Some(mbps(45)));
        assert!(slow > Span::from_ms(4) && slow < Span::from_ms(5), "{slow:?}");
        let slower = target(Some(mbps(1)));
        assert!(slower > Span::from_ms(190) && slower < Span::from_ms(200), "{slower:?}");
    }

    #[test]
    fn the_limit_is_kept_at_the_expense_of_the_longest() {
        let mut pool = FramePool::new(200, 1_514);
        let mut queue = FrameQueue::new(Bytes::new(30_000), 10_000, None);
        let request = frame(&mut pool, 2, 7, 64);
        queue.push(at(0), request, &mut pool);
        for n in 0..100 {
            let bulk = frame(&mut pool, 1, n, 1_514);
            queue.push(at(0), bulk, &mut pool);
            assert!(queue.bytes() <= Bytes::new(30_000));
        }
        let mut left = Vec::new();
        while let Some(frame) = queue.pop(at(1), &mut pool) {
            left.push(number(&pool, &frame));
            pool.release(frame);
        }
        assert!(left.contains(&(2, 7)) && left.contains(&(1, 99)) && !left.contains(&(1, 0)), "{left:?}");
        assert_eq!((pool.free(), queue.is_empty()), (200, true));
    }

    /// A frame with these tags and types before an IP packet.
    fn tagged(before: &[u8], packet: &[u8]) -> Vec<u8> {
        [&[2; 12], before, packet].concat()
    }

    #[test]
    fn flows_behind_vlan_tags_are_told_apart() {
        let datagram = |port: u8| {
            let head = [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            [&head[..], &[port, 0, 0, 53, 0, 8, 0, 0]].concat()
        };
        let queues = |before: &[u8]| -> BTreeSet<usize> {
            (0..32).map(|port| flow_of(&tagged(before, &datagram(port)))).collect()
        };
        let tags: [&[u8]; 3] = [&[8, 0], &[0x81, 0, 0, 7, 8, 0], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 8, 0]];
        for before in tags {
            assert!(queues(before).len() > 20, "{before:?}");
        }
        let of_vlan = |id: u8| flow_of(&tagged(&[0x81, 0, 0, id, 8, 0], &datagram(1)));
        let of_inner = |id: u8| flow_of(&tagged(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, id, 8, 0], &datagram(1)));
        assert!((1..32).map(of_vlan).collect::<BTreeSet<_>>().len() > 20);
        assert!((1..32).map(of_inner).collect::<BTreeSet<_>>().len() > 20);
        let of_priority = |control: u8| flow_of(&tagged(&[0x81, 0, control, 7, 8, 0], &datagram(1)));
        assert_eq!(of_priority(0x60), of_priority(0), "the priority of a frame may change within a flow");
    }

    #[test]
    fn fragments_of_a_packet_share_a_queue() {
        let v4 = |fragment: [u8; 2], ports: [u8; 4]| {
            let head = [0x45, 0, 0, 24, 0, 1, fragment[0], fragment[1], 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            flow_of(&tagged(&[8, 0], &[&head[..], &ports].concat()))
        };
        assert_eq!(v4([0x20, 0], [1, 2, 3, 4]), v4([0, 9], [5, 6, 7, 8]));
        let v6 = |fragment: [u8; 2], ports: [u8; 4]| {
            let head = [&[0x60, 0, 0, 0, 0, 12, 44, 64][..], &[0x20; 32], &[17, 0], &fragment, &[0, 0, 0, 1]];
            flow_of(&tagged(&[0x86, 0xdd], &[&head.concat()[..], &ports].concat()))
        };
        assert_eq!(v6([0, 1], [1, 2, 3, 4]), v6([0, 64], [5, 6, 7, 8]));
    }

    #[test]
    fn any_bytes_have_a_flow() {
        for len in 0..80 {
            for first in [0x08, 0x86, 0xff] {
                let mut bytes = vec![0xff; len];
                bytes
                    .iter_mut()
                    .skip(12)
                    .take(2)
                    .zip([first, if first == 8 { 0 } else { 0xdd }])
                    .for_each(|(b, v)| *b = v);
                assert!(flow_of(&bytes) < FLOWS);
            }
        }
    }
}
