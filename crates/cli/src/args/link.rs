//! `hitless link`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use link::config::Wishes;
use units::{Count, Prob, Span};

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

    /// How the wire is reached: auto, packet, or xdp if built with it [default: auto].
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
