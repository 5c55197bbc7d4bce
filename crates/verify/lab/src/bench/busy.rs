//! The benchmark of a busy host: a thin stream of datagrams and a bulk transfer through the link, alone and beside a busy
//! loop on every processor.
//!
//! Daemons are processes of their own, with the priority that the shipped unit gives them (where this user may); everything
//! else has the ordinary one. A datagram that is lost is *seen* if a counter of a daemon, or the kernel's of the
//! stand-in's interface, rose for it.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::demo::median;
use crate::soak::Workshop;
use crate::soak::faults::{AccountCounts, Supervisor};
use crate::stage;
use daemon::RunDirectory;
use linux::SystemError;
use linux::clock::Clock;
use linux::net::Namespace;
use load::{self, Bulk, KernelCongestion, witness};
use units::StopFlag;

/// Datagrams a second, and their size in bytes.
pub(crate) const PER_SECOND: u32 = 12_000;
pub const SIZE: usize = 64;
const PORT: u16 = 7_701;
/// Time for datagrams on their way to arrive, on a machine that is busy.
const SETTLE: Duration = Duration::from_millis(500);
const FIRST: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(10);

#[derive(Clone, Debug)]
pub struct BusyPlan {
    pub rounds: u32,
    /// Length of each measurement.
    pub lasts: Duration,
    /// The hitless program, whose daemons are tried.
    pub program: PathBuf,
}

/// Fates of the datagrams of all rounds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DatagramResults {
    pub name: &'static str,
    pub sent: u64,
    pub per_second: f64,
    pub lost: u64,
    /// Lost, and counted by nobody.
    pub unseen: u64,
    pub duplicated: u64,
    pub reordered: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct BusyResults {
    pub rounds: u32,
    /// Busy loops, one for each processor.
    pub hogs: usize,
    /// Niceness of the daemons.
    pub nice: i32,
    pub datagrams: [DatagramResults; 3],
    /// Medians.
    pub bulk_gbps: f64,
    pub bulk_beside_hogs_gbps: f64,
    /// The median of the rounds' ratios.
    pub bulk_ratio: f64,
}

const NAMES: [&str; 3] = ["plain cable, hogs", "hitless", "hitless, hogs"];

/// Runs it in namespaces that are ours already; `None` if it was stopped before one round was complete.
pub fn run(plan: &BusyPlan, stop: &StopFlag, begin: &dyn Fn(u32, &str)) -> Result<Option<BusyResults>, SystemError> {
    let shop = Workshop::new()?;
    let (plain, ends) = (stage::cable(1_500)?, stage::cable(1_600)?);
    for end in 0..2 {
        stage::give_address(&plain[end], end, stage::plug(end))?;
        stage::give_address(&ends[end], end, stage::plug(end))?;
    }
    let clock = Clock::start();
    let daemons = [0, 1].map(|end| daemon(plan, &ends[end], end, &shop, clock));
    let over = StopFlag::new();
    std::thread::scope(|scope| {
        let _over = over.stop_on_drop();
        for daemon in &daemons {
            scope.spawn(|| daemon.supervise(&over));
            scope.spawn(|| daemon.poll(&over));
        }
        let bench = BusyBench { plan, plain: &plain, ends: &ends, daemons: &daemons, stop, clock };
        if !bench.wait_until_active() {
            let why = "the two ends did not find each other within half a minute";
            return if bench.is_stopped() { Ok(None) } else { Err(SystemError(why.to_owned())) };
        }
        stage::serve(&ends[1], scope, &over)?;
        let results = bench.rounds(begin);
        bench.finish();
        results
    })
}

fn daemon<'a>(plan: &BusyPlan, namespace: &'a Namespace, end: usize, shop: &Workshop, clock: Clock) -> Supervisor<'a> {
    let arguments = ["link", "up", stage::plug(end), "--mtu", "1500", "--take-over"].map(OsString::from).into();
    let directory = RunDirectory::at(shop.path().join(end.to_string()));
    let log = shop.path().join(format!("{end}.log"));
    Supervisor::new(end, namespace, directory, plan.program.clone(), arguments, log, clock)
}

struct BusyBench<'a> {
    plan: &'a BusyPlan,
    plain: &'a [Namespace; 2],
    ends: &'a [Namespace; 2],
    daemons: &'a [Supervisor<'a>; 2],
    stop: &'a StopFlag,
    clock: Clock,
}

impl BusyBench<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }

    /// Waits until `holds`, for at most `within`; returns at once when the run is stopped.
    fn wait_until(&self, within: Duration, holds: impl Fn() -> bool) -> bool {
        let until = self.clock.elapsed() + within;
        while !holds() {
            if self.is_stopped() || self.clock.elapsed() > until {
                return false;
            }
            std::thread::sleep(TICK);
        }
        true
    }

    fn wait_until_active(&self) -> bool {
        let active = |daemon: &Supervisor<'_>| {
            daemon.is_served() && daemon.status_since(Duration::ZERO).is_some_and(|status| status.is_active())
        };
        self.wait_until(FIRST, || self.daemons.iter().all(active))
    }

    fn finish(&self) {
        self.daemons.iter().for_each(Supervisor::finish);
        // Stopped or not: they put back what they changed.
        let until = self.clock.elapsed() + FIRST;
        while !self.daemons.iter().all(Supervisor::is_gone) && self.clock.elapsed() < until {
            std::thread::sleep(TICK);
        }
    }

    fn rounds(&self, begin: &dyn Fn(u32, &str)) -> Result<Option<BusyResults>, SystemError> {
        let mut datagrams = NAMES.map(|name| DatagramResults { name, ..DatagramResults::default() });
        let (mut alone, mut beside, mut rounds) = (Vec::new(), Vec::new(), 0);
        'rounds: for round in 1..=self.plan.rounds {
            let paths = [(self.plain, true), (self.ends, false), (self.ends, true)];
            for ((ends, hogs), sum) in paths.into_iter().zip(&mut datagrams) {
                begin(round, &format!("datagrams, {}", sum.name));
                let figures = self.beside(hogs, || self.datagrams(ends))?;
                if self.is_stopped() {
                    break 'rounds;
                }
                sum.add(figures, self.plan.lasts * round);
            }
            for (hogs, gbps) in [(false, &mut alone), (true, &mut beside)] {
                begin(round, if hogs { "bulk, hitless, hogs" } else { "bulk, hitless" });
                let measured = self.beside(hogs, || self.bulk());
                if self.is_stopped() {
                    break 'rounds;
                }
                gbps.push(measured?);
            }
            rounds = round;
        }
        if rounds == 0 {
            return Ok(None);
        }
        let ratios = beside.iter().zip(&alone).map(|(beside, alone)| beside / alone).collect();
        Ok(Some(BusyResults {
            rounds,
            hogs: processors(),
            nice: self.daemons[0].nice(),
            datagrams,
            bulk_ratio: median(ratios),
            bulk_gbps: median(alone),
            bulk_beside_hogs_gbps: median(beside),
        }))
    }

    fn beside<T>(&self, hogs: bool, measure: impl FnOnce() -> T) -> T {
        let over = StopFlag::new();
        std::thread::scope(|scope| {
            let _over = over.stop_on_drop();
            for _ in 0..if hogs { processors() } else { 0 } {
                scope.spawn(|| load::hog(&over));
            }
            measure()
        })
    }

    /// Sends datagrams from the left to the right.
    fn datagrams(&self, ends: &[Namespace; 2]) -> Result<DatagramResults, SystemError> {
        let trouble = |error: std::io::Error| SystemError(error.to_string());
        let socket = ends[1].with(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)))?.map_err(trouble)?;
        let (sending, receiving) = (StopFlag::new(), StopFlag::new());
        let before = self.counters();
        let (sent, report) = std::thread::scope(|scope| {
            let _over = [sending.stop_on_drop(), receiving.stop_on_drop()];
            let receiver = scope.spawn(|| witness::receive(&socket, &receiving));
            let sender = scope.spawn(|| -> Result<u64, SystemError> {
                ends[0].enter()?;
                let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(trouble)?;
                let to = SocketAddr::new(stage::address(1), PORT);
                witness::send(&socket, to, PER_SECOND, SIZE, &sending).map_err(trouble)
            });
            self.wait_until(self.plan.lasts, || false);
            sending.stop();
            let panicked = |_| SystemError("a witness panicked".to_owned());
            let sent = sender.join().map_err(panicked)??;
            self.wait_until(SETTLE, || false);
            receiving.stop();
            Ok::<_, SystemError>((sent, receiver.join().map_err(panicked)?.map_err(trouble)?))
        })?;
        // Datagrams that the witness's own socket lost were delivered.
        let lost = report.missing(sent).saturating_sub(report.overrun);
        let seen = AccountCounts::between(&before, &self.counters(), 0).sum();
        Ok(DatagramResults {
            sent,
            lost,
            unseen: lost.saturating_sub(seen),
            duplicated: report.duplicates,
            reordered: report.out_of_order,
            ..DatagramResults::default()
        })
    }

    /// Counters of both ends as of now, not of a moment ago.
    fn counters(&self) -> [std::collections::BTreeMap<String, u64>; 2] {
        let now = self.clock.elapsed();
        self.wait_until(SETTLE * 4, || self.daemons.iter().all(|daemon| daemon.status_since(now).is_some()));
        [self.daemons[0].counters(), self.daemons[1].counters()]
    }

    fn bulk(&self) -> Result<f64, SystemError> {
        let to = SocketAddr::new(stage::address(1), stage::PORT);
        let plan = Bulk { duration: self.plan.lasts, warmup: self.plan.lasts / 5, congestion: KernelCongestion::Cubic };
        let measured = self.ends[0].with(|| load::bulk::run(to, &plan, self.stop))?;
        Ok(measured.map_err(|error| SystemError(error.to_string()))?.bits_per_second() as f64 / 1e9)
    }
}

impl DatagramResults {
    fn add(&mut self, more: Self, lasted: Duration) {
        self.sent += more.sent;
        self.per_second = self.sent as f64 / lasted.as_secs_f64();
        self.lost += more.lost;
        self.unseen += more.unseen;
        self.duplicated += more.duplicated;
        self.reordered += more.reordered;
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
