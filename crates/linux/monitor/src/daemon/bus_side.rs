//! The two threads that wait for the bus: one publishes, one receives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use units::Moment;

use super::{MonitorShared, ToActor, ToPublisher, lock};
use crate::config::MonitorConfig;
use crate::metrics::ErrorOrigin;
use bus::message::{Condition, Message, PortState};
use bus::{Bus, Outbox};

/// Interval at which a bus is asked again that could not say what a former incarnation left.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// Interval at which others hear that this host is alive.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Time to listen before the thread checks whether it is time to end.
const LISTEN: Duration = Duration::from_millis(250);
/// Limit of the time for the last messages.
const FAREWELL: Duration = Duration::from_millis(500);
/// Time for which foreign data on the bus is reported after it was last seen.
const FOREIGN: Duration = Duration::from_secs(300);

pub(super) struct Publisher {
    outbox: Outbox,
    host: String,
}

impl Publisher {
    pub(crate) fn new(bus: Box<dyn Bus>, config: &MonitorConfig) -> Self {
        let mut outbox = Outbox::new(bus);
        outbox.alive(config.host.clone(), HEARTBEAT);
        Self { outbox, host: config.host.clone() }
    }

    pub(crate) fn run(
        mut self,
        from_poll: &Receiver<ToPublisher>,
        to_poll: &Sender<Vec<PortState>>,
        shared: &MonitorShared<'_>,
    ) {
        if self.recall(from_poll, to_poll, shared) {
            self.tell(from_poll, shared);
        }
        self.say_farewell(shared);
    }

    /// Learns what a former incarnation published and waits until that is taken over. Messages wait meanwhile, but for
    /// ports with an alarm: what is known of them starts with that. False if it is time to end.
    fn recall(
        &mut self,
        from_poll: &Receiver<ToPublisher>,
        to_poll: &Sender<Vec<PortState>>,
        shared: &MonitorShared<'_>,
    ) -> bool {
        let mut held: Vec<Message> = Vec::new();
        let mut alarms = None;
        loop {
            if alarms.is_none() {
                match self.outbox.recall(&self.host) {
                    Ok(states) => {
                        let corrupting = states.iter().filter(|state| state.condition == Condition::Corrupting);
                        alarms = Some(corrupting.map(|state| state.id.clone()).collect::<BTreeSet<_>>());
                        shared.troubles(ErrorOrigin::Publishing, None);
                        let _ = to_poll.send(states);
                    }
                    Err(error) => shared.troubles(ErrorOrigin::Publishing, [format!("bus: {error}")]),
                }
            }
            match from_poll.recv_timeout(ASK_AGAIN) {
                Ok(ToPublisher::Message(message)) => held.push(message),
                Ok(ToPublisher::Resume) => break,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    held.into_iter().for_each(|message| self.outbox.put(message));
                    return false;
                }
            }
            lock(&shared.board).outbox.waiting = held.len();
        }
        let alarms = alarms.unwrap_or_default();
        held.retain(|message| !alarms.contains(message.id()));
        held.into_iter().for_each(|message| self.outbox.put(message));
        true
    }

    fn tell(&mut self, from_poll: &Receiver<ToPublisher>, shared: &MonitorShared<'_>) {
        loop {
            let now = shared.clock.now();
            let next = self.outbox.step(now);
            self.report(shared);
            match from_poll.recv_timeout(next.since(now)) {
                Ok(item) => self.put(item),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while let Ok(more) = from_poll.try_recv() {
                self.put(more);
            }
        }
    }

    fn put(&mut self, item: ToPublisher) {
        match item {
            ToPublisher::Message(message) => self.outbox.put(message),
            ToPublisher::Resume => {}
        }
    }

    fn report(&self, shared: &MonitorShared<'_>) {
        let status = self.outbox.status();
        let wrong = status.degraded.as_deref().map(|why| format!("bus: {}", without_counts(why)));
        lock(&shared.board).outbox = status;
        shared.troubles(ErrorOrigin::Publishing, wrong);
    }

    /// Prints what the bus has not taken, so that it is not lost silently.
    fn say_farewell(&mut self, shared: &MonitorShared<'_>) {
        let until = shared.clock.now().after(FAREWELL);
        while self.outbox.unsent().next().is_some() && shared.clock.now() < until {
            let now = shared.clock.now();
            let next = self.outbox.step(now).min(until);
            std::thread::sleep(next.since(now));
        }
        for message in self.outbox.unsent() {
            let text = serde_json::to_string(message).unwrap_or_default();
            (shared.tell)(&format!("not told to the bus: {text}"));
        }
    }
}

/// Removes the numbers of attempts and of waiting messages, which would be news each time; metrics have them.
fn without_counts(why: &str) -> &str {
    match why.rsplit_once(" (") {
        Some((what, counts)) if counts.ends_with("waiting)") => what,
        _ => why,
    }
}

/// Passes on what others publish, and reports what is on the bus that is not ours.
pub(super) fn receive(mut bus: Box<dyn Bus>, heard: &Sender<ToActor>, shared: &MonitorShared<'_>) {
    let mut foreign: BTreeMap<String, Moment> = BTreeMap::new();
    while !shared.has_ended() {
        match bus.receive(LISTEN) {
            Ok(messages) => {
                shared.troubles(ErrorOrigin::Receiving, None);
                messages.into_iter().for_each(|message| drop(heard.send(ToActor::Message(message))));
            }
            Err(error) => {
                shared.troubles(ErrorOrigin::Receiving, [format!("bus: {error}")]);
                // It may have said so at once.
                std::thread::sleep(LISTEN);
            }
        }
        let now = shared.clock.now();
        foreign.extend(bus.foreign().into_iter().map(|line| (line, now)));
        foreign.retain(|_, met| now.since(*met) < FOREIGN);
        shared.troubles(ErrorOrigin::Foreign, foreign.keys().map(|line| format!("bus: {line}")));
        for gap in bus.gaps() {
            (shared.tell)(&format!("bus: {gap}"));
        }
    }
}
