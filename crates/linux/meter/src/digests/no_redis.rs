//! Stands in for `redis` in a build without the feature: no address of Redis is accepted, so nothing here is ever called.

use std::fmt;
use std::path::Path;

use super::Envelope;
use super::answer::ReceivedAnswer;
use super::report_queue::ReportTransport;
use super::report_receiver::ReportGate;
use bus::BusError;
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

#[derive(Debug)]
pub(super) struct RedisTransport(RedisAddress);

impl RedisTransport {
    pub(super) fn new(address: &RedisAddress, _key: Option<OrderKey>) -> Self {
        match *address {}
    }
}

impl ReportTransport for RedisTransport {
    fn send(&mut self, _envelope: &Envelope) -> Result<(), String> {
        match self.0 {}
    }

    fn hear(&mut self, _life: u64) -> Vec<ReceivedAnswer> {
        match self.0 {}
    }

    fn reply(&mut self, _question: u32, _body: &[u8]) -> Result<(), String> {
        match self.0 {}
    }

    fn is_connected(&self) -> bool {
        match self.0 {}
    }
}

pub(super) fn follow(address: &RedisAddress, _gate: &ReportGate<'_>) {
    match *address {}
}
