//! Reports of a detector: a change of a port's condition, with evidence and a sentence for people; and notes on odd
//! readings.

use std::fmt;
use std::time::Duration;

use units::Prob;

use super::window::FrameCounts;
use bus::message::{Condition, Evidence};

/// Result of a reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DetectorVerdict {
    /// Worth telling others.
    pub change: Option<PortChange>,
    /// Worth a line in a log.
    pub note: Option<ReadingNote>,
}

/// The condition of a port changed, or what is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct PortChange {
    pub kind: ChangeKind,
    /// Condition of the port now.
    pub condition: Condition,
    /// Stays corrupting until a person clears it.
    pub sticky: bool,
    pub evidence: Evidence,
    /// One line for people, with numbers in it.
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// Corrupting from now on.
    Raised,
    /// Corrupting from now on, and once too often: only a person clears it.
    Stuck,
    /// An alarm taken over from an earlier monitor or another device was seen to be true here, too.
    Confirmed,
    /// Corrupting as before, with at least twice the loss that was reported: links may need more copies.
    Worse,
    /// Healthy after an alarm.
    Cleared,
    /// Healthy, with enough seen to say so.
    Healthy,
    /// No longer known, without an alarm.
    Unknown,
    /// The port has a new name, and keeps its history.
    Moved,
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Raised => "raised",
            Self::Stuck => "stuck",
            Self::Confirmed => "confirmed",
            Self::Worse => "worse",
            Self::Cleared => "cleared",
            Self::Healthy => "healthy",
            Self::Unknown => "unknown",
            Self::Moved => "moved",
        })
    }
}

/// Oddity of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadingNote {
    Wrapped,
    StartedOver,
    Jumped,
    TooLong,
    Nonsense,
    Duplicate,
    Backwards,
    SetBack,
    OtherDevice,
}

impl fmt::Display for ReadingNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Wrapped => "counters wrapped; counted on",
            Self::StartedOver => "counters started over; the time since the last reading is not counted",
            Self::Jumped => "counters jumped by more than a port can receive; not counted",
            Self::TooLong => "counters may have wrapped more than once since the last reading; not counted",
            Self::Nonsense => "more bad frames than frames; refused",
            Self::Duplicate => "a second reading of the same time; refused",
            Self::Backwards => "a reading older than the last; refused",
            Self::SetBack => "the clock of the readings was set back; counted from here on",
            Self::OtherDevice => "another device under this name; its counters start afresh",
        })
    }
}

/// Reason why nothing can be said about a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AbsenceReason {
    Off,
    Lost,
    Uncounted,
    Gone,
}

impl fmt::Display for AbsenceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Off => "switched off",
            Self::Lost => "no signal",
            Self::Uncounted => "nothing counts its frames",
            Self::Gone => "no longer there",
        })
    }
}

impl PortChange {
    pub(super) fn raised(window: FrameCounts, threshold: Prob, polls: u32, sticky: Option<(usize, Duration)>) -> Self {
        let mut why = format!("{}, above {threshold} in {}", lost(window), counted(polls, "poll"));
        if let Some((flaps, within)) = sticky {
            let within = span(within);
            why += &format!("; raised {} within {within}, so a person has to clear it", counted(flaps as u32, "time"));
        }
        let kind = if sticky.is_some() { ChangeKind::Stuck } else { ChangeKind::Raised };
        Self::corrupting(kind, sticky.is_some(), window, why)
    }

    pub(super) fn confirmed(window: FrameCounts, threshold: Prob, polls: u32, sticky: bool) -> Self {
        let why = format!("{}, still above {threshold} in {}", lost(window), counted(polls, "poll"));
        Self::corrupting(ChangeKind::Confirmed, sticky, window, why)
    }

    pub(super) fn worse(window: FrameCounts, told: f64, sticky: bool) -> Self {
        Self::corrupting(ChangeKind::Worse, sticky, window, format!("{}, up from {told:.1e}", lost(window)))
    }

    fn corrupting(kind: ChangeKind, sticky: bool, window: FrameCounts, why: String) -> Self {
        Self { kind, condition: Condition::Corrupting, sticky, evidence: window.into(), why }
    }

    /// Cleared by the interval: the loss is known to be below the threshold.
    pub(super) fn cleared(recent: FrameCounts, threshold: Prob, polls: u32) -> Self {
        let why = format!("{}, below {threshold} in {}", lost(recent), counted(polls, "poll"));
        Self::healthy(ChangeKind::Cleared, recent, why)
    }

    /// Cleared by quiet: the loss that raised the alarm would have shown.
    pub(super) fn quiet(clean: FrameCounts, loss: f64) -> Self {
        let (frames, lapse, shown) = (thousands(clean.frames), span(clean.lapse), clean.frames as f64 * loss);
        let why =
            format!("none bad of {frames} frames in {lapse}; a loss of {loss:.1e} as before would show {shown:.0}");
        Self::healthy(ChangeKind::Cleared, clean, why)
    }

    pub(super) fn by_hand() -> Self {
        Self::healthy(ChangeKind::Cleared, FrameCounts::default(), "cleared by hand; counts start afresh".to_owned())
    }

    pub(super) fn found_healthy(window: FrameCounts) -> Self {
        Self::healthy(ChangeKind::Healthy, window, lost(window))
    }

    fn healthy(kind: ChangeKind, tally: FrameCounts, why: String) -> Self {
        Self { kind, condition: Condition::Healthy, sticky: false, evidence: tally.into(), why }
    }

    pub(super) fn unknown(why: impl Into<String>) -> Self {
        let evidence = FrameCounts::default().into();
        Self { kind: ChangeKind::Unknown, condition: Condition::Unknown, sticky: false, evidence, why: why.into() }
    }
}

/// `lost 37 of 1,204,331 frames in 12 s: 3.1e-5, 95 % 2.2e-5 to 4.2e-5`
fn lost(tally: FrameCounts) -> String {
    let (bad, frames, lapse) = (thousands(tally.bad), thousands(tally.frames), span(tally.lapse));
    let (loss, low, high) = (tally.loss(), tally.low(), tally.high());
    let counts = format!("lost {bad} of {frames} frames in {lapse}");
    if tally.bad == 0 {
        format!("{counts}: at most {high:.1e}")
    } else {
        format!("{counts}: {loss:.1e}, 95 % {low:.1e} to {high:.1e}")
    }
}

fn counted(n: u32, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time as people say it: `200 ms`, `12 s`, `5 min`, `1 h 20 min`, `3 d 4 h`.
pub(super) fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let two = |first: u64, unit: &str, second: u64, small: &str| match second {
        0 => format!("{first} {unit}"),
        _ => format!("{first} {unit} {second} {small}"),
    };
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..10 => format!("{} s", (time.as_secs_f64() * 10.0).round() / 10.0),
        10..120 => format!("{seconds} s"),
        120..3_600 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds / 60 % 60, "min"),
        _ => two(seconds / 86_400, "d", seconds / 3_600 % 24, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRESHOLD: Prob = Prob::literal(1e-8);

    #[test]
    fn sentences_have_the_numbers_that_decided() {
        let lossy = FrameCounts { frames: 1_204_331, bad: 37, lapse: Duration::from_secs(12) };
        assert_eq!(
            PortChange::raised(lossy, THRESHOLD, 2, None).why,
            "lost 37 of 1,204,331 frames in 12 s: 3.1e-5, 95 % 2.2e-5 to 4.2e-5, above 1e-8 in 2 polls"
        );
        let stuck = PortChange::raised(lossy, THRESHOLD, 1, Some((3, Duration::from_secs(7_200))));
        assert!(stuck.why.ends_with("above 1e-8 in 1 poll; raised 3 times within 2 h, so a person has to clear it"));
        let clean = FrameCounts { frames: 400_000_000, bad: 0, lapse: Duration::from_secs(50) };
        assert_eq!(
            PortChange::cleared(clean, THRESHOLD, 3).why,
            "lost 0 of 400,000,000 frames in 50 s: at most 9.2e-9, below 1e-8 in 3 polls"
        );
        let quiet = FrameCounts { frames: 1_000_000, bad: 0, lapse: Duration::from_secs(3_660) };
        assert_eq!(
            PortChange::quiet(quiet, 3.1e-5).why,
            "none bad of 1,000,000 frames in 1 h 1 min; a loss of 3.1e-5 as before would show 31"
        );
    }

    #[test]
    fn times_read_as_people_say_them() {
        let said = [200, 1_000, 2_500, 61_000, 300_000, 3_600_000, 4_800_000, 90_000_000]
            .map(|ms| span(Duration::from_millis(ms)));
        assert_eq!(said, ["200 ms", "1 s", "2.5 s", "61 s", "5 min", "1 h", "1 h 20 min", "1 d 1 h"]);
    }
}
