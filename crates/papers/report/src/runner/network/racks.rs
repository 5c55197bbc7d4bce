//! Totals of racks whose hosts reserve, and the fairness of hosts' shares.

use std::collections::BTreeMap;

use sim::net::{FlowRow, NetworkOutcome};
use units::Time;

use super::totals::NetworkRun;
use crate::claim::MeasuredValue;

/// Totals of one run, or the worst of several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RackTotals {
    /// The longest queue of data at a port, over the whole run and in its first and last quarter, in bytes.
    pub peak: u64,
    pub first: u64,
    pub last: u64,
    /// Bound of a queue, and packets that joined a longer one.
    pub bound: u64,
    pub violations: u64,
    /// Unreserved packets that exceeded their share of a port.
    pub policed: u64,
    /// Time in µs for which the fullest port is still reserved, and distance of a counter from zero.
    pub reserved_left: f64,
    pub counted_left: i64,
    /// Length of the run in ms.
    pub length: f64,
}

impl RackTotals {
    pub(super) fn of(outcome: &NetworkOutcome) -> Option<Self> {
        let rack = outcome.rack.as_ref()?;
        let [first, .., last] = rack.quarters.map(|bytes| bytes.get());
        Some(Self {
            peak: rack.peaks.iter().map(|(_, bytes)| bytes.get()).max().unwrap_or_default(),
            first,
            last,
            bound: rack.bound.get(),
            violations: rack.violations,
            policed: rack.switches.policed,
            reserved_left: rack.reserved_left.as_us(),
            counted_left: rack.counted_left,
            length: outcome.ended.since(Time::ZERO).as_us() / 1e3,
        })
    }

    pub(super) fn pool(&mut self, other: &Self) {
        self.peak = self.peak.max(other.peak);
        self.first = self.first.max(other.first);
        self.last = self.last.max(other.last);
        self.violations += other.violations;
        self.policed += other.policed;
        self.reserved_left = self.reserved_left.max(other.reserved_left);
        if other.counted_left.abs() > self.counted_left.abs() {
            self.counted_left = other.counted_left;
        }
    }

    /// KB per ms, from the middle of the first quarter to that of the last.
    pub(super) fn growth(&self) -> f64 {
        (self.last as f64 - self.first as f64) / 1e3 / (0.75 * self.length)
    }
}

/// A value of the racks; `None` without reservations.
pub(super) fn of_racks(run: &NetworkRun, value: fn(&RackTotals) -> f64) -> Option<MeasuredValue> {
    run.rack.as_ref().map(|rack| MeasuredValue::exact(value(rack), run.counts.flows))
}

/// Jain's index of the payload that came from each host: 1 if all sent the same, 1/n if one of n sent all.
pub(super) fn jain(flows: &[FlowRow]) -> f64 {
    let mut by_host = BTreeMap::new();
    for flow in flows {
        *by_host.entry(flow.src).or_insert(0.0) += flow.received as f64;
    }
    let sum: f64 = by_host.values().sum();
    let squares: f64 = by_host.values().map(|bytes| bytes * bytes).sum();
    if squares > 0.0 { sum * sum / squares / by_host.len() as f64 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use scenario::Scenario;
    use units::Unwatched;

    use super::super::{MeasureBasis, measures};
    use super::*;

    const RACK: &str = "[topology]\nkind = 'single-switch'\nhosts = 4\nrate = '100G'\n[pl2]\nscheduler = 'clock'\n\
        [[traffic]]\nname = 'many'\ntransport = 'datagrams'\nwork = 'bulk'\nfrom = 'h1'\nto = 'h0'\nconnections = 12\n\
        [[traffic]]\nname = 'few'\ntransport = 'datagrams'\nwork = 'bulk'\nfrom = 'h2'\nto = 'h0'\nconnections = 4\n\
        [run]\nuntil = '400us'\n[measure]\nsample = '100us'\nwatch = [['sw0', 'h0']]\n";

    fn run(text: &str) -> NetworkRun {
        let scenario = Scenario::parse("test", text, &[]).unwrap_or_else(|error| panic!("{error}"));
        let setup = scenario.points[0].setup(1);
        let basis = MeasureBasis::of(&setup, scenario.points[0].watched());
        NetworkRun::new(&sim::net::run(setup, &Unwatched).unwrap(), &basis)
    }

    fn value(run: &NetworkRun, measure: &str) -> Option<f64> {
        measures::parse(measure).unwrap()(run).map(|measured| measured.value)
    }

    #[test]
    fn a_rack_is_measured_where_there_is_one() {
        let with = run(RACK);
        let [peak, first, last] = ["rack.peak", "rack.first", "rack.last"].map(|name| value(&with, name).unwrap());
        assert!(peak > 0.0 && peak == value(&with, "rack.peak").unwrap() && first <= peak && last <= peak);
        let growth = value(&with, "rack.growth").unwrap();
        assert!((growth - (last - first) / 0.3).abs() < 1e-9, "{growth}: {first} to {last} KB in 0.3 ms");
        assert!(peak < value(&with, "rack.bound").unwrap());
        assert_eq!(["rack.violations", "rack.policed"].map(|name| value(&with, name)), [Some(0.0); 2]);
        let without = run(&RACK.replace("[pl2]\nscheduler = 'clock'\n", ""));
        assert_eq!(["rack.peak", "rack.left", "rack.counted"].map(|name| value(&without, name)), [None; 3]);
    }

    #[test]
    fn packets_have_headers_and_the_port_has_gaps_and_messages_besides() {
        let run = run(RACK);
        let [goodput, packets, port] =
            ["goodput 0.5..1", "packets 0.5..1", "port 0.5..1"].map(|name| value(&run, name).unwrap());
        assert!((packets / goodput - 1_500.0 / 1_472.0).abs() < 1e-9, "{packets} over {goodput}");
        assert!((1.025..1.04).contains(&(port / packets)), "{port} over {packets}");
        assert!((95.0..=100.0).contains(&port), "{port}");
    }

    #[test]
    fn hosts_share_by_contexts_with_clocks_and_equally_with_late_grants() {
        let [clock, late] = ["clock", "late"].map(|name| value(&run(&RACK.replace("clock", name)), "jain").unwrap());
        assert!((0.75..0.9).contains(&clock), "12 and 4 contexts, 0.8: {clock}");
        assert!(late > 0.98, "{late}");
    }
}
