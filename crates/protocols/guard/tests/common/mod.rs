//! A small link for the tests: bodies with a number, a slot of 100 ns, a flight of 300 ns.

#![allow(dead_code, reason = "each test file uses its own part")]

use guard::{Endpoint, LinkPacket, LinkTiming, Params};
use machine::{FrameBody, QueueId};
use testkit::{Duo, Fate, Side};
use units::{Rate, Span, Time};
use wire::link::{Class, FrameKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbered(pub u32);

impl FrameBody for Numbered {
    fn len(&self) -> u32 {
        1_000
    }
}

pub(crate) type End = Endpoint<Numbered>;
pub(crate) type Link = Duo<End>;

pub(crate) const SLOT: Span = Span::from_ns(100);
pub(crate) const FLIGHT: Span = Span::from_ns(300);

pub(crate) fn path() -> LinkTiming {
    LinkTiming { rate: Rate::gbps(100), delay: FLIGHT, pipeline: Span::ZERO, mtu: 1_518, burst: 5 }
}

pub(crate) fn params(class: Class) -> Params {
    Params { timeout: Span::from_us(5), dummies: dummies(), ..Params::ideal(&path(), class, 1) }
}

fn dummies() -> guard::dummies::DummyPace {
    guard::dummies::DummyPace { copies: 1, after: Span::ZERO, every: Span::from_us(1), endless: false }
}

pub(crate) fn established(params: &Params) -> Link {
    Duo::new(Endpoint::established(params.clone(), 1, 2), Endpoint::established(params.clone(), 2, 1), SLOT, FLIGHT)
}

pub(crate) fn send(link: &mut Link, side: Side, class: Class, numbers: std::ops::Range<u32>) {
    for number in numbers {
        link.send(side, QueueId(class as u8), Numbered(number));
    }
}

pub(crate) fn numbers(delivered: Vec<Numbered>) -> Vec<u32> {
    delivered.into_iter().map(|body| body.0).collect()
}

/// Runs to the end without loss. Panics if the link does not fall quiet.
pub(crate) fn settle(link: &mut Link) {
    run(link, &mut |_, _| Fate::Arrives);
}

pub(crate) fn run(link: &mut Link, fate: &mut impl FnMut(Side, &LinkPacket<Numbered>) -> Fate) {
    let deadline = link.now + Span::from_ms(20);
    assert!(link.run(deadline, fate), "the link never falls quiet");
}

/// Loses the frames of one side whose place among those sent is listed.
pub(crate) fn lose(side: Side, places: &'static [usize]) -> impl FnMut(Side, &LinkPacket<Numbered>) -> Fate {
    let mut count = 0;
    move |from, _| {
        if from != side {
            return Fate::Arrives;
        }
        count += 1;
        if places.contains(&(count - 1)) { Fate::Lost } else { Fate::Arrives }
    }
}

/// Loses the first `n` frames of a kind, from either side.
pub(crate) fn lose_first(n: usize, is: fn(&FrameKind) -> bool) -> impl FnMut(Side, &LinkPacket<Numbered>) -> Fate {
    let mut left = n;
    move |_, packet| {
        let hit = is(&packet.header.kind());
        if hit && left > 0 {
            left -= 1;
            return Fate::Lost;
        }
        Fate::Arrives
    }
}

pub(crate) fn after(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}
