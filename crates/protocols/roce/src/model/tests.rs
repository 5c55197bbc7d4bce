//! The paper's numbers, every pattern of losses, flows drawn at random, and what must never rise.

mod advice;
mod drawn;
mod enumerated;

use proptest::prelude::*;
use units::{Bytes, Prob, Rate, Span};

use super::theorems::{self, Ratios};
use super::*;

fn prob(value: f64) -> Prob {
    Prob::literal(value)
}

fn model(beta: f64, links: u32, omega: f64, flows: FlowLengths) -> TimeoutModel {
    TimeoutModel {
        lengths: FrameLengths::default(),
        corruption: CorruptionSeverity::Packets(prob(beta)),
        path: FlowPath { links, corrupting: prob(omega) },
        flows,
    }
}

/// One packet there and one back, on one link that corrupts one in 128.
fn ping_pong() -> TimeoutModel {
    model(1.0 / 128.0, 1, 1.0, FlowLengths::fixed(1))
}

/// Two flows in an iteration.
fn per_100k_iterations(per_flow: f64) -> f64 {
    2e5 * per_flow
}

#[track_caller]
fn assert_close(ours: f64, expected: f64, tolerance: f64) {
    assert!((ours / expected - 1.0).abs() <= tolerance, "{ours:e}, expected {expected:e}");
}

#[test]
fn a_header_suffers_six_percent_of_what_a_packet_does() {
    let lengths = FrameLengths::default();
    assert_eq!([lengths.header, lengths.packet, lengths.ack].map(Bytes::get), [62, 1_086, 68]);
    let model = model(1e-3, 1, 1.0, FlowLengths::fixed(1));
    assert_close(model.header_corruption().get(), 62.0 / 1086.0 * 1e-3, 1e-3);
    assert_close(model.ack_corruption().get(), 68.0 / 1086.0 * 1e-3, 1e-3);
    assert_close(model.header_corruption().get(), 0.06e-3, 0.05);
}

#[test]
fn bit_errors_and_packet_corruption_are_one_thing_said_twice() {
    let lengths = FrameLengths::of_mtu(Bytes::new(4_096));
    let bits = CorruptionSeverity::Bits(prob(1e-7));
    let beta = bits.of(lengths.packet, &lengths);
    assert_close(beta.get(), 1.0 - (1.0 - 1e-7f64).powi(8 * 4_158), 1e-9);
    let packets = CorruptionSeverity::Packets(beta);
    assert_close(packets.bit_errors(&lengths).unwrap().get(), 1e-7, 1e-9);
    assert_close(packets.of(lengths.ack, &lengths).get(), bits.of(lengths.ack, &lengths).get(), 1e-9);
    let drops = CorruptionSeverity::Drops(prob(0.1));
    assert_eq!((drops.of(lengths.ack, &lengths), drops.bit_errors(&lengths)), (prob(0.1), None));
}

#[test]
fn the_rarest_corruption_is_not_rounded_away() {
    let model = model(1e-17, 4, 1e-3, FlowLengths::fixed(1));
    assert_close(model.estimate(&TimeoutSetting::NONE).per_flow.tail.exact, 4e-20, 1e-6);
}

#[test]
fn a_path_corrupts_about_as_often_as_its_links_together() {
    let path = FlowPath { links: 4, corrupting: prob(0.1) };
    assert_close(path.corrupts(prob(1e-3)).get(), 4e-4, 1e-3);
    let by_links = model(1e-3, 4, 0.1, FlowLengths::fixed(1)).lost();
    assert_close(by_links, path.corrupts(prob(1e-3)).get(), 1e-12);
    assert_close(path.corrupting_links().iter().sum(), 1.0, 1e-12);
}

#[test]
fn timeouts_of_the_ping_pong_are_those_of_the_paper() {
    let model = ping_pong();
    let dummies =
        |dummies| TimeoutSetting { tail: TailProtection::Dummies(dummies), naks: 1, naked: 1, obeys_copies: false };
    let per_flow =
        |setting: &TimeoutSetting| model.estimate(setting).per_flow.map(|forms| per_100k_iterations(forms.rounded));
    assert_close(per_flow(&dummies(0)).tail, 1_562.5, 1e-9);
    assert_close(per_flow(&dummies(1)).tail, 0.732, 1e-3);
    assert_close(per_flow(&TimeoutSetting { naked: 0, ..dummies(2) }).twice, 12.207, 1e-3);
    // The paper prints ten times as much.
    assert_close(per_flow(&TimeoutSetting { naks: 0, ..dummies(2) }).nak, 0.732, 1e-3);
    let all = per_flow(&dummies(2));
    assert_close(all.tail, 2e5 * 0.06 * 0.06 / 128f64.powi(3), 1e-9);
    assert!(all.nak < 0.1 && all.twice < 0.1 && all.tail < 0.1, "{all:?}");
}

#[test]
fn a_switch_that_drops_whatever_the_length_makes_dummies_and_naks_as_weak_as_packets() {
    let model = TimeoutModel { corruption: CorruptionSeverity::Drops(prob(1.0 / 128.0)), ..ping_pong() };
    let setting = |naks, naked, dummies| TimeoutSetting {
        naks,
        naked,
        tail: TailProtection::Dummies(dummies),
        obeys_copies: false,
    };
    let approximate = |setting: &TimeoutSetting| model.estimate(setting).per_flow.map(|forms| forms.approximate);
    for value in
        [approximate(&setting(1, 1, 1)).tail, approximate(&setting(1, 0, 2)).twice, approximate(&setting(0, 1, 2)).nak]
    {
        assert_close(per_100k_iterations(value), 12.207, 1e-3);
    }
    for value in [model.estimate(&setting(1, 1, 1)).per_flow.tail, model.estimate(&setting(0, 1, 2)).per_flow.nak] {
        assert_close(per_100k_iterations(value.exact), 12.2, 0.01);
    }
}

#[test]
fn the_examples_of_theorems_4_to_10_come_out_as_printed() {
    let path = FlowPath { links: 2, corrupting: prob(1.0) };
    let beta = prob(0.01);
    assert_close(theorems::nak(&path, beta, Ratios::ROUNDED, 0), 2.4e-5, 1e-9);
    assert_close(theorems::nak(&path, beta, Ratios::ROUNDED, 1), 1.44e-8, 1e-9);
    assert_close(theorems::twice(&path, beta, 0), 2e-4, 1e-9);
    assert_close(theorems::twice(&path, beta, 2), 2e-8, 1e-9);
    assert_close(0.055 * theorems::tail_with_dummies(&path, beta, Ratios::ROUNDED, 1), 6.6e-7, 1e-9);
    assert_close(theorems::tail_with_copies(&path, beta, 1), 2e-4, 1e-9);
    assert_close(theorems::tail_ack(&path, beta, Ratios::ROUNDED, 1), 2.0 * (0.06f64 * 0.01).powi(2), 1e-9);
}

#[test]
fn approximations_are_the_first_terms_of_the_exact_forms() {
    let model = model(1e-4, 4, 1e-6, FlowLengths::fixed(20));
    for setting in [
        TimeoutSetting::NONE,
        TimeoutSetting::ALL,
        TimeoutSetting::ALL_OPTIMIZED,
        TimeoutSetting { tail: TailProtection::Repeat(2), ..TimeoutSetting::ALL },
        TimeoutSetting { tail: TailProtection::Repeat(0), ..TimeoutSetting::NONE },
    ] {
        let estimate = model.estimate(&setting);
        for (cause, forms) in estimate.per_packet.named() {
            assert!((forms.exact / forms.approximate - 1.0).abs() < 5e-3, "{setting:?} {cause}: {forms:?}");
        }
    }
}

#[test]
fn where_all_links_corrupt_a_retransmission_meets_them_all_again() {
    let twice = model(1e-4, 4, 1.0, FlowLengths::fixed(20)).estimate(&TimeoutSetting::NONE).per_packet.twice;
    assert_close(twice.exact, 16e-8, 2e-3);
    assert_close(twice.approximate, 4e-8, 1e-9);
}

#[test]
fn a_flow_of_one_packet_without_dummies_draws_no_nak() {
    let estimate = ping_pong().estimate(&TimeoutSetting::NONE);
    assert_eq!((estimate.per_flow.nak.exact, estimate.per_flow.twice.exact), (0.0, 0.0));
    assert_eq!(estimate.retransmissions, 0.0);
    let with_dummies = ping_pong().estimate(&TimeoutSetting::ALL);
    assert_close(with_dummies.retransmissions, 1.0 / 128.0, 1e-3);
}

#[test]
fn a_flow_has_one_tail_and_many_packets() {
    let estimate = model(1e-5, 1, 1e-3, FlowLengths::new(100.0, 0.055, [1, 199])).estimate(&TimeoutSetting::NONE);
    assert_close(estimate.per_flow.tail.exact * 0.055, estimate.per_packet.tail.exact, 1e-12);
    assert_close(estimate.per_flow.twice.approximate, 100.0 * estimate.per_packet.twice.approximate, 1e-12);
    assert_close(estimate.per_flow.twice.exact, 99.0 * estimate.per_packet.twice.exact, 1e-12);
}

#[test]
fn copies_of_naks_that_are_obeyed_send_the_packet_again() {
    let model = model(0.01, 1, 1.0, FlowLengths::fixed(10));
    let twice = |setting: &TimeoutSetting| model.estimate(setting).per_packet.twice.exact;
    let deaf = TimeoutSetting { naks: 2, naked: 1, ..TimeoutSetting::NONE };
    assert_close(twice(&deaf), 0.01f64.powi(3), 1e-6);
    // Three NAKs, three sends, and one more copy of the first.
    assert_close(twice(&TimeoutSetting { obeys_copies: true, ..deaf }), 0.01f64.powi(5), 0.25);
    let alone = TimeoutSetting { naks: 0, obeys_copies: true, ..deaf };
    assert_close(twice(&alone), twice(&TimeoutSetting { obeys_copies: false, ..alone }), 1e-9);
}

#[test]
fn a_shorter_tail_suffers_less() {
    let full = ping_pong();
    let short = TimeoutModel { lengths: FrameLengths { tail: Bytes::new(543), ..full.lengths }, ..full.clone() };
    let tail = |model: &TimeoutModel| model.estimate(&TimeoutSetting::NONE).per_flow.tail;
    assert_close(tail(&short).exact, tail(&full).exact / 2.0, 3e-3);
    assert_eq!(tail(&short).approximate, tail(&full).approximate);
}

#[test]
fn a_dummy_costs_six_percent_where_every_flow_is_one_packet() {
    let cost = |tail| ping_pong().cost(&TimeoutSetting { tail, ..TimeoutSetting::NONE });
    assert_close(cost(TailProtection::Dummies(1)).paper.tail, 0.06, 0.05);
    assert_close(cost(TailProtection::Dummies(1)).paper.tail, 62.0 / 1086.0, 1e-12);
    assert_eq!(cost(TailProtection::Repeat(1)).paper.tail, 1.0);
    assert_eq!(cost(TailProtection::Dummies(2)).paper.tail, cost(TailProtection::Dummies(2)).path.tail);
}

#[test]
fn copies_cost_what_equation_1_says() {
    let model = model(0.01, 1, 1.0, FlowLengths::new(100.0, 0.055, [100]));
    let costs = model.cost(&TimeoutSetting { naks: 2, naked: 5, ..TimeoutSetting::ALL });
    assert_close(costs.paper.naks, 68.0 * 2.0 * 0.01 / 1086.0, 1e-12);
    assert_close(costs.paper.naked, 0.05, 1e-12);
    assert_close(costs.paper.tail, 0.055 * 2.0 * 62.0 / 1086.0, 1e-12);
    // Dummies are a smaller share of a link's bytes, because long flows fill it.
    assert_close(costs.path.tail, 0.01 * 2.0 * 62.0 / 1086.0, 1e-12);
    assert_close(costs.path.total(), costs.path.naks + costs.path.naked + costs.path.tail, 1e-12);
    let obeyed = model.cost(&TimeoutSetting { naks: 2, naked: 5, obeys_copies: true, ..TimeoutSetting::ALL });
    assert_close(obeyed.path.naked, 0.07, 1e-9);
}

const TIMING: PenaltyTiming =
    PenaltyTiming { rto: Span::from_ms(266), rtt: Span::from_us(5), gap: None, wait: Span::ZERO };

#[test]
fn the_mean_of_the_ping_pong_grows_by_four_milliseconds() {
    // 266 ms at one flow in 128, two flows in an iteration; the paper measured 3.8.
    let penalty = ping_pong().penalty(&TimeoutSetting::NONE, &TIMING).total();
    assert_close(2.0 * penalty.as_us(), 4_156.0, 0.07);
    let protected = ping_pong().penalty(&TimeoutSetting::ALL, &TIMING);
    assert!(2.0 * protected.total().as_us() < 0.1, "{protected:?}");
    assert_close(protected.retransmissions.as_us(), 5.0 / 128.0, 1e-3);
}

#[test]
fn where_flows_share_a_queue_pair_the_next_flow_ends_the_wait() {
    let gap = gap_between_flows(Bytes::new(125_000), Rate::gbps(100), prob(0.5), 100);
    assert_eq!(gap, Span::from_ms(2));
    let shared = PenaltyTiming { gap: Some(gap), ..TIMING };
    let tails = |timing| ping_pong().penalty(&TimeoutSetting::NONE, timing).tails.as_us();
    assert_close(tails(&shared), tails(&TIMING) * 2.0 / 266.0, 1e-6);
    let rare = PenaltyTiming { gap: Some(Span::from_ms(10_000_000)), ..TIMING };
    assert_close(tails(&rare), tails(&TIMING), 1e-3);
}

#[test]
fn dummies_that_wait_let_a_lost_tail_wait() {
    let wait = |wait| ping_pong().penalty(&TimeoutSetting::ALL, &PenaltyTiming { wait, ..TIMING }).tails.as_us();
    assert_close(wait(Span::from_us(200)) - wait(Span::ZERO), 200.0 / 128.0, 1e-3);
}

fn settings() -> impl Strategy<Value = TimeoutSetting> {
    let tail = prop_oneof![(0u32..6).prop_map(TailProtection::Dummies), (0u32..6).prop_map(TailProtection::Repeat)];
    (0u32..6, 0u32..6, tail, any::<bool>()).prop_map(|(naks, naked, tail, obeys_copies)| TimeoutSetting {
        naks,
        naked,
        tail,
        obeys_copies,
    })
}

fn models() -> impl Strategy<Value = TimeoutModel> {
    (0.0..1.0f64, 1u32..6, 0.0..=1.0f64, prop::collection::vec(1u64..3_000, 1..5), 0..3).prop_map(
        |(share, links, omega, flows, kind)| {
            let small = prob(10f64.powf(-8.0 * share) * 0.5);
            let n = flows.len() as f64;
            let mean = flows.iter().sum::<u64>() as f64 / n;
            let inverse = flows.iter().map(|packets| (*packets as f64).recip()).sum::<f64>() / n;
            let corruption = match kind {
                0 => CorruptionSeverity::Bits(prob(small.get() / 8_688.0)),
                1 => CorruptionSeverity::Packets(small),
                _ => CorruptionSeverity::Drops(small),
            };
            TimeoutModel { corruption, ..model(0.0, links, omega, FlowLengths::new(mean, inverse, flows)) }
        },
    )
}

proptest! {
    #[test]
    fn one_more_of_anything_never_makes_a_cause_likelier_or_the_whole_cheaper(model in models(), setting in settings()) {
        let exact = |setting: &TimeoutSetting| model.estimate(setting).per_packet.map(|forms| forms.exact);
        let here = exact(&setting);
        let cost = model.cost(&setting).path.total();
        let more_naks = TimeoutSetting { naks: setting.naks + 1, ..setting };
        let more_naked = TimeoutSetting { naked: setting.naked + 1, ..setting };
        let behind = match setting.tail {
            TailProtection::Dummies(n) => TailProtection::Dummies(n + 1),
            TailProtection::Repeat(n) => TailProtection::Repeat(n + 1),
        };
        let more_behind = TimeoutSetting { tail: behind, ..setting };
        let hair = 1.0 + 1e-9;
        prop_assert!(exact(&more_naks).nak <= here.nak * hair);
        prop_assert!(exact(&more_naked).twice <= here.twice * hair);
        prop_assert!(exact(&more_behind).tail <= here.tail * hair);
        if let TailProtection::Dummies(_) = setting.tail {
            prop_assert!(exact(&more_behind).tail_ack <= here.tail_ack * hair);
        }
        // A copy that arrives after a tail was lost may lack its ACK: only together do they never rise.
        let tails = |causes: Causes<f64>| causes.tail + causes.tail_ack;
        prop_assert!(tails(exact(&more_behind)) <= tails(here) * hair);
        for more in [more_naks, more_naked, more_behind] {
            prop_assert!(model.cost(&more).path.total() >= cost);
        }
    }

    #[test]
    fn more_corruption_never_makes_a_timeout_rarer(model in models(), setting in settings(), factor in 1.0..2.0f64) {
        let worse = match model.corruption {
            CorruptionSeverity::Bits(p) => CorruptionSeverity::Bits(prob(p.get() * factor)),
            CorruptionSeverity::Packets(p) => CorruptionSeverity::Packets(prob(p.get() * factor)),
            CorruptionSeverity::Drops(p) => CorruptionSeverity::Drops(prob(p.get() * factor)),
        };
        let worse = TimeoutModel { corruption: worse, ..model.clone() };
        let (here, there) = (model.estimate(&setting), worse.estimate(&setting));
        prop_assert!(there.flow_with_timeout >= here.flow_with_timeout * (1.0 - 1e-9));
        prop_assert!((0.0..=1.0).contains(&here.flow_with_timeout));
        prop_assert!(here.flow_with_timeout <= here.per_flow.total().exact * (1.0 + 1e-9));
        for (cause, forms) in here.per_packet.named() {
            prop_assert!((0.0..=1.0).contains(&forms.exact), "{cause} {forms:?}");
        }
    }

    #[test]
    fn one_more_of_anything_never_makes_a_flow_later(
        model in models(), setting in settings(), slack in 1u64..2_000, gap in prop::option::of(1u64..1_000_000),
    ) {
        let slack = Span::from_us(slack);
        let gap = gap.map(Span::from_us);
        let timing = PenaltyTiming { rto: Span::from_ms(64), rtt: Span::from_us(10), gap, wait: Span::ZERO };
        let timing = PenaltyTiming { wait: slack.saturating_sub(timing.rtt), ..timing };
        let late = |setting: &TimeoutSetting| model.late(setting, &timing, slack);
        let here = late(&setting);
        prop_assert!((0.0..=1.0).contains(&here));
        let mut more = vec![TimeoutSetting { naks: setting.naks + 1, ..setting }, TimeoutSetting { naked: setting.naked + 1, ..setting }];
        if let TailProtection::Dummies(dummies) = setting.tail {
            more.push(TimeoutSetting { tail: TailProtection::Dummies(dummies + 1), ..setting });
        }
        for more in more {
            prop_assert!(late(&more) <= here * (1.0 + 1e-9) + 1e-15, "{more:?}: {} > {here}", late(&more));
        }
    }
}
