//! A client's GETs, in memcached's protocol, and what answers them: memcached, or a server of our own if it is not there.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::Scope;
use std::time::Duration;

use linux::SystemError;
use units::StopFlag;

use crate::soak::{RunningProgram, SoakStream, Workshop, strange};
use crate::stage::{RackStage, address};
use load::RoundTrips;

/// memcached's own.
const PORT: u16 = 11_211;
/// The host that answers.
pub(super) const SERVER: usize = 1;
const KEY_LEN: usize = 64;
const VALUE_LEN: usize = 4 << 10;
/// Time after which a server checks again if it should end.
const TICK: Duration = Duration::from_millis(50);
/// GETs that have waited for longer when all is over have failed.
pub(super) const FAILED_AFTER: Duration = Duration::from_millis(100);

fn key() -> String {
    "k".repeat(KEY_LEN)
}

/// Server that answers GETs.
#[derive(Debug)]
pub(crate) enum GetServer {
    Memcached(#[expect(dead_code, reason = "ends when dropped")] RunningProgram),
    BuiltIn,
}

impl GetServer {
    pub(crate) fn program(&self) -> &'static str {
        match self {
            Self::Memcached(_) => "memcached",
            Self::BuiltIn => "built-in",
        }
    }

    /// Starts one on the server's host; none if called off.
    pub(crate) fn start<'scope>(
        stage: &RackStage,
        shop: &Workshop,
        scope: &'scope Scope<'scope, '_>,
        serving: &'scope StopFlag,
        stop: &StopFlag,
    ) -> Result<Option<Self>, SystemError> {
        let (host, here, port) = (stage.host(SERVER), address(SERVER).to_string(), PORT.to_string());
        // Memcached needs a user name if it runs as root; a namespace of our own has no other user.
        let args = ["-u", "root", "-l", &here, "-p", &port, "-U", "0", "-m", "64", "-t", "1"];
        if let Some(mut program) = RunningProgram::start("memcached", &args, "memcached.log", host, shop)? {
            return Ok(program.wait_until_listening(PORT, host, stop)?.then_some(Self::Memcached(program)));
        }
        let listener = host.with(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)))?;
        let listener = listener.map_err(|error| SystemError(format!("listen on port {PORT}: {error}")))?;
        scope.spawn(move || serve(&listener, serving));
        Ok(Some(Self::BuiltIn))
    }
}

/// Answers one client after the other: `get` and `set` of one value.
fn serve(listener: &TcpListener, over: &StopFlag) {
    // Without it the server would not end; nobody has connected yet.
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    std::thread::scope(|scope| {
        while !over.is_stopped() {
            match listener.accept() {
                // A client may leave at any moment.
                Ok((stream, _)) => drop(scope.spawn(|| converse(stream, over))),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    });
}

fn converse(stream: TcpStream, over: &StopFlag) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TICK))?;
    let mut reader = BufReader::new(stream);
    let (mut line, mut value) = (Vec::new(), Vec::new());
    while !over.is_stopped() {
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => continue,
            Err(error) => return Err(error),
        }
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        match text.split(' ').collect::<Vec<_>>()[..] {
            ["get", key] => {
                let head = format!("VALUE {key} 0 {}\r\n", value.len());
                reader.get_mut().write_all(&[head.as_bytes(), &value, b"\r\nEND\r\n"].concat())?;
            }
            ["set", _, _, _, len] => {
                let len = len.parse::<usize>().ok().filter(|len| *len <= 1 << 20);
                read_value(&mut reader, len.ok_or_else(|| strange("set without a length"))?, &mut value, over)?;
                reader.get_mut().write_all(b"STORED\r\n")?;
            }
            _ => reader.get_mut().write_all(b"ERROR\r\n")?,
        }
    }
    Ok(())
}

/// A value and the end of its line.
fn read_value(reader: &mut impl BufRead, len: usize, value: &mut Vec<u8>, over: &StopFlag) -> io::Result<()> {
    value.clear();
    while value.len() < len + 2 {
        match reader.fill_buf() {
            Ok([]) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => {
                let taken = more.len().min(len + 2 - value.len());
                value.extend_from_slice(&more[..taken]);
                reader.consume(taken);
            }
            Err(_) if !over.is_stopped() => {}
            Err(error) => return Err(error),
        }
    }
    value.truncate(len);
    Ok(())
}

/// Totals of a client's GETs.
#[derive(Debug, Default)]
pub(crate) struct GetTotals {
    pub trips: RoundTrips,
    pub gets: u64,
    pub failed: u64,
}

/// A client with one connection, which has set the value that it gets. In the namespace of the calling thread.
pub(crate) struct GetClient<'a>(SoakStream<'a>);

impl<'a> GetClient<'a> {
    pub(crate) fn connect(over: &'a StopFlag) -> io::Result<Self> {
        let mut stream = SoakStream::open(SocketAddr::new(address(SERVER), PORT), over)?;
        let mut request = format!("set {} 0 0 {VALUE_LEN}\r\n", key()).into_bytes();
        request.resize(request.len() + VALUE_LEN, b'v');
        request.extend(b"\r\n");
        stream.ask(&request)?;
        match stream.line()?.as_str() {
            "STORED" => Ok(Self(stream)),
            answer => Err(strange(format!("the server answered {answer:?} to set"))),
        }
    }

    fn get(&mut self) -> io::Result<()> {
        let Self(stream) = self;
        stream.ask(format!("get {}\r\n", key()).as_bytes())?;
        let head = stream.line()?;
        if head != format!("VALUE {} 0 {VALUE_LEN}", key()) {
            return Err(strange(format!("the server answered {head:?} to get")));
        }
        let mut intact = true;
        stream.take(VALUE_LEN as u64, |piece| intact &= piece.iter().all(|byte| *byte == b'v'))?;
        match (stream.line()?.as_str(), stream.line()?.as_str(), intact) {
            ("", "END", true) => Ok(()),
            _ => Err(strange("a value came that is not the one that was set")),
        }
    }

    /// One GET after the other until it is over.
    pub(crate) fn run(mut self, over: &StopFlag) -> io::Result<GetTotals> {
        let mut totals = GetTotals::default();
        while !over.is_stopped() {
            match self.get() {
                Ok(()) => {
                    totals.gets += 1;
                    totals.trips.record(self.0.waited());
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(error),
                Err(_) if over.is_stopped() => {
                    let waited = self.0.waited();
                    if waited > FAILED_AFTER {
                        totals.failed += 1;
                        totals.trips.record(waited);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(totals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_server_keeps_a_value_that_comes_in_pieces_and_gives_it_back() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (to, over) = (listener.local_addr().unwrap(), StopFlag::new());
        std::thread::scope(|scope| {
            scope.spawn(|| serve(&listener, &over));
            let mut stream = TcpStream::connect(to).unwrap();
            stream.write_all(b"set a 0 0 5\r\nab").unwrap();
            std::thread::sleep(2 * TICK);
            stream.write_all(b"cde\r\nget a\r\nwhat\r\n").unwrap();
            let lines: Vec<String> = BufReader::new(stream).lines().take(5).map(Result::unwrap).collect();
            assert_eq!(lines, ["STORED", "VALUE a 0 5", "abcde", "END", "ERROR"]);
            over.stop();
        });
    }
}
