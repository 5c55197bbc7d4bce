//! det.drop.shared: a queue whose threshold falls because another one fills (§6.5.4.3, Fig. 6.9).

use chart::{Axis, Chart, Line, LinesChart};
use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use sim::net::queue_replay::{MTU_FRAME, PacketFate, QueueViews, ReplayTags, compare};
use sim::topology::DirectedLink;
use units::{Span, Time};
use wire::ethernet::on_wire;

use super::runs;

/// Start of the short flows, in ms, and the time for which drops are counted.
const BURST: f64 = 10.0;
const AFTER: f64 = 1.0;

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    effort.progress.expect_parts(2);
    let setup = runs::setup("shared-buffer-network.toml", &[], effort.seed)?;
    let port = |host: &str| setup.topology.link_between("sw0", host).map_err(ClaimError::new);
    let [first, second] = [port("h0")?, port("h1")?];
    let Some(recording) = runs::record(&setup, 1, effort)? else { return Ok(None) };
    effort.progress.part_done();
    let (connections, _) = runs::sampled(&setup, &recording, Span::from_us(5), runs::CLOCKS_APART)?;
    let Some(replay) = runs::replay(&setup, &connections, ReplayTags::Used, 1, effort)? else { return Ok(None) };
    effort.progress.part_done();
    let [lengths, others] = [first, second].map(|port| lengths(&replay.views, port));
    let sent = |stream: usize, number: u32| connections[stream / 2].packets[stream % 2][number as usize].at;
    let dropped = replay.dropped.iter().filter(|(.., port)| *port == first);
    let mut dropped: Vec<f64> = dropped.map(|(stream, number, _)| ms(sent(stream.0 as usize, *number))).collect();
    dropped.sort_by(f64::total_cmp);
    let in_burst = |at: &&f64| (BURST..BURST + AFTER).contains(*at);
    let mut computed = ComputedValues::default();
    let mut value = |name: &str, value: Option<f64>| {
        computed.values.push((name.into(), value.map(|value| MeasuredValue::exact(value, lengths.len() as u64))));
    };
    let full = others.iter().map(|(_, bytes)| *bytes).reduce(f64::max);
    value("alone", lengths.iter().filter(|(at, _)| *at < BURST).map(|(_, bytes)| *bytes).reduce(f64::max));
    value("shared", where_they_meet(&lengths, &others));
    value("second", full);
    value("drops", Some(dropped.iter().filter(in_burst).count() as f64));
    let in_run = recording.packets().filter(|(.., packet)| {
        let at = ms(packet.at);
        packet.fate == PacketFate::Dropped(first) && in_burst(&&at)
    });
    value("drops.run", Some(in_run.count() as f64));
    value("difference", Some(compare(&recording, &replay, Time::ZERO).queues.mean));
    computed.charts.push(chart(&lengths, &others, &dropped));
    Ok(Some(computed))
}

fn ms(at: Time) -> f64 {
    at.since(Time::ZERO).as_us() / 1e3
}

/// Queue at a port when packets joined it: the time in ms, and the length in KB as a buffer counts.
fn lengths(views: &QueueViews, port: DirectedLink) -> Vec<(f64, f64)> {
    let counted = f64::from(on_wire(MTU_FRAME)) / f64::from(MTU_FRAME) / 1e3;
    let at_port = views.views.iter().filter(|view| view.port == port);
    let length = |view| views.content(view).iter().map(|flow| flow.bytes).sum::<u32>();
    at_port.map(|view| (ms(view.at), f64::from(length(view)) * counted)).collect()
}

/// Length of one queue when the other first was as long.
fn where_they_meet(lengths: &[(f64, f64)], others: &[(f64, f64)]) -> Option<f64> {
    let mut before = lengths.iter().filter(|(at, _)| *at >= BURST).peekable();
    others.iter().filter(|(at, _)| *at >= BURST).find_map(|(at, other)| {
        let mut length = None;
        while let Some((_, bytes)) = before.next_if(|(earlier, _)| earlier <= at) {
            length = Some(*bytes);
        }
        length.filter(|bytes| other >= bytes)
    })
}

fn chart(lengths: &[(f64, f64)], others: &[(f64, f64)], dropped: &[f64]) -> Chart {
    let shown = |at: f64| (BURST - 1.0..BURST + AFTER).contains(&at);
    let points = |lengths: &[(f64, f64)]| lengths.iter().copied().filter(|(at, _)| shown(*at)).step_by(4).collect();
    let before = dropped.iter().filter(|at| **at < BURST - 1.0).count();
    let drops = dropped.iter().enumerate().skip(before).filter(|(_, at)| shown(**at));
    let drops = drops.map(|(number, at)| (*at, (number + 1 - before) as f64)).collect();
    Chart::Lines(LinesChart {
        title: "Two queues that share a buffer of 393 KB".into(),
        caption: "From the replay. Queue 0 holds up to 314 KB while it is alone; when queue 1 fills, both may hold 175 KB, and \
                  queue 0 drops what arrives until it has drained. Drops are counted from the beginning of the chart."
            .into(),
        x: Axis::linear("ms"),
        y: Axis::linear("KB, or packets"),
        lines: vec![
            Line::new("queue 0, KB", points(lengths)),
            Line::new("queue 1, KB", points(others)),
            Line::new("drops at queue 0", drops),
        ],
    })
}
