//! Claims of papers held against our results.
//!
//! [`claim`] reads a claim's file under `experiments/`: what to run, what the paper says, and the band that decides the
//! verdict. [`runner`] makes the runs and takes the values. [`page`] makes claims, their charts and verdicts one HTML file.
//! Which papers there are, and what is particular to one, is in the crate `papers`.

pub mod claim;
pub mod page;
pub mod runner;

use chart::{svg, table};
