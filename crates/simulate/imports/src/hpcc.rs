//! Flow lists of HPCC's authors: a count, then `src dst 3 dport bytes seconds` on each line.
//!
//! Hosts are numbered as the nodes of their topology; times are cut to nanoseconds as their simulator cuts them.

use std::io::BufRead;

use collective::GraphTransfer;
use traffic::workload::hpcc_start;
use units::{Span, Time};

use crate::error::{ImportError, shortened};
use crate::graph::{ImportGraph, MOST_RANKS, MOST_TRANSFERS, transfer};
use crate::lines::{BoundedLines, number};

pub(crate) fn import(from: &mut dyn BufRead) -> Result<ImportGraph, ImportError> {
    let mut lines = BoundedLines::new(from);
    let first = lines.next_line()?.unwrap_or_default();
    let count: usize = number(first.trim(), "the number of flows").map_err(|problem| ImportError::line(1, problem))?;
    if count > MOST_TRANSFERS {
        return Err(ImportError::line(1, format_args!("{count}: expected at most {MOST_TRANSFERS} flows")));
    }
    let mut graph = ImportGraph::default();
    while graph.transfers.len() < count {
        let line = lines.number() + 1;
        let Some(text) = lines.next_line()? else {
            let found = graph.transfers.len();
            return Err(ImportError::line(line, format_args!("the file ends after {found} flows: expected {count}")));
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        if fields.is_empty() {
            continue;
        }
        let transfer =
            flow(graph.transfers.len() as u64, &fields).map_err(|problem| ImportError::line(line, problem))?;
        graph.ranks = graph.ranks.max(transfer.src.max(transfer.dst) + 1);
        graph.transfers.push(transfer);
    }
    graph.left_out.push("destination ports: all flows are counted together".into());
    graph.checked()
}

fn flow(id: u64, fields: &[&str]) -> Result<GraphTransfer, String> {
    let &[src, dst, class, _port, bytes, start] = fields else {
        return Err(format!("expected src dst 3 dport bytes seconds, found '{}'", shortened(&fields.join(" "))));
    };
    if class != "3" {
        return Err(format!("'{}': expected 3, the class of all flows in such files", shortened(class)));
    }
    let node = |text| {
        let node: u32 = number(text, "the number of a node")?;
        if node < MOST_RANKS { Ok(node) } else { Err(format!("{node}: expected at most {MOST_RANKS} nodes")) }
    };
    let (src, dst) = (node(src)?, node(dst)?);
    if src == dst {
        return Err(format!("node {src} sends to itself"));
    }
    let bytes: u64 = number(bytes, "a number of bytes")?;
    if bytes == 0 {
        return Err("0: expected at least one byte".into());
    }
    let not_before: Span = hpcc_start(start)?.since(Time::ZERO);
    Ok(GraphTransfer { not_before, ..transfer(id.to_string(), [src, dst], bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ImportGraph, String> {
        import(&mut text.as_bytes()).map_err(|error| error.to_string())
    }

    const FILE: &str = "2\n0 5 3 100 24387 2.000000750\n3 5 3 200 1000000 2.000001500\nlegend\n";

    #[test]
    fn flows_keep_their_starts_as_the_authors_cut_them() {
        let graph = read(FILE).unwrap();
        let starts: Vec<u64> = graph.transfers.iter().map(|flow| flow.not_before.as_ps() / 1_000).collect();
        assert_eq!((starts, graph.ranks), (vec![2_000_000_749, 2_000_001_500], 6));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let changed = |from: &str, to: &str| read(&FILE.replacen(from, to, 1)).unwrap_err();
        assert_eq!(changed("2\n", "9\n"), "line 4: expected src dst 3 dport bytes seconds, found 'legend'");
        assert_eq!(read("3\n0 1 3 1 1 0\n").unwrap_err(), "line 3: the file ends after 1 flows: expected 3");
        assert_eq!(changed("24387", "0"), "line 2: 0: expected at least one byte");
        assert_eq!(changed("0 5 3", "5 5 3"), "line 2: node 5 sends to itself");
        assert!(changed("2.000000750", "soon").starts_with("line 2: 'soon': expected a time"));
        assert_eq!(read("").unwrap_err(), "line 1: '': expected the number of flows");
    }
}
