//! Commands in the order of what a person wants, as `hitless --help` lists them.

use std::fmt::Write;

use clap::{Command, CommandFactory, FromArgMatches};

use super::Cli;
#[cfg(not(feature = "research"))]
use crate::absent;

/// Every command, once, under its purpose.
const GROUPS: [(&str, &[&str]); 9] = [
    ("See it", &["demo"]),
    ("Protect", &["link", "rack"]),
    ("Find", &["monitor", "radar"]),
    ("Explain", &["explain", "replay"]),
    ("Plan", &["fleet", "clock", "copies"]),
    ("Simulate", &["sim", "model"]),
    ("Reproduce", &["reproduce"]),
    ("Test", &["bench", "soak", "wire", "packetdrill"]),
    ("Shell", &["completions", "man", "help"]),
];

/// Reads the command line.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    let mut command = grouped();
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The command with its subcommands in groups.
fn grouped() -> Command {
    let command = Cli::command();
    let header = command.get_styles().get_header();
    let options = format!("{header}Options:{header:#}\n{{options}}");
    let template = format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{options}", listing(&command));
    command.help_template(template)
}

fn listing(command: &Command) -> String {
    let (header, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let longest = GROUPS.iter().flat_map(|(_, names)| names.iter()).map(|name| name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (purpose, names) in GROUPS {
        let _ = writeln!(text, "{header}{purpose}:{header:#}");
        for name in names {
            let _ = writeln!(text, "  {literal}{name:longest$}{literal:#}  {}", summary(command, name));
        }
        text.push('\n');
    }
    text
}

fn summary(command: &Command, name: &str) -> String {
    let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
    #[cfg(not(feature = "research"))]
    if absent::COMMANDS.contains(&name) {
        return "(not in this build)".to_owned();
    }
    // Clap adds its own commands at the first parse.
    about.unwrap_or_else(|| "Print this message or the help of a command".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns of a terminal.
    const WIDTH: usize = 80;

    #[test]
    fn every_command_is_in_one_group() {
        let mut command = Cli::command();
        command.build();
        let mut known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        known.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn a_command_takes_one_line() {
        let help = grouped().render_help().to_string();
        let long: Vec<&str> = help.lines().filter(|line| line.chars().count() > WIDTH).collect();
        assert!(long.is_empty(), "{long:?}");
        assert!(help.contains("\nProtect:\n  link "), "{help}");
    }
}
