//! `hitless packetdrill`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tcp::LinuxVersion;

#[derive(Debug, Args)]
pub(crate) struct PacketdrillArgs {
    /// Scripts (.pkt), and folders that are searched for them.
    #[arg(value_name = "SCRIPT|DIR", required_unless_present = "random", conflicts_with = "random")]
    pub scripts: Vec<PathBuf>,

    /// TCP that the scripts are run against: ours in simulated time, this host's in real time, or one after the other.
    #[arg(long, value_enum, default_value = "machine")]
    pub against: AgainstArg,

    /// Kernel that our TCP behaves like: linux-4.4, linux-5.4 or linux.
    #[arg(long, value_name = "PROFILE", default_value = "linux")]
    pub profile: LinuxVersion,

    /// Instead of scripts: make this many at random, and compare what both send, segment by segment. Needs --against both.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub random: Option<u64>,

    /// Seed of random scripts [default: 1].
    #[arg(long)]
    pub seed: Option<u64>,

    /// Folder for random scripts on which both differ [default: this folder].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AgainstArg {
    /// Our TCP.
    Machine,
    /// This host's TCP, through a TUN device in a network namespace of its own; without root where user namespaces are
    /// allowed.
    Kernel,
    /// Both.
    Both,
}
