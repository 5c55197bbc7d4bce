//! The files of HPCC's authors in a scenario.

use std::path::PathBuf;

use congestion::ControllerConfig;
use congestion::hpcc::IntForm;
use scenario::Scenario;
use sim::net::{NetworkOutcome, NetworkSetup};
use sim::topology::{NodeId, TopologyLinkId};
use units::{Bytes, Span, Unwatched};

/// A folder of its own for each test, with the files of a scenario.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("hitless-hpcc-ns3-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    fn scenario(&self, text: &str) -> Result<Scenario, String> {
        let file = self.0.join("it.toml");
        Scenario::parse(&file.display().to_string(), text, &[]).map_err(|error| error.to_string())
    }

    fn refusal(&self, text: &str) -> String {
        let said = self.scenario(text).unwrap_err();
        said.replace(&format!("{}/", self.0.display()), "")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Two hosts on each of two switches, and a third switch between them; switches are 4, 5 and 6.
const TOPOLOGY: &str = "7 3 6\n4 5 6\n0 4 100Gbps 1000ns 0\n1 4 100Gbps 1000ns 0\n2 5 100Gbps 1000ns 0\n3 5 100Gbps \
                        1000ns 0\n4 6 400Gbps 1000ns 0\n6 5 400Gbps 1000ns 0\n";

const FLOWS: &str = "3 \n0 2 3 100 1000 2.000000000\n1 3 3 100 100000 2.000010000\n2 0 3 200 1 2.000020000\n";

const SCENARIO: &str = r#"[topology]
kind = "hpcc-ns3"
file = "topology.txt"
[[traffic]]
transport = "rdma"
work = "file"
file = "flows.txt"
"#;

fn outcome(scenario: &Scenario) -> NetworkOutcome {
    sim::net::run(scenario.points[0].setup(1), &Unwatched).unwrap()
}

#[test]
fn their_files_are_read_as_they_are() {
    let folder = Folder::new("read");
    folder.write("topology.txt", TOPOLOGY);
    folder.write("flows.txt", FLOWS);
    let scenario = folder.scenario(SCENARIO).unwrap();
    let outcome = outcome(&scenario);
    let topology = scenario.points[0].topology();
    let name = |node| topology.name(node);
    let flows: Vec<_> = outcome.flows.iter().map(|row| (name(row.src), name(row.dst), row.bytes, row.group)).collect();
    assert_eq!(flows, [("n0", "n2", 1_000, 100), ("n1", "n3", 100_000, 100), ("n2", "n0", 1, 200)]);
    assert!(outcome.flows.iter().all(|row| row.finish.is_some()));
}

#[test]
fn the_loss_of_a_link_holds_both_ways_unless_a_table_says_otherwise() {
    let folder = Folder::new("loss");
    folder.write("topology.txt", &TOPOLOGY.replace("4 6 400Gbps 1000ns 0", "4 6 400Gbps 1000ns 0.02"));
    folder.write("flows.txt", FLOWS);
    let lossy = |more: &str| {
        let setup = folder.scenario(&format!("{SCENARIO}{more}")).unwrap().points[0].setup(1);
        let link = setup.links.iter().find(|setup| setup.link == TopologyLinkId(4)).cloned().unwrap();
        [link.forward, link.reverse]
            .map(|faults| faults.steps().iter().map(|(_, model)| model.mean_loss(1_000)).sum::<f64>())
    };
    assert_eq!(lossy(""), [0.02, 0.02]);
    assert_eq!(lossy("[[link]]\nbetween = [\"n6\", \"n4\"]\nloss = \"0.5\"\n"), [0.5, 0.02]);
}

#[test]
fn a_mistake_in_a_file_is_named_with_scenario_key_file_and_line() {
    let folder = Folder::new("wrong");
    folder.write("topology.txt", &TOPOLOGY.replace("2 5 100", "2 9 100"));
    assert_eq!(
        folder.refusal(SCENARIO),
        "it.toml:3: topology.file: topology.txt: line 5: there is no node 9: expected a node from 0 to 6"
    );
    folder.write("topology.txt", TOPOLOGY);
    folder.write("flows.txt", &FLOWS.replace("3 \n", "4\n"));
    assert_eq!(
        folder.refusal(SCENARIO),
        "it.toml:7: traffic.file: flows.txt: line 4: the file ends after 3 flows: expected 4, as its first line says"
    );
    assert!(
        folder
            .refusal(&SCENARIO.replace("topology.txt", "none.txt"))
            .starts_with("it.toml:3: topology.file: none.txt: No such")
    );
    let missing = folder.refusal(&SCENARIO.replace("file = \"topology.txt\"\n", ""));
    assert_eq!(missing, "it.toml:1: topology.file: missing: expected a topology file of HPCC's authors");
}

const PROFILE: &str = "[run]\nprofile = \"hpcc-ns3\"\n";

/// A scenario of the profile: these files, and these lines of its traffic.
fn profiled(name: &str, [topology, flows]: [&str; 2], traffic: &str) -> NetworkSetup {
    let folder = Folder::new(name);
    folder.write("topology.txt", topology);
    folder.write("flows.txt", flows);
    folder.scenario(&format!("{SCENARIO}{traffic}{PROFILE}")).unwrap().points[0].setup(1)
}

fn times(setup: NetworkSetup) -> Vec<[u64; 2]> {
    let outcome = sim::net::run(setup, &Unwatched).unwrap();
    let ns = |span: Span| span.as_ps() / 1_000;
    outcome.flows.iter().map(|row| [ns(row.fct().unwrap()), ns(row.ideal)]).collect()
}

/// From 0 to 2 there are four links of 100, 400, 400 and 100G, from 0 to 1 two of 100G; 1 µs each. 1,048 B take 83, 20, 20 and
/// 83 ns, an ACK of 60 B 4, 1, 1 and 4 ns.
///
/// - 1,000 B over four links: 4,000 + 206 there, 4,000 + 10 back: 8,216 ns. Ideal: 8,000 + 1,000 B per link (80 + 20 + 20 + 80)
///   + 1,048 B at 100G (83): 8,283 ns.
/// - 100,000 B: 99 packets of 83 ns before: 16,433 ns. Ideal: 8,200 + 104,800 B at 100G (8,384): 16,584 ns.
/// - Over two links: 2,000 + 166 there, 2,000 + 8 back: 4,174 ns, with 99 packets before 12,391 ns. Ideal: 4,160 + 83 and
///   4,160 + 8,384 ns.
#[test]
fn times_of_flows_alone_are_those_worked_out_by_hand() {
    let flows = "4\n0 2 3 100 1000 2.0\n0 2 3 100 100000 2.001\n0 1 3 100 1000 2.002\n0 1 3 100 100000 2.003\n";
    let setup = profiled("alone", [TOPOLOGY, flows], "");
    let found = times(setup.clone());
    assert_eq!(found, [[8_216, 8_283], [16_433, 16_584], [4_174, 4_243], [12_391, 12_544]]);
    let outcome = sim::net::run(setup, &Unwatched).unwrap();
    assert!(outcome.flows.iter().all(|row| row.slowdown() == Some(1.0)), "what is faster than ideal counts as 1");
}

/// With telemetry 1,090 B take 87, 21, 21 and 87 ns, an ACK of 88 B 7, 1, 1 and 7 ns: 8,000 + 216 + 16 ns. The ideal has none.
#[test]
fn telemetry_makes_packets_longer_and_ideal_times_not() {
    let flows = "1\n0 2 3 100 1000 2.0\n";
    assert_eq!(times(profiled("int", [TOPOLOGY, flows], "congestion = \"hpcc\"\n")), [[8_232, 8_283]]);
}

/// Packets of the first flow leave every 83 ns, the seventh from 498 to 581 ns. The second flow begins at 500 ns and goes before
/// the eighth: it waits 81 ns, 4,174 + 81 = 4,255 ns, and the first flow ends 83 ns later than alone: 16,433 + 83 ns.
#[test]
fn a_new_flow_goes_before_the_next_packet_of_the_one_that_is_sending() {
    let flows = "2\n0 2 3 100 100000 2.0\n0 1 3 100 1000 2.0000005\n";
    assert_eq!(times(profiled("turn", [TOPOLOGY, flows], "")), [[4_255, 4_243], [16_516, 16_584]]);
}

/// With TIMELY's time stamp 1,056 B take 84, 21, 21 and 84 ns, an ACK of 60 B still 4, 1, 1 and 4 ns: 8,000 + 210 + 10 ns.
#[test]
fn a_time_stamp_makes_packets_of_timely_longer() {
    let flows = "1\n0 2 3 100 1000 2.0\n";
    assert_eq!(times(profiled("stamp", [TOPOLOGY, flows], "congestion = \"timely\"\n")), [[8_220, 8_283]]);
}

/// Their fat tree: 320 hosts, 20 ToRs, 20 aggregation switches in 5 pods, 16 cores.
fn fat_tree() -> String {
    let mut lines = vec!["376 56 480".to_owned(), (320..376).map(|n| n.to_string()).collect::<Vec<_>>().join(" ")];
    let mut link = |a: u32, b: u32, gbps: u32| lines.push(format!("{a} {b} {gbps}Gbps 1000ns 0.000000"));
    (0..320).for_each(|host| link(host, 320 + host / 16, 100));
    for tor in 0..20 {
        (0..4).for_each(|agg| link(320 + tor, 340 + tor / 4 * 4 + agg, 400));
    }
    for agg in 0..20 {
        (0..4).for_each(|core| link(340 + agg, 360 + agg % 4 * 4 + core, 400));
    }
    lines.join("\n") + "\n"
}

/// Six links of 1 µs both ways are 12,000 ns; 1,000 B take 80 ns at 100G (twice) and 20 ns at 400G (four times): 12,240 ns. 100G
/// carry 153,000 B in that time, and 40 Mb/s 61.2 B.
#[test]
fn t_window_and_step_on_their_fat_tree_are_theirs() {
    let setup = profiled("fat", [&fat_tree(), "1\n0 319 3 100 1000 2.0\n"], "congestion = \"hpcc\"\n");
    assert_eq!(setup.base_rtt, Some(Span::from_ns(12_240)));
    assert_eq!(units::Rate::gbps(100).bytes_in(Span::from_ns(12_240)), Bytes::new(153_000));
    let ControllerConfig::Hpcc(hpcc) = setup.traffic[0].transport.congestion() else {
        panic!("{:?}", setup.traffic[0])
    };
    assert!((hpcc.w_ai.unwrap() - 61.2).abs() < 1e-9, "{hpcc:?}");
    assert_eq!(hpcc.min_rate, units::Rate::gbps(1));
    // Bytes that left in units of 512, queues of 320: four times those of Fig. 2.7, as 100G is four times 25G.
    assert_eq!(hpcc.int, Some(IntForm::Packed(4)));
    assert_eq!((setup.switches.buffer, setup.switch_latency), (Bytes::new(33_554_432), Span::ZERO));
    // In the same rack: 4,000 + 160 + 83 ns; across: 12,240 + 83 ns.
    let flows = "2\n0 15 3 100 1000 2.0\n0 319 3 100 1000 2.1\n";
    let ideal: Vec<u64> =
        times(profiled("racks", [&fat_tree(), flows], "")).into_iter().map(|[_, ideal]| ideal).collect();
    assert_eq!(ideal, [4_243, 12_323]);
}

/// Four flows of 300 KB to one host, through a switch that marks all above 100 KB and nothing below, so that nothing is random. The
/// times are those that their simulator prints for these files (dcqcn, at 25G and 100G; PMAX 1, KMIN 100, KMAX 101).
#[test]
fn an_incast_of_dcqcn_ends_flow_by_flow_when_it_does_in_their_simulator() {
    const FLOWS: &str = "4\n8 16 3 100 300000 2.000000243\n3 16 3 100 300000 2.000001606\n6 16 3 100 300000 2.000002557\n\
                         5 16 3 100 300000 2.000003133\n";
    const THEIRS: [(u32, [u64; 4]); 2] =
        [(25, [857_967, 859_673, 860_438, 861_294]), (100, [388_953, 391_491, 392_621, 392_698])];
    for (gbps, theirs) in THEIRS {
        let links = (0..17).map(|host| format!("{host} 17 {gbps}Gbps 0.001ms 0\n"));
        let topology = "18 1 17\n17\n".to_owned() + &links.collect::<String>();
        let marking = "[switch]\necn = { min = \"100KB\", max = \"101KB\", probability = 1.0 }\n";
        let mut ours = times(profiled("dcqcn", [&topology, FLOWS], &format!("congestion = \"dcqcn\"\n{marking}")));
        ours.sort_unstable();
        for ([fct, _], theirs) in ours.iter().zip(theirs) {
            assert!(fct.abs_diff(theirs) < 100, "{gbps}G: {ours:?} ns, theirs {theirs}");
        }
    }
}

/// Their simulator, with sixteen flows of 1 MB at 100G and its random marks, has a mean of 1,513 µs and a spread of 470 µs over 30 seeds.
#[test]
fn a_synchronised_incast_of_dcqcn_is_as_slow_and_as_spread_as_in_their_simulator() {
    let links = (0..17).map(|host| format!("{host} 17 100Gbps 0.001ms 0\n"));
    let topology = "18 1 17\n17\n".to_owned() + &links.collect::<String>();
    let flows = (0..16).map(|host| format!("{host} 16 3 100 1000000 2\n"));
    let flows = "16\n".to_owned() + &flows.collect::<String>();
    let folder = Folder::new("incast");
    folder.write("topology.txt", &topology);
    folder.write("flows.txt", &flows);
    let point = &folder.scenario(&format!("{SCENARIO}congestion = \"dcqcn\"\n{PROFILE}")).unwrap().points[0];
    const RUNS: u64 = 20;
    let (mut mean, mut spread) = (0.0, 0.0);
    for seed in 1..=RUNS {
        let us: Vec<f64> = times(point.setup(seed)).iter().map(|[fct, _]| *fct as f64 / 1e3).collect();
        let [least, most] = [f64::min, f64::max].map(|of| us.iter().copied().reduce(of).unwrap());
        mean += us.iter().sum::<f64>() / 16.0 / RUNS as f64;
        spread += (most - least) / RUNS as f64;
    }
    assert!(
        (mean / 1_513.0 - 1.0).abs() < 0.01 && (0.9..1.1).contains(&(spread / 470.0)),
        "{mean} us, spread {spread} us"
    );
}

#[test]
fn what_the_scenario_says_goes_before_the_profile() {
    let folder = Folder::new("keys");
    folder.write("topology.txt", TOPOLOGY);
    folder.write("flows.txt", FLOWS);
    let more = "congestion = \"hpcc\"\nhpcc = { w_ai = 80, t = \"13us\", int = \"exact\" }\nmtu = 500\n[switch]\nbuffer = \"1MB\"\n";
    let setup = folder.scenario(&format!("{SCENARIO}{more}{PROFILE}")).unwrap().points[0].setup(1);
    let ControllerConfig::Hpcc(hpcc) = setup.traffic[0].transport.congestion() else {
        panic!("{:?}", setup.traffic[0])
    };
    assert_eq!(hpcc.int, Some(IntForm::Exact));
    assert_eq!((hpcc.w_ai, hpcc.t, hpcc.min_rate), (Some(80.0), Some(Span::from_us(13)), units::Rate::gbps(1)));
    assert_eq!((setup.switches.buffer, setup.traffic[0].transport.sizes().payload), (Bytes::new(1_000_000), 500));
    let wrong = folder.refusal(&format!("{SCENARIO}[run]\nprofile = \"hpcc-ns\"\n"));
    assert_eq!(wrong, "it.toml:9: run.profile: 'hpcc-ns': did you mean 'hpcc-ns3'?");
}

/// Between 0 and 1 there are two ways, by switch 4 or 3, in this order whatever that of the links. Computed apart from this code:
/// flows of ports 10,000 to 10,003 take the first, first, second and first (destination port 100), and their ACKs, with addresses
/// and ports exchanged, the second and then three times the first.
#[test]
fn flows_and_acknowledgements_take_the_ways_of_their_ports() {
    let topology = "6 4 6\n2 3 4 5\n0 2 100Gbps 1us 0\n1 5 100Gbps 1us 0\n2 3 100Gbps 1us 0\n2 4 100Gbps 1us 0\n\
                    3 5 100Gbps 1us 0\n4 5 100Gbps 1us 0\n";
    let flow = |n: u32| format!("0 1 3 100 1000 2.{n:03}\n");
    let flows = format!("4\n{}", (0..4).map(flow).collect::<String>());
    let setup = profiled("ways", [topology, &flows], "");
    let port = |from: u32, to: u32| {
        let leads = |at: &sim::topology::DirectedLink| {
            setup.topology.from(*at) == NodeId(from) && setup.topology.to(*at) == NodeId(to)
        };
        setup.topology.directed().find(leads).unwrap().index()
    };
    let [to_3, to_4, back_3, back_4] = [port(2, 3), port(2, 4), port(5, 3), port(5, 4)];
    let outcome = sim::net::run(setup.clone(), &Unwatched).unwrap();
    let frames = [to_3, to_4, back_3, back_4].map(|at| outcome.ports[at].frames);
    assert_eq!(frames, [1, 3, 1, 3]);
}
