//! Plan files with words and lines changed at random: they are read, checked and compared with the plan that they were, or refused.

use clock::graph::{Graph, GraphNames, GraphNode};
use clock::plan::{PlanChange, PlanFile, PlanRequest, plan};
use testkit::{changed_text, fuzz_changes};

/// A ring of eight nodes with links across it, two of them parallel.
fn graph() -> Graph {
    let ring = (0..8).map(|node| [node, (node + 1) % 8]);
    Graph::new((0..8).map(|node| format!("n{node}")), ring.chain([[0, 4], [2, 6], [0, 1]])).unwrap()
}

fn planned(graph: &Graph, root: u32) -> PlanFile {
    let request = PlanRequest { root: Some(GraphNode(root)), ..PlanRequest::default() };
    PlanFile::of(&plan(graph, &request).unwrap(), graph)
}

/// All that commands do with a plan.
fn use_plan(text: &str, graph: &Graph, base: &PlanFile) -> Option<PlanFile> {
    let names = GraphNames::of(graph);
    if let Ok(file) = PlanFile::from_json(text) {
        file.check(&names);
    }
    if let Ok(plan) = PlanFile::read(text, graph) {
        graph.nodes().for_each(|node| _ = plan.explain(graph, node));
        PlanFile::of(&plan, graph);
    }
    let file = PlanFile::parse(text).ok()?;
    for [old, new] in [[base, &file], [&file, base]] {
        if let Ok(change) = PlanChange::between(old, new) {
            change.stages([old, new]);
        }
    }
    Some(file)
}

#[test]
fn any_plan_is_read_checked_and_compared_without_a_panic() {
    let graph = graph();
    let base = planned(&graph, 0);
    let texts = [0, 3].map(|root| serde_json::to_string_pretty(&planned(&graph, root)).unwrap());
    let samples = texts.each_ref().map(String::as_str);
    let mut read = 0;
    fuzz_changes(
        20_000,
        |random| changed_text(random, &samples),
        |bytes| {
            let file = use_plan(&String::from_utf8_lossy(bytes), &graph, &base);
            read += u64::from(file.is_some());
        },
    );
    assert!(read > 0, "some can still be read");
}
