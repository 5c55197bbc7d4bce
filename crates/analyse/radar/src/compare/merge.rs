//! Both captures read at once, each as far as the other in time.

use super::clock::{ClockOffset, Sketch, offset};
use super::difference::{CaptureDifference, MissingPackets, PendingDifference, quick};
use super::edges::{EdgePackets, SLACK};
use super::side::{AttemptStop, CaptureSide};
use super::{CaptureContents, CaptureRole, ComparisonContext, OutsideCounts};
use crate::signature::{Fields, Signature};

/// Result of reading both captures once.
pub(crate) struct MergeResult {
    pub up: CaptureContents,
    pub down: CaptureContents,
    pub clock: ClockOffset,
    pub missing: MissingPackets,
    /// Packets that were not compared: long before the other capture's first frame, or long after its last.
    pub up_skipped: OutsideCounts,
    pub down_skipped: OutsideCounts,
}

impl MergeResult {
    /// True if about as many packets of one capture were not compared as are missing there: a clock may have been set,
    /// or a time may be nonsense, and they may be the same packets.
    pub(crate) fn is_doubtful(&self) -> bool {
        let missing = |sign: i64| {
            let count = |pending: &PendingDifference| (i64::from(pending.count) * sign).max(0) as u64;
            self.missing.table.values().map(count).sum::<u64>() * self.missing.scale()
        };
        let in_doubt = |skipped: OutsideCounts, missing: u64| skipped.packets() > 0 && 2 * missing >= skipped.packets();
        in_doubt(self.down_skipped, missing(1)) || in_doubt(self.up_skipped, missing(-1))
    }

    /// Packets that only UP has, of those that were compared. Exactly, unless some were left out and `only_down` of
    /// those that were not are only in DOWN.
    pub(crate) fn losses(&self, only_down: u64) -> u64 {
        let scale = self.missing.scale();
        if scale == 1 {
            return self.missing.table.values().map(|pending| pending.count.max(0) as u64).sum();
        }
        let [up, down] = [(self.up, self.up_skipped), (self.down, self.down_skipped)]
            .map(|(contents, skipped)| contents.packets - skipped.packets());
        (up + only_down * scale).saturating_sub(down)
    }
}

/// Packets from the beginning of a capture, to find out how the clocks differ.
const HEAD: usize = 1 << 13;

/// A packet that waits for the other capture to come as far.
struct AheadPacket {
    at: i64,
    signature: Signature,
}

struct MergeInput<'a> {
    side: CaptureSide<'a>,
    fields: Fields,
    is_up: bool,
    ahead: Option<AheadPacket>,
}

impl<'a> MergeInput<'a> {
    fn new(side: CaptureSide<'a>, fields: Fields, is_up: bool) -> Result<Self, AttemptStop> {
        let mut lane = Self { side, fields, is_up, ahead: None };
        lane.advance()?;
        Ok(lane)
    }

    #[inline]
    fn advance(&mut self) -> Result<(), AttemptStop> {
        let seen = self.side.next()?;
        self.ahead = seen.map(|seen| AheadPacket { at: seen.at, signature: Signature::new(&seen.packet, self.fields) });
        Ok(())
    }

    /// Compares the packet ahead.
    #[inline]
    fn put(&mut self, clock: &mut ClockOffset, difference: &mut CaptureDifference) -> Result<(), AttemptStop> {
        if let Some(AheadPacket { at, signature }) = &self.ahead {
            clock.see(quick(signature), *at, self.is_up);
            difference.put(signature, self.is_up)?;
        }
        self.advance()
    }

    /// Packets before this time, if they are a long run; fewer are compared.
    fn pass_leading(&mut self, limit: i64, difference: &mut CaptureDifference) -> Result<u64, AttemptStop> {
        let mut held = EdgePackets::default();
        while let Some(AheadPacket { at, signature }) = &self.ahead
            && *at < limit
        {
            held.push(*at, signature);
            self.advance()?;
        }
        held.settle(|signature| difference.put(signature, self.is_up))
    }

    /// The rest of it, when the other capture has ended: packets after this time are not compared if they are many, or
    /// if nobody can know what became of them.
    fn pass_trailing(
        &mut self,
        limit: i64,
        unknown: bool,
        difference: &mut CaptureDifference,
    ) -> Result<u64, AttemptStop> {
        let mut held = if unknown { EdgePackets::long() } else { EdgePackets::default() };
        while let Some(AheadPacket { at, signature }) = &self.ahead {
            if *at <= limit && held.is_empty() {
                difference.put(signature, self.is_up)?;
            } else {
                held.push(*at, signature);
            }
            self.advance()?;
        }
        held.settle(|signature| difference.put(signature, self.is_up))
    }
}

impl<'a> ComparisonContext<'a> {
    /// Compares the captures. Without `skips` it compares packets far outside of the other capture, too.
    pub(super) fn merge(&self, depth: usize, with_digest: bool, skips: bool) -> Result<MergeResult, AttemptStop> {
        let (begins, [up_first, down_first]) = self.beginnings(depth)?;
        let mut clock = ClockOffset::new(begins);
        let options = &self.options;
        let memory = (!options.exact).then_some(options.memory);
        let mut difference = CaptureDifference::new(options.fields, with_digest, memory);
        let lane = |which| MergeInput::new(self.side(which, depth)?, options.fields, which == CaptureRole::Up);
        let (mut up, mut down) = (lane(CaptureRole::Up)?, lane(CaptureRole::Down)?);
        let (mut up_skipped, mut down_skipped) = (OutsideCounts::default(), OutsideCounts::default());
        let skips = begins.is_some() && skips;
        if skips {
            let limit = down_first.saturating_sub(clock.offset).saturating_sub(SLACK);
            up_skipped.before = up.pass_leading(limit, &mut difference)?;
            let limit = up_first.saturating_add(clock.offset).saturating_sub(SLACK);
            down_skipped.before = down.pass_leading(limit, &mut difference)?;
        }
        loop {
            let up_is_behind = match (&up.ahead, &down.ahead) {
                (Some(one), Some(other)) => {
                    let at = one.at.saturating_add(clock.offset);
                    at < other.at || at == other.at && up.side.packets() <= down.side.packets()
                }
                (Some(_), None) if skips => {
                    let contents = down.side.contents();
                    let slack = if contents.truncated { 0 } else { SLACK };
                    let limit = contents.last().saturating_sub(clock.offset).saturating_add(slack);
                    up_skipped.after = up.pass_trailing(limit, contents.truncated, &mut difference)?;
                    continue;
                }
                (None, Some(_)) if skips => {
                    let contents = up.side.contents();
                    let limit = contents.last().saturating_add(clock.offset).saturating_add(SLACK);
                    down_skipped.after = down.pass_trailing(limit, contents.truncated, &mut difference)?;
                    continue;
                }
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => break,
            };
            let behind = if up_is_behind { &mut up } else { &mut down };
            behind.put(&mut clock, &mut difference)?;
        }
        let missing = difference.finish()?;
        let [up, down] = [up, down].map(|lane| lane.side.contents());
        Ok(MergeResult { up, down, clock, missing, up_skipped, down_skipped })
    }

    /// Offset of the clocks at the beginning, if it can be known.
    pub(crate) fn begins(&self, depth: usize) -> Result<Option<i64>, AttemptStop> {
        self.beginnings(depth).map(|(begins, _)| begins)
    }

    /// Offset of the clocks at the beginning, and the times of the first frames.
    fn beginnings(&self, depth: usize) -> Result<(Option<i64>, [i64; 2]), AttemptStop> {
        let heads = [self.head(CaptureRole::Up, depth)?, self.head(CaptureRole::Down, depth)?];
        let begins = match heads.each_ref().map(|head| head.packets.as_slice()) {
            [up, down] => offset(up, down),
        };
        // Two short captures have been seen in full.
        let begins = match begins {
            None if heads.iter().any(|head| head.goes_on) => self.sketched(depth)?,
            begins => begins,
        };
        Ok((begins, heads.map(|head| head.first)))
    }

    fn head(&self, which: CaptureRole, depth: usize) -> Result<MergeHead, AttemptStop> {
        let mut side = self.side(which, depth)?;
        let mut packets = Vec::new();
        while packets.len() < HEAD
            && let Some(seen) = side.next()?
        {
            packets.push((quick(&Signature::new(&seen.packet, self.options.fields)), seen.at));
        }
        Ok(MergeHead { goes_on: packets.len() == HEAD, packets, first: side.contents().first() })
    }

    /// Offset of the clocks, from packets of whole captures.
    fn sketched(&self, depth: usize) -> Result<Option<i64>, AttemptStop> {
        let sketch = |which| {
            let mut side = self.side(which, depth)?;
            let mut sketch = Sketch::default();
            while let Some(seen) = side.next()? {
                sketch.see(quick(&Signature::new(&seen.packet, self.options.fields)), seen.at);
            }
            Ok(sketch)
        };
        let (up, down) = (sketch(CaptureRole::Up)?, sketch(CaptureRole::Down)?);
        Ok(offset(up.packets(), down.packets()))
    }
}

struct MergeHead {
    packets: Vec<(u64, i64)>,
    first: i64,
    /// True if the capture has more packets.
    goes_on: bool,
}
