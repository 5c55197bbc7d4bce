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
        Self { params: PARAMS, node: ClockNode::new(&PARAMS, part, START), out: NodeRecorder::default() }
    }

    fn message(wave: u64) -> SyncMessage {
        SyncMessage { epoch: SyncEpoch { plan: 1, elected: false }, wave, ..SyncMessage::default() }
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
fn an_old_root_is_not_believed_until_a_plan_says_so() {
    let mut story = Story::new(follower(2, 4, false));
    let elected = SyncEpoch { plan: 1, elected: true };
    story.hears(us(0), PARENT, SyncMessage { epoch: elected, ..Story::message(9) }, us(0));
    story.notes();
    story.hears(us(90), PARENT, Story::message(10), us(90));
    assert_eq!(story.notes(), rejected(SyncRejection::WrongEpoch));
    assert_eq!(story.node.state(), NodeState::Following, "it is no reason to turn either");
    let part = PlanPart { plan: 2, ..follower(2, 4, false) };
    story.node.on_plan(&PARAMS, us(100), part, &mut story.out);
    let planned = SyncEpoch { plan: 2, elected: false };
    story.hears(us(180), PARENT, SyncMessage { epoch: planned, ..Story::message(11) }, us(180));
    assert_eq!(story.notes(), [NodeNote::Synchronised]);
    let far = SyncEpoch { plan: 4, elected: false };
    story.hears(us(270), PARENT, SyncMessage { epoch: far, ..Story::message(12) }, us(270));
    assert_eq!(story.notes(), rejected(SyncRejection::WrongEpoch), "a plan that nobody can have yet");
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
    let mut story = Story::new(PlanPart { plan: 1, role: PlannedRole::Root });
    story.time(us(90)).time(us(180));
    story.node.on_clock_step(us(10), &mut story.out);
    story.time(us(10));
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
