//! Times without losses. With S bytes, n ranks, c pieces, w the wire time of a step's bytes:
//!
//! | pattern, algorithm | time |
//! | --- | --- |
//! | ring of s steps, 2(n−1) or n−1 | (s − 1)·max(w, w/c + α) + w + α; for c = 1 the sum of w + α over the worst s hops in turn |
//! | halving and doubling | Σ over steps of the wire time of S/2^i, and α of the pairs; twice for an all-reduce |
//! | all-to-all | (n − 1)·w + α |
//! | two trees | 2(W + log2(n)·(W/2c + α)), W the wire time of S; half of it for a broadcast |
//! | chain, and there and back | (n − 1)(p + α) + (c − 1)p, p = W/c; 2(n − 1)(p + α) + (c − 1)p |

use super::ModelNetwork;
use crate::shape::{CollectiveAlgorithm, CollectivePattern, CollectiveShape};

pub(super) fn without_loss(shape: &CollectiveShape, network: &ModelNetwork) -> f64 {
    match (shape.algorithm, shape.pattern) {
        (CollectiveAlgorithm::Ring, CollectivePattern::Broadcast | CollectivePattern::Pipeline) => {
            chain(shape, network)
        }
        (CollectiveAlgorithm::Ring, _) => ring(shape, network),
        (CollectiveAlgorithm::HalvingNearest | CollectiveAlgorithm::HalvingFarthest, _) => halving(shape, network),
        (CollectiveAlgorithm::Tree, _) => trees(shape, network),
        (CollectiveAlgorithm::Direct, _) => direct(shape, network),
    }
}

/// Steps of a ring.
pub(super) fn ring_steps(shape: &CollectiveShape) -> u32 {
    let once = shape.ranks - 1;
    if shape.pattern == CollectivePattern::AllReduce { 2 * once } else { once }
}

/// α of each hop of the ring.
fn ring_alphas(shape: &CollectiveShape, network: &ModelNetwork) -> Vec<f64> {
    (0..shape.ranks).map(|rank| network.alpha_us(rank, (rank + 1) % shape.ranks)).collect()
}

fn ring(shape: &CollectiveShape, network: &ModelNetwork) -> f64 {
    let steps = ring_steps(shape);
    let chunk = shape.size as f64 / f64::from(shape.ranks);
    let alphas = ring_alphas(shape, network);
    let messages = f64::from(shape.pieces) * f64::from(shape.channels);
    let step = network.message_us(chunk / messages) * messages;
    if shape.pieces == 1 {
        // A chunk goes round: the slowest begins where the fewest fast hops are left.
        let hops = |first: usize| (first..first + steps as usize).map(|hop| step + alphas[hop % alphas.len()]).sum();
        return (0..alphas.len()).map(hops).fold(0.0, f64::max);
    }
    let mean = alphas.iter().sum::<f64>() / alphas.len() as f64;
    let last = alphas.iter().copied().fold(0.0, f64::max);
    f64::from(steps - 1) * step.max(step / f64::from(shape.pieces) + mean) + step + last
}

/// Largest α between ranks at this distance, as pairs or as neighbours of a tree.
fn pair_alpha(shape: &CollectiveShape, network: &ModelNetwork, distance: u32) -> f64 {
    let pairs = (0..shape.ranks).filter(|rank| rank ^ distance < shape.ranks);
    pairs.map(|rank| network.alpha_us(rank, rank ^ distance)).fold(0.0, f64::max)
}

fn halving(shape: &CollectiveShape, network: &ModelNetwork) -> f64 {
    let rounds = shape.ranks.ilog2();
    let step = |round: u32| {
        // The first step of a reduction exchanges half of the bytes.
        let bytes = shape.size as f64 / f64::from(1_u32 << (round + 1));
        let distance = match shape.algorithm {
            CollectiveAlgorithm::HalvingFarthest => shape.ranks >> (round + 1),
            _ => 1 << round,
        };
        let channels = f64::from(shape.channels);
        network.message_us(bytes / channels) * channels + pair_alpha(shape, network, distance)
    };
    let once: f64 = (0..rounds).map(step).sum();
    if shape.pattern == CollectivePattern::AllReduce { 2.0 * once } else { once }
}

fn direct(shape: &CollectiveShape, network: &ModelNetwork) -> f64 {
    let bytes = shape.size as f64 / f64::from(shape.ranks) / f64::from(shape.channels);
    let message = network.message_us(bytes) * f64::from(shape.channels);
    f64::from(shape.ranks - 1) * message + largest_alpha(shape, network)
}

fn largest_alpha(shape: &CollectiveShape, network: &ModelNetwork) -> f64 {
    (1..shape.ranks).map(|rank| network.alpha_us(0, rank)).fold(0.0, f64::max)
}

fn trees(shape: &CollectiveShape, network: &ModelNetwork) -> f64 {
    let pieces = f64::from(shape.pieces) * 2.0 * f64::from(shape.channels);
    let piece = network.message_us(shape.size as f64 / pieces);
    let all = piece * pieces;
    let depth = f64::from(shape.ranks).log2();
    let once = all + depth * (all / (2.0 * f64::from(shape.pieces)) + largest_alpha(shape, network));
    if shape.pattern == CollectivePattern::Broadcast { once } else { 2.0 * once }
}

fn chain(shape: &CollectiveShape, network: &ModelNetwork) -> f64 {
    let messages = f64::from(shape.pieces) * f64::from(shape.channels);
    let piece = network.message_us(shape.size as f64 / messages) * f64::from(shape.channels);
    let hops: f64 = (1..shape.ranks).map(|rank| piece + network.alpha_us(rank - 1, rank)).sum();
    let ways = if shape.pattern == CollectivePattern::Pipeline { 2.0 } else { 1.0 };
    ways * hops + f64::from(shape.pieces - 1) * piece
}
