//! An interface that a clock exchanges frames on. It may be down, and go away and come back.

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;

use linux::clock::KernelClock;
use linux::net::Netlink;
use linux::stamps::StampedSocket;
use units::Time;
use wire::exchange::ExchangeFrame;
use wire::reserve::OUI_EXTENDED;

use crate::config::ClockLink;
use crate::seal::{FrameRefusal, LONGEST_SEALED, WaveSeal};

/// Destination of frames: the other end of the link and no further, as no bridge passes it on.
const GROUP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
/// Addresses and EtherType.
const ETHERNET: usize = 14;
/// The shortest frame, without its check sum.
const SHORTEST: usize = 60;
/// Frames taken at once.
const BATCH: usize = 64;
/// Frames whose stamps may still come.
const UNSTAMPED: usize = 64;
/// Interval between two attempts to open an interface.
const RETRY_NS: u64 = 20_000_000;

/// A frame that came in, or why it is not believed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortArrival {
    pub(crate) frame: Result<ExchangeFrame, FrameRefusal>,
    /// Time of arrival by the kernel, in nanoseconds since 1970.
    pub(crate) stamp: Option<u64>,
    /// Time of arrival by the program, on CLOCK_MONOTONIC_RAW.
    pub(crate) raw_ns: u64,
}

/// A frame that went out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortDeparture {
    pub(crate) number: u32,
    pub(crate) stamp: u64,
    pub(crate) raw_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct UnstampedFrame {
    id: u32,
    number: u32,
    raw_ns: u64,
}

/// One link of a clock.
#[derive(Debug)]
pub(crate) struct ClockPort {
    pub(crate) link: ClockLink,
    pub(crate) seal: WaveSeal,
    socket: Option<StampedSocket>,
    mac: [u8; 6],
    unstamped: VecDeque<UnstampedFrame>,
    /// Reason why nothing passes.
    pub(crate) problem: Option<String>,
    is_down: bool,
    /// A send failed: numbers of stamps may differ from ours.
    miscounts: bool,
    retry_ns: u64,
    bytes: Vec<u8>,
}

impl ClockPort {
    pub(crate) fn new(link: ClockLink, seal: WaveSeal) -> Self {
        let bytes = Vec::with_capacity(SHORTEST + LONGEST_SEALED);
        Self {
            link,
            seal,
            socket: None,
            mac: [0; 6],
            unstamped: VecDeque::new(),
            problem: None,
            is_down: false,
            miscounts: false,
            retry_ns: 0,
            bytes,
        }
    }

    /// Opens it if it is not, and it is time to try again. A line for people if that changed something.
    pub(crate) fn open(&mut self, netlink: &Netlink, raw_ns: u64) -> io::Result<Option<String>> {
        if self.socket.is_some() {
            return Ok(self.down_or_up());
        }
        if raw_ns < self.retry_ns {
            return Ok(None);
        }
        self.retry_ns = raw_ns + RETRY_NS;
        let interface = &self.link.interface;
        let problem = match netlink.link(interface)? {
            None => "is gone",
            Some(info) if !info.up => "is down",
            Some(info) => {
                self.socket = Some(StampedSocket::open(info.index, OUI_EXTENDED, GROUP)?);
                self.mac = info.mac;
                self.unstamped.clear();
                let was_closed = self.problem.take().is_some();
                return Ok(was_closed.then(|| format!("{interface} is up again")));
            }
        };
        let problem = format!("{interface} {problem}: waiting for it");
        let is_new = self.problem.as_ref() != Some(&problem);
        self.problem = Some(problem.clone());
        Ok(is_new.then_some(problem))
    }

    /// A line for people if it went down, or came up.
    fn down_or_up(&mut self) -> Option<String> {
        let interface = &self.link.interface;
        if self.is_down == self.problem.is_some() {
            return None;
        }
        let problem = format!("{interface} is down: waiting for it");
        self.problem = self.is_down.then(|| problem.clone());
        Some(if self.is_down { problem } else { format!("{interface} is up again") })
    }

    pub(crate) fn fd(&self) -> Option<RawFd> {
        self.socket.as_ref().map(StampedSocket::fd)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.socket.is_some()
    }

    /// An interface that is down comes up with the same socket; after anything else it is opened again soon. To close a socket
    /// takes the kernel milliseconds, in which others would hear nothing.
    fn fail(&mut self, error: &io::Error) {
        if error.raw_os_error() == Some(libc::ENETDOWN) {
            self.is_down = true;
            return;
        }
        self.socket = None;
        self.is_down = false;
        self.problem = Some(format!("{}: {error}", self.link.interface));
        self.retry_ns = 0;
    }

    /// Looks whether the interface went down, or away.
    pub(crate) fn check(&mut self) {
        if let Some(Err(error)) = self.socket.as_ref().map(StampedSocket::take_error) {
            self.fail(&error);
        }
    }

    /// Hands over the frames that have come.
    pub(crate) fn receive(&mut self, mut each: impl FnMut(PortArrival)) {
        let mut buffer = [0; ETHERNET + LONGEST_SEALED + 64];
        for _ in 0..BATCH {
            let Some(socket) = &mut self.socket else { return };
            match socket.receive(&mut buffer) {
                Ok(None) => return,
                Ok(Some(frame)) if frame.outgoing => {}
                Ok(Some(frame)) => {
                    let raw_ns = KernelClock::Raw.nanoseconds();
                    let payload = buffer.get(ETHERNET..frame.len).unwrap_or_default();
                    // Messages by which two ends agree on a session are not for the clock.
                    if let Some(read) = self.seal.read(payload).transpose() {
                        each(PortArrival { frame: read, stamp: frame.at, raw_ns });
                    }
                }
                Err(error) => return self.fail(&error),
            }
        }
    }

    /// Frames that the kernel has sent.
    pub(crate) fn departures(&mut self, mut each: impl FnMut(PortDeparture)) {
        while let Some(socket) = &mut self.socket {
            match socket.next_sent() {
                Ok(None) => return,
                Ok(Some((id, stamp))) => {
                    let Some(place) = self.unstamped.iter().position(|frame| frame.id == id) else { continue };
                    // Stamps come in order; what is before this one will not get one.
                    let Some(UnstampedFrame { number, raw_ns, .. }) = self.unstamped.drain(..=place).next_back() else {
                        continue;
                    };
                    each(PortDeparture { number, stamp, raw_ns });
                }
                Err(error) => return self.fail(&error),
            }
        }
    }

    /// Sends what the two ends say to each other to agree on a session, if there is a key.
    pub(crate) fn greet(&mut self, now: Time) {
        self.seal.set_time(now);
        loop {
            self.address();
            if !self.seal.greet(&mut self.bytes) {
                return;
            }
            self.transmit(None);
        }
    }

    /// Seals a frame if a key is used, and sends it; a frame that cannot be sealed is not sent.
    pub(crate) fn send(&mut self, frame: &ExchangeFrame) {
        self.address();
        if self.seal.write(frame, &mut self.bytes) {
            self.transmit(Some(frame.number));
        }
    }

    /// Begins a frame.
    fn address(&mut self) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&GROUP);
        self.bytes.extend_from_slice(&self.mac);
        self.bytes.extend_from_slice(&OUI_EXTENDED.to_be_bytes());
    }

    /// Hands the frame to the kernel. When it left is of interest if it has a number.
    fn transmit(&mut self, number: Option<u32>) {
        if std::mem::take(&mut self.miscounts) {
            self.renumber();
        }
        let Some(socket) = &mut self.socket else { return };
        if self.bytes.len() < SHORTEST {
            self.bytes.resize(SHORTEST, 0);
        }
        let raw_ns = KernelClock::Raw.nanoseconds();
        match socket.send(&self.bytes) {
            Ok(Some(id)) => {
                self.is_down = false;
                if self.unstamped.len() == UNSTAMPED {
                    self.unstamped.pop_front();
                }
                self.unstamped.extend(number.map(|number| UnstampedFrame { id, number, raw_ns }));
            }
            // A full queue loses it, as a wire may.
            Ok(None) => self.miscounts = true,
            Err(error) => {
                self.miscounts = true;
                self.fail(&error);
            }
        }
    }

    /// The kernel may have counted a frame that it did not send, or not have counted one: a stamp must never be taken for that of
    /// another frame.
    fn renumber(&mut self) {
        self.unstamped.clear();
        if let Some(Err(error)) = self.socket.as_mut().map(StampedSocket::renumber) {
            self.fail(&error);
        }
    }
}
