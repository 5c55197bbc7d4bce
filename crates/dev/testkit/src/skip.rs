//! Tests that cannot run here: each is named at once, and counted at the end of `cargo test`.
//!
//! A test may skip for two reasons only: the system denies the first privileged operation that it needs ([`permitted`]), or
//! a program that it runs is not installed ([`installed`]). Every other error is a failure. With `HITLESS_TESTS=all` a skip
//! is a failure too.
//!
//! ```text
//!   test binary ──skip──▶ stderr, past the capture of the test harness: "skipped: NAME: REASON"
//!                 └──────▶ skipped-PARENT-START, a line each ◀── reporter, the last test binary of a package: "N tests skipped"
//! ```
//!
//! All test binaries of one `cargo test` have cargo as their parent. Its process id and the time at which it started name
//! the file, so two runs at the same time do not count each other's skips.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, thread};

/// Variable that decides whether a skip is allowed: unset, or `all`.
const VARIABLE: &str = "HITLESS_TESTS";
/// Prefix of the names of the files that the reporter reads.
const PREFIX: &str = "hitless-skipped-";

/// Extent of a test that does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    Whole,
    Part,
}

impl Extent {
    const BOTH: [Self; 2] = [Self::Whole, Self::Part];

    fn name(self) -> &'static str {
        match self {
            Self::Whole => "skipped",
            Self::Part => "skipped in part",
        }
    }
}

/// Says that the calling test does not run here, and why. The test then returns. Call it on the test's own thread, which
/// has the test's name.
///
/// # Panics
///
/// With `HITLESS_TESTS=all`.
pub fn skip(reason: impl Display) {
    record(Extent::Whole, &reason.to_string());
}

/// Says that a part of the calling test does not run here, and why. The test goes on with the rest.
///
/// # Panics
///
/// With `HITLESS_TESTS=all`.
pub fn skip_part(reason: impl Display) {
    record(Extent::Part, &reason.to_string());
}

/// The result of the first operation of a test that needs a permission, such as making a namespace; `None`, and the test is
/// skipped, if the system denies it.
///
/// # Panics
///
/// On any other error, and on a skip with `HITLESS_TESTS=all`.
pub fn permitted<T, E: Into<io::Error>>(result: Result<T, E>) -> Option<T> {
    match result.map_err(Into::into) {
        Ok(value) => Some(value),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            skip(without_number(&error));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Checks that a program can be started; if not, the test is skipped.
///
/// # Panics
///
/// On an error other than that the program is missing or may not be started, and on a skip with `HITLESS_TESTS=all`.
pub fn installed(program: &str) -> bool {
    match missing(program) {
        Some(reason) => skip(reason),
        None => return true,
    }
    false
}

/// Reason why a program cannot be started, for [`skip_part`]; `None` if it can.
///
/// # Panics
///
/// On an error other than that the program is missing or may not be started.
pub fn missing(program: &str) -> Option<String> {
    let mut command = Command::new(program);
    // A directory in PATH that may not be searched turns "not found" into "permission denied".
    match command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(_) => None,
        Err(error) if error.kind() == ErrorKind::NotFound => Some(format!("{program} is not installed")),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Some(format!("{program} may not be started")),
        Err(error) => panic!("{program} --version: {error}"),
    }
}

/// Checks that an ordinary user may have a network of his own here, as `unshare` finds it, so that a test does not take a
/// bug of ours for a lack of permission; if not, the test is skipped.
///
/// # Panics
///
/// If `unshare` fails for another reason, and on a skip with `HITLESS_TESTS=all`.
pub fn rootless_namespaces() -> bool {
    if !installed("unshare") {
        return false;
    }
    let attempt =
        Command::new("unshare").args(["--user", "--map-root-user", "--net", "true"]).env("LC_ALL", "C").output();
    let attempt = attempt.unwrap_or_else(|error| panic!("unshare: {error}"));
    if attempt.status.success() {
        return true;
    }
    let said = String::from_utf8_lossy(&attempt.stderr).trim().to_owned();
    // The last is what a machine says that allows no user namespaces at all.
    let denials = ["Operation not permitted", "Permission denied", "No space left on device"];
    assert!(denials.iter().any(|denial| said.contains(denial)), "{said}");
    skip(format!("no user namespaces: {said}"));
    false
}

/// The whole program of the reporter: prints how many tests of this run of cargo were skipped so far, and why.
pub fn report() -> ExitCode {
    // The protocol of test binaries: nextest asks for a list, and there is nothing to run.
    if env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let run = ParentProcess::of_parent();
    remove_ended(&run);
    let tally = SkipCounts::read(&run);
    // A reader that has gone is no reason to fail.
    let _ = writeln!(io::stdout(), "\n{tally}");
    ExitCode::from(u8::from(must_run_all() && !tally.0.is_empty()))
}

fn must_run_all() -> bool {
    match env::var_os(VARIABLE) {
        None => false,
        Some(value) if value.is_empty() => false,
        Some(value) if value == "all" => true,
        Some(value) => panic!("{VARIABLE}={}: expected all, or nothing", value.display()),
    }
}

fn record(extent: Extent, reason: &str) {
    let (test, reason) = (test_name(), reason.replace(['\n', '\t'], " "));
    let line = [extent.name(), &binary_name(), &test, &reason].join("\t") + "\n";
    ParentProcess::of_parent().append(&line);
    assert!(!must_run_all(), "{}, which {VARIABLE}=all forbids: {reason}", extent.name());
    // Not by a macro: the test harness captures what those print, and drops it if the test passes.
    let _ = writeln!(io::stderr(), "{}: {test}: {reason}", extent.name());
}

/// The harness names the thread of a test after it, unless it runs the test on the main thread.
fn test_name() -> String {
    let thread = thread::current();
    let from_runner = || env::var("NEXTEST_TEST_NAME").ok();
    let exact = || {
        let arguments: Vec<String> = env::args().skip(1).collect();
        let name = arguments.iter().find(|argument| !argument.starts_with('-')).cloned();
        name.filter(|_| arguments.iter().any(|argument| argument == "--exact"))
    };
    match thread.name() {
        Some("main") | None => from_runner().or_else(exact).unwrap_or_else(|| UNKNOWN.to_owned()),
        Some(name) => name.to_owned(),
    }
}

/// A test whose name cannot be found out, as with `--test-threads=1`.
const UNKNOWN: &str = "a test";

/// `monitor` for `target/debug/deps/monitor-0123456789abcdef`.
fn binary_name() -> String {
    let binary = env::current_exe().unwrap_or_default();
    let stem = binary.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    stem.rsplit_once('-').map_or(stem, |(name, _)| name).to_owned()
}

/// The error number says nothing to a reader.
fn without_number(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error ").map_or(text.as_str(), |(text, _)| text).to_owned()
}

/// The process that started the test binaries: its id and its start time, since ids are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ParentProcess {
    process: u32,
    started: u64,
}

impl ParentProcess {
    fn of_parent() -> Self {
        let process = parent_id();
        Self { process, started: started(process).unwrap_or(0) }
    }

    fn file(self) -> String {
        format!("{PREFIX}{}-{}", self.process, self.started)
    }

    fn of_file(name: &str) -> Option<Self> {
        let (process, started) = name.strip_prefix(PREFIX)?.split_once('-')?;
        Some(Self { process: process.parse().ok()?, started: started.parse().ok()? })
    }

    /// One write, which the kernel appends as a whole.
    fn append(self, line: &str) {
        let mut failures = Vec::new();
        for folder in folders() {
            let path = folder.join(self.file());
            let file = OpenOptions::new().create(true).append(true).open(&path);
            match file.and_then(|mut file| file.write_all(line.as_bytes())) {
                Ok(()) => return,
                Err(error) => failures.push(format!("{}: {error}", path.display())),
            }
        }
        panic!("a skipped test cannot be counted: {}", failures.join("; "));
    }
}

/// Start time of a process in ticks since boot: the twenty-second field of its `stat`.
fn started(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field, a name in parentheses, may have spaces in it.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Beside the test binaries; for somebody who may not write there, where temporary files go.
fn folders() -> Vec<PathBuf> {
    let binary = env::current_exe().unwrap_or_default();
    let build = binary.ancestors().nth(2).map(Path::to_owned);
    build.into_iter().chain([env::temp_dir()]).collect()
}

/// Removes the files of runs that are over.
fn remove_ended(current: &ParentProcess) {
    for folder in folders() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let run = entry.file_name().to_str().and_then(ParentProcess::of_file);
            if run.is_some_and(|run| run != *current && started(run.process) != Some(run.started)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Skips of a run: reason, then test binary, then tests.
#[derive(Debug, Default)]
struct SkipCounts(BTreeMap<(Extent, String), BTreeMap<String, Vec<String>>>);

impl SkipCounts {
    fn read(run: &ParentProcess) -> Self {
        let read = |folder: PathBuf| fs::read_to_string(folder.join(run.file())).unwrap_or_default();
        Self::parse(&folders().into_iter().map(read).collect::<String>())
    }

    /// A test that skips twice for the same reason is counted once.
    fn parse(lines: &str) -> Self {
        let mut tally = Self::default();
        for line in lines.lines() {
            let mut fields = line.split('\t').map(str::to_owned);
            let (Some(extent), Some(binary), Some(test), Some(reason)) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let Some(extent) = Extent::BOTH.into_iter().find(|known| known.name() == extent) else { continue };
            let tests = tally.0.entry((extent, reason)).or_default().entry(binary).or_default();
            if test == UNKNOWN || !tests.contains(&test) {
                tests.push(test);
            }
        }
        tally
    }

    fn of(&self, extent: Extent) -> impl Iterator<Item = (&str, &BTreeMap<String, Vec<String>>)> {
        let with_extent = self.0.iter().filter(move |((of, _), _)| *of == extent);
        with_extent.map(|((_, reason), binaries)| (reason.as_str(), binaries))
    }

    /// Tests, each counted once however many reasons it had.
    fn count(&self, extent: Extent) -> usize {
        let all = || self.of(extent).flat_map(|(_, binaries)| binaries);
        let named: BTreeSet<_> = all()
            .flat_map(|(binary, tests)| tests.iter().map(move |test| (binary, test)))
            .filter(|(_, test)| *test != UNKNOWN)
            .collect();
        named.len() + all().flat_map(|(_, tests)| tests).filter(|test| *test == UNKNOWN).count()
    }
}

impl Display for SkipCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "no test was skipped");
        }
        for extent in Extent::BOTH {
            let count = self.count(extent);
            if count == 0 {
                continue;
            }
            let tests = if count == 1 { "test" } else { "tests" };
            writeln!(f, "{count} {tests} {} ({VARIABLE}=all makes that a failure):", extent.name())?;
            for (reason, binaries) in self.of(extent) {
                let each: Vec<String> =
                    binaries.iter().map(|(binary, tests)| format!("{binary} {}", tests.len())).collect();
                let count: usize = binaries.values().map(Vec::len).sum();
                writeln!(f, "  {count:>3}  {reason} ({})", each.join(", "))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_are_counted_by_reason_and_a_test_only_once() {
        let lines = "skipped\tlive\ta\tno tshark\nskipped\tlive\tb\tno tshark\nskipped\tlive\ta\tno tshark\n\
                     skipped\tbus\tc\tno redis\nskipped\tlive\tb\tno redis\nskipped in part\tsoak\td\tno iperf3\nbroken\n";
        let tally = SkipCounts::parse(lines);
        assert_eq!(Extent::BOTH.map(|extent| tally.count(extent)), [3, 1]);
        let expected = [
            "3 tests skipped (HITLESS_TESTS=all makes that a failure):",
            "    2  no redis (bus 1, live 1)",
            "    2  no tshark (live 2)",
            "1 test skipped in part (HITLESS_TESTS=all makes that a failure):",
            "    1  no iperf3 (soak 1)",
        ];
        assert_eq!(tally.to_string().lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn tests_without_a_name_are_all_counted() {
        let line = format!("skipped\tlive\t{UNKNOWN}\tno tshark\n");
        assert_eq!(SkipCounts::parse(&line.repeat(3)).count(Extent::Whole), 3);
    }

    #[test]
    fn nothing_skipped_says_so() {
        assert_eq!(SkipCounts::default().to_string(), "no test was skipped\n");
    }

    #[test]
    fn the_file_of_a_run_names_its_process_and_when_that_started() {
        let run = ParentProcess::of_parent();
        assert_eq!(run.process, parent_id());
        assert_eq!(ParentProcess::of_file(&run.file()), Some(run));
        assert_eq!(ParentProcess::of_file("hitless-skipped-x-1"), None);
        assert!(started(std::process::id()).is_some_and(|ticks| ticks > 0));
    }

    #[test]
    fn a_program_that_does_not_exist_is_missing_and_one_that_does_is_not() {
        assert_eq!(missing("hitless-no-such-program").as_deref(), Some("hitless-no-such-program is not installed"));
        assert_eq!(missing(env::current_exe().unwrap().to_str().unwrap()), None);
    }
}
