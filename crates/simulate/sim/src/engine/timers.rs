//! Deadlines that move often, on an event queue that cannot remove events.

use units::Time;

/// The timers of one machine, by slot. A later deadline costs nothing: the event that fires too early is scheduled again. An
/// earlier deadline gets a new event, and the old event has no effect.
#[derive(Clone, Debug)]
pub struct Timers<K, const N: usize> {
    deadlines: [Time; N],
    scheduled: [Time; N],
    keys: [Option<K>; N],
}

impl<K: Copy + Into<usize>, const N: usize> Timers<K, N> {
    pub fn new() -> Self {
        Self { deadlines: [Time::NEVER; N], scheduled: [Time::NEVER; N], keys: [None; N] }
    }

    /// Sets a deadline; the slot, if an event must be scheduled for it.
    #[inline]
    pub fn arm(&mut self, key: K, at: Time) -> Option<u8> {
        let slot: usize = key.into();
        self.keys[slot] = Some(key);
        self.deadlines[slot] = at;
        (at < self.scheduled[slot]).then(|| {
            self.scheduled[slot] = at;
            slot as u8
        })
    }

    #[inline]
    pub fn disarm(&mut self, key: K) {
        self.deadlines[key.into()] = Time::NEVER;
    }

    /// Outcome of a timer's event.
    pub fn ring(&mut self, now: Time, slot: u8) -> TimerFiring<K> {
        let slot = usize::from(slot);
        if self.scheduled[slot] != now {
            return TimerFiring::Nothing; // replaced by an earlier one
        }
        self.scheduled[slot] = Time::NEVER;
        match self.deadlines[slot] {
            Time::NEVER => TimerFiring::Nothing,
            deadline if deadline > now => {
                self.scheduled[slot] = deadline;
                TimerFiring::Later(deadline)
            }
            _ => {
                self.deadlines[slot] = Time::NEVER;
                self.keys[slot].map_or(TimerFiring::Nothing, TimerFiring::Now)
            }
        }
    }
}

impl<K: Copy + Into<usize>, const N: usize> Default for Timers<K, N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Outcome of a timer's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerFiring<K> {
    Nothing,
    /// The deadline has moved: look again then.
    Later(Time),
    Now(K),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_moves_rings_once_and_at_the_right_time() {
        let at = Time::from_ps;
        let mut timers = Timers::<usize, 1>::new();
        assert_eq!(timers.arm(0, at(5)), Some(0));
        assert_eq!(timers.arm(0, at(9)), None);
        assert_eq!(timers.ring(at(5), 0), TimerFiring::Later(at(9)));
        assert_eq!(timers.arm(0, at(7)), Some(0));
        assert_eq!(timers.ring(at(7), 0), TimerFiring::Now(0));
        assert_eq!(timers.ring(at(9), 0), TimerFiring::Nothing);
        assert_eq!(timers.arm(0, at(12)), Some(0));
        timers.disarm(0);
        assert_eq!(timers.ring(at(12), 0), TimerFiring::Nothing);
    }
}
