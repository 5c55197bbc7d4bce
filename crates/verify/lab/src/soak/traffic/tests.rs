use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use units::StopFlag;

use super::*;

/// A server that answers each line on its one connection with what `answer` makes of it, and then hangs up.
fn beside_a_server<T>(answer: impl Fn(&str) -> Option<Vec<u8>> + Sync, client: impl FnOnce(SocketAddr) -> T) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port on the loopback");
    let to = listener.local_addr().expect("the port's number");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut socket, _) = listener.accept().expect("a client");
            let lines = BufReader::new(socket.try_clone().expect("a second handle"));
            for line in lines.split(b'\n').map_while(Result::ok) {
                match answer(String::from_utf8_lossy(&line).trim_end()) {
                    Some(bytes) => socket.write_all(&bytes).expect("a client that listens"),
                    None => break,
                }
            }
        });
        client(to)
    })
}

fn fetched(answer: Vec<u8>, file: &ServedFile) -> TrafficTotals {
    let (tally, over) = (TrafficCounter::new("http"), StopFlag::new());
    let reply = |line: &str| if line.is_empty() { None } else { Some(Vec::new()) };
    let reply = |line: &str| if line.starts_with("GET /file1 ") { Some(answer.clone()) } else { reply(line) };
    // Counted, which is all that is asked for here.
    _ = beside_a_server(reply, |to| tally.count(fetch(to, file, &over, &tally)));
    tally.traffic()
}

fn served(bytes: &[u8]) -> ServedFile {
    ServedFile { path: "file1".to_owned(), len: bytes.len() as u64, hash: hash([bytes]) }
}

fn page(body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

#[test]
fn a_file_is_equal_only_if_every_byte_is() {
    let bytes = blob(3, 100_000);
    let whole = fetched(page(&bytes), &served(&bytes));
    assert_eq!((whole.completed, whole.compared_bytes, whole.differing, whole.failed), (1, 100_000, 0, 0));
    let mut damaged = bytes.clone();
    damaged[70_000] ^= 1;
    let damaged = fetched(page(&damaged), &served(&bytes));
    assert_eq!((damaged.completed, damaged.differing, damaged.failed), (1, 1, 0));
    let short = fetched(page(&bytes[1..]), &served(&bytes));
    assert_eq!((short.completed, short.differing, short.failed), (1, 1, 0));
}

#[test]
fn a_file_that_ends_early_or_is_not_there_is_a_failure() {
    let bytes = blob(3, 1_000);
    let mut answer = page(&bytes);
    answer.truncate(500);
    for answer in [answer, b"HTTP/1.0 404 Not Found\r\n\r\n".to_vec(), b"HTTP/1.0 200 OK\r\n\r\n".to_vec()] {
        let traffic = fetched(answer, &served(&bytes));
        assert_eq!((traffic.completed, traffic.failed), (0, 1));
        assert!(traffic.first_failure.is_some());
    }
}

fn got(value: Option<&[u8]>) -> io::Result<RequestCheck> {
    let answer = value.map_or(b"END\r\n".to_vec(), |value| {
        [format!("VALUE k5 0 {}\r\n", value.len()).as_bytes(), value, b"\r\nEND\r\n"].concat()
    });
    let over = StopFlag::new();
    beside_a_server(
        |line| (line == "get k5").then(|| answer.clone()),
        |to| get(&mut SoakStream::open(to, &over)?, 5, (77, 3_000)),
    )
}

#[test]
fn a_value_is_equal_only_if_it_is_the_one_that_was_set() {
    let value = blob(77, 3_000);
    assert!(got(Some(&value)).expect("a value").equal);
    assert!(!got(Some(&value[..2_999])).expect("a value").equal);
    assert!(!got(Some(&blob(78, 3_000))).expect("a value").equal);
    assert!(!got(None).expect("no value").equal);
}

#[test]
fn who_is_called_off_has_not_failed_but_may_have_waited_too_long() {
    let (tally, over) = (TrafficCounter::new("memcached"), StopFlag::new());
    over.stop();
    let outcome = beside_a_server(
        |_| Some(Vec::new()),
        |to| get(&mut SoakStream::open(to, &over).expect("a connection"), 5, (1, 1)),
    );
    assert_eq!(tally.count(outcome).expect_err("no answer").kind(), io::ErrorKind::Interrupted);
    tally.called_off(SLOW / 2);
    tally.called_off(SLOW * 2);
    let traffic = tally.traffic();
    assert_eq!((traffic.completed, traffic.failed, traffic.over_1s), (0, 0, 1));
}
