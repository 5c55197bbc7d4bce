//! HPCC through what happens to a queue pair, acknowledgement by acknowledgement.

use congestion::hpcc::{Division, IntForm, LinkSignal, Reaction, Registers};
use congestion::{AckFeedback, ControlSite, Hpcc, HpccConfig, RdmaControl, TelemetrySample};
use units::{Rate, Span, Time};
use wire::int::IntHop;

const T: Span = Span::from_us(13);
const SITE: ControlSite = ControlSite { line_rate: Rate::gbps(100), base_rtt: T, mtu: 1_000, hops: 1 };
const W_INIT: f64 = 162_500.0;

/// Telemetry of one 100G link after `us` with `bytes` sent.
fn hop(us: f64, bytes: u64, queue: u32) -> IntHop {
    let at = Time::from_ps((us * 1e6).round() as u64);
    IntHop { at, tx_bytes: bytes, queue, rate_mbps: 100_000 }
}

fn ack(hpcc: &mut Hpcc, acked: u64, sent: u64, path: u16, hops: &[IntHop]) {
    let now = hops.first().map_or(Time::ZERO, |hop| hop.at) + T;
    hpcc.on_ack(&feedback(now, acked, sent, Some(TelemetrySample { path, hops })));
}

fn feedback<'a>(now: Time, acked: u64, sent: u64, telemetry: Option<TelemetrySample<'a>>) -> AckFeedback<'a> {
    AckFeedback { now, acked, sent, packets: 1, bytes: 1_000, marked: 0, rtt: Some(T), one_way: None, telemetry }
}

fn hpcc(config: HpccConfig) -> Hpcc {
    Hpcc::new(&config, &SITE)
}

fn with_steps(w_ai: f64) -> HpccConfig {
    HpccConfig { w_ai: Some(w_ai), ..HpccConfig::default() }
}

#[track_caller]
fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{value}, not {expected}");
}

#[test]
fn the_first_acknowledgement_only_fills_l_and_the_sequence() {
    let mut hpcc = hpcc(HpccConfig::default());
    assert_eq!((hpcc.window(), hpcc.rate()), (162_500, Some(Rate::gbps(100))));
    ack(&mut hpcc, 1, 50, 7, &[hop(5.0, 1_000_000, 5_000_000)]);
    assert_eq!((hpcc.window(), hpcc.rate(), hpcc.resets()), (162_500, Some(Rate::gbps(100)), 0));
    close(hpcc.utilization(), 1.0);
}

#[test]
fn a_queue_and_a_full_link_are_worked_out_by_hand() {
    let mut hpcc = hpcc(with_steps(80.0));
    ack(&mut hpcc, 1, 50, 7, &[hop(0.0, 0, 20_000)]);
    // 6.5 µs at 100 Gb/s and at least 16,250 B in the queue: u = 0.1 + 1, and half of it counts.
    ack(&mut hpcc, 51, 99, 7, &[hop(6.5, 81_250, 16_250)]);
    close(hpcc.utilization(), 0.5 + 0.55);
    close(hpcc.reference_window(), W_INIT / (1.05 / 0.95) + 80.0);
    assert_eq!(hpcc.window(), hpcc.reference_window() as u64);
    let rate = hpcc.rate().unwrap().bits_per_second() as f64;
    assert!((rate - hpcc.reference_window() * 8.0 / 13e-6).abs() <= 1.0);
}

#[test]
fn the_most_loaded_link_counts_with_its_own_time() {
    let mut hpcc = hpcc(with_steps(0.0));
    let fast = |us, bytes| IntHop { rate_mbps: 400_000, ..hop(us, bytes, 0) };
    ack(&mut hpcc, 1, 50, 7, &[hop(0.0, 0, 0), fast(1.0, 0)]);
    // 50 % of 100G over 13 µs, 75 % of 400G over 2.6 µs.
    ack(&mut hpcc, 2, 50, 7, &[hop(13.0, 81_250, 0), fast(3.6, 97_500)]);
    close(hpcc.utilization(), 0.8 + 0.2 * 0.75);
}

#[test]
fn w_is_not_w_c() {
    // Two acknowledgements that tell of the same queue cut the window once.
    let mut hpcc = hpcc(with_steps(0.0));
    ack(&mut hpcc, 1, 100, 7, &[hop(0.0, 0, 162_500)]);
    for n in 1..=5_u32 {
        let at = f64::from(n) * 13.0;
        ack(&mut hpcc, 1 + u64::from(n), 100, 7, &[hop(at, u64::from(n) * 162_500, 162_500)]);
        close(hpcc.utilization(), 2.0);
        assert_eq!(hpcc.window(), (W_INIT * 0.95 / 2.0) as u64);
        close(hpcc.reference_window(), W_INIT);
    }
    ack(&mut hpcc, 101, 180, 7, &[hop(78.0, 6 * 162_500, 162_500)]);
    close(hpcc.reference_window(), W_INIT * 0.95 / 2.0);
}

#[test]
fn per_ack_cuts_with_every_acknowledgement() {
    let mut hpcc = hpcc(HpccConfig { reaction: Reaction::PerAck, ..with_steps(0.0) });
    for n in 0..=3_u32 {
        ack(&mut hpcc, 1 + u64::from(n), 100, 7, &[hop(f64::from(n) * 13.0, u64::from(n) * 162_500, 162_500)]);
    }
    close(hpcc.reference_window(), W_INIT * (0.95_f64 / 2.0).powi(3));
}

#[test]
fn per_rtt_looks_only_when_the_reference_may_change() {
    let mut hpcc = hpcc(HpccConfig { reaction: Reaction::PerRtt, ..with_steps(0.0) });
    for n in 0..50_u32 {
        ack(&mut hpcc, 1 + u64::from(n), 50, 7, &[hop(f64::from(n), u64::from(n) * 12_500, 162_500)]);
    }
    assert_eq!(hpcc.window(), 162_500, "a round trip is not over");
    ack(&mut hpcc, 51, 100, 7, &[hop(52.0, 52 * 6_250, 0)]);
    // The rate is the average since the first.
    close(hpcc.utilization(), 0.5);
}

#[test]
fn u_never_moves_because_tau_over_t_was_integer() {
    let mut hpcc = hpcc(with_steps(0.0));
    for n in 0..20_u32 {
        // A tenth of T apart.
        ack(&mut hpcc, 1 + u64::from(n), 100, 7, &[hop(f64::from(n) * 1.3, u64::from(n) * 16_250 / 2, 0)]);
    }
    assert!(hpcc.utilization() < 0.6, "{}", hpcc.utilization());
}

#[test]
fn l_renewed_with_every_ack() {
    let mut hpcc = hpcc(with_steps(0.0));
    ack(&mut hpcc, 1, 100, 7, &[hop(0.0, 0, 0)]);
    // Idle for long, then full: the average since the start would be a half.
    ack(&mut hpcc, 2, 100, 7, &[hop(13.0, 0, 0)]);
    close(hpcc.utilization(), 0.0);
    ack(&mut hpcc, 3, 100, 7, &[hop(26.0, 162_500, 0)]);
    close(hpcc.utilization(), 1.0);
}

#[test]
fn additive_steps_come_before_a_multiplicative_one() {
    let mut hpcc = hpcc(HpccConfig { max_stage: 2, ..with_steps(100.0) });
    let mut bytes = 0;
    let mut windows = Vec::new();
    for (n, permille) in [2_000_u64, 2_000, 500, 500, 500, 500].into_iter().enumerate() {
        bytes += 162_500 * permille / 1_000;
        ack(&mut hpcc, 1 + 100 * n as u64, 100 * n as u64 + 50, 7, &[hop(n as f64 * 13.0, bytes, 0)]);
        windows.push(hpcc.reference_window());
    }
    let cut = W_INIT * 0.475 + 100.0;
    close(windows[1], cut);
    close(windows[2], cut + 100.0);
    close(windows[3], cut + 200.0);
    close(windows[4], ((cut + 200.0) * 1.9 + 100.0).min(W_INIT));
    close(windows[5], windows[4] + 100.0_f64.min(W_INIT - windows[4]));
}

#[test]
fn a_path_change_resets_l_and_not_w() {
    let mut hpcc = hpcc(with_steps(0.0));
    ack(&mut hpcc, 1, 50, 7, &[hop(0.0, 0, 0)]);
    ack(&mut hpcc, 51, 99, 7, &[hop(13.0, 325_000, 0)]);
    let cut = hpcc.window();
    assert_eq!(cut, 77_187);
    let elsewhere = [hop(20.0, 77_000_000, 900_000), hop(21.0, 5, 0)];
    ack(&mut hpcc, 100, 150, 8, &elsewhere[..1]);
    assert_eq!((hpcc.window(), hpcc.resets()), (cut, 1), "another path");
    ack(&mut hpcc, 101, 150, 8, &elsewhere);
    assert_eq!((hpcc.window(), hpcc.resets()), (cut, 2), "one link more");
    ack(&mut hpcc, 102, 150, 8, &[hop(30.0, 77_125_000, 0), IntHop { rate_mbps: 25_000, ..hop(31.0, 125_000, 0) }]);
    assert_eq!((hpcc.window(), hpcc.resets()), (cut, 3), "another rate");
    ack(&mut hpcc, 103, 150, 8, &[hop(43.0, 77_125_000, 0), IntHop { rate_mbps: 25_000, ..hop(44.0, 125_000, 0) }]);
    assert_eq!(hpcc.resets(), 3);
    assert_eq!(hpcc.window(), 162_500, "and from there on it measures");
}

#[test]
fn a_time_that_did_not_advance_gives_no_rate() {
    let mut hpcc = hpcc(with_steps(0.0));
    ack(&mut hpcc, 1, 50, 7, &[hop(10.0, 100_000, 0)]);
    for (resets, again) in [(1, hop(10.0, 101_000, 0)), (2, hop(9.0, 90_000, 0)), (3, hop(20.0, 80_000, 0))] {
        ack(&mut hpcc, 51, 99, 7, &[again]);
        assert_eq!((hpcc.window(), hpcc.resets()), (162_500, resets));
    }
    close(hpcc.utilization(), 1.0);
}

#[test]
fn an_idle_queue_pair_does_not_average_over_its_sleep() {
    let mut hpcc = hpcc(with_steps(0.0));
    ack(&mut hpcc, 49, 50, 7, &[hop(0.0, 0, 0)]);
    ack(&mut hpcc, 50, 50, 7, &[hop(6.5, 81_250, 0)]);
    let before = hpcc.utilization();
    ack(&mut hpcc, 51, 90, 7, &[hop(50_000.0, 5_000_000, 0)]);
    close(hpcc.utilization(), before);
    assert_eq!(hpcc.resets(), 1);
    ack(&mut hpcc, 52, 90, 7, &[hop(50_013.0, 5_162_500, 0)]);
    close(hpcc.utilization(), 1.0);
}

#[test]
fn a_flow_with_one_slow_packet_at_a_time_is_not_idle() {
    let mut hpcc = hpcc(with_steps(80.0));
    ack(&mut hpcc, 1, 1, 7, &[hop(0.0, 0, 5_000_000)]);
    let mut bytes = 0;
    for n in 1..20_u64 {
        bytes += 12_500 * 87;
        ack(&mut hpcc, 1 + n, 1 + n, 7, &[hop(87.0 * n as f64, bytes, 3_000_000)]);
    }
    assert_eq!((hpcc.window(), hpcc.resets()), (162, 0), "the least rate times T");
    assert_eq!(hpcc.rate(), Some(Rate::from_bits_per_second(100_000_000)));
    for n in 20..40_u64 {
        bytes += 125 * 87;
        ack(&mut hpcc, 1 + n, 1 + n, 7, &[hop(87.0 * n as f64, bytes, 0)]);
    }
    assert_eq!((hpcc.window(), hpcc.resets()), (162_500, 0));
}

#[test]
fn a_window_below_one_packet_is_never_nothing() {
    let config = HpccConfig { min_rate: Rate::from_bits_per_second(1_000_000), ..with_steps(0.0) };
    let mut hpcc = hpcc(config);
    for n in 0..200_u64 {
        ack(&mut hpcc, 1 + 10 * n, 5 + 10 * n, 7, &[hop(n as f64 * 13.0, n * 162_500, 10_000_000)]);
    }
    assert_eq!(hpcc.window(), 1);
    assert_eq!(hpcc.rate(), Some(Rate::from_bits_per_second(1_000_000)));
}

#[test]
fn wraps_of_packed_telemetry_give_no_wrong_rate() {
    let mut hpcc = hpcc(HpccConfig { int: Some(IntForm::Packed(1)), ..with_steps(0.0) });
    // Half of 100G for 40 ms: the time wraps twice, the bytes almost twice.
    let mut at = 0_u64;
    while at < 40_000 {
        ack(&mut hpcc, 1 + at / 6, 40 + at / 6, 7, &[hop(at as f64, 6_250 * at, 0)]);
        assert!(at < 200 || (hpcc.utilization() - 0.5).abs() < 0.01, "{} at {at}", hpcc.utilization());
        at += 13;
    }
    assert_eq!(hpcc.resets(), 0);
    // Longer than half of a wrap of the bytes: 10.7 ms at full rate.
    ack(&mut hpcc, 100_000, 100_050, 7, &[hop(at as f64 + 6_000.0, 6_250 * (at + 6_000), 0)]);
    assert_eq!(hpcc.resets(), 1);
    ack(&mut hpcc, 100_001, 100_050, 7, &[hop(at as f64 + 6_013.0, 6_250 * (at + 6_013), 0)]);
    assert!((hpcc.utilization() - 0.5).abs() < 0.01);
}

#[test]
fn packed_telemetry_saturates_and_does_not_wrap_a_queue() {
    let mut hpcc = hpcc(HpccConfig { int: Some(IntForm::Packed(1)), ..with_steps(0.0) });
    ack(&mut hpcc, 1, 50, 7, &[hop(0.0, 0, 10_000_000)]);
    ack(&mut hpcc, 51, 99, 7, &[hop(13.0, 162_500, 10_000_000)]);
    assert!((hpcc.utilization() - (1.0 + 5_242_800.0 / W_INIT)).abs() < 0.01);
}

/// With units four times as large, 512 and 320 bytes: 1,000,000 B that left are 1,953 units, 999,936 B, and a queue of 10,000 B
/// is 31 units, 9,920 B.
#[test]
fn larger_units_of_packed_telemetry_round_down_further() {
    let mut hpcc = hpcc(HpccConfig { int: Some(IntForm::Packed(4)), ..with_steps(0.0) });
    ack(&mut hpcc, 1, 50, 7, &[hop(0.0, 0, 10_000)]);
    ack(&mut hpcc, 51, 99, 7, &[hop(130.0, 1_000_000, 10_000)]);
    let expected = 999_936.0 / 1_625_000.0 + 9_920.0 / W_INIT;
    assert!((hpcc.utilization() - expected).abs() < 1e-9, "{}", hpcc.utilization());
}

#[test]
fn a_rate_that_packed_telemetry_cannot_name_changes_nothing() {
    let mut hpcc = hpcc(HpccConfig { int: Some(IntForm::Packed(1)), ..with_steps(0.0) });
    for n in 0..10_u64 {
        let odd = IntHop { rate_mbps: 92_000, ..hop(n as f64 * 13.0, n * 162_500, 500_000) };
        ack(&mut hpcc, 1 + 50 * n, 40 + 50 * n, 7, &[odd]);
    }
    assert_eq!(hpcc.window(), 162_500);
}

#[test]
fn a_nak_or_a_timeout_leaves_window_and_pace() {
    let mut hpcc = hpcc(with_steps(0.0));
    ack(&mut hpcc, 1, 50, 7, &[hop(0.0, 0, 0)]);
    ack(&mut hpcc, 51, 99, 7, &[hop(13.0, 325_000, 0)]);
    let before = (hpcc.window(), hpcc.rate());
    hpcc.on_nak(Time::from_ps(27_000_000));
    hpcc.on_timeout(Time::from_ps(28_000_000));
    assert_eq!((hpcc.window(), hpcc.rate()), before);
}

#[test]
fn a_requester_that_went_back_need_not_catch_up_before_w_c_moves() {
    let mut hpcc = hpcc(with_steps(0.0));
    ack(&mut hpcc, 1, 50, 7, &[hop(0.0, 0, 0)]);
    ack(&mut hpcc, 51, 200, 7, &[hop(13.0, 162_500, 0)]);
    let reference = hpcc.reference_window();
    // A NAK: it begins again with packet 60.
    ack(&mut hpcc, 60, 61, 7, &[hop(26.0, 325_000, 0)]);
    ack(&mut hpcc, 62, 70, 7, &[hop(39.0, 487_500, 0)]);
    assert!(hpcc.reference_window() < reference);
}

#[test]
fn acknowledging_every_fourth_packet_leaves_no_flow_behind() {
    let mut hpcc = hpcc(with_steps(80.0));
    let mut bytes = 0;
    for n in 0..200_u64 {
        bytes += if n < 40 { 16_250 } else { 1_250 };
        let queue = if n < 40 { 300_000 } else { 0 };
        ack(&mut hpcc, 4 * n, 4 * n + 20, 7, &[hop(n as f64 * 1.3, bytes, queue)]);
        assert!(n != 40 || hpcc.window() < 20_000, "{}", hpcc.window());
    }
    assert_eq!(hpcc.window(), 162_500);
}

#[test]
fn an_acknowledgement_without_telemetry_changes_nothing() {
    // Its length says nothing of what it carries.
    let mut hpcc = hpcc(HpccConfig::default());
    ack(&mut hpcc, 1, 50, 7, &[hop(0.0, 0, 0)]);
    hpcc.on_ack(&feedback(Time::from_ps(1), 51, 99, None));
    ack(&mut hpcc, 52, 99, 0, &[]);
    assert_eq!((hpcc.window(), hpcc.resets()), (162_500, 0));
}

#[test]
fn rx_sees_a_queue_grow_that_tx_does_not() {
    for int in [IntForm::Exact, IntForm::Packed(1), IntForm::Packed(4)] {
        let loads = [LinkSignal::Tx, LinkSignal::Rx].map(|signal| {
            let mut hpcc = hpcc(HpccConfig { signal, int: Some(int), ..with_steps(0.0) });
            ack(&mut hpcc, 1, 50, 7, &[hop(0.0, 0, 0)]);
            ack(&mut hpcc, 51, 99, 7, &[hop(13.0, 162_500, 162_400)]);
            hpcc.utilization()
        });
        assert!((loads[0] - 1.0).abs() < 0.01 && (loads[1] - 2.0).abs() < 0.01, "{loads:?}");
    }
}

#[test]
fn registers_combine_as_equation_2_7() {
    // Two equal links at u = 1: each register is W_init · 0.95 after a round trip.
    let two = |n: u32| {
        [hop(f64::from(n) * 13.0, u64::from(n) * 162_500, 0), hop(f64::from(n) * 13.0 + 1.0, u64::from(n) * 162_500, 0)]
    };
    let window = |registers| {
        let mut hpcc = hpcc(HpccConfig { registers, ..with_steps(0.0) });
        ack(&mut hpcc, 1, 50, 7, &two(0));
        ack(&mut hpcc, 51, 99, 7, &two(1));
        hpcc.reference_window()
    };
    close(window(Registers::PerHop), W_INIT * 0.95);
    for alpha in [1.0, 2.0, 4.0] {
        // Less what registers at their limit of W_init · 4 · 2^(1/α) would add.
        let limit = (4.0 * 2_f64.powf(1.0 / alpha)).powf(-alpha);
        let expected = (2.0 * (0.95_f64.powf(-alpha) - limit)).powf(-1.0 / alpha);
        close(window(Registers::Alpha(alpha)), W_INIT * expected);
    }
}

#[test]
fn a_table_divides_to_four_per_mille() {
    let configs = [Division::Exact, Division::Table].map(|division| HpccConfig { division, ..with_steps(0.0) });
    for load in (30..300).map(|percent| f64::from(percent) / 100.0) {
        let windows = configs.map(|config| {
            let mut hpcc = hpcc(config);
            ack(&mut hpcc, 1, 50, 7, &[hop(0.0, 0, 0)]);
            ack(&mut hpcc, 51, 99, 7, &[hop(13.0, (W_INIT * load) as u64, 0)]);
            hpcc.reference_window()
        });
        assert!((windows[1] / windows[0] - 1.0).abs() <= 0.0045, "{windows:?}");
    }
}

#[test]
fn without_a_pace_the_window_alone_limits() {
    let mut hpcc = hpcc(HpccConfig { paced: false, ..with_steps(0.0) });
    ack(&mut hpcc, 1, 50, 7, &[hop(0.0, 0, 0)]);
    ack(&mut hpcc, 51, 99, 7, &[hop(13.0, 325_000, 0)]);
    assert!(hpcc.window() < 162_500);
    assert_eq!(hpcc.rate(), None);
}
