//! What can be asked about slow connections.

use std::path::PathBuf;

use clap::Args;
use explain::FlowFilter;
use units::whole_within;

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A capture: pcap or pcapng, also in gzip; `-` is standard input.
    pub capture: PathBuf,

    /// A capture of the other end, of the same time: losses are then facts. Clocks need not agree.
    #[arg(long, value_name = "CAPTURE2")]
    pub other_end: Option<PathBuf>,

    /// Only these connections: ADDRESS, ADDRESS/BITS, :PORT or ADDRESS:PORT, several joined by `and`.
    #[arg(long, value_name = "EXPR")]
    pub flow: Option<FlowFilter>,

    /// Only the N connections that took longest, idle time not counted; the slowest first.
    #[arg(long, value_name = "N", value_parser = whole_within::<usize>(1..))]
    pub slowest: Option<usize>,

    /// Ticks of the senders' clocks in a second (CONFIG_HZ): 250 and 1000 are common.
    #[arg(long, value_name = "N", default_value_t = 250, value_parser = whole_within::<u32>(1..=10_000))]
    pub hz: u32,

    /// Write a page with charts of the slowest connections.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
