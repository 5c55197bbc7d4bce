//! A path whose queue is deeper than any wire is long: what is missing is asked for by the measured round trip.

mod common;

use common::*;
use guard::{Endpoint, Params};
use testkit::{Duo, Fate, Side};
use units::Span;
use wire::link::{Class, FrameKind};

/// 50 Mbit/s and full frames.
const SLOT: Span = Span::from_us(246);

fn link(queue: Span, copies: u8) -> Link {
    let params = Params::host(1_518, Class::Ordered, copies, 1_024, Span::from_ms(50));
    let end = |own, peer| Endpoint::established(params.clone(), own, peer);
    Duo::new(end(1, 2), end(2, 1), SLOT, queue)
}

/// So many frames, of which each hundredth is lost; how many were, and how many copies went out.
fn lose_each_hundredth(link: &mut Link, frames: u32) -> (u64, u64) {
    send(link, Side::Left, Class::Ordered, 0..frames);
    let deadline = link.now + SLOT * u64::from(frames) * 2 + Span::from_ms(1_000);
    link.run(deadline, &mut |_, packet| match packet.header.kind() {
        FrameKind::Data(_, seq) if seq.number() % 100 == 50 => Fate::Lost,
        _ => Fate::Arrives,
    });
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..frames));
    assert_eq!(link.machine(Side::Right).counters().given_up, 0);
    (link.machine(Side::Right).counters().recovered, link.machine(Side::Left).counters().tx_replay)
}

/// 30 ms there and back: asked for every 2 ms, each loss would be sent again fifteen times.
#[test]
fn a_deep_queue_does_not_multiply_retransmissions() {
    for copies in [1, 2] {
        for ms in [3, 10, 15, 20] {
            let mut link = link(Span::from_ms(ms), copies);
            let (lost, sent) = lose_each_hundredth(&mut link, 3_400);
            assert_eq!(lost, 34);
            let bound = 3 * u64::from(copies) * lost;
            assert!(sent <= bound, "{ms} ms each way, {copies} copies: {sent} for {lost} losses");
        }
    }
}

/// The first loss behind a queue that nobody has measured.
#[test]
fn a_round_trip_that_nobody_expected_costs_a_few_copies_once() {
    let mut link = link(Span::from_ms(15), 1);
    let (lost, sent) = lose_each_hundredth(&mut link, 100);
    assert_eq!(lost, 1);
    // 2 + log2(30 ms / 2 ms)
    assert!(sent <= 6, "{sent}");
}

/// And on a short one, a retransmission that is lost is still asked for after 2 ms.
#[test]
fn a_short_path_is_asked_again_as_soon_as_before() {
    let mut link = link(Span::from_us(10), 1);
    send(&mut link, Side::Left, Class::Ordered, 0..10);
    let mut lost_at = None;
    let mut lose_original = lose(Side::Left, &[4]);
    let mut first_copy = true;
    let deadline = link.now + Span::from_ms(40);
    while link.next_event().is_some_and(|at| at <= deadline) && link.machine(Side::Right).counters().recovered == 0 {
        let now = link.now;
        link.step(&mut |side, packet| match packet.header.kind() {
            FrameKind::Retransmission(..) if std::mem::take(&mut first_copy) => {
                lost_at = Some(now);
                Fate::Lost
            }
            _ => lose_original(side, packet),
        });
    }
    let took = link.now.since(lost_at.unwrap());
    assert!(took < Span::from_ms(3), "{took:?}");
}
