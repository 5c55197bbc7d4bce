//! What to simulate: a network, what is wrong with it, and who sends what to whom.

use faults::{Random, Schedule};
use guard::fec;
use transport::roce::{irn, melo, repeat, selective};
use transport::{roce, tcp};
use units::{Span, Time};

use super::metering;
use super::port::Marking;
use super::raw;
use super::rules::Rule;
use super::switch::SwitchSettings;
use crate::link;
use crate::topology::{DirectedLink, LinkId, Topology};
use crate::workload::Workload;

#[derive(Clone, Debug)]
pub struct Setup {
    pub topology: Topology,
    pub switches: SwitchSettings,
    /// ECN at every switch port.
    pub marking: Option<Marking>,
    /// What switches repeat of what their hosts send, if anything.
    pub repeat: Option<repeat::Config>,
    /// LossRadar's meters at every interface; not together with `repeat`.
    pub radar: Option<metering::Config>,
    /// From the last bit of a packet to a switch's having routed it.
    pub switch_latency: Span,
    pub host_latency: Latency,
    /// TCP connections begin with a handshake, and are not established from the start.
    pub handshakes: bool,
    /// Links with something wrong or something that helps; all others are clean and bare.
    pub links: Vec<LinkSetup>,
    /// What is wrong with the tables of switches.
    pub rules: Vec<Rule>,
    pub traffic: Vec<Traffic>,
    /// When to stop, if traffic has not come to its end before.
    pub until: Time,
    pub sampling: Option<Sampling>,
    /// Ports whose packets are kept as they leave.
    pub capture: Vec<DirectedLink>,
    /// Keep the queues of all ports, also where it makes no difference.
    pub no_express: bool,
    pub seed: u64,
}

impl Setup {
    pub fn new(topology: Topology) -> Self {
        Self {
            topology,
            switches: SwitchSettings::default(),
            marking: None,
            repeat: None,
            radar: None,
            switch_latency: Span::ZERO,
            host_latency: Latency::None,
            handshakes: false,
            links: Vec::new(),
            rules: Vec::new(),
            traffic: Vec::new(),
            until: Time::NEVER,
            sampling: None,
            capture: Vec::new(),
            no_express: false,
            seed: 1,
        }
    }
}

/// From a packet's arrival at an idle interface to the host's having dealt with it: interrupt, stack, scheduler. Half of
/// it is the wait until the processor is told; all that arrives meanwhile is dealt with at the same time, as a kernel that
/// polls its interface does. RDMA packets, which the interface deals with itself, are delayed as long, but one by one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Latency {
    None,
    Fixed(Span),
    /// `sigma` is that of the logarithm.
    LogNormal {
        median: Span,
        sigma: f64,
    },
}

impl Latency {
    pub fn draw(&self, random: &mut Random) -> Span {
        match *self {
            Self::None => Span::ZERO,
            Self::Fixed(span) => span,
            Self::LogNormal { median, sigma } => {
                // Box and Muller; the other one of the pair is not worth keeping.
                let radius = (2.0 * random.exponential()).sqrt();
                let normal = radius * (std::f64::consts::TAU * random.unit()).cos();
                median.scale((sigma * normal).exp())
            }
        }
    }

    pub fn typical(&self) -> Span {
        match *self {
            Self::None => Span::ZERO,
            Self::Fixed(span) => span,
            Self::LogNormal { median, .. } => median,
        }
    }
}

#[derive(Clone, Debug)]
pub struct LinkSetup {
    pub link: LinkId,
    /// From a to b, and back.
    pub forward: Schedule,
    pub reverse: Schedule,
    pub protection: Protection,
    /// When it is switched on; from the start if not given.
    pub activate_at: Option<Span>,
}

#[derive(Clone, Debug)]
pub enum Protection {
    None,
    /// As `sim link` has it: mode, profile and parameters are taken from this, the rest from the network.
    Link(Box<link::Config>),
    Fec(fec::Config),
}

#[derive(Clone, Debug)]
pub struct Traffic {
    pub name: String,
    pub transport: TransportSetup,
    pub work: Workload,
    /// Bytes with which the receiver answers; the flow is complete when they have come.
    pub reply: u64,
    pub class: u8,
    /// Flows of RDMA between two hosts share so many queue pairs, each flow a message; if not given, each has its own.
    pub queue_pairs: Option<u32>,
}

#[derive(Clone, Debug)]
pub enum TransportSetup {
    Tcp(tcp::Config),
    Roce(roce::Config),
    Selective(selective::Config, Memory),
    Raw(raw::Config),
}

/// Where a connection with selective retransmission keeps what it knows of gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// In a pool that all connections of a host share (MELO).
    Shared(melo::PoolConfig),
    /// In bitmaps of its own (IRN).
    Own(irn::Timeouts),
}

impl TransportSetup {
    /// Whether it sends messages, each of which somebody waits for.
    pub fn is_rdma(&self) -> bool {
        matches!(self, Self::Roce(_) | Self::Selective(..))
    }

    /// The most bytes that one message may have; what sends a stream has no such bound.
    pub fn largest_message(&self) -> u64 {
        let of_packets = |mtu: u32| u64::from(roce::MAX_OUTSTANDING) * u64::from(mtu);
        match self {
            Self::Roce(config) => roce::MAX_MESSAGE.min(of_packets(config.mtu)),
            Self::Selective(config, _) => roce::MAX_MESSAGE.min(of_packets(config.mtu)),
            Self::Tcp(_) | Self::Raw(_) => u64::MAX,
        }
    }

    /// Payload of a full packet, and its length as a frame.
    pub fn packet(&self) -> (u32, u32) {
        match self {
            Self::Tcp(config) => (config.mss, config.mss + super::speech::TCP_HEADERS),
            Self::Roce(config) => (config.mtu, config.mtu + roce::HEADERS),
            Self::Selective(config, _) => (config.mtu, config.mtu + roce::HEADERS),
            Self::Raw(config) => (config.payload, config.payload + raw::HEADERS),
        }
    }

    /// The longest frame that it sends.
    pub fn longest_frame(&self) -> u32 {
        match self {
            Self::Roce(_) | Self::Selective(..) => self.packet().1 + roce::RETH,
            Self::Tcp(_) | Self::Raw(_) => self.packet().1,
        }
    }
}

/// What is looked at while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampling {
    pub every: Span,
    pub ports: Vec<DirectedLink>,
}
