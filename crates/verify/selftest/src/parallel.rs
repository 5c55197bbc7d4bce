//! Work on several threads, of which most wait most of the time.

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use units::Progress;

/// A progress that threads share.
pub trait Watched: Progress + Sync {}
impl<T: Progress + Sync> Watched for T {}

/// Results in the order of the items.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], threads: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let taken = AtomicUsize::new(0);
    let serve = || {
        let places = std::iter::repeat_with(|| taken.fetch_add(1, Ordering::Relaxed));
        places.map_while(|place| Some((place, work(items.get(place)?)))).collect::<Vec<_>>()
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let servers: Vec<_> = (0..threads.min(items.len())).map(|_| scope.spawn(serve)).collect();
        servers
            .into_iter()
            .flat_map(|server| server.join().unwrap_or_else(|payload| panic::resume_unwind(payload)))
            .collect()
    });
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        assert_eq!(in_parallel(&items, 7, |item| item * 2), items.iter().map(|item| item * 2).collect::<Vec<_>>());
    }
}
