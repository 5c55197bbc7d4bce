//! `hitless completions` and `hitless man`.

use clap::CommandFactory;

use crate::args::Cli;
use crate::output::{Done, Failure, write};

pub fn completions(shell: clap_complete::Shell) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "hitless", &mut script);
    write(&String::from_utf8_lossy(&script))
}

pub fn man(command: Option<&str>) -> Done {
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
    write(&String::from_utf8_lossy(&roff))
}
