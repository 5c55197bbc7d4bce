//! A host: one interface that its connections take turns at, and a processor that takes its time.

use std::collections::VecDeque;

use faults::Random;
use transport::roce::melo::Nic;
use units::{Span, Time};

use super::outcome::PoolUse;
use super::setup::Latency;
use crate::topology::NodeId;

#[derive(Debug)]
pub struct Host {
    pub node: NodeId,
    /// The port that it sends by.
    pub port: u32,
    /// Ends that have something to send, in turn.
    pub ready: VecDeque<u32>,
    /// Classes that may not send now.
    pub paused: u8,
    /// Whether its ends are of several classes.
    mixed: bool,
    /// How often its processor got to what had been received.
    pub batches: u32,
    /// What the interface has received since it last told the processor.
    received: Vec<u32>,
    /// What the processor is dealing with, each as it was told of it; and lists to use again.
    told: VecDeque<Vec<u32>>,
    spare: Vec<Vec<u32>>,
    last_told: Time,
    /// What is in the pipeline of an interface that deals with packets itself: how much of it, what it takes now, and
    /// when the last of it comes out.
    in_pipeline: u32,
    pipeline: Span,
    last_out: Time,
    latency: Latency,
    random: Random,
    /// Pools of bits that its connections share, if they do.
    pub nic: Option<Nic<u16>>,
}

impl Host {
    pub fn new(node: NodeId, port: u32, mixed: bool, latency: Latency, random: Random) -> Self {
        Self {
            node,
            port,
            ready: VecDeque::new(),
            paused: 0,
            mixed,
            batches: 0,
            received: Vec::new(),
            told: VecDeque::new(),
            spare: Vec::new(),
            last_told: Time::ZERO,
            in_pipeline: 0,
            pipeline: Span::ZERO,
            last_out: Time::ZERO,
            latency,
            random,
            nic: None,
        }
    }

    /// How much of its pools was needed, if it has any.
    pub fn pool_use(&self) -> Option<PoolUse> {
        let nic = self.nic.as_ref()?;
        let block = nic.receive().block();
        let (receive, send) = (nic.receive().usage(), nic.send().usage());
        Some(PoolUse {
            host: self.node,
            size: receive.blocks * block,
            receive_peak: receive.peak * block,
            send_peak: send.peak * block,
            refused: receive.refusals,
        })
    }

    pub fn is_immediate(&self) -> bool {
        self.latency == Latency::None
    }

    pub fn typical_latency(&self) -> Span {
        self.latency.typical()
    }

    /// A packet comes in. If nothing waits, when the processor will be told of it and of what comes until then: half of
    /// the latency is waiting, half is work.
    pub fn receive(&mut self, now: Time, packet: u32) -> Option<Time> {
        self.received.push(packet);
        (self.received.len() == 1).then(|| {
            self.pipeline = self.latency.draw(&mut self.random);
            now + self.pipeline / 2
        })
    }

    /// The processor is told. When it will have dealt with all of it.
    pub fn tell(&mut self, now: Time) -> Time {
        let next = self.spare.pop().unwrap_or_default();
        self.told.push_back(std::mem::replace(&mut self.received, next));
        self.last_told = self.last_told.max(now + self.pipeline / 2);
        self.last_told
    }

    /// What it has dealt with.
    pub fn dealt_with(&mut self) -> Vec<u32> {
        self.batches += 1;
        self.told.pop_front().unwrap_or_default()
    }

    /// A list that is empty again.
    pub fn put_back(&mut self, list: Vec<u32>) {
        self.spare.push(list);
    }

    /// A packet comes in that the interface deals with itself, one by one and in order. When it will have.
    pub fn pipe(&mut self, now: Time) -> Time {
        if self.in_pipeline == 0 {
            self.pipeline = self.latency.draw(&mut self.random);
        }
        self.in_pipeline += 1;
        self.last_out = self.last_out.max(now + self.pipeline);
        self.last_out
    }

    pub fn piped(&mut self) {
        self.in_pipeline -= 1;
    }

    /// The next end that may send: of the first class that has one, by turns.
    pub fn next(&mut self, class_of: impl Fn(u32) -> u8) -> Option<u32> {
        if self.paused == 0 && !self.mixed {
            return self.ready.pop_front();
        }
        let classes = self.ready.iter().map(|end| class_of(*end)).enumerate();
        let (at, _) = classes.filter(|(_, class)| self.paused & 1 << class == 0).min_by_key(|(_, class)| *class)?;
        self.ready.remove(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_before_the_processor_is_told_is_dealt_with_together() {
        let mut host = Host::new(NodeId(0), 0, false, Latency::Fixed(Span::from_us(8)), Random::new(1, 0));
        let us = |us| Time::ZERO + Span::from_us(us);
        assert_eq!((host.receive(us(1), 1), host.receive(us(4), 2)), (Some(us(5)), None));
        assert_eq!(host.tell(us(5)), us(9));
        assert_eq!(host.receive(us(6), 3), Some(us(10)), "another batch, while the first is dealt with");
        assert_eq!(host.dealt_with(), [1, 2]);
        assert_eq!(host.tell(us(10)), us(14));
        assert_eq!(host.dealt_with(), [3]);
    }

    #[test]
    fn an_interface_deals_with_packets_one_by_one_and_in_order() {
        let latency = Latency::LogNormal { median: Span::from_us(5), sigma: 0.5 };
        let mut host = Host::new(NodeId(0), 0, false, latency, Random::new(1, 0));
        let us = |us| Time::ZERO + Span::from_us(us);
        let (first, second) = (host.pipe(us(1)), host.pipe(us(2)));
        assert_eq!(second.since(first), Span::from_us(1));
        host.piped();
        host.piped();
        assert_ne!(host.pipe(us(100)).since(us(100)), first.since(us(1)), "drawn anew");
    }

    #[test]
    fn a_paused_class_lets_others_pass() {
        let mut host = Host::new(NodeId(0), 0, false, Latency::None, Random::new(1, 0));
        host.ready.extend([0, 1, 2]);
        host.paused = 1 << 3;
        let class = |end| if end == 1 { 0 } else { 3 };
        assert_eq!([host.next(class), host.next(class)], [Some(1), None]);
    }

    #[test]
    fn the_first_class_goes_first_and_its_ends_by_turns() {
        let mut host = Host::new(NodeId(0), 0, true, Latency::None, Random::new(1, 0));
        host.ready.extend([0, 1, 2, 3]);
        let class = |end| if end % 2 == 1 { 0 } else { 3 };
        assert_eq!([0; 4].map(|_| host.next(class)), [Some(1), Some(3), Some(0), Some(2)]);
    }

    #[test]
    fn the_median_of_the_draws_is_the_one_asked_for() {
        let latency = Latency::LogNormal { median: Span::from_us(10), sigma: 0.5 };
        let mut random = Random::new(1, 0);
        let mut draws: Vec<Span> = (0..10_001).map(|_| latency.draw(&mut random)).collect();
        draws.sort_unstable();
        let (median, high) = (draws[5_000].as_us(), draws[9_772].as_us());
        assert!((median - 10.0).abs() < 0.3, "{median}");
        assert!((high / 10.0 - 1f64.exp()).abs() < 0.25, "two sigma: {high}");
    }
}
