//! `hitless demo`.

use std::path::PathBuf;

use clap::Args;
use units::{Count, Prob, whole_within};

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Share of frames that the wire corrupts, each way.
    #[arg(long, default_value = "1e-3")]
    pub loss: Prob,

    /// Rate of the wire; `none` for as fast as the machine is.
    #[arg(long, default_value = "1G", value_name = "RATE|none")]
    pub rate: String,

    /// Rounds; figures are medians over them.
    #[arg(long, default_value_t = 3, value_parser = whole_within::<u32>(1..=1000))]
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

    /// Access to the host: auto, tap or veth.
    #[arg(long, default_value = "auto")]
    pub backend: String,

    /// Access to the wire: auto or packet.
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
