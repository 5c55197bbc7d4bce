//! Swift: a target for the delay.
//!
//! G. Kumar et al.: "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter" (SIGCOMM'20), Alg. 1, for the
//! fabric. With every acknowledgement
//!
//! ```text
//!   delay < target:   cwnd += AI · packets / cwnd     (below one packet AI · packets)
//!   otherwise:        cwnd ×= max(1 − β (delay − target)/delay, 1 − max_mdf)      at most once per round trip
//!   target = base + hops · h + clamp(α_fs/√cwnd + β_fs, 0, range)
//! ```
//!
//! A window below one packet is a pace of one packet in rtt/cwnd. The base is the site's round trip, or half of it for one-way
//! delays, plus the allowance of the configuration.

use units::{Rate, Span, Time};

use crate::{AckFeedback, ControlSite, RdmaControl};

/// Delay that is held against the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SwiftSignal {
    /// The round trip.
    #[default]
    Rtt,
    /// The way there alone, which needs synchronised clocks.
    OneWay,
}

/// Settings of Swift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwiftConfig {
    /// Delay that is held against the target.
    pub signal: SwiftSignal,
    /// Queueing delay that the target allows beyond the base; the base itself is the site's.
    pub base_target: Span,
    /// Delay that each switch on the way adds to the target.
    pub per_hop: Span,
    /// The most that flow scaling adds to the target.
    pub flow_scaling: Span,
    /// Window sizes in packets between which flow scaling falls from full to zero.
    pub flow_scaling_windows: [f64; 2],
    /// Additive increase in packets per round trip.
    pub ai: f64,
    /// Factor of a decrease.
    pub beta: f64,
    /// Largest share of the window that one decrease takes away.
    pub max_decrease: f64,
    /// Smallest window in packets; a window below 1 is a pace.
    pub min_window: f64,
    /// Largest window in packets.
    pub max_window: f64,
}

impl Default for SwiftConfig {
    fn default() -> Self {
        Self {
            signal: SwiftSignal::Rtt,
            base_target: Span::from_us(5),
            per_hop: Span::from_us(1),
            flow_scaling: Span::from_us(30),
            flow_scaling_windows: [0.1, 100.0],
            ai: 1.0,
            beta: 0.8,
            max_decrease: 0.5,
            min_window: 0.01,
            max_window: 4_096.0,
        }
    }
}

/// One queue pair's.
#[derive(Clone, Debug)]
pub struct Swift {
    config: SwiftConfig,
    line_rate: Rate,
    mtu: f64,
    /// Target without flow scaling, in picoseconds.
    base_target: f64,
    /// α_fs and β_fs, picoseconds.
    scaling: (f64, f64),
    /// cwnd, packets.
    window: f64,
    last_decrease: Option<Time>,
    rtt: Span,
    /// Timeouts without an acknowledgement in between.
    timeouts: u32,
    /// Length of the largest packet sent, with all headers.
    wire_bytes: u64,
}

/// Timeouts in a row after which the window is the least (RETX_RESET_THRESHOLD).
const RESET_AFTER: u32 = 5;

impl Swift {
    /// One for a connection at this site.
    pub fn new(config: &SwiftConfig, site: &ControlSite) -> Self {
        let mtu = f64::from(site.mtu.max(1));
        let base = match config.signal {
            SwiftSignal::Rtt => site.base_rtt,
            SwiftSignal::OneWay => site.base_rtt / 2,
        };
        let target = base + config.base_target + config.per_hop * u64::from(site.hops);
        let [few, many] = config.flow_scaling_windows.map(|window| window.max(1e-6).sqrt().recip());
        let alpha = if few > many { config.flow_scaling.as_ps() as f64 / (few - many) } else { 0.0 };
        Self {
            config: *config,
            line_rate: site.line_rate,
            mtu,
            base_target: target.as_ps() as f64,
            scaling: (alpha, -alpha * many),
            window: (site.bdp() as f64 / mtu).max(config.min_window).min(config.max_window),
            last_decrease: None,
            rtt: site.base_rtt,
            timeouts: 0,
            wire_bytes: u64::from(site.mtu),
        }
    }

    /// The delay that it aims at now.
    pub fn target(&self) -> Span {
        Span::from_ps(self.target_ps() as u64)
    }

    fn target_ps(&self) -> f64 {
        let (alpha, beta) = self.scaling;
        let most = self.config.flow_scaling.as_ps() as f64;
        self.base_target + (alpha / self.window.sqrt() + beta).clamp(0.0, most)
    }

    /// Decreases the window, at most once per round trip.
    fn decrease(&mut self, now: Time, factor: f64) {
        if self.last_decrease.is_some_and(|last| now.since(last) < self.rtt) {
            return;
        }
        self.last_decrease = Some(now);
        self.set(self.window * factor.max(1.0 - self.config.max_decrease));
    }

    fn set(&mut self, window: f64) {
        self.window = window.max(self.config.min_window).min(self.config.max_window);
    }
}

impl RdmaControl for Swift {
    fn on_ack(&mut self, ack: &AckFeedback<'_>) {
        self.timeouts = 0;
        self.rtt = ack.rtt.unwrap_or(self.rtt);
        let delay = match self.config.signal {
            SwiftSignal::Rtt => ack.rtt,
            SwiftSignal::OneWay => ack.one_way,
        };
        let Some(delay) = delay.map(|delay| delay.as_ps() as f64) else { return };
        let target = self.target_ps();
        if delay < target {
            let step = self.config.ai * ack.packets as f64;
            self.set(self.window + step / self.window.max(1.0));
        } else {
            self.decrease(ack.now, 1.0 - self.config.beta * (delay - target) / delay);
        }
    }

    fn on_nak(&mut self, now: Time) {
        self.timeouts = 0;
        self.decrease(now, 0.0);
    }

    fn on_timeout(&mut self, now: Time) {
        self.timeouts = self.timeouts.saturating_add(1);
        if self.timeouts >= RESET_AFTER {
            self.set(0.0);
        } else {
            self.decrease(now, 0.0);
        }
    }

    #[inline]
    fn on_sent(&mut self, _now: Time, wire_bytes: u64) {
        self.wire_bytes = self.wire_bytes.max(wire_bytes);
    }

    #[inline]
    fn window(&self) -> u64 {
        ((self.window * self.mtu) as u64).max(1)
    }

    #[inline]
    fn rate(&self) -> Option<Rate> {
        if self.window >= 1.0 {
            return Some(self.line_rate);
        }
        let bits = 8.0 * self.wire_bytes as f64 * self.window / self.rtt.as_secs().max(1e-9);
        Some(Rate::from_bits_per_second((bits as u64).max(1)).min(self.line_rate))
    }
}
