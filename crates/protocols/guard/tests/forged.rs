//! Session messages that an attacker forges: for any content, once they stop the two ends find each other again by
//! themselves, and frames pass once and in order.

mod common;

use common::*;
use guard::session::{SessionState, SessionTiming};
use guard::{Endpoint, EndpointCommand, LinkPacket, Params};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use testkit::{Duo, Fate, Side};
use units::Span;
use wire::link::{Class, Epoch, LinkAgreement, LinkHeader, SessionKind, SessionMessage, SessionRefusal};

/// The timing of a live link.
const LIVE: SessionTiming =
    SessionTiming { retry: Span::from_ms(100), linger: Span::from_ms(1_000), heartbeat: Some(Span::from_ms(250)) };

/// Time within which two ends must protect again after the last forged message.
const WITHIN: Span = Span::from_ms(2_000);

fn live(class: Class) -> Params {
    let mut params = Params::host(1_518, class, 1, 64, Span::from_ms(50));
    assert_eq!(params.session, LIVE, "what holds here must hold there");
    params.session_copies = 2;
    params
}

/// A slot of 20 µs and a flight of as much: a live link's, more or less.
fn pair(params: &Params) -> Link {
    let mut link = Duo::new(
        Endpoint::new(params.clone(), INSTANCES[0]),
        Endpoint::new(params.clone(), INSTANCES[1]),
        Span::from_us(20),
        Span::from_us(20),
    );
    link.command(Side::Left, EndpointCommand::Activate);
    wait(&mut link, Span::from_ms(5));
    assert_eq!(states(&link), [SessionState::Active; 2]);
    link
}

const INSTANCES: [u32; 2] = [70_001, 140_002];

fn wait(link: &mut Link, span: Span) {
    let deadline = link.now + span;
    link.run(deadline, &mut |_, _| Fate::Arrives);
    link.now = deadline;
}

fn states(link: &Link) -> [SessionState; 2] {
    Side::BOTH.map(|side| link.machine(side).state())
}

fn inject(link: &mut Link, side: Side, message: SessionMessage) {
    link.inject(side, LinkPacket { header: LinkHeader::session(Epoch::new(message.epoch), message), body: None });
}

/// Both ends protect, and what is sent now arrives.
fn assert_well(link: &mut Link, class: Class) {
    wait(link, WITHIN);
    assert_eq!(states(link), [SessionState::Active; 2]);
    for side in Side::BOTH {
        link.delivered(side);
        send(link, side, class, 5_000..5_100);
    }
    wait(link, Span::from_ms(100));
    assert_eq!(states(link), [SessionState::Active; 2]);
    for side in Side::BOTH {
        let mut got = numbers(link.delivered(side));
        if class == Class::NonBlocking {
            got.sort_unstable();
        }
        assert_eq!(got, Vec::from_iter(5_000..5_100), "towards {side:?}");
    }
}

/// One frame of sixty bytes used to end protection until the other daemon was restarted.
#[test]
fn a_hello_of_the_last_epoch_does_not_end_protection() {
    for epoch in [0x7fff_ffff, 0x7fff_fffe, 0x8000_0000, u32::MAX, 0] {
        for instance in [9, u32::MAX, INSTANCES[1]] {
            let params = live(Class::Ordered);
            let mut link = pair(&params);
            let kind = SessionKind::Hello { asked: false };
            inject(
                &mut link,
                Side::Left,
                SessionMessage { kind, instance, heard: 0, epoch, agreement: params.agreement() },
            );
            assert_well(&mut link, Class::Ordered);
        }
    }
}

/// The two believe in different epochs that look alike on every frame, and there is nothing to send.
#[test]
fn two_ends_in_different_epochs_find_out_though_the_link_is_idle() {
    let params = live(Class::Ordered);
    let mut link = pair(&params);
    let forged = |kind, epoch| SessionMessage {
        kind,
        instance: INSTANCES[1],
        heard: INSTANCES[0],
        epoch,
        agreement: params.agreement(),
    };
    let mut lost = |_: Side, _: &LinkPacket<Numbered>| Fate::Lost;
    for epoch in [80_002, 80_004] {
        inject(&mut link, Side::Left, forged(SessionKind::Hello { asked: false }, epoch));
        inject(&mut link, Side::Left, forged(SessionKind::Confirm, epoch));
        // Left's message about it gets lost.
        let deadline = link.now + Span::from_ms(1);
        link.run(deadline, &mut lost);
    }
    assert_eq!(states(&link), [SessionState::Active; 2]);
    assert_well(&mut link, Class::Ordered);
    let bad: u64 = Side::BOTH.iter().map(|side| link.machine(*side).counters().rx_bad).sum();
    assert!(bad > 0, "what contradicts is counted");
}

/// Nobody here said so: it comes back.
#[test]
fn a_forged_bye_does_not_end_protection() {
    for both in [false, true] {
        let params = live(Class::Ordered);
        let mut link = pair(&params);
        let mut epoch = 0;
        // Its epoch is to be seen in any message.
        wait(&mut link, Span::from_ms(400));
        let deadline = link.now + Span::from_ms(600);
        link.run(deadline, &mut |_, packet| {
            epoch = packet.header.message().map_or(epoch, |message| message.epoch);
            Fate::Arrives
        });
        for side in if both { &Side::BOTH[..] } else { &Side::BOTH[..1] } {
            let kind = SessionKind::Bye { rx_empty: true };
            let (instance, heard) = (INSTANCES[side.other() as usize], INSTANCES[*side as usize]);
            inject(&mut link, *side, SessionMessage { kind, instance, heard, epoch, agreement: params.agreement() });
            let message =
                SessionMessage { kind: SessionKind::Gone, instance, heard, epoch, agreement: params.agreement() };
            inject(&mut link, *side, message);
        }
        assert_ne!(states(&link), [SessionState::Active; 2]);
        assert_well(&mut link, Class::Ordered);
    }
}

/// A protected link takes a Hello that asks for something else as not the peer's.
#[test]
fn a_hello_with_another_agreement_is_counted_and_changes_nothing_while_active() {
    let params = live(Class::Ordered);
    let mut link = pair(&params);
    for side in Side::BOTH {
        link.events(side);
    }
    let agreement = LinkAgreement { mtu: 9_000, ..params.agreement() };
    let kind = SessionKind::Hello { asked: true };
    inject(&mut link, Side::Left, SessionMessage { kind, instance: 9, heard: 0, epoch: 99_999, agreement });
    wait(&mut link, Span::from_ms(300));
    assert_eq!(states(&link), [SessionState::Active; 2]);
    assert_eq!(Side::BOTH.map(|side| link.events(side)), [vec![], vec![]]);
    assert_eq!(link.machine(Side::Left).counters().rx_bad, 1);
}

/// Left drops all that its peer says, as if it came from a stranger, and there is nothing to send.
#[test]
fn an_end_that_hears_nothing_on_an_idle_link_starts_over() {
    let params = live(Class::Ordered);
    let mut link = pair(&params);
    let deadline = link.now + Span::from_ms(1_400);
    link.run(deadline, &mut |side, _| if side == Side::Right { Fate::Lost } else { Fate::Arrives });
    link.now = deadline;
    assert_eq!(link.machine(Side::Left).state(), SessionState::Asking);
    assert_well(&mut link, Class::Ordered);
}

#[derive(Clone, Debug)]
enum Op {
    Forge { left: bool, kind: u8, epoch: (u8, u32), instance: u8, heard: u8, agreement: u8 },
    Send { left: bool, frames: u32 },
    Wait { us: u32 },
}

fn op() -> impl Strategy<Value = Op> {
    let forge = (any::<bool>(), 0..14u8, (0..8u8, any::<u32>()), 0..5u8, 0..4u8, 0..8u8).prop_map(
        |(left, kind, epoch, instance, heard, agreement)| Op::Forge { left, kind, epoch, instance, heard, agreement },
    );
    prop_oneof![
        6 => forge,
        2 => (any::<bool>(), 1..40u32).prop_map(|(left, frames)| Op::Send { left, frames }),
        2 => (1..300u32).prop_map(|us| Op::Wait { us }),
        1 => (1_000..400_000u32).prop_map(|us| Op::Wait { us }),
    ]
}

fn kind(code: u8) -> SessionKind {
    match code {
        0 => SessionKind::Hello { asked: false },
        1 => SessionKind::Hello { asked: true },
        2 => SessionKind::Welcome,
        3 => SessionKind::Confirm,
        4 => SessionKind::Unknown,
        5 => SessionKind::Bye { rx_empty: false },
        6 => SessionKind::Bye { rx_empty: true },
        7 => SessionKind::Gone,
        8 => SessionKind::Refuse(SessionRefusal::Version),
        9 => SessionKind::Refuse(SessionRefusal::Classes),
        10 => SessionKind::Refuse(SessionRefusal::Window),
        11 => SessionKind::Refuse(SessionRefusal::Mtu),
        12 => SessionKind::Refuse(SessionRefusal::Seal),
        _ => SessionKind::Refuse(SessionRefusal::Deactivated),
    }
}

/// Around the epoch last seen on the wire, around the opposite end of its circle, around where sign bits flip, or any.
fn epoch_near(seen: u32, (how, number): (u8, u32)) -> u32 {
    match how {
        0..4 => seen.wrapping_add(number % 6),
        4 => seen.wrapping_sub(number % 6),
        5 => seen.wrapping_add(0x7fff_fffd).wrapping_add(number % 6),
        6 => 0x7fff_fffd + number % 6,
        _ => number,
    }
}

fn settings() -> ProptestConfig {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    ProptestConfig {
        cases: number("HITLESS_CASES").map_or(4_000, |cases| cases as u32),
        rng_seed: RngSeed::Fixed(number("HITLESS_SEED").unwrap_or(1)),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn forge(link: &mut Link, params: &Params, seen: u32, op: &Op) {
    let Op::Forge { left, kind: code, epoch, instance, heard, agreement } = *op else { return };
    let side = if left { Side::Left } else { Side::Right };
    let (own, peer) = (INSTANCES[side as usize], INSTANCES[side.other() as usize]);
    let good = params.agreement();
    let agreement = match agreement {
        0 => LinkAgreement { mtu: 900, ..good },
        1 => LinkAgreement { window: 1, ..good },
        2 => LinkAgreement { window: 0, version: 7, ..good },
        _ => good,
    };
    let instance = [peer, peer, own, 9, u32::MAX][usize::from(instance)];
    let heard = [own, own, 0, 77][usize::from(heard)];
    inject(link, side, SessionMessage { kind: kind(code), instance, heard, epoch: epoch_near(seen, epoch), agreement });
}

proptest! {
    #![proptest_config(settings())]

    #[test]
    fn whatever_is_forged_both_ends_protect_again_and_deliver_once_and_in_order(
        class in prop_oneof![Just(Class::Ordered), Just(Class::NonBlocking)],
        both_want in any::<bool>(),
        ops in proptest::collection::vec(op(), 1..30),
    ) {
        let params = live(class);
        let mut link = pair(&params);
        if both_want {
            link.command(Side::Right, EndpointCommand::Offer);
        }
        let (mut seen, mut sent) = (0, [0; 2]);
        let mut got = [Vec::new(), Vec::new()];
        for op in &ops {
            match *op {
                Op::Forge { .. } => forge(&mut link, &params, seen, op),
                Op::Send { left, frames } => {
                    let side = if left { Side::Left } else { Side::Right };
                    let first = sent[side as usize];
                    sent[side as usize] += frames;
                    send(&mut link, side, class, first..first + frames);
                }
                Op::Wait { us } => {
                    let deadline = link.now + Span::from_us(u64::from(us));
                    link.run(deadline, &mut |_, packet| {
                        seen = packet.header.message().map_or(seen, |message| message.epoch);
                        Fate::Arrives
                    });
                    link.now = deadline;
                }
            }
            for side in Side::BOTH {
                got[side as usize].extend(numbers(link.delivered(side)));
            }
        }
        wait(&mut link, WITHIN);
        for side in Side::BOTH {
            let got = &mut got[side as usize];
            got.extend(numbers(link.delivered(side)));
            if class == Class::NonBlocking {
                got.sort_unstable();
            }
            prop_assert!(got.is_sorted_by(|a, b| a < b), "towards {side:?}: {got:?}");
        }
        assert_well(&mut link, class);
    }
}
