//! Output of the program: results to standard output, everything else to standard error.

#![expect(clippy::print_stderr, reason = "this is where the program speaks")]

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

/// Reason why a command did not do all that was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request makes no sense.
    Usage(String),
    /// An error outside of the command's arguments.
    Outside(String),
    /// Ended from the keyboard; what was known then has been printed.
    Interrupted,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) | Self::Outside(what) => f.write_str(what),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl Failure {
    /// A file that cannot be made, with the option that names it. If what is there may not be replaced, another has to be named.
    pub(crate) fn not_created(what: impl fmt::Display, error: &io::Error) -> Self {
        let line = format!("{what}: {error}");
        if error.kind() == io::ErrorKind::AlreadyExists { Self::Usage(line) } else { Self::Outside(line) }
    }
}

pub(crate) type CommandResult = Result<(), Failure>;

/// Prints a result: as JSON, or as people read it.
pub(crate) fn print(json: bool, value: &impl Serialize, text: impl FnOnce() -> String) -> CommandResult {
    if json {
        let line = serde_json::to_string_pretty(value).map_err(|error| Failure::Outside(error.to_string()))?;
        write(&format!("{line}\n"))
    } else {
        write(&format!("{}\n", text().trim_end()))
    }
}

/// Prints one result of many as a line of JSON.
pub(crate) fn print_line(value: &impl Serialize) -> CommandResult {
    put(&serde_json::to_string(value).map_err(|error| Failure::Outside(error.to_string()))?)
}

/// Prints one of many lines of a result.
pub(crate) fn put(line: &str) -> CommandResult {
    write(&format!("{line}\n"))
}

/// A line on the way, for people: a log as much as an answer.
pub(crate) fn say(text: &str) {
    // Nobody may be listening any more; that must not end a daemon.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A reader that has seen enough, such as `head`, is not a failure.
fn write(text: &str) -> CommandResult {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::Outside(error.to_string())),
        _ => Ok(()),
    }
}

/// One line for a wrong command line: the argument, what was given, what is accepted.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    if matches!(error.kind(), DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand) {
        let failed = error.print().is_err();
        return ExitCode::from(if failed || error.use_stderr() { 2 } else { 0 });
    }
    let text = error.to_string();
    let end = text.find("\n\nUsage").or_else(|| text.find("\n\nFor more")).unwrap_or(text.len());
    let line: Vec<&str> = text[..end].split_whitespace().collect();
    eprintln!("{}", line.join(" "));
    ExitCode::from(2)
}

pub(crate) fn fail(failure: &Failure) -> ExitCode {
    eprintln!("error: {failure}");
    ExitCode::from(match failure {
        Failure::Usage(_) => 2,
        Failure::Outside(_) | Failure::Interrupted => 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_may_not_be_replaced_is_a_wrong_argument_and_a_full_disk_is_none() {
        let of = |kind: io::ErrorKind| Failure::not_created("--log it", &kind.into());
        assert!(matches!(of(io::ErrorKind::AlreadyExists), Failure::Usage(_)));
        for kind in [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied, io::ErrorKind::StorageFull] {
            assert!(matches!(of(kind), Failure::Outside(line) if line.starts_with("--log it: ")), "{kind}");
        }
    }
}
