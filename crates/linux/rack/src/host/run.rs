//! The loop of a host that has joined: it takes a turn, yields while there is traffic, and sleeps when there is none.

use std::io;

use daemon::keeper::KeeperWatch;
use linux::clock::Clock;
use linux::mailbox::MailboxReader;
use linux::poll::YieldCost;
use units::{Span, Time};

use super::HostRequest;
use super::datapath::JoinedHost;
use super::status::{HostStatus, JoinIdentity};

/// Time for which the loop stays awake after the last frame.
const AWAKE: Span = Span::from_us(200);
/// Longest sleep of the loop.
const LOOK_EVERY: Span = Span::from_ms(1_000);
/// Longest sleep of the loop while the host leaves.
const LOOK_WHILE_LEAVING: Span = Span::from_ms(5);
/// Iterations between two polls for requests while the loop is busy.
const TURNS: u32 = 16;
/// Time for which a host that leaves waits for grants for its queued frames. Sending all of them at once would overflow a
/// port.
const DRAIN_AT_MOST: Span = Span::from_ms(500);
/// Time for which a host that leaves still receives: frames with marks may be on their way to it.
const FAREWELL: Span = Span::from_ms(100);

/// Progress of a host that leaves.
#[derive(Clone, Copy, Debug)]
enum HostLeaving {
    No,
    /// Queued frames leave as they are granted, until then.
    Draining(Time),
    /// Frames with marks may still be on their way to it, until then.
    Farewell(Time),
}

impl HostLeaving {
    /// Longest time until the loop must look again.
    fn look_after(self, now: Time) -> Span {
        match self {
            Self::No => LOOK_EVERY,
            Self::Draining(until) | Self::Farewell(until) => LOOK_WHILE_LEAVING.min(until.since(now)),
        }
    }
}

/// The loop.
pub struct HostLoop<'a> {
    host: JoinedHost,
    identity: JoinIdentity,
    clock: Clock,
    tell: &'a mut dyn FnMut(&str),
    /// Last report about the switch.
    guaranteed: bool,
    down: bool,
    keeper: Option<&'a KeeperWatch<'a>>,
}

impl std::fmt::Debug for HostLoop<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostLoop").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl<'a> HostLoop<'a> {
    /// `tell` hears what happens, a line each.
    pub fn new(host: JoinedHost, identity: JoinIdentity, tell: &'a mut dyn FnMut(&str)) -> Self {
        Self { host, identity, clock: Clock::start(), tell, guaranteed: true, down: false, keeper: None }
    }

    /// Reports how it is with the keeper.
    pub(super) fn with_keeper(self, keeper: &'a KeeperWatch<'a>) -> Self {
        Self { keeper: Some(keeper), ..self }
    }

    /// Runs until asked to stop; returns the last status.
    pub fn run(mut self, requests: &mut MailboxReader<HostRequest>) -> io::Result<HostStatus> {
        let mut yields = YieldCost::default();
        let (mut last_busy, mut leaving, mut turns) = (Time::ZERO, HostLeaving::No, 0);
        loop {
            let now = self.clock.now();
            let turned = self.host.turn(now);
            let busy = self.survive(turned)?;
            turns += 1;
            if !busy || turns >= TURNS {
                turns = 0;
                let stop = self.answer(now, requests);
                leaving = self.leave(now, leaving, stop);
                match leaving {
                    // A host that leaves asks nobody, and needs not say so.
                    HostLeaving::No => self.report(),
                    HostLeaving::Farewell(until) if until <= now => {
                        return Ok(self.status(now));
                    }
                    HostLeaving::Draining(_) | HostLeaving::Farewell(_) => {}
                }
            }
            if busy {
                last_busy = now;
            }
            if yields.is_cheap(now) && now.since(last_busy) < AWAKE {
                yields.give_way(&self.clock);
            } else if !busy {
                let waited = self.host.wait(now, leaving.look_after(now), requests.fd());
                requests.awake();
                self.survive(waited.map(|()| false))?;
            }
        }
    }

    /// Advances the host's leaving; `stop` says that it was asked to leave.
    fn leave(&mut self, now: Time, leaving: HostLeaving, stop: bool) -> HostLeaving {
        match leaving {
            HostLeaving::No if stop => {
                self.host.close();
                HostLeaving::Draining(now + DRAIN_AT_MOST)
            }
            HostLeaving::Draining(until) if until <= now || self.host.is_drained() => {
                self.host.leave(now);
                HostLeaving::Farewell(now + FAREWELL)
            }
            leaving => leaving,
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

    fn status(&mut self, now: Time) -> HostStatus {
        let status = HostStatus::of(&mut self.host, &self.identity, now);
        HostStatus { keeper: self.keeper.map(KeeperWatch::status).unwrap_or_default(), ..status }
    }

    fn report(&mut self) {
        for line in self.keeper.map(KeeperWatch::take_reports).unwrap_or_default() {
            (self.tell)(&format!("{}: {line}", self.identity.name));
        }
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
                HostRequest::Status(answer) => drop(answer.send(self.status(now))),
                HostRequest::ResetPeaks => {}
                HostRequest::Stop => stop = true,
            }
        }
        stop
    }
}
