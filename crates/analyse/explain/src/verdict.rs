//! One sentence for a connection: what cost most, and what would help.

use crate::connection::ConnectionSummary;
use crate::stalls::StallNote;
use crate::terms::{EndSide, TimeCause, TimerReason};

/// Text of a duration.
pub(crate) fn time_text(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..1_000_000 => format!("{:.0} µs", ns as f64 / 1e3),
        1_000_000..100_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        100_000_000..10_000_000_000 => format!("{:.0} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

/// The largest part, other than idle time if there is anything else.
fn dominant(summary: &ConnectionSummary) -> Option<(TimeCause, EndSide, u64)> {
    let parts = summary.parts.sorted();
    parts.iter().find(|(cause, _, _)| *cause != TimeCause::Idle).or(parts.first()).copied()
}

/// The longest stall of a cause.
fn longest(summary: &ConnectionSummary, cause: TimeCause, side: EndSide) -> Option<&StallNote> {
    let stalls = summary.stalls.iter().filter(|stall| (stall.cause, stall.side) == (cause, side));
    stalls.max_by_key(|stall| stall.until - stall.from)
}

/// Sentence on the cause that cost most.
pub(crate) fn verdict(summary: &ConnectionSummary) -> String {
    let Some((cause, side, ns)) = dominant(summary).filter(|_| summary.duration > 0) else {
        return format!(
            "The capture has no two packets of this connection that would show a wait{}.",
            missing(summary)
        );
    };
    let share = 100.0 * ns as f64 / summary.duration as f64;
    let why = longest(summary, cause, side).and_then(|stall| stall.why);
    format!(
        "{} of {} ({share:.0} %): {}{}.",
        time_text(ns),
        time_text(summary.duration),
        reason(cause, side, why, summary),
        missing(summary),
    )
}

/// Data that the capture lacks, and the effect on the statement.
fn missing(summary: &ConnectionSummary) -> String {
    let mut lacks = Vec::new();
    if !summary.has_syn {
        lacks.push("no SYN in the capture: ends, window scale and segment size are estimated");
    }
    if !summary.has_both_directions {
        lacks.push("one direction only: windows and acknowledgements are unknown");
    }
    if summary.options_cut {
        lacks.push("snap length below the TCP options: no SACK, no timestamps; capture 128 bytes of each packet");
    }
    if lacks.is_empty() { String::new() } else { format!(" ({})", lacks.join("; ")) }
}

fn reason(cause: TimeCause, side: EndSide, why: Option<TimerReason>, summary: &ConnectionSummary) -> String {
    let (end, other) = (side.name(), side.other().name());
    match cause {
        TimeCause::Handshake => "the handshake".into(),
        TimeCause::SynLost => format!("the {end} repeated its SYN, because the first one or its answer was lost"),
        TimeCause::Sending => format!("the {end} sent as fast as it could"),
        TimeCause::Application | TimeCause::PeerApplication => {
            format!("the application of the {end} had nothing to send")
        }
        TimeCause::CongestionWindow => format!("the {end} waited for room in its congestion window"),
        TimeCause::ReceiveWindow => format!("the {other} offered too small a receive window to the {end}"),
        TimeCause::SendBuffer => format!("the {end} seems to have been limited by its send buffer"),
        TimeCause::Nagle => {
            format!("the {end} held back a small segment until the one before was acknowledged (Nagle)")
        }
        TimeCause::DelayedAck => format!("the {end} delayed acknowledgements that the {other} waited for"),
        TimeCause::Network => format!("acknowledgements to the {end} took longer than the shortest round trip"),
        TimeCause::Delivery => format!("data of the {end} was on its way"),
        TimeCause::Recovery => format!("the {end} repaired losses"),
        TimeCause::LateRecovery if summary.reordering_seen => {
            let taken = summary.late_after;
            format!(
                "the {end} repaired a loss late: reordering had raised its threshold of duplicate ACKs (threshold grown: it \
                 took {taken})"
            )
        }
        TimeCause::LateRecovery => {
            format!("the {end} repaired a loss late, after {} duplicate ACKs instead of three", summary.late_after)
        }
        TimeCause::Probe => format!("the {end} waited for its probe timer, because {}", timer_text(why)),
        TimeCause::Timeout => format!("the {end} waited for its retransmission timer, because {}", timer_text(why)),
        TimeCause::Idle => "nothing was asked".into(),
        TimeCause::Unknown => "for an unknown reason".into(),
    }
}

fn timer_text(why: Option<TimerReason>) -> &'static str {
    match why {
        Some(TimerReason::Tail) => "the last segments were lost and nothing behind them showed it (tail)",
        Some(TimerReason::LoneTail) => "a single segment in flight was lost (lone tail)",
        Some(TimerReason::WholeWindow) => "a whole window was lost",
        Some(TimerReason::CopyLost) => "a segment that had been sent again was lost again",
        Some(TimerReason::FewDupacks) => "too few duplicate ACKs came for a fast retransmit",
        Some(TimerReason::HiddenDupacks) => "duplicate ACKs that changed the window did not count",
        Some(TimerReason::SmallWindow) => "the window was too small for three duplicate ACKs",
        Some(TimerReason::AcksLost) => "the data had arrived, but its acknowledgements were lost",
        Some(TimerReason::AckDelayed) => "the data had arrived, but its acknowledgement was delayed",
        Some(TimerReason::Reordered) => "the data had arrived, but out of order",
        Some(TimerReason::Unknown) | None => "nothing came back",
    }
}

/// A setting that would help, with its name.
pub(crate) fn advice(summary: &ConnectionSummary) -> String {
    let Some((cause, side, _)) = dominant(summary) else { return "Nothing to advise.".into() };
    let why = longest(summary, cause, side).and_then(|stall| stall.why);
    let (end, other) = (side.name(), side.other().name());
    match cause {
        TimeCause::SynLost => {
            "Find what drops SYNs (net.core.somaxconn and net.ipv4.tcp_max_syn_backlog if it is the server's \
                               queue); connections that are kept open need no handshake."
                .into()
        }
        TimeCause::Handshake => "Keep connections open, or use net.ipv4.tcp_fastopen = 3.".into(),
        TimeCause::Application | TimeCause::PeerApplication | TimeCause::Idle => {
            format!("Nothing in the network: look at the application of the {end}.")
        }
        TimeCause::CongestionWindow => format!(
            "At the {end}: a larger first window (ip route change ... initcwnd 32), net.ipv4.tcp_slow_start_after_idle = 0 for \
             connections that pause, fewer losses, or net.ipv4.tcp_congestion_control = bbr."
        ),
        TimeCause::ReceiveWindow => format!(
            "At the {other}: raise the third value of net.ipv4.tcp_rmem (and do not set SO_RCVBUF), or read faster if the window \
             was shut."
        ),
        TimeCause::SendBuffer => {
            format!("At the {end}: raise the third value of net.ipv4.tcp_wmem (and do not set SO_SNDBUF).")
        }
        TimeCause::Nagle => format!("At the {end}: set TCP_NODELAY, or write a message with one call."),
        TimeCause::DelayedAck => format!(
            "At the {other}: set TCP_NODELAY, or write a message with one call; at the {end}: TCP_QUICKACK (ip route change ... \
             quickack 1)."
        ),
        TimeCause::Network => {
            "Queues on the way: mark early (net.ipv4.tcp_ecn = 1, fq_codel) or move bulk traffic to another \
                               queue."
                .into()
        }
        TimeCause::LateRecovery => format!(
            "At the {end}: net.ipv4.tcp_recovery = 1 (RACK) and a lower net.ipv4.tcp_max_reordering; find what reorders packets."
        ),
        TimeCause::Recovery => "Find where packets are lost: `hitless radar losses` with a capture of each end.".into(),
        TimeCause::Probe | TimeCause::Timeout => timer_advice(end, other, why, cause),
        TimeCause::Sending | TimeCause::Delivery | TimeCause::Unknown => "Nothing to advise.".into(),
    }
}

fn timer_advice(end: &str, other: &str, why: Option<TimerReason>, cause: TimeCause) -> String {
    match why {
        Some(TimerReason::AckDelayed) => {
            format!(
                "At the {other}: quick ACKs (TCP_QUICKACK, ip route change ... quickack 1); rto_min above its delay at the {end}."
            )
        }
        Some(TimerReason::FewDupacks | TimerReason::HiddenDupacks | TimerReason::SmallWindow) => {
            format!(
                "At the {end}: net.ipv4.tcp_recovery = 1 (RACK) and net.ipv4.tcp_early_retrans = 3; SACK at both ends (net.ipv4.tcp_sack = 1)."
            )
        }
        Some(TimerReason::LoneTail) => format!(
            "At the {end}: a lower rto_min for this route (ip route change ... rto_min 5ms) shortens the wait; a link that \
             repairs losses itself (`hitless link`) avoids it."
        ),
        _ if cause == TimeCause::Timeout => format!(
            "At the {end}: net.ipv4.tcp_early_retrans = 3 (probes) and net.ipv4.tcp_recovery = 1 (RACK) if they are off; a lower \
             rto_min for this route (ip route change ... rto_min 5ms)."
        ),
        _ => "Find where packets are lost: `hitless radar losses` with a capture of each end.".into(),
    }
}
