//! A conversation over TCP that can be called off.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use linux::clock::Clock;
use units::StopFlag;

/// The longest that a socket call waits before it looks whether it is over.
const TICK: Duration = Duration::from_millis(50);
/// Time after which a conversation has failed.
const LIMIT: Duration = Duration::from_secs(60);
const LONGEST_LINE: usize = 8 << 10;

#[derive(Debug)]
pub(crate) struct SoakStream<'a> {
    socket: BufReader<TcpStream>,
    over: &'a StopFlag,
    asked: Clock,
}

impl<'a> SoakStream<'a> {
    /// Opens a connection from the namespace of the calling thread.
    pub(crate) fn open(to: SocketAddr, over: &'a StopFlag) -> io::Result<Self> {
        let asked = Clock::start();
        let socket = TcpStream::connect_timeout(&to, LIMIT)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(TICK))?;
        socket.set_write_timeout(Some(TICK))?;
        Ok(Self { socket: BufReader::with_capacity(64 << 10, socket), over, asked })
    }

    /// Time since the last [`SoakStream::ask`], or since it was opened.
    pub(crate) fn waited(&self) -> Duration {
        self.asked.elapsed()
    }

    pub(crate) fn ask(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.asked = Clock::start();
        while !bytes.is_empty() {
            match self.socket.get_mut().write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) => self.go_on_after(error)?,
            }
        }
        Ok(())
    }

    /// One line, without its end.
    pub(crate) fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        loop {
            let more = self.more()?;
            let end = more.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(more.len(), |end| end + 1);
            line.extend_from_slice(&more[..taken]);
            self.socket.consume(taken);
            if end.is_some() {
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if line.len() > LONGEST_LINE {
                return Err(strange("a line without an end"));
            }
        }
    }

    /// Takes exactly `count` bytes and hands them to `each` in pieces as they arrive.
    pub(crate) fn take(&mut self, mut count: u64, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        while count > 0 {
            let more = self.more()?;
            let taken = more.len().min(usize::try_from(count).unwrap_or(usize::MAX));
            each(&more[..taken]);
            self.socket.consume(taken);
            count -= taken as u64;
        }
        Ok(())
    }

    /// All bytes that have arrived: at least one.
    fn more(&mut self) -> io::Result<&[u8]> {
        while self.socket.buffer().is_empty() {
            match self.socket.fill_buf().map(<[u8]>::len) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) => self.go_on_after(error)?,
            }
        }
        Ok(self.socket.buffer())
    }

    fn go_on_after(&self, error: io::Error) -> io::Result<()> {
        use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
        match error.kind() {
            WouldBlock | TimedOut | Interrupted if self.over.is_stopped() => Err(Interrupted.into()),
            WouldBlock | TimedOut if self.waited() > LIMIT => {
                Err(io::Error::new(TimedOut, format!("no answer within {} s", LIMIT.as_secs())))
            }
            WouldBlock | TimedOut | Interrupted => Ok(()),
            _ => Err(error),
        }
    }
}

/// An answer that makes no sense.
pub(crate) fn strange(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}
