//! `hitless clock` in namespaces: the daemon, what it says of bad input, and the demonstration.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use lab::stage::{GraphStage, cable_end};
use linux::net::{Namespace, Netlink};
use linux::stamps::StampedSocket;
use serde_json::Value;
use wire::exchange::ExchangeFrame;
use wire::sync::SyncTerm;

const PLAN: &str = r#"{"root": "a", "backup_root": "b", "epoch": 7, "plan": [
    {"node": "a", "depth": 0},
    {"node": "b", "parent": "a", "backup": "c", "depth": 1, "depth_backup": 2},
    {"node": "c", "parent": "a", "backup": "b", "depth": 1, "depth_backup": 2}]}"#;
const NAMES: [&str; 3] = ["a", "b", "c"];
const CABLES: [[usize; 2]; 3] = [[0, 1], [0, 2], [1, 2]];

/// Three hosts in a triangle. What runs there ends when this is dropped.
struct Triangle {
    stage: GraphStage,
    folder: PathBuf,
    daemons: Vec<Child>,
}

impl Drop for Triangle {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Triangle {
    /// None where namespaces are forbidden.
    fn new(name: &str) -> Option<Self> {
        testkit::permitted(Namespace::new())?;
        let folder = std::env::temp_dir().join(format!("hitless-clock-live-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("plan.json"), PLAN).unwrap();
        Some(Self { stage: GraphStage::new(3, &CABLES).unwrap(), folder, daemons: Vec::new() })
    }

    fn plan(&self) -> String {
        self.folder.join("plan.json").display().to_string()
    }

    fn command(&self, host: usize, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
        command.arg("clock").args(arguments).env("HITLESS_RUN_DIR", self.folder.join("run")).stdin(Stdio::null());
        self.stage.host(host).prepare(&mut command).unwrap();
        command
    }

    fn up(&self, host: usize) -> Command {
        self.up_every(host, "20ms")
    }

    fn up_every(&self, host: usize, interval: &str) -> Command {
        let mut command = self.command(host, &["up", "--interval", interval, "--node", NAMES[host], "--plan"]);
        command.arg(self.plan()).stdout(Stdio::null()).stderr(Stdio::piped());
        for (cable, ends) in CABLES.iter().enumerate() {
            if let Some(end) = ends.iter().position(|end| *end == host) {
                command.args(["--link", &format!("{}={}", NAMES[ends[1 - end]], cable_end(cable, end))]);
            }
        }
        command
    }

    fn start(&mut self, host: usize) {
        self.start_with(host, &[]);
    }

    fn start_with(&mut self, host: usize, arguments: &[&str]) {
        let mut command = self.up(host);
        command.args(arguments);
        self.spawn(host, command);
    }

    fn spawn(&mut self, host: usize, mut command: Command) {
        let log = fs::File::create(self.folder.join(format!("{}.said", NAMES[host]))).unwrap();
        self.daemons.push(command.stderr(log).spawn().unwrap());
    }

    fn said(&self, host: usize) -> String {
        fs::read_to_string(self.folder.join(format!("{}.said", NAMES[host]))).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Option<Value> {
        let output = self.command(0, arguments).arg("--json").output().unwrap();
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Waits for it; what was asked for last is in the complaint.
    fn wait_for(&self, what: &str, arguments: &[&str], is_so: impl Fn(&Value) -> bool) -> Value {
        let begun = linux::clock::Clock::start();
        loop {
            let found = self.json(arguments);
            if let Some(found) = found.as_ref().filter(|found| is_so(found)) {
                return found.clone();
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{what}: {found:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_for_state(&self, host: usize, state: &str) -> Value {
        self.wait_for(state, &["status", NAMES[host]], |status| status["state"] == state)
    }
}

fn refusal(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn three_clocks_agree_turn_when_a_link_goes_and_come_back_with_the_plan() {
    let Some(mut hosts) = Triangle::new("agree") else { return };
    (0..3).for_each(|host| hosts.start(host));
    hosts.wait_for_state(0, "root");
    for host in [1, 2] {
        let status = hosts.wait_for_state(host, "following");
        assert_eq!((status["listens_to"].as_str(), status["epoch"].as_u64()), (Some("a"), Some(7)));
        let now = hosts.wait_for("a time", &["now", NAMES[host]], |_| true);
        let number = |key: &str| now[key].as_u64().unwrap();
        assert!(number("earliest_ns") <= number("latest_ns") && number("depth") == 1, "{now}");
        assert!(number("eps_ns") >= (number("latest_ns") - number("earliest_ns")) / 2, "{now}");
        assert_eq!((now["node"].as_str(), now["state"].as_str()), (Some(NAMES[host]), Some("following")));
        // The root's time began with this machine's time of day.
        assert!(number("local_ns").abs_diff(number("latest_ns")) < 60_000_000_000, "{now}");
    }
    hosts.stage.remove_cable(0).unwrap();
    let turned = hosts.wait_for_state(1, "turned");
    assert_eq!(turned["listens_to"], "c");
    assert!(hosts.said(1).contains("a is silent: listening to c"), "{}", hosts.said(1));
    assert!(hosts.said(1).contains("l0b is gone: waiting for it"), "{}", hosts.said(1));
    hosts.stage.replace_cable(0).unwrap();
    hosts.wait_for("all links", &["status", "b"], |status| {
        status["links"].as_array().unwrap().iter().all(|link| link["problem"].is_null())
    });
    let (code, said) = refusal(&mut hosts.command(0, &["replan", &hosts.plan(), "b"]));
    assert_eq!(code, Some(0), "{said}");
    hosts.wait_for_state(1, "following");
}

#[test]
fn lines_of_follow_are_json_and_a_daemon_that_was_killed_leaves_a_bound_that_grows() {
    let Some(mut hosts) = Triangle::new("follow") else { return };
    (0..3).for_each(|host| hosts.start(host));
    hosts.wait_for_state(2, "following");
    let mut follow = hosts.command(2, &["now", "c", "--follow", "--every", "5ms", "--for", "200ms"]);
    let output = follow.output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() > 2, "{lines:?}");
    for pair in lines.windows(2) {
        assert!(pair[0]["local_ns"].as_u64() < pair[1]["local_ns"].as_u64(), "{pair:?}");
    }
    let (mut daemon, eps) = (hosts.daemons.pop().unwrap(), |now: &Value| now["eps_ns"].as_u64().unwrap());
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    let first = hosts.json(&["now", "c"]).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let second = hosts.json(&["now", "c"]).unwrap();
    let grown = eps(&second) - eps(&first);
    assert!(grown >= 40_000, "200 ppm of 200 ms are 40 µs, not {grown} ns");
    let (code, said) = refusal(&mut hosts.command(2, &["status", "c"]));
    assert!(code == Some(1) && said.contains("no clock of this name runs here"), "{said}");
    // The next one goes on with the same page and leaves nothing when it ends in peace.
    hosts.start(2);
    hosts.wait_for_state(2, "following");
    // A program with `--follow` continues with the page of the next daemon after one that ended.
    let mut follow =
        hosts.command(2, &["now", "c", "--follow", "--every", "5ms"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    assert!(lines.next().unwrap().contains("following"));
    assert_eq!(refusal(&mut hosts.command(0, &["down", "c"])).0, Some(0));
    hosts.daemons.pop().unwrap().wait().unwrap();
    hosts.start(2);
    hosts.wait_for_state(2, "following");
    let now = hosts.json(&["now", "c"]).unwrap();
    let eps_of = |line: String| serde_json::from_str::<Value>(&line).unwrap();
    let is_later = |line: &Value| line["local_ns"].as_u64() > now["local_ns"].as_u64();
    let caught_up = lines.map(eps_of).filter(is_later).take(100).any(|line| eps(&line) < 10 * eps(&now).max(50_000));
    assert!(caught_up, "{now}");
    follow.kill().unwrap();
    follow.wait().unwrap();
    for name in NAMES {
        assert_eq!(refusal(&mut hosts.command(0, &["down", name])).0, Some(0));
    }
    for daemon in &mut hosts.daemons {
        daemon.wait().unwrap();
    }
    let left: Vec<_> = fs::read_dir(hosts.folder.join("run")).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let Some(mut hosts) = Triangle::new("refused") else { return };
    hosts.start(1);
    hosts.wait_for_state(1, "unsynchronized");
    let (code, said) = refusal(&mut hosts.up(1));
    assert!(code == Some(1) && said.contains("b runs already here") && !said.contains("keeps the time"), "{said}");
    let plan = hosts.plan();
    let up = |arguments: &[&str]| refusal(hosts.command(0, &["up", "--plan", &plan]).args(arguments));
    let cases: [(&[&str], i32, &str); 8] = [
        (&["--node", "x"], 2, "'x' is not in the plan; it has a, b, c"),
        (&["--node", "a", "--link", "b=l0a"], 2, "no --link c=IFACE"),
        (&["--node", "a", "--link", "b=l0a", "--link", "c=l0a"], 2, "given twice"),
        (&["--node", "a", "--link", "b"], 2, "expected NEIGHBOUR=IFACE"),
        (&["--node", "a", "--link", "b=l0a", "--link", "c=none9"], 1, "none9"),
        (&["--node", "a", "--link", "b=l0a", "--link", "c=l1a", "--interval", "1us"], 2, "expected 100us to 10s"),
        (&["--node", "a", "--link", "b=l0a", "--link", "c=l1a", "--oscillator", "200000"], 2, "at most 100000"),
        (&["--node", "a", "--link", "b=l0a", "--link", "c=l1a", "--set-system-clock"], 2, "a is the root of the plan"),
    ];
    for (arguments, code, expected) in cases {
        let (found, said) = up(arguments);
        assert!(found == Some(code) && said.contains(expected), "{arguments:?}: {found:?} {said}");
        assert_eq!(said.lines().filter(|line| line.contains("error")).count(), 1, "{said}");
    }
    fs::write(hosts.folder.join("broken.json"), "{\n\"root\": 7\n}").unwrap();
    let broken = hosts.folder.join("broken.json").display().to_string();
    let (code, said) = refusal(&mut hosts.command(0, &["replan", &broken, "b"]));
    assert!(code == Some(2) && said.contains("broken.json:2: expected a plan"), "{said}");
    for arguments in [&["now", "b"][..], &["now", "b", "--follow", "--for", "100ms"]] {
        let (code, said) = refusal(&mut hosts.command(0, arguments));
        assert!(code == Some(1) && said.contains("does not know the time"), "{arguments:?} {code:?} {said}");
    }
}

#[test]
fn a_file_that_is_no_page_is_refused_before_anything_is_said_and_stays_as_it_is() {
    let Some(mut hosts) = Triangle::new("page") else { return };
    let victim = hosts.folder.join("victim").display().to_string();
    fs::write(&victim, vec![b'x'; 9_000]).unwrap();
    let (code, said) = refusal(hosts.up(1).args(["--page", &victim]));
    assert!(code == Some(2) && said.contains("not the page of a clock"), "{code:?} {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(fs::read(&victim).unwrap(), vec![b'x'; 9_000]);
    // Nor the page of another clock that runs.
    hosts.start(0);
    hosts.wait_for_state(0, "root");
    let elsewhere = hosts.folder.join("elsewhere").display().to_string();
    hosts.start_with(1, &["--page", &elsewhere]);
    hosts.wait_for("a page elsewhere", &["now", "b"], |now| now["state"] == "following");
    assert_eq!(hosts.json(&["status", "b"]).unwrap()["page"], elsewhere);
    assert_eq!(refusal(&mut hosts.command(0, &["down", "b"])).0, Some(0));
    hosts.daemons.pop().unwrap().wait().unwrap();
    assert!(!PathBuf::from(elsewhere).exists());
    let taken = hosts.folder.join("run/a.page").display().to_string();
    let (code, said) = refusal(hosts.up(1).args(["--page", &taken]));
    assert!(code == Some(1) && said.contains("another clock has its page there"), "{code:?} {said}");
    assert!(hosts.json(&["now", "a"]).is_some());
}

/// A reader whose clocks are not the daemon's has no time at all, rather than one that is an hour off.
#[test]
fn in_a_time_namespace_the_page_gives_no_time() {
    let Some(mut hosts) = Triangle::new("namespace") else { return };
    if !testkit::rootless_namespaces() {
        return;
    }
    hosts.start(0);
    hosts.wait_for_state(0, "root");
    let unshared = |seconds: &str, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--time", "--fork", "--monotonic", seconds, "--boottime", seconds]);
        command.args(arguments).env("HITLESS_RUN_DIR", hosts.folder.join("run")).output().unwrap()
    };
    if !unshared("3600", &["true"]).status.success() {
        return testkit::skip("time namespaces are not allowed here");
    }
    for seconds in ["3600", "0"] {
        let output = unshared(seconds, &[env!("CARGO_BIN_EXE_hitless"), "clock", "now", "a"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.contains("another time namespace"), "{seconds}: {said}");
        assert!(output.stdout.is_empty());
    }
}

/// Returns when a process has the file open.
fn wait_until_open(process: &Child, path: &str) {
    let begun = linux::clock::Clock::start();
    let links = || fs::read_dir(format!("/proc/{}/fd", process.id())).unwrap().flatten();
    while !links().any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to.as_os_str() == path)) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{path} is not opened");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_plan_that_never_comes_or_never_ends_holds_up_nobody_but_who_asked() {
    let Some(mut hosts) = Triangle::new("pipe") else { return };
    if !testkit::installed("mkfifo") {
        return;
    }
    hosts.start(0);
    hosts.start(1);
    hosts.wait_for_state(1, "following");
    let (code, said) = refusal(&mut hosts.command(0, &["replan", "/dev/zero", "b"]));
    assert!(code == Some(2) && said.contains("neither a file nor a pipe"), "{code:?} {said}");
    let pipe = hosts.folder.join("pipe").display().to_string();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut waiting = hosts.command(0, &["replan", &pipe, "b"]).stderr(Stdio::piped()).spawn().unwrap();
    wait_until_open(&waiting, &pipe);
    // Clients that say nothing, half of a request, too much, or name a file.
    let socket = hosts.folder.join("run/b.clock");
    let clients: Vec<UnixStream> = (0..3).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    (&clients[1]).write_all(b"{\"plan\": {\"node\"").unwrap();
    // It may be sent away before it has said all of that.
    let _ = (&clients[2]).write_all(&[b'{'; 200_000]);
    let mut named = UnixStream::connect(&socket).unwrap();
    named.write_all(format!("{{\"plan\": \"{pipe}\"}}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    named.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("not a request"), "{answer}");
    let begun = linux::clock::Clock::start();
    assert!(hosts.json(&["status", "b"]).is_some() && begun.elapsed() < Duration::from_secs(10));
    assert!(waiting.try_wait().unwrap().is_none(), "it waits for its plan");
    // The plan comes at last, through the pipe.
    fs::write(&pipe, PLAN.replace("\"epoch\": 7", "\"epoch\": 8")).unwrap();
    let Output { status, stderr, .. } = waiting.wait_with_output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let mut waiting = hosts.command(0, &["replan", &pipe, "b"]).stderr(Stdio::null()).spawn().unwrap();
    wait_until_open(&waiting, &pipe);
    let mut daemon = hosts.daemons.pop().unwrap();
    assert_eq!(Command::new("kill").arg(daemon.id().to_string()).status().unwrap().code(), Some(0));
    assert!(daemon.wait().unwrap().success());
    let interrupted = Command::new("kill").args(["-INT", &waiting.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert!([Some(130), None].contains(&waiting.wait().unwrap().code()));
}

#[test]
fn a_part_of_a_plan_that_makes_no_sense_changes_nothing() {
    let Some(mut hosts) = Triangle::new("part") else { return };
    hosts.start(0);
    hosts.start(1);
    hosts.wait_for_state(1, "following");
    for (part, expected) in [
        (r#"{"node": "c", "epoch": 9, "is_root": true, "is_backup_root": false, "listeners": []}"#, "the part of 'c'"),
        (r#"{"node": "b", "epoch": 9, "is_root": false, "is_backup_root": false, "listeners": []}"#, "has no parent"),
        (
            r#"{"node": "b", "epoch": 9, "is_root": true, "is_backup_root": false, "listeners": ["b"]}"#,
            "its own parent",
        ),
        (r#"{"node": "b", "epoch": 9, "is_root": true, "is_backup_root": false, "listeners": ["x"]}"#, "leads to 'x'"),
    ] {
        let mut socket = UnixStream::connect(hosts.folder.join("run/b.clock")).unwrap();
        socket.write_all(format!("{{\"plan\": {part}}}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("refused") && answer.contains(expected), "{answer}");
    }
    let status = hosts.wait_for_state(1, "following");
    assert_eq!((status["epoch"].as_u64(), status["parent"].as_str()), (Some(7), Some("a")));
}

#[test]
fn a_node_with_a_slash_in_its_name_is_given_its_part_of_a_plan() {
    let Some(mut hosts) = Triangle::new("slash") else { return };
    let plan = PLAN.replace("\"a\"", "\"pod/a\"");
    fs::write(hosts.folder.join("plan.json"), &plan).unwrap();
    let mut root = hosts.command(0, &["up", "--node", "pod/a", "--link", "b=l0a", "--link", "c=l1a", "--plan"]);
    hosts.daemons.push(root.arg(hosts.plan()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    hosts.wait_for("a root", &["status", "pod/a"], |status| status["state"] == "root");
    let (code, said) = refusal(&mut hosts.command(0, &["replan", &hosts.plan()]));
    assert!(code == Some(0) && said.contains("pod/a has the plan"), "{code:?} {said}");
}

#[test]
fn a_neighbour_that_comes_and_goes_makes_a_handful_of_lines() {
    let Some(mut hosts) = Triangle::new("flaps") else { return };
    (0..3).for_each(|host| hosts.start(host));
    hosts.wait_for_state(1, "following");
    for _ in 0..40 {
        hosts.stage.set_cable(0, false).unwrap();
        std::thread::sleep(Duration::from_millis(70));
        hosts.stage.set_cable(0, true).unwrap();
        hosts.stage.set_cable(2, false).unwrap();
        std::thread::sleep(Duration::from_millis(70));
        hosts.stage.set_cable(2, true).unwrap();
    }
    for host in 0..3 {
        let said = hosts.said(host);
        // Three of a kind: turned, returned, and each cable that goes or comes.
        assert!(said.lines().count() <= 15, "{said}");
    }
    assert!(hosts.said(1).lines().count() >= 3, "{}", hosts.said(1));
}

/// Nothing happens to the cables: neighbours are silent because they have no processor for longer than two intervals.
#[test]
fn on_a_busy_machine_there_is_a_handful_of_lines() {
    let Some(mut hosts) = Triangle::new("busy") else { return };
    for host in 0..3 {
        let command = hosts.up_every(host, "1ms");
        hosts.spawn(host, command);
    }
    hosts.wait_for_state(1, "following");
    let hog = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let mut hogs: [Child; 5] = std::array::from_fn(|_| hog());
    std::thread::sleep(Duration::from_secs(5));
    for hog in &mut hogs {
        hog.kill().and_then(|()| hog.wait()).unwrap();
    }
    for host in 0..3 {
        let said = hosts.said(host);
        assert!(said.lines().count() <= 15, "{said}");
    }
}

fn key_file(hosts: &Triangle, name: &str, digits: &str) -> String {
    let path = hosts.folder.join(name);
    fs::write(&path, digits).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

/// On the link between two hosts, from the second to the first: what the first one receives, and a socket to send with.
fn on_cable(hosts: &Triangle, cable: usize) -> [StampedSocket; 2] {
    [0, 1].map(|end| {
        let open = || {
            let index = Netlink::open().unwrap().existing_link(&cable_end(cable, end)).unwrap().index;
            StampedSocket::open(index, 0x88b7, [0x01, 0x80, 0xc2, 0, 0, 0x0e]).unwrap()
        };
        hosts.stage.host(CABLES[cable][end]).with(open).unwrap()
    })
}

/// The next frame from the other end.
fn heard(socket: &mut StampedSocket) -> Vec<u8> {
    let (mut frame, begun) = (vec![0; 256], linux::clock::Clock::start());
    loop {
        match socket.receive(&mut frame).unwrap() {
            Some(received) if !received.outgoing => {
                frame.truncate(received.len);
                return frame;
            }
            Some(_) => {}
            None => std::thread::sleep(Duration::from_millis(5)),
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing came");
    }
}

#[test]
fn with_a_key_forged_and_replayed_frames_are_counted_and_change_nothing() {
    let Some(mut hosts) = Triangle::new("key") else { return };
    let key = key_file(&hosts, "key", "000102030405060708090a0b0c0d0e0f\n");
    (0..3).for_each(|host| hosts.start_with(host, &["--key", &key]));
    for host in [1, 2] {
        hosts.wait_for_state(host, "following");
    }
    let [mut of_root, mut of_child] = on_cable(&hosts, 0);
    let recorded: Vec<Vec<u8>> = (0..8).map(|_| heard(&mut of_root)).collect();
    // A frame in the child's name that says that the root was replaced, as it would be believed without a key.
    let lie = ExchangeFrame {
        // FNV-1a of the child's name.
        sender: (0x811c_9dc5 ^ u32::from(b'b')).wrapping_mul(0x0100_0193),
        synchronized: true,
        term: SyncTerm { number: 1_000, root: 1 },
        number: 1_000,
        ..ExchangeFrame::default()
    };
    let mut unsealed = recorded[0][..14].to_vec();
    lie.emit(&mut unsealed);
    let altered = |frame: &Vec<u8>| [&frame[..40], &[frame[40] ^ 1], &frame[41..]].concat();
    for frame in recorded.iter().chain(&recorded.iter().map(altered).collect::<Vec<_>>()).chain([&unsealed]) {
        of_child.send(frame).unwrap();
    }
    let counter = |status: &Value, name: &str| status["counters"][name].as_u64().unwrap();
    let all = |status: &Value| {
        ["replayed", "forged"].map(|name| counter(status, name)) == [8, 8] && counter(status, "unsealed") == 1
    };
    let root = hosts.wait_for("all that was forged", &["status", "a"], all);
    assert_eq!((root["state"].as_str(), root["problem"].is_null()), (Some("root"), true), "{root}");
    assert!(root["links"].as_array().unwrap().iter().all(|link| link["session"] == true), "{root}");
    let child = hosts.wait_for_state(1, "following");
    assert_eq!((child["listens_to"].as_str(), counter(&child, "elected")), (Some("a"), 0));
    for expected in ["in the name of b do not open", "of b came before", "in the name of b have no seal"] {
        assert_eq!(hosts.said(0).matches(expected).count(), 1, "{}", hosts.said(0));
    }
    // Recorded frames open nothing after either end restarts.
    for host in [1, 0] {
        let mut daemon = hosts.daemons.remove(host);
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        let log = fs::File::create(hosts.folder.join(format!("{}.said", NAMES[host]))).unwrap();
        let daemon = hosts.up(host).args(["--key", &key]).stderr(log).spawn().unwrap();
        hosts.daemons.insert(host, daemon);
        recorded.iter().for_each(|frame| drop(of_child.send(frame)));
        let agreed = |status: &Value| status["links"][0]["session"] == true;
        hosts.wait_for("a session", &["status", NAMES[host]], agreed);
        recorded.iter().for_each(|frame| drop(of_child.send(frame)));
    }
    let refused = |status: &Value| counter(status, "forged") + counter(status, "early") >= 8;
    hosts.wait_for("what is from before", &["status", "a"], refused);
}

#[test]
fn a_key_at_one_end_or_another_key_is_named_and_nobody_is_believed() {
    let Some(mut hosts) = Triangle::new("keys") else { return };
    let key = key_file(&hosts, "key", "000102030405060708090a0b0c0d0e0f");
    let other = key_file(&hosts, "other", "0f0e0d0c0b0a09080706050403020100");
    hosts.start_with(0, &["--key", &key]);
    hosts.start_with(1, &["--key", &other]);
    hosts.start(2);
    hosts.wait_for_state(0, "root");
    let problem = |host: usize, link: usize, what: &str| {
        let is_named =
            |status: &Value| status["links"][link]["problem"].as_str().is_some_and(|said| said.contains(what));
        let status = hosts.wait_for(what, &["status", NAMES[host]], is_named);
        assert!(host == 0 || status["state"] == "unsynchronized", "{status}");
    };
    problem(1, 0, "a do not open: it has another key");
    problem(2, 0, "frames of a are sealed: start this node with its --key");
    problem(0, 1, "in the name of c have no seal: start it with the same --key");
    assert!(hosts.said(2).contains("start this node with its --key"), "{}", hosts.said(2));
    let bad = key_file(&hosts, "bad", "not a key");
    let (code, said) = refusal(hosts.command(0, &["up", "--node", "a", "--link", "b=l0a", "--link", "c=l1a"]).args([
        "--plan",
        &hosts.plan(),
        "--key",
        &bad,
    ]));
    assert!(code == Some(2) && said.contains("expected 32 hexadecimal digits"), "{code:?} {said}");
}

/// Runs a follower that is to set the system's clock, while strace answers its calls in place of the kernel.
fn adjusting(hosts: &Triangle, answer: &str) -> (Command, PathBuf) {
    let (up, log) = (hosts.up(1), hosts.folder.join("calls"));
    let mut command = Command::new("strace");
    command.args(["-f", "-e", "trace=clock_adjtime,adjtimex,clock_settime,settimeofday", "-e"]);
    command.arg(format!("inject=clock_adjtime,adjtimex,clock_settime,settimeofday:{answer}")).arg("-o").arg(&log);
    command.arg(env!("CARGO_BIN_EXE_hitless")).args(up.get_args()).arg("--set-system-clock");
    command.env("HITLESS_RUN_DIR", hosts.folder.join("run")).stdin(Stdio::null()).stdout(Stdio::null());
    hosts.stage.host(1).prepare(&mut command).unwrap();
    (command, log)
}

/// The clock of this machine is not touched: the kernel sees none of the calls.
#[test]
fn the_systems_clock_is_steered_with_its_error_and_never_set_while_it_is_close() {
    let Some(mut hosts) = Triangle::new("system") else { return };
    if !testkit::installed("strace") {
        return;
    }
    hosts.start(0);
    hosts.wait_for_state(0, "root");
    let (mut free, log) = adjusting(&hosts, "retval=5");
    let said = fs::File::create(hosts.folder.join("b.said")).unwrap();
    hosts.daemons.push(free.stderr(said).spawn().unwrap());
    hosts.wait_for("an adjustment", &["status", "b"], |status| status["system_behind_ns"].is_number());
    let calls = |lines: &str| lines.lines().filter(|line| line.contains("ADJ_MAXERROR")).count();
    let begun = linux::clock::Clock::start();
    while calls(&fs::read_to_string(&log).unwrap()) < 20 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", hosts.said(1));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(refusal(&mut hosts.command(1, &["down", "b"])).0, Some(0));
    hosts.daemons.pop().unwrap().wait().unwrap();
    let calls = fs::read_to_string(&log).unwrap();
    let calls: Vec<&str> = calls.lines().filter(|line| line.contains("modes=")).collect();
    assert!(calls[0].contains("modes=0,") && calls[1].contains("modes=ADJ_FREQUENCY,"), "{calls:#?}");
    for call in &calls[2..] {
        assert!(call.contains("modes=ADJ_FREQUENCY|ADJ_MAXERROR|ADJ_ESTERROR|ADJ_STATUS,"), "{call}");
        assert!(call.contains("status=0") && !call.contains("maxerror=0,") && call.contains("INJECTED"), "{call}");
    }
    for (answer, expected) in [("retval=0", "another program (chrony"), ("error=EPERM", "not permitted")] {
        let (code, said) = refusal(&mut adjusting(&hosts, answer).0);
        assert!(code == Some(1) && said.contains(expected), "{answer}: {code:?} {said}");
    }
}

/// So a plan may be given to some nodes only.
#[test]
fn neighbours_with_another_plan_are_named_and_heard_all_the_same() {
    let Some(mut hosts) = Triangle::new("plans") else { return };
    hosts.start(0);
    hosts.wait_for_state(0, "root");
    fs::write(hosts.folder.join("plan.json"), PLAN.replace("\"epoch\": 7", "\"epoch\": 9")).unwrap();
    hosts.start(1);
    let counted = |status: &Value| status["counters"]["other_plan"].as_u64() > Some(0);
    hosts.wait_for("another plan", &["status", "b"], counted);
    assert!(hosts.said(1).contains("a has the plan with epoch 7, not 9"), "{}", hosts.said(1));
    let status = hosts.wait_for_state(1, "following");
    assert_eq!(status["epoch"], 7, "the time is that of the plan that the root has");
}

/// From b listening to a, c behind it, to both the other way round: each step as printed, and the steps in the order of the list.
#[test]
fn each_step_of_a_diff_is_carried_out_as_printed_and_nobody_is_left_behind() {
    let Some(mut hosts) = Triangle::new("steps") else { return };
    let chain = |first: &str, second: &str, epoch: u32| {
        format!(
            r#"{{"root": "a", "backup_root": "{first}", "epoch": {epoch}, "plan": [{{"node": "a", "depth": 0}},
            {{"node": "{first}", "parent": "a", "backup": "{second}", "depth": 1, "depth_backup": 2}},
            {{"node": "{second}", "parent": "{first}", "backup": "a", "depth": 2, "depth_backup": 1}}]}}"#
        )
    };
    fs::write(hosts.folder.join("plan.json"), chain("b", "c", 7)).unwrap();
    fs::write(hosts.folder.join("new.json"), chain("c", "b", 8)).unwrap();
    (0..3).for_each(|host| hosts.start(host));
    [1, 2].into_iter().for_each(|host| drop(hosts.wait_for_state(host, "following")));
    let place = |name: &str| hosts.folder.join(name).display().to_string();
    let (new, steps) = (place("new.json"), place("steps"));
    let diff = hosts.json(&["diff", &hosts.plan(), &new, "--write", &steps]).expect("steps");
    let (mut number, mut group) = (0, None);
    for step in diff["steps"].as_array().unwrap() {
        let at_once = step["at_once"].as_u64();
        number += u32::from(at_once.is_none() || at_once != group);
        group = at_once;
        let (node, file) = (step["node"].as_str().unwrap(), format!("{steps}/{number:03}.json"));
        let (code, said) = refusal(&mut hosts.command(0, &["replan", &file, node]));
        assert_eq!(code, Some(0), "{step}: {said}");
        let parent = step["parent"].as_str();
        hosts.wait_for(&step.to_string(), &["status", node], |status| {
            parent.is_none() || status["state"] == "following" && status["listens_to"].as_str() == parent
        });
    }
    assert!(number > 0 && !PathBuf::from(format!("{steps}/{:03}.json", number + 1)).exists(), "{diff}");
    for (node, parent) in [("c", "a"), ("b", "c")] {
        hosts.wait_for(node, &["status", node], |status| {
            status["state"] == "following" && status["listens_to"] == parent
        });
    }
    let (code, said) = refusal(&mut hosts.command(0, &["diff", &hosts.plan(), &new, "--write", &steps]));
    assert!(code == Some(2) && said.contains("exists"), "what is there is not touched: {said}");
}

/// A plan for the root that was stopped, for the one that took over and for another one.
#[test]
fn a_root_that_was_stopped_and_any_plan_end_with_one_root_that_all_follow() {
    if !testkit::rootless_namespaces() {
        return;
    }
    let mut demo = Command::new(env!("CARGO_BIN_EXE_hitless"));
    demo.args(["clock", "demo", "--json", "--rootless", "--without-ptp4l", "--kills", "0", "--stops", "9"]);
    // Backup roots take over after 155 ms.
    let Output { status, stdout, stderr } = demo.args(["--idle", "100ms", "--interval", "5ms"]).output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    let result: Value = serde_json::from_slice(&stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!(result["wrong"].as_u64(), Some(0), "{result}");
    let stops = result["stops"].as_array().unwrap();
    assert!(stops.len() == 9 && stops.iter().all(|stop| stop["healed_ms"].is_number()), "{stops:#?}");
    assert!(stops.iter().any(|stop| stop["elected"] == true), "{stops:#?}");
    assert!(status.success(), "{said}");
}

#[test]
fn in_the_demonstration_no_reading_is_wrong_whatever_is_killed() {
    if !testkit::rootless_namespaces() {
        return;
    }
    // Slow waves: a machine that is busy with other tests lets programs wait for many milliseconds.
    let mut demo = Command::new(env!("CARGO_BIN_EXE_hitless"));
    demo.args(["clock", "demo", "--json", "--rootless", "--without-ptp4l"]);
    demo.args(["--kills", "10", "--idle", "500ms", "--interval", "20ms", "--key"]);
    let Output { status, stdout, stderr } = demo.output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    let result: Value = serde_json::from_slice(&stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!((result["wrong"].as_u64(), result["unjudged"].as_u64()), (Some(0), Some(0)), "{result}");
    assert!(result["reads"].as_u64() > Some(10_000), "{result}");
    assert_eq!(result["kills"].as_array().unwrap().len(), 10);
    let forged = |what: &str| result["forged"][what].as_u64();
    assert_eq!((forged("sent"), forged("refused"), forged("roots_removed")), (Some(6), Some(6), Some(0)), "{result}");
    assert!(result["elections"].as_u64() >= Some(2), "two roots were killed: {result}");
    assert!(status.success(), "{said}");
}
