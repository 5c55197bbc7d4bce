//! One way to connect hosts with the switch, set up, and one measurement on it.

use std::thread::Scope;
use std::time::Duration;

use link::config::LinkConfig;
use linux::SystemError;
use linux::clock::Clock;
use rack::host::JoinConfig;
use rack::switch::SwitchStatus;
use reserve::SchedulerKind;
use standin::StandInConfig;
use units::{Bytes, StopFlag};

use super::background::{BackgroundEnd, BackgroundPlan, BackgroundTotals, RunningBackground, time_to_drain};
use super::gets::{GetClient, GetTotals};
use super::rows::{K, MTU, RackCase, RackDemoPlan, RackRow, RackWay};
use crate::stage::{self, RackStage, StageDaemon, StageMember, StageSwitch};

/// The host whose port everybody sends to.
pub(super) const CLIENT: usize = 0;
/// Time before anything is measured.
const WARMUP: Duration = Duration::from_millis(300);
/// Time between two looks at what hosts still hold, and the most looks there are.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const MOST_LOOKS: u32 = 100;
/// Most bytes that a host may hold, for as long as it takes to drain.
const HELD_BY_HOSTS: Bytes = Bytes::new(8 << 20);

/// A wire with room for what a way adds, so that all stages carry the same frames above it.
pub(super) fn stage(plan: &RackDemoPlan, way: RackWay) -> Result<RackStage, SystemError> {
    RackStage::new(plan.hosts, way.wire_mtu())
}

/// Hosts, their switch and their stand-ins, all running.
pub(super) struct RackScene<'scope> {
    way: RackWay,
    stage: &'scope RackStage,
    switch: StageSwitch<'scope>,
    daemons: Vec<StageDaemon<'scope>>,
    members: Vec<StageMember>,
}

/// Part of a run that is measured, by two looks at the switch.
struct SwitchWindow {
    begun: SwitchStatus,
    from: SwitchStatus,
    to: SwitchStatus,
    drained: SwitchStatus,
}

impl<'scope> RackScene<'scope> {
    pub(super) fn set(
        plan: &RackDemoPlan,
        way: RackWay,
        stage: &'scope RackStage,
        scope: &'scope Scope<'scope, '_>,
        serving: &'scope StopFlag,
    ) -> Result<Self, SystemError> {
        let switch = stage.start_switch(scope, plan.rate, plan.buffer, plan.agreement(way))?;
        let (mut daemons, mut members) = (Vec::new(), Vec::new());
        match way {
            RackWay::Plain => {
                stage.limit_hosts(plan.rate)?;
                stage.give_addresses(stage::plug)?;
            }
            RackWay::Shim => {
                for number in 0..plan.hosts {
                    let config = LinkConfig { dormant: true, ..LinkConfig::new(stand_in(plan, number)) };
                    daemons.push(stage::protect(stage.host(number), scope, config, |_| ())?);
                }
                stage.give_addresses(|_| "hit0")?;
            }
            RackWay::Paper | RackWay::Pl2 => {
                let scheduler = if way == RackWay::Paper { SchedulerKind::Paper } else { plan.scheduler };
                for number in 0..plan.hosts {
                    let config = JoinConfig { stand_in: stand_in(plan, number), scheduler, k: K, contexts: None };
                    members.push(StageMember::join(stage.host(number), scope, config)?);
                }
                stage.give_addresses(|_| "hit0")?;
            }
        }
        stage::serve(stage.host(CLIENT), scope, serving)?;
        Ok(Self { way, stage, switch, daemons, members })
    }

    pub(super) fn way(&self) -> RackWay {
        self.way
    }

    /// Frames that found no room in the queues of hosts so far.
    fn refused_by_hosts(&self) -> Result<u64, SystemError> {
        const REASONS: [&str; 4] = ["queue_dropped", "host_overflow", "no_buffer", "wire_refused"];
        let mut refused = if self.way == RackWay::Plain { self.stage.refused_by_hosts()? } else { 0 };
        for daemon in &self.daemons {
            let status = daemon.handle.status().ok_or_else(|| SystemError("a stand-in does not answer".to_owned()))?;
            refused += REASONS.iter().map(|reason| status.counters.get(*reason).copied().unwrap_or(0)).sum::<u64>();
        }
        for member in &self.members {
            refused += member.status()?.refused;
        }
        Ok(refused)
    }

    /// Waits until nothing waits in hosts any more: on a machine that is busy with other things it takes longer than it should.
    fn wait_until_drained(&self) -> Result<(), SystemError> {
        for _ in 0..MOST_LOOKS {
            let mut waiting = 0;
            for daemon in &self.daemons {
                waiting += daemon.handle.status().map_or(0, |status| status.queued_bytes);
            }
            for member in &self.members {
                let status = member.status()?;
                waiting += status.queued_bytes + status.held_frames;
            }
            if waiting == 0 {
                return Ok(());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// One case; none if stopped.
    pub(super) fn measure(
        &mut self,
        plan: &RackDemoPlan,
        case: RackCase,
        stop: &StopFlag,
    ) -> Result<Option<RackRow>, SystemError> {
        let (over, end) = (StopFlag::new(), BackgroundEnd::default());
        let refused_before = self.refused_by_hosts()?;
        self.switch.reset_peaks();
        let begun = self.switch.status()?;
        let stage = self.stage;
        let connected = stage.host(CLIENT).with(|| GetClient::connect(&over))?;
        let client = connected.map_err(|error| SystemError(format!("a client without background: {error}")))?;
        let (window, gets, background) = std::thread::scope(|scope| -> Result<_, SystemError> {
            let clock = Clock::start();
            let RackDemoPlan { rate, measure, .. } = *plan;
            let give_way = self.way != RackWay::Plain;
            let sends = BackgroundPlan { case, rate, warmup: WARMUP, measure, give_way };
            let running = RunningBackground::start(scope, stage, sends, &end)?;
            std::thread::sleep(WARMUP);
            let from = self.switch.status();
            let client = scope.spawn(|| client.run(&over));
            pause(plan.measure, stop);
            over.stop();
            end.sending.stop();
            let (to, lasted) = (self.switch.status(), clock.elapsed());
            std::thread::sleep(time_to_drain(plan.rate, if case.senders > 0 { HELD_BY_HOSTS } else { Bytes::ZERO }));
            self.wait_until_drained()?;
            end.receiving.stop();
            let gets = client.join().map_err(|_| SystemError("the client panicked".to_owned()))?;
            let gets = gets.map_err(|error| SystemError(format!("the client: {error}")))?;
            let background = running.join(lasted, plan.rate);
            let window = SwitchWindow { begun, from: from?, to: to?, drained: self.switch.status()? };
            Ok((window, gets, background))
        })?;
        if stop.is_stopped() {
            return Ok(None);
        }
        let row = window.row(self.way, case, &gets, &background?);
        Ok(Some(RackRow { refused_by_hosts: self.refused_by_hosts()? - refused_before, ..row }))
    }
}

/// The stand-in of a host, on a cable as fast as the switch's ports.
fn stand_in(plan: &RackDemoPlan, number: usize) -> StandInConfig {
    StandInConfig { mtu: Some(MTU), rate: Some(plan.rate), host: plan.host, ..StandInConfig::new(stage::plug(number)) }
}

/// Waits for `most`, or until it is stopped.
fn pause(most: Duration, stop: &StopFlag) {
    let clock = Clock::start();
    while clock.elapsed() < most && !stop.is_stopped() {
        std::thread::sleep((most.saturating_sub(clock.elapsed())).min(Duration::from_millis(50)));
    }
}

impl SwitchWindow {
    fn row(&self, way: RackWay, case: RackCase, gets: &GetTotals, background: &BackgroundTotals) -> RackRow {
        let Self { begun, from, to, drained } = self;
        let seconds = to.up_seconds - from.up_seconds;
        let port = |status: &SwitchStatus, name: &str| status.ports[CLIENT].count(name);
        let all = |status: &SwitchStatus, name: &str| status.ports.iter().map(|port| port.count(name)).sum::<u64>();
        let wire_bits = (port(to, "wire_bytes") - port(from, "wire_bytes")) as f64 * 8.0;
        let us =
            |quantile: f64| (gets.trips.count() > 0).then(|| gets.trips.quantile(quantile).as_nanos() as f64 / 1e3);
        RackRow {
            way: way.name(),
            background: case.background.name(),
            senders: case.senders,
            gets: gets.gets,
            failed: gets.failed,
            get_p50_us: us(0.5),
            get_p99_us: us(0.99),
            get_p999_us: us(0.999),
            over_100ms: gets.trips.over(Duration::from_millis(100)),
            background_mbps: background.bits_per_second / 1e6,
            port_utilisation: wire_bits / seconds / drained.rate_bps as f64,
            offered_frames: port(drained, "offered") - port(begun, "offered"),
            switch_dropped: all(drained, "dropped") - all(begun, "dropped"),
            ring_overflow: all(drained, "ring_overflow") - all(begun, "ring_overflow"),
            port_peak_bytes: drained.ports[CLIENT].peak_bytes,
            refused_by_hosts: 0,
            planned: background.planned,
            sent: background.sent,
            delivered: background.delivered,
            duplicates: background.duplicates,
            reordered: background.reordered,
            switch_busy: (to.busy_seconds - from.busy_seconds) / seconds,
        }
    }
}
