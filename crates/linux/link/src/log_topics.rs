//! Topics of the lines that a link logs.
//!
//! Any host that can send frames to a link can cause lines, so each topic is limited on its own ([`daemon::limiter`]).

use daemon::limiter::ReportTopic;
use guard::EndpointEvent;

use crate::datapath::{FrameFault, LinkEvent};

/// Topic of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogTopic {
    Stranger,
    Forged,
    Replayed,
    Unchecked,
    KeyMissing,
    Activated,
    Deactivated,
    PeerLost,
    Refused,
    Level,
}

impl LogTopic {
    pub(crate) fn of(event: &LinkEvent) -> Self {
        match event {
            LinkEvent::Fault(FrameFault::Stranger(_), _) => Self::Stranger,
            LinkEvent::Fault(FrameFault::Forged, _) => Self::Forged,
            LinkEvent::Fault(FrameFault::Replayed, _) => Self::Replayed,
            LinkEvent::Fault(FrameFault::Unchecked, _) => Self::Unchecked,
            LinkEvent::Fault(FrameFault::KeyMissing, _) => Self::KeyMissing,
            LinkEvent::Endpoint(EndpointEvent::Activated) => Self::Activated,
            LinkEvent::Endpoint(EndpointEvent::Deactivated) => Self::Deactivated,
            LinkEvent::Endpoint(EndpointEvent::PeerLost) => Self::PeerLost,
            LinkEvent::Endpoint(EndpointEvent::Refused(_)) => Self::Refused,
            LinkEvent::Endpoint(EndpointEvent::Level(_)) => Self::Level,
        }
    }

    fn is_life_cycle(self) -> bool {
        matches!(self, Self::Activated | Self::Deactivated | Self::PeerLost | Self::Refused | Self::Level)
    }
}

impl ReportTopic for LogTopic {
    fn index(self) -> usize {
        self as usize
    }

    fn state(self) -> Option<usize> {
        self.is_life_cycle().then_some(0)
    }

    fn unit(self) -> &'static str {
        if self.is_life_cycle() { "times" } else { "frames" }
    }
}

#[cfg(test)]
mod tests {
    use daemon::limiter::LogLimiter;
    use units::{Span, Time};

    use super::*;
    use crate::frame::Mac;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn thousands_of_strangers_frames_make_a_line_a_minute_with_their_number() {
        let mut limiter = LogLimiter::default();
        let mut lines = Vec::new();
        // Ten minutes, an address of its own each millisecond.
        for ms in 0..600_000_u64 {
            let from = Mac([2, 0, 0, 0, (ms >> 8) as u8, ms as u8]);
            lines.extend(limiter.admit(at(ms), LogTopic::Stranger, 1, &from.to_string()));
            lines.extend(limiter.due(at(ms)));
        }
        assert_eq!(lines.len(), 10, "{lines:?}");
        assert_eq!(lines[0], "02:00:00:00:00:00");
        assert!(lines[1].ends_with("(60000 frames since the last report)"), "{}", lines[1]);
        // The last events are reported too, though nothing follows them.
        assert_eq!(limiter.due(at(600_000)).map(|line| line.contains("59999 frames")), Some(true));
        assert_eq!(limiter.due(at(900_000)), None);
    }

    #[test]
    fn one_kind_of_fault_does_not_hide_another() {
        let mut limiter = LogLimiter::default();
        assert!(limiter.admit(at(0), LogTopic::Stranger, 9, "stranger").is_some());
        assert!(limiter.admit(at(1), LogTopic::Stranger, 9, "stranger").is_none());
        assert_eq!(limiter.admit(at(1), LogTopic::Forged, 9, "forged").as_deref(), Some("forged"));
    }

    #[test]
    fn of_a_link_driven_up_and_down_the_first_events_and_the_last_state_are_reported() {
        let mut limiter = LogLimiter::default();
        let (mut lines, mut ms) = (Vec::new(), 0);
        for _ in 0..1_000 {
            for (topic, line) in [(LogTopic::PeerLost, "lost"), (LogTopic::Activated, "protected")] {
                ms += 10;
                lines.extend(limiter.admit(at(ms), topic, 1, line));
                lines.extend(limiter.due(at(ms)));
            }
        }
        assert_eq!(lines, ["lost", "protected", "lost", "protected", "lost", "protected"]);
        let last: Vec<String> = (ms..ms + 120_000).step_by(1_000).filter_map(|ms| limiter.due(at(ms))).collect();
        assert_eq!(last, ["protected (997 times since the last report)"]);
    }
}
