//! One table of commands and options: help, man page and completions all come from it.

#[cfg(not(feature = "research"))]
mod absent;
#[cfg(feature = "research")]
mod bench;
mod clock;
mod clock_live;
#[cfg(feature = "research")]
mod clock_simulate;
#[cfg(feature = "research")]
mod collective;
mod collectors;
mod connections;
mod demo;
mod fabric_map;
mod fleet;
mod groups;
mod link;
#[cfg(feature = "research")]
mod model;
mod monitor;
#[cfg(feature = "research")]
mod packetdrill;
mod rack;
mod radar;
#[cfg(feature = "research")]
mod replay;
#[cfg(feature = "research")]
mod reproduce;
#[cfg(feature = "research")]
mod selftest;
#[cfg(feature = "research")]
mod sim;
mod soak;
mod wire;

use std::fmt::Display;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};
use serde::de::{Deserialize, Deserializer, Error};
use units::Prob;

#[cfg(not(feature = "research"))]
pub(crate) use absent::{
    AbsentArgs, BenchArgs, ClockSimulateArgs, ModelCommand, PacketdrillArgs, ReplayArgs, ReproduceArgs, SelftestArgs,
    SimCommand,
};
#[cfg(feature = "research")]
pub(crate) use bench::{
    BenchArgs, BenchBusyArgs, BenchClockArgs, BenchCollectorsArgs, BenchCommand, BenchExplainArgs, BenchFleetArgs,
    BenchMeloArgs, BenchRadarArgs, BenchRecordArgs, BenchSimArgs,
};
#[cfg(feature = "research")]
pub(crate) use clock::ClockWiringArgs;
pub(crate) use clock::{
    ClockCheckArgs, ClockCommand, ClockDiffArgs, ClockGraphArgs, ClockPlanArgs, DomainsArg, HostsArg,
};
pub(crate) use clock_live::{
    ClockDemoArgs, ClockLiveCommand, ClockNowArgs, ClockReplanArgs, ClockUpArgs, ClockUpOptions,
};
#[cfg(feature = "research")]
pub(crate) use clock_simulate::ClockSimulateArgs;
#[cfg(feature = "research")]
pub(crate) use collective::{CollectiveArgs, CollectiveModelArgs, CollectiveWords};
pub(crate) use collectors::CollectorsArgs;
pub(crate) use connections::{ExplainArgs, ExplainCaptureArgs, ExplainCommand, ExplainRecordArgs};
pub(crate) use demo::DemoArgs;
pub(crate) use fabric_map::{FlowReportArgs, FlowsCollectArgs, FlowsCommand, FlowsMeterArgs, MapArgs};
pub(crate) use fleet::{
    FabricArgs, FleetCommand, FleetWatchArgs, NumberingArg, OrderBusArgs, PlanArgs, PolicyArg, RepairedArgs,
    SimulateArgs, TopologyArgs, UpgradeArgs, YearArgs,
};
pub(crate) use groups::parse;
pub(crate) use link::{ActivateArgs, CaptureArgs, DownArgs, KeepArgs, LinkCommand, NameArg, UpArgs, WatchArgs};
#[cfg(feature = "research")]
pub(crate) use model::{HpccArgs, MeloArgs, ModelCommand, Pl2Args, RdmaArgs};
pub(crate) use monitor::{MonitorArgs, MonitorCommand};
#[cfg(feature = "research")]
pub(crate) use packetdrill::{AgainstArg, PacketdrillArgs};
pub(crate) use rack::{
    RackCommand, RackDemoArgs, RackJoinArgs, RackJoinOptions, RackLeaveArgs, RackSoakArgs, RackSwitchArgs,
    RackSwitchOptions,
};
pub(crate) use radar::{
    AclArgs, ClockArgs, CollectArgs, DelayArgs, FieldArg, FlowsArgs, LossesArgs, MeterArgs, NatArg, OtherwiseArg,
    RadarCommand,
};
#[cfg(feature = "research")]
pub(crate) use replay::{ReplayArgs, ReplayCommand, ReplayLogArgs, ReplayQueuesArgs};
#[cfg(feature = "research")]
pub(crate) use reproduce::{ReproduceArgs, ScaleArg, VerdictArg};
#[cfg(feature = "research")]
pub(crate) use selftest::SelftestArgs;
#[cfg(feature = "research")]
pub(crate) use sim::{
    CcArgs, CheckedCongestion, CompareArgs, ImportArgs, LinkArgs, PfcArg, ProfileArg, ReorderArg, RunArgs,
    SimCheckArgs, SimCommand, StartUnitArg,
};
pub(crate) use soak::SoakArgs;
pub(crate) use wire::WireArgs;

/// One toolkit for packet loss in datacenter networks.
#[derive(Debug, Parser)]
#[command(name = "hitless", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    pub json: bool,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send TCP over a corrupting wire, plain and protected.
    ///
    /// The TCP is the kernel's. Takes about a minute, and needs no root where user namespaces are allowed. Changes nothing on this
    /// machine and leaves nothing behind.
    Demo(DemoArgs),

    /// Use a protected link for long, or break it on purpose.
    ///
    /// iperf3, memcached and an HTTP server use a link that loses frames in bursts, as far as they are installed. What arrives is
    /// compared with what was sent. Changes nothing on this machine and leaves nothing behind. Exit code 1 if something is wrong.
    #[command(allow_negative_numbers = true)]
    Soak(SoakArgs),

    /// Hide the losses of a real link from all that uses it.
    #[command(subcommand)]
    Link(LinkCommand),

    /// Find ports that receive corrupted frames, and protect their links.
    ///
    /// Watches counters and notifies other hosts. Observes only, unless --action says otherwise; needs no root for that.
    #[command(allow_negative_numbers = true)]
    Monitor(Box<MonitorArgs>),

    /// Name lost packets, and say why they were lost.
    #[command(subcommand)]
    Radar(RadarCommand),

    /// Run packetdrill's scripts on our TCP and on this host's.
    ///
    /// Reads the language of google/packetdrill, as far as one TCP connection needs it; a script with a line that is not
    /// understood is not applicable, never passed. Exit code 1 if a script failed, 2 if a file cannot be read.
    Packetdrill(PacketdrillArgs),

    /// Say why the TCP connections of a capture took as long as they did.
    ///
    /// Reads pcap and pcapng, also in gzip, taken at either end or between. Every nanosecond of a connection gets a cause; stalls,
    /// losses and timeouts are named, and what would help.
    Explain(Box<ExplainArgs>),

    /// Run recorded TCP connections again, segment by segment.
    ///
    /// A simulation has recorded them. It says whether each is exact, by the log's own digest, or where it differs. Exit code 1 if one differs, 2 if a log is damaged.
    /// `hitless replay queues` replays the queues of switches.
    Replay(Box<ReplayArgs>),

    /// Measure what protection costs and gains on this machine.
    ///
    /// Compares it with plain cables and other congestion controls. Brings its own traffic; nothing else need be installed.
    Bench(BenchArgs),

    /// End incast in a rack: hosts reserve before they send.
    #[command(subcommand)]
    Rack(RackCommand),

    /// Emulate a corrupting wire between two interfaces.
    #[command(allow_negative_numbers = true)]
    Wire(Box<WireArgs>),

    /// Compute the copies of a retransmission that reach a target loss.
    ///
    /// LinkGuardian's Eq. 2: the smallest N with actual^(N+1) <= target.
    #[command(allow_negative_numbers = true)]
    Copies(CopiesArgs),

    /// Compute RDMA timeouts, NIC memory, HPCC and racks.
    #[cfg_attr(feature = "research", command(subcommand))]
    Model(ModelCommand),

    /// Simulate a link, a network, or congestion controls.
    #[cfg_attr(feature = "research", command(subcommand))]
    Sim(SimCommand),

    /// Plan repairs of many links, now or for a simulated year.
    #[command(subcommand)]
    Fleet(FleetCommand),

    /// Plan and run clocks that know how wrong they may be.
    #[command(subcommand)]
    Clock(ClockCommand),

    /// Hold our results against the claims of nine papers.
    Reproduce(ReproduceArgs),

    /// Print a completion script for a shell.
    Completions { shell: clap_complete::Shell },

    /// Print the manual page of hitless or of one command.
    Man {
        /// A command such as `sim-link`; the overview if left out.
        command: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CopiesArgs {
    /// Loss of the link.
    #[arg(long, value_name = "LOSS")]
    pub actual: Prob,

    /// Loss to be reached.
    #[arg(long, value_name = "LOSS", default_value = "1e-8")]
    pub target: Prob,
}

/// A value that a file has as text, read as the command line reads it.
pub(crate) fn parsed<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map(Some).map_err(|error| D::Error::custom(format!("'{text}': {error}")))
}
