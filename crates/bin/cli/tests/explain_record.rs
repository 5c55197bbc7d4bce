//! `hitless explain record`: what is in its file, who may read that, and what is left of a recorder that was killed.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use linux::net::{Namespace, Netlink};

const SECRET: &[u8] = b"password=hunter2";

/// A folder and a namespace with nothing but a loopback.
struct RecordLab {
    namespace: Namespace,
    folder: PathBuf,
}

impl Drop for RecordLab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl RecordLab {
    /// `None`, and the test is skipped, where nobody may trace.
    fn new(name: &str) -> Option<Self> {
        let namespace = testkit::permitted(Namespace::new())?;
        let folder = std::env::temp_dir().join(format!("hitless-record-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        namespace.with(|| Netlink::open().unwrap().set_loopback_up().unwrap()).unwrap();
        let lab = Self { namespace, folder };
        let tried = lab.record("tried", "100ms").output().unwrap();
        let said = String::from_utf8_lossy(&tried.stderr).into_owned();
        if said.contains("needs root") || said.contains("cannot mount") || said.contains("no tracing") {
            testkit::skip(said.trim());
            return None;
        }
        assert!(tried.status.success(), "{said}");
        Some(lab)
    }

    fn record(&self, out: &str, lasts: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
        command.args(["explain", "record", "lo", "--for", lasts, "--out"]).arg(self.folder.join(out));
        self.namespace.prepare(&mut command).unwrap();
        command.stdin(Stdio::null());
        command
    }

    /// Running, with its instance made.
    fn started(&self, out: &str, lasts: &str) -> Child {
        let child = self.record(out, lasts).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let name = format!("hitless-{}-", child.id());
        wait_for(&name, || instances().iter().any(|instance| instance.starts_with(&name)));
        wait_for("its file", || self.folder.join(out).exists());
        child
    }

    fn talk(&self) {
        let listener = self.namespace.with(|| TcpListener::bind("127.0.0.1:7000").unwrap()).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut all = Vec::new();
                stream.read_to_end(&mut all).unwrap();
            });
            let mut stream = self.namespace.with(|| TcpStream::connect("127.0.0.1:7000").unwrap()).unwrap();
            for _ in 0..50 {
                stream.write_all(&SECRET.repeat(10)).unwrap();
                thread::sleep(Duration::from_millis(1));
            }
        });
    }
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if is_there() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("waited for {what}");
}

/// Tracing instances of this host, from a mount of our own.
fn instances() -> Vec<String> {
    let script = "mount -t tracefs none /sys/kernel/tracing 2>/dev/null; ls /sys/kernel/tracing/instances";
    let listed = Command::new("unshare").args(["-m", "sh", "-c", script]).output().unwrap();
    String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn of(child: u32) -> Vec<String> {
    instances().into_iter().filter(|name| name.starts_with(&format!("hitless-{child}-"))).collect()
}

fn contains(file: &Path, what: &[u8]) -> bool {
    fs::read(file).unwrap().windows(what.len()).any(|bytes| bytes == what)
}

#[test]
fn a_recording_has_no_payload_and_is_its_owners_alone() {
    let Some(lab) = RecordLab::new("payload") else { return };
    let mut recorder = lab.started("file", "1500ms");
    lab.talk();
    assert!(recorder.wait().unwrap().success());
    let file = lab.folder.join("file");
    assert!(!contains(&file, SECRET) && !contains(&file, &SECRET[..4]), "headers are what was promised");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let mut explained = Command::new(env!("CARGO_BIN_EXE_hitless"));
    let explained = explained.args(["--json", "explain"]).arg(&file).output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&explained.stdout).unwrap();
    // Its original lengths say what was sent.
    assert_eq!(answer["connections"][0]["bytes_up"], 50 * 10 * SECRET.len());
}

#[test]
fn a_recorder_follows_no_symbolic_link_and_replaces_no_file() {
    let Some(lab) = RecordLab::new("links") else { return };
    let (link, absent, mine) = (lab.folder.join("link"), lab.folder.join("absent"), lab.folder.join("mine"));
    symlink(&absent, &link).unwrap();
    fs::write(&mine, "mine").unwrap();
    for out in ["link", "mine"] {
        let Output { status, stderr, .. } = lab.record(out, "100ms").output().unwrap();
        let said = String::from_utf8(stderr).unwrap();
        assert_eq!((status.code(), said.contains("exists already")), (Some(2), true), "{said}");
    }
    assert!(!absent.exists());
    assert_eq!(fs::read(&mine).unwrap(), b"mine");
}

#[test]
fn tracing_of_a_recorder_that_was_killed_ends_with_the_next_one() {
    let Some(lab) = RecordLab::new("killed") else { return };
    let mut killed = lab.started("killed", "60s");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(of(killed.id()).len(), 1, "nobody was there to remove it");
    // One that lives keeps its own, also while another one cleans up.
    let mut alive = lab.started("alive", "60s");
    assert_eq!((of(killed.id()).len(), of(alive.id()).len()), (0, 1));
    let next = lab.record("next", "100ms").output().unwrap();
    assert!(next.status.success(), "{}", String::from_utf8_lossy(&next.stderr));
    assert_eq!(of(alive.id()).len(), 1);
    Command::new("kill").args(["-INT", &alive.id().to_string()]).status().unwrap();
    assert!(alive.wait().unwrap().success());
    assert_eq!(of(alive.id()).len(), 0);
}
