//! What a link reports to its owner.

use guard::{Event, State};

use crate::context::LinkContext;
use crate::frame::{Mac, Rejected};
use crate::seal::Broken;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    Endpoint(Event),
    /// Frames were dropped, so many since this was last reported, and the owner should know why.
    Trouble(Trouble, u64),
}

/// Why frames were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
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

impl Trouble {
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

/// Trouble since it was last reported: however many frames cause it, one piece of news for each kind.
#[derive(Debug, Default)]
pub(crate) struct Troubles([Option<(Trouble, u64)>; Trouble::KINDS]);

impl Troubles {
    /// Counts a frame that was not acted upon.
    pub(crate) fn note(&mut self, reason: Rejected, state: State, context: &mut LinkContext) {
        let tally = &mut context.tally;
        let (counter, trouble) = match reason {
            Rejected::Malformed => (&mut tally.rx_malformed, None),
            Rejected::Looped => (&mut tally.rx_looped, None),
            Rejected::Unsealed => (&mut tally.rx_unsealed, None),
            Rejected::Greeting => (&mut tally.rx_greetings, None),
            Rejected::KeyMissing => (&mut tally.rx_malformed, Some(Trouble::KeyMissing)),
            Rejected::Stranger(from) => (&mut tally.rx_stranger, Some(Trouble::Stranger(from))),
            Rejected::Broken(Broken::Early) => (&mut tally.rx_early, None),
            // A protected link is there to see some; before that, it is the greetings that do not fit.
            Rejected::Broken(Broken::Corrupted) if state == State::Active => (&mut tally.rx_corrupted, None),
            Rejected::Broken(Broken::Corrupted) => (&mut tally.rx_corrupted, Some(Trouble::Unchecked)),
            Rejected::Broken(Broken::Replayed) if state == State::Active => (&mut tally.rx_replayed, None),
            Rejected::Broken(Broken::Replayed) => (&mut tally.rx_replayed, Some(Trouble::Replayed)),
            Rejected::Broken(Broken::Forged) => (&mut tally.rx_forged, Some(Trouble::Forged)),
        };
        *counter += 1;
        if let Some(trouble) = trouble {
            let (latest, frames) = self.0[trouble.place()].get_or_insert((trouble, 0));
            (*latest, *frames) = (trouble, *frames + 1);
        }
    }

    pub(crate) fn take(&mut self) -> impl Iterator<Item = News> {
        std::mem::take(&mut self.0).into_iter().flatten().map(|(trouble, frames)| News::Trouble(trouble, frames))
    }
}
