//! TCP connections that begin with a request and never wait for longer than a tick.
//!
//! ```text
//!   client ──▶ magic 4 │ kind 4 │ congestion control 16 │ amount 8 │ seed 8 ──▶ server
//!          ◀── errno 4, zero for "ready" ◀──────────────────────────────────
//! ```
//!
//! Numbers are big-endian; the name is padded with zeros. Both ends set the congestion control before the first
//! payload byte, and the answer reports to the client when the far end could not: a result is never labelled with an
//! algorithm that only one direction used.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::str::FromStr;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::{TICK, context, interrupted, now};

const MAGIC: [u8; 4] = *b"HLTR";
const PREAMBLE: usize = 40;

/// A lost SYN costs this much, not the second that the kernel would wait before it sends another.
const CONNECT_TRY: Duration = Duration::from_millis(150);
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// The largest message a client may ask a server to keep in memory.
pub(crate) const LARGEST_MESSAGE: usize = 1 << 20;

/// The kernel's congestion controls that runs compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KernelCongestion {
    #[default]
    Cubic,
    Bbr,
    Reno,
}

impl KernelCongestion {
    pub const ALL: [Self; 3] = [Self::Cubic, Self::Bbr, Self::Reno];

    /// The kernel's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::Reno => "reno",
        }
    }
}

impl fmt::Display for KernelCongestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KernelCongestion {
    type Err = io::Error;

    fn from_str(name: &str) -> io::Result<Self> {
        Self::ALL.into_iter().find(|congestion| congestion.name() == name).ok_or_else(|| {
            let expected = Self::ALL.map(Self::name).join(", ");
            let message = format!("unknown congestion control {name:?}: expected one of {expected}");
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })
    }
}

/// Request of a client to the server for the rest of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadRequest {
    PingPong { size: usize },
    Bulk,
    Check { bytes: u64, seed: u64 },
}

fn encode(request: LoadRequest, congestion: KernelCongestion) -> [u8; PREAMBLE] {
    let (kind, amount, seed) = match request {
        LoadRequest::PingPong { size } => (1_u32, size as u64, 0),
        LoadRequest::Bulk => (2, 0, 0),
        LoadRequest::Check { bytes, seed } => (3, bytes, seed),
    };
    let mut preamble = [0; PREAMBLE];
    preamble[..4].copy_from_slice(&MAGIC);
    preamble[4..8].copy_from_slice(&kind.to_be_bytes());
    preamble[8..][..congestion.name().len()].copy_from_slice(congestion.name().as_bytes());
    preamble[24..32].copy_from_slice(&amount.to_be_bytes());
    preamble[32..].copy_from_slice(&seed.to_be_bytes());
    preamble
}

fn decode(preamble: &[u8; PREAMBLE]) -> io::Result<(LoadRequest, KernelCongestion)> {
    let refused = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    let word = |at: usize| u64::from_be_bytes(preamble[at..at + 8].try_into().expect("eight bytes"));
    if preamble[..4] != MAGIC {
        return Err(refused("not a request for traffic"));
    }
    let request = match u32::from_be_bytes(preamble[4..8].try_into().expect("four bytes")) {
        1 => match usize::try_from(word(24)) {
            Ok(size @ 1..=LARGEST_MESSAGE) => LoadRequest::PingPong { size },
            Ok(_) | Err(_) => return Err(refused("a message size out of range")),
        },
        2 => LoadRequest::Bulk,
        3 => LoadRequest::Check { bytes: word(24), seed: word(32) },
        _ => return Err(refused("an unknown kind of traffic")),
    };
    let name = preamble[8..24].split(|&byte| byte == 0).next().unwrap_or_default();
    Ok((request, String::from_utf8_lossy(name).parse()?))
}

/// End of the read of a whole message, errors aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageRead {
    Whole,
    /// The peer closed between two messages.
    Closed,
    /// The caller's time was over first.
    Over,
}

#[derive(Debug)]
pub(crate) struct LoadConnection {
    stream: TcpStream,
}

impl LoadConnection {
    /// Connects and waits until the far end is ready, or until `over`.
    pub(crate) fn open(
        to: SocketAddr,
        request: LoadRequest,
        congestion: KernelCongestion,
        over: &dyn Fn() -> bool,
    ) -> io::Result<Self> {
        let deadline = now() + CONNECT_WITHIN;
        let late = || over() || now() >= deadline;
        match Self::establish(to, request, congestion, &late) {
            // The far end may have heard of the stop first: no error is of interest then.
            Err(_) if over() => Err(interrupted(format!("stopped before {to} was ready"))),
            outcome => outcome,
        }
    }

    fn establish(
        to: SocketAddr,
        request: LoadRequest,
        congestion: KernelCongestion,
        late: &dyn Fn() -> bool,
    ) -> io::Result<Self> {
        let connection = Self::prepare(connect(to, congestion, late)?)?;
        let mut errno = [0; 4];
        let asked = connection.write_whole(&encode(request, congestion), late)?;
        match if asked { connection.read_whole(&mut errno, late)? } else { MessageRead::Over } {
            MessageRead::Whole => {}
            MessageRead::Closed => {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{to} refused the request")));
            }
            MessageRead::Over => return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{to} did not answer"))),
        }
        match i32::from_be_bytes(errno) {
            0 => Ok(connection),
            errno => {
                let error = io::Error::from_raw_os_error(errno);
                Err(context(format_args!("{to} cannot use TCP congestion control {congestion}"))(error))
            }
        }
    }

    /// The server's half of [`LoadConnection::open`]. `None` when the client left, or time was over, before it asked.
    pub(crate) fn accept(stream: TcpStream, over: &dyn Fn() -> bool) -> io::Result<Option<(Self, LoadRequest)>> {
        let connection = Self::prepare(stream)?;
        let mut preamble = [0; PREAMBLE];
        if connection.read_whole(&mut preamble, over)? != MessageRead::Whole {
            return Ok(None);
        }
        let (request, congestion) = decode(&preamble)?;
        let set = connection.set_congestion(congestion);
        let errno = set.as_ref().err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EINVAL));
        let told = connection.write_whole(&errno.to_be_bytes(), over)?;
        set?;
        Ok(told.then_some((connection, request)))
    }

    fn prepare(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true).map_err(context("cannot set TCP_NODELAY"))?;
        stream.set_read_timeout(Some(TICK)).map_err(context("cannot limit the wait for a read"))?;
        stream.set_write_timeout(Some(TICK)).map_err(context("cannot limit the wait for a write"))?;
        Ok(Self { stream })
    }

    fn set_congestion(&self, congestion: KernelCongestion) -> io::Result<()> {
        SockRef::from(&self.stream).set_tcp_congestion(congestion.name().as_bytes())
    }

    /// Closing drops what is still queued, which would otherwise go on filling the link beside the next run.
    pub(crate) fn discard_on_close(&self) -> io::Result<()> {
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).map_err(context("cannot set SO_LINGER"))
    }

    /// Reads wait until this much is there, or a tick has passed: to be woken for every segment would take more of the
    /// processor than the segment does. Less is no error.
    pub(crate) fn read_at_least(&self, bytes: i32) {
        _ = set_option(self.stream.as_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, &bytes.to_ne_bytes());
    }

    /// Segments that this end sent again since the connection began.
    pub(crate) fn retransmitted(&self) -> io::Result<u64> {
        const AT: usize = std::mem::offset_of!(libc::tcp_info, tcpi_total_retrans);
        let mut info = [0; size_of::<libc::tcp_info>()];
        get_option(self.stream.as_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)
            .map_err(context("cannot read TCP_INFO"))?;
        Ok(u32::from_ne_bytes(info[AT..AT + 4].try_into().expect("four bytes")).into())
    }

    /// Reads arrived bytes: `Some(0)` at the end of the stream, `None` when nothing came within a tick.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        or_tick((&self.stream).read(buffer))
    }

    pub(crate) fn read_whole(&self, message: &mut [u8], over: &dyn Fn() -> bool) -> io::Result<MessageRead> {
        let mut filled = 0;
        while filled < message.len() {
            match self.read(&mut message[filled..])? {
                Some(0) if filled == 0 => return Ok(MessageRead::Closed),
                Some(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed in mid-message")),
                progress => filled += progress.unwrap_or(0),
            }
            if filled < message.len() && over() {
                return Ok(MessageRead::Over);
            }
        }
        Ok(MessageRead::Whole)
    }

    /// False when time was over before the kernel took every byte.
    pub(crate) fn write_whole(&self, message: &[u8], over: &dyn Fn() -> bool) -> io::Result<bool> {
        let mut rest = message;
        while !rest.is_empty() {
            let count = or_tick((&self.stream).write(rest))?.unwrap_or(0);
            rest = &rest[count..];
            if !rest.is_empty() && over() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Congestion control is chosen first: a connection that begins with BBR, which may be this host's default, stays paced
/// whatever it is set to later.
fn connect(to: SocketAddr, congestion: KernelCongestion, late: &dyn Fn() -> bool) -> io::Result<TcpStream> {
    loop {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))
            .map_err(context("cannot open a socket"))?;
        socket
            .set_tcp_congestion(congestion.name().as_bytes())
            .map_err(context(format_args!("cannot set TCP congestion control {congestion}")))?;
        match socket.connect_timeout(&to.into(), CONNECT_TRY) {
            Ok(()) => return Ok(socket.into()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut && !late() => {}
            Err(error) => return Err(context(format_args!("cannot connect to {to}"))(error)),
        }
    }
}

/// Makes accepted connections begin without pacing ([`connect`]), until their client says which congestion control it uses.
/// If Reno is not allowed, they may be paced; that matters little, since a server mostly acknowledges.
pub(crate) fn begin_unpaced(listener: &TcpListener) {
    _ = SockRef::from(listener).set_tcp_congestion(KernelCongestion::Reno.name().as_bytes());
}

pub(crate) fn or_tick<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}

#[expect(unsafe_code, reason = "std offers no such socket options")]
pub(crate) fn set_option(socket: BorrowedFd<'_>, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    let length = libc::socklen_t::try_from(value.len()).map_err(io::Error::other)?;
    // SAFETY: the kernel reads at most `length` bytes at `value`, which outlives the call, as does the socket.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Bytes that this kernel does not know stay as they were.
#[expect(unsafe_code, reason = "std offers no such socket options")]
pub(crate) fn get_option(socket: BorrowedFd<'_>, level: i32, name: i32, value: &mut [u8]) -> io::Result<()> {
    let mut length = libc::socklen_t::try_from(value.len()).map_err(io::Error::other)?;
    // SAFETY: the kernel writes at most `length` bytes at `value`, which outlives the call, as does the socket.
    match unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_survives_the_wire() {
        let requests = [
            LoadRequest::PingPong { size: 64 },
            LoadRequest::Bulk,
            LoadRequest::Check { bytes: 1 << 40, seed: 0xfeed_beef },
        ];
        for request in requests {
            for congestion in KernelCongestion::ALL {
                assert_eq!(decode(&encode(request, congestion)).expect("a request"), (request, congestion));
            }
        }
    }

    #[test]
    fn a_request_that_would_fill_the_memory_is_refused() {
        for size in [0, LARGEST_MESSAGE + 1] {
            let error = decode(&encode(LoadRequest::PingPong { size }, KernelCongestion::Reno)).expect_err("a refusal");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn an_unknown_congestion_control_is_named_with_the_known_ones() {
        let error = "vegas".parse::<KernelCongestion>().expect_err("a refusal").to_string();
        assert!(error.contains("vegas") && error.contains("cubic, bbr, reno"), "{error}");
    }

    #[test]
    fn a_far_end_without_the_algorithm_is_named_with_it() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on the loopback");
        let to = listener.local_addr().expect("the port's number");
        let error = std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().expect("a client");
                stream.read_exact(&mut [0; PREAMBLE]).expect("a request");
                stream.write_all(&libc::ENOENT.to_be_bytes()).expect("room for four bytes");
            });
            LoadConnection::open(to, LoadRequest::Bulk, KernelCongestion::Cubic, &|| false)
                .expect_err("no such algorithm")
        });
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("cannot use TCP congestion control cubic"), "{error}");
    }

    fn used(stream: &TcpStream) -> String {
        let name = SockRef::from(stream).tcp_congestion().expect("a name");
        String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
    }

    #[test]
    fn neither_end_begins_with_the_hosts_default() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on the loopback");
        begin_unpaced(&listener);
        let to = listener.local_addr().expect("the port's number");
        let client = connect(to, KernelCongestion::Reno, &|| false).expect("a connection");
        let (server, _) = listener.accept().expect("a client");
        assert_eq!((used(&client), used(&server)), ("reno".to_owned(), "reno".to_owned()));
    }

    #[test]
    fn both_ends_use_the_algorithm_that_was_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on the loopback");
        let to = listener.local_addr().expect("the port's number");
        std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                let (stream, _) = listener.accept().expect("a client");
                let (connection, _) = LoadConnection::accept(stream, &|| false).expect("a request").expect("not over");
                used(&connection.stream)
            });
            // Reno is built into every kernel and open to every user, and is nowhere the default.
            let client =
                LoadConnection::open(to, LoadRequest::Bulk, KernelCongestion::Reno, &|| false).expect("a connection");
            assert_eq!(used(&client.stream), "reno");
            assert_eq!(server.join().expect("no panic"), "reno");
        });
    }
}
