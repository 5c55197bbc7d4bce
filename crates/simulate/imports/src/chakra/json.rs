//! Traces as JSON: `{"workload_graph": [{"Id": 1, "NodeType": 7, "data_deps": [], "comm_size": …}, …]}`.

use std::io::{BufRead, Read};

use serde::Deserialize;

use super::node::TraceNode;
use crate::error::ImportError;

/// Longest file, which is read as a whole.
const LONGEST_FILE: u64 = 256 << 20;

#[derive(Deserialize)]
struct JsonTrace {
    workload_graph: Vec<JsonNode>,
}

#[derive(Deserialize)]
struct JsonNode {
    #[serde(rename = "Id")]
    id: u64,
    #[serde(rename = "NodeType")]
    kind: u64,
    #[serde(default)]
    data_deps: Vec<u64>,
    #[serde(default)]
    ctrl_deps: Vec<u64>,
    #[serde(default)]
    runtime: u64,
    #[serde(default)]
    comm_size: u64,
    comm_src: Option<i64>,
    comm_dst: Option<i64>,
    #[serde(default)]
    comm_tag: u64,
    comm_type: Option<i64>,
    #[serde(default)]
    pg_name: String,
}

pub(super) fn read(
    rank: u32,
    from: &mut dyn BufRead,
    take: &mut dyn FnMut(TraceNode) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut limited = from.take(LONGEST_FILE);
    let trace: Result<JsonTrace, _> = serde_json::from_reader(&mut limited);
    if limited.limit() == 0 {
        return Err(ImportError::rank(rank, format_args!("expected less than {LONGEST_FILE} bytes")));
    }
    let trace = trace.map_err(|error| ImportError::rank(rank, error))?;
    for node in trace.workload_graph {
        let mut dependencies = node.data_deps;
        dependencies.extend(node.ctrl_deps);
        take(TraceNode {
            id: node.id,
            kind: node.kind.into(),
            dependencies,
            duration: node.runtime,
            bytes: node.comm_size,
            from: node.comm_src,
            to: node.comm_dst,
            tag: node.comm_tag,
            collective: node.comm_type,
            group: node.pg_name,
            has_operations: false,
            has_dimensions: false,
        })?;
    }
    Ok(())
}
