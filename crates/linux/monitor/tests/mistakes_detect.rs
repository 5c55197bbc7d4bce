//! Tests for mistakes of monitors elsewhere, one each: those about telling when a port corrupts.

use std::time::Duration;

use bus::{Condition, Evidence, PortId, PortState};
use monitor::detect::{
    ChangeKind, Detector, DetectorVerdict, Limits, MonitoredPorts, NamePattern, PollResult, PortChange, ReadingNote,
};
use monitor::{CarrierState, Phy, Reading, ReceivedFrames};
use units::Moment;

/// Frames a second on a busy 100G port.
const BUSY: u64 = 8_000_000;
/// ... and on one where hardly anything happens.
const IDLE: u64 = 1_000;

/// A port whose counters a test advances. Every call is one poll.
#[derive(Clone, Debug)]
struct Port(Reading);

impl Port {
    fn new(name: &str) -> Self {
        Self(Reading {
            port: name.to_owned(),
            identity: 7,
            at: Moment::from_ms(1_000),
            carrier: CarrierState::Up,
            frames: Some(ReceivedFrames { all: 5_000, bad: 0, bits: 64 }),
            phy: Phy::default(),
        })
    }

    /// A second later, with `frames` frames more.
    fn poll(&mut self, frames: u64, bad: u64) -> Reading {
        self.poll_after(1, frames, bad)
    }

    fn poll_after(&mut self, seconds: u64, frames: u64, bad: u64) -> Reading {
        self.0.at = self.0.at.after(Duration::from_secs(seconds));
        if let Some(counters) = &mut self.0.frames {
            counters.all = wrapping(counters.all, frames, counters.bits);
            counters.bad = wrapping(counters.bad, bad, counters.bits);
        }
        self.0.clone()
    }

    fn set(&mut self, all: u64, bad: u64, bits: u32) {
        self.0.frames = Some(ReceivedFrames { all, bad, bits });
    }

    fn is(&mut self, carrier: CarrierState) -> Reading {
        self.0.carrier = carrier;
        self.poll(0, 0)
    }
}

fn wrapping(counter: u64, by: u64, bits: u32) -> u64 {
    let sum = counter.wrapping_add(by);
    if bits == 32 { sum & u64::from(u32::MAX) } else { sum }
}

/// A detector that has seen the port's first reading.
fn watch(port: &mut Port, limits: Limits) -> Detector {
    let mut detector = Detector::new(limits);
    assert_eq!(detector.on_reading(&port.poll(0, 0)), DetectorVerdict::default());
    detector
}

/// Polls until something changes.
fn until_change(detector: &mut Detector, most: u32, mut next: impl FnMut() -> Reading) -> (u32, PortChange) {
    for polls in 1..=most {
        if let Some(change) = detector.on_reading(&next()).change {
            return (polls, change);
        }
    }
    panic!("nothing changed in {most} polls: {:?}, {}", detector.condition(), detector.note());
}

/// Makes the port corrupting, at a loss of 1e-5.
fn corrupt(detector: &mut Detector, port: &mut Port) -> PortChange {
    loop {
        let (_, change) = until_change(detector, 60, || port.poll(1_000_000, 10));
        if change.condition == Condition::Corrupting {
            return change;
        }
    }
}

/// Lets a busy port be clean until its alarm ends.
fn repair(detector: &mut Detector, port: &mut Port) -> (u32, PortChange) {
    until_change(detector, 10_000, || port.poll(BUSY, 0))
}

fn said(port: &str, condition: Condition, sticky: bool) -> PortState {
    PortState {
        earliest_ns: None,
        latest_ns: None,
        time_of: None,
        id: PortId::new("leaf1", port),
        peer: None,
        at: Moment::from_ms(1_700_000_000_000),
        life: 1,
        number: 17,
        condition,
        sticky,
        evidence: Evidence { frames: 1_000_000, bad: 30, loss: 3e-5, low: 2e-5, high: 4.3e-5, seconds: 9.0 },
        why: "as an earlier monitor said".to_owned(),
    }
}

#[test]
fn counter_resets_are_not_counted_and_make_no_loss() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    for _ in 0..5 {
        detector.on_reading(&port.poll(BUSY, 0));
    }
    port.set(0, 0, 64);
    let verdict = detector.on_reading(&port.poll(100, 3));
    assert_eq!(verdict, DetectorVerdict { change: None, note: Some(ReadingNote::StartedOver) });
    detector.on_reading(&port.poll(BUSY, 0));
    let tally = detector.window().tally();
    assert_eq!((tally.frames, tally.bad), (6 * BUSY, 0));
    assert_eq!((detector.condition(), detector.oddities().resets), (Condition::Healthy, 1));
}

#[test]
fn counter_resets_do_not_end_an_alarm() {
    // A counter of 32 bits close to its end: taken for a wrap, the reset would be a billion clean frames.
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    port.set(3_300_000_000, 0, 32);
    detector.on_reading(&port.poll(0, 0));
    corrupt(&mut detector, &mut port);
    port.set(0, 0, 32);
    for _ in 0..5 {
        assert_eq!(detector.on_reading(&port.poll(1_000, 0)).change, None);
    }
    assert_eq!(detector.condition(), Condition::Corrupting);
}

#[test]
fn counter_wraps_are_counted_on_with_32_and_with_64_bits() {
    for (bits, end) in [(32, u64::from(u32::MAX)), (64, u64::MAX)] {
        let mut port = Port::new("eth1");
        let mut detector = Detector::new(Limits::default());
        port.set(end - 1_500_000, 9, bits);
        detector.on_reading(&port.poll(0, 0));
        detector.on_reading(&port.poll(1_000_000, 10));
        let verdict = detector.on_reading(&port.poll(1_000_000, 10));
        assert_eq!(verdict.note, Some(ReadingNote::Wrapped), "{bits} bits");
        assert_eq!(verdict.change.map(|change| change.kind), Some(ChangeKind::Raised), "{bits} bits");
        let tally = detector.window().tally();
        assert_eq!((tally.frames, tally.bad), (2_000_000, 20), "{bits} bits");
    }
}

/// A poll of several ports.
fn poll(ports: &mut MonitoredPorts, readings: &[Reading]) -> PollResult {
    let now = readings.first().map_or(Moment::ZERO, |reading| reading.at);
    ports.on_poll(now, readings)
}

/// `ports` with `port` corrupting.
fn corrupting(port: &mut Port) -> MonitoredPorts {
    let mut ports = MonitoredPorts::new(Limits::default(), Vec::new());
    for _ in 0..3 {
        poll(&mut ports, &[port.poll(1_000_000, 10)]);
    }
    assert_eq!(ports.get(&port.0.port).unwrap().condition(), Condition::Corrupting);
    ports
}

fn kinds(poll: &PollResult) -> Vec<(&str, ChangeKind, Condition)> {
    poll.changes.iter().map(|(name, change)| (name.as_str(), change.kind, change.condition)).collect()
}

#[test]
fn an_interface_that_is_renamed_takes_its_alarm_along() {
    let mut port = Port::new("eth1");
    let mut ports = corrupting(&mut port);
    port.0.port = "fabric1".to_owned();
    let told = poll(&mut ports, &[port.poll(1_000_000, 10)]);
    assert_eq!(
        kinds(&told),
        [("eth1", ChangeKind::Unknown, Condition::Unknown), ("fabric1", ChangeKind::Moved, Condition::Corrupting)]
    );
    assert_eq!(told.changes[0].1.why, "is called fabric1 now");
    assert!(ports.get("eth1").is_none());
    let tally = ports.get("fabric1").unwrap().window().tally();
    assert_eq!((tally.frames, tally.bad), (3_000_000, 30), "its counts went along");
}

#[test]
fn interfaces_that_swap_names_do_not_swap_alarms() {
    let (mut bad, mut good) = (Port::new("eth1"), Port::new("eth2"));
    good.0.identity = 8;
    let mut ports = MonitoredPorts::new(Limits::default(), Vec::new());
    for _ in 0..4 {
        poll(&mut ports, &[bad.poll(1_000_000, 10), good.poll(1_000_000, 0)]);
    }
    (bad.0.port, good.0.port) = (good.0.port, bad.0.port);
    let told = poll(&mut ports, &[bad.poll(1_000_000, 10), good.poll(1_000_000, 0)]);
    assert_eq!(
        kinds(&told),
        [("eth1", ChangeKind::Moved, Condition::Healthy), ("eth2", ChangeKind::Moved, Condition::Corrupting)]
    );
}

#[test]
fn ports_that_all_have_the_same_identity_are_not_taken_for_renamed() {
    for identity in [0, 7] {
        let mut bad = Port::new("eth1");
        let (mut other, mut new) = (Port::new("eth2"), Port::new("eth3"));
        (bad.0.identity, other.0.identity, new.0.identity) = (identity, identity, identity);
        let mut ports = MonitoredPorts::new(Limits::default(), Vec::new());
        for _ in 0..3 {
            poll(&mut ports, &[bad.poll(1_000_000, 10), other.poll(1_000, 0)]);
        }
        poll(&mut ports, &[other.poll(1_000, 0), new.poll(1_000, 0)]);
        assert_eq!(ports.get("eth1").unwrap().condition(), Condition::Corrupting);
        assert_eq!(ports.get("eth3").unwrap().condition(), Condition::Unknown);
    }
}

#[test]
fn a_driver_that_is_reloaded_does_not_lose_the_alarm() {
    let mut port = Port::new("eth1");
    let mut ports = corrupting(&mut port);
    for _ in 0..10 {
        let at = port.poll(0, 0).at;
        assert_eq!(ports.on_poll(at, &[]), PollResult::default());
    }
    port.0.identity = 23;
    port.set(0, 0, 64);
    let told = poll(&mut ports, &[port.poll(1_000, 0)]);
    assert_eq!(told.notes, [("eth1".to_owned(), ReadingNote::OtherDevice)]);
    assert_eq!((told.changes.len(), ports.rows()[0].condition), (0, Condition::Corrupting));
    let polls: Vec<PollResult> = (0..3).map(|_| poll(&mut ports, &[port.poll(1_000_000, 5)])).collect();
    assert_eq!(
        kinds(&polls[1]),
        [("eth1", ChangeKind::Confirmed, Condition::Corrupting)],
        "told once that it is still so"
    );
    assert!(kinds(&polls[0]).is_empty() && kinds(&polls[2]).is_empty());
}

#[test]
fn a_device_that_was_exchanged_ends_the_alarm_of_the_one_before() {
    let mut port = Port::new("eth1");
    let mut ports = corrupting(&mut port);
    for _ in 0..40 {
        assert_eq!(poll(&mut ports, &[port.poll(BUSY, 0)]), PollResult::default());
    }
    port.0.identity = 23;
    port.set(0, 0, 64);
    let polls: Vec<PollResult> = (0..50).map(|_| poll(&mut ports, &[port.poll(BUSY, 0)])).collect();
    let (last, before) = polls.split_last().unwrap();
    assert!(before.iter().all(|poll| poll.changes.is_empty()), "what the other one received does not count");
    assert_eq!(kinds(last), [("eth1", ChangeKind::Cleared, Condition::Healthy)]);
}

#[test]
fn a_port_that_vanishes_is_unknown_and_forgotten_and_an_alarm_is_told_off_in_the_end() {
    let (mut bad, mut good) = (Port::new("eth1"), Port::new("eth2"));
    good.0.identity = 8;
    let mut ports = MonitoredPorts::new(Limits::default(), Vec::new());
    for _ in 0..3 {
        poll(&mut ports, &[bad.poll(1_000_000, 10), good.poll(1_000_000, 0)]);
    }
    let mut told = Vec::new();
    for hour in 0..30 {
        let at = bad.poll_after(3_600, 0, 0).at;
        told.extend(ports.on_poll(at, &[]).changes.into_iter().map(|(name, change)| (hour, name, change.why)));
    }
    assert_eq!(
        told,
        [
            (2, "eth2".to_owned(), "no longer there".to_owned()),
            (24, "eth1".to_owned(), "gone for 1 d 1 h; its alarm is forgotten".to_owned())
        ]
    );
    assert!(ports.rows().is_empty());
}

#[test]
fn ports_that_are_sampled_less_often_than_polled_do_not_vanish_in_between() {
    let mut ports = MonitoredPorts::new(Limits::default(), Vec::new());
    let mut many: Vec<Port> = (0..20).map(|n| Port::new(&format!("eth{n}"))).collect();
    for (identity, port) in (100..).zip(&mut many) {
        port.0.identity = identity;
    }
    // Each time step has one port, as in a file whose samples all have a time of their own.
    let mut told = Vec::new();
    for n in 0..200 {
        let bad = u64::from(n % 20 == 3);
        let reading = many[n % 20].poll_after(20, 1_000_000, 10 * bad);
        told.extend(poll(&mut ports, &[reading]).changes.into_iter().map(|(name, change)| (name, change.kind)));
    }
    assert_eq!(told.iter().filter(|(_, kind)| *kind == ChangeKind::Healthy).count(), 19);
    assert_eq!(
        told.iter().filter(|(_, kind)| *kind != ChangeKind::Healthy).collect::<Vec<_>>(),
        [&("eth3".to_owned(), ChangeKind::Raised)]
    );
    // One that stops is missed all the same.
    for n in (0..20 * 5).filter(|n| n % 20 != 5) {
        poll(&mut ports, &[many[n % 20].poll_after(20, 1_000_000, 0)]);
    }
    assert!(ports.get("eth5").is_none() && ports.get("eth6").is_some());
}

#[test]
fn a_source_that_repeats_itself_is_as_good_as_silent() {
    let mut port = Port::new("eth1");
    let mut ports = MonitoredPorts::new(Limits::default(), Vec::new());
    for _ in 0..4 {
        poll(&mut ports, &[port.poll(1_000_000, 0)]);
    }
    assert_eq!(ports.get("eth1").unwrap().condition(), Condition::Healthy);
    let told: Vec<PollResult> = (0..3).map(|_| poll(&mut ports, std::slice::from_ref(&port.0))).collect();
    assert_eq!(told[0].notes, [("eth1".to_owned(), ReadingNote::Duplicate)]);
    assert_eq!(kinds(&told[2]), [("eth1", ChangeKind::Unknown, Condition::Unknown)]);
}

#[test]
fn another_device_under_a_healthy_name_is_unknown_until_it_has_been_seen() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    until_change(&mut detector, 5, || port.poll(1_000_000, 0));
    port.0.identity = 8;
    let verdict = detector.on_reading(&port.poll(1_000_000, 500));
    assert_eq!(verdict.note, Some(ReadingNote::OtherDevice));
    assert_eq!(verdict.change.map(|change| change.kind), Some(ChangeKind::Unknown));
    assert_eq!(until_change(&mut detector, 5, || port.poll(1_000_000, 0)).1.kind, ChangeKind::Healthy);
}

#[test]
fn a_reboot_does_not_orphan_an_alarm() {
    // Healthy again, and the alarm that an earlier monitor raised is cleared.
    let mut port = Port::new("eth1");
    let mut detector = Detector::new(Limits::default());
    detector.adopt(&said("eth1", Condition::Corrupting, false));
    assert_eq!(detector.condition(), Condition::Corrupting);
    let (polls, change) = repair(&mut detector, &mut port);
    assert_eq!(change.kind, ChangeKind::Cleared);
    assert!(polls < 60, "369 M frames, the first reading and 3 polls: {polls}");

    // Still bad, and it is confirmed, once.
    let mut detector = Detector::new(Limits::default());
    detector.adopt(&said("eth1", Condition::Corrupting, false));
    let (polls, change) = until_change(&mut detector, 10, || port.poll(1_000_000, 10));
    assert_eq!((polls, change.kind, change.condition), (3, ChangeKind::Confirmed, Condition::Corrupting));
    for _ in 0..10 {
        assert_eq!(detector.on_reading(&port.poll(1_000_000, 10)).change, None);
    }
}

#[test]
fn a_reboot_does_not_open_the_latch_of_a_port_that_flapped() {
    let mut port = Port::new("eth1");
    let mut detector = Detector::new(Limits::default());
    detector.adopt(&said("eth1", Condition::Corrupting, true));
    for _ in 0..200 {
        assert_eq!(detector.on_reading(&port.poll(BUSY, 0)).change, None);
    }
    assert!(detector.is_sticky());
    let change = detector.clear_by_hand().unwrap();
    assert_eq!((change.kind, change.condition, change.sticky), (ChangeKind::Cleared, Condition::Healthy, false));
}

#[test]
fn an_alarm_of_a_port_that_never_comes_back_after_a_reboot_is_told_off_in_the_end() {
    let mut ports = MonitoredPorts::new(Limits::default(), Vec::new());
    ports.adopt("eth1", &said("eth1", Condition::Corrupting, false));
    ports.adopt("eth2", &said("eth2", Condition::Healthy, false));
    let told: Vec<_> =
        (1..40).flat_map(|hour| ports.on_poll(Moment::from_hours(f64::from(hour)), &[]).changes).collect();
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].0.as_str(), told[0].1.condition), ("eth1", Condition::Unknown));
}

#[test]
fn ports_down_by_design_raise_no_alarm() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    assert_eq!(detector.on_reading(&port.is(CarrierState::Off)).change, None);
    port.0.carrier = CarrierState::Off;
    for _ in 0..20 {
        // Counters of a port without a cable may count noise.
        assert_eq!(detector.on_reading(&port.poll(100, 90)).change, None);
    }
    assert_eq!(detector.condition(), Condition::Unknown);
    assert_eq!(detector.note(), "switched off");
}

#[test]
fn a_port_without_a_signal_or_without_counters_is_unknown_and_no_alarm() {
    for (carrier, frames, why) in [
        (CarrierState::Lost, Some(ReceivedFrames { all: 0, bad: 0, bits: 64 }), "no signal"),
        (CarrierState::Up, None, "nothing counts its frames"),
    ] {
        let mut port = Port::new("eth1");
        let mut detector = watch(&mut port, Limits::default());
        let (_, change) = until_change(&mut detector, 5, || port.poll(BUSY, 0));
        assert_eq!(change.kind, ChangeKind::Healthy);
        (port.0.carrier, port.0.frames) = (carrier, frames);
        let change = detector.on_reading(&port.poll(0, 0)).change.unwrap();
        assert_eq!((change.kind, change.why.as_str()), (ChangeKind::Unknown, why));
    }
}

#[test]
fn frames_that_were_spoilt_while_the_link_came_up_are_not_counted() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    for _ in 0..10 {
        port.0.carrier = CarrierState::Lost;
        detector.on_reading(&port.poll(50, 5));
        port.0.carrier = CarrierState::Up;
        detector.on_reading(&port.poll(50, 5));
        detector.on_reading(&port.poll(BUSY, 0));
    }
    assert_eq!(detector.window().tally().bad, 0);
    assert_ne!(detector.condition(), Condition::Corrupting);
}

#[test]
fn a_cable_pulled_for_repair_keeps_the_alarm_until_frames_have_passed_cleanly() {
    for carrier in [CarrierState::Off, CarrierState::Lost] {
        let mut port = Port::new("eth1");
        let mut detector = watch(&mut port, Limits::default());
        corrupt(&mut detector, &mut port);
        port.0.carrier = carrier;
        for _ in 0..48 {
            assert_eq!(detector.on_reading(&port.poll_after(3_600, 0, 0)).change, None);
        }
        assert_eq!(detector.condition(), Condition::Corrupting);
        assert_eq!(detector.window().tally().bad, 0, "counts start afresh");
        port.0.carrier = CarrierState::Up;
        let (polls, change) = repair(&mut detector, &mut port);
        assert_eq!(change.kind, ChangeKind::Cleared);
        assert!(polls > 369_000_000 / BUSY as u32, "{polls}");
    }
}

#[test]
fn a_latch_fires_again_after_it_was_cleared() {
    let mut port = Port::new("eth1");
    let limits = Limits { flaps: None, ..Limits::default() };
    let mut detector = watch(&mut port, limits);
    for round in 0..5 {
        assert_eq!(corrupt(&mut detector, &mut port).kind, ChangeKind::Raised, "{round}");
        assert_eq!(repair(&mut detector, &mut port).1.kind, ChangeKind::Cleared, "{round}");
    }
}

#[test]
fn a_busy_link_is_unprotected_when_its_loss_is_known_to_be_low() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    corrupt(&mut detector, &mut port);
    let (polls, change) = repair(&mut detector, &mut port);
    assert_eq!(polls, 47 + 2, "3.689 / 1e-8 frames at 8 M a second, seen in three polls");
    assert!(change.evidence.high < 1e-8 && change.evidence.bad == 0, "{change:?}");
    assert_eq!(change.why, "lost 0 of 392,000,000 frames in 49 s: at most 9.4e-9, below 1e-8 in 3 polls");
}

#[test]
fn how_long_a_link_was_bad_does_not_matter_for_how_soon_it_is_unprotected() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    corrupt(&mut detector, &mut port);
    for _ in 0..5_000 {
        assert_eq!(detector.on_reading(&port.poll(BUSY, 80)).change, None);
    }
    assert_eq!(repair(&mut detector, &mut port).0, 49);
}

#[test]
fn a_link_that_is_healthy_but_not_perfect_is_unprotected_as_well() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    corrupt(&mut detector, &mut port);
    let mut polls = 0;
    let (_, change) = until_change(&mut detector, 10_000, || {
        polls += 1;
        // One bad frame in a billion.
        port.poll(BUSY, u64::from(polls % 125 == 20))
    });
    assert_eq!((change.kind, change.evidence.bad), (ChangeKind::Cleared, 1));
    assert!(polls < 125, "{polls}");
}

#[test]
fn a_quiet_link_is_unprotected_after_an_hour_in_which_its_loss_would_have_shown() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    let raised = corrupt(&mut detector, &mut port);
    let (polls, change) = until_change(&mut detector, 10_000, || port.poll(IDLE, 0));
    assert_eq!((polls, change.kind), (3_600, ChangeKind::Cleared));
    assert!(change.evidence.frames as f64 * raised.evidence.loss >= 10.0, "{change:?}");
    assert_eq!(change.why, "none bad of 3,600,000 frames in 1 h; a loss of 1.0e-5 as before would show 36");
}

#[test]
fn a_quiet_link_whose_loss_became_less_has_to_be_quiet_for_longer() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    for _ in 0..2 {
        detector.on_reading(&port.poll(IDLE, 100));
    }
    assert_eq!(detector.condition(), Condition::Corrupting, "a tenth is lost");
    for n in 0..20_000 {
        detector.on_reading(&port.poll(IDLE, u64::from(n % 1_000 == 999)));
    }
    // One in a million now: ten of them would take ten million frames, and not an hour.
    let (polls, change) = until_change(&mut detector, 20_000, || port.poll(IDLE, 0));
    assert_eq!(change.kind, ChangeKind::Cleared);
    assert!((8_000..12_000).contains(&polls), "{polls}");
}

#[test]
fn bad_frames_that_a_reset_left_uncounted_still_end_the_quiet() {
    for (bad, quiet) in [(0, 3_600), (3, 3_600 + 3_000)] {
        let mut port = Port::new("eth1");
        let mut detector = watch(&mut port, Limits::default());
        corrupt(&mut detector, &mut port);
        let (polls, _) = until_change(&mut detector, 10_000, || {
            let next = port.poll(IDLE, 0);
            // Three thousand seconds on, the counters start over.
            if next.at.as_ms() % 10_000_000 == 3_000_000 {
                port.set(10, bad, 64);
            }
            Reading { frames: port.0.frames, ..next }
        });
        assert!(polls.abs_diff(quiet) < 20, "{polls}");
    }
}

#[test]
fn a_link_on_which_the_loss_could_not_have_shown_stays_protected() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    corrupt(&mut detector, &mut port);
    // Ten frames a second: in a day not enough to see a loss of 1e-5 ten times.
    let (polls, change) = until_change(&mut detector, 200_000, || port.poll(10, 0));
    assert_eq!((polls, change.kind), (100_000, ChangeKind::Cleared));

    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits { quiet: None, ..Limits::default() });
    corrupt(&mut detector, &mut port);
    for _ in 0..20_000 {
        assert_eq!(detector.on_reading(&port.poll(IDLE, 0)).change, None, "quiet is switched off");
    }
}

#[test]
fn a_link_that_flaps_is_held_and_then_needs_a_person() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    assert_eq!(corrupt(&mut detector, &mut port).kind, ChangeKind::Raised);
    let (first, _) = repair(&mut detector, &mut port);
    assert_eq!(corrupt(&mut detector, &mut port).kind, ChangeKind::Raised);
    let (second, _) = repair(&mut detector, &mut port);
    assert!(first < 60 && second > 40 * 60, "the second alarm is held until the penalty has decayed: {first} {second}");

    let stuck = corrupt(&mut detector, &mut port);
    assert_eq!((stuck.kind, stuck.sticky), (ChangeKind::Stuck, true));
    assert!(stuck.why.ends_with("raised 3 times within 2 h, so a person has to clear it"), "{}", stuck.why);
    for _ in 0..100 {
        assert_eq!(detector.on_reading(&port.poll_after(3_600, 20_000_000, 0)).change, None);
    }
    assert_eq!(detector.clear_by_hand().map(|change| change.kind), Some(ChangeKind::Cleared));
    assert_eq!(detector.clear_by_hand(), None);
    assert_eq!(corrupt(&mut detector, &mut port).kind, ChangeKind::Raised, "and it may begin again");
}

#[test]
fn a_loss_around_the_threshold_does_not_flap() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    let mut changes = Vec::new();
    // One bad frame in 96 M: 1.04e-8, hour after hour.
    for n in 0..10_000_u64 {
        changes.extend(detector.on_reading(&port.poll(BUSY, u64::from(n % 12 == 0))).change);
    }
    assert_eq!(changes.iter().map(|change| change.kind).collect::<Vec<_>>(), [ChangeKind::Healthy]);
}

#[test]
fn a_single_burst_raises_nothing() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    detector.on_reading(&port.poll(BUSY, 500));
    for _ in 0..100 {
        detector.on_reading(&port.poll(BUSY, 0));
    }
    assert_eq!(detector.condition(), Condition::Healthy);
}

#[test]
fn clean_polls_do_not_count_as_bad_ones_nor_break_their_row() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits { raise_after: 3, ..Limits::default() });
    let mut told = Vec::new();
    for n in 0..21_u64 {
        told.extend(detector.on_reading(&port.poll(1_000_000, 5 * u64::from(n % 10 == 0))).change.map(|c| (n, c.kind)));
    }
    assert_eq!(told, [(20, ChangeKind::Raised)]);
}

#[test]
fn after_a_person_cleared_it_old_frames_raise_no_new_alarm() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    corrupt(&mut detector, &mut port);
    assert!(detector.clear_by_hand().is_some());
    assert_eq!(detector.on_reading(&port.poll(1_000_000, 10)).change, None);
    let raised = detector.on_reading(&port.poll(1_000_000, 10)).change.unwrap();
    assert_eq!((raised.kind, raised.evidence.bad), (ChangeKind::Raised, 20));
}

#[test]
fn the_window_drops_the_oldest_and_keeps_the_newest() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    for _ in 0..100 {
        detector.on_reading(&port.poll(BUSY, 0));
    }
    detector.on_reading(&port.poll(BUSY, 1_000));
    assert_eq!(detector.window().tally().bad, 1_000, "the newest is in");
    assert!(detector.window().tally().frames <= 100_000_000);
    for _ in 0..12 {
        detector.on_reading(&port.poll(BUSY, 0));
    }
    assert_eq!(detector.window().tally().bad, 0, "and leaves when it is the oldest");
}

#[test]
fn management_ports_are_never_acted_upon() {
    let excluded: Vec<NamePattern> = ["eth0", "mgmt*"].map(|pattern| pattern.parse().unwrap()).to_vec();
    let mut ports = MonitoredPorts::new(Limits::default(), excluded);
    ports.adopt("mgmt7", &said("mgmt7", Condition::Corrupting, true));
    let mut names = ["eth0", "mgmt7", "eth1"].map(Port::new);
    for (number, port) in names.iter_mut().enumerate() {
        port.0.identity = 10 + number as u64;
    }
    for _ in 0..5 {
        let readings = names.each_mut().map(|port| port.poll(1_000_000, 100));
        let told = poll(&mut ports, &readings);
        assert!(told.changes.iter().all(|(name, _)| name == "eth1"), "{told:?}");
    }
    assert_eq!(ports.rows().iter().map(|row| row.port.as_str()).collect::<Vec<_>>(), ["eth1"]);
    // A port that is renamed to be one is left alone from then on.
    names[2].0.port = "mgmt9".to_owned();
    let told = poll(&mut ports, &[names[2].poll(1_000_000, 100)]);
    assert_eq!(told, PollResult::default());
}

#[test]
fn a_single_bad_frame_in_a_hundred_million_is_a_healthy_link() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    detector.on_reading(&port.poll(1_000, 1));
    for n in 0..1_000 {
        let change = detector.on_reading(&port.poll(10_000_000, u64::from(n % 10 == 0))).change;
        assert!(change.is_none_or(|change| change.kind == ChangeKind::Healthy));
    }
    assert_eq!(detector.condition(), Condition::Healthy);
}

#[test]
fn the_ratio_is_the_share_that_is_not_ok() {
    // All ok: the paper's formula gives 1, which is more than 1e-8.
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    let (_, change) = until_change(&mut detector, 5, || port.poll(BUSY, 0));
    assert_eq!((change.kind, change.evidence.loss), (ChangeKind::Healthy, 0.0));
    // None ok: it gives 0, which is less.
    let mut port = Port::new("eth2");
    let mut detector = watch(&mut port, Limits::default());
    let (_, change) = until_change(&mut detector, 5, || port.poll(1_000, 1_000));
    assert_eq!((change.kind, change.evidence.loss), (ChangeKind::Raised, 1.0));
}

#[test]
fn samples_that_cannot_be_are_refused_and_counted_and_never_acted_upon() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    detector.on_reading(&port.poll(BUSY, 0));
    let before = detector.window().tally();
    let latest = port.0.clone();

    let mut again = latest.clone();
    again.frames = Some(ReceivedFrames { all: 99_000_000, bad: 50_000, bits: 64 });
    assert_eq!(detector.on_reading(&again).note, Some(ReadingNote::Duplicate));
    again.at = Moment::from_ms(1_500);
    assert_eq!(detector.on_reading(&again).note, Some(ReadingNote::Backwards));
    assert_eq!(detector.on_reading(&port.poll(10, 5_000)).note, Some(ReadingNote::Nonsense));
    assert_eq!(detector.on_reading(&port.poll(1 << 40, 0)).note, Some(ReadingNote::Jumped));

    assert_eq!(detector.window().tally(), before);
    assert_eq!((detector.oddities().refused, detector.oddities().resets), (3, 1));
    assert_ne!(detector.condition(), Condition::Corrupting);
}

#[test]
fn a_loss_that_grows_is_told_again_but_not_with_every_poll() {
    let mut port = Port::new("eth1");
    let mut detector = watch(&mut port, Limits::default());
    for _ in 0..20 {
        detector.on_reading(&port.poll(BUSY, 0));
    }
    // A thousandth is lost from here on, but at first the window is full of clean frames.
    let told: Vec<PortChange> =
        (0..60).filter_map(|_| detector.on_reading(&port.poll(BUSY, BUSY / 1_000)).change).collect();
    let kinds: Vec<ChangeKind> = told.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::Raised, ChangeKind::Worse, ChangeKind::Worse]);
    assert!(told[2].evidence.loss > 0.5e-3, "{:?}", told[2]);
}
