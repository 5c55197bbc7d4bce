//! Growth of the receive buffer with what the application reads: dynamic right-sizing, as in Linux (`tcp_rcv_space_adjust`,
//! `tcp_rcvbuf_grow`).
//!
//! Once a round trip, what was read in it is compared with the round trip before. If it was more, the buffer must hold what
//! the sender may have sent a round trip later: twice as much, and more while the sender is speeding up. A receiver learns the
//! round trip from timestamps, or from the time in which a window arrives.

use units::{Span, Time};

use super::super::config::LinuxVersion;

#[derive(Clone, Debug)]
pub(super) struct BufferGrowth {
    version: LinuxVersion,
    /// Upper limit of the buffer.
    cap: u64,
    mss: u64,
    rtt: ReceiverRoundTrip,
    /// Start of this round trip, bytes read by then, and most bytes read in an earlier one.
    began: Time,
    read: u64,
    space: u64,
}

/// The receiver's estimate of the round trip; in eighths, as it is smoothed.
#[derive(Clone, Debug, Default)]
struct ReceiverRoundTrip {
    eighths: u64,
    /// A window that began then has arrived once all below is.
    window: Option<(Time, u64)>,
    echo: u32,
}

impl ReceiverRoundTrip {
    fn observe(&mut self, sample: Span, by_window: bool, unread: bool) {
        let sample = sample.as_ps().max(1);
        if self.eighths == 0 || sample * 8 < self.eighths {
            self.eighths = sample * 8;
        } else if !by_window && !unread {
            self.eighths = self.eighths - self.eighths / 8 + sample;
        }
    }
}

/// Inputs of the growth.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivePlace {
    /// Expected next, and read.
    pub next: u64,
    pub read: u64,
    /// Window that is offered.
    pub window: u64,
}

impl BufferGrowth {
    /// `first` is the window that was offered first.
    pub(super) fn new(version: LinuxVersion, cap: u64, mss: u64, first: u64, now: Time) -> Self {
        let space = if version == LinuxVersion::V4_4 { first } else { first.min(10 * mss) };
        Self { version, cap, mss, rtt: ReceiverRoundTrip::default(), began: now, read: 0, space: space.max(1) }
    }

    /// Round trip; zero before the first sample.
    pub(super) fn rtt(&self) -> Span {
        Span::from_ps(self.rtt.eighths / 8)
    }

    /// Handles a segment that arrived in order. `echo` is the timestamp that a full-sized segment returns, with its age;
    /// `unread` is true if earlier data waits for the application.
    pub(super) fn on_segment(&mut self, now: Time, place: &ReceivePlace, echo: Option<(u32, Span)>, unread: bool) {
        if let Some((echo, age)) = echo.filter(|(echo, _)| *echo != self.rtt.echo) {
            self.rtt.echo = echo;
            self.rtt.observe(age, false, unread && self.version == LinuxVersion::Current);
        }
        if let Some((began, end)) = self.rtt.window {
            if place.next < end {
                return;
            }
            self.rtt.observe(now.since(began), true, false);
        }
        self.rtt.window = Some((now, place.next + place.window));
    }

    /// The application has read; what the buffer should be, if a round trip is over in which it read more than ever.
    /// `is_over` has the last word on whether it is.
    pub(super) fn on_read(
        &mut self,
        now: Time,
        place: &ReceivePlace,
        is_over: impl FnOnce(bool) -> bool,
    ) -> Option<u64> {
        if !is_over(self.rtt.eighths > 0 && now.since(self.began) >= self.rtt()) {
            return None;
        }
        let unread = if self.version == LinuxVersion::Current { place.next - place.read } else { 0 };
        let copied = (place.read - self.read).saturating_sub(unread);
        (self.began, self.read) = (now, place.read);
        (copied > self.space).then(|| self.grow_to(copied, 0))
    }

    /// Grows the buffer for segments that are held out of order, up to `held` bytes beyond the expected one.
    pub(super) fn on_out_of_order(&mut self, held: u64) -> Option<u64> {
        (self.version == LinuxVersion::Current).then(|| self.grow_to(self.space, held))
    }

    fn grow_to(&mut self, copied: u64, held: u64) -> u64 {
        let before = std::mem::replace(&mut self.space, copied);
        let cushion = if self.version == LinuxVersion::Current { 0 } else { 16 * self.mss };
        let twice = 2 * copied + cushion;
        let faster = copied - before;
        let more = match self.version {
            LinuxVersion::V4_4 if faster >= before / 2 => twice,
            LinuxVersion::V4_4 if faster >= before / 4 => twice / 2,
            LinuxVersion::V4_4 => 0,
            LinuxVersion::V5_4 | LinuxVersion::Current => {
                let more = u128::from(twice) * 2 * u128::from(faster) / u128::from(before);
                u64::try_from(more).unwrap_or(u64::MAX)
            }
        };
        twice.saturating_add(more).saturating_add(held).min(self.cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn place(next: u64, read: u64) -> ReceivePlace {
        ReceivePlace { next, read, window: 20_000 }
    }

    /// A first window of ten segments, and a round trip of 10 ms by a timestamp.
    fn growth(version: LinuxVersion) -> BufferGrowth {
        let mut growth = BufferGrowth::new(version, 1 << 20, MSS, 10_000, at(0));
        growth.on_segment(at(10), &place(1_000, 1_000), Some((7, Span::from_ms(10))), false);
        assert_eq!(growth.rtt(), Span::from_ms(10));
        growth
    }

    #[test]
    fn a_round_trip_in_which_more_is_read_makes_the_buffer_grow() {
        let mut growth = growth(LinuxVersion::Current);
        assert_eq!(growth.on_read(at(9), &place(4_000, 4_000), |over| over), None, "the round trip is not over");
        assert_eq!(growth.on_read(at(10), &place(10_000, 10_000), |over| over), None, "no more than the first window");
        assert_eq!(growth.on_read(at(20), &place(30_000, 30_000), |over| over), Some(40_000 + 2 * 40_000));
        assert_eq!(growth.on_read(at(30), &place(45_000, 45_000), |over| over), None);
        assert_eq!(
            growth.on_read(at(40), &place(90_000, 80_000), |over| over),
            Some(50_000 + 2 * 50_000 * 5 / 20),
            "less what is unread"
        );
        assert_eq!(growth.on_out_of_order(70_000), Some(50_000 + 70_000));
    }

    #[test]
    fn older_kernels_have_a_cushion_and_steps() {
        let read = |version| {
            let mut growth = growth(version);
            growth.on_read(at(10), &place(10_000, 10_000), |over| over);
            growth.on_read(at(20), &place(23_000, 23_000), |over| over)
        };
        assert_eq!(read(LinuxVersion::V4_4), Some((26_000 + 16_000) * 3 / 2), "by a quarter, and not by half");
        assert_eq!(read(LinuxVersion::V5_4), Some(42_000 + 2 * 42_000 * 3 / 10));
        assert_eq!(growth(LinuxVersion::V5_4).on_out_of_order(70_000), None);
    }

    #[test]
    fn without_timestamps_a_window_that_arrives_measures_and_only_shorter_times_count() {
        let mut growth = BufferGrowth::new(LinuxVersion::Current, 1 << 20, MSS, 10_000, at(0));
        growth.on_segment(at(0), &place(1_000, 1_000), None, false);
        growth.on_segment(at(5), &place(20_000, 20_000), None, false);
        assert_eq!(growth.rtt(), Span::ZERO);
        growth.on_segment(at(8), &place(21_000, 21_000), None, false);
        assert_eq!(growth.rtt(), Span::from_ms(8));
        growth.on_segment(at(30), &place(41_000, 41_000), None, false);
        assert_eq!(growth.rtt(), Span::from_ms(8));
    }

    #[test]
    fn the_cap_is_the_most() {
        let mut growth = BufferGrowth::new(LinuxVersion::Current, 50_000, MSS, 10_000, at(0));
        growth.on_segment(at(10), &place(0, 0), Some((7, Span::from_ms(10))), false);
        growth.on_read(at(10), &place(0, 0), |over| over);
        assert_eq!(growth.on_read(at(20), &place(40_000, 40_000), |over| over), Some(50_000));
    }
}
