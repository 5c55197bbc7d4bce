//! A window that follows another sender's: what that had in flight, its window allowed.

use super::super::TcpController;
use super::{CongestionWindow, MAX_WINDOW, Windowed};

impl CongestionWindow {
    /// Adopts a window of at least `flight`, because that much was allowed. Beyond a threshold that no loss set, the
    /// other sender is still in slow start.
    fn adopt(&mut self, flight: u64) {
        if flight > self.size {
            self.size = flight.min(MAX_WINDOW);
            if self.prior.is_none() && self.size > self.threshold {
                self.threshold = MAX_WINDOW;
            }
        }
    }
}

impl TcpController {
    /// Adopts what another sender, which this one follows, has in flight.
    pub(crate) fn adopt(&mut self, flight: u64) {
        match self {
            Self::Reno(control) => control.shared_mut().adopt(flight),
            Self::Cubic(control) => control.shared_mut().adopt(flight),
            Self::Dctcp(control) => control.shared_mut().adopt(flight),
            Self::Bbr(_) | Self::Off(_) => {}
        }
    }
}
