//! A peer that does not answer is taken for gone by a clock that stands still while we do not run ourselves.

mod common;

use common::*;
use guard::session::SessionState;
use guard::{EndpointEvent, Params};
use testkit::{Duo, Fate, Side};
use units::{Span, Time};
use wire::link::Class;

fn live() -> Params {
    let params = Params::host(1_518, Class::Ordered, 1, 4_096, Span::from_ms(50));
    assert_eq!(params.patience, Span::from_ms(300));
    // No heartbeat: a quiet link falls quiet.
    Params { session: guard::session::SessionTiming { heartbeat: None, ..params.session }, ..params }
}

fn link() -> Link {
    let end = |own, peer| guard::Endpoint::established(live(), own, peer);
    Duo::new(end(1, 2), end(2, 1), Span::from_us(2), Span::from_us(10))
}

/// Left sends a frame for each 100 µs, and hears nothing. When it took its peer for gone, if it did.
fn thin_stream(link: &mut Link, span: Span) -> Option<Span> {
    let start = link.now;
    for number in 0.. {
        let deadline = start + Span::from_us(100) * u64::from(number);
        if deadline >= start + span {
            break;
        }
        link.run(deadline, &mut |_, _| Fate::Lost);
        link.now = deadline;
        if link.machine(Side::Left).state() != SessionState::Active {
            return Some(link.now.since(start));
        }
        send(link, Side::Left, Class::Ordered, number..number + 1);
    }
    None
}

/// It sends a dummy behind each frame, ten for each millisecond: a thousand of them pass in a third of the patience.
#[test]
fn a_stopped_peer_is_not_taken_for_gone_early_under_a_thin_stream() {
    let mut link = link();
    assert_eq!(thin_stream(&mut link, Span::from_ms(280)), None);
    link.run(Time::NEVER, &mut |_, _| Fate::Arrives);
    assert_eq!(link.machine(Side::Left).state(), SessionState::Active);
    assert_eq!(link.machine(Side::Left).counters().flushed, 0);
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..2_800));
}

#[test]
fn a_dead_peer_is_noticed_in_time() {
    let mut link = link();
    let took = thin_stream(&mut link, Span::from_ms(1_000)).unwrap();
    assert!((300..330).contains(&(took.as_ps() / 1_000_000_000)), "{took:?}");
    assert_eq!(link.events(Side::Left), [EndpointEvent::PeerLost]);
}

/// We do not run for half a second, five times, while an answer is on its way.
#[test]
fn a_stall_of_our_own_is_not_the_peers_silence() {
    let mut link = link();
    for round in 0..5 {
        send(&mut link, Side::Left, Class::Ordered, round..round + 1);
        // The frame and its dummy go out; what answers them comes after the stall.
        for _ in 0..3 {
            link.step(&mut |_, _| Fate::Lost);
        }
        link.now += Span::from_ms(500);
        let deadline = link.now + Span::from_ms(1);
        link.run(deadline, &mut |_, _| Fate::Lost);
        assert_eq!(link.machine(Side::Left).state(), SessionState::Active, "round {round}");
    }
    link.run(Time::NEVER, &mut |_, _| Fate::Arrives);
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..5));
    assert_eq!(link.events(Side::Left), []);
}
