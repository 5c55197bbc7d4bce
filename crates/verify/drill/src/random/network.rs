//! The network and the receiver that make a random script: they answer what our TCP sends, by a seed.

use std::collections::VecDeque;

use faults::Random;
use tcp::LinuxVersion;
use units::{Span, StreamRanges, Time};

use super::play::{self, MSS, PlayTimes, Schedule};
use super::{RandomAction, RandomScript, RandomStep};
use crate::machine_subject::MachineSubject;
use crate::segment::{DrillSegment, TcpFlags};
use crate::subject::Subject;

/// A script ends after this many milliseconds.
const LONGEST: u64 = 2_000;
/// A timer this close to an event may go off before it or after it.
const TOO_CLOSE: Span = Span::from_ms(6);
/// Events come together or at least this many milliseconds apart: whether less than a millisecond has passed since
/// something left decides whether a kernel waits for more of the window.
const APART: u64 = 3;
/// Most draws in a row of scripts that turn out to be unusable.
const MOST_DRAWS: u64 = 200;
const MOST_STEPS: usize = 80;
const WINDOW: u16 = 257;

/// The script with this number. Every number has one.
pub(super) fn draw(seed: u64, number: u64, version: LinuxVersion) -> RandomScript {
    let mut last = None;
    for attempt in 0..MOST_DRAWS {
        let random = Random::new(seed, number * MOST_DRAWS + attempt);
        let mut drawing = DrawnNetwork::new(random, format!("random-{seed}-{number}"));
        if drawing.run(version) {
            return drawing.script;
        }
        last = Some(drawing.script);
    }
    // The beginning of a script up to what made it unusable is still one.
    last.unwrap_or_else(|| DrawnNetwork::new(Random::new(seed, number), String::new()).script)
}

/// A data segment on its way, and the millisecond of its arrival.
#[derive(Debug)]
struct Flight {
    arrives: u64,
    seq: u32,
    end: u32,
    marked: bool,
    reduced: bool,
}

struct DrawnNetwork {
    random: Random,
    /// Milliseconds to the receiver; the way back takes `APART` longer.
    forth: u64,
    script: RandomScript,
    loss: f64,
    reordering: f64,
    marking: f64,
    lost_acks: f64,
    /// Arrivals in order for one acknowledgement.
    acks_every: u64,
    writes: VecDeque<(u64, u32)>,
    flights: Vec<Flight>,
    /// Acknowledgements on their way, with the millisecond of their arrival.
    acks: VecDeque<(u64, RandomAction)>,
    received: StreamRanges,
    next: u32,
    unacknowledged: u64,
    echo: bool,
    window: u16,
}

impl DrawnNetwork {
    fn new(mut random: Random, name: String) -> Self {
        let mut choose = |values: &[f64]| values[random.below(values.len() as u64) as usize];
        let (loss, reordering) = (choose(&[0.0, 0.02, 0.1, 0.3]), choose(&[0.0, 0.0, 0.05, 0.2]));
        let (marking, lost_acks) = (choose(&[0.0, 0.0, 0.05]), choose(&[0.0, 0.0, 0.2]));
        // Halves and quarters of the round trip, which decide what is lost, are no multiples of what events are apart.
        // Nor is a timeout close to 252 ms, 63 ticks of 4 ms, where timers become coarser.
        let forth = choose(&[15.0, 33.0, 51.0]) as u64;
        // The handshake is faster than what follows: no later round trip can be shorter than the shortest by chance.
        let rtt = Span::from_ms(2 * forth);
        let mut writes = VecDeque::from([(0, 1 + random.below(30 * u64::from(MSS)) as u32)]);
        if random.unit() < 0.5 {
            writes.push_back((APART * (1 + random.below(133)), 1 + random.below(20 * u64::from(MSS)) as u32));
        }
        let script = RandomScript { name, sack: random.unit() < 0.8, ecn: marking > 0.0, rtt, steps: Vec::new() };
        Self {
            acks_every: 1 + random.below(2),
            forth,
            random,
            script,
            loss,
            reordering,
            marking,
            lost_acks,
            writes,
            flights: Vec::new(),
            acks: VecDeque::new(),
            received: StreamRanges::default(),
            next: 1,
            unacknowledged: 0,
            echo: false,
            window: WINDOW,
        }
    }

    /// Lets our TCP send and answers it, millisecond by millisecond; false if the script depends on chance.
    fn run(&mut self, version: LinuxVersion) -> bool {
        let mut subject = play::machine(version, Span::ZERO);
        let opened = play::prepare(&self.script, &mut subject)
            .and_then(|()| play::handshake(&self.script, &mut subject, Schedule::Planned(Time::ZERO)));
        let Ok(PlayTimes { open, .. }) = opened else { return false };
        // Time at which a timer last sent something.
        let mut by_timer = None;
        for ms in 0..LONGEST {
            let now = open + Span::from_ms(ms);
            subject.advance(now);
            if self.take(&mut subject, ms) {
                by_timer = Some(now);
            }
            self.deliver(ms);
            while let Some(action) = self.due(ms) {
                let is_close = |at: Time| at.since(now.min(at)).max(now.since(at.min(now))) < TOO_CLOSE;
                if subject.next_timer().into_iter().chain(by_timer).any(is_close) {
                    return false;
                }
                if play::act(&action, &mut subject).is_err() || self.script.steps.len() >= MOST_STEPS {
                    return true;
                }
                self.script.steps.push(RandomStep { at: Span::from_ms(ms), action });
                self.take(&mut subject, ms);
            }
        }
        true
    }

    /// The next thing that happens in this millisecond.
    fn due(&mut self, ms: u64) -> Option<RandomAction> {
        if let Some((_, bytes)) = self.writes.pop_front_if(|(at, _)| *at <= ms) {
            return Some(RandomAction::Write(bytes));
        }
        self.acks.pop_front_if(|(at, _)| *at <= ms).map(|(_, ack)| ack)
    }

    /// Sends what left on its way; true if anything did.
    fn take(&mut self, subject: &mut MachineSubject, ms: u64) -> bool {
        let now = subject.now();
        let mut any = false;
        while let Some(sent) = subject.next_sent(now) {
            any = true;
            let DrillSegment { seq, len, .. } = sent.segment;
            if len == 0 || self.random.unit() < self.loss {
                continue;
            }
            let late = if self.random.unit() < self.reordering { APART + self.random.below(self.forth) } else { 0 };
            let marked = self.random.unit() < self.marking;
            let reduced = sent.segment.is(TcpFlags::CWR);
            let arrives = (ms + self.forth + late).next_multiple_of(APART);
            self.flights.push(Flight { arrives, seq, end: seq + len, marked, reduced });
        }
        // Stable: what left together and was not delayed arrives in order.
        self.flights.sort_by_key(|flight| flight.arrives);
        any
    }

    /// Lets segments arrive at the receiver, which answers.
    fn deliver(&mut self, ms: u64) {
        while self.flights.first().is_some_and(|flight| flight.arrives <= ms) {
            let flight = self.flights.remove(0);
            self.echo = (self.echo && !flight.reduced) || flight.marked;
            let in_order = flight.seq == self.next && self.received.is_empty();
            self.receive(flight.seq, flight.end);
            self.unacknowledged += 1;
            if in_order && self.unacknowledged < self.acks_every {
                continue;
            }
            self.unacknowledged = 0;
            self.acknowledge(ms, flight.seq);
        }
    }

    fn receive(&mut self, seq: u32, end: u32) {
        if end > self.next {
            self.received.insert(u64::from(seq.max(self.next)), u64::from(end));
        }
        while let Some(range) = self.received.first().filter(|range| range.from <= u64::from(self.next)) {
            self.next = range.to as u32;
            self.received.drop_below(range.to);
        }
    }

    fn acknowledge(&mut self, ms: u64, latest: u32) {
        if self.random.unit() < self.lost_acks {
            return;
        }
        if self.random.unit() < 0.02 {
            self.window = [WINDOW, 60, 20, 8][self.random.below(4) as usize];
        }
        let latest = u64::from(latest);
        let mut blocks: Vec<(u32, u32)> =
            self.received.descending().map(|range| (range.from as u32, range.to as u32)).collect();
        // The block with the segment that came last is the first, the others follow from above.
        blocks.sort_by_key(|(from, to)| !(u64::from(*from) <= latest && latest < u64::from(*to)));
        blocks.truncate(if self.script.sack { 3 } else { 0 });
        let ack = RandomAction::Acknowledge {
            ack: self.next,
            blocks,
            window: self.window,
            marked: self.echo && self.script.ecn,
        };
        self.acks.push_back((ms + self.forth + APART, ack));
    }
}
