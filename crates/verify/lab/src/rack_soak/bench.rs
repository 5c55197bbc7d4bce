//! The course of a soak: everything is started, then things are done to it, then all is looked at.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use emulator::DirectionConfig;
use faults::{FaultSchedule, LossModel};
use linux::SystemError;
use linux::clock::Clock;
use rack::control::RackRole;
use rack::host::HostStatus;
use rack::switch::SwitchStatus;
use units::{Span, StopFlag};

use super::commands::{LinkCommands, RackCommands, WIRE_MTU};
use super::daemons::{DaemonCommand, RESTART_AFTER, RackDaemon};
use super::flows::{FIRST_SENDER, FlowsEnd, RunningFlows};
use super::ledger::RackLedger;
use super::outcome::{RackSoak, RackSoakEvent, SWITCH, host_name};
use super::recovery::FlowHistory;
use super::requests::RackRequests;
use super::{LOSSY, RackSoakObserver, RackSoakPlan};
use crate::soak::{Workshop, resident};
use crate::stage::{self, CarrierCounts, EmulatedWire, RackStage};

/// Time for which everything flows before anything is done, and after it.
const WARMUP: Duration = Duration::from_secs(2);
/// Time for which flows are watched to see if they are back at their rate.
const SETTLE: Duration = Duration::from_secs(2);
const SAMPLE_EVERY: Duration = Duration::from_millis(5);
const ASK_EVERY: Duration = Duration::from_millis(100);
/// Time after which the queues are empty when nobody sends any more.
const DRAIN: Duration = Duration::from_secs(1);

/// All that the parts of a soak share.
struct RackBench<'a> {
    plan: &'a RackSoakPlan,
    stage: &'a RackStage,
    shop: &'a Workshop,
    commands: &'a RackCommands<'a>,
    clock: Clock,
    /// Datagrams that arrived at the sink, by sender.
    arrived: Vec<AtomicU64>,
    history: Mutex<FlowHistory>,
    ledger: Mutex<RackLedger>,
    /// The processes that run, for their memory.
    processes: Mutex<Vec<u32>>,
    requests: RackRequests,
    /// Ends the traffic, and all that looks at it.
    over: StopFlag,
    flows_end: FlowsEnd,
    stop: &'a StopFlag,
}

/// The processes of a rack.
struct RunningRack<'a> {
    switch: RackDaemon<'a>,
    /// All but one that leaves and joins.
    hosts: Vec<RackDaemon<'a>>,
}

pub(super) fn run(
    plan: &RackSoakPlan,
    stop: &StopFlag,
    watch: &dyn RackSoakObserver,
) -> Result<Option<RackSoak>, SystemError> {
    let (stage, shop) = (RackStage::new(plan.hosts, WIRE_MTU)?, Workshop::new()?);
    stage.give_addresses(stage::plug)?;
    let counts = CarrierCounts::default();
    std::thread::scope(|scope| {
        let wire = lay_wire(plan, &stage, scope, &counts)?;
        let port = wire.as_ref().map(|(_, port)| port.as_str());
        let links = LinkCommands::new(plan, &stage, &shop, port);
        let running_links = links.start(stop)?;
        let commands = RackCommands::new(plan, &stage, &shop, &links, port);
        let bench = RackBench {
            plan,
            stage: &stage,
            shop: &shop,
            commands: &commands,
            clock: Clock::start(),
            arrived: (FIRST_SENDER..plan.hosts).map(|_| AtomicU64::new(0)).collect(),
            history: Mutex::default(),
            ledger: Mutex::default(),
            processes: Mutex::default(),
            requests: RackRequests::default(),
            over: StopFlag::new(),
            flows_end: FlowsEnd::default(),
            stop,
        };
        let played = bench.play(watch);
        drop(running_links);
        wire.map_or(Ok(()), |(wire, _)| wire.stop())?;
        played
    })
}

fn lay_wire<'scope>(
    plan: &RackSoakPlan,
    stage: &'scope RackStage,
    scope: &'scope Scope<'scope, '_>,
    counts: &'scope CarrierCounts,
) -> Result<Option<(EmulatedWire<'scope>, String)>, SystemError> {
    if plan.loss.get() == 0.0 {
        return Ok(None);
    }
    let model =
        LossModel::bursts(plan.loss, 1.0).ok_or_else(|| SystemError(format!("a loss of {} cannot be", plan.loss)))?;
    let lane = DirectionConfig { faults: FaultSchedule::always(model), rate: None, delay: Span::ZERO };
    stage.lay_wire(scope, LOSSY, WIRE_MTU, counts, &lane).map(Some)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> RackBench<'a> {
    fn play(&self, watch: &dyn RackSoakObserver) -> Result<Option<RackSoak>, SystemError> {
        let Some(switch) = self.start_switch()? else { return Ok(None) };
        let mut hosts = Vec::new();
        for number in 0..self.plan.hosts {
            let Some(host) = self.start_host(number)? else { return Ok(None) };
            hosts.push(host);
        }
        let rack = RunningRack { switch, hosts };
        std::thread::scope(|scope| {
            let played = self.under_load(scope, rack, watch);
            // Also after an error: nothing may go on.
            self.over.stop();
            self.flows_end.sending.stop();
            self.flows_end.receiving.stop();
            played
        })
    }

    fn start_switch(&self) -> Result<Option<RackDaemon<'a>>, SystemError> {
        let command = &self.commands.switch;
        self.start(command, |pid| {
            command.status::<SwitchStatus>(RackRole::Switch).is_some_and(|status| status.pid == pid)
        })
    }

    fn start_host(&self, number: usize) -> Result<Option<RackDaemon<'a>>, SystemError> {
        let command = &self.commands.hosts[number];
        self.start(command, |pid| command.status::<HostStatus>(RackRole::Host).is_some_and(|status| status.pid == pid))
    }

    /// Starts a daemon and waits until it answers; none if stopped before.
    fn start(
        &self,
        command: &'a DaemonCommand<'a>,
        answers: impl Fn(u32) -> bool,
    ) -> Result<Option<RackDaemon<'a>>, SystemError> {
        let mut daemon = command.start()?;
        let pid = daemon.pid();
        locked(&self.processes).push(pid);
        Ok(daemon.wait_until(|| answers(pid), self.stop)?.then_some(daemon))
    }

    fn under_load<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        mut rack: RunningRack<'a>,
        watch: &dyn RackSoakObserver,
    ) -> Result<Option<RackSoak>, SystemError> {
        let requests = self.requests.start(scope, self.stage, self.shop, &self.over, self.stop, self.plan.duration)?;
        let Some(requests) = requests else { return Ok(None) };
        requests.remarks().for_each(|remark| watch.remark(remark));
        let flows = RunningFlows::start(scope, self.stage, self.plan.rate, &self.arrived, &self.flows_end)?;
        let looking = [scope.spawn(|| self.sample()), scope.spawn(|| self.ask())];
        let joining = (self.plan.joins > 0).then(|| rack.hosts.pop()).flatten();
        let joining = joining.map(|host| scope.spawn(|| self.leave_and_join(host)));
        let events = self.do_things(&mut rack, watch)?;
        let complete = !self.stop.is_stopped();
        let seconds = self.clock.elapsed().as_secs_f64();
        self.flows_end.sending.stop();
        self.over.stop();
        let requests = requests.join()?;
        std::thread::sleep(DRAIN);
        self.look();
        let left_waiting = self.left_waiting();
        self.flows_end.receiving.stop();
        let joins = joining.map_or(Ok(0), joined)?;
        for thread in looking {
            thread.join().map_err(|_| SystemError("a thread that looks panicked".to_owned()))?;
        }
        let ledger = locked(&self.ledger);
        let flows = flows.join(|host| ledger.refused(host))?;
        let [switch_dropped, ring_overflow] = ledger.lost_at_switch();
        Ok(Some(RackSoak {
            complete,
            seconds,
            rate_mbps: self.plan.rate.bits_per_second() as f64 / 1e6,
            hosts: self.plan.hosts,
            scheduler: self.plan.scheduler.name(),
            loss: self.plan.loss.get(),
            protected: self.plan.protect,
            rootless: false,
            bound_bytes: ledger.bound_bytes,
            port_peak_bytes: ledger.peak_bytes,
            switch_dropped,
            ring_overflow,
            events,
            joins,
            gets: requests.gets,
            gets_failed: requests.gets_failed,
            get_p50_us: requests.get_us(0.5),
            get_p99_us: requests.get_us(0.99),
            flows,
            traffic: requests.traffic,
            memory: ledger.memory(),
            left_waiting,
            valid: true,
            why_invalid: None,
            verdicts: Vec::new(),
        }))
    }

    /// Kills a daemon now and then until the time is over.
    fn do_things(
        &self,
        rack: &mut RunningRack<'a>,
        watch: &dyn RackSoakObserver,
    ) -> Result<Vec<RackSoakEvent>, SystemError> {
        let (plan, begun) = (self.plan, self.clock.elapsed());
        let mut events = Vec::new();
        for number in 0..plan.kills {
            let due = begun + WARMUP + (plan.duration.saturating_sub(2 * WARMUP)) * number / plan.kills;
            if !self.sleep_until(due, watch) {
                return Ok(events);
            }
            // Hosts and the switch in turn; host 2 first.
            let victims = rack.hosts.len() - FIRST_SENDER;
            let victim = (number % 2 == 0).then_some(FIRST_SENDER + number as usize / 2 % victims);
            let Some(event) = self.kill(rack, victim, watch)? else { return Ok(events) };
            events.push(event);
        }
        self.sleep_until(begun + plan.duration, watch);
        Ok(events)
    }

    /// Kills a host's daemon, or the switch, and starts it again; none if stopped before it answered.
    fn kill(
        &self,
        rack: &mut RunningRack<'a>,
        victim: Option<usize>,
        watch: &dyn RackSoakObserver,
    ) -> Result<Option<RackSoakEvent>, SystemError> {
        let daemon = match victim {
            Some(host) => &mut rack.hosts[host],
            None => &mut rack.switch,
        };
        let at = self.clock.elapsed();
        daemon.kill();
        std::thread::sleep(RESTART_AFTER);
        let restarted = self.clock.elapsed();
        let again = match victim {
            Some(host) => self.start_host(host)?,
            None => self.start_switch()?,
        };
        let Some(again) = again else { return Ok(None) };
        *daemon = again;
        let answered = self.clock.elapsed();
        self.sleep_until(answered + SETTLE, watch);
        let history = locked(&self.history);
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        let is_victim = |flow: usize| victim == Some(FIRST_SENDER + flow);
        let others = history.back_after(at, at, |flow| !is_victim(flow));
        let watched = others.map_or(answered + SETTLE, |back| (at + back).max(answered));
        let own = victim.and_then(|_| history.back_after(at, restarted, is_victim));
        Ok(Some(RackSoakEvent {
            at_seconds: at.as_secs_f64(),
            killed: victim.map_or(SWITCH.to_owned(), host_name),
            others_back_ms: others.map(ms),
            answered_ms: ms(answered - at),
            machine_late_ms: ms(history.latest_sample(at, watched, SAMPLE_EVERY)),
            own_back_ms: own.map(|own| ms(own.saturating_sub(restarted - at))),
        }))
    }

    /// The last host leaves and joins again, until the time is over; how often.
    fn leave_and_join(&self, host: RackDaemon<'a>) -> Result<u32, SystemError> {
        let number = self.plan.hosts - 1;
        let pause = self.plan.duration / (2 * self.plan.joins + 1);
        let begun = self.clock.elapsed();
        let (mut host, mut joins) = (Some(host), 0);
        // The time of a leave and a join is not added: the requested number fits while there is time.
        while joins < self.plan.joins && self.rest_until(begun + pause * (2 * joins + 1)) {
            if let Some(host) = host.take() {
                host.end();
            }
            if !self.rest_until(begun + pause * (2 * joins + 2)) {
                break;
            }
            host = self.start_host(number)?;
            joins += 1;
        }
        // It ends with this thread: not before all is over.
        while !self.flows_end.receiving.is_stopped() {
            std::thread::sleep(ASK_EVERY);
        }
        drop(host);
        Ok(joins)
    }

    /// False if it is over before.
    fn rest_until(&self, due: Duration) -> bool {
        while self.clock.elapsed() < due && !self.over.is_stopped() {
            std::thread::sleep(SAMPLE_EVERY.min(due.saturating_sub(self.clock.elapsed())));
        }
        !self.over.is_stopped()
    }

    /// False if it was stopped before.
    fn sleep_until(&self, due: Duration, watch: &dyn RackSoakObserver) -> bool {
        while self.clock.elapsed() < due && !self.stop.is_stopped() {
            watch.tick(self.clock.elapsed());
            std::thread::sleep(due.saturating_sub(self.clock.elapsed()).min(ASK_EVERY));
        }
        !self.stop.is_stopped()
    }

    fn sample(&self) {
        while !self.over.is_stopped() {
            let counts = self.arrived.iter().map(|count| count.load(Ordering::Relaxed)).collect();
            locked(&self.history).add(self.clock.elapsed(), counts);
            std::thread::sleep(SAMPLE_EVERY);
        }
    }

    fn ask(&self) {
        while !self.over.is_stopped() {
            self.look();
            std::thread::sleep(ASK_EVERY);
        }
    }

    /// Asks everybody, and looks at their memory.
    fn look(&self) {
        if let Some(status) = self.commands.switch.status(RackRole::Switch) {
            locked(&self.ledger).heard_of_switch(&status);
        }
        for (number, command) in self.commands.hosts.iter().enumerate() {
            if let Some(status) = command.status(RackRole::Host) {
                locked(&self.ledger).heard_of_host(number, &status);
            }
        }
        let held = locked(&self.processes).iter().filter_map(resident).sum();
        locked(&self.ledger).saw_memory(self.clock.elapsed(), held);
    }

    /// Amount that still waits or is reserved when nobody sends any more.
    fn left_waiting(&self) -> u64 {
        let switch: Option<SwitchStatus> = self.commands.switch.status(RackRole::Switch);
        let at_ports: u64 = switch.iter().flat_map(|status| &status.ports).map(|port| port.held_bytes).sum();
        let statuses = self.commands.hosts.iter().filter_map(|host| host.status::<HostStatus>(RackRole::Host));
        at_ports + statuses.map(|status| status.queued_bytes + status.held_frames).sum::<u64>()
    }
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, SystemError>>) -> Result<T, SystemError> {
    thread.join().unwrap_or_else(|_| Err(SystemError("a thread of the soak panicked".to_owned())))
}
