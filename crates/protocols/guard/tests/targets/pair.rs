//! Arbitrary bytes on the wire of two ends. `fuzz/` has this target, too.

use guard::{Endpoint, EndpointCommand, LinkPacket};
use testkit::{Duo, Fate, Side};
use units::{Bytes, Span};
use wire::link::{Class, LinkHeader};

use crate::common::*;

/// A pair of ends whose wire carries foreign bytes among their own frames. For any such bytes, the ends
/// stay within their bounds, and once they are left alone everything waiting gets through.
pub(crate) fn pair(bytes: &[u8]) {
    let Some((&[setup, feed @ ..], mut rest)) = bytes.split_at_checked(4).map(|(head, rest)| {
        let head: &[u8; 4] = head.try_into().unwrap();
        (head, rest)
    }) else {
        return;
    };
    let class = Class::ALL[usize::from(setup & 1)];
    let mut params = params(class);
    params.patience = Span::from_us(30);
    params.window_frames = 64;
    if setup & 2 != 0 {
        params.classes = Class::ALL.to_vec();
    }
    let mut link: Link = if setup & 4 != 0 {
        established(&params)
    } else {
        Duo::new(Endpoint::new(params.clone(), 1), Endpoint::new(params.clone(), 2), SLOT, FLIGHT)
    };
    for (side, frames) in Side::BOTH.into_iter().zip(feed) {
        send(&mut link, side, class, 0..u32::from(frames % 32));
    }
    let mut arrives = |_: Side, _: &LinkPacket<Numbered>| Fate::Arrives;
    while let Some((&op, tail)) = rest.split_first() {
        rest = tail;
        let side = Side::BOTH[usize::from(op & 1)];
        match op >> 1 & 7 {
            0 => link.command(side, EndpointCommand::Activate),
            1 => link.command(side, EndpointCommand::Deactivate),
            2 => send(&mut link, side, class, 100..100 + u32::from(op >> 4)),
            3 => (0..op >> 4).for_each(|_| {
                link.step(&mut |_, _| Fate::Lost);
            }),
            4 => (0..op >> 4).for_each(|_| {
                link.step(&mut arrives);
            }),
            7 => link.inject(side, LinkPacket::bare(Numbered(8_888))),
            5 => {
                if let Ok((header, len)) = LinkHeader::parse(rest) {
                    rest = &rest[len..];
                    link.inject(side, LinkPacket { header, body: (op & 0x80 != 0).then_some(Numbered(9_999)) });
                }
            }
            _ => {
                let len = rest.len().min(usize::from(op >> 4) * 2);
                let (bytes, tail) = rest.split_at(len);
                rest = tail;
                let bad = link.machine(side).counters().rx_bad;
                link.act(side, |machine, now, out| machine.on_bytes(now, bytes, |_| Numbered(7_777), out));
                if LinkHeader::parse(bytes).is_err() {
                    assert_eq!(link.machine(side).counters().rx_bad, bad + 1, "dropped, counted, nothing else");
                }
            }
        }
    }
    let deadline = link.now + Span::from_ms(5);
    link.run(deadline, &mut arrives);
    for side in Side::BOTH {
        assert_eq!(link.waiting(side), 0, "stalled in {:?}", link.machine(side).state());
        assert!(link.machine(side).rx_peak() <= params.ordering.limit);
        assert!(link.machine(side).tx_peak() <= params.window_bytes + params.window_bytes);
        assert_eq!(link.machine(side).tx_buffered(), Bytes::ZERO, "never acknowledged");
    }
}
