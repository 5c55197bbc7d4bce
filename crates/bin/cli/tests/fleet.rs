//! The fleet as a person meets it.

#[path = "../../../base/bus/tests/redis_server/mod.rs"]
mod redis_server;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use bus::{Bus, RedisBus};
use bus::{Condition, Evidence, Message, OrderKind, PortState};
use redis_server::{Keeps, RedisServer};
use serde_json::Value;
use units::Moment;

/// Two leaves and three spines.
const LEAVES: &str = "lower,upper,lower_port,upper_port\n\
                      leaf0,spine0,eth0,swp0\nleaf0,spine1,eth1,swp0\nleaf0,spine2,eth2,swp0\n\
                      leaf1,spine0,eth0,swp1\nleaf1,spine1,eth1,swp1\nleaf1,spine2,eth2,swp1\n";

/// A folder of its own for each test, gone when it ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hitless-fleet-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
    command.arg("fleet").args(args);
    command
}

fn run(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(&[args, &["--json"]].concat())).unwrap()
}

/// One line on standard error, nothing on standard output.
fn refused(args: &[&str], code: i32) -> String {
    let output = run(args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
    said
}

#[test]
fn a_simulated_year_reports_every_field_that_scripts_rely_on() {
    let run = json(&["simulate", "--pods", "2", "--days", "60", "--mttf", "2000h", "--constraint", "0.75"]);
    for field in [
        "seed",
        "links",
        "events",
        "kept_corrupting",
        "disabled_max",
        "corrupting_max",
        "protected_max",
        "mean_penalty",
        "least_paths_per_tor",
        "least_share",
        "least_pod_capacity",
        "protected_per_pipe_max",
        "optimizer_runs",
        "optimizer_stopped",
        "optimizer_missed",
        "wall_seconds",
    ] {
        assert!(run[field].is_number(), "{field}: {}", run[field]);
    }
    assert_eq!((&run["links"], &run["policy"]), (&768.into(), &"corropt+guard".into()));
    assert!(run["least_paths_per_tor"].as_u64().unwrap() >= 144);
    assert!(run["kept_corrupting"].as_u64().unwrap() > 0);
}

/// Without what depends on the machine.
fn stable(text: &str) -> String {
    let varies = |line: &&str| !line.contains("wall_seconds") && !line.contains("peak_rss_bytes");
    text.lines().filter(varies).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_same_seeds_give_the_same_bytes_for_any_number_of_jobs() {
    let scratch = Scratch::new("jobs");
    let of = |jobs: &str| {
        let out = scratch.path(jobs);
        let args = ["simulate", "--fat-tree", "4", "--days", "90", "--mttf", "500h", "--seeds", "1..3", "--json"];
        let text = stdout(&[&args[..], &["--jobs", jobs, "--out", &out]].concat());
        let files: BTreeMap<String, Vec<u8>> = fs::read_dir(&out)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()))
            .collect();
        (stable(&text), files, text)
    };
    let (one, two) = (of("1"), of("2"));
    assert_eq!((&one.0, &one.1), (&two.0, &two.1));
    assert_eq!(one.1.len(), 6, "{:?}", one.1.keys());
    let answer: Value = serde_json::from_str(&one.2).unwrap();
    let mut penalties: Vec<f64> = (0..3).map(|at| answer["runs"][at]["mean_penalty"].as_f64().unwrap()).collect();
    penalties.sort_by(f64::total_cmp);
    assert_eq!(answer["median"]["mean_penalty"].as_f64(), Some(penalties[1]));
    let csv = String::from_utf8(one.1["seed-2.csv"].clone()).unwrap();
    assert!(csv.starts_with("hours,event,link,penalty,least_paths,"), "{csv}");
    assert_eq!(csv.lines().count() as u64, answer["runs"][1]["events"].as_u64().unwrap() + 1);
}

#[test]
fn a_trace_that_was_written_gives_the_same_year_again() {
    let scratch = Scratch::new("trace");
    let trace = scratch.path("year.csv");
    let year = ["--fat-tree", "4", "--days", "60", "--constraint", "0.6"];
    let made = json(&[&["simulate", "--mttf", "500h", "--seed", "7", "--write-trace", &trace], &year[..]].concat());
    let read = json(&[&["simulate", "--trace", &trace], &year[..]].concat());
    for field in ["events", "kept_corrupting", "optimizer_runs", "disabled_max"] {
        assert_eq!(made[field], read[field], "{field}");
    }
    let [one, other] = [&made, &read].map(|run| run["mean_penalty"].as_f64().unwrap());
    assert!((one / other - 1.0).abs() < 1e-6, "{one} {other}");
}

#[test]
fn protection_lowers_the_penalty_and_half_of_it_lowers_it_less() {
    let penalty = |args: &[&str]| {
        let year = ["simulate", "--pods", "2", "--days", "60", "--mttf", "1000h"];
        json(&[&year[..], args].concat())["mean_penalty"].as_f64().unwrap()
    };
    let [bare, half, guarded] = [
        penalty(&["--policy", "corropt"]),
        penalty(&["--upgraded", "0.5", "--upgrade-order", "pods"]),
        penalty(&["--policy", "corropt+guard"]),
    ];
    assert!(guarded < half / 10.0 && half < bare, "{bare} {half} {guarded}");
    assert!(penalty(&["--policy", "none"]) > bare);
}

#[test]
fn an_interrupted_year_prints_how_far_it_came() {
    let scratch = Scratch::new("interrupted");
    let trace = scratch.path("trace.csv");
    let args = ["simulate", "--pods", "261", "--days", "3600", "--json", "--write-trace", &trace];
    let mut running = Running(command(&args).stdout(Stdio::piped()).spawn().unwrap());
    while !fs::exists(&trace).unwrap() {
        assert!(running.0.try_wait().unwrap().is_none(), "it ended too early");
        std::thread::sleep(Duration::from_millis(20));
    }
    interrupt(&running.0);
    let mut said = String::new();
    running.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(running.0.wait().unwrap().code(), Some(130));
    let run: Value = serde_json::from_str(&said).unwrap();
    assert!(run["interrupted"] == true && run["days"].as_f64().unwrap() < 3_600.0, "{said}");
    assert!(run["events"].as_u64().unwrap() > 0);
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line() {
    let scratch = Scratch::new("refused");
    let good = scratch.file("good.csv", LEAVES);
    let few = scratch.file("few.csv", "link,loss\nleaf0--spine0,1e-3\n");
    let file = |name: &str, text: &str| scratch.file(name, text);
    let unknown = file(
        "unknown.toml",
        "[[switch]]\nname = \"leaf0\"\n[[switch]]\nname = \"spine0\"\n[[link]]\nlower = \"leaf0\"\nupper = \"spine9\"\n",
    );
    let duplicate = file("duplicate.csv", "lower,upper\nleaf0,spine0\nleaf0,spine0\n");
    let alone = file("alone.csv", "lower,upper\nleaf0,spine0\nleaf1,spine1\n");
    for (topology, expected) in [
        (&unknown, ":7: no switch is called 'spine9': did you mean 'spine0'?"),
        (&duplicate, ":3: there is a link leaf0--spine0 already"),
        (&alone, "'leaf1' is disconnected"),
        (&"/no/such/file.csv".to_owned(), "/no/such/file.csv: "),
    ] {
        let said = refused(&["plan", "--topology", topology, "--corrupting", &few], 2);
        assert!(said.contains(expected) && said.contains(topology.as_str()), "{said}");
    }
    for (corrupting, expected) in [
        (file("link.csv", "link,loss\nleaf0--spine7,1e-3\n"), ":2: no link is called 'leaf0--spine7': did you mean"),
        (file("loss.csv", "link,loss\nleaf0--spine0,7\n"), ":2: loss '7': expected"),
        (file("nonsense", "such and such\n"), ":1: no such column"),
        (file("nonsense.json", "{\"condition\": \"ill\"}\n"), ":1: expected what a monitor publishes"),
    ] {
        let said = refused(&["plan", "--topology", &good, "--corrupting", &corrupting], 2);
        assert!(said.contains(expected) && said.contains(&corrupting), "{said}");
    }
    let plan = ["plan", "--topology", &good, "--corrupting", &few];
    for (args, expected) in [
        (&["--constraint", "1.5"][..], "expected a share between 0 and 1"),
        (&["--capable", &file("capable", "leaf0\nspin1\n")], ":2: no switch is called 'spin1': did you mean 'spine1'?"),
    ] {
        let said = refused(&[&plan[..], args].concat(), 2);
        assert!(said.contains(expected), "{said}");
    }
    let year = ["simulate", "--fat-tree", "4"];
    for (args, expected) in [
        (&["--fat-tree", "5"][..], "--fat-tree"),
        (&["--days", "-1"], "--days -1: expected"),
        (&["--mttf", "soon"], "expected a time such as 10000h"),
        (&["--mttf", "0h"], "mean time to failure 0"),
        (&["--shape", "0"], "shape 0: expected"),
        (&["--repair", "2d:x"], "expected times with weights"),
        (&["--seeds", "1..3", "--out", "it.csv"], "expected a folder, for 3 runs"),
        (&["--out", "it.txt"], "expected a file that ends in .csv or .parquet, or a folder"),
        (&["--upgraded", "0.5", "--upgrade-order", "levels:0-1"], "expected each level of the topology once"),
        (&["--upgrade-order", "alphabet"], "expected greedy, pods"),
    ] {
        let base = if args[0] == "--fat-tree" { &year[..1] } else { &year[..] };
        let said = refused(&[base, args].concat(), 2);
        assert!(said.contains(expected), "{said}");
    }
    let said = refused(&["watch", "--topology", &good, "--bus", "rabbit://here"], 2);
    assert!(said.contains("--bus"), "{said}");
    let said = refused(&["repaired", "leaf0--spine0", "--topology", &good, "--bus", "redis://127.0.0.1:1"], 1);
    assert!(said.contains("127.0.0.1:1"), "{said}");
    let said = refused(&["repaired", "leaf0--spin0", "--topology", &good, "--bus", "redis://127.0.0.1:1"], 2);
    assert!(said.contains("did you mean 'leaf0--spine0'?"), "{said}");
}

#[test]
fn a_plan_says_what_to_do_and_why() {
    let scratch = Scratch::new("plan");
    let topology = scratch.file("leaves.csv", LEAVES);
    let corrupting =
        scratch.file("now.csv", "link,loss,state\nleaf0/eth0,1e-4,\nspine1/swp0,1e-3,\nleaf1--spine0,,disabled\n");
    let args = ["plan", "--topology", &topology, "--corrupting", &corrupting, "--constraint", "0.6"];
    let plan = json(&args);
    assert_eq!(plan["disable"][0]["link"], "leaf0--spine1");
    assert_eq!(plan["protect"][0]["link"], "leaf0--spine0");
    assert_eq!(plan["protect"][0]["protection"]["copies"], 1);
    assert_eq!((&plan["before"]["disabled"], &plan["after"]["disabled"]), (&1.into(), &2.into()));
    let brief = stdout(&args);
    assert!(!brief.contains("stays:") && brief.contains("disable now") && brief.contains("repair, in this order"));
    let long = stdout(&[&args[..], &["--explain"]].concat());
    assert!(long.contains(
        "stays: without it ToR leaf0 would keep 1 of 3 paths, 2 are required, because leaf0--spine1 is to go now"
    ));
    assert!(long.contains("makes room for leaf0--spine0 to go"), "{long}");
}

#[test]
fn a_plan_reads_from_standard_input_and_of_no_trouble_it_makes_none() {
    let scratch = Scratch::new("stdin");
    let topology = scratch.file("leaves.csv", LEAVES);
    let mut planning = command(&["plan", "--topology", &topology, "--corrupting", "-", "--json"]);
    let mut planning = planning.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(planning.stdin.take());
    let output = planning.wait_with_output().unwrap();
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((plan["disable"].as_array().unwrap().len(), &plan["after"]["corrupting"]), (0, &0.into()));
}

#[test]
fn a_plan_with_nothing_to_do_says_so() {
    let scratch = Scratch::new("nothing");
    let topology = scratch.file("leaves.csv", LEAVES);
    let [none, some] = [("none.csv", ""), ("some.csv", "leaf0/eth0,1e-4,\n")]
        .map(|(name, rows)| scratch.file(name, &format!("link,loss,state\n{rows}")));
    let said = |corrupting: &str| stdout(&["plan", "--topology", &topology, "--corrupting", corrupting]);
    assert!(said(&none).starts_with("nothing to do: no link is corrupting\n"), "{}", said(&none));
    assert!(!said(&some).contains("nothing to do"), "{}", said(&some));
}

#[test]
fn a_topology_that_was_written_can_be_planned_with() {
    let scratch = Scratch::new("topology");
    let file = scratch.path("fabric.csv");
    let written = json(&["topology", "--fat-tree", "4", "--write", &file]);
    assert_eq!((&written["switches"], &written["links"], &written["segments"]), (&20.into(), &32.into(), &4.into()));
    let run = json(&["simulate", "--topology", &file, "--days", "30"]);
    assert_eq!(run["links"], 32);
    let printed = stdout(&["topology", "--fat-tree", "4", "--write", "-"]);
    assert_eq!(printed, fs::read_to_string(&file).unwrap());
}

#[test]
fn upgrades_are_compared_as_table_csv_and_json() {
    let scratch = Scratch::new("upgrade");
    let file = scratch.path("curves.csv");
    let args = ["upgrade", "--pods", "2", "--days", "60", "--mttf", "1000h", "--seeds", "1,2", "--out", &file];
    let answer = json(&args);
    let orders = answer["orders"].as_array().unwrap();
    assert_eq!(orders.len(), 11);
    assert!(orders.windows(2).all(|pair| pair[0]["area"].as_f64() <= pair[1]["area"].as_f64()));
    for order in orders {
        let points = order["points"].as_array().unwrap();
        assert_eq!((points.len(), &points[0]["switches"], &points[10]["links"]), (11, &0.into(), &768.into()));
    }
    let csv = fs::read_to_string(&file).unwrap();
    assert_eq!(csv.lines().count(), 1 + 11 * 11);
    let text =
        stdout(&["upgrade", "--fat-tree", "4", "--days", "60", "--mttf", "500h", "--orders", "pods,levels:1-0-2"]);
    assert!(text.contains("levels:1-0-2") && text.contains("100 %") && !text.contains("greedy"), "{text}");
}

/// More than anything here takes, on a machine that is busy.
const LONG: Duration = Duration::from_secs(120);

/// Ends its process if the test forgets it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn interrupt(child: &Child) {
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
}

struct Watching {
    running: Running,
    lines: Receiver<String>,
}

impl Watching {
    fn start(args: &[&str]) -> Self {
        let mut child = command(args).arg("--json").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        read_on(said, sender);
        Self { running: Running(child), lines }
    }

    /// The next event of a kind. Other events before it are skipped.
    fn next(&self, kind: &str) -> Value {
        loop {
            let line = self.lines.recv_timeout(LONG).unwrap_or_else(|_| panic!("it never said `{kind}`"));
            let event: Value = serde_json::from_str(&line).unwrap();
            if !event[kind].is_null() {
                return event[kind].clone();
            }
        }
    }

    fn end(mut self) {
        interrupt(&self.running.0);
        assert_eq!(self.running.0.wait().unwrap().code(), Some(130));
    }
}

#[expect(clippy::disallowed_methods, reason = "a line that never comes must not stop the test for good")]
fn read_on(said: BufReader<ChildStdout>, lines: Sender<String>) {
    std::thread::spawn(move || said.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
}

fn corrupting(port: &str, number: u64, loss: f64) -> Message {
    Message::Port(PortState {
        earliest_ns: None,
        latest_ns: None,
        time_of: None,
        id: port.parse().unwrap(),
        peer: None,
        at: Moment::from_ms(number),
        life: 1,
        number,
        condition: Condition::Corrupting,
        sticky: false,
        evidence: Evidence { loss, ..Evidence::default() },
        why: "a test says so".to_owned(),
    })
}

fn orders(bus: &mut RedisBus) -> Vec<(String, OrderKind)> {
    let orders = bus.catch_up().unwrap().into_iter().filter_map(|message| match message {
        Message::Order(order) => Some((order.id.to_string(), order.kind)),
        Message::Port(_) => None,
    });
    orders.collect()
}

#[test]
fn the_loop_observes_unless_told_to_act_and_a_repair_brings_the_link_back() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let scratch = Scratch::new("watch");
    let (topology, journal, url) = (scratch.file("leaves.csv", LEAVES), scratch.path("journal"), server.url());
    let mut bus = RedisBus::open(&url).unwrap();
    bus.publish(&corrupting("leaf0/eth0", 1, 1e-3)).unwrap();
    let args = ["watch", "--topology", &topology, "--bus", &url, "--constraint", "0.6"];

    let observer = Watching::start(&[&args[..], &["--journal", &journal]].concat());
    let advice = observer.next("decision");
    assert_eq!((&advice["link"], &advice["verdict"]), (&"leaf0--spine0".into(), &"disable".into()));
    bus.publish(&corrupting("leaf0/eth1", 1, 1e-4)).unwrap();
    assert_eq!(observer.next("decision")["verdict"], "protect");
    observer.end();
    assert!(orders(&mut bus).is_empty());
    let lines = fs::read_to_string(&journal).unwrap();
    assert_eq!(lines.lines().filter(|line| line.contains("\"decision\"")).count(), 2, "{lines}");

    let actor = Watching::start(&[&args[..], &["--act"]].concat());
    let order = actor.next("decision");
    assert_eq!(order["ordered"], serde_json::json!(["leaf0/eth0", "spine0/swp0"]));
    assert_eq!(actor.next("decision")["verdict"], "protect");
    actor.next("ordered");
    actor.next("ordered");
    let disabled = orders(&mut bus);
    assert_eq!(disabled.len(), 2);
    assert!(disabled.iter().all(|(_, kind)| *kind == OrderKind::Disable));
    let repaired = json(&["repaired", "spine0/swp0", "--topology", &topology, "--bus", &url]);
    assert_eq!((&repaired["link"], &repaired["was_disabled"]), (&"leaf0--spine0".into(), &true.into()));
    // The other one is corrupting still, and now there is room for it to go.
    let verdicts: Vec<Value> = (0..2).map(|_| actor.next("decision")["verdict"].clone()).collect();
    assert_eq!(verdicts, ["enabled", "disable"]);
    actor.end();
}

#[test]
fn a_watcher_without_its_redis_says_so_and_goes_on_and_ends_at_once() {
    let Some(mut server) = RedisServer::start(Keeps::Nothing) else { return };
    server.kill();
    let scratch = Scratch::new("unreachable");
    let (topology, url) = (scratch.file("leaves.csv", LEAVES), server.url());
    let watching = Watching::start(&["watch", "--topology", &topology, "--bus", &url, "--constraint", "0.6"]);
    assert!(watching.next("degraded").as_str().unwrap().contains(&server.port().to_string()));
    server.start_again();
    RedisBus::open(&url).unwrap().publish(&corrupting("leaf0/eth0", 1, 1e-3)).unwrap();
    assert_eq!(watching.next("decision")["verdict"], "disable");
    watching.end();
}

#[test]
fn the_bench_measures_years_checks_and_plans() {
    let output = Command::new(env!("CARGO_BIN_EXE_hitless"))
        .args(["bench", "fleet", "--pods", "2", "--days", "30", "--rounds", "1", "--json"])
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((answer["years"].as_array().unwrap().len(), answer["replans"].as_array().unwrap().len()), (4, 4));
    assert!(answer["checks"][0]["nanoseconds"].as_f64().unwrap() > 0.0);
    assert!(answer["replans"][0]["events"].as_u64().unwrap() > 0);
}
