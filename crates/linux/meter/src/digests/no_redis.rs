//! Stands in for `redis` in a build without the feature: no address of Redis is accepted, so nothing here is ever called.

use std::fmt;
use std::path::Path;

use bus::BusError;
use bus::collectors::{Announcement, LatestFinding};
use bus::key::OrderKey;

/// An address that cannot exist.
#[derive(Clone, Copy, Debug)]
pub(super) enum RedisAddress {}

impl RedisAddress {
    pub(super) fn parse(text: &str, _ca: Option<&Path>) -> Result<Self, BusError> {
        Err(BusError::without_redis(text))
    }
}

impl fmt::Display for RedisAddress {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

pub(super) fn of_flows(address: &RedisAddress) -> RedisAddress {
    match *address {}
}

#[derive(Debug)]
pub(super) struct CollectorBoard(RedisAddress);

impl CollectorBoard {
    pub(super) fn new(address: RedisAddress) -> Self {
        match address {}
    }

    pub(super) fn announce(&mut self, _name: &str, _believed: &str, _text: &str) -> Result<Option<String>, BusError> {
        match self.0 {}
    }

    pub(super) fn announcements(&mut self) -> Result<Vec<String>, BusError> {
        match self.0 {}
    }

    pub(super) fn collectors(&mut self, _key: Option<&OrderKey>, _now_ms: u64) -> Result<Vec<Announcement>, BusError> {
        match self.0 {}
    }

    pub(super) fn memory(&mut self) -> Result<u64, BusError> {
        match self.0 {}
    }

    pub(super) fn publish(&mut self, _findings: &[LatestFinding], _key: Option<&OrderKey>) -> Result<(), BusError> {
        match self.0 {}
    }

    pub(super) fn findings(&mut self, _key: Option<&OrderKey>) -> Result<Vec<LatestFinding>, BusError> {
        match self.0 {}
    }
}
