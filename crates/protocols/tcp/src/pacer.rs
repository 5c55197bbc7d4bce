//! Pacing, for a congestion control that asks for it.
//!
//! Bursts, as a kernel's segmentation offload makes them: what leaves in about a millisecond (1/1024 s), but at least
//! two segments and at most 64 KB, goes out at once; the next such burst waits until this one would have gone at the
//! pace asked for (`tcp_tso_autosize`, `tcp_update_skb_after_send`). One that began late, because nobody pulled or there
//! was nothing to send, makes up for it by at most half its time. A repair counts like any other segment.

use units::{Bytes, Span, Time};

use super::cc::PacingRate;

const MAX_BURST: u64 = 65_536;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TcpPacer {
    /// Time before which nothing leaves.
    pub release: Time,
    /// The burst under way: when it began, how much has left, and how much may.
    began: Time,
    burst: u64,
    left: u64,
}

impl TcpPacer {
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, bytes: u64, pace: PacingRate, mss: u64) {
        if self.left == 0 {
            self.began = now;
            self.burst = 0;
            self.left = (pace.bits_per_second() >> 13).clamp(2 * mss, MAX_BURST.max(2 * mss));
        }
        self.burst += bytes;
        self.left = self.left.saturating_sub(bytes);
        // A rest shorter than a segment would be a burst of its own.
        if self.left < mss {
            self.left = 0;
            self.end_burst(pace.span_of(Bytes::new(self.burst)));
        }
    }

    fn end_burst(&mut self, span: Span) {
        let late = self.began.since(self.release).min(span / 2);
        // A control may ask for a pace so slow that its end is beyond time.
        self.release = Time::from_ps(self.began.as_ps().saturating_add((span - late).as_ps()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_pace_lets_two_segments_go_at_a_time() {
        let mut pacer = TcpPacer::default();
        let pace = PacingRate::from_bits_per_second(8_000_000);
        pacer.on_sent(Time::ZERO, 1_000, pace, 1_000);
        assert_eq!(pacer.release, Time::ZERO);
        pacer.on_sent(Time::ZERO, 1_000, pace, 1_000);
        assert_eq!(pacer.release, Time::ZERO + Span::from_ms(2));
    }

    #[test]
    fn a_fast_pace_lets_64_kilobytes_go_at_a_time() {
        let mut pacer = TcpPacer::default();
        let pace = PacingRate::from_bits_per_second(8_000_000_000);
        (0..64).for_each(|_| pacer.on_sent(Time::ZERO, 1_000, pace, 1_000));
        assert_eq!(pacer.release, Time::ZERO);
        pacer.on_sent(Time::ZERO, 1_000, pace, 1_000);
        assert_eq!(pacer.release, Time::ZERO + Span::from_us(65));
    }

    #[test]
    fn a_burst_counts_from_its_beginning_and_makes_up_for_half_its_time() {
        let mut pacer = TcpPacer::default();
        let pace = PacingRate::from_bits_per_second(8_000_000);
        let at = |ms| Time::ZERO + Span::from_ms(ms);
        pacer.on_sent(at(0), 1_000, pace, 1_000);
        pacer.on_sent(at(1), 1_000, pace, 1_000);
        assert_eq!(pacer.release, at(2));
        pacer.on_sent(at(10), 2_000, pace, 1_000);
        assert_eq!(pacer.release, at(11));
    }
}
