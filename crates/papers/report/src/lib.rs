//! Reports for people: tables, JSON, and the papers' claims held against our results.
//!
//! [`claim`] reads a claim's file under `experiments/`: what to run, what the paper says, and the band that decides the
//! verdict. [`runner`] makes the runs and takes the values. Which papers there are, and what is particular to one, is in
//! the crate `papers`.
//! [`flows`] writes the results of flows, [`table_file`] rows as CSV and Parquet. [`compare`] sets link protocols side by
//! side, [`congestion`] controllers of congestion. [`outcome`] prints one simulated link; [`losses`] the result of
//! comparing captures; [`delay`] the time that packets took between two of them; [`acl`] the rules that may be corrupted;
//! [`fleet`] years, plans and upgrades; [`model`] computed values; [`replay`] the replays of connections. [`page`] makes
//! claims, their charts and verdicts one HTML file; its charts, and all tables, are those of `chart`.

pub mod claim;
pub mod compare;
pub mod congestion;
pub mod flows;
pub mod model;
pub mod outcome;
pub mod page;
pub mod replay;
pub mod runner;

use chart::{svg, table};
