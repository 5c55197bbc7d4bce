//! Two TCP ends and a wire whose losses are written down: what happened, as a capture next to the client has it.
//!
//! The client sends what it is told to; the server takes it. A frame that leaves is captured, and then lost, late or on time as
//! the script says; acknowledgements are captured when they arrive. The handshake is in the capture only.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{Cursor, Read};

use capture::pcapng::{ETHERNET, EnhancedPacket, PcapngWriter};
use explain::ExplainOptions;
use explain::answer::ConnectionAnswer;
use machine::{Machine, Port, Pull};
use report::claim::ClaimError;
use tcp::{SegmentFlags, TcpCommand, TcpConfig, TcpConnection, TcpSegment, TcpSink, TcpTimer};
use units::{Span, Time, Unwatched};
use wire::ipv4::{self, Ipv4Header, Station};
use wire::tcp::{TcpHeader, TcpOpening};

const CLIENT: usize = 0;
const SERVER: usize = 1;
const STATIONS: [Station; 2] =
    [Station { mac: [2, 0, 0, 0, 0, 1], ip: [10, 0, 0, 1] }, Station { mac: [2, 0, 0, 0, 0, 2], ip: [10, 0, 0, 2] }];
const PORTS: [u16; 2] = [40_000, 80];
/// Windows in headers count in units of this power of two; a socket's own may be less.
const SCALE: u8 = 7;
/// A story ends after this many events.
const MOST_EVENTS: u32 = 100_000;

/// Fate of a frame with payload of the client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameFate {
    Arrives,
    Lost,
    /// Later than it should by this.
    Late(Span),
}

/// One connection, and what is done to it.
pub(super) struct Story<'a> {
    pub ends: [TcpConfig; 2],
    /// Delay in each direction.
    pub delay: Span,
    /// Time between two frames of the client.
    pub gap: Span,
    /// Times at which the client hands over data, with the number of bytes.
    pub sends: &'a [(Span, u64)],
    /// Time until which the server's application reads as soon as it can.
    pub reads_until: Span,
    /// Time between two reads; zero for an application that reads at once.
    pub reads_every: Span,
    /// Fate of a frame by the number of its segment, from 0, and by how often that was sent before.
    pub fate: &'a dyn Fn(u64, u32) -> FrameFate,
}

/// Result of a story.
pub(super) struct StoryOutcome {
    pub explained: ConnectionAnswer,
    /// Segments that must arrive behind a missing one before the client takes it for lost, at the end.
    pub threshold: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum StoryEvent {
    Send(u64),
    Arrives(usize, u64),
    Timer(usize, usize),
    WireIsFree(usize),
    Read,
}

struct StoryStage<'a> {
    story: &'a Story<'a>,
    begin: Time,
    machines: [TcpConnection; 2],
    timers: [[Option<Time>; 2]; 2],
    busy_until: [Time; 2],
    events: BinaryHeap<Reverse<(Time, u64, StoryEvent)>>,
    count: u64,
    on_way: BTreeMap<u64, TcpSegment>,
    /// Number of times that the client has sent the payload that begins there.
    copies: BTreeMap<u64, u32>,
    capture: Vec<(Time, Vec<u8>, u32)>,
    now: Time,
}

/// Plays a story to its end, and explains its capture.
pub(super) fn play(story: &Story<'_>) -> Result<StoryOutcome, ClaimError> {
    let begin = Time::ZERO + Span::from_ps(story.delay.as_ps() * 4);
    let mut stage = StoryStage {
        story,
        begin,
        machines: story.ends.map(|config| TcpConnection::new(&config, begin)),
        timers: [[None; 2]; 2],
        busy_until: [Time::ZERO; 2],
        events: BinaryHeap::new(),
        count: 0,
        on_way: BTreeMap::new(),
        copies: BTreeMap::new(),
        capture: Vec::new(),
        now: begin,
    };
    stage.shake_hands(begin);
    for (after, bytes) in story.sends {
        stage.event(begin + *after, StoryEvent::Send(*bytes));
    }
    for _ in 0..MOST_EVENTS {
        let Some(Reverse((now, _, event))) = stage.events.pop() else { break };
        stage.now = now;
        stage.handle(now, event);
        for side in [CLIENT, SERVER] {
            stage.serve(now, side);
        }
    }
    let threshold = stage.machines[CLIENT].info(stage.now).reordering;
    Ok(StoryOutcome { explained: explained(&stage.capture)?, threshold })
}

fn explained(capture: &[(Time, Vec<u8>, u32)]) -> Result<ConnectionAnswer, ClaimError> {
    let trouble = |error: std::io::Error| ClaimError::new(format!("a capture in memory: {error}"));
    let mut writer = PcapngWriter::new(Vec::new()).map_err(trouble)?;
    let interface = writer.interface(ETHERNET, 0, None).map_err(trouble)?;
    for (at, bytes, payload) in capture {
        let (at, len) = (at.as_ps() / 1_000, bytes.len() as u32 + payload);
        writer.packet(&EnhancedPacket { interface, at, len, bytes, ..EnhancedPacket::default() }).map_err(trouble)?;
    }
    let bytes = writer.into_inner();
    let options = ExplainOptions::default();
    let open = || -> std::io::Result<Box<dyn Read>> { Ok(Box::new(Cursor::new(bytes.clone()))) };
    let explanation = explain::explain(&open, &options, &Unwatched)
        .map_err(|error| ClaimError::new(format!("a capture of our own is refused: {error:?}")))?;
    explanation.answer().connections.pop().ok_or_else(|| ClaimError::new("no connection in the capture"))
}

impl StoryStage<'_> {
    fn event(&mut self, at: Time, event: StoryEvent) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, event)));
    }

    fn handle(&mut self, now: Time, event: StoryEvent) {
        match event {
            StoryEvent::Send(bytes) => self.command(now, CLIENT, TcpCommand::Send(bytes)),
            StoryEvent::Arrives(side, frame) => {
                if let Some(segment) = self.on_way.remove(&frame) {
                    self.arrives(now, side, segment);
                }
            }
            StoryEvent::Timer(side, slot) => {
                if self.timers[side][slot] == Some(now) {
                    self.timers[side][slot] = None;
                    let timer = if slot == TcpTimer::Loss as usize { TcpTimer::Loss } else { TcpTimer::Ack };
                    self.with(now, side, |machine, sink| machine.on_timer(now, timer, sink));
                }
            }
            StoryEvent::Read if now <= self.begin + self.story.reads_until => {
                let readable = self.machines[SERVER].readable();
                if readable > 0 {
                    self.command(now, SERVER, TcpCommand::Read(readable));
                }
            }
            StoryEvent::Read | StoryEvent::WireIsFree(_) => {}
        }
    }

    fn next_read(&self, now: Time) -> Time {
        let every = self.story.reads_every.as_ps();
        let since = now.since(self.begin).as_ps();
        if every == 0 { now } else { self.begin + Span::from_ps(since.div_ceil(every) * every) }
    }

    fn command(&mut self, now: Time, side: usize, command: TcpCommand) {
        self.with(now, side, |machine, sink| machine.on_command(now, command, sink));
    }

    fn arrives(&mut self, now: Time, side: usize, segment: TcpSegment) {
        if side == CLIENT {
            self.capture(now, SERVER, &segment);
        }
        let before = self.machines[SERVER].readable();
        self.with(now, side, |machine, sink| machine.on_frame(now, Port(0), segment, sink));
        if side == SERVER && self.machines[SERVER].readable() != before {
            self.event(self.next_read(now), StoryEvent::Read);
        }
    }

    /// Does something to a machine, and keeps its timers.
    fn with<T>(
        &mut self,
        now: Time,
        side: usize,
        act: impl FnOnce(&mut TcpConnection, &mut TcpSink) -> T,
    ) -> (T, TcpSink) {
        let before = self.timers[side];
        let mut sink = TcpSink { timers: before, ..TcpSink::default() };
        let result = act(&mut self.machines[side], &mut sink);
        self.timers[side] = sink.timers;
        for (slot, at) in sink.timers.into_iter().enumerate() {
            if let Some(at) = at.filter(|_| before[slot] != at) {
                self.event(at.max(now), StoryEvent::Timer(side, slot));
            }
        }
        (result, sink)
    }

    fn serve(&mut self, now: Time, side: usize) {
        while self.busy_until[side] <= now {
            let (pull, sink) = self.with(now, side, |machine, sink| machine.pull(now, Port(0), sink));
            for segment in &sink.left {
                self.leaves(now, side, segment);
            }
            match pull {
                Pull::Sent => {}
                Pull::Last | Pull::Idle => return,
                Pull::NotBefore(at) => {
                    self.event(at, StoryEvent::WireIsFree(side));
                    return;
                }
            }
        }
    }

    fn leaves(&mut self, now: Time, side: usize, segment: &TcpSegment) {
        let fate = if side == CLIENT && segment.len > 0 {
            let copies = self.copies.entry(segment.seq).or_default();
            *copies += 1;
            (self.story.fate)(segment.seq / u64::from(self.story.ends[CLIENT].mss), *copies - 1)
        } else {
            FrameFate::Arrives
        };
        if side == CLIENT {
            self.capture(now, CLIENT, segment);
        }
        if segment.len > 0 {
            self.busy_until[side] = now + self.story.gap;
            self.event(now + self.story.gap, StoryEvent::WireIsFree(side));
        }
        let late = match fate {
            FrameFate::Lost => return,
            FrameFate::Arrives => Span::ZERO,
            FrameFate::Late(late) => late,
        };
        let frame = self.count;
        self.on_way.insert(frame, *segment);
        self.event(now + self.story.delay + late, StoryEvent::Arrives(1 - side, frame));
    }

    fn shake_hands(&mut self, begin: Time) {
        let round_trip = self.story.delay + self.story.delay;
        let syn = TcpSegment { seq: u64::MAX, window: 64_240 << SCALE, ..TcpSegment::default() };
        let start = Time::ZERO + (begin.since(Time::ZERO) - round_trip);
        self.put(start, CLIENT, &TcpSegment { flags: SegmentFlags::NO_ACK, ..syn }, true);
        self.put(begin, SERVER, &syn, true);
        self.put(begin, CLIENT, &TcpSegment::default(), false);
    }

    fn capture(&mut self, at: Time, from: usize, segment: &TcpSegment) {
        self.put(at, from, segment, false);
    }

    fn put(&mut self, at: Time, from: usize, segment: &TcpSegment, syn: bool) {
        let position = |offset: i32| segment.ack.wrapping_add_signed(offset.into()) as u32;
        let blocks: Vec<(u32, u32)> =
            segment.sack.blocks().iter().map(|(from, to)| (position(*from), position(*to))).collect();
        let config = self.story.ends[from];
        let opening = TcpOpening { mss: config.mss as u16 + 12, scale: SCALE, sack: config.sack };
        let header = TcpHeader {
            timed: true,
            source: PORTS[from],
            destination: PORTS[1 - from],
            seq: segment.seq as u32,
            ack: (!segment.flags.has(SegmentFlags::NO_ACK)).then_some(segment.ack as u32),
            window: (segment.window >> SCALE).min(u16::MAX.into()) as u16,
            syn,
            opening: syn.then_some(opening),
            push: segment.flags.has(SegmentFlags::PSH),
            fin: segment.flags.has(SegmentFlags::FIN),
            ece: segment.ece,
            cwr: segment.cwr,
            timestamp: segment.timestamp,
            echo: segment.echo,
            sack: &blocks,
        };
        let payload = (header.size() as u32 + segment.len) as u16;
        let ip =
            Ipv4Header { from: STATIONS[from], to: STATIONS[1 - from], protocol: ipv4::TCP, ecn: segment.ecn, payload };
        let mut bytes = Vec::new();
        ip.emit(&mut bytes);
        header.emit(&ip, &mut bytes);
        self.capture.push((at, bytes, segment.len));
    }
}
