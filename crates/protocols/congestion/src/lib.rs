//! Congestion control for RDMA: acknowledgements, notifications and time in; a window and a pace out.
//!
//! A controller ([`RdmaControl`]) has no clock, no randomness and no I/O, and belongs to one queue pair. Which way a queue pair
//! recovers from loss is not its business, so that controllers and recoveries combine freely. One file each:
//!
//! | file | controller |
//! | --- | --- |
//! | `hpcc` | HPCC (SIGCOMM'19; Li's thesis, ch. 2): telemetry of switches |
//! | `dcqcn` | DCQCN (SIGCOMM'15), as NICs and the HPCC authors' simulator have it: ECN and notification packets |
//! | `timely` | TIMELY (SIGCOMM'15): the gradient of the round trip |
//! | `dctcp` | DCTCP without slow start: the share of marked packets |
//! | `swift` | Swift (SIGCOMM'20): a target for the delay |
//! | `fixed` | a fixed rate |
//!
//! [`Controller`] and [`ControllerConfig`] follow from the list in this file, and dispatch is static. To add one: write its file, add
//! a line to the list, and say what it needs in `wants_marks`, `wants_telemetry` and `wants_every_ack`; `halving.rs` is a worked
//! example that is part of the tests only. A scenario's keys for it are read in `sim::net::transports::controllers`.

#![warn(missing_docs)]

mod dcqcn;
mod dctcp;
mod fixed;
#[cfg(test)]
mod halving;
pub mod hpcc;
mod mark_share;
mod plus_window;
mod round;
mod swift;
pub mod theory;
mod timely;

use units::{Rate, Span, Time};
pub use wire::int::TelemetrySample;

pub use dcqcn::{CnpDelivery, Dcqcn, DcqcnConfig};
pub use dctcp::{RdmaDctcp, RdmaDctcpConfig};
pub use fixed::{FixedRate, FixedRateConfig};
pub use hpcc::{Hpcc, HpccConfig};
pub use mark_share::MarkShare;
pub use swift::{Swift, SwiftConfig, SwiftSignal};
pub use timely::{Timely, TimelyConfig};

/// Path of the connection that a controller controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlSite {
    /// Rate of the NIC's port.
    pub line_rate: Rate,
    /// A round trip without queues; T, unless a configuration says otherwise.
    pub base_rtt: Span,
    /// Payload of a full packet in bytes.
    pub mtu: u32,
    /// Switches between the two hosts.
    pub hops: u32,
}

impl ControlSite {
    /// Bytes that the line rate carries in a base round trip: the window that a flow begins with.
    pub fn bdp(&self) -> u64 {
        self.line_rate.bytes_in(self.base_rtt).get()
    }
}

/// Contents of an acknowledgement. Packets are counted in the order of sending, from 0 and without wrapping.
#[derive(Clone, Copy, Debug)]
pub struct AckFeedback<'a> {
    /// Arrival time of the acknowledgement.
    pub now: Time,
    /// All packets before this one have arrived.
    pub acked: u64,
    /// The first packet that has not been sent yet.
    pub sent: u64,
    /// Packets that it acknowledges for the first time.
    pub packets: u64,
    /// Their payload in bytes.
    pub bytes: u64,
    /// Packets that have arrived with an ECN mark since the last acknowledgement.
    pub marked: u32,
    /// Time from the sending of the packet that caused the acknowledgement to its arrival.
    pub rtt: Option<Span>,
    /// Time from the sending of that packet to its arrival at the receiver, where clocks agree.
    pub one_way: Option<Span>,
    /// Telemetry that switches wrote on that packet.
    pub telemetry: Option<TelemetrySample<'a>>,
}

/// A controller of one queue pair.
///
/// Whatever it is given (times that run backwards, telemetry of any bits), its window and pace stay within its bounds.
pub trait RdmaControl {
    /// An acknowledgement or a NAK has come.
    fn on_ack(&mut self, ack: &AckFeedback<'_>);

    /// A congestion notification packet has come.
    fn on_cnp(&mut self, _now: Time) {}

    /// Packets are missing at the receiver.
    fn on_nak(&mut self, _now: Time) {}

    /// Reacts to a time without progress as long as the queue pair's timeout.
    fn on_timeout(&mut self, _now: Time) {}

    /// A data packet leaves that takes this many bytes of the wire.
    fn on_sent(&mut self, _now: Time, _wire_bytes: u64) {}

    /// Clocks of the controller's own run until now.
    fn advance(&mut self, _now: Time) {}

    /// Time at which the pace changes next if nothing else happens.
    fn changes_at(&self) -> Time {
        Time::NEVER
    }

    /// Payload bytes that may be in flight before the next packet leaves; at least 1.
    fn window(&self) -> u64;

    /// The pace of packets with all their headers; `None` if only the window holds them.
    fn rate(&self) -> Option<Rate>;
}

macro_rules! controllers {
    ($($(#[$doc:meta])* $name:ident: $control:ty, from $config:ty $(, only $when:meta)?;)*) => {
        /// Congestion control of a queue pair.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub enum ControllerConfig {
            /// No control: the sender uses the line rate, as far as its window of packets lets it.
            #[default]
            None,
            $($(#[$doc])* $(#[$when])? $name($config),)*
        }

        /// The controller of a queue pair.
        #[derive(Debug)]
        pub enum Controller {
            /// No telemetry.
            None,
            $($(#[$doc])* $(#[$when])? $name(Box<$control>),)*
        }

        impl Controller {
            /// One that has seen nothing yet.
            pub fn new(config: &ControllerConfig, site: &ControlSite) -> Self {
                match config {
                    ControllerConfig::None => Self::None,
                    $($(#[$when])? ControllerConfig::$name(config) => Self::$name(Box::new(<$control>::new(config, site))),)*
                }
            }
        }

        impl RdmaControl for Controller {
            #[inline]
            fn on_ack(&mut self, ack: &AckFeedback<'_>) {
                match self {
                    Self::None => {}
                    $($(#[$when])? Self::$name(control) => control.on_ack(ack),)*
                }
            }

            fn on_cnp(&mut self, now: Time) {
                match self {
                    Self::None => {}
                    $($(#[$when])? Self::$name(control) => control.on_cnp(now),)*
                }
            }

            fn on_nak(&mut self, now: Time) {
                match self {
                    Self::None => {}
                    $($(#[$when])? Self::$name(control) => control.on_nak(now),)*
                }
            }

            fn on_timeout(&mut self, now: Time) {
                match self {
                    Self::None => {}
                    $($(#[$when])? Self::$name(control) => control.on_timeout(now),)*
                }
            }

            #[inline]
            fn on_sent(&mut self, now: Time, wire_bytes: u64) {
                match self {
                    Self::None => {}
                    $($(#[$when])? Self::$name(control) => control.on_sent(now, wire_bytes),)*
                }
            }

            #[inline]
            fn advance(&mut self, now: Time) {
                match self {
                    Self::None => {}
                    $($(#[$when])? Self::$name(control) => control.advance(now),)*
                }
            }

            #[inline]
            fn changes_at(&self) -> Time {
                match self {
                    Self::None => Time::NEVER,
                    $($(#[$when])? Self::$name(control) => control.changes_at(),)*
                }
            }

            #[inline]
            fn window(&self) -> u64 {
                match self {
                    Self::None => u64::MAX,
                    $($(#[$when])? Self::$name(control) => control.window(),)*
                }
            }

            #[inline]
            fn rate(&self) -> Option<Rate> {
                match self {
                    Self::None => None,
                    $($(#[$when])? Self::$name(control) => control.rate(),)*
                }
            }
        }
    };
}

controllers! {
    /// A fixed rate.
    Fixed: FixedRate, from FixedRateConfig;
    /// Telemetry of switches.
    Hpcc: Hpcc, from HpccConfig;
    /// ECN and notification packets.
    Dcqcn: Dcqcn, from DcqcnConfig;
    /// The gradient of the round trip.
    Timely: Timely, from TimelyConfig;
    /// The share of marked packets.
    Dctcp: RdmaDctcp, from RdmaDctcpConfig;
    /// A target for the delay.
    Swift: Swift, from SwiftConfig;
    /// A worked example.
    Halving: halving::Halving, from halving::HalvingConfig, only cfg(test);
}

impl Controller {
    /// Number of times that telemetry was unusable, because the path had changed or no time had passed.
    pub fn telemetry_resets(&self) -> u64 {
        if let Self::Hpcc(hpcc) = self { hpcc.resets() } else { 0 }
    }
}

impl ControllerConfig {
    /// True if its packets collect telemetry.
    pub fn wants_telemetry(&self) -> bool {
        matches!(self, Self::Hpcc(_))
    }

    /// True if switches may mark its packets.
    pub fn wants_marks(&self) -> bool {
        matches!(self, Self::Dcqcn(_) | Self::Dctcp(_))
    }

    /// The least time between two notification packets of a receiver, if it sends any.
    pub fn cnp_gap(&self) -> Option<Span> {
        match self {
            Self::Dcqcn(dcqcn) if dcqcn.cnp == CnpDelivery::Packet => Some(dcqcn.cnp_gap),
            _ => None,
        }
    }

    /// True if every packet should be acknowledged by itself.
    pub fn wants_every_ack(&self) -> bool {
        !matches!(self, Self::None | Self::Fixed(_))
    }
}
