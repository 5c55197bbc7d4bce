//! TIMELY, DCTCP and Swift through what happens to a queue pair; and every controller within its bounds whatever it is given.

use congestion::{
    AckFeedback, CnpDelivery, ControlSite, Controller, ControllerConfig, DcqcnConfig, FixedRateConfig, HpccConfig,
    MarkShare, RdmaControl, RdmaDctcp, RdmaDctcpConfig, Swift, SwiftConfig, SwiftSignal, TelemetrySample, Timely,
    TimelyConfig,
};
use proptest::prelude::*;
use units::{Rate, Span, Time};
use wire::int::IntHop;

const T: Span = Span::from_us(12);
const SITE: ControlSite = ControlSite { line_rate: Rate::gbps(100), base_rtt: T, mtu: 1_000, hops: 3 };

/// Packet `n` is acknowledged with 100 in flight.
fn ack(n: u64, rtt_us: u64) -> AckFeedback<'static> {
    AckFeedback {
        now: Time::from_ps(n * 1_000_000),
        acked: n + 1,
        sent: n + 101,
        packets: 1,
        bytes: 1_000,
        marked: 0,
        rtt: Some(Span::from_us(rtt_us)),
        one_way: Some(Span::from_us(rtt_us) / 2),
        telemetry: None,
    }
}

fn gbps(control: &impl RdmaControl) -> f64 {
    control.rate().unwrap().bits_per_second() as f64 / 1e9
}

#[track_caller]
fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{value}, not {expected}");
}

/// One acknowledgement of each of these round trips.
fn timely(config: TimelyConfig, rtts_us: &[u64]) -> (Timely, Vec<f64>) {
    let mut timely = Timely::new(&config, &SITE);
    let rates = (0..).zip(rtts_us).map(|(round, rtt)| {
        timely.on_ack(&ack(101 * round, *rtt));
        gbps(&timely)
    });
    let rates = rates.collect();
    (timely, rates)
}

#[test]
fn timely_falls_with_the_gradient_and_above_t_high() {
    let (_, rates) = timely(TimelyConfig::default(), &[60, 70, 600]);
    close(rates[0], 100.0);
    // 0.875 · 10 µs of 20 µs.
    close(rates[1], 100.0 * (1.0 - 0.8 * 0.4375));
    close(rates[2], rates[1] * (1.0 - 0.8 * (1.0 - 500.0 / 600.0)));
}

#[test]
fn timely_adds_and_after_five_times_adds_more() {
    let (_, rates) = timely(TimelyConfig::default(), &[60, 70, 40, 40, 40, 40, 40, 40, 40]);
    let steps: Vec<f64> = rates[1..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    let expected = [0.1, 0.1, 0.1, 0.1, 0.1, 0.5, 0.5];
    steps.iter().zip(expected).for_each(|(step, expected)| close(*step, expected));
}

#[test]
fn timely_acts_once_per_round_trip() {
    let (mut timely, rates) = timely(TimelyConfig::default(), &[60, 70]);
    (102..200).for_each(|n| timely.on_ack(&ack(n, 400)));
    close(gbps(&timely), rates[1]);
    timely.on_ack(&ack(202, 400));
    assert!(gbps(&timely) < rates[1]);
}

#[test]
fn timely_below_nothing_is_the_least_rate() {
    // A gradient above 1/β would make the rate negative.
    let (timely, _) = timely(TimelyConfig { plus_window: true, ..TimelyConfig::default() }, &[60, 490, 60, 490]);
    close(gbps(&timely), 0.1);
    assert_eq!(timely.window(), 150);
}

#[test]
fn dctcp_begins_with_the_product_and_halves_with_an_early_mark() {
    let mut dctcp = RdmaDctcp::new(&RdmaDctcpConfig::default(), &SITE);
    assert_eq!((dctcp.window(), dctcp.rate()), (150_000, Some(Rate::gbps(100))));
    dctcp.on_ack(&AckFeedback { marked: 1, ..ack(0, 12) });
    assert_eq!((dctcp.window(), dctcp.rate()), (75_000, Some(Rate::gbps(50))));
    // Packets in flight at that time do not cut again; α follows once per round.
    (1..=100).for_each(|n| dctcp.on_ack(&AckFeedback { marked: 1, ..ack(n, 12) }));
    assert_eq!(dctcp.window(), 75_000);
    dctcp.on_ack(&AckFeedback { marked: 1, ..ack(101, 12) });
    assert_eq!(dctcp.window(), 37_500);
    dctcp.on_nak(Time::ZERO);
    dctcp.on_timeout(Time::ZERO);
    assert_eq!(dctcp.window(), 37_500);
}

#[test]
fn dctcp_adds_one_packet_per_round_trip() {
    let mut dctcp = RdmaDctcp::new(&RdmaDctcpConfig::default(), &SITE);
    dctcp.on_ack(&AckFeedback { marked: 1, ..ack(0, 12) });
    (1..=1_010).for_each(|n| dctcp.on_ack(&ack(n, 12)));
    assert_eq!(dctcp.window(), 75_000 + 10 * 1_000);
    assert!(dctcp.alpha() < 0.6);
    (1_011..20_000).for_each(|n| dctcp.on_ack(&ack(n, 12)));
    assert_eq!((dctcp.window(), dctcp.alpha()), (150_000, 0.0));
}

#[test]
fn the_share_of_marks_converges_and_vanishes() {
    for percent in [2, 10, 30, 70, 100] {
        let mut share = MarkShare::default();
        for _ in 0..200 {
            share.count(100, percent);
            share.end_round();
        }
        assert!((share.alpha() - percent as f64 / 100.0).abs() <= 1.0 / 64.0);
        (0..200).for_each(|_| share.end_round());
        assert_eq!((share.units(), share.reduced(1_000)), (0, 1_000));
    }
    assert_eq!(MarkShare::default().reduced(1_000), 500);
}

fn swift(signal: SwiftSignal) -> Swift {
    Swift::new(&SwiftConfig { signal, ..SwiftConfig::default() }, &SITE)
}

#[test]
fn swift_has_a_target_of_base_hops_and_flows() {
    let mut control = swift(SwiftSignal::Rtt);
    // 12 + 5 + 3 µs, and for 150 packets nothing for other flows.
    assert_eq!((control.window(), control.target()), (150_000, Span::from_us(20)));
    assert_eq!(swift(SwiftSignal::OneWay).target(), Span::from_us(14));
    (0..40).for_each(|n| control.on_ack(&ack(n * 1_000, 900)));
    assert_eq!(control.window(), 10, "a hundredth of a packet");
    close(control.target().as_us(), 20.0 + 30.0);
}

#[test]
fn swift_falls_in_proportion_once_per_round_trip() {
    let mut swift = swift(SwiftSignal::Rtt);
    swift.on_ack(&ack(0, 25));
    close(swift.window() as f64, 150_000.0 * (1.0 - 0.8 * 5.0 / 25.0));
    let once = swift.window();
    swift.on_ack(&ack(24, 25));
    assert_eq!(swift.window(), once);
    swift.on_ack(&ack(1_000, 1_000));
    assert_eq!(swift.window(), once / 2, "never more than max_mdf");
}

#[test]
fn swift_adds_one_packet_per_round_trip() {
    let mut swift = swift(SwiftSignal::Rtt);
    (0..150).for_each(|n| swift.on_ack(&ack(n, 12)));
    assert!((150_990..=151_000).contains(&swift.window()), "{}", swift.window());
}

#[test]
fn swift_below_one_packet_is_a_pace() {
    let mut swift = swift(SwiftSignal::Rtt);
    swift.on_sent(Time::ZERO, 1_082);
    assert_eq!(swift.rate(), Some(Rate::gbps(100)));
    (0..10).for_each(|n| swift.on_ack(&ack(n * 100, 100)));
    assert!(swift.window() < 1_000);
    let cwnd = swift.window() as f64 / 1_000.0;
    let pause_us = 1_082.0 * 8.0 / (gbps(&swift) * 1e3);
    assert!((pause_us - 100.0 / cwnd).abs() < 0.02 * pause_us, "{pause_us} {cwnd}");
    (8_000..8_200).for_each(|n| swift.on_ack(&ack(n, 12)));
    assert_eq!(swift.rate(), Some(Rate::gbps(100)));
}

#[test]
fn swift_one_way_does_not_see_the_way_back() {
    let congested_back = AckFeedback { one_way: Some(Span::from_us(6)), ..ack(0, 200) };
    let windows = [SwiftSignal::Rtt, SwiftSignal::OneWay].map(|signal| {
        let mut swift = swift(signal);
        swift.on_ack(&congested_back);
        swift.window()
    });
    assert!(windows[0] == 75_000 && windows[1] > 150_000, "{windows:?}");
}

#[test]
fn swift_halves_for_losses_and_gives_up_after_five_timeouts() {
    let mut swift = swift(SwiftSignal::Rtt);
    let at = |us: u64| Time::from_ps(us * 1_000_000);
    swift.on_nak(at(1));
    swift.on_nak(at(2));
    assert_eq!(swift.window(), 75_000);
    (1..5).for_each(|n| swift.on_timeout(at(100 * n)));
    assert_eq!(swift.window(), 75_000 / 16);
    swift.on_timeout(at(500));
    assert_eq!(swift.window(), 10);
}

/// Anything that can be reported to a controller.
#[derive(Clone, Debug)]
enum Report {
    Ack {
        now: u64,
        acked: u64,
        sent: u64,
        packets: u64,
        marked: u32,
        rtt: Option<u64>,
        one_way: Option<u64>,
        hops: Vec<IntHop>,
    },
    Cnp(u64),
    Nak(u64),
    Timeout(u64),
    Sent(u64, u64),
    Advance(u64),
}

prop_compose! {
    fn any_hop()(at: u64, tx_bytes: u64, queue: u32, rate_mbps: u32, named: bool) -> IntHop {
        let rate_mbps = if named { 100_000 } else { rate_mbps };
        IntHop { at: Time::from_ps(at), tx_bytes, queue, rate_mbps }
    }
}

/// Times of a run, but also any.
fn any_time() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0_u64..1_000_000_000, 1 => any::<u64>()]
}

fn any_report() -> impl Strategy<Value = Report> {
    let hops = proptest::collection::vec(any_hop(), 0..17);
    let span = || proptest::option::of(any_time());
    prop_oneof![
        4 => (any_time(), any::<u64>(), any::<u64>(), any_time(), any::<u32>(), span(), span(), hops).prop_map(
            |(now, acked, sent, packets, marked, rtt, one_way, hops)|
                Report::Ack { now, acked, sent, packets, marked, rtt, one_way, hops }
        ),
        2 => any_time().prop_map(Report::Cnp),
        1 => any_time().prop_map(Report::Nak),
        1 => any_time().prop_map(Report::Timeout),
        1 => (any_time(), any_time()).prop_map(|(now, bytes)| Report::Sent(now, bytes)),
        1 => any_time().prop_map(Report::Advance),
    ]
}

fn give(control: &mut Controller, report: &Report) {
    match report {
        Report::Ack { now, acked, sent, packets, marked, rtt, one_way, hops } => control.on_ack(&AckFeedback {
            now: Time::from_ps(*now),
            acked: *acked,
            sent: *sent,
            packets: *packets,
            bytes: packets.wrapping_mul(1_000),
            marked: *marked,
            rtt: rtt.map(Span::from_ps),
            one_way: one_way.map(Span::from_ps),
            telemetry: Some(TelemetrySample { path: *marked as u16 % 2, hops }),
        }),
        Report::Cnp(now) => control.on_cnp(Time::from_ps(*now)),
        Report::Nak(now) => control.on_nak(Time::from_ps(*now)),
        Report::Timeout(now) => control.on_timeout(Time::from_ps(*now)),
        Report::Sent(now, bytes) => control.on_sent(Time::from_ps(*now), *bytes),
        Report::Advance(now) => control.advance(Time::from_ps(*now)),
    }
}

/// Every controller with the least and the largest window that it may have.
fn everyone() -> Vec<(ControllerConfig, u64, u64)> {
    let dcqcn = |set: DcqcnConfig, cnp, delay| {
        let nic_delay = Span::from_us(delay);
        ControllerConfig::Dcqcn(DcqcnConfig { plus_window: true, cnp, nic_delay, ..set })
    };
    let timely = TimelyConfig { plus_window: true, ..TimelyConfig::default() };
    let swift = |signal| ControllerConfig::Swift(SwiftConfig { signal, ..SwiftConfig::default() });
    vec![
        (ControllerConfig::Fixed(FixedRateConfig { rate: None }), u64::MAX, u64::MAX),
        (ControllerConfig::Hpcc(HpccConfig::default()), 150, 150_000),
        (
            ControllerConfig::Hpcc(HpccConfig {
                int: Some(congestion::hpcc::IntForm::Packed(1)),
                ..HpccConfig::default()
            }),
            150,
            150_000,
        ),
        (dcqcn(DcqcnConfig::VENDOR, CnpDelivery::Echo, 0), 150, 150_000),
        (dcqcn(DcqcnConfig::PAPER, CnpDelivery::Packet, 55), 150, 150_000),
        (ControllerConfig::Timely(timely), 150, 150_000),
        (ControllerConfig::Dctcp(RdmaDctcpConfig::default()), 150, 150_000),
        (swift(SwiftSignal::Rtt), 10, 4_096_000),
        (swift(SwiftSignal::OneWay), 10, 4_096_000),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn window_and_pace_of_everyone_stay_within_bounds(reports in proptest::collection::vec(any_report(), 1..50)) {
        for (config, least, most) in everyone() {
            let mut control = Controller::new(&config, &SITE);
            for report in &reports {
                give(&mut control, report);
                let (window, rate) = (control.window(), control.rate().unwrap());
                prop_assert!((least..=most).contains(&window), "{config:?}: {window} after {report:?}");
                // A pace of Swift may be any, down to what a rate can be.
                prop_assert!(rate <= SITE.line_rate && (most == 4_096_000 || rate.bits_per_second() >= 100_000_000));
            }
        }
    }
}
