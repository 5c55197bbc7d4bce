//! What a link tells its owner, and of what kind of trouble it has told already.

use guard::{Event, State};

use crate::frame::{Mac, Rejected};
use crate::seal::Broken;
use crate::shell::Shell;

/// What the owner is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    Endpoint(Event),
    /// Frames that drive the link come from here, and this is not the peer.
    Stranger(Mac),
    /// Frames come without the seal that the key demands.
    Forged,
    /// Frames come that came before.
    Replayed,
    /// The peer uses a key, and this end does not.
    KeyMissing,
    /// Greetings come without the check sum that both ends need.
    Unchecked,
}

/// Trouble that was told of since the link last changed its state.
#[derive(Debug, Default)]
pub struct Warned {
    stranger: Option<Mac>,
    forged: bool,
    unchecked: bool,
    replayed: bool,
    key_missing: bool,
}

impl Warned {
    /// Counts a frame that was not acted upon, and tells of each kind of trouble once.
    pub fn note(&mut self, reason: Rejected, state: State, shell: &mut Shell, news: &mut Vec<News>) {
        let tally = &mut shell.tally;
        match reason {
            Rejected::Malformed => tally.rx_malformed += 1,
            Rejected::Looped => tally.rx_looped += 1,
            Rejected::Unsealed => tally.rx_unsealed += 1,
            Rejected::Greeting => tally.rx_greetings += 1,
            Rejected::Broken(Broken::Early) => tally.rx_early += 1,
            Rejected::KeyMissing => {
                tally.rx_malformed += 1;
                if !self.key_missing {
                    self.key_missing = true;
                    news.push(News::KeyMissing);
                }
            }
            Rejected::Stranger(from) => {
                tally.rx_stranger += 1;
                if self.stranger != Some(from) {
                    self.stranger = Some(from);
                    news.push(News::Stranger(from));
                }
            }
            Rejected::Broken(Broken::Corrupted) => {
                tally.rx_corrupted += 1;
                // A protected link is there to see some; before that, it is the greetings that do not fit.
                if state != State::Active && !self.unchecked {
                    self.unchecked = true;
                    news.push(News::Unchecked);
                }
            }
            Rejected::Broken(Broken::Replayed) => {
                tally.rx_replayed += 1;
                if state != State::Active && !self.replayed {
                    self.replayed = true;
                    news.push(News::Replayed);
                }
            }
            Rejected::Broken(Broken::Forged) => {
                tally.rx_forged += 1;
                if !self.forged {
                    self.forged = true;
                    news.push(News::Forged);
                }
            }
        }
    }
}
