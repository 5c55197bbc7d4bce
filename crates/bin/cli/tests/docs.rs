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
    /// It does something itself; others only have subcommands.
    acts: bool,
}

impl CommandHelp {
    fn of(path: &[&str]) -> Self {
        let output = Command::new(env!("CARGO_BIN_EXE_hitless")).args(path).arg("--help").output().unwrap();
        assert!(output.status.success(), "{path:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        // The program's own commands are in groups, those of others in one list.
        let lists: Vec<&str> = match path {
            [] => text.split("\n\n").skip(2).take_while(|part| !part.starts_with("Options:")).collect(),
            _ => text.split("\nCommands:\n").skip(1).filter_map(|rest| rest.split("\n\n").next()).collect(),
        };
        let commands = lists.iter().flat_map(|list| list.lines());
        let commands = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        let commands = commands.filter(|name| !matches!(*name, "" | "help"));
        let options = text.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
        let is_option = |word: &&str| word.is_empty() || word.starts_with('-');
        let options = options.flat_map(|line| line.split([' ', ',']).take_while(is_option));
        Self {
            commands: commands.map(|name| (name.to_owned(), Self::of(&[path, &[name]].concat()))).collect(),
            options: options.map(str::to_owned).collect(),
            takes_files: text.contains("\nArguments:\n"),
            acts: !text.lines().any(|line| line.starts_with("Usage: ") && line.ends_with("<COMMAND>")),
        }
    }

    /// All commands from here on that do something.
    fn acting(&self, path: &str) -> Vec<String> {
        let below = self.commands.iter().flat_map(|(name, command)| command.acting(&format!("{path} {name}")));
        self.acts.then(|| path.to_owned()).into_iter().chain(below).collect()
    }

    /// True if it or any command below it has this option.
    fn knows(&self, option: &str) -> bool {
        self.options.contains(option) || self.commands.values().any(|command| command.knows(option))
    }

    /// Finds a part of `call` that does not exist.
    fn unknown(&self, call: &[&str]) -> Option<String> {
        let (mut command, mut is_quoted) = (self, false);
        for word in call {
            // Words between quotes are a value.
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
                // A dash alone is standard input.
                None if option.starts_with('-') && option != "-" && !command.options.contains(option) => {
                    return Some(option.to_owned());
                }
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

#[test]
fn the_table_of_exit_codes_has_every_command_and_what_can_be_tried_of_it_is_true() {
    let page = std::fs::read_to_string(tidy::root().join("docs/exit-codes.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `hitless "));
    let rows: Vec<Vec<&str>> = rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
    assert!(rows.iter().all(|row| row.len() == 5 && row.iter().all(|cell| !cell.is_empty())), "{rows:?}");
    let listed: Vec<String> = rows.iter().map(|row| row[0].trim_matches('`').to_owned()).collect();
    let [mut listed_sorted, mut known] = [listed.clone(), CommandHelp::of(&[]).acting("hitless")];
    listed_sorted.sort();
    known.sort();
    assert_eq!(listed_sorted, known, "docs/exit-codes.md and the commands of the binary");
    for command in &listed {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        assert_eq!(code(&[&words[..], &["--help"]].concat()), (Some(0), 0), "{command} --help");
        assert_eq!(code(&[&words[..], &["--no-such-option"]].concat()), (Some(2), 1), "{command} --no-such-option");
    }
}

/// The exit code, and how many lines are said of it. Nothing runs here: the folder of daemons is empty.
fn code(args: &[&str]) -> (Option<i32>, usize) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
    command.args(args).env("HITLESS_RUN_DIR", std::env::temp_dir().join("hitless-nothing-runs-here"));
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).lines().count())
}

#[test]
fn exit_codes_are_those_of_their_table() {
    let nowhere = ["/nowhere/a", "/nowhere/b"];
    let full = Command::new(env!("CARGO_BIN_EXE_hitless"))
        .args(["copies", "--actual", "1e-3", "--target", "1e-8"])
        .stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap())
        .stderr(std::process::Stdio::null())
        .status();
    assert_eq!(full.unwrap().code(), Some(1), "the output cannot be written");
    for (expected, calls) in [
        (
            0,
            vec![
                vec!["copies", "--actual", "1e-3", "--target", "1e-8"],
                vec!["model", "pl2"],
                vec!["completions", "bash"],
                vec!["man", "link-up"],
                vec!["clock", "plan", "--fat-tree", "4"],
                vec!["fleet", "topology", "--fat-tree", "4", "--write", "-"],
            ],
        ),
        (
            1,
            vec![
                vec!["link", "status"],
                vec!["link", "down", "hit7"],
                vec!["rack", "status"],
                vec!["rack", "leave"],
                vec!["clock", "status"],
                vec!["clock", "now", "n1"],
                vec!["clock", "down"],
                vec!["fleet", "topology", "--fat-tree", "4", "--write", "/nowhere/it.csv"],
                vec!["clock", "plan", "--fat-tree", "4", "--write-topology", "/nowhere/it.csv"],
                vec!["radar", "collect", "--listen", "127.0.0.1:0", "--seconds", "0.1", "--log", "/nowhere/it"],
            ],
        ),
        (
            2,
            vec![
                vec!["copies", "--actual", "0.9", "--target", "1e-300"],
                vec!["wire", "lo", "lo"],
                vec!["wire", "no-such-0", "no-such-1"],
                vec!["link", "capture", "no-such-0", "--write", "/nowhere/it"],
                vec!["link", "up"],
                vec!["radar", "losses", nowhere[0], nowhere[1]],
                vec!["radar", "delay", nowhere[0], nowhere[1]],
                vec!["radar", "flows", nowhere[0]],
                vec!["explain", nowhere[0]],
                vec!["packetdrill", nowhere[0]],
                vec!["replay", nowhere[0]],
                vec!["sim", "run", nowhere[0]],
                vec!["fleet", "plan", "--topology", nowhere[0]],
                vec!["clock", "check", nowhere[0], "--fat-tree", "4"],
                vec!["clock", "diff", nowhere[0], nowhere[1]],
                vec!["clock", "replan", nowhere[0], "n1"],
                vec!["reproduce", "no-such-paper"],
                vec!["reproduce", "list", "--out", "/nowhere/it"],
                vec!["man", "no-such-command"],
                vec!["rack", "switch", "lo"],
            ],
        ),
    ] {
        for call in calls {
            let (found, lines) = code(&call);
            assert_eq!(found, Some(expected), "{call:?}");
            assert!(expected != 2 || lines == 1, "{call:?}: {lines} lines");
        }
    }
}
