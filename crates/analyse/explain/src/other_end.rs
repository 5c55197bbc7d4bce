//! A second capture, of the other end: which packets are in one and not in the other is no inference any more.

use std::collections::HashMap;
use std::net::SocketAddr;

use radar::compare::MissingPacket;

use crate::connection::ConnectionSummary;
use crate::losses::LossNote;
use crate::terms::{CapturePlace, EndSide, LossWitness, RepairKind, TimeCause, TimerReason};

/// A lost packet and the copy that replaced it belong together only within this.
const LONGEST_REPAIR: u64 = 130_000_000_000;

/// Replaces what was inferred about losses by what the two captures show.
pub(crate) fn apply(connections: &mut [ConnectionSummary], missing: [&[MissingPacket]; 2]) {
    let mut of_ends: HashMap<(SocketAddr, SocketAddr), Vec<usize>> = HashMap::new();
    for (place, summary) in connections.iter().enumerate() {
        of_ends.entry((summary.client, summary.server)).or_default().push(place);
    }
    let mut losses: Vec<Vec<(EndSide, LossNote, u32)>> = vec![Vec::new(); connections.len()];
    for packet in missing.into_iter().flatten() {
        let flow = &packet.loss.flow;
        let ends = [SocketAddr::new(flow.src, flow.src_port), SocketAddr::new(flow.dst, flow.dst_port)];
        let up = of_ends.get(&(ends[0], ends[1])).map(|places| (EndSide::Client, places));
        let found = up.or_else(|| of_ends.get(&(ends[1], ends[0])).map(|places| (EndSide::Server, places)));
        let Some((side, places)) = found else { continue };
        let at = packet.loss.at.0;
        // If connections used the same ports one after another, the loss belongs to the last that had begun.
        let began = places.iter().copied().filter(|place| connections[*place].start <= at + 1_000_000_000);
        let Some(place) = began.max_by_key(|place| connections[*place].start) else { continue };
        if let Some(loss) = loss(packet, side, &connections[place]) {
            losses[place].push(loss);
        }
    }
    for (summary, mut losses) in connections.iter_mut().zip(losses) {
        losses.sort_by_key(|(side, note, _)| (note.at, *side, note.position));
        summary.losses = losses;
        summary.sees = CapturePlace::Both;
        settle_reasons(summary);
    }
}

fn loss(packet: &MissingPacket, side: EndSide, summary: &ConnectionSummary) -> Option<(EndSide, LossNote, u32)> {
    let segment = packet.loss.tcp?;
    let end = segment.seq.wrapping_add(u32::from(segment.len));
    let has_fin = summary.fins[side.index()].is_some_and(|fin| fin.wrapping_add(1) == end);
    // SYN and FIN take a number each, and are no payload.
    let len = u32::from(segment.len).saturating_sub(u32::from(segment.syn) + u32::from(has_fin));
    let at = packet.loss.at.0;
    let known = summary.losses.iter().find(|(end, note, seq)| {
        (*end, *seq) == (side, segment.seq) && note.repaired_at >= at && note.repaired_at - at < LONGEST_REPAIR
    });
    let (repaired_by, repaired_at, position) = known
        .map_or((RepairKind::Nothing, at, u64::from(segment.seq)), |(_, note, _)| {
            (note.repaired_by, note.repaired_at, note.position)
        });
    let seen_by = LossWitness::OtherEnd;
    let note = LossNote { at, position, len, repaired_by, repaired_at, seen_by, is_spurious: false };
    Some((side, note, segment.seq))
}

/// A timer that followed lost acknowledgements, and no lost data, was made necessary by them.
fn settle_reasons(summary: &mut ConnectionSummary) {
    let ConnectionSummary { stalls, losses, .. } = summary;
    for stall in stalls.iter_mut().filter(|stall| matches!(stall.cause, TimeCause::Timeout | TimeCause::Probe)) {
        let during = |note: &LossNote| (stall.from.saturating_sub(1_000_000_000)..=stall.until).contains(&note.at);
        let lost = |side: EndSide, data: bool| {
            losses.iter().any(|(end, note, _)| *end == side && (note.len > 0) == data && during(note))
        };
        if lost(stall.side.other(), false) && !lost(stall.side, true) {
            stall.why = Some(TimerReason::AcksLost);
        }
    }
}
