//! A daemon that goes on without a terminal, and how one reports and ends.

use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use daemon::DaemonEnd;
use daemon::RunDirectory;
use daemon::log::LogWriter;

use crate::output::{CommandResult, Failure, say};

/// Time that a daemon that ends waits for its last reports to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The run directory, for a command that trusts what it finds there. One that others may write to is a wrong argument if it was
/// named, and otherwise the machine's fault.
pub(crate) fn run_directory() -> Result<RunDirectory, Failure> {
    let directory = RunDirectory::of_this_system();
    trusted(&directory)?;
    Ok(directory)
}

pub(crate) fn trusted(directory: &RunDirectory) -> CommandResult {
    directory.check().map_err(|error| {
        let text = format!("the run directory {} is not used: {error}", directory.path().display());
        if directory.is_given() { Failure::Usage(text) } else { Failure::Outside(text) }
    })
}

/// Starts the same command again without a terminal, and waits until it answers (`pid_of` is the process that answers to this
/// name, if one does) or ends. What it says goes to a file; it says `begun` first.
pub(crate) fn in_background(name: &str, begun: &str, pid_of: impl Fn(&RunDirectory) -> Option<u32>) -> CommandResult {
    let outside = |error: io::Error| Failure::Outside(error.to_string());
    let directory = run_directory()?;
    let made =
        directory.make().map_err(|error| Failure::Outside(format!("{}: {error}", directory.path().display())))?;
    made.iter().for_each(|line| say(line));
    let log = directory.log(name);
    let file = directory.open_log(name).map_err(|error| Failure::Outside(format!("{}: {error}", log.display())))?;
    let before = file.metadata().map_err(outside)?.len() as usize;
    let said = || std::fs::read_to_string(&log).unwrap_or_default().get(before..).unwrap_or_default().to_owned();
    let program = std::env::current_exe().map_err(outside)?;
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != "--background");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut daemon = command.spawn().map_err(outside)?;
    loop {
        if let Ok(Some(status)) = daemon.try_wait() {
            let last = said().lines().last().unwrap_or("the daemon ended").trim_start_matches("error: ").to_owned();
            // Not if the log is that of another.
            if let (Ok(Some(_)), None) = (directory.lock_name(name), pid_of(&directory)) {
                directory.tidy(name);
            }
            return Err(if status.code() == Some(2) { Failure::Usage(last) } else { Failure::Outside(last) });
        }
        if pid_of(&directory) == Some(daemon.id()) {
            // A thread of its own writes that.
            for _ in (0..50).take_while(|_| !said().contains(begun)) {
                std::thread::sleep(Duration::from_millis(20));
            }
            said().lines().for_each(say);
            say(&format!("{name} goes on in the background and tells {}", log.display()));
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a daemon whose reports are written by a thread of their own: a reader that is slow does not hold it up.
pub(crate) fn run_reporting<T>(
    daemon: impl FnOnce(&mut dyn FnMut(&str)) -> Result<T, DaemonEnd>,
) -> Result<T, Failure> {
    let written = |text: &str| {
        daemon::service::report_status(text);
        say(text);
    };
    let mut teller = LogWriter::start(written).map_err(|error| Failure::Outside(error.to_string()))?;
    let ended = daemon(&mut |text| teller.tell(text));
    teller.finish(LAST_WORDS);
    ended.map_err(|ended| match ended {
        DaemonEnd::Arguments(what) => Failure::Usage(what),
        DaemonEnd::Trouble(what) => Failure::Outside(what),
    })
}

/// Makes the command of the process that keeps a stand-in of this name if its daemon is killed.
pub(crate) fn keeper(name: &str, directory: &RunDirectory) -> Result<impl Fn() -> Command + Sync, Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::Outside(error.to_string()))?;
    let (name, directory) = (name.to_owned(), directory.path().to_owned());
    Ok(move || {
        let mut command = Command::new(&program);
        command.args(["link", "keep", &name, "--directory"]).arg(&directory);
        command
    })
}
