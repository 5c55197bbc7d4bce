//! Scenario files: one TOML file that says what to simulate.
//!
//! ```toml
//! [topology]
//! kind = "testbed"
//! rate = "100G"
//!
//! [[link]]
//! between = ["sw2", "sw6"]
//! protect = ["none", "ordered"]      # a list where one value is expected: a sweep
//! forward = [{ loss = "1e-3" }]
//!
//! [[traffic]]
//! transport = "dctcp"
//! work = "series"
//! from = "h4"
//! to = "h8"
//! size = 24387
//! count = 5000
//! ```
//!
//! From text to simulation, each step in its own file:
//!
//! | file | what it does |
//! | --- | --- |
//! | crate `settings` | text to values with their lines, `--set`, sweeps, readers |
//! | `keys`, `effect` | which keys a scenario has; which of them had an effect |
//! | `fabric`, `files`, `links`, `faulty`, `meters`, `pl2`, `traffic`, `work`, `jobs`, `plan` | tables to a [`NetworkSetup`] |
//!
//! Each transport and link protocol reads its own keys, in its own file: [`sim::net::transports`], [`sim::protocols`].
//!
//! Everything that can be wrong is found before anything runs: each point's setup is made once to see whether it can
//! be.

pub mod bench;
mod effect;
mod error;
mod fabric;
mod faulty;
mod files;
mod jobs;
mod keys;
mod links;
mod meters;
mod pl2;
mod plan;
mod profile;
mod telemetry;
#[cfg(test)]
mod tests;
mod traffic;
mod work;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use collective::RowChoice;
use plan::TrafficPlan;
use serde::Serialize;
use settings::tree::{self, TreeNode, Value};
use settings::{ReadResult, SettingsReader, UsedKeys, set, sweep};
use sim::net::{FaultyRule, LONGEST_SPAN, NetworkSetup, Sampling, metering, transports};
use sim::topology::{DirectedLink, LossyTopology, Topology};
use units::{Rate, Span, Time};
use wire::ethernet::MIN_FRAME;

pub use error::ScenarioError;
pub use jobs::JobDescription;
pub use settings::Seeds;
pub use settings::SettingsDocument;

/// Everything that one file asks for.
///
/// ```
/// use units::Unwatched;
/// use sim::net;
/// use scenario::Scenario;
///
/// let text = "
///     topology = { kind = 'dumbbell', pairs = 1, rate = '10G' }
///     [[link]]
///     between = ['left', 'right']
///     protect = ['none', 'ordered'] # a list is a sweep, here of two points
///     loss = '0.01'
///     [[traffic]]
///     transport = 'dctcp'
///     work = 'series'
///     from = 'h0'
///     to = 'h1'
///     size = 1_000_000
///     count = 10
/// ";
/// let scenario = Scenario::parse("example.toml", text, &[])?;
/// let [plain, guarded] = [0, 1].map(|at| net::run(scenario.points[at].setup(1), &Unwatched));
/// let retransmitted = |flow: &net::FlowRow| flow.tally.retransmitted;
/// assert!(plain?.flows.iter().map(retransmitted).sum::<u32>() > 0);
/// assert_eq!(guarded?.flows.iter().map(retransmitted).sum::<u32>(), 0, "TCP notices nothing");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    /// Points in the order of the file; the last list of a sweep changes fastest.
    pub points: Vec<SweepPoint>,
}

/// One combination of a sweep's values, or the only one.
#[derive(Clone, Debug)]
pub struct SweepPoint {
    /// Number among the scenario's points, from 1.
    pub number: usize,
    /// `protect=ordered loss=1e-3`; empty if the file has no lists.
    pub label: String,
    pub seeds: Seeds,
    /// Warnings for the user, before it runs.
    pub warnings: Vec<String>,
    config: TreeNode,
    /// All that no seed changes.
    frame: NetworkSetup,
    traffic: Vec<traffic::TrafficTemplate>,
    watched: Vec<DirectedLink>,
}

/// Parts of the scenario that traffic depends on.
#[derive(Debug)]
struct TrafficContext<'a> {
    topology: &'a Topology,
    until: Span,
    until_given: bool,
    /// Folder of the scenario's file.
    folder: &'a Path,
}

/// Limit for a scenario in which everything ends by itself: it only guards against flows that never get through.
const LONGEST_WITHOUT_UNTIL: Span = Span::from_ms(3_600_000);

const MOST_SAMPLES: u64 = 10_000_000;

impl Scenario {
    /// Reads a file's text and what the command line says instead of it; finds everything that is wrong with them.
    pub fn parse(file: &str, text: &str, sets: &[String]) -> Result<Self, ScenarioError> {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let scenario = TreeNode::parse(text).and_then(|root| read(root, sets, folder));
        scenario.map_err(|wrong| ScenarioError { file: file.to_owned(), wrong })
    }

    /// Reads scenarios that are not written as TOML, one after the other.
    pub fn of_configs(file: &str, configs: Vec<SettingsDocument>, sets: &[String]) -> Result<Self, ScenarioError> {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let mut all = Self { name: String::new(), points: Vec::new() };
        for SettingsDocument(root) in configs {
            let scenario = read(root, sets, folder);
            let Self { name, points } = scenario.map_err(|wrong| ScenarioError { file: file.to_owned(), wrong })?;
            all.name = name;
            all.points.extend(points);
        }
        all.points.iter_mut().zip(1..).for_each(|(point, number)| point.number = number);
        Ok(all)
    }
}

impl Scenario {
    /// Warnings for the user, each once.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        let unique: BTreeSet<&str> = self.points.iter().flat_map(|point| &point.warnings).map(String::as_str).collect();
        unique.into_iter()
    }
}

fn read(mut root: TreeNode, sets: &[String], folder: &Path) -> ReadResult<Scenario> {
    // Before what the command line says, so that a mistake in the file is not blamed on it.
    settings::keys::check(&root, keys::SCENARIO, "")?;
    for argument in sets {
        set::apply(&mut root, keys::SCENARIO, argument)?;
    }
    settings::keys::check(&root, keys::SCENARIO, "")?;
    let combinations = sweep::expand(&root, keys::SCENARIO)?;
    let mut used = BTreeSet::new();
    let (mut points, mut trees) = (Vec::new(), Vec::new());
    let mut name = None;
    for sweep::Combination { label, tree } in combinations {
        let used_here = UsedKeys::default();
        let filled = profile::filled(&tree)?;
        let reader = SettingsReader::new(&filled, &used_here);
        name = reader.text("name")?;
        let label = [reader.text("label")?, Some(label)].into_iter().flatten().filter(|part| !part.is_empty());
        let label = label.collect::<Vec<_>>().join(" ");
        let mut point = point(&reader, points.len() + 1, label, folder)?;
        point.setup(1);
        let used_here = used_here.into_inner();
        point.config = effect::used_only(&filled, "", &used_here);
        points.push(point);
        used.extend(used_here);
        trees.push(tree);
    }
    match trees.iter().find_map(|tree| effect::unused(tree, "", &used)) {
        Some(wrong) => Err(wrong),
        None => Ok(Scenario { name: name.unwrap_or_default(), points }),
    }
}

fn point(reader: &SettingsReader<'_>, number: usize, label: String, folder: &Path) -> ReadResult<SweepPoint> {
    let LossyTopology { mut topology, losses } = fabric::topology(&reader.table("topology"), folder)?;
    let link_tables = reader.tables("link");
    let mut placed = Vec::new();
    for table in &link_tables {
        placed.push(links::place(table, &mut topology, &placed)?);
    }
    let run = reader.table("run");
    let until = run.span("until", Span::from_ps(1)..=LONGEST_SPAN)?;
    let profile = profile::read(&run)?;
    let mut traffic = traffic_of(reader, &topology, until, folder)?;
    profile::frame(profile, &mut traffic);
    let longest = traffic.iter().map(|kind| kind.transport.sizes().longest).max().unwrap_or_default().max(MIN_FRAME);
    let (mut links, mut rates) = (Vec::new(), Vec::new());
    for (table, of_table) in link_tables.iter().zip(placed) {
        let reported: Option<Rate> = table.parsed("int_rate")?;
        for link in of_table {
            rates.extend(reported.into_iter().flat_map(|rate| [(link.forward(), rate), (link.backward(), rate)]));
            links.push(links::read(table, &topology, &losses, link, longest)?);
        }
    }
    links::add_lossy(&mut links, &losses);
    let usual_latency = fabric::usual_latency(&reader.table("topology"))?;
    let switches = fabric::switches(&reader.table("switch"), &topology, usual_latency)?;
    let host = reader.table("host");
    let host_latency = fabric::host_latency(&host)?;
    let latencies = telemetry::NodeLatencies { switch: switches.latency, host: host_latency.typical() };
    let support = telemetry::read(reader, &topology, (latencies, profile), rates, &mut traffic)?;
    let until = until.unwrap_or(LONGEST_WITHOUT_UNTIL);
    let measure = reader.table("measure");
    let captured = captured(&measure, &topology)?;
    let radar = meters::read(reader.inner("radar").as_ref(), &topology, until)?;
    let queues = measure.flag("queues")?.unwrap_or(false);
    let watched = ports(&measure, "watch", &topology)?;
    let site = pl2::RackSite {
        topology: &topology,
        switches: &switches.settings,
        repeats: switches.repeat.is_some(),
        longest,
    };
    let rack = pl2::read(reader, &site)?;
    let frame = NetworkSetup {
        profile,
        switches: switches.settings,
        marking: switches.marking,
        repeat: switches.repeat,
        int: support.int,
        base_rtt: support.base_rtt,
        rtt: measure.flag("rtt")?.unwrap_or(false),
        rows: jobs::rows(&measure)?,
        radar,
        rack,
        dead: pl2::dead(reader, &topology)?,
        switch_latency: switches.latency,
        host_latency,
        processor: fabric::processor(&host)?,
        handshakes: traffic::handshakes(&host, &traffic)?,
        fins: host.flag("fin")?.unwrap_or(false),
        links,
        rules: rules(reader, &topology)?,
        until: Time::ZERO + until,
        sampling: sampling(&measure, &watched, queues, until)?,
        queues,
        capture: captured,
        ..NetworkSetup::new(topology)
    };
    let (seeds, mut warnings) = (seeds(&run)?, support.warnings);
    warnings.extend(pl2::warning(&frame));
    Ok(SweepPoint { number, label, seeds, warnings, config: TreeNode::empty(), frame, traffic, watched })
}

/// Blackholes and detours; of two that concern the same packets, the first counts.
fn rules(reader: &SettingsReader<'_>, topology: &Topology) -> ReadResult<Vec<FaultyRule>> {
    let holes = reader.tables("blackhole");
    let holes = holes.iter().map(|table| faulty::blackhole(table, topology));
    let detours = reader.tables("detour");
    holes.chain(detours.iter().map(|table| faulty::detour(table, topology))).collect()
}

fn traffic_of(
    reader: &SettingsReader<'_>,
    topology: &Topology,
    until: Option<Span>,
    folder: &Path,
) -> ReadResult<Vec<traffic::TrafficTemplate>> {
    let around = TrafficContext {
        topology,
        until: until.unwrap_or(LONGEST_WITHOUT_UNTIL),
        until_given: until.is_some(),
        folder,
    };
    let tables = reader.tables("traffic");
    if tables.is_empty() {
        return Err(reader.wrong("traffic", "missing: expected at least one [[traffic]]"));
    }
    let mut names = Vec::new();
    let mut kinds = Vec::new();
    for (number, table) in tables.iter().enumerate() {
        names.push(traffic::name(table, number, &names)?);
        kinds.push(traffic::read(table, names[number].clone(), transports::read(table)?, &around)?);
    }
    traffic::check_pools(&tables, &kinds)?;
    traffic::check_grants(&tables, &kinds)?;
    traffic::check_loads(&tables, &kinds, &around)?;
    Ok(kinds)
}

fn seeds(run: &SettingsReader<'_>) -> ReadResult<Seeds> {
    let Some(seeds) = run.several("seeds")? else { return Ok(Seeds::default()) };
    let text = seeds.join(",");
    text.parse().map_err(|error| run.wrong("seeds", format_args!("'{text}': {error}")))
}

/// Ports that are watched are sampled, unless it is for the length of their queues.
fn sampling(
    measure: &SettingsReader<'_>,
    watched: &[DirectedLink],
    queues: bool,
    until: Span,
) -> ReadResult<Option<Sampling>> {
    let every = measure.span("sample", Span::from_ps(1)..=LONGEST_SPAN)?;
    let Some(every) = every else {
        let missing = || measure.wrong("sample", "missing: expected how often to look at what is watched, such as 1ms");
        return if watched.is_empty() || queues { Ok(None) } else { Err(missing()) };
    };
    if until.as_ps() / every.as_ps() > MOST_SAMPLES {
        let problem = format!("expected at most {MOST_SAMPLES} samples in {until}, the time given by until in [run]");
        return Err(measure.wrong("sample", problem));
    }
    Ok(Some(Sampling { every, ports: watched.to_vec() }))
}

/// Directions of every link whose packets are kept.
fn captured(measure: &SettingsReader<'_>, topology: &Topology) -> ReadResult<Vec<DirectedLink>> {
    let ports = ports(measure, "pcap", topology)?;
    Ok(ports.into_iter().flat_map(|port| [port, port.reversed()]).collect())
}

fn ports(measure: &SettingsReader<'_>, key: &str, topology: &Topology) -> ReadResult<Vec<DirectedLink>> {
    let port = |[from, to]: [String; 2]| topology.link_between(&from, &to).map_err(|error| measure.wrong(key, error));
    measure.pairs(key)?.into_iter().map(port).collect()
}

impl SweepPoint {
    /// Setup of the simulation with this seed.
    pub fn setup(&self, seed: u64) -> NetworkSetup {
        let traffic = self.traffic.iter().enumerate().map(|(number, kind)| kind.traffic(number, seed));
        NetworkSetup { traffic: traffic.collect(), seed, ..self.frame.clone() }
    }

    pub fn topology(&self) -> &Topology {
        &self.frame.topology
    }

    /// Names of the traffic, by number.
    pub fn traffic_names(&self) -> impl Iterator<Item = &str> {
        self.traffic.iter().map(|kind| kind.name.as_str())
    }

    /// True if switches write telemetry on data packets.
    pub fn has_telemetry(&self) -> bool {
        self.frame.int.is_some()
    }

    /// T of congestion control, if any traffic has a controller: the longest round trip without queues.
    pub fn base_rtt(&self) -> Option<Span> {
        self.frame.base_rtt
    }

    /// True if values are sampled during the run.
    pub fn is_sampled(&self) -> bool {
        self.frame.sampling.is_some()
    }

    /// The job that traffic of this number is.
    pub fn job(&self, traffic: usize) -> Option<JobDescription<'_>> {
        let template = self.traffic.get(traffic)?;
        match &template.plan {
            TrafficPlan::Job(job) => Some(JobDescription::of(&template.name, job)),
            _ => None,
        }
    }

    /// Rows that jobs keep.
    pub fn rows(&self) -> RowChoice {
        self.frame.rows
    }

    /// Ports that are looked at.
    pub fn watched(&self) -> &[DirectedLink] {
        &self.watched
    }

    /// True if the lengths of queues are measured.
    pub fn measures_queues(&self) -> bool {
        self.frame.queues
    }

    /// Ports whose packets are kept; both of a link, next to each other.
    pub fn captured(&self) -> &[DirectedLink] {
        &self.frame.capture
    }

    /// Meters, if there are any.
    pub fn radar(&self) -> Option<&metering::MeteringConfig> {
        self.frame.radar.as_ref()
    }

    /// A scenario that gives this point with these seeds again: what the file and the command line said and had an effect,
    /// with this point's values in place of lists.
    pub fn config(&self, seeds: &[u64]) -> impl Serialize + Clone + fmt::Debug + use<> {
        let mut config = self.config.clone();
        if !self.label.is_empty() {
            config.put(&["label"], Value::Text(self.label.clone()));
        }
        let seeds = seeds.iter().map(|seed| self.config.beside(tree::number(*seed))).collect();
        config.put(&["run", "seeds"], Value::List(seeds));
        settings::keys::sort(&mut config, keys::SCENARIO);
        config
    }
}
