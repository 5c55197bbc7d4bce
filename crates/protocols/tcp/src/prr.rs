//! Proportional rate reduction: what may leave while losses are repaired. RFC 6937, as in Linux (`tcp_cwnd_reduction`).
//!
//! While more is in flight than the new threshold, it falls in proportion to what is delivered, so that it reaches the
//! threshold after a round trip. Below the threshold, what is delivered may leave again, and somewhat more once repairs
//! arrive.

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    threshold: u64,
    /// The window before.
    prior: u64,
    delivered: u64,
    sent: u64,
    window: u64,
    /// Unit that is counted: bytes, or the segments of a kernel.
    unit: u64,
    /// RFC 6937's slow start on each acknowledgement, not only on those that `repairs_arrive` is true of.
    eager: bool,
}

impl Prr {
    /// Repair begins: the first of it may always leave.
    pub(super) fn new(prior: u64, threshold: u64) -> Self {
        Self { threshold, prior: prior.max(1), delivered: 0, sent: 0, window: 0, unit: 1, eager: false }
    }

    /// Counts as a kernel does, in whole segments of `mss`.
    pub(super) fn in_segments(self, mss: u64, eager: bool) -> Self {
        let prior = (self.prior / mss).max(1) * mss;
        // The window stays as it is until something is delivered.
        Self { threshold: self.threshold / mss * mss, prior, window: prior, unit: mss, eager, ..self }
    }

    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// Updates the window after an acknowledgement. `repairs_arrive` is true if a retransmission was delivered and, as in
    /// Linux, no copy was found lost meanwhile.
    pub(super) fn on_ack(&mut self, delivered: u64, flight: u64, repairs_arrive: bool, mss: u64) {
        self.delivered += delivered;
        let may_send = if flight > self.threshold {
            let scaled = u128::from(self.prior) * u128::from(self.unit);
            let share = (u128::from(self.threshold) * u128::from(self.delivered)).div_ceil(scaled);
            u64::try_from(share * u128::from(self.unit)).unwrap_or(u64::MAX).saturating_sub(self.sent)
        } else if repairs_arrive || self.eager {
            let backlog = self.delivered.saturating_sub(self.sent);
            let more = if repairs_arrive { mss } else { 0 };
            (backlog.max(delivered) + more).min(self.threshold - flight)
        } else {
            delivered.min(self.threshold - flight)
        };
        let least = if self.sent == 0 { mss } else { 0 };
        self.window = flight.saturating_add(may_send.max(least));
    }

    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    #[test]
    fn every_second_segment_leaves_on_the_way_to_half() {
        let mut prr = Prr::new(20 * MSS, 10 * MSS);
        let mut flight = 19 * MSS;
        let mut sent = Vec::new();
        for _ in 0..6 {
            flight -= MSS;
            prr.on_ack(MSS, flight, false, MSS);
            let leaves = prr.window() >= flight + MSS;
            if leaves {
                prr.on_sent(MSS);
                flight += MSS;
            }
            sent.push(leaves);
        }
        assert_eq!(sent, [true, false, false, true, false, true], "the first repair leaves at once");
    }

    #[test]
    fn below_the_threshold_what_arrives_is_replaced() {
        let mut prr = Prr::new(20 * MSS, 10 * MSS);
        prr.on_ack(MSS, 4 * MSS, false, MSS);
        prr.on_sent(MSS);
        prr.on_ack(MSS, 4 * MSS, false, MSS);
        assert_eq!(prr.window(), 5 * MSS);
        prr.on_sent(MSS);
        prr.on_ack(MSS, 4 * MSS, true, MSS);
        assert_eq!(prr.window(), 6 * MSS);
    }
}
