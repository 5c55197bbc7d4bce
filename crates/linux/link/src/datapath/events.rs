//! Events that a link reports to its owner.

use guard::{EndpointEvent, SessionState};

use crate::context::LinkContext;
use crate::frame::{FrameRejection, Mac};
use seal::SealError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    Endpoint(EndpointEvent),
    /// Frames were dropped: the reason, and the number since the last report of it.
    Fault(FrameFault, u64),
}

/// Reason why frames were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFault {
    /// Frames that drive the link come from here, and this is not the peer.
    Stranger(Mac),
    /// Frames come without the seal that the key demands.
    Forged,
    /// Frames come that came before.
    Replayed,
    /// Greetings come without the check sum that both ends need.
    Unchecked,
    /// The peer uses a key, and this end does not.
    KeyMissing,
}

impl FrameFault {
    const KINDS: usize = 5;

    fn place(self) -> usize {
        match self {
            Self::Stranger(_) => 0,
            Self::Forged => 1,
            Self::Replayed => 2,
            Self::Unchecked => 3,
            Self::KeyMissing => 4,
        }
    }
}

/// Faults since they were last reported: one event for each kind, however many frames cause it.
#[derive(Debug, Default)]
pub(crate) struct FrameFaults([Option<(FrameFault, u64)>; FrameFault::KINDS]);

impl FrameFaults {
    /// Counts a frame that was not acted upon.
    pub(crate) fn note(&mut self, reason: FrameRejection, state: SessionState, context: &mut LinkContext) {
        let tally = &mut context.statistics.tally;
        let (counter, fault) = match reason {
            FrameRejection::Malformed => (&mut tally.rx_malformed, None),
            FrameRejection::Looped => (&mut tally.rx_looped, None),
            FrameRejection::Unsealed => (&mut tally.rx_unsealed, None),
            FrameRejection::Greeting => (&mut tally.rx_greetings, None),
            // It was not for this session.
            FrameRejection::Probe(..) => (&mut tally.rx_stamp_dropped, None),
            FrameRejection::KeyMissing => (&mut tally.rx_malformed, Some(FrameFault::KeyMissing)),
            FrameRejection::Stranger(from) => (&mut tally.rx_stranger, Some(FrameFault::Stranger(from))),
            FrameRejection::Broken(SealError::Early) => (&mut tally.rx_early, None),
            // A protected link is there to see some; before that, it is the greetings that do not fit.
            FrameRejection::Broken(SealError::Corrupted) if state == SessionState::Active => {
                (&mut tally.rx_corrupted, None)
            }
            FrameRejection::Broken(SealError::Corrupted) => (&mut tally.rx_corrupted, Some(FrameFault::Unchecked)),
            FrameRejection::Broken(SealError::Replayed) if state == SessionState::Active => {
                (&mut tally.rx_replayed, None)
            }
            FrameRejection::Broken(SealError::Replayed) => (&mut tally.rx_replayed, Some(FrameFault::Replayed)),
            FrameRejection::Broken(SealError::Forged) => (&mut tally.rx_forged, Some(FrameFault::Forged)),
        };
        *counter += 1;
        if let Some(fault) = fault {
            let (latest, frames) = self.0[fault.place()].get_or_insert((fault, 0));
            (*latest, *frames) = (fault, *frames + 1);
        }
    }

    pub(crate) fn take(&mut self) -> impl Iterator<Item = LinkEvent> {
        std::mem::take(&mut self.0).into_iter().flatten().map(|(fault, frames)| LinkEvent::Fault(fault, frames))
    }
}
