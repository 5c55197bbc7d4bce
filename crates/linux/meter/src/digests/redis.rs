//! The Redis server on which collectors announce themselves.

pub(super) use bus::redis::address::RedisAddress;
pub(super) use bus::redis::collectors::CollectorBoard;

/// The server, with the keys of flow meters.
pub(super) fn of_flows(address: &RedisAddress) -> RedisAddress {
    let mut of_flows = address.clone();
    of_flows.prefix.push_str(":flows");
    of_flows
}
