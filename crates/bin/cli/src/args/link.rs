//! `hitless link`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use link::config::LinkOptions;
use units::{Count, Prob, Span};

#[derive(Debug, Subcommand)]
pub(crate) enum LinkCommand {
    /// Protect the link behind an interface: gives the host a stand-in for it, and runs until ended.
    ///
    /// The same at the other end of the cable. Until the peer answers, frames pass unprotected.
    Up(Box<UpArgs>),

    /// End a link and put back what was changed for it.
    Down(DownArgs),

    /// Wait for the end of a link's daemon, and let the link fail open if it was killed.
    #[command(hide = true)]
    Keep(KeepArgs),

    /// Show the state of a link.
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
pub(crate) struct NameArg {
    /// The stand-in interface; may be left out if there is only one.
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DownArgs {
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
pub(crate) struct KeepArgs {
    pub name: String,

    /// Directory with the link's notes.
    #[arg(long, value_name = "DIR")]
    pub directory: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ActivateArgs {
    #[command(flatten)]
    pub link: NameArg,

    /// Loss of what is sent here, if it was measured: copies, and with --mode auto the mode, follow from it at once.
    #[arg(long)]
    pub loss: Option<Prob>,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The stand-in interface; may be left out if there is only one.
    pub name: Option<String>,

    /// Time between two refreshes of the view.
    #[arg(long, value_name = "TIME", default_value = "500ms")]
    pub every: Span,
}

#[derive(Debug, Args)]
pub(crate) struct CaptureArgs {
    /// The interface that the protected link is behind.
    pub interface: String,

    /// File to write.
    #[arg(long, value_name = "FILE")]
    pub write: PathBuf,

    /// Frames to keep; until ended if not given.
    #[arg(long, value_name = "N")]
    pub frames: Option<Count>,
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub options: LinkOptions,

    /// A TOML file with any of the above options; options on the command line override it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Go on in the background once the stand-in is there.
    #[arg(long)]
    pub background: bool,

    /// For `hitless soak --faults` only: the daemon subtracts this from the time of day.
    #[arg(long, value_name = "SECONDS", hide = true)]
    pub test_clock_back: Option<u64>,
}
