//! Stamped super-frames on a cable of two interfaces: the kernel cuts them and joins them again, and nothing overtakes.

use std::net::SocketAddr;
use std::time::Duration;

use emulator::DirectionConfig;
use lab::stage::{self, Stage, StageDaemon};
use link::config::{LinkConfig, StampUse};
use link::status::LinkStatus;
use linux::net::{Namespace, become_root_of_own_namespaces};
use load::PingPong;
use standin::StandInConfig;
use units::StopFlag;

const WITHIN: Duration = Duration::from_secs(60);

fn status(daemon: &StageDaemon<'_>) -> LinkStatus {
    daemon.handle.status().expect("a daemon that runs")
}

fn wait_until_stamped(daemons: &[StageDaemon<'_>]) {
    let is_stamped = || {
        std::thread::sleep(Duration::from_millis(5));
        daemons.iter().all(|daemon| status(daemon).stamp.state == "used")
    };
    assert!((0..10_000).any(|_| is_stamped()), "{:?}", status(&daemons[0]));
}

/// Messages of many segments there and back, one at a time: too few on their way for a queue of the cable to overflow.
fn exchange() -> [LinkStatus; 2] {
    become_root_of_own_namespaces(false).expect("a network of its own");
    let ends = stage::cable(1_600).expect("a cable");
    let stop = StopFlag::new();
    std::thread::scope(|scope| {
        let daemons: Vec<StageDaemon<'_>> = (0..2)
            .map(|end| {
                let config = LinkConfig { stamp: StampUse::Auto, ..link(end) };
                stage::protect(&ends[end], scope, config, |_| ()).expect("a link")
            })
            .collect();
        (0..2).for_each(|end| stage::give_address(&ends[end], end, "hit0").expect("an address"));
        stage::serve(&ends[1], scope, &stop).expect("a server");
        wait_until_stamped(&daemons);
        let messages = PingPong { count: 300, size: 40_000, within: WITHIN, ..PingPong::default() };
        let to = SocketAddr::new(stage::address(1), stage::PORT);
        let trips = ends[0].with(|| load::pingpong::run(to, &messages, &stop)).expect("its namespace");
        trips.expect("messages that are answered");
        stop.stop();
        [status(&daemons[0]), status(&daemons[1])]
    })
}

/// A link at an end, with room for its header on the cable.
fn link(end: usize) -> LinkConfig {
    LinkConfig::new(StandInConfig { mtu: Some(1_500), ..StandInConfig::new(stage::plug(end)) })
}

#[test]
fn super_frames_on_a_cable_are_joined_again_and_nothing_overtakes_them() {
    let Some(_) = testkit::permitted(Namespace::new()) else { return };
    // On a thread of its own, which alone moves.
    let ends = std::thread::scope(|scope| scope.spawn(exchange).join().expect("no panic"));
    for (status, peer) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
        let count = |status: &LinkStatus, name: &str| status.counters[name];
        assert!(count(status, "tx_stamped") > 5_000, "{status:?}");
        assert!(count(status, "tx_stamped") > 3 * count(status, "tx_stamped_runs"), "{status:?}");
        assert!(count(peer, "rx_stamped") > count(peer, "rx_stamped_runs"), "{peer:?}");
        assert_eq!((count(peer, "rx_missing_seq"), count(status, "tx_replay")), (0, 0), "{status:?} {peer:?}");
    }
}

/// Two ends on an emulated wire, until both use stamps.
fn stamp_over_an_emulated_wire() {
    become_root_of_own_namespaces(false).expect("a network of its own");
    let stage = Stage::unjoined(1_600).expect("a stage");
    std::thread::scope(|scope| {
        let wire = stage.carry(scope, &DirectionConfig::default(), 1).expect("a wire");
        let daemons: Vec<StageDaemon<'_>> =
            (0..2).map(|end| stage.protect(scope, end, link(end), |_| ()).expect("a link")).collect();
        wait_until_stamped(&daemons);
        for daemon in daemons {
            daemon.stop().expect("an orderly end");
        }
        wire.stop().expect("a quiet end");
    });
}

#[test]
fn an_emulated_wire_is_like_a_cable() {
    let Some(_) = testkit::permitted(Namespace::new()) else { return };
    std::thread::scope(|scope| scope.spawn(stamp_over_an_emulated_wire).join().expect("no panic"));
}
