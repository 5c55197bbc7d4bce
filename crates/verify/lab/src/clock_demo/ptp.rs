//! linuxptp's ptp4l on the same cube, with the files that a plan becomes (`clock::ptp4l`), asked by its own `pmc`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clock::graph::{Graph, GraphNode};
use clock::plan::{ClockPlan, Uplink};
use clock::ptp4l::{Ptp4lVersion, ptp4l_config};
use linux::SystemError;
use linux::clock::Clock;
use serde::Serialize;
use units::StopFlag;

use super::network::{NODES, cube, edges, planned};
use crate::stage::GraphStage;

/// Time that ptp4l may take for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// Outcome of the run with ptp4l.
#[derive(Clone, Debug, Serialize)]
pub struct Ptp4lOutcome {
    /// All listened to their planned parents.
    pub as_planned: bool,
    /// A node whose link was cut listened to its backup parent.
    pub backup_after_cut: bool,
    /// Time that this took.
    pub cut_recovery_ms: f64,
    /// True if all had the planned backup root as their grandmaster after the root's death.
    pub backup_root_after_death: bool,
    /// Time that this took, until the last one.
    pub root_recovery_ms: f64,
}

impl fmt::Display for Ptp4lOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes = |is: bool| if is { "as planned" } else { "NOT as planned" };
        write!(
            f,
            "parents {}, backup parent after a cut {} ({:.0} ms), backup root after the root's death {} ({:.0} ms)",
            yes(self.as_planned),
            yes(self.backup_after_cut),
            self.cut_recovery_ms,
            yes(self.backup_root_after_death),
            self.root_recovery_ms
        )
    }
}

/// None if it is not installed.
pub(super) fn run(stop: &StopFlag) -> Result<Option<Ptp4lOutcome>, SystemError> {
    let is_there = |program: &str| {
        let found = Command::new(program).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
        found.is_ok()
    };
    if !is_there("ptp4l") || !is_there("pmc") {
        return Ok(None);
    }
    let graph = cube()?;
    let plan = planned(&graph, 0)?;
    let mut clocks = Ptp4lNetwork::start(&graph, &plan)?;
    clocks.identify(stop)?;
    let others = |node: &usize| *node != plan.root.index();
    let (as_planned, _) =
        wait_for(stop, || (0..NODES).filter(others).all(|node| clocks.parent(node) == plan.parent[node]))?;
    let leaf = (0..NODES).filter(others).max_by_key(|node| plan.depth[*node]).unwrap_or(NODES - 1);
    let cable = plan.parent[leaf].map_or(0, |uplink| uplink.link.index());
    clocks.stage.set_cable(cable, false)?;
    let (backup_after_cut, cut) = wait_for(stop, || clocks.parent(leaf) == plan.backup[leaf])?;
    clocks.stage.set_cable(cable, true)?;
    clocks.stage.wait_until_running(cable)?;
    wait_for(stop, || clocks.parent(leaf) == plan.parent[leaf])?;
    clocks.kill(plan.root.index());
    let successor = Some(plan.backup_root.index());
    let (backup_root_after_death, death) =
        wait_for(stop, || (0..NODES).filter(others).all(|node| clocks.grandmaster(node) == successor))?;
    Ok(Some(Ptp4lOutcome {
        as_planned,
        backup_after_cut,
        cut_recovery_ms: cut.as_secs_f64() * 1e3,
        backup_root_after_death,
        root_recovery_ms: death.as_secs_f64() * 1e3,
    }))
}

/// Waits for a condition. Returns whether it came to be, and the time that this took.
fn wait_for(stop: &StopFlag, mut is_so: impl FnMut() -> bool) -> Result<(bool, Duration), SystemError> {
    let clock = Clock::start();
    loop {
        if is_so() {
            return Ok((true, clock.elapsed()));
        }
        if clock.elapsed() > PATIENCE || stop.is_stopped() {
            return Ok((false, clock.elapsed()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One ptp4l on each corner. They end when dropped.
struct Ptp4lNetwork<'a> {
    graph: &'a Graph,
    stage: GraphStage,
    folder: PathBuf,
    daemons: Vec<Option<Child>>,
    /// Nodes by the identity that ptp4l made for itself.
    nodes: BTreeMap<String, usize>,
}

impl Drop for Ptp4lNetwork<'_> {
    fn drop(&mut self) {
        (0..NODES).for_each(|node| self.kill(node));
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl<'a> Ptp4lNetwork<'a> {
    fn start(graph: &'a Graph, plan: &ClockPlan) -> Result<Self, SystemError> {
        let folder = std::env::temp_dir().join(format!("hitless-ptp4l-{}", std::process::id()));
        let in_words = |error: std::io::Error| SystemError(format!("{}: {error}", folder.display()));
        fs::create_dir_all(&folder).map_err(in_words)?;
        let (stage, daemons) = (GraphStage::new(NODES, &edges())?, (0..NODES).map(|_| None).collect());
        let mut clocks = Self { graph, stage, folder: folder.clone(), daemons, nodes: BTreeMap::new() };
        for node in 0..NODES {
            let config = ptp4l_config(graph, plan, GraphNode(node as u32), Ptp4lVersion::V3);
            let path = folder.join(format!("h{node}.conf"));
            fs::write(&path, config).map_err(in_words)?;
            let mut command = Command::new("ptp4l");
            // Software stamps, and the only clock that there is must not be touched.
            command.arg("-S").arg("-f").arg(&path).args(["--free_running", "1", "--uds_address"]);
            command.arg(clocks.address(node)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            clocks.stage.host(node).prepare(&mut command)?;
            clocks.daemons[node] = Some(command.spawn().map_err(|error| SystemError(format!("start ptp4l: {error}")))?);
        }
        Ok(clocks)
    }

    fn address(&self, node: usize) -> PathBuf {
        self.folder.join(format!("h{node}.uds"))
    }

    fn kill(&mut self, node: usize) {
        if let Some(mut daemon) = self.daemons[node].take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }

    /// Learns what each clock calls itself.
    fn identify(&mut self, stop: &StopFlag) -> Result<(), SystemError> {
        for node in 0..NODES {
            let mut found = None;
            wait_for(stop, || {
                found = ask(&self.folder, &self.address(node), "DEFAULT_DATA_SET", "clockIdentity");
                found.is_some()
            })?;
            let identity = found.ok_or_else(|| SystemError(format!("h{node} does not answer pmc")))?;
            self.nodes.insert(identity, node);
        }
        Ok(())
    }

    /// Uplink of the clock that a clock listens to, as a plan would name it.
    fn parent(&self, node: usize) -> Option<Uplink> {
        let port = ask(&self.folder, &self.address(node), "PARENT_DATA_SET", "parentPortIdentity")?;
        let (identity, _) = port.rsplit_once('-')?;
        let there = GraphNode(*self.nodes.get(identity)? as u32);
        let link = self.graph.links_between(GraphNode(node as u32), there).next()?;
        Some(Uplink { node: there, link })
    }

    fn grandmaster(&self, node: usize) -> Option<usize> {
        let identity = ask(&self.folder, &self.address(node), "PARENT_DATA_SET", "grandmasterIdentity")?;
        self.nodes.get(&identity).copied()
    }
}

/// A value out of what `pmc` prints about a data set.
fn ask(folder: &Path, address: &Path, data_set: &str, key: &str) -> Option<String> {
    let mut pmc = Command::new("pmc");
    pmc.args(["-u", "-b", "0", "-s"]).arg(address).arg("-i").arg(folder.join("pmc.uds")).arg(format!("GET {data_set}"));
    let output = pmc.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let value = text.lines().find_map(|line| line.trim().strip_prefix(key))?;
    Some(value.trim().to_owned())
}
