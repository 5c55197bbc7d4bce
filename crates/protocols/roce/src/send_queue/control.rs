//! Feedback of a send queue to its controller, and the header fields that packets carry for it.

use congestion::{AckFeedback, Controller, RdmaControl, TelemetrySample};
use units::Time;

use super::SendQueue;
use crate::congestion_header::{CongestionHeader, Telemetry};

/// Position up to which everything has been acknowledged, in packets and in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckedPosition {
    packets: u64,
    bytes: u64,
}

impl SendQueue {
    /// The controller hears of an acknowledgement or NAK that has been dealt with. `before` is what was acknowledged until then.
    #[inline]
    pub(crate) fn on_feedback(
        &mut self,
        now: Time,
        before: AckedPosition,
        header: &CongestionHeader,
        telemetry: Option<TelemetrySample<'_>>,
    ) {
        if matches!(self.controller, Controller::None) {
            return;
        }
        let acked = self.acked();
        self.controller.on_ack(&AckFeedback {
            now,
            acked: acked.packets,
            sent: self.sent,
            packets: acked.packets - before.packets,
            bytes: acked.bytes - before.bytes,
            marked: u32::from(header.marked),
            rtt: header.sent_at.map(|sent_at| now.since(sent_at)),
            one_way: header.sent_at.map(|_| header.one_way),
            telemetry,
        });
    }

    /// Position up to which packets are acknowledged.
    #[inline]
    pub(crate) fn acked(&self) -> AckedPosition {
        AckedPosition { packets: self.una, bytes: self.offset(0, self.una) }
    }

    pub(crate) fn on_notification(&mut self, now: Time) {
        self.controller.on_cnp(now);
    }

    /// The receiver misses packets, which are sent again now.
    pub(crate) fn on_missing(&mut self, now: Time) {
        self.controller.on_nak(now);
    }

    pub(crate) fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Fields for congestion control of a data packet that leaves now.
    #[inline]
    pub(crate) fn data_header(&self, now: Time, is_first_write: bool) -> CongestionHeader {
        let collects = self.config.congestion.wants_telemetry();
        CongestionHeader {
            sent_at: Some(now),
            telemetry: if collects { Telemetry::Collects } else { Telemetry::None },
            extra_bytes: self.config.framing.data_extra(is_first_write, collects),
            ..CongestionHeader::default()
        }
    }
}
