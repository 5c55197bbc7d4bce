//! Transports in a rack of six hosts at one switch: which of them keep a request short beside an incast, and what receivers
//! schedule.

use scenario::Scenario;
use sim::net::{self, FlowRow, NetworkOutcome};
use units::{Span, Unwatched};

const GET: &str = include_str!("../../../../experiments/scenarios/rack-get.toml");
const TRAINING: &str = include_str!("../../../../experiments/scenarios/rack-training.toml");
const MESSAGES: &str = include_str!("../../../../experiments/scenarios/rack-messages.toml");

fn run(text: &str, sets: &[&str]) -> NetworkOutcome {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse("test", text, &sets).unwrap_or_else(|error| panic!("{error}"));
    net::run(scenario.points[0].setup(1), &Unwatched).unwrap()
}

/// Completion time at this share of the flows of the first traffic that ended.
fn completion(outcome: &NetworkOutcome, share: f64) -> Span {
    let ended = outcome.flows.iter().filter(|flow| flow.traffic == 0);
    let mut times: Vec<Span> = ended.filter_map(|flow| Some(flow.finish?.since(flow.start))).collect();
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share) as usize]
}

#[test]
fn a_request_beside_an_incast_waits_behind_cubic_and_hardly_behind_dctcp_or_homa() {
    let p99 = |transport: &str| {
        let sets = [format!("traffic.0.transport={transport}"), format!("traffic.1.transport={transport}")];
        let count = ["traffic.0.count=100".to_owned(), "run.until=15ms".to_owned()];
        let sets: Vec<&str> = sets.iter().chain(&count).map(String::as_str).collect();
        completion(&run(GET, &sets), 0.9)
    };
    let [cubic, dctcp] = ["cubic", "dctcp"].map(p99);
    assert!(cubic > Span::from_us(80), "the buffer is full: {cubic}");
    assert!(dctcp < Span::from_us(30), "{dctcp}");
    let homa = run(
        &GET.replace("rto_min = \"5ms\"\n", "levels = 4\n"),
        &["traffic.0.transport=homa", "traffic.1.transport=homa", "traffic.0.count=100", "run.until=15ms"],
    );
    assert!(completion(&homa, 0.99) < Span::from_us(10), "{}", completion(&homa, 0.99));
}

#[test]
fn a_receiver_that_grants_one_message_at_a_time_wastes_part_of_its_link() {
    let used = |sets: &[&str]| {
        let flows = run(TRAINING, &[&["traffic.size=8MiB", "traffic.count=2"], sets].concat()).flows;
        let end = flows.iter().map(|flow: &FlowRow| flow.finish.unwrap()).max().unwrap();
        let bytes: u64 = flows.iter().map(|flow| flow.bytes).sum();
        bytes as f64 * 8.0 / 2.0 / end.since(units::Time::ZERO).as_us() / 1e5
    };
    let [one, four] = [1, 4].map(|at_once| used(&["traffic.transport=rds", &format!("traffic.at_once={at_once}")]));
    assert!((0.6..0.9).contains(&one), "{one}");
    assert!(four > one + 0.05, "{four} beside {one}");
}

#[test]
fn short_messages_overtake_long_ones_with_homa_only() {
    let p99 = |transport: &str| {
        let outcome = run(MESSAGES, &[&format!("traffic.transport={transport}"), "traffic.count=1500"]);
        assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()), "{transport}: all arrive");
        let short = outcome.flows.iter().filter(|flow| flow.bytes < 1_000);
        let mut times: Vec<Span> = short.map(|flow| flow.finish.unwrap().since(flow.start)).collect();
        times.sort_unstable();
        times[times.len() * 99 / 100]
    };
    let [rds, homa] = ["rds", "homa"].map(p99);
    assert!(homa < Span::from_us(10) && homa * 2 < rds, "{homa} beside {rds}");
}

#[test]
fn a_host_schedules_what_it_receives_in_one_way() {
    let sets = ["traffic.0.transport=rds", "traffic.1.transport=homa"].map(str::to_owned);
    let text = GET.replace("rto_min = \"5ms\"\n", "");
    let complaint = Scenario::parse("test", &text, &sets).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(complaint.contains("a host has one scheduler"), "{complaint}");
}
