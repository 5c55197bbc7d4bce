//! The rules of li-thesis §5.5.1 over an interval, where times are known, in the words of ours.

use super::{CauseFigures, CauseGroup, CauseReason, IntervalEvidence, LossEvidence, push};
use crate::causes::{CauseThresholds, classify};
use crate::loss::{Loss, LossCause};

/// Judges by Algorithms 10 and 11. A lost packet with a time to live of at most `ttl` has expired.
pub(super) fn judge(thresholds: &CauseThresholds, ttl: u8, interval: &IntervalEvidence) -> Vec<CauseGroup> {
    let loss = |evidence: &LossEvidence| {
        Some(Loss {
            at: evidence.at?,
            flow: evidence.flow,
            ip_id: evidence.ip_id,
            tcp: evidence.tcp,
            expired: evidence.ttl.is_some_and(|left| left <= ttl),
            place: evidence.place.map(|place| place.number.into()),
        })
    };
    let all: Vec<Option<Loss>> = interval.losses.iter().map(loss).collect();
    let (timed, untimed): (Vec<usize>, Vec<usize>) = (0..all.len()).partition(|at| all[*at].is_some());
    let losses: Vec<Loss> = all.into_iter().flatten().collect();
    let causes = classify(&losses, thresholds);
    let mut groups = Vec::new();
    for cause in LossCause::ALL {
        let why = match cause {
            LossCause::Congestion => CauseReason::Bursts,
            LossCause::Blackhole => CauseReason::Flow,
            LossCause::Random => CauseReason::Order,
            LossCause::Loop => CauseReason::Expired,
            LossCause::Unknown => CauseReason::Few,
        };
        let of_cause = timed.iter().zip(&causes).filter(|(_, said)| **said == cause).map(|(at, _)| *at).collect();
        push(&mut groups, cause, why, of_cause, CauseFigures::default());
    }
    push(&mut groups, LossCause::Unknown, CauseReason::NoEvidence, untimed, CauseFigures::default());
    groups
}
