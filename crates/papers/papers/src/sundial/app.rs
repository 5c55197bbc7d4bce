//! sun.app: Swift by round trips and by one-way delays, while the way back is congested (§3.6.3, Table 3.2).

use chart::{Axis, Bar, BarGroup, BarsChart, Chart};
use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use sim::net::NetworkOutcome;
use units::Time;

use crate::files;

/// Delay that the sender goes by, and the class of acknowledgements.
#[derive(Clone, Copy, Debug)]
struct SwiftVariant {
    name: &'static str,
    delay: &'static str,
    ack_class: u8,
}

const VARIANTS: [SwiftVariant; 3] = [
    SwiftVariant { name: "rtt", delay: "rtt", ack_class: 1 },
    SwiftVariant { name: "one-way", delay: "one-way", ack_class: 1 },
    SwiftVariant { name: "rtt.acks-first", delay: "rtt", ack_class: 0 },
];

impl SwiftVariant {
    /// Settings that a run changes. Without reverse traffic, that traffic begins when the run has ended.
    fn sets(self, reverse: bool) -> Vec<String> {
        let Self { delay, ack_class, .. } = self;
        let of_traffic = |n: usize| {
            [
                format!("traffic.{n}.swift={{ delay = \"{delay}\" }}"),
                format!("traffic.{n}.class=1"),
                format!("traffic.{n}.ack_class={ack_class}"),
            ]
        };
        let later = (!reverse).then(|| "traffic.1.start=1s".to_owned());
        of_traffic(0).into_iter().chain(of_traffic(1)).chain(later).collect()
    }
}

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let both = |variant| [(variant, false), (variant, true)];
    let tasks: Vec<(SwiftVariant, bool)> = VARIANTS.into_iter().flat_map(both).collect();
    effort.progress.expect_parts(tasks.len());
    let results = parallel::map(&tasks, effort.jobs, |(variant, reverse)| {
        let setup = files::setup("sundial/reverse.toml", &variant.sets(*reverse), effort.seed)?;
        let outcome = sim::net::run(setup, effort.progress).map_err(ClaimError::new)?;
        effort.progress.part_done();
        Ok((!outcome.interrupted).then(|| forward_gbps(&outcome)))
    });
    let rates: Option<Vec<f64>> = results.into_iter().collect::<Result<Option<Vec<_>>, ClaimError>>()?;
    let Some(rates) = rates else { return Ok(None) };
    let mut computed = ComputedValues::default();
    let mut groups = Vec::new();
    for (variant, rates) in VARIANTS.iter().zip(rates.chunks_exact(2)) {
        let (name, alone, reverse) = (variant.name, rates[0], rates[1]);
        computed.value(format!("alone.{name}"), MeasuredValue::exact(alone, 1));
        computed.value(format!("reverse.{name}"), MeasuredValue::exact(reverse, 1));
        computed.value(format!("share.{name}"), MeasuredValue::exact(reverse / alone, 1));
        let bar = |name: &str, gbps| Bar { name: name.into(), ours: Some(gbps), paper: None };
        groups.push(BarGroup { name: name.into(), bars: vec![bar("alone", alone), bar("reverse", reverse)] });
    }
    computed.charts.push(chart(groups));
    Ok(Some(computed))
}

/// Rate at which the first traffic was received in the second half of the run, in Gb/s.
fn forward_gbps(outcome: &NetworkOutcome) -> f64 {
    let half = Time::ZERO + outcome.ended.since(Time::ZERO) / 2;
    let settled = outcome.samples.iter().filter(|sample| sample.at > half);
    let bytes: u64 = settled.map(|sample| sample.received.first().copied().unwrap_or(0)).sum();
    bytes as f64 * 8.0 / outcome.ended.since(half).as_secs() / 1e9
}

fn chart(groups: Vec<BarGroup>) -> Chart {
    Chart::Bars(BarsChart {
        title: "A flow whose acknowledgements wait in a queue".into(),
        caption: "Goodput of the flow from A to B, alone and while B and C send to A.".into(),
        axis: Axis::linear("Gb/s on a 100G link"),
        groups,
    })
}
