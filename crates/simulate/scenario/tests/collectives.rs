//! Collectives over whole networks: closed forms, losses at chosen places, who is blamed, what is refused.

use std::collections::BTreeMap;
use std::fs;

use collective::{DelayCause, IterationRow, JobOutcome, PathParts, TransferPlan, graph};
use scenario::Scenario;
use sim::net;
use units::{Span, Time, Unwatched};

/// The reference of all numbers here: 100G, 500 ns of cable, 300 ns of switch, 4,096 bytes of payload.
fn one_switch(hosts: u32, more: &str) -> String {
    format!(
        "topology = {{ kind = 'single-switch', hosts = {hosts}, rate = '100G', delay = '500ns' }}
        [switch]
        latency = '300ns'
        {more}
        [[traffic]]
        transport = 'rdma'
        mtu = 4096
        work = 'collective'\n"
    )
}

fn jobs(text: &str, seed: u64) -> Vec<JobOutcome> {
    let scenario = Scenario::parse("test", text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let outcome = net::run(scenario.points[0].setup(seed), &Unwatched).unwrap();
    outcome.jobs.into_iter().map(|job| job.outcome).collect()
}

fn job(text: &str) -> JobOutcome {
    jobs(text, 1).remove(0)
}

fn complaint(text: &str) -> String {
    Scenario::parse("test.toml", text, &[]).err().map(|error| error.to_string()).unwrap_or_default()
}

/// Wire time of a packet, and what a message takes beyond its packets.
const PACKET: f64 = 0.33424;
const BEYOND: f64 = PACKET + 1.3;

fn mean(outcome: &JobOutcome) -> f64 {
    assert_eq!(outcome.failed, None);
    outcome.times.mean().unwrap().as_us()
}

#[test]
fn without_loss_patterns_take_what_closed_forms_say() {
    let mut wrong = Vec::new();
    for ranks in [2u32, 4, 8, 16, 32, 64] {
        let n = f64::from(ranks);
        let m = 32.0;
        let size = 32 * 4_096 * ranks;
        let all = f64::from(size) / 4_096.0 * PACKET;
        let ring = |steps: f64, pieces: f64| {
            (steps - 1.0) * (m * PACKET).max(m * PACKET / pieces + BEYOND) + m * PACKET + BEYOND
        };
        let halving: f64 = (1..=ranks.ilog2()).map(|step| all / f64::from(1 << step) + BEYOND).sum();
        let cases = [
            ("all-reduce", "ring", 1, ring(2.0 * (n - 1.0), 1.0)),
            ("all-reduce", "ring", 4, ring(2.0 * (n - 1.0), 4.0)),
            ("all-gather", "ring", 1, ring(n - 1.0, 1.0)),
            ("reduce-scatter", "ring", 1, ring(n - 1.0, 1.0)),
            ("all-reduce", "halving-doubling", 1, 2.0 * halving),
            ("all-reduce", "halving-doubling-farthest", 1, 2.0 * halving),
            ("all-to-all", "direct", 1, (n - 1.0) * m * PACKET + BEYOND),
        ];
        for (pattern, algorithm, pieces, expected) in cases {
            let text = one_switch(ranks, "")
                + &format!("pattern = '{pattern}'\nalgorithm = '{algorithm}'\nsize = {size}\npieces = {pieces}\n");
            let outcome = job(&text);
            let (found, bound) = (mean(&outcome), outcome.bound.as_us());
            let line = format!(
                "{pattern} {algorithm} n={ranks} c={pieces}: {found:.3}, expected {expected:.3}, bound {bound:.3}"
            );
            if (found / expected - 1.0).abs() > 0.005 || found < bound {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn two_trees_with_many_chunks_are_close_to_their_closed_form() {
    for ranks in [8u32, 16, 32] {
        let (size, chunks) = (f64::from(16 << 20), 32.0);
        let wire = size / 4_096.0 * PACKET;
        let depth = f64::from(ranks.ilog2());
        let expected = 2.0 * wire + 2.0 * depth * (wire / 2.0 / chunks + BEYOND);
        // Two children send to one parent: without room for what piles up there, the closed form does not hold.
        let text = one_switch(ranks, "buffer = '1GB'")
            + "pattern = 'all-reduce'\nalgorithm = 'tree'\nsize = '16MiB'\npieces = 32\n";
        let found = mean(&job(&text));
        assert!((found / expected - 1.0).abs() < 0.06, "{ranks}: {found} instead of {expected}");
    }
}

#[test]
fn parts_of_a_quiet_iteration_are_its_time_and_mostly_wire() {
    let outcome = job(&(one_switch(8, "") + "pattern = 'all-reduce'\nsize = '1MiB'\niterations = 3\n"));
    let sum: Span = outcome.times.iter().fold(Span::ZERO, |sum, (time, count)| sum + time * count);
    assert_eq!(outcome.parts.sum(), sum);
    let PathParts { wire, recovery, waiting, compute, .. } = outcome.parts;
    assert!(wire.as_us() > 0.98 * sum.as_us(), "{:?}", outcome.parts);
    assert_eq!([recovery, waiting, compute], [Span::ZERO; 3]);
}

/// Lateness of the only iteration of a ring of 8 ranks that loses this frame of h0.
fn lateness_of_a_loss(frame: u64, more: &str, link: &str) -> f64 {
    let text = |frame: u64| {
        let link = format!("[[link]]\nbetween = ['h0', 'sw0']\nforward = [{{ frames = [{frame}] }}]\n{link}\n");
        one_switch(8, &link) + "pattern = 'all-reduce'\nsize = '1MiB'\n" + more
    };
    // A dummy or a frame of the link protocol's own may be there: the next one then.
    let lost = (frame..frame + 4).map(|frame| (job(&text(frame)), text(frame))).find(|(outcome, _)| outcome.late > 0);
    let (outcome, text) = lost.unwrap();
    assert_eq!((outcome.failed, outcome.complete), (None, 1), "{text}");
    let lateness = outcome.times.mean().unwrap().as_us() - outcome.without_loss.mean().unwrap().as_us();
    if lateness > 0.5 {
        assert_eq!(outcome.rows[0].accused.and_then(|accused| accused.link), Some(0), "{text}");
        let recovery = outcome.parts.recovery.as_us();
        assert!(recovery > 0.0 && recovery <= lateness + 4.0, "{recovery} of {lateness}: {text}");
    }
    lateness
}

/// Frame of h0's that carries a packet of a step: its own data and the acknowledgements of h7's alternate with each step.
fn frame(step: u64, packet: u64) -> u64 {
    // A step is 32 packets; from the second step on, one acknowledgement of what h7 sent leaves before them.
    step * 32 + packet + step
}

#[test]
fn one_loss_makes_a_ring_as_late_as_one_flow() {
    let irn = "recovery = 'irn'\ntimeout = '320us'\n";
    let melo = "recovery = 'melo'\ntimeout = '1ms'\n";
    // In a ring the link back is busy, too: a notification or a NAK waits for the packet that is being sent there.
    let wait = PACKET;
    let cases = [
        ("go-back-N", "", "", 3.68),
        ("two dummies", "dummies = 2\n", "", 3.68),
        ("IRN", irn, "", 0.33),
        ("MELO", melo, "", 0.33),
        ("in order", "", "protect = 'ordered'", 1.89 + wait),
        ("LLR", "", "protect = 'uec-llr'", 2.01),
        ("non-blocking", "", "protect = 'nonblocking'", 5.35 + 2.0 * wait),
        ("non-blocking, IRN", irn, "protect = 'nonblocking'", 0.67),
    ];
    let mut wrong = Vec::new();
    for (name, more, link, expected) in cases {
        for step in [2, 5, 9, 12] {
            let found = lateness_of_a_loss(frame(step, 15), more, link);
            if (found - expected).abs() > 0.5 {
                wrong.push(format!("{name}, step {step}: {found:.3} instead of {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_lost_tail_is_found_by_the_next_step_unless_each_transfer_has_a_queue_pair() {
    for step in [3, 6, 10] {
        let shared = lateness_of_a_loss(frame(step, 31), "", "");
        assert!((4.5..6.5).contains(&shared), "step {step}: {shared}");
        let own = lateness_of_a_loss(frame(step, 31), "queue_pairs = 'per-transfer'\n", "");
        assert!((67_000.0..67_300.0).contains(&own), "step {step}: {own}");
    }
}

#[test]
fn timeouts_of_an_iteration_are_those_of_the_formula() {
    // n = 8 with 8 packets a step: M = 112 packets of h0 cross its cable.
    let run = |pairs: &str| {
        let text = one_switch(8, "[[link]]\nbetween = ['h0', 'sw0']\nforward = [{ loss = '4e-3' }]\n")
            + &format!("pattern = 'all-reduce'\nsize = '256KiB'\niterations = 2000\n{pairs}");
        let outcome = job(&text);
        assert_eq!((outcome.failed, outcome.complete), (None, 2_000));
        outcome
    };
    let (p, m, n): (f64, f64, f64) = (4e-3, 112.0, 2_000.0);
    for (pairs, expected) in [("", p + m * p * p), ("queue_pairs = 'per-transfer'\n", 14.0 * p + m * p * p)] {
        let timeouts = run(pairs).timeouts;
        // 99 % of a Poisson variable lie within.
        let (mean, off) = (expected * n, 2.576 * (expected * n).sqrt());
        assert!((timeouts as f64 - mean).abs() <= off, "{timeouts}: {mean} expected");
    }
}

#[test]
fn counting_quiet_iterations_gives_what_simulating_them_gives() {
    for more in ["", "protect = 'uec-llr'\n"] {
        let text = one_switch(8, &format!("[[link]]\nbetween = ['h0', 'sw0']\nloss = '2e-5'\n{more}"))
            + "pattern = 'all-reduce'\nsize = '256KiB'\niterations = 2000\n";
        let scenario = Scenario::parse("test", &text, &[]).unwrap();
        let run = |exact| {
            let setup = net::NetworkSetup { exact, ..scenario.points[0].setup(3) };
            net::run(setup, &Unwatched).unwrap()
        };
        let (short, exact) = (run(false), run(true));
        let [shortened, simulated] = [&short, &exact].map(|outcome| outcome.jobs[0].outcome.clone());
        assert_eq!(simulated.simulated, 2_000);
        assert!(
            shortened.simulated < 200 && shortened.losses > 2,
            "{more}: {}, {}",
            shortened.simulated,
            shortened.losses
        );
        assert_eq!(JobOutcome { simulated: 2_000, ..shortened }, simulated, "{more}");
        assert_eq!((short.ended, short.packet_hops), (exact.ended, exact.packet_hops), "{more}");
    }
}

/// Two bad cables in a ring or in halving and doubling, with hosts that take their time.
fn two_bad_links(algorithm: &str, losses: [&str; 2], iterations: u32) -> String {
    let link =
        |host: &str, loss: &str| format!("[[link]]\nbetween = ['{host}', 'sw0']\nforward = [{{ loss = '{loss}' }}]\n");
    let links = link("h3", losses[0]) + &link("h9", losses[1]);
    one_switch(16, &format!("[host]\nlatency = '1us'\nsigma = 0.3\n{links}"))
        + &format!("pattern = 'all-reduce'\nalgorithm = '{algorithm}'\nsize = '512KiB'\niterations = {iterations}\n")
}

fn late(outcome: &JobOutcome) -> BTreeMap<u32, IterationRow> {
    outcome.rows.iter().filter(|row| row.late).map(|row| (row.iteration, *row)).collect()
}

#[test]
fn the_right_cable_is_blamed() {
    for algorithm in ["ring", "halving-doubling"] {
        let outcome = job(&two_bad_links(algorithm, ["1e-3", "0"], 150));
        let late = late(&outcome);
        let right = late.values().filter(|row| row.accused.and_then(|accused| accused.link) == Some(3)).count();
        assert!(late.len() > 20, "{algorithm}: {}", late.len());
        assert!(right as f64 >= 0.99 * late.len() as f64, "{algorithm}: {right} of {}", late.len());
    }
}

#[test]
fn of_two_bad_cables_the_one_is_blamed_without_which_the_iteration_is_less_late() {
    for algorithm in ["ring", "halving-doubling"] {
        let with = |losses| job(&(two_bad_links(algorithm, losses, 200) + "[measure]\niterations = 'all'\n"));
        let both = with(["1e-3", "5e-4"]);
        let [without_3, without_9] = [with(["0", "5e-4"]), with(["1e-3", "0"])];
        let time = |outcome: &JobOutcome, iteration: u32| outcome.rows[iteration as usize].time.as_us();
        let (mut right, mut all) = (0, 0);
        for (iteration, row) in late(&both) {
            let saved = [&without_3, &without_9].map(|other| row.time.as_us() - time(other, iteration));
            if (saved[0] - saved[1]).abs() > 0.5 {
                all += 1;
                let truth = if saved[0] > saved[1] { 3 } else { 9 };
                right += u32::from(row.accused.and_then(|accused| accused.link) == Some(truth));
            }
        }
        assert!(all > 20, "{algorithm}: {all}");
        assert!(f64::from(right) >= 0.93 * f64::from(all), "{algorithm}: {right} of {all}");
    }
}

/// A pattern as a graph file, in a folder of its own.
fn as_file(plan: &TransferPlan, name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("hitless-collectives-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut out = Vec::new();
    graph::file::write(&plan.to_list(), |rank| format!("h{rank}"), &mut out).unwrap();
    fs::write(folder.join("graph.csv"), out).unwrap();
    folder
}

#[test]
fn a_graph_from_a_file_takes_what_its_pattern_takes_to_the_picosecond() {
    for (number, keys) in [
        "pattern = 'all-reduce'\npieces = 2\nchannels = 2\n",
        "pattern = 'all-reduce'\nalgorithm = 'tree'\npieces = 4\n",
        "pattern = 'all-reduce'\nalgorithm = 'halving-doubling'\n",
        "pattern = 'all-to-all'\n",
        "pattern = 'pipeline'\npieces = 3\n",
    ]
    .into_iter()
    .enumerate()
    {
        for barrier in [true, false] {
            let loss = "[[link]]\nbetween = ['h1', 'sw0']\nloss = '1e-3'\n";
            let rest = format!("iterations = 20\nbarrier = {barrier}\ncompute = '3us'\n");
            let text = one_switch(8, loss) + keys + "size = '512KiB'\n" + &rest;
            let scenario = Scenario::parse("test", &text, &[]).unwrap();
            let folder = as_file(&scenario.points[0].job(0).unwrap().job.plan, &number.to_string());
            let file = one_switch(8, loss).replace("work = 'collective'", "work = 'file'\nfile = 'graph.csv'") + &rest;
            let of_file = Scenario::parse(folder.join("it.toml").to_str().unwrap(), &file, &[]).unwrap();
            let run = |scenario: &Scenario| net::run(scenario.points[0].setup(1), &Unwatched).unwrap().jobs.remove(0);
            let (built_in, listed) = (run(&scenario).outcome, run(&of_file).outcome);
            assert_eq!((built_in.complete, built_in.failed), (20, None), "{keys}");
            let without_rows = |outcome: JobOutcome| JobOutcome { rows: Vec::new(), ..outcome };
            assert_eq!(without_rows(built_in), without_rows(listed), "{keys}, barrier {barrier}");
            fs::remove_dir_all(folder).unwrap();
        }
    }
}

#[test]
fn a_queue_pair_that_fails_ends_its_job_and_no_other() {
    let dead = "[[link]]\nbetween = ['h1', 'sw0']\nforward = [{ at = '100us', loss = 1 }]\n";
    let second =
        "name = 'a'\npattern = 'all-reduce'\nranks = 'h0..h3'\nsize = '256KiB'\niterations = 50\ntimeout = '1ms'
        [[traffic]]\nname = 'b'\ntransport = 'rdma'\nmtu = 4096\nwork = 'collective'\npattern = 'all-gather'
        ranks = ['h4', 'h5', 'h6', 'h7']\nsize = '256KiB'\niterations = 50\n";
    let outcomes = jobs(&(one_switch(8, dead) + second), 1);
    let [a, b] = &outcomes[..] else { panic!("{outcomes:?}") };
    let failed = a.failed.unwrap();
    assert_eq!((failed.link, failed.cause), (Some(1), DelayCause::Loss));
    assert!(
        failed.at > Time::ZERO + Span::from_ms(7) && a.complete < 50 && a.complete >= u64::from(failed.iteration),
        "{a:?}"
    );
    assert_eq!((b.failed, b.complete, b.late), (None, 50, 0));
}

#[test]
fn a_ring_in_rank_order_is_fast_and_one_spread_over_leaves_is_not() {
    let text = |placement: &str| {
        format!(
            "topology = {{ kind = 'leaf-spine', leaves = 4, spines = 4, hosts_per_leaf = 4, rate = '100G', delay = '500ns' }}
            [switch]
            latency = '300ns'
            buffer = '1GB'
            [[traffic]]
            transport = 'rdma'
            mtu = 4096
            work = 'collective'
            pattern = 'all-reduce'
            size = '1MiB'
            placement = '{placement}'\n"
        )
    };
    let as_given = mean(&job(&text("as-given")));
    let spread: f64 = (1..=5).map(|seed| mean(&jobs(&text("spread"), seed)[0])).sum::<f64>() / 5.0;
    assert!(spread > 1.5 * as_given, "{spread} and {as_given}");
    let random = [1, 2].map(|seed| mean(&jobs(&text("random"), seed)[0]));
    assert_ne!(random[0], random[1]);
}

#[test]
fn without_a_barrier_a_lost_tail_costs_no_timeout() {
    let last = "[[link]]\nbetween = ['h0', 'sw0']\nforward = [{ frames = [460] }]\n";
    let run = |barrier: bool| {
        let keys =
            format!("pattern = 'all-reduce'\nsize = '1MiB'\niterations = 4\nbarrier = {barrier}\ncompute = '20us'\n");
        job(&(one_switch(8, last) + &keys))
    };
    let [with, without] = [true, false].map(|barrier| {
        let outcome = run(barrier);
        assert_eq!((outcome.complete, outcome.losses), (4, 1), "barrier {barrier}");
        outcome.times.iter().map(|(time, _)| time.as_us()).fold(0.0, f64::max)
    });
    assert!(with > 67_000.0, "{with}");
    assert!(without < 300.0, "{without}");
}

#[test]
fn what_cannot_be_a_collective_is_refused() {
    let said = |keys: &str| complaint(&(one_switch(12, "") + keys));
    let has = |keys: &str, expected: &str| {
        let said = said(keys);
        assert!(said.contains(expected), "{keys}: {said}");
        assert!(said.starts_with("test.toml:"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    };
    has("size = '1MB'\n", "pattern");
    has("pattern = 'all-reduce'\n", "size");
    has("pattern = 'ring'\nsize = '1MB'\n", "expected all-reduce, all-gather");
    has("pattern = 'all-reduce'\nsize = '1MB'\nranks = ['h0', 'h1', 'h0']\n", "'h0' is there twice");
    has("pattern = 'all-reduce'\nsize = '1MB'\nranks = 'h0'\n", "1 rank: expected at least two");
    has("pattern = 'all-reduce'\nsize = '1MB'\nranks = ['h0', 'h77']\n", "no node is called 'h77'");
    has("pattern = 'all-reduce'\nsize = '1MB'\nalgorithm = 'halving-doubling'\n", "12 ranks: expected a power of two");
    has("pattern = 'all-reduce'\nsize = '1MB'\npieces = 100\n", "100: expected at most 21, the packets of a step");
    has("pattern = 'all-reduce'\nsize = 5\n", "5 bytes: expected at least one for each of 12 shares");
    has("pattern = 'all-to-all'\nsize = '1MB'\nalgorithm = 'ring'\n", "no ring for all-to-all: expected direct");
    has("pattern = 'all-reduce'\nsize = '1MB'\nqueue_pairs = 'some'\n", "expected a number, or per-transfer");
    has("pattern = 'all-reduce'\nsize = '1MB'\nplacement = 'best'\n", "as-given");
    let datagrams = one_switch(4, "").replace("'rdma'\n        mtu = 4096", "'datagrams'");
    let said = complaint(&(datagrams + "pattern = 'all-reduce'\nsize = '1MB'\n"));
    assert!(said.contains("would wait for one that was lost"), "{said}");
}

#[test]
fn graphs_that_can_never_finish_are_refused_with_the_shortest_cycle() {
    let folder = std::env::temp_dir().join(format!("hitless-collectives-cycle-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let text = one_switch(4, "").replace("work = 'collective'", "work = 'file'\nfile = 'graph.csv'");
    let said = |graph: &str| {
        fs::write(folder.join("graph.csv"), graph).unwrap();
        let error = Scenario::parse(folder.join("it.toml").to_str().unwrap(), &text, &[]).err();
        error.map(|error| error.to_string()).unwrap_or_default()
    };
    let head = "id,after,src,dst,bytes\n";
    let cycle = said(&format!("{head}a,c,h0,h1,1\nb,a,h1,h2,1\nc,b,h2,h3,1\n"));
    assert!(cycle.contains("can never finish") && cycle.contains("a -> b -> c -> a"), "{cycle}");
    assert!(said(&format!("{head}a,x,h0,h1,1\n")).contains("line 2: after 'x': no transfer has this id"));
    assert!(
        said(&format!("{head}a,,h0,h1,1\na,,h0,h1,1\n")).contains("line 3: 'a': there is a transfer of this id before")
    );
    assert!(said(&format!("{head}a,a,h0,h1,1\n")).contains("line 2: 'a' waits for itself"));
    assert!(said(&format!("{head}a,,h0,sw0,1\n")).contains("'sw0' is a switch"));
    fs::remove_dir_all(folder).unwrap();
}
