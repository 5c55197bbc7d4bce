//! TIMELY: the gradient of the round trip.
//!
//! R. Mittal et al.: "TIMELY: RTT-based Congestion Control for the Datacenter" (SIGCOMM'15), Alg. 1, once per round trip and with
//! hyper increase as the HPCC authors' simulator has it:
//!
//! ```text
//!   diff ← (1 − α) diff + α (rtt − rtt before)        gradient = diff / minRTT
//!   rtt < T_low, or gradient ≤ 0 up to T_high:  R += AI, after N times in a row HAI
//!   rtt > T_high:                               R ×= 1 − β (1 − T_high / rtt)
//!   otherwise:                                  R ×= 1 − β gradient
//! ```
//!
//! It has no unique fixed point: nothing says that flows become equally fast.

use units::{Rate, Span};

use crate::plus_window::PlusWindow;
use crate::round::RoundTracker;
use crate::{AckFeedback, ControlSite, RdmaControl};

/// Settings of TIMELY. Rates of increase are for a NIC of 10 Gb/s and grow with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimelyConfig {
    /// Weight of a new difference of round trips in the average.
    pub alpha: f64,
    /// Factor of a decrease.
    pub beta: f64,
    /// Round trip below which the rate always grows.
    pub t_low: Span,
    /// Round trip above which the rate always falls.
    pub t_high: Span,
    /// Divisor of gradients.
    pub min_rtt: Span,
    /// Additive increase at 10 Gb/s.
    pub ai: Rate,
    /// Hyper increase at 10 Gb/s.
    pub hai: Rate,
    /// Increases in a row until they are hyper.
    pub hyper_after: u32,
    /// The least rate.
    pub min_rate: Rate,
    /// Keeps a window of W_init · R / line rate besides.
    pub plus_window: bool,
}

impl Default for TimelyConfig {
    /// The parameters of the paper.
    fn default() -> Self {
        Self {
            alpha: 0.875,
            beta: 0.8,
            t_low: Span::from_us(50),
            t_high: Span::from_us(500),
            min_rtt: Span::from_us(20),
            ai: Rate::from_bits_per_second(10_000_000),
            hai: Rate::from_bits_per_second(50_000_000),
            hyper_after: 5,
            min_rate: Rate::from_bits_per_second(100_000_000),
            plus_window: false,
        }
    }
}

/// One queue pair's.
#[derive(Clone, Debug)]
pub struct Timely {
    config: TimelyConfig,
    line_rate: f64,
    min_rate: f64,
    /// Factor by which the steps grow.
    scale: f64,
    plus_window: PlusWindow,
    rate: f64,
    round: RoundTracker,
    /// Picoseconds.
    last_rtt: f64,
    rtt_diff: f64,
    /// Increases in a row.
    stage: u32,
}

impl Timely {
    /// One for a connection at this site.
    pub fn new(config: &TimelyConfig, site: &ControlSite) -> Self {
        let line_rate = site.line_rate.bits_per_second() as f64;
        Self {
            config: *config,
            line_rate,
            min_rate: (config.min_rate.bits_per_second() as f64).min(line_rate),
            scale: line_rate / 10e9,
            plus_window: PlusWindow::new(config.plus_window, site),
            rate: line_rate,
            round: RoundTracker::default(),
            last_rtt: 0.0,
            rtt_diff: 0.0,
            stage: 0,
        }
    }

    /// Factor below 1 by which a round trip of this length changes the rate; `None` if the rate grows.
    fn decrease(&self, rtt: f64) -> Option<f64> {
        let TimelyConfig { beta, t_low, t_high, min_rtt, .. } = self.config;
        let gradient = self.rtt_diff / min_rtt.as_ps().max(1) as f64;
        let t_high = t_high.as_ps() as f64;
        if rtt < t_low.as_ps() as f64 {
            None
        } else if rtt > t_high {
            Some(1.0 - beta * (1.0 - t_high / rtt))
        } else if gradient <= 0.0 {
            None
        } else {
            Some(1.0 - beta * gradient)
        }
    }
}

impl RdmaControl for Timely {
    fn on_ack(&mut self, ack: &AckFeedback<'_>) {
        let Some(rtt) = ack.rtt.map(|rtt| rtt.as_ps() as f64) else { return };
        let first = !self.round.has_begun();
        if !first && !self.round.is_over(ack) {
            return;
        }
        self.round.begin(ack);
        let diff = rtt - std::mem::replace(&mut self.last_rtt, rtt);
        if first {
            return;
        }
        self.rtt_diff = (1.0 - self.config.alpha) * self.rtt_diff + self.config.alpha * diff;
        match self.decrease(rtt) {
            Some(factor) => {
                self.rate = (self.rate * factor).max(self.min_rate);
                self.stage = 0;
            }
            None => {
                let step = if self.stage < self.config.hyper_after { self.config.ai } else { self.config.hai };
                self.rate = (self.rate + step.bits_per_second() as f64 * self.scale).min(self.line_rate);
                self.stage = self.stage.saturating_add(1);
            }
        }
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
