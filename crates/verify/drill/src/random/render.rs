//! A random script as packetdrill reads it; what must leave is what our TCP sends.

use std::fmt;

use tcp::LinuxVersion;
use units::{Span, Time};

use super::compare::Difference;
use super::play::{self, CONNECTION, PlayResult, Schedule, acknowledgement, syn_options};
use super::{RandomAction, RandomScript};
use crate::segment::DrillSegment;

/// Joins segments that left at one time and follow each other: where a kernel cuts them does not matter.
pub(super) fn joined(played: &PlayResult) -> Vec<(Time, DrillSegment)> {
    let mut joined: Vec<(Time, DrillSegment)> = Vec::new();
    for (at, segment) in &played.segments {
        let bare = DrillSegment { window: None, ecn: None, ..segment.clone() };
        let taken_in = joined.last_mut().is_some_and(|(last, whole)| last == at && whole.join(&bare));
        if !taken_in {
            joined.push((*at, bare));
        }
    }
    joined
}

/// The text of a script on which both differ.
pub(super) fn rendered(script: &RandomScript, version: LinuxVersion, found: &Difference) -> String {
    let seconds = |span: Span| format!("{:.6}", (script.rtt + span).as_secs());
    let syn = DrillSegment { options: Some(syn_options(script)), ..DrillSegment::default() };
    let ecn = if script.ecn { ("EW", "E", "2") } else { ("", "", "0") };
    let mut lines = vec![
        format!("// {found}"),
        format!("`../common/defaults.sh\nsysctl -q net.ipv4.tcp_ecn={}`", ecn.2),
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0".to_owned(),
        format!(
            "+0 < S{} 0:0(0) win 32768 {}",
            ecn.0,
            syn.to_string().rsplit_once(" <").map_or(String::new(), |(_, options)| format!("<{options}"))
        ),
        format!("+0 > S{}. 0:0(0) ack 1 <...>", ecn.1),
        format!("{} < . 1:1(0) ack 1 win 257\n+0 accept(3, ..., ...) = 4", seconds(Span::ZERO)),
    ];
    let mut events: Vec<(Span, u8, String)> = script.steps.iter().map(|step| (step.at, 0, step.to_string())).collect();
    let played = play::repeated(script, version, Span::ZERO, Schedule::Planned(Time::ZERO));
    let played = played.ok().flatten().unwrap_or_default();
    let since_open = |at: Time| at.since(played.timeline.open.min(at));
    events.extend(joined(&played).into_iter().map(|(at, segment)| (since_open(at), 1, format!("> {segment}"))));
    // Stable: steps of one time before what they caused.
    events.sort_by_key(|(at, kind, _)| (*at, *kind));
    lines.extend(events.into_iter().map(|(at, _, text)| format!("{} {text}", seconds(at))));
    lines.join("\n") + "\n"
}

impl fmt::Display for super::RandomStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            RandomAction::Write(bytes) => write!(f, "write({CONNECTION}, ..., {bytes}) = {bytes}"),
            RandomAction::Acknowledge { ack, blocks, window, marked } => {
                write!(f, "< {}", acknowledgement(*ack, *window, *marked, blocks))
            }
        }
    }
}
