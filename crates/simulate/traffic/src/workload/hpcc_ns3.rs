//! The flow files of HPCC's authors (`traffic_gen` of their ns-3 simulator).
//!
//! ```text
//! 2                               how many flows
//! 0 5 3 100 24387 2.000000000     sender, receiver, always 3, destination port, bytes, start in seconds
//! 3 5 3 100 1000000 2.000001500
//! ```
//!
//! Hosts are numbered as the nodes of the topology. Flows are in the order of their starts. The destination port becomes
//! the group of the flow: the authors' incasts have 200, all other flows 100.

use units::{Span, Time};

use super::file::{no_such_host, size, time};
use super::{FlowSchedule, WorkloadError, WorkloadFlow};
use crate::hpcc_ns3::{LineProblem, NumberedLines, number};
use crate::topology::{NodeId, Topology};

/// True if a text is a file of theirs: it begins with a number alone.
pub(super) fn is_hpcc_ns3(text: &str) -> bool {
    let first = NumberedLines::new(text).next();
    first.is_some_and(|(_, fields)| fields.len() == 1 && number::<u64>(fields[0], "").is_ok())
}

/// Reads a file of theirs.
pub(super) fn parse(text: &str, topology: &Topology) -> Result<FlowSchedule, WorkloadError> {
    let blame = |(line, problem): LineProblem| WorkloadError::Line { line, problem };
    let mut lines = NumberedLines::new(text);
    let (line, fields) = lines.next().unwrap_or((1, Vec::new()));
    let count = fields.first().copied().unwrap_or_default();
    let count: usize = number(count, "how many flows there are").map_err(|problem| blame((line, problem)))?;
    let mut flows: Vec<WorkloadFlow> = Vec::new();
    for read in 0..count {
        let before = flows.last().map_or(Time::ZERO, |flow| flow.start);
        let (line, fields) = lines.next_of("flows", count, read).map_err(blame)?;
        flows.push(flow(&fields, before, topology).map_err(|problem| blame((line, problem)))?);
    }
    lines.end("flows", count).map_err(blame)?;
    Ok(FlowSchedule::list(flows))
}

fn flow(fields: &[&str], before: Time, topology: &Topology) -> Result<WorkloadFlow, String> {
    let &[src, dst, class, port, bytes, start] = fields else {
        return Err(format!("expected src dst 3 dport bytes seconds, found '{}'", fields.join(" ")));
    };
    if class != "3" {
        return Err(format!("'{class}': expected 3, the class of all flows in such files"));
    }
    let at = hpcc_start(start)?;
    if at < before {
        let earlier = before.since(Time::ZERO).as_secs();
        return Err(format!(
            "starts at {start} s, the flow before it at {earlier} s: expected flows in order of starts"
        ));
    }
    let flow = WorkloadFlow {
        start: at,
        src: host(src, topology)?,
        dst: host(dst, topology)?,
        bytes: size(bytes)?,
        group: number(port, "a destination port up to 65535")?,
    };
    if flow.src == flow.dst { Err(format!("host {src} sends to itself")) } else { Ok(flow) }
}

/// Reads the start of a flow. The authors' simulator reads a floating-point number and cuts it to nanoseconds: half of all
/// starts are one earlier than they are written.
pub fn hpcc_start(text: &str) -> Result<Time, String> {
    Ok(whole_ns(text, time(text)?))
}

fn whole_ns(text: &str, written: Time) -> Time {
    let Ok(seconds) = text.parse::<f64>() else { return written };
    let bits = seconds.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    // Seconds are mantissa / 2^shift, and a flow starts within days, after some picoseconds.
    let (mantissa, shift) = (u128::from(fraction | 1 << 52), 1_075 - exponent);
    match u32::try_from(shift) {
        Ok(shift @ 0..=96) => Time::ZERO + Span::from_ns(((mantissa * 1_000_000_000) >> shift) as u64),
        _ => written,
    }
}

fn host(field: &str, topology: &Topology) -> Result<NodeId, String> {
    let last = topology.nodes.len() - 1;
    let host = NodeId(number(field, &format!("the number of a host, from 0 to {last}"))?);
    match topology.nodes.get(host.index()) {
        None => Err(format!("there is no node {field}: expected a host from 0 to {last}")),
        Some(_) if topology.is_host(host) => Ok(host),
        Some(node) => Err(no_such_host(&node.name, topology)),
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

    const FILE: &str = "3 \n0 5 3 100 24387 2.000000000\n3 5 3 200 1000000 2.000001500\n1 0 3 100 1 2.0000015\n";

    /// 2.00000075 is the number 2.00000074999999983…, 0.1 is 0.1000000000000000055….
    #[test]
    fn starts_are_cut_to_nanoseconds_as_floating_point_numbers() {
        let starts = |text: &str| read(&format!("1\n0 5 3 100 7 {text}\n")).unwrap()[0].start.as_ps() / 1_000;
        assert_eq!(starts("2.000000750"), 2_000_000_749);
        assert_eq!(starts("2.000001500"), 2_000_001_500);
        assert_eq!((starts("0.1"), starts("0"), starts("1000000")), (100_000_000, 0, 1_000_000_000_000_000));
    }

    #[test]
    fn a_file_of_the_authors_is_told_from_ours_by_its_first_line() {
        let flow = |ns, src, dst, bytes, group| WorkloadFlow {
            start: Time::ZERO + Span::from_ms(2_000) + Span::from_ns(ns),
            src: NodeId(src),
            dst: NodeId(dst),
            bytes,
            group,
        };
        let flows = vec![flow(0, 0, 5, 24_387, 100), flow(1_500, 3, 5, 1_000_000, 200), flow(1_500, 1, 0, 1, 100)];
        assert_eq!(read(FILE), Ok(flows.clone()));
        let spare = format!("{FILE}0 1 3 100 5 3\n\nFirst line: # of flows\nsrc0 dst0 3 dst_port0 size0 start_time0\n");
        assert_eq!(read(&spare), Ok(flows), "spare lines in front of a legend are not read");
        assert_eq!(read("0\n"), Ok(vec![]));
        assert_eq!(read("2us,h0,h5,7").unwrap().len(), 1);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let changed = |from: &str, to: &str| read(&FILE.replacen(from, to, 1)).unwrap_err();
        assert_eq!(changed("3 \n", "4\n"), "line 4: the file ends after 3 flows: expected 4, as its first line says");
        assert_eq!(changed("3 \n", "2\n"), "line 4: there are more than 2 flows: expected 2, as the first line says");
        assert_eq!(changed("0 5 3", "9 5 3"), "line 2: there is no node 9: expected a host from 0 to 8");
        assert_eq!(changed("0 5 3", "0 6 3"), "line 2: 'leaf0' is a switch: expected a host");
        assert_eq!(changed("0 5 3", "h0 5 3"), "line 2: 'h0': expected the number of a host, from 0 to 8");
        assert_eq!(changed("0 5 3", "5 5 3"), "line 2: host 5 sends to itself");
        assert_eq!(changed("5 3 100", "5 1 100"), "line 2: '1': expected 3, the class of all flows in such files");
        assert_eq!(changed("3 100 ", "3 65536 "), "line 2: '65536': expected a destination port up to 65535");
        assert_eq!(changed("24387", "0"), "line 2: '0': expected at least one byte");
        assert!(changed("2.000000000", "later").starts_with("line 2: 'later': expected a time"));
        assert_eq!(
            changed(" 2.000000000", ""),
            "line 2: expected src dst 3 dport bytes seconds, found '0 5 3 100 24387'"
        );
        assert_eq!(
            changed("2.000000000", "2.1"),
            "line 3: starts at 2.000001500 s, the flow before it at 2.1 s: expected flows in order of starts"
        );
    }
}
