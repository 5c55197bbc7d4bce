//! One flow over a wire between two hosts of this machine, then requests one after the other.

use std::fs;
use std::io;
use std::time::Duration;

use capture::pcapng::{ETHERNET, EnhancedPacket, PcapngWriter};
use emulator::DirectionConfig;
use faults::FaultSchedule;
use lab::stage::{self, Stage};
use linux::SystemError;
use linux::packet::PacketSocket;
use linux::poll;
use load::{Bulk, PingPong, RoundTrips};
use units::StopFlag;

use super::plan::{CheckCase, CheckPlan};

/// Bytes of a frame that captures keep, and the frames that a capture may fall behind.
const SNAP: usize = 128;
const RING: usize = 8_192;
/// Time for which a capture sleeps when nothing comes.
const LOOK: Duration = Duration::from_millis(1);

/// The wire and what runs over it.
#[derive(Debug)]
enum LiveLoad {
    Bulk(Bulk),
    Requests(PingPong),
}

/// Result of a load.
#[derive(Debug)]
enum LiveOutcome {
    Gbps(f64),
    Trips(RoundTrips),
}

/// The throughput of a bulk flow; `None` if it was stopped.
pub(super) fn bulk(
    case: &CheckCase,
    plan: &CheckPlan,
    round: u32,
    stop: &StopFlag,
) -> Result<Option<f64>, SystemError> {
    let bulk = Bulk { duration: plan.measured(case), warmup: plan.warmup(case), congestion: case.congestion };
    let faults = case.bulk_faults(plan.whole(case), round);
    let outcome = apart(|| run(case, faults, &LiveLoad::Bulk(bulk), None, stop))?;
    Ok(match outcome {
        Some(LiveOutcome::Gbps(gbps)) => Some(gbps),
        Some(LiveOutcome::Trips(_)) | None => None,
    })
}

/// The round trips of requests; `None` if they were stopped.
pub(super) fn requests(
    case: &CheckCase,
    plan: &CheckPlan,
    round: u32,
    stop: &StopFlag,
) -> Result<Option<RoundTrips>, SystemError> {
    let requests = PingPong {
        count: plan.requests,
        congestion: case.congestion,
        within: plan.requests_within,
        ..PingPong::default()
    };
    let faults = case.request_faults(plan.requests, round);
    Ok(match apart(|| run(case, faults, &LiveLoad::Requests(requests), None, stop))? {
        Some(LiveOutcome::Trips(trips)) => Some(trips),
        Some(LiveOutcome::Gbps(_)) | None => None,
    })
}

/// Capture of the frames that a bulk flow's sender sends and receives; `None` if it was stopped.
pub(super) fn capture(
    case: &CheckCase,
    plan: &CheckPlan,
    round: u32,
    stop: &StopFlag,
) -> Result<Option<Vec<u8>>, SystemError> {
    let bulk = Bulk { duration: plan.measured(case), warmup: Duration::ZERO, congestion: case.congestion };
    let mut captured = Vec::new();
    let faults = case.bulk_faults(plan.whole(case), round);
    let outcome = apart(|| run(case, faults, &LiveLoad::Bulk(bulk), Some(&mut captured), stop))?;
    Ok(outcome.map(|_| captured))
}

/// Runs work on a thread of its own, since it is tied to a processor with everything that it starts.
fn apart<T: Send>(work: impl FnOnce() -> Result<T, SystemError> + Send) -> Result<T, SystemError> {
    std::thread::scope(|scope| {
        let alone = scope.spawn(work);
        alone.join().unwrap_or_else(|_| Err(SystemError("a live run panicked".to_owned())))
    })
}

/// Runs it in namespaces that are ours already, on a thread of its own; `None` if it was stopped.
///
/// The wire has a processor and the hosts have another: if they shared one, a host that is woken would wait until the
/// wire, which never sleeps for long, gives way.
fn run(
    case: &CheckCase,
    faults: [FaultSchedule; 2],
    load: &LiveLoad,
    capture: Option<&mut Vec<u8>>,
    stop: &StopFlag,
) -> Result<Option<LiveOutcome>, SystemError> {
    let stage = Stage::unjoined(1_500)?;
    let ended = StopFlag::new();
    let last = std::thread::available_parallelism().map_or(0, |count| count.get() - 1);
    let pin = |processor| poll::pin(processor).map_err(|error| SystemError(format!("processor {processor}: {error}")));
    std::thread::scope(|scope| {
        let run = || {
            for end in 0..2 {
                stage.address(end, stage::plug(end))?;
                stage.ends[end].with(lift_buffers)??;
            }
            let lanes = faults.map(|faults| DirectionConfig { faults, rate: Some(case.rate), delay: case.delay });
            pin(last)?;
            let wire = stage.carry_lanes(scope, lanes, 1)?;
            pin(0)?;
            stage.serve(scope, &ended)?;
            let ended = &ended;
            let sniffer = capture.map(|out| stage.sniffer(0, SNAP, RING).map(|socket| (socket, out))).transpose()?;
            let keeper = sniffer.map(|(socket, out)| scope.spawn(move || keep(socket, ended, out)));
            let seen = measure(load, &stage, stop);
            ended.stop();
            if let Some(keeper) = keeper {
                let kept = keeper.join().unwrap_or_else(|_| Err(io::Error::other("the capture panicked")));
                kept.map_err(|error| SystemError(format!("the capture: {error}")))?;
            }
            wire.stop()?;
            seen
        };
        let seen = run();
        ended.stop();
        seen
    })
}

/// Socket buffers that grow as far as a flow needs: the simulated ones are never in its way.
fn lift_buffers() -> Result<(), SystemError> {
    for (setting, value) in [("tcp_wmem", "4096 16384 67108864"), ("tcp_rmem", "4096 131072 67108864")] {
        let path = format!("/proc/sys/net/ipv4/{setting}");
        fs::write(&path, value)
            .map_err(|error| SystemError(format!("set {path} in a namespace of our own: {error}")))?;
    }
    Ok(())
}

fn measure(load: &LiveLoad, stage: &Stage, stop: &StopFlag) -> Result<Option<LiveOutcome>, SystemError> {
    let failed = |error: io::Error| SystemError(error.to_string());
    let outcome = stage.ends[0].with(|| match load {
        LiveLoad::Bulk(bulk) => {
            let bulk = load::bulk::run(stage.server(), bulk, stop).map_err(failed)?;
            Ok(LiveOutcome::Gbps(bulk.bits_per_second() as f64 / 1e9))
        }
        LiveLoad::Requests(requests) => {
            load::pingpong::run(stage.server(), requests, stop).map_err(failed).map(LiveOutcome::Trips)
        }
    })?;
    outcome.map(|outcome| (!stop.is_stopped()).then_some(outcome))
}

/// Writes the beginnings of all frames until it is ended.
fn keep(mut socket: PacketSocket, ended: &StopFlag, out: &mut Vec<u8>) -> io::Result<()> {
    let mut writer = PcapngWriter::new(out)?;
    writer.interface(ETHERNET, SNAP as u32, Some("sender"))?;
    let mut result = Ok(());
    loop {
        let over = ended.is_stopped();
        let received = socket.receive(RING, |frame| {
            let at = u64::try_from(frame.at.as_nanos()).unwrap_or(u64::MAX);
            let packet = EnhancedPacket {
                interface: 0,
                at,
                len: frame.len as u32,
                bytes: frame.bytes,
                comment: None,
                flags: None,
            };
            if let Err(error) = writer.packet(&packet) {
                result = Err(error);
            }
        });
        if over && received == 0 {
            return result;
        }
        if received == 0 {
            std::thread::sleep(LOOK);
        }
    }
}
