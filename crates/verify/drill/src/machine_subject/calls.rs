//! System calls on our TCP: what they return, and what they wait for.

use linux::stream::ShutdownHalf;
use tcp::TcpCommand;
use units::{Span, Time};

use super::handshake::DrillHandshake;
use super::{ConnectionStage, MachineSocket, MachineSubject, OpenConnection, SocketRole, StartedCall};
use crate::language::{CallResult, SocketCall, SocketOption, TcpInfoFields};
use crate::subject::DrillStop;

/// `TCP_MAXSEG` of a socket that has no connection.
const UNKNOWN_MSS: i64 = 536;
/// `O_RDWR` and `O_NONBLOCK`.
const READ_WRITE: i64 = 2;
const NONBLOCKING: i64 = 0o4000;
/// The smallest send buffer, as the kernel keeps it.
const SMALLEST_BUFFER: u64 = 4_608;

impl MachineSubject {
    /// A call that must return at once.
    pub(super) fn perform(&mut self, descriptor: i64, call: &SocketCall) -> Result<CallResult, DrillStop> {
        if *call == SocketCall::Socket {
            self.sockets.insert(descriptor, MachineSocket::new());
            return Ok(CallResult::value(descriptor));
        }
        let Some(socket) = self.sockets.get(&descriptor).cloned() else { return Ok(CallResult::error("EBADF")) };
        match *call {
            SocketCall::Bind => Ok(CallResult::value(0)),
            SocketCall::Listen { .. } => Ok(self.with_socket(descriptor, |socket| socket.role = SocketRole::Listening)),
            SocketCall::Close => Ok(self.close(descriptor, socket.role)),
            SocketCall::Shutdown(half) => Ok(self.shut_down(half)),
            SocketCall::SetOption { option, value } => self.set_option(descriptor, option, value),
            SocketCall::GetOption { option } => self.option(&socket, option),
            SocketCall::GetFlags => {
                Ok(CallResult::value(READ_WRITE | if socket.nonblocking { NONBLOCKING } else { 0 }))
            }
            SocketCall::SetNonblocking(on) => Ok(self.with_socket(descriptor, |socket| socket.nonblocking = on)),
            SocketCall::Waiting => {
                let waiting = self.open(|open| open.driver.connection.readable() as i64);
                Ok(CallResult { value: 0, error: None, out: Some(waiting.unwrap_or_default()) })
            }
            SocketCall::Accept | SocketCall::Connect | SocketCall::Send { .. } | SocketCall::Receive { .. } => {
                self.begin(descriptor, call)?;
                let ended = self.ended.take();
                self.started = None;
                match ended {
                    Some((_, result)) => Ok(result),
                    None if *call == SocketCall::Connect && socket.nonblocking => Ok(CallResult::error("EINPROGRESS")),
                    None if socket.nonblocking => Ok(CallResult::error("EAGAIN")),
                    None => DrillStop::failed("the call waits, but the script expects it to return at once"),
                }
            }
            SocketCall::Socket => Ok(CallResult::error("EINVAL")),
        }
    }

    /// A call that may wait.
    pub(super) fn begin(&mut self, descriptor: i64, call: &SocketCall) -> Result<(), DrillStop> {
        if !matches!(
            call,
            SocketCall::Accept | SocketCall::Connect | SocketCall::Send { .. } | SocketCall::Receive { .. }
        ) {
            let result = self.perform(descriptor, call)?;
            self.ended = Some((self.now, result));
            return Ok(());
        }
        let socket = self.sockets.get(&descriptor).cloned();
        let mut started = StartedCall { descriptor, call: *call, target: None };
        match *call {
            SocketCall::Connect => {
                if !matches!(self.connection, ConnectionStage::None) {
                    return DrillStop::not_applicable("a second connection is not modelled");
                }
                self.with_socket(descriptor, |socket| socket.role = SocketRole::Connected);
                let max_segment = socket.and_then(|socket| socket.max_segment);
                let handshake = DrillHandshake::active(&self.settings, max_segment, self.now);
                self.send(handshake.syn.clone());
                self.connection = ConnectionStage::Handshake(handshake);
            }
            SocketCall::Send { len, more } => {
                started.target = self.write(len, more, socket.is_some_and(|socket| socket.nonblocking))
            }
            _ => {}
        }
        self.ended = None;
        self.started = Some(started);
        self.settle();
        Ok(())
    }

    /// Writes, and says what the send buffer must have taken before the call returns; nothing if it cannot be written.
    fn write(&mut self, len: u64, more: bool, nonblocking: bool) -> Option<u64> {
        let now = self.now;
        let ConnectionStage::Open(open) = &mut self.connection else { return None };
        if open.over || open.shut_write || open.error.is_some() {
            return None;
        }
        let len = if nonblocking { len.min(open.driver.connection.room()) } else { len };
        if len == 0 {
            return None;
        }
        open.written += len;
        // Without a send buffer all of it is taken at once, and nothing is reported.
        if open.driver.connection.room() >= len {
            open.taken = open.written;
        }
        open.driver.command(now, if more { TcpCommand::SendMore(len) } else { TcpCommand::Send(len) });
        Some(open.written)
    }

    /// The result of a call, if it has one by now.
    pub(super) fn attempt(&mut self, started: StartedCall) -> Option<CallResult> {
        match started.call {
            SocketCall::Accept => self.accept(),
            SocketCall::Connect => match &self.connection {
                ConnectionStage::Open(_) => Some(CallResult::value(0)),
                _ => None,
            },
            SocketCall::Receive { len } => {
                let inq = self.sockets.get(&started.descriptor).is_some_and(|socket| socket.inq);
                self.receive(len, inq)
            }
            SocketCall::Send { len, .. } => self.sent(len, started.target),
            _ => None,
        }
    }

    fn accept(&mut self) -> Option<CallResult> {
        let ConnectionStage::Open(open) = &mut self.connection else { return None };
        if open.accepted {
            return None;
        }
        open.accepted = true;
        let descriptor = (3..).find(|descriptor| !self.sockets.contains_key(descriptor))?;
        let listener = self.sockets.values().find(|socket| socket.role == SocketRole::Listening)?;
        let socket = MachineSocket { role: SocketRole::Connected, nonblocking: false, ..listener.clone() };
        self.sockets.insert(descriptor, socket);
        Some(CallResult::value(descriptor))
    }

    fn receive(&mut self, len: u64, inq: bool) -> Option<CallResult> {
        let now = self.now;
        let ConnectionStage::Open(open) = &mut self.connection else { return Some(CallResult::error("ENOTCONN")) };
        let readable = open.driver.connection.readable();
        if readable == 0 {
            if let Some(error) = open.error.take() {
                return Some(CallResult::error(error));
            }
            return (open.peer_closed || open.shut_read || open.over).then(|| CallResult::value(0));
        }
        let len = len.min(readable);
        open.driver.command(now, TcpCommand::Read(len));
        // The end of the stream counts as one byte that waits.
        let waiting = (readable - len) as i64;
        let waiting = if waiting == 0 && open.peer_closed { 1 } else { waiting };
        Some(CallResult { value: len as i64, error: None, out: inq.then_some(waiting) })
    }

    fn sent(&mut self, len: u64, target: Option<u64>) -> Option<CallResult> {
        let ConnectionStage::Open(open) = &mut self.connection else { return Some(CallResult::error("ENOTCONN")) };
        match target {
            Some(target) if open.taken >= target => Some(CallResult::value(len as i64)),
            _ if open.error.is_some() => open.error.take().map(CallResult::error),
            _ if open.over || open.shut_write => Some(CallResult::error("EPIPE")),
            _ => None,
        }
    }

    fn close(&mut self, descriptor: i64, role: SocketRole) -> CallResult {
        self.sockets.remove(&descriptor);
        if role != SocketRole::Connected {
            return CallResult::value(0);
        }
        match &mut self.connection {
            ConnectionStage::Open(open) => {
                open.shut_write = true;
                open.driver.command(self.now, TcpCommand::Close);
            }
            ConnectionStage::Handshake(_) | ConnectionStage::None => self.connection = ConnectionStage::None,
        }
        self.settle();
        CallResult::value(0)
    }

    fn shut_down(&mut self, half: ShutdownHalf) -> CallResult {
        let ConnectionStage::Open(open) = &mut self.connection else { return CallResult::error("ENOTCONN") };
        if half != ShutdownHalf::Write {
            open.shut_read = true;
            open.driver.command(self.now, TcpCommand::ShutdownRead);
        }
        if half != ShutdownHalf::Read {
            open.shut_write = true;
            open.driver.command(self.now, TcpCommand::ShutdownWrite);
        }
        self.settle();
        CallResult::value(0)
    }

    fn set_option(&mut self, descriptor: i64, option: SocketOption, value: i64) -> Result<CallResult, DrillStop> {
        let is_on = value != 0;
        let command = match option {
            SocketOption::ReuseAddress | SocketOption::TypeOfService | SocketOption::MtuDiscovery => None,
            SocketOption::NoDelay => Some(TcpCommand::NoDelay(is_on)),
            SocketOption::Cork => Some(TcpCommand::Cork(is_on)),
            SocketOption::UserTimeout => {
                Some(TcpCommand::UserTimeout(is_on.then(|| Span::from_ms(value.unsigned_abs()))))
            }
            SocketOption::SendBuffer => Some(TcpCommand::SendBuffer((value.unsigned_abs() * 2).max(SMALLEST_BUFFER))),
            SocketOption::Inq => None,
            SocketOption::MaxSegment if !matches!(self.connection, ConnectionStage::Open(_)) => None,
            SocketOption::MaxSegment | SocketOption::ReceiveBuffer | SocketOption::Error => {
                return DrillStop::not_applicable(format!("setting {option:?} here is not modelled"));
            }
        };
        let result = self.with_socket(descriptor, |socket| match option {
            SocketOption::NoDelay => socket.nodelay = is_on,
            SocketOption::Cork => socket.cork = is_on,
            SocketOption::UserTimeout => socket.user_timeout = is_on.then(|| Span::from_ms(value.unsigned_abs())),
            SocketOption::SendBuffer => socket.send_buffer = Some((value.unsigned_abs() * 2).max(SMALLEST_BUFFER)),
            SocketOption::Inq => socket.inq = is_on,
            SocketOption::MaxSegment => socket.max_segment = u16::try_from(value).ok(),
            _ => {}
        });
        let connected = self.sockets.get(&descriptor).is_some_and(|socket| socket.role == SocketRole::Connected);
        if let (ConnectionStage::Open(open), Some(command), true) = (&mut self.connection, command, connected) {
            open.driver.command(self.now, command);
            self.settle();
        }
        Ok(result)
    }

    fn option(&mut self, socket: &MachineSocket, option: SocketOption) -> Result<CallResult, DrillStop> {
        let value = match option {
            SocketOption::MaxSegment => {
                let of_connection =
                    self.open(|open| i64::from(open.mss)).filter(|_| socket.role == SocketRole::Connected);
                of_connection.or(socket.max_segment.map(i64::from)).unwrap_or(UNKNOWN_MSS)
            }
            SocketOption::SendBuffer if socket.send_buffer.is_some() => socket.send_buffer.unwrap_or_default() as i64,
            SocketOption::Error if self.open(|open| open.error.is_none()) == Some(true) => 0,
            SocketOption::NoDelay => i64::from(socket.nodelay),
            SocketOption::Cork => i64::from(socket.cork),
            other => return DrillStop::not_applicable(format!("reading {other:?} here is not modelled")),
        };
        Ok(CallResult { value: 0, error: None, out: Some(value) })
    }

    fn open<T>(&self, read: impl FnOnce(&OpenConnection) -> T) -> Option<T> {
        match &self.connection {
            ConnectionStage::Open(open) => Some(read(open)),
            _ => None,
        }
    }

    fn with_socket(&mut self, descriptor: i64, change: impl FnOnce(&mut MachineSocket)) -> CallResult {
        match self.sockets.get_mut(&descriptor) {
            Some(socket) => {
                change(socket);
                CallResult::value(0)
            }
            None => CallResult::error("EBADF"),
        }
    }
}

impl OpenConnection {
    /// Fields of `struct tcp_info`, by its names and in its units.
    pub(super) fn info(&self, now: Time) -> TcpInfoFields {
        let info = self.driver.connection.info(now);
        let micros = |span: Span| (span.as_ps() / 1_000_000) as f64;
        let millis = |span: Span| (span.as_ps() / 1_000_000_000) as f64;
        let fields = [
            ("state", f64::from(info.state.number())),
            ("ca_state", f64::from(info.ca_state.number())),
            ("retransmits", f64::from(info.retransmits)),
            ("probes", f64::from(info.probes)),
            ("backoff", f64::from(info.backoff)),
            ("rto", micros(info.rto)),
            ("snd_mss", f64::from(info.snd_mss)),
            ("rcv_mss", f64::from(info.rcv_mss)),
            ("unacked", f64::from(info.unacked)),
            ("sacked", f64::from(info.sacked)),
            ("lost", f64::from(info.lost)),
            ("retrans", f64::from(info.retrans)),
            ("last_data_recv", millis(info.last_data_recv)),
            ("rtt", micros(info.rtt)),
            ("rttvar", micros(info.rttvar)),
            ("min_rtt", micros(info.min_rtt)),
            ("snd_ssthresh", f64::from(info.snd_ssthresh)),
            ("snd_cwnd", f64::from(info.snd_cwnd)),
            ("advmss", f64::from(self.advertised_mss)),
            ("reordering", f64::from(info.reordering)),
            ("reord_seen", f64::from(info.reord_seen)),
            ("total_retrans", f64::from(info.total_retrans)),
            ("dsack_dups", f64::from(info.dsack_dups)),
            ("bytes_acked", info.bytes_acked as f64),
            ("bytes_received", info.bytes_received as f64),
            ("notsent_bytes", info.notsent_bytes as f64),
            ("delivered", f64::from(info.delivered)),
            ("delivered_ce", f64::from(info.delivered_ce)),
            ("busy_time", micros(info.busy_time)),
            ("rwnd_limited", micros(info.rwnd_limited)),
            ("sndbuf_limited", micros(info.sndbuf_limited)),
            ("snd_wnd", info.snd_wnd as f64),
            ("rcv_wnd", info.rcv_wnd as f64),
        ];
        fields.into_iter().map(|(name, value)| (format!("tcpi_{name}"), value)).collect()
    }
}
