//! PL2's rack: six hosts at 100G, of which four send to one over TCP, with reservations and without.

use sim::net::NetworkSetup;

use super::SimBenchError;
use crate::Scenario;

const FABRIC: &str = "
    topology = { kind = 'single-switch', hosts = 6, rate = '100G', delay = '350ns' }
    switch = { latency = '347ns', port_limit = '1500KB' }
    [[traffic]]
    transport = 'cubic'
    work = 'bulk'
    from = 'h1..h4'
    to = 'h0'
    connections = 12
";
const RESERVATIONS: &str = "
    [pl2]
    scheduler = 'late'
    contexts = 12
    k = 4
    software = '3.8us'
    answer = '950ns'
";
/// Simulated time.
const MICROSECONDS: u64 = 30_000;

/// The network; of the time, one part in `shrink`.
pub(super) fn setup(shrink: u64, reserves: bool) -> Result<NetworkSetup, SimBenchError> {
    let until = format!("[run]\nuntil = '{}us'\n", MICROSECONDS / shrink);
    let text = [FABRIC, if reserves { RESERVATIONS } else { "" }, &until].concat();
    let scenario = Scenario::parse("bench", &text, &[]).map_err(|error| SimBenchError::Scenario(error.to_string()))?;
    Ok(scenario.points[0].setup(1))
}
