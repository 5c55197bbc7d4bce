//! Delayed acknowledgements. RFC 5681 §4.2: every second full-sized segment at once, others a little later.
//!
//! Out of order, filling a gap, twice, when marks begin or end: at once, too. Linux 5.4 adds quick acknowledgements
//! (`tcp_event_data_recv`): up to sixteen leave at once at the start of a connection, after a pause of an RTO, and after
//! a segment that came twice or lies outside the window (two when marks begin or end), unless the application answers
//! what it gets (*pingpong*), because then an acknowledgement can ride along. How long the others wait (`ato`) follows
//! the time between segments, from 40 ms on.

use machine::Out;
use units::{Span, Time};

use super::super::config::TcpConfig;
use super::super::connection::{TcpConnection, TcpTimer};
use super::super::sites::TcpSite;
use super::super::timing::TcpTiming;
use super::SegmentArrival;
use super::compression::SackCompression;

const MAX_QUICK: u32 = 16;
/// `TCP_ATO_MIN` and `TCP_DELACK_MIN`.
const ATO_MIN: Span = Span::from_ms(40);
/// Answers after which a connection counts as interactive.
const PINGPONG: u8 = 3;

#[derive(Debug)]
pub(super) struct DelayedAcks {
    timing: TcpTiming,
    mss: u64,
    owed: bool,
    due: bool,
    /// Time at which a delayed one is due, and time of the timer, which is never moved to later.
    deadline: Time,
    armed: Time,
    linux: Option<LinuxAckTimer>,
    compression: Option<Box<SackCompression>>,
}

/// Times in jiffies.
#[derive(Debug)]
struct LinuxAckTimer {
    /// Acknowledgements that leave at once.
    quick: u32,
    /// Quick-ACK budget after an unexpected segment.
    max_quick: u32,
    pingpong: u8,
    /// 0 before the first segment.
    ato: u64,
    ato_min: u64,
    last_received: u64,
    last_sent: u64,
}

impl DelayedAcks {
    pub(super) fn new(config: &TcpConfig, buffer: u64) -> Self {
        let timing = TcpTiming::new(&config.profile).late(config.late_ticks);
        let mss = u64::from(config.mss.max(1));
        let linux = timing.ticks().then(|| LinuxAckTimer {
            quick: 0,
            max_quick: u32::try_from(buffer / (2 * mss)).unwrap_or(u32::MAX).clamp(2, MAX_QUICK),
            pingpong: 0,
            ato: 0,
            ato_min: timing.jiffies(ATO_MIN),
            last_received: 0,
            last_sent: 0,
        });
        let compresses = config.socket.is_some_and(|socket| socket.compresses_sacks);
        let compression = compresses.then(Box::default);
        Self { timing, mss, owed: false, due: false, deadline: Time::NEVER, armed: Time::NEVER, linux, compression }
    }

    pub(super) fn is_owed(&self) -> bool {
        self.owed
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    /// True if this much must be acknowledged at once.
    #[inline]
    pub(super) fn is_plenty(&self, unacknowledged: u64) -> bool {
        unacknowledged > self.mss
    }

    /// One leaves now, whatever happened.
    pub(super) fn force(&mut self) {
        self.owed = true;
        self.due = true;
    }

    /// None is owed any more.
    pub(super) fn forget(&mut self) {
        self.owed = false;
        self.due = false;
        self.deadline = Time::NEVER;
    }

    /// The receive window grew: the next one leaves at once (`tcp_grow_window`).
    pub(super) fn quicken(&mut self) {
        if let Some(linux) = &mut self.linux {
            linux.quick |= 1;
        }
    }

    /// The buffer fills up: no more quick ones.
    pub(super) fn calm(&mut self) {
        if let Some(linux) = &mut self.linux {
            linux.quick = 0;
        }
    }

    /// The peer's stream is over: the own FIN may carry the acknowledgement (`tcp_fin`).
    pub(super) fn on_fin(&mut self) {
        if let Some(linux) = &mut self.linux {
            linux.pingpong = PINGPONG;
        }
    }

    /// A FIN without payload. Before anything was received its acknowledgement waits for a tick only.
    pub(super) fn on_lone_fin(&mut self, now: Time, arrival: SegmentArrival) {
        self.owed = true;
        self.due |= arrival != SegmentArrival::InOrder;
        let at = match &self.linux {
            None => now + self.timing.ack_delay,
            Some(linux) => self.timing.after_jiffies(self.timing.tick(now), linux.ato),
        };
        self.deadline = self.deadline.min(at);
    }

    pub(super) fn is_interactive(&self) -> bool {
        self.linux.as_ref().is_some_and(|linux| linux.pingpong >= PINGPONG)
    }

    /// A segment came; `plenty` if what is not acknowledged must be, now.
    #[inline]
    pub(super) fn on_data<O: Out<TcpConnection>>(
        &mut self,
        now: Time,
        arrival: SegmentArrival,
        plenty: bool,
        (rto, srtt, gap): (Span, Option<Span>, Option<(u64, Span)>),
        out: &mut O,
    ) {
        self.owed = true;
        match arrival {
            SegmentArrival::InOrder | SegmentArrival::Filling => {
                if let Some(linux) = &mut self.linux {
                    linux.on_data(&self.timing, now, rto, out);
                }
                let quick = self.linux.as_ref().is_some_and(LinuxAckTimer::is_quick);
                if !quick && !plenty && arrival == SegmentArrival::Filling {
                    self.is_report_due(now, gap);
                }
                self.due |= arrival == SegmentArrival::Filling || quick || plenty;
            }
            SegmentArrival::OutOfOrder => {
                let quick = self.linux.as_ref().is_some_and(LinuxAckTimer::is_quick);
                self.due |= quick || self.is_report_due(now, gap);
                // It has a deadline of its own.
                return;
            }
            SegmentArrival::Duplicate | SegmentArrival::Outside => {
                self.due = true;
                self.surprise(MAX_QUICK);
            }
        }
        if !self.due {
            self.delay(now, srtt);
        }
    }

    /// True if a segment behind a `gap` is reported at once.
    fn is_report_due(&mut self, now: Time, gap: Option<(u64, Span)>) -> bool {
        match (&mut self.compression, gap) {
            (Some(compression), Some((next, rtt))) => compression.on_segment(now, next, rtt),
            _ => true,
        }
    }

    /// Time of the timer.
    fn wait_until(&self) -> Time {
        self.compression.as_ref().map_or(self.deadline, |compression| self.deadline.min(compression.until))
    }

    /// Marks began or ended: a sender with a small window should not have to wait.
    pub(super) fn on_mark_change(&mut self) {
        self.due = true;
        self.surprise(2);
    }

    fn surprise(&mut self, quick: u32) {
        if let Some(linux) = &mut self.linux {
            linux.quick = linux.quick.max(quick.min(linux.max_quick));
            linux.pingpong = 0;
            linux.ato = linux.ato_min;
        }
    }

    fn delay(&mut self, now: Time, srtt: Option<Span>) {
        let at = match &self.linux {
            None => now + self.timing.ack_delay,
            Some(linux) => {
                let most = match srtt {
                    Some(srtt) if srtt > ATO_MIN => self.timing.jiffies(srtt),
                    _ => linux.ato_min,
                };
                self.timing.after_jiffies(linux.last_received, linux.ato.min(most))
            }
        };
        self.deadline = self.deadline.min(at);
    }

    /// Sees to it that the timer goes off no later than needed.
    #[inline]
    pub(super) fn arm<O: Out<TcpConnection>>(&mut self, out: &mut O) {
        let until = self.wait_until();
        if !self.due && until < self.armed {
            self.armed = until;
            out.arm(TcpTimer::Ack, until);
        }
    }

    /// An acknowledgement left, with payload or without.
    #[inline]
    pub(super) fn on_sent<O: Out<TcpConnection>>(&mut self, now: Time, payload: bool, out: &mut O) {
        let owed = self.owed;
        self.owed = false;
        self.due = false;
        self.deadline = Time::NEVER;
        if let Some(compression) = &mut self.compression {
            compression.on_sent();
        }
        if let Some(linux) = &mut self.linux {
            if payload {
                linux.on_answer(self.timing.tick(now), out);
            }
            if owed {
                linux.on_ack_sent();
            }
        }
    }

    /// One that waited too long leaves now, and the next waits longer or, if an answer did not come, less.
    pub(super) fn on_timer<O: Out<TcpConnection>>(&mut self, now: Time, rto: Span, out: &mut O) {
        self.armed = Time::NEVER;
        if let Some(compression) = &self.compression {
            self.due |= TcpSite::HeldSackDue.ask(out, compression.is_due(now));
        }
        if TcpSite::AckTimerEarly.ask(out, self.deadline > now) {
            if self.wait_until() != Time::NEVER {
                self.arm(out);
            }
            return;
        }
        self.deadline = Time::NEVER;
        if !self.owed {
            return;
        }
        self.due = true;
        if let Some(linux) = &mut self.linux {
            linux.on_late(self.timing.jiffies(rto));
        }
    }
}

impl LinuxAckTimer {
    fn is_quick(&self) -> bool {
        self.quick > 0 && self.pingpong < PINGPONG
    }

    /// `tcp_event_data_recv`.
    #[inline]
    fn on_data<O: Out<TcpConnection>>(&mut self, timing: &TcpTiming, now: Time, rto: Span, out: &mut O) {
        let tick = timing.tick(now);
        let gap = tick - self.last_received;
        self.last_received = tick;
        let half = self.ato_min / 2;
        if self.ato == 0 {
            self.quick = self.max_quick;
            self.ato = self.ato_min;
            return;
        }
        let paused = gap > half && gap >= self.ato && gap > timing.jiffies(rto);
        if gap <= half {
            self.ato = self.ato / 2 + half;
        } else if gap < self.ato {
            self.ato = (self.ato / 2 + gap).min(timing.jiffies(rto));
        }
        if TcpSite::QuickAgain.ask(out, paused) {
            self.quick = self.max_quick;
        }
    }

    /// `tcp_event_data_sent`: the first payload after something came, and soon.
    #[inline]
    fn on_answer<O: Out<TcpConnection>>(&mut self, tick: u64, out: &mut O) {
        let soon = self.last_sent < self.last_received && tick - self.last_received < self.ato;
        if TcpSite::SoonAnswer.ask(out, soon) {
            self.pingpong = (self.pingpong + 1).min(PINGPONG);
        }
        self.last_sent = tick;
    }

    #[inline]
    fn on_ack_sent(&mut self) {
        if self.quick == 1 {
            self.ato = self.ato_min;
        }
        self.quick = self.quick.saturating_sub(1);
    }

    /// `tcp_delack_timer_handler`.
    fn on_late(&mut self, rto: u64) {
        if self.pingpong >= PINGPONG {
            self.pingpong = 0;
            self.ato = self.ato_min;
        } else {
            self.ato = (self.ato * 2).min(rto);
        }
    }
}
