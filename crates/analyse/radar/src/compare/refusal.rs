//! Why two captures give no list of losses.

use std::fmt;

use super::side::AttemptStop;
use super::{CaptureContents, CaptureRole, CompareOptions, Comparison};
use capture::CaptureError;

/// Reason why there is no result.
#[derive(Debug)]
pub enum CompareError {
    Capture(CaptureRole, CaptureError),
    /// A capture has no packets to compare.
    NoPackets(CaptureRole, CaptureContents),
    /// No packet is in both captures.
    NothingInCommon(Box<Comparison>),
    /// UP lacks packets that DOWN has, and not the other way round.
    Swapped {
        only_down: u64,
    },
    /// A capture has super-frames that cannot be cut into the packets of the wire, or that do not fit the other capture's.
    SuperFrames(Box<Comparison>),
    Interrupted,
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture(which, error) => write!(f, "{which:?}: {error}"),
            Self::NoPackets(which, _) => write!(f, "{which:?}: no IP packets"),
            Self::NothingInCommon(_) => f.write_str("the captures have no packet in common"),
            Self::Swapped { only_down } => write!(f, "DOWN has {only_down} packets that UP lacks, and lacks none"),
            Self::SuperFrames(_) => f.write_str("super-frames cannot be cut into the packets of the wire"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for CompareError {}

/// Results that are no list of losses.
pub(super) fn judged(comparison: Comparison, options: &CompareOptions) -> Result<Comparison, CompareError> {
    let Comparison { up, down, only_down, .. } = comparison;
    if up.packets == 0 {
        return Err(CompareError::NoPackets(CaptureRole::Up, up));
    }
    if options.whole {
        return Ok(comparison);
    }
    if down.packets == 0 {
        return Err(CompareError::NoPackets(CaptureRole::Down, down));
    }
    let losses = comparison.losses();
    if up.uncut + down.uncut > 0 || comparison.has_wrong_cuts() {
        return Err(CompareError::SuperFrames(Box::new(comparison)));
    }
    if !comparison.share_packets {
        return Err(CompareError::NothingInCommon(Box::new(comparison)));
    }
    // Behind NAT the way back has other addresses, and would not be known.
    let fields = options.fields;
    if losses == 0
        && only_down > 0
        && comparison.up_lacks
        && !comparison.both_ways
        && fields.source
        && fields.destination
    {
        return Err(CompareError::Swapped { only_down });
    }
    Ok(comparison)
}

/// Error of a pass that compares nothing.
pub(super) fn refusal(stop: AttemptStop) -> CompareError {
    match stop {
        AttemptStop::Capture(which, error) => CompareError::Capture(which, error),
        _ => CompareError::Interrupted,
    }
}
