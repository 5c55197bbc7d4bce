//! The optimizer and the fast checker against trying everything.

use fleet::corropt::{BUDGET, CandidateLink, choose};
use fleet::fabric::{FabricError, FabricWire, Facebook};
use fleet::paths::{Constraint, Paths};
use fleet::penalty::Penalty;
use fleet::{Fabric, LinkId, SwitchId};
use proptest::prelude::*;
use units::Rate;

/// Levels of switches, each joined to some of those above; a parallel link here and there.
fn clos(widths: &[u32], joined: &[bool]) -> Fabric {
    let starts: Vec<u32> = widths.iter().scan(0, |next, width| Some(std::mem::replace(next, *next + width))).collect();
    let mut wires = Vec::new();
    let mut joined = joined.iter().copied().cycle();
    for level in 0..widths.len() - 1 {
        for lower in 0..widths[level] {
            for upper in 0..widths[level + 1] {
                // Some are always there, so that nobody is left alone.
                let always = upper == 0 || lower == upper % widths[level];
                let parallel = match (always, joined.next(), joined.next()) {
                    (true, Some(true), Some(true)) | (false, Some(true), Some(false)) => 2,
                    (true, ..) | (false, Some(true), _) => 1,
                    (false, ..) => 0,
                };
                for port in 0..parallel {
                    let wire = FabricWire::new(SwitchId(starts[level] + lower), SwitchId(starts[level + 1] + upper));
                    wires.push(wire.with_ports(format!("u{upper}.{port}"), format!("d{lower}.{port}")));
                }
            }
        }
    }
    let names = (0..widths.iter().sum::<u32>()).map(|switch| format!("s{switch}"));
    Fabric::new(names, wires).expect("a fabric")
}

/// Ways from a switch to the top without some links, counted anew.
fn ways(fabric: &Fabric, paths: &Paths<'_>, gone: &[LinkId], switch: SwitchId) -> u64 {
    if fabric.is_top(switch) {
        return 1;
    }
    let up = fabric.up(switch).iter().filter(|link| paths.is_enabled(**link) && !gone.contains(link));
    up.map(|&link| ways(fabric, paths, gone, fabric.link(link).upper)).sum()
}

/// True if every ToR has the paths it needs without these links, or lacked some before and has lost no more.
fn satisfied(fabric: &Fabric, paths: &Paths<'_>, gone: &[LinkId]) -> bool {
    let mut tors = fabric.segments().iter().flat_map(|segment| &segment.tors);
    tors.all(|&tor| ways(fabric, paths, gone, tor) >= paths.need(tor).min(paths.ways(tor)))
}

fn fabrics() -> impl Strategy<Value = Fabric> {
    let two = (1..3u32, 1..7u32).prop_map(|(tors, spines)| vec![tors, spines]);
    let three = (1..5u32, 1..4u32, 1..4u32).prop_map(|(tors, inner, spines)| vec![tors, inner, spines]);
    let four = (1..4u32, 1..3u32, 1..3u32, 1..3u32).prop_map(|(a, b, c, d)| vec![a, b, c, d]);
    let widths = prop_oneof![1 => two, 3 => three, 2 => four];
    (widths, prop::collection::vec(any::<bool>(), 1..40)).prop_map(|(widths, joined)| clos(&widths, &joined))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn the_optimizer_is_as_good_as_trying_every_set(
        fabric in fabrics(),
        share in prop::sample::select(vec![0.25, 0.3, 0.5, 0.6, 0.75, 0.9]),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 1..1_000u32), 1..11),
        gone in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
    ) {
        let mut paths = Paths::new(&fabric, Constraint::new(share).unwrap());
        let link = |index: prop::sample::Index| LinkId(index.index(fabric.links().len()) as u32);
        for index in gone {
            // Perhaps by somebody who does not care for constraints.
            if paths.is_enabled(link(index)) {
                paths.disable(link(index));
            }
        }
        let segment = fabric.link(link(picks[0].0)).segment;
        let mut candidates: Vec<CandidateLink> = picks.iter()
            .map(|(index, weight)| CandidateLink { link: link(*index), penalty: Penalty::of_loss(f64::from(*weight) * 1e-6) })
            .filter(|candidate| paths.is_enabled(candidate.link) && fabric.link(candidate.link).segment == segment)
            .collect();
        candidates.sort_by_key(|candidate| candidate.link);
        candidates.dedup_by_key(|candidate| candidate.link);

        let mut best = Penalty::ZERO;
        for set in 0..1u32 << candidates.len() {
            let chosen: Vec<CandidateLink> =
                (0..candidates.len()).filter(|i| set >> i & 1 == 1).map(|i| candidates[i]).collect();
            let links: Vec<LinkId> = chosen.iter().map(|candidate| candidate.link).collect();
            if satisfied(&fabric, &paths, &links) {
                best = best.max(chosen.iter().map(|candidate| candidate.penalty).sum());
            }
        }

        let before = paths.clone();
        let choice = choose(&mut paths, &candidates, BUDGET);
        prop_assert!(satisfied(&fabric, &paths, &choice.links));
        prop_assert_eq!(choice.removed, best);
        prop_assert_eq!(choice.missed, Penalty::ZERO);
        for link in 0..fabric.links().len() as u32 {
            prop_assert_eq!(paths.is_enabled(LinkId(link)), before.is_enabled(LinkId(link)));
        }
    }

    #[test]
    fn counts_and_checks_agree_with_counting_anew(
        fabric in fabrics(),
        share in prop::sample::select(vec![0.0, 0.3, 0.5, 0.75]),
        steps in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        careless in any::<bool>(),
    ) {
        let mut paths = Paths::new(&fabric, Constraint::new(share).unwrap());
        for index in steps {
            let link = LinkId(index.index(fabric.links().len()) as u32);
            if paths.is_enabled(link) {
                let can = paths.can_disable(link);
                prop_assert_eq!(can, satisfied(&fabric, &paths, &[link]));
                if can || careless {
                    paths.disable(link);
                }
            } else {
                paths.enable(link);
            }
            paths.check_invariants();
            for switch in (0..fabric.switches().len() as u32).map(SwitchId) {
                prop_assert_eq!(paths.ways(switch), ways(&fabric, &paths, &[], switch));
            }
        }
        for link in (0..fabric.links().len() as u32).map(LinkId) {
            if !paths.is_enabled(link) {
                paths.enable(link);
            }
        }
        for switch in (0..fabric.switches().len() as u32).map(SwitchId) {
            prop_assert_eq!(paths.ways(switch), paths.full(switch));
        }
    }
}

#[test]
fn the_papers_example_link_a_goes_and_link_b_stays() {
    let fabric = Fabric::facebook(&Facebook::pods(1)).unwrap();
    let mut paths = Paths::new(&fabric, Constraint::new(0.75).unwrap());
    let tor = fabric.segments()[0].tors[0];
    assert_eq!((paths.ways(tor), paths.need(tor)), (192, 144));
    let b = fabric.up(tor)[0];
    let a = fabric.up(fabric.link(fabric.up(tor)[1]).upper)[0];
    assert!(paths.can_disable(a));
    paths.disable(a);
    assert_eq!(paths.ways(tor), 191);
    assert_eq!(paths.in_the_way(b), Some((tor, 143)));
    paths.enable(a);
    assert!(paths.can_disable(b));
}

#[test]
fn a_search_that_must_stop_early_breaks_no_constraint_and_says_what_it_may_have_missed() {
    let fabric = Fabric::fat_tree(8, Rate::gbps(100)).unwrap();
    let mut paths = Paths::new(&fabric, Constraint::new(0.6).unwrap());
    let links = fabric.segments()[0].links.clone();
    let candidates: Vec<CandidateLink> = links
        .map(|link| CandidateLink {
            link: LinkId(link),
            penalty: Penalty::of_loss(1e-6 * f64::from(link * 7919 % 31 + 1)),
        })
        .collect();
    let best = choose(&mut paths, &candidates, BUDGET);
    assert_eq!(best.missed, Penalty::ZERO);
    for budget in [1, 3, 10] {
        let choice = choose(&mut paths, &candidates, budget);
        assert!(satisfied(&fabric, &paths, &choice.links));
        assert!(choice.removed <= best.removed && best.removed <= choice.removed + choice.missed, "{budget}");
    }
}

/// Every uplink of its own worth and size: the hardest that a ToR can be.
#[test]
fn a_tor_with_many_corrupting_links_is_settled_and_no_constraint_broken() {
    let (uplinks, spines) = (64u32, 163u32);
    let switches = 1 + uplinks + spines;
    let up = (0..uplinks).map(|i| FabricWire::new(SwitchId(0), SwitchId(1 + i)));
    let ways = (0..uplinks).flat_map(|i| {
        (0..100 + i).map(move |spine| FabricWire::new(SwitchId(1 + i), SwitchId(1 + uplinks + spine % spines)))
    });
    let fabric = Fabric::new((0..switches).map(|i| format!("s{i}")), up.chain(ways)).unwrap();
    let mut paths = Paths::new(&fabric, Constraint::new(0.75).unwrap());
    let candidate = |(i, &link): (usize, &LinkId)| CandidateLink {
        link,
        penalty: Penalty::of_loss(1e-6 * (1_000 + i * i * 7919 % 997) as f64),
    };
    let candidates: Vec<CandidateLink> = fabric.up(SwitchId(0)).iter().enumerate().map(candidate).collect();
    let choice = choose(&mut paths, &candidates, BUDGET);
    assert!(satisfied(&fabric, &paths, &choice.links));
    let greatest = choice.removed + choice.missed;
    assert!(choice.links.len() >= 16 && choice.missed.as_f64() < 0.01 * greatest.as_f64(), "{choice:?}");
}

/// Every switch of a level linked to every one of the next.
fn mesh(levels: u32, width: u32) -> Result<Fabric, FabricError> {
    let pairs = move || (0..width).flat_map(move |lower| (0..width).map(move |upper| (lower, upper)));
    let switch = move |level: u32, number: u32| SwitchId(level * width + number);
    let wires = (0..levels - 1).flat_map(|level| {
        pairs().map(move |(lower, upper)| FabricWire::new(switch(level, lower), switch(level + 1, upper)))
    });
    Fabric::new((0..levels * width).map(|i| format!("s{i}")), wires)
}

#[test]
fn a_deep_fabric_is_as_quick_as_a_flat_one() {
    let (levels, width) = (12, 8);
    let fabric = mesh(levels, width).unwrap();
    let mut paths = Paths::new(&fabric, Constraint::new(0.5).unwrap());
    assert_eq!(paths.ways(SwitchId(0)), 8u64.pow(11));
    let highest = fabric.up(SwitchId((levels - 2) * width))[0];
    paths.disable(highest);
    assert_eq!(paths.ways(SwitchId(0)), 8u64.pow(11) - 8u64.pow(9));
}

#[test]
fn more_paths_than_can_be_counted_are_refused() {
    let error = mesh(20, 16).unwrap_err();
    assert!(error.to_string().contains("paths to the top"), "{error}");
}
