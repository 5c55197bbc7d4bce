//! Topology files as graphs for clocks.

use std::path::PathBuf;

use clock::graph::{Graph, HostLinks};
use fleet::Fabric;
use fleet::fabric::{Facebook, load_domains, load_faults, load_graph, write_graph};
use units::Rate;

/// A file of its own, gone when it is dropped.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hitless-graph-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn same(one: &Graph, other: &Graph) {
    let names = |graph: &Graph| graph.nodes().map(|node| graph.name(node).to_owned()).collect::<Vec<_>>();
    let links = |graph: &Graph| graph.links().map(|link| graph.ends(link)).collect::<Vec<_>>();
    assert_eq!(names(one), names(other));
    assert_eq!(links(one), links(other));
    assert_eq!(one.usual_root(), other.usual_root());
}

#[test]
fn the_fabrics_of_clocks_are_those_of_fleets() {
    let fat_tree = Fabric::fat_tree(8, Rate::gbps(100)).unwrap();
    same(&Graph::from(&fat_tree), &Graph::fat_tree(8, HostLinks::None).unwrap());
    let pods = Fabric::facebook(&Facebook::pods(3)).unwrap();
    same(&Graph::from(&pods), &Graph::pods(3, HostLinks::None).unwrap());
}

const RING: &str = "lower,upper,lower_port,upper_port\na,b,,\nb,c,,\nc,d,e0,e1\nd,a,,\nc,d,e2,e3\n";

#[test]
fn a_ring_needs_no_levels_and_parallel_links_have_ports() {
    let file = TemporaryFile::new("ring.csv", RING);
    let graph = load_graph(&file.0).unwrap();
    assert_eq!((graph.node_count(), graph.link_count()), (4, 5));
    let last = graph.links().last().unwrap();
    assert_eq!(graph.link_name(last).to_string(), "c--d#2");
    assert_eq!(graph.port(last, graph.node_named("d").unwrap()), Some("e3"));
    let mut text = Vec::new();
    write_graph(&graph, false, &mut text).unwrap();
    let again = TemporaryFile::new("again.csv", &String::from_utf8(text).unwrap());
    same(&load_graph(&again.0).unwrap(), &graph);
}

#[test]
fn domains_are_in_toml_or_in_a_csv_of_their_own() {
    let toml = "[[link]]\nlower = \"a\"\nupper = \"b\"\n[[link]]\nlower = \"b\"\nupper = \"c\"\n[[link]]\nlower = \"a\"\nupper = \"c\"\n\
                [[domain]]\nname = \"duct\"\nmembers = [\"a--b\", \"c\"]\n";
    let file = TemporaryFile::new("triangle.toml", toml);
    let graph = load_graph(&file.0).unwrap();
    let duct = &graph.domains()[0];
    assert_eq!((duct.name.as_str(), duct.nodes.len(), duct.links.len()), ("duct", 1, 1));
    let mut text = Vec::new();
    write_graph(&graph, true, &mut text).unwrap();
    let again = TemporaryFile::new("again.toml", &String::from_utf8(text).unwrap());
    assert_eq!(load_graph(&again.0).unwrap().domains(), graph.domains());
    let csv = TemporaryFile::new("domains.csv", "domain,member\nx,b\ny,c\nx,b--c\n");
    let graph = load_domains(&csv.0, graph).unwrap();
    assert_eq!(
        graph.domains().iter().map(|domain| domain.nodes.len() + domain.links.len()).collect::<Vec<_>>(),
        [2, 1]
    );
}

#[test]
fn what_is_wrong_is_said_with_file_and_line() {
    for (name, text, expected) in [
        ("1.csv", "lower,upper\na,b\na,a\n", "1.csv:3: 'a' is linked to itself"),
        ("2.csv", "lower,upper\na,b\nb,a\n", "2.csv:3: there is a link b--a already"),
        ("3.csv", "lower,upper\na,b\nc,d\n", "3.csv:3: 'c' is disconnected: no links lead from it to 'a'"),
        ("4.csv", "lower,upper\n", "4.csv:1: expected at least one link"),
        ("5.txt", "", "5.txt: expected a file whose name ends in .toml or .csv"),
        (
            "6.toml",
            "[[link]]\nlower = \"a\"\nupper = \"b\"\n[[domain]]\nname = \"d\"\nmembers = [\n\"x\"]\n",
            "6.toml:7: domain 'd': no node is called 'x'",
        ),
        (
            "7.toml",
            "[[link]]\nlower = \"a\"\nupper = \"b\"\n[[domain]]\nname = \"d\"\nmembers = [\"a\", \"b\"]\n",
            "7.toml:6: domain 'd' holds every node",
        ),
        (
            "8.toml",
            "[[link]]\nlower = \"a\"\nupper = \"b\"\n[[domain]]\nname = \"d\"\nmembers = []\n",
            "8.toml:1: domain 'd' has no members",
        ),
    ] {
        let file = TemporaryFile::new(name, text);
        let error = load_graph(&file.0).unwrap_err().to_string();
        assert!(error.contains(&expected[1..]), "{error}");
    }
}

#[test]
fn faults_are_names_or_tables_or_messages() {
    let ring = TemporaryFile::new("faulty.csv", RING);
    let graph = load_graph(&ring.0).unwrap();
    let names = TemporaryFile::new("names", "# gone\nc\nlink:a--b\nc/e2\n");
    let failed = load_faults(&names.0, &graph, true).unwrap();
    assert_eq!((failed.nodes.len(), failed.links.len(), failed.corrupting.len()), (1, 2, 0));
    let table = TemporaryFile::new("table", "link,loss,state\nb--c,1e-3,\nd--a,,disabled\n");
    let faults = load_faults(&table.0, &graph, false).unwrap();
    assert_eq!((faults.links.len(), faults.corrupting.len()), (1, 1));
    let wrong = TemporaryFile::new("wrong", "b--x\n");
    let error = load_faults(&wrong.0, &graph, false).unwrap_err().to_string();
    assert!(error.contains(":1: no link is called 'b--x'"), "{error}");
    let mut rest = graph.clone();
    failed.fail(&mut rest);
    assert!(rest.is_failed(graph.node_named("c").unwrap()));
}
