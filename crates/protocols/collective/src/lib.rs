//! Collectives: what each rank sends to which, what a transfer waits for.
//!
//! Ranks are numbers and sizes are bytes: there are no hosts, no packets and no clock here.
//!
//! | part | here |
//! | --- | --- |
//! | pattern, algorithm, size: what a collective is | [`CollectiveShape`] |
//! | transfers of a pattern, computed from their numbers | `patterns`, one file each |
//! | any other graph of transfers, as a list or a file | [`TransferGraph`], [`graph::file`] |
//! | both alike | [`TransferPlan`] |
//!
//! Invariants: every transfer of a computed pattern has a larger number than its inputs; a graph can be carried out.

pub mod graph;
mod patterns;
mod plan;
mod shape;

pub use graph::{GraphError, GraphInput, GraphTransfer, TransferGraph};
pub use plan::{Follower, InputEvent, Transfer, TransferPlan};
pub use shape::{Algorithm, CollectivePattern, CollectiveShape, ShapeError};
