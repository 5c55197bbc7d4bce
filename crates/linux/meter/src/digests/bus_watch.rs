//! Announcements that a meter reads on the bus, from a thread of its own: a bus that does not answer holds up no report.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use bus::collectors::Announcement;
use bus::key::OrderKey;
use linux::clock::{Clock, time_of_day};
use units::StopFlag;

use super::redis::{CollectorBoard, RedisAddress};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Interval between two readings, where nobody is known and where all is well.
const SOON: Duration = Duration::from_millis(200);
const NOW_AND_THEN: Duration = Duration::from_secs(10);

/// Announcements that were read.
#[derive(Debug, Default)]
pub(crate) struct BusNews {
    read: Mutex<(Vec<Announcement>, Option<String>)>,
    is_wanted: AtomicBool,
    ended: StopFlag,
}

impl BusNews {
    fn lock(&self) -> MutexGuard<'_, (Vec<Announcement>, Option<String>)> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announcements since the last call.
    pub(crate) fn take(&self) -> Vec<Announcement> {
        std::mem::take(&mut self.lock().0)
    }

    /// Reason why nothing could be read.
    pub(crate) fn problem(&self) -> Option<String> {
        self.lock().1.clone()
    }

    /// Asks for a reading soon.
    pub(crate) fn want(&self) {
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.ended.stop();
    }

    /// Reads until it is ended. The connection is closed after each reading: a thousand open ones would cost the server more
    /// than all that is said.
    pub(crate) fn watch(&self, address: &RedisAddress, key: Option<&OrderKey>) {
        let clock = Clock::start();
        let mut next = Duration::ZERO;
        while !self.ended.is_stopped() {
            let now = clock.elapsed();
            let is_due = now >= next || self.is_wanted.load(Ordering::Relaxed) && now + NOW_AND_THEN >= next + SOON;
            if !is_due {
                thread::sleep(LOOK_EVERY);
                continue;
            }
            self.is_wanted.store(false, Ordering::Relaxed);
            let read = CollectorBoard::new(address.clone()).collectors(key, time_of_day().as_millis() as u64);
            let mut all = self.lock();
            match read {
                Ok(found) => *all = (found, None),
                Err(error) => all.1 = Some(error.to_string()),
            }
            drop(all);
            next = clock.elapsed() + NOW_AND_THEN;
        }
    }
}
