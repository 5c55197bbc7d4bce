//! This host's TCP as a subject: sockets of this process, and a TUN interface in place of the network.
//!
//! ```text
//!   sockets (10.0.0.1:8080) ── kernel TCP ── tun0 ── this program (10.0.0.2)
//! ```
//!
//! A packet socket sees what leaves, with the kernel's own times: this program may be late, the kernel is not.
//!
//! In real time, in the network namespace of the calling thread, which must be its own: settings of scripts are written
//! there. A process gets the right to make such namespaces by `linux::net::become_root_of_own_namespaces`.

mod info;
mod packet;

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use linux::clock::{self, Clock};
use linux::net::{InterfaceAddress, Netlink};
use linux::packet::PacketSocket;
use linux::poll;
use linux::stream::{StreamSocket, TCP_INQ};
use linux::tun::Tun;
use units::{Span, Time};

use crate::language::{CallResult, Setting, SocketCall, SocketOption, TcpInfoFields, TunQueue};
use crate::segment::DrillSegment;
use crate::subject::{DrillStop, SentSegment, Subject};
use packet::PacketMap;

const INTERFACE: &str = "tun0";
pub(crate) const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(crate) const REMOTE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub(crate) const PORT: u16 = 8_080;
/// Headers are all that is looked at.
const SNAP: usize = 192;
const RING: usize = 1_024;
/// Longest wait of a call, whatever its script says.
const LONGEST_CALL: Duration = Duration::from_secs(20);

/// Kernel TCP under test.
#[derive(Debug)]
pub(crate) struct KernelSubject {
    clock: Clock,
    /// The time of day at which `clock` started.
    epoch: Duration,
    tun: Tun,
    sniffer: PacketSocket,
    netlink: Netlink,
    index: u32,
    sockets: BTreeMap<i64, StreamSocket>,
    /// Connection whose TCP_INFO is asked for: the one made last.
    connection: Option<i64>,
    map: PacketMap,
    left: VecDeque<SentSegment>,
    started: Option<Receiver<(Time, CallResult)>>,
    /// Set on every socket: a namespace without root may not choose one for all of them.
    congestion_control: Option<String>,
    lag: Span,
}

impl KernelSubject {
    /// Opens the kernel's side in the network namespace of the calling thread.
    pub(crate) fn open() -> io::Result<Self> {
        let netlink = Netlink::open()?;
        netlink.set_loopback_up()?;
        let tun = Tun::open(INTERFACE)?;
        let index = netlink.existing_link(INTERFACE)?.index;
        netlink.no_ipv6_autoconf(index)?;
        netlink.add_address(index, &InterfaceAddress::new(IpAddr::V4(LOCAL), 24))?;
        netlink.set_up(index, true)?;
        let sniffer = PacketSocket::sniffer(index, SNAP, RING)?;
        Ok(Self {
            clock: Clock::start(),
            epoch: clock::time_of_day(),
            tun,
            sniffer,
            netlink,
            index,
            sockets: BTreeMap::new(),
            connection: None,
            map: PacketMap::default(),
            left: VecDeque::new(),
            started: None,
            congestion_control: None,
            lag: Span::ZERO,
        })
    }

    /// Takes what the kernel has sent by now; waits for it until `until` if there is nothing.
    fn collect(&mut self, until: Time) {
        let now = self.clock.now();
        let wait = Duration::from_nanos(until.since(now.min(until)).as_ps() / 1_000);
        if poll::wait(&[(self.sniffer.fd(), false)], wait).is_err() {
            return;
        }
        let (map, left, epoch) = (&mut self.map, &mut self.left, self.epoch);
        self.sniffer.receive(RING, |frame| {
            let at = Time::from_ps(frame.at.saturating_sub(epoch).as_nanos() as u64 * 1_000);
            if frame.outgoing
                && let Some(segment) = map.parse(frame.bytes, frame.len)
            {
                left.push_back(SentSegment { at, segment });
            }
        });
        while let Ok(Some(_)) = self.tun.receive() {}
    }

    fn socket(&self, descriptor: i64) -> Result<&StreamSocket, DrillStop> {
        self.sockets
            .get(&descriptor)
            .ok_or_else(|| DrillStop::Failed(format!("no socket has the descriptor {descriptor}")))
    }

    fn sysctl(path: &str, value: &str, optional: bool) -> Result<(), DrillStop> {
        let is_plain = path.starts_with("net/")
            && path
                .split('/')
                .all(|part| part.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter)));
        if !is_plain {
            return DrillStop::not_applicable(format!("{path} is not a setting of a network"));
        }
        match fs::write(format!("/proc/sys/{path}"), value) {
            Err(error) if !optional => DrillStop::not_applicable(format!("set {path} to {value}: {error}")),
            _ => Ok(()),
        }
    }
}

impl Subject for KernelSubject {
    fn start(&mut self) {
        (self.clock, self.epoch) = (Clock::start(), clock::time_of_day());
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn advance(&mut self, until: Time) {
        while self.clock.now() < until {
            self.collect(until);
        }
        let now = self.clock.now();
        self.lag = self.lag.max(now.since(until.min(now)));
    }

    fn arrives(&mut self, segment: &DrillSegment) -> Result<(), DrillStop> {
        // Segments that left before must not pass as an answer.
        self.collect(Time::ZERO);
        let bytes = self.map.emit(segment).map_err(DrillStop::Failed)?;
        self.tun.send(&bytes).map_err(|error| DrillStop::Failed(format!("hand over a segment: {error}")))
    }

    fn next_sent(&mut self, deadline: Time) -> Option<SentSegment> {
        while self.left.is_empty() && self.clock.now() < deadline {
            self.collect(deadline);
        }
        self.left.pop_front()
    }

    fn call(&mut self, descriptor: i64, call: &SocketCall) -> Result<CallResult, DrillStop> {
        match call {
            SocketCall::Socket => {
                let socket = StreamSocket::new().and_then(|socket| {
                    socket.limit_waiting(LONGEST_CALL)?;
                    self.congestion_control.iter().try_for_each(|name| socket.set_congestion_control(name))?;
                    Ok(socket)
                });
                Ok(result(socket.map(|socket| {
                    self.sockets.insert(descriptor, socket);
                    descriptor
                })))
            }
            SocketCall::Close => {
                self.socket(descriptor)?;
                self.sockets.remove(&descriptor);
                Ok(CallResult::value(0))
            }
            SocketCall::Accept => {
                let accepted = self.socket(descriptor)?.accept().and_then(|socket| {
                    socket.limit_waiting(LONGEST_CALL)?;
                    Ok(socket)
                });
                Ok(result(accepted.map(|socket| self.adopt(socket))))
            }
            SocketCall::Connect => {
                self.connection = Some(descriptor);
                Ok(perform(self.socket(descriptor)?, call))
            }
            _ => Ok(perform(self.socket(descriptor)?, call)),
        }
    }

    fn start_call(&mut self, descriptor: i64, call: &SocketCall) -> Result<(), DrillStop> {
        let socket = self.socket(descriptor)?.try_clone();
        let socket = socket.map_err(|error| DrillStop::Failed(format!("a second descriptor: {error}")))?;
        if *call == SocketCall::Connect {
            self.connection = Some(descriptor);
        }
        if *call == SocketCall::Accept {
            return DrillStop::not_applicable("an accept that waits is not understood");
        }
        let (sender, receiver) = mpsc::channel();
        let (clock, call) = (self.clock, *call);
        // It ends with the call, and no call waits for longer than LONGEST_CALL.
        let thread = thread::Builder::new().name("call".to_owned()).spawn(move || {
            let result = perform(&socket, &call);
            let _ = sender.send((clock.now(), result));
        });
        thread.map_err(|error| DrillStop::Failed(format!("start a thread: {error}")))?;
        self.started = Some(receiver);
        Ok(())
    }

    fn call_ended(&mut self, deadline: Time) -> Option<(Time, CallResult)> {
        let started = self.started.take()?;
        loop {
            if let Ok(ended) = started.try_recv() {
                return Some(ended);
            }
            let now = self.clock.now();
            if now >= deadline {
                return None;
            }
            self.collect(deadline.min(now + Span::from_us(500)));
        }
    }

    fn info(&mut self) -> Result<TcpInfoFields, DrillStop> {
        let Some(descriptor) = self.connection else { return DrillStop::failed("TCP_INFO without a connection") };
        let info = self.socket(descriptor)?.info();
        info.map(|bytes| info::fields(&bytes)).map_err(|error| DrillStop::Failed(format!("TCP_INFO: {error}")))
    }

    fn configure(&mut self, setting: &Setting) -> Result<(), DrillStop> {
        let (result, what) = match setting {
            Setting::Sysctl { path, value, .. } if path == "net/ipv4/tcp_congestion_control" => {
                self.congestion_control = Some(value.clone());
                return Ok(());
            }
            Setting::Sysctl { path, value, optional } => return Self::sysctl(path, value, *optional),
            Setting::Queue(TunQueue::Fifo(packets)) => (self.netlink.set_fifo(self.index, *packets), "pfifo"),
            Setting::Queue(TunQueue::Fair) => (self.netlink.set_fair_queue(self.index), "fq"),
            Setting::Offloads(on) => (self.netlink.set_offloads(INTERFACE, *on), "offloads"),
            Setting::ModuleParameter { path, value } => {
                let is_set = fs::read_to_string(format!("/sys/module/{path}")).is_ok_and(|set| set.trim() == value);
                return if is_set { Ok(()) } else { DrillStop::not_applicable(format!("{path} is not {value} here")) };
            }
        };
        result.or_else(|error| DrillStop::not_applicable(format!("{what}: {error}")))
    }

    /// A tick, if it is longer than the millisecond of packetdrill's authors.
    fn coarseness(&self) -> Span {
        let tick = Span::from_ns(clock::tick().as_nanos() as u64);
        if tick > Span::from_ms(1) { tick } else { Span::ZERO }
    }

    fn lag(&self) -> Span {
        self.lag
    }
}

impl KernelSubject {
    /// Gives an accepted socket the next descriptor, as a kernel would.
    fn adopt(&mut self, socket: StreamSocket) -> i64 {
        let descriptor = (3..).find(|descriptor| !self.sockets.contains_key(descriptor)).unwrap_or(i64::MAX);
        self.sockets.insert(descriptor, socket);
        self.connection = Some(descriptor);
        descriptor
    }
}

/// A call on one socket, as far as it needs nothing else.
fn perform(socket: &StreamSocket, call: &SocketCall) -> CallResult {
    let nothing = |done: io::Result<()>| result(done.map(|()| 0));
    match *call {
        SocketCall::Bind => nothing(socket.bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT))),
        SocketCall::Listen { backlog } => nothing(socket.listen(backlog)),
        SocketCall::Connect => nothing(socket.connect(SocketAddrV4::new(REMOTE, PORT))),
        SocketCall::Send { len, more } => {
            let bytes = vec![0; usize::try_from(len).unwrap_or_default().min(1 << 24)];
            result(socket.send(&bytes, more).map(|sent| sent as i64))
        }
        SocketCall::Receive { len } => match socket.receive(usize::try_from(len).unwrap_or_default()) {
            Ok((len, waiting)) => CallResult { value: len as i64, error: None, out: waiting.map(i64::from) },
            Err(error) => failed(&error),
        },
        SocketCall::Shutdown(half) => nothing(socket.shut_down(half)),
        SocketCall::SetOption { option, value } => {
            let (level, name) = option_numbers(option);
            nothing(socket.set_option(level, name, value as i32))
        }
        SocketCall::GetOption { option } => {
            let (level, name) = option_numbers(option);
            out(socket.option(level, name))
        }
        SocketCall::GetFlags => result(socket.flags().map(i64::from)),
        SocketCall::SetNonblocking(on) => nothing(socket.set_nonblocking(on)),
        SocketCall::Waiting => out(socket.waiting()),
        SocketCall::Socket | SocketCall::Accept | SocketCall::Close => CallResult::error("EINVAL"),
    }
}

fn option_numbers(option: SocketOption) -> (i32, i32) {
    match option {
        SocketOption::ReuseAddress => (libc::SOL_SOCKET, libc::SO_REUSEADDR),
        SocketOption::SendBuffer => (libc::SOL_SOCKET, libc::SO_SNDBUF),
        SocketOption::ReceiveBuffer => (libc::SOL_SOCKET, libc::SO_RCVBUF),
        SocketOption::Error => (libc::SOL_SOCKET, libc::SO_ERROR),
        SocketOption::NoDelay => (libc::IPPROTO_TCP, libc::TCP_NODELAY),
        SocketOption::Cork => (libc::IPPROTO_TCP, libc::TCP_CORK),
        SocketOption::MaxSegment => (libc::IPPROTO_TCP, libc::TCP_MAXSEG),
        SocketOption::UserTimeout => (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
        SocketOption::Inq => (libc::IPPROTO_TCP, TCP_INQ),
        SocketOption::TypeOfService => (libc::IPPROTO_IP, libc::IP_TOS),
        SocketOption::MtuDiscovery => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
    }
}

fn out(value: io::Result<i32>) -> CallResult {
    match value {
        Ok(value) => CallResult { value: 0, error: None, out: Some(i64::from(value)) },
        Err(error) => failed(&error),
    }
}

fn result(value: io::Result<i64>) -> CallResult {
    value.map_or_else(|error| failed(&error), CallResult::value)
}

fn failed(error: &io::Error) -> CallResult {
    let number = error.raw_os_error().unwrap_or_default();
    let name = match number {
        libc::EAGAIN => "EAGAIN",
        libc::EADDRINUSE => "EADDRINUSE",
        libc::EBADF => "EBADF",
        libc::ECONNREFUSED => "ECONNREFUSED",
        libc::ECONNRESET => "ECONNRESET",
        libc::EHOSTUNREACH => "EHOSTUNREACH",
        libc::EINPROGRESS => "EINPROGRESS",
        libc::EINVAL => "EINVAL",
        libc::EISCONN => "EISCONN",
        libc::ENOPROTOOPT => "ENOPROTOOPT",
        libc::ENOTCONN => "ENOTCONN",
        libc::EPERM => "EPERM",
        libc::EPIPE => "EPIPE",
        libc::ETIMEDOUT => "ETIMEDOUT",
        _ => return CallResult::error(&format!("error {number}")),
    };
    CallResult::error(name)
}
