//! Reservations in whole racks: the paper's rack of six hosts, what it carries, what it may queue, and what goes wrong.

use scenario::Scenario;
use sim::net::{self, NetworkOutcome, RackOutcome};
use units::{Time, Unwatched};

/// The rack of the paper's appendix E: RSV to GRT takes 1.06 µs between interfaces and 2.05 µs between threads.
const RACK: &str = "[topology]\nkind = 'single-switch'\nhosts = 6\nrate = '100G'\ndelay = '350ns'\n\
    [switch]\nlatency = '347ns'\nport_limit = '1500KB'\n\
    [pl2]\ncontexts = 12\nk = 4\nt = 15\nsoftware = '3.8us'\nanswer = '950ns'\nanswer_sigma = 0.1\n";

const SCHEDULERS: [&str; 4] = ["paper", "departure", "clock", "late"];

/// A client's requests to a host that answers with 4 KB, one after the other.
const GETS: &str = "[[traffic]]\nname = 'gets'\ntransport = 'cubic'\nwork = 'series'\nfrom = 'h0'\nto = 'h1'\nsize = 64\n\
    reply = 4096\ncount = 100000\n";

fn run(text: &str, sets: &[&str]) -> NetworkOutcome {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse("test", text, &sets).unwrap_or_else(|error| panic!("{error}"));
    net::run(scenario.points[0].setup(1), &Unwatched).unwrap()
}

fn scheduler(name: &str) -> String {
    format!("pl2.scheduler={name}")
}

/// The first `hosts` hosts but one send to the first with twelve flows each, as fast as they may.
fn incast(hosts: u32, until: &str) -> String {
    format!(
        "{RACK}[[traffic]]\ntransport = 'datagrams'\nwork = 'bulk'\nfrom = 'h1..h{hosts}'\nto = 'h0'\nconnections = 12\n\
         [run]\nuntil = '{until}'\n"
    )
}

/// All links of the rack lose frames, in both directions.
fn lossy(keys: &str) -> String {
    let link = |host| {
        format!(
            "[[link]]\nbetween = ['sw0', 'h{host}']\nforward = [{{ loss = '1e-3' }}]\nreverse = [{{ loss = '1e-3' }}]\n{keys}\n"
        )
    };
    (0..6).map(link).collect()
}

/// The port to the first host, sampled.
fn sampled(every: &str) -> String {
    format!("[measure]\nsample = '{every}'\nwatch = [['sw0', 'h0']]\n")
}

fn rack(outcome: &NetworkOutcome) -> &RackOutcome {
    outcome.rack.as_ref().expect("a rack")
}

fn peak(outcome: &NetworkOutcome) -> u64 {
    rack(outcome).peaks.iter().map(|(_, bytes)| bytes.get()).max().unwrap()
}

fn dropped(outcome: &NetworkOutcome) -> u64 {
    outcome.ports.iter().map(|port| port.dropped).sum()
}

/// Goodput of packets of 1500 bytes, of which 28 are headers.
fn gbps(outcome: &NetworkOutcome) -> f64 {
    let bytes: u64 = outcome.flows.iter().map(|flow| flow.received).sum();
    bytes as f64 / 1_472.0 * 1_500.0 * 8.0 / outcome.ended.since(Time::ZERO).as_secs() / 1e9
}

/// Gb/s of the sampled port, sample by sample.
fn rates(outcome: &NetworkOutcome) -> Vec<f64> {
    let every = outcome.samples[0].at.since(Time::ZERO).as_secs();
    outcome.samples.iter().map(|sample| sample.ports[0].wire_bytes as f64 * 8.0 / every / 1e9).collect()
}

/// Flows of a traffic that are complete, and the median and the 99th percentile of what they took, in µs.
fn completion(outcome: &NetworkOutcome, traffic: u16) -> (usize, f64, f64) {
    let flows = outcome.flows.iter().filter(|flow| flow.traffic == traffic);
    let mut us: Vec<f64> = flows.filter_map(|flow| flow.fct()).map(|fct| fct.as_us()).collect();
    us.sort_by(f64::total_cmp);
    (us.len(), us[us.len() / 2], us[us.len() * 99 / 100])
}

/// True if the first quarter's queue is about the last one's.
fn is_steady(rack: &RackOutcome) -> bool {
    let [first, .., last] = rack.quarters.map(|bytes| bytes.get());
    last <= (first + 8_000).max(first * 13 / 10)
}

#[test]
fn an_incast_fills_the_port_and_queues_little() {
    for (name, from_two) in [("paper", 92.0), ("departure", 91.0), ("clock", 95.0), ("late", 95.0)] {
        for hosts in 1..=5 {
            let outcome = run(&incast(hosts, "4ms"), &[&scheduler(name)]);
            let rate = gbps(&outcome);
            let expected = if hosts == 1 { 75.0..92.0 } else { from_two..97.6 };
            assert!(expected.contains(&rate), "{name}, {hosts} hosts: {rate} Gb/s");
            assert!(peak(&outcome) <= 60_000 && is_steady(rack(&outcome)), "{name}, {hosts}: {:?}", rack(&outcome));
            assert_eq!((dropped(&outcome), rack(&outcome).violations), (0, 0), "{name}, {hosts} hosts");
        }
    }
}

#[test]
fn one_host_sends_to_several() {
    for name in SCHEDULERS {
        let text = incast(1, "4ms")
            .replace("from = 'h1..h1'\nto = 'h0'\nconnections = 12", "from = 'h0'\nto = 'h1'\nconnections = 3");
        let more = |host| {
            format!(
                "[[traffic]]\nname = 'to h{host}'\n{}",
                &text[text.find("transport").unwrap()..text.find("[run]").unwrap()]
            )
        };
        let more: String = (2..=4).map(|host| more(host).replace("to = 'h1'", &format!("to = 'h{host}'"))).collect();
        let outcome = run(&(text + &more), &[&scheduler(name)]);
        assert!((84.0..97.6).contains(&gbps(&outcome)), "{name}: {}", gbps(&outcome));
    }
}

#[test]
fn counters_that_are_counted_down_on_arrival_let_the_queue_grow_and_clocks_do_not() {
    // The slot as printed leaves out preamble and gap: 2.5 % too much.
    let overbooked = run(&incast(4, "8ms"), &["pl2.scheduler=paper", "pl2.slot=printed"]);
    assert!(peak(&overbooked) > 600_000, "{}", peak(&overbooked));
    let quarters = |outcome: &NetworkOutcome| rack(outcome).quarters.map(|bytes| bytes.get());
    assert!(quarters(&overbooked).is_sorted());
    // Hosts a little early: nothing pulls the queue back.
    let early = run(&incast(4, "8ms"), &["pl2.scheduler=paper", "pl2.early=800ns"]);
    let [first, .., last] = quarters(&early);
    assert!(last > 2 * first && last > 200_000, "{first}, {last}");
    // Hosts that are as early as the paper's formula makes them.
    let printed = run(&incast(2, "4ms"), &["pl2.scheduler=paper", "pl2.hosts=printed"]);
    assert!(dropped(&printed) > 1_000 && peak(&printed) > 1_490_000, "{}", dropped(&printed));
    for name in ["departure", "clock", "late"] {
        let early = run(&incast(4, "8ms"), &[&scheduler(name), "pl2.early=500ns"]);
        assert!(peak(&early) < 60_000 && is_steady(rack(&early)) && dropped(&early) == 0, "{name}: {:?}", rack(&early));
    }
}

#[test]
fn the_counters_of_the_paper_leak_where_frames_are_lost_and_clocks_do_not() {
    let text = incast(4, "10ms") + &lossy("") + &sampled("1ms");
    let paper = rates(&run(&text, &["pl2.scheduler=paper"]));
    assert!(paper[9] < 70.0 && paper[9] < paper[4] && paper[4] < paper[0], "{paper:?}");
    for name in ["clock", "late"] {
        let clean = gbps(&run(&incast(4, "10ms"), &[&scheduler(name)]));
        let lossy = gbps(&run(&text, &[&scheduler(name)]));
        assert!(lossy > 0.97 * clean, "{name}: {lossy} of {clean}");
    }
    let guarded = incast(4, "10ms") + &lossy("protect = 'ordered'\nprotect_reverse = true") + &sampled("1ms");
    let guarded = rates(&run(&guarded, &["pl2.scheduler=paper"]));
    assert!(guarded.iter().all(|rate| *rate > 95.0), "no frame is lost, no slot leaks: {guarded:?}");
}

#[test]
fn a_get_waits_for_all_contexts_or_has_a_class() {
    let gets = |hosts: u32, sets: &[&str]| {
        let text = if hosts == 0 { format!("{RACK}[run]\nuntil = '2ms'\n") } else { incast(hosts, "4ms") };
        let outcome = run(&(text + GETS), &[&["pl2.contexts=13"], sets].concat());
        (completion(&outcome, u16::from(hosts > 0)), outcome)
    };
    let ((_, _, alone), _) = gets(0, &["pl2.scheduler=paper"]);
    let ((_, median, p99), _) = gets(4, &["pl2.scheduler=paper"]);
    assert!((11.0..15.0).contains(&alone) && (28.0..35.0).contains(&median) && p99 < 40.0, "{alone}, {median}, {p99}");
    let bulk = "traffic.0.class=3";
    let ((_, _, p99), outcome) = gets(4, &["pl2.scheduler=late", bulk]);
    assert!(p99 < 1.3 * alone && gbps(&outcome) > 92.0, "class 0 goes first: {p99}, {}", gbps(&outcome));
}

#[test]
fn without_background_an_unsolicited_burst_costs_nothing() {
    let text = format!("{RACK}{GETS}[run]\nuntil = '2ms'\n");
    let plain = text.replace(&RACK[RACK.find("[pl2]").unwrap()..], "");
    let (_, _, plain) = completion(&run(&plain, &[]), 0);
    for name in ["departure", "clock", "late"] {
        let sets = [
            scheduler(name),
            "pl2.unsolicited=safe".to_owned(),
            "pl2.software=0s".to_owned(),
            "pl2.timeout=20us".to_owned(),
        ];
        let outcome = run(&text, &sets.each_ref().map(String::as_str));
        let (_, _, p99) = completion(&outcome, 0);
        assert!(p99 <= 1.02 * plain, "{name}: {p99} beside {plain}");
        assert_eq!(rack(&outcome).switches.cut, 0);
    }
}

#[test]
fn a_quiet_rack_has_nothing_reserved_and_nothing_was_lost() {
    for name in SCHEDULERS {
        for more in ["pl2.unsolicited=off", "pl2.unit=bytes", "pl2.contexts=per-destination"] {
            let text = incast(5, "8ms").replace("connections = 12", "connections = 12\nsize = '60KB'");
            let outcome = run(&text, &[&scheduler(name), more]);
            assert!(outcome.flows.iter().all(|flow| flow.received == 60_000), "{name}, {more}");
            let rack = rack(&outcome);
            assert_eq!((rack.counted_left, rack.reserved_left), (0, units::Span::ZERO), "{name}, {more}");
            assert_eq!((rack.violations, outcome.rack_hosts.duplicates), (0, 0), "{name}, {more}");
        }
    }
}

#[test]
fn every_transport_completes_above_every_protection() {
    for (name, protect) in [("paper", "ordered"), ("departure", "nonblocking"), ("clock", "uec-llr"), ("late", "none")]
    {
        let protect = if protect == "none" { String::new() } else { format!("protect = '{protect}'") };
        for transport in ["rdma", "cubic", "dctcp", "bbr"] {
            let text = incast(3, "900ms").replace("'datagrams'", &format!("'{transport}'"));
            let text = text.replace("connections = 12", "connections = 4\nsize = '100KB'") + &lossy(&protect);
            let outcome = run(&text, &[&scheduler(name)]);
            assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()), "{name}, {protect}, {transport}");
            assert_eq!((dropped(&outcome), rack(&outcome).violations), (0, 0), "{name}, {protect}, {transport}");
        }
    }
}

#[test]
fn above_links_that_repeat_frames_no_bound_is_promised_and_the_scenario_says_so() {
    let text = incast(4, "2ms") + &lossy("protect = 'uec-llr'").replace("1e-3", "1e-2");
    let parse = |name: &str| Scenario::parse("rack.toml", &text, &[scheduler(name)]).unwrap();
    let warned = |name: &str| parse(name).warnings().any(|warning| warning.contains("may exceed the bound"));
    assert!(warned("late") && warned("departure") && !warned("paper"));
    let plain = Scenario::parse("rack.toml", &incast(4, "2ms"), &[scheduler("late")]).unwrap();
    assert_eq!(plain.warnings().count(), 0);
    // A link of this loss carries less than slots reckon with: late goes on to grant, departure waits for what has not left.
    let [late, departure] = ["late", "departure"].map(|name| peak(&run(&text, &[&scheduler(name)])));
    assert!(late > 2 * departure, "{late} and {departure}");
}

#[test]
fn meters_and_telemetry_work_beside_reservations() {
    let text = incast(3, "20ms").replace("'datagrams'", "'rdma'\ncongestion = 'hpcc'");
    let text =
        text.replace("connections = 12", "connections = 4\nsize = '100KB'").replace("[pl2]", "int = true\n[pl2]");
    let outcome = run(&(text + "[radar]\nbatch = '1ms'\n"), &["pl2.scheduler=late"]);
    assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()) && outcome.int_bytes > 0);
    let found = outcome.radar.expect("meters");
    assert!(found.losses.is_empty(), "{:?}", found.losses);
}

#[test]
fn the_rest_of_a_rack_is_soon_at_full_rate_when_hosts_die() {
    let dead = "[[dead]]\nhost = 'h1'\nat = '500us'\n[[dead]]\nhost = 'h2'\nat = '1ms'\n";
    let text = incast(4, "2400us") + dead + &sampled("100us");
    let rate_at = |rates: &[f64], us: usize| rates[us / 100];
    for name in ["clock", "late"] {
        let rates = rates(&run(&text, &[&scheduler(name)]));
        assert!(rate_at(&rates, 600) > 95.0 && rate_at(&rates, 1_100) > 95.0, "{name}: {rates:?}");
    }
    let paper = rates(&run(&text, &["pl2.scheduler=paper"]));
    assert!(rate_at(&paper, 900) < 80.0 && rate_at(&paper, 2_000) < 60.0, "what they reserved stays: {paper:?}");
    let reset = run(&text, &["pl2.scheduler=paper", "pl2.resets=true"]);
    assert!(rate_at(&rates(&reset), 1_700) > 90.0 && rack(&reset).switches.resets > 0, "{:?}", rates(&reset));
}

#[test]
fn a_switch_that_restarts_forgets_and_hosts_ask_again() {
    let text = incast(4, "2ms") + "[[restart]]\nswitch = 'sw0'\nat = '500us'\n" + &sampled("100us");
    for name in ["departure", "clock", "late"] {
        let outcome = run(&text, &[&scheduler(name)]);
        assert!(rates(&outcome)[6..].iter().all(|rate| *rate > 92.0), "{name}: {:?}", rates(&outcome));
        assert_eq!((outcome.rack_hosts.switch_restarts, rack(&outcome).restarts), (4, 1), "{name}");
        assert_eq!((dropped(&outcome), rack(&outcome).violations), (0, 0), "{name}");
    }
    let paper = run(&text, &["pl2.scheduler=paper"]);
    assert!(peak(&paper) < 100_000, "marks of the run before are not counted down: {}", peak(&paper));
    assert_eq!(dropped(&paper), 0);
}

#[test]
fn a_share_for_others_keeps_a_rack_from_losing_its_own() {
    let text = "[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 6\nrate = '100G'\n\
        [switch]\nport_limit = '1500KB'\n[pl2]\ncontexts = 4\ningress_share = 0.1\n\
        [[traffic]]\nname = 'inside'\ntransport = 'datagrams'\nwork = 'bulk'\nfrom = 'h1..h5'\nto = 'h0'\nconnections = 4\n\
        size = '500KB'\n\
        [[traffic]]\nname = 'outside'\ntransport = 'datagrams'\nwork = 'bulk'\nfrom = 'h6..h11'\nto = 'h0'\n\
        connections = 4\n[run]\nuntil = '2ms'\n";
    for name in SCHEDULERS {
        let outcome = run(text, &[&scheduler(name)]);
        let inside = outcome.flows.iter().filter(|flow| flow.traffic == 0);
        assert!(inside.clone().count() == 20 && inside.clone().all(|flow| flow.received == 500_000), "{name}");
        assert!(rack(&outcome).switches.policed > 1_000 && dropped(&outcome) == 0, "{name}: {:?}", rack(&outcome));
    }
}

#[test]
fn ends_that_only_receive_take_no_context_from_those_that_send() {
    let to = |on: usize| {
        format!("[{}]", (0..6).map(|host| format!("'h{}'", (host + on) % 6)).collect::<Vec<_>>().join(", "))
    };
    let traffic = |on: usize| {
        format!(
            "[[traffic]]\nname = 'on {on}'\ntransport = 'datagrams'\nwork = 'bulk'\nfrom = 'h0..h5'\nto = {}\nconnections = {}\n",
            to(on),
            if on < 3 { 3 } else { 2 }
        )
    };
    let text = format!("{RACK}{}[run]\nuntil = '2ms'\n", (1..6).map(traffic).collect::<String>());
    for name in ["clock", "late"] {
        let rate = gbps(&run(&text, &[&scheduler(name)]));
        assert!(rate > 0.8 * 585.0, "twelve senders have twelve contexts: {name}, {rate} Gb/s of 585");
    }
}

#[test]
fn answers_to_a_host_that_receives_take_no_room_from_what_others_send_it() {
    // Every acknowledgement is reserved, and its GRT goes by the port that the data fill.
    let tcp = incast(4, "10ms").replace("'datagrams'", "'tcp-off'\nreceive_buffer = '128KiB'");
    for name in ["departure", "clock", "late"] {
        let outcome = run(&tcp, &[&scheduler(name)]);
        assert_eq!((dropped(&outcome), rack(&outcome).violations), (0, 0), "{name}: {}", peak(&outcome));
        assert!(peak(&outcome) < 100_000 && gbps(&outcome) > 85.0, "{name}: {}, {}", peak(&outcome), gbps(&outcome));
    }
}

#[test]
fn the_same_seed_gives_the_same_rack() {
    let text = incast(4, "1ms") + &lossy("");
    for name in SCHEDULERS {
        let [first, second] = [0, 1].map(|_| {
            let outcome = run(&text, &[&scheduler(name)]);
            format!("{:?} {:?} {:?}", outcome.flows, outcome.rack, outcome.rack_hosts)
        });
        assert_eq!(first, second);
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_line_and_key() {
    let complaint = |text: &str, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        Scenario::parse("rack.toml", text, &sets).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let rack = incast(2, "1ms");
    for (line, wrong, expected) in [
        ("k = 4", "k = 0", "rack.toml:11: pl2.k: 0 frames in a burst; expected 1 to"),
        ("t = 15", "t = 300", "rack.toml:12: pl2.t: 300 slots are more than drop_above = 256"),
        ("t = 15", "slot = '100ns'", "rack.toml:12: pl2.slot: 100 ns is shorter than a frame"),
        ("t = 15", "slot = 'soon'", "rack.toml:12: pl2.slot: 'soon':"),
        (
            "contexts = 12",
            "contexts = 60",
            "rack.toml:10: pl2.contexts: 5 hosts of 60 contexts and k = 4 may queue 1851",
        ),
        ("contexts = 12", "contexts = 'many'", "rack.toml:10: pl2.contexts: 'many': expected a whole number"),
        ("t = 15", "scheduler = 'clok'", "rack.toml:12: pl2.scheduler: 'clok': did you mean 'clock'?"),
        (
            "t = 15",
            "unsolicited = 'paper'",
            "rack.toml:12: pl2.unsolicited: expected off or safe with the scheduler late",
        ),
        ("t = 15", "unit = 'bits'", "rack.toml:12: pl2.unit: 'bits': did you mean"),
        ("t = 15", "ingress_share = 1.0", "rack.toml:12: pl2.ingress_share: nothing is left to reserve"),
    ] {
        let found = complaint(&rack.replace(line, wrong), &[]);
        assert!(found.starts_with(expected), "{wrong}: {found}");
    }
    let slow = rack.clone() + "[[link]]\nbetween = ['sw0', 'h3']\nrate = '25G'\n";
    assert!(complaint(&slow, &[]).contains("pl2.scheduler: a port has 25G, another 100G; expected ports of one rate"));
    let printed = complaint(&rack, &["pl2.slot=printed"]);
    assert!(printed.contains("pl2.slot: 120 ns is shorter than a frame"), "{printed}");
    let restart = "[[restart]]\nswitch = 'sw0'\nat = '1ms'\n";
    let without = rack.replace(&RACK[RACK.find("[pl2]").unwrap()..], "") + restart;
    assert!(complaint(&without, &[]).contains("restart.switch: expected [pl2]"), "{}", complaint(&without, &[]));
    assert!(
        complaint(&(rack + "[[dead]]\nhost = 'sw0'\nat = '1ms'\n"), &[]).contains("'sw0' is a switch: expected a host")
    );
}
