//! A meter and a collector that do not hear each other, for an operator: a line that says why, and an exit code.

#[path = "../../../base/bus/tests/redis_server/mod.rs"]
mod redis_server;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use linux::net::{Namespace, Netlink};
use redis_server::{Keeps, RedisServer};
use serde_json::Value;

/// A namespace with a loopback to meter, and a folder for keys.
struct Lab {
    host: Namespace,
    folder: PathBuf,
}

impl Lab {
    /// `None`, and the test is skipped, where no namespace may be made.
    fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let host = testkit::permitted(Namespace::new())?;
        host.with(|| Netlink::open()?.set_loopback_up()).unwrap().unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("hitless-answers-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Some(Self { host, folder })
    }

    fn key(&self, digit: &str) -> String {
        let path = self.folder.join(digit);
        fs::write(&path, digit.repeat(32)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.display().to_string()
    }

    fn hitless(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
        command.args(args).stdin(Stdio::null());
        self.host.prepare(&mut command).unwrap();
        command
    }

    /// A meter that runs for a moment: exit code, what it printed, and said.
    fn meter(&self, more: &[&str]) -> (i32, Value, String) {
        let fixed = ["--json", "radar", "meter", "lo", "--segment", "cable", "--seconds", "1"];
        let output = self.hitless(&[&fixed, more].concat()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
        (output.status.code().unwrap_or(-1), json, said)
    }

    /// Runs a meter again and again until the collector hears it.
    fn heard_meter(&self, more: &[&str], is_heard: impl Fn(&Value, &str) -> bool) -> (i32, Value, String) {
        for _ in 0..20 {
            let (code, json, said) = self.meter(more);
            if is_heard(&json, &said) {
                return (code, json, said);
            }
        }
        panic!("nobody hears a meter: {:?}", self.meter(more));
    }

    fn collector(&self, more: &[&str]) -> Collector {
        let mut command = self.hitless(&[&["radar", "collect"], more].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let place = line.strip_prefix("waiting for meters at ").and_then(|rest| rest.split(';').next());
        let place = place.unwrap_or_else(|| panic!("{line}")).to_owned();
        Collector { child, said, place }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

struct Collector {
    child: Child,
    said: BufReader<std::process::ChildStderr>,
    place: String,
}

impl Collector {
    /// Ends it as Ctrl-C would: exit code, and all that it said.
    fn end(mut self) -> (i32, String) {
        Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        let mut said = String::new();
        let _ = std::io::Read::read_to_string(&mut self.said, &mut said);
        (self.child.wait().unwrap().code().unwrap_or(-1), said)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// By its address and, where there is a server, by its announcement in Redis: what to give the collector, and the meter.
fn over_both(test: impl Fn(&Lab, &dyn Fn(&[&str]) -> Collector)) {
    let Some(lab) = Lab::new() else { return };
    test(&lab, &|more| lab.collector(&[&["--listen", "127.0.0.1:0"], more].concat()));
    let socket = lab.folder.join("redis.sock").display().to_string();
    let Some(_redis) = RedisServer::start_with(Keeps::Nothing, &["--unixsocket", &socket]) else { return };
    let bus = format!("redis+unix://{socket}");
    test(&lab, &|more| {
        let listen = ["--listen", "127.0.0.1:0", "--from", &bus];
        let mut collector = lab.collector(&[&listen, more].concat());
        collector.place = bus.clone();
        collector
    });
}

#[test]
fn a_meter_whose_reports_are_taken_knows_it_and_ends_with_0() {
    over_both(|lab, collect| {
        let key = lab.key("a");
        let collector = collect(&["--key", &key]);
        let args = ["--to", &collector.place, "--key", &key];
        let (code, json, said) = lab.heard_meter(&args, |json, _| json["reports_taken"].as_u64() > Some(0));
        let count = |what: &str| json[what].as_u64().unwrap();
        assert_eq!((code, count("reports_refused")), (0, 0), "{said}{json}");
        assert!(count("reports_taken") <= count("reports"), "{json}");
        let (code, said) = collector.end();
        assert!(code == 1 && said.contains("no segment was heard of 2 ends"), "{code}: {said}");
    });
}

#[test]
fn a_meter_with_another_key_or_none_says_so_and_ends_with_1() {
    over_both(|lab, collect| {
        let (ours, other) = (lab.key("a"), lab.key("b"));
        let collector = collect(&["--key", &ours]);
        for key in [&[][..], &["--key", &other]] {
            let args = [&["--to", collector.place.as_str()], key].concat();
            let (code, json, said) = lab.heard_meter(&args, |_, said| said.contains("the same --key"));
            assert_eq!((code, json["reports_taken"].as_u64().unwrap_or(0)), (1, 0), "{said}{json}");
        }
        let (code, said) = collector.end();
        assert!(code == 1 && said.contains("no meter has reported"), "{code}: {said}");
    });
}

#[test]
fn a_meter_that_nobody_hears_says_so_and_ends_with_1() {
    let Some(lab) = Lab::new() else { return };
    let (code, json, said) = lab.meter(&["--to", "127.0.0.1:7"]);
    assert!(code == 1 && json["reports"] == 0, "{said}{json}");
    assert!(said.contains("no report reached 127.0.0.1:7: connection refused"), "{said}");
    let socket = lab.folder.join("redis.sock").display().to_string();
    let Some(_redis) = RedisServer::start_with(Keeps::Nothing, &["--unixsocket", &socket]) else { return };
    let (code, json, said) = lab.meter(&["--to", &format!("redis+unix://{socket}")]);
    assert!(code == 1 && json["reports"] == 0 && json["reports_taken"] == 0, "{said}{json}");
    assert!(said.contains("no report reached") && said.contains("no collector announces itself there"), "{said}");
}

#[test]
fn two_meters_of_one_name_are_told_and_the_second_ends_with_1() {
    over_both(|lab, collect| {
        let mut collector = collect(&[]);
        let args = ["radar", "meter", "lo", "--segment", "cable", "--end", "left", "--seconds", "60", "--to"];
        let mut first = lab.hitless(&[&args[..], &[&collector.place]].concat());
        let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        while !line.contains("left reports") {
            assert!(collector.said.read_line(&mut line).unwrap() > 0, "{line}");
        }
        let (code, json, said) = lab.meter(&["--to", &collector.place, "--end", "left"]);
        first.kill().unwrap();
        first.wait().unwrap();
        assert!(code == 1 && json["reports_refused"].as_u64() > Some(0), "{said}{json}");
        assert!(json["refusal"].as_str().unwrap().contains("two meters report as end left"), "{json}");
        assert!(said.contains("refuses reports") && said.contains("give them different names"), "{said}");
    });
}
