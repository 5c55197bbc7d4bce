//! The Redis server on which collectors announce themselves.

pub(super) use bus::redis::address::RedisAddress;
pub(super) use bus::redis::collectors::CollectorBoard;
