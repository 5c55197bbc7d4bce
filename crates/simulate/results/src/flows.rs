//! Simulated networks: flows as rows, and what they add up to.
//!
//! A run is one point of a scenario with one seed. [`write_run`] writes the result to files, [`RunDigest`] keeps the
//! part of it that a statement about all seeds together needs: a [`FlowSummary`] for programs, [`tables`] for people.
//!
//! | file of a run | what is in it |
//! | --- | --- |
//! | `flows.csv`, `flows.parquet` | one row for each flow, the same columns in both |
//! | `iterations.csv`, `iterations.parquet` | of jobs: one row for each late iteration, and for each hundredth |
//! | `transfers.csv`, `transfers.parquet` | of jobs: one row for each transfer |
//! | `samples.csv` | throughput, queues and buffers over time |
//! | `queues.csv` | for each port, lengths of its queue and their shares of the time |
//! | `losses.csv` | one row for each loss that meters named |
//! | `sw2-sw6.pcapng` | packets as they left either end of a link |
//!
//! Same seed, same bytes.

mod columns;
mod digest;
mod files;
mod jobs;
mod losses;
pub(crate) mod pcapng;
mod percentiles;
mod racks;
mod summary;
mod tables;

pub use self::files::{file_name, write_run};
pub use digest::RunDigest;
pub use jobs::{
    BlamedLink, CollectiveSummary, FailureSummary, IterationTimes, LatenessTimes, PartsSummary, SeedSummary,
};
pub use percentiles::Percentiles;
pub use racks::{PortPeak, RackSummary, RefusalCounts};
pub use summary::{FlowSummary, QueuePercentiles, RttPercentiles, RunResult, SummaryOrigin, summarize};
pub use tables::tables;
