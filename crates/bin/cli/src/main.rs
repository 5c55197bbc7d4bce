//! `hitless`: one toolkit for packet loss in datacenter networks.
//!
//! The binary is thin: [`args`] says what can be asked, one module for each command asks it of the
//! library crates, [`output`] prints what comes back.

mod args;
mod background;
mod bench;
mod captures;
mod clock;
mod copies;
mod demo;
mod explain;
mod fleet;
mod link;
mod model;
mod monitor;
mod output;
mod packetdrill;
mod rack;
mod radar;
mod refresh;
mod replay;
mod reproduce;
mod results;
mod shell;
mod sim;
mod soak;
mod terminal;
mod wire;

use std::process::ExitCode;

use args::{Cli, Command};
use clap::Parser;
use output::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return output::usage(&error),
    };
    let done = match &cli.command {
        Command::Demo(args) => demo::run(args, cli.json),
        Command::Soak(args) => soak::run(args, cli.json),
        Command::Bench(args) => bench::run(args, cli.json),
        Command::Link(command) => link::run(command, cli.json),
        Command::Monitor(args) => match monitor::run(args, cli.json) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Radar(command) => radar::run(command, cli.json),
        Command::Packetdrill(args) => match packetdrill::run(args, cli.json) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Replay(args) => match replay::run(args, cli.json) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Explain(args) => match explain::run(args, cli.json) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Rack(command) => rack::run(command, cli.json),
        Command::Wire(args) => wire::run(args, cli.json),
        Command::Copies(args) => copies::run(args, cli.json),
        Command::Model(command) => model::run(command, cli.json),
        Command::Sim(command) => sim::run(command, cli.json),
        Command::Fleet(command) => fleet::run(command, cli.json),
        Command::Clock(command) => match clock::run(command, cli.json) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Reproduce(args) => reproduce::run(args, cli.json),
        Command::Completions { shell } => shell::completions(*shell, cli.json),
        Command::Man { command } => shell::man(command.as_deref(), cli.json),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Interrupted) => ExitCode::from(130),
        Err(failure) => output::fail(&failure),
    }
}
