//! Stands in for `redis` in a build without the feature: no address of Redis is accepted, and whatever is asked is refused.

use std::fmt;
use std::path::Path;

use bus::BusError;
use bus::collectors::{Announcement, LatestFinding};
use bus::key::OrderKey;

/// An address as a user wrote it; `parse` gives none.
#[derive(Clone, Debug)]
pub(super) struct RedisAddress(String);

impl RedisAddress {
    pub(super) fn parse(text: &str, _ca: Option<&Path>) -> Result<Self, BusError> {
        Err(BusError::without_redis(text))
    }
}

impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(super) fn of_flows(address: &RedisAddress) -> RedisAddress {
    address.clone()
}

#[derive(Debug)]
pub(super) struct CollectorBoard(RedisAddress);

impl CollectorBoard {
    pub(super) fn new(address: RedisAddress) -> Self {
        Self(address)
    }

    fn refusal(&self) -> BusError {
        BusError::without_redis(&self.0.0)
    }

    pub(super) fn announce(&mut self, _name: &str, _believed: &str, _text: &str) -> Result<Option<String>, BusError> {
        Err(self.refusal())
    }

    pub(super) fn collectors(&mut self, _key: Option<&OrderKey>, _now_ms: u64) -> Result<Vec<Announcement>, BusError> {
        Err(self.refusal())
    }

    pub(super) fn memory(&mut self) -> Result<u64, BusError> {
        Err(self.refusal())
    }

    pub(super) fn publish(&mut self, _findings: &[LatestFinding], _key: Option<&OrderKey>) -> Result<(), BusError> {
        Err(self.refusal())
    }

    pub(super) fn findings(&mut self, _key: Option<&OrderKey>) -> Result<Vec<LatestFinding>, BusError> {
        Err(self.refusal())
    }
}
