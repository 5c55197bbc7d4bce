//! A collective and a bad cable: the same words for the model and for the simulation.

use std::path::PathBuf;

use clap::Args;
use collective::model::Remedy;
use collective::{CollectiveAlgorithm, CollectivePattern};
use results::remedies::{NetworkShape, RankOrder};
use units::{Bytes, Prob, Rate, Span, whole_within};

#[derive(Debug, Args)]
pub(crate) struct CollectiveArgs {
    #[command(flatten)]
    pub words: CollectiveWords,

    /// Iterations under each remedy.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = whole_within::<u32>(1..=100_000_000))]
    pub iterations: u32,

    /// Simulate also iterations that lose nothing, which are counted otherwise. The result is the same.
    #[arg(long)]
    pub exact: bool,

    /// Print the scenario of the first remedy instead, to change it and run it with `sim run`.
    #[arg(long)]
    pub scenario: bool,

    /// Write a page there: iterations over time, their tail by remedy, the accused links.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Runs at the same time; as many as there are cores if not given. The result is the same for any number.
    #[arg(long, value_name = "N", value_parser = whole_within::<u16>(1..))]
    pub jobs: Option<u16>,
}

#[derive(Debug, Args)]
pub(crate) struct CollectiveModelArgs {
    #[command(flatten)]
    pub words: CollectiveWords,

    /// Simulate this many iterations under each remedy as well.
    #[arg(long, value_name = "ITERATIONS", value_parser = whole_within::<u32>(1..=100_000_000))]
    pub simulate: Option<u32>,

    /// Runs of the simulation at the same time; as many as there are cores if not given.
    #[arg(long, value_name = "N", requires = "simulate", value_parser = whole_within::<u16>(1..))]
    pub jobs: Option<u16>,

    /// Seed of the simulation.
    #[arg(long, default_value_t = 1, requires = "simulate")]
    pub seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct CollectiveWords {
    /// Ranks, each a host.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = whole_within::<u32>(2..=4096))]
    pub ranks: u32,

    /// Bytes as nccl-tests count them: of all-gather and reduce-scatter, the whole array.
    #[arg(long, value_name = "BYTES", default_value = "4MB")]
    pub size: Bytes,

    /// all-reduce, all-gather, reduce-scatter, all-to-all, broadcast or pipeline.
    #[arg(long, default_value = "all-reduce")]
    pub pattern: CollectivePattern,

    /// ring, halving-doubling, halving-doubling-farthest, tree or direct [default: ring; of all-to-all direct].
    #[arg(long)]
    pub algorithm: Option<CollectiveAlgorithm>,

    /// Rings or trees side by side, each with its share of the bytes.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_within::<u16>(1..=64))]
    pub channels: u16,

    /// Parts of a step that are sent on as soon as they have come.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_within::<u32>(1..=65_536))]
    pub pieces: u32,

    /// Network, as large as the ranks need: one-switch, leaf-spine or fat-tree.
    #[arg(long, value_name = "SHAPE", default_value = "leaf-spine")]
    pub topology: NetworkShape,

    /// Hosts of the ranks: as-given, or spread over the leaves in turn.
    #[arg(long, default_value = "as-given")]
    pub placement: RankOrder,

    /// Rate of all links.
    #[arg(long, default_value = "400G")]
    pub rate: Rate,

    /// Most payload of a packet in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 4_096, value_parser = whole_within::<u32>(256..=4_096))]
    pub mtu: u32,

    /// Share of frames that the bad link corrupts, in one direction.
    #[arg(long, value_name = "SHARE", default_value = "1e-4")]
    pub loss: Prob,

    /// The bad link, from the first node to the second [default: from h0 to its switch, such as h0-leaf0].
    #[arg(long, value_name = "A-B")]
    pub link: Option<String>,

    /// Remedies, separated by commas: none, dummies, irn, melo, ordered, nonblocking, uec-llr.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values_t = Remedy::ALL)]
    pub remedy: Vec<Remedy>,

    /// Timeout of queue pairs; irn has 320 µs and melo 1 ms. NCCL's default is 4.29 s, a NIC's often 67.1 ms.
    #[arg(long, value_name = "TIME", default_value = "4.294967296s")]
    pub timeout: Span,

    /// A queue pair for each transfer, instead of one for each peer and channel.
    #[arg(long)]
    pub per_transfer: bool,

    /// A rank begins its next iteration when it has its own data, and does not wait for the others.
    #[arg(long)]
    pub no_barrier: bool,

    /// Time that a rank computes between two iterations.
    #[arg(long, value_name = "TIME", default_value = "0us")]
    pub compute: Span,
}
