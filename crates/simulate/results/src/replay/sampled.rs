//! Packets at the times that samples of their hosts give back: li-thesis §6.3.3, Algorithm 12, and clocks that are apart.

use deter::sampling::{self, SampleError, SendTimeSample};
use faults::Random;
use sim::net::NetworkSetup;
use sim::net::queue_replay::RecordedConnection;
use units::{Span, Time};

/// Stream of randomness.
const CLOCK_STREAM: u64 = 17;

/// Cost of samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct SampleCost {
    pub packets: u64,
    pub samples: u64,
    pub bytes: u64,
}

impl SampleCost {
    pub fn packets_per_sample(&self) -> f64 {
        self.packets as f64 / self.samples.max(1) as f64
    }

    pub fn bytes_per_packet(&self) -> f64 {
        self.bytes as f64 / self.packets.max(1) as f64
    }

    /// The times that samples give back, through their bytes.
    pub fn through_bytes(&mut self, samples: &[SendTimeSample], packets: usize) -> Result<Vec<Time>, SampleError> {
        let bytes = sampling::encode(samples);
        self.packets += packets as u64;
        self.samples += samples.len() as u64;
        self.bytes += bytes.len() as u64;
        Ok(sampling::send_times(&sampling::decode(&bytes)?, packets))
    }
}

/// Lag of each node's clock, up to a limit; drawn from the seed of the run.
pub fn draw_clocks(setup: &NetworkSetup, apart: Span) -> Vec<Span> {
    let mut random = Random::new(setup.seed, CLOCK_STREAM);
    let mut clock = |_| if apart == Span::ZERO { Span::ZERO } else { Span::from_ps(random.below(apart.as_ps())) };
    (0..setup.topology.nodes.len()).map(&mut clock).collect()
}

/// Packets with the times that samples give, by the clocks of their hosts.
pub fn sampled(
    connections: &[RecordedConnection],
    threshold: Span,
    clocks: &[Span],
) -> Result<(Vec<RecordedConnection>, SampleCost), SampleError> {
    let (mut cost, mut failed) = (SampleCost::default(), None);
    let connections = connections.iter().map(|connection| {
        let inferred = |times: &[Time]| match cost.through_bytes(&sampling::sample(times, threshold), times.len()) {
            Ok(times) => times,
            Err(error) => {
                failed = Some(error);
                times.to_vec()
            }
        };
        connection.retimed(inferred, [connection.src, connection.dst].map(|host| clocks[host.index()]))
    });
    let connections = connections.collect();
    failed.map_or(Ok((connections, cost)), Err)
}
