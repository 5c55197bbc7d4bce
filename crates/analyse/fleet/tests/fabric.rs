//! Fabrics from numbers, from lists of wires and from files; and what is refused.

use bus::PortId;
use fleet::fabric::{FabricError, FabricNode, FabricWire, Facebook, LinkEnd, Role, SwitchNames};
use fleet::{Fabric, LinkId, SwitchId};
use proptest::prelude::*;
use units::Rate;

const RATE: Rate = Rate::gbps(100);

/// All that the solver relies on.
fn check(fabric: &Fabric) {
    let level = |switch: SwitchId| fabric.switch(switch).level;
    let mut end = 0;
    for (number, segment) in fabric.segments().iter().enumerate() {
        assert_eq!(segment.links.start, end, "segments' links are one range after another");
        end = segment.links.end;
        assert!(segment.switches.is_sorted_by(|a, b| level(*a) >= level(*b)), "from the top down");
        for switch in &segment.switches {
            assert_eq!(fabric.switch(*switch).segment, Some(number as u32));
            assert!(!fabric.is_top(*switch));
        }
        for link in segment.links.clone().map(LinkId) {
            assert_eq!(fabric.link(link).segment, number as u32);
            assert_eq!(fabric.segment_of(link), segment);
            assert!(segment.switches.contains(&fabric.link(link).lower), "a link belongs where its lower end does");
        }
        assert!(segment.tors.iter().all(|tor| segment.switches.contains(tor) && fabric.down(*tor).is_empty()));
    }
    assert_eq!(end as usize, fabric.links().len());
    for (id, link) in (0..).map(LinkId).zip(fabric.links()) {
        assert!(level(link.lower) < level(link.upper));
        assert!(fabric.up(link.lower).contains(&id) && fabric.down(link.upper).contains(&id));
        let upper = fabric.switch(link.upper).segment;
        assert!(upper.is_none() || upper == Some(link.segment), "paths leave a segment only at the top");
    }
    let all = |of: fn(&Fabric, SwitchId) -> &[LinkId]| -> usize {
        (0..fabric.switches().len() as u32).map(|switch| of(fabric, SwitchId(switch)).len()).sum()
    };
    assert_eq!([all(Fabric::up), all(Fabric::down)], [fabric.links().len(); 2]);
}

fn wires(ends: &[(u32, u32)]) -> Vec<FabricWire> {
    ends.iter().map(|(lower, upper)| FabricWire::new(SwitchId(*lower), SwitchId(*upper))).collect()
}

#[test]
fn the_papers_fabric_has_a_hundred_thousand_links() {
    let fabric = Fabric::facebook(&Facebook::pods(261)).unwrap();
    assert_eq!((fabric.switches().len(), fabric.links().len(), fabric.segments().len()), (13_764, 100_224, 261));
    check(&fabric);
    let pod = &fabric.segments()[12];
    assert_eq!((pod.name.as_str(), pod.links.len(), pod.tors.len(), pod.switches.len()), ("pod12", 384, 48, 52));
    let names = SwitchNames::of(&fabric);
    let spine = names.switch("plane2/spine41").unwrap();
    assert!(fabric.is_top(spine) && fabric.switch(spine).level == 2 && fabric.down(spine).len() == 261);
    assert!(names.link("pod12/tor7--pod12/fabric2").is_ok());
    assert!(names.link("pod12/fabric2--plane2/spine41").is_ok());
    assert!(names.link("pod12/fabric2--plane1/spine41").is_err(), "a fabric switch knows only its plane");
}

#[test]
fn every_link_of_a_pod_is_found_by_the_name_it_gives_itself() {
    let fabric =
        Fabric::facebook(&Facebook { pods: 3, tors: 5, fabrics: 2, spines: 4, rate: Rate::gbps(400) }).unwrap();
    check(&fabric);
    let names = SwitchNames::of(&fabric);
    for (id, link) in (0..).map(LinkId).zip(fabric.links()) {
        assert_eq!(names.link(&fabric.name(id).to_string()), Ok(id));
        assert_eq!(link.rate, Rate::gbps(400));
    }
    assert_eq!(fabric.name(LinkId(0)).to_string(), "pod0/tor0--pod0/fabric0");
    assert_eq!(names.link("pod0/fabric0--pod0/tor0"), Ok(LinkId(0)), "either end first");
}

#[test]
fn fat_trees_and_leaf_spines_have_as_many_links_as_their_figures() {
    for (k, switches, links) in [(2, 5, 4), (4, 20, 32), (16, 320, 2_048)] {
        let fabric = Fabric::fat_tree(k, RATE).unwrap();
        check(&fabric);
        assert_eq!(
            (fabric.switches().len(), fabric.links().len(), fabric.segments().len()),
            (switches, links, k as usize)
        );
    }
    let names = Fabric::fat_tree(4, RATE).unwrap();
    assert!(SwitchNames::of(&names).link("pod3/agg1--core3").is_ok());
    let leaves = Fabric::leaf_spine(6, 4, RATE).unwrap();
    check(&leaves);
    assert_eq!((leaves.links().len(), leaves.segments().len()), (24, 6), "each leaf is a segment");
    assert_eq!(leaves.segments()[5].name, "leaf5");
}

#[test]
fn sizes_that_make_no_sense_are_refused_before_they_fill_the_memory() {
    let said = |result: Result<Fabric, FabricError>| result.unwrap_err().to_string();
    assert_eq!(said(Fabric::fat_tree(5, RATE)), "expected an even number of ports per switch, at least 2");
    assert!(said(Fabric::leaf_spine(0, 1, RATE)).starts_with("expected at least one leaf"));
    assert!(said(Fabric::facebook(&Facebook::pods(0))).starts_with("expected at least one pod"));
    assert!(said(Fabric::facebook(&Facebook::pods(1_000_000))).contains("expected at most 1000000 and 10000000"));
    for most in [u32::MAX, u32::MAX - 1] {
        let all = Facebook { pods: most, tors: most, fabrics: most, spines: most, rate: RATE };
        assert!(Fabric::facebook(&all).is_err());
        assert!(Fabric::fat_tree(most, RATE).is_err());
        assert!(Fabric::leaf_spine(most, most, RATE).is_err());
    }
}

#[test]
fn links_may_skip_levels_and_a_switch_is_as_high_as_its_longest_way_down() {
    let fabric = Fabric::new(["tor", "agg", "core"], wires(&[(0, 2), (0, 1), (1, 2)])).unwrap();
    check(&fabric);
    assert_eq!([0, 1, 2].map(|switch| fabric.switches()[switch].level), [0, 1, 2]);
    assert_eq!(fabric.segments()[0].switches, [SwitchId(1), SwitchId(0)]);
}

#[test]
fn pods_given_in_any_order_are_sorted_into_ranges_that_keep_the_order_within() {
    let fabric = Fabric::new(["b-t", "a-t", "b-f", "a-f", "top"], wires(&[(1, 3), (2, 4), (0, 2), (3, 4)])).unwrap();
    check(&fabric);
    let names: Vec<String> = (0..4).map(|link| fabric.name(LinkId(link)).to_string()).collect();
    assert_eq!(names, ["b-f--top", "b-t--b-f", "a-t--a-f", "a-f--top"]);
    assert_eq!(fabric.segments().iter().map(|segment| segment.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
}

#[test]
fn a_segment_without_a_name_of_its_own_is_numbered() {
    let names = ["dc-t1", "dc-f1", "dc-t2", "dc-f2", "leaf7", "top"];
    let fabric = Fabric::new(names, wires(&[(0, 1), (1, 5), (2, 3), (3, 5), (4, 5)])).unwrap();
    let names: Vec<&str> = fabric.segments().iter().map(|segment| segment.name.as_str()).collect();
    assert_eq!(names, ["segment0", "segment1", "leaf7"]);
}

#[test]
fn wires_that_make_no_fabric_are_refused() {
    let said = |names: &[&str], ends: &[(u32, u32)]| Fabric::new(names.to_vec(), wires(ends)).unwrap_err().to_string();
    assert_eq!(said(&["a"], &[]), "expected at least one link");
    assert_eq!(said(&["a", "a"], &[(0, 1)]), "two switches are called 'a'");
    assert_eq!(said(&["a", "b"], &[(0, 2)]), "a link ends at switch 2, which there is not");
    assert_eq!(said(&["a", "b"], &[(0, 0)]), "'a' is linked to itself");
    assert!(said(&["a", "b"], &[(0, 1), (0, 1)]).starts_with("there is a link a--b already"));
    assert!(said(&["a,b", "c"], &[(0, 1)]).starts_with("'a,b' is no name of a switch"));
    assert_eq!(said(&["a", "b", "lonely"], &[(0, 1)]), "'lonely' has no links");
    assert_eq!(said(&["t", "a", "b", "c"], &[(0, 1), (1, 2), (2, 3), (3, 1)]), CIRCLE);
    let chain: Vec<String> = (0..300).map(|number| format!("s{number}")).collect();
    let ends: Vec<(u32, u32)> = (0..299).map(|number| (number, number + 1)).collect();
    let too_high = Fabric::new(chain, wires(&ends)).unwrap_err();
    assert_eq!(too_high.to_string(), "'s256' is more than 255 levels above a ToR");
}

const CIRCLE: &str = "links go in a circle: b below c below a below b";

#[test]
fn declared_roles_say_where_paths_begin_and_end() {
    let roles = |tor, inner, top| {
        let nodes = [
            FabricNode::new("t", tor),
            FabricNode::new("border", None),
            FabricNode::new("a", inner),
            FabricNode::new("top", top),
        ];
        Fabric::new(nodes, wires(&[(0, 2), (2, 3), (1, 3)]))
    };
    let fabric = roles(None, None, None).unwrap();
    assert_eq!(fabric.segments().iter().map(|segment| segment.tors.len()).sum::<usize>(), 2);
    let fabric = roles(Some(Role::Tor), None, None).unwrap();
    check(&fabric);
    assert_eq!(fabric.segments()[1].tors, [], "the border switch has nothing below it, but is no ToR");
    let said = |result: Result<Fabric, FabricError>| result.unwrap_err().to_string();
    assert_eq!(said(roles(None, Some(Role::Tor), None)), "'a' is called a ToR, but 't' is below it");
    assert_eq!(said(roles(None, Some(Role::Top), None)), "'a' is called a top switch, but 'top' is above it");
    assert_eq!(said(roles(None, None, Some(Role::Inner))), "ToR 't' does not reach the top");
    assert_eq!(
        said(roles(Some(Role::Inner), None, None).and_then(|_| Fabric::new(
            [FabricNode::new("t", Some(Role::Inner)), FabricNode::new("top", None)],
            wires(&[(0, 1)])
        ))),
        "no switch is a ToR: expected at least one"
    );
}

#[test]
fn a_dead_end_below_declared_tops_is_no_way_up() {
    let nodes = [FabricNode::new("t", None), FabricNode::new("dead", None), FabricNode::new("top", Some(Role::Top))];
    let fabric = Fabric::new(nodes, wires(&[(0, 1), (0, 2)])).unwrap();
    check(&fabric);
    assert!(!fabric.is_top(SwitchId(1)) && fabric.is_top(SwitchId(2)));
}

#[test]
fn a_csv_of_links_with_ports_becomes_a_fabric_and_back() {
    let text = "\
# racks of the north hall
rate,lower,upper,lower_port,upper_port

400G, leaf0, spine0, eth1, eth7
,leaf0,spine0,eth2,eth8
,leaf1,spine0,,
";
    let fabric = Fabric::parse("north.csv", text).unwrap();
    check(&fabric);
    let names = SwitchNames::of(&fabric);
    assert_eq!(fabric.links().iter().map(|link| link.rate).collect::<Vec<_>>(), [Rate::gbps(400), RATE, RATE]);
    assert_eq!(fabric.name(LinkId(1)).to_string(), "leaf0--spine0#2");
    for (name, link) in [("leaf0--spine0", 0), ("leaf0--spine0#1", 0), ("leaf0--spine0#2", 1), ("spine0--leaf1", 2)] {
        assert_eq!(names.link(name), Ok(LinkId(link)), "{name}");
    }
    assert_eq!(names.port(&PortId::new("leaf0", "eth2")), Ok((LinkId(1), LinkEnd::Lower)));
    assert_eq!(names.port(&PortId::new("spine0", "eth7")), Ok((LinkId(0), LinkEnd::Upper)));
    assert_eq!(names.link("spine0/eth8"), Ok(LinkId(1)), "a port is a name of its link, too");
    assert_eq!(fabric.port_at(LinkId(0), LinkEnd::Upper), Some(PortId::new("spine0", "eth7")));
    assert_eq!(fabric.port_at(LinkId(2), LinkEnd::Upper), None);

    let mut written = Vec::new();
    fabric.write_csv(&mut written).unwrap();
    assert_eq!(Fabric::parse("again.csv", std::str::from_utf8(&written).unwrap()), Ok(fabric));
}

#[test]
fn links_keep_their_numbers_when_a_fabric_is_written_and_read() {
    let fabric = Fabric::facebook(&Facebook { pods: 4, tors: 3, fabrics: 2, spines: 5, rate: RATE }).unwrap();
    let mut written = Vec::new();
    fabric.write_csv(&mut written).unwrap();
    let again = Fabric::parse("again.csv", std::str::from_utf8(&written).unwrap()).unwrap();
    check(&again);
    assert_eq!(again.links().len(), fabric.links().len());
    for link in (0..fabric.links().len() as u32).map(LinkId) {
        assert_eq!(again.name(link).to_string(), fabric.name(link).to_string());
    }
    assert_eq!(again.segments().len(), fabric.segments().len());
}

#[test]
fn a_mistyped_name_is_answered_with_the_nearest() {
    let fabric = Fabric::parse("x.csv", "lower,upper,lower_port,upper_port\nleaf0,spine0,eth1,eth7\n").unwrap();
    let names = SwitchNames::of(&fabric);
    let said = |name: &str| names.link(name).unwrap_err().to_string();
    assert_eq!(names.switch("laef0").unwrap_err().to_string(), "no switch is called 'laef0': did you mean 'leaf0'?");
    assert_eq!(said("leaf0--spin0"), "no link is called 'leaf0--spin0': did you mean 'leaf0--spine0'?");
    assert_eq!(said("leaf0--spine0#2"), "no link is called 'leaf0--spine0#2': did you mean 'leaf0--spine0'?");
    assert_eq!(said("leaf0/eth9"), "no link is called 'leaf0/eth9': did you mean 'leaf0/eth1'?");
    assert_eq!(said("nothing"), "no link is called 'nothing'");
    let port = names.port(&PortId::new("leaf0", "eth9")).unwrap_err().to_string();
    assert_eq!(port, "no port is called 'leaf0/eth9': did you mean 'leaf0/eth1'?");
}

#[test]
fn names_with_dashes_are_told_apart() {
    let fabric = Fabric::new(["a--b", "a", "b--c", "c"], wires(&[(0, 3), (1, 2)])).unwrap();
    let names = SwitchNames::of(&fabric);
    assert_eq!(names.link("a--b--c"), Ok(LinkId(1)), "both are called so: the first dashes decide");
    assert_eq!(names.link("c--a--b"), Ok(LinkId(0)));
}

fn said(file: &str, text: &str) -> String {
    Fabric::parse(file, text).unwrap_err().to_string()
}

#[test]
fn a_wrong_csv_is_answered_with_its_line() {
    let wrong = |text: &str| said("links.csv", text);
    assert!(wrong("").starts_with("links.csv:1: expected a header such as lower,upper,"));
    assert_eq!(wrong("lower,upper\n"), "links.csv:1: expected at least one link");
    assert_eq!(wrong("\nlower,uper\n"), "links.csv:2: no such column: 'uper'; did you mean 'upper'?");
    assert!(wrong("lower,rate\n").starts_with("links.csv:1: no column 'upper'"));
    assert_eq!(wrong("lower,upper,lower\n"), "links.csv:1: column 'lower' is there twice");
    assert_eq!(wrong("lower,upper\na,b\na\n"), "links.csv:3: expected lower,upper, found 'a'");
    assert_eq!(wrong("lower,upper\na,\n"), "links.csv:2: no upper switch");
    assert_eq!(wrong("lower,upper\na,b\nb,b\n"), "links.csv:3: 'b' is linked to itself");
    assert_eq!(
        wrong("lower,upper\na,b\nc,b\na,b\n"),
        "links.csv:4: there is a link a--b already: expected different ports if they are parallel (line 2)"
    );
    let ports = "lower,upper,lower_port,upper_port\n";
    assert!(wrong(&format!("{ports}a,b,e1,e1\na,b,e1,e1\n")).starts_with("links.csv:3: there is a link a--b already"));
    assert!(wrong(&format!("{ports}a,b,e1,e1\na,b,,\n")).starts_with("links.csv:3: there is a link a--b already"));
    assert_eq!(wrong(&format!("{ports}a,b,e1,e1\na,c,e1,e1\n")), "links.csv:3: port a/e1 has a link already (line 2)");
    assert_eq!(wrong(&format!("{ports}a,b,e1,\n")), "links.csv:2: expected the ports at both ends, or neither");
    assert!(wrong(&format!("{ports}a,b,0/1,0/2\n")).starts_with("links.csv:2: '0/1' is no name of a port"));
    assert!(wrong("lower,upper,rate\na,b,fast\n").starts_with("links.csv:2: rate: 'fast': expected a rate"));
    assert_eq!(
        wrong("lower,upper\nt,a\na,b\nb,c\nc,a\n"),
        "links.csv:5: links go in a circle: b below c below a below b"
    );
    assert!(said("links.txt", "").contains("ends in .toml or .csv"));
}

#[test]
fn a_tor_that_does_not_reach_the_top_is_named() {
    let apart = said("x.csv", "lower,upper\nt0,f0\nf0,s0\nt1,f1\n");
    assert_eq!(apart, "x.csv:4: 't1' is disconnected: no links lead from it to 't0'");
    let dead = said("x.csv", "lower,upper\nt0,f0\nf0,s0\nt0,f1\nt1,f1\n");
    assert!(dead.starts_with("x.csv:4: 'f1' has no links up, so 't0' does not reach the top through it"), "{dead}");
    let unlinked = said("x.toml", "tors = [\"t0\",\n\"t1\"]\n[[link]]\nlower = \"t0\"\nupper = \"s0\"\n");
    assert_eq!(unlinked, "x.toml:2: ToR 't1' does not reach the top");
    let below = "[[switch]]\nname = \"t\"\n[[switch]]\nname = \"f\"\n[[switch]]\nname = \"u\"\n[[switch]]\nname = \"s\"\nrole = \"top\"\n\
                 [[link]]\nlower = \"t\"\nupper = \"f\"\n[[link]]\nlower = \"u\"\nupper = \"s\"\n";
    assert_eq!(said("x.toml", below), "x.toml:2: ToR 't' does not reach the top");
}

#[test]
fn toml_names_a_kind_of_fabric() {
    let read = |text| Fabric::parse("x.toml", text).unwrap();
    assert_eq!(read("fabric = { kind = \"facebook\", pods = 3 }"), Fabric::facebook(&Facebook::pods(3)).unwrap());
    let odd = Facebook { pods: 2, tors: 3, fabrics: 2, spines: 4, rate: Rate::gbps(400) };
    let text = "[fabric]\nkind = \"facebook\"\npods = 2\ntors = 3\nfabrics = 2\nspines = 4\nrate = \"400G\"";
    assert_eq!(read(text), Fabric::facebook(&odd).unwrap());
    assert_eq!(read("[fabric]\nkind = \"fat-tree\"\nk = 8"), Fabric::fat_tree(8, RATE).unwrap());
    let leaves = "[fabric]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2";
    assert_eq!(read(leaves), Fabric::leaf_spine(4, 2, RATE).unwrap());
    let jupiter = read("[fabric]\nkind = \"jupiter\"\nrate = \"40G\"");
    assert_eq!((jupiter.switches().len(), jupiter.links().len()), (22_528, 229_376));
    assert_eq!(
        (jupiter.segments().iter().map(|segment| segment.tors.len()).sum::<usize>(), jupiter.links()[0].rate),
        (64 * 128, Rate::gbps(40))
    );
}

#[test]
fn toml_lists_switches_and_links() {
    let text = r#"
        [[switch]]
        name = "leaf0"
        role = "tor"
        [[switch]]
        name = "border"
        [[switch]]
        name = "spine0"
        role = "top"

        [[link]]
        lower = "leaf0"
        upper = "spine0"
        ports = ["eth1", "eth7"]
        rate = "400G"
        [[link]]
        lower = "border"
        upper = "spine0"
    "#;
    let fabric = Fabric::parse("x.toml", text).unwrap();
    check(&fabric);
    assert_eq!(fabric.links().iter().map(|link| link.rate).collect::<Vec<_>>(), [Rate::gbps(400), RATE]);
    assert_eq!(SwitchNames::of(&fabric).port(&PortId::new("spine0", "eth7")), Ok((LinkId(0), LinkEnd::Upper)));
    assert_eq!(fabric.segments().iter().map(|segment| segment.tors.len()).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn a_wrong_toml_is_answered_with_its_line() {
    let wrong = |text: &str| said("x.toml", text);
    assert!(wrong("").starts_with("x.toml:1: expected at least one link: [[link]], or a [fabric]"));
    assert!(wrong("\n[fabric\n").starts_with("x.toml:2: "));
    assert_eq!(wrong("[fabrik]\n"), "x.toml:1: no such key: 'fabrik'; did you mean 'fabric'?");
    assert_eq!(wrong("fabric = 3"), "x.toml:1: fabric: expected a table: [fabric]");
    assert_eq!(wrong("[fabric]\npods = 3"), "x.toml:1: kind: missing");
    assert_eq!(
        wrong("[fabric]\nkind = \"fattree\""),
        "x.toml:2: no such kind of fabric: 'fattree'; did you mean 'fat-tree'?"
    );
    assert_eq!(wrong("[fabric]\nkind = \"facebook\"\npdos = 3"), "x.toml:3: no such key: 'pdos'; did you mean 'pods'?");
    assert_eq!(
        wrong("[fabric]\nkind = \"fat-tree\"\npods = 3"),
        "x.toml:3: no such key: 'pods'; expected one of kind, k, rate"
    );
    assert_eq!(wrong("[fabric]\nkind = \"facebook\""), "x.toml:1: pods: missing");
    assert_eq!(
        wrong("[fabric]\nkind = \"jupiter\"\nhosts = \"two\""),
        "x.toml:3: no such kind of host links: 'two'; expected one of dual, single, none"
    );
    for number in ["0", "-3", "1.5", "\"3\"", "99999999999"] {
        let text = format!("[fabric]\nkind = \"facebook\"\npods = {number}");
        assert_eq!(wrong(&text), "x.toml:3: pods: expected a whole number of at least 1, below 2^32");
    }
    assert!(wrong("[fabric]\nkind = \"facebook\"\npods = 3\n[[link]]\n").starts_with("x.toml:4: expected either"));
    let link = "[[link]]\nlower = \"a\"\nupper = \"b\"\n";
    assert_eq!(wrong(&format!("{link}[[link]]\nlower = \"a\"\n")), "x.toml:4: upper: missing");
    assert_eq!(wrong(&format!("{link}port = 3\n")), "x.toml:4: no such key: 'port'; did you mean 'ports'?");
    assert!(wrong(&format!("{link}ports = [\"e1\"]\n")).starts_with("x.toml:4: ports: expected two"));
    assert!(wrong(&format!("{link}rate = \"100\"\n")).starts_with("x.toml:4: rate: '100': expected a rate"));
    assert!(wrong(&format!("{link}rate = 100\n")).starts_with("x.toml:4: rate: expected text"));
    assert!(wrong(&format!("{link}\n{link}")).starts_with("x.toml:5: there is a link a--b already"));
    assert!(wrong("[link]\nlower = \"a\"\n").starts_with("x.toml:1: link: expected a list of tables: [[link]]"));
}

#[test]
fn a_link_to_a_switch_that_was_not_declared_is_refused() {
    let declared = "[[switch]]\nname = \"leaf0\"\n[[switch]]\nname = \"spine0\"\n";
    let wrong = |more: &str| said("x.toml", &format!("{declared}{more}"));
    let link = wrong("[[link]]\nlower = \"leaf0\"\nupper = \"spnie0\"\n");
    assert_eq!(link, "x.toml:7: no switch is called 'spnie0': did you mean 'spine0'?");
    assert_eq!(wrong("[[switch]]\nname = \"leaf0\"\n"), "x.toml:6: two switches are called 'leaf0'");
    assert_eq!(wrong("role = \"spine\"\n"), "x.toml:5: no such role: 'spine'; expected one of tor, inner, top");
    let both = said("x.toml", &format!("tors = [\"spine0\"]\n{declared}role = \"top\"\n"));
    assert_eq!(both, "x.toml:1: 'spine0' is said to be a top switch as well as a ToR");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Fabric::load(std::path::Path::new("no/such/fabric.csv")).unwrap_err();
    assert!(error.to_string().starts_with("no/such/fabric.csv: "), "{error}");
}

/// Three or four tiers; every switch but those of the last linked to some of the higher ones.
fn tiers() -> impl Strategy<Value = (usize, Vec<(u32, u32)>)> {
    prop::collection::vec(1..5u32, 2..5).prop_flat_map(|sizes| {
        let all: u32 = sizes.iter().sum();
        let first_top = all - sizes[sizes.len() - 1];
        let mut first = 0;
        let mut choices = Vec::new();
        for size in &sizes[..sizes.len() - 1] {
            for switch in first..first + size {
                choices.push((Just(switch), prop::collection::btree_set(first + size..all, 1..4)));
            }
            first += size;
        }
        assert!(first == first_top);
        choices.prop_map(move |links| {
            let ends: Vec<(u32, u32)> =
                links.into_iter().flat_map(|(low, ups)| ups.into_iter().map(move |up| (low, up))).collect();
            (all as usize, ends)
        })
    })
}

proptest! {
    #[test]
    fn any_wires_in_tiers_make_a_fabric_that_keeps_its_promises((all, ends) in tiers(), turn in any::<prop::sample::Index>()) {
        // Tops that nothing is linked to are left out: a switch without links is refused.
        let linked = |switch: &u32| ends.iter().any(|(low, up)| low == switch || up == switch);
        let kept: Vec<u32> = (0..all as u32).filter(linked).collect();
        let place = |switch: u32| kept.iter().position(|other| *other == switch).unwrap() as u32;
        let mut ends: Vec<(u32, u32)> = ends.iter().map(|(low, up)| (place(*low), place(*up))).collect();
        let middle = turn.index(ends.len());
        ends.rotate_left(middle);
        let names: Vec<String> = kept.iter().map(|switch| format!("s{switch}")).collect();
        let fabric = Fabric::new(names, wires(&ends)).unwrap();
        check(&fabric);
        prop_assert_eq!(fabric.links().len(), ends.len());
        let names = SwitchNames::of(&fabric);
        for link in (0..ends.len() as u32).map(LinkId) {
            prop_assert_eq!(names.link(&fabric.name(link).to_string()), Ok(link));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(lower|upper|,|\n|a|b|c|#|\"|=|\\[|\\]|link|fabric|kind|rate|100G| ){0,40}") {
        // A string that nothing ends is missing its end behind the last line break.
        let lines = text.split('\n').count();
        for file in ["x.csv", "x.toml"] {
            if let Err(error) = Fabric::parse(file, &text) {
                prop_assert!(error.line.is_some_and(|line| line <= lines), "{}", error);
            }
        }
    }
}
