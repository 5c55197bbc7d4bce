//! What people read: tables, JSON, and the papers' claims held against our results.
//!
//! [`experiment`] reads a claim's file under `experiments/`: what to run, what the paper says, and the
//! band that decides the verdict. [`linkguardian`] runs those of LinkGuardian's link experiments;
//! [`compare`] sets link protocols side by side. [`outcome`] prints one simulated link; [`svg`] draws charts.

pub mod compare;
pub mod experiment;
pub mod interval;
pub mod linkguardian;
pub mod outcome;
pub mod parallel;
pub mod svg;
pub mod table;
