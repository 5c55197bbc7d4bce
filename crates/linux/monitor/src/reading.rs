//! Counters of a port at one moment, from any source.

use units::Moment;

/// Reading of one port. Counters are as the device has them: since it started, and they may wrap or start over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The interface's name.
    pub port: String,
    /// Distinguishes this device from another that later has the same name: the interface's index, for example. A new
    /// identity means that the counters have nothing to do with those read before.
    pub identity: u64,
    /// Time by a clock that is not set back; only differences count.
    pub at: Moment,
    pub carrier: CarrierState,
    /// `None` if nothing counts them.
    pub frames: Option<ReceivedFrames>,
    pub phy: Phy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarrierState {
    Up,
    /// Meant to be up, but without a signal.
    Lost,
    /// A person switched the port off.
    Off,
}

/// Frames received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedFrames {
    /// Good and bad together.
    pub all: u64,
    /// Frames that failed their check.
    pub bad: u64,
    /// Width of the device's counters in bits: 32 or 64.
    pub bits: u32,
}

/// Counters of the layer below, if it has any. They are reported beside the loss; no decision depends on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phy {
    pub symbol_errors: Option<u64>,
    pub corrected: Option<u64>,
    pub uncorrectable: Option<u64>,
}
