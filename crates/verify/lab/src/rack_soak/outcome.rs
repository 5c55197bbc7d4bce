//! Results of a soak of a rack, and what of them must hold.

use chart::table::{Align, Table, thousands};
use serde::Serialize;

use super::RackSoakPlan;
use super::flows::RackFlow;
use crate::soak::{MOST_GROWTH, MemoryUse, SoakVerdict, TrafficTotals};

/// Time within which the other hosts are back at their rate.
const OTHERS_WITHIN_MS: f64 = 200.0;

/// A machine whose threads wake up later than this during a recovery is what was measured, and not the rack.
const MOST_LATE_MS: f64 = 50.0;

/// A daemon was killed, and started again as its unit would.
#[derive(Clone, Debug, Serialize)]
pub struct RackSoakEvent {
    pub at_seconds: f64,
    /// "switch", or the host.
    pub killed: String,
    /// Time until all other hosts together were at 0.95 of their rate of the second before; none if they were not within
    /// two seconds.
    pub others_back_ms: Option<f64>,
    /// Time until the daemon that was started in its place answered.
    pub answered_ms: f64,
    /// The longest that a thread which sleeps for 5 ms overslept until then.
    pub machine_late_ms: f64,
    /// Time from the restart until the host itself was at 0.95 of its rate again; none for the switch.
    pub own_back_ms: Option<f64>,
}

/// Results of a soak of a rack.
#[derive(Clone, Debug, Serialize)]
pub struct RackSoak {
    /// False if it was stopped before its time.
    pub complete: bool,
    pub seconds: f64,
    pub rate_mbps: f64,
    pub hosts: usize,
    pub scheduler: &'static str,
    /// Share of frames that the wire of host 2 loses, each way.
    pub loss: f64,
    /// True if that wire is under `hitless link`.
    pub protected: bool,
    pub rootless: bool,
    pub bound_bytes: Option<u64>,
    pub port_peak_bytes: u64,
    pub switch_dropped: u64,
    pub ring_overflow: u64,
    pub events: Vec<RackSoakEvent>,
    /// Number of times that the last host left and joined again.
    pub joins: u32,
    pub gets: u64,
    pub gets_failed: u64,
    pub get_p50_us: Option<f64>,
    pub get_p99_us: Option<f64>,
    /// Fates of the numbered datagrams, by host.
    pub flows: Vec<RackFlow>,
    pub traffic: Vec<TrafficTotals>,
    /// Memory of all daemons together.
    pub memory: MemoryUse,
    /// Amount that still waited or was reserved once nobody sent any more.
    pub left_waiting: u64,
    /// False if the machine was measured, and not the rack.
    pub valid: bool,
    pub why_invalid: Option<String>,
    pub verdicts: Vec<SoakVerdict>,
}

impl RackSoak {
    pub fn holds(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.holds)
    }

    /// True if nothing was done to this host or to the switch.
    fn is_untouched(&self, plan: &RackSoakPlan, flow: &RackFlow) -> bool {
        let killed = self.events.iter().any(|event| event.killed == SWITCH || event.killed == host_name(flow.host));
        let joins = plan.joins > 0 && flow.host + 1 == plan.hosts;
        let loses = self.loss > 0.0 && !self.protected && flow.host == super::LOSSY;
        !killed && !joins && !loses
    }

    pub(super) fn judge(&mut self, plan: &RackSoakPlan) {
        let mut verdicts = vec![self.lossless(), self.in_order(plan), self.accounted(plan), self.intact()];
        verdicts.extend((!self.events.is_empty()).then(|| self.others_back()));
        verdicts.extend([self.quiet(), self.flat()]);
        self.verdicts = verdicts;
        self.why_invalid = self.why_invalid();
        self.valid = self.why_invalid.is_none();
    }

    /// Reason why the machine was measured: its verdicts say nothing about the rack then.
    fn why_invalid(&self) -> Option<String> {
        if self.ring_overflow > 0 {
            let frames = self.ring_overflow;
            return Some(format!("{frames} frames came faster than the switch could read them; try a lower --rate"));
        }
        let latest = self.events.iter().max_by(|a, b| a.machine_late_ms.total_cmp(&b.machine_late_ms))?;
        (latest.machine_late_ms > MOST_LATE_MS).then(|| {
            format!(
                "after the kill of {} at {:.1} s this machine let a thread that sleeps for 5 ms sleep {:.0} ms longer; try a \
                 quieter machine or a lower --rate",
                latest.killed, latest.at_seconds, latest.machine_late_ms
            )
        })
    }

    fn lossless(&self) -> SoakVerdict {
        let Self { switch_dropped: dropped, ring_overflow: overflow, port_peak_bytes: peak, .. } = self;
        let within = self.bound_bytes.is_none_or(|bound| *peak <= bound);
        let because = format!("{dropped} dropped at the switch, {overflow} not read in time, at most {peak} B waited");
        SoakVerdict { name: "lossless", holds: *dropped == 0 && *overflow == 0 && within, because }
    }

    fn in_order(&self, plan: &RackSoakPlan) -> SoakVerdict {
        let untouched = self.flows.iter().filter(|flow| self.is_untouched(plan, flow));
        let reordered: u64 = untouched.map(|flow| flow.reordered).sum();
        let twice: u64 = self.flows.iter().map(|flow| flow.duplicates).sum();
        let because = format!("{twice} datagrams twice, {reordered} out of order of hosts that were left alone");
        SoakVerdict { name: "in-order", holds: twice == 0 && reordered == 0, because }
    }

    fn accounted(&self, plan: &RackSoakPlan) -> SoakVerdict {
        // The last two hosts also have transfers, of which their queues refuse frames.
        let pure = |flow: &&RackFlow| flow.host + 2 < plan.hosts && self.is_untouched(plan, flow);
        let untouched: Vec<&RackFlow> = self.flows.iter().filter(pure).collect();
        let missing: u64 =
            untouched.iter().map(|flow| flow.sent.abs_diff(flow.delivered + flow.refused + flow.not_taken)).sum();
        let because = format!(
            "{missing} of {} datagrams of hosts that were left alone are neither delivered nor refused",
            thousands(untouched.iter().map(|flow| flow.sent).sum())
        );
        SoakVerdict { name: "accounted", holds: missing == 0, because }
    }

    fn intact(&self) -> SoakVerdict {
        let differing: u64 = self.traffic.iter().map(|traffic| traffic.differing).sum();
        let compared: u64 = self.traffic.iter().map(|traffic| traffic.compared_bytes).sum();
        let because = format!("{differing} transfers differ, of {} B compared", thousands(compared));
        SoakVerdict { name: "intact", holds: differing == 0 && compared > 0, because }
    }

    /// Checks that the others are back. Without a switch there is nobody to send to: that one must be back.
    fn others_back(&self) -> SoakVerdict {
        let late = |event: &RackSoakEvent| {
            let restart = if event.killed == SWITCH { event.answered_ms } else { 0.0 };
            event.others_back_ms.map_or(f64::INFINITY, |back| back - restart)
        };
        let slowest = self.events.iter().map(late).fold(0.0, f64::max);
        let because = format!(
            "all others at 0.95 of their rate within {slowest:.0} ms of each of {} kills, or of the restart of the switch",
            self.events.len()
        );
        SoakVerdict { name: "others-go-on", holds: slowest <= OTHERS_WITHIN_MS, because }
    }

    fn quiet(&self) -> SoakVerdict {
        let because = format!("{} B or frames wait or are reserved once nobody sends", self.left_waiting);
        SoakVerdict { name: "quiet", holds: self.left_waiting == 0, because }
    }

    fn flat(&self) -> SoakVerdict {
        let MemoryUse { first_quarter, end, growth } = self.memory;
        let because = format!("daemons hold {} B, {} B in the first quarter", thousands(end), thousands(first_quarter));
        SoakVerdict { name: "flat", holds: growth <= MOST_GROWTH as i64, because }
    }
}

/// Name of the switch in events.
pub(super) const SWITCH: &str = "switch";

pub(super) fn host_name(host: usize) -> String {
    format!("host {host}")
}

/// Report for people, as text.
pub fn text(soak: &RackSoak) -> String {
    let mut flows = Table::new(&[
        ("from", Align::Left),
        ("sent", Align::Right),
        ("delivered", Align::Right),
        ("refused there", Align::Right),
        ("not taken", Align::Right),
        ("twice", Align::Right),
        ("out of order", Align::Right),
    ]);
    for flow in &soak.flows {
        let counts = [flow.sent, flow.delivered, flow.refused, flow.not_taken, flow.duplicates, flow.reordered];
        flows.row([host_name(flow.host)].into_iter().chain(counts.map(thousands)).collect());
    }
    let mut text = format!(
        "{:.0} s, {} hosts at {} Mbit/s, scheduler {}; {} kills, {} joins\n\n{flows}\n",
        soak.seconds,
        soak.hosts,
        soak.rate_mbps,
        soak.scheduler,
        soak.events.len(),
        soak.joins
    );
    if !soak.events.is_empty() {
        text += &format!("{}\n", events(&soak.events));
    }
    let us = |us: Option<f64>| us.map_or("–".to_owned(), |us| format!("{us:.0} µs"));
    let (p50, p99) = (us(soak.get_p50_us), us(soak.get_p99_us));
    text += &format!("GETs: {}, {} failed, p50 {p50}, p99 {p99}\n", thousands(soak.gets), soak.gets_failed);
    for traffic in &soak.traffic {
        let (bytes, failed) = (thousands(traffic.bytes), traffic.failed);
        text += &format!("{}: {} completed, {bytes} B, {failed} failed\n", traffic.name, traffic.completed);
    }
    for SoakVerdict { name, holds, because } in &soak.verdicts {
        text += &format!("\n{:6} {name}: {because}", if *holds { "ok" } else { "FAULT" });
    }
    if let Some(why) = &soak.why_invalid {
        text += &format!("\n\nNot valid, the machine was measured: {why}.");
    }
    text
}

fn events(events: &[RackSoakEvent]) -> Table {
    let mut table = Table::new(&[
        ("at", Align::Right),
        ("killed", Align::Left),
        ("others back", Align::Right),
        ("answers again", Align::Right),
        ("itself back", Align::Right),
        ("machine late", Align::Right),
    ]);
    let ms = |ms: Option<f64>| ms.map_or("–".to_owned(), |ms| format!("{ms:.0} ms"));
    for event in events {
        let back = event.others_back_ms.map_or("not within 2 s".to_owned(), |back| format!("{back:.0} ms"));
        let at = format!("{:.1} s", event.at_seconds);
        table.row(vec![
            at,
            event.killed.clone(),
            back,
            ms(Some(event.answered_ms)),
            ms(event.own_back_ms),
            ms(Some(event.machine_late_ms)),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reserve::SchedulerKind;
    use units::{Bytes, Prob, Rate};

    use super::*;

    /// A host's daemon was killed; the others were back after so long, and a thread of the generator's process overslept by so much.
    fn killed(others_back_ms: Option<f64>, machine_late_ms: f64) -> RackSoakEvent {
        RackSoakEvent {
            at_seconds: 12.5,
            killed: host_name(2),
            others_back_ms,
            answered_ms: 150.0,
            machine_late_ms,
            own_back_ms: Some(60.0),
        }
    }

    fn judged(events: Vec<RackSoakEvent>, ring_overflow: u64) -> RackSoak {
        let plan = RackSoakPlan {
            duration: Duration::from_mins(1),
            rate: Rate::from_bits_per_second(200_000_000),
            buffer: Bytes::new(1 << 20),
            hosts: 5,
            scheduler: SchedulerKind::ALL[0],
            kills: events.len() as u32,
            joins: 0,
            loss: Prob::literal(0.0),
            protect: false,
            program: "hitless".into(),
        };
        let mut soak = RackSoak {
            complete: true,
            seconds: 60.0,
            rate_mbps: 200.0,
            hosts: plan.hosts,
            scheduler: plan.scheduler.name(),
            loss: 0.0,
            protected: false,
            rootless: false,
            bound_bytes: None,
            port_peak_bytes: 0,
            switch_dropped: 0,
            ring_overflow,
            events,
            joins: 0,
            gets: 0,
            gets_failed: 0,
            get_p50_us: None,
            get_p99_us: None,
            flows: Vec::new(),
            traffic: Vec::new(),
            memory: MemoryUse { first_quarter: 0, end: 0, growth: 0 },
            left_waiting: 0,
            valid: true,
            why_invalid: None,
            verdicts: Vec::new(),
        };
        soak.judge(&plan);
        soak
    }

    fn fails(soak: &RackSoak, name: &str) -> bool {
        soak.verdicts.iter().any(|verdict| verdict.name == name && !verdict.holds)
    }

    #[test]
    fn a_run_whose_traffic_had_no_processor_says_that_the_machine_was_measured() {
        let soak = judged(vec![killed(Some(40.0), 3.0), killed(Some(350.0), 270.0)], 0);
        assert!(fails(&soak, "others-go-on") && !soak.valid);
        let why = soak.why_invalid.as_deref().unwrap();
        assert!(why.contains("host 2 at 12.5 s") && why.contains("270 ms longer"), "{why}");
        assert!(
            text(&soak).contains("Not valid, the machine was measured: after the kill of host 2"),
            "{}",
            text(&soak)
        );
        let soak = judged(vec![killed(None, 1_900.0)], 0);
        assert!(fails(&soak, "others-go-on") && !soak.valid, "{:?}", soak.why_invalid);
    }

    #[test]
    fn frames_that_came_faster_than_the_switch_read_them_are_the_machines() {
        let soak = judged(Vec::new(), 17);
        assert!(fails(&soak, "lossless") && !soak.valid);
        assert!(soak.why_invalid.as_deref().unwrap().contains("17 frames came faster"));
    }

    #[test]
    fn a_rack_that_is_slow_on_a_quiet_machine_is_at_fault() {
        let soak = judged(vec![killed(Some(350.0), 4.0)], 0);
        assert!(fails(&soak, "others-go-on") && soak.valid && soak.why_invalid.is_none());
        let soak = judged(vec![killed(Some(40.0), 4.0)], 0);
        assert!(!fails(&soak, "others-go-on") && soak.valid && !text(&soak).contains("Not valid"));
    }
}
