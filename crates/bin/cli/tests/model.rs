//! `hitless model` as a person meets it.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn hitless(args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hitless")).args(args.split_whitespace()).output().unwrap()
}

fn stdout(args: &str) -> String {
    let output = hitless(args);
    assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &str) -> Value {
    serde_json::from_str(&stdout(&format!("{args} --json"))).unwrap()
}

/// The one line that wrong input is answered with.
fn refused(args: &str) -> String {
    let output = hitless(args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args}: {said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{args}: {said}");
    assert!(output.stdout.is_empty(), "{args}");
    said
}

#[track_caller]
fn assert_close(value: &Value, expected: f64, tolerance: f64) {
    let ours = value.as_f64().unwrap();
    assert!((ours / expected - 1.0).abs() <= tolerance, "{ours:e}, expected {expected:e}");
}

/// 1,024 B ping-pong over one link at β = 1/128.
const PING_PONG: &str = "model rdma --size 1024 --links 1 --corruption 0.0078125 --rto 266ms";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hitless-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_ping_pong_times_out_as_often_as_the_paper_expects() {
    // The paper counts two flows in each of 100 K iterations.
    let per_flow = |setting: &str| json(&format!("{PING_PONG} {setting}"))["protected"]["per_flow"].clone();
    assert_close(&per_flow("--dummies 0")["tail"]["rounded"], 1562.0 / 2e5, 1e-3);
    assert_close(&per_flow("--dummies 1")["tail"]["rounded"], 0.73 / 2e5, 0.01);
    assert_close(&per_flow("--naked 0")["twice"]["rounded"], 12.2 / 2e5, 0.01);
    assert_close(&per_flow("--naks 0")["nak"]["rounded"], 0.73 / 2e5, 0.01);
    assert_close(&per_flow("--dummies 1")["tail"]["exact"], 0.70 / 2e5, 0.01);
}

#[test]
fn bit_errors_and_drops_are_other_ways_to_say_it() {
    let answer = json("model rdma --bit-errors 1e-7");
    assert_close(&answer["packet_corruption"], 8.0 * 1086.0 * 1e-7, 1e-3);
    assert_close(&answer["bit_errors"], 1e-7, 1e-9);
    let drops = json("model rdma --drops 1e-3");
    assert_eq!(drops["header_corruption"], drops["packet_corruption"]);
    assert!(drops["bit_errors"].is_null());
}

#[test]
fn web_search_has_the_papers_tails() {
    let answer = json("model rdma");
    assert_close(&answer["mean_inverse_packets"], 0.055, 0.05);
    assert_close(&answer["mean_packets"], 1.71e6 / 1024.0, 0.01);
    let text = stdout("model rdma");
    for part in ["packet and NAK", "packet, twice", "last packet's ACK", "per 100 K flows", "2 dummies", "go-back-N"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn a_dummy_costs_six_percent_where_flows_have_one_packet() {
    let cost = json("model rdma --size 64 --dummies 1 --naks 0 --naked 0")["protected"]["cost"].clone();
    assert_close(&cost["total"], 0.06, 0.05);
    let repeated = json("model rdma --size 1024 --tail-repeat 1 --naks 0 --naked 0")["protected"]["cost"].clone();
    assert_close(&repeated["total"], 1.0, 1e-9);
}

#[test]
fn shared_queue_pairs_shorten_the_wait() {
    let tails =
        |more: &str| json(&format!("{PING_PONG} {more}"))["unprotected"]["penalty_us"]["tails"].as_f64().unwrap();
    let (alone, shared) = (tails(""), tails("--queue-pairs 100 --load 0.1 --rate 100G"));
    assert!(shared < alone / 100.0, "{shared} of {alone}");
}

#[test]
fn advice_says_what_to_set_and_why() {
    let args = "model rdma --size 1024 --advise --p999 300us";
    let advice = json(args)["advice"].clone();
    assert_eq!(advice["reached"], true);
    assert_eq!(advice["setting"]["dummies"], 1);
    assert_eq!(advice["wait_us"], 190.0);
    assert!(advice["late"].as_f64().unwrap() <= 1e-3);
    let text = stdout(args);
    assert!(text.contains("set 1 dummy") && text.contains("with one dummy less"), "{text}");
    assert!(stdout("model rdma --size 1024 --corruption 1e-9 --p99 300us").contains("nothing need be set"));
}

#[test]
fn advice_comes_first() {
    let lines = |args: &str| stdout(args).lines().take(2).map(str::to_owned).collect::<Vec<_>>();
    let first = lines("model rdma --size 4KB --advise --p999 300us");
    assert!(first[0] == "advice" && first[1].contains("set "), "{first:?}");
    assert!(lines("model rdma --size 4KB")[0].starts_with("on a corrupting link"));
}

#[test]
fn counts_may_be_powers_of_ten_and_sizes_binary() {
    assert_eq!(stdout("model rdma --size 4KiB --naks 1e1"), stdout("model rdma --size 4096 --naks 10"));
    assert!(refused("model rdma --size 4KB --naks 1e3").contains("expected a whole number from 0 to 100"));
}

#[test]
fn a_goal_out_of_reach_is_named_with_what_would_help() {
    let text = stdout("model rdma --size 1024 --advise --p999 105us");
    assert!(text.contains("round trip of 10.00 µs") && text.contains("LinkGuardian on the links does"), "{text}");
    assert!(stdout("model rdma --advise --p999 100us").contains("flows take 100 µs without corruption"));
    let text = stdout("model rdma --size 1024 --drops 1e-2 --advise --p9999 105us");
    assert!(text.contains("cannot hide what switches drop"), "{text}");
    assert_eq!(json("model rdma --advise --p999 50us")["advice"]["reached"], false);
}

#[test]
fn a_workload_of_ones_own_is_read_and_its_mistakes_are_named() {
    let folder = Folder::new("model");
    let good = folder.file("good.txt", "1024 50\n1024 100\n");
    assert_eq!(json(&format!("model rdma --workload {good}"))["mean_packets"], 1.0);
    let bad = folder.file("bad.txt", "1024 50\n512 100\n");
    let said = refused(&format!("model rdma --workload {bad}"));
    for part in [bad.as_str(), "line 2", "512 100", "no less than in the line before"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
}

#[test]
fn nonsense_is_named_and_refused() {
    for (args, parts) in [
        ("model rdma --corruption 1.5", &["--corruption", "1.5", "between 0 and 1"][..]),
        ("model rdma --corruption -0.1", &["--corruption", "between 0 and 1"]),
        ("model rdma --corrupting 2", &["--corrupting", "between 0 and 1"]),
        ("model rdma --bit-errors 1e-7 --corruption 1e-3", &["--bit-errors", "--corruption"]),
        ("model rdma --drops 1e-3 --corruption 1e-3", &["--drops", "--corruption"]),
        ("model rdma --mtu 0", &["--mtu", "1 to 65536"]),
        ("model rdma --mtu 1MB", &["--mtu", "1 to 65536"]),
        ("model rdma --size 0", &["--size 0", "at least one byte"]),
        ("model rdma --size 1e6G", &["1 TB"]),
        ("model rdma --links 0", &["--links", "1 to 16"]),
        ("model rdma --dummies 1 --tail-repeat 1", &["--dummies", "--tail-repeat"]),
        ("model rdma --rto 2h", &["--rto", "at most an hour"]),
        ("model rdma --load 0.5", &["--queue-pairs"]),
        ("model rdma --queue-pairs 4 --load 0", &["--load 0", "more than 0"]),
        ("model rdma --workload web-serch", &["web-serch", "web-search"]),
        ("model rdma --workload /nonexistent.txt", &["--workload", "/nonexistent.txt"]),
        ("model rdma --workload web-search --size 64", &["--workload", "--size"]),
        ("model rdma --advise", &["--advise", "--p999 300us"]),
        ("model rdma --advise --p999 300", &["--p999", "with its unit"]),
        ("model rdma --p99 1ms --p999 1ms", &["--p99", "--p999"]),
        ("model melo --pool 4 --block 8", &["--pool 4", "too small for its block"]),
        ("model melo --bdp 1KB --block 8", &["--bdp", "too small for its block"]),
        ("model melo --block 3", &["--block 3", "power of two"]),
        ("model melo --bdp 0", &["--bdp", "packets"]),
        ("model melo --bdp 1e6GB", &["--bdp", "PSNs"]),
        ("model melo --mtu 0", &["--mtu", "1 to 65536"]),
        ("model melo --connections 0", &["--connections"]),
        ("model hpcc --flows 0", &["--flows", "1 to 10000"]),
        ("model hpcc --flows 1e6", &["--flows", "1 to 10000"]),
        ("model hpcc --rtt 0us", &["--rtt", "1ns to 1s"]),
        ("model hpcc --rtt 2s", &["--rtt", "1ns to 1s"]),
        ("model hpcc --rate 92G", &["--rate 92G", "100G"]),
        ("model hpcc --mtu 0", &["--mtu", "1 to 65536"]),
        ("model hpcc --mtu 1MB", &["--mtu", "1 to 65536"]),
        ("model hpcc --hops 16", &["--hops", "1 to 15"]),
        ("model hpcc --eta 1", &["--eta 1", "less than 1"]),
        ("model hpcc --eta 1.5", &["--eta", "between 0 and 1"]),
        ("model hpcc --w-ai 0", &["--w-ai", "1 byte"]),
        ("model hpcc --w-ai 1MB", &["--w-ai", "162.5 KB"]),
        ("model hpcc --load 0", &["--load 0", "more than 0"]),
        ("model hpcc --buffer 0", &["--buffer 0", "32MB"]),
        ("model hpcc --fan-in 0", &["--fan-in", "1 to 100000"]),
        ("model hpcc --fan-in 4 --ports 5", &["--ports 5", "1 to 4"]),
        ("model hpcc --alpha 0", &["--alpha 0", "more than 0"]),
        ("model hpcc --alpha -0.5", &["--alpha -0.5", "more than 0"]),
        ("model hpcc --alpha nan", &["--alpha", "more than 0"]),
    ] {
        let said = refused(args);
        for part in parts {
            assert!(said.contains(part), "{args}: no {part:?} in {said}");
        }
    }
}

#[test]
fn the_ends_of_every_range_give_numbers() {
    for args in [
        "--corruption 0",
        "--corruption 1",
        "--corrupting 0",
        "--bit-errors 1",
        "--drops 1 --links 16",
        "--mtu 1 --size 1GB --corruption 1 --rto 1h",
        "--rtt 0us --rto 0us",
        "--queue-pairs 4000000000 --load 1e-9 --rate 1M",
        "--dummies 100 --naks 100 --naked 100 --obeys-copies",
    ] {
        let args = format!("model rdma {args} --advise --p9999 1ms");
        let text = stdout(&args);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{args}: {text}");
        assert!(json(&args)["protected"]["penalty_us"]["total"].is_number(), "{args}");
    }
}

#[test]
fn melo_takes_23_bytes_for_each_connection() {
    let account = json("model melo");
    assert_close(&account["bytes_per_connection"], 23.0, 0.03);
    assert_eq!(account["side_bits"], 3 * 1024);
    let text = stdout("model melo --connections 300 --bdp 1MB --mtu 1000");
    assert!(text.contains("22.56 B"), "{text}");
}

#[test]
fn hpcc_has_the_windows_queues_and_telemetry_of_the_thesis() {
    let answer = json("model hpcc --rate 100G --rtt 13us --flows 50");
    assert_eq!(answer["w_init"], 162_500);
    assert_close(&answer["w_ai"], 162.5, 1e-9);
    assert_close(&answer["u"], 1.0, 1e-9);
    assert_close(&answer["queue"]["mean"], 3.226, 1e-3);
    let tail = answer["queue"]["tail"].as_array().unwrap();
    let above = |packets: u64| tail.iter().find(|row| row["packets"] == packets).unwrap()["p"].clone();
    assert_close(&above(20), 1.0e-8, 0.1);
    assert_eq!(above(100), 0.0);
    assert_close(&answer["int_share"], 0.042, 1e-9);
    assert_close(&answer["long_flow_ratio"], 1.235, 1e-3);
    assert_close(&answer["wraps_us"]["time"], 16_777.2, 1e-4);
    assert_close(&answer["wraps_us"]["bytes"], 10_737.4, 1e-4);
    let narrow = json("model hpcc --rate 25G --rtt 9us --flows 17 --w-ai 80 --mtu 4096 --hops 3");
    assert_eq!((&narrow["w_init"], &narrow["w_ai"]), (&28_125.into(), &80.0.into()));
    assert!(narrow["u"].as_f64().unwrap() < 1.0);
    assert_close(&narrow["int_share"], 42.0 / 4_096.0, 1e-9); // room for five switches, however few there are
}

#[test]
fn an_incast_pauses_by_buffer_alpha_and_ports() {
    let incast = |args: &str| json(&format!("model hpcc --fan-in 60 {args}"))["incast"].clone();
    let one = incast("--alpha 0.125 --buffer 32MB");
    assert_close(&one["peak_bytes"], 59.0 * 162_500.0 * 1.09, 1e-9);
    assert_close(&one["threshold_bytes"], 32e6 / 9.0, 1e-9);
    assert_eq!((&one["pauses"], &one["ports_without_pause"]), (&true.into(), &4.into()));
    assert_eq!(incast("--alpha 0.5")["pauses"], false);
    assert_eq!(incast("--ports 4")["pauses"], false);
    assert_eq!(incast("--buffer 1MB --ports 60")["ports_without_pause"], Value::Null);
    assert_eq!(json("model hpcc --fan-in 1")["incast"]["peak_bytes"], 0.0);
}

#[test]
fn hpcc_says_what_to_make_of_its_numbers() {
    let text = stdout("model hpcc");
    for part in ["162.5 KB", "81.3 B", "ΣD/D/1", "42 B on every packet", "1.24 times", "4 ports or more", "saturates"]
    {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(stdout("model hpcc --flows 200").contains("below one packet"));
    assert!(stdout("model hpcc --w-ai 300").contains("at most 81.3 B"));
    assert!(stdout("model hpcc --load 1").contains("nothing is left for long flows"));
    assert_eq!(json("model hpcc --load 1")["long_flow_ratio"], Value::Null);
    for args in ["--flows 1", "--rtt 1ns --rate 10G", "--rtt 1s --rate 800G --mtu 1", "--mtu 65536 --hops 15 --eta 0.5"]
    {
        let text = stdout(&format!("model hpcc {args}"));
        assert!(!text.contains("NaN") && !text.contains("inf"), "{args}: {text}");
    }
}

#[test]
fn help_names_units_and_defaults() {
    let help = stdout("model rdma --help");
    for part in ["in bytes", "[default: 64ms]", "[default: 1e-3]", "--p9999"] {
        assert!(help.contains(part), "no {part:?} in {help}");
    }
    assert!(stdout("man model-rdma").contains("corrupt"));
}

#[test]
fn the_bench_of_melo_measures_every_loss() {
    let answer = json("bench melo --packets 20K --rounds 3");
    let rows = answer["rows"].as_array().unwrap();
    let losses: Vec<f64> = rows.iter().map(|row| row["loss"].as_f64().unwrap()).collect();
    assert_eq!(losses, [0.0, 0.001, 0.01, 0.1]);
    for row in rows {
        let [best, median, worst] = ["best_ns", "ns_per_packet", "worst_ns"].map(|key| row[key].as_f64().unwrap());
        assert!(0.0 < best && best <= median && median <= worst, "{row}");
        let expected = 20_000.0 * row["loss"].as_f64().unwrap();
        assert!((row["nacks"].as_f64().unwrap() - expected).abs() <= expected * 0.05 + 1.0, "{row}");
    }
    assert_eq!((&answer["target_ns"], &answer["rounds"]), (&20.0.into(), &3.into()));
    let text = stdout("bench melo --packets 1000 --rounds 1");
    assert!(text.contains("0.1 %") && text.contains("target below 20 ns"), "{text}");
    assert!(refused_by_clap("bench melo --rounds 0").contains("a whole number from 1 to 1000"));
}

/// Answer to wrong options, usage included.
fn refused_by_clap(args: &str) -> String {
    let output = hitless(args);
    assert_eq!(output.status.code(), Some(2), "{args}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_simulation_beside_the_model_counts_what_it_expects() {
    let answer = json("model rdma --size 1024 --links 1 --drops 0.05 --simulate 20K");
    let simulated = &answer["simulated"];
    assert_eq!(simulated["flows"], 20_000);
    for side in ["unprotected", "protected"] {
        let expected = answer[side]["flow_with_timeout"].as_f64().unwrap();
        let interval = &simulated[format!("{side}_interval")];
        let (low, high) = (interval[0].as_f64().unwrap(), interval[1].as_f64().unwrap());
        assert!(low <= expected * 1.1 && expected * 0.9 <= high, "{side}: {expected} beside {low} to {high}");
    }
    assert!(refused("model rdma --size 1GB --mtu 64 --simulate 10").contains("--simulate"));
}

/// 6 hosts of 12 contexts, K = 4, 100G: a burst of every context of 5 hosts; 48 contexts of 4 slots of 124.27 ns, less 5.55 µs of
/// asking; 192 slots of a frame each leak at 1e-3 twice a frame.
#[test]
fn pl2_of_the_papers_rack() {
    let answer = json("model pl2 --loss 1e-3");
    assert_eq!(answer["bound_bytes"], 5 * 12 * 4 * 1_538);
    assert_close(&answer["wait_us"], 18.31, 0.001);
    assert_close(&answer["throughput_gbps"], 95.25, 0.001);
    assert_close(&answer["ceiling_gbps"], 97.53, 0.001);
    assert_close(&answer["half_life_s"], 0.01772, 0.001);
    assert!(answer["advice"].is_null());
    assert!(json("model pl2")["half_life_s"].is_null());
}

#[test]
fn pl2_counts_short_frames_by_slots_or_by_bytes() {
    let frames = json("model pl2 --workload fb-key-value");
    let bytes = json("model pl2 --workload fb-key-value --unit bytes");
    assert_close(&frames["ceiling_gbps"], 12.0, 0.05);
    assert!(bytes["ceiling_gbps"].as_f64().unwrap() > 4.0 * frames["ceiling_gbps"].as_f64().unwrap());
}

#[test]
fn pl2_advice_has_a_scheduler_and_a_reason() {
    let easy = json("model pl2 --advise --p99 50us");
    assert_eq!((&easy["advice"]["scheduler"], &easy["advice"]["met"]), (&"clock".into(), &true.into()));
    let tight = json("model pl2 --advise --p99 10us");
    assert_eq!((&tight["advice"]["scheduler"], &tight["advice"]["class"]), (&"late".into(), &true.into()));
    assert!(tight["advice"]["why"].as_str().unwrap().contains("a class of their own"));
    let nic = json("model pl2 --advise --p99 50us --software 0ns");
    assert!(nic["advice"]["bound_bytes"].as_u64() < easy["advice"]["bound_bytes"].as_u64(), "less to cover");
}

#[test]
fn pl2_refuses_nonsense_in_one_line() {
    for (args, expected) in [
        ("--k 0", "--k"),
        ("--hosts 1", "--hosts"),
        ("--unit packets", "frames"),
        ("--rtt 0ns", "--rtt 0"),
        ("--rate 1", "--rate"),
        ("--advise", "--p99"),
        ("--loss 2", "--loss"),
        ("--workload w9", "--workload w9"),
    ] {
        let said = refused(&format!("model pl2 {args}"));
        assert!(said.contains(expected), "{args}: {said}");
    }
}

/// 64 ranks, 1 GiB at 400G, one cable at 1e-4, NCCL's timeout.
#[test]
fn a_bad_cable_stalls_a_gigabyte_once_in_190_iterations() {
    let args = "model collective --ranks 64 --size 1GiB";
    let answer = json(args);
    let remedy = |name: &str| {
        let all = answer["remedies"].as_array().unwrap();
        all.iter().find(|remedy| remedy["remedy"] == name).unwrap().clone()
    };
    assert_close(&answer["packets"], 516_096.0, 1e-9);
    assert_close(&answer["without_loss_us"], 43_300.0, 0.01);
    assert_close(&remedy("none")["one_stall_in"], 190.0, 0.01);
    assert_close(&remedy("none")["mean_later_share"], 0.52, 0.01);
    for protected in ["ordered", "uec-llr"] {
        assert!(remedy(protected)["mean_later_share"].as_f64().unwrap() < 0.003, "{}", remedy(protected));
    }
    assert!(remedy("uec-llr")["one_stall_in"].is_null());
    let text = stdout(args);
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("A loss of 0.0001 on h0-leaf0: one iteration in 190 waits for a timeout of 4.29 s, "),
        "{first}"
    );
    assert!(first.contains("takes 52 % longer on average than the 43.3 ms without losses"), "{first}");
}

#[test]
fn timeouts_of_a_ring_are_those_of_its_queue_pairs() {
    let ring = "model collective --ranks 8 --size 1MiB --rate 100G --topology one-switch --loss 1e-3 --remedy none";
    assert_close(&json(ring)["remedies"][0]["timeouts"], 1.448e-3, 1e-9);
    assert_close(&json(ring)["without_loss_us"], 172.6, 1e-3);
    assert_close(&json(&format!("{ring} --per-transfer"))["remedies"][0]["timeouts"], 1.4448e-2, 1e-9);
    assert_close(&json(&format!("{ring} --no-barrier"))["remedies"][0]["timeouts"], 4.48e-4, 1e-9);
    // The way to the host is as bad as the way from it.
    let back = json(&format!("{ring} --link sw0-h3"));
    assert_eq!(back["remedies"][0], json(ring)["remedies"][0]);
}

#[test]
fn collectives_that_make_no_sense_are_refused() {
    let said = |more: &str| refused(&format!("model collective {more}")).trim_end().to_owned();
    assert_eq!(
        said("--ranks 12 --algorithm halving-doubling"),
        "error: --ranks: halving-doubling with 12 ranks: expected a power of two"
    );
    assert_eq!(
        said("--pattern all-to-all --algorithm ring"),
        "error: --algorithm: no ring for all-to-all: expected direct"
    );
    assert!(said("--size 7").starts_with("error: --size: 7 bytes: expected at least one for each of 16 shares"));
    assert!(said("--pieces 1000").starts_with("error: --pieces: 1000: expected at most 62"));
    assert!(said("--ranks 1").contains("expected a whole number from 2 to 4096"));
    assert!(said("--link leaf0-spine0").contains("expected the cable of a host that has a rank, such as h0-leaf0"));
    assert!(said("--link h0-leaf3").contains("--link h0-leaf3: expected the cable of a host"));
    assert!(said("--remedy hope").contains("expected none, dummies, irn, melo, ordered, nonblocking or uec-llr"));
    assert!(said("--timeout 0s").contains("expected more than 0"));
}
