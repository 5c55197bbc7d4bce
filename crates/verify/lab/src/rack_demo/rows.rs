//! Plan of the demonstration of a rack, and its results.

use std::fmt;
use std::time::Duration;

use linux::net::NetworkPrivilege;
use rack::agreement::RackAgreement;
use reserve::{RackParamError, SchedulerKind};
use serde::Serialize;
use standin::HostBackend;
use units::{Bytes, Rate};
use wire::reserve::MARK_LEN;

use crate::demo::median;

/// Plan of the demonstration.
#[derive(Clone, Debug)]
pub struct RackDemoPlan {
    pub rate: Rate,
    pub buffer: Bytes,
    /// Client, server, and those that send beside them.
    pub hosts: usize,
    pub rounds: u32,
    /// Length of each measurement.
    pub measure: Duration,
    /// Kind of the stand-ins.
    pub host: HostBackend,
    /// Scheduler that decides in the way `pl2` when hosts may send.
    pub scheduler: SchedulerKind,
}

/// Full frames of a reservation.
pub(super) const K: u8 = 4;
/// MTU that every way has above its wire.
pub(super) const MTU: u32 = 1_500;

/// Connection of hosts to the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RackWay {
    /// The kernel straight on the switch.
    Plain,
    /// Through stand-ins, without reservations.
    Shim,
    /// Through stand-ins, with reservations as PL2 is printed.
    Paper,
    /// Through stand-ins, with a scheduler that has a bound.
    Pl2,
}

impl RackWay {
    pub(super) const ALL: [Self; 4] = [Self::Plain, Self::Shim, Self::Paper, Self::Pl2];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Shim => "shim",
            Self::Paper => "paper",
            Self::Pl2 => "pl2",
        }
    }

    /// MTU of the cables.
    pub(super) fn wire_mtu(self) -> u32 {
        match self {
            Self::Plain => MTU,
            Self::Shim => 1_600,
            Self::Paper | Self::Pl2 => MTU + MARK_LEN as u32,
        }
    }
}

/// Traffic that the other hosts send to the client's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RackBackground {
    None,
    /// CUBIC of the kernel, as much as it can.
    Tcp,
    /// UDP at the rate of a port from each host.
    Udp,
}

impl RackBackground {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// A background and how many hosts send it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RackCase {
    pub background: RackBackground,
    pub senders: usize,
}

impl fmt::Display for RackCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.background, self.senders) {
            (RackBackground::None, _) => f.write_str("no background"),
            (background, 1) => write!(f, "{} from 1 host", background.name()),
            (background, senders) => write!(f, "{} from {senders} hosts", background.name()),
        }
    }
}

/// Hosts that send beside the client and its server.
const MOST_SENDERS: usize = 4;

impl RackDemoPlan {
    /// Agreement between hosts and their switch; none if a way does not reserve.
    pub(super) fn agreement(&self, way: RackWay) -> Option<RackAgreement> {
        let scheduler = match way {
            RackWay::Plain | RackWay::Shim => return None,
            RackWay::Paper => SchedulerKind::Paper,
            RackWay::Pl2 => self.scheduler,
        };
        Some(RackAgreement { scheduler, rate: self.rate, wire_mtu: way.wire_mtu(), k: K, contexts: None })
    }

    /// The most that can wait at a port in the way `pl2`, what is unsolicited included; none if its scheduler gives no
    /// bound. An error if that is more than half of the buffer: a bound that is nearly all there is proves nothing.
    pub fn bound(&self) -> Result<Option<Bytes>, RackParamError> {
        let Some(agreement) = self.agreement(RackWay::Pl2) else { return Ok(None) };
        let senders = self.hosts as u16 - 1;
        let bound = agreement.at_switch(self.hosts as u16, Bytes::new(u64::MAX / 2))?.bound(senders).total();
        if bound * 2 > self.buffer {
            let expected = format!(
                "{} is less than twice the {bound} that may wait; expected at least {}",
                self.buffer,
                bound * 2
            );
            return Err(RackParamError { key: "--buffer", expected });
        }
        Ok((self.scheduler != SchedulerKind::Paper).then_some(bound))
    }

    pub(super) fn cases(&self) -> Vec<RackCase> {
        let senders = (self.hosts - 2).min(MOST_SENDERS);
        let alone = RackCase { background: RackBackground::None, senders: 0 };
        let beside = [RackBackground::Tcp, RackBackground::Udp]
            .into_iter()
            .flat_map(|background| (1..=senders).map(move |senders| RackCase { background, senders }));
        [alone].into_iter().chain(beside).collect()
    }
}

/// One case one way in one round.
pub(super) type RackRound = RackRow;

/// One case one way: in one round, or in all of them.
#[derive(Clone, Debug, Serialize)]
pub struct RackRow {
    pub way: &'static str,
    pub background: &'static str,
    pub senders: usize,
    /// GETs that were answered.
    pub gets: u64,
    /// GETs that were not answered before the end, and had waited for more than 100 ms.
    pub failed: u64,
    /// Percentiles of all of these, those that failed with what they had waited; none if there was no GET.
    pub get_p50_us: Option<f64>,
    pub get_p99_us: Option<f64>,
    pub get_p999_us: Option<f64>,
    pub over_100ms: u64,
    /// Payload that arrived at the client's host.
    pub background_mbps: f64,
    /// Share of the rate of the client's port.
    pub port_utilisation: f64,
    /// Frames that were to leave by the client's port.
    pub offered_frames: u64,
    /// Frames that found the buffer of any port full.
    pub switch_dropped: u64,
    /// Frames that came faster than the switch could read them.
    pub ring_overflow: u64,
    /// The most that waited at the client's port.
    pub port_peak_bytes: u64,
    /// Frames that found no room in the queues of hosts.
    pub refused_by_hosts: u64,
    /// UDP datagrams that senders would have sent with a processor each.
    #[serde(skip)]
    pub planned: u64,
    /// Account of numbered UDP datagrams.
    pub sent: u64,
    pub delivered: u64,
    pub duplicates: u64,
    pub reordered: u64,
    /// Share of its time that the switch's loop had something to do.
    pub switch_busy: f64,
}

impl RackRow {
    /// Datagrams that senders offered, as a share of what they had to.
    fn offered(&self) -> f64 {
        let (planned, sent) = (self.planned as f64, self.sent as f64);
        sent / (planned * LEAST_SENT).min(planned / self.senders as f64 * LEAST_OFFERED)
    }

    /// Combines the same row of all rounds.
    fn of(rounds: &[&Self]) -> Self {
        let sum = |value: fn(&Self) -> u64| rounds.iter().map(|row| value(row)).sum();
        let middle = |value: fn(&Self) -> f64| median(rounds.iter().map(|row| value(row)).collect());
        let known = |value: fn(&Self) -> Option<f64>| {
            let values: Vec<f64> = rounds.iter().filter_map(|row| value(row)).collect();
            (!values.is_empty()).then(|| median(values))
        };
        Self {
            gets: sum(|row| row.gets),
            failed: sum(|row| row.failed),
            get_p50_us: known(|row| row.get_p50_us),
            get_p99_us: known(|row| row.get_p99_us),
            get_p999_us: known(|row| row.get_p999_us),
            over_100ms: sum(|row| row.over_100ms),
            background_mbps: middle(|row| row.background_mbps),
            port_utilisation: middle(|row| row.port_utilisation),
            offered_frames: sum(|row| row.offered_frames),
            switch_dropped: sum(|row| row.switch_dropped),
            ring_overflow: sum(|row| row.ring_overflow),
            port_peak_bytes: rounds.iter().map(|row| row.port_peak_bytes).max().unwrap_or(0),
            refused_by_hosts: sum(|row| row.refused_by_hosts),
            planned: sum(|row| row.planned),
            sent: sum(|row| row.sent),
            delivered: sum(|row| row.delivered),
            duplicates: sum(|row| row.duplicates),
            reordered: sum(|row| row.reordered),
            switch_busy: middle(|row| row.switch_busy),
            ..rounds[0].clone()
        }
    }
}

/// Results of the demonstration.
#[derive(Clone, Debug, Serialize)]
pub struct RackDemoResult {
    pub rate_mbps: f64,
    pub buffer_bytes: u64,
    pub hosts: usize,
    /// Scheduler that decides in the way `pl2` when hosts may send.
    pub scheduler: &'static str,
    /// Program that answered the GETs.
    pub program: &'static str,
    pub rootless: bool,
    pub simulated: bool,
    /// The most that can wait at a port in the way `pl2`, what is unsolicited included; none if its scheduler has no bound.
    pub bound_bytes: Option<u64>,
    pub cores: usize,
    pub valid: bool,
    pub why_invalid: Option<String>,
    pub rows: Vec<RackRow>,
}

/// Senders are to offer this many times what the port carries, or this share of what one of them should send. With less
/// they were short of processor time, and there was no incast to measure.
const LEAST_OFFERED: f64 = 1.2;
const LEAST_SENT: f64 = 0.8;
/// Share above which the rack may have measured the switch's loop.
const MOST_BUSY: f64 = 0.8;

impl RackDemoResult {
    /// Combines rounds of the simulator, whose switch is never too slow.
    pub(super) fn simulated(plan: &RackDemoPlan, rounds: &[Vec<RackRound>]) -> Self {
        Self { simulated: true, ..Self::of(plan, rounds, "simulated", NetworkPrivilege::Rootless) }
    }

    /// Combines the rounds, of which at least one is complete.
    pub(super) fn of(
        plan: &RackDemoPlan,
        rounds: &[Vec<RackRound>],
        program: &'static str,
        standing: NetworkPrivilege,
    ) -> Self {
        let row = |at: usize| RackRow::of(&rounds.iter().map(|round| &round[at]).collect::<Vec<_>>());
        let rows: Vec<RackRow> = (0..rounds[0].len()).map(row).collect();
        let why_invalid = why_invalid(&rows);
        Self {
            rate_mbps: plan.rate.bits_per_second() as f64 / 1e6,
            buffer_bytes: plan.buffer.get(),
            hosts: plan.hosts,
            scheduler: plan.scheduler.name(),
            program,
            rootless: standing == NetworkPrivilege::Rootless,
            simulated: false,
            bound_bytes: plan.bound().ok().flatten().map(Bytes::get),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            valid: why_invalid.is_none(),
            why_invalid,
            rows,
        }
    }
}

/// Reason why the machine was measured, and not the rack.
fn why_invalid(rows: &[RackRow]) -> Option<String> {
    let overflowed: u64 = rows.iter().map(|row| row.ring_overflow).sum();
    if overflowed > 0 {
        return Some(format!("{overflowed} frames came faster than the switch could read them; try a lower --rate"));
    }
    let short = rows.iter().filter(|row| row.planned > 0).map(RackRow::offered).min_by(f64::total_cmp);
    if let Some(least) = short.filter(|least| *least < 1.0) {
        return Some(format!(
            "senders were short of processor time and offered {:.0} % of what an incast takes; try a lower --rate",
            least * 100.0
        ));
    }
    let busiest = rows.iter().max_by(|a, b| a.switch_busy.total_cmp(&b.switch_busy))?;
    (busiest.switch_busy > MOST_BUSY).then(|| {
        format!(
            "the switch's loop was busy for {:.0} % of the time ({}, {} from {}); try a lower --rate",
            busiest.switch_busy * 100.0,
            busiest.way,
            busiest.background,
            busiest.senders
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(gets: u64, p99: Option<f64>, overflow: u64, busy: f64) -> RackRow {
        RackRow {
            way: "plain",
            background: "udp",
            senders: 4,
            gets,
            failed: 0,
            get_p50_us: None,
            get_p99_us: p99,
            get_p999_us: None,
            over_100ms: 0,
            background_mbps: 1.0,
            port_utilisation: 0.9,
            offered_frames: 1,
            switch_dropped: 0,
            ring_overflow: overflow,
            port_peak_bytes: gets,
            refused_by_hosts: 0,
            planned: 0,
            sent: 0,
            delivered: 0,
            duplicates: 0,
            reordered: 0,
            switch_busy: busy,
        }
    }

    #[test]
    fn counts_are_sums_peaks_the_largest_and_times_medians_of_rounds_that_have_one() {
        let rounds = [row(5, Some(10.0), 0, 0.1), row(7, None, 0, 0.3), row(1, Some(30.0), 0, 0.2)];
        let row = RackRow::of(&rounds.iter().collect::<Vec<_>>());
        assert_eq!((row.gets, row.port_peak_bytes, row.get_p99_us, row.get_p50_us), (13, 7, Some(20.0), None));
        assert_eq!(row.switch_busy, 0.2);
    }

    #[test]
    fn a_row_in_which_the_machine_was_measured_makes_all_invalid() {
        assert_eq!(why_invalid(&[row(1, None, 0, 0.79), row(1, None, 0, 0.0)]), None);
        assert!(
            why_invalid(&[row(1, None, 0, 0.0), row(1, None, 3, 0.0)]).unwrap().starts_with("3 frames came faster")
        );
        let sending = |senders, sent| RackRow { senders, planned: 100, sent, ..row(1, None, 0, 0.0) };
        assert_eq!(why_invalid(&[sending(1, 80), sending(2, 60), sending(4, 30)]), None);
        for short in [sending(1, 76), sending(2, 57)] {
            assert!(why_invalid(&[sending(1, 100), short]).unwrap().contains("offered 95 %"));
        }
        assert!(why_invalid(&[row(1, None, 0, 0.0), row(1, None, 0, 0.85)]).unwrap().contains("busy for 85 %"));
    }
}
