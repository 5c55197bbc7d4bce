//! Timers.
//!
//! The documents (RFC 6298, RFC 8985) have exact times. Linux 5.4 counts jiffies: a span becomes a whole number of
//! them, rounded up (`usecs_to_jiffies`), and a timer set for *n* goes off with the *n*+1st tick, because the timer
//! wheel rounds up once more; from 63 jiffies on the wheel's levels are coarser by 8 each (`kernel/time/timer.c`).
//!
//! ```text
//!        set, n = 2            goes off
//!           ▼                     ▼
//!   ────┬───────┬───────┬───────┬───────▶   ticks of this host
//!       k      k+1     k+2     k+3
//! ```
//!
//! A [`Wait`] that has begun is resolved to a deadline only when somebody must know it: every acknowledgement begins
//! one, hardly any ends, and ticks cost divisions.

use units::{Span, Time};

use super::config::TimerProfile;

/// `TCP_RTO_MIN`, which a probe allows for an acknowledgement that may be delayed, regardless of the route's `rto_min`.
const LINUX_ACK_DELAY: Span = Span::from_ms(200);

/// Jiffies that fit the finest level of the timer wheel, and bits by which each level is coarser than the last.
const WHEEL_FIRST: u64 = 63;
const WHEEL_SHIFT: u32 = 3;
const WHEEL_MAX_SHIFT: u32 = 24;

/// Phases repeat after this many jiffies: the levels in use cannot distinguish hosts beyond that.
const PHASES: u64 = 1 << 12;

#[derive(Clone, Copy, Debug)]
pub(super) struct TcpTiming {
    grid: Option<Grid>,
    pub rto_min: Span,
    /// Additional wait of a probe if a lone segment's acknowledgement may be delayed.
    pub ack_delay: Span,
    /// `TCP_TIMEOUT_MIN`: added to probe and reordering timers, since a tick may come at once.
    pub slack: Span,
}

/// The ticks of one host: at multiples of `jiffy`, less `offset`; timers go off `late` ticks late.
#[derive(Clone, Copy, Debug)]
struct Grid {
    jiffy: u64,
    offset: u64,
    late: u64,
}

/// `span` and `extra` from `from` on, but not beyond `cap` from `cap_from` on, unless that has passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub from: Time,
    pub span: Span,
    pub extra: Span,
    pub cap_from: Time,
    pub cap: Span,
}

impl Wait {
    pub(super) fn plain(from: Time, span: Span) -> Self {
        Self { from, span, extra: Span::ZERO, cap_from: from, cap: span }
    }

    /// Earliest time at which the timer can end.
    #[inline]
    pub(super) fn earliest(&self) -> Time {
        (self.from + self.span).min((self.cap_from + self.cap).max(self.from))
    }
}

impl TcpTiming {
    pub(super) fn new(profile: &TimerProfile) -> Self {
        match *profile {
            TimerProfile::Linux { hz, rto_min, phase } => {
                let grid = Grid::new(hz, phase);
                let slack = Span::from_ps(2 * grid.jiffy);
                Self { grid: Some(grid), rto_min, ack_delay: LINUX_ACK_DELAY, slack }
            }
            TimerProfile::Rfc { rto_min, max_ack_delay } => {
                Self { grid: None, rto_min, ack_delay: max_ack_delay, slack: Span::ZERO }
            }
        }
    }

    /// Delays the timers by some ticks, as on a slow processor.
    pub(super) fn late(mut self, ticks: u8) -> Self {
        if let Some(grid) = &mut self.grid {
            grid.late = u64::from(ticks);
        }
        self
    }

    pub(super) fn ticks(&self) -> bool {
        self.grid.is_some()
    }

    /// Time from tick to tick; zero where time does not tick.
    pub(super) fn jiffy(&self) -> Span {
        self.grid.map_or(Span::ZERO, |grid| Span::from_ps(grid.jiffy))
    }

    /// Time by which ticks are earlier than multiples of a jiffy.
    pub(super) fn offset(&self) -> Span {
        self.grid.map_or(Span::ZERO, |grid| Span::from_ps(grid.offset))
    }

    /// Number of the last tick; meaningless where time does not tick.
    pub(super) fn tick(&self, now: Time) -> u64 {
        self.grid.map_or(0, |grid| grid.tick(now))
    }

    /// Number of ticks in `span`, rounded up.
    pub(super) fn jiffies(&self, span: Span) -> u64 {
        self.grid.map_or(0, |grid| grid.count(span))
    }

    /// Rounds a span up to the jiffies in which a kernel keeps it.
    pub(super) fn round_up(&self, span: Span) -> Span {
        self.grid.map_or(span, |grid| Span::from_ps(grid.count(span).saturating_mul(grid.jiffy)))
    }

    /// Time at which a timer expires that was set for `jiffies` ticks after this tick; `NEVER` without ticks.
    pub(super) fn after_jiffies(&self, tick: u64, jiffies: u64) -> Time {
        self.grid.map_or(Time::NEVER, |grid| grid.fires(tick, jiffies))
    }

    pub(super) fn deadline(&self, wait: &Wait) -> Time {
        let left = (wait.cap_from + self.round_up(wait.cap)).since(wait.from);
        let capped = left > Span::ZERO;
        match self.grid {
            None => {
                let span = wait.span + wait.extra;
                wait.from + if capped { span.min(left) } else { span }
            }
            Some(grid) => {
                let jiffies = grid.count(wait.span + wait.extra);
                let jiffies = if capped { jiffies.min(grid.count(left)) } else { jiffies };
                grid.fires(grid.tick(wait.from), jiffies)
            }
        }
    }
}

impl Grid {
    fn new(hz: u32, phase: Span) -> Self {
        let jiffy = 1_000_000_000_000 / u64::from(hz.max(1));
        let round = jiffy * PHASES;
        Self { jiffy, offset: round - phase.as_ps() % round, late: 0 }
    }

    /// A log that is replayed may say any time: the last ticks before the end of all time are one.
    fn tick(&self, now: Time) -> u64 {
        now.as_ps().saturating_add(self.offset) / self.jiffy
    }

    fn time(&self, tick: u64) -> Time {
        Time::from_ps(tick.saturating_mul(self.jiffy).saturating_sub(self.offset))
    }

    /// Ticks of a span. Most spans of a datacenter are a jiffy or two, which takes no division.
    #[inline]
    fn count(&self, span: Span) -> u64 {
        match span.as_ps() {
            0 => 0,
            ps if ps <= self.jiffy => 1,
            ps if ps <= 2 * self.jiffy => 2,
            ps => ps.div_ceil(self.jiffy),
        }
    }

    fn fires(&self, tick: u64, jiffies: u64) -> Time {
        let mut shift = 0;
        while jiffies >= WHEEL_FIRST << shift && shift < WHEEL_MAX_SHIFT {
            shift += WHEEL_SHIFT;
        }
        let expires = tick + jiffies;
        self.time((((expires >> shift) + 1) << shift) + self.late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn linux(phase: Span) -> TcpTiming {
        TcpTiming::new(&TimerProfile::Linux { hz: 1_000, rto_min: Span::from_ms(1), phase })
    }

    #[test]
    fn two_jiffies_end_with_the_third_tick() {
        let timing = linux(Span::ZERO);
        let wait = |from, span| timing.deadline(&Wait::plain(at(from), Span::from_us(span)));
        assert_eq!(wait(10, 2_000), at(3_000));
        assert_eq!(wait(999, 1_001), at(3_000));
        assert_eq!(wait(1_000, 1), at(3_000), "a span between ticks is a whole jiffy");
    }

    #[test]
    fn timers_of_a_processor_that_ticks_early_go_off_a_tick_later() {
        let timing = linux(Span::ZERO).late(1);
        assert_eq!(timing.deadline(&Wait::plain(at(10), Span::from_us(1_030))), at(4_000));
        assert_eq!(timing.deadline(&Wait::plain(at(0), Span::from_ms(200))), at(209_000));
    }

    #[test]
    fn hosts_tick_at_their_own_phase() {
        let timing = linux(Span::from_us(300));
        assert_eq!(timing.deadline(&Wait::plain(at(10), Span::from_us(1_000))), at(1_300));
        assert_eq!(timing.deadline(&Wait::plain(at(310), Span::from_us(1_000))), at(2_300));
    }

    #[test]
    fn ticks_at_the_end_of_all_time_do_not_come_round() {
        let timing = linux(Span::from_us(300));
        let end = Time::from_ps(u64::MAX - 1);
        let last = timing.tick(end);
        assert!(last >= timing.tick(Time::from_ps(u64::MAX - 2_000_000_000)));
        assert!(timing.after_jiffies(last, 5) >= Time::from_ps(u64::MAX - timing.offset().as_ps()));
        assert!(timing.round_up(Span::from_ps(u64::MAX)) >= Span::from_ps(u64::MAX - 1_000_000_000));
    }

    #[test]
    fn long_waits_end_at_a_coarser_tick() {
        let timing = linux(Span::ZERO);
        assert_eq!(timing.deadline(&Wait::plain(at(0), Span::from_ms(62))), at(63_000));
        assert_eq!(timing.deadline(&Wait::plain(at(0), Span::from_ms(63))), at(64_000));
        assert_eq!(timing.deadline(&Wait::plain(at(0), Span::from_ms(200))), at(208_000));
    }

    #[test]
    fn a_cap_counts_from_its_own_start_and_holds_until_it_has_passed() {
        let timing = TcpTiming::new(&TimerProfile::rfc());
        let wait = |cap_from| Wait {
            from: at(100),
            span: Span::from_us(50),
            extra: Span::from_us(10),
            cap_from: at(cap_from),
            cap: Span::from_us(40),
        };
        assert_eq!(timing.deadline(&wait(100)), at(140));
        assert_eq!(timing.deadline(&wait(80)), at(120));
        assert_eq!(timing.deadline(&wait(10)), at(160));
        assert!(wait(10).earliest() <= at(160));
    }
}
