//! Operations of ranks become transfers: GOAL and Chakra have sends, receives and computation that wait for each other.
//!
//! A send is a transfer. Receives and computation are none: whoever waits for them waits for transfers, with a delay. So each
//! operation gets the transfers that it waits for ([`StartInputs`]), from those of the operations before it:
//!
//! | operation | ended |
//! | --- | --- |
//! | computation | its start, and its time later |
//! | send | when its last acknowledgement has arrived |
//! | receive | when the data of its send has arrived, and not before it was begun |
//! | collective | when the rank's last piece has arrived |

use std::collections::{BTreeMap, VecDeque};

use collective::{GraphInput, GraphTransfer};
use units::Span;

use crate::collectives::{self, CollectiveKind, CollectivePiece};
use crate::error::ImportError;
use crate::graph::{ImportGraph, MOST_INPUTS, MOST_TRANSFERS, acknowledgement, arrival, tidy, transfer};

/// The group that every rank belongs to.
pub(crate) const ALL_RANKS: u32 = 0;

/// Kind of an operation. Peers and tags may be `None`: any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OpKind {
    Delay(Span),
    Send {
        to: u32,
        bytes: u64,
        tag: u64,
    },
    Receive {
        from: Option<u32>,
        bytes: u64,
        tag: Option<u64>,
    },
    /// The call of one rank; calls of one group belong together in their order. Group 0 has all ranks.
    Collective {
        kind: CollectiveKind,
        bytes: u64,
        group: u32,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct RankOp {
    pub rank: u32,
    /// Line or node.
    pub number: u64,
    pub kind: OpKind,
    /// Operations of the same rank that have to end, and that have to start.
    pub after_end: Vec<u32>,
    pub after_start: Vec<u32>,
}

/// Operations of all ranks.
#[derive(Debug, Default)]
pub(crate) struct OpGraph {
    pub ops: Vec<RankOp>,
    pub ranks: u32,
    /// Names an operation in an error.
    pub blame: Option<fn(&RankOp, String) -> ImportError>,
    pub left_out: Vec<String>,
}

/// Transfers that an operation waits for.
#[derive(Clone, Debug, Default)]
struct StartInputs {
    not_before: Span,
    after: Vec<GraphInput>,
}

impl StartInputs {
    fn add(&mut self, other: &Self, delay: Span) {
        let later = |span: Span| Span::from_ps(span.as_ps().saturating_add(delay.as_ps()));
        self.not_before = self.not_before.max(later(other.not_before));
        let after = other.after.iter().map(|input| GraphInput { delay: later(input.delay), ..*input });
        self.after.extend(after);
    }

    fn tidy(&mut self) {
        tidy(&mut self.after);
    }
}

/// Transfers by the operations that they come from.
#[derive(Default)]
struct OpTransfers {
    transfers: Vec<GraphTransfer>,
    /// Transfers that begin with an operation, and events that end it.
    begun: BTreeMap<u32, Vec<u32>>,
    ended: BTreeMap<u32, Vec<GraphInput>>,
    /// Operations of a barrier: each ends when all have begun.
    barriers: BTreeMap<u32, u32>,
    members: Vec<Vec<u32>>,
}

impl OpGraph {
    pub(crate) fn lower(mut self) -> Result<ImportGraph, ImportError> {
        let mut made = OpTransfers::default();
        self.match_messages(&mut made)?;
        self.expand_collectives(&mut made)?;
        if made.transfers.is_empty() {
            return Err(ImportError::whole("nothing is sent: expected at least one transfer"));
        }
        let order = self.order(&made)?;
        let mut starts: Vec<StartInputs> = vec![StartInputs::default(); self.ops.len()];
        let mut of_barriers: Vec<Option<StartInputs>> = vec![None; made.members.len()];
        let mut kept = 0;
        for at in order {
            let mut start = StartInputs::default();
            let op = &self.ops[at as usize];
            for before in &op.after_start {
                start.add(&starts[*before as usize], Span::ZERO);
            }
            for before in &op.after_end {
                self.add_end(*before, &starts, &made, &mut of_barriers, &mut start);
            }
            start.tidy();
            kept += start.after.len();
            if kept > MOST_INPUTS {
                return Err(self.blamed(at, format!("expected at most {MOST_INPUTS} dependencies")));
            }
            starts[at as usize] = start;
        }
        for (op, transfers) in &made.begun {
            for transfer in transfers {
                let transfer = &mut made.transfers[*transfer as usize];
                transfer.not_before = starts[*op as usize].not_before;
                transfer.after.extend(&starts[*op as usize].after);
            }
        }
        ImportGraph { transfers: made.transfers, left_out: self.left_out, ranks: self.ranks }.checked()
    }

    /// Adds to `start` what has to be over for the operation `before` to have ended.
    fn add_end(
        &self,
        before: u32,
        starts: &[StartInputs],
        made: &OpTransfers,
        of_barriers: &mut [Option<StartInputs>],
        start: &mut StartInputs,
    ) {
        if let Some(barrier) = made.barriers.get(&before) {
            let all = of_barriers[*barrier as usize].get_or_insert_with(|| {
                let mut all = StartInputs::default();
                made.members[*barrier as usize].iter().for_each(|op| all.add(&starts[*op as usize], Span::ZERO));
                all.tidy();
                all
            });
            return start.add(all, Span::ZERO);
        }
        match self.ops[before as usize].kind {
            // A transfer that has arrived was sent.
            OpKind::Send { .. } => {}
            OpKind::Delay(delay) => start.add(&starts[before as usize], delay),
            _ => start.add(&starts[before as usize], Span::ZERO),
        }
        start.after.extend(made.ended.get(&before).into_iter().flatten());
    }

    fn blamed(&self, op: u32, problem: String) -> ImportError {
        let op = &self.ops[op as usize];
        match self.blame {
            Some(blame) => blame(op, problem),
            None => ImportError::node(op.rank, op.number, problem),
        }
    }

    /// The operations, each after those that it waits for on its rank, and a barrier's dependents after all its members.
    fn order(&self, made: &OpTransfers) -> Result<Vec<u32>, ImportError> {
        let mut missing = vec![0_u32; self.ops.len()];
        let mut dependents: Vec<Vec<u32>> = vec![Vec::new(); self.ops.len()];
        let mut waits = |before: u32, at: usize| {
            missing[at] += 1;
            dependents[before as usize].push(at as u32);
        };
        for (at, op) in self.ops.iter().enumerate() {
            op.after_start.iter().for_each(|before| waits(*before, at));
            for before in &op.after_end {
                match made.barriers.get(before) {
                    Some(barrier) => made.members[*barrier as usize].iter().for_each(|member| waits(*member, at)),
                    None => waits(*before, at),
                }
            }
        }
        let mut order: Vec<u32> = (0..missing.len() as u32).filter(|at| missing[*at as usize] == 0).collect();
        let mut done = 0;
        while let Some(at) = order.get(done).copied() {
            done += 1;
            for next in std::mem::take(&mut dependents[at as usize]) {
                missing[next as usize] -= 1;
                if missing[next as usize] == 0 {
                    order.push(next);
                }
            }
        }
        match missing.iter().position(|missing| *missing > 0) {
            None => Ok(order),
            Some(at) => Err(self.blamed(at as u32, "waits for itself, by way of others: it never starts".into())),
        }
    }

    /// Sends become transfers; receives wait for those of their source and tag, in the order of the file.
    fn match_messages(&mut self, made: &mut OpTransfers) -> Result<(), ImportError> {
        let mut sent: BTreeMap<(u32, u32, u64), VecDeque<u32>> = BTreeMap::new();
        for (at, op) in self.ops.iter().enumerate() {
            let OpKind::Send { to, bytes, tag } = op.kind else { continue };
            let place = made.transfers.len() as u32;
            made.transfers.push(transfer(format!("{}.{}", op.rank, op.number), [op.rank, to], bytes));
            made.begun.insert(at as u32, vec![place]);
            made.ended.insert(at as u32, vec![acknowledgement(place)]);
            sent.entry((op.rank, to, tag)).or_default().push_back(at as u32);
        }
        let mut any = Vec::new();
        for (at, op) in self.ops.iter().enumerate() {
            let OpKind::Receive { from, bytes, tag } = op.kind else { continue };
            let (Some(from), Some(tag)) = (from, tag) else {
                any.push(at as u32);
                continue;
            };
            let send = sent.get_mut(&(from, op.rank, tag)).and_then(VecDeque::pop_front);
            let Some(send) = send else {
                let problem = format!("a receive from rank {from} with tag {tag}, and no send for it is left");
                return Err(self.blamed(at as u32, problem));
            };
            self.join(at as u32, send, bytes, made)?;
        }
        for at in &any {
            self.match_any(*at, &mut sent, made)?;
        }
        if !any.is_empty() {
            self.left_out.push("receives from any source or with any tag: matched in the order of the file".into());
        }
        match sent.into_values().flatten().min() {
            None => Ok(()),
            Some(send) => Err(self.blamed(send, "a send that nobody receives".into())),
        }
    }

    fn match_any(
        &self,
        at: u32,
        sent: &mut BTreeMap<(u32, u32, u64), VecDeque<u32>>,
        made: &mut OpTransfers,
    ) -> Result<(), ImportError> {
        let op = &self.ops[at as usize];
        let OpKind::Receive { from, bytes, tag } = op.kind else { return Ok(()) };
        let fits = |(src, dst, with): &(u32, u32, u64)| {
            *dst == op.rank && from.is_none_or(|from| from == *src) && tag.is_none_or(|tag| tag == *with)
        };
        let first = sent.iter_mut().filter(|(key, sends)| fits(key) && !sends.is_empty());
        let first = first.min_by_key(|(_, sends)| sends.front().copied()).and_then(|(_, sends)| sends.pop_front());
        let Some(send) = first else { return Err(self.blamed(at, "a receive, and no send for it is left".into())) };
        self.join(at, send, bytes, made)
    }

    fn join(&self, receive: u32, send: u32, bytes: u64, made: &mut OpTransfers) -> Result<(), ImportError> {
        let sent = made.begun[&send][0];
        let of_send = made.transfers[sent as usize].bytes;
        if of_send != bytes {
            let from = self.ops[send as usize].rank;
            return Err(self.blamed(receive, format!("receives {bytes} bytes, and rank {from} sends {of_send}")));
        }
        made.ended.insert(receive, vec![arrival(sent)]);
        Ok(())
    }

    /// Calls of one group belong together in their order; each such collective becomes transfers.
    fn expand_collectives(&mut self, made: &mut OpTransfers) -> Result<(), ImportError> {
        // By group: the calls of each rank, in their order.
        let mut groups: BTreeMap<u32, BTreeMap<u32, Vec<u32>>> = BTreeMap::new();
        for (at, op) in self.ops.iter().enumerate() {
            if let OpKind::Collective { group, .. } = op.kind {
                groups.entry(group).or_default().entry(op.rank).or_default().push(at as u32);
            }
        }
        let of_all = groups.get(&ALL_RANKS);
        let absent = of_all.and_then(|calls| (0..self.ranks).find(|rank| !calls.contains_key(rank)));
        if let Some(rank) = absent {
            return Err(ImportError::rank(
                rank,
                "has no collective, and others have one among all ranks: is the file cut short?",
            ));
        }
        for ranks in groups.values_mut() {
            // The order of nodes in a file says nothing.
            ranks.values_mut().for_each(|calls| calls.sort_by_key(|op| self.ops[*op as usize].number));
            let most = ranks.values().map(Vec::len).max().unwrap_or_default();
            for turn in 0..most {
                let mut calls = Vec::new();
                for (rank, ops) in &*ranks {
                    let Some(op) = ops.get(turn) else {
                        let problem = format!("has {} collectives in a group where others have {most}", ops.len());
                        return Err(ImportError::rank(*rank, problem));
                    };
                    calls.push(*op);
                }
                self.expand(&calls, made)?;
            }
        }
        Ok(())
    }

    fn expand(&self, calls: &[u32], made: &mut OpTransfers) -> Result<(), ImportError> {
        let first = &self.ops[calls[0] as usize];
        let OpKind::Collective { kind, bytes, .. } = first.kind else { return Ok(()) };
        let differs = calls.iter().find(|op| {
            !matches!(self.ops[**op as usize].kind, OpKind::Collective { kind: its, bytes: of_it, .. } if (its, of_it) == (kind, bytes))
        });
        if let Some(differs) = differs {
            let problem =
                format!("another collective than node {} of rank {} has at this place", first.number, first.rank);
            return Err(self.blamed(*differs, problem));
        }
        if kind == CollectiveKind::Barrier || bytes == 0 || calls.len() == 1 {
            let barrier = made.members.len() as u32;
            made.barriers.extend(calls.iter().map(|op| (*op, barrier)));
            made.members.push(calls.to_vec());
            return Ok(());
        }
        if made.transfers.len() + 2 * calls.len() * calls.len() > MOST_TRANSFERS {
            return Err(self.blamed(calls[0], format!("expected at most {MOST_TRANSFERS} transfers")));
        }
        let pieces = collectives::pieces(kind, calls.len() as u32, bytes);
        let base = made.transfers.len() as u32;
        for (part, piece) in (0..).zip(pieces) {
            let CollectivePiece { transfer, is_last } = piece;
            let [src, dst] = [transfer.src, transfer.dst].map(|member| calls[member as usize]);
            let (op, to) = (&self.ops[src as usize], &self.ops[dst as usize]);
            let after = transfer.after.iter().map(|input| GraphInput { transfer: base + input.transfer, ..*input });
            let after = after.collect();
            let name = format!("{}.{}.{part}", op.rank, op.number);
            made.transfers.push(GraphTransfer { name, src: op.rank, dst: to.rank, after, ..transfer });
            made.begun.entry(src).or_default().push(base + part);
            if is_last {
                made.ended.entry(dst).or_default().push(arrival(base + part));
            }
        }
        Ok(())
    }
}
