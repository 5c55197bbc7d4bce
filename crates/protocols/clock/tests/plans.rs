//! Plans against trying everything, and every single failure of every plan.

use std::collections::BTreeSet;

use clock::graph::{FailureDomain, Graph, GraphLink, GraphNames, GraphNode, HostLinks};
use clock::plan::{ClockPlan, PlanFile, PlanMethod, PlanRequest, SingleFailure, Survival, UncoveredRow, plan};
use proptest::prelude::*;

/// Nodes 0 to `count` with these links, and domains of nodes and links by their numbers.
fn graph(count: u32, links: &[[u32; 2]], domains: &[(Vec<u32>, Vec<u32>)]) -> Graph {
    let names = (0..count).map(|node| format!("n{node}"));
    let graph = Graph::new(names, links.iter().copied()).unwrap();
    let domain = |(number, (nodes, links)): (usize, &(Vec<u32>, Vec<u32>))| FailureDomain {
        name: format!("d{number}"),
        nodes: nodes.iter().copied().map(GraphNode).collect(),
        links: links.iter().copied().map(GraphLink).collect(),
    };
    graph.with_domains(domains.iter().enumerate().map(domain).collect()).unwrap()
}

fn request(root: u32) -> PlanRequest {
    PlanRequest { root: Some(GraphNode(root)), ..PlanRequest::default() }
}

/// All that `clock check` has to say of a plan.
fn violations(graph: &Graph, plan: &ClockPlan) -> Vec<String> {
    PlanFile::of(plan, graph).check(&GraphNames::of(graph)).iter().map(ToString::to_string).collect()
}

/// Connected: node n is linked to an earlier one, and some others are linked too.
fn connected(most: u32, more: usize) -> impl Strategy<Value = (u32, Vec<[u32; 2]>)> {
    (3..=most).prop_flat_map(move |count| {
        let back = prop::collection::vec(any::<u32>(), count as usize - 1);
        let others = prop::collection::vec((0..count, 0..count), 0..=more);
        (back, others).prop_map(move |(back, others)| {
            let tree = (1..count).zip(back).map(|(node, pick)| [node, pick % node]);
            let others = others.into_iter().filter(|(a, b)| a != b).map(|(a, b)| [a, b]);
            (count, tree.chain(others).collect())
        })
    })
}

/// 2-connected: a cycle, and ways from a node to another over new ones.
fn two_connected() -> impl Strategy<Value = (u32, Vec<[u32; 2]>)> {
    let ears = prop::collection::vec((any::<u32>(), any::<u32>(), 0..4u32), 0..40);
    (3..9u32, ears).prop_map(|(cycle, ears)| {
        let mut links: Vec<[u32; 2]> = (0..cycle).map(|node| [node, (node + 1) % cycle]).collect();
        let mut count = cycle;
        for (from, to, length) in ears {
            let (from, to) = (from % count, to % count);
            if from == to {
                continue;
            }
            let way: Vec<u32> = [from].into_iter().chain(count..count + length).chain([to]).collect();
            links.extend(way.windows(2).map(|pair| [pair[0], pair[1]]));
            count += length;
        }
        (count, links)
    })
}

/// A domain: some of the nodes and some of the links, but not all nodes.
type Members = (Vec<u32>, Vec<u32>);

fn some_domains(count: u32, links: u32, most: usize, with_links: bool) -> impl Strategy<Value = Vec<Members>> {
    let nodes = prop::collection::btree_set(0..count, 1..(count as usize).min(4));
    let links = prop::collection::btree_set(0..links, 0..=if with_links { 2 } else { 0 });
    let members = (nodes, links, any::<bool>()).prop_map(move |(nodes, links, only_links)| {
        let nodes: Vec<u32> = if only_links && !links.is_empty() { Vec::new() } else { nodes.into_iter().collect() };
        (nodes, links.into_iter().collect())
    });
    prop::collection::vec(members, 0..=most)
}

/// A small world in which failures are played through, node by node, in the plainest way.
struct World<'a> {
    count: usize,
    links: &'a [[u32; 2]],
    domains: &'a [Members],
}

/// For each node, its parent (or backup parent) and the link to it; the root (0) has none.
type Uplinks = Vec<Option<(usize, usize)>>;

impl World<'_> {
    /// True if every working node hears the root, or the backup root if the root is dead, and no second root arises.
    fn survives(
        &self,
        parent: &Uplinks,
        backup: &Uplinks,
        backup_root: usize,
        dead: &BTreeSet<usize>,
        cut: &BTreeSet<usize>,
    ) -> bool {
        let works =
            |node: usize, up: &Uplinks| up[node].is_some_and(|(to, link)| !dead.contains(&to) && !cut.contains(&link));
        let hears = |node: usize| {
            let mut here = node;
            while here != 0 && works(here, parent) {
                here = parent[here].unwrap().0;
            }
            here == 0 && !dead.contains(&0)
        };
        (1..self.count).filter(|node| !dead.contains(node)).all(|node| {
            let mut here = node;
            for _ in 0..=self.count {
                if hears(here) || dead.contains(&0) && here == backup_root {
                    return true;
                }
                if !works(here, backup) {
                    return false;
                }
                here = backup[here].unwrap().0;
            }
            false
        })
    }

    /// Every link, every node, every domain.
    fn failures(&self) -> Vec<(BTreeSet<usize>, BTreeSet<usize>)> {
        let links = (0..self.links.len()).map(|link| (BTreeSet::new(), BTreeSet::from([link])));
        let nodes = (0..self.count).map(|node| (BTreeSet::from([node]), BTreeSet::new()));
        let all = |members: &[u32]| members.iter().map(|member| *member as usize).collect();
        let domains = self.domains.iter().map(|(nodes, links)| (all(nodes), all(links)));
        links.chain(nodes).chain(domains).collect()
    }

    fn choices(&self, node: usize) -> Vec<(usize, usize)> {
        let ends = self.links.iter().enumerate().map(|(link, [a, b])| (link, *a as usize, *b as usize));
        ends.flat_map(|(link, a, b)| [(a, b, link), (b, a, link)])
            .filter(|(a, ..)| *a == node)
            .map(|(_, b, link)| (b, link))
            .collect()
    }

    /// All trees from node 0.
    fn trees(&self) -> Vec<Uplinks> {
        let mut all = Vec::new();
        self.assign(1, &mut vec![None; self.count], &mut |parent| {
            let reaches = |node: usize| {
                let way = std::iter::successors(Some(node), |here| parent[*here].map(|(up, _)| up));
                way.take(self.count + 1).last() == Some(0)
            };
            if (1..self.count).all(reaches) {
                all.push(parent.clone());
            }
            false
        });
        all
    }

    /// Calls for every assignment of neighbours, until one is taken.
    fn assign(&self, node: usize, chosen: &mut Uplinks, take: &mut dyn FnMut(&Uplinks) -> bool) -> bool {
        if node == self.count {
            return take(chosen);
        }
        for choice in self.choices(node) {
            chosen[node] = Some(choice);
            if self.assign(node + 1, chosen, take) {
                return true;
            }
        }
        false
    }

    /// Tries every tree, every backup root and every backup parent.
    fn has_plan(&self) -> bool {
        let failures = self.failures();
        self.trees().iter().any(|parent| {
            let children = (1..self.count).filter(|node| parent[*node].is_some_and(|(up, _)| up == 0));
            children.into_iter().any(|backup_root| {
                self.assign(1, &mut vec![None; self.count], &mut |backup| {
                    failures.iter().all(|(dead, cut)| {
                        // With root and backup root both dead, nobody is left.
                        let nobody = dead.contains(&0) && dead.contains(&backup_root) && dead.len() < self.count;
                        // Property 4 holds for the backup root too, although it would elect itself.
                        let uplink = backup[backup_root].unwrap();
                        let apart = !dead.contains(&0)
                            || dead.contains(&backup_root)
                            || !dead.contains(&uplink.0) && !cut.contains(&uplink.1);
                        // And so does property 2: the root is its ancestor.
                        let above = uplink.0 != 0;
                        !nobody && apart && above && self.survives(parent, backup, backup_root, dead, cut)
                    })
                })
            })
        })
    }

    /// The same, where domains hold nodes only: then a backup graph exists if the backup root reaches all over edges that survive.
    fn has_plan_by_reach(&self) -> bool {
        let holds = |domain: &Members, node: usize| domain.0.contains(&(node as u32));
        self.trees().iter().any(|parent| {
            let way = |node: usize| -> Vec<usize> {
                std::iter::successors(parent[node].map(|(up, _)| up), |here| parent[*here].map(|(up, _)| up)).collect()
            };
            let usable = |x: usize, y: usize| {
                let way = way(y);
                let breaks = |domain: &&Members| {
                    way.iter().any(|node| holds(domain, *node)) && holds(domain, x) && !holds(domain, y)
                };
                y != 0 && x != 0 && !way.contains(&x) && self.domains.iter().find(breaks).is_none()
            };
            let is_root_apart =
                |node: usize| !self.domains.iter().any(|domain| holds(domain, 0) && holds(domain, node));
            let children =
                (1..self.count).filter(|node| parent[*node].is_some_and(|(up, _)| up == 0) && is_root_apart(*node));
            children.into_iter().any(|backup_root| {
                let mut reached = BTreeSet::from([backup_root]);
                let mut open = vec![backup_root];
                while let Some(x) = open.pop() {
                    for (y, _) in self.choices(x) {
                        if usable(x, y) && reached.insert(y) {
                            open.push(y);
                        }
                    }
                }
                reached.len() == self.count - 1
                    && self.choices(backup_root).iter().any(|(y, _)| usable(*y, backup_root))
            })
        })
    }
}

fn world_with_domains(
    most: u32,
    more: usize,
    with_links: bool,
) -> impl Strategy<Value = (u32, Vec<[u32; 2]>, Vec<Members>)> {
    connected(most, more).prop_flat_map(move |(count, links)| {
        let domains = some_domains(count, links.len() as u32, 2, with_links);
        (Just(count), Just(links), domains)
    })
}

/// True if the planner finds a plan that covers every node. Every plan must hold.
fn planned(graph: &Graph) -> bool {
    match plan(graph, &request(0)) {
        Ok(plan) => {
            assert_eq!(violations(graph, &plan), Vec::<String>::new());
            plan.uncovered.is_empty()
        }
        Err(_) => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_is_found_exactly_where_trying_everything_finds_one((count, links, domains) in world_with_domains(5, 4, true)) {
        let world = World { count: count as usize, links: &links, domains: &domains };
        prop_assert_eq!(planned(&graph(count, &links, &domains)), world.has_plan());
    }

    #[test]
    fn a_plan_is_found_exactly_where_some_tree_allows_one((count, links, domains) in world_with_domains(9, 7, false)) {
        let trees: usize = (1..count).map(|node| links.iter().flatten().filter(|end| **end == node).count()).product();
        prop_assume!(trees <= 20_000);
        let world = World { count: count as usize, links: &links, domains: &domains };
        prop_assert_eq!(planned(&graph(count, &links, &domains)), world.has_plan_by_reach());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn a_two_connected_graph_has_a_complete_plan_from_any_root((count, links) in two_connected(), pick in any::<u32>()) {
        let graph = graph(count, &links, &[]);
        let plan = plan(&graph, &request(pick % count)).unwrap();
        prop_assert!(plan.uncovered.is_empty(), "{:?}", plan.uncovered);
        prop_assert_eq!(violations(&graph, &plan), Vec::<String>::new());
    }

    #[test]
    fn the_worst_single_failure_is_within_the_bound((count, links) in two_connected()) {
        let graph = graph(count, &links, &[]);
        let plan = plan(&graph, &request(0)).unwrap();
        let worst = Survival::of(&graph, &plan).worst_depth();
        prop_assert!(worst <= plan.max_depth_backup().max(plan.max_depth()));
        let mut survival = Survival::of(&graph, &plan);
        for failure in SingleFailure::all(&graph, &plan) {
            prop_assert_eq!(survival.after(failure).stranded, vec![]);
        }
    }

    #[test]
    fn plans_with_domains_hold_and_say_why_nodes_are_uncovered((count, links, domains) in world_with_domains(24, 30, true)) {
        let graph = graph(count, &links, &domains);
        if let Ok(plan) = plan(&graph, &request(0)) {
            prop_assert_eq!(violations(&graph, &plan), Vec::<String>::new());
            for (node, reason) in &plan.uncovered {
                prop_assert!(!reason.is_proof() || is_behind(&graph, &plan, *node), "{node:?} {reason:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_200, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_is_found_whenever_any_root_has_one((count, links, domains) in world_with_domains(24, 6, false), with in any::<bool>()) {
        let graph = graph(count, &links, if with { &domains } else { &[] });
        let found = plan(&graph, &PlanRequest::default());
        let any = (0..count).any(|root| plan(&graph, &request(root)).is_ok());
        prop_assert_eq!(found.is_ok(), any, "{:?}", found.map(|_| ()));
        if let Ok(found) = found {
            prop_assert_eq!(violations(&graph, &found), Vec::<String>::new());
        }
    }

    #[test]
    fn a_covered_node_that_is_said_to_be_uncovered_is_not_believed(
        (count, links, domains) in world_with_domains(16, 20, true),
        pick in any::<prop::sample::Index>(),
        complete in any::<bool>(),
        because in 0..4_usize,
    ) {
        let graph = graph(count, &links, &domains);
        let Ok(plan) = plan(&graph, &request(0)) else { return Ok(()) };
        let mut file = PlanFile::of(&plan, &graph);
        file.complete = complete;
        let covered: Vec<usize> = (0..file.plan.len()).filter(|row| file.plan[*row].backup.is_some()).collect();
        let row = file.plan.remove(covered[pick.index(covered.len())]);
        let parent = row.parent.clone().unwrap_or_default();
        let because = [
            format!("its only link leads to {parent}"),
            format!("every way to it leads through {parent}"),
            "none was found that survives every single failure".to_owned(),
            String::new(),
        ][because].clone();
        file.uncovered.push(UncoveredRow { node: row.node.clone(), parent: row.parent, depth: Some(row.depth), because, parent_link: row.parent_link });
        file.epoch = None;
        let lines: Vec<String> = file.check(&GraphNames::of(&graph)).iter().map(ToString::to_string).collect();
        let says = format!("'{}'", row.node);
        prop_assert!(lines.iter().any(|line| line.starts_with("uncovered: ") && line.contains(&says)), "{}: {lines:?}", row.node);
    }
}

/// True if some single failure leaves no way to a node from the root, or from the backup root if the root is dead.
fn is_behind(graph: &Graph, plan: &ClockPlan, node: GraphNode) -> bool {
    let nodes = graph.nodes().filter(|other| *other != node).map(SingleFailure::Node);
    let domains = (0..graph.domains().len() as u32).map(|number| SingleFailure::Domain(clock::graph::DomainId(number)));
    nodes.chain(domains).any(|failure| {
        let mut rest = graph.clone();
        match failure {
            SingleFailure::Node(node) => rest.fail_node(node),
            SingleFailure::Domain(domain) => rest.fail_domain(domain),
            SingleFailure::Link(link) => rest.fail_link(link),
        }
        let start = if rest.is_failed(plan.root) { plan.backup_root } else { plan.root };
        let (mut reached, mut open) = (BTreeSet::from([start]), vec![start]);
        while let Some(here) = open.pop() {
            open.extend(rest.neighbours(here).iter().map(|(there, _)| *there).filter(|there| reached.insert(*there)));
        }
        !rest.is_failed(node) && !reached.contains(&node)
    })
}

#[test]
fn fabrics_are_complete_and_shallow() {
    let none = HostLinks::None;
    let fabrics = [4, 6, 8, 10, 16, 32, 64]
        .map(|k| (Graph::fat_tree(k, none).unwrap().with_domains_named("pod").unwrap(), 6, 10));
    let pods = Graph::pods(24, none).unwrap().with_domains_named("pod").unwrap();
    let testbed = Graph::testbed(HostLinks::Dual).unwrap().with_domains_named("pod").unwrap();
    for (graph, depth, depth_backup) in fabrics.into_iter().chain([(pods, 6, 10), (testbed, 5, 7)]) {
        let plan = plan(&graph, &PlanRequest::default()).unwrap();
        assert!(plan.is_complete() && plan.uncovered.is_empty());
        assert!(
            plan.max_depth() <= depth && plan.max_depth_backup() <= depth_backup,
            "{} {}",
            plan.max_depth(),
            plan.max_depth_backup()
        );
        assert_eq!(violations(&graph, &plan), Vec::<String>::new());
    }
}

#[test]
fn jupiter_is_complete_and_shallow() {
    let graph = Graph::jupiter(HostLinks::Dual).unwrap().with_domains_named("agg").unwrap();
    let plan = plan(&graph, &PlanRequest::default()).unwrap();
    assert!(plan.is_complete() && plan.uncovered.is_empty());
    assert_eq!((plan.max_depth(), plan.max_depth_backup(), plan.bounds().root_ns), (8, 12, 133));
    assert_eq!(plan.search.method, PlanMethod::Search);
    assert_eq!(violations(&graph, &plan), Vec::<String>::new());
}

#[test]
fn hosts_with_one_link_are_uncovered_and_it_is_said_why() {
    let graph = Graph::fat_tree(4, HostLinks::Single).unwrap();
    let plan = plan(&graph, &PlanRequest::default()).unwrap();
    assert_eq!((plan.uncovered.len(), plan.is_complete()), (16, true));
    let (host, reason) = &plan.uncovered[0];
    assert_eq!(
        (graph.name(*host), reason.describe(&graph, *host)),
        ("pod0/host0", "its only link leads to pod0/edge0".to_owned())
    );
    assert_eq!(violations(&graph, &plan), Vec::<String>::new());
}
