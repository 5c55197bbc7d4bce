//! Sizes of flows.
//!
//! A distribution is a list of knots, each a size and the share of flows that are no larger; between two knots the
//! cumulative distribution is a straight line, as in the generators of HPCC and pFabric. A line that begins above zero
//! percent is taken to rise from zero bytes.

use std::str::FromStr;

use faults::Random;
use units::{Bytes, Prob, nearest};

use super::WorkloadError;
use super::error::expect;
use super::traces;

/// Published flow sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeTrace {
    WebSearch,
    FbHadoop,
    AliStorage,
    DataMining,
    GoogleRpc,
    FbKeyValue,
    GoogleSearch,
    FbHadoopAll,
}

/// A distribution of flow sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSizes {
    /// Knots from share 0 to share 1, neither value ever falling.
    knots: Vec<Knot>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Knot {
    bytes: f64,
    share: f64,
}

impl SizeTrace {
    pub const ALL: [Self; 8] = [
        Self::WebSearch,
        Self::FbHadoop,
        Self::AliStorage,
        Self::DataMining,
        Self::GoogleRpc,
        Self::FbKeyValue,
        Self::GoogleSearch,
        Self::FbHadoopAll,
    ];

    /// The five workloads of Homa (SIGCOMM'18), `w1` to `w5`. W5 is read as lines between knots (mean 1.71 MB); read as
    /// steps, as Homa's simulator does, its mean is 2.43 MB.
    pub const HOMA: [(&'static str, Self); 5] = [
        ("w1", Self::FbKeyValue),
        ("w2", Self::GoogleSearch),
        ("w3", Self::GoogleRpc),
        ("w4", Self::FbHadoopAll),
        ("w5", Self::WebSearch),
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::WebSearch => "web-search",
            Self::FbHadoop => "fb-hadoop",
            Self::AliStorage => "ali-storage",
            Self::DataMining => "data-mining",
            Self::GoogleRpc => "google-rpc",
            Self::FbKeyValue => "fb-key-value",
            Self::GoogleSearch => "google-search",
            Self::FbHadoopAll => "fb-hadoop-all",
        }
    }

    pub fn sizes(self) -> FlowSizes {
        let table = match self {
            Self::WebSearch => traces::WEB_SEARCH,
            Self::FbHadoop => traces::FB_HADOOP,
            Self::AliStorage => traces::ALI_STORAGE,
            Self::DataMining => traces::DATA_MINING,
            Self::GoogleRpc => traces::GOOGLE_RPC,
            Self::FbKeyValue => traces::FB_KEY_VALUE,
            Self::GoogleSearch => traces::GOOGLE_SEARCH,
            Self::FbHadoopAll => traces::FB_HADOOP_ALL,
        };
        FlowSizes::through(table.iter().map(|(bytes, percent)| Knot { bytes: *bytes as f64, share: percent / 100.0 }))
    }
}

impl FromStr for SizeTrace {
    type Err = WorkloadError;

    /// `WebSearch`, `web_search` and `w5` are `web-search`, too.
    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let letters = |name: &str| name.replace(['-', '_'], "").to_lowercase();
        let of_homa = Self::HOMA.into_iter().find(|(name, _)| *name == letters(text)).map(|(_, trace)| trace);
        of_homa.or(Self::ALL.into_iter().find(|trace| letters(trace.name()) == letters(text))).ok_or_else(|| {
            WorkloadError::UnknownTrace { name: text.to_string(), nearest: nearest(text, Self::ALL.map(Self::name)) }
        })
    }
}

impl FlowSizes {
    /// Every flow has the same size, at least one byte.
    pub fn fixed(bytes: u64) -> Self {
        let bytes = bytes.max(1) as f64;
        Self { knots: vec![Knot { bytes, share: 0.0 }, Knot { bytes, share: 1.0 }] }
    }

    /// A file of lines `bytes percent`, both rising, to 100 percent. Two lines with the same size are a step. What
    /// follows a `#` is a comment.
    pub fn parse(text: &str) -> Result<Self, WorkloadError> {
        let mut knots: Vec<Knot> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default().trim();
            if !content.is_empty() {
                let wrong = |problem| WorkloadError::Line { line: index + 1, problem };
                knots.push(next_knot(content, knots.last()).map_err(wrong)?);
            }
        }
        let last = knots.last().ok_or(WorkloadError::Expected("lines of a size in bytes and a percent"))?;
        expect(last.share == 1.0, "100 percent in the last line (percent, not a fraction of one)")?;
        expect(last.bytes >= 1.0, "a size of at least one byte in the last line")?;
        Ok(Self::through(knots))
    }

    /// Through knots that rise to share 1.
    fn through(knots: impl IntoIterator<Item = Knot>) -> Self {
        let mut through = vec![Knot { bytes: 0.0, share: 0.0 }];
        for knot in knots {
            if knot.share == 0.0 {
                through.clear();
            }
            through.push(knot);
        }
        Self { knots: through }
    }

    /// Mean size in bytes.
    pub fn mean(&self) -> f64 {
        self.segments().map(|(low, high)| (high.share - low.share) * (low.bytes + high.bytes) / 2.0).sum()
    }

    /// The size that this share of flows does not exceed.
    pub fn quantile(&self, share: Prob) -> u64 {
        self.at(share.get())
    }

    pub fn sample(&self, random: &mut Random) -> u64 {
        self.at(random.unit())
    }

    /// E(1/S), where S is the number of packets in a flow, each with so much payload: how likely a packet of a random
    /// flow is its last (rdma-corruption, Theorem 6).
    pub fn mean_inverse_packets(&self, payload: Bytes) -> f64 {
        self.mean_of_packets(payload, f64::recip, inverse_packets_up_to)
    }

    /// Mean packets of a flow, E(S). A share of 1/E(S) of all packets are the last of their flow.
    pub fn mean_packets(&self, payload: Bytes) -> f64 {
        self.mean_of_packets(payload, |packets| packets, packets_up_to)
    }

    /// Mean of `of` over the flows' numbers of packets; `up_to` is the integral of `of` from zero to a size.
    fn mean_of_packets(&self, payload: Bytes, of: fn(f64) -> f64, up_to: fn(f64, f64) -> f64) -> f64 {
        let packet = payload.get().max(1) as f64;
        let mean_within = |low: Knot, high: Knot| {
            if low.bytes == high.bytes {
                of((high.bytes / packet).ceil().max(1.0))
            } else {
                (up_to(high.bytes, packet) - up_to(low.bytes, packet)) / (high.bytes - low.bytes)
            }
        };
        self.segments().map(|(low, high)| (high.share - low.share) * mean_within(low, high)).sum()
    }

    fn at(&self, share: f64) -> u64 {
        let above = self.knots.partition_point(|knot| knot.share < share);
        let bytes = match above.checked_sub(1) {
            None => self.knots[0].bytes,
            Some(below) => {
                let (low, high) = (self.knots[below], self.knots[above]);
                low.bytes + (high.bytes - low.bytes) * (share - low.share) / (high.share - low.share)
            }
        };
        (bytes.round() as u64).max(1)
    }

    fn segments(&self) -> impl Iterator<Item = (Knot, Knot)> + '_ {
        self.knots.windows(2).map(|pair| (pair[0], pair[1]))
    }
}

fn next_knot(line: &str, last: Option<&Knot>) -> Result<Knot, String> {
    let mut fields = line.split_whitespace();
    let (Some(bytes), Some(percent), None) = (fields.next(), fields.next(), fields.next()) else {
        return Err(format!("expected a size in bytes and a percent, found '{line}'"));
    };
    let size: Bytes = bytes.parse().map_err(|error| format!("'{bytes}': {error}"))?;
    let share = match percent.trim_end_matches('%').parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => percent / 100.0,
        _ => return Err(format!("'{percent}': expected a percent from 0 to 100")),
    };
    let knot = Knot { bytes: size.get() as f64, share };
    match last {
        Some(last) if knot.bytes < last.bytes || knot.share < last.share => {
            Err(format!("'{line}': expected no less than in the line before"))
        }
        _ => Ok(knot),
    }
}

/// Integral of 1/⌈x/packet⌉ from zero to `bytes`, as a harmonic sum over whole packets.
fn inverse_packets_up_to(bytes: f64, packet: f64) -> f64 {
    let whole = (bytes / packet).floor();
    packet * harmonic(whole) + (bytes - whole * packet) / (whole + 1.0)
}

/// The integral of ⌈x/packet⌉.
fn packets_up_to(bytes: f64, packet: f64) -> f64 {
    let whole = (bytes / packet).floor();
    packet * whole * (whole + 1.0) / 2.0 + (bytes - whole * packet) * (whole + 1.0)
}

/// 1 + 1/2 + … + 1/n.
fn harmonic(n: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    if n < 64.0 {
        (1..=n as u32).map(|k| f64::from(k).recip()).sum()
    } else {
        n.ln() + EULER + 0.5 / n - 1.0 / (12.0 * n * n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: f64, expected: f64, tolerance: f64) -> bool {
        (value / expected - 1.0).abs() < tolerance
    }

    #[test]
    fn traces_have_their_published_means() {
        for (trace, mean, tolerance) in [
            (SizeTrace::WebSearch, 1.71e6, 0.002),
            (SizeTrace::FbHadoop, 120.4e3, 0.002),
            (SizeTrace::AliStorage, 40.87e3, 0.002),
            (SizeTrace::DataMining, 5_117.0 * 1_500.0, 0.002),
            (SizeTrace::GoogleRpc, 2_927.0, 0.01),
            (SizeTrace::FbKeyValue, 187.8, 0.01),
            (SizeTrace::GoogleSearch, 440.8, 0.01),
            (SizeTrace::FbHadoopAll, 127.8e3, 0.01),
        ] {
            let ours = trace.sizes().mean();
            assert!(close(ours, mean, tolerance), "{}: {ours}", trace.name());
        }
    }

    #[test]
    fn a_reduced_trace_keeps_its_quantiles() {
        for (trace, share, bytes) in [
            (SizeTrace::GoogleRpc, 0.25, 84.0),
            (SizeTrace::GoogleRpc, 0.5, 257.0),
            (SizeTrace::GoogleRpc, 0.9, 1_716.0),
            (SizeTrace::GoogleRpc, 0.99, 30_614.0),
            (SizeTrace::GoogleRpc, 0.999, 354_938.0),
            (SizeTrace::FbKeyValue, 0.25, 3.0),
            (SizeTrace::FbKeyValue, 0.5, 27.0),
            (SizeTrace::FbKeyValue, 0.9, 499.0),
            (SizeTrace::FbKeyValue, 0.99, 1_853.0),
            (SizeTrace::FbKeyValue, 0.999, 4_873.0),
            (SizeTrace::GoogleSearch, 0.25, 41.0),
            (SizeTrace::GoogleSearch, 0.5, 267.0),
            (SizeTrace::GoogleSearch, 0.9, 501.0),
            (SizeTrace::FbHadoopAll, 0.25, 461.0),
            (SizeTrace::FbHadoopAll, 0.5, 655.0),
            (SizeTrace::FbHadoopAll, 0.9, 119_336.0),
            (SizeTrace::FbHadoopAll, 0.99, 3_094_208.0),
        ] {
            let ours = trace.sizes().quantile(Prob::literal(share));
            assert!(close(ours as f64, bytes, 0.07), "{} at {share}: {ours}", trace.name());
        }
    }

    #[test]
    fn the_tail_of_a_web_search_flow_is_one_packet_in_eighteen() {
        // rdma-corruption §3.2 has 0.055.
        let inverse = SizeTrace::WebSearch.sizes().mean_inverse_packets(Bytes::new(1_000));
        assert!(close(inverse, 0.0566, 0.001), "{inverse}");
    }

    #[test]
    fn means_of_packets_are_those_of_many_samples() {
        let mut random = Random::new(3, 0);
        for trace in SizeTrace::ALL {
            let sizes = trace.sizes();
            let n = 100_000;
            let (mut inverse, mut packets) = (0.0, 0.0);
            for _ in 0..n {
                let drawn = sizes.sample(&mut random).div_ceil(1_024) as f64;
                (inverse, packets) = (inverse + drawn.recip(), packets + drawn);
            }
            let exact = sizes.mean_inverse_packets(Bytes::new(1_024));
            assert!(close(inverse / f64::from(n), exact, 0.02), "{}: {exact}", trace.name());
            let exact = sizes.mean_packets(Bytes::new(1_024));
            assert!(close(packets / f64::from(n), exact, 0.05), "{}: {exact}", trace.name());
        }
        assert_eq!(FlowSizes::fixed(4_096).mean_inverse_packets(Bytes::new(1_024)), 0.25);
        assert_eq!(FlowSizes::fixed(4_097).mean_inverse_packets(Bytes::new(1_024)), 0.2);
        assert_eq!(FlowSizes::fixed(4_096).mean_packets(Bytes::new(1_024)), 4.0);
        assert_eq!(FlowSizes::fixed(4_097).mean_packets(Bytes::new(1_024)), 5.0);
    }

    #[test]
    fn samples_have_the_mean_and_the_quantiles_of_the_distribution() {
        let sizes = SizeTrace::WebSearch.sizes();
        let mut random = Random::new(1, 0);
        let mut samples: Vec<u64> = (0..200_000).map(|_| sizes.sample(&mut random)).collect();
        let mean = samples.iter().sum::<u64>() as f64 / samples.len() as f64;
        assert!(close(mean, sizes.mean(), 0.02), "{mean}");
        samples.sort_unstable();
        for share in [0.1, 0.5, 0.9, 0.99] {
            let sampled = samples[(share * samples.len() as f64) as usize] as f64;
            assert!(close(sampled, sizes.quantile(Prob::literal(share)) as f64, 0.03), "{share}: {sampled}");
        }
    }

    #[test]
    fn quantiles_lie_on_the_lines_between_knots() {
        let sizes = FlowSizes::parse("0 0\n100 50\n300 100").unwrap();
        let quantiles = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| sizes.quantile(Prob::literal(share)));
        assert_eq!(quantiles, [1, 50, 100, 200, 300]);
        assert_eq!(sizes.mean(), 125.0);
    }

    #[test]
    fn a_file_may_have_comments_units_steps_and_a_smallest_size() {
        let sizes = FlowSizes::parse("# ours\n50 0 # none is smaller\n\n143 10%\n143 90\n1KB 100\n").unwrap();
        let quantiles = [0.0, 0.1, 0.5, 0.9, 1.0].map(|share| sizes.quantile(Prob::literal(share)));
        assert_eq!(quantiles, [50, 143, 143, 143, 1_000]);
        assert_eq!(FlowSizes::parse("100 50\n300 100"), FlowSizes::parse("0 0\n100 50\n300 100"));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_named_with_its_line() {
        let said = |text| FlowSizes::parse(text).unwrap_err().to_string();
        assert_eq!(said("0 0\n100"), "line 2: expected a size in bytes and a percent, found '100'");
        assert!(said("0 0\nbig 10").starts_with("line 2: 'big': expected a size"));
        assert_eq!(said("10 120"), "line 1: '120': expected a percent from 0 to 100");
        assert_eq!(said("10 NaN"), "line 1: 'NaN': expected a percent from 0 to 100");
        assert_eq!(said("10 20\n\n9 100"), "line 3: '9 100': expected no less than in the line before");
        assert_eq!(said("10 0.5\n20 1"), "expected 100 percent in the last line (percent, not a fraction of one)");
        assert_eq!(said("0 100"), "expected a size of at least one byte in the last line");
        assert_eq!(said("# nothing"), "expected lines of a size in bytes and a percent");
    }

    #[test]
    fn traces_are_found_by_name() {
        for trace in SizeTrace::ALL {
            assert_eq!(trace.name().parse(), Ok(trace));
        }
        assert_eq!("FB_Hadoop".parse(), Ok(SizeTrace::FbHadoop));
        let said = |name: &str| name.parse::<SizeTrace>().unwrap_err().to_string();
        assert_eq!(said("web-serch"), "no trace is called 'web-serch': did you mean 'web-search'?");
        assert!(
            said("x")
                .ends_with("expected one of web-search, fb-hadoop, ali-storage, data-mining, google-rpc, fb-key-value, google-search, fb-hadoop-all")
        );
    }
}
