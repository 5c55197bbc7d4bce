//! The schemes that §3.6.1 compares, and what each does to nodes, messages and ε.

use std::fmt;
use std::str::FromStr;

use clock::bound::PerHop;
use clock::node::NodeParams;
use units::Span;

/// Schemes that synchronise clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockScheme {
    /// Synchronous waves every 90 µs, with backup parents.
    #[default]
    Sundial,
    /// PTP + ε: a message every 2 s, whether or not the sender has heard one.
    Ptp,
    /// PTP + DTP + ε: a message every 5 µs.
    PtpDtp,
    /// Huygens + ε: everybody is corrected every 2 s, whatever fails.
    Huygens,
    /// Marzullo's intersection of what all neighbours say, every 90 µs, with two masters.
    Marzullo,
    /// PTP + ε with a message every 90 µs.
    PtpFrequent,
    /// PTP + ε with a synchronous wave every 90 µs: Sundial without backup parents.
    PtpFrequentSynchronous,
}

impl ClockScheme {
    /// All of them, in the order of the thesis.
    pub const ALL: [Self; 7] = [
        Self::Sundial,
        Self::Ptp,
        Self::PtpDtp,
        Self::Huygens,
        Self::Marzullo,
        Self::PtpFrequent,
        Self::PtpFrequentSynchronous,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Sundial => "sundial",
            Self::Ptp => "ptp",
            Self::PtpDtp => "ptp+dtp",
            Self::Huygens => "huygens",
            Self::Marzullo => "marzullo",
            Self::PtpFrequent => "ptp+freq",
            Self::PtpFrequentSynchronous => "ptp+freq+sync",
        }
    }

    /// Interval between messages, by the scheme.
    pub fn interval(self, params: &NodeParams) -> Span {
        match self {
            Self::Ptp | Self::Huygens => Span::from_ms(2_000),
            Self::PtpDtp => Span::from_us(5),
            Self::Sundial | Self::Marzullo | Self::PtpFrequent | Self::PtpFrequentSynchronous => params.interval,
        }
    }

    /// The network's parameters under this scheme.
    pub(crate) fn params(self, params: NodeParams) -> NodeParams {
        let interval = self.interval(&params);
        let none = PerHop { measurement: Span::ZERO, dwell: Span::ZERO };
        let per_hop = if self == Self::Huygens { none } else { params.per_hop };
        match interval == params.interval {
            true => NodeParams { per_hop, ..params },
            false => NodeParams { per_hop, ..params.with_interval(interval) },
        }
    }

    /// T_recovery (§3.6.1.1): for how long a parent may send without having heard anything itself. As long as the controller
    /// takes, up to the next whole interval, and a little, because a sender waits a little for a message before it sends without one.
    pub(crate) fn recovery(self, interval: Span, controller: Span) -> Span {
        let missed = interval * (controller.as_ps() / interval.as_ps().max(1) + 1);
        match self {
            Self::Ptp | Self::PtpDtp | Self::PtpFrequent => missed + missed / 512,
            Self::Sundial | Self::Huygens | Self::Marzullo | Self::PtpFrequentSynchronous => Span::ZERO,
        }
    }
}

impl fmt::Display for ClockScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ClockScheme {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        Self::ALL.into_iter().find(|scheme| scheme.name() == text).ok_or_else(|| format!("expected one of {}", names()))
    }
}
