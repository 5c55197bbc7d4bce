//! Violations that were planted, one test for each property.

use clock::graph::{FailureDomain, Graph, GraphNames};
use clock::plan::{PlanFile, PlanRow, UncoveredRow};

/// A ring of six with its diameters, `r` at one end: every node has three links.
const LINKS: [[&str; 2]; 9] =
    [["r", "a"], ["a", "b"], ["b", "c"], ["c", "d"], ["d", "e"], ["e", "r"], ["r", "c"], ["a", "d"], ["b", "e"]];
const NODES: [&str; 6] = ["r", "a", "b", "c", "d", "e"];

/// Node, parent, backup parent.
type Row = [&'static str; 3];

/// Valid: the backup root is a, and loops with d, which is below c.
const SOUND: [Row; 5] = [["a", "r", "d"], ["c", "r", "d"], ["e", "r", "b"], ["d", "c", "a"], ["b", "c", "a"]];

fn graph(domains: &[&[&str]]) -> Graph {
    let number = |name: &str| NODES.iter().position(|node| *node == name).unwrap() as u32;
    let graph = Graph::new(NODES, LINKS.map(|ends| ends.map(number))).unwrap();
    let names = GraphNames::of(&graph);
    let domain = |(number, members): (usize, &&[&str])| {
        let mut domain = FailureDomain { name: format!("duct{number}"), ..FailureDomain::default() };
        members.iter().for_each(|member| assert!(domain.add(member, &names), "{member}"));
        domain
    };
    let domains = domains.iter().enumerate().map(domain).collect();
    graph.clone().with_domains(domains).unwrap()
}

fn file(rows: &[Row]) -> PlanFile {
    let row = |[node, parent, backup]: &Row| PlanRow {
        node: (*node).to_owned(),
        parent: Some((*parent).to_owned()),
        backup: Some((*backup).to_owned()),
        depth: 0,
        depth_backup: None,
        parent_link: None,
        backup_link: None,
    };
    let root = PlanRow { node: "r".to_owned(), parent: None, backup: None, ..row(&["r", "", ""]) };
    let text = r#"{ "root": "r", "backup_root": "a", "plan": [] }"#;
    let mut file = PlanFile { plan: rows.iter().map(row).collect(), ..PlanFile::from_json(text).unwrap() };
    file.plan.push(root);
    file
}

/// Violations in a plan that differs in some rows from the sound one. Depths are not given, so they are not wrong.
fn found(domains: &[&[&str]], changed: &[Row]) -> Vec<String> {
    let rows = SOUND.map(|row| changed.iter().find(|other| other[0] == row[0]).copied().unwrap_or(row));
    lines(&graph(domains), &file(&rows))
}

fn lines(graph: &Graph, file: &PlanFile) -> Vec<String> {
    let lines = file.check(&GraphNames::of(graph)).into_iter().map(|violation| violation.to_string());
    lines.filter(|line| !line.starts_with("depth: ")).collect()
}

/// Expects a violation of `property`, and that `failure` is not survived either.
fn expect(found: &[String], property: &str, failure: &str) {
    assert!(found.iter().any(|line| line.starts_with(property)), "{property} in {found:#?}");
    assert!(found.iter().any(|line| line.starts_with(&format!("failure {failure}"))), "{failure} in {found:#?}");
}

#[test]
fn nothing_is_wrong_with_a_sound_plan() {
    assert_eq!(found(&[], &[]), Vec::<String>::new());
    assert_eq!(found(&[&["b", "e"], &["r--c", "r--e"]], &[["e", "r", "d"]]), Vec::<String>::new());
}

#[test]
fn property_1_a_loop_in_a_subtree() {
    let found = found(&[], &[["e", "b", "d"], ["d", "c", "e"], ["a", "r", "b"]]);
    expect(&found, "property 1: the backup edges of d, e form a loop in the subtree of 'c'", "node:c");
    assert!(!found.iter().any(|line| line.starts_with("property 2")), "{found:#?}");
}

#[test]
fn property_2_a_backup_that_is_an_ancestor() {
    // e hangs below d, which hangs below c; its grandparent is no neighbour, so its parent is planted.
    expect(&found(&[], &[["e", "d", "d"]]), "property 2", "node:d");
    expect(&found(&[], &[["c", "r", "r"]]), "property 2", "node:r");
}

#[test]
fn property_3_a_node_that_the_backup_root_does_not_reach() {
    expect(&found(&[], &[["b", "c", "e"]]), "property 3", "node:r");
}

#[test]
fn property_4_a_domain_that_takes_parent_and_backup() {
    let found = found(&[&["c", "a"]], &[]);
    assert!(
        found.iter().any(|line| line.starts_with("property 4: domain 'duct0' breaks both the way of 'd'")),
        "{found:#?}"
    );
    expect(&found, "property 4", "domain:duct0");
    expect(&self::found(&[&["r--e", "b--e"]], &[]), "property 4", "domain:duct0");
}

#[test]
fn property_5_the_backup_root_is_a_child_of_the_root_on_the_loop() {
    let beside = PlanFile { backup_root: "e".to_owned(), ..file(&SOUND) };
    let found = lines(&graph(&[]), &beside);
    assert!(
        found.iter().any(|line| line.starts_with("property 5: the backup root 'e' is not on the loop")),
        "{found:#?}"
    );
    let below = PlanFile { backup_root: "d".to_owned(), ..file(&SOUND) };
    let found = lines(&graph(&[]), &below);
    assert!(found.iter().any(|line| line.starts_with("property 5: the backup root 'd' is no child")), "{found:#?}");
}

#[test]
fn property_6_a_domain_with_root_and_backup_root() {
    expect(&found(&[&["r", "a"]], &[]), "property 6", "domain:duct0");
}

#[test]
fn property_7_a_domain_that_cuts_off_the_loop_but_not_the_root() {
    let found = found(&[&["r--a", "r--c"]], &[]);
    expect(&found, "property 7", "domain:duct0");
    assert!(found.iter().any(|line| line.contains("elects itself while the root lives")), "{found:#?}");
}

#[test]
fn forms_that_are_wrong_are_all_listed() {
    let mut other = file(&SOUND);
    other.plan[0].node = "x".to_owned();
    other.plan[1].backup = Some("e".to_owned());
    let found = lines(&graph(&[]), &other);
    for expected in ["'x' is foreign", "'a' is missing", "no link that works joins them"] {
        assert!(
            found.iter().any(|line| line.starts_with("form: ") && line.contains(expected)),
            "{expected} in {found:#?}"
        );
    }
    let found = self::found(&[], &[["b", "e", "a"], ["e", "b", "d"]]);
    assert!(found.iter().any(|line| line.contains("form a loop")), "{found:#?}");
}

#[test]
fn figures_that_are_wrong_are_listed() {
    let graph = graph(&[]);
    let names = GraphNames::of(&graph);
    let sound = PlanFile::of(&file(&SOUND).resolve(&names).unwrap(), &graph);
    assert_eq!(sound.check(&names), []);
    let mut other = sound.clone();
    other.plan[1].depth += 1;
    other.plan[2].depth_backup = Some(99);
    other.epoch = other.epoch.map(|epoch| epoch ^ 1);
    let found: Vec<String> = other.check(&names).iter().map(ToString::to_string).collect();
    assert_eq!(found.iter().filter(|line| line.starts_with("depth: ")).count(), 2, "{found:#?}");
    assert!(found.iter().any(|line| line.starts_with("epoch: ")), "{found:#?}");
}

#[test]
fn what_a_plan_says_of_uncovered_nodes_must_hold() {
    // g hangs below d by its only link, and h has nobody.
    let links: Vec<[u32; 2]> = LINKS
        .iter()
        .map(|ends| ends.map(|name| NODES.iter().position(|node| *node == name).unwrap() as u32))
        .chain([[4, 6], [5, 7]])
        .collect();
    let mut graph = Graph::new(NODES.into_iter().chain(["g", "h"]), links).unwrap();
    graph.fail_link(clock::graph::GraphLink(10));
    let row = |node: &str, parent: Option<&str>, because: &str| UncoveredRow {
        node: node.to_owned(),
        parent: parent.map(str::to_owned),
        depth: None,
        because: because.to_owned(),
        parent_link: None,
    };
    let [only, cut_off] = ["its only link leads to d", "cut off: no link that works leads to it"];
    let checked = |complete: bool, uncovered: Vec<UncoveredRow>, rows: &[Row]| {
        lines(&graph, &PlanFile { complete, uncovered, ..file(rows) })
    };
    let sound = || vec![row("g", Some("d"), only), row("h", None, cut_off)];
    assert_eq!(checked(true, sound(), &SOUND), Vec::<String>::new());
    assert_eq!(checked(true, vec![row("g", Some("d"), ""), row("h", None, "")], &SOUND), Vec::<String>::new());
    let one = |found: Vec<String>, starts: &str, says: &str| {
        assert!(found.len() == 1 && found[0].starts_with(starts) && found[0].contains(says), "{found:#?}");
    };
    one(checked(false, sound(), &SOUND), "complete: ", "said to be incomplete");
    let claims =
        |covers_all, uncovered| lines(&graph, &PlanFile { covers_all: Some(covers_all), uncovered, ..file(&SOUND) });
    assert_eq!(claims(false, sound()), Vec::<String>::new());
    one(claims(true, sound()), "covers_all: ", "2 have no backup parent");
    let other = vec![row("g", Some("d"), "every way to it leads through b"), row("h", None, cut_off)];
    one(checked(true, other, &SOUND), "uncovered: 'g'", "expected \"its only link leads to d\"");
    let without_e: Vec<Row> = SOUND.into_iter().filter(|row| row[0] != "e").collect();
    let out = |because: &str| {
        let mut uncovered = sound();
        uncovered.push(row("e", Some("r"), because));
        uncovered
    };
    for because in ["", "none was found that survives every single failure"] {
        one(checked(false, out(because), &without_e), "uncovered: 'e'", "could have");
        let found = checked(true, out(because), &without_e);
        assert!(found.iter().any(|line| line.starts_with("complete: ") && line.contains("'e'")), "{found:#?}");
    }
    let found = checked(false, out("every way to it leads through r"), &without_e);
    assert!(found.iter().any(|line| line.contains("that does not hold")), "{found:#?}");
    let mut gone = sound();
    gone.push(row("e", None, cut_off));
    let found = checked(false, gone, &without_e);
    assert!(found.iter().any(|line| line.starts_with("uncovered: 'e' is not cut off")), "{found:#?}");
}
