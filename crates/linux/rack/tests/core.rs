//! The switch in memory, in a time of its own: frames in, frames out, every one of them accounted for.

use proptest::prelude::*;
use rack::switch::{AddressMove, PortConfig, SwitchCore, SwitchPortCounters};
use units::{Bytes, Rate, Span, Time};

const FULL: usize = 1_514;
const EVERYONE: u8 = 0xff;
/// The port whose priorities count.
const TRUSTED: usize = 2;

/// Four ports of 1 Gb/s; behind each one the host of the same number.
fn switch(buffer: u64) -> SwitchCore {
    let port = |name: usize| PortConfig {
        name: format!("p{name}"),
        rate: Rate::gbps(1),
        buffer: Bytes::new(buffer),
        longest: FULL + 8,
        trusts_priority: name == TRUSTED,
    };
    SwitchCore::new(&(0..4).map(port).collect::<Vec<_>>(), Span::from_ms(300_000))
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn address(host: u8) -> [u8; 6] {
    if host == EVERYONE { [0xff; 6] } else { [2, 0, 0, 0, 0, host] }
}

fn frame(from: u8, to: u8, len: usize) -> Vec<u8> {
    let mut frame = [&address(to)[..], &address(from), &[0x08, 0x00]].concat();
    frame.resize(len.max(14), from);
    frame
}

/// Lengths of what has left each port by then.
fn departed(switch: &mut SwitchCore, now: Time) -> Vec<Vec<usize>> {
    switch.serve(now);
    let of = |switch: &mut SwitchCore, port| {
        let mut lengths = Vec::new();
        let done = switch.take_departed(port, |frame| {
            lengths.push(frame.len());
            Ok::<_, ()>(true)
        });
        assert_eq!(done, Ok(!lengths.is_empty()));
        lengths
    };
    (0..switch.ports()).map(|port| of(switch, port)).collect()
}

/// Every host has been heard, and what it sent has left.
fn introduced(buffer: u64) -> SwitchCore {
    let mut switch = switch(buffer);
    (0..4).for_each(|host| switch.on_frame(at(0), host, &frame(host as u8, host as u8, 60)));
    switch
}

#[test]
fn a_frame_goes_to_everyone_until_its_destination_has_been_heard() {
    let mut switch = switch(100_000);
    switch.on_frame(at(0), 0, &frame(0, 1, 100));
    assert_eq!(departed(&mut switch, at(100)), [vec![], vec![100], vec![100], vec![100]]);
    switch.on_frame(at(100), 1, &frame(1, 0, 200));
    switch.on_frame(at(100), 0, &frame(0, 1, 300));
    assert_eq!(departed(&mut switch, at(200)), [vec![200], vec![300], vec![], vec![]]);
    assert_eq!((switch.counters(0).flooded, switch.counters(1).flooded), (1, 0));
}

#[test]
fn broadcast_multicast_spanning_tree_and_neighbours_reports_reach_everyone() {
    let mut switch = introduced(100_000);
    let spanning_tree = [0x01, 0x80, 0xc2, 0, 0, 0x00];
    let lldp = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
    let ipv6 = [0x33, 0x33, 0, 0, 0, 1];
    for to in [address(EVERYONE), spanning_tree, lldp, ipv6] {
        let mut sent = frame(2, 0, 100);
        sent[..6].copy_from_slice(&to);
        switch.on_frame(at(10), 2, &sent);
    }
    assert_eq!(departed(&mut switch, at(100)), [vec![100; 4], vec![100; 4], vec![], vec![100; 4]]);
}

#[test]
fn a_pause_ends_at_its_port_and_a_host_hears_nothing_of_itself() {
    let mut switch = introduced(100_000);
    let mut pause = frame(0, EVERYONE, 60);
    pause[12..14].copy_from_slice(&[0x88, 0x08]);
    switch.on_frame(at(10), 0, &pause);
    switch.on_frame(at(10), 0, &frame(0, 0, 60));
    assert!(departed(&mut switch, at(100)).concat().is_empty());
    // One of them introduced the host.
    assert_eq!(switch.counters(0).filtered, 3);
}

#[test]
fn a_host_that_uses_anothers_address_gets_nothing_of_its_traffic() {
    let mut switch = introduced(100_000);
    switch.on_frame(at(10), 3, &frame(1, 0, 60));
    switch.on_frame(at(10), 0, &frame(0, 1, 500));
    assert_eq!(departed(&mut switch, at(100)), [vec![], vec![500], vec![], vec![]]);
    assert_eq!(switch.counters(3).foreign_source, 1);
    // Nor while the cable of the other one is out for a moment.
    switch.port_down(1);
    switch.on_frame(at(200), 3, &frame(1, 0, 60));
    switch.on_frame(at(200), 0, &frame(0, 1, 500));
    assert_eq!(departed(&mut switch, at(300)), [vec![], vec![500], vec![], vec![]]);
}

#[test]
fn a_host_that_squats_on_an_address_loses_it_with_the_owners_next_frame() {
    let mut switch = introduced(100_000);
    switch.port_down(1);
    let second = 1_000_000;
    // The owner is away, and the squatter repeats itself.
    for number in 2..20 {
        switch.on_frame(at(number * second), 3, &frame(1, 0, 60));
    }
    assert_eq!(switch.take_moves(), [AddressMove { address: address(1), from: 1, to: 3 }]);
    departed(&mut switch, at(20 * second));
    switch.on_frame(at(20 * second), 1, &frame(1, 0, 60));
    switch.on_frame(at(20 * second), 3, &frame(1, 0, 60));
    switch.on_frame(at(20 * second), 0, &frame(0, 1, 500));
    assert_eq!(departed(&mut switch, at(21 * second)), [vec![60], vec![500], vec![], vec![]]);
    assert_eq!((switch.counters(1).moved, switch.counters(3).foreign_source), (1, 1));
}

#[test]
fn an_address_that_moves_to_another_port_is_reached_there_after_a_second() {
    let mut switch = introduced(100_000);
    switch.on_frame(at(1_000_000), 3, &frame(1, EVERYONE, 60));
    departed(&mut switch, at(1_100_000));
    switch.on_frame(at(1_200_000), 0, &frame(0, 1, 500));
    assert_eq!(departed(&mut switch, at(1_300_000)), [vec![], vec![], vec![], vec![500]]);
}

#[test]
fn a_bound_address_is_reached_at_its_port_whoever_uses_it() {
    let mut switch = switch(100_000);
    assert!(switch.bind(address(1), 1) && !switch.bind(address(1), 2));
    for second in 0..10 {
        switch.on_frame(at(second * 1_000_000), 3, &frame(1, 1, 60));
    }
    switch.on_frame(at(10_000_000), 0, &frame(0, 1, 500));
    assert_eq!(departed(&mut switch, at(11_000_000)), [vec![], vec![500], vec![], vec![]]);
    assert_eq!(switch.counters(3).foreign_source, 10);
}

#[test]
fn priority_seven_starves_a_port_only_where_it_is_trusted() {
    let mut switch = introduced(10_000_000);
    let tagged = |from: u8| [&frame(from, 0, 14)[..12], &[0x81, 0x00, 7 << 5, 7], &[from; 1_400]].concat();
    // Ten frames of each host at once, to the first; those of host 1 are ordinary ones, and first.
    (0..10).for_each(|_| switch.on_frame(at(10), 1, &frame(1, 0, 100)));
    (0..10).for_each(|_| switch.on_frame(at(11), 3, &tagged(3)));
    (0..10).for_each(|_| switch.on_frame(at(11), 2, &tagged(2)));
    let order = departed(&mut switch, at(1_000)).swap_remove(0);
    let ordinary = |lengths: &[usize]| lengths.iter().filter(|length| **length == 100).count();
    // The first one or two were on the wire before; then the trusted ones, then the others as they came.
    let trusted_from = order.iter().position(|length| *length == 1_416).unwrap();
    assert!(ordinary(&order[..trusted_from]) <= 2, "{order:?}");
    assert_eq!(order[trusted_from..trusted_from + 10], [1_416; 10]);
    assert_eq!(ordinary(&order[..20]), 10, "untrusted ones wait their turn: {order:?}");
}

#[test]
fn a_frame_in_the_switchs_own_name_goes_nowhere() {
    let mut switch = introduced(100_000);
    let mut forged = frame(3, 0, 100);
    forged[6..12].copy_from_slice(&[0x02, 0x68, 0x69, 0x00, 0x02, 0x00]);
    switch.on_frame(at(10), 3, &forged);
    assert!(departed(&mut switch, at(100)).concat().is_empty());
    assert_eq!(switch.counters(3).foreign_source, 1);
}

#[test]
fn frames_too_long_for_either_port_are_refused_and_counted() {
    let mut switch = introduced(100_000);
    switch.on_frame(at(10), 0, &frame(0, 1, 9_014));
    assert!(departed(&mut switch, at(100)).concat().is_empty());
    assert_eq!((switch.counters(0).too_long, switch.counters(1).offered), (1, 0));
    let port = |longest| PortConfig {
        name: "p".to_owned(),
        rate: Rate::gbps(1),
        buffer: Bytes::new(1 << 20),
        longest,
        trusts_priority: false,
    };
    let mut unequal = SwitchCore::new(&[port(9_022), port(FULL), port(9_022)], Span::from_ms(1_000));
    unequal.on_frame(at(0), 0, &frame(0, 1, 9_014));
    assert_eq!(departed(&mut unequal, at(100)), [vec![], vec![], vec![9_014]]);
    assert_eq!(unequal.counters(0).too_long, 1);
}

#[test]
fn incast_overflows_the_buffer_and_only_that_port() {
    let mut switch = introduced(10 * 1_538);
    for number in 0..20 {
        for host in 1..4 {
            switch.on_frame(at(number * 13), host, &frame(host as u8, 0, FULL));
        }
        // A host that does not take part is not held up.
        switch.on_frame(at(number * 13), 0, &frame(0, 1, 60));
    }
    let left = departed(&mut switch, at(10_000));
    let incast = switch.counters(0);
    assert_eq!((incast.offered, incast.passed + incast.dropped, left[0].len() as u64), (60, 60, incast.passed));
    // 20 gaps of 13 µs serve 21 frames, and ten waited at the end.
    assert_eq!(incast.dropped, 60 - 21 - 9);
    assert_eq!(switch.occupancy(0), (0, 10 * 1_538));
    assert_eq!((left[1].len(), switch.counters(1).dropped), (20, 0));
}

#[test]
fn an_interface_without_room_loses_the_frame_and_it_is_counted() {
    let mut switch = introduced(100_000);
    switch.on_frame(at(10), 1, &frame(1, 0, 60));
    switch.on_frame(at(10), 1, &frame(1, 0, 60));
    switch.serve(at(100));
    let mut room = [true, false].into_iter();
    assert_eq!(switch.take_departed(0, |_| room.next().ok_or(())), Ok(true));
    let SwitchPortCounters { passed, refused, .. } = switch.counters(0);
    assert_eq!((passed, refused), (1, 1));
}

proptest! {
    #[test]
    fn any_bytes_at_any_port_are_accounted_for(
        frames in prop::collection::vec((0..40_u64, 0..4_usize, prop::collection::vec(any::<u8>(), 0..60), 0..6_u8, 0..6_u8), 0..200),
    ) {
        let mut switch = switch(3_000);
        let mut now = 0;
        for (gap, port, bytes, from, to) in &frames {
            now += gap;
            // Half of them as they come, half with a header that makes sense.
            let sent = if gap % 2 == 0 { bytes.clone() } else { [frame(*from, *to, 14), bytes.clone()].concat() };
            switch.on_frame(at(now), *port, &sent);
            for port in 0..4 {
                prop_assert!(switch.occupancy(port).0 <= 3_000);
            }
        }
        let left: usize = departed(&mut switch, at(now + 1_000_000)).iter().map(Vec::len).sum();
        let sum = |value: fn(SwitchPortCounters) -> u64| (0..4).map(|port| value(switch.counters(port))).sum::<u64>();
        prop_assert_eq!(sum(|port| port.received), frames.len() as u64);
        let unicast = sum(|port| port.received - port.malformed - port.foreign_source - port.filtered - port.flooded);
        prop_assert_eq!(sum(|port| port.offered), unicast + 3 * sum(|port| port.flooded));
        prop_assert_eq!(sum(|port| port.offered), sum(|port| port.dropped) + left as u64);
        prop_assert_eq!((0..4).map(|port| switch.occupancy(port).0).sum::<u64>(), 0);
    }
}
