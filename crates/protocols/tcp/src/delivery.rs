//! Delivery rate of the network. draft-cheng-iccrg-delivery-rate-estimation-00.
//!
//! Each segment that leaves takes a [`DeliveryStamp`] of what had been delivered by then. When it is delivered itself, the
//! difference is what the network carried in the meantime, and the time that took is the longer of the two that sending
//! and acknowledging took, so that neither bursts nor gathered acknowledgements pretend a rate.

use units::{Span, Time};

use super::cc::RateSample;
use super::record::SegmentRecord;

/// State at the time a segment leaves, in 12 bytes: the lowest 32 bits of what was delivered (a window is less than
/// 4 GB), and how long ago in nanoseconds (4 s at most; longer only in the middle of repeated timeouts). The lowest bit
/// of `since_first` says whether the application was the limit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeliveryStamp {
    delivered: u32,
    since_delivered: u32,
    since_first: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Delivery {
    delivered: u64,
    delivered_at: Time,
    /// Departure of the segment that was delivered last: sending is measured from there.
    first_sent: Time,
    /// Samples of what left before this much is delivered are limited by the application; 0 for none.
    app_limited: u64,
    /// A round ends when a segment is delivered that left after this much was.
    round_end: u64,
}

impl Delivery {
    pub(super) fn new(now: Time) -> Self {
        Self { delivered: 0, delivered_at: now, first_sent: now, app_limited: 0, round_end: 0 }
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Stamp of a segment that leaves now; `idle` if no other is in flight.
    #[inline]
    pub(super) fn stamp(&mut self, now: Time, idle: bool) -> DeliveryStamp {
        if idle {
            self.first_sent = now;
            self.delivered_at = now;
        }
        DeliveryStamp {
            delivered: self.delivered as u32,
            since_delivered: nanoseconds(now.since(self.delivered_at)),
            since_first: nanoseconds(now.since(self.first_sent)) & !1 | u32::from(self.app_limited != 0),
        }
    }

    /// The application wrote too late to keep `flight` at what the window allows.
    pub(super) fn on_app_limited(&mut self, flight: u64) {
        self.app_limited = (self.delivered + flight).max(1);
    }

    #[inline]
    pub(super) fn on_delivered(&mut self, now: Time, bytes: u64) {
        self.delivered += bytes;
        self.delivered_at = now;
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
    }

    /// Total delivered when this segment left.
    #[inline]
    pub(super) fn prior(&self, record: &SegmentRecord) -> u64 {
        self.delivered - u64::from((self.delivered as u32).wrapping_sub(record.stamp.delivered)).min(self.delivered)
    }

    /// True if the delivery of a segment that left when `prior` was delivered begins a round trip.
    #[inline]
    pub(super) fn begins_round(&mut self, prior: u64) -> bool {
        let begins = prior >= self.round_end;
        if begins {
            self.round_end = self.delivered;
        }
        begins
    }

    /// Rate over the flight of `newest`, the delivered segment that left last; called after [`Delivery::on_delivered`]. An
    /// interval shorter than any round trip is an accident of acknowledgements, and gives no sample.
    #[inline]
    pub(super) fn sample(&mut self, newest: &SegmentRecord, min_rtt: Span, lost: u64) -> Option<RateSample> {
        let stamp = newest.stamp;
        let sending = Span::from_ns(u64::from(stamp.since_first & !1));
        let acknowledging = self.delivered_at.since(newest.sent_at) + Span::from_ns(u64::from(stamp.since_delivered));
        self.first_sent = newest.sent_at;
        let interval = sending.max(acknowledging);
        let prior_delivered = self.prior(newest);
        (interval >= min_rtt && interval > Span::ZERO).then(|| RateSample {
            delivered: self.delivered - prior_delivered,
            interval,
            app_limited: stamp.since_first & 1 == 1,
            prior_delivered,
            lost,
        })
    }
}

fn nanoseconds(span: Span) -> u32 {
    u32::try_from(span.as_ps() / 1_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn acknowledgements_that_come_together_pretend_no_rate() {
        let mut delivery = Delivery::new(Time::ZERO);
        let records =
            [0, 10, 20].map(|us| SegmentRecord::new(us * 100, 1_000, at(us), delivery.stamp(at(us), us == 0)));
        delivery.on_delivered(at(50), 3_000);
        let sample = delivery.sample(&records[2], Span::from_us(30), 0).expect("long enough");
        assert_eq!((sample.delivered, sample.interval), (3_000, Span::from_us(50)));
        assert!(!sample.app_limited);
    }

    #[test]
    fn a_sample_is_marked_while_the_application_is_the_limit() {
        let mut delivery = Delivery::new(Time::ZERO);
        delivery.on_app_limited(0);
        let record = SegmentRecord::new(0, 1_000, at(0), delivery.stamp(at(0), true));
        delivery.on_delivered(at(30), 1_000);
        assert!(delivery.sample(&record, Span::from_us(30), 0).expect("long enough").app_limited);
        let record = SegmentRecord::new(1_000, 1_000, at(30), delivery.stamp(at(30), true));
        delivery.on_delivered(at(60), 1_000);
        assert!(!delivery.sample(&record, Span::from_us(30), 0).expect("long enough").app_limited);
    }

    #[test]
    fn rounds_follow_one_another() {
        let mut delivery = Delivery::new(Time::ZERO);
        assert!(delivery.begins_round(0));
        delivery.on_delivered(at(30), 1_000);
        assert!(delivery.begins_round(0));
        assert!(!delivery.begins_round(0));
        assert!(delivery.begins_round(1_000));
    }
}
