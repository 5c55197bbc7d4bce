//! Every command and option that the documentation shows exists.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use tidy::docs::read_pages;

/// A command's subcommands, and the options that its help names.
#[derive(Default)]
struct CommandHelp {
    commands: BTreeMap<String, CommandHelp>,
    options: BTreeSet<String>,
    /// A name behind it may be a file of the user's.
    takes_files: bool,
}

impl CommandHelp {
    fn of(path: &[&str]) -> Self {
        let output = Command::new(env!("CARGO_BIN_EXE_hitless")).args(path).arg("--help").output().unwrap();
        assert!(output.status.success(), "{path:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let commands =
            text.split("\nCommands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
        let commands = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        let commands = commands.filter(|name| !matches!(*name, "" | "help"));
        let options = text.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
        let is_option = |word: &&str| word.is_empty() || word.starts_with('-');
        let options = options.flat_map(|line| line.split([' ', ',']).take_while(is_option));
        Self {
            commands: commands.map(|name| (name.to_owned(), Self::of(&[path, &[name]].concat()))).collect(),
            options: options.map(str::to_owned).collect(),
            takes_files: text.contains("\nArguments:\n"),
        }
    }

    /// Whether it or any command below it has this option.
    fn knows(&self, option: &str) -> bool {
        self.options.contains(option) || self.commands.values().any(|command| command.knows(option))
    }

    /// What of `call` does not exist.
    fn unknown(&self, call: &[&str]) -> Option<String> {
        let (mut command, mut is_quoted) = (self, false);
        for word in call {
            // What is between quotes is a value.
            let was_quoted = is_quoted;
            is_quoted ^= word.matches(['"', '\'']).count() % 2 == 1;
            if was_quoted {
                continue;
            }
            let word = word.trim_matches(['[', ']', '(', ')', ',', '.', ':']);
            let option = word.split('=').next().unwrap_or(word);
            let is_name = word.starts_with(char::is_lowercase) && word.chars().all(|c| c.is_lowercase() || c == '-');
            match command.commands.get(word) {
                Some(next) => command = next,
                None if option == "--" => return None,
                None if option.starts_with('-') && !command.options.contains(option) => return Some(option.to_owned()),
                None if is_name && !command.takes_files && !command.commands.is_empty() => {
                    return Some(word.to_owned());
                }
                None => {}
            }
        }
        None
    }
}

#[test]
fn commands_of_the_documentation_exist() {
    let hitless = CommandHelp::of(&[]);
    assert!(hitless.commands["link"].commands["up"].options.contains("--take-over"));
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in read_pages(&tidy::root()).unwrap() {
        let place = |line: usize| format!("{}:{line}", page.path.display());
        for (line, call) in page.calls("hitless", |word| hitless.commands.contains_key(word)) {
            count += 1;
            let unknown = hitless.unknown(&call);
            wrong.extend(unknown.map(|it| format!("{}: {it} in `hitless {}`", place(line), call.join(" "))));
        }
        let unknown = page.options().filter(|(_, option)| !hitless.knows(option));
        wrong.extend(unknown.map(|(line, option)| format!("{}: {option}", place(line))));
    }
    assert!(count > 100, "only {count} commands found");
    assert!(wrong.is_empty(), "not in `--help`; correct the page:\n  {}", wrong.join("\n  "));
}
