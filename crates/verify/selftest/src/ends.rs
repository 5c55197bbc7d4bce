//! Both applications, on sockets of the kernel.

use std::io;
use std::net::SocketAddrV4;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use linux::SystemError;
use linux::net::Namespace;
use linux::stream::StreamSocket;

use crate::counters::{HostCounters, SocketCounters};
use crate::stage::address;

const PORT: u16 = 8_080;
/// Longest wait of a call.
const LONGEST_CALL: Duration = Duration::from_secs(30);
/// Time between two checks that all has been acknowledged.
const LOOK: Duration = Duration::from_millis(5);
/// Most bytes of one write; more is sent in pieces.
const LARGEST_WRITE: usize = 1 << 16;

/// One call of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AppStep {
    Send(usize),
    Receive(usize),
    Pause(Duration),
}

/// Plan of one application once it is connected.
#[derive(Clone, Debug, Default)]
pub(crate) struct AppPlan {
    pub steps: Vec<AppStep>,
    /// `SO_RCVBUF`.
    pub receive_buffer: Option<i32>,
    pub no_delay: bool,
}

/// Counts of the kernel at one end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EndTally {
    pub host: HostCounters,
    pub socket: SocketCounters,
}

/// Barrier at which both applications wait for each other.
pub(crate) type Meeting = Barrier;

/// Runs one end. The end that listens is ready before the other connects.
pub(crate) fn run_end(
    end: usize,
    namespace: &Namespace,
    connections: &[AppPlan],
    settle: Duration,
    meeting: &Meeting,
) -> Result<EndTally, SystemError> {
    let listener = namespace.enter().map_err(SystemError::from).and_then(|()| match end {
        0 => Ok(None),
        _ => listen(connections).map(Some).map_err(|error| failed(end, &error)),
    });
    meeting.wait();
    let mut counters = EndTally::default();
    let mut result = listener.as_ref().map(|_| ()).map_err(Clone::clone);
    for plan in connections {
        let played = match &listener {
            Ok(listener) if result.is_ok() => play(listener.as_ref(), plan).map_err(|error| failed(end, &error)),
            _ => Err(SystemError(String::new())),
        };
        // Both read their counters before either closes.
        meeting.wait();
        thread::sleep(settle);
        match played.map(|socket| (socket.info(), socket)) {
            Ok((Ok(info), socket)) => {
                counters.socket = SocketCounters::new(&info);
                meeting.wait();
                drop(socket);
            }
            Ok((Err(error), _)) => {
                meeting.wait();
                result = result.and(Err(failed(end, &error)));
            }
            Err(error) => {
                meeting.wait();
                result = result.and(Err(error));
            }
        }
    }
    // The last FINs.
    thread::sleep(settle);
    counters.host = HostCounters::read().map_err(|error| failed(end, &error))?;
    result.map(|()| counters)
}

fn failed(end: usize, error: &io::Error) -> SystemError {
    SystemError(format!("the {}: {error}", ["client", "server"][end]))
}

fn prepare(socket: &StreamSocket, plan: &AppPlan) -> io::Result<()> {
    socket.set_congestion_control("cubic")?;
    socket.limit_waiting(LONGEST_CALL)?;
    if let Some(bytes) = plan.receive_buffer {
        socket.set_option(libc::SOL_SOCKET, libc::SO_RCVBUF, bytes)?;
    }
    Ok(())
}

fn listen(connections: &[AppPlan]) -> io::Result<StreamSocket> {
    let socket = StreamSocket::new()?;
    if let Some(plan) = connections.first() {
        prepare(&socket, plan)?;
    }
    socket.bind(SocketAddrV4::new(address(1), PORT))?;
    socket.listen(64)?;
    Ok(socket)
}

/// Connects or accepts, and does what is planned, until all of it has been acknowledged.
fn play(listener: Option<&StreamSocket>, plan: &AppPlan) -> io::Result<StreamSocket> {
    let socket = match listener {
        Some(listener) => listener.accept()?,
        None => StreamSocket::new()?,
    };
    prepare(&socket, plan)?;
    socket.set_option(libc::IPPROTO_TCP, libc::TCP_NODELAY, plan.no_delay.into())?;
    if listener.is_none() {
        socket.connect(SocketAddrV4::new(address(1), PORT))?;
    }
    for step in &plan.steps {
        match *step {
            AppStep::Send(bytes) => send(&socket, bytes)?,
            AppStep::Receive(bytes) => receive(&socket, bytes)?,
            AppStep::Pause(time) => thread::sleep(time),
        }
    }
    for _ in 0..LONGEST_CALL.as_millis() / LOOK.as_millis() {
        if SocketCounters::new(&socket.info()?).is_quiet {
            return Ok(socket);
        }
        thread::sleep(LOOK);
    }
    Err(io::Error::from(io::ErrorKind::TimedOut))
}

fn send(socket: &StreamSocket, mut bytes: usize) -> io::Result<()> {
    let chunk = vec![b'x'; bytes.min(LARGEST_WRITE)];
    while bytes > 0 {
        bytes -= socket.send(&chunk[..bytes.min(LARGEST_WRITE)], false)?;
    }
    Ok(())
}

fn receive(socket: &StreamSocket, mut bytes: usize) -> io::Result<()> {
    while bytes > 0 {
        match socket.receive(bytes.min(LARGEST_WRITE))?.0 {
            0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            read => bytes -= read,
        }
    }
    Ok(())
}
