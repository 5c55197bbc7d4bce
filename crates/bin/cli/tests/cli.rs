//! The command as a person meets it.

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

#[test]
fn copies_for_the_papers_losses() {
    let answer = json("copies --actual 1e-3 --target 1e-8");
    assert_eq!(answer["copies"], 2);
    assert!((answer["expected_effective_loss"].as_f64().unwrap() / 1e-9 - 1.0).abs() < 1e-9);
    assert_eq!(json("copies --actual 1e-4 --target 1e-8")["copies"], 1);
    assert!(stdout("copies --actual 1e-3").contains("2 copies"));
}

#[test]
fn sim_link_reports_every_field_that_scripts_rely_on() {
    let outcome = json("sim link --frames 1e6");
    for field in [
        "frames_offered",
        "frames_corrupted",
        "frames_delivered",
        "frames_lost",
        "frames_duplicated",
        "frames_reordered",
        "effective_loss",
        "effective_speed",
        "recovered",
        "given_up",
        "retransmissions",
        "pauses",
        "tx_buffer_peak_bytes",
        "rx_buffer_peak_bytes",
        "events",
        "wall_seconds",
        "seed",
    ] {
        assert!(outcome[field].is_number(), "{field}: {}", outcome[field]);
    }
    for field in ["p50", "p99", "max"] {
        assert!(outcome["recovery_delay_us"][field].is_number(), "{field}");
    }
    assert!(json("sim link --frames 1e5 --load 0.3")["effective_speed"].is_null());
    assert!(json("sim link --frames 1e5 --loss 0")["recovery_delay_us"]["p50"].is_null());
}

#[test]
fn the_same_seed_gives_the_same_json_byte_for_byte() {
    for args in [
        "sim link --frames 1e6",
        "sim link --frames 2e5 --mode both --load 0.5 --reverse-load 0.5",
        "sim link --frames 2e5 --mode uec-llr",
    ] {
        let run = || {
            let text = stdout(&format!("{args} --json"));
            text.lines().filter(|line| !line.contains("wall_seconds")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(run(), run(), "{args}");
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_jobs() {
    let args = "sim compare --rates 100G --losses 1e-3,1e-2 --events 500";
    assert_eq!(json(&format!("{args} --jobs 1")), json(&format!("{args} --jobs 5")));
}

#[test]
fn reproduce_prints_a_row_for_each_point_of_a_claim() {
    let rows = json("reproduce linkguardian/lg.copies");
    assert_eq!(rows.as_array().unwrap().len(), 6);
    for row in rows.as_array().unwrap() {
        assert!(row["id"].as_str().unwrap().starts_with("lg.copies."));
        assert!(row["paper"].is_number() && row["ours"].is_number() && row["n"].is_number() && row["why"].is_string());
        assert_eq!(row["verdict"], "match");
    }
}

#[test]
fn results_of_another_version_are_refused_with_file_line_and_what_is_expected() {
    let kind = "{\"paper\":\"melo\",\"scale\":\"full\",\"seed\":1,\"commit\":\"c\",\"date\":\"\",\"claims\":[{\"id\":\"melo.memory\",\n\
                \"seconds\":0,\"points\":[{\"id\":\"melo.memory.holes\",\"kind\":\"guess\"}]}]}";
    let version = "{\n\"version\":7,\"results\":{}}";
    let expected = "expected results that `hitless reproduce --save` of this version wrote";
    for (text, parts) in [
        (kind, ["melo.full.json", "line 2", "unknown variant `guess`", expected]),
        (version, ["melo.full.json", "line 2", "version 7", expected]),
    ] {
        results_are_refused(text, &parts);
    }
}

fn results_are_refused(text: &str, parts: &[&str]) {
    let folder = std::env::temp_dir().join(format!("hitless-results-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("melo.full.json"), text).unwrap();
    let output = hitless(&format!("reproduce list --results {}", folder.display()));
    std::fs::remove_dir_all(&folder).unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    for part in parts {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn the_report_of_a_claim_says_how_to_run_it_again() {
    let file = std::env::temp_dir().join(format!("hitless-report-{}.html", std::process::id()));
    stdout(&format!("reproduce linkguardian/lg.copies --out {}", file.display()));
    let page = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    for part in [
        "<title>LinkGuardian, reproduced</title>",
        "<span>hitless reproduce linkguardian/lg.copies</span> <span>--scale quick</span> <span>--seed 1</span>",
        "<section id=\"lg.copies\"",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn nonsense_gets_one_line_that_names_it_and_exit_code_2() {
    for (args, parts) in [
        ("sim link --loss 1.2", &["--loss", "1.2", "between 0 and 1"][..]),
        ("sim link --loss -1", &["--loss", "-1", "between 0 and 1"]),
        ("sim link --rate 100Q", &["--rate", "100Q", "100G"]),
        ("sim link --size 0", &["--size", "'0'", "64 to 9022"]),
        ("sim link --delay 5", &["--delay", "'5'", "us"]),
        ("sim link --delay 1e7s", &["delay", "at most 1.00 s"]),
        ("sim link --mode uec-llr --loss 1", &["loss 1", "never give up"]),
        ("sim link --frames 0", &["--frames", "'0'", "at least 1"]),
        ("sim link --copies 0", &["--copies", "'0'", "1 to 100"]),
        ("sim link --burst 0.5", &["--burst", "0.5", "at least 1"]),
        ("sim link --load 0", &["load", "0", "more than 0"]),
        ("sim link --rate 400G --profile tofino", &["400G", "10G to 100G"]),
        ("sim link --mode sideways", &["--mode", "sideways", "ordered"]),
        ("sim link --faults /dev/zero", &["--faults", "1 MiB"]),
        ("sim link --faults /nonexistent.toml", &["--faults", "/nonexistent.toml"]),
        ("sim link --frames 1e19", &["frames", "170 days"]),
        ("sim compare --losses 0", &["--losses", "1e-9"]),
        ("sim compare --rates 1M --losses 1e-9", &["1M", "170 days"]),
        ("copies --actual 1", &["--actual", "1", "100 copies"]),
        ("copies", &["--actual"]),
        ("reproduce moby-dick", &["moby-dick", "linkguardian", "linkguardian/lg.fig8.loss", "rdma-corruption", "melo"]),
        ("reproduce linkguardian/lg.fig99", &["lg.fig99", "linkguardian/fleet", "linkguardian/lg.fig11.rdma"]),
        ("reproduce melo/", &["melo/:", "melo"]),
        ("man frobnicate", &["frobnicate", "sim-link"]),
        ("frobnicate", &["frobnicate"]),
    ] {
        let output = hitless(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{args}: {said}");
        assert!(output.stdout.is_empty(), "{args}");
        for part in parts {
            assert!(said.contains(part), "{args}: no {part:?} in {said}");
        }
    }
}

#[test]
fn a_fault_file_is_read_and_its_mistakes_are_named() {
    let folder = std::env::temp_dir().join(format!("hitless-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("faults.toml");
    std::fs::write(&file, "[[forward]]\nframes = [10, 20]\n").unwrap();
    let outcome = json(&format!("sim link --frames 1000 --faults {}", file.display()));
    assert_eq!(outcome["frames_corrupted"], 2);
    std::fs::write(&file, "[[forward]]\nlos = \"1e-3\"\n").unwrap();
    let output = hitless(&format!("sim link --faults {}", file.display()));
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("line 2") && said.contains("los"), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn help_completions_and_manual_pages_exist() {
    assert!(stdout("--help").contains("reproduce"));
    assert!(stdout("sim link --help").contains("--reverse-load"));
    let papers = stdout("reproduce --help");
    assert!(["linkguardian", "rdma-corruption", "melo"].iter().all(|paper| papers.contains(paper)), "{papers}");
    assert!(stdout("completions bash").contains("hitless"));
    assert!(stdout("man").contains(".TH"));
    assert!(stdout("man sim-link").contains("reverse"));
    assert!(json("completions zsh")["script"].is_string());
    assert!(json("man copies")["page"].is_string());
    assert!(stdout("--version").starts_with("hitless "));
}

/// Ctrl-C in the middle: what is known so far is printed, and the exit code says so.
#[cfg(unix)]
#[test]
fn an_interrupted_run_prints_what_it_knows() {
    // A signal that comes before the program listens ends it at once: then try again, with more patience.
    let output =
        [500, 2_000, 8_000, 30_000].into_iter().map(interrupted_after).find(|output| output.status.code().is_some());
    let output = output.expect("never listened");
    assert_eq!(output.status.code(), Some(130));
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome["interrupted"], true);
    assert!(outcome["frames_delivered"].as_u64().unwrap() > 0);
    assert_eq!(outcome["frames_lost"], outcome["given_up"], "what was on its way has arrived");
}

#[cfg(unix)]
fn interrupted_after(millis: u64) -> Output {
    let child = Command::new(env!("CARGO_BIN_EXE_hitless"))
        .args("sim link --exact --loss 1e-2 --copies 1 --frames 1e11 --json".split_whitespace())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(millis));
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    child.wait_with_output().unwrap()
}
