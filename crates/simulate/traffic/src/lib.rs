//! Networks and their traffic: [`topology`] has hosts, switches, links and the routes between them, [`workload`] flows with
//! their sizes and arrivals.
//!
//! Both are data: nothing here simulates or acts.

mod hpcc_ns3;
pub mod topology;
pub mod workload;
