//! Samples as bytes: for each, three numbers of seven bits a byte.
//!
//! | number | meaning |
//! | --- | --- |
//! | packets | from the sample before to this one; of the first, its own number |
//! | time | nanoseconds from where the sample before would have placed this packet, sign in the lowest bit; of the first, its time |
//! | gap | picoseconds without their zeros at the end (in binary), and in the lowest six bits how many zeros |

use std::fmt;

use units::{Span, Time};

use super::{PS_PER_NS, SendTimeSample};

/// Bits for the number of zeros at the end of a gap.
const SHIFT_BITS: u32 = 6;

/// Error in the bytes of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleError {
    /// The byte at which the sample begins that cannot be read.
    pub at: usize,
}

impl fmt::Display for SampleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no sample of a send time at byte {}: expected three numbers of a later packet", self.at)
    }
}

impl std::error::Error for SampleError {}

/// The samples of a flow as bytes.
pub fn encode(samples: &[SendTimeSample]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut before: Option<&SendTimeSample> = None;
    for sample in samples {
        let expected = expected(before, sample.index);
        let (packets, expected) = expected.expect("samples are in the order of their packets");
        let time = (sample.at.as_ps() / PS_PER_NS).wrapping_sub(expected) as i64;
        put(&mut bytes, u128::from(packets));
        put(&mut bytes, u128::from((time << 1 ^ time >> 63) as u64));
        let (gap, zeros) = (sample.gap.as_ps(), sample.gap.as_ps().trailing_zeros() % u64::BITS);
        put(&mut bytes, u128::from(gap >> zeros) << SHIFT_BITS | u128::from(zeros));
        before = Some(sample);
    }
    bytes
}

/// The samples of a flow from their bytes.
pub fn decode(bytes: &[u8]) -> Result<Vec<SendTimeSample>, SampleError> {
    let mut samples: Vec<SendTimeSample> = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let error = SampleError { at: bytes.len() - rest.len() };
        samples.push(next_sample(&mut rest, samples.last()).ok_or(error)?);
    }
    Ok(samples)
}

fn next_sample(rest: &mut &[u8], before: Option<&SendTimeSample>) -> Option<SendTimeSample> {
    let [packets, time, gap] = [take(rest)?, take(rest)?, take(rest)?];
    let (packets, time) = (u64::try_from(packets).ok()?, u64::try_from(time).ok()?);
    let index = before.map_or(Some(packets), |before| before.index.checked_add(packets))?;
    let (_, expected) = expected(before, index)?;
    let time = (time >> 1) as i64 ^ -((time & 1) as i64);
    let at = expected.wrapping_add(time as u64).checked_mul(PS_PER_NS)?;
    let (zeros, digits) = ((gap & ((1 << SHIFT_BITS) - 1)) as u32, u64::try_from(gap >> SHIFT_BITS).ok()?);
    let gap = (digits <= u64::MAX >> zeros).then_some(digits << zeros)?;
    Some(SendTimeSample { index, at: Time::from_ps(at), gap: Span::from_ps(gap) })
}

/// Number of packets after the sample before, and the nanosecond at which that places the packet; `None` if it is not
/// behind it.
fn expected(before: Option<&SendTimeSample>, index: u64) -> Option<(u64, u64)> {
    let Some(before) = before else { return Some((index, 0)) };
    let packets = index.checked_sub(before.index).filter(|packets| *packets > 0)?;
    Some((packets, before.at.as_ps().wrapping_add(before.gap.as_ps().wrapping_mul(packets)) / PS_PER_NS))
}

fn put(bytes: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(rest: &mut &[u8]) -> Option<u128> {
    let mut number = 0;
    for shift in 0..10 {
        let (byte, left) = rest.split_first()?;
        *rest = left;
        number |= u128::from(byte & 0x7f) << (7 * shift);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
