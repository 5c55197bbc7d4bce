//! Our TCP as the shadow of a sender in a capture.
//!
//! The machine of `tcp` is established where the real connection was. Acknowledgements go in at the times at
//! which the real sender had them; each segment that left is forced on the machine, which is asked first whether it
//! would have sent it. So the machine's window, phase, round trip and timeout estimate those of the real sender.
//!
//! Timers are fired late: the machine's timer goes off when the real sender did something that only a timer explains and
//! the machine's own is due within a tick or two. A timer of the machine alone changes nothing: the capture decides.

use machine::{Machine, Port};
use tcp::{Sack, TcpConfig, TcpConnection, TcpSegment, TcpSink, TcpTimer, TimerProfile};
use units::{Span, Time};

/// Ranges that a SACK option carries, as positions of a stream.
pub(crate) type SackBlocks = [(u64, u64); 4];

/// An acknowledgement as the machine takes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShadowAck<'a> {
    pub at: u64,
    pub ack: u64,
    pub room: u64,
    pub blocks: &'a [(u64, u64)],
    /// Departure time of the segment whose timestamp came back.
    pub echo_of: u64,
}

/// A hundred days, of the 213 that the machine's clock has: a capture that is longer has a clock that was set.
const LONGEST: u64 = 100 * 86_400 * 1_000_000_000;

#[derive(Debug)]
pub(crate) struct Shadow {
    machine: TcpConnection,
    sink: TcpSink,
    /// Time and position at which the machine's own begin.
    start: u64,
    origin: u64,
    tick: u64,
    /// The machine's time, which never goes back: a timer that the real host fired early is fired at its own deadline.
    latest: Time,
    /// Departure time of the last segment, by the capture and by the machine.
    last_sent: (u64, Time),
}

impl Shadow {
    /// Begins with the first payload, at `origin` of the stream.
    pub(crate) fn new(start: u64, origin: u64, mss: u32, rtt: Option<u64>, hz: u32) -> Self {
        let profile = TimerProfile::Linux { hz, rto_min: Span::from_ms(200), phase: Span::ZERO };
        let handshake_rtt = rtt.map(|rtt| Span::from_ns(rtt.clamp(1, LONGEST)));
        let config = TcpConfig { mss, profile, handshake_rtt, receive_buffer: 1 << 30, ..TcpConfig::default() };
        let tick = 1_000_000_000 / u64::from(hz.max(1));
        let machine = TcpConnection::new(&config, Time::ZERO);
        Self {
            machine,
            sink: TcpSink::default(),
            start,
            origin,
            tick,
            latest: Time::ZERO,
            last_sent: (start, Time::ZERO),
        }
    }

    fn time(&self, at: u64) -> Time {
        self.since_start(at).max(self.latest)
    }

    fn since_start(&self, at: u64) -> Time {
        Time::ZERO + Span::from_ns(at.saturating_sub(self.start).min(LONGEST))
    }

    /// Machine's departure time of the segment that left at `at`.
    fn sent_at(&self, at: u64) -> Time {
        match self.last_sent {
            (last, sent) if last == at => sent,
            _ => self.since_start(at),
        }
    }

    pub(crate) fn on_ack(&mut self, ack: &ShadowAck<'_>) {
        let Some(position) = ack.ack.checked_sub(self.origin) else { return };
        let mut sack = Sack::default();
        for (from, to) in ack.blocks {
            let offset = |at: u64| i32::try_from(at.wrapping_sub(ack.ack) as i64).ok();
            if let (Some(from), Some(to)) = (offset(*from), offset(*to))
                && from < to
            {
                sack.push(from, to);
            }
        }
        let micros = self.sent_at(ack.echo_of).as_ps() / 1_000_000;
        let segment = TcpSegment {
            ack: position,
            window: u32::try_from(ack.room).unwrap_or(u32::MAX),
            echo: micros as u32,
            sack,
            ..TcpSegment::default()
        };
        let now = self.time(ack.at);
        self.latest = now;
        self.machine.on_frame(now, Port(0), segment, &mut self.sink);
        self.forget();
    }

    /// Payload left; whether the machine would have sent it, too. `late` is what only a timer explains.
    pub(crate) fn on_sent(&mut self, at: u64, position: u64, len: u32, late: bool) -> bool {
        let Some(seq) = position.checked_sub(self.origin) else { return false };
        if late || !self.machine.would_follow(self.time(at), seq) {
            self.fire_if_due(at);
        }
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        let now = self.time(at);
        self.latest = now;
        self.last_sent = (at, now);
        let agrees = self.machine.follow(now, seq, len, &mut self.sink);
        self.forget();
        agrees
    }

    /// Time at which the loss timer expires.
    fn deadline(&self) -> Option<Time> {
        self.sink.timers[TcpTimer::Loss as usize]
    }

    /// Drops the segments that the machine would have sent by itself.
    fn forget(&mut self) {
        self.sink.left.clear();
        self.sink.progress.clear();
    }

    /// A timer that was left armed while its deadline moved arms itself again: hence more than one attempt.
    fn fire_if_due(&mut self, at: u64) {
        const ATTEMPTS: usize = 4;
        let now = self.time(at);
        // Ticks of the real host fall elsewhere, and long waits end on coarser ones.
        let soon = now + Span::from_ns(3 * self.tick + at.saturating_sub(self.start).min(1_000_000_000) / 50);
        for _ in 0..ATTEMPTS {
            let Some(deadline) = self.deadline().filter(|deadline| *deadline <= soon) else { return };
            self.sink.timers[TcpTimer::Loss as usize] = None;
            self.latest = now.max(deadline);
            self.machine.on_timer(self.latest, TcpTimer::Loss, &mut self.sink);
        }
    }

    /// The congestion window.
    pub(crate) fn window(&self) -> u64 {
        self.machine.window()
    }

    pub(crate) fn rto(&self) -> u64 {
        self.machine.rto().as_ps() / 1_000
    }

    pub(crate) fn srtt(&self) -> Option<u64> {
        self.machine.srtt().map(|srtt| srtt.as_ps() / 1_000)
    }

    /// Time that a probe waits with this many segments in flight.
    pub(crate) fn probe_timeout(&self, segments: usize) -> u64 {
        self.srtt().map_or(1_000_000_000, |srtt| probe_wait(srtt, segments, self.tick)).min(self.rto())
    }
}

/// Time that a probe waits (RFC 8985 §7.2, as Linux counts), if the retransmission timer is not due before.
pub(crate) fn probe_wait(srtt: u64, segments: usize, tick: u64) -> u64 {
    const ACK_DELAY: u64 = 200_000_000;
    2 * srtt + if segments <= 1 { ACK_DELAY } else { 2 * tick }
}
