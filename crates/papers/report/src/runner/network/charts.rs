//! The charts of a claim about a network.

use super::NetworkRuns;
use super::totals::{NetworkRun, SampledMoment};
use crate::claim::{ChartKind, ChartSpec, ClaimPoint};
use chart::{
    Axis, Bar, BarGroup, BarsChart, Chart, Dot, Line, Panel, PointsChart, SeriesChart, Shares, TailChart, tail_points,
    time_us,
};

impl NetworkRuns<'_> {
    pub(super) fn charts(&self) -> Vec<Chart> {
        self.claim.chart.iter().map(|spec| self.chart(spec)).collect()
    }

    fn chart(&self, spec: &ChartSpec) -> Chart {
        match spec.kind {
            ChartKind::Tail => Chart::Tail(self.tail(spec, Shares::Rarity)),
            ChartKind::Cdf => Chart::Tail(self.tail(spec, Shares::Even)),
            ChartKind::Series => Chart::Series(self.series(spec)),
            ChartKind::Bars => Chart::Bars(self.bars(spec)),
            ChartKind::Points => Chart::Points(self.points(spec)),
        }
    }

    /// The runs that a chart shows, as far as they were finished.
    fn shown<'a>(&'a self, spec: &'a ChartSpec) -> impl Iterator<Item = (&'a str, &'a NetworkRun)> {
        let all = self.runs.iter().filter(|(name, _)| spec.runs.is_empty() || spec.runs.contains(name));
        all.map(|(name, run)| (name.as_str(), run))
    }

    fn tail(&self, spec: &ChartSpec, shares: Shares) -> TailChart {
        let line = |(name, run): (&str, &NetworkRun)| Line::new(name, tail_points(&run.fct, spec.from));
        TailChart {
            title: spec.title.clone(),
            caption: String::new(),
            x: Axis::log("flow completion time").written(time_us),
            of: "flows".into(),
            from: spec.from,
            shares,
            // With evenly spaced shares the guide would lie on the upper edge.
            guide: (shares == Shares::Rarity).then_some(0.999),
            lines: self.shown(spec).map(line).collect(),
        }
    }

    /// The first run with everything that was sampled of it; of the others, only what arrived.
    fn series(&self, spec: &ChartSpec) -> SeriesChart {
        let mut runs = self.shown(spec);
        let first = runs.next();
        let over_time = |run: &NetworkRun, what: fn(&SampledMoment) -> f64| {
            run.moments.iter().map(|moment| (moment.seconds, what(moment))).collect::<Vec<_>>()
        };
        let mut panels = Vec::new();
        if let Some((name, run)) = first {
            let mut received = vec![Line::new(name, over_time(run, |moment| moment.goodput_gbps))];
            received
                .extend(runs.map(|(name, run)| Line::reference(name, over_time(run, |moment| moment.goodput_gbps))));
            panels.push(Panel { y: Axis::linear("received, Gb/s"), lines: received });
            let mut panel = |label: &str, what: fn(&SampledMoment) -> f64| {
                panels.push(Panel { y: Axis::linear(label), lines: vec![Line::new(name, over_time(run, what))] });
            };
            panel("queue, KB", |moment| moment.queue as f64 / 1e3);
            panel("Rx buffer, KB", |moment| moment.rx_buffer as f64 / 1e3);
            panel("sent again, per s", |moment| moment.retransmitted as f64 / moment.span.max(f64::MIN_POSITIVE));
        }
        let length = first.and_then(|(_, run)| run.moments.last()).map_or(0.0, |last| last.seconds);
        SeriesChart {
            title: spec.title.clone(),
            caption: String::new(),
            time: Axis::linear("time, s"),
            panels,
            events: spec.marks.iter().map(|(at, name)| (at * length, name.clone())).collect(),
        }
    }

    /// A bar for each run; a name such as `LinkGuardian, 1e-3` puts it into the group behind the comma.
    fn bars(&self, spec: &ChartSpec) -> BarsChart {
        let mut groups: Vec<BarGroup> = Vec::new();
        for (run, _) in self.shown(spec) {
            let (name, group) = run.rsplit_once(", ").unwrap_or((run, ""));
            let ours = self.take(run, &spec.measure).ok().flatten().map(|measured| measured.value);
            let bar = Bar { name: name.to_owned(), ours, paper: self.papers(run, &spec.measure) };
            match groups.iter_mut().find(|known| known.name == group) {
                Some(known) => known.bars.push(bar),
                None => groups.push(BarGroup { name: group.to_owned(), bars: vec![bar] }),
            }
        }
        let unit = spec.unit.clone();
        let axis = if spec.log { Axis::log(unit) } else { Axis::linear(unit) };
        BarsChart { title: spec.title.clone(), caption: String::new(), axis, groups }
    }

    /// Gain of each run by its cost: wire time beyond that of the base, in percent.
    fn points(&self, spec: &ChartSpec) -> PointsChart {
        let measure = if spec.measure.is_empty() { "fct.p99.9" } else { &spec.measure };
        let unit = if spec.measure.is_empty() { "p99.9 of flow completion times" } else { &spec.unit };
        let base = spec.base.as_deref().unwrap_or_default();
        let value = |run: &str, measure: &str| self.take(run, measure).ok().flatten().map(|measured| measured.value);
        let wire = value(base, "wire").filter(|wire| *wire > 0.0);
        let cost = |run: &str| Some((value(run, "wire")? / wire? - 1.0) * 100.0);
        let dot = |(run, _): (&str, &NetworkRun)| Dot { name: run.to_owned(), x: cost(run), y: value(run, measure) };
        let y = Axis::log(unit);
        PointsChart {
            title: spec.title.clone(),
            caption: String::new(),
            x: Axis::linear(format!("bytes on the wire beyond “{base}”, %")),
            y: if measure.starts_with("fct.") { y.written(time_us) } else { y },
            dots: self.shown(spec).map(dot).collect(),
        }
    }

    /// The paper's number for a measure of a run, if a point has it.
    fn papers(&self, run: &str, measure: &str) -> Option<f64> {
        let is_it = |point: &&ClaimPoint| {
            let bare = point.minus.is_none() && point.over.is_none() && point.over_measure.is_none();
            bare && point.of.as_deref() == Some(run) && self.claim.measure(point) == measure
        };
        self.claim.point.iter().find(is_it)?.paper.number()
    }
}
