//! `hitless sim`: a link, a network, link protocols and congestion controls side by side, and the simulator against this
//! machine's TCP.

mod cc;
mod check;
mod collective;
mod compare;
mod import;
mod link;
mod run;

use crate::args::SimCommand;
use crate::output::CommandResult;
pub(crate) use run::read as read_scenario;

pub(crate) fn run(command: &SimCommand, json: bool) -> CommandResult {
    match command {
        SimCommand::Link(args) => link::run(args, json),
        SimCommand::Run(args) => run::run(args, json),
        SimCommand::Collective(args) => collective::run(args, json),
        SimCommand::Import(args) => import::run(args, json),
        SimCommand::Check(args) => check::run(args, json),
        SimCommand::Compare(args) => compare::run(args, json),
        SimCommand::Cc(args) => cc::run(args, json),
    }
}

/// Quotes a word for a shell if necessary.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
