//! `hitless wire`.

use std::path::PathBuf;

use clap::Args;
use units::{Bytes, Prob, Rate, Span, whole_within};

#[derive(Debug, Args)]
pub(crate) struct WireArgs {
    /// One of the two interfaces.
    #[arg(value_name = "A")]
    pub a: String,

    /// The other one.
    #[arg(value_name = "B")]
    pub b: String,

    /// Share of frames corrupted from A to B, and from B to A unless --reverse-loss says otherwise.
    #[arg(long, default_value = "0")]
    pub loss: Prob,

    /// Share of frames corrupted from B to A.
    #[arg(long, value_name = "LOSS")]
    pub reverse_loss: Option<Prob>,

    /// Losses come in bursts of this many frames on average.
    #[arg(long, value_name = "FRAMES")]
    pub burst: Option<f64>,

    /// Instead of --loss: share of bits in error, so that long frames suffer more.
    #[arg(long, value_name = "RATE", conflicts_with_all = ["loss", "reverse_loss", "burst"])]
    pub bit_errors: Option<Prob>,

    /// Instead of the four above: a TOML file of loss models by direction and time, as `sim link` reads.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["loss", "reverse_loss", "burst", "bit_errors"])]
    pub faults: Option<PathBuf>,

    /// Rate of the wire, each way.
    #[arg(long)]
    pub rate: Option<Rate>,

    /// Delay from A to B, and from B to A unless --reverse-delay says otherwise.
    #[arg(long, value_name = "TIME", default_value = "0ns")]
    pub delay: Span,

    /// Delay from B to A.
    #[arg(long, value_name = "TIME")]
    pub reverse_delay: Option<Span>,

    /// Limit of the queue for a wire with a rate.
    #[arg(long, value_name = "BYTES", default_value = "256KB")]
    pub queue: Bytes,

    /// Pass corrupted frames on with a bit flipped, as a wire does whose check cannot be trusted.
    #[arg(long)]
    pub flip: bool,

    /// Keep corrupted frames here, as pcapng.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// Keep the counters of both ports here, in files named as in /sys/class/net.
    #[arg(long, value_name = "DIR")]
    pub counters: Option<PathBuf>,

    /// Be a switch that repeats: RoCEv2 NAKs that come in at A leave at B with N copies.
    ///
    /// The repeater of "Packet corruption in RDMA" §5.1, as a bump in the wire: this machine stands between RDMA hosts,
    /// behind A, and the fabric, behind B; with `--loss 0`, as it is by default, it is a bridge that repeats. RDMA cards
    /// bypass the kernel of the host that they are in, so on that host there is nothing to see: cables from the cards
    /// must lead to this machine's interface A, and its B to the switch. Losses, if any, are those between here and B:
    /// each copy is corrupted or not by itself.
    #[arg(long, value_name = "N", value_parser = whole_within::<u32>(..=64))]
    pub repeat_naks: Option<u32>,

    /// Be a switch that repeats packets: the one that a NAK to the hosts asked for leaves with N copies when it comes in at
    /// A.
    ///
    /// The first request with the PSN of the NAK is taken for it, whichever its connection: packets name only the queue
    /// pair that they are for. A malformed packet is counted and passes as it is.
    #[arg(long, alias = "repeat-naked", value_name = "N", value_parser = whole_within::<u32>(..=64))]
    pub repeat_requested: Option<u32>,

    /// Let the kernel do it: independent loss and a rate only, at the kernel's speed.
    #[arg(long, conflicts_with_all = ["burst", "bit_errors", "faults", "flip", "log", "delay", "reverse_delay", "repeat_naks", "repeat_requested"])]
    pub in_kernel: bool,

    /// End after so long.
    #[arg(long = "for", value_name = "TIME")]
    pub duration: Option<Span>,

    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}
