//! Commands that this build lacks: their names are known, so that the program can say how to get them.

use std::ffi::OsString;

use clap::Args;

/// Any arguments of a command that this build lacks.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct AbsentArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub _rest: Vec<OsString>,
}

pub(crate) type BenchArgs = AbsentArgs;
pub(crate) type ClockSimulateArgs = AbsentArgs;
pub(crate) type ModelCommand = AbsentArgs;
pub(crate) type PacketdrillArgs = AbsentArgs;
pub(crate) type ReplayArgs = AbsentArgs;
pub(crate) type ReproduceArgs = AbsentArgs;
pub(crate) type SelftestArgs = AbsentArgs;
pub(crate) type SimCommand = AbsentArgs;
