//! A study's charts, from what its runs came to.

use super::gather::{Gathered, Moment};
use super::{ChartKind, ChartSpec, Finding};
use crate::chart::{
    Axis, Bar, BarsChart, Chart, Group, Line, Panel, SeriesChart, Shares, TailChart, tail_points, time_us,
};
use crate::experiment::Said;

impl Finding {
    pub fn charts(&self) -> Vec<Chart> {
        self.study.chart.iter().map(|spec| self.chart(spec)).collect()
    }

    fn chart(&self, spec: &ChartSpec) -> Chart {
        match spec.kind {
            ChartKind::Tail => Chart::Tail(self.tail(spec)),
            ChartKind::Series => Chart::Series(self.series(spec)),
            ChartKind::Bars => Chart::Bars(self.bars(spec)),
        }
    }

    /// The runs that a chart shows, as far as they were finished.
    fn shown<'a>(&'a self, spec: &'a ChartSpec) -> impl Iterator<Item = (&'a str, &'a Gathered)> {
        let all = self.gathered.iter().filter(|(name, _)| spec.runs.is_empty() || spec.runs.contains(name));
        all.map(|(name, gathered)| (name.as_str(), gathered))
    }

    fn tail(&self, spec: &ChartSpec) -> TailChart {
        let line = |(name, run): (&str, &Gathered)| Line::new(name, tail_points(&run.fct, spec.from));
        TailChart {
            title: spec.title.clone(),
            caption: String::new(),
            x: Axis::log("flow completion time").written(time_us),
            of: "flows".into(),
            from: spec.from,
            shares: Shares::Rarity,
            guide: Some(0.999),
            lines: self.shown(spec).map(line).collect(),
        }
    }

    /// The first run with everything that was sampled of it; of the others, only what arrived.
    fn series(&self, spec: &ChartSpec) -> SeriesChart {
        let mut runs = self.shown(spec);
        let first = runs.next();
        let over_time = |run: &Gathered, what: fn(&Moment) -> f64| {
            run.moments.iter().map(|moment| (moment.seconds, what(moment))).collect::<Vec<_>>()
        };
        let mut panels = Vec::new();
        if let Some((name, run)) = first {
            let mut received = vec![Line::new(name, over_time(run, |moment| moment.goodput_gbps))];
            received
                .extend(runs.map(|(name, run)| Line::reference(name, over_time(run, |moment| moment.goodput_gbps))));
            panels.push(Panel { y: Axis::linear("received, Gb/s"), lines: received });
            let mut panel = |label: &str, what: fn(&Moment) -> f64| {
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
        let mut groups: Vec<Group> = Vec::new();
        for (run, _) in self.shown(spec) {
            let (name, group) = run.rsplit_once(", ").unwrap_or((run, ""));
            let ours = self.take(run, &spec.measure).ok().flatten().map(|measured| measured.value);
            let bar = Bar { name: name.to_owned(), ours, paper: self.said(run, &spec.measure) };
            match groups.iter_mut().find(|known| known.name == group) {
                Some(known) => known.bars.push(bar),
                None => groups.push(Group { name: group.to_owned(), bars: vec![bar] }),
            }
        }
        BarsChart { title: spec.title.clone(), caption: String::new(), axis: Axis::linear(spec.unit.clone()), groups }
    }

    /// The paper's number for a measure of a run, if a point has it.
    fn said(&self, run: &str, measure: &str) -> Option<f64> {
        let is_it = |point: &&super::PointSpec| {
            point.of == run && point.measure == measure && point.over.is_none() && point.over_measure.is_none()
        };
        match self.study.point.iter().find(is_it)?.paper {
            Said::Number(value) => Some(value),
            Said::Words(_) => None,
        }
    }
}
