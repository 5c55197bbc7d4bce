//! The advisor as an engineer asks it.

use super::*;

const TIMING: PenaltyTiming =
    PenaltyTiming { rto: Span::from_ms(64), rtt: Span::from_us(10), gap: None, wait: Span::ZERO };

fn goal(latency: u64, late: f64) -> Goal {
    Goal { latency: Span::from_us(latency), late: prob(late), base: Span::from_us(100) }
}

/// A key-value store: flows of one packet, four links that all corrupt one packet in a thousand.
fn key_values() -> TimeoutModel {
    model(1e-3, 4, 1.0, FlowLengths::fixed(1))
}

fn plan(model: &TimeoutModel, goal: &Goal) -> AdvisedSetting {
    match model.advise(goal, &TIMING, false) {
        Advice::Set(plan) => plan,
        Advice::Unreachable(obstacle) => panic!("{obstacle:?}"),
    }
}

fn obstacle(model: &TimeoutModel, goal: &Goal, timing: &PenaltyTiming) -> GoalObstacle {
    match model.advise(goal, timing, false) {
        Advice::Set(plan) => panic!("{plan:?}"),
        Advice::Unreachable(obstacle) => obstacle,
    }
}

#[test]
fn one_dummy_is_enough_for_small_flows() {
    let plan = plan(&key_values(), &goal(300, 1e-3));
    assert_eq!(plan.setting, TimeoutSetting { tail: TailProtection::Dummies(1), ..TimeoutSetting::NONE });
    assert_eq!(plan.wait, Some(Span::from_us(190)), "goal less base less a round trip");
    assert!(plan.late <= 1e-3 && plan.late_unprotected > 3e-3, "{plan:?}");
    assert!(plan.with_one_less[0].unwrap() > 1e-3 && plan.with_one_less[1].is_none());
    assert_close(plan.cost, 62.0 / 1086.0, 1e-9);
}

#[test]
fn a_stricter_goal_takes_more_and_no_less_would_do() {
    let strict = goal(300, 1e-6);
    let plan = plan(&key_values(), &strict);
    assert!(plan.late <= 1e-6, "{plan:?}");
    for fewer in plan.with_one_less.into_iter().flatten() {
        assert!(fewer > 1e-6, "{plan:?}");
    }
}

#[test]
fn the_cheapest_is_found_among_all_there_are() {
    let model = model(5e-3, 3, 0.4, FlowLengths::new(50.5, 0.505, [1, 100]));
    for late in [1e-2, 1e-3, 1e-4, 1e-5, 1e-7] {
        let goal = goal(300, late);
        let slack = Span::from_us(200);
        let timing = PenaltyTiming { wait: Span::from_us(190), ..TIMING };
        let mut cheapest: Option<f64> = None;
        for counts in 0..9u32.pow(3) {
            let (dummies, naks, naked) = (counts / 81, counts / 9 % 9, counts % 9);
            let setting = TimeoutSetting { naks, naked, tail: TailProtection::Dummies(dummies), obeys_copies: false };
            let cost = model.cost(&setting).path.total();
            if cheapest.is_none_or(|cheapest| cost < cheapest) && model.late(&setting, &timing, slack) <= late {
                cheapest = Some(cost);
            }
        }
        let found = match model.advise(&goal, &TIMING, false) {
            Advice::Set(plan) => Some(plan.cost),
            Advice::Unreachable(_) => None,
        };
        assert_eq!(found, cheapest, "{late}");
    }
}

#[test]
fn without_corruption_nothing_is_advised() {
    let plan = plan(&model(0.0, 4, 1.0, FlowLengths::fixed(1)), &goal(300, 1e-4));
    assert_eq!((plan.setting, plan.wait, plan.late, plan.cost), (TimeoutSetting::NONE, None, 0.0, 0.0));
}

#[test]
fn a_timer_that_fits_the_goal_needs_no_help() {
    let timing = PenaltyTiming { rto: Span::from_us(150), ..TIMING };
    let Advice::Set(plan) = key_values().advise(&goal(300, 1e-4), &timing, false) else { panic!("the timer is short") };
    assert_eq!(plan.setting, TimeoutSetting::NONE);
}

#[test]
fn a_goal_below_what_flows_take_anyway_is_out_of_reach() {
    assert_eq!(obstacle(&key_values(), &goal(100, 1e-3), &TIMING), GoalObstacle::Base);
    assert_eq!(obstacle(&key_values(), &goal(50, 1e-3), &TIMING), GoalObstacle::Base);
}

#[test]
fn where_one_round_trip_is_too_long_only_the_link_can_help() {
    let GoalObstacle::Repairs { late, in_time, bearable } = obstacle(&key_values(), &goal(105, 1e-3), &TIMING) else {
        panic!("a round trip takes 10 µs")
    };
    assert_eq!(in_time, 0);
    assert_close(late, 4e-3, 0.01);
    // A lost tail or its ACK: four links each way.
    assert_close(bearable.get(), 1e-3 / 4.0 / (1.0 + 68.0 / 1086.0), 0.02);
}

#[test]
fn long_flows_lose_too_many_packets_for_go_back_n() {
    let long = model(1e-2, 4, 1.0, FlowLengths::fixed(10_000));
    let GoalObstacle::Repairs { late, in_time, .. } = obstacle(&long, &goal(300, 1e-3), &TIMING) else {
        panic!("400 round trips do not fit")
    };
    assert_eq!(in_time, 20);
    assert!(late > 0.99);
}

#[test]
fn a_link_that_corrupts_nearly_everything_is_beyond_copies() {
    let broken = model(0.9, 4, 1.0, FlowLengths::fixed(1));
    let GoalObstacle::Copies { late, bearable } = obstacle(&broken, &goal(300, 1e-3), &TIMING) else {
        panic!("retransmissions are in time")
    };
    assert!(late > 0.1 && bearable.get() < 1e-3, "{late} {bearable}");
}

#[test]
fn a_busy_queue_pair_needs_no_dummies() {
    let busy = PenaltyTiming { gap: Some(Span::from_us(5)), ..TIMING };
    let Advice::Set(plan) = key_values().advise(&goal(300, 1e-3), &busy, false) else {
        panic!("the next flow shows it")
    };
    assert_eq!(plan.setting, TimeoutSetting::NONE);
}
