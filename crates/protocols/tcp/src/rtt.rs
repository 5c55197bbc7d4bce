//! The round trip and the retransmission timeout. RFC 6298; as Linux 5.4 computes it (`tcp_rtt_estimator`).
//!
//! The documents have RTO = SRTT + 4 RTTVAR, but at least `rto_min`. Linux lets the *variance* not fall below `rto_min`,
//! so that its RTO is always longer than the round trip by that; it takes the largest deviation of a window for the
//! window, and lets one that shrinks because the round trip does count for an eighth.

use units::Span;

use super::timing::TcpTiming;

const INITIAL: Span = Span::from_ms(1_000);
const MAX: Span = Span::from_ms(120_000);

/// Picoseconds; signed where differences are added.
#[derive(Clone, Debug)]
pub(super) struct Rtt {
    timing: TcpTiming,
    /// Eight times the smoothed round trip; 0 before the first sample.
    srtt8: i64,
    /// Four times the mean deviation, its largest of this window, and what the RTO takes.
    deviation4: i64,
    deviation4_max: i64,
    variance4: i64,
    /// The window ends when this is acknowledged.
    window_end: u64,
    min: Span,
    backoff: u32,
}

impl Rtt {
    pub(super) fn new(timing: TcpTiming, handshake: Option<Span>) -> Self {
        let mut rtt = Self {
            timing,
            srtt8: 0,
            deviation4: 0,
            deviation4_max: 0,
            variance4: 0,
            window_end: 0,
            min: Span::from_ps(u64::MAX),
            backoff: 0,
        };
        if let Some(sample) = handshake {
            rtt.sample(sample, 0, 0);
            rtt.observe_min(sample);
        }
        rtt
    }

    /// `None` before the first sample.
    #[inline]
    pub(super) fn srtt(&self) -> Option<Span> {
        (self.srtt8 > 0).then(|| Span::from_ps(self.srtt8 as u64 / 8))
    }

    /// The smallest so far; longer than anything before the first sample.
    #[inline]
    pub(super) fn min(&self) -> Span {
        self.min
    }

    #[inline]
    pub(super) fn observe_min(&mut self, sample: Span) {
        self.min = self.min.min(sample);
    }

    /// Takes a sample and ends the backoff. `una` and `nxt` distinguish one window from the next.
    #[inline]
    pub(super) fn sample(&mut self, sample: Span, una: u64, nxt: u64) {
        self.backoff = 0;
        // An hour is no round trip; the bound keeps the sums far from overflow.
        let sample = sample.as_ps().clamp(1, 3_600_000_000_000_000) as i64;
        if self.srtt8 == 0 {
            self.srtt8 = sample * 8;
            self.deviation4 = sample * 2;
            self.variance4 = self.deviation4.max(self.floor());
            self.deviation4_max = self.variance4;
            self.window_end = nxt;
            return;
        }
        let error = sample - self.srtt8 / 8;
        self.srtt8 = (self.srtt8 + error).max(1);
        if self.timing.ticks() {
            self.deviate_as_linux(error, una, nxt);
        } else {
            self.deviation4 += error.abs() - self.deviation4 / 4;
            self.variance4 = self.deviation4;
        }
    }

    #[inline]
    fn deviate_as_linux(&mut self, error: i64, una: u64, nxt: u64) {
        let change = error.abs() - self.deviation4 / 4;
        self.deviation4 += if error < 0 && change > 0 { change / 8 } else { change };
        if self.deviation4 > self.deviation4_max {
            self.deviation4_max = self.deviation4;
            self.variance4 = self.variance4.max(self.deviation4_max);
        }
        if una > self.window_end {
            if self.deviation4_max < self.variance4 {
                self.variance4 -= (self.variance4 - self.deviation4_max) / 4;
            }
            self.window_end = nxt;
            self.deviation4_max = self.floor();
        }
    }

    /// Floor of the variance in Linux.
    fn floor(&self) -> i64 {
        if self.timing.ticks() { self.timing.rto_min.as_ps() as i64 } else { 0 }
    }

    /// Timeout without backoff.
    #[inline]
    pub(super) fn base_rto(&self) -> Span {
        let base = match self.srtt() {
            None => INITIAL,
            Some(srtt) => srtt + Span::from_ps(self.variance4 as u64),
        };
        base.max(self.timing.rto_min)
    }

    /// The mean deviation.
    pub(super) fn deviation(&self) -> Span {
        Span::from_ps(self.deviation4 as u64 / 4)
    }

    pub(super) fn backoff(&self) -> u32 {
        self.backoff
    }

    #[inline]
    pub(super) fn rto(&self) -> Span {
        let base = self.base_rto();
        match self.backoff {
            0 => base.min(MAX),
            // A kernel doubles what it has rounded.
            backoff => (self.timing.round_up(base) * (1 << backoff)).min(MAX),
        }
    }

    /// RFC 6298 §5.5.
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TimerProfile;

    const US_30: Span = Span::from_us(30);

    fn linux(rto_min: Span) -> TcpTiming {
        TcpTiming::new(&TimerProfile::Linux { hz: 1_000, rto_min, phase: Span::ZERO })
    }

    #[test]
    fn a_second_before_anything_is_known() {
        assert_eq!(Rtt::new(TcpTiming::new(&TimerProfile::rfc()), None).rto(), Span::from_ms(1_000));
    }

    #[test]
    fn linux_adds_its_minimum_where_the_rfc_takes_the_maximum() {
        let linux = Rtt::new(linux(Span::from_ms(1)), Some(US_30));
        assert_eq!(linux.rto(), Span::from_us(1_030));
        let rfc = TimerProfile::Rfc { rto_min: Span::from_ms(1), max_ack_delay: Span::ZERO };
        assert_eq!(Rtt::new(TcpTiming::new(&rfc), Some(US_30)).rto(), Span::from_ms(1));
    }

    #[test]
    fn backoff_doubles_whole_jiffies_and_ends_with_a_sample() {
        let mut rtt = Rtt::new(linux(Span::from_ms(1)), Some(US_30));
        rtt.back_off();
        assert_eq!(rtt.rto(), Span::from_ms(4));
        rtt.back_off();
        assert_eq!(rtt.rto(), Span::from_ms(8));
        rtt.sample(US_30, 0, 1);
        assert_eq!(rtt.rto(), Span::from_us(1_030));
        (0..40).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), Span::from_ms(120_000).min(Span::from_ms(2 * 1_024)));
    }

    #[test]
    fn a_first_sample_gives_three_times_itself() {
        let rfc = TimerProfile::Rfc { rto_min: Span::ZERO, max_ack_delay: Span::ZERO };
        assert_eq!(Rtt::new(TcpTiming::new(&rfc), Some(US_30)).rto(), US_30 * 3);
    }
}
