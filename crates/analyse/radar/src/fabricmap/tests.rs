use super::findings::{Finding, FindingKind};
use super::picture::OUT;
use super::stories::{SLOT, SlotStory, flow, leaf_spine};
use super::*;

const FIRST: u64 = 1_000;

/// Runs a map over so many slots, each as `tell` has it.
fn run(slots: u64, tell: impl Fn(&mut SlotStory<'_>, u64)) -> MapAnswer {
    run_with(FabricMapOptions::default(), None, slots, tell)
}

fn run_with(
    options: FabricMapOptions,
    routes: Option<&str>,
    slots: u64,
    tell: impl Fn(&mut SlotStory<'_>, u64),
) -> MapAnswer {
    let fabric = leaf_spine();
    let routes = routes.map(|text| PortRoutes::parse(&fabric, text).unwrap());
    let mut map = FabricMap::new(fabric.clone(), routes, options);
    for slot in 0..slots {
        let mut story = SlotStory::new(&fabric, FIRST + slot);
        tell(&mut story, slot);
        for report in story.reports().values() {
            map.on_report(None, report.to_bytes()).unwrap();
        }
    }
    map.finish().0
}

const UP: [&str; 3] = ["leaf1", "spine1", "leaf2"];
const OTHER: [&str; 3] = ["leaf1", "spine2", "leaf2"];

/// Traffic of which nothing is wrong: 40 flows, half of them over each spine.
fn healthy(story: &mut SlotStory<'_>, flows: std::ops::Range<u64>) {
    flows.for_each(|nth| story.path(nth, 5, if nth % 2 == 0 { &UP } else { &OTHER }));
}

fn kinds(answer: &MapAnswer) -> Vec<(&'static str, String)> {
    answer.findings().iter().map(|found| (found.kind.name(), found.place.join(" "))).collect()
}

fn only(answer: &MapAnswer) -> &Finding {
    assert_eq!(answer.findings().len(), 1, "{:?}", kinds(answer));
    &answer.findings()[0]
}

fn lost(answer: &MapAnswer, link: &str) -> [u64; 2] {
    let at = answer.fabric().links().iter().position(|has| has.name == link).unwrap();
    answer.links[at][0].lost.unwrap()
}

/// Slots from the first at fault to the one in which a finding was known.
fn slots_until_known(finding: &Finding, first: u64) -> u64 {
    finding.known / SLOT - (FIRST + first)
}

#[test]
fn of_a_fabric_that_works_nothing_is_found() {
    let answer = run(400, |story, slot| {
        healthy(story, 0..40);
        // Some come and go.
        if slot % 7 < 3 {
            healthy(story, 100..120);
        }
    });
    assert_eq!((kinds(&answer), answer.slots), (vec![], 400));
    assert_eq!(lost(&answer, "leaf1--spine1"), [0, 2 * 5 * 30], "all that may have been under way at either end");
}

#[test]
fn a_route_that_sends_packets_back_is_a_loop_on_that_link() {
    let answer = run(60, |story, slot| {
        healthy(story, 0..40);
        if slot >= 20 {
            story.add(200, 4, 0, "host", IN);
            (0..30).for_each(|_| story.cross(200, [4, 4], "leaf1", "spine1"));
            (0..30).for_each(|_| story.cross(200, [4, 4], "spine1", "leaf1"));
        }
    });
    let found = only(&answer);
    assert_eq!((found.kind, found.place.join(" ")), (FindingKind::Loop, "leaf1/up1 spine1/down1".to_owned()));
    assert!(found.is_sure && found.flows.keys().eq([&flow(200)]));
    assert!(slots_until_known(found, 20) <= 3);
}

#[test]
fn a_circle_over_four_switches_is_a_loop_and_a_new_path_is_none() {
    let round = ["leaf1", "spine1", "leaf2", "spine2", "leaf1"];
    let answer = run(40, |story, slot| {
        healthy(story, 0..40);
        if slot >= 20 {
            story.add(200, 4, 0, "host", IN);
            (0..15).for_each(|_| round.windows(2).for_each(|hop| story.cross(200, [4, 4], hop[0], hop[1])));
        }
    });
    let found = only(&answer);
    assert_eq!((found.kind, found.why), (FindingKind::Loop, "cycle"));
    assert!(found.flows.keys().eq([&flow(200)]) && found.place.len() == 4);
    let moved = run(40, |story, slot| {
        healthy(story, 0..40);
        story.path(200, 4, if slot < 20 { &UP } else { &OTHER });
        // Within the slot of the change, both.
        (slot == 20).then(|| story.path(200, 4, &UP));
    });
    assert_eq!(kinds(&moved), []);
}

#[test]
fn a_switch_that_swallows_a_flow_is_a_blackhole_within_three_slots() {
    let answer = run(60, |story, slot| {
        healthy(story, 0..40);
        if slot < 20 {
            story.path(200, 2, &UP);
        } else {
            story.add(200, 2, 0, "host", IN);
            story.cross(200, [2, 2], "leaf1", "spine1");
        }
    });
    let found = only(&answer);
    assert_eq!((found.kind, &found.place[..]), (FindingKind::Blackhole, &["spine1".to_owned()][..]));
    assert!(found.flows.keys().eq([&flow(200)]));
    assert!(slots_until_known(found, 20) <= 3, "{}", slots_until_known(found, 20));
    assert_eq!(found.since, (FIRST + 20) * SLOT);
}

#[test]
fn packets_for_the_switch_itself_and_packets_in_a_queue_are_no_blackhole() {
    let fabric = leaf_spine();
    let mut map = FabricMap::new(fabric.clone(), None, FabricMapOptions::default());
    for slot in 0..60 {
        let mut story = SlotStory::new(&fabric, FIRST + slot);
        healthy(&mut story, 0..40);
        story.add(200, 3, 0, "host", IN);
        // A queue holds what came in one slot until the next but one.
        story.add(201, if slot % 3 == 0 { 5 } else { 0 }, 0, "host", IN);
        story.add(201, if slot % 3 == 1 { 5 } else { 0 }, 0, "up1", OUT);
        story.add(201, if slot % 3 == 1 { 5 } else { 0 }, 2, "down1", IN);
        story.add(201, if slot % 3 == 2 { 5 } else { 0 }, 2, "down2", OUT);
        story.add(201, if slot % 3 == 2 { 5 } else { 0 }, 1, "up1", IN);
        story.add(201, if slot % 3 == 2 { 5 } else { 0 }, 1, "host", OUT);
        for (switch, mut report) in story.reports() {
            if switch == 0 {
                report.ended = vec![flow(200)];
            }
            map.on_report(None, report.to_bytes()).unwrap();
        }
    }
    assert_eq!(kinds(&map.finish().0), []);
}

#[test]
fn a_queue_that_drops_is_no_blackhole() {
    // A tenth of all packets is lost inside the spines, from 40 flows with two packets each.
    let answer = run(200, |story, slot| {
        for nth in 0..40 {
            let gone = u32::from((nth * 7 + slot) % 10 == 0) * 2;
            let path = if nth % 2 == 0 { "spine1" } else { "spine2" };
            story.add(nth, 2, 0, "host", IN);
            story.cross(nth, [2, 2], "leaf1", path);
            story.cross(nth, [2 - gone; 2], path, "leaf2");
            story.add(nth, 2 - gone, 1, "host", OUT);
        }
    });
    assert_eq!(kinds(&answer), []);
}

#[test]
fn losses_on_a_link_are_bounded_and_named_with_their_flows() {
    let answer = run(200, |story, slot| {
        for nth in 0..40 {
            let path = if nth % 2 == 0 { "spine1" } else { "spine2" };
            // Flow 8 never pauses, flow 10 does.
            let packets = if nth == 10 && slot % 10 > 5 { 0 } else { 5 };
            let gone = u32::from((nth == 8 || nth == 10) && packets > 0 && slot % 4 == 0);
            story.add(nth, packets, 0, "host", IN);
            story.cross(nth, [packets, packets - gone], "leaf1", path);
            story.cross(nth, [packets - gone; 2], path, "leaf2");
            story.add(nth, packets - gone, 1, "host", OUT);
        }
    });
    let found = only(&answer);
    assert_eq!((found.kind, found.place.join(" ")), (FindingKind::Loss, "leaf1/up1 spine1/down1".to_owned()));
    assert!(found.is_sure && found.flows.keys().eq([&flow(8), &flow(10)]), "{:?}", found.flows);
    let truth = (0..200).filter(|slot| slot % 4 == 0).count() as u64
        + (0..200).filter(|slot| slot % 4 == 0 && slot % 10 <= 5).count() as u64;
    let [low, high] = lost(&answer, "leaf1--spine1");
    assert!(low <= truth && truth <= high && high - low < 400, "{low} to {high}, and {truth} were lost");
    assert_eq!(lost(&answer, "leaf1--spine2")[0], 0);
}

#[test]
fn packets_under_way_when_a_slot_ends_are_not_lost() {
    let answer = run(200, |story, slot| {
        for nth in 0..20 {
            // Some arrive a slot later.
            let [late, before] = [slot, slot.wrapping_sub(1)].map(|slot| ((slot.wrapping_mul(31) ^ nth) % 3) as u32);
            let before = if slot == 0 { 0 } else { before };
            let path = if nth % 2 == 0 { "spine1" } else { "spine2" };
            story.add(nth, 5, 0, "host", IN);
            story.cross(nth, [5, 5 - late + before], "leaf1", path);
            story.cross(nth, [5 - late + before; 2], path, "leaf2");
            story.add(nth, 5 - late + before, 1, "host", OUT);
        }
    });
    assert_eq!((kinds(&answer), lost(&answer, "leaf1--spine1")[0]), (vec![], 0));
}

#[test]
fn a_link_that_swallows_one_flow_is_a_blackhole_there_and_no_loss() {
    let answer = run(60, |story, _| {
        healthy(story, 0..40);
        story.add(200, 4, 0, "host", IN);
        story.cross(200, [4, 0], "leaf1", "spine1");
    });
    let found = only(&answer);
    assert_eq!(
        (found.kind, found.why, found.place.join(" ")),
        (FindingKind::Blackhole, "link", "leaf1/up1 spine1/down1".into())
    );
    let [low, high] = lost(&answer, "leaf1--spine1");
    assert!(low <= 240 && high >= 240);
}

#[test]
fn of_slots_with_missed_packets_or_without_a_report_nothing_is_said() {
    let fabric = leaf_spine();
    let mut map = FabricMap::new(fabric.clone(), None, FabricMapOptions::default());
    for slot in 0..300 {
        let mut story = SlotStory::new(&fabric, FIRST + slot);
        healthy(&mut story, 0..40);
        // leaf2 sees nothing at all, and says so in every second slot; spine2 is away for a while.
        story.missed.insert(1, slot % 2 * 500);
        for nth in 0..10 {
            story.add(300 + nth, 5 * (1 - slot as u32 % 2), 0, "host", IN);
        }
        for (switch, report) in story.reports() {
            if switch != 3 || !(100..160).contains(&slot) {
                map.on_report(None, report.to_bytes()).unwrap();
            }
        }
    }
    let answer = map.finish().0;
    let holes: Vec<_> = kinds(&answer).into_iter().filter(|(kind, _)| *kind != "blackhole").collect();
    assert_eq!(holes, []);
    assert!(answer.findings().iter().all(|found| found.place == ["leaf1"]), "{:?}", kinds(&answer));
    let unjudged =
        |link: &str| answer.links[answer.fabric().links().iter().position(|has| has.name == link).unwrap()][0].unjudged;
    assert_eq!([unjudged("leaf1--spine1"), unjudged("leaf1--spine2"), unjudged("leaf2--spine1")], [0, 60, 150]);
}

#[test]
fn a_hash_that_is_unfair_is_the_network_and_a_large_flow_the_application() {
    let network = run(400, |story, _| {
        for nth in 0..60 {
            story.path(nth, 5, if nth % 10 < 9 { &UP } else { &OTHER });
        }
    });
    let found = only(&network);
    assert_eq!(
        (found.kind, found.why, found.place.join(" ")),
        (FindingKind::Imbalance, "network", "leaf1/up1 leaf1/up2".into())
    );
    assert_eq!(found.flows.len(), 54);
    let application = run(400, |story, _| {
        healthy(story, 0..40);
        story.path(201, 220, &OTHER);
    });
    let found = only(&application);
    assert_eq!(
        (found.kind, found.why, found.place.join(" ")),
        (FindingKind::Imbalance, "application", "leaf1/up2 leaf1/up1".into())
    );
    assert!(found.flows.contains_key(&flow(201)) && found.flows.len() == 3);
}

#[test]
fn a_heavy_flow_is_found_once_with_all_its_ports() {
    // 1 Gbit/s is 1,250 packets of 1,000 bytes in a slot.
    let answer = run(250, |story, _| {
        healthy(story, 0..8);
        story.path(201, 400, &OTHER);
    });
    let found = only(&answer);
    assert_eq!((found.kind, found.place.join(" ")), (FindingKind::Heavy, "leaf1/up2 spine2/down2".to_owned()));
    assert!(found.flows.keys().eq([&flow(201)]));
}

#[test]
fn bursts_at_even_distances_are_pulses_and_others_are_not() {
    let bursts = |at: &dyn Fn(u64) -> bool| {
        run(500, |story, slot| {
            healthy(story, 0..8);
            at(slot).then(|| story.path(201, 900, &UP));
        })
    };
    let answer = bursts(&|slot| slot % 50 < 3);
    let found = only(&answer);
    assert_eq!((found.kind, found.place.join(" ")), (FindingKind::Pulsing, "leaf1/up1 spine1/down2".to_owned()));
    assert!(found.flows.keys().eq([&flow(201)]));
    let uneven = [0, 20, 90, 120, 220, 240, 330, 420, 450];
    assert_eq!(kinds(&bursts(&|slot| uneven.contains(&slot))), []);
    assert_eq!(kinds(&bursts(&|slot| slot % 5 == 0)), [], "closer than pulses are");
}

#[test]
fn a_flow_by_way_of_another_leaf_is_off_its_route() {
    let detour = |story: &mut SlotStory<'_>, _| {
        healthy(story, 0..40);
        story.path(200, 5, &["leaf1", "spine1", "leaf2", "spine2"]);
    };
    let answer = run(60, |story, slot| {
        detour(story, slot);
    });
    assert!(kinds(&answer).is_empty(), "hosts at two switches have no place: {:?}", kinds(&answer));
    let answer = run(60, |story, _| {
        healthy(story, 0..40);
        story.add(4, 5, 0, "host", IN);
        story.cross(4, [5, 5], "leaf1", "spine1");
        story.cross(4, [5, 5], "spine1", "leaf2");
        story.cross(4, [5, 5], "leaf2", "spine2");
        story.cross(4, [5, 5], "spine2", "leaf1");
    });
    assert!(
        kinds(&answer).iter().any(|(kind, place)| *kind == "off-route" && place == "leaf2"),
        "{:?}",
        kinds(&answer)
    );
    let routes = "switch,prefix,ports\nleaf1,10.0.2.0/24,up1\n";
    let answer = run_with(FabricMapOptions::default(), Some(routes), 60, |story, _| healthy(story, 0..40));
    let found = only(&answer);
    assert_eq!((found.kind, found.why, found.place.join(" ")), (FindingKind::OffRoute, "routes", "leaf1/up2".into()));
    assert_eq!(found.flows.len(), 20);
}

/// A map and one healthy slot of it.
fn begun() -> (FabricMap, BTreeMap<usize, SwitchSlot>) {
    let fabric = leaf_spine();
    let mut story = SlotStory::new(&fabric, FIRST);
    healthy(&mut story, 0..8);
    let reports = story.reports();
    (FabricMap::new(fabric, None, FabricMapOptions::default()), reports)
}

#[test]
fn reports_that_do_not_belong_are_refused_with_what_to_do() {
    let (mut map, reports) = begun();
    let refusal = |map: &mut FabricMap, change: &dyn Fn(&mut SwitchSlot)| {
        let mut report = reports[&0].clone();
        change(&mut report);
        map.on_report(Some(Timestamp(FIRST * SLOT)), report.to_bytes()).unwrap_err()
    };
    map.on_report(Some(Timestamp(FIRST * SLOT)), reports[&0].to_bytes()).unwrap();
    assert!(refusal(&mut map, &|report| report.switch = "leaf9".into()).contains("no switch leaf9"));
    assert!(refusal(&mut map, &|report| report.length *= 2).contains("use the same --slot"));
    assert!(refusal(&mut map, &|report| report.life += 1).contains("two meters report as switch leaf1"));
    assert!(refusal(&mut map, &|_| ()).contains("came twice"));
    assert!(refusal(&mut map, &|report| report.slot += 100_000).contains("set both by NTP"));
    assert!(map.on_report(None, b"GET / HTTP/1.1".to_vec()).unwrap_err().contains("radar flows meter"));
    let (mut short, _) = begun();
    short.options.way = SLOT;
    assert!(refusal(&mut short, &|_| ()).contains("use a longer --slot"));
}

#[test]
fn a_meter_without_a_port_of_the_topology_is_remarked_once() {
    let (mut map, reports) = begun();
    let mut report = reports[&0].clone();
    report.ports.remove(0);
    map.on_report(None, report.to_bytes()).unwrap();
    assert!(map.remarks()[0].contains("the topology has up1, and its meter has only up2, host"));
    assert!(map.remarks().is_empty());
}

#[test]
fn reports_that_wait_take_no_more_than_their_memory() {
    let fabric = leaf_spine();
    let memory = 64 << 10;
    let options = FabricMapOptions { memory, patience: 1 << 40, ..FabricMapOptions::default() };
    let mut map = FabricMap::new(fabric.clone(), None, options);
    for slot in 0..300 {
        let mut story = SlotStory::new(&fabric, FIRST + slot);
        // Every packet is of another flow.
        (0..100).for_each(|nth| story.path(slot * 100 + nth, 1, &UP));
        // One switch never reports, so all others wait.
        for (_, report) in story.reports().into_iter().filter(|(switch, _)| *switch != 3) {
            map.on_report(None, report.to_bytes()).unwrap();
            assert!(map.held <= memory);
        }
    }
    assert_eq!(map.finish().0.slots, 300);
}
