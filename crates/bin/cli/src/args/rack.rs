//! `hitless rack`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use reserve::SchedulerKind;
use serde::Deserialize;
use units::{Bytes, Prob, Rate, Span, whole_within};

use super::{WatchArgs, parsed};

#[derive(Debug, Subcommand)]
pub(crate) enum RackCommand {
    /// Be the switch between several interfaces, each with a rate and a buffer of its own; runs until ended.
    ///
    /// It learns addresses, serves two classes (802.1p priorities from 4 on go first, at ports that are trusted with them) and
    /// passes whatever Ethernet carries: VLANs, multicast, spanning tree, LLDP. Frames longer than a port's MTU are refused and counted.
    Switch(Box<RackSwitchArgs>),

    /// Join a rack: gives the host a stand-in for the interface of its cable, which asks the switch before it sends; runs until
    /// ended.
    ///
    /// TCP and UDP of the kernel go through it as they are. What exceeds the host's share is refused in the host's own queue. A
    /// switch that does not answer gets frames as they are, and `rack status` says that nothing is guaranteed.
    Join(Box<RackJoinArgs>),

    /// See it: GETs of 4 KiB beside hosts that all send to the client's host at once, around a switch in namespaces.
    ///
    /// Needs no root where user namespaces are allowed, changes nothing on this machine and leaves nothing behind. Uses
    /// memcached if it is installed.
    Demo(RackDemoArgs),

    /// Wear it out: a rack in namespaces under load, while daemons are killed and a host leaves and joins again.
    ///
    /// Exit code 1 if something does not hold: frames dropped at the switch, datagrams twice or unaccounted for, others slowed
    /// down by a kill for more than 200 ms, memory that grows.
    Soak(RackSoakArgs),

    /// Show the state of a switch, or of a host that has joined.
    Status(RackNameArg),

    /// Every counter of a switch, by port, or of a host that has joined.
    Counters(RackNameArg),

    /// A view of a switch, or of a host that has joined, that refreshes; q ends it.
    Watch(WatchArgs),

    /// End a switch, or take a host out of its rack and put back what was changed for it.
    Leave(RackLeaveArgs),
}

/// Scheduler, which decides when a burst may go.
#[derive(Clone, Copy, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SchedulerArg {
    /// Counters as PL2 prints them: counted down when a frame arrives; no bound on what waits.
    Paper,
    /// Counters that are counted down when a frame leaves or is dropped.
    Departure,
    /// A time for each port from which on it is free.
    Clock,
    /// A time for each port from which on it is free; requests are answered shortly before their slot, in turn over hosts.
    Late,
}

impl From<SchedulerArg> for SchedulerKind {
    fn from(arg: SchedulerArg) -> Self {
        match arg {
            SchedulerArg::Paper => Self::Paper,
            SchedulerArg::Departure => Self::Departure,
            SchedulerArg::Clock => Self::Clock,
            SchedulerArg::Late => Self::Late,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RackNameArg {
    /// Name of the daemon; may be left out if there is only one.
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RackLeaveArgs {
    #[command(flatten)]
    pub which: RackNameArg,

    /// The file that the host joined with: its name is taken from there.
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    pub config: Option<PathBuf>,

    /// For a service manager: do nothing if the host's service is about to be started again.
    #[arg(long)]
    pub unless_restarting: bool,
}

/// Options of a daemon's start, beside its task.
#[derive(Debug, Args)]
pub(crate) struct RackStartArgs {
    /// A TOML file with any of the above options; options on the command line override it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Go on in the background once it has begun.
    #[arg(long)]
    pub background: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RackSwitchArgs {
    #[command(flatten)]
    pub options: RackSwitchOptions,

    #[command(flatten)]
    pub start: RackStartArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RackJoinArgs {
    #[command(flatten)]
    pub options: RackJoinOptions,

    #[command(flatten)]
    pub start: RackStartArgs,
}

units::options! {
    #[derive(Clone, Debug, Default, Args, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
    pub(crate) struct RackSwitchOptions {
        /// The interfaces that become its ports.
        #[arg(value_name = "IFACE", num_args = 2..)]
        pub interfaces: Vec<String>,

        /// Rate at which frames leave each port.
        #[arg(long)]
        #[serde(deserialize_with = "parsed")]
        pub rate: Option<Rate>,

        /// Limit of each port's queue, in bytes of the wire: a full frame of 1500 B takes 1538 [default: 128KB].
        #[arg(long, value_name = "BYTES")]
        #[serde(deserialize_with = "parsed")]
        pub buffer: Option<Bytes>,

        /// Let hosts reserve, and decide so when they may send; without it nobody can reserve.
        #[arg(long, value_enum)]
        pub scheduler: Option<SchedulerArg>,

        /// Reservations that each host may have open; one for each destination if not given.
        #[arg(long)]
        pub contexts: Option<u16>,

        /// Full frames that a reservation may be for [default: 4].
        #[arg(long)]
        pub k: Option<u8>,

        /// Part of each port that is kept for what nobody reserved, such as 10%; more than that is dropped. Without it such
        /// frames take their slots from those who reserve.
        #[arg(long, value_name = "SHARE")]
        #[serde(deserialize_with = "parsed")]
        pub ingress_share: Option<Prob>,

        /// Name of the switch [default: switch0].
        #[arg(long)]
        pub name: Option<String>,

        /// An address that belongs to a port, and is not believed at another one; again for each.
        #[arg(long, value_name = "PORT=MAC")]
        pub bind: Vec<String>,

        /// A port whose 802.1p priorities count: frames of 4 and above leave before all else. Again for each.
        #[arg(long, value_name = "PORT")]
        pub trust_priority: Vec<String>,

        /// An address that has been silent for this long is forgotten [default: 300s].
        #[arg(long, value_name = "TIME")]
        #[serde(deserialize_with = "parsed")]
        pub aging: Option<Span>,

        /// Serve metrics for Prometheus here; a port alone means this machine only.
        #[arg(long, value_name = "ADDR:PORT")]
        pub metrics: Option<String>,
    }
}

units::options! {
    #[derive(Clone, Debug, Default, Args, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
    pub(crate) struct RackJoinOptions {
        /// The interface that the cable to the switch is in.
        #[arg(value_name = "IFACE")]
        pub interface: Option<String>,

        /// The stand-in's name [default: rack0].
        #[arg(long)]
        pub name: Option<String>,

        /// Rate of the cable; what the interface says if not given.
        #[arg(long)]
        #[serde(deserialize_with = "parsed")]
        pub rate: Option<Rate>,

        /// Scheduler, the same as at the switch [default: late].
        #[arg(long, value_enum)]
        pub scheduler: Option<SchedulerArg>,

        /// Reservations that may be open, as at the switch; one for each destination if not given.
        #[arg(long)]
        pub contexts: Option<u16>,

        /// Full frames that a reservation may be for, as at the switch [default: 4].
        #[arg(long)]
        pub k: Option<u8>,

        /// MTU of the stand-in; what a mark of 21 bytes leaves of the interface's if not given.
        #[arg(long)]
        pub mtu: Option<u32>,

        /// Access to the kernel: auto, tap or veth [default: auto].
        #[arg(long)]
        pub backend: Option<String>,

        /// Move name, settings, addresses, routes and the place in a bridge to the stand-in, and back at the end.
        #[arg(long)]
        pub take_over: bool,

        /// With --take-over: leave the interface its name; refused if rules of the packet filter name it.
        #[arg(long)]
        pub keep_name: bool,

        /// Wait for the interface if it is down or absent, at the start and whenever it goes away.
        #[arg(long)]
        pub wait: bool,

        /// Serve metrics for Prometheus here; a port alone means this machine only.
        #[arg(long, value_name = "ADDR:PORT")]
        pub metrics: Option<String>,
    }
}

#[derive(Debug, Args)]
pub(crate) struct RackDemoArgs {
    /// Rate of every port.
    #[arg(long, default_value = "500M")]
    pub rate: Rate,

    /// Limit of each port's queue.
    #[arg(long, value_name = "BYTES", default_value = "128KB")]
    pub buffer: Bytes,

    /// Hosts: a client, a server, and up to four that send beside them.
    #[arg(long, default_value_t = 6, value_parser = whole_within::<u16>(3..=16))]
    pub hosts: u16,

    /// Rounds; counts are sums over them, times, rates and shares medians.
    #[arg(long, default_value_t = 5, value_parser = whole_within::<u32>(1..=1000))]
    pub rounds: u32,

    /// Scheduler of the switch in the case `pl2`: it decides when hosts may send.
    #[arg(long, value_enum, default_value = "late")]
    pub scheduler: SchedulerArg,

    /// Write a page with charts.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Seconds that each measurement takes; there are up to nine for each way and round.
    #[arg(long, default_value_t = 1.5, value_name = "S")]
    pub seconds: f64,

    /// Kind of stand-ins: auto, tap or veth.
    #[arg(long, default_value = "auto")]
    pub backend: String,

    /// Do without root even where there is root.
    #[arg(long)]
    pub rootless: bool,

    /// In the simulator, as where namespaces are forbidden.
    #[arg(long)]
    pub simulated: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RackSoakArgs {
    /// Duration of the run.
    #[arg(long = "for", value_name = "TIME", default_value = "60s")]
    pub duration: Span,

    /// Rate of every port.
    #[arg(long, default_value = "200M")]
    pub rate: Rate,

    /// Limit of each port's queue.
    #[arg(long, value_name = "BYTES", default_value = "128KB")]
    pub buffer: Bytes,

    /// Hosts: a client, a server, and those that send datagrams to the client's host.
    #[arg(long, default_value_t = 6, value_parser = whole_within::<u16>(5..=16))]
    pub hosts: u16,

    /// Scheduler, which decides when hosts may send.
    #[arg(long, value_enum, default_value = "late")]
    pub scheduler: SchedulerArg,

    /// Daemons to kill (SIGKILL), spread over the time: of a host and the switch in turn; each is started again after 50 ms.
    #[arg(long, default_value_t = 0, value_parser = whole_within::<u32>(0..=100_000))]
    pub kills: u32,

    /// Number of times that the last host leaves and joins again, spread over the run.
    #[arg(long, default_value_t = 0, value_parser = whole_within::<u32>(0..=100_000))]
    pub joins: u32,

    /// Share of frames that the wire of host 2 loses, each way.
    #[arg(long, default_value = "0")]
    pub loss: Prob,

    /// Put the wire of host 2 under `hitless link`, beneath the reservations.
    #[arg(long)]
    pub protect: bool,

    /// Do without root even where there is root.
    #[arg(long)]
    pub rootless: bool,
}
