//! Why there is no delay, and what to do.

use clock::offset::OffsetContradiction;

use super::DelayQuestion;
use crate::compare::CaptureRole;
use crate::compare::report::text::{packets, time, utc};
use crate::delay::DelayError;

/// One line for a user.
pub fn refusal(error: &DelayError, question: &DelayQuestion) -> String {
    let DelayQuestion { up, down, has_clocks, .. } = question;
    let name = |which: &CaptureRole| match which {
        CaptureRole::Up => up,
        CaptureRole::Down => down,
    };
    match error {
        DelayError::Capture(which, error) => format!("{}: {error}", name(which)),
        DelayError::NoPackets(which, _) => format!("{}: no IP packets to measure", name(which)),
        DelayError::NothingInCommon { up: in_up, down: in_down, alike } => format!(
            "{up} ({}) and {down} ({}) have no packet in common{}; likely: captures of other traffic or of another time, or \
             addresses that are rewritten on the way (--nat)",
            packets(*in_up),
            packets(*in_down),
            of_alike(*alike)
        ),
        DelayError::OneDirection { packets: both, alike } => {
            let clocks = if *has_clocks {
                "and what the clocks say does not bound the other side either"
            } else {
                "or say how wrong the clocks are: --clock-up and --clock-down"
            };
            format!(
                "all {} that both captures have go one way{}, and one direction alone says nothing of the offset between the \
                 clocks: capture both directions at both ends, {clocks}",
                packets(*both),
                of_alike(*alike)
            )
        }
        DelayError::DirectionsUnknown { packets: both } => format!(
            "nothing shows which way the {} go that both captures have: between packets of the two directions the clocks may \
             have drifted by more than the round trip; give a smaller --drift, or --clock-up and --clock-down",
            packets(*both)
        ),
        DelayError::Contradiction(found) => contradiction(found, question),
        DelayError::Interrupted => "interrupted".to_owned(),
    }
}

fn of_alike(alike: u64) -> String {
    match alike {
        0 => String::new(),
        alike => format!(" ({} that are alike to the last bit do not count)", packets(alike)),
    }
}

fn contradiction(found: &OffsetContradiction, question: &DelayQuestion) -> String {
    let (from, until) = found.between();
    let bound = question.drift_ppm;
    let [from_text, until_text] = [from, until].map(|at| utc(at.unsigned_abs()));
    let ppm = found.ppm();
    let needed = if ppm.is_finite() {
        format!("{ppm:.0} ppm, more than the {bound} ppm of --drift")
    } else {
        "at once".to_owned()
    };
    let clocks = if question.has_clocks { ", or a clock was more wrong than it said" } else { "" };
    format!(
        "no two clocks fit these packets: between {from_text} and {until_text} UTC (UP's clock) the clocks moved against each \
         other by {} or more in {}, {needed}: a clock was set there, --drift is too small, or captures that are no pair{clocks}; \
         no delay is reported",
        time(found.change()),
        time(until.saturating_sub(from)),
    )
}
