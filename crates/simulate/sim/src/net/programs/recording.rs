//! TCP connections as logs that can be replayed exactly (`deter`).
//!
//! The tag of a packet is its number among all that its end has sent, so that a log can say which of them arrived. What
//! is recorded changes nothing in a run.

use std::fmt;

use deter::{ConnectionRecorder, DecisionLog, LogHeader, LogLevel, LogSide, LoggedHandshake, ReplayedFrame, Sent};
use machine::{Conversation, Forward, SwitchProgram, TimeSite, Visit};
use tcp::cc::Algorithm;
use tcp::{TcpConnection, TcpTimer};
use units::Time;
use wire::ip::Ecn;

use super::{BegunConnection, DecisionSink, EndCall, NetworkProgram};
use crate::net::index::{ConnectionId, EndId, PacketId};
use crate::net::outcome::PortCapture;
use crate::net::packet::{RoutePosition, SimPacket};
use crate::net::setup::NetworkSetup;
use crate::net::transports::{Body, Handshake, SimTransport, TCP_HEADERS, TransportSetup, tcp_config_of};
use crate::topology::{DirectedLink, NodeId};

/// Blocks are handed over when they are this long together.
const HAND_OVER: usize = 1 << 12;

/// Destination of logs.
pub trait LogStore {
    /// These whole blocks follow what there is of a connection's log.
    fn append(&mut self, flow: u32, blocks: &[u8]);
}

/// True if there is anything to record.
pub fn has_tcp(setup: &NetworkSetup) -> bool {
    setup.traffic.iter().any(|traffic| matches!(traffic.transport, TransportSetup::Tcp(_)))
}

/// The congestion control of a setup whose connections this level cannot hold, if there is one.
pub fn refused_control(setup: &NetworkSetup, level: LogLevel) -> Option<Algorithm> {
    setup.traffic.iter().find_map(|traffic| match &traffic.transport {
        TransportSetup::Tcp(config) if !level.admits(config.algorithm) => Some(config.algorithm),
        _ => None,
    })
}

/// Records all TCP connections of a run.
pub struct Recording<'s> {
    level: LogLevel,
    point: u32,
    seed: u64,
    store: &'s mut dyn LogStore,
    /// Logs by the number of the connection.
    connections: Vec<Option<Box<LoggedConnection>>>,
}

struct LoggedConnection {
    flow: u32,
    recorder: ConnectionRecorder,
    /// Number of the last packet of each end.
    last: [u32; 2],
}

impl<'s> Recording<'s> {
    /// Records this point of a sweep; [`refused_control`] finds nothing at this level.
    pub fn new(setup: &NetworkSetup, point: u32, level: LogLevel, store: &'s mut dyn LogStore) -> Self {
        Self { level, point, seed: setup.seed, store, connections: Vec::new() }
    }

    /// The run is over: so are all connections.
    pub(in crate::net) fn finish(&mut self) {
        for connection in std::mem::take(&mut self.connections).into_iter().flatten() {
            self.store.append(connection.flow, &connection.recorder.finish());
        }
    }

    #[inline]
    fn of(&mut self, end: EndId) -> Option<(&mut LoggedConnection, LogSide)> {
        let side = if end.is_source() { LogSide::Client } else { LogSide::Server };
        let connection = self.connections.get_mut(end.connection().0 as usize)?.as_deref_mut()?;
        Some((connection, side))
    }
}

impl fmt::Debug for Recording<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("point", &self.point).finish_non_exhaustive()
    }
}

impl SwitchProgram for &mut Recording<'_> {
    type Frame = SimPacket;
    type Tag = u32;

    fn watches_hosts(&self) -> bool {
        true
    }

    #[inline]
    fn on_route(&mut self, _now: Time, _at: Visit, _frame: &mut SimPacket, _tag: &mut u32) -> Forward {
        Forward::Pass
    }

    fn on_host_sends(&mut self, now: Time, _link: u32, _who: Conversation, frame: &mut SimPacket, tag: &mut u32) {
        let Some((connection, side)) = self.of(frame.route.from()) else { return };
        if let Body::Handshake(step) = frame.body {
            let step = match step {
                Handshake::Syn => LoggedHandshake::Syn,
                Handshake::SynAck => LoggedHandshake::SynAck,
                // Nothing of a connection depends on it.
                Handshake::Fin => return,
            };
            connection.last[side as usize] = connection.recorder.handshake(side, now, step) as u32;
        }
        *tag = connection.last[side as usize];
    }
}

impl NetworkProgram for &mut Recording<'_> {
    fn watches_ends(&self) -> bool {
        true
    }

    fn on_connect(&mut self, now: Time, connection: &BegunConnection<'_>) {
        let TransportSetup::Tcp(config) = connection.transport else { return };
        let config = tcp_config_of(config, connection.round_trip, connection.seed);
        let header = LogHeader {
            level: self.level,
            point: self.point,
            seed: self.seed,
            flow: connection.number,
            hosts: connection.hosts.map(|host| host.0),
            began: now,
            ends: [config; 2],
        };
        let at = connection.id.0 as usize;
        if self.connections.len() <= at {
            self.connections.resize_with(at + 1, || None);
        }
        let (flow, recorder) = (connection.number, ConnectionRecorder::new(&header));
        self.connections[at] = Some(Box::new(LoggedConnection { flow, recorder, last: [0; 2] }));
    }

    fn on_call(&mut self, now: Time, end: EndId, call: EndCall<'_>, tag: Option<&u32>) {
        let Some((LoggedConnection { flow, recorder, last }, side)) = self.of(end) else { return };
        match call {
            EndCall::Pull(Some(Body::Tcp(segment))) => {
                last[side as usize] = recorder.pull(side, now, Some(segment)) as u32;
            }
            EndCall::Pull(_) => drop(recorder.pull(side, now, None)),
            EndCall::Receive(Body::Tcp(segment), ecn) => {
                let remarked = Some(ecn).filter(|ecn| *ecn != segment.ecn);
                recorder.frame(side, now, tag.copied().unwrap_or_default().into(), remarked);
            }
            EndCall::Receive(..) | EndCall::Shaken => {
                recorder.frame(side, now, tag.copied().unwrap_or_default().into(), None);
            }
            EndCall::Timer(timer) => {
                let timer = if timer == TcpTimer::Loss as usize { TcpTimer::Loss } else { TcpTimer::Ack };
                recorder.timer(side, now, timer);
            }
            EndCall::Send(bytes) => recorder.command(side, now, tcp::TcpCommand::Send(bytes)),
        }
        if recorder.waiting() >= HAND_OVER {
            let (flow, blocks) = (*flow, recorder.take());
            self.store.append(flow, &blocks);
        }
    }

    #[inline]
    fn decisions(&mut self, end: EndId) -> impl DecisionSink {
        let connection = if self.level == LogLevel::Times { None } else { self.of(end) };
        connection.and_then(|(connection, side)| connection.recorder.decisions(side))
    }

    fn on_leaving(&mut self, at: Time, end: EndId, tag: &u32) {
        if let Some((connection, side)) = self.of(end) {
            connection.recorder.departs(side, at, u64::from(*tag));
        }
    }

    fn on_close(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id.0 as usize).and_then(Option::take) else { return };
        self.store.append(connection.flow, &connection.recorder.finish());
    }
}

impl DecisionSink for &mut DecisionLog {
    #[inline]
    fn decide(&mut self, site: TimeSite, answer: bool) {
        DecisionLog::decide(self, site, answer);
    }

    #[inline]
    fn tick(&mut self, site: TimeSite, value: u64) {
        DecisionLog::tick(self, site, value);
    }
}

/// A frame of a replay as a capture at the port of its host would have it; the port's number is that of the host.
pub fn capture_of(header: &LogHeader, frame: &ReplayedFrame) -> PortCapture {
    let forward = frame.side == LogSide::Client;
    let [src, dst] = header.hosts.map(NodeId);
    let (body, len, ecn) = match frame.sent {
        Sent::Segment(segment) => (Body::Tcp(segment), TcpConnection::frame_len(&segment) as u16, segment.ecn),
        Sent::Handshake(step) => {
            let step = match step {
                LoggedHandshake::Syn => Handshake::Syn,
                LoggedHandshake::SynAck => Handshake::SynAck,
            };
            (Body::Handshake(step), TCP_HEADERS as u16, Ecn::NotCapable)
        }
    };
    let (route, came_by) = (RoutePosition::of(EndId(0)), SimPacket::NOWHERE);
    let packet = SimPacket { route, came_by, next: PacketId::NONE, len, class: 0, ecn, body };
    PortCapture {
        at: frame.at,
        port: DirectedLink(header.hosts[usize::from(!forward)]),
        src,
        dst,
        flow: header.flow,
        forward,
        packet,
        reserve: None,
        corrupted: false,
    }
}
