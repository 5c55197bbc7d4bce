//! Runs a scenario from Rust, once for each transport, and prints the slowest answer of an incast:
//! `cargo run -p hitless-scenario --example run-scenario`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use scenario::Scenario;
use sim::net;
use units::{Span, Unwatched};

const INCAST: &str = "
    [topology]
    kind = 'single-switch'
    hosts = 9
    rate = '100G'
    [switch]
    buffer = '400KB'
    ecn = '100KB'
    [[traffic]]
    transport = ['cubic', 'dctcp']
    rto_min = '1ms'
    work = 'incast'
    fan_in = 8
    from = 'h1..h8'
    to = 'h0'
    size = '100KB'
    every = '1ms'
    count = 5
";

/// Each point of the sweep, and the time that its slowest answer took.
pub(crate) fn slowest() -> Result<Vec<(String, Span)>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for point in Scenario::parse("incast.toml", INCAST, &[])?.points {
        let outcome = net::run(point.setup(1), &Unwatched)?;
        let times: Option<Vec<Span>> = outcome.flows.iter().map(net::FlowRow::fct).collect();
        let slowest = times.and_then(|times| times.into_iter().max());
        rows.push((point.label, slowest.ok_or("a flow did not end")?));
    }
    Ok(rows)
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    for (label, time) in slowest()? {
        println!("{label}: the slowest of 40 answers took {time}");
    }
    Ok(())
}
