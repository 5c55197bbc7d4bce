//! DCQCN, as NICs and the HPCC authors' simulator have it.
//!
//! Y. Zhu et al.: "Congestion Control for Large-Scale RDMA Deployments" (SIGCOMM'15), with α and both reactions on clocks. From
//! the first notification on, when α = 1,
//!
//! ```text
//!   every α clock    α ← (1 − g) α, + g if a notification came since the last
//!   every T_d        if a notification came since the last: target ← R, R ← R (1 − α/2), increases begin anew
//!   every T_i        after a decrease: F times R ← (R + target)/2, once the target grows by AI before, then by HAI
//! ```
//!
//! Nothing ticks: α is computed when it is needed, and T_d counts only when a notification has come. In the same instant, α comes
//! first, then an increase, a decrease, a notification; so one that comes together with a decrease counts for the next.

use std::collections::VecDeque;

use units::{Rate, Span, Time};

use crate::plus_window::PlusWindow;
use crate::{AckFeedback, ControlSite, RdmaControl};

/// Way in which marks travel back to the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CnpDelivery {
    /// Notification packets, at most one per flow and interval.
    #[default]
    Packet,
    /// Marks travel with every acknowledgement.
    Echo,
}

/// Settings of DCQCN. Rates of increase are for a NIC of 25 Gb/s and grow with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DcqcnConfig {
    /// Time between two increases (T_i).
    pub increase_every: Span,
    /// Least time between two decreases (T_d).
    pub decrease_every: Span,
    /// Period of the clock that lets α decay.
    pub alpha_every: Span,
    /// Weight of a new observation in α.
    pub g: f64,
    /// Additive increase at 25 Gb/s.
    pub ai: Rate,
    /// Hyper increase at 25 Gb/s.
    pub hai: Rate,
    /// Steps of fast recovery (F).
    pub fast_recovery: u32,
    /// Lets a decrease also lower the target when the rate has not recovered yet.
    pub clamp_target: bool,
    /// The least rate.
    pub min_rate: Rate,
    /// Way in which marks come back.
    pub cnp: CnpDelivery,
    /// Least time between two notification packets of a flow.
    pub cnp_gap: Span,
    /// Time that the NIC takes to act on a notification.
    pub nic_delay: Span,
    /// Keeps a window of W_init · R / line rate besides.
    pub plus_window: bool,
}

impl DcqcnConfig {
    /// Settings that a NIC vendor suggests, and the thesis uses.
    pub const VENDOR: Self = Self {
        increase_every: Span::from_us(300),
        decrease_every: Span::from_us(4),
        alpha_every: Span::from_us(1),
        g: 1.0 / 256.0,
        ai: Rate::from_bits_per_second(5_000_000),
        hai: Rate::from_bits_per_second(50_000_000),
        fast_recovery: 1,
        clamp_target: false,
        min_rate: Rate::from_bits_per_second(100_000_000),
        cnp: CnpDelivery::Packet,
        cnp_gap: Span::from_us(50),
        nic_delay: Span::ZERO,
        plus_window: false,
    };

    /// The timers of the DCQCN paper.
    pub const PAPER: Self = Self {
        increase_every: Span::from_us(55),
        decrease_every: Span::from_us(50),
        alpha_every: Span::from_us(50),
        fast_recovery: 5,
        ..Self::VENDOR
    };

    /// Slow to increase, for fewer pauses.
    pub const CONSERVATIVE: Self = Self { increase_every: Span::from_us(900), ..Self::VENDOR };
}

/// One queue pair's.
#[derive(Clone, Debug)]
pub struct Dcqcn {
    config: DcqcnConfig,
    line_rate: f64,
    min_rate: f64,
    ai: f64,
    hai: f64,
    plus_window: PlusWindow,

    now: Time,
    rate: f64,
    target: f64,
    /// Increases since the last decrease.
    stage: u32,
    /// Time at which the first notification took effect: the clocks of α and T_d count from there.
    started: Option<Time>,
    alpha: Alpha,
    /// Time of the next decrease, after a notification.
    decrease_at: Time,
    /// Time of the next increase, after a decrease.
    increase_at: Time,
    /// Notifications that the NIC has not acted on yet: when it will.
    delayed: VecDeque<Time>,
}

/// The estimate of congestion, as of the last tick of its clock.
#[derive(Clone, Copy, Debug)]
struct Alpha {
    value: f64,
    ticked: Time,
    /// True if a notification arrived since that tick.
    notified: bool,
}

/// Times are cut to this, so that sums with any timer fit.
const LATEST: Time = Time::from_ps(u64::MAX / 2);

impl Dcqcn {
    /// One for a connection at this site.
    pub fn new(config: &DcqcnConfig, site: &ControlSite) -> Self {
        let line_rate = site.line_rate.bits_per_second() as f64;
        let scale = line_rate / 25e9;
        let at_least = |span: Span| span.max(Span::from_ns(1));
        Self {
            config: DcqcnConfig {
                increase_every: at_least(config.increase_every),
                decrease_every: at_least(config.decrease_every),
                alpha_every: at_least(config.alpha_every),
                ..*config
            },
            line_rate,
            min_rate: (config.min_rate.bits_per_second() as f64).min(line_rate),
            ai: config.ai.bits_per_second() as f64 * scale,
            hai: config.hai.bits_per_second() as f64 * scale,
            plus_window: PlusWindow::new(config.plus_window, site),
            now: Time::ZERO,
            rate: line_rate,
            target: line_rate,
            stage: 0,
            started: None,
            alpha: Alpha { value: 1.0, ticked: Time::ZERO, notified: false },
            decrease_at: Time::NEVER,
            increase_at: Time::NEVER,
            delayed: VecDeque::new(),
        }
    }

    /// α at the time at which it was last needed.
    pub fn alpha(&self) -> f64 {
        self.alpha.value
    }

    fn notify(&mut self, now: Time) {
        self.advance(now);
        if self.config.nic_delay == Span::ZERO {
            return self.notified(self.now);
        }
        let at = (self.now + self.config.nic_delay).min(LATEST);
        // Notifications within a tick of α of another one add nothing.
        let merge = self.config.alpha_every.min(self.config.decrease_every);
        if self.delayed.back().is_none_or(|last| at >= *last + merge) {
            self.delayed.push_back(at);
        }
    }

    /// A notification takes effect.
    fn notified(&mut self, now: Time) {
        let started = match self.started {
            None => {
                self.alpha = Alpha { value: 1.0, ticked: now, notified: false };
                *self.started.insert(now)
            }
            Some(started) => {
                self.update_alpha(now);
                self.alpha.notified = true;
                started
            }
        };
        if self.decrease_at == Time::NEVER {
            let every = self.config.decrease_every;
            let checks = now.since(started).as_ps() / every.as_ps();
            self.decrease_at = started + every * (checks + 1);
        }
    }

    /// Lets α's clock tick until `now`.
    fn update_alpha(&mut self, now: Time) {
        let every = self.config.alpha_every;
        let ticks = now.since(self.alpha.ticked).as_ps() / every.as_ps();
        if ticks == 0 {
            return;
        }
        self.alpha.ticked += every * ticks;
        self.alpha.value *= (1.0 - self.config.g).powf(ticks as f64);
        if std::mem::take(&mut self.alpha.notified) {
            self.alpha.value += self.config.g * (1.0 - self.config.g).powf((ticks - 1) as f64);
        }
    }

    fn decrease(&mut self, now: Time) {
        self.update_alpha(now);
        if self.config.clamp_target || self.stage > 0 {
            self.target = self.rate;
        }
        self.rate = (self.rate * (1.0 - self.alpha.value / 2.0)).max(self.min_rate);
        self.stage = 0;
        self.decrease_at = Time::NEVER;
        self.increase_at = now + self.config.increase_every;
    }

    fn increase(&mut self) {
        if self.stage >= self.config.fast_recovery {
            let step = if self.stage == self.config.fast_recovery { self.ai } else { self.hai };
            self.target = (self.target + step).min(self.line_rate);
        }
        self.rate = (self.rate + self.target) / 2.0;
        if self.target - self.rate < 1.0 {
            self.rate = self.target;
        }
        self.stage = self.stage.saturating_add(1);
        self.increase_at += self.config.increase_every;
    }

    /// True if the next increase changes nothing but their count.
    fn recovered(&self) -> bool {
        self.rate >= self.target && (self.target >= self.line_rate || self.stage < self.config.fast_recovery)
    }

    /// Counts increases that change nothing, up to `until`.
    fn skip_increases(&mut self, until: Time) {
        let every = self.config.increase_every;
        let mut ticks = until.since(self.increase_at).as_ps() / every.as_ps() + 1;
        if self.target < self.line_rate {
            ticks = ticks.min(u64::from(self.config.fast_recovery - self.stage));
        }
        self.stage = self.stage.saturating_add(u32::try_from(ticks).unwrap_or(u32::MAX));
        self.increase_at += every * ticks;
    }
}

impl RdmaControl for Dcqcn {
    #[inline]
    fn on_ack(&mut self, ack: &AckFeedback<'_>) {
        if ack.marked > 0 && self.config.cnp == CnpDelivery::Echo {
            self.notify(ack.now);
        } else {
            self.advance(ack.now);
        }
    }

    fn on_cnp(&mut self, now: Time) {
        self.notify(now);
    }

    #[inline]
    fn advance(&mut self, now: Time) {
        let now = now.min(LATEST).max(self.now);
        self.now = now;
        loop {
            let delayed = self.delayed.front().copied().unwrap_or(Time::NEVER);
            let next = self.increase_at.min(self.decrease_at).min(delayed);
            if next > now {
                return;
            }
            if next == self.increase_at {
                if self.recovered() {
                    self.skip_increases(self.decrease_at.min(delayed).min(now));
                } else {
                    self.increase();
                }
            } else if next == self.decrease_at {
                self.decrease(next);
            } else {
                self.delayed.pop_front();
                self.notified(next);
            }
        }
    }

    #[inline]
    fn changes_at(&self) -> Time {
        let increase = if self.rate >= self.line_rate { Time::NEVER } else { self.increase_at };
        let delayed = self.delayed.front().copied().unwrap_or(Time::NEVER);
        increase.min(self.decrease_at).min(delayed)
    }

    #[inline]
    fn window(&self) -> u64 {
        self.plus_window.at(self.rate)
    }

    #[inline]
    fn rate(&self) -> Option<Rate> {
        Some(Rate::from_bits_per_second(self.rate.round() as u64))
    }
}
