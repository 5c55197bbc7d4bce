use super::*;

const SESSION: SessionIdentity = SessionIdentity { instance: 7, peer: 9, epoch: 3 };

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

/// Fate of a question.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    By(ProbePaths),
    Silence,
}

/// A cable.
const ARRIVES: Fate = Fate::By(ProbePaths::ALL);
/// A switch that learns, and does as bridges should.
const SWITCHED: Fate = Fate::By(ProbePaths::NONE);

/// Asks whatever is due up to a moment; a peer that has proved the same answers after a millisecond. The moments of the
/// questions.
fn run(stamper: &mut Stamper, until: u64, mut fate: impl FnMut(ProbeRound) -> Fate) -> Vec<u64> {
    let mut asked = Vec::new();
    while stamper.probe_at() <= at(until) {
        let now = stamper.probe_at();
        let round = stamper.due(now).unwrap();
        asked.push(now.as_ps() / Span::from_ms(1).as_ps());
        if let Fate::By(paths) = fate(round) {
            stamper.on_answer(now + Span::from_ms(1), round.token, paths, true);
        }
    }
    asked
}

fn probing() -> Stamper {
    let mut stamper = Stamper::new(None);
    stamper.set_session(at(0), true, SessionState::Active, SESSION);
    stamper
}

fn used() -> Stamper {
    let mut stamper = probing();
    run(&mut stamper, 100, |_| ARRIVES);
    assert!(stamper.is_used() && stamper.believes(at(100)));
    stamper
}

#[test]
fn one_answer_does_not_suffice_and_strange_addresses_wait_for_the_proof_of_a_cable() {
    let mut stamper = probing();
    let mut paths = Vec::new();
    for proofs in 0..=PROOFS {
        let now = stamper.probe_at();
        assert!(!stamper.is_used() && !stamper.believes(now), "{proofs}");
        let round = stamper.due(now).unwrap();
        stamper.on_answer(now, round.token.wrapping_add(1), ProbePaths::ALL, true);
        stamper.on_answer(now, round.token, round.paths, true);
        paths.push(round.paths);
    }
    assert_eq!(paths, [ProbePaths::CABLE, ProbePaths::ALL, ProbePaths::ALL, ProbePaths::ALL]);
    assert_eq!(stamper.describe(), ("used", None));
}

#[test]
fn stamps_wait_until_the_peer_has_found_the_same() {
    let mut stamper = probing();
    while stamper.probe_at() < at(100) {
        let now = stamper.probe_at();
        let round = stamper.due(now).unwrap();
        stamper.on_answer(now, round.token, ProbePaths::ALL, false);
    }
    assert!(stamper.has_proved() && stamper.believes(at(100)) && !stamper.is_used());
    assert_eq!(stamper.state(), StampState::Probing);
    stamper.on_question(at(100), 1, true);
    assert!(stamper.is_used());
    stamper.on_question(at(101), 2, false);
    assert!(!stamper.is_used(), "the peer no longer believes");
}

#[test]
fn without_the_peers_offer_or_a_session_nothing_is_probed() {
    let (active, dormant) = (SessionState::Active, SessionState::Dormant);
    for (refusal, offers, state) in [(Some("no"), true, active), (None, false, active), (None, true, dormant)] {
        let mut stamper = Stamper::new(refusal);
        stamper.set_session(at(0), offers, state, SESSION);
        assert_eq!((stamper.due(at(5_000)), stamper.state()), (None, StampState::Unused));
        assert!(stamper.describe().1.is_some());
    }
}

#[test]
fn where_questions_come_by_no_path_they_become_rare_and_no_strange_address_is_tried() {
    let mut stamper = probing();
    let asked = run(&mut stamper, 600_000, |round| {
        assert_eq!(round.paths, ProbePaths::CABLE);
        Fate::By(ProbePaths::NONE)
    });
    assert_eq!(stamper.describe().0, "unanswered");
    assert!(stamper.describe().1.unwrap().contains("switch"));
    assert!((15..25).contains(&asked.len()), "{}", asked.len());
    assert!(!stamper.believes(at(600_000)));
    // Somebody puts in a cable.
    run(&mut stamper, 661_000, |_| ARRIVES);
    assert!(stamper.is_used());
}

#[test]
fn no_loss_of_frames_makes_a_switch_look_like_a_cable() {
    // Whatever arrives, it is never a frame that the switch keeps to itself.
    let mut random = faults::Random::new(1, 1);
    let mut stamper = probing();
    run(&mut stamper, 600_000, |round| {
        assert_eq!(round.paths, ProbePaths::CABLE);
        if random.unit() < 0.3 { Fate::Silence } else { Fate::By(ProbePaths::NONE) }
    });
    assert_eq!((stamper.state(), stamper.relapses()), (StampState::Unanswered, 0));
    // One that passes on reserved addresses learns all the same, and one that forgets does not pass on those.
    for path in [ProbePaths::RESERVED, ProbePaths::RETURN] {
        let mut stamper = probing();
        run(&mut stamper, 10_000, |_| if random.unit() < 0.3 { Fate::Silence } else { Fate::By(path) });
        assert_eq!(stamper.state(), StampState::Unanswered);
    }
}

#[test]
fn the_first_question_that_lacks_a_path_or_is_not_answered_stops_stamps_at_once_and_the_next_lets_them_go_on() {
    for fate in [SWITCHED, Fate::Silence] {
        let mut stamper = used();
        let now = stamper.probe_at();
        let round = stamper.due(now).unwrap();
        assert!(stamper.is_used(), "the answer is on its way");
        if let Fate::By(paths) = fate {
            stamper.on_answer(now, round.token, paths, true);
            assert!(!stamper.is_used());
        }
        let round = stamper.due(stamper.probe_at()).unwrap();
        assert!(!stamper.is_used());
        assert!(stamper.probe_at() < now + LATER, "soon");
        stamper.on_answer(now + Span::from_ms(25), round.token, ProbePaths::ALL, true);
        assert!(stamper.is_used() && stamper.relapses() == 0);
    }
}

#[test]
fn a_twentieth_of_all_frames_lost_is_no_relapse_and_a_switch_that_comes_later_is_one() {
    let mut random = faults::Random::new(2, 1);
    let mut lossy = |_: ProbeRound| {
        let mut paths = ProbePaths::NONE;
        for path in [ProbePaths::RESERVED, ProbePaths::RETURN, ProbePaths::STAMPED] {
            paths = if random.unit() < 0.05 { paths } else { paths.with(path) };
        }
        if random.unit() < 0.1 { Fate::Silence } else { Fate::By(paths) }
    };
    let mut stamper = used();
    let asked = run(&mut stamper, 60_000, &mut lossy).len();
    assert!(asked < 500 && stamper.relapses() <= 1, "{asked} {}", stamper.relapses());
    assert!((60_000..61_000).any(|ms| {
        run(&mut stamper, ms, |_| ARRIVES);
        stamper.is_used()
    }));
    let before = stamper.relapses();
    run(&mut stamper, 62_000, |_| SWITCHED);
    assert_eq!((stamper.state(), stamper.relapses()), (StampState::Unanswered, before + 1));
}

#[test]
fn relapses_are_counted_and_after_some_of_them_stamps_are_left_alone_for_a_minute() {
    let mut stamper = used();
    let mut ms = 100;
    for relapse in 1..=RELAPSES {
        while stamper.relapses() < u64::from(relapse) {
            ms += 1;
            run(&mut stamper, ms, |_| SWITCHED);
        }
        for _ in 0..100 {
            ms += 1;
            run(&mut stamper, ms, |_| ARRIVES);
        }
        assert_eq!(stamper.is_used(), relapse < RELAPSES, "{relapse}");
    }
    run(&mut stamper, ms + 50_000, |_| ARRIVES);
    stamper.on_question_by(9, ProbePaths::CABLE);
    stamper.on_question(at(ms + 50_000), 9, true);
    assert_eq!((stamper.state(), stamper.believes(at(ms + 1))), (StampState::Unanswered, false));
    run(&mut stamper, ms + 61_000, |_| ARRIVES);
    assert!(stamper.is_used());
}

#[test]
fn silence_ends_the_use_of_stamps_and_belief_in_them_a_little_later() {
    let mut stamper = used();
    let begun = stamper.probe_at();
    run(&mut stamper, 1_500, |_| Fate::Silence);
    assert_eq!((stamper.state(), stamper.relapses()), (StampState::Probing, 0));
    assert!(stamper.believes(begun + Span::from_ms(1_700)) && !stamper.believes(begun + BELIEF));
    let round = stamper.due(stamper.probe_at()).unwrap();
    assert_eq!(round.paths, ProbePaths::CABLE, "the cable may be another");
}

#[test]
fn a_peer_that_asks_over_a_cable_wakes_an_end_that_had_given_up() {
    let mut stamper = probing();
    run(&mut stamper, 10_000, |_| SWITCHED);
    assert_eq!(stamper.state(), StampState::Unanswered);
    stamper.on_question(at(10_000), 4, false);
    assert_eq!(stamper.state(), StampState::Unanswered, "over the switch");
    stamper.on_question_by(5, ProbePaths::RESERVED);
    stamper.on_question_by(5, ProbePaths::RETURN);
    assert_eq!(stamper.on_question(at(10_001), 5, false), ProbePaths::CABLE);
    assert_eq!((stamper.state(), stamper.probe_at()), (StampState::Probing, at(10_001)));
}

#[test]
fn a_third_host_on_the_wire_ends_it_for_as_long_as_it_is_heard() {
    let mut stamper = used();
    for second in 1..300 {
        stamper.on_third_host(at(second * 1_000));
        run(&mut stamper, second * 1_000 + 999, |_| ARRIVES);
        assert_eq!(stamper.state(), StampState::Unanswered);
        assert!(!stamper.is_used() && !stamper.believes(at(second * 1_000)));
    }
    assert!(stamper.describe().1.unwrap().contains("third host"));
    run(&mut stamper, 360_000, |_| ARRIVES);
    assert!(stamper.is_used());
}

#[test]
fn another_session_begins_anew_and_one_that_closes_still_takes_what_was_stamped() {
    let mut stamper = used();
    stamper.set_session(at(200), true, SessionState::Closing, SESSION);
    assert!(!stamper.is_used() && stamper.believes(at(200)) && stamper.session() == SESSION);
    let mut stamper = used();
    let tags = (stamper.own_tag(), stamper.peer_tag());
    assert_eq!(tags, (StampTag::new(7, 9, 3), StampTag::new(9, 7, 3)));
    stamper.set_session(at(200), true, SessionState::Active, SessionIdentity { epoch: 4, ..SESSION });
    assert_eq!((stamper.state(), stamper.believes(at(200))), (StampState::Probing, false));
    assert_ne!((stamper.own_tag(), stamper.peer_tag()), tags);
    let mut stamper = used();
    stamper.set_session(at(200), false, SessionState::Active, SESSION);
    assert_eq!((stamper.state(), stamper.believes(at(200))), (StampState::Unused, false));
}

#[test]
fn a_long_cable_and_a_busy_peer_are_waited_for() {
    let mut stamper = probing();
    let mut answers = std::collections::VecDeque::new();
    for ms in 0..3_000 {
        while answers.front().is_some_and(|(due, _)| *due <= ms) {
            let (_, round): (u64, ProbeRound) = answers.pop_front().unwrap();
            stamper.on_answer(at(ms), round.token, ProbePaths::ALL, true);
        }
        if let Some(round) = stamper.due(at(ms)) {
            answers.push_back((ms + 70, round));
        }
    }
    assert!(stamper.is_used());
}

#[test]
fn frames_most_of_which_are_lost_end_it_at_once_and_a_tenth_of_them_does_not() {
    let lost = |tx_missing| Counters { tx_missing, ..Counters::default() };
    let mut stamper = used();
    for n in 1..100 {
        stamper.look_at_losses(at(100 + n), n * 1_000, &lost(n * 100));
        assert!(stamper.is_used());
    }
    let mut stamper = used();
    stamper.look_at_losses(at(110), 100, &lost(90));
    assert!(stamper.is_used(), "two super-frames that came late");
    let mut stamper = used();
    for relapse in 1..=u64::from(RELAPSES) {
        stamper.look_at_losses(at(relapse * 200), relapse * 1_000, &lost(relapse * 900));
        assert!(!stamper.is_used());
        run(&mut stamper, relapse * 200 + 150, |_| ARRIVES);
        assert_eq!(stamper.is_used(), relapse < u64::from(RELAPSES));
    }
    assert!(stamper.describe().1.unwrap().contains("lost"));
}
