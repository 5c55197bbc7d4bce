//! Feedback of a receiver to the sender's congestion control: marks, times, notification packets.
//!
//! An acknowledgement tells of the latest packet that had arrived when it leaves, and of all marks since the one before.
//! A notification packet (CNP) is due when a marked packet arrives, if the last was at least `cnp_gap` ago.

use congestion::ControllerConfig;
use units::{Span, Time};
use wire::ip::Ecn;

use super::congestion_header::{CongestionHeader, RdmaFraming, Telemetry};

#[derive(Debug)]
pub(super) struct ArrivalEcho {
    cnp_gap: Option<Span>,
    framing: RdmaFraming,
    /// Send time of the latest data packet, and the time for which it was under way.
    latest: Option<(Time, Span)>,
    collects: bool,
    marked: u16,
    cnp_owed: bool,
    last_cnp: Option<Time>,
}

impl ArrivalEcho {
    pub(super) fn new(congestion: &ControllerConfig, framing: RdmaFraming) -> Self {
        Self {
            cnp_gap: congestion.cnp_gap(),
            framing,
            latest: None,
            collects: false,
            marked: 0,
            cnp_owed: false,
            last_cnp: None,
        }
    }

    /// A data packet arrives, in order or not.
    #[inline]
    pub(super) fn on_data(&mut self, now: Time, ecn: Ecn, header: &CongestionHeader) {
        if let Some(sent_at) = header.sent_at {
            self.latest = Some((sent_at, now.since(sent_at)));
        }
        self.collects |= header.telemetry == Telemetry::Collects;
        if ecn == Ecn::Experienced {
            self.marked = self.marked.saturating_add(1);
            self.notify(now);
        }
    }

    fn notify(&mut self, now: Time) {
        let Some(gap) = self.cnp_gap else { return };
        if self.last_cnp.is_none_or(|last| now.since(last) >= gap) {
            self.last_cnp = Some(now);
            self.cnp_owed = true;
        }
    }

    #[inline]
    pub(super) fn owes_cnp(&self) -> bool {
        self.cnp_owed
    }

    /// The notification leaves.
    pub(super) fn take_cnp(&mut self) -> bool {
        std::mem::take(&mut self.cnp_owed)
    }

    /// Feedback in the acknowledgement that leaves now.
    #[inline]
    pub(super) fn take(&mut self) -> CongestionHeader {
        let returns = std::mem::take(&mut self.collects);
        let latest = self.latest.take();
        CongestionHeader {
            sent_at: latest.map(|(sent_at, _)| sent_at),
            one_way: latest.map_or(Span::ZERO, |(_, one_way)| one_way),
            marked: std::mem::take(&mut self.marked),
            telemetry: if returns { Telemetry::Returns } else { Telemetry::None },
            extra_bytes: self.framing.ack_extra(returns),
        }
    }
}

#[cfg(test)]
mod tests {
    use congestion::DcqcnConfig;

    use super::*;

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn notifications_keep_their_distance_and_marks_are_counted_once() {
        let mut echo = ArrivalEcho::new(&ControllerConfig::Dcqcn(DcqcnConfig::VENDOR), RdmaFraming::ROCE);
        let header = CongestionHeader { sent_at: Some(us(1)), ..CongestionHeader::default() };
        echo.on_data(us(10), Ecn::Experienced, &header);
        assert!(echo.owes_cnp() && echo.take_cnp() && !echo.owes_cnp());
        echo.on_data(us(59), Ecn::Experienced, &header);
        assert!(!echo.owes_cnp(), "too early for another");
        echo.on_data(us(60), Ecn::Experienced, &header);
        assert!(echo.owes_cnp());
        let said = echo.take();
        assert_eq!((said.marked, said.one_way, said.sent_at), (3, Span::from_us(59), Some(us(1))));
        assert_eq!(echo.take().marked, 0);
    }
}
