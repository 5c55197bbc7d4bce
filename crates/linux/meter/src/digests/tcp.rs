//! The meter's way to a collector over TCP: it connects, and connects again.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use super::Envelope;
use super::answer::ReceivedAnswer;
use super::frame::{self, LONGEST_WORD, MeterMessage, PeerError};
use super::report_queue::ReportTransport;
use super::seal::{NONCE, ReportSession, TAG};
use bus::key::{OrderKey, nonce};

/// The usual patience with a collector.
const PATIENCE: Duration = Duration::from_secs(2);

/// A connection that is there when it is needed.
#[derive(Debug)]
pub(crate) struct TcpTransport {
    address: String,
    key: Option<OrderKey>,
    /// Longest wait for a connection, for each part of a greeting, and for room on a connection.
    patience: Duration,
    connected: Option<CollectorConnection>,
    bytes_heard: u64,
}

#[derive(Debug)]
struct CollectorConnection {
    stream: TcpStream,
    session: Option<ReportSession>,
    /// Bytes of messages that have arrived.
    inbox: Vec<u8>,
    has_ended: bool,
}

impl TcpTransport {
    pub(crate) fn new(address: &str, key: Option<OrderKey>) -> Self {
        Self::with_patience(address, key, PATIENCE)
    }

    pub(crate) fn with_patience(address: &str, key: Option<OrderKey>, patience: Duration) -> Self {
        Self { address: address.to_owned(), key, patience, connected: None, bytes_heard: 0 }
    }

    pub(crate) fn disconnect(&mut self) {
        self.connected = None;
    }

    /// Bytes that the collector has sent so far.
    pub(crate) fn bytes_heard(&self) -> u64 {
        self.bytes_heard
    }

    fn connect(&self) -> Result<CollectorConnection, String> {
        let resolved = self.address.to_socket_addrs().map_err(|error| error.to_string())?;
        let mut last = "no such host".to_owned();
        for address in resolved {
            match greet(&address, self.key.as_ref(), self.patience) {
                Ok(connected) => return Ok(connected),
                Err(PeerError::Io(error)) if error.kind() == ErrorKind::ConnectionRefused => {
                    last = "connection refused: is `hitless radar collect` running there?".to_owned();
                }
                Err(PeerError::Io(error)) if is_timeout(&error) => last = "no answer in time".to_owned(),
                Err(PeerError::Io(error)) if self.key.is_some() && error.kind() == ErrorKind::UnexpectedEof => {
                    last = "the collector does not take our key: give both the same --key".to_owned();
                }
                Err(broken @ (PeerError::Sealed(_) | PeerError::Forged)) => last = format!("the collector {broken}"),
                Err(broken) => last = format!("what listens there is no collector of ours: it {broken}"),
            }
        }
        Err(last)
    }
}

impl ReportTransport for TcpTransport {
    fn send(&mut self, envelope: &Envelope) -> Result<(), String> {
        if let Some(connection) = &mut self.connected {
            self.bytes_heard += connection.listen();
        }
        let mut connection = match self.connected.take() {
            Some(connection) if !connection.has_ended => connection,
            _ => self.connect()?,
        };
        let written = frame::write(&mut connection.stream, envelope, connection.session.as_mut());
        written.map_err(|error| error.to_string())?;
        self.connected = Some(connection);
        Ok(())
    }

    fn hear(&mut self, _life: u64) -> Vec<ReceivedAnswer> {
        let Some(connection) = &mut self.connected else { return Vec::new() };
        self.bytes_heard += connection.listen();
        let mut heard = Vec::new();
        loop {
            match frame::take_message(&mut connection.inbox, connection.session.as_mut()) {
                Ok(Some(MeterMessage::Answer(answer))) => heard.push(ReceivedAnswer::Sealed(answer)),
                Ok(Some(MeterMessage::Question { number, body })) => {
                    heard.push(ReceivedAnswer::Question { number, body });
                }
                Ok(Some(MeterMessage::Word(word))) => heard.push(ReceivedAnswer::Word(word)),
                Ok(None) => return heard,
                // It is no collector of ours, or something was changed on the way.
                Err(_) => {
                    self.connected = None;
                    heard.push(ReceivedAnswer::Unsealed);
                    return heard;
                }
            }
        }
    }

    fn reply(&mut self, question: u32, body: &[u8]) -> Result<(), String> {
        let Some(mut connection) = self.connected.take() else { return Ok(()) };
        let written = frame::write_reply(&mut connection.stream, question, body, connection.session.as_mut());
        written.map_err(|error| error.to_string())?;
        self.connected = Some(connection);
        Ok(())
    }

    fn is_connected(&self) -> bool {
        self.connected.as_ref().is_some_and(|connection| !connection.has_ended)
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let connection = self.connected.iter().filter(|connection| !connection.has_ended);
        connection.map(|connection| connection.stream.as_raw_fd()).collect()
    }
}

fn greet(address: &SocketAddr, key: Option<&OrderKey>, patience: Duration) -> Result<CollectorConnection, PeerError> {
    let mut stream = TcpStream::connect_timeout(address, patience)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(&frame::greeting(key.is_some()))?;
    let mut said = [0; 8];
    stream.read_exact(&mut said)?;
    frame::check_greeting(said, key.is_some())?;
    let connected = |stream, session| CollectorConnection { stream, session, inbox: Vec::new(), has_ended: false };
    let Some(key) = key else { return Ok(connected(stream, None)) };
    let (ours, mut theirs, mut proof) = (nonce()?, [0; NONCE], [0; TAG]);
    stream.read_exact(&mut theirs)?;
    let session = ReportSession::new(key, theirs, ours);
    stream.write_all(&ours)?;
    stream.write_all(&session.meter_proof())?;
    stream.read_exact(&mut proof)?;
    if proof == session.collector_proof() { Ok(connected(stream, Some(session))) } else { Err(PeerError::Forged) }
}

impl CollectorConnection {
    /// Takes in what the collector has said, without waiting, and notices that it has gone: the first report after that would
    /// vanish. Bytes that came.
    fn listen(&mut self) -> u64 {
        let mut bytes = [0; 4_096];
        let before = self.inbox.len();
        while !self.has_ended && self.inbox.len() < 2 * LONGEST_WORD {
            match self.read_now(&mut bytes) {
                Ok(0) => self.has_ended = true,
                Ok(read) => self.inbox.extend_from_slice(&bytes[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => self.has_ended = error.kind() != ErrorKind::Interrupted,
            }
        }
        (self.inbox.len() - before) as u64
    }

    fn read_now(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_nonblocking(true)?;
        let read = self.stream.read(bytes);
        self.stream.set_nonblocking(false)?;
        read
    }
}

pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::Mutex;
    use std::thread;

    use units::StopFlag;

    use super::*;
    use crate::digests::question::{MeterQuestion, QuestionResponder};
    use crate::digests::{CollectorAddress, CollectorReports, ReceivedReport, ReportReceiver, queue, report_queue};

    const PATIENCE: Duration = Duration::from_secs(20);

    /// A collector on a free port, for as long as a story lasts; what it had to say.
    fn with_collector(key: Option<&OrderKey>, story: impl FnOnce(SocketAddr, &CollectorReports)) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, said) = (StopFlag::new(), Mutex::new(String::new()));
        let (put, received) = queue(64 << 10);
        thread::scope(|scope| {
            scope.spawn(|| {
                let tell = |line: &str| said.lock().unwrap().push_str(line);
                ReportReceiver::from(listener).run(key, &put, &stop, &tell).unwrap();
            });
            story(address, &received);
            stop.stop();
        });
        said.into_inner().unwrap()
    }

    fn next(received: &CollectorReports) -> ReceivedReport {
        received.recv_timeout(PATIENCE).unwrap()
    }

    fn came(life: u64, report: &[u8]) -> ReceivedReport {
        ReceivedReport { life, flags: 1, report: report.to_vec(), ..ReceivedReport::default() }
    }

    #[test]
    fn reports_come_in_order_and_nothing_is_said() {
        let said = with_collector(None, |address, received| {
            let (mut outlet, sender) = report_queue(CollectorAddress::Tcp(address.to_string()), 7, None);
            let reports: Vec<Vec<u8>> = (0..20).map(|nth| vec![nth; 1_000]).collect();
            thread::scope(|scope| {
                let sending = scope.spawn(|| sender.run(&|line| panic!("{line}")));
                for report in &reports {
                    assert!(outlet.put(report.clone()));
                    assert_eq!(next(received), came(7, report));
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
        let (mut outlet, sender) = report_queue(CollectorAddress::Tcp(address.to_string()), 7, None);
        let kept = (0..400).filter(|nth| outlet.put(vec![*nth as u8])).count() as u64;
        assert!(kept < 400);
        let (put, received) = queue(1 << 20);
        let stop = StopFlag::new();
        thread::scope(|scope| {
            let sending = scope.spawn(|| sender.run(&|_| ()));
            scope.spawn(|| ReportReceiver::from(listener).run(None, &put, &stop, &|_| ()).unwrap());
            for nth in 0..kept {
                assert_eq!(next(&received), came(7, &[nth as u8]));
            }
            outlet.put(b"last".to_vec());
            assert_eq!(next(&received), ReceivedReport { missing: 400 - kept, ..came(7, b"last") });
            drop(outlet);
            assert_eq!(sending.join().unwrap().dropped, 400 - kept);
            stop.stop();
        });
    }

    #[test]
    fn who_speaks_something_else_is_let_go_with_a_line_and_others_go_on() {
        let said = with_collector(None, |address, received| {
            let mut stranger = TcpStream::connect(address).unwrap();
            stranger.set_read_timeout(Some(PATIENCE)).unwrap();
            stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            let mut heard = Vec::new();
            // Closed with what was not read, which some systems call reset.
            let _ = stranger.read_to_end(&mut heard);
            assert_eq!(heard, frame::greeting(false));
            let mut liar = TcpStream::connect(address).unwrap();
            liar.set_read_timeout(Some(PATIENCE)).unwrap();
            liar.write_all(&[&frame::greeting(false)[..], &u32::MAX.to_le_bytes()].concat()).unwrap();
            let _ = liar.read_to_end(&mut Vec::new());
            let mut way = TcpTransport::new(&address.to_string(), None);
            let report = crate::digests::run_length::encode(b"fine");
            way.send(&Envelope { life: 1, number: 0, flags: 1, subject: None, report }).unwrap();
            assert_eq!(next(received), came(1, b"fine"));
        });
        assert!(said.contains("`GET / HT`") && said.contains("announced a report of 4294967295 bytes"), "{said}");
    }

    #[test]
    fn a_meter_says_what_is_wrong_with_the_other_side() {
        let closed = {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            listener.local_addr().unwrap().to_string()
        };
        let envelope = Envelope { life: 1, number: 0, flags: 1, subject: None, report: Vec::new() };
        let refused = TcpTransport::new(&closed, None).send(&envelope).unwrap_err();
        assert!(refused.contains("is `hitless radar collect` running there?"), "{refused}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::scope(|scope| {
            scope.spawn(|| listener.accept().unwrap().0.write_all(b"220 mail.example ready\r\n").unwrap());
            let foreign = TcpTransport::new(&address, None).send(&envelope).unwrap_err();
            assert!(foreign.contains("no collector of ours") && foreign.contains("`220 mail`"), "{foreign}");
        });
    }

    /// A collector that takes every second report of a meter, and what that meter knows at its end.
    fn every_second(key: Option<OrderKey>) -> (crate::digests::ReportCounts, String) {
        let told = Mutex::new(String::new());
        let mut counts = None;
        with_collector(key.clone().as_ref(), |address, received| {
            let (mut outlet, sender) = report_queue(CollectorAddress::Tcp(address.to_string()), 7, key);
            thread::scope(|scope| {
                let sending = scope.spawn(|| sender.run(&|line| told.lock().unwrap().push_str(line)));
                for nth in 0..10 {
                    outlet.put(vec![nth; 100]);
                    let report = next(received);
                    received.answer(report.life, (nth % 2 == 1).then_some("its clock is 90 s away: set both by NTP"));
                }
                drop(outlet);
                counts = Some(sending.join().unwrap());
            });
        });
        (counts.unwrap(), told.into_inner().unwrap())
    }

    #[test]
    fn a_meter_whose_reports_are_refused_hears_how_many_and_why() {
        for key in [None, Some(OrderKey::new([7; 16]))] {
            let (counts, told) = every_second(key);
            assert_eq!((counts.reports, counts.taken, counts.refused), (10, 5, 5), "{counts:?}");
            assert_eq!(counts.refusal.as_deref(), Some("its clock is 90 s away: set both by NTP"));
            assert!(told.contains("refuses reports") && told.contains("set both by NTP"), "{told}");
        }
    }

    #[test]
    fn an_older_end_is_refused_by_its_version() {
        let said = with_collector(None, |address, _| {
            let mut old = TcpStream::connect(address).unwrap();
            old.set_read_timeout(Some(PATIENCE)).unwrap();
            old.write_all(b"HLRM\x01\0\x01\0").unwrap();
            let _ = old.read_to_end(&mut Vec::new());
        });
        assert!(said.contains("speaks version 1 and we speak 2: use the same hitless at both ends"), "{said}");
    }

    /// Doubles what it is asked, unless it begins with 9.
    struct Doubling;

    impl QuestionResponder for Doubling {
        fn reply(&self, body: &[u8]) -> Option<Vec<u8>> {
            (body.first() != Some(&9)).then(|| body.repeat(2))
        }
    }

    #[test]
    fn a_question_reaches_the_meter_and_its_reply_the_collector() {
        for key in [None, Some(OrderKey::new([7; 16]))] {
            with_collector(key.clone().as_ref(), |address, received| {
                thread::scope(|scope| {
                    let (mut outlet, sender) = report_queue(CollectorAddress::Tcp(address.to_string()), 7, key);
                    scope.spawn(move || sender.run_with(&|line| panic!("{line}"), &Doubling));
                    outlet.put(b"fine".to_vec());
                    assert_eq!(next(received), came(7, b"fine"));
                    for (number, body) in [(1, &[9][..]), (2, b"which?")] {
                        assert!(received.ask(MeterQuestion { life: 7, number, body: body.to_vec() }));
                    }
                    let reply = next(received);
                    assert_eq!((reply.life, reply.question), (7, Some(2)));
                    assert_eq!(reply.report, b"which?which?");
                    drop(outlet);
                });
            });
        }
    }

    #[test]
    fn a_reply_that_nobody_asked_for_is_not_passed_on() {
        with_collector(None, |address, received| {
            let mut way = TcpTransport::new(&address.to_string(), None);
            way.send(&fine()).unwrap();
            way.reply(3, b"unasked").unwrap();
            way.send(&Envelope { number: 1, ..fine() }).unwrap();
            assert_eq!((next(received), next(received)), (came(1, b"fine"), came(1, b"fine")));
        });
    }

    #[test]
    fn what_is_no_answer_ends_the_connection_and_not_the_meter() {
        let session = || ReportSession::new(&OrderKey::new([7; 16]), [1; NONCE], [2; NONCE]);
        let answer = crate::digests::answer::ReportAnswer { life: 7, taken: 3, ..Default::default() };
        let mut bytes = Vec::new();
        frame::write_answer(&mut bytes, &answer, Some(&mut session())).unwrap();
        for end in 0..bytes.len() {
            assert!(frame::take_message(&mut bytes[..end].to_vec(), Some(&mut session())).unwrap().is_none());
        }
        let whole = frame::take_message(&mut bytes.clone(), Some(&mut session())).unwrap();
        assert_eq!(whole, Some(MeterMessage::Answer(answer)));
        for at in 4..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(frame::take_message(&mut changed, Some(&mut session())).is_err(), "byte {at}");
        }
        for wrong in [&[0xff; 8][..], &[0; 8]] {
            assert!(frame::take_message(&mut wrong.to_vec(), None).is_err());
        }
    }

    fn fine() -> Envelope {
        Envelope { life: 1, number: 0, flags: 1, subject: None, report: crate::digests::run_length::encode(b"fine") }
    }

    #[test]
    fn with_a_key_only_those_who_have_it_are_heard() {
        let key = OrderKey::new([7; 16]);
        let said = with_collector(Some(&key), |address, received| {
            let address = address.to_string();
            let refused = |key| TcpTransport::new(&address, key).send(&fine()).unwrap_err();
            let without = refused(None);
            assert!(without.contains("has a key and we have none"), "{without}");
            let wrong = refused(Some(OrderKey::new([8; 16])));
            assert!(wrong.contains("does not take our key"), "{wrong}");
            TcpTransport::new(&address, Some(key.clone())).send(&fine()).unwrap();
            assert_eq!(next(received), came(1, b"fine"));
        });
        assert!(said.contains("does not have our key"), "{said}");
        with_collector(None, |address, _| {
            let refused = TcpTransport::new(&address.to_string(), Some(key.clone())).send(&fine()).unwrap_err();
            assert!(refused.contains("has no key and we have one"), "{refused}");
        });
    }

    /// All that a meter ever said to one collector, played to it again on a connection of its own.
    #[test]
    fn a_recorded_connection_played_again_is_refused() {
        let key = OrderKey::new([7; 16]);
        let said = with_collector(Some(&key), |address, received| {
            let tap = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let tapped = tap.local_addr().unwrap().to_string();
            let recorded = thread::scope(|scope| {
                let relay = scope.spawn(|| {
                    let (mut meter, mut collector) = (tap.accept().unwrap().0, TcpStream::connect(address).unwrap());
                    let mut recorded = Vec::new();
                    // Greeting and nonce, each way; proof, each way; the report.
                    for (from_meter, length) in [(true, 8), (false, 24), (true, 24), (false, 8)] {
                        let mut bytes = vec![0; length];
                        let (from, to) =
                            if from_meter { (&mut meter, &mut collector) } else { (&mut collector, &mut meter) };
                        from.read_exact(&mut bytes).unwrap();
                        to.write_all(&bytes).unwrap();
                        recorded.extend(bytes.iter().filter(|_| from_meter));
                    }
                    let mut rest = Vec::new();
                    meter.read_to_end(&mut rest).unwrap();
                    collector.write_all(&rest).unwrap();
                    recorded.extend(rest);
                    recorded
                });
                TcpTransport::new(&tapped, Some(key.clone())).send(&fine()).unwrap();
                relay.join().unwrap()
            });
            assert_eq!(next(received), came(1, b"fine"), "as recorded, it was fine");
            let mut again = TcpStream::connect(address).unwrap();
            again.set_read_timeout(Some(PATIENCE)).unwrap();
            again.write_all(&recorded).unwrap();
            let _ = again.read_to_end(&mut Vec::new());
            TcpTransport::new(&address.to_string(), Some(key.clone())).send(&Envelope { number: 1, ..fine() }).unwrap();
            assert_eq!(next(received), came(1, b"fine"), "and nothing came in between");
        });
        assert!(said.contains("does not have our key"), "{said}");
    }

    /// Opens more connections than there are places, all of them silent.
    #[test]
    fn silent_connections_do_not_shut_out_a_meter() {
        with_collector(None, |address, received| {
            let silent: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
            let mut way = TcpTransport::new(&address.to_string(), None);
            let mut tries = 0;
            while let Err(why) = way.send(&fine()) {
                tries += 1;
                assert!(tries < 20, "{why}");
            }
            assert_eq!(next(received), came(1, b"fine"));
            drop(silent);
        });
    }

    #[test]
    fn who_sends_a_byte_now_and_then_is_let_go_all_the_same() {
        let said = with_collector(None, |address, _| {
            let mut slow = TcpStream::connect(address).unwrap();
            let bytes = [&frame::greeting(false)[..], &1_000_u32.to_le_bytes(), &[0; 900]].concat();
            let ended = bytes.iter().any(|byte| {
                thread::sleep(Duration::from_millis(100));
                slow.write_all(&[*byte]).is_err()
            });
            assert!(ended, "it could go on for ever");
        });
        assert!(said.contains("silent, and let go"), "{said}");
    }
}
