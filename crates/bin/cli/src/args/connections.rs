//! Commands about slow connections.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use explain::FlowFilter;
use units::{Bytes, Span, whole_within};

/// A capture, or a command.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ExplainArgs {
    #[command(subcommand)]
    pub command: Option<ExplainCommand>,

    #[command(flatten)]
    pub capture: Option<ExplainCaptureArgs>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExplainCommand {
    /// Record an interface's TCP, and what this kernel says of its connections meanwhile.
    ///
    /// Headers, calls of applications, windows, phases and retransmissions go into one file, which `hitless explain FILE` reads:
    /// "application" and "window" are then facts and not inferences. Needs root.
    Record(ExplainRecordArgs),

    /// Hold what is said of captures against what happened, with this host's own TCP.
    ///
    /// Makes each way to slow a connection down between two namespaces of its own, several at a time, over a wire that loses
    /// what a script says; captures at both ends, explains the captures, and compares with the script, with the kernel's counters
    /// and with the wire's log. Exit code 1 if something was wrong.
    Selftest(super::SelftestArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ExplainRecordArgs {
    /// The interface whose connections are recorded.
    #[arg(value_name = "IFACE")]
    pub interface: String,

    /// A new pcapng file for the capture.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,

    /// Duration of the capture; until Ctrl-C if not given.
    #[arg(long = "for", value_name = "TIME")]
    pub lasts: Option<Span>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainCaptureArgs {
    /// A capture: pcap or pcapng, also in gzip; `-` is standard input.
    pub capture: PathBuf,

    /// A capture of the other end, of the same time: losses are then facts. Clocks need not agree.
    #[arg(long, value_name = "CAPTURE2")]
    pub other_end: Option<PathBuf>,

    /// A recording of `hitless explain record` at the same time: what its kernel said is used with CAPTURE. Not needed for what
    /// CAPTURE itself contains.
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,

    /// Only these connections: ADDRESS, ADDRESS/BITS, :PORT or ADDRESS:PORT, several joined by `and`.
    #[arg(long, value_name = "EXPR")]
    pub flow: Option<FlowFilter>,

    /// Only the N connections that took longest, idle time not counted; the slowest first.
    #[arg(long, value_name = "N", value_parser = whole_within::<usize>(1..))]
    pub slowest: Option<usize>,

    /// Limit of the memory for connections; what falls out is counted.
    #[arg(long, value_name = "BYTES", default_value = "1GB")]
    pub memory: Bytes,

    /// Ticks of the senders' clocks in a second (CONFIG_HZ): 250 and 1000 are common.
    #[arg(long, value_name = "N", default_value_t = 250, value_parser = whole_within::<u32>(1..=10_000))]
    pub hz: u32,

    /// Write a page with charts of the slowest connections.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
