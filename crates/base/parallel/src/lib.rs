//! Independent runs on several threads, and the time that they take. The results are the same for any number of threads.

mod stopwatch;

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

pub use stopwatch::Stopwatch;

/// Applies `work` to each item on up to `threads` threads; results in the order of the items.
pub fn map<T: Sync, R: Send>(items: &[T], threads: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let places = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        places.map_while(|place| Some((place, work(items.get(place)?)))).collect::<Vec<_>>()
    };
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.clamp(1, items.len().max(1))).map(|_| scope.spawn(worker)).collect();
        let results =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
        results.flatten().collect()
    });
    results.sort_unstable_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_order() {
        let items: Vec<u64> = (0..100).collect();
        for threads in [0, 1, 3, 200] {
            assert_eq!(map(&items, threads, |n| n * n), items.iter().map(|n| n * n).collect::<Vec<_>>());
        }
        assert!(map(&[] as &[u8], 4, |n| *n).is_empty());
    }

    #[test]
    fn a_panic_of_one_run_reaches_the_caller_with_its_message() {
        let caught = panic::catch_unwind(|| map(&[1, 2, 3], 2, |n| assert_ne!(*n, 2, "no twos")));
        let message = caught.unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("no twos"), "{message}");
    }
}
