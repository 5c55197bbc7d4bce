//! A moving window over what a port received: limited by a number of frames and by a time, whichever ends first.
//!
//! Polls are merged into buckets of a sixteenth of the window, so that memory does not depend on how often a port is
//! polled; whole buckets leave, oldest first. The newest poll is always in, also if it alone is more than the window
//! holds. (The authors' daemon drops the newest and keeps the oldest permanently.)
//!
//! Invariants: the sums are those of the buckets; at most [`LossWindow::MOST`] buckets, since of two neighbours each pair
//! holds more than a sixteenth of the frames or of the time, else they would be one.

use std::collections::VecDeque;
use std::time::Duration;

use units::Moment;

use bus::message::Evidence;

/// Frames received in some time, and the bad among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    pub frames: u64,
    pub bad: u64,
    pub lapse: Duration,
}

impl FrameCounts {
    /// Zero where nothing was received.
    pub fn loss(self) -> f64 {
        if self.frames == 0 { 0.0 } else { self.bad as f64 / self.frames as f64 }
    }

    /// Lower bound of the loss, to be 97.5 % sure.
    pub fn low(self) -> f64 {
        if self.frames == 0 { 0.0 } else { (units::poisson(self.bad).0 / self.frames as f64).min(1.0) }
    }

    /// Upper bound of the loss, to be 97.5 % sure.
    pub fn high(self) -> f64 {
        if self.frames == 0 { 1.0 } else { (units::poisson(self.bad).1 / self.frames as f64).min(1.0) }
    }
}

impl From<FrameCounts> for Evidence {
    fn from(tally: FrameCounts) -> Self {
        Self {
            frames: tally.frames,
            bad: tally.bad,
            loss: tally.loss(),
            low: tally.low(),
            high: tally.high(),
            seconds: tally.lapse.as_secs_f64(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct WindowBucket {
    frames: u64,
    bad: u64,
    began: Moment,
    ended: Moment,
}

#[derive(Clone, Debug)]
pub struct LossWindow {
    most_frames: u64,
    most_time: Duration,
    buckets: VecDeque<WindowBucket>,
    frames: u64,
    bad: u64,
}

/// A bucket holds at most this share of the window, unless a single poll is more.
const SHARE: u32 = 16;

impl LossWindow {
    /// Buckets that a window has at most: two for each share of the frames and of the time, and the newest.
    pub const MOST: usize = 4 * SHARE as usize + 1;

    pub fn new(frames: u64, time: Duration) -> Self {
        // Sums of a window with all its buckets stay within 64 bits.
        Self { most_frames: frames.min(1 << 60), most_time: time, buckets: VecDeque::new(), frames: 0, bad: 0 }
    }

    /// A poll: what was received from `began` to `ended`. Polls come in the order of time; one has at most 2^56 frames.
    pub fn push(&mut self, began: Moment, ended: Moment, frames: u64, bad: u64) {
        self.frames += frames;
        self.bad += bad;
        match self.buckets.back_mut() {
            Some(last) if last.takes(self.most_frames, self.most_time, ended, frames) => {
                last.frames += frames;
                last.bad += bad;
                last.ended = ended;
            }
            _ => self.buckets.push_back(WindowBucket { frames, bad, began, ended }),
        }
        while self.buckets.len() > 1 && self.is_over_full(ended) {
            self.drop_oldest();
        }
    }

    fn is_over_full(&self, now: Moment) -> bool {
        let began = self.buckets.front().map_or(now, |oldest| oldest.began);
        self.frames > self.most_frames || now.since(began) > self.most_time
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.buckets.pop_front() {
            self.frames -= oldest.frames;
            self.bad -= oldest.bad;
        }
    }

    pub fn clear(&mut self) {
        self.buckets.clear();
        (self.frames, self.bad) = (0, 0);
    }

    pub fn tally(&self) -> FrameCounts {
        let lapse = match (self.buckets.front(), self.buckets.back()) {
            (Some(oldest), Some(newest)) => newest.ended.since(oldest.began),
            _ => Duration::ZERO,
        };
        FrameCounts { frames: self.frames, bad: self.bad, lapse }
    }

    /// Number of buckets, which decides its memory.
    pub fn buckets(&self) -> usize {
        self.buckets.len()
    }
}

impl WindowBucket {
    fn takes(&self, most_frames: u64, most_time: Duration, ended: Moment, frames: u64) -> bool {
        self.frames + frames <= most_frames / u64::from(SHARE) && ended.since(self.began) <= most_time / SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(n: u64) -> Moment {
        Moment::from_ms(n * 1_000)
    }

    #[test]
    fn the_oldest_poll_leaves_and_the_newest_stays() {
        let mut window = LossWindow::new(100, Duration::from_secs(1_000));
        window.push(second(0), second(1), 60, 7);
        window.push(second(1), second(2), 60, 1);
        assert_eq!(window.tally(), FrameCounts { frames: 60, bad: 1, lapse: Duration::from_secs(1) });
    }

    #[test]
    fn a_poll_larger_than_the_window_is_the_window() {
        let mut window = LossWindow::new(100, Duration::from_secs(1_000));
        window.push(second(0), second(1), 50, 50);
        window.push(second(1), second(11), 5_000, 3);
        assert_eq!(window.tally(), FrameCounts { frames: 5_000, bad: 3, lapse: Duration::from_secs(10) });
    }

    #[test]
    fn on_a_quiet_port_time_ends_the_window() {
        let mut window = LossWindow::new(1_000_000, Duration::from_secs(160));
        for n in 0..1_000 {
            window.push(second(n), second(n + 1), 1, 0);
        }
        let tally = window.tally();
        assert!((150..=160).contains(&tally.frames), "{tally:?}");
        assert!(tally.lapse <= Duration::from_secs(160));
    }

    #[test]
    fn a_thousand_polls_a_second_need_no_more_memory_than_one() {
        let mut window = LossWindow::new(100_000_000, Duration::from_secs(3_600));
        for ms in 0..500_000 {
            window.push(Moment::from_ms(ms), Moment::from_ms(ms + 1), 8_000 * (ms % 3), 0);
            assert!(window.buckets() <= LossWindow::MOST);
        }
    }
}
