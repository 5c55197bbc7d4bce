//! `hitless clock plan --ptp4l`: a plan as files for linuxptp.

use std::fs;
use std::io;
use std::path::Path;

use clock::graph::Graph;
use clock::plan::ClockPlan;
use clock::ptp4l::{PTP4L_README, Ptp4lVersion, ptp4l_config};

use crate::output::{CommandResult, Failure, say};

/// A file for each node and version, and a README.
pub(super) fn write(folder: &Path, graph: &Graph, plan: &ClockPlan) -> CommandResult {
    let failed = |error: io::Error| Failure::Usage(format!("--ptp4l {}: {error}", folder.display()));
    for (version, folder) in [(Ptp4lVersion::V3, folder.to_owned()), (Ptp4lVersion::V4, folder.join("linuxptp4"))] {
        fs::create_dir_all(&folder).map_err(failed)?;
        for node in plan.nodes() {
            let path = folder.join(format!("{}.conf", graph.name(node).replace('/', "_")));
            fs::write(path, ptp4l_config(graph, plan, node, version)).map_err(failed)?;
        }
    }
    fs::write(folder.join("README.md"), PTP4L_README).map_err(failed)?;
    say(&format!("configurations of ptp4l for {} nodes are in {}", plan.nodes().count(), folder.display()));
    Ok(())
}
