//! The corrupting wire: stands between two interfaces and does to frames what a bad cable does.
//!
//! ```text
//!   A ──▶ faults ──▶ rate ──▶ delay ──▶ B          and the same from B to A, each with its own
//! ```
//!
//! A corrupted frame fails the check at the far end's port, so it is dropped here, and counted as that port
//! would. Or it is passed on with a bit flipped, for trying out what happens where nobody checks. What
//! is counted and logged here is the truth that other tools are held against.
//!
//! Hosts on virtual interfaces leave checksums and segmentation to the receiver. A cable can do neither: with
//! sockets that carry vnet headers, both are done before a frame enters the wire.
//!
//! With a repeater ([`Medium::repeating`]) a switch stands between A and the wire, and A leads to hosts. With
//! [`Medium::rewriting`] what comes out has been through a router.

mod claim;
mod direction;
mod exit;
mod kernel;
mod log;
mod port_files;
mod repeat;
mod rewrite;

use std::io::{self, PipeReader};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::Duration;

use faults::Random;
use units::{Bytes, Span, Time};

use linux::clock::{Clock, TwoClocks};
use linux::offload::Pieces;
use linux::packet::PacketSocket;
use linux::poll;

use direction::{WireDirection, carry_one};
use exit::{Exit, RouterState};
use log::{CorruptionLog, ErrorReporter};

pub use claim::InterfaceClaim;
pub use direction::{DirectionConfig, DirectionCounters};
pub use kernel::KernelWire;
pub use port_files::keep_counters;
pub use repeat::{Repeat, RepeatCounters};
pub use rewrite::{Nat, Rewrite};

#[derive(Debug)]
pub struct MediumConfig {
    /// The names of the two interfaces.
    pub names: [String; 2],
    /// Directions from the first interface to the second, and back.
    pub lanes: [DirectionConfig; 2],
    pub seed: u64,
    /// Bytes that may wait for a wire with a rate.
    pub queue: Bytes,
    /// Pass corrupted frames on with a bit flipped, instead of dropping them.
    pub flip: bool,
    /// Keep corrupted frames here.
    pub log: Option<PathBuf>,
    /// Keep port counters here, as files.
    pub counters: Option<PathBuf>,
}

pub struct Medium {
    names: [String; 2],
    sockets: [PacketSocket; 2],
    directions: [WireDirection; 2],
    queue: Bytes,
    flip: Option<Random>,
    longest: usize,
    log: Option<CorruptionLog>,
    trouble: ErrorReporter,
    counters: Option<PathBuf>,
    look_every: Span,
    repeat: Option<Repeat>,
    rewrite: Option<RouterState>,
    pieces: Pieces,
}

impl std::fmt::Debug for Medium {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Medium").field("names", &self.names).finish_non_exhaustive()
    }
}

/// Time for which it stays awake after the last frame.
const AWAKE: Span = Span::from_us(200);
/// Time before a frame is due in which it does not sleep any more: the kernel wakes a sleeper late.
const EARLY: Span = Span::from_us(100);
const LOOK_EVERY: Span = Span::from_ms(1_000);
const BATCH: usize = 64;

impl Medium {
    /// `sockets` are on the two interfaces; frames longer than `longest` are not what a wire carries.
    pub fn new(config: MediumConfig, sockets: [PacketSocket; 2], longest: usize) -> io::Result<Self> {
        let [forth, back] = &config.lanes;
        let directions = [WireDirection::new(forth, config.seed, 0), WireDirection::new(back, config.seed, 1)];
        let log = config.log.as_deref().map(|path| CorruptionLog::create(path, &config.names)).transpose()?;
        Ok(Self {
            names: config.names,
            sockets,
            directions,
            queue: config.queue,
            flip: config.flip.then(|| Random::new(config.seed, 9)),
            longest,
            log,
            trouble: ErrorReporter::default(),
            counters: config.counters,
            look_every: LOOK_EVERY,
            repeat: None,
            rewrite: None,
            pieces: Pieces::default(),
        })
    }

    /// Reports the counters to the observer at this interval, instead of every second.
    pub fn look_every(self, look_every: Span) -> Self {
        Self { look_every, ..self }
    }

    /// Puts a repeater between the first interface, which leads to hosts, and the wire.
    pub fn repeating(self, repeat: Repeat) -> Self {
        Self { repeat: Some(repeat), ..self }
    }

    /// Lets a router rewrite what comes out at either end.
    pub fn rewriting(self, rewrite: Rewrite) -> Self {
        Self { rewrite: Some(RouterState { rewrite, scratch: Vec::new() }), ..self }
    }

    /// Tells which of its files cannot be written and why, once for each: the wire goes on.
    pub fn telling_trouble(mut self, tell: impl FnMut(&str) + Send + 'static) -> Self {
        self.trouble.tell = Some(Box::new(tell));
        self
    }

    /// Corrupted frames that should have been logged and could not be.
    pub fn not_logged(&self) -> u64 {
        self.log.as_ref().map_or(0, CorruptionLog::not_kept)
    }

    pub fn repeat_counters(&self) -> Option<RepeatCounters> {
        self.repeat.as_ref().map(Repeat::counters)
    }

    /// Carries frames until the time is over, or `stop` has something to read or is closed at its other end; `look`
    /// hears the counters every second, or as often as was asked for.
    pub fn run(
        &mut self,
        stop: &PipeReader,
        until: Option<Duration>,
        look: &mut dyn FnMut(&[DirectionCounters; 2]),
    ) -> io::Result<[DirectionCounters; 2]> {
        let clock = Clock::start();
        let (mut last_busy, mut next_look) = (Time::ZERO, Time::ZERO + self.look_every);
        loop {
            let clocks = TwoClocks::read(&clock);
            let now = clocks.now;
            let mut busy = false;
            for from in 0..2 {
                busy |= self.carry(&clocks, from)?;
                busy |= self.let_out(now, from)?;
            }
            if busy {
                last_busy = now;
            } else if now.since(last_busy) < AWAKE {
                poll::give_way();
            } else if self.sleep(now, next_look, stop)? {
                break;
            }
            if until.is_some_and(|until| clock.elapsed() >= until) {
                break;
            }
            if next_look <= now {
                next_look = now + self.look_every;
                self.count_overflow();
                self.keep_files();
                look(&self.lane_counters());
                // A wire that is never idle must end too.
                if poll::wait(&[(stop.as_raw_fd(), false)], Duration::ZERO)? != [poll::Readiness::Nothing] {
                    break;
                }
            }
        }
        self.count_overflow();
        self.keep_files();
        Ok(self.lane_counters())
    }

    /// Frames that came faster than they could be carried.
    fn count_overflow(&mut self) {
        for (socket, direction) in self.sockets.iter_mut().zip(&mut self.directions) {
            let overflowed = socket.overflowed();
            direction.counters.offered += overflowed;
            direction.counters.overflowed += overflowed;
        }
    }

    pub fn lane_counters(&self) -> [DirectionCounters; 2] {
        [self.directions[0].counters, self.directions[1].counters]
    }

    /// True if it is time to end.
    fn sleep(&mut self, now: Time, next_look: Time, stop: &PipeReader) -> io::Result<bool> {
        let due = self.directions.iter().filter_map(|direction| direction.in_flight.front());
        let next = due.map(|(due, _)| due.since(now).saturating_sub(EARLY)).fold(next_look.since(now), Span::min);
        if next == Span::ZERO {
            poll::give_way();
            return Ok(false);
        }
        let fds = [(self.sockets[0].fd(), false), (self.sockets[1].fd(), false), (stop.as_raw_fd(), false)];
        let ready = poll::wait(&fds, Duration::from_nanos(next.as_ps() / 1_000))?;
        Ok(ready[2] != poll::Readiness::Nothing)
    }

    /// Takes what waits at one end into the wire.
    fn carry(&mut self, clocks: &TwoClocks, from: usize) -> io::Result<bool> {
        let Self { sockets, directions, queue, flip, longest, log, repeat, rewrite, pieces, .. } = self;
        let [first, second] = sockets;
        let (source, sink) = if from == 0 { (first, second) } else { (second, first) };
        let (mut entrance, repeat) = if from == 0 { (repeat.as_mut(), None) } else { (None, repeat.as_mut()) };
        let mut exit = Exit { sink, repeat, rewrite: rewrite.as_mut(), forth: from == 0 };
        let direction = &mut directions[from];
        let mut result = Ok(());
        let mut carry = |bytes: &[u8], arrived: Time, direction: &mut WireDirection| {
            let times = entrance.as_mut().map_or(1, |repeat| repeat.on_leaving(bytes));
            for _ in 0..times {
                match carry_one(arrived, bytes, direction, &mut exit, *queue, flip.as_mut(), *longest) {
                    Ok(true) => {}
                    Ok(false) => log.iter_mut().for_each(|log| log.write(from as u32, bytes)),
                    Err(error) => result = Err(error),
                }
            }
        };
        let received = source.receive(BATCH, |frame| {
            let arrived = clocks.arrival(frame.at, direction.empty_at);
            if frame.vnet.is_finished() {
                return carry(frame.bytes, arrived, direction);
            }
            match pieces.of(&frame.vnet, frame.bytes) {
                Ok(pieces) => pieces.for_each(|piece| carry(piece, arrived, direction)),
                Err(_) => direction.counters.refuse(frame.len),
            }
        });
        if received < BATCH {
            direction.empty_at = clocks.now;
        }
        result.map(|()| received > 0)
    }

    /// Lets out at the far end what has come to it.
    fn let_out(&mut self, now: Time, from: usize) -> io::Result<bool> {
        let direction = &mut self.directions[from];
        let repeat = if from == 0 { None } else { self.repeat.as_mut() };
        let rewrite = self.rewrite.as_mut();
        let mut exit = Exit { sink: &mut self.sockets[1 - from], repeat, rewrite, forth: from == 0 };
        let mut any = false;
        while let Some((due, _)) = direction.in_flight.front()
            && *due <= now
        {
            let Some((_, frame)) = direction.in_flight.pop_front() else { break };
            exit.pass(&frame, &mut direction.counters)?;
            direction.spare.push(frame);
            any = true;
        }
        Ok(any)
    }

    fn keep_files(&mut self) {
        self.trouble.tell(0, self.log.as_mut().and_then(CorruptionLog::flush));
        let Some(directory) = &self.counters else { return };
        let kept = keep_counters(directory, &[&self.names[0], &self.names[1]], &self.lane_counters());
        self.trouble.tell(1, kept.err().map(|error| format!("{}: {error}", directory.display())));
    }
}
