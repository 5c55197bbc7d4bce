//! Daemons that a bench starts as processes of their own, signals to them, and what ends with the bench.

#![expect(unsafe_code, reason = "talks to the kernel")]

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use linux::SystemError;
use linux::net::Namespace;

/// A daemon of this program: its run directory, where what it says is appended, and where it lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DaemonPlace<'a> {
    pub program: &'a Path,
    pub run_directory: &'a Path,
    pub log: &'a Path,
    pub namespace: &'a Namespace,
}

impl DaemonPlace<'_> {
    /// The command that starts it. It is killed when the thread that spawns it ends.
    pub(crate) fn command(&self, arguments: &[OsString]) -> Result<Command, SystemError> {
        let log = File::options().create(true).append(true).open(self.log);
        let log = log.map_err(|error| SystemError(format!("{}: {error}", self.log.display())))?;
        let mut command = Command::new(self.program);
        command.args(arguments).env("HITLESS_RUN_DIR", self.run_directory);
        command.env(daemon::keeper::LAB, std::process::id().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // In a group of its own, Ctrl-C leaves it to us to end it.
        command.process_group(0);
        end_with_this_thread(&mut command);
        prefer(&mut command);
        self.namespace.prepare(&mut command)?;
        Ok(command)
    }

    /// Last output of the process.
    pub(crate) fn last_words(&self) -> String {
        let said = fs::read_to_string(self.log).unwrap_or_default();
        said.lines().last().unwrap_or("it said nothing").to_owned()
    }
}

/// Sends a signal to a child that has not been waited for, so that its number is still its own.
pub(crate) fn signal(child: &Child, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: no pointer is passed.
    let result = unsafe { libc::kill(child.id() as libc::pid_t, signal) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Kills a process that a child of ours started.
pub(crate) fn kill(pid: u32) {
    // SAFETY: no pointer is passed.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
}

/// Lets `command` be killed when the thread that spawns it ends, however it ends.
pub(crate) fn end_with_this_thread(command: &mut Command) {
    let hook = || {
        // SAFETY: no pointer is passed.
        let result = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: between fork and exec the hook makes one system call and allocates nothing.
    unsafe { command.pre_exec(hook) };
}

/// The `Nice` of the unit.
const NICE: libc::c_int = -15;

/// Lets `command` go before ordinary processes, as the unit lets a daemon; where this user may not say so, it does not.
pub(crate) fn prefer(command: &mut Command) {
    let hook = || {
        // SAFETY: no pointer is passed.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
        Ok(())
    };
    // SAFETY: between fork and exec the hook makes one system call and allocates nothing.
    unsafe { command.pre_exec(hook) };
}

/// Niceness of a process; 0 if it is gone.
pub(crate) fn nice(child: &Child) -> i32 {
    // SAFETY: no pointer is passed.
    match unsafe { libc::getpriority(libc::PRIO_PROCESS, child.id()) } {
        nice @ -20..=19 => nice,
        _ => 0,
    }
}

/// Other processes whose environment names a path: daemons of ours, and all processes that they started.
pub(crate) fn that_know_of(path: &Path) -> Vec<String> {
    let needle = path.as_os_str().as_bytes();
    let ours = std::process::id().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let others = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && *name != ours);
    let knows = |pid: &String| {
        // A process that has ended meanwhile, or is another user's, is not ours.
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.windows(needle.len()).any(|window| window == needle)
    };
    others.filter(knows).collect()
}
