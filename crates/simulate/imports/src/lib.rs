//! Graphs of transfers from files of other simulators, as rows for `work = "file"`.
//!
//! | file | what it does |
//! | --- | --- |
//! | `htsim` | connection matrices with triggers (htsim's `.cm`) |
//! | `simccl` | tables of flows with parents (SimCCL) |
//! | `hpcc` | flow lists of HPCC's authors |
//! | `goal` | schedules in GOAL (LogGOPSim, ATLAHS) |
//! | `chakra` | execution traces, a file for each rank, as protobuf or JSON |
//! | `ops` | operations of ranks, which GOAL and Chakra have, become transfers with delays |
//! | `collectives` | a collective of a trace becomes transfers |
//! | `graph` | everything that a file says: transfers, the check that all of them can start, rows |
//! | `lines` | numbered lines of bounded length |
//!
//! Invariants: a file is imported whole or refused with its place; what has no counterpart here is listed in
//! [`ImportGraph::left_out`]; the numbers of ranks, transfers and inputs are
//! bounded, whatever a file says.

mod chakra;
mod collectives;
mod error;
mod goal;
mod graph;
mod hosts;
mod hpcc;
mod htsim;
mod lines;
mod ops;
mod simccl;

use std::fmt;
use std::io::BufRead;
use std::str::FromStr;

use units::nearest;

pub use chakra::{TraceEncoding, import_traces};
pub use error::ImportError;
pub use graph::{GraphAnswer, ImportGraph};
pub use hosts::HostNames;

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportFormat {
    Htsim,
    Goal,
    Chakra,
    Simccl,
    Hpcc,
}

impl ImportFormat {
    const NAMES: [(&'static str, Self); 5] = [
        ("htsim", Self::Htsim),
        ("goal", Self::Goal),
        ("chakra", Self::Chakra),
        ("simccl", Self::Simccl),
        ("hpcc", Self::Hpcc),
    ];

    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }
}

impl FromStr for ImportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, format)) = Self::NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(*format);
        }
        let names = Self::NAMES.map(|(name, _)| name);
        Err(match nearest(text, names) {
            Some(nearest) => format!("did you mean '{nearest}'?"),
            None => format!("expected one of {}", names.join(", ")),
        })
    }
}

impl fmt::Display for ImportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Unit of `start` in a connection matrix: htsim's programs do not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartUnit {
    Picoseconds,
    Microseconds,
}

/// Reads one file that has everything.
///
/// # Panics
/// For [`ImportFormat::Chakra`], whose traces are several files: [`import_traces`].
pub fn import_file(
    format: ImportFormat,
    from: &mut dyn BufRead,
    start_unit: Option<StartUnit>,
) -> Result<ImportGraph, ImportError> {
    match format {
        ImportFormat::Htsim => htsim::import(from, start_unit),
        ImportFormat::Goal => goal::import(from),
        ImportFormat::Simccl => simccl::import(from),
        ImportFormat::Hpcc => hpcc::import(from),
        ImportFormat::Chakra => panic!("a trace has a file for each rank"),
    }
}
