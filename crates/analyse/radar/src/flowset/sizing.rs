//! Size that a flowset must have to be decoded with a given probability: li-thesis §4.4.3.
//!
//! **Flow filter.** The chance that none of n flows is taken for another is ∏(1 − pᵢ), with pᵢ = (1 − e^(−k_f·i/m_f))^k_f for
//! the i-th. It may fail a tenth as often as the counting table (§4.5.1). Four bits of a flow lie in one word, and some words
//! have more flows than others; that makes false positives a little likelier, and `false_positive` knows.
//!
//! **Counting table.** With fewer than c·m_c flows it decodes almost surely, with more hardly ever: c is 0.818 for three rows
//! and 0.772 for four. The number of flows at which it fails is normally distributed about that, with a deviation that goes
//! with √m_c. In small tables it is likelier that two flows share all their cells. The constants were measured on 60 to 1.3
//! million cells.
//!
//! **With neighbours**, far fewer cells suffice to decode the flows. The counters then need equations: about as many
//! cells as flows.

use units::Prob;

use super::shape::{BITS_IN_WORD, FlowsetShape, MOST_ROWS};

/// Decoder of a flowset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecoderKind {
    /// The switch's own flowset must do.
    Single,
    /// The flowsets of neighbours are known too.
    Network,
}

impl FlowsetShape {
    /// The smallest shape that holds `flows` flows and is decoded with probability `success`. `rows` is 3 or 4: three
    /// make the smaller table for a single decoder, four for a network.
    pub fn for_flows(flows: u64, success: Prob, rows: u8, decoder: DecoderKind, seed: u64) -> Self {
        let rows = rows.clamp(3, MOST_ROWS as u8);
        let failure = (1.0 - success.get()).max(1e-6);
        let fails = |cells: u64| match decoder {
            DecoderKind::Single => single_failure(rows, cells, flows),
            DecoderKind::Network => network_failure(rows, cells, flows),
        };
        let cells = least(u64::from(rows), Self::MOST_CELLS as u64, |cells| fails(cells) <= failure);
        let (hashes, bits) = filter(flows, failure / 10.0);
        Self::new(rows, cells as usize, hashes, bits, seed)
    }
}

/// Flows for each cell that a large table can hold, for three rows and for four.
const SINGLE_THRESHOLD: [f64; 2] = [0.8185, 0.7723];
/// Share by which small tables hold less: this factor times cells^(−2/3).
const SHIFT: [f64; 2] = [1.05, 0.82];
/// The deviation of the number of flows at which a table fails: this factor times the root of cells.
const DEVIATION: [f64; 2] = [0.5, 0.4];
/// Unknowns for each equation up to which the equations determine them: k-XORSAT's thresholds.
const NETWORK_THRESHOLD: [f64; 2] = [0.9179, 0.9768];

/// Probability that SingleDecode does not decode all flows.
pub(crate) fn single_failure(rows: u8, cells: u64, flows: u64) -> f64 {
    let at = usize::from(rows > 3);
    let (cells, flows) = (cells as f64, flows as f64);
    let most = (SINGLE_THRESHOLD[at] - SHIFT[at] * cells.powf(-2.0 / 3.0)) * cells;
    let stuck = normal_tail((most - flows) / (DEVIATION[at] * cells.sqrt()));
    (stuck + alike(rows, cells, flows)).min(1.0)
}

/// Probability that some counters are not determined, if all flows are known.
fn network_failure(rows: u8, cells: u64, flows: u64) -> f64 {
    let at = usize::from(rows > 3);
    let (cells, flows) = (cells as f64, flows as f64);
    let undetermined = normal_tail((NETWORK_THRESHOLD[at] * cells - flows) / (0.1 * cells.sqrt()));
    (undetermined + alike(rows, cells, flows)).min(1.0)
}

/// Probability that two flows share all their cells.
fn alike(rows: u8, cells: f64, flows: f64) -> f64 {
    flows * (flows - 1.0).max(0.0) / 2.0 / (cells / f64::from(rows)).powi(rows.into())
}

/// Words that a flow has bits in, at most: more would save a few bits in a hundred, and every packet would pay for it.
const MOST_WORDS: u8 = 5;

/// Hashes and bits of the smallest filter that takes any of `flows` flows for another with at most this probability.
fn filter(flows: u64, failure: f64) -> (u8, u64) {
    let sizes = (1..=MOST_WORDS).map(|words| {
        let hashes = words * BITS_IN_WORD;
        let most = u64::from(FlowsetShape::MOST_FILTER_WORDS);
        let words = least(1, most, |words| filter_failure(hashes, words * 64, flows) <= failure);
        (words * 64, hashes)
    });
    let (bits, hashes) = sizes.min().unwrap_or((64, BITS_IN_WORD));
    (hashes, bits)
}

/// The probability that a filter takes any of `flows` flows for another.
pub(crate) fn filter_failure(hashes: u8, bits: u64, flows: u64) -> f64 {
    // Late flows matter most, and the sum is smooth: this number of points is plenty.
    const POINTS: u64 = 64;
    let chance = |nth: u64| false_positive(hashes, bits, flows as f64 * (nth as f64 + 0.5) / POINTS as f64);
    let mean = (0..POINTS).map(chance).sum::<f64>() / POINTS as f64;
    -(-mean * flows as f64).exp_m1()
}

/// The probability that a filter with `flows` flows takes another flow for one of them.
pub(crate) fn false_positive(hashes: u8, bits: u64, flows: f64) -> f64 {
    const WORD: f64 = 64.0;
    let words = f64::from(hashes / BITS_IN_WORD);
    let flows_in_word = words * flows * WORD / bits as f64;
    if flows_in_word > WORD {
        return 1.0;
    }
    // A word has flows as a Poisson distribution says; what is far out adds nothing.
    let most = (flows_in_word + 12.0 * flows_in_word.sqrt() + 20.0) as u32;
    let (mut chance, mut has) = ((-flows_in_word).exp(), 0.0);
    for nth in 0..=most {
        let set = 1.0 - (1.0 - 1.0 / WORD).powi((nth * u32::from(BITS_IN_WORD)) as i32);
        has += chance * set.powi(BITS_IN_WORD.into());
        chance *= flows_in_word / f64::from(nth + 1);
    }
    has.powf(words)
}

/// Probability that a normally distributed value lies more than `deviations` above its mean.
fn normal_tail(deviations: f64) -> f64 {
    let x = deviations.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let series = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    let polynomial = series.iter().fold(0.0, |sum, factor| (sum + factor) * t);
    let tail = polynomial * (-x * x).exp() / 2.0;
    if deviations >= 0.0 { tail } else { 1.0 - tail }
}

/// Smallest number between `from` and `most` for which `holds` is true; `most` if there is none.
fn least(from: u64, most: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (from, most);
    while low < high {
        let middle = low.midpoint(high);
        (low, high) = if holds(middle) { (low, middle) } else { (middle + 1, high) };
    }
    low
}

#[cfg(test)]
mod tests {
    use super::super::tests::key;
    use super::super::{Flowset, FlowsetShape};
    use super::*;

    const NINETY_NINE: Prob = Prob::literal(0.99);

    #[test]
    fn a_filter_errs_as_often_as_the_formula_says() {
        let (hashes, bits, flows) = (12, 64 * 400, 2_000);
        let mut flowset = Flowset::new(FlowsetShape::new(3, 3_000, hashes, bits, 5));
        (0..flows).for_each(|nth| flowset.insert(&key(nth)));
        let trials = 200_000;
        let wrong = (flows..flows + trials).filter(|nth| flowset.may_have(&key(*nth))).count() as f64 / trials as f64;
        let expected = false_positive(hashes, bits, flows as f64);
        assert!((wrong / expected - 1.0).abs() < 0.15, "{wrong:e}, expected {expected:e}");
        let anywhere = (1.0 - (-f64::from(hashes) * flows as f64 / bits as f64).exp()).powi(hashes.into());
        assert!(expected > anywhere && expected < 3.0 * anywhere, "{expected:e}, {anywhere:e}");
    }

    #[test]
    fn flowsets_of_the_size_for_99_percent_are_decoded_about_as_often() {
        for (rows, flows) in [(3, 50), (3, 1_000), (4, 50), (4, 1_000)] {
            let shape = FlowsetShape::for_flows(flows, NINETY_NINE, rows, DecoderKind::Single, 0);
            let trials = 2_000;
            let failed = (0..trials).filter(|seed| {
                let mut flowset = Flowset::new(shape.with_seed(*seed));
                (0..flows).for_each(|nth| flowset.insert(&key(nth)));
                !flowset.decode().is_complete()
            });
            let failed = failed.count();
            assert!(failed > 2 && failed < 40, "{rows} rows, {flows} flows: {failed} of {trials} failed");
        }
    }

    #[test]
    fn a_hundred_thousand_flows_take_what_the_thesis_says() {
        let single = FlowsetShape::for_flows(100_000, NINETY_NINE, 4, DecoderKind::Single, 0);
        let network = FlowsetShape::for_flows(100_000, NINETY_NINE, 4, DecoderKind::Network, 0);
        let [single, network] = [single, network].map(|shape| shape.switch_bytes(100_000) / 1e6);
        assert!((single / 2.88 - 1.0).abs() < 0.03 && (network / 2.36 - 1.0).abs() < 0.03, "{single}, {network}");
    }

    #[test]
    fn sizes_that_make_no_sense_are_still_sizes() {
        for flows in [0, 1, u64::MAX] {
            let shape = FlowsetShape::for_flows(flows, Prob::literal(1.0), 9, DecoderKind::Single, 0);
            assert!(shape.cells() >= 4 && shape.cells() <= FlowsetShape::MOST_CELLS, "{shape}");
        }
    }

    #[test]
    fn tails_of_the_normal_distribution() {
        for (deviations, tail) in [(0.0, 0.5), (1.0, 0.158_655), (2.326_348, 0.01), (-1.0, 0.841_345)] {
            assert!((normal_tail(deviations) - tail).abs() < 1e-5);
        }
    }
}
