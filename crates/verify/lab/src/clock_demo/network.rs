//! The eight clocks, their links and their plan; what kills them and heals them.

mod stops;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clock::graph::{FailureDomain, Graph, GraphLink, GraphNode};
use clock::plan::{ClockPlan, PlanFile, PlanRequest, plan};
use daemon::RunDirectory;
use linux::SystemError;
use linux::clock::{Clock, random};
use timekeeper::{
    ClockControlReply, ClockControlRequest, ClockDuties, ClockReader, ClockState, ClockStatus, ask_clock, clock_page,
};
use units::StopFlag;

use super::forge::{ForgedFrames, forge};
use super::{ClockDemoPlan, KillKind};
use crate::soak::process::{end_with_this_thread, prefer};
use crate::stage::{GraphStage, cable_end};

/// Corners of a cube.
pub(super) const NODES: usize = 8;
/// Rate by which each oscillator runs faster, in parts per billion.
const OSCILLATORS: [i64; NODES] = [100_000, -100_000, 70_000, -40_000, 20_000, -75_000, 99_000, -5_000];
/// Nodes that fail together: two racks. With any root there is a plan that survives them.
const DOMAINS: [(&str, [usize; 2]); 2] = [("rack0", [0, 1]), ("rack3", [6, 7])];

/// Edges of the cube.
pub(super) fn edges() -> Vec<[usize; 2]> {
    (0..NODES).flat_map(|node| [1, 2, 4].map(|bit| [node, node ^ bit])).filter(|[one, other]| one < other).collect()
}

/// The cube with the names of its interfaces on a [`GraphStage`].
pub(super) fn cube() -> Result<Graph, SystemError> {
    let in_words = |error: &dyn std::fmt::Display| SystemError(format!("the cube: {error}"));
    let names = (0..NODES).map(|node| format!("h{node}"));
    let edges = edges();
    let links = edges.iter().map(|ends| ends.map(|end| end as u32));
    let ports = (0..edges.len()).map(|link| Some([0, 1].map(|end| cable_end(link, end).into_boxed_str())));
    let graph = Graph::new(names, links).map_err(|error| in_words(&error))?;
    let domain = |(name, nodes): (&str, [usize; 2])| FailureDomain {
        name: name.to_owned(),
        nodes: nodes.map(|node| GraphNode(node as u32)).to_vec(),
        links: Vec::new(),
    };
    let graph = graph.with_domains(DOMAINS.map(domain).to_vec()).map_err(|error| in_words(&error))?;
    Ok(graph.with_ports(ports.collect()))
}

/// A plan with this root.
pub(super) fn planned(graph: &Graph, root: usize) -> Result<ClockPlan, SystemError> {
    let request = PlanRequest { root: Some(GraphNode(root as u32)), ..PlanRequest::default() };
    plan(graph, &request).map_err(|error| SystemError(format!("a plan for the cube: {error}")))
}

/// Nodes and cables of one kill.
#[derive(Clone, Debug, Default)]
pub(super) struct KillTargets {
    pub(super) what: String,
    /// The root is among it.
    pub(super) root: bool,
    nodes: Vec<usize>,
    cables: Vec<usize>,
}

/// Clocks that run. They end when dropped.
pub(super) struct ClockNetwork<'a> {
    graph: Graph,
    stage: GraphStage,
    plan: ClockPlan,
    directory: RunDirectory,
    folder: PathBuf,
    program: &'a dyn Fn() -> Command,
    interval: Duration,
    key: Option<PathBuf>,
    daemons: Vec<Option<Child>>,
    elections: u64,
    forged: ForgedFrames,
}

impl Drop for ClockNetwork<'_> {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            kill(daemon);
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn kill(daemon: &mut Option<Child>) {
    if let Some(mut daemon) = daemon.take() {
        // One that has ended already cannot be killed.
        let _ = daemon.kill();
        let _ = daemon.wait();
    }
}

/// A key of its own, for its owner only.
fn write_key(folder: &Path) -> Result<PathBuf, SystemError> {
    let path = folder.join("key");
    let in_words = |error: std::io::Error| SystemError(format!("{}: {error}", path.display()));
    let mut file =
        fs::File::options().create(true).truncate(true).write(true).mode(0o600).open(&path).map_err(in_words)?;
    writeln!(file, "{:032x}", random().map_err(in_words)?).map_err(in_words)?;
    Ok(path)
}

impl<'a> ClockNetwork<'a> {
    pub(super) fn start(demo: &ClockDemoPlan, program: &'a dyn Fn() -> Command) -> Result<Self, SystemError> {
        let graph = cube()?;
        let plan = ClockPlan { epoch: 1, ..planned(&graph, 0)? };
        let folder = std::env::temp_dir().join(format!("hitless-clocks-{}", std::process::id()));
        let directory = RunDirectory::at(&folder);
        directory.make().map_err(|error| SystemError(format!("{}: {error}", folder.display())))?;
        let mut network = Self {
            stage: GraphStage::new(NODES, &edges())?,
            graph,
            plan,
            directory,
            program,
            interval: demo.interval,
            key: demo.key.then(|| write_key(&folder)).transpose()?,
            folder,
            daemons: (0..NODES).map(|_| None).collect(),
            elections: 0,
            forged: ForgedFrames::default(),
        };
        network.write_plan()?;
        (0..NODES).try_for_each(|node| network.start_daemon(node))?;
        Ok(network)
    }

    /// Gives a node its part of the plan.
    fn plan_for(&self, node: usize) -> Result<ClockControlRequest, SystemError> {
        let duties = ClockDuties::of(&PlanFile::of(&self.plan, &self.graph), self.name(node));
        Ok(ClockControlRequest::Plan(Box::new(duties.map_err(|error| SystemError(error.0))?)))
    }

    fn plan_path(&self) -> PathBuf {
        self.folder.join("plan.json")
    }

    fn write_plan(&self) -> Result<(), SystemError> {
        let file = PlanFile::of(&self.plan, &self.graph);
        let text = serde_json::to_string_pretty(&file).map_err(|error| SystemError(error.to_string()))?;
        fs::write(self.plan_path(), text)
            .map_err(|error| SystemError(format!("{}: {error}", self.plan_path().display())))
    }

    fn start_daemon(&mut self, node: usize) -> Result<(), SystemError> {
        let mut command = (self.program)();
        command.args(["clock", "up", "--node", self.name(node), "--plan"]).arg(self.plan_path());
        command.args(["--interval", &format!("{}us", self.interval.as_micros())]);
        command.args(["--oscillator", &OSCILLATORS[node].to_string()]);
        command.args(self.key.iter().flat_map(|key| [OsStr::new("--key"), key.as_os_str()]));
        for (there, link) in self.graph.neighbours(GraphNode(node as u32)) {
            let port = self.graph.port(*link, GraphNode(node as u32)).unwrap_or_default();
            command.args(["--link", &format!("{}={port}", self.graph.name(*there))]);
        }
        let log =
            fs::File::options().create(true).append(true).open(self.folder.join(format!("{}.said", self.name(node))));
        let log = log.map_err(|error| SystemError(format!("{}: {error}", self.folder.display())))?;
        command.env("HITLESS_RUN_DIR", &self.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // Ctrl-C is for this process, which then ends them.
        command.process_group(0);
        end_with_this_thread(&mut command);
        prefer(&mut command);
        self.stage.host(node).prepare(&mut command)?;
        let daemon = command.spawn().map_err(|error| SystemError(format!("start a clock: {error}")))?;
        self.daemons[node] = Some(daemon);
        Ok(())
    }

    fn name(&self, node: usize) -> &str {
        self.graph.name(GraphNode(node as u32))
    }

    /// Readers of all pages, which are there once the clocks are.
    pub(super) fn pages(&self) -> Result<Vec<ClockReader>, SystemError> {
        let open = |node: usize| {
            let path = clock_page(&self.directory, self.name(node));
            ClockReader::open(&path).map_err(|error| SystemError(format!("{}: {error}", path.display())))
        };
        (0..NODES).map(open).collect()
    }

    fn status(&self, node: usize) -> Option<ClockStatus> {
        match ask_clock(&self.directory, self.name(node), &ClockControlRequest::Status) {
            Ok(ClockControlReply::Status(status)) => Some(*status),
            _ => None,
        }
    }

    /// Every clock listens to its parent, and the root is the plan's.
    pub(super) fn wait_until_as_planned(
        &mut self,
        patience: Duration,
        stop: &StopFlag,
        look: &dyn Fn(),
    ) -> Result<(), SystemError> {
        let (clock, mut said) = (Clock::start(), Duration::ZERO);
        loop {
            let late = (0..NODES).find(|node| !self.is_as_planned(*node));
            let Some(late) = late else { return Ok(()) };
            if stop.is_stopped() {
                return Ok(());
            }
            if clock.elapsed() > patience {
                return Err(self.complaint(late));
            }
            std::thread::sleep(5 * self.interval);
            if clock.elapsed() > said + 100 * self.interval {
                // A false alarm on a busy machine.
                said = clock.elapsed();
                self.replan(look)?;
            }
        }
    }

    fn complaint(&self, node: usize) -> SystemError {
        let name = self.name(node);
        let said = fs::read_to_string(self.folder.join(format!("{name}.said"))).unwrap_or_default();
        let said: Vec<&str> = said.lines().rev().take(4).collect();
        let state = self.status(node).map_or("it does not answer".to_owned(), |status| status.state.to_string());
        SystemError(format!("{name} does not listen to its parent: {state}; it said: {}", said.join(" | ")))
    }

    fn is_as_planned(&self, node: usize) -> bool {
        let parent = self.plan.parent[node].map(|uplink| self.graph.name(uplink.node).to_owned());
        self.status(node).is_some_and(|status| {
            let heard = status.heard_us_ago.is_some_and(|us| us < 1e5);
            match &parent {
                None => matches!(status.state, ClockState::Root),
                Some(_) => status.state == ClockState::Following && status.listens_to == parent && heard,
            }
        })
    }

    /// Kills one thing of a kind.
    pub(super) fn kill(&mut self, kind: KillKind, number: u32) -> Result<KillTargets, SystemError> {
        let root = self.plan.root.index();
        let backup_root = self.plan.backup_root.index();
        let pick = |from: Vec<usize>| from[number as usize / KillKind::ALL.len() % from.len()];
        let killed = match kind {
            KillKind::Link => {
                let node = pick((0..NODES).filter(|node| *node != root).collect());
                let GraphLink(link) = self.plan.parent[node].map_or(GraphLink(0), |uplink| uplink.link);
                let what = format!("link {}", self.graph.link_name(GraphLink(link)));
                KillTargets { what, cables: vec![link as usize], ..KillTargets::default() }
            }
            KillKind::Node => {
                let inner = |node: &usize| self.plan.parent.iter().flatten().any(|uplink| uplink.node.index() == *node);
                let node =
                    pick((0..NODES).filter(|node| *node != root && *node != backup_root && inner(node)).collect());
                KillTargets { what: format!("node {}", self.name(node)), nodes: vec![node], ..KillTargets::default() }
            }
            KillKind::Domain => {
                // One that spares the root: that is the next kind's.
                let spares = |(_, nodes): &&(&str, [usize; 2])| !nodes.contains(&root);
                let (name, nodes) = DOMAINS.iter().find(spares).unwrap_or(&DOMAINS[0]);
                let what = format!("domain {name} ({}, {})", self.name(nodes[0]), self.name(nodes[1]));
                KillTargets { what, nodes: nodes.to_vec(), ..KillTargets::default() }
            }
            KillKind::Root => {
                let what = format!("root {}", self.name(root));
                KillTargets { what, root: true, nodes: vec![root], ..KillTargets::default() }
            }
            KillKind::Forged => return self.forge(root),
        };
        for node in &killed.nodes {
            // All at once: who is dead is waited for later.
            self.daemons[*node].as_mut().map_or(Ok(()), Child::kill).map_err(|error| SystemError(error.to_string()))?;
        }
        for cable in &killed.cables {
            self.stage.set_cable(*cable, false)?;
        }
        killed.nodes.iter().for_each(|node| kill(&mut self.daemons[*node]));
        Ok(killed)
    }

    /// Forges frames in the name of a child of the root.
    fn forge(&mut self, root: usize) -> Result<KillTargets, SystemError> {
        let uplink = |node: &usize| self.plan.parent[*node].filter(|uplink| uplink.node.index() == root);
        let child = (0..NODES).find_map(|node| Some((node, uplink(&node)?.link)));
        let (child, link) = child.ok_or_else(|| SystemError("nobody listens to the root".to_owned()))?;
        let what = format!("frames to the root {} were forged in the name of {}", self.name(root), self.name(child));
        let refused = |status: &ClockStatus| {
            let counted = |name: &str| status.counters.get(name).copied().unwrap_or(0);
            counted("forged") + counted("replayed") + counted("unsealed")
        };
        let before = self.status(root).as_ref().map_or(0, refused);
        let end =
            |node: usize| (self.stage.host(node), self.graph.port(link, GraphNode(node as u32)).unwrap_or_default());
        let sent = forge([end(root), end(child)], self.plan.epoch)?;
        let clock = Clock::start();
        let after = loop {
            std::thread::sleep(10 * self.interval);
            let after = self.status(root);
            let refused = after.as_ref().map_or(before, refused).saturating_sub(before);
            // Without a key there is nothing to wait for.
            if self.key.is_none() || refused >= sent || clock.elapsed() > Duration::from_secs(3) {
                self.forged.refused += refused;
                break after;
            }
        };
        self.forged.sent += sent;
        self.forged.roots_removed += u64::from(after.is_none_or(|status| status.state != ClockState::Root));
        Ok(KillTargets { what, ..KillTargets::default() })
    }

    /// Forged frames so far, and their effects.
    pub(super) fn forged(&self) -> ForgedFrames {
        self.forged
    }

    /// Waits until all that live hear a root again; the longest that one heard nothing, in milliseconds. If somebody never did,
    /// who, and what it was doing.
    pub(super) fn wait_until_recovered(
        &self,
        killed: &KillTargets,
        patience: Duration,
        stop: &StopFlag,
    ) -> Result<f64, String> {
        let clock = Clock::start();
        // No earlier than a turn takes, or a wave that was on its way would be taken for one of after.
        let turned = 8 * self.interval;
        std::thread::sleep(turned);
        let living = (0..NODES).filter(|node| !killed.nodes.contains(node));
        let mut longest: f64 = 0.0;
        for node in living {
            loop {
                let heard_within = clock.elapsed().saturating_sub(turned / 2);
                let status = self.status(node).filter(|status| {
                    let is_root = matches!(status.state, ClockState::Root | ClockState::Elected);
                    is_root || status.heard_us_ago.is_some_and(|us| us < heard_within.as_secs_f64() * 1e6 && us < 1e5)
                });
                if let Some(status) = status {
                    longest = longest.max(status.silence_us / 1e3);
                    break;
                }
                if clock.elapsed() > patience || stop.is_stopped() {
                    return Err(self.why_silent(node));
                }
                std::thread::sleep(self.interval);
            }
        }
        Ok(longest)
    }

    fn why_silent(&self, node: usize) -> String {
        let name = self.name(node);
        match self.status(node) {
            None => format!("{name} does not answer"),
            Some(ClockStatus { state, listens_to: Some(there), .. }) => {
                format!("{name} is {state}, listens to {there}")
            }
            Some(ClockStatus { state, .. }) => format!("{name} is {state}"),
        }
    }

    /// Restarts the killed daemons, and sends everybody a plan. `look` sees the pages before each change.
    pub(super) fn heal(&mut self, killed: &KillTargets, look: &dyn Fn()) -> Result<(), SystemError> {
        for cable in &killed.cables {
            self.stage.set_cable(*cable, true)?;
            self.stage.wait_until_running(*cable)?;
        }
        // A root that was killed would not be believed: the plan is made before it is back.
        self.replan(look)?;
        killed.nodes.iter().try_for_each(|node| self.start_daemon(*node))?;
        self.tell_plan(look)
    }

    /// The controller: everybody gets the plan again, or one with the root that has taken over, or a new beginning with the same
    /// root if nobody is one.
    fn replan(&mut self, look: &dyn Fn()) -> Result<(), SystemError> {
        let states: Vec<Option<ClockState>> = (0..NODES).map(|node| Some(self.status(node)?.state)).collect();
        let elected = states.iter().position(|state| *state == Some(ClockState::Elected));
        self.elections += u64::from(elected.is_some());
        let root = self.plan.root.index();
        let root = match (elected, states[root]) {
            (Some(elected), _) => Some(elected),
            (None, Some(ClockState::Root)) => None,
            (None, _) => Some(root),
        };
        if let Some(root) = root {
            self.plan = ClockPlan { epoch: self.plan.epoch + 1, ..planned(&self.graph, root)? };
            self.write_plan()?;
        }
        self.tell_plan(look)
    }

    /// Listeners first, the root last.
    fn tell_plan(&self, look: &dyn Fn()) -> Result<(), SystemError> {
        let mut nodes: Vec<usize> = (0..NODES).collect();
        nodes.sort_by_key(|node| std::cmp::Reverse(self.plan.depth[*node]));
        for node in nodes {
            look();
            let request = self.plan_for(node)?;
            // One that has just been started reads the same file.
            if let Ok(ClockControlReply::Refused(why)) = ask_clock(&self.directory, self.name(node), &request) {
                return Err(SystemError(format!("{}: {why}", self.name(node))));
            }
        }
        Ok(())
    }

    /// Backup roots that had taken over when the plan was said again.
    pub(super) fn elections(&self) -> u64 {
        self.elections
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_corner_of_the_cube_can_be_the_root_of_a_plan_that_covers_all() {
        let graph = cube().unwrap();
        for root in 0..NODES {
            let plan = planned(&graph, root).unwrap();
            assert!(plan.is_complete() && plan.uncovered.is_empty(), "h{root}");
            assert!((3..=4).contains(&plan.max_depth()), "h{root}");
        }
    }
}
