//! The times of calls: each since the call before it, to the picosecond.
//!
//! Frames of one length take the same time on a wire, so that many of these spans are the same as one a short while ago:
//! each is coded as its place among the latest of calls of its kind, or, if it is new, as a number.

use crate::coder::{BitModel, NumberModel, RangeDecoder, RangeEncoder};

/// Number of the latest spans that are remembered for each kind of call.
const SLOTS: usize = 6;
/// Kinds of calls.
const KINDS: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct TimesModel {
    kinds: [KindTimes; KINDS],
    /// 1 if the last span was zero.
    at_once: usize,
}

#[derive(Debug, Default)]
struct KindTimes {
    /// The latest first.
    recent: [u64; SLOTS],
    /// Models for each place of the list: the bit says if the match is farther back.
    farther: [[BitModel; SLOTS]; 2],
    number: NumberModel,
}

impl KindTimes {
    /// Makes the span at this place, or a new one if the place is behind all, the latest.
    fn renew(&mut self, place: usize, span: u64) {
        self.recent.copy_within(..place.min(SLOTS - 1), 1);
        self.recent[0] = span;
    }
}

impl TimesModel {
    pub(crate) fn encode(&mut self, encoder: &mut RangeEncoder, kind: u8, span: u64) {
        let times = &mut self.kinds[usize::from(kind) % KINDS];
        let place = times.recent.iter().position(|recent| *recent == span).unwrap_or(SLOTS);
        for (at, model) in times.farther[self.at_once].iter_mut().enumerate().take(place + 1) {
            encoder.bit(model, at < place);
        }
        if place == SLOTS {
            encoder.number(&mut times.number, span);
        }
        times.renew(place, span);
        self.at_once = usize::from(span == 0);
    }

    pub(crate) fn decode(&mut self, decoder: &mut RangeDecoder<'_>, kind: u8) -> u64 {
        let times = &mut self.kinds[usize::from(kind) % KINDS];
        let place = times.farther[self.at_once].iter_mut().position(|model| !decoder.bit(model)).unwrap_or(SLOTS);
        let span = match times.recent.get(place) {
            Some(span) => *span,
            None => decoder.number(&mut times.number),
        };
        times.renew(place, span);
        self.at_once = usize::from(span == 0);
        span
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn spans_come_back(spans in proptest::collection::vec((0u8..8, prop_oneof![0u64..20, 0u64..1 << 60]), 0..400)) {
            let (mut encoder, mut model) = (RangeEncoder::new(), TimesModel::default());
            spans.iter().for_each(|(kind, span)| model.encode(&mut encoder, *kind, *span));
            let bytes = encoder.finish();
            let (mut decoder, mut model) = (RangeDecoder::new(&bytes), TimesModel::default());
            for (kind, span) in &spans {
                prop_assert_eq!(model.decode(&mut decoder, *kind), *span);
            }
        }
    }
}
