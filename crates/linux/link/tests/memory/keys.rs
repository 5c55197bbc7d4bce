//! Links with a key: restarts, recordings and forgeries.

use super::*;

const KEY: [u8; 16] = [5; 16];
/// One hour of a counter that starts at the time of day, in nanoseconds.
const HOUR: u64 = 3_600_000_000_000;

impl Pair {
    /// Replaces one end as if its daemon had been killed and started again.
    fn restart(&mut self, at: usize, seal: Seal) {
        let (sends, got) = (Rc::clone(&self.ends[at].sends), Rc::clone(&self.ends[at].got));
        let instance = 1_000 + self.now.as_ps() as u32;
        self.ends[at] = end(at, seal, Class::Ordered, |setup| setup.instance = instance);
        // The host keeps the frames that it received before.
        self.ends[at].got.borrow_mut().extend(got.borrow_mut().drain(..));
        self.ends[at].sends.borrow_mut().extend(sends.borrow_mut().drain(..));
    }

    fn send(&mut self, from: usize, numbers: std::ops::Range<u32>) {
        self.ends[from].sends.borrow_mut().extend(numbers.map(|n| frame(from, n, 100)));
    }

    /// The numbers of the frames that a host got.
    fn got(&self, at: usize) -> Vec<u32> {
        self.ends[at].got.borrow().iter().map(|frame| u32::from_be_bytes(frame[14..18].try_into().unwrap())).collect()
    }

    /// Runs, and keeps a copy of everything on the wire.
    fn record(&mut self, span: Span) -> Vec<Vec<u8>> {
        let mut recorded = Vec::new();
        self.run(span, &mut |frame| {
            recorded.push(frame.clone());
            true
        });
        recorded
    }

    fn play(&mut self, recorded: &[Vec<u8>]) {
        for end in &self.ends {
            end.arrives.borrow_mut().extend(recorded.iter().cloned());
        }
    }
}

#[test]
fn a_restart_with_the_clock_set_back_is_no_outage() {
    for protected in [false, true] {
        for restarts in 0..2 {
            let now = 400_000 * u64::from(restarts == 0) + 500_000 * HOUR;
            let seals = [now, now + 1].map(|now| Seal::keyed(KEY, now.into()));
            let mut pair = Pair::new([0, 1].map(|number| end(number, seals[number].clone(), Class::Ordered, |_| ())));
            if protected {
                pair.activate();
            }
            pair.run(Span::from_ms(5), &mut |_| true);
            pair.send(0, 0..10);
            pair.send(1, 0..10);
            pair.run(Span::from_ms(5), &mut |_| true);
            pair.restart(restarts, Seal::keyed(KEY, (now - HOUR).into()));
            if protected {
                pair.ends[restarts].link.command(pair.now, EndpointCommand::Activate);
            }
            // The ends have greeted each other by then; protection may take longer.
            pair.run(Span::from_ms(1), &mut |_| true);
            pair.send(0, 10..20);
            pair.send(1, 10..20);
            pair.run(Span::from_ms(200), &mut |_| true);
            for to in 0..2 {
                assert_eq!(pair.got(to), (0..20).collect::<Vec<u32>>(), "end {restarts} restarted, towards {to}");
            }
            if protected {
                assert_eq!(pair.states(), [SessionState::Active; 2]);
            }
        }
    }
}

#[test]
fn nothing_recorded_is_accepted_after_a_restart() {
    for protected in [false, true] {
        for restarted in [&[0][..], &[1], &[0, 1]] {
            let mut pair = Pair::alike(keyed, Class::Ordered);
            if protected {
                pair.activate();
            }
            let mut recorded = pair.record(Span::from_ms(5));
            pair.send(0, 0..50);
            pair.send(1, 0..50);
            recorded.extend(pair.record(Span::from_ms(5)));
            assert_eq!([0, 1].map(|to| pair.got(to).len()), [50, 50]);
            for at in restarted {
                pair.restart(*at, keyed());
                if protected {
                    pair.ends[*at].link.command(pair.now, EndpointCommand::Activate);
                }
            }
            // Before the peer has said anything, in the middle of the greetings, and after them.
            pair.play(&recorded);
            pair.run(Span::from_us(20), &mut |_| false);
            pair.play(&recorded);
            pair.run(Span::from_us(60), &mut |_| true);
            pair.play(&recorded);
            pair.run(Span::from_ms(5), &mut |_| true);
            pair.play(&recorded);
            pair.run(Span::from_ms(5), &mut |_| true);
            assert_eq!([0, 1].map(|to| pair.got(to).len()), [50, 50], "{restarted:?} restarted");
            // Frames sent while the ends agree on protection again may be lost, by design.
            pair.run(Span::from_ms(400), &mut |_| true);
            pair.send(0, 50..60);
            pair.send(1, 50..60);
            pair.run(Span::from_ms(10), &mut |_| true);
            for to in 0..2 {
                assert_eq!(pair.got(to), (0..60).collect::<Vec<u32>>(), "{restarted:?} restarted, towards {to}");
            }
        }
    }
}

#[test]
fn the_same_key_on_another_link_opens_nothing() {
    // Even with the same addresses.
    let [mut one, mut other] = [(); 2].map(|()| Pair::alike(keyed, Class::Ordered));
    let mut recorded = Vec::new();
    for pair in [&mut one, &mut other] {
        pair.activate();
        recorded.extend(pair.record(Span::from_ms(5)));
        assert_eq!(pair.states(), [SessionState::Active; 2]);
    }
    one.send(0, 0..50);
    recorded.extend(one.record(Span::from_ms(5)));
    other.play(&recorded);
    other.run(Span::from_ms(5), &mut |_| true);
    assert_eq!([0, 1].map(|to| other.got(to).len()), [0, 0]);
    assert_eq!(other.states(), [SessionState::Active; 2]);
    other.send(0, 0..10);
    other.run(Span::from_ms(5), &mut |_| true);
    assert_eq!(other.got(1), (0..10).collect::<Vec<u32>>());
}

#[test]
fn a_restart_costs_no_more_than_a_round_trip_of_greetings() {
    let mut pair = Pair::alike(keyed, Class::Ordered);
    pair.run(Span::from_ms(1), &mut |_| true);
    pair.restart(1, keyed());
    let recorded = pair.record(Span::from_us(80));
    assert_eq!(recorded.len(), 4, "greetings and nothing else");
    pair.send(0, 0..1);
    pair.send(1, 0..1);
    pair.run(Span::from_us(40), &mut |_| true);
    assert_eq!([0, 1].map(|to| pair.got(to).len()), [1, 1]);
}

#[test]
fn greetings_are_repeated_until_they_arrive() {
    for seed in 0..20 {
        let mut random = Random::new(seed, 5);
        let mut pair = Pair::alike(keyed, Class::Ordered);
        pair.activate();
        pair.run(Span::from_ms(600), &mut |_| random.unit() >= 0.5);
        pair.run(Span::from_ms(300), &mut |_| true);
        assert_eq!(pair.states(), [SessionState::Active; 2]);
    }
}

#[test]
fn without_a_peer_frames_wait_a_moment_and_then_are_dropped_and_counted() {
    for (init, by_then) in [(InitAction::BestEffort, 10), (InitAction::Block, 0), (InitAction::Discard, 10)] {
        let here = end(0, keyed(), Class::Ordered, |setup| setup.init = init);
        let mut pair = Pair::new([here, end(1, keyed(), Class::Ordered, |_| ())]);
        pair.activate();
        pair.send(0, 0..5);
        // The peer is not there.
        pair.run(Span::from_ms(500), &mut |_| false);
        let dropped = |pair: &Pair| pair.ends[0].link.context().statistics.tally.gate_dropped;
        assert_eq!(dropped(&pair), if init == InitAction::Discard { 5 } else { 0 }, "{init:?}");
        pair.run(Span::from_ms(1_000), &mut |_| false);
        pair.send(0, 5..10);
        pair.run(Span::from_ms(100), &mut |_| false);
        assert_eq!(dropped(&pair), by_then, "{init:?}");
        pair.run(Span::from_ms(300), &mut |_| true);
        assert_eq!(pair.got(1).len() as u64, 10 - by_then, "{init:?}");
        pair.send(0, 10..12);
        pair.run(Span::from_ms(10), &mut |_| true);
        assert_eq!(pair.got(1).len() as u64, 12 - by_then, "{init:?}");
    }
}

#[test]
fn a_link_that_starts_over_keeps_its_session() {
    let mut pair = Pair::alike(keyed, Class::Ordered);
    pair.activate();
    pair.run(Span::from_ms(10), &mut |_| true);
    for (number, end) in pair.ends.iter_mut().enumerate() {
        end.link.start_over(20 + number as u32);
    }
    pair.now = Time::ZERO;
    pair.activate();
    pair.run(Span::from_ms(5), &mut |_| true);
    pair.send(0, 0..10);
    pair.run(Span::from_ms(5), &mut |_| true);
    assert_eq!((pair.states(), pair.got(1).len()), ([SessionState::Active; 2], 10));
    assert_eq!(pair.ends[0].link.context().statistics.tally.rx_greetings, 0);
}

#[test]
fn on_a_keyed_link_a_hundred_thousand_forged_frames_do_nothing_but_count() {
    const STRANGE: usize = 100_000;
    let mut random = Random::new(17, 4);
    let mut pair = Pair::alike(keyed, Class::Ordered);
    // Frames of an earlier session too.
    let mut seen = pair.record(Span::from_ms(1));
    pair.restart(1, keyed());
    seen.extend(pair.record(Span::from_ms(1)));
    pair.activate();
    seen.extend(pair.record(Span::from_ms(5)));
    assert_eq!(pair.states(), [SessionState::Active; 2]);
    pair.ends.iter_mut().for_each(|end| drop(end.link.take_events()));
    let (mut strange, mut sent) = (0, 0);
    while strange < STRANGE {
        for from in 0..2 {
            pair.send(from, sent..sent + 2);
        }
        sent += 2;
        for end in 0..2 {
            for _ in 0..20 {
                // A frame of just now or long ago, unchanged or changed.
                let frame = match random.below(4) {
                    0 => seen[random.below(seen.len() as u64) as usize].clone(),
                    1 => seen[seen.len() - 1 - random.below(seen.len().min(100) as u64) as usize].clone(),
                    _ => strange_frame(&mut random, &seen),
                };
                strange += 1;
                pair.ends[end].arrives.borrow_mut().push_back(frame);
            }
        }
        pair.run(Span::from_us(40), &mut |frame| {
            if seen.len() < 5_000 {
                seen.push(frame.clone());
            } else {
                let at = 2_500 + random.below(2_500) as usize;
                seen[at].clone_from(frame);
            }
            true
        });
        assert_eq!(pair.states(), [SessionState::Active; 2]);
    }
    pair.run(Span::from_ms(100), &mut |_| true);
    for to in 0..2 {
        let got = pair.got(to);
        let end = &mut pair.ends[to];
        assert!(
            end.link.take_events().iter().all(|event| !matches!(event, LinkEvent::Endpoint(_))),
            "the session was disturbed"
        );
        let tally = end.link.context().statistics.tally;
        assert!(tally.rx_forged > 1_000 && tally.rx_replayed > 1_000 && tally.rx_stranger > 0, "{tally:?}");
        let counters = end.link.endpoint().counters();
        assert_eq!((counters.given_up, counters.rx_missing_seq), (0, 0));
        assert!(got == (0..sent).collect::<Vec<u32>>(), "{} of {sent}", got.len());
    }
}
