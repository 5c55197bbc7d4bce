//! `hitless model`: what can be computed without simulating.

mod hpcc;
mod melo;
mod rdma;

use units::Bytes;

use crate::args::ModelCommand;
use crate::output::{CommandResult, Failure};

pub(crate) fn run(command: &ModelCommand, json: bool) -> CommandResult {
    match command {
        ModelCommand::Rdma(args) => rdma::run(args, json),
        ModelCommand::Melo(args) => melo::run(args, json),
        ModelCommand::Hpcc(args) => hpcc::run(args, json),
    }
}

/// Longer packets than any network takes.
const LARGEST_MTU: u64 = 65_536;

fn check_mtu(mtu: Bytes) -> Result<u32, Failure> {
    match mtu.get() {
        bytes @ 1..=LARGEST_MTU => Ok(bytes as u32),
        _ => Err(Failure::Usage(format!("--mtu {mtu}: expected 1 to {LARGEST_MTU} bytes, such as 1024 or 4096"))),
    }
}
