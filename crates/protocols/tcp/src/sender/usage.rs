//! Use of the window: it may grow only while it limits the sender. RFC 7661 in the simple form of Linux
//! (`tcp_cwnd_validate`).

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowUsage {
    limited: bool,
    /// The most in flight since the last window began, which ends at `until`.
    peak: u64,
    until: u64,
}

impl WindowUsage {
    /// Notes a transmission; `full` if the window kept more from leaving.
    #[inline]
    pub(super) fn on_sent(&mut self, una: u64, nxt: u64, flight: u64, full: bool) {
        if una >= self.until || full || (!self.limited && flight > self.peak) {
            self.limited = full;
            self.peak = flight;
            self.until = nxt;
        }
    }

    /// True if the window limits the sender. In slow start a window that is half used counts, because it doubles.
    #[inline]
    pub(super) fn is_limited(&self, window: u64, threshold: u64) -> bool {
        self.limited || (window < threshold && window < 2 * self.peak)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_once_full_counts_as_such_until_it_is_acknowledged() {
        let mut usage = WindowUsage::default();
        usage.on_sent(0, 10_000, 10_000, true);
        usage.on_sent(1_000, 11_000, 10_000, false);
        assert!(usage.is_limited(10_000, 5_000));
        usage.on_sent(10_000, 12_000, 2_000, false);
        assert!(!usage.is_limited(10_000, 5_000));
        assert!(usage.is_limited(3_900, 5_000), "more than half used in slow start");
    }
}
