//! Messages with which a host says that it is there, or that it leaves.
//!
//! A switch takes marks off frames for hosts that could not read them. A host that has joined may have nothing to send for
//! hours, one that has left or was killed sends as anybody does. So hosts that have joined say so twice a second, and those
//! who leave say that too: by giving back a reservation of a context that no host has.

use units::Span;
use wire::reserve::{BurstId, Demand, Reservation, ReserveMessage, ReserveVerb};

/// Context that no host has.
const NO_CONTEXT: u16 = u16::MAX;
/// Interval at which a host announces itself.
pub(crate) const SAID_EVERY: Span = Span::from_ms(500);
/// Time without a word after which a host counts as gone.
pub(crate) const GONE_AFTER: Span = Span::from_ms(2_000);

/// Message of a host about its own presence.
pub(crate) fn presence(host_epoch: u16, is_there: bool) -> ReserveMessage {
    let id = BurstId { host_epoch, context: NO_CONTEXT, burst: 0 };
    let demand = Demand { frames: u8::from(is_there), bytes: 0 };
    ReserveMessage { verb: ReserveVerb::Release, about: Reservation { id, demand, ..Reservation::default() } }
}

/// True if the host is there; `None` if the message is about something else.
pub(crate) fn is_there(message: &ReserveMessage) -> Option<bool> {
    let about_itself = message.verb == ReserveVerb::Release && message.about.id.context == NO_CONTEXT;
    about_itself.then_some(message.about.demand.frames > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_leaves_is_told_from_one_that_gives_a_reservation_back() {
        assert_eq!([true, false].map(|there| is_there(&presence(7, there))), [Some(true), Some(false)]);
        let given_back = ReserveMessage { verb: ReserveVerb::Release, about: Reservation::default() };
        assert_eq!(is_there(&given_back), None);
    }
}
