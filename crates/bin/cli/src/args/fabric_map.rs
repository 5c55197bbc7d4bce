//! Commands about the flows of a network.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use units::{Bytes, Count, Span, whole_within};

#[derive(Debug, Subcommand)]
pub(crate) enum FlowsCommand {
    /// Count every flow at the ports of a switch, slot by slot, and send the counters to a collector or a map.
    ///
    /// Lists where a slot decodes, flowsets where it does not. Name all ports of the switch: a port that nobody meters
    /// is one by which packets may leave unseen. Clocks must agree by NTP or PTP. Needs root, or CAP_NET_RAW.
    Meter(Box<FlowsMeterArgs>),

    /// Print what flow meters send, and record it for `radar map`.
    ///
    /// With --json a line for each switch and slot. With --topology, slots that a switch cannot decode are decoded together
    /// with those of its neighbours.
    Collect(Box<FlowsCollectArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct FlowsMeterArgs {
    /// The ports of the switch.
    #[arg(required = true, value_name = "IFACE")]
    pub interfaces: Vec<String>,

    /// The name that the topology has for this switch.
    #[arg(long, value_name = "NAME")]
    pub switch: String,

    /// Address at which `radar flows collect` or `radar map` listens, HOST:PORT; or redis://HOST:PORT.
    #[arg(long, value_name = "ADDR")]
    pub to: String,

    /// Seal reports with the key that the collector has: a file with 32 hexadecimal digits that its owner alone can read.
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,

    /// The certificate authority of a rediss:// server, in PEM; those of the system if not given.
    #[arg(long, value_name = "FILE")]
    pub bus_ca: Option<PathBuf>,

    /// Duration of a slot; the same at all switches.
    #[arg(long, value_name = "SPAN", default_value = "10ms")]
    pub slot: Span,

    /// Flows to expect at a port in a slot; of many more, a slot decodes only with its neighbours.
    #[arg(long, value_name = "N", default_value = "10K")]
    pub flows: Count,

    /// Limit of the memory for slots that wait to be sent.
    #[arg(long, value_name = "BYTES", default_value = "32MB")]
    pub memory: Bytes,

    /// End after S seconds; at Ctrl-C if not given.
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
}

/// Where reports of flow meters come from.
#[derive(Debug, Args)]
pub(crate) struct FlowReportArgs {
    /// Wait here for flow meters; a port alone means this machine only, 0.0.0.0:PORT all of its addresses.
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,

    /// Let meters find this collector on a Redis server: `redis://HOST:PORT`, or `rediss://` with TLS. Without --listen they
    /// come to this host's name.
    #[arg(long, value_name = "URL")]
    pub from: Option<String>,

    /// Limit of the memory for reports that wait.
    #[arg(long, value_name = "BYTES", default_value = "256MB")]
    pub memory: Bytes,

    /// Hear only flow meters with this key: a file with 32 hexadecimal digits that its owner alone can read.
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,

    /// Stop after S seconds; at Ctrl-C if not given.
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,

    /// Trust this certificate authority of a rediss:// server, in PEM, instead of those of the system.
    #[arg(long, value_name = "FILE", requires = "from")]
    pub bus_ca: Option<PathBuf>,

    /// Slots to wait for a switch that does not report.
    #[arg(long, value_name = "SLOTS", default_value_t = 20, value_parser = whole_within::<u32>(1..=1_000))]
    pub patience: u32,
}

#[derive(Debug, Args)]
pub(crate) struct FlowsCollectArgs {
    #[command(flatten)]
    pub reports: FlowReportArgs,

    /// Switches and links, as for `hitless fleet`: CSV with ports, or TOML.
    #[arg(long, value_name = "FILE")]
    pub topology: Option<PathBuf>,

    /// Write all reports to this file, for `radar map`.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct MapArgs {
    /// A recording of `radar flows collect`; `-` is standard input.
    #[arg(required_unless_present_any = ["listen", "from"], conflicts_with_all = ["listen", "from"])]
    pub recording: Option<PathBuf>,

    #[command(flatten)]
    pub reports: FlowReportArgs,

    /// Switches and links, as for `hitless fleet`: CSV with ports, or TOML.
    #[arg(long, value_name = "FILE")]
    pub topology: PathBuf,

    /// Ports by which packets should leave: lines `switch,prefix,ports`; else the shortest paths.
    #[arg(long, value_name = "FILE")]
    pub routes: Option<PathBuf>,

    /// Write a page: the fabric over time, with findings and their flows.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// The longest time that a packet takes from one end of a link to the other.
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    pub way: Span,

    /// Each switch's clock is wrong by at most this.
    #[arg(long, value_name = "TIME", default_value = "100us")]
    pub clock_error: Span,

    /// Flows of a finding to list at most; --json has all.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole_within::<usize>(..))]
    pub top: usize,
}
