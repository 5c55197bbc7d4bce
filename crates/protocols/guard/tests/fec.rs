//! Link-local error correction, tested in stories, in statistics and in arbitrary patterns of losses.

mod common;

use common::{FLIGHT, Numbered, SLOT, numbers};
use guard::fec::{FecConfig, FecEndpoint, FecPacket, PARITY_HEADER, effective_loss};
use guard::{Counters, EndpointNote};
use machine::{FrameBody, Machine, Port, Pull, QueueId};
use proptest::prelude::*;
use testkit::{Duo, Fate, RecordedAction, Recorder, Side};
use units::{Bytes, Prob, Span, Time};
use wire::ethernet::on_wire;
use wire::link::Class;

type Link = Duo<FecEndpoint<Numbered>>;

/// Blocks of five with one parity frame; a slot is 100 ns.
fn config() -> FecConfig {
    FecConfig { k: 5, h: 1, close_after: Span::from_us(2), give_up_after: Span::from_us(4), ordered: true }
}

fn link(config: FecConfig) -> Link {
    Duo::new(FecEndpoint::new(config), FecEndpoint::new(config), SLOT, FLIGHT)
}

fn send(link: &mut Link, side: Side, numbers: std::ops::Range<u32>) {
    numbers.for_each(|number| link.send(side, QueueId(0), Numbered(number)));
}

fn run(link: &mut Link, fate: &mut impl FnMut(Side, &FecPacket<Numbered>) -> Fate) {
    let deadline = link.now + Span::from_ms(20);
    assert!(link.run(deadline, fate), "never falls quiet");
}

/// Loses what the left sends, parity included, by its place.
fn lose(places: &[usize]) -> impl FnMut(Side, &FecPacket<Numbered>) -> Fate {
    let mut count = 0;
    move |side, _| {
        count += usize::from(side == Side::Left);
        if side == Side::Left && places.contains(&(count - 1)) { Fate::Lost } else { Fate::Arrives }
    }
}

fn received(link: &Link) -> &Counters {
    link.machine(Side::Right).counters()
}

/// Packet that the last pull put on the wire.
fn sent<B: FrameBody>(out: &mut Recorder<FecEndpoint<B>>) -> FecPacket<B> {
    let mut packets =
        out.acts().into_iter().filter_map(|act| if let RecordedAction::Transmit(it) = act { Some(it) } else { None });
    packets.next().expect("a pull that sent")
}

const CLASS: Class = Class::Ordered;

#[test]
fn a_full_block_is_followed_by_its_parity() {
    let (mut end, mut out) = (FecEndpoint::new(config()), Recorder::default());
    out.above[0].extend((0..6).map(Numbered));
    let mut lengths = Vec::new();
    while end.pull(Time::ZERO, Port(0), &mut out) == Pull::Sent {
        lengths.push(sent(&mut out).frame_len());
    }
    assert_eq!(lengths, [1_000, 1_000, 1_000, 1_000, 1_000, 1_000 + PARITY_HEADER, 1_000]);
}

#[test]
fn without_loss_nothing_waits() {
    let mut link = link(config());
    send(&mut link, Side::Left, 0..12);
    send(&mut link, Side::Right, 0..7);
    run(&mut link, &mut |_, _| Fate::Arrives);
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..12));
    assert_eq!(numbers(link.delivered(Side::Left)), Vec::from_iter(0..7));
    assert_eq!(link.notes(Side::Right), []);
    assert_eq!(link.machine(Side::Right).rx_peak(), Bytes::ZERO);
    assert_eq!(link.machine(Side::Left).counters().tx_replay, 3, "two full blocks and a short one");
    assert!(link.machine(Side::Left).is_drained());
}

#[test]
fn one_loss_in_every_block_is_recovered_in_order() {
    let mut link = link(config());
    send(&mut link, Side::Left, 0..15);
    run(&mut link, &mut lose(&[1, 6, 16]));
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..15));
    assert_eq!((received(&link).recovered, received(&link).given_up), (3, 0));
    assert_eq!(
        link.notes(Side::Right),
        [
            EndpointNote::Missing { class: CLASS, frames: 1 },
            EndpointNote::Recovered { class: CLASS, after: SLOT * 3 },
            EndpointNote::Missing { class: CLASS, frames: 1 },
            EndpointNote::Recovered { class: CLASS, after: SLOT * 4 },
            EndpointNote::Missing { class: CLASS, frames: 1 },
            EndpointNote::Recovered { class: CLASS, after: Span::ZERO },
        ],
        "from the frame behind the gap to the parity; a lost tail is only seen with it"
    );
    assert_eq!(link.machine(Side::Right).rx_peak(), Bytes::new(5_000));
}

#[test]
fn two_losses_are_too_many_and_later_blocks_do_not_suffer() {
    let mut link = link(config());
    send(&mut link, Side::Left, 0..10);
    run(&mut link, &mut lose(&[1, 3, 7]));
    assert_eq!(numbers(link.delivered(Side::Right)), [0, 2, 4, 5, 6, 7, 8, 9]);
    assert_eq!((received(&link).recovered, received(&link).given_up), (1, 2));
}

#[test]
fn two_parity_frames_make_good_two_losses() {
    let mut link = link(FecConfig { h: 2, ..config() });
    send(&mut link, Side::Left, 0..10);
    run(&mut link, &mut lose(&[0, 4, 10, 12]));
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..10));
    assert_eq!(received(&link).recovered, 3, "the fourth loss was parity");
}

#[test]
fn a_short_block_is_closed_by_the_timer_so_that_its_tail_is_safe() {
    let mut link = link(config());
    send(&mut link, Side::Left, 0..3);
    run(&mut link, &mut lose(&[2]));
    assert_eq!(numbers(link.delivered(Side::Right)), [0, 1, 2]);
    assert_eq!(received(&link).recovered, 1);
    assert!(link.now.as_ps() >= config().close_after.as_ps());
}

#[test]
fn lost_parity_is_harmless() {
    let mut link = link(config());
    send(&mut link, Side::Left, 0..10);
    run(&mut link, &mut lose(&[5]));
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..10));
    assert_eq!(link.notes(Side::Right), []);
}

#[test]
fn a_frame_and_its_parity_lost_hold_up_only_until_the_next_block() {
    let mut link = link(config());
    send(&mut link, Side::Left, 0..6);
    run(&mut link, &mut lose(&[2, 5]));
    assert_eq!(numbers(link.delivered(Side::Right)), [0, 1, 3, 4, 5]);
    assert_eq!(received(&link).given_up, 1);
}

#[test]
fn if_nothing_follows_the_timer_lets_go_of_what_is_held() {
    let mut link = link(config());
    send(&mut link, Side::Left, 0..5);
    run(&mut link, &mut lose(&[2, 5]));
    assert_eq!(numbers(link.delivered(Side::Right)), [0, 1, 3, 4]);
    assert_eq!(received(&link).given_up, 1);
    assert!(link.now.as_ps() >= config().give_up_after.as_ps());
}

#[test]
fn whole_blocks_that_vanish_are_counted() {
    let mut link = link(config());
    send(&mut link, Side::Left, 0..16);
    run(&mut link, &mut lose(&Vec::from_iter(3..18)));
    assert_eq!(numbers(link.delivered(Side::Right)), [0, 1, 2, 15]);
    assert_eq!((received(&link).rx_missing_seq, received(&link).given_up), (12, 12));
}

#[test]
fn without_order_frames_pass_and_recovered_ones_come_behind() {
    let mut link = link(FecConfig { ordered: false, ..config() });
    send(&mut link, Side::Left, 0..7);
    run(&mut link, &mut lose(&[1]));
    assert_eq!(numbers(link.delivered(Side::Right)), [0, 2, 3, 4, 1, 5, 6]);
    assert_eq!(link.machine(Side::Right).rx_peak(), Bytes::ZERO);
}

#[derive(Clone, Copy, Debug)]
struct Full;

impl FrameBody for Full {
    fn len(&self) -> u32 {
        1_518
    }
}

/// LinkGuardian's Table 3: TCP goodput of a saturated 10G link.
#[test]
fn parity_costs_the_share_of_the_link_that_table_3_says() {
    for (k, printed) in [(25, "9.13"), (5, "7.91")] {
        let (mut end, mut out) = (FecEndpoint::new(FecConfig { k, ..config() }), Recorder::default());
        out.above[0].extend([Full; 2_500]);
        let (mut payload, mut wire) = (0, 0);
        while end.pull(Time::ZERO, Port(0), &mut out) == Pull::Sent {
            let packet = sent(&mut out);
            payload += if packet.body().is_some() { 1_460 } else { 0 };
            wire += on_wire(packet.frame_len());
        }
        assert_eq!(format!("{:.2}", 10.0 * f64::from(payload) / f64::from(wire)), printed, "k = {k}");
    }
}

/// Splitmix64: a few hundred thousand independent coin tosses.
struct Coin(u64);

impl Coin {
    fn falls(&mut self, probability: f64) -> bool {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64 <= probability
    }
}

#[test]
fn effective_loss_is_that_of_the_binomial_distribution() {
    const FRAMES: u32 = 200_000;
    let patient = FecConfig { close_after: Span::from_us(10), give_up_after: Span::from_us(20), ..config() };
    for (k, h, loss) in [(25, 1, 1e-2), (5, 1, 1e-2), (5, 1, 5e-2), (10, 2, 5e-2), (20, 4, 0.1)] {
        let (mut link, mut coin) = (link(FecConfig { k, h, ..patient }), Coin(u64::from(k)));
        send(&mut link, Side::Left, 0..FRAMES);
        let deadline = link.now + Span::from_ms(100);
        assert!(link.run(deadline, &mut |_, _| if coin.falls(loss) { Fate::Lost } else { Fate::Arrives }));
        let given_up = FRAMES as usize - link.delivered(Side::Right).len();
        let expected = effective_loss(Prob::literal(loss), k, h).get() * f64::from(FRAMES);
        // Frames are lost several at a time, hardly ever more than two beyond what the parity makes good.
        let sigma = (expected * f64::from(h + 2)).sqrt();
        let off = (given_up as f64 - expected).abs();
        assert!(off < 3.0 * sigma, "({k}, {h}) at {loss}: {given_up}, not {expected:.0}");
    }
}

/// Frames that must come out: all of a block that loses no more than `h`, and those that arrived of the others.
fn survivors(frames: u32, config: &FecConfig, lost: impl Fn(usize) -> bool) -> Vec<u32> {
    let (k, h) = (u32::from(config.k), usize::from(config.h));
    let (mut survivors, mut at) = (Vec::new(), 0);
    for first in (0..frames).step_by(k as usize) {
        let block = first..(first + k).min(frames);
        let sent = at..at + block.len() + h;
        let recovers = sent.clone().filter(|place| lost(*place)).count() <= h;
        survivors.extend(block.zip(sent.clone()).filter_map(|(frame, at)| (recovers || !lost(at)).then_some(frame)));
        at = sent.end;
    }
    survivors
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_block_is_recovered_exactly_if_it_loses_no_more_than_its_parity(
        k in 1..9u16,
        h in 1..4u16,
        frames in 0..60u32,
        lost in proptest::collection::vec(proptest::bool::weighted(0.2), 0..120),
    ) {
        let config = FecConfig { k, h, ..config() };
        let lost = |place: usize| lost.get(place).copied().unwrap_or(false);
        let mut link = link(config);
        send(&mut link, Side::Left, 0..frames);
        send(&mut link, Side::Right, 0..frames / 2);
        let mut sent = 0;
        run(&mut link, &mut |side, _| {
            sent += usize::from(side == Side::Left);
            if side == Side::Left && lost(sent - 1) { Fate::Lost } else { Fate::Arrives }
        });
        prop_assert_eq!(numbers(link.delivered(Side::Right)), survivors(frames, &config, lost));
        prop_assert_eq!(numbers(link.delivered(Side::Left)), Vec::from_iter(0..frames / 2));
        for side in Side::BOTH {
            prop_assert!(link.machine(side).is_drained() && link.machine(side).rx_held() == Bytes::ZERO);
        }
    }
}
