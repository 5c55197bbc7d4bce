//! Our TCP as a subject, in simulated time: a connection, the handshake before it, and the sockets that scripts call.
//!
//! ```text
//!   listening ── SYN ──▶ handshake ── ACK ──▶ open ── FIN, RST, timeout ──▶ open, but over
//!   connect ── SYN ────▶ handshake ── SYN-ACK ▶ open
//! ```
//!
//! One connection for each script. What a call would wait for is looked at again after every step of the connection.

mod calls;
mod driver;
mod handshake;
mod segments;
mod settings;

use std::collections::{BTreeMap, VecDeque};

use tcp::{LinuxVersion, TcpCommand, TcpConnection, TcpProgress};
use units::{Span, Time};

use crate::language::{CallResult, Setting, SocketCall, TcpInfoFields};
use crate::segment::{DrillSegment, TcpFlags};
use crate::subject::{DrillStop, SentSegment, Subject};
use driver::ConnectionDriver;
use handshake::{DrillHandshake, PeerOffer};
use segments::SegmentMap;
use settings::HostSettings;

/// Our TCP under test.
#[derive(Debug)]
pub(crate) struct MachineSubject {
    now: Time,
    settings: HostSettings,
    sockets: BTreeMap<i64, MachineSocket>,
    connection: ConnectionStage,
    left: VecDeque<SentSegment>,
    started: Option<StartedCall>,
    ended: Option<(Time, CallResult)>,
}

/// Stage of a script's connection.
#[derive(Debug)]
enum ConnectionStage {
    None,
    Handshake(DrillHandshake),
    Open(Box<OpenConnection>),
}

/// A connection after its handshake.
#[derive(Debug)]
struct OpenConnection {
    driver: ConnectionDriver,
    map: SegmentMap,
    mss: u32,
    advertised_mss: u16,
    accepted: bool,
    /// Bytes that were written, and those of them that the send buffer took.
    written: u64,
    taken: u64,
    peer_closed: bool,
    /// Error that the next call reports.
    error: Option<&'static str>,
    over: bool,
    shut_read: bool,
    shut_write: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketRole {
    Fresh,
    Listening,
    Connected,
}

/// A socket with the options that were set on it.
#[derive(Clone, Debug)]
struct MachineSocket {
    role: SocketRole,
    nonblocking: bool,
    max_segment: Option<u16>,
    nodelay: bool,
    cork: bool,
    user_timeout: Option<Span>,
    send_buffer: Option<u64>,
    inq: bool,
}

/// A call that may wait, and what it waits for.
#[derive(Clone, Copy, Debug)]
struct StartedCall {
    descriptor: i64,
    call: SocketCall,
    /// Bytes that the send buffer must have taken.
    target: Option<u64>,
}

impl MachineSubject {
    /// A host with the TCP of that kernel.
    pub(crate) fn new(version: LinuxVersion) -> Self {
        Self::with_ticks(version, 1_000, Span::ZERO)
    }

    /// A host whose clock has this many ticks a second, the first of them at `phase`.
    pub(crate) fn with_ticks(version: LinuxVersion, hz: u32, phase: Span) -> Self {
        Self {
            now: Time::ZERO,
            settings: HostSettings::new(version, hz, phase),
            sockets: BTreeMap::new(),
            connection: ConnectionStage::None,
            left: VecDeque::new(),
            started: None,
            ended: None,
        }
    }

    fn send(&mut self, segment: DrillSegment) {
        self.left.push_back(SentSegment { at: self.now, segment });
    }

    /// Options of the socket that the connection belongs to, or will.
    fn owner(&self) -> Option<&MachineSocket> {
        let owns = |role| self.sockets.values().find(|socket| socket.role == role);
        owns(SocketRole::Connected).or_else(|| owns(SocketRole::Listening))
    }

    /// Time of the next event that happens by itself.
    pub(crate) fn next_timer(&self) -> Option<Time> {
        match &self.connection {
            ConnectionStage::None => None,
            ConnectionStage::Handshake(handshake) => handshake.retry_at(),
            ConnectionStage::Open(open) => open.driver.next(),
        }
    }

    /// Lets the next thing happen, if it is due until then.
    fn step(&mut self, until: Time) -> bool {
        let Some(next) = self.next_timer().filter(|next| *next <= until) else { return false };
        self.now = self.now.max(next);
        match &mut self.connection {
            ConnectionStage::None => {}
            ConnectionStage::Handshake(handshake) => {
                handshake.retries += 1;
                let syn = handshake.syn.clone();
                self.send(syn);
            }
            ConnectionStage::Open(open) => open.driver.run(self.now),
        }
        self.settle();
        true
    }

    /// Takes over what the connection did, and lets a waiting call look again.
    fn settle(&mut self) {
        if let ConnectionStage::Open(open) = &mut self.connection {
            let (left, progress) = open.driver.take();
            progress.into_iter().for_each(|progress| open.note(progress));
            let map = open.map;
            for segment in left {
                self.send(map.leaving(&segment, self.now));
            }
        }
        let Some(started) = self.started.filter(|_| self.ended.is_none()) else { return };
        if let Some(result) = self.attempt(started) {
            self.ended = Some((self.now, result));
        }
    }

    /// Ends a handshake: the connection is open from now on.
    fn establish(&mut self, handshake: &DrillHandshake, peer: &PeerOffer, segment: &DrillSegment) {
        let owner = self.owner().cloned();
        let max_segment = owner.as_ref().and_then(|socket| socket.max_segment);
        let config = handshake.config(&self.settings, max_segment, peer, segment, self.now);
        let map = SegmentMap {
            peer_first: peer.seq,
            own_shift: config.socket.map_or(0, |socket| socket.window_scale),
            peer_shift: handshake.peer_shift(peer),
            timestamps: config.timestamps,
        };
        let mut driver = ConnectionDriver::new(TcpConnection::new(&config, self.now));
        for command in owner.iter().flat_map(MachineSocket::commands) {
            driver.command(self.now, command);
        }
        self.connection = ConnectionStage::Open(Box::new(OpenConnection {
            driver,
            map,
            mss: config.mss,
            advertised_mss: handshake::own_mss(max_segment),
            accepted: false,
            written: 0,
            taken: 0,
            peer_closed: false,
            error: None,
            over: false,
            shut_read: false,
            shut_write: false,
        }));
    }

    /// A segment for a handshake of this side's `connect`.
    fn answer_to_connect(&mut self, handshake: DrillHandshake, segment: &DrillSegment) {
        let answers = segment.is(TcpFlags::ACK) && segment.ack == 1;
        if answers && segment.is(TcpFlags::RST) {
            self.ended = self.started.take().map(|_| (self.now, CallResult::error("ECONNREFUSED")));
            self.connection = ConnectionStage::None;
        } else if answers && segment.is(TcpFlags::SYN) {
            let peer = PeerOffer::of(segment);
            self.establish(&handshake, &peer, segment);
            if let ConnectionStage::Open(open) = &mut self.connection {
                open.accepted = true;
                let ack = open.map.acknowledgement(segment, self.settings.first_window(), self.now);
                self.send(ack);
            }
        } else {
            self.connection = ConnectionStage::Handshake(handshake);
        }
    }

    /// A segment for a handshake that the other side began.
    fn answer_to_syn_ack(&mut self, handshake: DrillHandshake, peer: &PeerOffer, segment: &DrillSegment) {
        if segment.is(TcpFlags::RST) {
            self.connection = ConnectionStage::None;
        } else if segment.is(TcpFlags::ACK) && !segment.is(TcpFlags::SYN) && segment.ack == 1 {
            self.establish(&handshake, peer, segment);
            let carries = segment.len > 0 || segment.is(TcpFlags::FIN);
            if let ConnectionStage::Open(open) = &mut self.connection
                && carries
            {
                let segment = open.map.arriving(segment);
                open.driver.arrives(self.now, segment);
            }
        } else {
            if segment.is(TcpFlags::SYN) {
                self.send(handshake.syn.clone());
            }
            self.connection = ConnectionStage::Handshake(handshake);
        }
    }

    /// A segment while there is no connection.
    fn without_connection(&mut self, segment: &DrillSegment) {
        let listens = self.sockets.values().find(|socket| socket.role == SocketRole::Listening);
        match listens {
            Some(socket) if segment.is(TcpFlags::SYN) && !segment.is(TcpFlags::ACK) => {
                let handshake = DrillHandshake::passive(&self.settings, socket.max_segment, segment, self.now);
                self.send(handshake.syn.clone());
                self.connection = ConnectionStage::Handshake(handshake);
            }
            _ if segment.is(TcpFlags::RST) => {}
            _ => self.send(SegmentMap::refusal(segment)),
        }
    }
}

impl MachineSocket {
    fn new() -> Self {
        Self {
            role: SocketRole::Fresh,
            nonblocking: false,
            max_segment: None,
            nodelay: false,
            cork: false,
            user_timeout: None,
            send_buffer: None,
            inq: false,
        }
    }

    /// Commands that tell a new connection the options set before.
    fn commands(&self) -> Vec<TcpCommand> {
        let mut commands = Vec::new();
        if self.nodelay {
            commands.push(TcpCommand::NoDelay(true));
        }
        if self.cork {
            commands.push(TcpCommand::Cork(true));
        }
        commands.extend(self.send_buffer.map(TcpCommand::SendBuffer));
        commands.extend(self.user_timeout.map(|timeout| TcpCommand::UserTimeout(Some(timeout))));
        commands
    }
}

impl OpenConnection {
    fn note(&mut self, progress: TcpProgress) {
        match progress {
            TcpProgress::Written(bytes) => self.taken = bytes,
            TcpProgress::PeerClosed => self.peer_closed = true,
            TcpProgress::Closed => self.over = true,
            TcpProgress::Reset => (self.over, self.error) = (true, Some("ECONNRESET")),
            TcpProgress::TimedOut => (self.over, self.error) = (true, Some("ETIMEDOUT")),
            TcpProgress::Acknowledged(_) | TcpProgress::Delivered(_) => {}
        }
    }
}

impl Subject for MachineSubject {
    fn start(&mut self) {}

    fn now(&self) -> Time {
        self.now
    }

    fn advance(&mut self, until: Time) {
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    fn arrives(&mut self, segment: &DrillSegment) -> Result<(), DrillStop> {
        match std::mem::replace(&mut self.connection, ConnectionStage::None) {
            ConnectionStage::None => self.without_connection(segment),
            ConnectionStage::Handshake(handshake) => match handshake.peer {
                Some(peer) => self.answer_to_syn_ack(handshake, &peer, segment),
                None => self.answer_to_connect(handshake, segment),
            },
            ConnectionStage::Open(mut open) => {
                if segment.is(TcpFlags::SYN) {
                    return DrillStop::not_applicable("a SYN on an open connection is not modelled");
                }
                let segment = open.map.arriving(segment);
                open.driver.arrives(self.now, segment);
                self.connection = ConnectionStage::Open(open);
            }
        }
        self.settle();
        Ok(())
    }

    fn next_sent(&mut self, deadline: Time) -> Option<SentSegment> {
        while self.left.is_empty() {
            if !self.step(deadline) {
                self.now = self.now.max(deadline);
                return None;
            }
        }
        self.left.pop_front()
    }

    fn call(&mut self, descriptor: i64, call: &SocketCall) -> Result<CallResult, DrillStop> {
        self.perform(descriptor, call)
    }

    fn start_call(&mut self, descriptor: i64, call: &SocketCall) -> Result<(), DrillStop> {
        self.begin(descriptor, call)
    }

    fn call_ended(&mut self, deadline: Time) -> Option<(Time, CallResult)> {
        while self.ended.is_none() && self.step(deadline) {}
        self.started = None;
        self.ended.take()
    }

    fn info(&mut self) -> Result<TcpInfoFields, DrillStop> {
        match &self.connection {
            ConnectionStage::Open(open) => Ok(open.info(self.now)),
            _ => DrillStop::not_applicable("TCP_INFO before a connection is open is not modelled"),
        }
    }

    fn configure(&mut self, setting: &Setting) -> Result<(), DrillStop> {
        self.settings.apply(setting)
    }
}
