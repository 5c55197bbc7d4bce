//! Faults: each is applied to one end, and reverted where a real one would end.

use std::io::{IoSlice, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread::Scope;
use std::time::Duration;

use faults::Random;

use super::forge::Forger;
use super::guests;
use super::ledger::TimeInterval;
use super::plan::{FaultKind, PlannedFault};
use super::supervisor::{Launch, STAND_IN, Supervisor};
use super::traffic::TrafficPulse;
use crate::soak::process;
use crate::stage::{self, Stage};
use link::control::LinkRequest;
use link::frame::{OWN, WHOLE};
use linux::SystemError;
use linux::clock::Clock;
use linux::net::{self, Netlink};
use linux::packet::PacketSocket;
use units::StopFlag;

/// The port of metrics, at each end.
pub(crate) const METRICS: u16 = 9_464;
/// MTU of the wire; the stand-in's is 1,500.
pub(crate) const MTU: u32 = 1_600;

const TICK: Duration = Duration::from_millis(10);
/// Clients of a socket that are slow at the same time.
const CLIENTS: usize = 4;
/// Time between two bytes of such a client.
const BYTE_EVERY: Duration = Duration::from_millis(100);
/// Frames that are kept to be sent again.
const MOST_RECORDED: usize = 512;
const HOUR: u64 = 3_600;
/// Time for another keeper, which is looked for once a second, and for frames to pass without a daemon.
const KEEPER_WITHIN: Duration = Duration::from_secs(5);
/// Limit of a wait on a machine that may be busy.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Time in which everything that the daemon had sent when it was killed has arrived.
const SETTLED: Duration = Duration::from_millis(100);

/// All that faults are done to.
#[derive(Debug)]
pub(crate) struct FaultTargets<'a> {
    pub stage: &'a Stage,
    pub ends: &'a [Supervisor<'a>; 2],
    pub pulse: &'a TrafficPulse,
    pub clock: Clock,
    /// Ends a run early.
    pub stop: &'a StopFlag,
    pub keyed: bool,
    /// Frames to each end that were recorded earlier: with a key they must be refused whenever they come.
    pub recorded: [Vec<Vec<u8>>; 2],
    /// Problems that a fault itself has found.
    pub problems: Vec<String>,
}

impl FaultTargets<'_> {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }

    /// Unless it is stopped.
    pub(crate) fn wait(&self, span: Duration) {
        let until = self.clock.elapsed() + span;
        while !self.is_stopped() && self.clock.elapsed() < until {
            std::thread::sleep(TICK.min(span));
        }
    }

    /// Waits until something holds; false if that takes too long, or it is stopped.
    pub(crate) fn wait_until(&self, within: Duration, holds: impl Fn() -> bool) -> bool {
        let until = self.clock.elapsed() + within;
        while !holds() {
            if self.is_stopped() || self.clock.elapsed() > until {
                return false;
            }
            std::thread::sleep(TICK);
        }
        true
    }

    /// Does it. Returns when frames may be lost without being counted, beside the time in which no daemon serves.
    pub(crate) fn inflict(&mut self, fault: &PlannedFault) -> Result<Vec<TimeInterval>, SystemError> {
        let from = self.clock.elapsed();
        let daemon = &self.ends[fault.end];
        let mut frames_may_be_lost = false;
        match fault.kind {
            FaultKind::Kill => self.let_restart(daemon, |daemon| daemon.kill()),
            FaultKind::Restart => self.let_restart(daemon, |daemon| daemon.restart(Launch::default())),
            FaultKind::ClockBack => {
                let launch = Launch { clock_back: Some(HOUR), ..Launch::default() };
                self.let_restart(daemon, |daemon| daemon.restart(launch));
            }
            FaultKind::RestartDormant => {
                let launch = Launch { dormant: true, ..Launch::default() };
                self.let_restart(daemon, |daemon| daemon.restart(launch));
                self.wait(fault.lasts);
                daemon.command(LinkRequest::Activate);
            }
            FaultKind::Stop => {
                daemon.freeze(true);
                self.wait(fault.lasts);
                daemon.freeze(false);
                frames_may_be_lost = true;
            }
            FaultKind::WireDown | FaultKind::InterfaceDown | FaultKind::InterfaceGone => {
                self.cut(fault)?;
                frames_may_be_lost = true;
            }
            FaultKind::Renamed => self.rename(fault)?,
            FaultKind::Firewall => self.filter(fault)?,
            FaultKind::Mtu => self.shrink(fault)?,
            FaultKind::Forged => {
                self.forge(fault)?;
                // A host that can write to a wire without a key can take frames away.
                frames_may_be_lost = !self.keyed;
            }
            FaultKind::Replayed => self.replay(fault)?,
            FaultKind::SlowMetrics | FaultKind::SlowControl | FaultKind::SlowStop => self.slow(fault),
            FaultKind::CpuHogs => self.hog(fault.lasts),
            FaultKind::Deactivate => self.deactivate(fault),
            FaultKind::Bridge => return self.bridge(fault),
            FaultKind::KeeperKilled => self.kill_keeper(fault),
            FaultKind::NamespaceReused => daemon.report(guests::reuse_a_number(daemon, fault.seed)),
        }
        let to = self.clock.elapsed();
        Ok(frames_may_be_lost.then_some(TimeInterval { from, to }).into_iter().collect())
    }

    pub(super) fn let_restart(&self, daemon: &Supervisor<'_>, end: impl FnOnce(&Supervisor<'_>)) {
        end(daemon);
        // A daemon that does not stop is killed after five seconds.
        self.wait_until(Duration::from_secs(8), || daemon.is_served());
    }

    /// The daemon has another keeper soon after, which passes frames when the daemon is killed too and nobody starts another.
    fn kill_keeper(&self, fault: &PlannedFault) {
        let daemon = &self.ends[fault.end];
        let keeper = || daemon.status_since(Duration::ZERO).and_then(|status| status.keeper.pid);
        let Some(first) = keeper() else {
            return daemon.report(vec!["the link has no keeper".to_owned()]);
        };
        process::kill(first);
        if !self.comes(daemon, "another keeper", || keeper().is_some_and(|keeper| keeper != first)) {
            return;
        }
        daemon.hold(true);
        daemon.kill();
        self.wait_until(KEEPER_WITHIN, || daemon.is_down());
        let killed = self.clock.elapsed() + SETTLED;
        self.wait(fault.lasts + SETTLED);
        self.comes(daemon, "a datagram without a daemon", || self.pulse.beats_since(killed));
        self.let_restart(daemon, |daemon| daemon.hold(false));
    }

    /// Waits for something that a keeper does; true if it comes. Reports what comes late, which may be a busy machine's, or not at all.
    fn comes(&self, daemon: &Supervisor<'_>, what: &str, is_there: impl Fn() -> bool) -> bool {
        let began = self.clock.elapsed();
        let comes = self.wait_until(PATIENCE, is_there);
        let (waited, seconds) = (self.clock.elapsed() - began, PATIENCE.as_secs());
        match comes {
            true if waited > KEEPER_WITHIN => {
                daemon.report(vec![format!("{what} came only after {:.1} s", waited.as_secs_f64())]);
            }
            false if !self.is_stopped() => daemon.report(vec![format!("{what} did not come within {seconds} s")]),
            _ => {}
        }
        comes
    }

    fn cut(&self, fault: &PlannedFault) -> Result<(), SystemError> {
        let PlannedFault { end, lasts, .. } = *fault;
        match fault.kind {
            FaultKind::WireDown => {
                self.stage.set_carrier(end, false)?;
                self.wait(lasts);
                self.stage.set_carrier(end, true)?;
            }
            FaultKind::InterfaceDown => {
                self.on_wire(end, |netlink, index| netlink.set_up(index, false))?;
                self.wait(lasts);
                self.on_wire(end, |netlink, index| netlink.set_up(index, true))?;
            }
            _ => {
                self.stage.unplug(end)?;
                self.wait(lasts);
                self.stage.replug(end)?;
                self.wait_until_in_use(end);
            }
        }
        self.on_wire(end, |netlink, index| netlink.wait_until_running(index))?;
        Ok(self.stage.wait_for_port(end)?)
    }

    /// Waits until the daemon of an end serves its interface again, for some seconds at most: until then nobody does.
    fn wait_until_in_use(&self, end: usize) {
        let since = self.clock.elapsed();
        let serves = || self.ends[end].status_since(since).is_some_and(|status| !status.is_waiting());
        self.wait_until(Duration::from_secs(5), serves);
    }

    pub(super) fn on_wire(
        &self,
        end: usize,
        act: impl FnOnce(&Netlink, u32) -> net::Result<()> + Send,
    ) -> net::Result<()> {
        self.stage.ends[end].with(|| {
            let netlink = Netlink::open()?;
            let index = netlink.existing_wire_of(stage::plug(end))?.index;
            act(&netlink, index)
        })?
    }

    fn shrink(&self, fault: &PlannedFault) -> net::Result<()> {
        let mtu = 1_000 + (fault.seed % 500) as u32;
        self.on_wire(fault.end, |netlink, index| netlink.set_mtu(index, mtu))?;
        self.wait(fault.lasts);
        self.on_wire(fault.end, |netlink, index| netlink.set_mtu(index, MTU))
    }

    fn forge(&self, fault: &PlannedFault) -> Result<(), SystemError> {
        let mut forger = Forger::new(fault.seed, stage::mac(1 - fault.end), stage::mac(fault.end));
        let until = self.clock.elapsed() + fault.lasts;
        self.stage.with_taps(|mut taps| {
            while self.clock.elapsed() < until && !self.is_stopped() {
                for _ in 0..10 {
                    put(&mut taps[fault.end], &forger.frame())?;
                }
                std::thread::sleep(TICK);
            }
            Ok(())
        })
    }

    /// Frames to an end are recorded, and sent again soon after. With a key, those of earlier recordings too.
    fn replay(&mut self, fault: &PlannedFault) -> Result<(), SystemError> {
        let earlier = std::mem::take(&mut self.recorded[fault.end]);
        let recorded = self.stage.with_taps(|mut taps| {
            let recorded = self.record(&mut taps[1 - fault.end], fault.lasts / 2);
            let mut random = Random::new(fault.seed, 12);
            let mut frames: Vec<&Vec<u8>> = recorded.iter().chain(&earlier).collect();
            while !frames.is_empty() && !self.is_stopped() {
                for _ in 0..frames.len().min(32) {
                    let frame = frames.swap_remove(random.below(frames.len() as u64) as usize);
                    put(&mut taps[fault.end], frame)?;
                }
                std::thread::sleep(TICK);
            }
            Ok(recorded)
        })?;
        if self.keyed {
            self.recorded[fault.end] = recorded;
        }
        Ok(())
    }

    fn record(&self, tap: &mut PacketSocket, lasts: Duration) -> Vec<Vec<u8>> {
        let mut recorded = Vec::new();
        let until = self.clock.elapsed() + lasts;
        while self.clock.elapsed() < until && !self.is_stopped() {
            tap.receive(MOST_RECORDED, |frame| {
                // Without a key, a frame that is not protected is any frame: a wire that repeats it repeats it.
                if recorded.len() < MOST_RECORDED && is_protected(frame.bytes) {
                    recorded.push(frame.bytes.to_vec());
                }
            });
            std::thread::sleep(Duration::from_millis(2));
        }
        recorded
    }

    fn deactivate(&self, fault: &PlannedFault) {
        let which: &[usize] = [&[0][..], &[1], &[0, 1]][(fault.seed % 3) as usize];
        for end in which {
            self.ends[*end].command(LinkRequest::Deactivate);
        }
        self.wait(fault.lasts);
        for daemon in self.ends {
            daemon.command(LinkRequest::Activate);
        }
    }

    fn hog(&self, lasts: Duration) {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let over = StopFlag::new();
        std::thread::scope(|scope| {
            for _ in 0..2 * processors {
                scope.spawn(|| load::hog(&over));
            }
            self.wait(lasts);
            over.stop();
        });
    }

    fn slow(&self, fault: &PlannedFault) {
        let (daemon, over) = (&self.ends[fault.end], StopFlag::new());
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                if fault.kind != FaultKind::SlowControl {
                    slow_http(scope, daemon, &over);
                }
                if fault.kind != FaultKind::SlowMetrics {
                    slow_control(scope, daemon, &over);
                }
            }
            if fault.kind == FaultKind::SlowStop {
                self.wait(2 * BYTE_EVERY);
                let starts = daemon.starts();
                daemon.restart(Launch::default());
                // The slow clients go on for as long as the daemon runs.
                self.wait_until(Duration::from_secs(7), || daemon.starts() > starts);
            } else {
                self.wait(fault.lasts);
            }
            over.stop();
        });
        if fault.kind == FaultKind::SlowStop {
            self.wait_until(Duration::from_secs(8), || daemon.is_served());
        }
    }
}

fn is_protected(frame: &[u8]) -> bool {
    frame.len() >= 14 && [OWN, WHOLE].contains(&u16::from_be_bytes([frame[12], frame[13]]))
}

/// A wire that is full or down takes nothing, which is no trouble of the bench's.
fn put(wire: &mut PacketSocket, frame: &[u8]) -> Result<(), SystemError> {
    match wire.send_one(&[IoSlice::new(frame)]) {
        Err(error) if !matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::ENXIO)) => {
            Err(SystemError(format!("send a forged frame: {error}")))
        }
        _ => Ok(()),
    }
}

/// Sends a request byte by byte and never completes it.
fn dawdle(mut stream: impl Write, request: &[u8], over: &StopFlag) {
    for byte in request.iter().cycle() {
        if over.is_stopped() || stream.write_all(&[*byte]).is_err() {
            return;
        }
        std::thread::sleep(BYTE_EVERY);
    }
}

fn slow_http<'scope>(scope: &'scope Scope<'scope, '_>, daemon: &'scope Supervisor<'_>, over: &'scope StopFlag) {
    scope.spawn(move || {
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, METRICS));
        let connect = || TcpStream::connect_timeout(&to, Duration::from_secs(1));
        if let Ok(Ok(stream)) = daemon.namespace.with(connect) {
            dawdle(stream, b"X", over);
        }
    });
}

fn slow_control<'scope>(scope: &'scope Scope<'scope, '_>, daemon: &'scope Supervisor<'_>, over: &'scope StopFlag) {
    scope.spawn(move || {
        if let Ok(stream) = UnixStream::connect(daemon.directory.socket(STAND_IN)) {
            dawdle(stream, b" ", over);
        }
    });
}
