//! Chakra execution traces: a file for each rank, as delimited protobuf messages or as JSON.
//!
//! | node | here |
//! | --- | --- |
//! | `COMP_NODE`, and all others that take time | a delay |
//! | `COMM_SEND_NODE`, `COMM_RECV_NODE` | a transfer, matched by source and tag in order |
//! | `COMM_COLL_NODE` | a ring, or all pairs at once, or a chain, among the ranks of its `pg_name` |
//!
//! The calls of a group belong together in their order of ids. `comm_size` of an all-gather is what each rank adds.

mod json;
mod node;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

use flate2::bufread::MultiGzDecoder;
use units::Span;

use crate::collectives::CollectiveKind;
use crate::error::ImportError;
use crate::graph::{ImportGraph, MOST_RANKS, MOST_TRANSFERS};
use crate::ops::{ALL_RANKS, OpGraph, OpKind, RankOp};
use node::{TraceNode, TraceNodeKind};

/// Encoding of the files of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEncoding {
    Protobuf,
    Json,
}

/// An hour, in microseconds: a node that takes longer is a mistake in the unit.
const LONGEST_NODE: u64 = 3_600_000_000;

/// Nodes of all ranks become operations.
#[derive(Default)]
struct TraceReader {
    graph: OpGraph,
    /// Numbers of process groups by name, besides that of all ranks.
    groups: BTreeMap<String, u32>,
    left_out: BTreeSet<&'static str>,
}

/// Reads the traces of all ranks; `open` gives the file of a rank.
pub fn import_traces(
    ranks: u32,
    encoding: TraceEncoding,
    mut open: impl FnMut(u32) -> std::io::Result<Box<dyn BufRead>>,
) -> Result<ImportGraph, ImportError> {
    if !(2..=MOST_RANKS).contains(&ranks) {
        return Err(ImportError::whole(format_args!("{ranks} ranks: expected 2 to {MOST_RANKS}, a file for each")));
    }
    let mut traces = TraceReader::default();
    traces.graph.ranks = ranks;
    for rank in 0..ranks {
        let wrong = |error: std::io::Error| ImportError::rank(rank, error);
        let mut file = open(rank).map_err(wrong)?;
        let is_gzip = file.fill_buf().map_err(wrong)?.starts_with(&[0x1f, 0x8b]);
        let mut plain: Box<dyn BufRead> =
            if is_gzip { Box::new(std::io::BufReader::new(MultiGzDecoder::new(file))) } else { file };
        traces.rank(rank, encoding, &mut *plain)?;
    }
    let TraceReader { mut graph, left_out, .. } = traces;
    graph.left_out.extend(left_out.into_iter().map(str::to_owned));
    graph.lower()
}

impl TraceReader {
    fn rank(&mut self, rank: u32, encoding: TraceEncoding, from: &mut dyn BufRead) -> Result<(), ImportError> {
        let first = self.graph.ops.len();
        let mut places: BTreeMap<u64, u32> = BTreeMap::new();
        let mut dependencies: Vec<(u32, Vec<u64>)> = Vec::new();
        let mut take = |node: TraceNode| {
            let place = self.graph.ops.len() as u32;
            if place as usize >= MOST_TRANSFERS {
                return Err(ImportError::rank(rank, format_args!("expected at most {MOST_TRANSFERS} nodes")));
            }
            if places.insert(node.id, place).is_some() {
                return Err(ImportError::node(rank, node.id, "is there twice"));
            }
            let kind = self.kind(rank, &node).map_err(|problem| ImportError::node(rank, node.id, problem))?;
            let (after_end, after_start) = (Vec::new(), Vec::new());
            self.graph.ops.push(RankOp { rank, number: node.id, kind, after_end, after_start });
            dependencies.push((place, node.dependencies));
            Ok(())
        };
        match encoding {
            TraceEncoding::Protobuf => wire::read(rank, from, &mut take)?,
            TraceEncoding::Json => json::read(rank, from, &mut take)?,
        }
        if self.graph.ops.len() == first {
            return Err(ImportError::rank(rank, "the trace has no node: is the file cut short?"));
        }
        for (place, ids) in dependencies {
            let op = &mut self.graph.ops[place as usize];
            for id in ids {
                let on = places.get(&id).copied();
                let unknown =
                    || ImportError::node(rank, op.number, format_args!("waits for node {id}, which is not there"));
                op.after_end.push(on.ok_or_else(unknown)?);
            }
        }
        Ok(())
    }

    fn kind(&mut self, rank: u32, node: &TraceNode) -> Result<OpKind, String> {
        if node.duration > LONGEST_NODE {
            return Err(format!("takes {} µs: expected an hour at most", node.duration));
        }
        let delay = OpKind::Delay(Span::from_us(node.duration));
        match node.kind {
            TraceNodeKind::Computation => {
                if node.duration == 0 && node.has_operations {
                    self.left_out.insert("num_ops: a computation without a duration takes no time");
                }
                Ok(delay)
            }
            TraceNodeKind::Other => {
                self.left_out.insert("nodes of memory, storage and metadata: only their durations are kept");
                Ok(delay)
            }
            TraceNodeKind::Send | TraceNodeKind::Receive if node.bytes == 0 => {
                Err("comm_size: expected at least one byte".into())
            }
            TraceNodeKind::Send => {
                let to = self.peer(rank, node.to, "comm_dst")?;
                Ok(OpKind::Send { to, bytes: node.bytes, tag: node.tag })
            }
            TraceNodeKind::Receive => {
                let from = Some(self.peer(rank, node.from, "comm_src")?);
                Ok(OpKind::Receive { from, bytes: node.bytes, tag: Some(node.tag) })
            }
            TraceNodeKind::Collective => {
                let kind = collective(node.collective)?;
                if node.has_dimensions {
                    self.left_out.insert("involved_dim: a collective is among all ranks of its pg_name");
                }
                let next = ALL_RANKS + 1 + self.groups.len() as u32;
                let group = match node.group.as_str() {
                    "" => ALL_RANKS,
                    name => *self.groups.entry(name.to_owned()).or_insert(next),
                };
                Ok(OpKind::Collective { kind, bytes: node.bytes, group })
            }
        }
    }

    fn peer(&self, rank: u32, peer: Option<i64>, name: &str) -> Result<u32, String> {
        let ranks = self.graph.ranks;
        let peer = peer.ok_or_else(|| format!("{name} is missing"))?;
        match u32::try_from(peer) {
            Ok(peer) if peer == rank => Err(format!("rank {rank} sends to itself")),
            Ok(peer) if peer < ranks => Ok(peer),
            _ => Err(format!("{name} {peer}: there are traces of {ranks} ranks; is one missing?")),
        }
    }
}

fn collective(number: Option<i64>) -> Result<CollectiveKind, String> {
    match number {
        Some(0) => Ok(CollectiveKind::AllReduce),
        Some(1) => Ok(CollectiveKind::Reduce),
        Some(2) => Ok(CollectiveKind::AllGather),
        Some(5) => Ok(CollectiveKind::Broadcast),
        Some(6) => Ok(CollectiveKind::AllToAll),
        Some(7 | 8) => Ok(CollectiveKind::ReduceScatter),
        Some(9) => Ok(CollectiveKind::Barrier),
        Some(other) => Err(format!("comm_type {other}: a collective that has no counterpart here")),
        None => Err("comm_type is missing".into()),
    }
}
