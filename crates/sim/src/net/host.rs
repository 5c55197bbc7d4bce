//! A host: one interface that its connections take turns at, and a processor that takes its time.

use std::collections::VecDeque;

use faults::Random;
use units::{Span, Time};

use super::setup::Latency;

#[derive(Debug)]
pub struct Host {
    /// The port that it sends by.
    pub port: u32,
    /// Ends that have something to send, in turn.
    pub ready: VecDeque<u32>,
    /// Classes that may not send now.
    pub paused: u8,
    /// What the interface received and the processor has not seen.
    pub received: Vec<u32>,
    latency: Latency,
    random: Random,
}

impl Host {
    pub fn new(port: u32, latency: Latency, random: Random) -> Self {
        Self { port, ready: VecDeque::new(), paused: 0, received: Vec::new(), latency, random }
    }

    pub fn is_immediate(&self) -> bool {
        self.latency == Latency::None
    }

    pub fn typical_latency(&self) -> Span {
        self.latency.typical()
    }

    /// A packet comes in. If it finds the host idle, when that will get to it.
    pub fn receive(&mut self, now: Time, packet: u32) -> Option<Time> {
        self.received.push(packet);
        (self.received.len() == 1).then(|| now + self.latency.draw(&mut self.random))
    }

    /// The next end that may send.
    pub fn next(&mut self, class_of: impl Fn(u32) -> u8) -> Option<u32> {
        if self.paused == 0 {
            return self.ready.pop_front();
        }
        let at = self.ready.iter().position(|end| self.paused & 1 << class_of(*end) == 0)?;
        self.ready.remove(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_together_is_dealt_with_together() {
        let mut host = Host::new(0, Latency::Fixed(Span::from_us(5)), Random::new(1, 0));
        let now = Time::ZERO + Span::from_us(1);
        assert_eq!(host.receive(now, 1), Some(now + Span::from_us(5)));
        assert_eq!(host.receive(now + Span::from_us(4), 2), None);
    }

    #[test]
    fn a_paused_class_lets_others_pass() {
        let mut host = Host::new(0, Latency::None, Random::new(1, 0));
        host.ready.extend([0, 1, 2]);
        host.paused = 1 << 3;
        let class = |end| if end == 1 { 0 } else { 3 };
        assert_eq!([host.next(class), host.next(class)], [Some(1), None]);
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
