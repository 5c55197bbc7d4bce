//! `hitless completions` and `hitless man`.

use clap::CommandFactory;
use serde::Serialize;

use crate::args::Cli;
use crate::output::{CommandResult, Failure, print};

#[derive(Serialize)]
struct Script {
    shell: String,
    script: String,
}

#[derive(Serialize)]
struct ManualPage {
    page: String,
}

pub(crate) fn completions(shell: clap_complete::Shell, json: bool) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "hitless", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let answer = Script { shell: shell.to_string(), script };
    print(json, &answer, || answer.script.clone())
}

pub(crate) fn man(command: Option<&str>, json: bool) -> CommandResult {
    let mut root = Cli::command();
    root.build();
    let page = match command {
        None => root,
        Some(path) => {
            let unknown = || Failure::Usage(format!("man {path}: expected a command such as copies or sim-link"));
            path.split('-').try_fold(root, |at, name| at.find_subcommand(name).cloned()).ok_or_else(unknown)?
        }
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page).render(&mut roff).map_err(|error| Failure::Outside(error.to_string()))?;
    let answer = ManualPage { page: String::from_utf8_lossy(&roff).into_owned() };
    print(json, &answer, || answer.page.clone())
}
