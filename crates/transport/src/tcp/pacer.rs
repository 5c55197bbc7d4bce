//! Pacing, for a congestion control that asks for it.
//!
//! Bursts, as a kernel's segmentation offload makes them: what leaves in about a millisecond (1/1024 s), but at least
//! two segments and at most 64 KB, goes out at once; the next such burst waits until this one would have gone at the
//! pace asked for (`tcp_tso_autosize`, `tcp_update_skb_after_send`). A repair counts like any other segment.

use units::{Bytes, Time};

use super::cc::Pace;

const MAX_BURST: u64 = 65_536;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacer {
    /// Nothing leaves before.
    pub release: Time,
    /// Of the burst under way.
    left: u64,
    burst: u64,
}

impl Pacer {
    #[inline]
    pub fn on_sent(&mut self, now: Time, bytes: u64, pace: Pace, mss: u64) {
        if self.left == 0 {
            self.burst = 0;
            self.left = (pace.bits_per_second() >> 13).clamp(2 * mss, MAX_BURST.max(2 * mss));
        }
        self.burst += bytes;
        self.left = self.left.saturating_sub(bytes);
        // What is shorter than a segment would be a burst of its own.
        if self.left < mss {
            self.left = 0;
            let span = pace.span_of(Bytes::new(self.burst));
            // A control may ask for a pace so slow that its end is beyond time.
            self.release = Time::from_ps(self.release.max(now).as_ps().saturating_add(span.as_ps()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Span;

    #[test]
    fn a_slow_pace_lets_two_segments_go_at_a_time() {
        let mut pacer = Pacer::default();
        let pace = Pace::from_bits_per_second(8_000_000);
        pacer.on_sent(Time::ZERO, 1_000, pace, 1_000);
        assert_eq!(pacer.release, Time::ZERO);
        pacer.on_sent(Time::ZERO, 1_000, pace, 1_000);
        assert_eq!(pacer.release, Time::ZERO + Span::from_ms(2));
    }

    #[test]
    fn a_fast_pace_lets_64_kilobytes_go_at_a_time() {
        let mut pacer = Pacer::default();
        let pace = Pace::from_bits_per_second(8_000_000_000);
        (0..64).for_each(|_| pacer.on_sent(Time::ZERO, 1_000, pace, 1_000));
        assert_eq!(pacer.release, Time::ZERO);
        pacer.on_sent(Time::ZERO, 1_000, pace, 1_000);
        assert_eq!(pacer.release, Time::ZERO + Span::from_us(65));
    }
}
