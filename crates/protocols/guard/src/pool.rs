//! One switch's reorder capacity, shared by the links that it receives on.
//!
//! LinkGuardian (SIGCOMM'23) §5, "Multiple corrupting links", leaves open how many links a given number of
//! recirculation buffers can serve. Links rarely recover at the same moment, so a fixed
//! split wastes most of the capacity; a free-for-all lets one link starve the rest. The usual answer for switch
//! buffers serves here too: each link has headroom of its own, for what is still in flight when its
//! sender is asked to pause; of the rest, each may hold as much as is still free, so that one link alone
//! gets half of it and many get a fair share each.
//!
//! The switch owns the pool, reports each link's level to it, and hands the share on to that link's endpoint
//! ([`crate::Endpoint::limit_reorder`]), which pauses its peer in time.
//!
//! Invariant: what all links hold never exceeds the total, as long as each stays below its hard limit.

use units::Bytes;

/// A buffer that several links share.
#[derive(Debug)]
pub struct BufferPool {
    total: Bytes,
    headroom: Bytes,
    held: Vec<Bytes>,
    used: Bytes,
}

impl BufferPool {
    /// # Panics
    /// If there is less than everybody's headroom.
    pub fn new(total: Bytes, links: usize, headroom: Bytes) -> Self {
        assert!(total >= headroom * links as u64, "not even room for what is in flight");
        Self { total, headroom, held: vec![Bytes::ZERO; links], used: Bytes::ZERO }
    }

    /// Records what `link` holds now.
    ///
    /// # Panics
    /// If that is more than its share allowed.
    pub fn set_level(&mut self, link: usize, level: Bytes) {
        self.used = self.used - self.held[link] + level;
        self.held[link] = level;
        assert!(self.used <= self.total, "a link holds more than its hard limit");
    }

    /// Bytes that all links hold together.
    pub fn used(&self) -> Bytes {
        self.used
    }

    /// Bytes that `link` may hold from now on.
    pub fn share(&self, link: usize) -> PoolShare {
        let reserved = self.headroom * self.held.len() as u64;
        let fair = (self.total - reserved).saturating_sub(self.used) + self.headroom;
        PoolShare { fair, hard: self.held[link] + self.total.saturating_sub(self.used) }
    }
}

/// A link's part of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolShare {
    /// Pause in time to stay below this, headroom included.
    pub fair: Bytes,
    /// Hard limit of the buffer.
    pub hard: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_link_alone_may_take_half_and_two_a_third_each() {
        let mut pool = BufferPool::new(Bytes::new(160_000), 4, Bytes::new(10_000));
        let fair = |pool: &BufferPool, link| pool.share(link).fair - Bytes::new(10_000);
        assert_eq!(fair(&pool, 0), Bytes::new(120_000));
        pool.set_level(0, Bytes::new(60_000));
        assert_eq!(fair(&pool, 0), Bytes::new(60_000));
        assert_eq!(pool.share(0).hard, Bytes::new(160_000));
        pool.set_level(0, Bytes::new(40_000));
        pool.set_level(1, Bytes::new(40_000));
        assert_eq!([0, 1, 2].map(|link| fair(&pool, link)), [Bytes::new(40_000); 3]);
        pool.set_level(1, Bytes::ZERO);
        assert_eq!(pool.used(), Bytes::new(40_000));
    }

    #[test]
    fn a_full_pool_leaves_everyone_headroom_only() {
        let mut pool = BufferPool::new(Bytes::new(50_000), 2, Bytes::new(10_000));
        pool.set_level(0, Bytes::new(35_000));
        assert_eq!(pool.share(1), PoolShare { fair: Bytes::new(10_000), hard: Bytes::new(15_000) });
    }
}
