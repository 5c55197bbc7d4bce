//! `hitless clock` on real interfaces: up, now, status, replan, down, demo.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Deserialize;
use units::{Span, whole_within};

use super::parsed;

#[derive(Debug, Subcommand)]
pub(crate) enum ClockLiveCommand {
    /// Be a node of a plan: keep the time on real interfaces, and know by how much it may be wrong.
    ///
    /// Needs CAP_NET_RAW. The node's time is a clock of its own over CLOCK_MONOTONIC_RAW: the system's is set only if
    /// --set-system-clock says so. Programs read it from a page of shared memory.
    Up(Box<ClockUpArgs>),

    /// The time of a clock that runs here: earliest, latest, ε.
    Now(ClockNowArgs),

    /// Show the state of a clock that runs here.
    Status(ClockNameArg),

    /// Give a clock that runs here another plan, or the same again: a node that turned goes back to its parent.
    ///
    /// All nodes of a plan may be given it in any order. Given to the new root first, nobody misses a wave.
    Replan(ClockReplanArgs),

    /// End a clock that runs here.
    Down(ClockNameArg),

    /// See it: eight clocks in network namespaces while links, nodes, a domain and the root are killed, and frames are forged.
    ///
    /// Needs no root where user namespaces are allowed, changes nothing on this machine and leaves nothing behind. The clocks
    /// drift by known amounts, so it is known how wrong each really is. ptp4l runs beside it on the same plan if it is
    /// installed. Exit code 1 if a clock was wrong, or if after a stop and a plan there was not one root that all follow.
    Demo(ClockDemoArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ClockNameArg {
    /// The node; may be left out if there is only one.
    pub node: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ClockReplanArgs {
    /// The plan, as `hitless clock plan --json` prints it.
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,

    #[command(flatten)]
    pub which: ClockNameArg,
}

#[derive(Debug, Args)]
pub(crate) struct ClockUpArgs {
    #[command(flatten)]
    pub options: ClockUpOptions,

    /// A TOML file with any of the above options; options on the command line override it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Go on in the background once it has begun.
    #[arg(long)]
    pub background: bool,
}

units::options! {
    #[derive(Clone, Debug, Default, Args, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
    pub(crate) struct ClockUpOptions {
        /// The plan, as `hitless clock plan --json` prints it.
        #[arg(long, value_name = "FILE")]
        pub plan: Option<PathBuf>,

        /// Node of the plan that this host is.
        #[arg(long, value_name = "NAME")]
        pub node: Option<String>,

        /// The interface that leads to a neighbour: one for the parent, the backup parent, and each node that listens to this one.
        #[arg(long, value_name = "NEIGHBOUR=IFACE")]
        pub link: Vec<String>,

        /// Time between waves, the same at all nodes; a node turns to its backup parent after two and a half of them
        /// [default: 1ms].
        #[arg(long, value_name = "TIME")]
        #[serde(deserialize_with = "parsed")]
        pub interval: Option<Span>,

        /// File of the page that programs read; in the run directory if not given.
        #[arg(long, value_name = "FILE")]
        pub page: Option<PathBuf>,

        /// Seal waves with the key in this file, 32 hexadecimal digits, the same at all nodes; only its owner may read it. Nothing without
        /// a seal is believed.
        #[arg(long, value_name = "FILE")]
        pub key: Option<PathBuf>,

        /// Serve metrics for Prometheus and /healthz here; a port alone means this machine only.
        #[arg(long, value_name = "ADDR:PORT")]
        pub metrics: Option<String>,

        /// Let the system's clock follow this one. Needs CAP_SYS_TIME, and that no other program (chrony, ntpd) sets it; not for the root,
        /// whose time nobody else knows better.
        #[arg(long)]
        pub set_system_clock: bool,

        /// Let the oscillator run faster than the machine's by this many parts per billion, to try out drift; at most 100000.
        #[arg(long, value_name = "PPB", allow_hyphen_values = true)]
        pub oscillator: Option<i64>,
    }
}

#[derive(Debug, Args)]
pub(crate) struct ClockNowArgs {
    #[command(flatten)]
    pub which: ClockNameArg,

    /// Read this page, wherever its daemon is.
    #[arg(long, value_name = "FILE", conflicts_with = "node")]
    pub page: Option<PathBuf>,

    /// Go on, with a line of JSON each time, until Ctrl-C.
    #[arg(long)]
    pub follow: bool,

    /// Time between two lines of --follow.
    #[arg(long, value_name = "TIME", default_value = "100ms", requires = "follow")]
    pub every: Span,

    /// Duration of --follow; until Ctrl-C if not given.
    #[arg(long = "for", value_name = "TIME", requires = "follow")]
    pub duration: Option<Span>,
}

#[derive(Debug, Args)]
pub(crate) struct ClockDemoArgs {
    /// Links, nodes, domains and roots to kill, and frames to forge, in turn.
    #[arg(long, default_value_t = 20, value_parser = whole_within::<u32>(0..=10_000))]
    pub kills: u32,

    /// Number of stops of the root, for 50, 250 and 1000 ms in turn, with a plan for the old root, the new one or a third
    /// afterwards.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole_within::<u32>(0..=10_000))]
    pub stops: u32,

    /// Time at the start in which nothing is killed: ε when idle is measured then.
    #[arg(long, value_name = "TIME", default_value = "3s")]
    pub idle: Span,

    /// Time between waves.
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    pub interval: Span,

    /// Seal waves with a key made for it: frames that are forged change nothing then.
    #[arg(long)]
    pub key: bool,

    /// Write a page with charts.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Do not run ptp4l beside it, even if it is installed.
    #[arg(long)]
    pub without_ptp4l: bool,

    /// Do without root even where there is root.
    #[arg(long)]
    pub rootless: bool,
}
