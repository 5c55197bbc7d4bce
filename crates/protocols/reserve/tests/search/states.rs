//! Equality of states, and invariants of every one.

use reserve::{PortReservation, SchedulerKind};
use units::{Span, Time};

use super::{ContextState, SLOT, SearchContext, SearchPort, name};

/// Keys of states: two ports with the same key have the same future.
impl SearchPort {
    pub(crate) fn key(&self) -> Box<[u8]> {
        self.key_with(self.queue.len())
    }

    /// The same for all lengths of the queue. `paper` does not know that length, so what leads once from one to a longer one
    /// does so again and again.
    pub(crate) fn key_beside_queue(&self) -> Box<[u8]> {
        self.key_with(0)
    }

    fn key_with(&self, queued: usize) -> Box<[u8]> {
        let mut hosts: Vec<(Vec<u8>, u16)> = (0..self.setup.hosts).map(|host| (self.key_of_host(host), host)).collect();
        match self.setup.kind {
            // Whose turn it is depends on who had the last one.
            SchedulerKind::Late => hosts.rotate_left(usize::from(self.answered)),
            _ => hosts.sort_unstable(),
        }
        let place = |host: u16| hosts.iter().position(|(_, other)| *other == host).unwrap_or_default() as u8;
        let mut key: Vec<u8> = hosts.iter().flat_map(|(bytes, _)| bytes).copied().collect();
        let PortReservation { recv, counted, .. } = self.switch.reserved(self.now, self.receiver());
        let wake = self.slots_until(self.switch.wake_at());
        let limits = self.limits;
        key.extend([slots(recv), counted.1 as i8 as u8, wake, queued as u8]);
        key.extend([limits.losses, limits.repeats, limits.deaths, limits.asks_again, limits.flaps]);
        if self.setup.kind == SchedulerKind::Departure {
            key.extend(self.queue.iter().map(|(from, _)| place(*from)));
        }
        let repeated = self.repeated.iter().flat_map(|repeated| {
            let current = self.contexts[usize::from(repeated.context)].burst;
            let (host, context) = (self.host(repeated.context), repeated.context % self.setup.contexts);
            [place(host), context as u8, repeated.frame.unwrap_or(u8::MAX), age(current, repeated.burst)]
        });
        key.extend(repeated);
        key.into()
    }

    fn key_of_host(&self, host: u16) -> Vec<u8> {
        let PortReservation { send, counted, .. } = self.switch.reserved(self.now, host);
        let mut key = vec![slots(send), counted.0 as i8 as u8];
        for number in 0..self.setup.contexts {
            let at = host * self.setup.contexts + number;
            let open = self.switch.context(host, number).expect("a context");
            let context = &self.contexts[usize::from(at)];
            // Time until the rest of the burst can be there: after that its lateness does not matter any more.
            let (state, more) = match context.state {
                ContextState::Idle => (0, 0),
                ContextState::Asking(None) => (1, 0),
                ContextState::Asking(Some(start)) => {
                    (2, self.slots_until(start + SLOT * (u64::from(self.setup.k) - 1 + self.setup.transit)))
                }
                ContextState::Sending(left, due) => (2 + left, self.slots_until(due + SLOT * u64::from(left - 1))),
                ContextState::Dead => (u8::MAX, 0),
            };
            let start = open.start.filter(|_| open.frames > 0).map_or(u8::MAX, |start| self.slots_until(start));
            key.extend([state, more, age(context.burst, open.burst), open.frames, open.came as u8, start]);
            key.push(self.slots_until(context.free));
        }
        key
    }

    fn slots_until(&self, time: Time) -> u8 {
        slots(time.since(self.now))
    }
}

/// By how many bursts one is older; older than three is all the same.
fn age(newer: u32, older: u32) -> u8 {
    newer.wrapping_sub(older).min(4) as u8
}

fn slots(span: Span) -> u8 {
    span.as_ps().div_ceil(SLOT.as_ps()).min(254) as u8
}

/// Invariants of every state.
impl SearchPort {
    fn reserved(&self) -> Vec<PortReservation> {
        (0..=self.receiver()).map(|port| self.switch.reserved(self.now, port)).collect()
    }

    pub(crate) fn is_unreserved(&self) -> bool {
        self.reserved().iter().all(|reserved| *reserved == PortReservation::default())
    }

    /// Units counted at the receiver's port.
    pub(crate) fn counted(&self) -> i64 {
        self.switch.reserved(self.now, self.receiver()).counted.1
    }

    /// True if nobody has anything open, and nothing is queued or under way.
    pub(crate) fn is_quiet(&self) -> bool {
        let idle = |context: &SearchContext| matches!(context.state, ContextState::Idle | ContextState::Dead);
        self.queue.is_empty() && self.repeated.is_empty() && self.contexts.iter().all(idle)
    }

    fn is_unreserved_within(&mut self, slots: usize) -> bool {
        self.is_unreserved()
            || (0..slots).any(|_| {
                self.tick();
                self.is_unreserved()
            })
    }

    /// From the next slot on nobody does anything: is nothing reserved some time later?
    pub(crate) fn falls_quiet(&self) -> bool {
        let mut port = self.clone();
        port.is_unreserved_within(3 * self.setup.bound())
    }

    /// From the next slot on everybody is punctual and nothing is lost: does everybody alive send two whole bursts, and is nothing
    /// reserved after that?
    pub(crate) fn goes_on(&self) -> Result<(), String> {
        let mut port = self.clone();
        port.contexts.iter_mut().for_each(|context| context.complete = 0);
        let waits = |context: &SearchContext| context.state != ContextState::Dead && context.complete < 2;
        for _ in 0..8 * self.setup.bound() {
            port.tick();
            (0..port.contexts.len()).for_each(|context| port.be_punctual(context));
            if !port.contexts.iter().any(waits) {
                break;
            }
        }
        if let Some(at) = port.contexts.iter().position(waits) {
            return Err(format!("{} stays silent: {:?}", name(at as u16), port.contexts[at]));
        }
        let forgotten = |context: &SearchContext| context.state == ContextState::Dead && self.setup.patience.is_none();
        let stays = self.setup.kind == SchedulerKind::Departure && port.contexts.iter().any(forgotten);
        if stays || port.is_unreserved_within(3 * self.setup.bound()) {
            return Ok(());
        }
        Err(format!("reserved for ever: {:?}", port.reserved()))
    }

    fn be_punctual(&mut self, at: usize) {
        let number = at as u16;
        loop {
            let context = self.contexts[at];
            match context.state {
                ContextState::Idle if context.complete < 2 => self.ask(number),
                _ if self.due(&context).is_some_and(|due| due <= self.now) => self.send(number, true),
                ContextState::Asking(None) => {
                    self.rsv_comes(number, context.burst);
                    return;
                }
                _ => return,
            }
            self.wake();
        }
    }
}
