//! `hitless sim collective`, and graphs from elsewhere in `hitless sim run`, as a person meets them.

#![expect(clippy::print_stdout, reason = "figures are for people")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn hitless(args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hitless")).args(args.split_whitespace()).output().unwrap()
}

#[track_caller]
fn stdout(args: &str) -> String {
    let output = hitless(args);
    assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &str) -> Value {
    serde_json::from_str(&stdout(&format!("{args} --json"))).unwrap()
}

/// The one line that wrong input is answered with.
#[track_caller]
fn refused(args: &str) -> String {
    let output = hitless(args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args}: {said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{args}: {said}");
    assert!(output.stdout.is_empty(), "{args}");
    said.trim_end().to_owned()
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hitless-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Eight ranks at one switch, 32 packets a step, a cable that loses one frame in two hundred.
const SMALL: &str = "sim collective --ranks 8 --size 1MiB --rate 100G --topology one-switch --loss 5e-3 --timeout 67.1ms \
                     --iterations 60";

#[test]
fn remedies_stand_beside_each_other_and_the_model() {
    let answer = json(SMALL);
    let names: Vec<&str> =
        answer["remedies"].as_array().unwrap().iter().map(|run| run["remedy"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "dummies", "irn", "melo", "ordered", "nonblocking", "uec-llr"]);
    for run in answer["remedies"].as_array().unwrap() {
        let it = &run["collective"];
        assert_eq!((&it["complete"], &it["failed"], &it["ranks"]), (&60.into(), &Value::Null, &8.into()), "{run}");
        let without = it["without_loss_us"].as_f64().unwrap();
        assert!((172.0..174.0).contains(&without), "{run}");
        assert!(it["late_share"].as_f64().unwrap() > 0.6, "{run}");
        assert!(run["model"]["late_share"].as_f64().unwrap() > 0.8, "{run}");
    }
    let text = stdout(SMALL);
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("A loss of 0.005 on h0-sw0 makes ") && first.contains(" of 60 iterations late, "),
        "{first}"
    );
    assert_eq!(answer["answer"], first);
    assert!(text.contains("h0-sw0, loss"), "{text}");
}

#[test]
fn the_same_numbers_for_any_number_of_jobs_and_with_every_iteration_simulated() {
    let few = format!("{} --remedy none,uec-llr", SMALL.replace("5e-3", "1e-3"));
    let alone = stdout(&format!("{few} --jobs 1"));
    assert_eq!(alone, stdout(&format!("{few} --jobs 3")));
    assert_eq!(alone, stdout(&format!("{few} --exact")));
    assert_ne!(alone, stdout(&format!("{few} --seed 2")));
}

#[test]
fn the_scenario_gives_the_same_run() {
    let folder = Folder::new("collective-scenario");
    let one = format!("{SMALL} --remedy irn");
    let file = folder.file("it.toml", stdout(&format!("{one} --scenario")));
    let page = folder.path("it.html");
    let run = json(&format!("sim run {file} --html {page}"));
    assert_eq!(run[0]["collective"][0]["time_us"], json(&one)["remedies"][0]["collective"]["time_us"]);
    let page = std::fs::read_to_string(page).unwrap();
    testkit::page::assert_well_formed(&page);
    assert!(page.contains("hitless sim run") && page.contains("Accused links"));
}

#[test]
fn the_page_has_the_answer_the_charts_and_the_command() {
    let folder = Folder::new("collective-page");
    let page = folder.path("it.html");
    let text = stdout(&format!("{SMALL} --remedy none,ordered --html {page}"));
    let page = std::fs::read_to_string(page).unwrap();
    testkit::page::assert_well_formed(&page);
    testkit::page::assert_finite(&page);
    assert!(page.contains(text.lines().next().unwrap()), "the answer");
    for part in [
        "Time of iterations",
        "Tail of the times",
        "Accused links",
        "h0-sw0",
        "--iterations 60",
        "work = &quot;collective&quot;",
    ] {
        assert!(page.contains(part), "no {part:?}");
    }
}

#[test]
fn a_long_run_says_so_and_what_the_model_answers() {
    // One iteration alone would take hours: what is said before it begins is all that this test waits for.
    let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
    command
        .args("sim collective --ranks 64 --size 1GiB --loss 1e-3 --iterations 10000 --remedy none".split_whitespace());
    let mut child = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut lines = [String::new(), String::new()];
    for line in &mut lines {
        std::io::BufRead::read_line(&mut said, line).unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(lines[0].starts_with("this takes about ") && lines[0].contains("hours"), "{lines:?}");
    assert!(lines[1].starts_with("A loss of 0.001 on h0-leaf0: one iteration in "), "{lines:?}");
}

#[test]
fn the_model_is_held_against_a_simulation() {
    let args = "model collective --ranks 8 --size 1MiB --rate 100G --topology one-switch --loss 1e-3 --remedy none --simulate 50";
    let answer = json(args);
    let run = &answer["simulated"]["remedies"][0]["collective"];
    let [simulated, model] = [&run["without_loss_us"], &answer["without_loss_us"]].map(|us| us.as_f64().unwrap());
    assert!((simulated / model - 1.0).abs() < 0.005, "{simulated} and {model}");
    assert!(stdout(args).contains("\nsimulated\n"));
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    let said = |more: &str| refused(&format!("sim collective {more}"));
    assert!(said("--ranks 12 --algorithm halving-doubling").contains("--ranks: halving-doubling with 12 ranks"));
    assert!(said("--link h0-leaf9").contains("--link: "));
    assert!(said("--scenario --json").contains("expected without --json"));
    assert!(said("--html /nowhere/it.html").contains("expected a file in a folder that exists"));
    assert!(said("--iterations 0").contains("expected a whole number from 1"));
}

/// The network of `graph_time`: 16 hosts at 4 leaves, 100G, 500 ns a cable, 300 ns a switch.
fn scenario(hosts_per_leaf: u32, graph: &str) -> String {
    format!(
        "[topology]\nkind = 'leaf-spine'\nleaves = 4\nspines = 4\nhosts_per_leaf = {hosts_per_leaf}\nrate = '100G'\n\
         delay = '500ns'\n[switch]\nlatency = '300ns'\n\
         [[traffic]]\ntransport = 'rdma'\nmtu = 4096\nwork = 'file'\nfile = '{graph}'\n"
    )
}

/// Time of one iteration of a file that is imported and run.
fn graph_time(folder: &Folder, file: &str, options: &str) -> f64 {
    let graph = folder.file("graph.csv", stdout(&format!("sim import {file} {options}")));
    let scenario = folder.file("graph.toml", scenario(4, &graph));
    json(&format!("sim run {scenario}"))[0]["collective"][0]["time_us"]["mean"].as_f64().unwrap()
}

/// The matrix that htsim's generator makes for one group, with a step too many.
fn ring_matrix(ranks: u32, bytes: u64) -> String {
    let steps = 2 * ranks - 1;
    let mut text = format!("Nodes {ranks}\nConnections {}\nTriggers {}\n", ranks * steps, ranks * (steps - 1));
    let (mut id, mut trigger) = (0, 0);
    for first in 0..ranks {
        for step in 0..steps {
            id += 1;
            let _ = write!(text, "{}->{} id {id}", (first + step) % ranks, (first + step + 1) % ranks);
            let _ = if step == 0 { write!(text, " start 0") } else { write!(text, " trigger {trigger}") };
            let _ = write!(text, " size {bytes}");
            if step + 1 < steps {
                trigger += 1;
                let _ = write!(text, " send_done_trigger {trigger}");
            }
            text += "\n";
        }
    }
    (1..=trigger).for_each(|id| text += &format!("trigger id {id} oneshot\n"));
    text
}

/// Each step takes its packets, the way of the last one, and the way back of its acknowledgement.
#[test]
fn htsims_ring_takes_the_closed_form_with_steps_that_acknowledgements_drive() {
    let folder = Folder::new("collective-htsim");
    let file = folder.file("ring.cm", ring_matrix(16, 1_000_000));
    let simulated = graph_time(&folder, &file, "--from htsim");
    let [wire, packet, ack] = [1_000_000.0 + 245.0 * 82.0, 4_178.0, 88.0].map(|bytes: f64| bytes * 8e-5);
    // Three hops of four stay below a leaf: one switch; the fourth passes three.
    let step = |switches: f64| {
        let way = |frame: f64| switches * (frame + 0.3) + (switches + 1.0) * 0.5;
        (wire + way(packet), way(ack) + ack)
    };
    let hops: Vec<(f64, f64)> = (0..16).map(|rank| step(if rank % 4 == 3 { 3.0 } else { 1.0 })).collect();
    let chain = |first: usize| {
        let all: f64 = (first..first + 31).map(|hop| hops[hop % 16].0 + hops[hop % 16].1).sum();
        all - hops[(first + 30) % 16].1
    };
    let expected = (0..16).map(chain).fold(0.0, f64::max);
    println!("htsim's ring: {simulated:.1} µs simulated, {expected:.1} µs by the closed form");
    assert!((simulated / expected - 1.0).abs() < 0.03, "{simulated} and {expected}");
}

const RANKS: u32 = 4;
const BYTES: u64 = 128 << 10;

#[test]
fn an_all_gather_takes_as_long_from_goal_simccl_and_chakra() {
    let folder = Folder::new("collective-formats");
    let (mut goal, mut table) = (format!("num_ranks {RANKS}\n"), String::new());
    for rank in 0..RANKS {
        let (next, before) = ((rank + 1) % RANKS, (rank + RANKS - 1) % RANKS);
        let _ = writeln!(goal, "rank {rank} {{");
        for step in 0..RANKS - 1 {
            let _ = writeln!(
                goal,
                "s{step}: send {BYTES}b to {next} tag {step}\nr{step}: recv {BYTES}b from {before} tag {step}"
            );
            if step > 0 {
                let _ = writeln!(goal, "s{step} requires r{}", step - 1);
            }
        }
        goal += "}\n";
    }
    for id in 0..RANKS * (RANKS - 1) {
        let (step, src) = (id / RANKS, id % RANKS);
        let parent =
            step.checked_sub(1).map_or("-1".into(), |before| (before * RANKS + (src + RANKS - 1) % RANKS).to_string());
        let _ = writeln!(table, "{id}\t{parent}\t{src}\t{}\t{}KB\t0", (src + 1) % RANKS, BYTES >> 10);
    }
    let trace = format!("{{\"workload_graph\":[{{\"Id\":1,\"NodeType\":7,\"comm_size\":{BYTES},\"comm_type\":2}}]}}");
    (0..RANKS).for_each(|rank| drop(folder.file(&format!("gather.{rank}.json"), &trace)));
    let times = [
        graph_time(&folder, &folder.file("it.goal", goal), "--from goal"),
        graph_time(&folder, &folder.file("it.tsv", table), "--from simccl"),
        graph_time(&folder, &folder.path("gather.%d.json"), "--from chakra"),
    ];
    // Three steps of 32 packets below one leaf.
    let expected = 3.0 * (BYTES as f64 + 33.0 * 82.0 + 4_096.0 + 1_300.0 / 0.08) * 8e-5;
    println!("an all-gather of 4 ranks: {times:?} µs, {expected:.1} µs by the closed form");
    assert!(times[0] == times[1] && times[1] == times[2], "{times:?}");
    assert!((times[0] / expected - 1.0).abs() < 0.005, "{times:?} and {expected}");
}
