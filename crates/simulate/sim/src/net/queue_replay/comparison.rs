//! Differences between a replay and the run: li-thesis §6.5.4.

use std::collections::{BTreeMap, HashMap};

use units::Time;

use super::MTU_FRAME;
use super::contents::{FlowBytes, QueueView, StreamId};
use super::recording::{PacketFate, QueueRecording};
use super::replaying::QueueReplay;
use crate::topology::DirectedLink;

/// A replay beside the run: in the whole network, and at every port that anybody looked at or where anything was dropped.
#[derive(Clone, Debug, Default)]
pub struct QueueComparison {
    pub queues: QueueDifference,
    pub drops: DropDifference,
    pub ports: Vec<(DirectedLink, QueueDifference, DropDifference)>,
}

/// Queue content difference in MTU, over the packets with a view in both.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueDifference {
    /// Packets at queues that were compared.
    pub views: u64,
    /// Mean length of the queues in the run.
    pub mean_length: f64,
    /// Mean, over views, of the sum over flows of |run − replay|.
    pub mean: f64,
    pub p99: f64,
    /// Mean as the thesis prints it, without the absolute value of each flow: the difference in length of the whole queue.
    pub mean_of_lengths: f64,
    pub p99_of_lengths: f64,
}

/// Packets that were dropped in either, by what the replay did to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropDifference {
    pub in_run: u64,
    pub in_either: u64,
    pub false_accepts: u64,
    pub false_drops: u64,
    pub wrong_place: u64,
}

impl DropDifference {
    /// The share of errors in all drops; `None` if there were none.
    pub fn error(&self) -> Option<f64> {
        let wrong = self.false_accepts + self.false_drops + self.wrong_place;
        (self.in_either > 0).then(|| wrong as f64 / self.in_either as f64)
    }
}

/// Compares a replay with the recorded run: all drops, and the queue lengths that packets met after the time `from`.
pub fn compare(recording: &QueueRecording, replay: &QueueReplay, from: Time) -> QueueComparison {
    let (queues, by_port) = queue_differences(recording, replay, from);
    let (drops, mut drops_by_port) = drop_differences(recording, replay);
    let mut ports: Vec<_> = by_port
        .into_iter()
        .map(|(port, difference)| (port, difference, drops_by_port.remove(&port).unwrap_or_default()))
        .collect();
    ports.extend(drops_by_port.into_iter().map(|(port, drops)| (port, QueueDifference::default(), drops)));
    ports.sort_by_key(|(port, ..)| *port);
    QueueComparison { queues, drops, ports }
}

/// One packet at one queue, in both: bytes.
#[derive(Clone, Copy, Debug)]
struct ViewDifference {
    port: DirectedLink,
    length: u32,
    content: u32,
    lengths: u32,
}

fn queue_differences(
    recording: &QueueRecording,
    replay: &QueueReplay,
    from: Time,
) -> (QueueDifference, Vec<(DirectedLink, QueueDifference)>) {
    let views = recording.views.views.iter().filter(|view| view.at >= from);
    let run: HashMap<_, &QueueView> = views.map(|view| (view.key(), view)).collect();
    let both = replay.views.views.iter().filter_map(|view| {
        let seen = run.get(&view.key()).filter(|seen| seen.port == view.port)?;
        let (run, replay) = (recording.views.content(seen), replay.views.content(view));
        let [length, replayed] = [run, replay].map(|content| content.iter().map(|flow| flow.bytes).sum::<u32>());
        let (content, lengths) = (content_difference(run, replay), length.abs_diff(replayed));
        Some(ViewDifference { port: view.port, length, content, lengths })
    });
    let mut both: Vec<ViewDifference> = both.collect();
    both.sort_by_key(|view| view.port);
    let ports = both.chunk_by(|one, next| one.port == next.port).map(|views| (views[0].port, summary(views))).collect();
    (summary(&both), ports)
}

/// Σ over flows of |run − replay|.
fn content_difference(run: &[FlowBytes], replay: &[FlowBytes]) -> u32 {
    let in_other = |other: &[FlowBytes], stream: StreamId| {
        other.iter().find(|flow| flow.stream == stream).map_or(0, |flow| flow.bytes)
    };
    let of_run: u32 = run.iter().map(|flow| flow.bytes.abs_diff(in_other(replay, flow.stream))).sum();
    let only_replayed = replay.iter().filter(|flow| in_other(run, flow.stream) == 0).map(|flow| flow.bytes);
    of_run + only_replayed.sum::<u32>()
}

fn summary(views: &[ViewDifference]) -> QueueDifference {
    let of = |take: fn(&ViewDifference) -> u32| {
        let mut values: Vec<u32> = views.iter().map(take).collect();
        values.sort_unstable();
        let mean = values.iter().map(|bytes| u64::from(*bytes)).sum::<u64>() as f64 / values.len().max(1) as f64;
        let p99 = values.get(values.len() * 99 / 100).copied().unwrap_or_default();
        [mean, f64::from(p99)].map(|bytes| bytes / f64::from(MTU_FRAME))
    };
    let ([mean_length, _], [mean, p99]) = (of(|view| view.length), of(|view| view.content));
    let [mean_of_lengths, p99_of_lengths] = of(|view| view.lengths);
    QueueDifference { views: views.len() as u64, mean_length, mean, p99, mean_of_lengths, p99_of_lengths }
}

fn drop_differences(
    recording: &QueueRecording,
    replay: &QueueReplay,
) -> (DropDifference, BTreeMap<DirectedLink, DropDifference>) {
    let mut replayed: HashMap<(StreamId, u32), DirectedLink> =
        replay.dropped.iter().map(|(stream, number, port)| ((*stream, *number), *port)).collect();
    let (mut all, mut ports) = (DropDifference::default(), BTreeMap::<_, DropDifference>::new());
    let mut count = |port: DirectedLink, change: &dyn Fn(&mut DropDifference)| {
        change(&mut all);
        change(ports.entry(port).or_default());
    };
    for (stream, number, packet) in recording.packets() {
        let in_replay = if replayed.is_empty() { None } else { replayed.remove(&(stream, number)) };
        match (packet.fate, in_replay) {
            (PacketFate::Dropped(port), in_replay) => count(port, &|drops| {
                drops.in_run += 1;
                drops.in_either += 1;
                drops.false_accepts += u64::from(in_replay.is_none());
                drops.wrong_place += u64::from(in_replay.is_some_and(|replayed| replayed != port));
            }),
            (PacketFate::Delivered | PacketFate::Corrupted(_), Some(port)) => count(port, &|drops| {
                drops.in_either += 1;
                drops.false_drops += 1;
            }),
            // The fate of a packet that was under way is unknown.
            (PacketFate::UnderWay, _) | (_, None) => {}
        }
    }
    (all, ports)
}
