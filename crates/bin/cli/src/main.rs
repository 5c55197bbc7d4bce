//! `hitless`: one toolkit for packet loss in datacenter networks.
//!
//! The binary is thin: [`args`] says what can be asked, one module for each command asks it of the
//! library crates, [`output`] prints what comes back.

#[cfg(not(feature = "research"))]
mod absent;
mod args;
mod background;
#[cfg(feature = "research")]
mod bench;
mod captures;
mod clock;
mod copies;
mod demo;
mod explain;
mod fleet;
mod link;
mod memory;
#[cfg(feature = "research")]
mod model;
mod monitor;
mod output;
#[cfg(feature = "research")]
mod packetdrill;
mod rack;
mod radar;
mod refresh;
#[cfg(feature = "research")]
mod replay;
#[cfg(feature = "research")]
mod reproduce;
mod results;
mod shell;
#[cfg(feature = "research")]
mod sim;
mod soak;
mod terminal;
mod wire;

use std::process::ExitCode;

#[cfg(not(feature = "research"))]
use absent::{bench, model, packetdrill, replay, reproduce, sim};
use args::{Cli, Command};
use output::Failure;

fn main() -> ExitCode {
    let cli = match args::parse() {
        Ok(cli) => cli,
        Err(error) => return output::usage(&error),
    };
    match run(&cli) {
        Ok(code) => code,
        Err(Failure::Interrupted) => ExitCode::from(130),
        Err(failure) => output::fail(&failure),
    }
}

fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    let done = match &cli.command {
        Command::Demo(args) => demo::run(args, cli.json),
        Command::Soak(args) => soak::run(args, cli.json),
        Command::Bench(args) => bench::run(args, cli.json),
        Command::Link(command) => link::run(command, cli.json),
        Command::Monitor(args) => return monitor::run(args, cli.json),
        Command::Radar(command) => radar::run(command, cli.json),
        Command::Packetdrill(args) => return packetdrill::run(args, cli.json),
        Command::Replay(args) => return replay::run(args, cli.json),
        Command::Explain(args) => return explain::run(args, cli.json),
        Command::Rack(command) => rack::run(command, cli.json),
        Command::Wire(args) => wire::run(args, cli.json),
        Command::Copies(args) => copies::run(args, cli.json),
        Command::Model(command) => model::run(command, cli.json),
        Command::Sim(command) => sim::run(command, cli.json),
        Command::Fleet(command) => fleet::run(command, cli.json),
        Command::Clock(command) => return clock::run(command, cli.json),
        Command::Reproduce(args) => reproduce::run(args, cli.json),
        Command::Completions { shell } => shell::completions(*shell, cli.json),
        Command::Man { command } => shell::man(command.as_deref(), cli.json),
    };
    done.map(|()| ExitCode::SUCCESS)
}
