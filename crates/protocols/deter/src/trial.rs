//! Connections over a network of chance, recorded: what a replay is tried on.
//!
//! A seed draws both ends' configurations, the path (rate, delay, losses one by one and in bursts, marks, reordering,
//! duplicates), how the hosts hand frames over (one by one or in batches), whether there is a handshake, and what the
//! applications do. The network is two wires; what makes it unpredictable is in its draws.

mod draw;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use faults::Random;
use machine::{Machine, Port, Pull};
use tcp::{TcpCommand, TcpConnection, TcpProgress, TcpSegment, TcpSink, TcpTimer};
use units::{Span, Time};
use wire::ip::Ecn;

use crate::decisions::RecordingSink;
use crate::header::LogHeader;
use crate::recorder::ConnectionRecorder;
use crate::{LogLevel, LogSide, LoggedHandshake, Sent};
use draw::{TrialPath, TrialWork};

/// A trial ends after this many events, whatever is left to do: the machine's own tests show that it ends.
const MOST_EVENTS: u64 = 30_000;

/// Runs the connection of this seed, and records it; `None` if the level cannot hold it.
pub fn record_trial(seed: u64, level: LogLevel) -> Option<Vec<u8>> {
    let mut random = Random::new(seed, 0x0de7);
    let began = Time::from_ps(random.below(1 << 40));
    let ends = draw::configs(&mut random);
    if !ends.iter().all(|end| level.admits(end.algorithm)) {
        return None;
    }
    let header = LogHeader { level, point: 0, seed, flow: 0, hosts: [0, 1], began, ends };
    let path = TrialPath::draw(&mut random);
    let work = TrialWork::draw(&mut random, ends[0].socket.is_some() && ends[1].socket.is_some());
    let mut trial = TrialConnection {
        recorder: ConnectionRecorder::new(&header),
        ends: ends.map(|config| TrialEnd::new(TcpConnection::new(&config, began))),
        events: BinaryHeap::new(),
        frames: BTreeMap::new(),
        count: 0,
        burst: 0,
        path,
        work,
        random,
    };
    trial.run(began);
    Some(trial.recorder.finish())
}

struct TrialConnection {
    recorder: ConnectionRecorder,
    ends: [TrialEnd; 2],
    events: BinaryHeap<Reverse<(Time, u64, TrialEvent)>>,
    /// Frames on their way, by a number of their own.
    frames: BTreeMap<u64, FrameInFlight>,
    count: u64,
    /// Frames that a burst still takes.
    burst: u64,
    path: TrialPath,
    work: TrialWork,
    random: Random,
}

#[derive(Clone, Copy)]
struct FrameInFlight {
    number: u64,
    sent: Sent,
    ecn: Option<Ecn>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TrialEvent {
    Arrives(u8, u64),
    /// A host hands over what has arrived.
    Batch(u8),
    Timer(u8, u8),
    WireIsFree(u8),
    Work(u8),
    /// Asks for the connection again.
    Syn,
}

struct TrialEnd {
    machine: TcpConnection,
    timers: [Option<Time>; 2],
    /// True if it may have something to send.
    woken: bool,
    busy_until: Time,
    arrived: Vec<u64>,
    batch_at: Option<Time>,
    /// Bytes that were delivered, and read.
    delivered: u64,
    read: u64,
    peer_closed: bool,
}

impl TrialEnd {
    fn new(machine: TcpConnection) -> Self {
        Self {
            machine,
            timers: [None; 2],
            woken: false,
            busy_until: Time::ZERO,
            arrived: Vec::new(),
            batch_at: None,
            delivered: 0,
            read: 0,
            peer_closed: false,
        }
    }
}

impl TrialConnection {
    fn run(&mut self, began: Time) {
        if self.work.handshake {
            self.event(began, TrialEvent::Syn);
        } else {
            self.event(began, TrialEvent::Work(0));
        }
        let mut events = 0;
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            events += 1;
            if events > MOST_EVENTS {
                break;
            }
            self.handle(now, event);
            for side in LogSide::BOTH {
                self.serve(now, side);
            }
        }
    }

    fn event(&mut self, at: Time, event: TrialEvent) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, event)));
    }

    fn handle(&mut self, now: Time, event: TrialEvent) {
        let side = |number: u8| LogSide::BOTH[usize::from(number)];
        match event {
            TrialEvent::Arrives(at, frame) => self.arrives(now, side(at), frame),
            TrialEvent::Batch(at) => self.hand_over(now, side(at)),
            TrialEvent::Timer(at, slot) => {
                let end = &mut self.ends[usize::from(at)];
                if end.timers[usize::from(slot)] == Some(now) {
                    end.timers[usize::from(slot)] = None;
                    let timer = if slot == 0 { TcpTimer::Loss } else { TcpTimer::Ack };
                    self.with(now, side(at), |machine, sink| machine.on_timer(now, timer, sink));
                    self.recorder.timer(side(at), now, timer);
                }
            }
            TrialEvent::WireIsFree(_) => {}
            TrialEvent::Work(at) => self.work(now, side(at)),
            TrialEvent::Syn => self.ask(now),
        }
    }

    /// Does something to a machine, and what follows from it.
    fn with<T>(
        &mut self,
        now: Time,
        side: LogSide,
        act: impl FnOnce(&mut TcpConnection, &mut RecordingSink<'_, TcpSink>) -> T,
    ) -> (T, Option<TcpSegment>) {
        let end = &mut self.ends[side as usize];
        let before = end.timers;
        let mut sink = TcpSink { timers: before, ..TcpSink::default() };
        let decisions = self.recorder.decisions(side);
        let result = act(&mut end.machine, &mut RecordingSink { out: &mut sink, decisions });
        let TcpSink { left, progress, timers } = sink;
        (end.woken, end.timers) = (true, timers);
        for (slot, at) in timers.into_iter().enumerate() {
            if let Some(at) = at.filter(|_| before[slot] != at) {
                self.event(at.max(now), TrialEvent::Timer(side as u8, slot as u8));
            }
        }
        for done in progress {
            self.progress(now, side, done);
        }
        (result, left.first().copied())
    }

    fn command(&mut self, now: Time, side: LogSide, command: TcpCommand) {
        self.with(now, side, |machine, sink| machine.on_command(now, command, sink));
        self.recorder.command(side, now, command);
    }

    fn progress(&mut self, now: Time, side: LogSide, done: TcpProgress) {
        let end = &mut self.ends[side as usize];
        match done {
            TcpProgress::Delivered(bytes) => end.delivered = bytes,
            TcpProgress::PeerClosed => end.peer_closed = true,
            _ => return,
        }
        let at = now + self.work.pause(&mut self.random);
        self.event(at, TrialEvent::Work(side as u8));
    }

    /// The application of an end has its turn.
    fn work(&mut self, now: Time, side: LogSide) {
        let end = &self.ends[side as usize];
        let readable = end.machine.readable();
        if readable > 0 {
            let bytes = self.work.reads(readable, &mut self.random);
            self.ends[side as usize].read += bytes;
            self.command(now, side, TcpCommand::Read(bytes));
            if bytes < readable {
                let at = now + self.work.pause(&mut self.random);
                self.event(at, TrialEvent::Work(side as u8));
            }
        }
        let (delivered, closed) = (self.ends[side as usize].delivered, self.ends[side as usize].peer_closed);
        if let Some(command) = self.work.next(side, delivered, closed, &mut self.random) {
            self.command(now, side, command);
            let at = now + self.work.pause(&mut self.random);
            self.event(at, TrialEvent::Work(side as u8));
        }
    }

    /// SYN, and again after a while.
    fn ask(&mut self, now: Time) {
        if self.work.handshake {
            self.say(now, LogSide::Client, LoggedHandshake::Syn);
            self.event(now + Span::from_ms(1_000), TrialEvent::Syn);
        }
    }

    fn say(&mut self, now: Time, side: LogSide, step: LoggedHandshake) {
        let number = self.recorder.handshake(side, now, step);
        self.leaves(now, side, number, Sent::Handshake(step));
    }

    /// Pulls if the wire is free; a host may be busy with others for a while.
    fn serve(&mut self, now: Time, side: LogSide) {
        while self.ends[side as usize].woken && self.ends[side as usize].busy_until <= now {
            let pull = self.pull(now, side);
            match pull {
                Pull::Sent => {}
                Pull::Last | Pull::Idle => self.ends[side as usize].woken = false,
                Pull::NotBefore(at) => {
                    self.ends[side as usize].busy_until = at;
                    self.event(at, TrialEvent::WireIsFree(side as u8));
                }
            }
        }
    }

    fn pull(&mut self, now: Time, side: LogSide) -> Pull {
        let (pull, segment) = self.with(now, side, |machine, sink| machine.pull(now, Port(0), sink));
        let number = self.recorder.pull(side, now, segment.as_ref());
        if let Some(segment) = segment {
            self.leaves(now, side, number, Sent::Segment(segment));
        }
        pull
    }

    fn leaves(&mut self, now: Time, side: LogSide, number: u64, sent: Sent) {
        let len = if let Sent::Segment(segment) = &sent { segment.len } else { 0 };
        let begin = self.ends[side as usize].busy_until.max(now);
        self.recorder.departs(side, begin, number);
        let others = self.path.others(&mut self.random);
        let end = begin + self.path.sending(len) + others;
        self.ends[side as usize].busy_until = end;
        self.event(end, TrialEvent::WireIsFree(side as u8));
        if self.burst > 0 {
            self.burst -= 1;
            return;
        }
        let mut ecn = None;
        if let Sent::Segment(segment) = &sent
            && self.path.marks(&mut self.random)
        {
            ecn = Some(segment.ecn.marked()).filter(|marked| *marked != segment.ecn);
        }
        let Some(fate) = self.path.fate(&mut self.random) else {
            self.burst = self.path.burst(&mut self.random);
            return;
        };
        for late in fate {
            self.count += 1;
            let key = self.count;
            self.frames.insert(key, FrameInFlight { number, sent, ecn });
            self.event(end + self.path.delay + late, TrialEvent::Arrives(side.peer() as u8, key));
        }
    }

    fn arrives(&mut self, now: Time, side: LogSide, frame: u64) {
        let end = &mut self.ends[side as usize];
        end.arrived.push(frame);
        if self.path.batch == Span::ZERO {
            return self.hand_over(now, side);
        }
        if end.batch_at.is_none() {
            let at = now + self.path.batch;
            end.batch_at = Some(at);
            self.event(at, TrialEvent::Batch(side as u8));
        }
    }

    /// A host hands over all that has arrived; between two frames it may let the end answer.
    fn hand_over(&mut self, now: Time, side: LogSide) {
        self.ends[side as usize].batch_at = None;
        let frames = std::mem::take(&mut self.ends[side as usize].arrived);
        for (at, key) in frames.into_iter().enumerate() {
            let Some(FrameInFlight { number, sent, ecn }) = self.frames.remove(&key) else { continue };
            if at > 0 && self.random.below(4) == 0 {
                self.pull(now, side);
            }
            match sent {
                Sent::Handshake(step) => {
                    self.recorder.frame(side, now, number, None);
                    self.shaken(now, side, step);
                }
                Sent::Segment(segment) => {
                    let segment = TcpSegment { ecn: ecn.unwrap_or(segment.ecn), ..segment };
                    self.with(now, side, |machine, sink| machine.on_frame(now, Port(0), segment, sink));
                    self.recorder.frame(side, now, number, ecn);
                }
            }
        }
    }

    fn shaken(&mut self, now: Time, side: LogSide, step: LoggedHandshake) {
        if step == LoggedHandshake::Syn {
            self.say(now, side, LoggedHandshake::SynAck);
        } else if std::mem::take(&mut self.work.handshake) {
            self.event(now, TrialEvent::Work(0));
        }
    }
}
