//! DCQCN: its clocks in closed form against clocks that tick, and what notifications do.

use congestion::{AckFeedback, CnpDelivery, ControlSite, Dcqcn, DcqcnConfig, RdmaControl};
use proptest::prelude::*;
use units::{Rate, Span, Time};

const SITE: ControlSite = ControlSite { line_rate: Rate::gbps(25), base_rtt: Span::from_us(9), mtu: 1_000, hops: 1 };

fn us(us: f64) -> Time {
    Time::from_ps((us * 1e6).round() as u64)
}

fn gbps(control: &Dcqcn) -> f64 {
    control.rate().unwrap().bits_per_second() as f64 / 1e9
}

fn ack(now: Time, marked: u32) -> AckFeedback<'static> {
    AckFeedback { now, acked: 1, sent: 9, packets: 1, bytes: 1_000, marked, rtt: None, one_way: None, telemetry: None }
}

#[track_caller]
fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-6, "{value}, not {expected}");
}

#[test]
fn it_starts_at_line_rate_and_the_first_notification_halves_one_t_d_later() {
    let mut dcqcn = Dcqcn::new(&DcqcnConfig::VENDOR, &SITE);
    assert_eq!((gbps(&dcqcn), dcqcn.changes_at()), (25.0, Time::NEVER));
    dcqcn.on_cnp(us(10.0));
    assert_eq!((gbps(&dcqcn), dcqcn.changes_at()), (25.0, us(14.0)));
    dcqcn.advance(us(13.999));
    close(gbps(&dcqcn), 25.0);
    dcqcn.advance(us(14.0));
    // α has ticked four times since it was 1.
    let alpha = (255.0_f64 / 256.0).powi(4);
    close(gbps(&dcqcn), 25.0 * (1.0 - alpha / 2.0));
    assert_eq!(dcqcn.changes_at(), us(314.0));
}

#[test]
fn it_decreases_at_most_once_in_t_d() {
    let mut dcqcn = Dcqcn::new(&DcqcnConfig::VENDOR, &SITE);
    for tenth in 0..=100 {
        dcqcn.on_cnp(us(f64::from(tenth) / 10.0));
    }
    // Notifications in every tick keep α at 1, and there were two decreases.
    close(gbps(&dcqcn), 25.0 / 4.0);
    for tenth in 101..1_000 {
        dcqcn.on_cnp(us(f64::from(tenth) / 10.0));
    }
    close(gbps(&dcqcn), 0.1);
}

#[test]
fn a_notification_in_the_last_instant_counts_for_the_next_decrease() {
    let mut dcqcn = Dcqcn::new(&DcqcnConfig::VENDOR, &SITE);
    dcqcn.on_cnp(us(0.0));
    dcqcn.on_cnp(us(4.0));
    let once = gbps(&dcqcn);
    assert!(once < 13.0 && once > 12.0);
    assert_eq!(dcqcn.changes_at(), us(8.0));
    dcqcn.advance(us(8.0));
    assert!(gbps(&dcqcn) < 0.52 * once);
}

#[test]
fn it_recovers_by_halves_then_adds_then_adds_more() {
    let config = DcqcnConfig { fast_recovery: 2, ..DcqcnConfig::VENDOR };
    let mut dcqcn = Dcqcn::new(&config, &SITE);
    dcqcn.on_cnp(us(0.0));
    dcqcn.on_cnp(us(4.5));
    dcqcn.advance(us(9.0));
    // Not clamped: the second decrease came before any increase, so the target is still line rate.
    let mut rate = gbps(&dcqcn);
    assert!(rate < 7.0);
    for n in 1..=20_u32 {
        let at = dcqcn.changes_at();
        assert_eq!(at, us(8.0 + 300.0 * f64::from(n)));
        dcqcn.advance(at);
        rate = (rate + 25.0) / 2.0;
        close(gbps(&dcqcn), rate);
    }
    dcqcn.on_cnp(us(6_009.0));
    dcqcn.advance(us(6_012.0));
    let alpha = dcqcn.alpha();
    let target = rate;
    let mut now = rate * (1.0 - alpha / 2.0);
    close(gbps(&dcqcn), now);
    assert!(alpha < 1.01 / 256.0, "6 ms without notifications: {alpha}");
    for (step, more) in [0.0, 0.0, 0.005, 0.055, 0.105].into_iter().enumerate() {
        dcqcn.advance(us(6_012.0 + 300.0 * (step + 1) as f64));
        now = (now + (target + more).min(25.0)) / 2.0;
        close(gbps(&dcqcn), now);
    }
}

#[test]
fn steps_grow_with_the_rate_of_the_nic() {
    let site = ControlSite { line_rate: Rate::gbps(100), ..SITE };
    let config = DcqcnConfig { fast_recovery: 0, clamp_target: true, ..DcqcnConfig::VENDOR };
    let mut dcqcn = Dcqcn::new(&config, &site);
    dcqcn.on_cnp(us(0.0));
    dcqcn.on_cnp(us(4.0));
    dcqcn.advance(us(8.0));
    let (start, target) = (gbps(&dcqcn), 100.0 * (1.0 - (255.0_f64 / 256.0).powi(4) / 2.0));
    dcqcn.advance(us(308.0));
    close(gbps(&dcqcn), (start + target + 0.020) / 2.0);
}

#[test]
fn echoes_count_only_if_they_are_how_marks_travel() {
    for (cnp, cut) in [(CnpDelivery::Packet, false), (CnpDelivery::Echo, true)] {
        let mut dcqcn = Dcqcn::new(&DcqcnConfig { cnp, ..DcqcnConfig::VENDOR }, &SITE);
        dcqcn.on_ack(&ack(us(1.0), 0));
        dcqcn.on_ack(&ack(us(2.0), 1));
        dcqcn.on_ack(&ack(us(6.0), 0));
        assert_eq!(gbps(&dcqcn) < 25.0, cut);
    }
}

#[test]
fn a_slow_nic_acts_later() {
    let config = DcqcnConfig { nic_delay: Span::from_us(55), ..DcqcnConfig::VENDOR };
    let (mut slow, mut fast) = (Dcqcn::new(&config, &SITE), Dcqcn::new(&DcqcnConfig::VENDOR, &SITE));
    for n in 0..50 {
        slow.on_cnp(us(f64::from(n) * 3.0));
        fast.on_cnp(us(f64::from(n) * 3.0));
    }
    for n in 0..3_000 {
        fast.advance(us(150.0 + f64::from(n)));
        slow.advance(us(205.0 + f64::from(n)));
        close(gbps(&slow), gbps(&fast));
    }
}

#[test]
fn a_window_shrinks_with_the_rate() {
    let mut dcqcn = Dcqcn::new(&DcqcnConfig { plus_window: true, ..DcqcnConfig::VENDOR }, &SITE);
    assert_eq!(dcqcn.window(), 28_125);
    dcqcn.on_cnp(us(0.0));
    dcqcn.advance(us(4.0));
    assert_eq!(dcqcn.window(), (28_125.0 * gbps(&dcqcn) / 25.0).round() as u64);
    assert_eq!(Dcqcn::new(&DcqcnConfig::VENDOR, &SITE).window(), u64::MAX);
}

#[test]
fn a_nak_or_a_timeout_leaves_the_rate() {
    let mut dcqcn = Dcqcn::new(&DcqcnConfig::VENDOR, &SITE);
    dcqcn.on_nak(us(1.0));
    dcqcn.on_timeout(us(2.0));
    assert_eq!((gbps(&dcqcn), dcqcn.changes_at()), (25.0, Time::NEVER));
}

#[test]
fn an_idle_queue_pair_is_back_at_line_rate() {
    let mut dcqcn = Dcqcn::new(&DcqcnConfig::VENDOR, &SITE);
    (0..1_000).for_each(|n| dcqcn.on_cnp(us(f64::from(n))));
    dcqcn.advance(Time::from_ps(3_600_000_000_000_000));
    assert_eq!((gbps(&dcqcn), dcqcn.changes_at()), (25.0, Time::NEVER));
}

/// Every clock ticks, every nanosecond is looked at.
struct Ticking {
    config: DcqcnConfig,
    now: u64,
    first: Option<u64>,
    alpha: f64,
    alpha_cnp: bool,
    decrease_cnp: bool,
    increase: Option<u64>,
    stage: u32,
    rate: f64,
    target: f64,
}

impl Ticking {
    fn new(config: DcqcnConfig) -> Self {
        let [alpha_cnp, decrease_cnp] = [false; 2];
        let [rate, target] = [25e9; 2];
        let (first, increase) = (None, None);
        Self { config, now: 0, first, alpha: 1.0, alpha_cnp, decrease_cnp, increase, stage: 0, rate, target }
    }

    fn run(&mut self, until: u64) {
        while self.now < until {
            self.now += 1;
            self.tick();
        }
    }

    fn tick(&mut self) {
        let Some(first) = self.first else { return };
        let config = self.config;
        let is_due = |span: Span| (self.now - first).is_multiple_of(span.as_ps() / 1_000);
        let (alpha_due, decrease_due) = (is_due(config.alpha_every), is_due(config.decrease_every));
        if alpha_due {
            self.alpha = (1.0 - config.g) * self.alpha + if self.alpha_cnp { config.g } else { 0.0 };
            self.alpha_cnp = false;
        }
        if self.increase == Some(self.now) {
            self.increase = Some(self.now + config.increase_every.as_ps() / 1_000);
            if self.stage >= config.fast_recovery {
                let step = if self.stage == config.fast_recovery { config.ai } else { config.hai };
                self.target = (self.target + step.bits_per_second() as f64).min(25e9);
            }
            self.rate = self.rate / 2.0 + self.target / 2.0;
            self.stage += 1;
        }
        if decrease_due && self.decrease_cnp {
            self.decrease_cnp = false;
            if config.clamp_target || self.stage > 0 {
                self.target = self.rate;
            }
            self.rate = (self.rate * (1.0 - self.alpha / 2.0)).max(100e6);
            self.stage = 0;
            self.increase = Some(self.now + config.increase_every.as_ps() / 1_000);
        }
    }

    fn cnp(&mut self) {
        self.alpha_cnp = self.first.is_some();
        self.decrease_cnp = true;
        self.first.get_or_insert(self.now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn closed_form_is_what_ticking_gives(
        set in proptest::sample::select(vec![DcqcnConfig::VENDOR, DcqcnConfig::PAPER, DcqcnConfig::CONSERVATIVE]),
        clamp_target: bool,
        fast_recovery in 0_u32..6,
        events in proptest::collection::vec((prop_oneof![0_u64..3_000, 0_u64..40_000, Just(4_000), Just(50_000)], any::<bool>()), 1..60),
        looks in 0_u64..4,
    ) {
        let config = DcqcnConfig { clamp_target, fast_recovery, ..set };
        let (mut ours, mut ticking) = (Dcqcn::new(&config, &SITE), Ticking::new(config));
        let mut now = 0;
        for (gap, notified) in events {
            // Time may pass in any number of steps.
            for step in 1..=looks {
                ours.advance(Time::from_ps((now + gap * step / (looks + 1)) * 1_000));
            }
            now += gap;
            ticking.run(now);
            if notified {
                ours.on_cnp(Time::from_ps(now * 1_000));
                ticking.cnp();
            } else {
                ours.advance(Time::from_ps(now * 1_000));
            }
            let rate = ours.rate().unwrap().bits_per_second() as f64;
            prop_assert!((rate - ticking.rate).abs() <= 3.0 + 1e-9 * ticking.rate, "{rate}, not {} at {now} ns", ticking.rate);
        }
    }

    #[test]
    fn nothing_changes_before_it_is_announced(cnps in proptest::collection::vec(0_u64..200_000, 1..40), delay in 0_u64..9_000) {
        let config = DcqcnConfig { nic_delay: Span::from_ns(delay), ..DcqcnConfig::VENDOR };
        let mut dcqcn = Dcqcn::new(&config, &SITE);
        let mut now = Time::ZERO;
        for gap in cnps {
            let next = now + Span::from_ns(gap);
            while dcqcn.changes_at() <= next {
                let (before, at) = (dcqcn.rate(), dcqcn.changes_at());
                dcqcn.advance(Time::from_ps(at.as_ps() - 1));
                prop_assert_eq!(dcqcn.rate(), before);
                dcqcn.advance(at);
                prop_assert!(dcqcn.changes_at() > at);
            }
            let before = dcqcn.rate();
            dcqcn.on_cnp(next);
            prop_assert_eq!(dcqcn.rate(), before);
            now = next;
        }
    }
}
