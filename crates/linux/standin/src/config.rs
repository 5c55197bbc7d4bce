//! Settings of a stand-in, and demands of the protocol that runs on it.

use std::net::SocketAddr;

use units::Rate;

/// Kind of interface through which the host meets the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostBackend {
    /// The best that works.
    #[default]
    Auto,
    Tap,
    Veth,
}

/// Kind of socket on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WireBackend {
    /// The best that works.
    #[default]
    Auto,
    Packet,
}

units::named!(HostBackend, "auto, tap or veth",
    "auto" => Self::Auto, "tap" => Self::Tap, "veth" => Self::Veth,);
units::named!(WireBackend, "auto or packet",
    "auto" => Self::Auto, "packet" => Self::Packet,);

/// Settings of a stand-in and of the daemon that serves it.
#[derive(Clone, Debug, PartialEq)]
pub struct StandInConfig {
    pub interface: String,
    pub name: String,
    /// `None`: what the interface says its speed is.
    pub rate: Option<Rate>,
    /// `None`: the largest that fits into the interface's frames.
    pub mtu: Option<u32>,
    pub take_over: bool,
    /// With `take_over`: the interface keeps its name, and the stand-in gets a name of its own.
    pub keep_name: bool,
    /// Waits for an interface that is down or absent.
    pub wait: bool,
    pub host: HostBackend,
    pub wire: WireBackend,
    pub metrics: Option<SocketAddr>,
}

impl StandInConfig {
    /// The least that every IPv4 host must be able to receive.
    pub const LEAST_MTU: u32 = 576;

    pub fn new(interface: impl Into<String>) -> Self {
        Self {
            interface: interface.into(),
            name: "hit0".to_owned(),
            rate: None,
            mtu: None,
            take_over: false,
            keep_name: false,
            wait: false,
            host: HostBackend::default(),
            wire: WireBackend::default(),
            metrics: None,
        }
    }
}

/// Demands of the protocol that runs on a stand-in.
#[derive(Clone, Copy, Debug)]
pub struct StandInDemands {
    /// Most bytes that it adds to a frame.
    pub overhead: usize,
    /// Frames for which there is room as they come off the wire.
    pub ring: usize,
    /// Reason why super-frames are not to pass the wire whole, in one line; `None` if they may.
    pub no_super_frames: Option<&'static str>,
}
