//! One node, message by message.

use super::*;

#[derive(Default)]
struct NodeRecorder {
    sent: Vec<SyncMessage>,
    notes: Vec<NodeNote>,
}

impl NodeOut for NodeRecorder {
    fn send(&mut self, message: SyncMessage) {
        self.sent.push(message);
    }

    fn note(&mut self, note: NodeNote) {
        self.notes.push(note);
    }
}

const PARENT: Neighbour = Neighbour(1);
const BACKUP: Neighbour = Neighbour(2);
const PARAMS: NodeParams = NodeParams::THESIS;
/// The parent's, and one after it.
const FIRST: SyncTerm = SyncTerm { number: 1, root: 3 };
const SECOND: SyncTerm = SyncTerm { number: 2, root: 5 };
const START: Time = Time::from_ps(1_000_000_000_000);

fn us(us: u64) -> Time {
    START + Span::from_us(us)
}

fn follower(depth: u16, backup_depth: u16, backup_root: bool) -> PlanPart {
    let parent = Upstream { neighbour: PARENT, depth };
    let backup = Some(Upstream { neighbour: BACKUP, depth: backup_depth });
    PlanPart { plan: 1, role: PlannedRole::Follower { parent, backup, backup_root } }
}

/// A node that is driven by hand, with a parent whose clock shows what the node's oscillator does.
struct Story {
    params: NodeParams,
    node: ClockNode,
    out: NodeRecorder,
}

impl Story {
    fn new(part: PlanPart) -> Self {
        Self { params: PARAMS, node: ClockNode::new(&PARAMS, 7, part, START), out: NodeRecorder::default() }
    }

    fn message(wave: u64) -> SyncMessage {
        SyncMessage { term: FIRST, wave, ..SyncMessage::default() }
    }

    fn hears(&mut self, now: Time, from: Neighbour, message: SyncMessage, sender: Time) -> &mut Self {
        let arrival = SyncArrival { message, sender: ClockInterval::exactly(sender) };
        self.node.on_message(&self.params, now, from, &arrival, &mut self.out);
        self
    }

    fn time(&mut self, now: Time) -> &mut Self {
        self.node.on_time(&self.params, now, &mut self.out);
        self
    }

    fn epsilon(&self, now: Time) -> u64 {
        self.node.epsilon(&self.params, now).unwrap().as_ps()
    }

    fn notes(&mut self) -> Vec<NodeNote> {
        std::mem::take(&mut self.out.notes)
    }
}

fn rejected(rejection: SyncRejection) -> Vec<NodeNote> {
    vec![NodeNote::Rejected(rejection)]
}

#[test]
fn a_node_sends_because_it_has_just_received_and_not_otherwise() {
    let mut story = Story::new(follower(3, 6, false));
    assert_eq!(story.node.epsilon(&PARAMS, START), None, "it knows no time yet");
    story.hears(us(90), PARENT, SyncMessage { depth: 2, ..Story::message(1) }, us(90));
    assert_eq!(story.out.sent.len(), 1);
    assert_eq!((story.out.sent[0].wave, story.out.sent[0].depth), (1, 3));
    story.time(us(180)).time(us(270));
    assert_eq!(story.out.sent.len(), 1, "silence and a turn send nothing");
}

#[test]
fn the_larger_bound_of_both_parents_counts_until_the_first_message_of_the_new_one() {
    let mut story = Story::new(follower(8, 2, false));
    story.hears(us(0), PARENT, SyncMessage { depth: 7, ..Story::message(1) }, us(0));
    assert_eq!(story.node.deadline(&PARAMS), Some(us(185)));
    let before = story.epsilon(us(185));
    story.time(us(185));
    assert_eq!(story.node.state(), NodeState::Turned);
    assert_eq!(story.epsilon(us(185)), before, "turning does not make its old error smaller");
    story.hears(us(270), BACKUP, SyncMessage { depth: 1, ..Story::message(4) }, us(270));
    assert_eq!(story.epsilon(us(270)), PARAMS.base(2).as_ps());

    let mut thesis = Story::new(follower(8, 2, false));
    thesis.params.timeout = TimeoutRule::Thesis;
    thesis.hears(us(0), PARENT, SyncMessage { depth: 7, ..Story::message(1) }, us(0)).time(us(185));
    assert!(thesis.epsilon(us(185)) < before, "the thesis's rule forgets the old error");
}

#[test]
fn the_backup_root_takes_over_after_both_timeouts_and_sends_at_once() {
    let mut story = Story::new(follower(1, 6, true));
    story.hears(us(0), PARENT, Story::message(7), us(0)).time(us(185));
    assert_eq!(story.node.deadline(&PARAMS), Some(us(365)));
    let epsilon = story.epsilon(us(365));
    story.notes();
    story.time(us(365));
    assert_eq!((story.node.state(), story.notes()), (NodeState::Root, vec![NodeNote::Elected]));
    let wave = story.out.sent[1];
    assert_eq!((wave.epoch, wave.wave), (SyncEpoch { plan: 1, elected: true }, 8));
    assert_eq!((wave.term, wave.line), (SyncTerm { number: 2, root: 7 }, 0), "the line goes on");
    assert_eq!(wave.handover.as_ps(), epsilon, "what the time may have moved by");
    assert_eq!((story.epsilon(us(400)), story.node.deadline(&PARAMS)), (0, Some(us(455))));
}

/// A controller that gives everybody the plan again may not know yet that the root was replaced.
#[test]
fn a_backup_root_that_took_over_stays_the_root_of_its_plan() {
    let mut story = Story::new(follower(1, 6, true));
    story.hears(us(0), PARENT, Story::message(7), us(0)).time(us(185)).time(us(365));
    story.node.on_plan(&PARAMS, us(400), follower(1, 6, true), &mut story.out);
    assert_eq!((story.node.state(), story.epsilon(us(420))), (NodeState::Root, 0));
    assert_eq!(story.node.epoch(), SyncEpoch { plan: 1, elected: true });
    let next = PlanPart { plan: 2, ..follower(1, 6, true) };
    story.node.on_plan(&PARAMS, us(430), next, &mut story.out);
    assert_eq!(story.node.state(), NodeState::Following, "a new plan is another matter");
}

#[test]
fn who_never_heard_a_root_does_not_become_one() {
    let mut story = Story::new(follower(1, 6, true));
    story.time(us(185));
    assert_eq!((story.node.state(), story.node.deadline(&PARAMS)), (NodeState::Turned, None));
}

#[test]
fn an_old_root_is_not_believed_while_its_successor_is_heard_whatever_the_plan() {
    let mut story = Story::new(follower(2, 4, false));
    story.hears(us(0), PARENT, SyncMessage { term: SECOND, ..Story::message(9) }, us(0));
    story.notes();
    story.hears(us(90), PARENT, Story::message(10), us(90));
    assert_eq!(story.notes(), rejected(SyncRejection::EarlierTerm));
    assert_eq!(story.node.state(), NodeState::Following, "it is no reason to turn either");
    let part = PlanPart { plan: 2, ..follower(2, 4, false) };
    story.node.on_plan(&PARAMS, us(100), part, &mut story.out);
    story.hears(us(180), PARENT, Story::message(11), us(180));
    assert_eq!(story.notes(), rejected(SyncRejection::EarlierTerm), "a plan does not make it later");
    let third = SyncTerm::after(SECOND, 3);
    story.hears(us(181), PARENT, SyncMessage { term: third, ..Story::message(1) }, us(181));
    assert_eq!((story.notes(), story.node.term()), (vec![NodeNote::Synchronised], third));
}

/// Better an earlier root than none.
#[test]
fn who_hears_nobody_of_its_term_for_long_begins_anew_with_what_its_parents_have() {
    let mut story = Story::new(follower(2, 4, false));
    story.hears(us(0), PARENT, SyncMessage { term: SECOND, ..Story::message(9) }, us(0)).time(us(185));
    story.hears(us(364), BACKUP, Story::message(5), us(900));
    assert_eq!((story.node.state(), story.node.term()), (NodeState::Turned, SECOND));
    story.hears(us(365), BACKUP, Story::message(6), us(901));
    assert_eq!((story.node.reading(us(365)), story.node.term()), (Some(us(901)), FIRST));
}

/// The parent was stopped, another node took over, and a plan makes the parent's time the time again.
#[test]
fn the_time_of_another_line_is_believed_after_three_waves_and_nobody_is_suspected() {
    let mut story = Story::new(follower(2, 4, false));
    story.hears(us(0), PARENT, Story::message(9), us(0));
    story.notes();
    let other = |wave| SyncMessage { term: SECOND, line: 77, ..Story::message(wave) };
    for wave in [20, 21] {
        story.hears(us(90 * (wave - 19)), PARENT, other(wave), us(5_000 + wave));
        assert_eq!(story.notes(), rejected(SyncRejection::Unconfirmed));
        assert_eq!((story.node.state(), story.node.term()), (NodeState::Following, FIRST));
    }
    story.hears(us(270), PARENT, other(22), us(6_000));
    assert_eq!((story.notes(), story.node.reading(us(270))), (vec![NodeNote::Synchronised], Some(us(6_000))));
    assert_eq!((story.node.term(), story.node.line()), (SECOND, 77));
}

#[test]
fn a_forged_wave_between_true_ones_is_never_believed() {
    let mut story = Story::new(follower(2, 4, false));
    for round in 0..20 {
        let now = us(90 * round);
        story.hears(now, PARENT, Story::message(9 + round), now);
        assert_eq!(story.notes(), [NodeNote::Synchronised]);
        let forged = SyncMessage { term: SyncTerm { number: 99, root: 9 }, ..Story::message(50 + round) };
        story.hears(now, PARENT, forged, us(70_000));
        assert_eq!(story.notes(), rejected(SyncRejection::Unconfirmed));
    }
    assert_eq!((story.node.state(), story.node.term()), (NodeState::Following, FIRST));
}

fn root() -> PlanPart {
    PlanPart { plan: 1, role: PlannedRole::Root }
}

#[test]
fn a_root_gives_way_only_to_waves_of_a_later_root_that_a_neighbour_says_to_have() {
    let mut story = Story::new(root());
    let later = |wave| SyncMessage { term: SyncTerm { number: 9, root: 5 }, line: 4, ..Story::message(wave) };
    story.hears(us(10), PARENT, later(1), us(800));
    assert_eq!(story.notes(), rejected(SyncRejection::NotParent), "it listens to nobody");
    story.node.on_later_term(&PARAMS, us(20), PARENT, SyncTerm { number: 9, root: 5 });
    assert_eq!((story.node.state(), story.node.listens_to()), (NodeState::Root, Some(PARENT)), "it goes on meanwhile");
    story.node.on_no_later_term(PARENT);
    story.hears(us(30), PARENT, later(1), us(810));
    assert_eq!(story.notes(), rejected(SyncRejection::NotParent), "its neighbour has said otherwise");
    story.node.on_later_term(&PARAMS, us(40), PARENT, SyncTerm { number: 9, root: 5 });
    story.hears(us(50), PARENT, later(2), us(830));
    assert_eq!(story.notes(), [NodeNote::Replaced, NodeNote::Synchronised]);
    assert_eq!((story.node.state(), story.node.reading(us(50))), (NodeState::Following, Some(us(830))));
    story.hears(us(140), BACKUP, later(3), us(920));
    assert_eq!(story.notes(), [NodeNote::Synchronised], "it hears whoever of its neighbours sends");
}

#[test]
fn a_planned_root_that_hears_nobody_any_more_is_the_root_again_with_the_time_that_it_heard() {
    let mut story = Story::new(root());
    let later = SyncTerm { number: 2, root: 5 };
    story.node.on_later_term(&PARAMS, us(0), PARENT, later);
    story.hears(us(10), PARENT, SyncMessage { term: later, line: 4, ..Story::message(1) }, us(830));
    assert_eq!(story.node.deadline(&PARAMS), Some(us(10 + 185 + 360)), "a backup root would be earlier");
    story.notes();
    story.time(us(555));
    assert_eq!((story.notes(), story.node.state()), (vec![NodeNote::Reigns], NodeState::Root));
    assert_eq!((story.node.term(), story.node.line()), (SyncTerm { number: 3, root: 7 }, 4));
    assert_eq!(story.node.reading(us(555)), Some(us(1_375)));
    assert!(story.node.handover() > Span::ZERO);
}

#[test]
fn a_plan_for_the_old_root_takes_the_time_over_from_its_successor_also_if_it_comes_first() {
    let later = SyncTerm { number: 2, root: 5 };
    for heard_before in [true, false] {
        let mut story = Story::new(root());
        let plan = PlanPart { plan: 2, ..root() };
        if heard_before {
            story.node.on_later_term(&PARAMS, us(0), PARENT, later);
        }
        story.node.on_plan(&PARAMS, us(1), plan, &mut story.out);
        story.node.on_later_term(&PARAMS, us(2), PARENT, later);
        assert_eq!(story.node.state(), NodeState::Root);
        story.hears(us(10), PARENT, SyncMessage { term: later, line: 4, ..Story::message(50) }, us(830));
        assert_eq!((story.node.state(), story.node.line()), (NodeState::Root, 4), "{heard_before}");
        let wave = *story.out.sent.last().unwrap();
        assert_eq!((wave.term, wave.timestamp), (SyncTerm { number: 3, root: 7 }, us(830)));
        assert_eq!(wave.epoch, SyncEpoch { plan: 2, elected: false });
    }
}

/// Its successor was told first, and is no root any more: there is nobody to take the time over from.
#[test]
fn a_plan_for_the_old_root_begins_another_line_if_its_successor_is_silent() {
    let mut story = Story::new(root());
    let line = story.node.line();
    story.node.on_plan(&PARAMS, us(1), PlanPart { plan: 2, ..root() }, &mut story.out);
    story.node.on_later_term(&PARAMS, us(2), PARENT, SECOND);
    story.time(us(372));
    assert_eq!(story.node.term(), SyncTerm { number: 3, root: 7 });
    assert!(story.node.line() != line && story.node.handover() == Span::ZERO);
    assert_eq!(story.node.reading(us(400)), Some(us(400)), "it is its own time");
}

/// A root cannot know since when another node is the root, and at the next message it would suspect its own clock.
#[test]
fn a_root_that_a_plan_makes_a_follower_forgets_its_time() {
    let mut story = Story::new(root());
    story.node.on_plan(&PARAMS, us(5_000), PlanPart { plan: 2, ..follower(2, 4, true) }, &mut story.out);
    assert_eq!((story.node.state(), story.node.epsilon(&PARAMS, us(5_000))), (NodeState::Following, None));
    story.hears(us(5_090), PARENT, SyncMessage { term: SECOND, ..Story::message(3) }, us(9_000));
    assert_eq!(story.notes(), [NodeNote::Synchronised]);
}

#[test]
fn messages_of_strangers_of_the_past_and_of_the_future_change_nothing() {
    let mut story = Story::new(follower(2, 4, false));
    story.hears(us(0), PARENT, Story::message(9), us(0));
    story.notes();
    story.hears(us(90), BACKUP, Story::message(10), us(90));
    assert_eq!(story.notes(), rejected(SyncRejection::NotParent));
    story.hears(us(91), PARENT, Story::message(9), us(91));
    assert_eq!(story.notes(), rejected(SyncRejection::Replay));
    story.hears(us(92), PARENT, Story::message(5_000), us(92));
    assert_eq!(story.notes(), rejected(SyncRejection::Future));
    assert_eq!((story.out.sent.len(), story.node.deadline(&PARAMS)), (1, Some(us(185))));
    story.hears(us(93), PARENT, Story::message(10), us(93));
    assert_eq!(story.notes(), [NodeNote::Synchronised], "and the true one is still welcome");
}

#[test]
fn a_parent_whose_time_cannot_be_true_is_left_and_two_of_them_mean_oneself() {
    let mut story = Story::new(follower(2, 4, true));
    story.hears(us(0), PARENT, SyncMessage { depth: 1, ..Story::message(1) }, us(0));
    story.notes();
    story.hears(us(90), PARENT, SyncMessage { depth: 1, ..Story::message(2) }, us(91));
    assert_eq!(story.notes(), [NodeNote::Rejected(SyncRejection::Invalid), NodeNote::Turned]);
    assert_eq!(story.out.sent.len(), 1, "not sent on");
    story.hears(us(180), BACKUP, SyncMessage { depth: 3, ..Story::message(3) }, us(181));
    assert_eq!(story.notes(), [NodeNote::Rejected(SyncRejection::Invalid), NodeNote::Evicted]);
    assert_eq!(story.node.epsilon(&PARAMS, us(180)), None, "it says no time");
    assert_eq!((story.node.deadline(&PARAMS), story.node.listens_to()), (None, None));
    let part = PlanPart { plan: 2, ..follower(2, 4, true) };
    story.node.on_plan(&PARAMS, us(200), part, &mut story.out);
    story.hears(us(270), PARENT, SyncMessage { depth: 1, ..Story::message(4) }, us(272));
    assert_eq!(story.notes(), [NodeNote::Synchronised], "with a new plan it begins anew");
}

/// (ε_base + drift over 90 µs) / 90 µs: from which frequency on a node notices. By the thesis's rule 256 ppm at depth 1 and 478
/// at depth 5, without residence; intervals that need only overlap notice later, and never suspect an honest parent.
#[test]
fn a_broken_frequency_is_noticed_above_a_window_that_grows_with_depth() {
    let noticed = |depth, validity, ppm: u64| {
        let mut story = Story::new(follower(depth, depth, false));
        story.params.validity = validity;
        story.hears(us(0), PARENT, SyncMessage { depth: depth - 1, ..Story::message(1) }, us(0));
        let behind = us(90) + Span::from_ps(90 * ppm);
        story.hears(us(90), PARENT, SyncMessage { depth: depth - 1, ..Story::message(2) }, behind);
        story.node.state() == NodeState::Turned
    };
    let from = |depth, validity| (200..2_000).find(|ppm| noticed(depth, validity, *ppm)).unwrap();
    assert_eq!(from(1, ValidityRule::OwnBound), 257);
    assert_eq!(from(5, ValidityRule::OwnBound), 484);
    assert_eq!(from(1, ValidityRule::Overlap), 314);
    assert_eq!(from(5, ValidityRule::Overlap), 767);
}

#[test]
fn an_oscillator_that_goes_back_voids_the_time_until_the_next_message() {
    let mut story = Story::new(follower(2, 4, true));
    story.hears(us(500), PARENT, Story::message(1), us(500));
    story.notes();
    story.time(us(100));
    assert_eq!(story.notes(), [NodeNote::ClockStep]);
    assert_eq!(story.node.interval(&PARAMS, us(100)), None);
    story.hears(us(190), PARENT, Story::message(2), us(590));
    assert_eq!(story.node.reading(us(190)), Some(us(590)));
}

#[test]
fn a_roots_time_goes_on_when_its_oscillator_is_set() {
    let mut story = Story::new(root());
    story.time(us(90)).time(us(180));
    let term = story.node.term();
    story.node.on_clock_step(us(10), &mut story.out);
    story.time(us(10));
    assert!(story.node.term() > term, "it is another time than that of those who followed");
    let stamps: Vec<Time> = story.out.sent.iter().map(|message| message.timestamp).collect();
    assert_eq!(stamps, [us(90), us(180), us(180)]);
}

#[test]
fn measured_intervals_add_up_and_carry_what_the_sender_does_not_know() {
    let mut story = Story::new(follower(2, 4, false));
    story.params.depth = DepthRule::Measured;
    let message = SyncMessage { uncertainty: Span::from_us(3), ..Story::message(1) };
    let sender = ClockInterval { earliest: us(86), latest: us(94) };
    story.node.on_message(&story.params, us(90), PARENT, &SyncArrival { message, sender }, &mut story.out);
    let hop = PARAMS.per_hop.total(PARAMS.drift);
    assert_eq!(story.epsilon(us(90)), (Span::from_us(7) + hop).as_ps());
    assert_eq!(story.out.sent[0].uncertainty, Span::from_us(7) + hop);
    assert_eq!(story.node.reading(us(90)), Some(us(90)));
}
