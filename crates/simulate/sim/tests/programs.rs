//! Abilities of switch programs, each shown by the smallest program that has it; and programs that run together.

use std::collections::BTreeMap;

use faults::{FaultSchedule, LossModel};
use machine::{Forward, SwitchOut, SwitchPort, SwitchProgram, Ticket, Visit};
use roce::{self, repeat};
use sim::net::{
    self, DatagramConfig, DatagramGaps, LinkSetup, NetworkOutcome, NetworkProgram, NetworkSetup, Protection, SimPacket,
    TrafficSetup, TransportSetup, metering,
};
use sim::topology::{Topology, TopologyLinkId};
use sim::workload::{FlowSchedule, Workload, WorkloadFlow};
use units::{Prob, Rate, Span, Time, Unwatched};

const PAYLOAD: u32 = 1_000;

/// Two hosts on two switches, and `packets` datagrams from one to the other.
fn setup(packets: u64) -> NetworkSetup {
    let rate = Rate::gbps(10);
    let topology = Topology::dumbbell(1, rate, rate, Span::from_us(1)).unwrap();
    let [src, dst] = ["h0", "h1"].map(|name| topology.node(name).unwrap());
    let flow = WorkloadFlow { start: Time::ZERO, src, dst, bytes: packets * u64::from(PAYLOAD), group: 0 };
    let config = DatagramConfig { payload: PAYLOAD, rate: Some(Rate::gbps(1)), gaps: DatagramGaps::Even };
    let traffic = TrafficSetup {
        name: "datagrams".to_owned(),
        transport: TransportSetup::Datagrams(config),
        work: Workload::Open(FlowSchedule::list(vec![flow])),
        reply: 0,
        acknowledged: false,
        class: 0,
        ack_class: None,
        queue_pairs: None,
    };
    NetworkSetup { traffic: vec![traffic], until: Time::ZERO + Span::from_ms(10), ..NetworkSetup::new(topology) }
}

fn run(setup: NetworkSetup, program: &mut impl NetworkProgram) -> NetworkOutcome {
    net::run_with(setup, program, &Unwatched).unwrap()
}

/// Frames that left the second switch for the receiver, and the first for the sender.
fn frames(outcome: &NetworkOutcome) -> [u64; 2] {
    let topology = setup(1).topology;
    let port = |from, to| topology.link_between(from, to).unwrap().index();
    [outcome.ports[port("right", "h1")].frames, outcome.ports[port("left", "h0")].frames]
}

/// Sends every tenth packet back at the first switch.
#[derive(Default)]
struct Returning {
    routed: u64,
    seen_again: u64,
}

impl NetworkProgram for Returning {}

impl SwitchProgram for Returning {
    type Frame = SimPacket;
    type Tag = bool;

    fn on_route(&mut self, _now: Time, at: Visit, _frame: &mut SimPacket, returned: &mut bool) -> Forward {
        if at.at.switch != 0 {
            return Forward::Pass;
        }
        self.routed += 1;
        *returned = self.routed.is_multiple_of(10);
        if *returned { Forward::Back } else { Forward::Pass }
    }

    fn on_sent(&mut self, _now: Time, _at: SwitchPort, _frame: &mut SimPacket, returned: &mut bool) {
        self.seen_again += u64::from(*returned);
    }
}

#[test]
fn a_frame_can_be_sent_back_where_it_came_from() {
    let mut program = Returning::default();
    let outcome = run(setup(100), &mut program);
    assert_eq!(frames(&outcome), [90, 10]);
    assert_eq!(program.seen_again, 10, "and every program of the switch sees it leave");
}

/// Holds each packet at the first switch for a time, then lets it go.
struct Holding {
    held: BTreeMap<Ticket, Time>,
    span: Span,
}

impl NetworkProgram for Holding {}

impl SwitchProgram for Holding {
    type Frame = SimPacket;
    type Tag = ();

    fn on_route(&mut self, now: Time, at: Visit, _frame: &mut SimPacket, _tag: &mut ()) -> Forward {
        if at.at.switch != 0 {
            return Forward::Pass;
        }
        self.held.insert(at.ticket, now + self.span);
        Forward::Hold
    }

    fn wake_at(&self) -> Time {
        self.held.values().copied().min().unwrap_or(Time::NEVER)
    }

    fn on_wake<O: SwitchOut<SimPacket>>(&mut self, now: Time, out: &mut O) {
        self.held.retain(|ticket, until| {
            if *until <= now {
                assert_eq!(out.held(*ticket).class, 0, "the frame can be read, and written");
                out.release(*ticket, Forward::Pass);
            }
            *until > now
        });
    }
}

#[test]
fn a_frame_can_be_held_and_released_at_a_time_of_the_programs_own() {
    let fct = |span| {
        let outcome = run(setup(20), &mut Holding { held: BTreeMap::new(), span });
        outcome.flows[0].fct().unwrap()
    };
    assert_eq!(fct(Span::from_us(50)), fct(Span::ZERO) + Span::from_us(50));
}

/// Sends a copy of the first packet that it sees, some time later.
struct Echoing {
    copy: Option<(Time, SwitchPort, SimPacket)>,
    done: bool,
}

impl NetworkProgram for Echoing {}

impl SwitchProgram for Echoing {
    type Frame = SimPacket;
    type Tag = ();

    fn on_route(&mut self, now: Time, at: Visit, frame: &mut SimPacket, _tag: &mut ()) -> Forward {
        if at.at.switch == 0 && !self.done {
            (self.copy, self.done) = (Some((now + Span::from_us(5), at.at, *frame)), true);
        }
        Forward::Pass
    }

    fn wake_at(&self) -> Time {
        self.copy.as_ref().map_or(Time::NEVER, |(at, ..)| *at)
    }

    fn on_wake<O: SwitchOut<SimPacket>>(&mut self, _now: Time, out: &mut O) {
        if let Some((_, at, frame)) = self.copy.take() {
            out.send(at, frame);
        }
    }
}

#[test]
fn a_program_can_send_frames_of_its_own() {
    let outcome = run(setup(20), &mut Echoing { copy: None, done: false });
    let topology = setup(1).topology;
    let sent = outcome.ports[topology.link_between("h0", "left").unwrap().index()].frames;
    // The copy makes up the bytes of the last packet, so that the flow is over before that is sent.
    assert_eq!((sent, frames(&outcome)), (19, [20, 0]));
}

/// Writes when a packet left a switch, and reads at the next switch how long it was on its way.
#[derive(Default)]
struct Timing {
    took: Vec<Span>,
}

impl NetworkProgram for Timing {}

impl SwitchProgram for Timing {
    type Frame = SimPacket;
    type Tag = Option<Time>;

    fn watches_departures(&self) -> bool {
        true
    }

    fn on_route(&mut self, now: Time, _at: Visit, _frame: &mut SimPacket, left: &mut Option<Time>) -> Forward {
        self.took.extend(left.map(|left| now.since(left)));
        Forward::Pass
    }

    fn on_departure(
        &mut self,
        now: Time,
        _at: SwitchPort,
        _bytes: u64,
        _frame: &mut SimPacket,
        left: &mut Option<Time>,
    ) {
        *left = Some(now);
    }
}

#[test]
fn a_tag_written_at_departure_is_read_at_the_next_switch() {
    let mut program = Timing::default();
    run(setup(20), &mut program);
    let (first, wire) = (program.took[0], Span::from_us(1));
    assert_eq!(program.took.len(), 20);
    assert!(first > wire && program.took.iter().all(|took| *took == first), "{:?}", program.took);
}

#[test]
fn programs_run_together_each_with_its_own_tags_and_times() {
    let mut program =
        ((Holding { held: BTreeMap::new(), span: Span::from_us(3) }, Timing::default()), Returning::default());
    let outcome = run(setup(100), &mut program);
    // Programs behind the one that holds a packet see it only after its release.
    assert_eq!((frames(&outcome), program.1.routed), ([100, 0], 0));
    let mut program = (Returning::default(), (Timing::default(), Echoing { copy: None, done: false }));
    let outcome = run(setup(100), &mut program);
    assert_eq!(frames(&outcome), [91, 10]);
    assert_eq!(program.1.0.took.len(), 91);
}

#[test]
fn meters_beside_repeaters_find_what_was_lost_and_nothing_else() {
    let mut setup = setup(1);
    let loss = || FaultSchedule::always(LossModel::PerFrame(Prob::literal(0.02)));
    let link = LinkSetup {
        link: TopologyLinkId(setup.topology.link_between("left", "right").unwrap().link().0),
        forward: loss(),
        reverse: loss(),
        protection: Protection::None,
        activate_at: None,
    };
    setup.links.push(link);
    setup.repeat = Some(repeat::RepeaterConfig::new(2, 2));
    setup.radar =
        Some(metering::MeteringConfig { batch: Span::from_ms(1), timeout: Span::from_us(500), ..Default::default() });
    setup.traffic[0].transport =
        TransportSetup::Roce(roce::RoceConfig { timeout: Span::from_us(200), ..Default::default() });
    let (src, dst) = (setup.topology.node("h0").unwrap(), setup.topology.node("h1").unwrap());
    let flow = WorkloadFlow { start: Time::ZERO, src, dst, bytes: 3_000_000, group: 0 };
    setup.traffic[0].work = Workload::Open(FlowSchedule::list(vec![flow]));
    let outcome = net::run(setup, &Unwatched).unwrap();
    let found = outcome.radar.expect("there are meters");
    assert!(outcome.repeated.naks > 0 && outcome.repeated.naked > 0, "{:?}", outcome.repeated);
    assert_eq!((found.extra, found.late), (0, 0));
    let lost: u64 = found.truth.lost();
    assert!(lost > 20 && found.unnamed.is_empty(), "{lost} lost, {:?} not named", found.unnamed);
    // The batch that is open when the run ends is not looked at.
    let named = found.losses.len() as u64;
    assert!(named <= lost && named * 10 > lost * 5, "{named} of {lost}");
}
