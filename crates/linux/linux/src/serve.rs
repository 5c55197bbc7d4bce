//! Answers clients on a listening socket, a question and an answer each, without ever waiting for one of them.
//!
//! ```text
//!   accept ──▶ Reading ── whole question ──▶ Writing ── all written ──▶ closed
//!                └─────── deadline ────────────┴──────────────────────▶ closed
//! ```
//!
//! A client has [`PATIENCE`] for its whole conversation, however it spreads its bytes, and clients do not wait for
//! each other. Beyond `MOST_CLIENTS` the one that has been there longest makes room. A request to stop takes effect at
//! once: a client that says nothing, or does not read, cannot hold up the end of a daemon.

use std::io::{self, PipeReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use crate::clock::Clock;
use crate::poll::{self, Readiness};

/// Time that a client may take to ask and to be answered.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// Most conversations that may be open at once.
const MOST_CLIENTS: usize = 64;

/// Source of clients. Accepting must not block.
pub trait Listener: AsRawFd {
    type Stream: Read + Write + AsRawFd;

    /// The next client, set not to block.
    fn next(&self) -> io::Result<Self::Stream>;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    fn next(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    fn next(&self) -> io::Result<UnixStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

/// Protocol of a conversation.
pub trait ServeProtocol {
    /// Longer than any question that makes sense; what is longer is answered as it stands.
    const LONGEST: usize;

    /// True if the question has come whole.
    fn is_whole(question: &[u8]) -> bool;

    /// The answer; `None` ends the server.
    fn answer(&mut self, question: &[u8]) -> Option<Vec<u8>>;
}

/// Answers until `stop` has something to read or is closed, or the protocol has no answer.
pub fn serve<L: Listener>(
    listener: &L,
    stop: &PipeReader,
    patience: Duration,
    protocol: &mut impl ServeProtocol,
) -> io::Result<()> {
    let clock = Clock::start();
    let mut clients: Vec<ServedClient<L::Stream>> = Vec::new();
    loop {
        let now = clock.elapsed();
        clients.retain(|client| client.deadline > now);
        let wait = clients.iter().map(|client| client.deadline - now).min().unwrap_or(Duration::from_secs(60));
        let ready = poll::wait_for_any(&descriptors(listener, stop, &clients), wait)?;
        if ready[1] != Readiness::Nothing {
            return Ok(());
        }
        let mut at = 2;
        let mut ended = false;
        clients.retain_mut(|client| {
            at += 1;
            ready[at - 1] == Readiness::Nothing || client.go_on(protocol, &mut ended)
        });
        if ended {
            return Ok(());
        }
        if ready[0] != Readiness::Nothing {
            match listener.next() {
                Ok(stream) => welcome(&mut clients, stream, clock.elapsed() + patience),
                // A client that went away before it was let in.
                Err(error) if is_passing(&error) => {}
                // Out of descriptors or memory, perhaps: it comes back to the same clients soon enough.
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted)
}

fn welcome<S>(clients: &mut Vec<ServedClient<S>>, stream: S, deadline: Duration) {
    if clients.len() >= MOST_CLIENTS {
        // They are in the order in which they came.
        clients.remove(0);
    }
    clients.push(ServedClient { stream, deadline, question: Vec::new(), answer: None });
}

fn descriptors<L: Listener>(
    listener: &L,
    stop: &PipeReader,
    clients: &[ServedClient<L::Stream>],
) -> Vec<(RawFd, bool)> {
    let own = [(listener.as_raw_fd(), false), (stop.as_raw_fd(), false)];
    own.into_iter().chain(clients.iter().map(|client| (client.stream.as_raw_fd(), client.answer.is_some()))).collect()
}

struct ServedClient<S> {
    stream: S,
    deadline: Duration,
    question: Vec<u8>,
    /// Bytes still to be written.
    answer: Option<Vec<u8>>,
}

impl<S: Read + Write> ServedClient<S> {
    /// Serves all clients as far as possible without waiting. False when the conversation is over.
    fn go_on<P: ServeProtocol>(&mut self, protocol: &mut P, ended: &mut bool) -> bool {
        if self.answer.is_none() {
            match self.listen::<P>() {
                Ok(false) => return true,
                Ok(true) => {}
                Err(_) => return false,
            }
            self.answer = protocol.answer(&self.question);
            *ended |= self.answer.is_none();
        }
        self.speak().unwrap_or(false)
    }

    /// True once the question has come whole.
    fn listen<P: ServeProtocol>(&mut self) -> io::Result<bool> {
        let mut piece = [0; 1_024];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(true),
                Ok(len) => self.question.extend_from_slice(&piece[..len]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
            if self.question.len() >= P::LONGEST || P::is_whole(&self.question) {
                return Ok(true);
            }
        }
    }

    /// True while there is more to write.
    fn speak(&mut self) -> io::Result<bool> {
        let Some(answer) = &mut self.answer else { return Ok(false) };
        while !answer.is_empty() {
            match self.stream.write(answer) {
                Ok(0) => return Ok(false),
                Ok(len) => drop(answer.drain(..len)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    /// Says a line back.
    struct Echo;

    impl ServeProtocol for Echo {
        const LONGEST: usize = 64;

        fn is_whole(question: &[u8]) -> bool {
            question.ends_with(b"\n")
        }

        fn answer(&mut self, question: &[u8]) -> Option<Vec<u8>> {
            (question != b"end\n").then(|| question.to_vec())
        }
    }

    fn with_server(patience: Duration, scene: impl FnOnce(&dyn Fn() -> TcpStream)) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopper) = io::pipe().unwrap();
        std::thread::scope(|scope| {
            let server = scope.spawn(|| serve(&listener, &stop, patience, &mut Echo));
            scene(&|| TcpStream::connect(address).unwrap());
            drop(stopper);
            server.join().unwrap().unwrap();
        });
    }

    fn asked(mut stream: TcpStream, line: &str) -> String {
        stream.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        answer
    }

    #[test]
    fn a_client_that_says_nothing_holds_up_neither_others_nor_the_end() {
        // A conversation may last for an hour here: anything that ends before that did not wait for it.
        with_server(Duration::from_secs(3_600), |connect| {
            let silent = connect();
            let mut slow = connect();
            slow.write_all(b"h").unwrap();
            for _ in 0..10 {
                assert_eq!(asked(connect(), "hello\n"), "hello\n");
            }
            slow.write_all(b"ello\n").unwrap();
            let mut answer = String::new();
            BufReader::new(slow).read_line(&mut answer).unwrap();
            assert_eq!(answer, "hello\n");
            std::mem::forget(silent);
        });
    }

    #[test]
    fn a_client_that_drips_bytes_is_let_go_at_its_deadline() {
        with_server(Duration::from_millis(50), |connect| {
            let mut dripping = connect();
            let clock = Clock::start();
            while dripping.write_all(b"x").is_ok() {
                assert!(clock.elapsed() < Duration::from_secs(60), "still listened to");
                std::thread::sleep(Duration::from_millis(10));
            }
        });
    }

    #[test]
    fn more_clients_than_there_is_room_for_do_not_shut_out_the_next() {
        with_server(Duration::from_secs(3_600), |connect| {
            let silent: Vec<TcpStream> = (0..2 * MOST_CLIENTS).map(|_| connect()).collect();
            assert_eq!(asked(connect(), "hello\n"), "hello\n");
            drop(silent);
        });
    }

    #[test]
    fn a_protocol_without_an_answer_ends_the_server() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.write_all(b"end\n").unwrap();
        let (stop, _stopper) = io::pipe().unwrap();
        serve(&listener, &stop, PATIENCE, &mut Echo).unwrap();
    }
}
