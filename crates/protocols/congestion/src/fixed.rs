//! A fixed rate, whatever happens.

use units::Rate;

use crate::{AckFeedback, ControlSite, RdmaControl};

/// A rate that nothing changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedRateConfig {
    /// The rate; the NIC's if not given.
    pub rate: Option<Rate>,
}

/// Paces at one rate.
#[derive(Clone, Debug)]
pub struct FixedRate {
    rate: Rate,
}

impl FixedRate {
    /// One for a connection at this site.
    pub fn new(config: &FixedRateConfig, site: &ControlSite) -> Self {
        Self { rate: config.rate.unwrap_or(site.line_rate) }
    }
}

impl RdmaControl for FixedRate {
    fn on_ack(&mut self, _ack: &AckFeedback<'_>) {}

    fn window(&self) -> u64 {
        u64::MAX
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.rate)
    }
}
