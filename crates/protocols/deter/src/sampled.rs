//! Departure times of packets at level `decisions`: the samples of Algorithm 12, as a log keeps them.
//!
//! | number | meaning |
//! | --- | --- |
//! | packets | from the sample before to this one |
//! | time | steps of [`GRAIN`] from where the sample before would have placed this packet |
//! | gap | picoseconds without their zeros at the end (in binary), and how many zeros |
//!
//! Sampled times are at most [`THRESHOLD`] off. Packets of one end leave in their order: one that did not would be taken to
//! leave with the one before.

use units::{Span, Time};

use crate::bytes::{LATEST, LogReader, put, put_signed};
use crate::coder::{BitModel, NumberModel, RangeDecoder, RangeEncoder};
use crate::log::LogFault;
use crate::sampling::{SendTimeSample, SendTimeSampler};

/// The thesis's.
pub(crate) const THRESHOLD: Span = Span::from_us(5);
const GRAIN: Span = Span::from_ns(1_024);

/// Samples the packets of one end while they are recorded.
#[derive(Debug)]
pub(crate) struct DepartureSampler {
    sampler: SendTimeSampler,
    /// Departure time of the last packet, and the last sample that was written.
    latest: Time,
    written: Option<SendTimeSample>,
}

impl DepartureSampler {
    pub(crate) fn new() -> Self {
        let sampler = SendTimeSampler::new(THRESHOLD).in_steps_of(GRAIN);
        Self { sampler, latest: Time::ZERO, written: None }
    }

    #[inline]
    pub(crate) fn on_packet(&mut self, at: Time, out: &mut Vec<u8>) {
        self.latest = self.latest.max(at);
        if let Some(sample) = self.sampler.on_packet(self.latest) {
            self.write(sample, out);
        }
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let sampler = std::mem::replace(&mut self.sampler, SendTimeSampler::new(THRESHOLD));
        if let Some(sample) = sampler.finish() {
            self.write(sample, out);
        }
    }

    /// Writes plain numbers, until the block is full.
    fn write(&mut self, sample: SendTimeSample, out: &mut Vec<u8>) {
        put(out, sample.index - self.written.map_or(0, |before| before.index));
        put_signed(out, steps(sample.at) as i64 - expected(self.written, sample.index) as i64);
        put(out, sample.gap.as_ps());
        self.written = Some(sample);
    }
}

fn steps(at: Time) -> u64 {
    at.as_ps() / GRAIN.as_ps()
}

/// The step at which a sample places a later packet.
fn expected(before: Option<SendTimeSample>, index: u64) -> u64 {
    let Some(before) = before else { return 0 };
    let behind = before.gap.as_ps().wrapping_mul(index.wrapping_sub(before.index));
    steps(Time::from_ps(before.at.as_ps().wrapping_add(behind)))
}

/// Models of the three numbers.
#[derive(Debug, Default)]
struct SampleModel {
    packets: NumberModel,
    late: BitModel,
    time: [NumberModel; 2],
    zeros: NumberModel,
    digits: NumberModel,
}

/// The plain numbers of a block's samples as a stream.
pub(crate) fn encode(plain: &[u8]) -> Vec<u8> {
    let (mut reader, mut encoder, mut model) = (LogReader::new(plain), RangeEncoder::new(), SampleModel::default());
    let mut count = 0;
    while let (Ok(packets), Ok(time), Ok(gap)) = (reader.number(), reader.signed(), reader.number()) {
        count += 1;
        let zeros = if gap == 0 { 0 } else { gap.trailing_zeros() };
        encoder.number(&mut model.packets, packets);
        encoder.bit(&mut model.late, time < 0);
        encoder.number(&mut model.time[usize::from(time < 0)], time.unsigned_abs());
        encoder.number(&mut model.zeros, u64::from(zeros));
        encoder.number(&mut model.digits, gap >> zeros);
    }
    let mut out = Vec::new();
    if count > 0 {
        put(&mut out, count);
        out.extend(encoder.finish());
    }
    out
}

/// The samples of a block, behind those of the blocks before.
pub(crate) fn decode(bytes: &[u8], samples: &mut Vec<SendTimeSample>) -> Result<(), LogFault> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut reader = LogReader::new(bytes);
    let count = reader.number()?;
    let (mut decoder, mut model) = (RangeDecoder::new(reader.take(reader.len())?), SampleModel::default());
    for _ in 0..count {
        let (packets, late) = (decoder.number(&mut model.packets), decoder.bit(&mut model.late));
        let time = decoder.number(&mut model.time[usize::from(late)]);
        let (zeros, digits) = (decoder.number(&mut model.zeros), decoder.number(&mut model.digits));
        let before = samples.last().copied();
        let index = before.map_or(0, |before| before.index).checked_add(packets);
        let index = index.filter(|index| before.is_none_or(|before| *index > before.index));
        let index = index.ok_or(LogFault::Value("sample"))?;
        let expected = expected(before, index);
        let step = if late { expected.checked_sub(time) } else { expected.checked_add(time) };
        let at = step.and_then(|step| step.checked_mul(GRAIN.as_ps())).filter(|at| *at <= LATEST);
        let at = at.ok_or(LogFault::Value("sample"))?;
        let gap = u32::try_from(zeros).ok().filter(|zeros| *zeros < 64 && digits <= u64::MAX >> zeros);
        let gap = digits << gap.ok_or(LogFault::Value("sample"))?;
        samples.push(SendTimeSample { index, at: Time::from_ps(at), gap: Span::from_ps(gap) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sampling::send_times;

    proptest! {
        #[test]
        fn times_come_back_within_the_threshold(
            gaps in proptest::collection::vec(prop_oneof![0u64..2_000_000, 1_200_000u64..1_300_000, 0u64..1 << 42], 1..300),
            began in 0u64..1 << 50,
        ) {
            let mut at = began;
            let times: Vec<Time> = gaps.iter().map(|gap| { at += gap; Time::from_ps(at) }).collect();
            let (mut sampler, mut plain) = (DepartureSampler::new(), Vec::new());
            times.iter().for_each(|at| sampler.on_packet(*at, &mut plain));
            sampler.finish(&mut plain);
            let mut samples = Vec::new();
            decode(&encode(&plain), &mut samples).unwrap();
            for (sampled, time) in send_times(&samples, times.len()).into_iter().zip(times) {
                let off = sampled.since(time).max(time.since(sampled));
                prop_assert!(off <= THRESHOLD, "{off}");
            }
        }
    }
}
