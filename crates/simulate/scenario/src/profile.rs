//! `[run] profile = "hpcc-ns3"`: a network that counts as the ns-3 simulator of HPCC's authors does.
//!
//! Most of it changes the defaults of keys to those of the authors' `run.py` at 100G; a key in the file overrides them. The
//! profile sets the rest itself: framing, equal paths and ideal times (`sim::net::NetworkProfile`). T, W_init and the additive
//! step follow from the topology and are the same for all pairs of hosts.

use congestion::ControllerConfig;
use congestion::hpcc::IntForm;
use roce::RdmaFraming;
use settings::tree::{TreeNode, Value};
use settings::{ReadResult, SettingsReader};
use sim::net::{HpccNs3Path, NetworkProfile};
use sim::topology::{Routes, Topology};
use units::{Rate, Span};
use wire::int::IntWord;

use crate::telemetry::one_host_of_each_kind;
use crate::traffic::TrafficTemplate;

const PROFILES: [(&str, NetworkProfile); 2] =
    [("ethernet", NetworkProfile::Ethernet), ("hpcc-ns3", NetworkProfile::HpccNs3)];

const SWITCH: &str = r#"
latency = "0ns"
buffer = "32MiB"
pfc = { alpha = 0.125, per_rate = true, headroom = "auto", hysteresis = "3KB" }
"#;

const MARKING: &str = r#"ecn = { min = "100KB", max = "400KB", probability = 0.2, per = "25G", at = "departure" }"#;

const MARKING_POINT: &str = r#"ecn = { at = "departure" }"#;

/// DCTCP marks above one threshold, 30 KB at 10G.
const STEP_MARKING: &str = r#"ecn = { min = "30KB", max = "30KB", probability = 1.0, per = "10G", at = "departure" }"#;

const TELEMETRY: &str = "int = true";

const RDMA: &str = r#"
mtu = 1000
ack_every = 1
hpcc = { min_rate = "1G" }
dcqcn = { cnp = "echo", min_rate = "1G" }
timely = { min_rate = "1G" }
dctcp = { min_rate = "1G" }
"#;

/// Bytes of TIMELY's time stamp in every data packet. It fits into the padding of acknowledgements.
const TIME_STAMP: u16 = 8;

/// HPCC's additive step of run.py, for a NIC of 25G.
const ADDITIVE_STEP: Rate = Rate::from_bits_per_second(10_000_000);
const STEP_IS_FOR: Rate = Rate::gbps(25);

pub(crate) fn read(run: &SettingsReader<'_>) -> ReadResult<NetworkProfile> {
    Ok(run.choice("profile", &PROFILES)?.unwrap_or_default())
}

/// A copy of the scenario with the profile's defaults for absent keys.
pub(crate) fn filled(scenario: &TreeNode) -> ReadResult<TreeNode> {
    let mut scenario = scenario.clone();
    let profile = scenario.entry("run").and_then(|run| run.entry("profile")).map(ToString::to_string);
    if profile.as_deref() != Some("hpcc-ns3") {
        return Ok(scenario);
    }
    let Some(Value::List(mut tables)) = scenario.entry("traffic").map(|tables| tables.value.clone()) else {
        return Ok(scenario);
    };
    let mut controllers = Vec::new();
    for table in &mut tables {
        let says = |key: &str, value: &str| table.entry(key).is_some_and(|said| said.to_string() == value);
        if says("transport", "rdma") {
            controllers.extend(["hpcc", "dctcp"].into_iter().filter(|name| says("congestion", name)));
            fill(table, &TreeNode::parse(RDMA)?);
        }
    }
    scenario.put(&["traffic"], Value::List(tables));
    let mut defaults = TreeNode::empty();
    defaults.put(&["switch"], switch(&scenario, &controllers)?.value);
    fill(&mut scenario, &defaults);
    Ok(scenario)
}

/// Default `[switch]` where hosts have these controllers among others.
fn switch(scenario: &TreeNode, controllers: &[&str]) -> ReadResult<TreeNode> {
    // Thresholds that are given are meant as they are, and not per rate.
    let has_marking = scenario.entry("switch").is_some_and(|switch| switch.entry("ecn").is_some());
    let uses = |name| controllers.contains(&name);
    let marking = if uses("dctcp") { STEP_MARKING } else { MARKING };
    let marking = if has_marking { MARKING_POINT } else { marking };
    let telemetry = if uses("hpcc") { TELEMETRY } else { "" };
    TreeNode::parse(&[SWITCH, marking, telemetry].join("\n"))
}

/// Adds entries that a table does not have, and those of tables within.
fn fill(table: &mut TreeNode, defaults: &TreeNode) {
    for (key, default) in defaults.entries() {
        match table.entry(key) {
            None => table.put(&[key], default.value.clone()),
            Some(given) => {
                let mut given = given.clone();
                fill(&mut given, default);
                table.put(&[key], given.value);
            }
        }
    }
}

/// Sets the frame sizes of all traffic to those of the profile.
pub(crate) fn frame(profile: NetworkProfile, traffic: &mut [TrafficTemplate]) {
    if profile != NetworkProfile::HpccNs3 {
        return;
    }
    for kind in traffic {
        let stamped = matches!(kind.transport.congestion(), ControllerConfig::Timely(_));
        if let Some(framing) = kind.transport.framing_mut() {
            *framing = RdmaFraming::HPCC_NS3;
            framing.headers += if stamped { TIME_STAMP } else { 0 };
        }
    }
}

/// T of the profile: of all pairs of hosts the longest.
pub(crate) fn longest_round_trip(topology: &Topology, payload: u32) -> Span {
    let routes = Routes::of(topology);
    let hosts = one_host_of_each_kind(topology);
    let mut path = Vec::new();
    let mut longest = Span::ZERO;
    for (from, to) in hosts.iter().flat_map(|from| hosts.iter().map(move |to| (*from, *to))) {
        if from == to || routes.path(from, to, 0, &mut path).is_err() {
            continue;
        }
        let links = path.iter().map(|at| topology.link(at.link())).map(|link| (link.rate, link.delay));
        longest = longest.max(HpccNs3Path::new(links, payload).round_trip);
    }
    longest
}

/// Sets HPCC's defaults: the authors' rate for the NIC times T as additive step, and their telemetry.
pub(crate) fn set_hpcc(traffic: &mut [TrafficTemplate], topology: &Topology, t: Span) {
    let first = topology.hosts().next();
    let nic = topology.links.iter().find(|link| Some(link.a) == first || Some(link.b) == first);
    let nic = nic.map_or(STEP_IS_FOR, |link| link.rate);
    let telemetry = telemetry(topology, nic);
    let rate =
        ADDITIVE_STEP.bits_per_second() as f64 * nic.bits_per_second() as f64 / STEP_IS_FOR.bits_per_second() as f64;
    for controller in traffic.iter_mut().filter_map(|kind| kind.transport.congestion_mut()) {
        if let ControllerConfig::Hpcc(hpcc) = controller {
            let t = hpcc.t.unwrap_or(t);
            hpcc.w_ai = hpcc.w_ai.or(Some(rate * t.as_secs() / 8.0));
            hpcc.int = hpcc.int.or(telemetry);
        }
    }
}

/// The fields of Fig. 2.7, in units that grow with the NIC; exact where they have no name for a port's rate.
fn telemetry(topology: &Topology, nic: Rate) -> Option<IntForm> {
    let mut ports = topology.directed().filter(|at| !topology.is_host(topology.from(*at)));
    let units = u32::try_from(nic.bits_per_second() / STEP_IS_FOR.bits_per_second()).unwrap_or(1).max(1);
    ports.all(|at| IntWord::names(topology.link(at.link()).rate)).then_some(IntForm::Packed(units))
}
