//! How a link starts, stops, and survives the restart of one end.

mod common;

use common::*;
use guard::session::State;
use guard::{Command, Endpoint, Event, Params};
use testkit::{Duo, Fate, Side};
use units::{Bytes, Span};
use wire::link::{Class, Kind, Refusal, SessionKind};

fn dormant(params: &Params) -> Link {
    Duo::new(Endpoint::new(params.clone(), 1), Endpoint::new(params.clone(), 2), SLOT, FLIGHT)
}

fn active(params: &Params) -> Link {
    let mut link = dormant(params);
    link.command(Side::Left, Command::Activate);
    settle(&mut link);
    link.events(Side::Left);
    link.events(Side::Right);
    link
}

fn states(link: &Link) -> [State; 2] {
    Side::BOTH.map(|side| link.machine(side).state())
}

#[test]
fn a_dormant_link_passes_frames_as_they_are() {
    let mut link = dormant(&params(Class::Ordered));
    send(&mut link, Side::Left, Class::Ordered, 0..5);
    run(&mut link, &mut |_, packet| {
        assert_eq!((packet.header.kind(), packet.frame_len()), (Kind::Bare, 1_000));
        Fate::Arrives
    });
    assert_eq!(numbers(link.delivered(Side::Right)), [0, 1, 2, 3, 4]);
}

#[test]
fn one_end_asks_and_both_are_active() {
    for asks in [&[Side::Left][..], &[Side::Right], &Side::BOTH] {
        let mut link = dormant(&params(Class::Ordered));
        for side in asks {
            link.command(*side, Command::Activate);
        }
        settle(&mut link);
        assert_eq!(states(&link), [State::Active; 2]);
        for side in Side::BOTH {
            assert_eq!(link.events(side), [Event::Activated]);
        }
    }
}

#[test]
fn two_ends_that_ask_at_once_agree_though_the_first_hello_is_lost() {
    for first in 0..2 {
        let mut link = dormant(&params(Class::Ordered));
        for side in Side::BOTH {
            link.command(side, Command::Activate);
        }
        run(&mut link, &mut lose(Side::BOTH[first], &[0]));
        assert_eq!(states(&link), [State::Active; 2]);
    }
}

/// A frame of an earlier life with the same epoch passes for a Confirm, and the Welcome is lost.
#[test]
fn an_end_that_thinks_itself_active_still_answers_a_hello() {
    let params = params(Class::Ordered);
    let mut link = dormant(&params);
    link.command(Side::Left, Command::Activate);
    let lose_welcome = |_: Side, packet: &guard::Packet<Numbered>| match packet.header.message() {
        Some(message) if message.kind == SessionKind::Welcome => Fate::Lost,
        _ => Fate::Arrives,
    };
    let mut epoch = None;
    while epoch.is_none() {
        link.step(&mut |side, packet| {
            epoch = (side == Side::Right).then(|| packet.header.epoch());
            lose_welcome(side, packet)
        });
    }
    let dummy = wire::link::Kind::Dummy(Class::Ordered, params.first_seq.previous());
    link.inject(Side::Right, guard::Packet::new(epoch.unwrap(), dummy, None, None));
    assert_eq!(states(&link), [State::Asking, State::Active]);
    settle(&mut link);
    assert_eq!(states(&link), [State::Active; 2]);
}

/// Frames flow all the while, both ways; each message of the handshake may be lost.
#[test]
fn nothing_is_lost_or_reordered_when_protection_starts_or_ends() {
    for class in Class::ALL {
        for lost in 0u32..1 << 9 {
            let mut link = dormant(&params(class));
            let mut sessions = 0;
            let mut lose_sessions = |_: Side, packet: &guard::Packet<Numbered>| {
                if packet.header.kind() != Kind::Session {
                    return Fate::Arrives;
                }
                sessions += 1;
                if sessions <= 9 && lost >> (sessions - 1) & 1 == 1 { Fate::Lost } else { Fate::Arrives }
            };
            send(&mut link, Side::Left, class, 0..30);
            send(&mut link, Side::Right, class, 0..30);
            link.command(Side::Left, Command::Activate);
            run(&mut link, &mut lose_sessions);
            assert_eq!(states(&link), [State::Active; 2], "losing {lost:b}");
            send(&mut link, Side::Left, class, 30..60);
            send(&mut link, Side::Right, class, 30..60);
            link.step(&mut lose_sessions);
            link.command(Side::Right, Command::Deactivate);
            run(&mut link, &mut lose_sessions);
            assert_eq!(states(&link), [State::Dormant; 2], "losing {lost:b}");
            for side in Side::BOTH {
                assert_eq!(numbers(link.delivered(side)), Vec::from_iter(0..60), "losing {lost:b}");
            }
        }
    }
}

#[test]
fn a_closing_link_recovers_what_is_lost_before_it_goes_dormant() {
    for class in Class::ALL {
        let mut link = active(&params(class));
        send(&mut link, Side::Left, class, 0..40);
        let mut lossy = lose(Side::Left, &[2, 3, 11, 19]);
        for _ in 0..40 {
            link.step(&mut lossy);
        }
        link.command(Side::Left, Command::Deactivate);
        run(&mut link, &mut lossy);
        assert_eq!(states(&link), [State::Dormant; 2]);
        let mut got = numbers(link.delivered(Side::Right));
        if class == Class::NonBlocking {
            got.sort_unstable();
        }
        assert_eq!(got, Vec::from_iter(0..40));
        assert_eq!(link.machine(Side::Left).counters().flushed, 0);
    }
}

#[test]
fn a_link_can_be_activated_again_and_again() {
    let mut link = dormant(&params(Class::Ordered));
    for round in 0..10 {
        link.command(Side::Left, Command::Activate);
        send(&mut link, Side::Left, Class::Ordered, round * 20..round * 20 + 10);
        settle(&mut link);
        link.command(Side::Right, Command::Deactivate);
        send(&mut link, Side::Left, Class::Ordered, round * 20 + 10..round * 20 + 20);
        settle(&mut link);
    }
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..200));
    assert_eq!(states(&link), [State::Dormant; 2]);
}

#[test]
fn ends_made_active_can_be_deactivated_like_any_other() {
    let mut link = established(&params(Class::Ordered));
    send(&mut link, Side::Left, Class::Ordered, 0..20);
    link.command(Side::Left, Command::Deactivate);
    settle(&mut link);
    assert_eq!(states(&link), [State::Dormant; 2]);
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..20));
    for side in Side::BOTH {
        assert_eq!(link.events(side), [Event::Deactivated]);
    }
}

#[test]
fn an_epoch_beyond_reason_is_not_adopted() {
    let params = params(Class::Ordered);
    let mut link = dormant(&params);
    let message = wire::link::Session {
        kind: SessionKind::Hello,
        instance: 9,
        heard: 0,
        epoch: u32::MAX,
        agreement: params.agreement(),
    };
    let header = wire::link::Header::session(wire::link::Epoch::default(), message);
    link.inject(Side::Left, guard::Packet { header, body: None });
    link.command(Side::Left, Command::Activate);
    settle(&mut link);
    assert_eq!(states(&link), [State::Active; 2]);
}

#[test]
fn a_peer_that_restarts_is_found_again_and_old_frames_are_dropped() {
    let params = params(Class::Ordered);
    let mut link = active(&params);
    send(&mut link, Side::Left, Class::Ordered, 0..100);
    for _ in 0..60 {
        link.step(&mut |_, _| Fate::Arrives);
    }
    let before = numbers(link.delivered(Side::Right));
    link.replace(Side::Right, Endpoint::new(params.clone(), 77));
    settle(&mut link);
    assert_eq!(states(&link), [State::Active; 2]);
    assert_eq!(link.events(Side::Left), [Event::PeerLost, Event::Activated]);
    assert!(link.machine(Side::Right).counters().rx_old_epoch > 0);
    let flushed = link.machine(Side::Left).counters().flushed;
    let got: Vec<u32> = before.into_iter().chain(numbers(link.delivered(Side::Right))).collect();
    assert!(got.is_sorted_by(|a, b| a < b), "once and in order: {got:?}");
    assert!(100 - got.len() as u64 <= flushed, "what is missing was counted");
}

/// The receiver closes while it still waits for a frame of a sender that has since restarted: the timeout
/// is what lets it close, and what waits above must then go out.
#[test]
fn a_link_that_closes_on_a_timeout_lets_frames_go_on() {
    for class in Class::ALL {
        let params = params(class);
        let mut link = active(&params);
        send(&mut link, Side::Right, class, 0..20);
        let mut lossy = lose(Side::Right, &[2]);
        while link.machine(Side::Left).counters().rx_missing_seq == 0 {
            link.step(&mut lossy);
        }
        link.command(Side::Left, Command::Deactivate);
        link.replace(Side::Right, Endpoint::new(params.clone(), 77));
        send(&mut link, Side::Left, class, 0..3);
        settle(&mut link);
        assert_eq!(link.waiting(Side::Left), 0, "{class:?}");
        assert_eq!(numbers(link.delivered(Side::Right)), [0, 1, 2], "{class:?}");
    }
}

/// The sender restarts while the receiver waits for one of its frames.
#[test]
fn frames_held_for_a_restarted_sender_come_out_before_its_new_ones() {
    let params = params(Class::Ordered);
    let mut link = active(&params);
    send(&mut link, Side::Left, Class::Ordered, 0..20);
    let mut lossy = lose(Side::Left, &[2]);
    while link.machine(Side::Right).rx_held() < Bytes::new(3_000) {
        link.step(&mut lossy);
    }
    link.replace(Side::Left, Endpoint::new(params.clone(), 77));
    settle(&mut link);
    let got = numbers(link.delivered(Side::Right));
    assert!(got.is_sorted_by(|a, b| a < b), "{got:?}");
    assert_eq!(got.last(), Some(&19));
    assert!(!got.contains(&2));
}

#[test]
fn a_peer_that_falls_silent_is_given_up_and_frames_pass_unprotected() {
    let mut params = params(Class::Ordered);
    params.patience = 20;
    let mut link = active(&params);
    send(&mut link, Side::Left, Class::Ordered, 0..10);
    let deadline = link.now + Span::from_us(200);
    link.run(deadline, &mut |_, _| Fate::Lost);
    assert_eq!(link.events(Side::Left), [Event::PeerLost]);
    assert_eq!(link.machine(Side::Left).counters().flushed, 10);
    settle(&mut link);
    assert_eq!(states(&link), [State::Active; 2], "found again when the wire came back");
    send(&mut link, Side::Left, Class::Ordered, 10..20);
    settle(&mut link);
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(10..20));
}

#[test]
fn ends_that_do_not_agree_say_why_and_stay_dormant() {
    let good = params(Class::Ordered);
    let cases = [
        (Params { classes: Class::ALL.to_vec(), ..good.clone() }, Refusal::Classes),
        (Params { mtu: 9_000, ..good.clone() }, Refusal::Mtu),
        (Params { window_frames: 40_000, ..good.clone() }, Refusal::Window),
    ];
    for (bad, reason) in cases {
        let mut link = Duo::new(Endpoint::new(bad, 1), Endpoint::new(good.clone(), 2), SLOT, FLIGHT);
        link.command(Side::Left, Command::Activate);
        settle(&mut link);
        assert_eq!(states(&link), [State::Dormant; 2]);
        assert_eq!(link.events(Side::Left), [Event::Refused(reason)]);
    }
}

#[test]
fn another_version_is_refused() {
    let mut link = dormant(&params(Class::Ordered));
    link.command(Side::Left, Command::Activate);
    let mut old = None;
    link.step(&mut |_, packet| {
        old = packet.header.message().copied();
        Fate::Lost
    });
    let mut hello = old.unwrap();
    assert_eq!(hello.kind, SessionKind::Hello);
    hello.agreement.version = 0;
    let header = wire::link::Header::session(wire::link::Epoch::default(), hello);
    link.inject(Side::Right, guard::Packet { header, body: None });
    settle_until_dormant(&mut link);
    assert_eq!(link.events(Side::Left)[0], Event::Refused(Refusal::Version));
}

fn settle_until_dormant(link: &mut Link) {
    while link.machine(Side::Left).state() != State::Dormant {
        assert!(link.step(&mut |_, _| Fate::Arrives));
    }
}

#[test]
fn without_a_peer_frames_pass_and_the_asking_goes_on() {
    let mut link = dormant(&params(Class::Ordered));
    link.command(Side::Left, Command::Activate);
    send(&mut link, Side::Left, Class::Ordered, 0..10);
    let deadline = link.now + Span::from_us(500);
    let mut hellos = 0;
    link.run(deadline, &mut |side, packet| {
        hellos += u32::from(packet.header.kind() == Kind::Session);
        if side == Side::Right || packet.header.kind() == Kind::Session { Fate::Lost } else { Fate::Arrives }
    });
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..10));
    assert!(hellos > 10);
    link.command(Side::Left, Command::Deactivate);
    settle(&mut link);
    assert_eq!(states(&link), [State::Dormant; 2]);
}

#[test]
fn a_looped_cable_is_noticed() {
    let mut link = dormant(&params(Class::Ordered));
    link.command(Side::Left, Command::Activate);
    let mut own = None;
    link.step(&mut |_, packet| {
        own = Some(packet.clone());
        Fate::Lost
    });
    link.inject(Side::Left, own.unwrap());
    assert_eq!(link.machine(Side::Left).counters().rx_bad, 1);
    assert_eq!(link.machine(Side::Left).state(), State::Asking);
}
