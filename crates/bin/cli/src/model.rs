//! `hitless model`: what can be computed without simulating.

mod collective;
mod hpcc;
mod melo;
mod pl2;
mod rdma;

use std::fs::File;
use std::io::Read;

use sim::workload::{FlowSizes, SizeTrace};
use units::Bytes;

use crate::args::ModelCommand;
use crate::output::{CommandResult, Failure};
pub(crate) use collective::settings as collective_settings;

pub(crate) fn run(command: &ModelCommand, json: bool) -> CommandResult {
    match command {
        ModelCommand::Rdma(args) => rdma::run(args, json),
        ModelCommand::Collective(words) => collective::run(words, json),
        ModelCommand::Melo(args) => melo::run(args, json),
        ModelCommand::Hpcc(args) => hpcc::run(args, json),
        ModelCommand::Pl2(args) => pl2::run(args, json),
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

/// A trace by its name, or a file.
fn workload(name: &str) -> Result<FlowSizes, Failure> {
    let wrong = |what: &dyn std::fmt::Display| Failure::Usage(format!("--workload {name}: {what}"));
    match name.parse::<SizeTrace>() {
        Ok(trace) => Ok(trace.sizes()),
        Err(_) if name.contains(['.', '/']) => {
            let text = read(name).map_err(|error| wrong(&error))?;
            FlowSizes::parse(&text).map_err(|error| wrong(&error))
        }
        Err(error) => Err(wrong(&error)),
    }
}

fn read(path: &str) -> std::io::Result<String> {
    const LONGEST: u64 = 16 << 20;
    let mut text = String::new();
    let read = File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
    if read as u64 > LONGEST { Err(std::io::Error::other("expected at most 16 MiB")) } else { Ok(text) }
}
