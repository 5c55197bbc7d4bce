//! A link starts, stops, and survives the restart of one end.

mod common;

use common::*;
use guard::session::{Lifecycle, SessionState, SessionStep};
use guard::{Endpoint, EndpointCommand, EndpointEvent, Params};
use testkit::{Duo, Fate, Side};
use units::{Bytes, Span};
use wire::link::{Class, FrameKind, SessionKind, SessionRefusal};

fn dormant(params: &Params) -> Link {
    Duo::new(Endpoint::new(params.clone(), 1), Endpoint::new(params.clone(), 2), SLOT, FLIGHT)
}

fn active(params: &Params) -> Link {
    let mut link = dormant(params);
    link.command(Side::Left, EndpointCommand::Activate);
    settle(&mut link);
    link.events(Side::Left);
    link.events(Side::Right);
    link
}

fn states(link: &Link) -> [SessionState; 2] {
    Side::BOTH.map(|side| link.machine(side).state())
}

#[test]
fn a_dormant_link_passes_frames_as_they_are() {
    let mut link = dormant(&params(Class::Ordered));
    send(&mut link, Side::Left, Class::Ordered, 0..5);
    run(&mut link, &mut |_, packet| {
        assert_eq!((packet.header.kind(), packet.frame_len()), (FrameKind::Bare, 1_000));
        Fate::Arrives
    });
    assert_eq!(numbers(link.delivered(Side::Right)), [0, 1, 2, 3, 4]);
}

#[test]
fn one_end_asks_and_both_are_active() {
    for asks in [&[Side::Left][..], &[Side::Right], &Side::BOTH] {
        let mut link = dormant(&params(Class::Ordered));
        for side in asks {
            link.command(*side, EndpointCommand::Activate);
        }
        settle(&mut link);
        assert_eq!(states(&link), [SessionState::Active; 2]);
        for side in Side::BOTH {
            assert_eq!(link.events(side), [EndpointEvent::Activated]);
        }
    }
}

#[test]
fn two_ends_that_ask_at_once_agree_though_the_first_hello_is_lost() {
    for first in 0..2 {
        let mut link = dormant(&params(Class::Ordered));
        for side in Side::BOTH {
            link.command(side, EndpointCommand::Activate);
        }
        run(&mut link, &mut lose(Side::BOTH[first], &[0]));
        assert_eq!(states(&link), [SessionState::Active; 2]);
    }
}

/// A frame of an earlier incarnation with the same epoch passes for a Confirm, and the Welcome is lost.
#[test]
fn an_end_that_thinks_itself_active_still_answers_a_hello() {
    let params = params(Class::Ordered);
    let mut link = dormant(&params);
    link.command(Side::Left, EndpointCommand::Activate);
    let lose_welcome = |_: Side, packet: &guard::LinkPacket<Numbered>| match packet.header.message() {
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
    let dummy = wire::link::FrameKind::Dummy(Class::Ordered, params.first_seq.previous());
    link.inject(Side::Right, guard::LinkPacket::new(epoch.unwrap(), dummy, None, None));
    assert_eq!(states(&link), [SessionState::Asking, SessionState::Active]);
    settle(&mut link);
    assert_eq!(states(&link), [SessionState::Active; 2]);
}

/// Frames flow all the while, both ways; each message of the handshake may be lost.
#[test]
fn nothing_is_lost_or_reordered_when_protection_starts_or_ends() {
    for class in Class::ALL {
        for lost in 0u32..1 << 9 {
            let mut link = dormant(&params(class));
            let mut sessions = 0;
            let mut lose_sessions = |_: Side, packet: &guard::LinkPacket<Numbered>| {
                if packet.header.kind() != FrameKind::Session {
                    return Fate::Arrives;
                }
                sessions += 1;
                if sessions <= 9 && lost >> (sessions - 1) & 1 == 1 { Fate::Lost } else { Fate::Arrives }
            };
            send(&mut link, Side::Left, class, 0..30);
            send(&mut link, Side::Right, class, 0..30);
            link.command(Side::Left, EndpointCommand::Activate);
            run(&mut link, &mut lose_sessions);
            assert_eq!(states(&link), [SessionState::Active; 2], "losing {lost:b}");
            send(&mut link, Side::Left, class, 30..60);
            send(&mut link, Side::Right, class, 30..60);
            link.step(&mut lose_sessions);
            link.command(Side::Right, EndpointCommand::Deactivate);
            run(&mut link, &mut lose_sessions);
            assert_eq!(states(&link), [SessionState::Dormant; 2], "losing {lost:b}");
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
        link.command(Side::Left, EndpointCommand::Deactivate);
        run(&mut link, &mut lossy);
        assert_eq!(states(&link), [SessionState::Dormant; 2]);
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
        link.command(Side::Left, EndpointCommand::Activate);
        send(&mut link, Side::Left, Class::Ordered, round * 20..round * 20 + 10);
        settle(&mut link);
        link.command(Side::Right, EndpointCommand::Deactivate);
        send(&mut link, Side::Left, Class::Ordered, round * 20 + 10..round * 20 + 20);
        settle(&mut link);
    }
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..200));
    assert_eq!(states(&link), [SessionState::Dormant; 2]);
}

#[test]
fn ends_made_active_can_be_deactivated_like_any_other() {
    let mut link = established(&params(Class::Ordered));
    send(&mut link, Side::Left, Class::Ordered, 0..20);
    link.command(Side::Left, EndpointCommand::Deactivate);
    settle(&mut link);
    assert_eq!(states(&link), [SessionState::Dormant; 2]);
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..20));
    for side in Side::BOTH {
        assert_eq!(link.events(side), [EndpointEvent::Deactivated]);
    }
}

#[test]
fn any_epoch_is_followed_by_another() {
    for epoch in [u32::MAX, 0x7fff_ffff, 0x8000_0000] {
        let params = params(Class::Ordered);
        let mut link = dormant(&params);
        let message = wire::link::SessionMessage {
            kind: SessionKind::Hello { asked: false },
            instance: 9,
            heard: 0,
            epoch,
            agreement: params.agreement(),
        };
        let header = wire::link::LinkHeader::session(wire::link::Epoch::default(), message);
        link.inject(Side::Left, guard::LinkPacket { header, body: None });
        settle(&mut link);
        link.command(Side::Left, EndpointCommand::Activate);
        settle(&mut link);
        assert_eq!(states(&link), [SessionState::Active; 2], "{epoch:#x}");
    }
}

/// The peer restarted dormant and nobody noticed, because there was nothing to send.
#[test]
fn a_bye_that_nobody_knows_of_is_answered_and_the_link_closes_at_once() {
    let params = params(Class::Ordered);
    let mut link = active(&params);
    link.replace(Side::Right, Endpoint::new(params.clone(), 77));
    let asked = link.now;
    link.command(Side::Left, EndpointCommand::Deactivate);
    send(&mut link, Side::Left, Class::Ordered, 0..3);
    while states(&link) != [SessionState::Dormant; 2] {
        assert!(link.step(&mut |_, _| Fate::Arrives));
    }
    let took = link.now.since(asked);
    assert!(took < params.session.retry, "a round trip, not a number of tries: {took:?}");
    settle(&mut link);
    assert_eq!(numbers(link.delivered(Side::Right)), [0, 1, 2]);
}

/// Nobody answers at all.
#[test]
fn a_farewell_ends_after_a_time_whatever_the_peer_does() {
    let mut params = params(Class::Ordered);
    params.session.linger = params.session.retry * 10;
    let mut link = active(&params);
    let asked = link.now;
    link.command(Side::Left, EndpointCommand::Deactivate);
    while link.machine(Side::Left).state() != SessionState::Dormant {
        assert!(link.step(&mut |_, _| Fate::Lost));
    }
    let took = link.now.since(asked);
    assert!(took >= params.session.linger && took <= params.session.retry * 11, "{took:?}");
    assert_eq!(link.events(Side::Left), [EndpointEvent::Deactivated]);
}

/// A program that was not running has not been waiting: the peer gets its chance to answer.
#[test]
fn a_stall_of_our_own_does_not_end_a_farewell() {
    let params = params(Class::Ordered);
    let mut life = Lifecycle::new(1, params.agreement(), params.session, 1);
    life.establish(2);
    assert!(!life.deactivate(after(1)));
    life.try_to_close(true, true);
    let late = after(1) + params.session.linger * 5;
    let steps = [0, 1, 2, 3].map(|n| life.on_retry(late + params.session.retry * n, false));
    assert_eq!(steps, [SessionStep::Nothing, SessionStep::Nothing, SessionStep::Nothing, SessionStep::Closed]);
}

#[test]
fn a_farewell_of_a_live_link_lasts_a_second_at_most() {
    assert_eq!(Params::host(1_518, Class::Ordered, 2, 1_024, Span::from_ms(50)).session.linger, Span::from_ms(1_000));
}

#[test]
fn a_peer_that_restarts_does_not_undo_a_deactivation() {
    let params = params(Class::Ordered);
    for (command, states_then) in [
        // A daemon that starts offers protection; it has not been asked.
        (EndpointCommand::Offer, [SessionState::Dormant; 2]),
        (EndpointCommand::Activate, [SessionState::Active; 2]),
    ] {
        let mut link = active(&params);
        link.command(Side::Left, EndpointCommand::Deactivate);
        settle(&mut link);
        link.replace(Side::Right, Endpoint::new(params.clone(), 77));
        for side in Side::BOTH {
            link.events(side);
        }
        link.command(Side::Right, command);
        settle(&mut link);
        assert_eq!(states(&link), states_then, "{command:?}");
        if command == EndpointCommand::Offer {
            assert!(link.machine(Side::Left).is_deactivated());
            assert_eq!(link.events(Side::Right), [EndpointEvent::Refused(SessionRefusal::Deactivated)]);
            assert_eq!(link.events(Side::Left), []);
        }
    }
}

/// The latest command counts, for either end that is activated, and with either end or both deactivated before.
#[test]
fn a_deactivated_link_is_activated_from_either_end() {
    for deactivated in [&[Side::Left][..], &[Side::Right], &Side::BOTH] {
        for activated in Side::BOTH {
            let mut link = active(&params(Class::Ordered));
            for side in deactivated {
                link.command(*side, EndpointCommand::Deactivate);
            }
            settle(&mut link);
            assert_eq!(states(&link), [SessionState::Dormant; 2]);
            link.command(activated, EndpointCommand::Activate);
            settle(&mut link);
            assert_eq!(states(&link), [SessionState::Active; 2], "{deactivated:?}, then {activated:?}");
        }
    }
}

/// The end that was not deactivated keeps offering, and is protected as soon as the other one is asked to.
#[test]
fn an_end_that_wants_protection_keeps_trying_and_disturbs_nobody() {
    let mut params = params(Class::Ordered);
    params.session.heartbeat = Some(params.session.retry * 5);
    let a_while = params.session.retry * 100;
    let mut link = dormant(&params);
    for side in Side::BOTH {
        link.command(side, EndpointCommand::Offer);
    }
    let deadline = link.now + a_while;
    link.run(deadline, &mut |_, _| Fate::Arrives);
    assert_eq!(
        Side::BOTH.map(|side| link.events(side)),
        [vec![EndpointEvent::Activated], vec![EndpointEvent::Activated]]
    );
    link.command(Side::Left, EndpointCommand::Deactivate);
    let deadline = link.now + a_while;
    let mut refused = 0;
    link.run(deadline, &mut |_, packet| {
        let message = packet.header.message();
        refused += u32::from(message.is_some_and(|m| m.kind == SessionKind::Refuse(SessionRefusal::Deactivated)));
        Fate::Arrives
    });
    assert_eq!(states(&link), [SessionState::Dormant; 2]);
    assert_eq!(
        Side::BOTH.map(|side| link.events(side)),
        [vec![EndpointEvent::Deactivated], vec![EndpointEvent::Deactivated]]
    );
    assert!((10..40).contains(&refused), "{refused}");
    link.command(Side::Left, EndpointCommand::Offer);
    let deadline = link.now + a_while;
    link.run(deadline, &mut |_, _| Fate::Arrives);
    assert_eq!(states(&link), [SessionState::Active; 2]);
}

/// A wire that breaks while somebody deactivates one end: when it is back, the other's asking is declined.
#[test]
fn losing_sight_of_each_other_does_not_undo_a_deactivation() {
    let mut params = params(Class::Ordered);
    params.patience = Span::from_us(20);
    let mut link = active(&params);
    for side in Side::BOTH {
        send(&mut link, side, Class::Ordered, 0..10);
    }
    let deadline = link.now + Span::from_us(200);
    link.run(deadline, &mut |_, _| Fate::Lost);
    assert_eq!(states(&link), [SessionState::Asking; 2]);
    link.command(Side::Left, EndpointCommand::Deactivate);
    settle(&mut link);
    assert_eq!(states(&link), [SessionState::Dormant; 2]);
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
    assert_eq!(states(&link), [SessionState::Active; 2]);
    assert_eq!(link.events(Side::Left), [EndpointEvent::PeerLost, EndpointEvent::Activated]);
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
        link.command(Side::Left, EndpointCommand::Deactivate);
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
    params.patience = Span::from_us(20);
    let mut link = active(&params);
    send(&mut link, Side::Left, Class::Ordered, 0..10);
    let deadline = link.now + Span::from_us(200);
    link.run(deadline, &mut |_, _| Fate::Lost);
    assert_eq!(link.events(Side::Left), [EndpointEvent::PeerLost]);
    assert_eq!(link.machine(Side::Left).counters().flushed, 10);
    settle(&mut link);
    assert_eq!(states(&link), [SessionState::Active; 2], "found again when the wire came back");
    send(&mut link, Side::Left, Class::Ordered, 10..20);
    settle(&mut link);
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(10..20));
}

#[test]
fn ends_that_do_not_agree_say_why_and_stay_dormant() {
    let good = params(Class::Ordered);
    let cases = [
        (Params { classes: Class::ALL.to_vec(), ..good.clone() }, SessionRefusal::Classes),
        (Params { mtu: 9_000, ..good.clone() }, SessionRefusal::Mtu),
        (Params { window_frames: 40_000, ..good.clone() }, SessionRefusal::Window),
    ];
    for (bad, reason) in cases {
        let mut link = Duo::new(Endpoint::new(bad, 1), Endpoint::new(good.clone(), 2), SLOT, FLIGHT);
        link.command(Side::Left, EndpointCommand::Activate);
        settle(&mut link);
        assert_eq!(states(&link), [SessionState::Dormant; 2]);
        assert_eq!(link.events(Side::Left), [EndpointEvent::Refused(reason)]);
    }
}

#[test]
fn another_version_is_refused() {
    let mut link = dormant(&params(Class::Ordered));
    link.command(Side::Left, EndpointCommand::Activate);
    let mut old = None;
    link.step(&mut |_, packet| {
        old = packet.header.message().copied();
        Fate::Lost
    });
    let mut hello = old.unwrap();
    assert_eq!(hello.kind, SessionKind::Hello { asked: true });
    hello.agreement.version = 0;
    let header = wire::link::LinkHeader::session(wire::link::Epoch::default(), hello);
    link.inject(Side::Right, guard::LinkPacket { header, body: None });
    settle_until_dormant(&mut link);
    assert_eq!(link.events(Side::Left)[0], EndpointEvent::Refused(SessionRefusal::Version));
}

fn settle_until_dormant(link: &mut Link) {
    while link.machine(Side::Left).state() != SessionState::Dormant {
        assert!(link.step(&mut |_, _| Fate::Arrives));
    }
}

#[test]
fn without_a_peer_frames_pass_and_the_asking_goes_on() {
    let mut link = dormant(&params(Class::Ordered));
    link.command(Side::Left, EndpointCommand::Activate);
    send(&mut link, Side::Left, Class::Ordered, 0..10);
    let deadline = link.now + Span::from_us(500);
    let mut hellos = 0;
    link.run(deadline, &mut |side, packet| {
        hellos += u32::from(packet.header.kind() == FrameKind::Session);
        if side == Side::Right || packet.header.kind() == FrameKind::Session { Fate::Lost } else { Fate::Arrives }
    });
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..10));
    assert!(hellos > 10);
    link.command(Side::Left, EndpointCommand::Deactivate);
    settle(&mut link);
    assert_eq!(states(&link), [SessionState::Dormant; 2]);
}

#[test]
fn a_looped_cable_is_noticed() {
    let mut link = dormant(&params(Class::Ordered));
    link.command(Side::Left, EndpointCommand::Activate);
    let mut own = None;
    link.step(&mut |_, packet| {
        own = Some(packet.clone());
        Fate::Lost
    });
    link.inject(Side::Left, own.unwrap());
    assert_eq!(link.machine(Side::Left).counters().rx_bad, 1);
    assert_eq!(link.machine(Side::Left).state(), SessionState::Asking);
}
