//! The benchmark: what the machine's own TCP does on a plain cable, on a corrupting wire, and through the link.
//!
//! Rows are measured one after the other in each round, and figures are medians over rounds, so that what else the
//! machine does meets all of them alike; what counts is the ratio to the first row. `B1` is a veth pair with every
//! offload off: a packet at a time, as a wire has it. `B2` lets the receiver join packets.

pub mod busy;

use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;
use units::{Prob, Rate, StopFlag};

use crate::demo::median;
use crate::stage::{self, Stage, StageDaemon};
use link::config::{LinkConfig, LinkMode, StampUse};
use linux::SystemError;
use linux::net::{Namespace, Netlink, Offload};
use load::{self, Bulk, KernelCongestion, PingPong};
use standin::{HostBackend, StandInConfig, WireBackend};

#[derive(Clone, Debug)]
pub struct BenchPlan {
    pub rate: Option<Rate>,
    pub rounds: u32,
    pub bulk: Duration,
    pub requests: u32,
    pub host: HostBackend,
    pub wire: WireBackend,
    /// Rows with one of these in their name, and the first; all if there are none.
    pub only: Vec<String>,
}

impl BenchPlan {
    fn rows(&self) -> Vec<&'static BenchRow> {
        let is_wanted = |row: &BenchRow| self.only.iter().any(|part| row.name.contains(part.as_str()));
        let rows = ROWS.iter().enumerate();
        rows.filter(|(at, row)| *at == 0 || self.only.is_empty() || is_wanted(row)).map(|(_, row)| row).collect()
    }

    /// Checks the rows of [`BenchPlan::only`]; refuses what is in no row's name.
    pub fn known_rows(only: &[String]) -> Result<Vec<String>, String> {
        let is_known = |part: &&String| ROWS.iter().any(|row| row.name.contains(part.as_str()));
        let Some(unknown) = only.iter().find(|part| !is_known(part)) else { return Ok(only.to_vec()) };
        let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        Err(format!("--only {unknown}: no row has this in its name; rows are: {}", names.join("; ")))
    }

    /// True if any traffic takes this path.
    fn uses(&self, path: BenchPath) -> bool {
        self.rows().iter().any(|row| row.path == path)
    }
}

/// Path of a row's traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BenchPath {
    /// A cable, packets joined on arrival or not.
    Cable { joined: bool },
    /// The wire itself.
    Wire,
    /// The link over a cable, in order, with numbers in addresses or without.
    LinkOverCable { stamp: bool },
    /// The link over the wire, in order or as frames come.
    Link(LinkMode),
}

#[derive(Clone, Copy, Debug)]
struct BenchRow {
    name: &'static str,
    path: BenchPath,
    loss: f64,
    congestion: KernelCongestion,
}

const ROWS: [BenchRow; 15] = {
    const fn row(name: &'static str, path: BenchPath, loss: f64, congestion: KernelCongestion) -> BenchRow {
        BenchRow { name, path, loss, congestion }
    }
    use KernelCongestion::{Bbr, Cubic};
    [
        row("B1: veth, offloads off", BenchPath::Cable { joined: false }, 0.0, Cubic),
        row("B2: veth, GRO on", BenchPath::Cable { joined: true }, 0.0, Cubic),
        row("wire, cubic", BenchPath::Wire, 0.0, Cubic),
        row("wire, cubic, loss 1e-3", BenchPath::Wire, 1e-3, Cubic),
        row("wire, cubic, loss 1e-2", BenchPath::Wire, 1e-2, Cubic),
        row("wire, bbr, loss 1e-3", BenchPath::Wire, 1e-3, Bbr),
        row("wire, bbr, loss 1e-2", BenchPath::Wire, 1e-2, Bbr),
        row("userspace, over a cable", BenchPath::LinkOverCable { stamp: true }, 0.0, Cubic),
        row("the same without stamps", BenchPath::LinkOverCable { stamp: false }, 0.0, Cubic),
        row("ordered, no loss", BenchPath::Link(LinkMode::Ordered), 0.0, Cubic),
        row("ordered, loss 1e-3", BenchPath::Link(LinkMode::Ordered), 1e-3, Cubic),
        row("ordered, loss 1e-2", BenchPath::Link(LinkMode::Ordered), 1e-2, Cubic),
        row("nonblocking, no loss", BenchPath::Link(LinkMode::NonBlocking), 0.0, Cubic),
        row("nonblocking, loss 1e-3", BenchPath::Link(LinkMode::NonBlocking), 1e-3, Cubic),
        row("nonblocking, loss 1e-2", BenchPath::Link(LinkMode::NonBlocking), 1e-2, Cubic),
    ]
};

/// Bits of a TCP connection's data in a full frame, with time stamps.
const PAYLOAD_BITS: f64 = 1_448.0 * 8.0;

#[derive(Clone, Debug, Serialize)]
pub struct BenchFigures {
    pub name: String,
    pub loss: f64,
    pub throughput_gbps: f64,
    /// Throughput as a share of the first row's, round by round.
    pub of_b1: f64,
    /// Processor time of this program, which is both ends and their traffic, for each full frame of the bulk transfer.
    pub cpu_per_frame_us: f64,
    pub pingpong_p50_us: f64,
    pub pingpong_p99_us: f64,
    pub pingpong_p999_us: f64,
    /// Reason why the row has no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct BenchResults {
    pub rows: Vec<BenchFigures>,
    pub rounds: u32,
    pub backend: String,
}

#[derive(Clone, Copy, Debug)]
struct BenchMeasurement {
    gbps: f64,
    cpu: f64,
    p50: f64,
    p99: f64,
    p999: f64,
}

/// Namespaces and stages of all rows.
struct BenchHosts<'a> {
    cable: &'a [Namespace; 2],
    /// Protected cables with stamps and without.
    protected_cables: [&'a [Namespace; 2]; 2],
    wire: &'a Stage,
    links: [&'a Stage; 2],
}

/// Runs it in namespaces that are ours already; `None` if it was stopped before one round was complete.
pub fn run(plan: &BenchPlan, stop: &StopFlag, begin: &dyn Fn(u32, &str)) -> Result<Option<BenchResults>, SystemError> {
    let (wire, ordered, unordered) = (Stage::new(1_500)?, Stage::new(1_600)?, Stage::new(1_600)?);
    let (cable, stamped, unstamped) = (stage::cable(1_500)?, stage::cable(1_600)?, stage::cable(1_600)?);
    let protected_cables = [&stamped, &unstamped];
    let places = BenchHosts { cable: &cable, protected_cables, wire: &wire, links: [&ordered, &unordered] };
    let ended = StopFlag::new();
    std::thread::scope(|scope| {
        let run = || {
            for (end, namespace) in cable.iter().enumerate() {
                wire.address(end, stage::plug(end))?;
                stage::give_address(namespace, end, stage::plug(end))?;
            }
            stage::serve(&cable[1], scope, &ended)?;
            for cable in protected_cables {
                stage::serve(&cable[1], scope, &ended)?;
            }
            wire.serve(scope, &ended)?;
            let mut daemons = Vec::new();
            for (cable, stamp) in [(&stamped, true), (&unstamped, false)] {
                if plan.uses(BenchPath::LinkOverCable { stamp }) {
                    let stamp = if stamp { StampUse::Auto } else { StampUse::Off };
                    daemons.extend(protect(plan, cable, LinkMode::Ordered, stamp, scope)?);
                }
            }
            for (link, mode) in [(&ordered, LinkMode::Ordered), (&unordered, LinkMode::NonBlocking)] {
                if plan.uses(BenchPath::Link(mode)) {
                    daemons.extend(protect(plan, &link.ends, mode, StampUse::Auto, scope)?);
                    link.serve(scope, &ended)?;
                }
            }
            if !daemons.iter().all(|daemon| daemon.wait_until_active(stop)) {
                let why = "the two ends did not find each other within five seconds";
                return if stop.is_stopped() { Ok(None) } else { Err(SystemError(why.to_owned())) };
            }
            for stage in [&wire, places.links[0], places.links[1]] {
                stage.set_rate(plan.rate)?;
            }
            let backend = daemons.first().map_or("none".to_owned(), |daemon| daemon.backend.clone());
            Ok(rounds(plan, &places, stop, begin)?.map(|rows| BenchResults { rows: rows.0, rounds: rows.1, backend }))
        };
        let results = run();
        ended.stop();
        results
    })
}

fn protect<'scope>(
    plan: &BenchPlan,
    ends: &'scope [Namespace; 2],
    mode: LinkMode,
    stamp: StampUse,
    scope: &'scope std::thread::Scope<'scope, '_>,
) -> Result<Vec<StageDaemon<'scope>>, SystemError> {
    let mut daemons = Vec::new();
    for (end, namespace) in ends.iter().enumerate() {
        let (rate, host, wire) = (plan.rate, plan.host, plan.wire);
        let stand_in = StandInConfig { mtu: Some(1_500), rate, host, wire, ..StandInConfig::new(stage::plug(end)) };
        let config = LinkConfig { mode, stamp, ..LinkConfig::new(stand_in) };
        daemons.push(stage::protect(namespace, scope, config, |_| ())?);
        stage::give_address(namespace, end, "hit0")?;
    }
    Ok(daemons)
}

/// Measures each row in each round. Returns the figures and the number of complete rounds.
fn rounds(
    plan: &BenchPlan,
    places: &BenchHosts<'_>,
    stop: &StopFlag,
    begin: &dyn Fn(u32, &str),
) -> Result<Option<(Vec<BenchFigures>, u32)>, SystemError> {
    let rows = plan.rows();
    let mut measured: Vec<Vec<BenchMeasurement>> = vec![Vec::new(); rows.len()];
    let mut missing: Vec<Option<String>> = vec![None; rows.len()];
    let mut completed = 0;
    'rounds: for round in 0..plan.rounds {
        for (at, row) in rows.iter().enumerate() {
            if missing[at].is_some() {
                continue;
            }
            begin(round + 1, row.name);
            let figures = measure(plan, places, row, stop);
            if stop.is_stopped() {
                break 'rounds;
            }
            match figures {
                Ok(figures) => measured[at].push(figures),
                // For example, this kernel lacks a congestion control.
                Err(trouble) => missing[at] = Some(trouble.0),
            }
        }
        completed += 1;
    }
    if completed == 0 {
        return Ok(None);
    }
    let figures = rows.iter().enumerate().map(|(at, row)| BenchFigures {
        name: row.name.to_owned(),
        loss: row.loss,
        throughput_gbps: middle(&measured[at], |row| row.gbps),
        of_b1: median(measured[at].iter().zip(&measured[0]).map(|(row, b1)| row.gbps / b1.gbps).collect()),
        cpu_per_frame_us: middle(&measured[at], |row| row.cpu),
        pingpong_p50_us: middle(&measured[at], |row| row.p50),
        pingpong_p99_us: middle(&measured[at], |row| row.p99),
        pingpong_p999_us: middle(&measured[at], |row| row.p999),
        missing: missing[at].clone(),
    });
    Ok(Some((figures.collect(), completed)))
}

fn middle(rows: &[BenchMeasurement], value: fn(&BenchMeasurement) -> f64) -> f64 {
    median(rows.iter().map(value).collect())
}

fn measure(
    plan: &BenchPlan,
    places: &BenchHosts<'_>,
    row: &BenchRow,
    stop: &StopFlag,
) -> Result<BenchMeasurement, SystemError> {
    let left = match row.path {
        BenchPath::Cable { joined } => {
            for (end, namespace) in places.cable.iter().enumerate() {
                namespace.with(|| set_offloads(end, joined))??;
            }
            &places.cable[0]
        }
        BenchPath::LinkOverCable { stamp } => &places.protected_cables[usize::from(!stamp)][0],
        BenchPath::Wire => {
            places.wire.set_loss(Prob::literal(row.loss))?;
            &places.wire.ends[0]
        }
        BenchPath::Link(mode) => {
            let stage = places.links[usize::from(mode == LinkMode::NonBlocking)];
            stage.set_loss(Prob::literal(row.loss))?;
            &stage.ends[0]
        }
    };
    let to = SocketAddr::new(stage::address(1), stage::PORT);
    let bulk = Bulk { duration: plan.bulk, warmup: plan.bulk / 5, congestion: row.congestion };
    // At a loss of 1e-2 every hundredth request waits for 200 ms: some are enough.
    let within = Duration::from_secs(15);
    let requests = PingPong { count: plan.requests, congestion: row.congestion, within, ..PingPong::default() };
    let to_trouble = |error: std::io::Error| SystemError(error.to_string());
    let (bulk, spent, trips) = left.with(|| {
        let before = process_time();
        let bulk = load::bulk::run(to, &bulk, stop).map_err(to_trouble)?;
        let spent = process_time().saturating_sub(before);
        let trips = load::pingpong::run(to, &requests, stop).map_err(to_trouble)?;
        Ok::<_, SystemError>((bulk, spent, trips))
    })??;
    let us = |delay: Duration| delay.as_nanos() as f64 / 1e3;
    Ok(BenchMeasurement {
        gbps: bulk.bits_per_second() as f64 / 1e9,
        // The measured rate over all the time that was spent, the warm-up included.
        cpu: us(spent) * PAYLOAD_BITS / (bulk.bits_per_second() as f64 * (plan.bulk + plan.bulk / 5).as_secs_f64()),
        p50: us(trips.p50()),
        p99: us(trips.p99()),
        p999: us(trips.p999()),
    })
}

/// Processor time of all threads of this program.
#[expect(unsafe_code, reason = "the standard library has no door to it")]
fn process_time() -> Duration {
    // SAFETY: all zeros is a valid timespec, and the kernel writes nothing else.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time);
        time
    };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn set_offloads(end: usize, joined: bool) -> linux::net::Result<()> {
    let netlink = Netlink::open()?;
    netlink.set_offloads(stage::plug(end), false)?;
    netlink.set_offload(stage::plug(end), Offload::Gro, joined)
}
