//! TCP traffic meanwhile: GETs, iperf3 both ways, transfers both ways whose every byte is compared.

use std::net::SocketAddr;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use linux::SystemError;
use units::StopFlag;

use super::flows::SINK;
use crate::rack_demo::gets::{GetClient, GetServer};
use crate::soak::traffic::{self, Iperf, TrafficCounter};
use crate::soak::{RunningProgram, TrafficTotals, Workshop};
use crate::stage::{self, PORT, RackStage, address};
use load::RoundTrips;

/// The host that has memcached, and the other end of iperf3.
const SERVER: usize = 1;
const IPERF3: u16 = 5_201;
/// Pause after a GET that failed.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Counts of what flows.
#[derive(Debug)]
pub(super) struct RackRequests {
    iperf3: [TrafficCounter; 2],
    transfers: [TrafficCounter; 2],
}

impl Default for RackRequests {
    fn default() -> Self {
        Self {
            iperf3: ["iperf3 to host 1", "iperf3 to host 0"].map(TrafficCounter::new),
            transfers: ["transfers", "transfers back"].map(TrafficCounter::new),
        }
    }
}

/// Counts of the client's GETs, over all its connections.
#[derive(Debug, Default)]
struct GetCounts {
    trips: RoundTrips,
    gets: u64,
    failed: u64,
}

/// Totals of all TCP traffic.
#[derive(Debug)]
pub(super) struct RequestTotals {
    pub gets: u64,
    pub gets_failed: u64,
    trips: RoundTrips,
    pub traffic: Vec<TrafficTotals>,
}

impl RequestTotals {
    pub(super) fn get_us(&self, quantile: f64) -> Option<f64> {
        (self.trips.count() > 0).then(|| self.trips.quantile(quantile).as_nanos() as f64 / 1e3)
    }
}

/// Clients and servers that run.
pub(super) struct RunningRequests<'scope> {
    counters: &'scope RackRequests,
    clients: Vec<ScopedJoinHandle<'scope, Result<(), SystemError>>>,
    gets: ScopedJoinHandle<'scope, Result<GetCounts, SystemError>>,
    _servers: (GetServer, Vec<RunningProgram>),
    remarks: Vec<String>,
}

impl RackRequests {
    /// None if stopped before.
    pub(super) fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        stage: &'scope RackStage,
        shop: &'scope Workshop,
        over: &'scope StopFlag,
        stop: &'scope StopFlag,
        duration: Duration,
    ) -> Result<Option<RunningRequests<'scope>>, SystemError> {
        let Some(server) = GetServer::start(stage, shop, scope, over, stop)? else { return Ok(None) };
        let mut remarks = vec![format!("{} answers GETs", server.program())];
        let gets = scope.spawn(move || stage.host(SINK).with(|| get_until(over)).map_err(SystemError::from));
        let (mut clients, mut programs) = (Vec::new(), Vec::new());
        for (counter, [from, to]) in self.iperf3.iter().zip([[SINK, SERVER], [SERVER, SINK]]) {
            let Some(mut program) = iperf3_server(stage, shop, to)? else {
                remarks.push("iperf3 is not installed: apt install iperf3; going on without it".to_owned());
                break;
            };
            if !program.wait_until_listening(IPERF3, stage.host(to), stop)? {
                return Ok(None);
            }
            programs.push(program);
            let iperf = Iperf { server: SocketAddr::new(address(to), IPERF3), place: stage.host(from), shop, duration };
            let run = move || traffic::iperf3(iperf, over, stop, counter);
            clients.push(scope.spawn(move || stage.host(from).with(run).map_err(SystemError::from)));
        }
        let last = stage.count() - 1;
        for (counter, [from, to]) in self.transfers.iter().zip([[last - 1, last], [last, last - 1]]) {
            stage::serve(stage.host(to), scope, over)?;
            let run = move || traffic::transfers(SocketAddr::new(address(to), PORT), over, counter);
            clients.push(scope.spawn(move || stage.host(from).with(run).map_err(SystemError::from)));
        }
        Ok(Some(RunningRequests { counters: self, clients, gets, _servers: (server, programs), remarks }))
    }
}

impl RunningRequests<'_> {
    pub(super) fn remarks(&self) -> impl Iterator<Item = &str> {
        self.remarks.iter().map(String::as_str)
    }

    /// Waits for clients and servers, after the soak is over.
    pub(super) fn join(self) -> Result<RequestTotals, SystemError> {
        let panicked = |_| SystemError("a client panicked".to_owned());
        for client in self.clients {
            client.join().map_err(panicked)??;
        }
        let gets = self.gets.join().map_err(panicked)??;
        let counters = self.counters.iperf3.iter().chain(&self.counters.transfers);
        let traffic = counters.map(TrafficCounter::traffic).collect();
        Ok(RequestTotals { gets: gets.gets, gets_failed: gets.failed, trips: gets.trips, traffic })
    }
}

fn iperf3_server(stage: &RackStage, shop: &Workshop, host: usize) -> Result<Option<RunningProgram>, SystemError> {
    let (here, port) = (address(host).to_string(), IPERF3.to_string());
    let args = ["-s", "-B", &here, "-p", &port];
    RunningProgram::start("iperf3", &args, &format!("iperf3-{host}.log"), stage.host(host), shop)
}

/// One GET after the other; a connection that breaks is made again.
fn get_until(over: &StopFlag) -> GetCounts {
    let mut counts = GetCounts::default();
    while !over.is_stopped() {
        match GetClient::connect(over).and_then(|client| client.run(over)) {
            Ok(totals) => {
                counts.gets += totals.gets;
                counts.failed += totals.failed;
                counts.trips.merge(&totals.trips);
            }
            Err(_) if over.is_stopped() => {}
            Err(_) => {
                counts.failed += 1;
                std::thread::sleep(AFTER_FAILURE);
            }
        }
    }
    counts
}
