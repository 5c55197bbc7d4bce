//! Collectives as a person runs them: what is printed, what is written, what is refused.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

const RING: &str = r#"
    topology = { kind = "single-switch", hosts = 8, rate = "100G", delay = "500ns" }
    switch = { latency = "300ns" }
    [[link]]
    between = ["h0", "sw0"]
    loss = "2e-4"
    [[traffic]]
    name = "gradients"
    transport = "rdma"
    mtu = 4096
    work = "collective"
    pattern = "all-reduce"
    size = "256KiB"
    iterations = 300
    [run]
    seeds = [1, 2]
"#;

/// A folder of its own for each test, gone when it ends.
struct CollectiveFolder(PathBuf);

impl CollectiveFolder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hitless-sim-collectives-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.0.join(name).display().to_string()
    }
}

impl Drop for CollectiveFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hitless")).args(["sim", "run"]).args(args).output().unwrap()
}

fn json(args: &[&str]) -> Value {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_job_says_how_many_iterations_are_late_by_how_much_and_for_which_cable() {
    let folder = CollectiveFolder::new("answer");
    let file = folder.file("it.toml", RING);
    let job = json(&[&file, "--json"])[0]["collective"][0].clone();
    let fields = [
        "name",
        "pattern",
        "algorithm",
        "ranks",
        "channels",
        "pieces",
        "size",
        "iterations",
        "simulated_iterations",
        "complete",
        "failed",
        "time_us",
        "bound_us",
        "without_loss_us",
        "lateness_us",
        "late",
        "late_share",
        "algbw_gbytes",
        "busbw_gbytes",
        "losses",
        "timeouts",
        "parts_us",
        "blamed",
        "by_seed",
    ];
    for field in fields {
        assert!(job.get(field).is_some(), "{field}: {job}");
    }
    let number = |value: &Value| value.as_f64().unwrap();
    assert_eq!(
        (&job["name"], &job["pattern"], &job["algorithm"]),
        (&"gradients".into(), &"all-reduce".into(), &"ring".into())
    );
    assert_eq!((number(&job["iterations"]), number(&job["complete"])), (600.0, 600.0));
    assert!(job["failed"].is_null() && number(&job["late"]) > 5.0, "{job}");
    assert_eq!((&job["blamed"][0]["link"], job["by_seed"].as_array().unwrap().len()), (&"h0-sw0".into(), 2));
    let (mean, without) = (number(&job["time_us"]["mean"]), number(&job["without_loss_us"]));
    assert!((mean - without - number(&job["lateness_us"]["mean"])).abs() < 1e-3, "{job}");
    assert!(number(&job["bound_us"]) <= without, "{job}");
    let parts: f64 =
        ["wire", "queue", "recovery", "waiting", "compute"].iter().map(|part| number(&job["parts_us"][part])).sum();
    assert!((parts - mean).abs() < 1e-3, "{parts} of {mean}");
    let bandwidth = 262_144.0 / mean / 1e3;
    assert!((number(&job["algbw_gbytes"]) / bandwidth - 1.0).abs() < 1e-6);
    assert!((number(&job["busbw_gbytes"]) / bandwidth - 1.75).abs() < 1e-6);
}

#[test]
fn the_same_bytes_come_for_any_number_of_jobs_and_the_same_numbers_with_exact() {
    let folder = CollectiveFolder::new("exact");
    let file = folder.file("it.toml", RING);
    let [one, many] = ["1", "4"].map(|jobs| run(&[&file, "--json", "--jobs", jobs]).stdout);
    assert_eq!(one, many);
    let [mut short, mut exact] = [&["--json"][..], &["--json", "--exact"]].map(|more| {
        let args: Vec<&str> = [file.as_str()].into_iter().chain(more.iter().copied()).collect();
        json(&args)[0]["collective"][0].clone()
    });
    let simulated = |job: &Value| job["simulated_iterations"].as_u64().unwrap();
    assert!(simulated(&short) < simulated(&exact) && simulated(&exact) == 600, "{short}");
    for job in [&mut short, &mut exact] {
        job["simulated_iterations"] = 0.into();
    }
    assert_eq!(short, exact);
}

#[test]
fn late_iterations_and_transfers_are_rows() {
    let folder = CollectiveFolder::new("rows");
    let file = folder.file("it.toml", RING);
    let out = folder.0.join("out").display().to_string();
    json(&[&file, "--json", "--seeds", "1", "--out", &out]);
    let rows = fs::read_to_string(folder.0.join("out/seed-1/iterations.csv")).unwrap();
    let mut lines = rows.lines();
    assert_eq!(
        lines.next(),
        Some(
            "job,iteration,start_us,time_us,lateness_us,late,link,cause,src,dst,step,channel,losses,timeouts,\
             wire_us,queue_us,recovery_us,waiting_us,compute_us"
        )
    );
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert!(lines.iter().any(|line| line[5] == "true" && line[6] == "h0-sw0" && line[7] == "loss"), "{rows}");
    assert!(lines.iter().all(|line| line[5] == "true" || line[1].ends_with("00") || line[1] == "0"), "{rows}");
    let sets = ["--set", "measure.transfers=true", "--set", "measure.iterations=all", "--set", "traffic.iterations=3"];
    let args: Vec<&str> = [file.as_str(), "--json", "--seeds", "1", "--out", &out].into_iter().chain(sets).collect();
    json(&args);
    let count = |name: &str| fs::read_to_string(folder.0.join("out/seed-1").join(name)).unwrap().lines().count();
    assert_eq!((count("iterations.csv"), count("transfers.csv")), (1 + 3, 1 + 3 * 14 * 8));
}

#[test]
fn a_graph_without_an_end_is_refused_in_one_line() {
    let folder = CollectiveFolder::new("cycle");
    let text = RING.replace("work = \"collective\"", "work = \"file\"\nfile = \"graph.csv\"");
    let text = text.replace("pattern = \"all-reduce\"\n    size = \"256KiB\"\n", "");
    let file = folder.file("it.toml", &text);
    folder.file("graph.csv", "id,after,src,dst,bytes\na,b,h0,h1,1\nb,a,h1,h0,1\n");
    let output = run(&[&file]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("graph.csv: can never finish") && said.contains("a -> b -> a"), "{said}");
}
