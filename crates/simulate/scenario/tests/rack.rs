//! A rack of six hosts at one switch, as PL2's authors have it: training, requests, messages.

use scenario::Scenario;
use sim::net::{self, FlowRow};
use units::Unwatched;

const TRAINING: &str = "
    [topology]
    kind = 'single-switch'
    hosts = 6
    rate = '100G'
    [[traffic]]
    transport = 'tcp-off'
    receive_buffer = '64KiB'
    work = 'vgg16'
    from = 'h0..h3'
    to = ['h4', 'h5']
    size = '400KB'
    count = 3
";

const MESSAGES: &str = "
    [topology]
    kind = 'single-switch'
    hosts = 6
    rate = '100G'
    [[traffic]]
    transport = 'datagrams'
    work = 'poisson'
    from = 'h0'
    to = 'h5'
    size = 'w4'
    load = 0.2
    count = 50
    [[traffic]]
    transport = 'cubic'
    work = 'series'
    from = 'h1'
    to = 'h2'
    size = 64
    reply = '4KiB'
    count = 5
";

fn flows(text: &str) -> Vec<FlowRow> {
    let scenario = Scenario::parse("test", text, &[]).unwrap_or_else(|error| panic!("{error}"));
    net::run(scenario.points[0].setup(1), &Unwatched).unwrap().flows
}

fn complaint(text: &str) -> String {
    Scenario::parse("test.toml", text, &[]).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_round_of_training_begins_when_all_of_the_one_before_has_arrived() {
    let flows = flows(TRAINING);
    assert_eq!(flows.len(), 3 * 4 * 2 * 16);
    for round in 0..2 {
        let of = |group: u16| flows.iter().filter(move |flow| flow.group == group);
        let end = of(round).map(|flow| flow.finish.unwrap()).max();
        assert_eq!(of(round + 1).map(|flow| flow.start).min(), end);
    }
    let sent: u64 = flows.iter().map(|flow| flow.bytes).sum();
    assert!(sent.abs_diff(3 * 4 * 400_000) < 3 * 4 * 32, "{sent}");
}

#[test]
fn a_worker_is_no_server_and_datagrams_do_not_train() {
    let both = complaint(&TRAINING.replace("'h4', 'h5'", "'h3', 'h5'"));
    assert_eq!(both, "test.toml:11: traffic.to: 'h3' is a worker: expected other hosts");
    let lossy = TRAINING.replace("'tcp-off'", "'datagrams'").replace("receive_buffer = '64KiB'", "");
    assert!(complaint(&lossy).contains("the next would wait for one that was lost"));
}

#[test]
fn a_message_of_datagrams_is_complete_with_its_last_one_and_a_get_with_its_answer() {
    let flows = flows(MESSAGES);
    let (messages, gets): (Vec<&FlowRow>, Vec<&FlowRow>) = flows.iter().partition(|flow| flow.traffic == 0);
    assert_eq!((messages.len(), gets.len()), (50, 5));
    assert!(messages.iter().any(|flow| flow.bytes > 1_472));
    assert!(flows.iter().all(|flow| flow.finish.unwrap().since(flow.start) >= flow.ideal));
}
