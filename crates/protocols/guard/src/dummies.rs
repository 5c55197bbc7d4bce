//! Dummies: how a receiver learns that the last frame was lost, without a timeout.
//!
//! LinkGuardian (SIGCOMM'23) §3.2, and §5 "Handling bursty losses". When a class has nothing to send, a
//! dummy says which frame was its latest, and a gap at the tail shows at once. The paper sends dummies
//! without end. What detects a lost tail is the first dummy after it that arrives, so it is enough to
//! send a few copies right away and then one now and then, until everything is acknowledged; the link
//! falls quiet, and is as fast.
//!
//! A paused sender goes on too: each dummy is answered by an acknowledgement that carries the pause as
//! a level, so a lost resume cannot silence both ends.

use units::{Span, Time};

/// Pace of dummies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DummyPace {
    /// Sent back to back when a class has run dry.
    pub copies: u8,
    /// Time for which it has to be dry for that: where it will often not be for long, or an answer acknowledges all anyway.
    pub after: Span,
    /// Time between two later dummies.
    pub every: Span,
    /// Sends dummies without end, whether anything is unacknowledged or not, as in the paper.
    pub endless: bool,
}

/// Schedule of the dummies of a class.
#[derive(Debug)]
pub struct Dummies {
    pace: DummyPace,
    /// Copies still to be sent at once.
    left: u8,
    /// Time from which they may be sent, once the class was found dry.
    first: Option<Time>,
    next: Time,
}

impl Dummies {
    /// Makes dummies with nothing to announce yet.
    pub fn new(pace: DummyPace) -> Self {
        // A pace without immediate dummies begins with the first interval.
        let next = if pace.copies == 0 { Time::ZERO + pace.every } else { Time::ZERO };
        Self { pace, left: 0, first: None, next }
    }

    /// A frame was sent: what a dummy announces has changed.
    #[inline]
    pub fn restart(&mut self) {
        self.left = self.pace.copies;
        self.first = None;
    }

    pub(crate) fn is_endless(&self) -> bool {
        self.pace.endless
    }

    /// Time from which the next dummy goes ahead of another class's frames; zero for at once.
    pub(crate) fn worth_announcing(&self) -> Time {
        if self.left > 0 { Time::ZERO } else { self.next }
    }

    /// Time of the next dummy, from a moment on at which there is nothing else to send.
    pub fn due(&mut self, now: Time) -> Time {
        if self.pace.endless || self.left > 0 && self.pace.after == Span::ZERO {
            return Time::ZERO;
        }
        if self.left > 0 { *self.first.get_or_insert(now + self.pace.after) } else { self.next }
    }

    /// A dummy was sent.
    pub fn sent(&mut self, now: Time) {
        self.left = self.left.saturating_sub(1);
        self.next = now + self.pace.every;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_go_at_once_and_the_rest_at_intervals() {
        let mut dummies =
            Dummies::new(DummyPace { copies: 2, after: Span::ZERO, every: Span::from_us(1), endless: false });
        dummies.restart();
        let now = Time::from_ps(5);
        let due: Vec<Time> = (0..4)
            .map(|_| {
                let due = dummies.due(now);
                dummies.sent(now);
                due
            })
            .collect();
        assert_eq!(due, [Time::ZERO, Time::ZERO, now + Span::from_us(1), now + Span::from_us(1)]);
    }

    #[test]
    fn a_class_that_is_dry_for_a_moment_only_sends_none() {
        let pace = DummyPace { copies: 1, after: Span::from_us(50), every: Span::from_us(300), endless: false };
        let mut dummies = Dummies::new(pace);
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        dummies.restart();
        assert_eq!((dummies.due(at(10)), dummies.due(at(40))), (at(60), at(60)));
        dummies.restart();
        assert_eq!(dummies.due(at(55)), at(105));
        dummies.sent(at(105));
        assert_eq!(dummies.due(at(106)), at(405));
    }
}
