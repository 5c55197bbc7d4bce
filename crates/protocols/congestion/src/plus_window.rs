//! The window that rate-based controllers may keep besides ("+win" of the thesis, §2.6.1): W_init · R / line rate.

use crate::ControlSite;

/// Grows and falls with the rate, or is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlusWindow {
    /// Bytes for each bit per second; `None` without a window.
    share: Option<f64>,
}

impl PlusWindow {
    pub(crate) fn new(is_kept: bool, site: &ControlSite) -> Self {
        let share = site.bdp() as f64 / site.line_rate.bits_per_second() as f64;
        Self { share: is_kept.then_some(share) }
    }

    /// Window at this many bits per second.
    #[inline]
    pub(crate) fn at(self, rate: f64) -> u64 {
        self.share.map_or(u64::MAX, |share| ((share * rate).round() as u64).max(1))
    }
}
