//! Commands of the feature `research` in a build without it: each says how to build it.

use crate::args::AbsentArgs;
use crate::output::Failure;

macro_rules! absent {
    ($($module:ident: $command:literal,)*) => {
        $(
            pub(crate) mod $module {
                use super::{AbsentArgs, Failure, lacks};

                pub(crate) fn run<T>(_args: &AbsentArgs, _json: bool) -> Result<T, Failure> {
                    Err(lacks($command))
                }
            }
        )*

        /// Names of the commands that are absent.
        pub(crate) const COMMANDS: &[&str] = &[$($command),*];
    };
}

absent! {
    bench: "bench",
    model: "model",
    packetdrill: "packetdrill",
    replay: "replay",
    reproduce: "reproduce",
    selftest: "explain selftest",
    sim: "sim",
    simulate: "clock simulate",
}

fn lacks(command: &str) -> Failure {
    let build = "cargo build --release --features research";
    Failure::Usage(format!("this build has no `hitless {command}`; build it with: {build}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn a_command_that_is_absent_takes_any_arguments_and_names_the_build() {
        for command in COMMANDS {
            let call = format!("hitless {command} --help -x y --for=1s");
            let cli = Cli::try_parse_from(call.split(' ')).unwrap_or_else(|error| panic!("{call}: {error}"));
            let done = crate::run(&cli);
            let said = match done {
                Err(Failure::Usage(said)) => said,
                other => panic!("{call}: {other:?}"),
            };
            assert!(said.contains(command) && said.contains("--features research"), "{said}");
        }
    }
}
