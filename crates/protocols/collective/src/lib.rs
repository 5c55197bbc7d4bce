//! Collectives: what each rank sends to which, what a transfer waits for, and what held it up.
//!
//! Ranks are numbers and sizes are bytes: there are no hosts, no packets and no clock here. A driver (the simulator) asks a
//! [`JobRun`] which transfers may start, carries them over, and reports each when it has arrived, with the account of the time
//! that it took.
//!
//! | part | here |
//! | --- | --- |
//! | pattern, algorithm, size: what a collective is | [`CollectiveShape`] |
//! | transfers of a pattern, computed from their numbers | `patterns`, one file each |
//! | any other graph of transfers, as a list or a file | [`TransferGraph`], [`graph::file`] |
//! | both alike | [`TransferPlan`] |
//! | iterations of a plan: what may start when | [`JobRun`] |
//! | causes of the time along a critical path | [`PathAccount`] |
//! | what is kept of a job: times, lateness, who is blamed | [`JobTally`] |
//! | closed forms: times, losses, stalls | [`model`] |
//!
//! Invariants: every transfer of a computed pattern has a larger number than its inputs; a graph can be carried out; a transfer
//! starts once, and not before all its inputs are there; the parts of an account add up to the time since its iteration began.

pub mod graph;
mod job;
pub mod model;
mod path;
mod patterns;
mod plan;
mod shape;
mod tally;

pub use graph::{GraphInput, GraphTransfer, TransferGraph, TransferGraphError};
pub use job::{CollectiveJob, EndedIteration, JobRun, ReadyTransfer};
pub use path::{DelayCause, PathAccount, PathParts, RecoveredLoss, SuspectLink, TransferArrival, TransferBefore};
pub use plan::{FollowingTransfer, InputEvent, Transfer, TransferPlan};
pub use shape::{CollectiveAlgorithm, CollectivePattern, CollectiveShape, ShapeError};
pub use tally::{
    Accusation, BlameCount, IterationRow, JobFailure, JobOutcome, JobTally, RowChoice, RunLengths, TransferRow,
};
