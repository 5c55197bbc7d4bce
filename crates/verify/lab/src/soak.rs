//! The soak: real programs through a protected link that loses frames in bursts, for as long as one likes.
//!
//! ```text
//!   left                        the wire                right
//!   iperf3 client          ┐                        ┌ iperf3 server
//!   memcached client       ├─ hit0 ══ bursts ══ hit0 ┤ memcached
//!   HTTP client            │                        │ python3 -m http.server
//!   transfers              ┘                        └ load::serve
//! ```
//!
//! The bytes that come back are compared with those that were sent; every ten seconds the program's memory and the link's
//! counters are looked at. A program that is not installed is named and done without. Everything that is started ends with
//! the soak, however it ends.

pub mod faults;
mod outcome;
pub(crate) mod process;
mod programs;
mod stream;
pub(crate) mod traffic;
mod verdict;

use std::net::SocketAddr;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use ::faults::{FaultSchedule, LossModel};
use units::{Bytes, Prob, Rate, Span, StopFlag};

use crate::stage::{self, EmulatedWire, Stage, StageDaemon};
use emulator::DirectionConfig;
use link::config::{LinkConfig, LinkMode};
use linux::SystemError;
use linux::clock::Clock;
use linux::net::NetworkPrivilege;
use standin::{HostBackend, StandInConfig};

use outcome::{SoakRecord, frames};
use traffic::{ServedFile, TrafficCounter};

pub use outcome::{Soak, SoakSnapshot};
pub(crate) use programs::{RunningProgram, Workshop};
pub(crate) use stream::{SoakStream, strange};
pub use traffic::TrafficTotals;
pub(crate) use verdict::MOST_GROWTH;
pub use verdict::{MemoryUse, SoakVerdict, what};

#[derive(Clone, Debug)]
pub struct SoakPlan {
    pub duration: Duration,
    /// Share of frames that the wire corrupts, each way.
    pub loss: Prob,
    /// Frames of a burst of losses, on average; 1 for losses that are independent of each other.
    pub burst: f64,
    pub rate: Option<Rate>,
    pub mode: LinkMode,
    pub host: HostBackend,
    /// Most bytes that may wait for the wire at each end.
    pub queue: Bytes,
    pub seed: u64,
}

/// Observer of the soak.
pub trait SoakObserver: Sync {
    /// Every now and then.
    fn tick(&self, elapsed: Duration);
    fn look(&self, look: &SoakSnapshot);
    fn remark(&self, text: &str);
}

/// Time between two looks, in a soak that is long enough for several.
const LOOK_EVERY: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(100);

const IPERF3: u16 = 5_201;
const MEMCACHED: u16 = 11_211;
const HTTP: u16 = 8_000;

/// Runs it in namespaces that are ours already. `None` if it was stopped before it began.
pub fn run(
    plan: &SoakPlan,
    standing: NetworkPrivilege,
    stop: &StopFlag,
    watch: &dyn SoakObserver,
) -> Result<Option<Soak>, SystemError> {
    let stage = if plan.has_bursts() { Stage::unjoined(1_600)? } else { Stage::new(1_600)? };
    let tallies = TrafficCounters::default();
    let (shop, over) = (Workshop::new()?, StopFlag::new());
    let files = traffic::write_files(shop.path())?;
    let bench = SoakBench { plan, stage: &stage, shop: &shop, files: &files, tallies: &tallies, over: &over, stop };
    let played = std::thread::scope(|scope| {
        let played = bench.play(scope, watch);
        over.stop();
        played
    })?;
    Ok(played.map(|played| played.conclude(plan, standing, &tallies)))
}

impl SoakPlan {
    fn has_bursts(&self) -> bool {
        self.burst > 1.0
    }

    fn link(&self, end: usize) -> LinkConfig {
        let (rate, host) = (self.rate, self.host);
        let stand_in = StandInConfig { mtu: Some(1_500), rate, host, ..StandInConfig::new(stage::plug(end)) };
        LinkConfig { mode: self.mode, queue: Some(self.queue), ..LinkConfig::new(stand_in) }
    }
}

#[derive(Debug)]
struct TrafficCounters {
    transfers: TrafficCounter,
    memcached: TrafficCounter,
    http: TrafficCounter,
    iperf3: TrafficCounter,
}

impl Default for TrafficCounters {
    fn default() -> Self {
        Self {
            transfers: TrafficCounter::new("transfers"),
            memcached: TrafficCounter::new("memcached"),
            http: TrafficCounter::new("http"),
            iperf3: TrafficCounter::new("iperf3"),
        }
    }
}

/// All that the parts of a soak share.
#[derive(Clone, Copy)]
struct SoakBench<'a> {
    plan: &'a SoakPlan,
    stage: &'a Stage,
    shop: &'a Workshop,
    files: &'a [ServedFile],
    tallies: &'a TrafficCounters,
    /// Ends the traffic.
    over: &'a StopFlag,
    /// The soak was called off.
    stop: &'a StopFlag,
}

impl<'scope> SoakBench<'scope> {
    fn play(
        self,
        scope: &'scope Scope<'scope, '_>,
        watch: &dyn SoakObserver,
    ) -> Result<Option<SoakRecord>, SystemError> {
        let wire = self.lay_wire(scope)?;
        let daemons = [0, 1].map(|end| self.stage.protect(scope, end, self.plan.link(end), |_| ()));
        let [left, right] = daemons;
        let daemons = [left?, right?];
        for daemon in &daemons {
            if !self.wait_until_active(daemon)? {
                return Ok(None);
            }
        }
        for end in 0..2 {
            self.stage.address(end, "hit0")?;
            self.stage.ends[end].with(use_cubic)?;
        }
        self.stage.serve(scope, self.over)?;
        let Some((programs, missing)) = self.start_programs(watch)? else { return Ok(None) };
        let clients = self.start_clients(scope, &programs);
        let (looks, complete) = self.watch(&daemons, wire.as_ref(), watch)?;
        self.over.stop();
        for client in clients {
            client.join().map_err(|_| SystemError("a client panicked".to_owned()))??;
        }
        drop(programs);
        let wire_overflowed = self.stage.overflowed()?;
        let backend = daemons[0].backend.clone();
        let [left, right] = daemons;
        let ends = [left.stop()?, right.stop()?];
        wire.map_or(Ok(()), EmulatedWire::stop)?;
        Ok(Some(SoakRecord { complete, backend, missing, looks, wire_overflowed, ends }))
    }

    fn lay_wire(&self, scope: &'scope Scope<'scope, '_>) -> Result<Option<EmulatedWire<'scope>>, SystemError> {
        let SoakPlan { loss, burst, rate, seed, .. } = *self.plan;
        if !self.plan.has_bursts() {
            self.stage.set_loss(loss)?;
            self.stage.set_rate(rate)?;
            return Ok(None);
        }
        let model = LossModel::bursts(loss, burst);
        let model =
            model.ok_or_else(|| SystemError(format!("a loss of {loss} in bursts of {burst} frames cannot be")))?;
        // The ends know the rate and keep to it. A wire that is late, as a thread may be, and then finds many
        // frames at once would take them for too many.
        let lane = DirectionConfig { faults: FaultSchedule::always(model), rate: None, delay: Span::ZERO };
        self.stage.carry(scope, &lane, seed).map(Some)
    }

    /// False if stopped before.
    fn wait_until_active(&self, daemon: &StageDaemon<'_>) -> Result<bool, SystemError> {
        /// Attempts of five seconds each: the machine may be busy.
        const TRIES: u32 = 6;
        for _ in 0..TRIES {
            if daemon.wait_until_active(self.stop) {
                return Ok(true);
            }
            if self.stop.is_stopped() {
                return Ok(false);
            }
        }
        Err(SystemError("the two ends did not find each other within half a minute".to_owned()))
    }

    /// The servers on the right, each on its port. `None` if stopped before.
    fn start_programs(&self, watch: &dyn SoakObserver) -> Result<Option<InstalledPrograms>, SystemError> {
        let here = stage::address(1).to_string();
        let (directory, ports) = (self.shop.path().to_string_lossy(), [IPERF3, MEMCACHED, HTTP].map(|p| p.to_string()));
        let servers: [(&str, u16, &[&str]); 3] = [
            ("iperf3", IPERF3, &["-s", "-B", &here, "-p", &ports[0]]),
            // Memcached needs a user name if it runs as root; a namespace of our own has no other user.
            ("memcached", MEMCACHED, &["-u", "root", "-l", &here, "-p", &ports[1], "-U", "0", "-m", "64", "-t", "1"]),
            (
                "python3",
                HTTP,
                &["-I", "-B", "-m", "http.server", &ports[2], "--bind", &here, "--directory", &directory],
            ),
        ];
        let (mut programs, mut missing) = (Vec::new(), Vec::new());
        for (name, port, args) in servers {
            let place = &self.stage.ends[1];
            match RunningProgram::start(name, args, &format!("{name}.log"), place, self.shop)? {
                None => {
                    watch.remark(&format!("{name} is not installed: apt install {name}; going on without it"));
                    missing.push(name);
                }
                Some(mut program) => {
                    if !program.wait_until_listening(port, place, self.stop)? {
                        return Ok(None);
                    }
                    programs.push(program);
                }
            }
        }
        Ok(Some((programs, missing)))
    }

    fn start_clients(self, scope: &'scope Scope<'scope, '_>, programs: &[RunningProgram]) -> Vec<ClientThread<'scope>> {
        let Self { plan, stage, shop, files, tallies, over, stop } = self;
        let to = |port: u16| SocketAddr::new(stage::address(1), port);
        let mut clients = vec![self.start_client(scope, move || {
            traffic::transfers(stage.server(), over, &tallies.transfers);
        })];
        for program in programs {
            clients.push(match program.name {
                "iperf3" => {
                    let (server, place, duration) = (to(IPERF3), &stage.ends[0], plan.duration);
                    let iperf = traffic::Iperf { server, place, shop, duration };
                    self.start_client(scope, move || traffic::iperf3(iperf, over, stop, &tallies.iperf3))
                }
                "memcached" => {
                    let to = to(MEMCACHED);
                    self.start_client(scope, move || traffic::memcached(to, over, &tallies.memcached))
                }
                _ => {
                    let to = to(HTTP);
                    self.start_client(scope, move || traffic::http(to, files, over, &tallies.http))
                }
            });
        }
        clients
    }

    /// Starts a client on the left.
    fn start_client(
        self,
        scope: &'scope Scope<'scope, '_>,
        client: impl FnOnce() + Send + 'scope,
    ) -> ClientThread<'scope> {
        let left = &self.stage.ends[0];
        scope.spawn(move || -> Result<(), SystemError> {
            left.enter()?;
            client();
            Ok(())
        })
    }

    /// Looks until the time is over; false if it was stopped before.
    fn watch(
        &self,
        daemons: &[StageDaemon<'_>; 2],
        wire: Option<&EmulatedWire<'_>>,
        watch: &dyn SoakObserver,
    ) -> Result<(Vec<SoakSnapshot>, bool), SystemError> {
        let every = LOOK_EVERY.min(self.plan.duration / 20);
        let clock = Clock::start();
        let mut looks = Vec::new();
        loop {
            let elapsed = clock.elapsed();
            let stopped = self.stop.is_stopped();
            let complete = elapsed >= self.plan.duration;
            if stopped || complete || elapsed >= every * looks.len() as u32 {
                let look = self.look(elapsed, daemons)?;
                watch.look(&look);
                looks.push(look);
            }
            if stopped || complete {
                return Ok((looks, complete));
            }
            if wire.is_some_and(|wire| !wire.is_running()) {
                return Err(SystemError("the wire ended".to_owned()));
            }
            watch.tick(elapsed);
            std::thread::sleep(TICK.min(self.plan.duration - elapsed));
        }
    }

    fn look(&self, elapsed: Duration, daemons: &[StageDaemon<'_>; 2]) -> Result<SoakSnapshot, SystemError> {
        let mut look = SoakSnapshot {
            at_seconds: elapsed.as_secs_f64(),
            resident_bytes: resident("self").unwrap_or(0),
            wire: self.stage.count()?,
            copies: u8::MAX,
            active: true,
            ..SoakSnapshot::default()
        };
        for (end, daemon) in daemons.iter().enumerate() {
            let side = ["left", "right"][end];
            let status =
                daemon.handle.status().ok_or_else(|| SystemError(format!("the daemon on the {side} ended")))?;
            look.frames += frames(&status);
            look.recovered += status.recovered;
            look.given_up += status.given_up;
            look.copies = look.copies.min(status.copies);
            look.active &= status.is_active();
        }
        Ok(look)
    }
}

/// Programs that are running, and those that are not installed.
type InstalledPrograms = (Vec<RunningProgram>, Vec<&'static str>);
type ClientThread<'scope> = ScopedJoinHandle<'scope, Result<(), SystemError>>;

/// Sets the congestion control of all programs in the namespace of the calling thread, so that a soak is the same on every
/// machine. Where it may not be changed it stays what it is.
fn use_cubic() {
    let _ = std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "cubic");
}

/// Memory of a process; "self" is this one.
pub(crate) fn resident(process: impl std::fmt::Display) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?;
    kilobytes.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}
