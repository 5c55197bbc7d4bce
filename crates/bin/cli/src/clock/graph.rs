//! The graph that a command is about.

use std::path::Path;

use clock::graph::{Graph, HostLinks};
use fleet::fabric::{GraphFaults, load_domains, load_faults, load_graph};

use crate::args::{ClockGraphArgs, DomainsArg, HostsArg};
use crate::output::Failure;

const PODS: u32 = 261;

pub(crate) fn graph(args: &ClockGraphArgs) -> Result<Graph, Failure> {
    let wiring = &args.wiring;
    let hosts = match args.hosts {
        Some(HostsArg::Dual) => HostLinks::Dual,
        Some(HostsArg::Single) => HostLinks::Single,
        None if wiring.jupiter || wiring.testbed => HostLinks::Dual,
        Some(HostsArg::None) | None => HostLinks::None,
    };
    let usage = |option: String, error: &dyn std::fmt::Display| Failure::Usage(format!("{option}: {error}"));
    let (graph, usual) = if let Some(path) = &wiring.topology {
        if hosts != HostLinks::None {
            return Err(usage("--hosts".to_owned(), &"a topology's file says itself which hosts there are"));
        }
        (load_graph(path).map_err(|error| Failure::Usage(error.to_string()))?, None)
    } else if let Some(k) = wiring.fat_tree {
        (Graph::fat_tree(k, hosts).map_err(|error| usage(format!("--fat-tree {k}"), &error))?, Some("pod"))
    } else if wiring.jupiter {
        (Graph::jupiter(hosts).map_err(|error| usage("--jupiter".to_owned(), &error))?, Some("agg"))
    } else if wiring.testbed {
        (Graph::testbed(hosts).map_err(|error| usage("--testbed".to_owned(), &error))?, Some("pod"))
    } else {
        let pods = wiring.pods.unwrap_or(PODS);
        (Graph::pods(pods, hosts).map_err(|error| usage(format!("--pods {pods}"), &error))?, Some("pod"))
    };
    let named = |graph: Graph, prefix: &str, option: &str| {
        graph.with_domains_named(prefix).map_err(|error| usage(option.to_owned(), &error))
    };
    match (&args.domains, usual) {
        (Some(DomainsArg::Pods), _) => named(graph, "pod", "--domains pods"),
        (Some(DomainsArg::Agg), _) => named(graph, "agg", "--domains agg"),
        (Some(DomainsArg::None), _) => {
            graph.with_domains(Vec::new()).map_err(|error| usage("--domains".to_owned(), &error))
        }
        (Some(DomainsArg::File(path)), _) => {
            load_domains(path, graph).map_err(|error| Failure::Usage(error.to_string()))
        }
        (None, Some(prefix)) => named(graph, prefix, "--domains"),
        (None, None) => Ok(graph),
    }
}

/// Faults of the graph as a file lists them; none if there is no file.
pub(crate) fn faults(path: Option<&Path>, graph: &Graph, failed: bool) -> Result<GraphFaults, Failure> {
    let Some(path) = path else { return Ok(GraphFaults::default()) };
    load_faults(path, graph, failed).map_err(|error| Failure::Usage(error.to_string()))
}
