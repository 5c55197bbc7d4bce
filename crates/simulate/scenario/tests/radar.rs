//! `[radar]`, `[[blackhole]]` and `[[detour]]` in scenarios: what is refused, and what comes of one that is not.

use radar::causes::CauseThresholds;
use scenario::Scenario;
use sim::net;
use sim::topology::{DirectedLink, Topology};
use units::Unwatched;

const LOSSES: &str = include_str!("../../../../experiments/scenarios/losses.toml");

fn parse(text: &str, sets: &[&str]) -> Result<Scenario, String> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    Scenario::parse("it.toml", text, &sets).map_err(|error| error.to_string())
}

#[test]
fn what_meters_and_rules_cannot_be_is_refused() {
    for (set, expected) in [
        ("radar.batch=1us", "radar.batch: 1.00 µs: expected 1.00 ms to 10.00 s"),
        (
            "radar.timeout=11ms",
            "radar.timeout: 11.00 ms: expected at most a batch, 10.00 ms: a meter has two of them open",
        ),
        (
            "run.until=12ms",
            "radar.batch: 10.00 ms, and 5.00 ms until it is looked at: expected an end before that of the run",
        ),
        ("radar.cells=2", "radar.cells: '2': expected a whole number from 3 to "),
        ("radar.cells=1000000", "radar.cells: '1000000': expected a whole number from 3 to "),
        ("radar.black_boxes=h0", "radar.black_boxes: 'h0' is a host: expected switches"),
        ("radar.black_boxes=agg9-0", "radar.black_boxes: no node is called 'agg9-0': did you mean 'agg0-0'?"),
        ("radar.cell=9", "radar.cell: no such key: did you mean 'cells'?"),
        ("blackhole.0.switch=h0", "blackhole.0.switch: 'h0' is a host: expected a switch"),
        ("blackhole.0.to=core0", "blackhole.0.to: 'core0' is a switch: expected a host"),
        ("blackhole.1.until=50ms", "blackhole.1.until: expected later than from"),
        ("blackhole.2.expected=7", "blackhole.2.expected: expected true or false"),
        ("detour=[{ switch = \"edge0-0\", to = \"h0\" }]", "detour.next: missing: expected the name of a switch"),
        (
            "detour=[{ switch = \"edge0-0\", to = \"h0\", next = \"core0\" }]",
            "detour.next: no link between 'edge0-0' and 'core0': 'edge0-0' is linked to h0, h1, agg0-0, agg0-1",
        ),
        (
            "detour=[{ switch = \"edge0-0\", to = \"h0\", next = \"h1\" }]",
            "detour.next: 'h1' is a host: expected a switch",
        ),
    ] {
        let said = parse(LOSSES, &[set]).unwrap_err();
        let said = said.split_once(": ").map_or("", |(_, said)| said);
        // Limits of memory depend on the topology.
        if expected.ends_with("to ") {
            assert!(said.starts_with(expected), "{said}");
        } else {
            assert_eq!(said, expected);
        }
    }
}

fn name(topology: &Topology, link: u32) -> String {
    let link = DirectedLink(link);
    format!("{} to {}", topology.name(topology.from(link)), topology.name(topology.to(link)))
}

/// Findings of the meters in the example, segment by segment; a change of behaviour shows here.
#[test]
fn losses_of_the_example_are_these() {
    let scenario = parse(LOSSES, &["run.until=125ms"]).unwrap();
    let point = &scenario.points[0];
    let outcome = net::run(point.setup(1), &Unwatched).unwrap();
    let found = outcome.radar.unwrap();
    let topology = point.topology();
    let mut lines = Vec::new();
    for (segment, why, packets) in found.truth.counts() {
        let of = found.losses.iter().filter(|lost| lost.segment == segment).count();
        lines.push(format!("{:22} {packets:5} {why:?}, {of} found on the segment", name(topology, segment)));
    }
    let verdict = found.judge(topology, &CauseThresholds { again: 1, ..CauseThresholds::default() });
    for culprit in &verdict.accused {
        let (segment, cause) = (name(topology, culprit.segment), culprit.cause);
        lines.push(format!("accused: {segment}, {cause}, {} losses", culprit.losses));
    }
    lines.push(format!("rules applied: {:?}", outcome.ruled));
    let seen = lines.join("\n") + "\n";
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/losses.txt");
    if std::env::var_os("HITLESS_UPDATE").is_some() {
        std::fs::write(file, &seen).unwrap();
    }
    assert_eq!(seen, std::fs::read_to_string(file).unwrap());
}

/// Meters whose clocks cut the batches recall when a lost packet passed: the same links are accused as by what packets carry.
#[test]
fn without_tags_the_same_links_are_accused() {
    let accused = |sets: &[&str]| {
        let scenario = parse(LOSSES, &[&["run.until=220ms"], sets].concat()).unwrap();
        let point = &scenario.points[0];
        let found = net::run(point.setup(1), &Unwatched).unwrap().radar.unwrap();
        let untimed = found.losses.iter().filter(|lost| lost.is_untimed).count();
        assert!(untimed * 100 <= found.losses.len(), "{untimed} of {} losses have no time", found.losses.len());
        let verdict = found.judge(point.topology(), &CauseThresholds { again: 1, ..CauseThresholds::default() });
        let names = verdict.accused.iter().map(|culprit| (name(point.topology(), culprit.segment), culprit.cause));
        names.collect::<Vec<_>>()
    };
    let tagged = accused(&[]);
    assert!(tagged.len() >= 3, "{tagged:?}");
    assert_eq!(accused(&["radar.clock_error=\"1us\""]), tagged);
}
