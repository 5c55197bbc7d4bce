//! UEC-style retry: go-back-N, tested in stories and in every pattern of losses.

mod common;

use common::{FLIGHT, Numbered, SLOT, numbers, path};
use guard::llr::{LlrEndpoint, LlrPacket, LlrProfile};
use machine::QueueId;
use testkit::{Duo, Fate, Side};
use units::{Bytes, Span};

type Link = Duo<LlrEndpoint<Numbered>>;

fn link(profile: LlrProfile) -> Link {
    Duo::new(LlrEndpoint::new(profile), LlrEndpoint::new(profile), SLOT, FLIGHT)
}

fn profile() -> LlrProfile {
    LlrProfile::for_path(&path())
}

fn send(link: &mut Link, side: Side, count: u32) {
    (0..count).for_each(|number| link.send(side, QueueId(0), Numbered(number)));
}

fn run(link: &mut Link, fate: &mut impl FnMut(Side, &LlrPacket<Numbered>) -> Fate) {
    let deadline = link.now + Span::from_ms(20);
    assert!(link.run(deadline, fate), "never falls quiet");
}

/// Loses frames, not control words, from the left whose place is listed.
fn lose(places: &'static [usize]) -> impl FnMut(Side, &LlrPacket<Numbered>) -> Fate {
    let mut count = 0;
    move |side, packet| {
        if side == Side::Right || packet.frame_len().is_none() {
            return Fate::Arrives;
        }
        count += 1;
        if places.contains(&(count - 1)) { Fate::Lost } else { Fate::Arrives }
    }
}

#[test]
fn a_gap_sends_everything_in_flight_again() {
    let mut link = link(profile());
    send(&mut link, Side::Left, 100);
    run(&mut link, &mut lose(&[5]));
    assert_eq!(numbers(link.delivered(Side::Right)), Vec::from_iter(0..100));
    let (left, right) = (link.machine(Side::Left).counters(), link.machine(Side::Right).counters());
    assert_eq!((right.tx_nack, right.rx_missing_seq, right.recovered), (1, 1, 1));
    assert!(left.tx_replay > 4, "{} frames sent again", left.tx_replay);
}

#[test]
fn a_lost_tail_waits_for_the_replay_timer() {
    let mut link = link(profile());
    send(&mut link, Side::Left, 3);
    run(&mut link, &mut lose(&[2]));
    assert_eq!(numbers(link.delivered(Side::Right)), [0, 1, 2]);
    assert_eq!(link.machine(Side::Right).counters().tx_nack, 0);
    assert!(link.now.as_ps() > profile().max_replay_timer.as_ps());
}

#[test]
fn what_is_replayed_too_often_is_flushed_and_counted_and_the_link_goes_on() {
    let mut link = link(profile());
    send(&mut link, Side::Left, 3);
    let mut left = 0;
    run(&mut link, &mut |side, packet| {
        left += u32::from(side == Side::Left && packet.frame_len().is_some());
        if left <= 12 && side == Side::Left && packet.frame_len().is_some() { Fate::Lost } else { Fate::Arrives }
    });
    assert_eq!(link.machine(Side::Left).counters().flushed, 3);
    assert_eq!(link.machine(Side::Right).counters().given_up, 3);
    send(&mut link, Side::Left, 5);
    run(&mut link, &mut |_, _| Fate::Arrives);
    assert_eq!(numbers(link.delivered(Side::Right)), [0, 1, 2, 3, 4]);
}

#[test]
fn the_replay_buffer_stays_within_its_bounds() {
    for mtu in [1_000, 9_000] {
        let profile = LlrProfile { max_outstanding_bytes: Bytes::new(10_000), mtu, ..profile() };
        let mut link = link(profile);
        send(&mut link, Side::Left, 100);
        run(&mut link, &mut lose(&[7, 30]));
        assert_eq!(link.delivered(Side::Right).len(), 100);
        assert!(link.machine(Side::Left).tx_peak() <= Bytes::new(10_000));
    }
}

/// Every pattern of losses over the first transmissions, both ways, control words included.
#[test]
fn nothing_stalls_duplicates_or_overtakes() {
    const DEPTH: u32 = 13;
    for pattern in 0..1u32 << DEPTH {
        let mut link = link(profile());
        send(&mut link, Side::Left, 5);
        send(&mut link, Side::Right, 2);
        let mut sent = 0;
        run(&mut link, &mut |_, _| {
            sent += 1;
            if sent <= DEPTH && pattern >> (sent - 1) & 1 == 1 { Fate::Lost } else { Fate::Arrives }
        });
        for (side, count) in [(Side::Right, 5), (Side::Left, 2)] {
            let got = numbers(link.delivered(side));
            assert!(got.is_sorted_by(|a, b| a < b), "losing {pattern:b}: {got:?}");
            let given_up = link.machine(side).counters().given_up;
            assert_eq!(got.len() as u64 + given_up, count, "losing {pattern:b}: {got:?}");
        }
    }
}
