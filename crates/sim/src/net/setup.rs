//! What to simulate: a network, what is wrong with it, and who sends what to whom.

use faults::{FaultSchedule, Random};
use transport::roce::repeat;
use units::{Span, Time};

use super::port::Marking;
use super::programs::metering;
use super::rules::FaultyRule;
use super::switch::SwitchSettings;
use super::transports::TransportSetup;
use crate::protocols::Protection;
use crate::topology::{DirectedLink, Topology, TopologyLinkId};
use crate::workload::Workload;

/// Farther than this, a clock of picoseconds comes near its end.
pub const LONGEST_SPAN: Span = Span::from_ms(3_600_000 * 1_000);

#[derive(Clone, Debug)]
pub struct NetworkSetup {
    pub topology: Topology,
    pub switches: SwitchSettings,
    /// ECN at every switch port.
    pub marking: Option<Marking>,
    /// What switches repeat of what their hosts send, if anything.
    pub repeat: Option<repeat::RepeaterConfig>,
    /// LossRadar's meters at every interface.
    pub radar: Option<metering::MeteringConfig>,
    /// From the last bit of a packet to a switch's having routed it.
    pub switch_latency: Span,
    pub host_latency: HostLatency,
    /// TCP connections begin with a handshake, and are not established from the start.
    pub handshakes: bool,
    /// Links with something wrong or something that helps; all others are clean and bare.
    pub links: Vec<LinkSetup>,
    /// What is wrong with the tables of switches.
    pub rules: Vec<FaultyRule>,
    pub traffic: Vec<TrafficSetup>,
    /// When to stop, if traffic has not come to its end before.
    pub until: Time,
    pub sampling: Option<Sampling>,
    /// Ports whose packets are kept as they leave.
    pub capture: Vec<DirectedLink>,
    /// Keep the queues of all ports, also where it makes no difference.
    pub no_express: bool,
    pub seed: u64,
}

impl NetworkSetup {
    pub fn new(topology: Topology) -> Self {
        Self {
            topology,
            switches: SwitchSettings::default(),
            marking: None,
            repeat: None,
            radar: None,
            switch_latency: Span::ZERO,
            host_latency: HostLatency::None,
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

/// From a packet's arrival at an idle interface until the host has processed it: interrupt, stack, scheduler. Half of it
/// is the wait for the interrupt; all that arrives meanwhile is processed at the same time, as a kernel that polls its
/// interface does. RDMA packets, which the interface handles itself, are delayed as long, but one by one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HostLatency {
    None,
    Fixed(Span),
    /// `sigma` is that of the logarithm.
    LogNormal {
        median: Span,
        sigma: f64,
    },
}

impl HostLatency {
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

    pub(crate) fn typical(&self) -> Span {
        match *self {
            Self::None => Span::ZERO,
            Self::Fixed(span) => span,
            Self::LogNormal { median, .. } => median,
        }
    }
}

#[derive(Clone, Debug)]
pub struct LinkSetup {
    pub link: TopologyLinkId,
    /// From a to b, and back.
    pub forward: FaultSchedule,
    pub reverse: FaultSchedule,
    pub protection: Protection,
    /// When it is switched on; from the start if not given.
    pub activate_at: Option<Span>,
}

#[derive(Clone, Debug)]
pub struct TrafficSetup {
    pub name: String,
    pub transport: TransportSetup,
    pub work: Workload,
    /// Bytes with which the receiver answers; the flow is complete when they have come.
    pub reply: u64,
    pub class: u8,
    /// Flows of RDMA between two hosts share this many queue pairs, each flow a message; if not given, each has its own.
    pub queue_pairs: Option<u32>,
}

/// What is looked at while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampling {
    pub every: Span,
    pub ports: Vec<DirectedLink>,
}
