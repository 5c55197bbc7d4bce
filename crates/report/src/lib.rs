//! What people read: tables, JSON, and the papers' claims held against our results.
//!
//! [`experiment`] reads a claim's file under `experiments/`: what to run, what the paper says, and the
//! band that decides the verdict. [`paper`] lists the papers and runs their claims; [`linkguardian`],
//! [`rdma_corruption`], [`melo`], [`lossradar`] and [`flowradar`] say which those are. [`study`] is how experiments within a network are
//! run and measured. [`flows`] writes what became of flows. [`compare`] sets link protocols side by side.
//! [`outcome`] prints one simulated link; [`losses`] what a comparison of captures
//! found; [`fleet`] years, plans and upgrades; [`model`] what is computed. [`page`] makes claims, their charts and verdicts one HTML file;
//! its charts, and all tables, are those of `chart`.

pub mod compare;
pub mod experiment;
mod files;
pub mod fleet;
pub mod flowradar;
pub mod flows;
pub mod linkguardian;
pub mod losses;
pub mod lossradar;
pub mod melo;
pub mod model;
pub mod outcome;
pub mod page;
pub mod paper;
pub mod parallel;
pub mod rdma_corruption;
mod stopwatch;
pub mod study;
pub mod table_file;

use chart::{svg, table};
