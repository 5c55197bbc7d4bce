//! Every pattern of losses over the first transmissions of a short exchange: for any losses (frames,
//! acknowledgements, notices, dummies, pauses and resumes), the link falls quiet, and what came out is
//! what went in, once, in order if asked, less what was given up and counted.

mod common;

use common::*;
use guard::Params;
use guard::backpressure::PauseThresholds;
use guard::reorder::ReorderBuild;
use testkit::{Fate, Side};
use units::Bytes;
use wire::Seq;
use wire::link::Class;

/// So many transmissions, from either side, are lost or not in every combination.
const DEPTH: u32 = 13;

/// A buffer so short that two frames behind a gap pause the sender.
fn tight(class: Class, build: ReorderBuild) -> Params {
    let mut params = params(class);
    params.ordering.build = build;
    params.ordering.backpressure = Some(PauseThresholds {
        pause_at: Bytes::new(2_000),
        resume_at: Bytes::new(1_000),
        headroom: Bytes::new(8_000),
    });
    params.first_seq = Seq::new(65_534, true);
    params
}

fn check(link: &mut Link, class: Class, side: Side, sent: u32, pattern: u32) {
    let mut got = numbers(link.delivered(side));
    if class == Class::NonBlocking {
        got.sort_unstable();
    }
    assert!(got.is_sorted_by(|a, b| a < b), "{class:?}, losing {pattern:b}: {got:?}");
    let counters = link.machine(side).counters();
    assert_eq!(got.len() as u64 + counters.given_up, u64::from(sent), "{class:?}, losing {pattern:b}: {got:?}");
    assert_eq!(link.machine(side.other()).tx_buffered(), Bytes::ZERO, "losing {pattern:b}");
    assert_eq!(link.machine(side).rx_held(), Bytes::ZERO, "losing {pattern:b}");
}

fn explore(params: &Params, left: u32, right: u32) {
    let class = params.classes[0];
    for pattern in 0..1u32 << DEPTH {
        let mut link = established(params);
        send(&mut link, Side::Left, class, 0..left);
        send(&mut link, Side::Right, class, 0..right);
        let mut sent = 0;
        run(&mut link, &mut |_, _| {
            sent += 1;
            if sent <= DEPTH && pattern >> (sent - 1) & 1 == 1 { Fate::Lost } else { Fate::Arrives }
        });
        check(&mut link, class, Side::Right, left, pattern);
        check(&mut link, class, Side::Left, right, pattern);
    }
}

#[test]
fn one_way_in_order() {
    explore(&tight(Class::Ordered, ReorderBuild::Sorted), 6, 0);
}

#[test]
fn one_way_in_order_with_a_rotating_buffer() {
    explore(&tight(Class::Ordered, ReorderBuild::TOFINO), 6, 0);
}

#[test]
fn one_way_non_blocking() {
    explore(&tight(Class::NonBlocking, ReorderBuild::Sorted), 6, 0);
}

#[test]
fn both_ways_in_order() {
    explore(&tight(Class::Ordered, ReorderBuild::Sorted), 4, 3);
}

#[test]
fn both_ways_non_blocking() {
    explore(&tight(Class::NonBlocking, ReorderBuild::Sorted), 4, 3);
}

#[test]
fn with_several_asks_and_copies() {
    for class in Class::ALL {
        let params =
            Params { asks: 2, copies: 2, control_copies: 2, ack_every: 1, ..tight(class, ReorderBuild::Sorted) };
        explore(&params, 4, 1);
    }
}

#[test]
fn as_in_the_paper() {
    for class in Class::ALL {
        explore(&Params { paper_acks: true, ack_every: 1, ..tight(class, ReorderBuild::TOFINO) }, 5, 0);
    }
}
