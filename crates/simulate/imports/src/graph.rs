//! Everything that a file says: transfers that wait for each other, as rows of a graph file.

use std::io::{self, Write};

use collective::graph::file;
use collective::{GraphInput, GraphTransfer, InputEvent, TransferGraph};
use serde::Serialize;
use units::Span;

use crate::error::ImportError;
use crate::hosts::HostNames;

/// Transfers of one graph, at most.
pub(crate) const MOST_TRANSFERS: usize = 1 << 22;
/// Inputs of all transfers together, at most.
pub(crate) const MOST_INPUTS: usize = 1 << 24;
/// Ranks of a file, at most.
pub(crate) const MOST_RANKS: u32 = 1 << 16;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportGraph {
    /// Each can start. Names are those of the file: a number, `rank.number`, or `rank.number.part` in a collective.
    pub transfers: Vec<GraphTransfer>,
    /// Parts of the file that have no counterpart here, a sentence each.
    pub left_out: Vec<String>,
    /// Ranks or nodes of the file.
    pub ranks: u32,
}

impl ImportGraph {
    /// Checks that every transfer can start.
    pub(crate) fn checked(mut self) -> Result<Self, ImportError> {
        self.transfers.iter_mut().for_each(|transfer| tidy(&mut transfer.after));
        match TransferGraph::new(self.ranks, self.transfers.clone()) {
            Ok(_) => Ok(self),
            Err(error) => Err(ImportError::whole(error)),
        }
    }

    /// The graph for `--json`.
    pub fn answer(&self, hosts: &HostNames) -> GraphAnswer<'_> {
        let transfers = self.transfers.iter().map(|transfer| self.transfer_answer(transfer, hosts)).collect();
        GraphAnswer { ranks: self.ranks, left_out: &self.left_out, transfers }
    }

    fn transfer_answer<'a>(&'a self, transfer: &'a GraphTransfer, hosts: &HostNames) -> TransferAnswer<'a> {
        let input = |input: &GraphInput| InputAnswer {
            id: &self.transfers[input.transfer as usize].name,
            acknowledged: input.event == InputEvent::Acknowledged,
            delay_us: input.delay.as_us(),
        };
        let GraphTransfer { name, src, dst, bytes, lane, not_before, after } = transfer;
        TransferAnswer {
            id: name,
            after: after.iter().map(input).collect(),
            src: hosts.name(*src),
            dst: hosts.name(*dst),
            bytes: *bytes,
            start_us: not_before.as_us(),
            lane: *lane,
        }
    }

    /// Writes the rows of `work = "file"`, behind comments about what was left out.
    pub fn write_csv(&self, hosts: &HostNames, out: &mut impl Write) -> io::Result<()> {
        for line in &self.left_out {
            writeln!(out, "# left out: {line}")?;
        }
        file::write(&self.transfers, |rank| hosts.name(rank), out)
    }
}

/// Output of `--json`.
#[derive(Debug, Serialize)]
pub struct GraphAnswer<'a> {
    ranks: u32,
    left_out: &'a [String],
    transfers: Vec<TransferAnswer<'a>>,
}

#[derive(Debug, Serialize)]
struct TransferAnswer<'a> {
    id: &'a str,
    after: Vec<InputAnswer<'a>>,
    src: String,
    dst: String,
    bytes: u64,
    start_us: f64,
    lane: u16,
}

#[derive(Debug, Serialize)]
struct InputAnswer<'a> {
    id: &'a str,
    acknowledged: bool,
    delay_us: f64,
}

/// A transfer without inputs.
pub(crate) fn transfer(name: String, [src, dst]: [u32; 2], bytes: u64) -> GraphTransfer {
    GraphTransfer { name, src, dst, bytes, lane: 0, not_before: Span::ZERO, after: Vec::new() }
}

pub(crate) fn arrival(transfer: u32) -> GraphInput {
    GraphInput { transfer, event: InputEvent::Arrived, delay: Span::ZERO }
}

pub(crate) fn acknowledgement(transfer: u32) -> GraphInput {
    GraphInput { transfer, event: InputEvent::Acknowledged, delay: Span::ZERO }
}

/// Keeps of each event the longest delay.
pub(crate) fn tidy(inputs: &mut Vec<GraphInput>) {
    inputs.sort_unstable_by_key(|input| (input.transfer, input.event, std::cmp::Reverse(input.delay)));
    inputs.dedup_by_key(|input| (input.transfer, input.event));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_what_was_left_out_and_the_longest_of_several_delays() {
        let delayed = |us, input: GraphInput| GraphInput { delay: Span::from_us(us), ..input };
        let first = transfer("4".into(), [0, 1], 7);
        let after = vec![delayed(3, arrival(0)), delayed(9, acknowledgement(0)), delayed(5, arrival(0)), arrival(0)];
        let second = GraphTransfer { after, ..transfer("9".into(), [1, 0], 8) };
        let graph = ImportGraph { transfers: vec![first, second], left_out: vec!["colours".into()], ranks: 2 };
        let mut rows = Vec::new();
        graph.checked().unwrap().write_csv(&HostNames::Numbered("h"), &mut rows).unwrap();
        let rows = String::from_utf8(rows).unwrap();
        assert!(rows.starts_with("# left out: colours\nid,after,"), "{rows}");
        assert!(rows.contains("\n9,4+5000000ps acked:4+9000000ps,h1,h0,8,"), "{rows}");
    }
}
