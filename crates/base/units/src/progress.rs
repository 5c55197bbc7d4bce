//! Progress of a task, and the request to stop it: the same two things for a computation and for a thread.
//!
//! A long computation takes a `&dyn` [`Progress`] and asks it now and then whether to go on. A loop that has nothing to
//! report takes a [`StopFlag`], which is a [`Progress`] too: so one flag stops the loops and the computations alike.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::Time;

/// Receives how far a task has come, and decides whether it goes on. A closure over the amount done is one, too.
pub trait Progress {
    /// Called now and then with the amount done so far, in a unit that the task names. False ends the task, which then
    /// returns what is known; after a false there is no true.
    fn go_on(&self, done: u64) -> bool;

    /// A simulation has come to `now`, which is about this share of it.
    fn simulated(&self, _now: Time, _share: f64) {}

    /// The task consists of this many parts, such as runs.
    fn expect_parts(&self, _parts: usize) {}

    /// One of the parts has ended.
    fn part_done(&self) {}
}

impl<F: Fn(u64) -> bool> Progress for F {
    fn go_on(&self, done: u64) -> bool {
        self(done)
    }
}

/// Ignores all reports and never ends a task.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Progress for Unwatched {
    fn go_on(&self, _done: u64) -> bool {
        true
    }
}

/// Asks threads and computations to stop; once stopped, it stays so.
#[derive(Debug, Default)]
pub struct StopFlag(AtomicBool);

impl StopFlag {
    /// Makes a flag that is not stopped.
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Stops the task. Everyone who finds it stopped sees all that was written before this call.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// True once [`Self::stop`] has been called.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Stops when the guard is dropped: threads of a scope end however the scope is left.
    pub fn stop_on_drop(&self) -> StopOnDrop<'_> {
        StopOnDrop(self)
    }
}

impl Progress for StopFlag {
    fn go_on(&self, _done: u64) -> bool {
        !self.is_stopped()
    }
}

/// Made by [`StopFlag::stop_on_drop`].
#[derive(Debug)]
#[must_use = "it stops at once if it is not kept"]
pub struct StopOnDrop<'a>(&'a StopFlag);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts up to ten, or until it is stopped.
    fn count(progress: &dyn Progress) -> u64 {
        progress.expect_parts(10);
        (0..10).take_while(|done| progress.go_on(*done)).inspect(|_| progress.part_done()).count() as u64
    }

    #[test]
    fn an_unwatched_task_comes_to_its_end() {
        assert_eq!(count(&Unwatched), 10);
    }

    #[test]
    fn a_closure_ends_a_task() {
        assert_eq!(count(&|done| done < 3), 3);
    }

    #[test]
    fn a_flag_ends_a_computation() {
        let stop = StopFlag::new();
        assert_eq!(count(&stop), 10);
        stop.stop();
        assert_eq!(count(&stop), 0);
        stop.stop();
        assert!(stop.is_stopped(), "twice is as good as once");
    }

    #[test]
    fn a_flag_in_a_closure_ends_a_computation_midway() {
        let stop = StopFlag::new();
        let progress = |done| {
            if done == 4 {
                stop.stop();
            }
            stop.go_on(done)
        };
        assert_eq!(count(&progress), 4);
    }

    #[test]
    fn a_guard_ends_threads_when_their_scope_panics() {
        let stop = StopFlag::new();
        let outcome = std::panic::catch_unwind(|| {
            std::thread::scope(|scope| {
                let _stop = stop.stop_on_drop();
                scope.spawn(|| {
                    while !stop.is_stopped() {
                        std::thread::yield_now();
                    }
                });
                panic!("the thread would run for ever");
            })
        });
        assert!(outcome.is_err() && stop.is_stopped());
    }
}
