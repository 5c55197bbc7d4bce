//! DCTCP for RDMA: no slow start, a window that begins with the bandwidth-delay product.
//!
//! M. Alizadeh et al.: "Data Center TCP (DCTCP)" (SIGCOMM'10), as the HPCC authors' simulator has it: the first mark of a round
//! trip cuts the window by α/2, a round trip without marks adds one packet, and the pace is W/T. Losses change nothing.

use units::{Rate, Span};

use crate::mark_share::MarkShare;
use crate::round::RoundTracker;
use crate::{AckFeedback, ControlSite, RdmaControl};

/// Settings of DCTCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RdmaDctcpConfig {
    /// Weight of a new observation in α; the nearest power of two counts.
    pub g: f64,
    /// The least rate.
    pub min_rate: Rate,
    /// T; the base round trip if not given.
    pub t: Option<Span>,
}

impl Default for RdmaDctcpConfig {
    fn default() -> Self {
        Self { g: 1.0 / 16.0, min_rate: Rate::from_bits_per_second(100_000_000), t: None }
    }
}

/// One queue pair's.
#[derive(Clone, Debug)]
pub struct RdmaDctcp {
    marks: MarkShare,
    window: f64,
    lowest: f64,
    highest: f64,
    mtu: f64,
    /// Factor from bytes to bits per second.
    pace: f64,
    /// Round of α and of growth.
    round: RoundTracker,
    /// Round of the last reduction; packets that were in flight then do not cut again.
    reduced: Option<RoundTracker>,
}

impl RdmaDctcp {
    /// One for a connection at this site.
    pub fn new(config: &RdmaDctcpConfig, site: &ControlSite) -> Self {
        let t = config.t.unwrap_or(site.base_rtt).max(Span::from_ns(1));
        let line_rate = site.line_rate.bits_per_second() as f64;
        let highest = site.line_rate.bytes_in(t).get().max(1) as f64;
        Self {
            marks: MarkShare::with_shift((-config.g.log2()).round() as u32),
            window: highest,
            lowest: highest * (config.min_rate.bits_per_second() as f64 / line_rate).min(1.0),
            highest,
            mtu: f64::from(site.mtu),
            pace: line_rate / highest,
            round: RoundTracker::default(),
            reduced: None,
        }
    }

    /// The running estimate of the share of marks, 0 to 1.
    pub fn alpha(&self) -> f64 {
        self.marks.alpha()
    }
}

impl RdmaControl for RdmaDctcp {
    fn on_ack(&mut self, ack: &AckFeedback<'_>) {
        let had_begun = self.round.has_begun();
        let round_over = self.round.is_over(ack);
        if round_over {
            self.marks.end_round();
        }
        if round_over || !had_begun {
            self.round.begin(ack);
        }
        self.marks.count(ack.packets, u64::from(ack.marked));
        if self.reduced.as_mut().is_some_and(|since| since.is_over(ack)) {
            self.reduced = None;
        }
        if self.reduced.is_some() {
            return;
        }
        if ack.marked > 0 {
            self.window = (self.window * (1.0 - self.marks.alpha() / 2.0)).max(self.lowest);
            self.reduced.insert(RoundTracker::default()).begin(ack);
        } else if round_over {
            self.window = (self.window + self.mtu).min(self.highest);
        }
    }

    #[inline]
    fn window(&self) -> u64 {
        (self.window as u64).max(1)
    }

    #[inline]
    fn rate(&self) -> Option<Rate> {
        Some(Rate::from_bits_per_second((self.window * self.pace).round() as u64))
    }
}
