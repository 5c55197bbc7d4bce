//! `hitless soak`.

use std::path::PathBuf;

use clap::Args;
use units::{Bytes, Prob, Span};

#[derive(Debug, Args)]
pub(crate) struct SoakArgs {
    /// The fault bench: random bad days (daemons killed and stopped, wires cut, forged frames, …), and an account of every
    /// datagram. Exit code 1 if a loss is neither counted nor allowed.
    #[arg(long, conflicts_with_all = ["loss", "burst", "rate", "mode", "queue"])]
    pub faults: bool,

    /// Only these kinds of bad days, separated by commas.
    #[arg(long, value_name = "KINDS", value_delimiter = ',', requires = "faults")]
    pub kinds: Vec<String>,

    /// Duration of each bad day of a kind that lasts, such as forged frames; at random if not given.
    #[arg(long, value_name = "TIME", requires = "faults")]
    pub lasting: Option<Span>,

    /// Keep what the daemons say in this directory.
    #[arg(long, value_name = "DIR", requires = "faults")]
    pub logs: Option<PathBuf>,

    /// Duration of the soak [default: 1h; 10m with --faults].
    #[arg(long = "for", value_name = "TIME")]
    pub duration: Option<Span>,

    /// Share of frames that the wire corrupts, each way.
    #[arg(long, default_value = "1e-3")]
    pub loss: Prob,

    /// Losses come in bursts of this many frames on average; 1 for losses that are independent of each other.
    #[arg(long, value_name = "FRAMES", default_value_t = 4.0)]
    pub burst: f64,

    /// Rate of the wire; `none` for as fast as the machine is.
    #[arg(long, default_value = "1G", value_name = "RATE|none")]
    pub rate: String,

    /// ordered, nonblocking or auto.
    #[arg(long, default_value = "ordered")]
    pub mode: String,

    /// Access to the host: auto, tap or veth.
    #[arg(long, default_value = "auto")]
    pub backend: String,

    /// Do without root even where there is root.
    #[arg(long)]
    pub rootless: bool,

    /// Limit of the queue for the wire at each end.
    #[arg(long, value_name = "BYTES", default_value = "4MB")]
    pub queue: Bytes,

    /// Seed of the losses in bursts, or of the bad days.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}
