//! A collector that listens: connections of meters, and of any other peer.
//!
//! No connection keeps a place that others need. One that has not sent anything useful in a few seconds is closed; each
//! address has at most a quarter of the places; and where all are taken, the collector closes the connection that has
//! been there longest without a report, or has been silent longest.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use socket2::SockRef;

use super::answer::ReportAnswer;
use super::frame::{self, CollectorMessage, PeerError};
use super::question::ConnectionQuestions;
use super::report_receiver::ReportGate;
use super::seal::{NONCE, ReportSession, TAG};
use super::tcp::is_timeout;
use bus::key::nonce;
use linux::poll::{self, Readiness};

/// Longest time from the connection to the end of the first report: meters connect when they have one.
const FIRST_REPORT: Duration = Duration::from_secs(5);
/// Longest time from the first byte of a report to its last.
const ONE_REPORT: Duration = Duration::from_secs(10);
/// A meter reports idle batches too; one that is silent for this long is gone.
const SILENCE: Duration = Duration::from_secs(60);
/// A connection that is silent for this long makes room for others, if there is none.
const IDLE: Duration = Duration::from_secs(5);
/// Longest time that a write to a connection may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval at which a waiting thread checks if it is time to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A meter that hears nothing for longer than this is told that the collector is alive.
const WORD_EVERY: Duration = Duration::from_millis(250);
/// Connections that the kernel keeps until they are taken.
const BACKLOG: i32 = 4_096;
/// Share of the connections that one address may have.
const OF_ADDRESS: usize = 4;
/// A report that is longer takes room before it is read.
const SHORT: usize = 32 << 10;

/// Takes connections until the gate is closed, each on a thread of its own.
pub(crate) fn listen(listener: &TcpListener, gate: &ReportGate<'_>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    // A SYN that finds no room in the kernel's queue comes again after a second.
    SockRef::from(listener).listen(BACKLOG)?;
    let most = gate.most_connections;
    let (guests, threads) = (&Mutex::new(ConnectedMeters::new(most)), &AtomicUsize::new(0));
    thread::scope(|scope| {
        while !gate.is_closed() {
            // The thread of a closed connection may take a moment to end.
            let has_room = threads.load(Ordering::Relaxed) < 2 * most;
            let accepted = if has_room { listener.accept().ok() } else { None };
            // After any error of that one, others may still come.
            let Some((stream, peer)) = accepted else {
                // Many come at once when another collector has gone.
                if !has_room || poll::wait(&[(listener.as_raw_fd(), false)], LOOK_EVERY).is_err() {
                    thread::sleep(LOOK_EVERY);
                }
                continue;
            };
            let number = match stream.try_clone().map(|stream| lock(guests).admit(stream, peer, gate.now())) {
                Ok(Ok((number, let_go))) => {
                    let_go.iter().for_each(|line| gate.tell(line));
                    number
                }
                Ok(Err(line)) => {
                    gate.tell(&line);
                    continue;
                }
                Err(_) => continue,
            };
            threads.fetch_add(1, Ordering::Relaxed);
            scope.spawn(move || {
                let heard = || lock(guests).heard(number, gate.now());
                match serve(stream, gate, heard) {
                    Ok(()) => {}
                    Err(_) if gate.is_closed() || !lock(guests).all.contains_key(&number) => {}
                    Err(PeerError::Io(error)) if is_timeout(&error) => {
                        gate.tell(&format!("{peer}: silent, and let go"))
                    }
                    Err(broken) => gate.tell(&format!("{peer}: {broken}; let go")),
                }
                lock(guests).all.remove(&number);
                threads.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    Ok(())
}

fn lock<'a>(guests: &'a Mutex<ConnectedMeters>) -> MutexGuard<'a, ConnectedMeters> {
    guests.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connected meters, by numbers that are not given twice.
#[derive(Debug)]
struct ConnectedMeters {
    most: usize,
    all: BTreeMap<u64, ConnectedMeter>,
    next: u64,
}

#[derive(Debug)]
struct ConnectedMeter {
    peer: SocketAddr,
    /// Handle that ends the connection.
    stream: Option<TcpStream>,
    /// True once the connection has sent a report.
    is_meter: bool,
    /// Time at which it connected, or sent its latest report.
    heard: Duration,
}

impl ConnectedMeters {
    fn new(most: usize) -> Self {
        Self { most, all: BTreeMap::new(), next: 0 }
    }

    /// The number of the new one, with a line for each that had to go for it; or why it finds no place.
    fn admit(&mut self, stream: TcpStream, peer: SocketAddr, now: Duration) -> Result<(u64, Vec<String>), String> {
        let mut let_go = Vec::new();
        let address = peer.ip();
        let of_address = (self.most / OF_ADDRESS).max(1);
        if self.of(address) >= of_address {
            let full = format!("{peer}: turned away, {of_address} of that address are connected already");
            let_go.push(self.let_one_go(now, |guest| guest.peer.ip() == address).ok_or(full)?);
        }
        if self.all.len() >= self.most {
            let full = format!("{peer}: turned away, {} meters are connected already", self.most);
            let_go.push(self.let_one_go(now, |_| true).ok_or(full)?);
        }
        let number = self.next;
        self.next += 1;
        self.all.insert(number, ConnectedMeter { peer, stream: Some(stream), is_meter: false, heard: now });
        Ok((number, let_go))
    }

    fn of(&self, address: IpAddr) -> usize {
        self.all.values().filter(|guest| guest.peer.ip() == address).count()
    }

    fn heard(&mut self, number: u64, now: Duration) {
        if let Some(guest) = self.all.get_mut(&number) {
            (guest.is_meter, guest.heard) = (true, now);
        }
    }

    /// The one that can best be done without among these, if any can.
    fn let_one_go(&mut self, now: Duration, among: impl Fn(&ConnectedMeter) -> bool) -> Option<String> {
        let can_go = |guest: &ConnectedMeter| !guest.is_meter || now.saturating_sub(guest.heard) >= IDLE;
        let candidates = self.all.iter().filter(|(_, guest)| among(guest) && can_go(guest));
        let number = candidates.min_by_key(|(_, guest)| (guest.is_meter, guest.heard)).map(|(number, _)| *number)?;
        let guest = self.all.remove(&number)?;
        if let Some(stream) = guest.stream {
            // It may have ended by itself.
            let _ = stream.shutdown(Shutdown::Both);
        }
        Some(format!("{}: silent, and let go to make room for others", guest.peer))
    }
}

fn serve(mut stream: TcpStream, gate: &ReportGate<'_>, heard: impl Fn()) -> Result<(), PeerError> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // Meters wait for questions.
    stream.set_nodelay(true)?;
    let deadline = gate.now() + FIRST_REPORT;
    let mut patient = DeadlineReader { stream: &mut stream, gate, until: deadline };
    let mut session = greet(&mut patient)?;
    let (mut woken, waker) = io::pipe()?;
    let mut waker = Some(waker);
    let mut writer = MeterWriter::new(gate);
    let mut is_first = true;
    loop {
        patient.until = if is_first { deadline } else { gate.now() + SILENCE };
        if !patient.has_more(&mut woken, |stream| writer.write(stream, gate, session.as_mut()))? {
            return Ok(());
        }
        patient.until = patient.until.min(gate.now() + ONE_REPORT);
        let Some(length) = frame::read_length(&mut patient, session.is_some())? else { return Ok(()) };
        let taken = match length > SHORT {
            true => Some(gate.take(length).ok_or(io::Error::from(ErrorKind::ConnectionAborted))?),
            false => None,
        };
        let message = frame::read(&mut patient, length, session.as_mut())?;
        let is_wanted = match message {
            CollectorMessage::Report(envelope) => {
                heard();
                is_first = false;
                writer.life = Some(envelope.life);
                waker.take().into_iter().for_each(|waker| gate.questions().serve(envelope.life, waker));
                gate.pass(envelope, taken)
            }
            CollectorMessage::Reply { question, body } => match writer.life {
                Some(life) if writer.questions.answered(question) => gate.pass_reply(life, question, body, taken),
                // Nobody asked, or long ago.
                _ => true,
            },
        };
        if !is_wanted {
            return Ok(());
        }
        writer.write(patient.stream, gate, session.as_mut())?;
    }
}

/// Tells a meter what became of its reports, when that has changed, and not too often; and asks what is to be asked.
struct MeterWriter<'a> {
    gate: &'a ReportGate<'a>,
    life: Option<u64>,
    last: Option<ReportAnswer>,
    /// Time of the latest answer, and of the latest message.
    answered: Duration,
    said: Duration,
    /// The version of the announcements that it knows, and the turns of the thread that compares when that was said.
    version: u64,
    turns: u64,
    questions: ConnectionQuestions,
}

impl Drop for MeterWriter<'_> {
    fn drop(&mut self) {
        self.life.into_iter().for_each(|life| self.gate.questions().leave(life));
    }
}

impl<'a> MeterWriter<'a> {
    fn new(gate: &'a ReportGate<'a>) -> Self {
        let (answered, said) = (Duration::ZERO, Duration::ZERO);
        let questions = ConnectionQuestions::default();
        Self { gate, life: None, last: None, answered, said, version: 0, turns: 0, questions }
    }

    fn write(
        &mut self,
        stream: &mut TcpStream,
        gate: &ReportGate<'_>,
        mut session: Option<&mut ReportSession>,
    ) -> io::Result<()> {
        let now = gate.now();
        let Some(life) = self.life else { return Ok(()) };
        for (number, body) in gate.questions().take(life) {
            frame::write_question(stream, number, &body, session.as_deref_mut())?;
            self.questions.asked(number);
            self.said = now;
        }
        if now.saturating_sub(self.answered) >= LOOK_EVERY {
            let answer = gate.answers().of(life);
            if answer != self.last
                && let Some(answer) = &answer
            {
                frame::write_answer(stream, answer, session.as_deref_mut())?;
                (self.last, self.answered, self.said) = (Some(answer.clone()), now, now);
            }
        }
        let turns = gate.words().turns();
        let news = gate.words().after(self.version);
        if news.is_some() || now.saturating_sub(self.said) >= WORD_EVERY && turns != self.turns {
            let (version, said) = news.unwrap_or((self.version, Vec::new()));
            frame::write_word(stream, &said, session)?;
            (self.version, self.turns, self.said) = (version, turns, now);
        }
        Ok(())
    }
}

/// Says who we are, hears who they are, and where there is a key, whether they have it.
fn greet(patient: &mut DeadlineReader<'_>) -> Result<Option<ReportSession>, PeerError> {
    let key = patient.gate.key;
    let ours = nonce()?;
    patient.stream.write_all(&frame::greeting(key.is_some()))?;
    if key.is_some() {
        patient.stream.write_all(&ours)?;
    }
    let mut said = [0; 8];
    patient.read_exact(&mut said)?;
    frame::check_greeting(said, key.is_some())?;
    let Some(key) = key else { return Ok(None) };
    let (mut theirs, mut proof) = ([0; NONCE], [0; TAG]);
    patient.read_exact(&mut theirs)?;
    patient.read_exact(&mut proof)?;
    let session = ReportSession::new(key, ours, theirs);
    if proof != session.meter_proof() {
        return Err(PeerError::Forged);
    }
    patient.stream.write_all(&session.collector_proof())?;
    Ok(Some(session))
}

/// Waits for bytes, but not beyond a time, and not longer than the collector runs.
struct DeadlineReader<'a> {
    stream: &'a mut TcpStream,
    gate: &'a ReportGate<'a>,
    until: Duration,
}

impl DeadlineReader<'_> {
    /// Waits for the next byte; false if there are no more. Meanwhile `idle` is called now and then.
    fn has_more(
        &mut self,
        woken: &mut PipeReader,
        mut idle: impl FnMut(&mut TcpStream) -> io::Result<()>,
    ) -> io::Result<bool> {
        loop {
            let fds = [(self.stream.as_raw_fd(), false), (woken.as_raw_fd(), false)];
            let [came, asked] = poll::wait(&fds, LOOK_EVERY)?;
            if asked == Readiness::Ready {
                woken.read_exact(&mut [0])?;
            }
            if came != Readiness::Nothing || self.gate.is_closed() || self.gate.now() >= self.until {
                break;
            }
            idle(self.stream)?;
        }
        self.wait(|stream| stream.peek(&mut [0]), idle).map(|bytes| bytes > 0)
    }

    fn wait(
        &mut self,
        mut read: impl FnMut(&mut TcpStream) -> io::Result<usize>,
        mut idle: impl FnMut(&mut TcpStream) -> io::Result<()>,
    ) -> io::Result<usize> {
        loop {
            match read(self.stream) {
                Err(error) if is_timeout(&error) && self.gate.now() < self.until => {
                    if self.gate.is_closed() {
                        // `read_exact` would try again after `Interrupted`.
                        return Err(io::Error::from(ErrorKind::ConnectionAborted));
                    }
                    idle(self.stream)?;
                }
                // One byte now and then is not enough.
                Ok(some) if some > 0 && self.gate.now() >= self.until => return Err(ErrorKind::TimedOut.into()),
                result => return result,
            }
        }
    }
}

impl Read for DeadlineReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait(|stream| stream.read(buffer), |_| Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guests(of: impl IntoIterator<Item = (u8, bool, u64)>) -> ConnectedMeters {
        let guest = |(host, is_meter, heard)| ConnectedMeter {
            peer: SocketAddr::from(([10, 0, 0, host], 7)),
            stream: None,
            is_meter,
            heard: Duration::from_secs(heard),
        };
        let all: BTreeMap<u64, ConnectedMeter> = (0..).zip(of.into_iter().map(guest)).collect();
        ConnectedMeters { most: 256, next: all.len() as u64, all }
    }

    fn admit(guests: &mut ConnectedMeters, host: u8, second: u64) -> Result<(u64, Vec<String>), String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        guests.admit(stream, SocketAddr::from(([10, 0, 0, host], 9)), Duration::from_secs(second))
    }

    #[test]
    fn who_says_nothing_goes_before_who_reported_and_the_longest_silent_first() {
        let mut full = guests((0..256).map(|nth| ((nth / 60) as u8, nth != 9 && nth != 7, 100)));
        full.all.get_mut(&7).unwrap().heard = Duration::from_secs(99);
        let (_, gone) = admit(&mut full, 200, 101).unwrap();
        assert!(
            !full.all.contains_key(&7) && full.all.contains_key(&9) && gone[0].contains("to make room"),
            "{gone:?}"
        );
        admit(&mut full, 200, 101).unwrap();
        assert!(!full.all.contains_key(&9));
        full.all.values_mut().for_each(|guest| (guest.is_meter, guest.heard) = (true, Duration::from_secs(101)));
        assert!(admit(&mut full, 200, 102).unwrap_err().contains("256 meters are connected already"));
        assert!(admit(&mut full, 200, 107).is_ok(), "who has been silent makes room");
    }

    #[test]
    fn an_address_has_so_many_places_and_no_more() {
        let mut busy = guests((0..64).map(|_| (1, true, 100)));
        assert!(admit(&mut busy, 1, 101).unwrap_err().contains("64 of that address are connected already"));
        assert!(admit(&mut busy, 2, 101).is_ok());
    }
}
