//! Worked example: a controller in a file and a line of the list. It is part of the tests only.
//!
//! The window grows by one packet each round trip, and halves once per round trip while packets come back marked: TCP's oldest
//! rule on ECN. What it shows: a configuration, a window in bytes, and how to act once per round trip (remember what had been
//! sent, and wait until that is acknowledged).

use units::Rate;

use crate::{AckFeedback, ControlSite, RdmaControl};

/// Configuration: the least window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalvingConfig {
    /// Smallest window, in packets.
    pub least: u32,
}

/// One queue pair's.
#[derive(Clone, Debug)]
pub struct Halving {
    mtu: u64,
    least: u64,
    window: u64,
    /// End of the round trip in which the window was halved.
    halved_until: u64,
}

impl Halving {
    /// Begins with what the line rate carries in a round trip.
    pub fn new(config: &HalvingConfig, site: &ControlSite) -> Self {
        let mtu = u64::from(site.mtu);
        Self { mtu, least: u64::from(config.least) * mtu, window: site.bdp(), halved_until: 0 }
    }
}

impl RdmaControl for Halving {
    fn on_ack(&mut self, ack: &AckFeedback<'_>) {
        if ack.marked == 0 {
            self.window += self.mtu * ack.bytes / self.window.max(1);
        } else if ack.acked > self.halved_until {
            self.window = (self.window / 2).max(self.least);
            self.halved_until = ack.sent;
        }
    }

    fn on_timeout(&mut self, _now: units::Time) {
        self.window = self.least;
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn rate(&self) -> Option<Rate> {
        None
    }
}

mod tests {
    use units::{Rate, Span, Time};

    use super::HalvingConfig;
    use crate::{AckFeedback, ControlSite, Controller, ControllerConfig, RdmaControl};

    const SITE: ControlSite =
        ControlSite { line_rate: Rate::gbps(100), base_rtt: Span::from_us(8), mtu: 1_000, hops: 1 };

    fn ack(acked: u64, sent: u64, marked: u32) -> AckFeedback<'static> {
        AckFeedback {
            now: Time::ZERO,
            acked,
            sent,
            packets: 1,
            bytes: 1_000,
            marked,
            rtt: None,
            one_way: None,
            telemetry: None,
        }
    }

    #[test]
    fn a_new_controller_is_a_file_and_a_line() {
        let config = ControllerConfig::Halving(HalvingConfig { least: 1 });
        let mut control = Controller::new(&config, &SITE);
        assert_eq!((control.window(), control.rate()), (100_000, None));
        control.on_ack(&ack(1, 100, 1));
        control.on_ack(&ack(2, 101, 1));
        assert_eq!(control.window(), 50_000, "once per round trip");
        control.on_ack(&ack(101, 150, 1));
        assert_eq!(control.window(), 25_000);
        (151..176).for_each(|acked| control.on_ack(&ack(acked, acked + 25, 0)));
        assert!((25_900..=26_000).contains(&control.window()), "one packet more: {}", control.window());
        control.on_timeout(Time::ZERO);
        assert_eq!(control.window(), 1_000);
    }
}
