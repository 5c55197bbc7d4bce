//! The program under test, as processes, and what they say.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use daemon::RunDirectory;
use link::control::{LinkReply, LinkRequest};
use linux::clock::time_of_day;
use linux::net::Namespace;
use serde_json::Value;

use super::{Lab, plug};

pub fn hitless(namespace: &Namespace, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
    command.args(args).stdin(Stdio::null());
    namespace.prepare(&mut command).unwrap();
    command
}

/// Runs it to its end, which must be a good one.
pub fn finished(mut command: Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// A process whose lines are read as they come. Killed if the test forgets it.
pub struct Running<'scope> {
    child: Child,
    lines: ScopedJoinHandle<'scope, Vec<Line>>,
}

/// A line of standard output, and when it came.
#[derive(Clone, Debug)]
pub struct Line {
    pub at: Duration,
    pub json: Value,
}

/// Standard error of a process.
#[derive(Debug, Default)]
pub struct Said(Mutex<String>);

impl Said {
    pub fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    fn hear(&self, line: &str) {
        let mut text = self.0.lock().unwrap();
        text.push_str(line);
        text.push('\n');
    }

    pub fn wait_for(&self, words: &[&str]) {
        wait_for(&format!("{words:?}"), || words.iter().all(|word| self.text().contains(word)));
    }
}

impl<'scope> Running<'scope> {
    /// Each line of its standard output must be JSON, or all of it together.
    pub fn start(scope: &'scope Scope<'scope, '_>, mut command: Command, said: &'scope Said) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        scope.spawn(move || BufReader::new(stderr).lines().map_while(Result::ok).for_each(|line| said.hear(&line)));
        let lines = scope.spawn(move || read_lines(stdout));
        Self { child, lines }
    }

    /// Ends it as Ctrl-C would; what it has printed.
    pub fn end(mut self) -> Vec<Line> {
        Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(self.child.wait().unwrap().success());
        let Self { lines, .. } = self;
        lines.join().unwrap()
    }
}

/// The daemon of a protected link at one end, in the place of its interface. Killed when dropped.
pub struct Protected(Child);

impl Protected {
    pub fn up(lab: &Lab, end: usize) -> Self {
        let mut command = hitless(&lab.ends[end], &["link", "up", plug(end), "--take-over"]);
        command.env("HITLESS_RUN_DIR", directory(lab, end).path());
        command.env(daemon::keeper::LAB, std::process::id().to_string());
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    pub fn is_active(lab: &Lab, end: usize) -> bool {
        matches!(directory(lab, end).ask("hit0", LinkRequest::Status), Ok(LinkReply::Status(status)) if status.is_active())
    }
}

impl Drop for Protected {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn directory(lab: &Lab, end: usize) -> RunDirectory {
    RunDirectory::at(lab.folder.join(["left", "right"][end]))
}

fn read_lines(stdout: impl Read) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut whole = String::new();
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        whole += &line;
        if let Ok(json) = serde_json::from_str(&whole) {
            lines.push(Line { at: time_of_day(), json });
            whole.clear();
        }
    }
    assert!(whole.is_empty(), "not JSON: {whole}");
    lines
}

/// Generous, since the machine may be busy.
pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited a minute for {what}");
}
