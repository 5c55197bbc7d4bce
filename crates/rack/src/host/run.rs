//! The loop of a host that has joined: turn, give way while there is traffic, sleep when there is none.

use std::io;

use linux::clock::Clock;
use linux::mailbox::MailboxReader;
use linux::poll::YieldCost;
use units::{Span, Time};

use super::HostRequest;
use super::datapath::JoinedHost;
use super::status::{HostStatus, JoinIdentity};

/// How long the loop stays awake after the last frame.
const AWAKE: Span = Span::from_us(200);
/// How long it sleeps at most.
const LOOK_EVERY: Span = Span::from_ms(1_000);
/// Turns between two looks at requests while there is much to do.
const TURNS: u32 = 16;
/// How long a host that leaves still receives: frames with marks may be on their way to it.
const FAREWELL: Span = Span::from_ms(100);

/// The loop.
pub struct HostLoop<'a> {
    host: JoinedHost,
    identity: JoinIdentity,
    clock: Clock,
    tell: &'a mut dyn FnMut(&str),
    /// What was last reported of the switch.
    guaranteed: bool,
    down: bool,
}

impl std::fmt::Debug for HostLoop<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostLoop").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl<'a> HostLoop<'a> {
    /// `tell` hears what happens, a line each.
    pub fn new(host: JoinedHost, identity: JoinIdentity, tell: &'a mut dyn FnMut(&str)) -> Self {
        Self { host, identity, clock: Clock::start(), tell, guaranteed: true, down: false }
    }

    /// Until asked to stop; the last status.
    pub fn run(mut self, requests: &mut MailboxReader<HostRequest>) -> io::Result<HostStatus> {
        let mut yields = YieldCost::default();
        let (mut last_busy, mut stop_at, mut turns) = (Time::ZERO, Time::NEVER, 0);
        loop {
            let now = self.clock.now();
            let turned = self.host.turn(now);
            let busy = self.survive(turned)?;
            turns += 1;
            if !busy || turns >= TURNS {
                turns = 0;
                // A host that leaves asks nobody, and needs not say so.
                if stop_at == Time::NEVER {
                    self.report();
                }
                if self.answer(now, requests) && stop_at == Time::NEVER {
                    stop_at = now + FAREWELL;
                    self.host.leave(now);
                }
                if stop_at <= now {
                    return Ok(HostStatus::of(&mut self.host, &self.identity, now));
                }
            }
            if busy {
                last_busy = now;
            }
            if yields.is_cheap(now) && now.since(last_busy) < AWAKE {
                yields.give_way(&self.clock);
            } else if !busy {
                let waited = self.host.wait(now, LOOK_EVERY.min(stop_at.since(now)), requests.fd());
                requests.awake();
                self.survive(waited.map(|()| false))?;
            }
        }
    }

    /// A cable that is down may come up again; anything else ends the loop.
    fn survive(&mut self, done: io::Result<bool>) -> io::Result<bool> {
        match done {
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {
                if !std::mem::replace(&mut self.down, true) {
                    (self.tell)(&format!("{} is down: waiting for it to come up", self.identity.interface));
                }
                Ok(false)
            }
            Ok(true) if std::mem::replace(&mut self.down, false) => {
                (self.tell)(&format!("{} is up again", self.identity.interface));
                Ok(true)
            }
            done => done,
        }
    }

    fn report(&mut self) {
        let guaranteed = self.host.machine.is_guaranteed();
        if std::mem::replace(&mut self.guaranteed, guaranteed) == guaranteed {
            return;
        }
        let name = &self.identity.name;
        (self.tell)(&if guaranteed {
            format!("{name}: the switch answers; frames wait for their turn")
        } else {
            format!("{name}: the switch does not answer; frames pass without a reservation, and nothing is guaranteed")
        });
    }

    /// Answers what is asked. True if the loop is to end.
    fn answer(&mut self, now: Time, requests: &MailboxReader<HostRequest>) -> bool {
        let mut stop = false;
        while let Some(request) = requests.next() {
            match request {
                // The process that asked may have gone away since.
                HostRequest::Status(answer) => {
                    drop(answer.send(HostStatus::of(&mut self.host, &self.identity, now)));
                }
                HostRequest::ResetPeaks => {}
                HostRequest::Stop => stop = true,
            }
        }
        stop
    }
}
