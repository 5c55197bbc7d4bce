use super::*;

const REQUESTS: &str = r#"name = "requests"
[topology]
kind = "testbed"
rate = "100G"
[[link]]
between = ["sw2", "sw6"]
protect = "ordered"
profile = "tofino"
[[link.forward]]
loss = "1e-3"
[[traffic]]
name = "requests"
transport = "dctcp"
work = "series"
from = "h4"
to = "h8"
size = 24387
count = 50
reply = "64"
"#;

const FABRIC: &str = r#"[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
rate = "10G"
[[traffic]]
transport = "cubic"
work = "poisson"
load = 0.5
size = "web-search"
[run]
until = "1ms"
"#;

fn parse(text: &str, sets: &[&str]) -> Result<Scenario, ScenarioError> {
    Scenario::parse("it.toml", text, &sets.iter().map(|set| set.to_string()).collect::<Vec<_>>())
}

fn refusal(text: &str, sets: &[&str]) -> String {
    parse(text, sets).unwrap_err().to_string()
}

fn labels(text: &str, sets: &[&str]) -> Vec<String> {
    parse(text, sets).unwrap().points.into_iter().map(|point| point.label).collect()
}

#[test]
fn a_scenario_becomes_what_it_says() {
    let scenario = parse(REQUESTS, &[]).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.points.len()), ("requests", 1));
    let point = &scenario.points[0];
    assert_eq!((point.label.as_str(), point.traffic_names().collect::<Vec<_>>()), ("", vec!["requests"]));
    let outcome = sim::net::run(point.setup(1), &units::Unwatched).unwrap();
    assert_eq!(outcome.flows.len(), 50);
    assert!(outcome.flows.iter().all(|flow| flow.finish.is_some() && flow.bytes == 24_387));
}

#[test]
fn the_same_seed_is_the_same_setup_and_another_is_not() {
    let point = &parse(FABRIC, &[]).unwrap().points[0];
    let starts = |seed| {
        let outcome = sim::net::run(point.setup(seed), &units::Unwatched).unwrap();
        outcome.flows.iter().map(|flow| (flow.start, flow.bytes)).collect::<Vec<_>>()
    };
    assert_eq!(starts(1), starts(1));
    assert_ne!(starts(1), starts(2));
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_what_is_expected() {
    for (was, is, expected) in [
        (
            "rate = \"100G\"",
            "rate = \"0G\"",
            "it.toml:4: topology.rate: '0G': expected a rate between 1M and 10T, such as 25G, 100G or 1.6T",
        ),
        ("rate = \"100G\"", "", "it.toml:2: topology.rate: missing: expected a rate such as 100G"),
        (
            "rate = \"100G\"",
            "rate = \"100G\"\nhosts = 4",
            "it.toml:5: topology.hosts: has no effect with kind = testbed",
        ),
        ("\"testbed\"", "\"testbad\"", "it.toml:3: topology.kind: 'testbad': did you mean 'testbed'?"),
        ("kind = ", "kin = ", "it.toml:3: topology.kin: no such key: did you mean 'kind'?"),
        ("[topology]", "[topolgy]", "it.toml:2: topolgy: no such key: did you mean 'topology'?"),
        ("\"sw6\"]", "\"sw7\"]", "it.toml:6: link.between: no node is called 'sw7': did you mean 'sw2'?"),
        ("\"sw6\"]", "\"h8\"]", "it.toml:6: link.between: no link between 'sw2' and 'h8': 'sw2' is linked to h4, sw6"),
        ("\"sw6\"]", "\"sw6\", \"h8\"]", "it.toml:6: link.between: expected two nodes such as [\"h0\", \"sw0\"]"),
        ("\"ordered\"", "\"orderd\"", "it.toml:7: link.protect: 'orderd': did you mean 'ordered'?"),
        ("\"ordered\"", "\"none\"", "it.toml:8: link.profile: has no effect with protect = none"),
        ("\"tofino\"", "3", "it.toml:8: link.profile: '3': expected one of ideal, tofino"),
        (
            "\"1e-3\"",
            "\"1.2\"",
            "it.toml:10: link.forward.loss: '1.2': expected a probability between 0 and 1 such as 1e-3, 0.02 or 1%",
        ),
        ("loss = \"1e-3\"", "los = 0.1", "it.toml:10: link.forward.los: no such key: did you mean 'loss'?"),
        ("[[link.forward]]", "[link.forward]", "it.toml:9: link.forward: expected a list of tables: [[link.forward]]"),
        (
            "\"dctcp\"",
            "\"tcp\"",
            "it.toml:13: traffic.transport: 'tcp': expected one of reno, cubic, dctcp, bbr, tcp-off, rdma, datagrams, rds, homa",
        ),
        (
            "reply = \"64\"",
            "queue_pairs = 4",
            "it.toml:19: traffic.queue_pairs: has no effect with transport = dctcp, work = series",
        ),
        ("\"series\"", "\"serie\"", "it.toml:14: traffic.work: 'serie': did you mean 'series'?"),
        ("\"h4\"", "\"h5\"", "it.toml:15: traffic.from: no node is called 'h5': did you mean 'h4'?"),
        ("\"h4\"", "\"sw2\"", "it.toml:15: traffic.from: 'sw2' is a switch: expected a host"),
        ("to = \"h8\"", "to = \"h4\"", "it.toml:16: traffic.to: 'h4' would send to itself: expected another host"),
        ("to = \"h8\"", "", "it.toml:11: traffic.to: missing: expected a host"),
        ("24387", "0", "it.toml:17: traffic.size: expected at least one byte"),
        ("24387", "\"lots\"", "it.toml:17: traffic.size: 'lots': expected a size such as 1518, 37KB, 16MiB or 3GB"),
        ("24387", "\"900000GB\"", "it.toml:17: traffic.size: 900000000.0 MB: expected at most 42366710.0 MB"),
        ("count = 50", "count = 0", "it.toml:18: traffic.count: '0': expected a whole number of at least 1"),
        ("count = 50", "mtu = 50", "it.toml:11: traffic.count: missing: expected how many, one after the other"),
        (
            "count = 50",
            "count = 50\nmss = 9000",
            "it.toml:19: traffic.mss: '9000': expected a whole number from 64 to 8952",
        ),
        (
            "count = 50",
            "count = 50\nkernel = \"linux\"\ntimers = \"rfc\"",
            "it.toml:20: traffic.timers: expected linux, or no kernel",
        ),
        (
            "count = 50",
            "count = 50\nkernel = \"linux-2.6\"",
            "it.toml:19: traffic.kernel: 'linux-2.6': expected a TCP profile: linux-4.4, linux-5.4 or linux",
        ),
        (
            "count = 50",
            "count = 50\nmtu = 1024",
            "it.toml:19: traffic.mtu: has no effect with transport = dctcp, work = series",
        ),
        ("count = 50", "count = 50 50", "it.toml:18: "),
        ("count = 50", "count = 50\ncount = 51", "it.toml:19: "),
        ("count = 50", "count = 1979-05-27", "it.toml:18: count: expected anything but a date"),
        (
            "name = \"requests\"\n[t",
            "[switch]\nbuffer = 0\n[t",
            "it.toml:2: switch.buffer: 0 B: expected more than 0 and at most 1000.0 MB",
        ),
        (
            "name = \"requests\"\n[t",
            "[run]\nuntil = \"0s\"\n[t",
            "it.toml:2: run.until: 0 s: expected more than 0 and at most 3600000 s",
        ),
        (
            "name = \"requests\"\n[t",
            "[run]\nseeds = \"9..1\"\n[t",
            "it.toml:2: run.seeds: '9..1': expected seeds such as 1, 1..32 or 1,5,9, at most 100000 of them",
        ),
        (
            "name = \"requests\"\n[t",
            "[measure]\nwatch = [[\"h4\", \"sw2\"]]\n[t",
            "it.toml:1: measure.sample: missing: expected how often to look at what is watched, such as 1ms",
        ),
        (
            "name = \"requests\"\n[t",
            "[measure]\nsample = \"1ns\"\n[t",
            "it.toml:2: measure.sample: expected at most 10000000 samples in 3600 s, the time given by until in [run]",
        ),
        (
            "name = \"requests\"\n[t",
            "[measure]\npcap = [\"h4\", \"sw2\"]\n[t",
            "it.toml:2: measure.pcap: expected a list of pairs of nodes such as [[\"h0\", \"sw0\"]]",
        ),
        ("name = \"requests\"\n[t", "[[switch]]\n[t", "it.toml:1: switch: expected a table: [switch]"),
        (
            "[[link]]",
            "[[link]]\nbetween = [\"sw6\", \"sw2\"]\n[[link]]",
            "it.toml:8: link.1.between: 'sw2' and 'sw6': there is a [[link]] for them before",
        ),
    ] {
        let text = REQUESTS.replacen(was, is, 1);
        assert_ne!(text, REQUESTS, "{was}");
        let said = refusal(&text, &[]);
        if expected.ends_with(": ") {
            assert!(said.starts_with(expected), "{said}");
        } else {
            assert_eq!(said, expected);
        }
    }
}

#[test]
fn connections_that_stay_have_neither_replies_nor_handshakes() {
    let sets = |sets: &[&str]| parse(FABRIC, sets).map(|_| ()).map_err(|error| error.to_string());
    assert_eq!(sets(&["traffic.persistent=1"]), Ok(()));
    for (set, expected) in [
        ("traffic.reply=64", "traffic.persistent: expected neither reply nor fct = \"acknowledged\""),
        ("traffic.fct=acknowledged", "traffic.persistent: expected neither reply nor fct"),
        ("host.handshake=true", "host.handshake: expected traffic that is not persistent"),
    ] {
        let error = sets(&["traffic.persistent=1", set]).unwrap_err();
        assert!(error.contains(expected), "{set}: {error}");
    }
}

#[test]
fn workloads_that_cannot_work_are_refused() {
    for (was, is, expected) in [
        ("0.5", "1.5", "it.toml:10: traffic.load: '1.5': expected more than 0 and at most 1 (100 %)"),
        (
            "\"web-search\"",
            "\"web-serch\"",
            "it.toml:11: traffic.size: no trace is called 'web-serch': did you mean 'web-search'?",
        ),
        (
            "\"web-search\"",
            "\"sizes.txt\"",
            "it.toml:11: traffic.size: sizes.txt: No such file or directory (os error 2)",
        ),
        ("until = \"1ms\"", "", "it.toml:7: traffic.count: missing: expected this, stop, or until in [run]"),
        ("[run]", "from = \"h0..h9\"\n[run]", "it.toml:12: traffic.from: no node is called 'h9': did you mean 'h0'?"),
        (
            "[run]",
            "from = \"h3\"\nto = \"h3\"\n[run]",
            "it.toml:12: traffic.from: expected for every sender a receiver other than itself",
        ),
        (
            "[run]",
            "[[traffic]]\nname = \"more\"\ntransport = \"rdma\"\nwork = \"poisson\"\nsize = \"1MB\"\nload = 0.6\nfrom = \"h7\"\n[run]",
            "it.toml:17: traffic.1.load: makes 110 % of the link of h7, all traffic together: expected at most 100 %",
        ),
        (
            "\"poisson\"",
            "\"incast\"\nfan_in = 9\nevery = \"1ms\"",
            "it.toml:12: traffic.load: expected either this or every",
        ),
        (
            "\"poisson\"\nload = 0.5\nsize = \"web-search\"\n[run]\nuntil = \"1ms\"",
            "\"bulk\"\nfrom = \"h0\"\nto = \"h1\"",
            "it.toml:7: traffic.size: missing: expected one, or until in [run]: this would have no end",
        ),
        (
            "\"leaf-spine\"",
            "\"fat-tree\"\nk = 3",
            "it.toml:3: topology.k: expected an even number of ports per switch, at least 2",
        ),
        (
            "\"leaf-spine\"",
            "\"chain\"\nswitches = 31",
            "it.toml:3: topology.switches: 32 hops from h0 to h1: expected at most 30 switches",
        ),
        (
            "[run]",
            "[switch]\npfc = { headroom = \"10MB\" }\n[run]",
            "it.toml:13: switch.pfc.headroom: 10.0 MB at each of 6 ports: expected less than the buffer of 32.0 MB together",
        ),
        (
            "[run]",
            "[switch]\necn = { min = \"10KB\", max = \"1KB\", probability = 1 }\n[run]",
            "it.toml:13: switch.ecn.max: 1000 B: expected at least min, 10.0 KB",
        ),
    ] {
        let text = FABRIC.replacen(was, is, 1);
        assert_ne!(text, FABRIC, "{was}");
        assert_eq!(refusal(&text, &[]), expected);
    }
}

#[test]
fn a_custom_topology_is_checked() {
    let custom = |links: &str| {
        format!(
            "[topology]\nkind = \"custom\"\nrate = \"10G\"\nhosts = [\"a\", \"b\"]\nswitches = [\"s\", \"t\"]\n{links}\n\
             [[traffic]]\ntransport = \"cubic\"\nwork = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n[run]\nuntil = \"1ms\"\n"
        )
    };
    let link = |a, b| format!("[[topology.link]]\nbetween = [\"{a}\", \"{b}\"]\n");
    let whole = [link("a", "s"), link("s", "t"), link("t", "b")].concat();
    assert_eq!(parse(&custom(&whole), &[]).unwrap().points[0].topology().links.len(), 3);
    let islands = [link("a", "s"), link("t", "b")].concat();
    assert_eq!(refusal(&custom(&islands), &[]), "it.toml:6: topology.link: 'b' cannot be reached from 'a'");
    assert_eq!(
        refusal(&custom(&link("a", "x")), &[]),
        "it.toml:7: topology.link.between: no node is called 'x': did you mean 'a'?"
    );
}

#[test]
fn lists_are_swept_over_in_the_order_of_the_file() {
    let text = REQUESTS
        .replace("\"ordered\"", "[\"none\", \"ordered\"]")
        .replace("\"1e-3\"", "[\"1e-4\", \"1e-3\"]")
        .replace("24387", "[143, 24387]");
    assert_eq!(
        labels(&text, &[])[..5],
        [
            "protect=none loss=1e-4 size=143",
            "protect=none loss=1e-4 size=24387",
            "protect=none loss=1e-3 size=143",
            "protect=none loss=1e-3 size=24387",
            "protect=ordered loss=1e-4 size=143",
        ]
    );
    assert_eq!(
        refusal(&text.replace("\"1e-4\", ", "\"1e-3\", "), &[]),
        "it.toml:10: link.forward.loss: '1e-3' is there twice"
    );
    assert_eq!(
        refusal(&text.replace("[143, 24387]", "[]"), &[]),
        "it.toml:17: traffic.size: expected a value, or a list of at least one"
    );
    let one_wrong = text.replace("24387]", "0]");
    assert_eq!(refusal(&one_wrong, &[]), "it.toml:17: traffic.size: expected at least one byte");
}

#[test]
fn lists_that_are_one_value_are_not_swept_over() {
    let text = FABRIC.replace("[run]", "from = [\"h0\", \"h1\"]\nto = [\"h4\"]\n[run]\nseeds = [1, 2]");
    assert_eq!(labels(&text, &[]), [""]);
    let text = text.replace("to = [\"h4\"]", "to = [[\"h4\"], [\"h4\", \"h5\"]]");
    assert_eq!(labels(&text, &[]), ["to=h4", "to=h4+h5"]);
    let text = text.replace("hosts_per_leaf = 4", "hosts_per_leaf = [4, 8]");
    assert_eq!(labels(&text, &[]).len(), 4);
}

#[test]
fn keys_of_the_same_name_are_told_apart_in_labels() {
    let text = REQUESTS.replace("[[link.forward]]", "reverse = [{ loss = [0.0, 0.1] }]\n[[link.forward]]");
    let text = text.replace("\"1e-3\"", "[\"1e-3\", \"1%\"]");
    assert_eq!(labels(&text, &[])[1], "link.reverse.loss=0 link.forward.loss=1%");
}

#[test]
fn the_command_line_goes_before_the_file() {
    assert_eq!(
        labels(REQUESTS, &["link.protect=none,ordered", "link.profile=ideal"]),
        ["protect=none", "protect=ordered"]
    );
    let point = &parse(REQUESTS, &["traffic.0.size=1e3", "run.seeds=1..3", "switch.ecn={min=1,max=2,probability=1}"])
        .unwrap()
        .points[0];
    assert_eq!(point.seeds.iter().collect::<Vec<_>>(), [1, 2, 3]);
    assert!(point.setup(1).marking.is_some());
    let two = format!("{FABRIC}[[traffic]]\ntransport = \"cubic\"\nwork = \"bulk\"\nfrom = \"h0\"\nto = \"h1\"\n");
    assert!(parse(&two, &["traffic.1.start=1ms"]).is_ok());
    assert!(parse(REQUESTS, &["link.protect=none"]).is_ok(), "the file may say more than is needed then");
    for (text, set, expected) in [
        (REQUESTS, "traffic.siz=143", "--set traffic.siz=143: traffic.siz: no such key: did you mean 'size'?"),
        (REQUESTS, "trafic.size=143", "--set trafic.size=143: trafic: no such key: did you mean 'traffic'?"),
        (REQUESTS, "traffic.size=0", "--set traffic.size=0: traffic.size: expected at least one byte"),
        (REQUESTS, "traffic.1.size=0", "--set traffic.1.size=0: traffic.1: expected traffic.0 to traffic.0"),
        (REQUESTS, "traffic.size", "--set traffic.size: expected a key and a value such as traffic.size=143"),
        (REQUESTS, "traffic=143", "--set traffic=143: traffic: expected a list of tables: [[traffic]]"),
        (
            REQUESTS,
            "link.reverse.loss=0.1",
            "--set link.reverse.loss=0.1: link.reverse: the file has no [[link.reverse]]",
        ),
        (REQUESTS, "name.x=1", "--set name.x=1: name: expected nothing behind it"),
        (
            &two,
            "traffic.size=1KB",
            "--set traffic.size=1KB: traffic: there are 2 of them: expected traffic.0 to traffic.1",
        ),
    ] {
        assert_eq!(refusal(text, &[set]), expected);
    }
}

#[test]
fn a_link_is_protected_in_the_direction_in_which_it_is_named() {
    let turned = REQUESTS.replace("[\"sw2\", \"sw6\"]", "[\"sw6\", \"sw2\"]");
    let setup = parse(&turned, &[]).unwrap().points[0].setup(1);
    let link = &setup.links[0];
    assert_eq!(setup.topology.name(setup.topology.from(link.link.forward())), "sw6");
    assert_eq!((link.forward.steps().len(), link.reverse.steps().len()), (1, 0));
}

/// Every key that a file may have, as `--set` names it.
fn all_keys(keys: settings::Keys, at: &str, found: &mut Vec<String>) {
    for (key, shape) in keys {
        let path = settings::keys::path(at, key);
        if let Some(inner) = shape.keys() {
            all_keys(inner, &path, found);
        }
        found.push(path);
    }
}

#[test]
fn whatever_a_key_is_set_to_is_refused_or_runs() {
    const ODD: [&str; 21] = [
        "",
        "-1",
        "0",
        "1",
        "7",
        "0.5",
        "nan",
        "inf",
        "1e300",
        "9223372036854775807",
        "true",
        "x",
        "h0",
        "0s",
        "1ps",
        "1000h",
        "1M",
        "10T",
        "[]",
        "[[]]",
        "{}",
    ];
    let mut keys = Vec::new();
    all_keys(keys::SCENARIO, "", &mut keys);
    let fec = REQUESTS.replace("\"ordered\"", "\"fec\"").replace("profile = \"tofino\"", "");
    let datagrams = FABRIC.replace("\"cubic\"", "\"datagrams\"");
    let rdma =
        FABRIC.replace("\"cubic\"", "\"rdma\"").replace("\"poisson\"", "\"permutation\"").replace("load = 0.5", "");
    let rdma = rdma.replace("\"web-search\"", "\"1MB\"");
    let mut ran = 0;
    for text in [REQUESTS, FABRIC, &fec, &datagrams, &rdma] {
        assert!(parse(text, &[]).is_ok());
        for (key, value) in keys.iter().flat_map(|key| ODD.map(|value| (key, value))) {
            let Ok(scenario) = parse(text, &[&format!("{key}={value}"), "run.until=20us"]) else { continue };
            for point in scenario.points {
                sim::net::run(point.setup(1), &units::Unwatched).unwrap();
                ran += 1;
            }
        }
    }
    assert!(ran > 500, "{ran}");
}
