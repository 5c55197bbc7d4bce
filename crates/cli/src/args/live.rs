//! What can be asked of the live link.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use link::config::Wishes;
use units::{Bytes, Count, Prob, Rate, Span};

use super::count::whole;

#[derive(Debug, Subcommand)]
pub enum LinkCommand {
    /// Protect the link behind an interface: gives the host a stand-in for it, and runs until ended.
    ///
    /// The same at the other end of the cable. Until the peer answers, frames pass unprotected.
    Up(Box<UpArgs>),

    /// End a link and put back what was changed for it.
    Down(DownArgs),

    /// Wait for the end of a link's daemon, and let the link fail open if it was killed.
    #[command(hide = true)]
    Keep(KeepArgs),

    /// How a link is doing.
    Status(NameArg),

    /// Ask for protection.
    #[command(allow_negative_numbers = true)]
    Activate(ActivateArgs),

    /// End protection without losing a frame; frames pass as they are.
    Deactivate(NameArg),

    /// Every counter of a link.
    Counters(NameArg),

    /// A view of a link that refreshes; q ends it.
    Watch(WatchArgs),

    /// Keep the protected traffic of an interface as pcapng, for Wireshark.
    ///
    /// contrib/wireshark/hitless.lua reads the link header.
    Capture(CaptureArgs),
}

#[derive(Debug, Args)]
pub struct NameArg {
    /// The stand-in interface; may be left out if there is only one.
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub struct DownArgs {
    #[command(flatten)]
    pub link: NameArg,

    /// The file that the link was made with: its name is taken from there.
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    pub config: Option<PathBuf>,

    /// For a service manager: do nothing if the link's service is about to be started again.
    #[arg(long)]
    pub unless_restarting: bool,
}

#[derive(Debug, Args)]
pub struct KeepArgs {
    pub name: String,

    /// Where the link's notes are.
    #[arg(long, value_name = "DIR")]
    pub directory: PathBuf,
}

#[derive(Debug, Args)]
pub struct ActivateArgs {
    #[command(flatten)]
    pub link: NameArg,

    /// Loss of what is sent here, if it was measured: copies, and with --mode auto the mode, follow from it at once.
    #[arg(long)]
    pub loss: Option<Prob>,
}

#[derive(Debug, Args)]
pub struct WatchArgs {
    /// The stand-in interface; may be left out if there is only one.
    pub name: Option<String>,

    /// Between two looks.
    #[arg(long, value_name = "TIME", default_value = "500ms")]
    pub every: Span,
}

#[derive(Debug, Args)]
pub struct CaptureArgs {
    /// The interface that the protected link is behind.
    pub interface: String,

    /// Where to.
    #[arg(long, value_name = "FILE")]
    pub write: PathBuf,

    /// Frames to keep; until ended if not given.
    #[arg(long, value_name = "N")]
    pub frames: Option<Count>,
}

#[derive(Debug, Args)]
pub struct UpArgs {
    /// The interface whose link is to be protected.
    pub interface: Option<String>,

    /// The stand-in's name [default: hit0].
    #[arg(long)]
    pub name: Option<String>,

    /// The only address that may drive the link; `auto` takes the first that answers [default: auto].
    #[arg(long, value_name = "MAC|auto")]
    pub peer: Option<String>,

    /// ordered, nonblocking, or auto: as the measured loss demands [default: ordered].
    #[arg(long)]
    pub mode: Option<String>,

    /// Loss that the copies of a retransmission aim for [default: 1e-8].
    #[arg(long, value_name = "LOSS")]
    pub target_loss: Option<String>,

    /// Rate of the wire; what the interface says if not given.
    #[arg(long)]
    pub rate: Option<String>,

    /// MTU of the stand-in; what the header leaves of the interface's if not given.
    #[arg(long)]
    pub mtu: Option<u32>,

    /// Move addresses, routes and the place in a bridge to the stand-in, and back at the end.
    #[arg(long)]
    pub take_over: bool,

    /// Let frames pass as they are until somebody asks for protection, here or at the other end.
    #[arg(long)]
    pub dormant: bool,

    /// Wait for the interface if it is down or absent, at the start and whenever it goes away.
    #[arg(long)]
    pub wait: bool,

    /// Until the peer answers frames pass unprotected (best-effort), wait (block) or are dropped (discard)
    /// [default: best-effort].
    #[arg(long, value_name = "ACTION")]
    pub init_action: Option<String>,

    /// A CRC32 in each frame, for wires whose own check cannot be trusted.
    #[arg(long)]
    pub crc: bool,

    /// Authenticate every frame with the key in this file: 32 hexadecimal digits, the same at both ends.
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,

    /// How the host is reached: auto, tap or veth [default: auto].
    #[arg(long)]
    pub backend: Option<String>,

    /// How the wire is reached: auto, packet or xdp [default: auto].
    #[arg(long)]
    pub wire: Option<String>,

    /// Keep the loop on this processor.
    #[arg(long, value_name = "CPU")]
    pub pin: Option<usize>,

    /// How long a missing frame is asked for [default: 50ms].
    #[arg(long, value_name = "TIME")]
    pub give_up_after: Option<String>,

    /// Frames that may be unacknowledged [default: 1024].
    #[arg(long, value_name = "FRAMES", value_parser = whole::<u32>(..))]
    pub window: Option<u32>,

    /// What may wait for the wire at most [default: 4MB]; how long it may stand is kept to about a millisecond.
    #[arg(long, value_name = "BYTES")]
    pub queue: Option<String>,

    /// Serve metrics for Prometheus here; a port alone means this machine only.
    #[arg(long, value_name = "ADDR:PORT")]
    pub metrics: Option<String>,

    /// A TOML file with any of the above; what is given here goes before it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Go on in the background once the stand-in is there.
    #[arg(long)]
    pub background: bool,
}

impl UpArgs {
    /// What the command line says, without the file.
    pub fn wishes(&self) -> Wishes {
        Wishes {
            interface: self.interface.clone(),
            name: self.name.clone(),
            peer: self.peer.clone(),
            mode: self.mode.clone(),
            target_loss: self.target_loss.clone(),
            rate: self.rate.clone(),
            mtu: self.mtu,
            crc: self.crc.then_some(true),
            key: self.key.clone(),
            init_action: self.init_action.clone(),
            take_over: self.take_over.then_some(true),
            dormant: self.dormant.then_some(true),
            wait: self.wait.then_some(true),
            backend: self.backend.clone(),
            wire: self.wire.clone(),
            pin: self.pin,
            give_up_after: self.give_up_after.clone(),
            window: self.window,
            queue: self.queue.clone(),
            metrics: self.metrics.clone(),
        }
    }
}

#[derive(Debug, Args)]
pub struct WireArgs {
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

    /// Delay, each way.
    #[arg(long, value_name = "TIME", default_value = "0ns")]
    pub delay: Span,

    /// What may wait for a wire with a rate.
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

    /// Be a switch that repeats: RoCEv2 NAKs that come in at A leave at B with so many copies.
    ///
    /// The repeater of "Packet corruption in RDMA" §5.1, as a bump in the wire: this machine stands between RDMA hosts,
    /// behind A, and the fabric, behind B; with `--loss 0`, as it is by default, it is a bridge that repeats. RDMA cards
    /// bypass the kernel of the host that they are in, so on that host there is nothing to see: cables from the cards
    /// must lead to this machine's interface A, and its B to the switch. Losses, if any, are those between here and B:
    /// each copy is corrupted or not by itself.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(..=64))]
    pub repeat_naks: Option<u32>,

    /// As above: the packet that a NAK to the hosts asked for leaves with so many copies when it comes in at A.
    ///
    /// The first request with the PSN of the NAK is taken for it, whichever its connection: packets name only the queue
    /// pair that they are for. What is malformed is counted and passes as it is.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(..=64))]
    pub repeat_naked: Option<u32>,

    /// Let the kernel do it: independent loss and a rate only, at the kernel's speed.
    #[arg(long, conflicts_with_all = ["burst", "bit_errors", "faults", "flip", "log", "delay", "repeat_naks", "repeat_naked"])]
    pub in_kernel: bool,

    /// End after so long.
    #[arg(long = "for", value_name = "TIME")]
    pub duration: Option<Span>,

    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Share of frames that the wire corrupts, each way.
    #[arg(long, default_value = "1e-3")]
    pub loss: Prob,

    /// Rate of the wire; `none` for as fast as the machine is.
    #[arg(long, default_value = "1G", value_name = "RATE|none")]
    pub rate: String,

    /// Rounds; figures are medians over them.
    #[arg(long, default_value_t = 3, value_parser = whole::<u32>(1..=1000))]
    pub rounds: u32,

    /// Requests and responses in each case and round.
    #[arg(long, default_value = "20000")]
    pub requests: Count,

    /// Seconds of bulk transfer in each case and round.
    #[arg(long, default_value_t = 1.0, value_name = "S")]
    pub seconds: f64,

    /// ordered, nonblocking or auto.
    #[arg(long, default_value = "ordered")]
    pub mode: String,

    /// How the host is reached: auto, tap or veth.
    #[arg(long, default_value = "auto")]
    pub backend: String,

    /// How the wire is reached: auto, packet or xdp.
    #[arg(long, default_value = "auto")]
    pub wire: String,

    /// Do without root even where there is root.
    #[arg(long)]
    pub rootless: bool,

    /// Tell the story in the simulator, as where namespaces are forbidden.
    #[arg(long)]
    pub simulated: bool,

    /// Write a page with charts.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct SoakArgs {
    /// The fault bench: random bad days (daemons killed and stopped, wires cut, forged frames, …), and an account of every
    /// datagram. Exit code 1 if anything was lost that is neither counted nor allowed.
    #[arg(long, conflicts_with_all = ["loss", "burst", "rate", "mode", "queue"])]
    pub faults: bool,

    /// Only these kinds of bad days, separated by commas.
    #[arg(long, value_name = "KINDS", value_delimiter = ',', requires = "faults")]
    pub kinds: Vec<String>,

    /// How long each bad day lasts that lasts at all, such as forged frames; at random if not given.
    #[arg(long, value_name = "TIME", requires = "faults")]
    pub lasting: Option<Span>,

    /// Keep what the daemons say in this directory.
    #[arg(long, value_name = "DIR", requires = "faults")]
    pub logs: Option<PathBuf>,

    /// How long [default: 1h; 10m with --faults].
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

    /// How the host is reached: auto, tap or veth.
    #[arg(long, default_value = "auto")]
    pub backend: String,

    /// Do without root even where there is root.
    #[arg(long)]
    pub rootless: bool,

    /// What may wait for the wire at each end, at most.
    #[arg(long, value_name = "BYTES", default_value = "4MB")]
    pub queue: Bytes,

    /// Seed of the losses in bursts, or of the bad days.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub what: Option<BenchCommand>,

    /// Rate of the wire; `none` for as fast as the machine is.
    #[arg(long, default_value = "none", value_name = "RATE|none")]
    pub rate: String,

    /// Rounds; figures are medians over them.
    #[arg(long, default_value_t = 3, value_parser = whole::<u32>(1..=1000))]
    pub rounds: u32,

    /// Seconds of bulk transfer in each row and round.
    #[arg(long, default_value_t = 2.0, value_name = "S")]
    pub seconds: f64,

    /// Requests and responses in each row and round, for at most 15 seconds.
    #[arg(long, default_value = "5000")]
    pub requests: Count,

    /// How the host is reached: auto, tap or veth.
    #[arg(long, default_value = "auto")]
    pub backend: String,

    /// How the wire is reached: auto, packet or xdp.
    #[arg(long, default_value = "auto")]
    pub wire: String,

    /// Do without root even where there is root.
    #[arg(long)]
    pub rootless: bool,
}

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// What a busy host costs: datagrams and bulk through the link, alone and beside a busy loop on every processor.
    ///
    /// Daemons run with the priority that the systemd unit gives them, if this user may set it.
    Busy(BenchBusyArgs),

    /// How fast the network simulator is: packet-hops and events per second on one core, and memory.
    Sim(BenchSimArgs),

    /// How fast the fleet's planner is: seconds for a simulated year, a fast check, a plan at each event, and memory.
    Fleet(super::BenchFleetArgs),

    /// How long a packet takes that arrives at a MELO receiver, by loss; below 20 ns is the target.
    Melo(BenchMeloArgs),

    /// How fast digests are, and comparisons of captures: time and memory on one core.
    ///
    /// Writes two captures, of 80 bytes a packet each, and removes them.
    #[command(allow_negative_numbers = true)]
    Radar(BenchRadarArgs),
}

#[derive(Debug, Args)]
pub struct BenchBusyArgs {
    /// Rounds; figures are sums and medians of all.
    #[arg(long, default_value_t = 3, value_parser = whole::<u32>(1..=1000))]
    pub rounds: u32,

    /// Seconds of each measurement.
    #[arg(long, default_value_t = 5.0, value_name = "S")]
    pub seconds: f64,

    /// Do without root even where there is root.
    #[arg(long)]
    pub rootless: bool,
}

#[derive(Debug, Args)]
pub struct BenchRadarArgs {
    /// Packets in the capture upstream.
    #[arg(long, default_value = "10M")]
    pub packets: Count,

    /// Share of them that is missing downstream.
    #[arg(long, default_value = "1e-3")]
    pub loss: Prob,

    /// Where to write the captures; the folder for temporary files if not given.
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,

    /// Rounds; figures are medians over them.
    #[arg(long, default_value_t = 3, value_parser = whole::<u32>(1..=1000))]
    pub rounds: u32,
}

#[derive(Debug, Args)]
pub struct BenchSimArgs {
    /// Rounds; figures are medians over them.
    #[arg(long, default_value_t = 3, value_parser = whole::<u32>(1..=1000))]
    pub rounds: u32,

    /// Only the network of this name.
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
}

#[derive(Debug, Args)]
pub struct BenchMeloArgs {
    /// Packets that arrive in each row and round.
    #[arg(long, default_value = "10M")]
    pub packets: Count,

    /// Rounds; figures are medians over them.
    #[arg(long, default_value_t = 5, value_parser = whole::<u32>(1..=1000))]
    pub rounds: u32,
}
