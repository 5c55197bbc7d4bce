//! Files that commands write: whole or absent, on a full disk and after Ctrl-C, and what was there before stays.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use capture::{CaptureRecord, CaptureWriter};
use linux::clock::Clock;
use units::Timestamp;

const HITLESS: &str = env!("CARGO_BIN_EXE_hitless");
const START: u64 = 1_700_000_000_000_000_000;
const MS: u64 = 1_000_000;

/// A folder of its own for each test, gone when it ends.
struct OwnFolder(PathBuf);

impl OwnFolder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hitless-writers-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// UP and DOWN of a link, 2 ms there and 6 ms back; if `shuffled`, captures that do not fit.
    fn captures(&self, packets: u32, shuffled: bool) -> [String; 2] {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for number in 0..packets {
            let sent = START + u64::from(number) * 20 * MS;
            let of_down = if shuffled { number + packets } else { number };
            up.push((sent, frame(1, 2, number)));
            down.push((sent + 2 * MS, frame(1, 2, of_down)));
            down.push((sent + 3 * MS, frame(2, 1, of_down)));
            up.push((sent + 9 * MS, frame(2, 1, number)));
        }
        [("up", up), ("down", down)].map(|(name, frames)| {
            let path = self.path(&format!("{name}-{shuffled}.pcapng"));
            let mut writer = CaptureWriter::new(File::create(&path).unwrap()).unwrap();
            for (at, bytes) in &frames {
                let (at, len) = (Timestamp(*at), bytes.len() as u32);
                writer.write(&CaptureRecord { at, len, bytes, link_number: 1, link: None }).unwrap();
            }
            path
        })
    }

    fn recorded(&self) -> String {
        let (scenario, logs) = (scenario("incast.toml"), self.path("logs"));
        let output = hitless(&["sim", "run", &scenario, "--record", &logs]);
        assert!(output.status.success(), "{output:?}");
        logs
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Ethernet, IPv4 from 10.0.0.0 to 10.0.0.0, UDP with four bytes.
const HEADERS: [u8; 42] = [
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 0, 10, 0, 0, 0,
    0x0f, 0xa0, 1, 0xbb, 0, 12, 0, 0,
];

/// A packet with a number, between two hosts.
fn frame(from: u8, to: u8, number: u32) -> Vec<u8> {
    let mut frame = HEADERS.to_vec();
    (frame[29], frame[33]) = (from, to);
    frame.extend(number.to_be_bytes());
    frame
}

fn scenario(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../experiments/scenarios").join(name).display().to_string()
}

fn hitless(args: &[&str]) -> Output {
    Command::new(HITLESS).args(args).stdin(Stdio::null()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Files with their paths below a folder, and what they hold; folders hold nothing.
type FolderContents = Vec<(PathBuf, Option<Vec<u8>>)>;

fn contents(folder: &Path) -> FolderContents {
    let (mut folders, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let below = path.strip_prefix(folder).unwrap().to_owned();
            if path.is_dir() {
                found.push((below, None));
                folders.push(path);
            } else {
                found.push((below, Some(fs::read(&path).unwrap())));
            }
        }
    }
    found.sort();
    found
}

fn paths(contents: &FolderContents) -> Vec<&Path> {
    contents.iter().map(|(path, _)| path.as_path()).collect()
}

/// True if every run of `sim run` that is there has all its files, with the same bytes, and a summary is a whole one.
fn has_whole_runs(left: &FolderContents, whole: &FolderContents) -> bool {
    let of_run = |all: &FolderContents, run: &Path| -> FolderContents {
        all.iter().filter(|(path, _)| path.parent() == Some(run)).cloned().collect()
    };
    let (summaries, files): (Vec<_>, Vec<_>) =
        left.iter().filter(|(_, bytes)| bytes.is_some()).partition(|(path, _)| path.ends_with("summary.json"));
    let runs: BTreeSet<&Path> = files.iter().filter_map(|(path, _)| path.parent()).collect();
    let is_json =
        |bytes: &Option<Vec<u8>>| serde_json::from_slice::<serde_json::Value>(bytes.as_deref().unwrap_or_default());
    runs.into_iter().all(|run| of_run(left, run) == of_run(whole, run))
        && summaries.iter().all(|(_, bytes)| is_json(bytes).is_ok())
}

/// A command on a disk of its own, of so few kilobytes, in a mount namespace.
struct SmallDisk {
    disk: PathBuf,
    rootless: bool,
}

impl SmallDisk {
    fn new(folder: &OwnFolder) -> Option<Self> {
        let disk = folder.0.join("disk");
        fs::create_dir_all(&disk).unwrap();
        for rootless in [false, true] {
            let small = Self { disk: disk.clone(), rootless };
            if small.shell(64, "true").output().unwrap().status.success() {
                return Some(small);
            }
        }
        testkit::skip("no mount namespaces");
        None
    }

    fn shell(&self, kilobytes: u32, script: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args(if self.rootless { &["--map-root-user", "--mount"][..] } else { &["--mount"] });
        let disk = self.disk.display();
        let script = format!("mount -t tmpfs -o size={kilobytes}k none {disk} && {script}");
        command.args(["sh", "-c", &script, "sh"]).stdin(Stdio::null());
        command
    }

    /// The exit code, what is said and printed, and what is on the disk then. `before` is the only file on it before.
    fn run(
        &self,
        kilobytes: u32,
        before: Option<&str>,
        args: &[&str],
    ) -> (Option<i32>, String, String, FolderContents) {
        let before = before.map(|name| format!("echo earlier > {name};")).unwrap_or_default();
        let (disk, left) = (self.disk.display(), self.disk.with_extension("left"));
        let _ = fs::remove_dir_all(&left);
        // The disk is gone with its namespace.
        let copied = format!("cp -r {disk}/. {}", left.display());
        let script = format!("cd {disk}; {before} \"$@\"; code=$?; {copied}; exit $code");
        let output = self.shell(kilobytes, &script).arg(HITLESS).args(args).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), said(&output), printed, contents(&left))
    }
}

#[test]
fn a_full_disk_is_exit_code_1_with_the_path_and_leaves_no_half_of_a_file() {
    let folder = OwnFolder::new("full");
    let Some(disk) = SmallDisk::new(&folder) else { return };
    let [up, down] = folder.captures(2_000, false);
    let [_, unfit] = folder.captures(2_000, true);
    let logs = folder.recorded();
    let replayed = folder.path("replayed.pcapng");
    assert!(hitless(&["replay", &logs, "--flow", "1", "--write", &replayed]).status.success());
    // The last word is the file.
    let writers: [&[&str]; 11] = [
        &["radar", "delay", &up, &down, "--csv", "it.csv"],
        &["radar", "flows", &up, "--csv", "it.csv"],
        &["clock", "plan", "--fat-tree", "16", "--write-topology", "it.csv"],
        &["fleet", "topology", "--pods", "20", "--write", "it.csv"],
        &["fleet", "simulate", "--pods", "20", "--days", "300", "--out", "it.csv"],
        &["replay", &logs, "--write", "it.pcapng"],
        &["reproduce", "lossradar/lr.bandwidth", "--out", "it.html"],
        &["radar", "losses", &up, &unfit, "--whole", "--html", "it.html"],
        &["radar", "losses", &up, &unfit, "--whole", "--write", "it.pcapng"],
        &["explain", &replayed, "--html", "it.html"],
        &["demo", "--simulated", "--rounds", "1", "--html", "it.html"],
    ];
    for args in writers {
        let name = args[args.len() - 1];
        for before in [None, Some(name)] {
            let (code, told, printed, left) = disk.run(12, before, args);
            let is_named = told.lines().last().is_some_and(|line| line.starts_with("error: ") && line.contains(name));
            assert!(code == Some(1) && is_named, "{args:?}: {code:?} {told}");
            assert_eq!(args[0] == "reproduce", printed.contains("match"), "{args:?}: {printed}");
            let earlier = before.map(|name| (PathBuf::from(name), Some(b"earlier\n".to_vec())));
            assert_eq!(left, earlier.into_iter().collect::<FolderContents>(), "{args:?}");
        }
    }
}

#[test]
fn a_full_disk_leaves_no_half_of_a_file_of_a_run() {
    let folder = OwnFolder::new("runs");
    let Some(disk) = SmallDisk::new(&folder) else { return };
    let (incast, out) = (scenario("incast.toml"), folder.0.join("whole"));
    let output = hitless(&["sim", "run", &incast, "--out", &out.join("it").display().to_string()]);
    assert!(output.status.success(), "{}", said(&output));
    let whole = contents(&out);
    for kilobytes in [12, 40, 80, 160] {
        let (code, told, printed, left) = disk.run(kilobytes, None, &["sim", "run", &incast, "--out", "it"]);
        let is_named = told.lines().last().is_some_and(|line| line.starts_with("error: it/"));
        assert!(code == Some(1) && is_named && printed.is_empty(), "{kilobytes} kB: {code:?} {told}");
        let halves: FolderContents = left.into_iter().filter(|entry| !whole.contains(entry)).collect();
        assert!(halves.is_empty(), "{kilobytes} kB: {:?}", paths(&halves));
    }
}

#[test]
fn a_folder_of_files_for_ptp4l_or_of_logs_is_whole_or_absent() {
    let folder = OwnFolder::new("folders");
    let Some(disk) = SmallDisk::new(&folder) else { return };
    let incast = scenario("incast.toml");
    let writers: [&[&str]; 3] = [
        &["clock", "plan", "--fat-tree", "16", "--ptp4l", "it"],
        &["clock", "plan", "--fat-tree", "16", "--ptp4l", "."],
        &["sim", "run", &incast, "--record", "it"],
    ];
    for args in writers {
        let (code, told, printed, left) = disk.run(64, None, args);
        let path = args[args.len() - 1];
        assert!(code == Some(1) && told.contains(&format!("{} {path}", args[args.len() - 2])), "{args:?}: {told}");
        assert_eq!((left, printed.as_str()), (Vec::new(), ""), "{args:?}");
    }
    let refused = hitless(&["clock", "plan", "--fat-tree", "4", "--ptp4l", HITLESS]);
    assert_eq!(refused.status.code(), Some(2), "a file is a wrong argument: {}", said(&refused));
}

#[test]
fn a_delay_that_is_refused_leaves_the_earlier_csv() {
    let folder = OwnFolder::new("refused");
    let [up, down] = folder.captures(100, true);
    let csv = folder.path("earlier.csv");
    fs::write(&csv, "earlier").unwrap();
    let output = hitless(&["radar", "delay", &up, &down, "--csv", &csv]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert_eq!(fs::read(&csv).unwrap(), b"earlier");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 3, "nothing is left beside it");
}

#[test]
fn pages_of_demonstrations_are_refused_before_they_run_and_replace_nothing_until_they_end() {
    let folder = OwnFolder::new("demos");
    for demo in [&["demo", "--simulated"][..], &["rack", "demo", "--simulated"], &["clock", "demo"]] {
        let nowhere = folder.path("nowhere/page.html");
        let output = hitless(&[demo, &["--html", &nowhere]].concat());
        assert_eq!(output.status.code(), Some(2), "{demo:?}: {}", said(&output));
        assert!(said(&output).contains(&nowhere), "{demo:?}: {}", said(&output));
    }
    for demo in [&["demo", "--simulated"][..], &["rack", "demo", "--simulated"]] {
        let page = folder.path("page.html");
        fs::write(&page, "earlier").unwrap();
        let mut command = Command::new(HITLESS);
        command.args(demo).args(["--html", &page]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let ended = running.try_wait().unwrap();
        interrupt(&running);
        running.wait().unwrap();
        let found = fs::read_to_string(&page).unwrap();
        assert!(found == "earlier" || found.ends_with("</html>\n"), "{demo:?}: {ended:?} {found}");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    }
}

fn interrupt(running: &Child) {
    Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap();
}

/// Runs a command to its end, which shows how long it takes, and then interrupts it at moments of that time. It must leave what it
/// leaves when it ends, or what was there before, or what `may_be_left`.
fn interrupted_at_any_moment(
    args: &[&str],
    out: &Path,
    may_be_left: impl Fn(&FolderContents, &FolderContents) -> bool,
) {
    let start = || {
        let mut command = Command::new(HITLESS);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let clear = || {
        let _ = fs::remove_dir_all(out);
        fs::create_dir_all(out).unwrap();
    };
    clear();
    let clock = Clock::start();
    assert!(start().wait().unwrap().success(), "{args:?}");
    let took = clock.elapsed();
    let whole = contents(out);
    assert!(!whole.is_empty(), "{args:?}");
    let (mut stopped, mut ended) = (0, 0);
    for turn in 1..=8 {
        clear();
        let mut running = start();
        // A multiple of the golden ratio spreads the moments evenly, the second half over the end, where files are written.
        let share = f64::from(turn) * 0.618 % 1.0;
        std::thread::sleep(took.mul_f64(if turn % 2 == 0 { share } else { 0.5 + share / 2.0 }));
        interrupt(&running);
        let code = running.wait().unwrap().code();
        // A signal may come before anything listens to it, or after all is done.
        assert!(matches!(code, None | Some(0 | 130)), "{args:?}: {code:?}");
        let left = contents(out);
        assert!(
            left.is_empty() || left == whole || may_be_left(&left, &whole),
            "{args:?}: {code:?} {:?}",
            paths(&left)
        );
        stopped += u32::from(left != whole);
        ended += u32::from(left == whole);
    }
    assert!(stopped > 0, "{args:?}: {stopped} stopped, {ended} ended");
}

#[test]
fn ctrl_c_at_any_moment_leaves_whole_files_or_none() {
    let folder = OwnFolder::new("interrupted");
    let out = folder.0.join("out");
    let to = |name: &str| out.join(name).display().to_string();
    let [up, down] = folder.captures(3_000, false);
    let logs = folder.recorded();
    let commands: [&[&str]; 5] = [
        &["fleet", "topology", "--pods", "40", "--write", &to("it.csv")],
        &["fleet", "simulate", "--pods", "40", "--days", "3000", "--out", &to("it.csv")],
        &["clock", "plan", "--fat-tree", "16", "--ptp4l", &to("it")],
        &["replay", &logs, "--write", &to("it.pcapng")],
        &["radar", "delay", &up, &down, "--csv", &to("it.csv")],
    ];
    for args in commands {
        interrupted_at_any_moment(args, &out, |_, _| false);
    }
}

#[test]
fn of_interrupted_simulations_runs_are_left_that_ended_and_no_others() {
    let folder = OwnFolder::new("points");
    let (out, incast) = (folder.0.join("out"), scenario("incast.toml"));
    let it = out.join("it").display().to_string();
    for option in ["--out", "--record"] {
        interrupted_at_any_moment(&["sim", "run", &incast, option, &it], &out, |left, whole| {
            let no_folder_is_empty = left
                .iter()
                .all(|(path, bytes)| bytes.is_some() || left.iter().any(|(inside, _)| inside.parent() == Some(path)));
            // One that was ended before it listened to the signal has made its folder, and no more.
            paths(left) == [Path::new("it")] || no_folder_is_empty && has_whole_runs(left, whole)
        });
    }
}

#[test]
fn an_interrupted_reproduction_leaves_a_whole_page_or_the_earlier_one() {
    let folder = OwnFolder::new("pages");
    let page = folder.path("it.html");
    for (before, millis) in [(None, 50), (None, 400), (Some("earlier"), 400), (None, 1_500)] {
        let _ = fs::remove_file(&page);
        if let Some(before) = before {
            fs::write(&page, before).unwrap();
        }
        let mut command = Command::new(HITLESS);
        command.args(["reproduce", "lossradar/lr.bandwidth", "--out", &page]);
        let mut running = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        interrupt(&running);
        let code = running.wait().unwrap().code();
        assert!(matches!(code, None | Some(0 | 130)), "{millis} ms: {code:?}");
        let found = fs::read_to_string(&page).ok();
        let is_whole = found.as_deref().is_none_or(|page| page.trim_end().ends_with("</html>"));
        assert!(found.as_deref() == before || is_whole, "{millis} ms: {found:?}");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), usize::from(found.is_some()), "nothing is left beside it");
    }
}

#[test]
fn what_is_no_file_is_written_to_and_not_replaced() {
    let folder = OwnFolder::new("devices");
    let link = folder.path("it.csv");
    std::os::unix::fs::symlink("/dev/full", &link).unwrap();
    let output = hitless(&["fleet", "topology", "--pods", "20", "--write", &link]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains(&link), "{}", said(&output));
    assert!(Path::new(&link).is_symlink() && !fs::metadata("/dev/full").unwrap().is_file());
}
