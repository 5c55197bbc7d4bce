//! Chakra traces, written here: what becomes of their nodes, and what is refused.

mod trace_writer;

use std::io::{BufRead, Cursor, Write};

use collective::{GraphInput, InputEvent};
use imports::{ImportGraph, TraceEncoding, import_traces};
use trace_writer::{metadata, node};
use units::Span;

const COMP: u64 = 4;
const SEND: u64 = 5;
const RECV: u64 = 6;
const COLL: u64 = 7;

fn read(traces: &[Vec<u8>]) -> Result<ImportGraph, String> {
    encoded(traces, TraceEncoding::Protobuf)
}

fn encoded(traces: &[Vec<u8>], encoding: TraceEncoding) -> Result<ImportGraph, String> {
    let open = |rank: u32| Ok(Box::new(Cursor::new(traces[rank as usize].clone())) as Box<dyn BufRead>);
    import_traces(traces.len() as u32, encoding, open).map_err(|error| error.to_string())
}

fn trace(nodes: &[Vec<u8>]) -> Vec<u8> {
    [metadata("1.0.0")].iter().chain(nodes).flatten().copied().collect()
}

/// Rank 0 computes for 3 µs and sends; rank 1 receives, computes for 5 µs, and both make an all-gather.
fn two_ranks() -> Vec<Vec<u8>> {
    let message = [("comm_size", 9, 1_000), ("comm_dst", 7, 1), ("comm_src", 7, 0), ("comm_tag", 7, 4)];
    let gather = [("comm_size", 9, 5_000), ("comm_type", 9, 2)];
    let first = trace(&[
        node(1, COMP, &[], 3, &[("is_cpu_op", 27, 0)]),
        // Refers forward.
        node(3, COLL, &[2], 0, &gather),
        node(2, SEND, &[1], 0, &message),
    ]);
    let second = trace(&[
        node(1, RECV, &[], 0, &message),
        node(2, COMP, &[1], 5, &[("num_ops", 9, 12)]),
        node(7, COLL, &[2], 0, &gather),
        node(8, 8, &[], 2, &[]),
    ]);
    vec![first, second]
}

#[test]
fn nodes_become_transfers_delays_and_rings() {
    let graph = read(&two_ranks()).unwrap();
    let [message, gather0, gather1] = &graph.transfers[..] else { panic!("{graph:?}") };
    assert_eq!((message.src, message.dst, message.bytes, message.not_before), (0, 1, 1_000, Span::from_us(3)));
    let input = |event, us| GraphInput { transfer: 0, event, delay: Span::from_us(us) };
    assert_eq!((gather0.src, gather0.bytes, &gather0.after[..]), (0, 5_000, &[input(InputEvent::Acknowledged, 0)][..]));
    assert_eq!((gather1.src, gather1.bytes, &gather1.after[..]), (1, 5_000, &[input(InputEvent::Arrived, 5)][..]));
    assert_eq!(gather1.name.to_string(), "1.7.1");
    assert!(graph.left_out.iter().any(|line| line.starts_with("nodes of memory, storage")), "{:?}", graph.left_out);
}

#[test]
fn a_trace_in_gzip_is_the_same() {
    let gzip = |trace: &Vec<u8>| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(trace).unwrap();
        out.finish().unwrap()
    };
    let zipped: Vec<Vec<u8>> = two_ranks().iter().map(gzip).collect();
    assert_eq!(read(&zipped), read(&two_ranks()));
}

#[test]
fn the_same_trace_as_json_is_the_same() {
    let first = r#"{"workload_graph": [
        {"Id": 1, "Name": "c", "NodeType": 4, "runtime": 3, "data_deps": []},
        {"Id": 2, "NodeType": 5, "data_deps": [1], "comm_size": 1000, "comm_src": 0, "comm_dst": 1, "comm_tag": 4},
        {"Id": 3, "NodeType": 7, "data_deps": [2], "comm_size": 5000, "comm_type": 2}]}"#;
    let second = r#"{"workload_graph": [
        {"Id": 1, "NodeType": 6, "data_deps": [], "comm_size": 1000, "comm_src": 0, "comm_dst": 1, "comm_tag": 4},
        {"Id": 2, "NodeType": 4, "data_deps": [1], "runtime": 5},
        {"Id": 7, "NodeType": 7, "data_deps": [2], "comm_size": 5000, "comm_type": 2}]}"#;
    let json = [first, second].map(|text| text.as_bytes().to_vec());
    let [json, wire] = [encoded(&json, TraceEncoding::Json).unwrap(), read(&two_ranks()).unwrap()];
    assert_eq!(json.transfers, wire.transfers);
    let cut = [first.as_bytes()[..90].to_vec(), second.as_bytes().to_vec()];
    let said = encoded(&cut, TraceEncoding::Json).unwrap_err();
    assert!(said.starts_with("rank 0: EOF while parsing"), "{said}");
}

#[test]
fn a_barrier_waits_for_all_ranks() {
    let barrier = [("comm_type", 9, 9)];
    let send = [("comm_size", 9, 10), ("comm_dst", 7, 1), ("comm_src", 7, 0)];
    let first = trace(&[node(1, COLL, &[], 0, &barrier), node(2, SEND, &[1], 0, &send)]);
    let second = trace(&[node(1, COMP, &[], 9, &[]), node(2, COLL, &[1], 0, &barrier), node(3, RECV, &[2], 0, &send)]);
    let graph = read(&[first, second]).unwrap();
    assert_eq!(graph.transfers[0].not_before, Span::from_us(9));
}

#[test]
fn traces_that_are_cut_or_of_another_schema_are_refused() {
    let traces = two_ranks();
    for len in 1..traces[1].len() {
        let cut = [traces[0].clone(), traces[1][..len].to_vec()];
        // A cut between two nodes leaves a group with too few collectives, or a message without its receive.
        let said = read(&cut).map(|graph| graph.transfers.len());
        let is_last_node = len > traces[1].len() - node(8, 8, &[], 2, &[]).len() - 1;
        assert!(said.is_err() || is_last_node && said == Ok(3), "{len}: {said:?}");
    }
    let changed = |from: &str, to: &str| {
        let find = |trace: &[u8]| trace.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
        let mut traces = two_ranks();
        let at = find(&traces[0]);
        traces[0][at..at + from.len()].copy_from_slice(to.as_bytes());
        read(&traces).unwrap_err()
    };
    assert_eq!(changed("1.0.0", "7.0.0"), "rank 0: message 0: schema '7.0.0': expected version 1.x or 0.0.4");
    assert_eq!(changed("comm_type", "comm_tipe"), "rank 0, node 3: comm_type is missing");
    assert_eq!(changed("comm_dst", "comm_dsT"), "rank 0, node 2: comm_dst is missing");
    let noise: Vec<u8> = (0..4_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let said = read(&[noise, traces[1].clone()]).unwrap_err();
    assert!(said.starts_with("rank 0: message "), "{said}");
    assert_eq!(read(&[Vec::new(), Vec::new()]).unwrap_err(), "rank 0: the file is empty: expected a Chakra trace");
    assert_eq!(read(&two_ranks()[..1]).unwrap_err(), "1 ranks: expected 2 to 65536, a file for each");
}

#[test]
fn ranks_that_do_not_agree_are_refused() {
    let one = |node: Vec<u8>| trace(&[node]);
    let call = |id, kind, bytes| one(node(id, COLL, &[], 0, &[("comm_size", 9, bytes), ("comm_type", 9, kind)]));
    let said = |first, second| read(&[first, second]).unwrap_err();
    let other = "rank 1, node 2: another collective than node 1 of rank 0 has at this place";
    assert_eq!(said(call(1, 0, 100), call(2, 2, 100)), other);
    assert_eq!(said(call(1, 0, 100), call(2, 0, 101)), other);
    let two = trace(&[
        node(1, COLL, &[], 0, &[("comm_size", 9, 5), ("comm_type", 9, 0)]),
        node(2, COLL, &[], 0, &[("comm_size", 9, 5), ("comm_type", 9, 0)]),
    ]);
    assert_eq!(said(call(1, 0, 5), two), "rank 0: has 1 collectives in a group where others have 2");
    assert_eq!(
        said(call(1, 3, 5), call(1, 3, 5)),
        "rank 0, node 1: comm_type 3: a collective that has no counterpart here"
    );
    let far = one(node(1, SEND, &[], 0, &[("comm_size", 9, 5), ("comm_dst", 7, 9)]));
    assert_eq!(said(far, call(1, 0, 5)), "rank 0, node 1: comm_dst 9: there are traces of 2 ranks; is one missing?");
    let unknown = one(node(1, COMP, &[6], 1, &[]));
    assert_eq!(said(unknown, call(1, 0, 5)), "rank 0, node 1: waits for node 6, which is not there");
    let lone = one(node(1, SEND, &[], 0, &[("comm_size", 9, 5), ("comm_dst", 7, 1)]));
    assert_eq!(said(lone, one(node(1, COMP, &[], 1, &[]))), "rank 0, node 1: a send that nobody receives");
}
