//! Send times of a flow's packets, sampled: li-thesis §6.3.3, Algorithm 12.
//!
//! A [`SendTimeSample`] says when one packet left and how far apart those behind it are. [`SendTimeSampler`] writes one whenever no
//! distance would place every packet since the last sample within the threshold, and one at the end. The printed algorithm
//! intersects *rates*, whose upper end is infinite while a packet is less than the threshold behind the sample; the same set as
//! distances is always finite. Times are stored in whole nanoseconds, distances in picoseconds; the bounds are computed with
//! what is stored, so that no rounding comes on top of the threshold.
//!
//! [`by_gaps`] is what the thesis compares with: the first and the last packet of each burst, and a straight line between them.
//!
//! Invariant: no [`send_times`] of a sampler's samples is more than its threshold off, and none is before the one before it.

mod encoding;

pub use encoding::{SampleError, decode, encode};

use units::{Span, Time};

const PS_PER_NS: u64 = 1_000;

/// Departure time of a packet, and distance between those behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendTimeSample {
    /// The packet's number within its flow, from 0 on.
    pub index: u64,
    /// Departure time, in whole nanoseconds.
    pub at: Time,
    /// Gap from each packet to the next, until the next sample.
    pub gap: Span,
}

/// Samples the send times of one flow.
#[derive(Clone, Debug)]
pub struct SendTimeSampler {
    threshold: u64,
    /// Times are stored as multiples of this.
    grain: u64,
    packets: u64,
    open: Option<OpenSample>,
}

/// The last sample while the distance behind it is open: any of these would do, in picoseconds.
#[derive(Clone, Copy, Debug)]
struct OpenSample {
    index: u64,
    at: u64,
    least: u64,
    most: u64,
}

impl OpenSample {
    fn new(index: u64, at: Time, grain: u64) -> Self {
        Self { index, at: at.as_ps() / grain * grain, least: 0, most: u64::MAX }
    }

    /// Distances that remain possible if the packet `index` left at this time; `None` if none does.
    fn narrowed(self, index: u64, at: Time, threshold: u64) -> Option<Self> {
        let (packets, time) = (index - self.index, at.as_ps() - self.at);
        let least = self.least.max(time.saturating_sub(threshold).div_ceil(packets));
        let most = self.most.min((time + threshold) / packets);
        (least <= most).then_some(Self { least, most, ..self })
    }

    /// A distance from the middle half of those that would do, with as few digits as possible.
    fn close(self) -> SendTimeSample {
        let gap = if self.most == u64::MAX { 0 } else { roundest(self.least, self.most) };
        SendTimeSample { index: self.index, at: Time::from_ps(self.at), gap: Span::from_ps(gap) }
    }
}

/// The multiple of the largest power of two in the middle half of a range.
fn roundest(least: u64, most: u64) -> u64 {
    let margin = (most - least) / 4;
    let (least, most) = (least + margin, most - margin);
    let multiple = |shift: u32| (most >> shift) << shift;
    (0..u64::BITS).rev().map(multiple).find(|gap| *gap >= least).unwrap_or(most)
}

impl SendTimeSampler {
    /// A sampler whose times are at most `threshold` off.
    ///
    /// # Panics
    /// If the threshold is below the nanosecond in which times are stored.
    pub fn new(threshold: Span) -> Self {
        assert!(threshold >= Span::from_ns(1), "times are stored in nanoseconds");
        Self { threshold: threshold.as_ps(), grain: PS_PER_NS, packets: 0, open: None }
    }

    /// Stores times of samples as multiples of `grain`, which makes them shorter.
    ///
    /// # Panics
    /// If it is longer than the threshold, or no whole nanoseconds.
    #[must_use]
    pub(crate) fn in_steps_of(self, grain: Span) -> Self {
        let grain = grain.as_ps();
        assert!(grain > 0 && grain <= self.threshold && grain.is_multiple_of(PS_PER_NS), "{grain} ps");
        Self { grain, ..self }
    }

    /// The next packet of the flow leaves, no earlier than the one before. The sample that is complete now, if there is one.
    pub fn on_packet(&mut self, at: Time) -> Option<SendTimeSample> {
        let index = self.packets;
        self.packets += 1;
        let narrowed = self.open.and_then(|open| open.narrowed(index, at, self.threshold));
        let before = self.open.filter(|_| narrowed.is_none());
        self.open = Some(narrowed.unwrap_or_else(|| OpenSample::new(index, at, self.grain)));
        before.map(OpenSample::close)
    }

    /// The flow is over: its last sample.
    pub fn finish(self) -> Option<SendTimeSample> {
        self.open.map(OpenSample::close)
    }
}

/// The samples of a flow that is complete.
pub fn sample(times: &[Time], threshold: Span) -> Vec<SendTimeSample> {
    let mut sampler = SendTimeSampler::new(threshold);
    let mut samples: Vec<SendTimeSample> = times.iter().filter_map(|at| sampler.on_packet(*at)).collect();
    samples.extend(sampler.finish());
    samples
}

/// Departure times of the first `packets` packets, going by the samples.
pub fn send_times(samples: &[SendTimeSample], packets: usize) -> Vec<Time> {
    let ends = samples.iter().skip(1).map(|next| next.index).chain([packets as u64]);
    let mut times: Vec<Time> = Vec::with_capacity(packets);
    for (sample, end) in samples.iter().zip(ends) {
        for behind in 0..end.saturating_sub(sample.index) {
            let at = sample.at + sample.gap * behind;
            times.push(times.last().map_or(at, |before| at.max(*before)));
        }
    }
    times
}

/// Samples bursts: packets that follow each other within `gap` are on a line from the first of them to the last. Nothing bounds
/// the error.
pub fn by_gaps(times: &[Time], gap: Span) -> Vec<SendTimeSample> {
    let mut samples = Vec::new();
    let mut index = 0;
    for burst in times.chunk_by(|one, next| next.since(*one) <= gap) {
        let spread = burst[burst.len() - 1].since(burst[0]) / (burst.len() as u64 - 1).max(1);
        samples.push(SendTimeSample { index, at: burst[0], gap: spread });
        index += burst.len() as u64;
    }
    samples
}

#[cfg(test)]
mod tests;
