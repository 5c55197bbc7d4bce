//! Congestion control of RDMA in whole networks: every controller with every recovery, what bad input gets, and the mistakes that
//! other simulators made.

use scenario::Scenario;
use sim::net::{self, NetworkOutcome};
use units::Unwatched;

const CONTROLLERS: [&str; 6] = ["none", "hpcc", "dcqcn", "timely", "dctcp", "swift"];

/// Hosts that all send to the last one, with more keys of `[[traffic]]`.
fn incast(hosts: u32, size: u64, keys: &str) -> String {
    let last = hosts - 1;
    format!(
        "[topology]\nkind = 'single-switch'\nhosts = {hosts}\nrate = '100G'\ndelay = '1us'\n\
         [switch]\nlatency = '0us'\nint = true\nbuffer = '64MB'\nalpha = 8\n\
         ecn = {{ min = '100KB', max = '400KB', probability = 0.2, at = 'departure', per = '25G' }}\n\
         [[traffic]]\ntransport = 'rdma'\nmtu = 1000\nwork = 'bulk'\nfrom = 'h0..h{}'\nto = 'h{last}'\nsize = {size}\n{keys}\n\
         [run]\nuntil = '200ms'\n",
        last - 1
    )
}

fn run(text: &str, sets: &[&str]) -> NetworkOutcome {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse("test", text, &sets).unwrap_or_else(|error| panic!("{error}"));
    net::run(scenario.points[0].setup(1), &Unwatched).unwrap()
}

fn complaint(text: &str, sets: &[&str]) -> String {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    Scenario::parse("test.toml", text, &sets).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn every_controller_completes_with_every_recovery_although_frames_are_lost() {
    let link = "\n[[link]]\nbetween = ['sw0', 'h4']\nloss = '1e-3'\n";
    for recovery in ["go-back-n", "irn", "melo"] {
        for controller in CONTROLLERS {
            let keys = format!("timeout = '1ms'\nrecovery = '{recovery}'\ncongestion = '{controller}'\n{link}");
            let outcome = run(&incast(5, 200_000, &keys), &[]);
            assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()), "{controller}, {recovery}");
            assert!(outcome.flows.iter().all(|flow| flow.received == 200_000), "{controller}, {recovery}");
        }
    }
}

#[test]
fn hpcc_keeps_the_queue_short_once_it_has_reacted() {
    let text = incast(9, 1_000_000, "congestion = 'hpcc'") + "[measure]\nsample = '5us'\nwatch = [['sw0', 'h8']]\n";
    let outcome = run(&text, &[]);
    let late = outcome.samples.iter().filter(|sample| (100.0..400.0).contains(&(sample.at.as_ps() as f64 / 1e6)));
    let longest = late.map(|sample| sample.ports[0].queue).max().unwrap();
    assert!(longest < 20_000, "{longest}");
    assert_eq!(outcome.int_resets, 0);
}

#[test]
fn a_window_below_one_packet_does_not_stop_a_flow() {
    // 300 flows share 42 KB: 140 bytes each.
    let text = incast(301, 20_000, "congestion = 'hpcc'\nhpcc = { min_rate = '10M' }");
    let outcome = run(&text, &[]);
    assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()));
}

#[test]
fn acknowledging_every_sixteenth_packet_leaves_no_flow_unfinished() {
    let outcome = run(&incast(5, 200_000, "congestion = 'hpcc'\nack_every = 16"), &[]);
    assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()));
}

#[test]
fn acknowledgements_of_a_connection_that_is_gone_do_no_harm() {
    let outcome = run(&incast(9, 1, "congestion = 'hpcc'\nconnections = 50"), &[]);
    assert_eq!(outcome.flows.iter().filter(|flow| flow.finish.is_some()).count(), 400);
}

#[test]
fn copies_that_a_link_protocol_makes_carry_the_stamp_of_their_hop() {
    let link = "[[link]]\nbetween = ['sw0', 'h4']\nloss = '1e-3'\nprotect = 'ordered'\n";
    let outcome = run(&(incast(5, 2_000_000, "congestion = 'hpcc'\n") + link), &[]);
    let (_, tally) = &outcome.links[0];
    let recovered: u64 = tally.counters.iter().map(|end| end.recovered).sum();
    assert!(recovered > 0 && outcome.flows.iter().all(|flow| flow.finish.is_some()));
    assert_eq!(outcome.int_resets, 0, "{recovered} frames came as copies, in order");
}

#[test]
fn telemetry_costs_42_bytes_or_what_is_filled() {
    let bytes = |sets: &[&str]| {
        let outcome = run(&incast(2, 1_000_000, "congestion = 'hpcc'"), sets);
        outcome.int_bytes
    };
    // A thousand packets and their acknowledgements.
    assert_eq!(bytes(&[]), 2_000 * 42);
    assert_eq!(bytes(&["switch.int={ charge = 'filled' }"]), 2_000 * 10);
}

#[test]
fn the_same_seed_gives_the_same_numbers_and_express_ports_change_none() {
    let text = incast(9, 300_000, "congestion = 'dcqcn'");
    let sets = ["switch.ecn.at=arrival".to_owned(), "switch.int=false".to_owned()];
    let scenario = Scenario::parse("test", &text, &sets).unwrap();
    let finishes = |no_express: bool| {
        let mut setup = scenario.points[0].setup(7);
        setup.no_express = no_express;
        let outcome = net::run(setup, &Unwatched).unwrap();
        outcome.flows.iter().map(|flow| (flow.src, flow.finish)).collect::<Vec<_>>()
    };
    assert_eq!(finishes(false), finishes(false));
    assert_eq!(finishes(false), finishes(true));
}

#[test]
fn interfaces_send_acknowledgements_before_the_data_of_others() {
    // h0 sends a long flow and receives another: acknowledgements must not wait behind its own data.
    let text = "[topology]\nkind = 'single-switch'\nhosts = 3\nrate = '10G'\ndelay = '1us'\n\
        [[traffic]]\ntransport = 'rdma'\nwork = 'bulk'\nfrom = 'h0'\nto = 'h1'\nsize = 2000000\nconnections = 8\n\
        [[traffic]]\ntransport = 'rdma'\nwork = 'series'\nfrom = 'h2'\nto = 'h0'\nsize = 1000\ncount = 20\nack_every = 1\n";
    let outcome = run(text, &[]);
    let slowest = outcome.flows.iter().filter(|flow| flow.traffic == 1).filter_map(|flow| flow.fct()).max().unwrap();
    assert!(slowest.as_us() < 9.0, "{} µs: at most the packet that is being sent", slowest.as_us());
}

#[test]
fn what_congestion_control_cannot_use_is_an_error_that_says_what_is_expected() {
    let text = incast(3, 1_000, "congestion = 'hpcc'\nhpcc = { eta = 0.95 }");
    let cases = [
        ("traffic.congestion=hpc", "hpcc"),
        ("traffic.hpcc.eta=1", "less than 1"),
        ("traffic.hpcc.reactoin=per-ack", "reaction"),
        ("switch.int=false", "int = true in [switch]"),
        ("switch.ecn.min=500KB", "max"),
        ("traffic.hpcc.registers=alpha", "alpha"),
    ];
    for (set, expected) in cases {
        let complaint = complaint(&text, &[set]);
        assert!(complaint.contains(expected), "{set}: {complaint}");
    }
    let odd = complaint(&text, &["topology.rate=30G", "traffic.hpcc.int=packed"]);
    assert!(odd.contains("30G") && odd.contains("800G"), "{odd}");
    let long = "topology = { kind = 'chain', switches = 17, rate = '100G' }\nswitch = { int = true }\n\
        traffic = [{ transport = 'rdma', congestion = 'hpcc', work = 'series', from = 'h0', to = 'h1', size = 1, count = 1 }]\n";
    assert!(complaint(long, &[]).contains("at most 15"), "{}", complaint(long, &[]));
}

#[test]
fn a_t_below_the_round_trip_is_a_warning_with_both_numbers() {
    let text = incast(3, 1_000, "congestion = 'hpcc'\nhpcc = { t = '2us' }");
    let scenario = Scenario::parse("test", &text, &[]).unwrap();
    let warnings: Vec<&str> = scenario.warnings().collect();
    assert!(warnings.len() == 1 && warnings[0].contains("2.00 µs") && warnings[0].contains("4.2"), "{warnings:?}");
}

#[test]
fn another_controller_on_the_command_line_leaves_the_table_of_the_first_without_effect() {
    let text = incast(3, 20_000, "congestion = 'hpcc'\nhpcc = { eta = 0.9, max_stage = 2 }");
    assert_eq!(complaint(&text, &["traffic.congestion=dcqcn"]), "");
    let both = incast(3, 20_000, "congestion = 'dcqcn'\nhpcc = { eta = 0.9 }");
    assert!(complaint(&both, &[]).contains("hpcc: has no effect with"), "{}", complaint(&both, &[]));
}

/// 32 hosts send at once to one: 13 MB at a switch that has room for 2, of which the headroom of 33 ports takes 1.4.
fn wide_incast(pfc: &str) -> NetworkOutcome {
    let text = incast(33, 400_000, "congestion = 'none'\noutstanding = 400\ntimeout = '1ms'");
    run(&text, &["switch.buffer=2MB", "switch.alpha=1", &format!("switch.pfc={pfc}")])
}

fn dropped(outcome: &NetworkOutcome) -> u64 {
    outcome.ports.iter().map(|port| port.dropped).sum()
}

#[test]
fn pfc_pauses_and_still_drops_without_headroom_and_never_with_it() {
    let (without, with) =
        (wide_incast("{ alpha = 8, headroom = '1KB' }"), wide_incast("{ alpha = 8, headroom = 'auto' }"));
    assert!(
        without.pfc_pauses > 0 && dropped(&without) > 0,
        "{} pauses, {} drops",
        without.pfc_pauses,
        dropped(&without)
    );
    assert_eq!(dropped(&with), 0);
}

#[test]
fn an_experiment_that_is_meant_to_show_pauses_shows_them() {
    let pfc = wide_incast("{ alpha = 8, headroom = 'auto' }").pfc.unwrap();
    assert!(pfc.pauses > 0 && pfc.paused_seconds > 1e-4, "{pfc:?}");
}

#[test]
fn telemetry_of_an_acknowledgement_is_not_taken_for_that_of_data_of_the_same_length() {
    // One byte of payload there and back: data packets and acknowledgements are equally long, and pass the same ports.
    let text = "[topology]\nkind = 'single-switch'\nhosts = 2\nrate = '100G'\ndelay = '1us'\n[switch]\nint = true\n\
        [[traffic]]\ntransport = 'rdma'\nwork = 'series'\nfrom = 'h0'\nto = 'h1'\nsize = 1\ncount = 200\ncongestion = 'hpcc'\n\
        [[traffic]]\ntransport = 'rdma'\nwork = 'series'\nfrom = 'h1'\nto = 'h0'\nsize = 1\ncount = 200\ncongestion = 'hpcc'\n";
    let outcome = run(text, &[]);
    assert_eq!(outcome.flows.iter().filter(|flow| flow.finish.is_some()).count(), 400);
    assert_eq!(outcome.int_resets, 0);
    assert_eq!(outcome.int_bytes, 800 * 42);
}

#[test]
fn t_includes_what_hosts_take() {
    let text = incast(3, 20_000, "congestion = 'hpcc'");
    let t = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        Scenario::parse("test", &text, &sets).unwrap().points[0].base_rtt().unwrap()
    };
    assert_eq!(t(&["host.latency=20us"]), t(&[]) + units::Span::from_us(40));
    let alone = run(&incast(2, 20_000_000, "congestion = 'hpcc'"), &["host.latency=20us"]);
    let rate = 160e6 / alone.flows[0].fct().unwrap().as_secs() / 1e9;
    assert!(rate > 75.0, "{rate} Gb/s with a window of the whole round trip");
}

#[test]
fn a_controller_that_goes_by_marks_where_nobody_marks_is_a_warning() {
    let text = incast(3, 20_000, "congestion = 'dcqcn'").replace("ecn =", "# ecn =");
    let warnings = Scenario::parse("test", &text, &[]).unwrap().points[0].warnings.clone();
    assert!(warnings.len() == 1 && warnings[0].contains("[switch] has no ecn"), "{warnings:?}");
    let unused = Scenario::parse("test", &incast(3, 20_000, "congestion = 'none'"), &[]).unwrap();
    assert_eq!(unused.points[0].base_rtt(), None, "nobody's congestion is controlled");
}

#[test]
fn a_single_threshold_for_marks_is_no_warning() {
    let ramp = "{ min = '100KB', max = '400KB', probability = 0.2, at = 'departure', per = '25G' }";
    let text = incast(3, 20_000, "congestion = 'dctcp'").replace(ramp, "'100KB'");
    assert!(text.contains("ecn = '100KB'"));
    assert_eq!(Scenario::parse("test", &text, &[]).unwrap().points[0].warnings, [""; 0]);
}

#[test]
fn resets_of_connections_that_do_not_end_are_counted() {
    let link = "[[link]]\nbetween = ['sw0', 'h2']\nloss = '1e-2'\nprotect = 'nonblocking'\n";
    let text = incast(3, 20_000, "congestion = 'hpcc'\nrecovery = 'irn'").replace("size = 20000\n", "") + link;
    let outcome = run(&text, &["run.until=3ms"]);
    assert!(outcome.int_resets > 0 && outcome.flows.iter().all(|flow| flow.finish.is_none()));
}

#[test]
fn an_acknowledgement_behind_a_notification_goes_before_data_too() {
    // h1 owes a notification and an acknowledgement for each message, and sends on 300 connections.
    let text = |cnp: &str| {
        format!(
            "[topology]\nkind = 'single-switch'\nhosts = 4\nrate = '100G'\ndelay = '1us'\n\
             [switch]\necn = {{ min = '0KB', max = '0KB', probability = 1.0 }}\n\
             [[traffic]]\ntransport = 'rdma'\nwork = 'series'\nfrom = 'h0'\nto = 'h1'\nsize = 1000\ncount = 20\n\
             congestion = 'dcqcn'\ndcqcn = {{ {cnp} }}\n\
             [[traffic]]\ntransport = 'datagrams'\nwork = 'bulk'\nfrom = 'h3'\nto = 'h1'\nrate = '95G'\n\
             [[traffic]]\ntransport = 'rdma'\nwork = 'bulk'\nfrom = 'h1'\nto = 'h2'\nsize = 200000\nconnections = 300\n\
             [run]\nuntil = '2ms'\n"
        )
    };
    let slowest = |cnp: &str| {
        let outcome = run(&text(cnp), &[]);
        outcome.flows.iter().filter(|flow| flow.traffic == 0).filter_map(|flow| flow.fct()).max().unwrap().as_us()
    };
    let (packet, echo) = (slowest("cnp = 'packet', cnp_gap = '0s'"), slowest("cnp = 'echo'"));
    assert!(packet < echo + 1.0, "{packet} µs with notifications, {echo} µs without");
}
