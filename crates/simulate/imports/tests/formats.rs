//! One all-gather in three formats, and htsim's ring.

mod trace_writer;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, Cursor};

use collective::InputEvent;
use imports::{HostNames, ImportFormat, ImportGraph, StartUnit, TraceEncoding, import_file, import_traces};
use trace_writer::{metadata, node};

const RANKS: u32 = 4;
const BYTES: u64 = 128 << 10;

/// Sender and receiver of each step, and the step before at the sender.
fn steps() -> impl Iterator<Item = (u32, u32, u32)> {
    (0..RANKS - 1).flat_map(|step| (0..RANKS).map(move |src| (step, src, (src + 1) % RANKS)))
}

fn goal() -> String {
    let mut text = format!("num_ranks {RANKS}\n");
    for rank in 0..RANKS {
        let (next, before) = ((rank + 1) % RANKS, (rank + RANKS - 1) % RANKS);
        let _ = writeln!(text, "rank {rank} {{");
        for step in 0..RANKS - 1 {
            let _ = writeln!(
                text,
                " s{step}: send {BYTES}b to {next} tag {step}\n r{step}: recv {BYTES}b from {before} tag {step}"
            );
            if step > 0 {
                let _ = writeln!(text, " s{step} requires r{}", step - 1);
            }
        }
        text += "}\n";
    }
    text
}

fn simccl() -> String {
    let mut text = "ID\tparent_id\tsrc\tdst\tsize\tchannel_id\n".to_owned();
    for (id, (step, src, dst)) in steps().enumerate() {
        let parent = match step {
            0 => -1,
            _ => (id as i64 / i64::from(RANKS) - 1) * i64::from(RANKS) + i64::from((src + RANKS - 1) % RANKS),
        };
        let _ = writeln!(text, "{id}\t{parent}\t{src}\t{dst}\t{}KB\t0", BYTES >> 10);
    }
    text
}

fn file(format: ImportFormat, text: &str) -> ImportGraph {
    import_file(format, &mut text.as_bytes(), Some(StartUnit::Microseconds)).unwrap()
}

/// The transfers without the names and the order of their file.
fn canonical(graph: &ImportGraph) -> Vec<(u32, u32, u32, u64, Vec<u32>)> {
    let mut depths: BTreeMap<u32, u32> = BTreeMap::new();
    let at = |place: u32| &graph.transfers[place as usize];
    while depths.len() < graph.transfers.len() {
        for (place, transfer) in (0..).zip(&graph.transfers) {
            let depth = transfer.after.iter().map(|input| depths.get(&input.transfer).map(|depth| depth + 1));
            if let Some(depth) = depth.collect::<Option<Vec<u32>>>() {
                depths.insert(place, depth.into_iter().max().unwrap_or_default());
            }
        }
    }
    let rows = (0..).zip(&graph.transfers).map(|(place, it): (u32, _)| {
        let inputs = it.after.iter().map(|input| at(input.transfer).src).collect();
        (depths[&place], it.src, it.dst, it.bytes, inputs)
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    rows
}

#[test]
fn an_all_gather_is_the_same_graph_from_goal_simccl_and_chakra() {
    let call = [("comm_size", 9, BYTES), ("comm_type", 9, 2)];
    let trace = [metadata("0.0.4"), node(1, 7, &[], 0, &call)].concat();
    let open = |_| Ok(Box::new(Cursor::new(trace.clone())) as Box<dyn BufRead>);
    let chakra = import_traces(RANKS, TraceEncoding::Protobuf, open).unwrap();
    let expected: Vec<_> = steps()
        .map(|(step, src, dst)| {
            (step, src, dst, BYTES, if step == 0 { vec![] } else { vec![(src + RANKS - 1) % RANKS] })
        })
        .collect();
    assert_eq!(canonical(&chakra), expected);
    for graph in [file(ImportFormat::Goal, &goal()), file(ImportFormat::Simccl, &simccl())] {
        assert_eq!(canonical(&graph), expected);
        assert!(graph.transfers.iter().flat_map(|it| &it.after).all(|input| input.event == InputEvent::Arrived));
    }
}

/// The matrix that htsim's generator makes for one group, in the order of its hosts: each rank begins a chain that goes
/// round, one step too many.
fn ring_matrix(ranks: u32, bytes: u64) -> String {
    let steps = 2 * ranks - 1;
    let mut text = format!("Nodes {ranks}\nConnections {}\nTriggers {}\n", ranks * steps, ranks * (steps - 1));
    let (mut id, mut trigger) = (0, 1);
    for first in 0..ranks {
        for step in 0..steps {
            id += 1;
            let _ = write!(text, "{}->{} id {id}", (first + step) % ranks, (first + step + 1) % ranks);
            if step == 0 {
                text += " start 0";
            } else {
                let _ = write!(text, " trigger {trigger}");
                trigger += 1;
            }
            let _ = write!(text, " size {bytes}");
            if step + 1 < steps {
                let _ = write!(text, " send_done_trigger {trigger}");
            }
            text += "\n";
        }
    }
    (1..trigger).for_each(|id| text += &format!("trigger id {id} oneshot\n"));
    text
}

#[test]
fn htsims_ring_is_a_chain_for_each_rank_that_acknowledgements_drive() {
    let graph = file(ImportFormat::Htsim, &ring_matrix(16, 1_000_000));
    assert_eq!((graph.transfers.len(), graph.ranks), (16 * 31, 16));
    for (place, transfer) in (0_u32..).zip(&graph.transfers) {
        let inputs: Vec<_> = transfer.after.iter().map(|input| (input.transfer, input.event)).collect();
        let expected = if place % 31 == 0 { vec![] } else { vec![(place - 1, InputEvent::Acknowledged)] };
        assert_eq!(inputs, expected, "{}", transfer.name);
    }
    let mut rows = Vec::new();
    graph.write_csv(&HostNames::Numbered("h"), &mut rows).unwrap();
    let rows = String::from_utf8(rows).unwrap();
    let first = "id,after,src,dst,bytes,start,lane\n1,,h0,h1,1000000,,0\n2,acked:1,h1,h2,1000000,,0\n";
    assert!(rows.starts_with(first), "{rows}");
}
