//! `hitless clock plan --ptp4l`: a plan as files for linuxptp.

use std::fs;
use std::io;
use std::path::Path;

use clock::graph::Graph;
use clock::plan::ClockPlan;
use clock::ptp4l::{PTP4L_README, Ptp4lVersion, ptp4l_config};
use files::WholeFolder;

use crate::output::{CommandResult, Failure, say};
use crate::results::unwritten;
use crate::terminal::end_on_ctrl_c;

/// A file for each node and version, and a README: all of them, or none.
pub(super) fn write(folder: &Path, graph: &Graph, plan: &ClockPlan) -> CommandResult {
    if folder.exists() && !folder.is_dir() {
        return Err(Failure::Usage(format!("--ptp4l {}: is a file; expected a folder", folder.display())));
    }
    end_on_ctrl_c();
    let whole = WholeFolder::create(folder).map_err(|error| unwritten("--ptp4l", &error))?;
    let failed = |error: io::Error| Failure::Outside(format!("--ptp4l {}: {error}", folder.display()));
    write_all(&whole.path(), graph, plan).map_err(failed)?;
    whole.finish().map_err(|error| unwritten("--ptp4l", &error))?;
    say(&format!("configurations of ptp4l for {} nodes are in {}", plan.nodes().count(), folder.display()));
    Ok(())
}

fn write_all(folder: &Path, graph: &Graph, plan: &ClockPlan) -> io::Result<()> {
    for (version, folder) in [(Ptp4lVersion::V3, folder.to_owned()), (Ptp4lVersion::V4, folder.join("linuxptp4"))] {
        fs::create_dir_all(&folder)?;
        for node in plan.nodes() {
            let path = folder.join(format!("{}.conf", graph.name(node).replace('/', "_")));
            fs::write(path, ptp4l_config(graph, plan, node, version))?;
        }
    }
    fs::write(folder.join("README.md"), PTP4L_README)
}
