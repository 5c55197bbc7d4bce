//! Reports over TCP: the meter connects, and connects again.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::Envelope;
use super::frame::{self, Broken, GREETING};
use super::inlet::Gate;
use super::post::Way;

/// How long to wait for a connection, for a greeting, and for room on a connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// A meter tells of idle batches too; one that is silent for so long is gone.
const SILENCE: Duration = Duration::from_secs(60);
/// How often someone who waits looks whether it is time to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Connections at a time.
const MOST: usize = 256;

/// A connection that is there when it is needed.
#[derive(Debug)]
pub struct TcpOut {
    address: String,
    stream: Option<TcpStream>,
}

impl TcpOut {
    pub fn new(address: &str) -> Self {
        Self { address: address.to_owned(), stream: None }
    }

    fn connect(&self) -> Result<TcpStream, String> {
        let resolved = self.address.to_socket_addrs().map_err(|error| error.to_string())?;
        let mut last = "no such host".to_owned();
        for address in resolved {
            match greet(&address) {
                Ok(stream) => return Ok(stream),
                Err(Broken::Io(error)) if error.kind() == ErrorKind::ConnectionRefused => {
                    last = "connection refused: is `hitless radar collect` running there?".to_owned();
                }
                Err(Broken::Io(error)) if is_timeout(&error) => last = "no answer in time".to_owned(),
                Err(broken) => last = format!("what listens there is no collector of ours: it {broken}"),
            }
        }
        Err(last)
    }
}

impl Way for TcpOut {
    fn send(&mut self, envelope: &Envelope) -> Result<(), String> {
        let mut stream = match self.stream.take() {
            Some(stream) if !has_ended(&stream) => stream,
            _ => self.connect()?,
        };
        frame::write(&mut stream, envelope).map_err(|error| error.to_string())?;
        self.stream = Some(stream);
        Ok(())
    }
}

fn greet(address: &std::net::SocketAddr) -> Result<TcpStream, Broken> {
    let mut stream = TcpStream::connect_timeout(address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&GREETING)?;
    let mut said = [0; GREETING.len()];
    stream.read_exact(&mut said)?;
    frame::check_greeting(said)?;
    Ok(stream)
}

/// The collector says nothing after its greeting, so there is only one thing that can be read: that it has gone.
/// Without looking, the first report after that would vanish.
fn has_ended(stream: &TcpStream) -> bool {
    let look = || {
        stream.set_nonblocking(true)?;
        let seen = stream.peek(&mut [0]);
        stream.set_nonblocking(false)?;
        seen
    };
    !matches!(look(), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Takes connections until told to end, each on a thread of its own.
pub fn listen(listener: &TcpListener, gate: &Gate<'_>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let connected = &AtomicUsize::new(0);
    thread::scope(|scope| {
        while !gate.is_closed() {
            let (stream, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                // Whatever was wrong with that one, others may still come.
                Err(_) => {
                    thread::sleep(LOOK_EVERY);
                    continue;
                }
            };
            if connected.fetch_add(1, Ordering::Relaxed) >= MOST {
                connected.fetch_sub(1, Ordering::Relaxed);
                gate.tell(&format!("{peer}: turned away, {MOST} meters are connected already"));
                continue;
            }
            scope.spawn(move || {
                match serve(stream, gate) {
                    Ok(()) => {}
                    Err(_) if gate.is_closed() => {}
                    Err(Broken::Io(error)) if is_timeout(&error) => gate.tell(&format!("{peer}: silent, and let go")),
                    Err(broken) => gate.tell(&format!("{peer}: {broken}; let go")),
                }
                connected.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    Ok(())
}

fn serve(mut stream: TcpStream, gate: &Gate<'_>) -> Result<(), Broken> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&GREETING)?;
    let mut said = [0; GREETING.len()];
    let mut patient = Patient { stream: &mut stream, gate, patience: PATIENCE };
    patient.read_exact(&mut said)?;
    frame::check_greeting(said)?;
    patient.patience = SILENCE;
    while let Some(envelope) = frame::read(&mut patient)? {
        if !gate.pass(envelope) {
            break;
        }
    }
    Ok(())
}

/// Waits for bytes, but not for ever, and not longer than the collector runs.
struct Patient<'a> {
    stream: &'a mut TcpStream,
    gate: &'a Gate<'a>,
    patience: Duration,
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut waited = Duration::ZERO;
        loop {
            match self.stream.read(buffer) {
                Err(error) if is_timeout(&error) && waited < self.patience => {
                    if self.gate.is_closed() {
                        // `read_exact` would try again after `Interrupted`.
                        return Err(io::Error::from(ErrorKind::ConnectionAborted));
                    }
                    waited += LOOK_EVERY;
                }
                result => return result,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::{self, Receiver};

    use super::*;
    use crate::digests::{Inlet, Place, Received, post};

    const PATIENCE: Duration = Duration::from_secs(20);

    /// A collector on a free port, for as long as a story lasts; what it had to say.
    fn with_collector(story: impl FnOnce(SocketAddr, &Receiver<Received>)) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, said) = (AtomicBool::new(false), Mutex::new(String::new()));
        let (put, received) = mpsc::sync_channel(8);
        thread::scope(|scope| {
            scope.spawn(|| {
                let tell = |line: &str| said.lock().unwrap().push_str(line);
                Inlet::Tcp(listener).run(&put, &stop, &tell).unwrap();
            });
            story(address, &received);
            stop.store(true, Ordering::Relaxed);
        });
        said.into_inner().unwrap()
    }

    fn next(received: &Receiver<Received>) -> Received {
        received.recv_timeout(PATIENCE).unwrap()
    }

    #[test]
    fn reports_come_in_order_and_nothing_is_said() {
        let said = with_collector(|address, received| {
            let (mut outlet, post) = post(Place::Tcp(address.to_string()), 7);
            let reports: Vec<Vec<u8>> = (0..20).map(|nth| vec![nth; 1_000]).collect();
            thread::scope(|scope| {
                let sending = scope.spawn(|| post.run(&|line| panic!("{line}")));
                for report in &reports {
                    assert!(outlet.put(report.clone()));
                    assert_eq!(next(received), Received::Report { life: 7, report: report.clone() });
                }
                drop(outlet);
                let sent = sending.join().unwrap();
                assert_eq!((sent.reports, sent.dropped), (20, 0));
            });
        });
        assert_eq!(said, "");
    }

    #[test]
    fn a_collector_that_starts_late_misses_what_found_no_room_and_knows_how_much() {
        // Nobody listens there now, and nobody else will be given the port while this socket has it.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (mut outlet, post) = post(Place::Tcp(address.to_string()), 7);
        let kept = (0..400).filter(|nth| outlet.put(vec![*nth as u8])).count() as u64;
        assert!(kept < 400);
        let (put, received) = mpsc::sync_channel(1_000);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let sending = scope.spawn(|| post.run(&|_| ()));
            scope.spawn(|| Inlet::Tcp(listener).run(&put, &stop, &|_| ()).unwrap());
            for nth in 0..kept {
                assert_eq!(next(&received), Received::Report { life: 7, report: vec![nth as u8] });
            }
            outlet.put(b"last".to_vec());
            assert_eq!(next(&received), Received::Missing { life: 7, reports: 400 - kept });
            assert_eq!(next(&received), Received::Report { life: 7, report: b"last".to_vec() });
            drop(outlet);
            assert_eq!(sending.join().unwrap().dropped, 400 - kept);
            stop.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn who_speaks_something_else_is_let_go_with_a_line_and_others_go_on() {
        let said = with_collector(|address, received| {
            let mut stranger = TcpStream::connect(address).unwrap();
            stranger.set_read_timeout(Some(PATIENCE)).unwrap();
            stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            let mut heard = Vec::new();
            // Closed with what was not read, which some systems call reset.
            let _ = stranger.read_to_end(&mut heard);
            assert_eq!(heard, GREETING);
            let mut liar = TcpStream::connect(address).unwrap();
            liar.set_read_timeout(Some(PATIENCE)).unwrap();
            liar.write_all(&[&GREETING[..], &u32::MAX.to_le_bytes()].concat()).unwrap();
            let _ = liar.read_to_end(&mut Vec::new());
            let mut way = TcpOut::new(&address.to_string());
            let report = crate::digests::squeeze::squeeze(b"fine");
            way.send(&Envelope { life: 1, number: 0, report }).unwrap();
            assert_eq!(next(received), Received::Report { life: 1, report: b"fine".to_vec() });
        });
        assert!(said.contains("`GET / HT`") && said.contains("announced a report of 4294967295 bytes"), "{said}");
    }

    #[test]
    fn a_meter_says_what_is_wrong_with_the_other_side() {
        let closed = {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            listener.local_addr().unwrap().to_string()
        };
        let envelope = Envelope { life: 1, number: 0, report: Vec::new() };
        let refused = TcpOut::new(&closed).send(&envelope).unwrap_err();
        assert!(refused.contains("is `hitless radar collect` running there?"), "{refused}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::scope(|scope| {
            scope.spawn(|| listener.accept().unwrap().0.write_all(b"220 mail.example ready\r\n").unwrap());
            let foreign = TcpOut::new(&address).send(&envelope).unwrap_err();
            assert!(foreign.contains("no collector of ours") && foreign.contains("`220 mail`"), "{foreign}");
        });
    }
}
