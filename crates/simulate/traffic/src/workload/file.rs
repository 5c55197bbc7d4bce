//! Flows from a file, one on a line: `start,src,dst,bytes`.
//!
//! ```text
//! start,src,dst,bytes     # this line may be left out
//! 0,h0,h5,24387
//! 1.5us,h3,h5,1MB
//! 0.000002,h1,h0,143      # a bare number is seconds
//! ```

use std::collections::BTreeMap;

use units::{Bytes, Span, Time};

use super::{FlowSchedule, WorkloadError, WorkloadFlow, hpcc_ns3};
use crate::topology::{NodeId, Topology};

const HEADER: [&str; 4] = ["start", "src", "dst", "bytes"];

impl FlowSchedule {
    /// Reads a file, whose lines may be in any order; src and dst are hosts of the topology, by name. A file that begins
    /// with a number alone is one of HPCC's authors.
    pub fn parse(text: &str, topology: &Topology) -> Result<Self, WorkloadError> {
        if hpcc_ns3::is_hpcc_ns3(text) {
            return hpcc_ns3::parse(text, topology);
        }
        let hosts: BTreeMap<&str, NodeId> = topology.hosts().map(|host| (topology.name(host), host)).collect();
        let mut flows = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default().trim();
            let fields: Vec<&str> = content.split(',').map(str::trim).collect();
            if content.is_empty() || (flows.is_empty() && fields == HEADER) {
                continue;
            }
            let wrong = |problem| WorkloadError::Line { line: index + 1, problem };
            flows.push(flow(&fields, &hosts, topology).map_err(wrong)?);
        }
        Ok(Self::list(flows))
    }
}

fn flow(fields: &[&str], hosts: &BTreeMap<&str, NodeId>, topology: &Topology) -> Result<WorkloadFlow, String> {
    let &[start, src, dst, bytes] = fields else {
        return Err(format!("expected {}, found '{}'", HEADER.join(","), fields.join(",")));
    };
    let host = |name| hosts.get(name).copied().ok_or_else(|| no_such_host(name, topology));
    let flow = WorkloadFlow { start: time(start)?, src: host(src)?, dst: host(dst)?, bytes: size(bytes)?, group: 0 };
    if flow.src == flow.dst {
        return Err(format!("'{src}' sends to itself"));
    }
    Ok(flow)
}

pub(super) fn time(text: &str) -> Result<Time, String> {
    let seconds = format!("{text}s");
    let with_unit = if text.ends_with(|last: char| last.is_ascii_digit() || last == '.') { &seconds } else { text };
    let since: Span = with_unit.parse().map_err(|error| format!("'{text}': {error}, or a number of seconds"))?;
    Ok(Time::ZERO + since)
}

pub(super) fn size(text: &str) -> Result<u64, String> {
    match text.parse::<Bytes>() {
        Ok(Bytes::ZERO) => Err(format!("'{text}': expected at least one byte")),
        Ok(bytes) => Ok(bytes.get()),
        Err(error) => Err(format!("'{text}': {error}")),
    }
}

pub(super) fn no_such_host(name: &str, topology: &Topology) -> String {
    match topology.node(name) {
        Ok(_) => format!("'{name}' is a switch: expected a host"),
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use units::Rate;

    use super::*;

    fn read(text: &str) -> Result<Vec<WorkloadFlow>, String> {
        let topology = Topology::leaf_spine(2, 1, 3, Rate::gbps(100), Rate::gbps(100), Span::from_us(1)).unwrap();
        FlowSchedule::parse(text, &topology).map(Iterator::collect).map_err(|error| error.to_string())
    }

    #[test]
    fn lines_become_flows_sorted_by_their_start() {
        let text = "start,src,dst,bytes # a comment\n\n 2us, h0, h5, 24387\n0,h3,h5,1MB\n0.000001,h1,h0,143\n";
        let flow = |us, src, dst, bytes| WorkloadFlow {
            start: Time::ZERO + Span::from_us(us),
            src: NodeId(src),
            dst: NodeId(dst),
            bytes,
            group: 0,
        };
        assert_eq!(read(text), Ok(vec![flow(0, 3, 5, 1_000_000), flow(1, 1, 0, 143), flow(2, 0, 5, 24_387)]));
        assert_eq!(read(""), Ok(vec![]));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let said = |text| read(text).unwrap_err();
        assert_eq!(said("0,h0,h1,1\n\n0,h0,h1"), "line 3: expected start,src,dst,bytes, found '0,h0,h1'");
        assert_eq!(said("0,h0,h9,1"), "line 1: no node is called 'h9': did you mean 'h0'?");
        assert_eq!(said("0,leaf0,h1,1"), "line 1: 'leaf0' is a switch: expected a host");
        assert_eq!(said("0,h0,h0,1"), "line 1: 'h0' sends to itself");
        assert_eq!(said("0,h0,h1,0"), "line 1: '0': expected at least one byte");
        assert!(said("0,h0,h1,lots").starts_with("line 1: 'lots': expected a size"));
        assert!(said("soon,h0,h1,1").starts_with("line 1: 'soon': expected a time"));
        assert!(said("-1,h0,h1,1").starts_with("line 1: '-1': expected a time"));
        assert!(said("0,h0,h1,1\nstart,src,dst,bytes").starts_with("line 2: 'start': expected a time"));
    }
}
