//! Setup of a simulation: a network, its faults, and its traffic.

use collective::{RowChoice, RunLengths};
use faults::{FaultSchedule, Random};
use roce::repeat;
use units::{Rate, Span, Time};
use wire::int::{IntHeader, TelemetrySample};

use super::marking::Marking;
use super::processor::HostProcessor;
use super::profile::NetworkProfile;
use super::programs::metering;
use super::reserving_host::RackSetup;
use super::rules::FaultyRule;
use super::switch::SwitchSettings;
use super::transports::TransportSetup;
use crate::protocols::Protection;
use crate::topology::{DirectedLink, NodeId, Topology, TopologyLinkId};
use crate::workload::Workload;

/// Farther than this, a clock of picoseconds comes near its end.
pub const LONGEST_SPAN: Span = Span::from_ms(3_600_000 * 1_000);

#[derive(Clone, Debug)]
pub struct NetworkSetup {
    pub topology: Topology,
    /// Rules that the network follows.
    pub profile: NetworkProfile,
    pub switches: SwitchSettings,
    /// ECN at every switch port.
    pub marking: Option<Marking>,
    /// Packets of their hosts that switches repeat, if any.
    pub repeat: Option<repeat::RepeaterConfig>,
    /// Telemetry that switches write on data packets, if they do.
    pub int: Option<IntSettings>,
    /// T of congestion control, the same for all connections; that of each connection if not given.
    pub base_rtt: Option<Span>,
    /// Keep how long every data packet of RDMA took there and back.
    pub rtt: bool,
    /// LossRadar's meters at every interface.
    pub radar: Option<metering::MeteringConfig>,
    /// Reservations in every rack.
    pub rack: Option<RackSetup>,
    /// Hosts that die, each when.
    pub dead: Vec<(Time, NodeId)>,
    /// Time from the last bit of a packet until a switch has routed it.
    pub switch_latency: Span,
    pub host_latency: HostLatency,
    /// Processor times of hosts; part of the latency if not given.
    pub processor: Option<HostProcessor>,
    /// TCP connections begin with a handshake, and are not established from the start.
    pub handshakes: bool,
    /// True if connections end with a FIN from either end.
    pub fins: bool,
    /// Links with something wrong or something that helps; all others are clean and bare.
    pub links: Vec<LinkSetup>,
    /// Wrong rules in the tables of switches.
    pub rules: Vec<FaultyRule>,
    pub traffic: Vec<TrafficSetup>,
    /// Time at which the run stops, if traffic has not ended before.
    pub until: Time,
    pub sampling: Option<Sampling>,
    /// Measure how long the queue of every switch port is, over time.
    pub queues: bool,
    /// Ports whose packets are kept as they leave.
    pub capture: Vec<DirectedLink>,
    /// Rows that jobs keep.
    pub rows: RowChoice,
    /// Simulate all iterations of jobs, also those that are like the one before.
    pub exact: bool,
    /// Times of the iterations of jobs without losses, by traffic, where they are known already.
    pub baselines: Vec<Option<RunLengths>>,
    /// Keep the queues of all ports, also where it makes no difference.
    pub no_express: bool,
    pub seed: u64,
}

impl NetworkSetup {
    pub fn new(topology: Topology) -> Self {
        Self {
            topology,
            profile: NetworkProfile::default(),
            switches: SwitchSettings::default(),
            marking: None,
            repeat: None,
            int: None,
            base_rtt: None,
            rtt: false,
            radar: None,
            rack: None,
            dead: Vec::new(),
            switch_latency: Span::ZERO,
            host_latency: HostLatency::None,
            processor: None,
            handshakes: false,
            fins: false,
            links: Vec::new(),
            rules: Vec::new(),
            traffic: Vec::new(),
            until: Time::NEVER,
            sampling: None,
            queues: false,
            capture: Vec::new(),
            rows: RowChoice::default(),
            exact: false,
            baselines: Vec::new(),
            no_express: false,
            seed: 1,
        }
    }
}

impl NetworkSetup {
    /// This network, where nothing is lost on wires or by wrong rules.
    #[must_use]
    pub fn without_losses(&self) -> Self {
        let links = self.links.iter().map(|link| LinkSetup {
            forward: FaultSchedule::default(),
            reverse: FaultSchedule::default(),
            ..link.clone()
        });
        Self { links: links.collect(), rules: Vec::new(), ..self.clone() }
    }

    /// True if a job may lose something, and what it would take without is not known.
    pub(crate) fn needs_baseline(&self) -> bool {
        let loses = |link: &LinkSetup| [&link.forward, &link.reverse].iter().any(|faults| !faults.steps().is_empty());
        let has_jobs = self.traffic.iter().any(|traffic| matches!(traffic.work, Workload::Job(_)));
        has_jobs && self.baselines.is_empty() && (!self.rules.is_empty() || self.links.iter().any(loses))
    }

    /// True if a link protocol runs on this link.
    pub fn protects(&self, link: TopologyLinkId) -> bool {
        self.links.iter().any(|setup| setup.link == link && !matches!(setup.protection, Protection::None))
    }
}

/// Settings for the telemetry that switches write.
#[derive(Clone, Debug, PartialEq)]
pub struct IntSettings {
    /// Cost of telemetry on the wire.
    pub charge: IntCharge,
    /// Ports that report another rate than their own.
    pub rates: Vec<(DirectedLink, Rate)>,
    /// The most switches on the way between two hosts.
    pub most_hops: usize,
    /// Bytes of it in data and acknowledgements, if room is charged.
    pub room: [u16; 2],
}

/// Cost of telemetry on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntCharge {
    /// Room for five switches, 42 bytes, in every data packet and acknowledgement from its sender on; longer ways have room
    /// for each of their switches.
    #[default]
    Room,
    /// Counts only filled bytes: 2, and 8 more for each switch passed.
    Filled,
}

impl IntCharge {
    /// Bytes that a switch fills.
    pub const HOP: u16 = IntHeader::PER_HOP as u16;
    /// Bytes before the first switch's.
    pub const HEADER: u16 = IntHeader::BASE as u16;

    /// Bytes of it in a packet that has come to a host.
    pub(crate) fn bytes(self, room: [u16; 2], collects: bool, sample: Option<TelemetrySample<'_>>) -> u16 {
        match self {
            Self::Room => room[usize::from(!collects)],
            Self::Filled => Self::HEADER + sample.map_or(0, |sample| sample.hops.len() as u16 * Self::HOP),
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
    /// Drawn for every packet; what is processed at the same time takes as long as the slowest of it. With a deviation of zero
    /// the same as `Fixed`.
    Normal {
        mean: Span,
        deviation: Span,
    },
}

impl HostLatency {
    pub fn draw(&self, random: &mut Random) -> Span {
        match *self {
            Self::None => Span::ZERO,
            Self::Fixed(span) => span,
            Self::LogNormal { median, sigma } => median.scale((sigma * standard_normal(random)).exp()),
            Self::Normal { mean, deviation } => {
                let off = standard_normal(random) * deviation.as_ps() as f64;
                Span::from_ps(mean.as_ps().saturating_add_signed(off as i64))
            }
        }
    }

    /// True if packets that are processed together are drawn for one by one.
    pub(crate) fn is_per_packet(&self) -> bool {
        matches!(self, Self::Normal { .. })
    }

    /// Typical latency.
    pub fn typical(&self) -> Span {
        match *self {
            Self::None => Span::ZERO,
            Self::Fixed(span) | Self::Normal { mean: span, .. } => span,
            Self::LogNormal { median, .. } => median,
        }
    }
}

fn standard_normal(random: &mut Random) -> f64 {
    // Box and Muller; the other one of the pair is not worth keeping.
    let radius = (2.0 * random.exponential()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

#[derive(Clone, Debug)]
pub struct LinkSetup {
    pub link: TopologyLinkId,
    /// Faults from a to b, and back.
    pub forward: FaultSchedule,
    pub reverse: FaultSchedule,
    pub protection: Protection,
    /// Time at which it is switched on; from the start if not given.
    pub activate_at: Option<Span>,
}

#[derive(Clone, Debug)]
pub struct TrafficSetup {
    pub name: String,
    pub transport: TransportSetup,
    pub work: Workload,
    /// Bytes with which the receiver answers; the flow is complete when they have come.
    pub reply: u64,
    /// A flow's time is the sender's: from its first data, behind the handshake, until the last of it is acknowledged. TCP
    /// without a reply.
    pub acknowledged: bool,
    pub class: u8,
    /// Class of acknowledgements and notifications of RDMA; that of the data if not given.
    pub ack_class: Option<u8>,
    /// Flows between two hosts share this many queue pairs or TCP connections, each flow a message or a part of the stream; if not
    /// given, each has its own.
    pub queue_pairs: Option<u32>,
}

impl TrafficSetup {
    /// Flows that are complete when they have arrived, all of the first class, each with a connection of its own.
    pub fn new(name: &str, transport: TransportSetup, work: Workload) -> Self {
        let name = name.to_owned();
        Self { name, transport, work, reply: 0, acknowledged: false, class: 0, ack_class: None, queue_pairs: None }
    }
}

/// Values that are sampled during the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampling {
    pub every: Span,
    pub ports: Vec<DirectedLink>,
}
