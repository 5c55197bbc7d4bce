//! TCP connections as logs that can be replayed exactly (`deter`).
//!
//! The tag of a packet is its number among all that its end has sent, so that a log can say which of them arrived. What
//! is recorded changes nothing in a run.

use std::fmt;

use deter::{ConnectionRecorder, LogHeader, LogSide, LoggedHandshake, RecordLevel};
use machine::{Conversation, Forward, SwitchProgram, Visit};
use tcp::TcpTimer;
use tcp::cc::Algorithm;
use units::Time;

use super::{BegunConnection, EndCall, NetworkProgram};
use crate::net::index::{ConnectionId, EndId};
use crate::net::packet::SimPacket;
use crate::net::setup::NetworkSetup;
use crate::net::transports::{Body, Handshake, TransportSetup, tcp_config_of};

/// Blocks are handed over when they are this long together.
const HAND_OVER: usize = 1 << 12;

/// Where logs go.
pub trait LogStore {
    /// These whole blocks follow what there is of a connection's log.
    fn append(&mut self, flow: u32, blocks: &[u8]);
}

/// Why a setup cannot be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordRefusal {
    /// There is no TCP in it.
    NoTcp,
    /// BBR's decisions are made of times.
    Bbr,
}

impl fmt::Display for RecordRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTcp => "nothing to record: no traffic is TCP",
            Self::Bbr => "BBR's decisions are made of times: expected --record-level times",
        })
    }
}

/// Records all TCP connections of a run.
pub struct Recording<'s> {
    level: RecordLevel,
    point: u32,
    seed: u64,
    store: &'s mut dyn LogStore,
    /// By the number of the connection.
    connections: Vec<Option<Box<RecordedConnection>>>,
}

struct RecordedConnection {
    flow: u32,
    recorder: ConnectionRecorder,
    /// Number of the last packet of each end.
    last: [u32; 2],
}

impl<'s> Recording<'s> {
    /// Of this point of a sweep.
    pub fn new(
        setup: &NetworkSetup,
        level: RecordLevel,
        point: u32,
        store: &'s mut dyn LogStore,
    ) -> Result<Self, RecordRefusal> {
        let mut algorithms = setup.traffic.iter().filter_map(|traffic| match &traffic.transport {
            TransportSetup::Tcp(config) => Some(config.algorithm),
            _ => None,
        });
        if algorithms.clone().next().is_none() {
            return Err(RecordRefusal::NoTcp);
        }
        if level == RecordLevel::Decisions && algorithms.any(|algorithm| algorithm == Algorithm::Bbr) {
            return Err(RecordRefusal::Bbr);
        }
        Ok(Self { level, point, seed: setup.seed, store, connections: Vec::new() })
    }

    /// The run is over: so are all connections.
    pub(in crate::net) fn finish(&mut self) {
        for connection in std::mem::take(&mut self.connections).into_iter().flatten() {
            self.store.append(connection.flow, &connection.recorder.finish());
        }
    }

    #[inline]
    fn of(&mut self, end: EndId) -> Option<(&mut RecordedConnection, LogSide)> {
        let side = if end.is_source() { LogSide::Client } else { LogSide::Server };
        let connection = self.connections.get_mut(end.connection().0 as usize)?.as_deref_mut()?;
        Some((connection, side))
    }
}

impl fmt::Debug for Recording<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("level", &self.level).finish_non_exhaustive()
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
        self.connections[at] = Some(Box::new(RecordedConnection { flow, recorder, last: [0; 2] }));
    }

    fn on_call(&mut self, now: Time, end: EndId, call: EndCall<'_>, tag: Option<&u32>) {
        let Some((RecordedConnection { flow, recorder, last }, side)) = self.of(end) else { return };
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
