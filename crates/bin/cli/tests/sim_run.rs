//! Scenarios as a person runs them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

const REQUESTS: &str = r#"
    topology = { kind = "testbed", rate = "100G" }
    switch = { ecn = "100KB" }
    [[link]]
    between = ["sw2", "sw6"]
    protect = ["none", "ordered"]
    [[link.forward]]
    loss = "1e-2"
    [[traffic]]
    name = "requests"
    transport = "dctcp"
    work = "series"
    from = "h4"
    to = "h8"
    size = 24387
    reply = 64
    count = 100
    [measure]
    sample = "1ms"
    watch = [["sw2", "sw6"]]
    pcap = [["sw6", "h8"]]
"#;

/// A folder of its own for each test, gone when it ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hitless-sim-run-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn scenario(&self, text: &str) -> String {
        let path = self.0.join("it.toml");
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn folder(&self, name: &str) -> String {
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
    command.args(["sim", "run"]).args(args);
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

/// Every file below a folder, by its path.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(
                files(&path).into_iter().map(|(name, bytes)| (Path::new(path.file_name().unwrap()).join(name), bytes)),
            );
        } else {
            found.insert(path.file_name().unwrap().into(), fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn every_example_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../experiments/scenarios");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let smaller: &[&str] = match path.file_stem().unwrap().to_str().unwrap() {
            "requests" => &["traffic.count=200"],
            "websearch" => &["traffic.stop=1ms", "traffic.load=0.3"],
            "incast" => &["traffic.0.count=3", "run.until=4ms"],
            "permutation" => &["traffic.size=1MB"],
            "wire-1g" => &["run.until=100ms"],
            "losses" => &["run.until=30ms"],
            _ => &[],
        };
        let mut args = vec![path.to_str().unwrap(), "--seeds", "1", "--json"];
        args.extend(smaller.iter().flat_map(|set| ["--set", set]));
        let points: Value = serde_json::from_str(&stdout(&args)).unwrap();
        for point in points.as_array().unwrap() {
            assert!(point["traffic"][0]["goodput_gbps"].as_f64().unwrap() > 0.0, "{}: {point}", path.display());
        }
        seen += 1;
    }
    assert!(seen >= 5);
}

#[test]
fn a_scenario_that_cannot_work_is_refused_and_nothing_is_written() {
    let scratch = Scratch::new("refused");
    let file = scratch.scenario(&REQUESTS.replace("\"h8\"\n    size", "\"h9\"\n    size"));
    let output = run(&[&file, "--out", &scratch.folder("out")]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(said, format!("error: {file}:14: traffic.to: no node is called 'h9': did you mean 'h4'?\n"));
    assert!(output.stdout.is_empty() && !scratch.0.join("out").exists());
    for (args, expected) in [
        (vec!["--set", "traffic.siz=1"], "did you mean 'size'?"),
        (vec!["--seeds", "3..1"], "expected seeds such as 1, 1..32"),
        (vec!["--jobs", "0"], "--jobs"),
    ] {
        let file = scratch.scenario(REQUESTS);
        let output = run(&[&[file.as_str()], &args[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{args:?}");
    }
    assert_eq!(run(&["/no/such/file.toml"]).status.code(), Some(2));
}

#[test]
fn the_same_seeds_give_the_same_bytes_for_any_number_of_jobs() {
    let scratch = Scratch::new("jobs");
    let file = scratch.scenario(REQUESTS);
    let of = |jobs: &str| {
        let out = scratch.folder(jobs);
        let printed = stdout(&[&file, "--seeds", "1..3", "--jobs", jobs, "--json", "--out", &out]);
        (printed, files(Path::new(&out)))
    };
    let (one, two) = (of("1"), of("2"));
    assert_eq!(one, two);
    let names: Vec<String> = one.1.keys().map(|name| name.display().to_string()).collect();
    assert_eq!(names.len(), 2 * 3 * 4 + 1, "{names:?}");
    for name in ["flows.csv", "flows.parquet", "samples.csv", "sw6-h8.pcapng"] {
        assert!(names.contains(&format!("protect=ordered/seed-2/{name}")), "{names:?}");
    }
    assert_eq!(one.1[Path::new("summary.json")], one.0.as_bytes());
    assert_ne!(one.1[Path::new("protect=none/seed-1/flows.csv")], one.1[Path::new("protect=none/seed-2/flows.csv")]);
}

#[test]
fn points_say_what_they_are_and_what_came_of_them() {
    let scratch = Scratch::new("json");
    let file = scratch.scenario(REQUESTS);
    let args =
        [file.as_str(), "--json", "--seeds", "1,2", "--set", "traffic.size=143,24387", "--set", "link.protect=ordered"];
    let points: Value = serde_json::from_str(&stdout(&args)).unwrap();
    let labels: Vec<&str> = points.as_array().unwrap().iter().map(|point| point["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["size=143", "size=24387"]);
    let point = &points[1];
    assert_eq!(
        (&point["config"]["traffic"][0]["size"], &point["config"]["link"][0]["protect"]),
        (&24_387.into(), &"ordered".into())
    );
    assert_eq!(point["seeds"], serde_json::json!([1, 2]));
    let traffic = &point["traffic"][0];
    assert_eq!(
        (&traffic["flows"], &traffic["complete"], &traffic["fct_us"]["n"]),
        (&200.into(), &200.into(), &200.into())
    );
    assert!(traffic["fct_us"]["p99"].is_number() && traffic["fct_us"]["p99.9"].is_null());
    assert_eq!(traffic["slowdown_by_size"], serde_json::json!([]));
    assert!(point["links"][0]["recovered"].as_u64().unwrap() > 0);
    let text = stdout(&args[..1]);
    for expected in ["protect=ordered", "p99.99", "retransmissions, by cause", "protected links", "sw2-sw6"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn files_of_a_former_run_are_replaced() {
    let scratch = Scratch::new("again");
    let (file, out) = (scratch.scenario(REQUESTS), scratch.folder("out"));
    let rows = || fs::read_to_string(Path::new(&out).join("seed-1/flows.csv")).unwrap().lines().count();
    for count in [7, 5] {
        stdout(&[&file, "--out", &out, "--set", "link.protect=none", "--set", &format!("traffic.count={count}")]);
        assert_eq!(rows(), count + 1);
    }
}

/// Ends its process if the test forgets it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_interrupted_run_leaves_whole_files_and_says_what_is_missing() {
    let scratch = Scratch::new("interrupted");
    let (file, out) = (scratch.scenario(REQUESTS), scratch.folder("out"));
    let args = [
        file.as_str(),
        "--jobs",
        "1",
        "--out",
        &out,
        "--set",
        "traffic.count=10,100000000",
        "--set",
        "link.protect=none",
        "--set",
        "measure={}",
    ];
    let mut running = Running(command(&args).stdout(Stdio::piped()).spawn().unwrap());
    let first = Path::new(&out).join("count=10/seed-1/flows.parquet");
    while !first.exists() {
        assert!(running.0.try_wait().unwrap().is_none(), "it ended too early");
        std::thread::sleep(Duration::from_millis(5));
    }
    Command::new("kill").args(["-INT", &running.0.id().to_string()]).status().unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut running.0.stdout.take().unwrap(), &mut said).unwrap();
    assert_eq!(running.0.wait().unwrap().code(), Some(130));
    assert!(said.contains("interrupted, missing: count=100000000: seed 1"), "{said}");
    let left = files(Path::new(&out));
    assert_eq!(left.len(), 3, "{:?}", left.keys());
    let summary: Value = serde_json::from_slice(&left[Path::new("summary.json")]).unwrap();
    assert_eq!(
        (&summary[0]["missing_seeds"], &summary[1]["missing_seeds"]),
        (&serde_json::json!([]), &serde_json::json!([1]))
    );
}

/// Output of a run that is interrupted while it is under way.
fn interrupted(args: &[&str]) -> String {
    let mut running = Running(command(args).stdout(Stdio::piped()).spawn().unwrap());
    // Processor time, not time: however busy the machine is, it has simulated something by then.
    let spent = |id: u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let fields: Vec<u64> =
            stat.split_whitespace().skip(13).take(2).filter_map(|field| field.parse().ok()).collect();
        fields.iter().sum::<u64>()
    };
    // In ticks of 10 ms.
    while spent(running.0.id()) < 100 {
        assert!(running.0.try_wait().unwrap().is_none(), "it ended too early");
        std::thread::sleep(Duration::from_millis(20));
    }
    Command::new("kill").args(["-INT", &running.0.id().to_string()]).status().unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut running.0.stdout.take().unwrap(), &mut said).unwrap();
    assert_eq!(running.0.wait().unwrap().code(), Some(130));
    said
}

#[test]
fn an_interrupted_single_run_prints_what_was_simulated() {
    let scratch = Scratch::new("partial");
    let file = scratch.scenario(REQUESTS);
    let endless = ["--set", "traffic.count=1e8", "--set", "link.protect=none", "--set", "measure={}"];
    let args = [&[file.as_str()], &endless[..]].concat();
    let text = interrupted(&args);
    for part in ["flow completion time", "interrupted, missing: seed 1", "partial results"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let points: Value = serde_json::from_str(&interrupted(&[&args[..], &["--json"]].concat())).unwrap();
    let point = &points[0];
    assert_eq!((&point["seeds"], &point["partial_seeds"]), (&serde_json::json!([]), &serde_json::json!([1])));
    assert_eq!(point["missing_seeds"], serde_json::json!([1]));
    assert!(
        point["traffic"][0]["complete"].as_u64().unwrap() > 0 && point["simulated_seconds"].as_f64().unwrap() > 0.0
    );
}

/// A result without the words that name the command.
fn result(text: &str) -> Value {
    let mut points: Value = serde_json::from_str(text).unwrap();
    for point in points.as_array_mut().unwrap() {
        let command = point["command"].take();
        assert!(command.as_str().is_some_and(|command| command.starts_with("hitless sim run ")), "{command}");
        assert_eq!(point["version"], env!("CARGO_PKG_VERSION"));
    }
    points
}

/// A scenario as TOML: values in one line each, tables as such.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(entries) => {
            let entries: Vec<String> = entries.iter().map(|(key, value)| format!("{key} = {}", toml(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

#[test]
fn the_configuration_in_a_result_gives_the_result_again_byte_for_byte() {
    let scratch = Scratch::new("again-config");
    // Keys that have no effect in one point of the sweep, or because of --set; seeds that the file does not have.
    let with_copies =
        REQUESTS.replace("between = [\"sw2\", \"sw6\"]\n", "between = [\"sw2\", \"sw6\"]\n    copies = 2\n");
    let file = scratch.scenario(&with_copies);
    let args = [file.as_str(), "--seeds", "3,5", "--set", "traffic.count=50", "--set", "traffic.transport=cubic"];
    let first = stdout(&[&args[..], &["--json"]].concat());
    let points = result(&first);
    for point in points.as_array().unwrap() {
        assert_eq!(point["config"]["run"]["seeds"], serde_json::json!([3, 5]));
        let entries = point["config"].as_object().unwrap();
        let text: String = entries.iter().map(|(key, value)| format!("{key} = {}\n", toml(value))).collect();
        let again = scratch.0.join("config.toml");
        fs::write(&again, text).unwrap();
        let again = stdout(&[again.to_str().unwrap(), "--json"]);
        assert_eq!(serde_json::to_string(&result(&again)[0]).unwrap(), serde_json::to_string(point).unwrap());
    }
    // All points at once, from the result itself.
    let saved = scratch.0.join("result.json");
    fs::write(&saved, &first).unwrap();
    let again = stdout(&[saved.to_str().unwrap(), "--json"]);
    assert_eq!(result(&again), points);
    let without_command = |text: &str| {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("\"command\""));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(without_command(&again), without_command(&first), "the order of everything included");
    let [broken, wrong] =
        [("broken.json", "[{ \"config\": "), ("wrong.json", "{ \"topologi\": 1 }")].map(|(name, text)| {
            let path = scratch.0.join(name);
            fs::write(&path, text).unwrap();
            run(&[path.to_str().unwrap()])
        });
    assert_eq!((broken.status.code(), wrong.status.code()), (Some(2), Some(2)));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("did you mean 'topology'?"));
}

#[test]
fn a_link_may_simply_have_a_loss() {
    let scratch = Scratch::new("loss");
    let short = REQUESTS.replace("[[link.forward]]\n    loss = \"1e-2\"", "loss = 1e-2");
    let of = |text: &str| {
        let mut points = result(&stdout(&[&scratch.scenario(text), "--json"]));
        for point in points.as_array_mut().unwrap() {
            point["config"].take();
        }
        points
    };
    assert_eq!(of(&short), of(REQUESTS));
    assert!(of(&short)[0]["corrupted"].as_u64().unwrap() > 0);
    let both = REQUESTS.replace("protect = ", "loss = 1e-3\n    protect = ");
    let output = run(&[&scratch.scenario(&both)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("either loss or forward"));
}

#[test]
fn a_flow_of_three_gigabytes_is_carried_by_every_transport() {
    let scratch = Scratch::new("3gb");
    for (transport, more) in
        [("dctcp", "mss = 8948"), ("rdma", "mtu = 4096"), ("rdma", "mtu = 4096\nrecovery = \"irn\"")]
    {
        let text = format!(
            "topology = {{ kind = \"pair\", rate = \"400G\" }}\n[[traffic]]\ntransport = \"{transport}\"\n{more}\n\
             work = \"series\"\nfrom = \"h0\"\nto = \"h1\"\nsize = \"3GB\"\ncount = 1e0\n"
        );
        let points: Value = serde_json::from_str(&stdout(&[&scratch.scenario(&text), "--json"])).unwrap();
        let traffic = &points[0]["traffic"][0];
        assert_eq!((&traffic["flows"], &traffic["complete"]), (&1.into(), &1.into()), "{transport} {more}");
        // No faster than the wire, and not far below it.
        let fct = traffic["fct_us"]["p50"].as_f64().or(traffic["fct_us"]["max"].as_f64()).unwrap();
        assert!((60_000.0..90_000.0).contains(&fct), "{transport} {more}: {fct} us");
    }
}

/// Fields of the packets that a filter lets pass, one line each.
fn tshark(file: &Path, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let checks = ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"];
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    let output = Command::new("tshark")
        .args(["-n", "-r", file.to_str().unwrap(), "-Y", filter, "-T", "fields", "-E", "separator=;"])
        .args(checks)
        .args(fields)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split(';').map(str::to_owned).collect()).collect()
}

fn has_tshark() -> bool {
    testkit::installed("tshark")
}

/// The capture of the link that corrupts, with so much set.
fn capture(scratch: &Scratch, sets: &[&str]) -> PathBuf {
    let (file, out) = (scratch.scenario(REQUESTS), scratch.folder("out"));
    let mut args =
        vec![file.as_str(), "--out", &out, "--set", "link.protect=none", "--set", "measure.pcap=[[\"sw2\", \"sw6\"]]"];
    args.extend(sets.iter().flat_map(|set| ["--set", set]));
    stdout(&args);
    Path::new(&out).join("seed-1/sw2-sw6.pcapng")
}

#[test]
fn captured_segments_read_as_tcp() {
    if !has_tshark() {
        return;
    }
    let scratch = Scratch::new("tcp");
    let file = capture(&scratch, &["traffic.count=20", "traffic.reply=64"]);
    assert!(
        tshark(&file, "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0", &["frame.number"])
            .is_empty()
    );
    assert!(!tshark(&file, "tcp.checksum.status == 1", &["frame.number"]).is_empty(), "those that are not cut off");
    let full = tshark(
        &file,
        "ip.src == 10.0.0.1 && tcp.seq_raw == 0",
        &["frame.len", "ip.len", "tcp.len", "tcp.dstport", "ip.dsfield.ecn"],
    );
    assert_eq!(full[0], ["1514", "1500", "1448", "5001", "2"]);
    let answers = tshark(&file, "ip.src == 10.0.0.2 && tcp.len == 64", &["tcp.srcport", "tcp.ack_raw"]);
    assert!(answers.len() >= 19 && answers.iter().all(|fields| *fields == ["5001", "24387"]), "{answers:?}");
    let corrupted = tshark(&file, "frame.comment == \"corrupted on the wire\"", &["frame.packet_flags_crc_error"]);
    assert!(!corrupted.is_empty());
    assert!(!tshark(&file, "tcp.options.sack_le", &["tcp.options.sack_le"]).is_empty(), "something was lost");
}

#[test]
fn captured_packets_read_as_roce_and_udp() {
    if !has_tshark() {
        return;
    }
    let scratch = Scratch::new("roce");
    let rdma = ["traffic.transport=rdma", "traffic.size=5000", "traffic.count=40"];
    let file = capture(&scratch, &rdma);
    assert!(tshark(&file, "_ws.malformed || ip.checksum.status == 0", &["frame.number"]).is_empty());
    let fields = ["infiniband.bth.opcode", "infiniband.reth.dmalen", "udp.length", "infiniband.bth.psn"];
    let written = tshark(&file, "ip.src == 10.0.0.1", &fields);
    let firsts: Vec<[&str; 4]> = written[..5].iter().map(|fields| [0, 1, 2, 3].map(|at| fields[at].as_str())).collect();
    assert_eq!(firsts[0][..3], ["6", "5000", &(8 + 12 + 16 + 1_024 + 4).to_string()]);
    assert_eq!((firsts[1][0], firsts[4][0]), ("7", "8"));
    let psn = |at: usize| firsts[at][3].parse::<u32>().unwrap();
    assert_eq!((psn(4) + (1 << 24) - psn(0)) % (1 << 24), 4, "{firsts:?}");
    assert!(
        !tshark(&file, "infiniband.bth.opcode == 17 && infiniband.aeth.syndrome == 0x60", &["frame.number"]).is_empty(),
        "a NAK"
    );
    let datagrams = ["traffic.transport=datagrams", "traffic.work=bulk", "traffic.payload=40", "traffic.size=4000"];
    let file = capture(&scratch, &[&datagrams[..], &["link.forward.loss=0"]].concat());
    let udp = tshark(&file, "udp.dstport == 9", &["udp.length", "udp.checksum.status"]);
    assert!(udp.len() == 100 && udp.iter().all(|fields| *fields == ["48", "1"]), "{udp:?}");
}
