//! The ticks of this host's kernel: when its timers go off.
//!
//! A timer goes off on a tick, a longer one on every eighth or every 64th tick only (`kernel/time/timer.c`). Which ticks
//! those are is measured: retransmission timers that were doubled three times are long enough.

use linux::clock::{self, Clock};
use units::{Span, Time};

use super::play::{self, Schedule};
use super::{RandomAction, RandomScript, in_namespace};
use crate::subject::{DrillStop, Subject};

/// A timer of 63 × 8 ticks or more goes off on every 64th tick.
const COARSE: u64 = 64;
/// The interval between copies doubles from 300 ms on: this one is long enough with 250 ticks a second and more.
const COPIES: usize = 4;
/// Measurements beside each other, of which the earliest counts: a busy machine is late.
const MEASUREMENTS: u64 = 6;

/// Ticks a second.
pub(super) fn hz() -> u32 {
    let tick = clock::tick().as_micros().clamp(1, 1_000_000) as u32;
    1_000_000 / tick
}

/// The ticks on which long timers go off.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelTicks {
    clock: Clock,
    /// One of them, since the clock started; they are `period` apart.
    phase: u64,
    period: u64,
}

impl KernelTicks {
    /// Takes about five seconds.
    pub(super) fn measure() -> Result<Self, String> {
        let clock = Clock::start();
        let period = COARSE * clock::tick().as_nanos() as u64 * 1_000;
        let numbers: Vec<u64> = (0..MEASUREMENTS).collect();
        let measured = parallel::map(&numbers, numbers.len(), |_| one_timer(clock));
        let mut measured: Vec<u64> = measured.into_iter().collect::<Result<_, _>>()?;
        let first = measured.pop().unwrap_or_default();
        // Lateness against the first, or, beyond half a period, earliness.
        let later = |at: &u64| (at % period + period - first % period + period / 2) % period;
        let least = measured.iter().map(later).min().unwrap_or(period / 2).min(period / 2);
        Ok(Self { clock, phase: (first + period / 2 + least) % period, period })
    }

    /// Time from one tick to the next.
    pub(super) fn period(&self) -> Span {
        Span::from_ps(self.period)
    }

    /// One of them on the clock of a subject whose time is `now`.
    pub(super) fn phase_of(&self, now: Time) -> Span {
        let behind = self.clock.now().as_ps() % self.period + self.period - now.as_ps() % self.period;
        Span::from_ps((self.phase + 2 * self.period - behind) % self.period)
    }
}

/// Time at which a long timer went off, on `clock`.
fn one_timer(clock: Clock) -> Result<u64, String> {
    let script =
        RandomScript { name: String::new(), sack: false, ecn: false, rtt: Span::from_ms(100), steps: Vec::new() };
    in_namespace(|subject| {
        play::prepare(&script, subject)?;
        let now = subject.now();
        play::handshake(&script, subject, Schedule::Planned(now))?;
        play::act(&RandomAction::Write(1), subject)?;
        let mut last = None;
        for _ in 0..=COPIES {
            last = subject.next_sent(subject.now() + Span::from_ms(4_000));
        }
        let Some(copy) = last else { return DrillStop::failed("the kernel's retransmission timer did not go off") };
        Ok(clock.now().as_ps() - subject.now().since(copy.at).as_ps())
    })
}
