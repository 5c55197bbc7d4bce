//! The actor's thread: it hears of every change, and does what is to be done about it.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::MonitorShared;
use crate::act::{ActiveProtection, Executor, PortActor};
use crate::journal::{ActionKind, ActionOutcome, JournalEntry};
use crate::metrics::ErrorOrigin;
use bus::message::Message;

/// Longest time between two checks that the actor makes of its own actions.
const LOOK_AFTER: Duration = Duration::from_secs(1);

#[expect(clippy::large_enum_variant, reason = "nearly all are messages")]
pub(super) enum ToActor {
    Message(Message),
    End,
}

/// Hears of everything, and does what is to be done about it.
pub(super) fn act(
    mut actor: PortActor<Box<dyn Executor>>,
    from_all: &Receiver<ToActor>,
    leave_nothing: bool,
    shared: &MonitorShared<'_>,
) {
    loop {
        let ended = match from_all.recv_timeout(LOOK_AFTER) {
            Ok(ToActor::Message(message)) => hear(&mut actor, &message, from_all, shared),
            Ok(ToActor::End) | Err(RecvTimeoutError::Disconnected) => true,
            Err(RecvTimeoutError::Timeout) => false,
        };
        if ended {
            break;
        }
        let entries = actor.tick(shared.clock.time_of_day());
        shared.enter(&entries);
        shared.troubles(ErrorOrigin::Memory, actor.trouble().map(str::to_owned));
    }
    let at = shared.clock.time_of_day();
    if leave_nothing {
        shared.enter(&actor.end_all(at));
    } else {
        let stays = |(port, protection): (&String, &ActiveProtection)| {
            let why = format!("the monitor ends; {} stays protected", protection.link);
            JournalEntry::new(at, ActionKind::Health, ActionOutcome::Seen, why).on(actor.id(port))
        };
        let acts = actor.acts();
        shared.enter(&actor.protected().iter().filter(|_| acts).map(stays).collect::<Vec<_>>());
    }
}

/// Takes note of all that waits, so that what is over is not acted upon. True if it is time to end.
fn hear(
    actor: &mut PortActor<Box<dyn Executor>>,
    first: &Message,
    from_all: &Receiver<ToActor>,
    shared: &MonitorShared<'_>,
) -> bool {
    actor.hear(shared.clock.time_of_day(), first);
    while let Ok(next) = from_all.try_recv() {
        match next {
            ToActor::Message(message) => actor.hear(shared.clock.time_of_day(), &message),
            ToActor::End => return true,
        }
    }
    false
}
