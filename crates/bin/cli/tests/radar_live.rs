//! `hitless radar meter` and `collect` on real interfaces, and `radar losses` on captures of the same traffic, held against
//! the log of the wire in between: what it dropped is named, and nothing else.
//!
//! A wire, a meter or a capture that could not keep up says so; then the run is repeated with less traffic, since a busy
//! machine proves nothing.

#![expect(clippy::print_stderr, reason = "figures are for people")]

mod radar_lab;

use std::time::Duration;

use emulator::{Nat, Rewrite};
use linux::clock::time_of_day;
use radar_lab::processes::{Line, Protected, Running, Said, finished, hitless, wait_for};
use radar_lab::truth::{self, Named, Unknown};
use radar_lab::{COLLECTOR, Lab, OUTSIDE, Setup, Traffic, address, plug};
use serde_json::Value;
use units::{Prob, StopFlag};

/// Batches that packets may take, from run to run. What takes longer than half a second is not the machine's fault.
const PATIENCE: [u64; 5] = [1, 2, 5, 10, 50];
const ENDS: [&str; 2] = ["left", "right"];

/// Outcome of one run.
struct Outcome {
    collected: Vec<Line>,
    meters: [Value; 2],
    /// Frames that the wire and the captures lost.
    overflowed: u64,
    ended: Duration,
}

impl Outcome {
    fn summary(&self) -> &Value {
        &self.collected.iter().find(|line| line.json["kind"] == "summary").expect("a summary").json
    }

    /// Reason why it proves nothing, if that is so.
    fn spoiled(&self, patience: u64) -> Option<String> {
        let summary = self.summary();
        let may_be_late = patience < PATIENCE[PATIENCE.len() - 1];
        let of_summary =
            ["unsure", "skipped", "late", "extra", "unnamed"].map(|what| (what, summary[what].as_u64().unwrap()));
        let of_summary = &of_summary[..if may_be_late { 5 } else { 2 }];
        let meter = |what: &'static str| (what, self.meters.iter().map(|meter| meter[what].as_u64().unwrap()).sum());
        let all = [of_summary, &[meter("missed"), meter("reports_dropped"), ("overflowed", self.overflowed)]];
        let late = summary["until"].as_u64().unwrap() < self.ended.as_nanos() as u64;
        let all = all.concat().into_iter().filter(|(_, count): &(&str, u64)| *count > 0);
        let mut why: Vec<String> = all.map(|(what, count)| format!("{what} {count}")).collect();
        why.extend(late.then(|| "not compared to the end".to_owned()));
        (!why.is_empty()).then(|| why.join(", "))
    }
}

fn run(lab: &Lab, setup: &Setup, patience: u64) -> Outcome {
    let batches = patience.to_string();
    let (stop, said) = (StopFlag::new(), [Said::default(), Said::default(), Said::default()]);
    std::thread::scope(|scope| {
        let hops = lab.zeroing(scope);
        let wire = lab.wire(scope, setup, &lab.folder.join("dropped.pcapng"));
        let captures = [0, 1].map(|end| lab.capture(scope, end, &stop));
        if setup.protected {
            wait_for("protection", || (0..2).all(|end| Protected::is_active(lab, end)));
        }
        let collect = ["--json", "radar", "collect", "--listen", COLLECTOR, "--patience", &batches];
        let collector = Running::start(scope, hitless(&lab.ends[0], &collect), &said[2]);
        said[2].wait_for(&["waiting for meters"]);
        let meters = [0, 1].map(|end| {
            let fixed = ["--json", "radar", "meter", plug(end), "--to", COLLECTOR, "--segment", "cable"];
            let args = [&fixed[..], &["--end", ENDS[end], "--cells", "1500"], setup.meter[end]].concat();
            Running::start(scope, hitless(&lab.ends[end], &args), &said[end])
        });
        said[2].wait_for(&["left reports", "right reports"]);
        std::thread::sleep(Duration::from_millis(200 + 20 * patience));
        let failed = setup.traffic.run(lab);
        if failed > 0 {
            eprintln!("{failed} connections failed");
        }
        let ended = time_of_day();
        std::thread::sleep(Duration::from_millis(500 + 30 * patience));
        let meters = meters.map(|meter| meter.end().pop().expect("an outcome").json);
        std::thread::sleep(Duration::from_millis(200));
        let collected = collector.end();
        stop.stop();
        let missed: u64 = captures.into_iter().map(|capture| capture.join().unwrap()).sum();
        let lost: u64 = hops.into_iter().chain([wire]).map(|hop| hop.stop()).sum();
        Outcome { collected, meters, overflowed: missed + lost, ended }
    })
}

/// Losses that `radar losses` finds in the captures of the last run, both ways.
fn compare_captures(lab: &Lab, losses: [&[&str]; 2]) -> Named {
    let mut named = Named::new();
    for (from, options) in losses.into_iter().enumerate() {
        let (up, down) = (lab.captured(from, "out"), lab.captured(1 - from, "came"));
        let files = [up.to_str().unwrap(), down.to_str().unwrap()];
        let args = [&["--json", "radar", "losses"], &files[..], &["--whole"], options].concat();
        let answer: Value = serde_json::from_str(&finished(hitless(&lab.ends[0], &args))).unwrap();
        assert_eq!(answer["unnamed"], 0);
        truth::found(&answer, &mut named);
    }
    named
}

/// Runs an experiment until it proves something, and holds what the tools say against what the wire says. A machine that
/// cannot keep up is given less to do each time.
fn check(lab: &Lab, what: &str, setup: &Setup, unknown: [Unknown; 2]) {
    const TRIES: u32 = 12;
    let mut spoiled = Vec::new();
    for attempt in 0..TRIES {
        let patience = PATIENCE[PATIENCE.len().min(attempt as usize + 1) - 1];
        // Fewer packets, of which a larger share is lost: about as many losses to find.
        let halved = attempt.saturating_sub(2).min(4);
        let traffic = Traffic { halved, ..setup.traffic };
        let loss = Prob::literal(setup.loss.get() * f64::from(1 << halved));
        let outcome = run(lab, &Setup { traffic, loss, ..setup.clone() }, patience);
        match outcome.spoiled(patience) {
            None => return judge(lab, what, setup, &outcome, unknown),
            Some(why) => {
                eprintln!("{what}, seed {}: once more, since the machine was busy: {why}", setup.seed);
                spoiled.push(why);
            }
        }
    }
    panic!("{what}, seed {}: none of {TRIES} runs was complete: {spoiled:#?}", setup.seed);
}

/// Judges a run in which everybody kept up.
fn judge(lab: &Lab, what: &str, setup: &Setup, outcome: &Outcome, unknown: [Unknown; 2]) {
    let log = lab.folder.join("dropped.pcapng");
    let truth = truth::dropped(&log, unknown);
    let told = truth::told(&outcome.collected);
    assert!(!truth.is_empty(), "{what}: the wire dropped nothing");
    truth::assert_same(&format!("{what}, collected"), &truth, &told);
    if let Some(losses) = setup.losses {
        let found = compare_captures(lab, losses);
        truth::assert_same(&format!("{what}, compared"), &truth::dropped(&log, [Unknown::default(); 2]), &found);
    }
    let cpu = outcome.meters.each_ref().map(|meter| meter["cpu_seconds"].as_f64().unwrap());
    let packets = outcome.meters.each_ref().map(|meter| meter["packets_out"].as_u64().unwrap());
    eprintln!(
        "{what}, seed {}: {} lost of {packets:?}, told {:.0?} later (median); meters used {cpu:.2?} s",
        setup.seed,
        told.values().map(Vec::len).sum::<usize>(),
        truth::median_delay(&truth, &told),
    );
}

#[test]
fn every_packet_that_the_wire_dropped_is_named_and_none_that_it_did_not() {
    let Some(lab) = Lab::new(false) else { return };
    for seed in 1..=3 {
        let traffic = Traffic { seconds: 2, connections: 10_000, halved: 0 };
        check(&lab, "plain", &Setup { seed, traffic, ..Setup::default() }, [Unknown::default(); 2]);
    }
}

#[test]
fn a_router_in_between_changes_the_time_to_live_and_nothing_else() {
    let Some(lab) = Lab::new(false) else { return };
    let rewrite = Rewrite { hop: true, ..Rewrite::default() };
    let traffic = Traffic { seconds: 1, connections: 2_000, halved: 0 };
    check(&lab, "router", &Setup { seed: 4, rewrite, traffic, ..Setup::default() }, [Unknown::default(); 2]);
}

#[test]
fn behind_nat_packets_are_told_by_what_survives() {
    let Some(lab) = Lab::new(false) else { return };
    let nat = Nat { inside: address(0), outside: OUTSIDE, port_shift: 1_000 };
    let setup = Setup {
        seed: 5,
        rewrite: Rewrite { hop: true, nat: Some(nat), no_ip_id: false },
        traffic: Traffic { seconds: 1, connections: 2_000, halved: 0 },
        meter: [&["--nat", "source"], &["--nat", "destination"]],
        losses: Some([&["--nat", "source"], &["--nat", "destination"]]),
        ..Setup::default()
    };
    let unknown = [Unknown { source: true, destination: false }, Unknown { source: false, destination: true }];
    check(&lab, "nat", &setup, unknown);
}

#[test]
fn where_the_kernel_sets_no_identification_sequence_and_content_tell() {
    let Some(lab) = Lab::new(true) else { return };
    let traffic = Traffic { seconds: 1, connections: 2_000, halved: 0 };
    check(&lab, "no identification", &Setup { seed: 6, traffic, ..Setup::default() }, [Unknown::default(); 2]);
}

#[test]
fn on_a_protected_link_every_frame_that_had_to_be_sent_again_is_named() {
    let Some(lab) = Lab::new(false) else { return };
    let _daemons = [0, 1].map(|end| Protected::up(&lab, end));
    // The wire must be there for the two ends to find each other.
    let setup = Setup {
        seed: 7,
        traffic: Traffic { seconds: 1, connections: 2_000, halved: 0 },
        protected: true,
        losses: None,
        ..Setup::default()
    };
    check(&lab, "protected", &setup, [Unknown::default(); 2]);
}
