//! The example of this crate, given a request whose first two copies were lost.

mod tape;

use explain::terms::TimeCause;
use tape::{Client, MS, Server, Tape};

#[allow(dead_code, reason = "its main function reads a file")]
#[path = "../examples/explain-capture.rs"]
mod explain_capture;

#[test]
fn most_of_the_time_is_that_of_the_timer() {
    let mut tape = Tape::new();
    tape.send_bytes(21 * MS, Client, 300);
    tape.data(241 * MS, Client, 0, 300);
    tape.data(665 * MS, Client, 0, 300);
    tape.ack(685 * MS, Server, 300);
    let answer = explain_capture::answer(&tape.pcap()).unwrap();
    let [connection] = &answer.connections[..] else { panic!("{answer:?}") };
    assert_eq!(connection.parts[0].cause, TimeCause::Timeout, "{connection:?}");
    explain_capture::print(&answer);
}
