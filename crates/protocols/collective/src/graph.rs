//! Graphs of transfers as a list: any order of any transfers between ranks.
//!
//! Followers are one flat list. A graph that could never finish is refused, with the shortest cycle in it.

mod cycle;
pub mod file;

use std::collections::BTreeMap;
use std::fmt;

use units::Span;

use crate::plan::{FollowingTransfer, InputEvent, Transfer};

/// A transfer as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphTransfer {
    /// Name in a file; no two have the same.
    pub name: String,
    pub src: u32,
    pub dst: u32,
    pub bytes: u64,
    pub lane: u16,
    /// Earliest start, from the beginning of the iteration.
    pub not_before: Span,
    /// Events that it waits for. It starts when the last of them is as long ago as its delay.
    pub after: Vec<GraphInput>,
}

/// An event that a transfer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphInput {
    /// Place in the list.
    pub transfer: u32,
    pub event: InputEvent,
    pub delay: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferGraphError {
    Empty,
    TooMany,
    /// The transfer of this name is wrong by itself.
    Transfer {
        name: String,
        problem: String,
    },
    /// Transfers that wait for each other, the shortest such cycle.
    Cycle(Vec<String>),
}

impl fmt::Display for TransferGraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "no transfers: expected at least one"),
            Self::TooMany => write!(f, "expected at most {} transfers", u32::MAX - 1),
            Self::Transfer { name, problem } => write!(f, "transfer '{name}': {problem}"),
            Self::Cycle(names) => {
                let shown: Vec<&str> = names.iter().map(String::as_str).take(MOST_SHOWN).collect();
                let more = names.len().saturating_sub(MOST_SHOWN);
                let dots = if more > 0 { format!(" -> … {more} more") } else { String::new() };
                write!(f, "can never finish, each waits for the one before: {}{dots}", shown.join(" -> "))?;
                names.first().map_or(Ok(()), |first| write!(f, " -> {first}"))
            }
        }
    }
}

impl std::error::Error for TransferGraphError {}

/// Names of a cycle that are printed.
const MOST_SHOWN: usize = 20;

#[derive(Clone, Debug)]
struct ListedTransfer {
    transfer: Transfer,
    not_before: Span,
    inputs: u32,
    /// Its place in the order in which all can be carried out.
    first: [u32; 2],
}

/// A graph that was checked.
#[derive(Clone, Debug)]
pub struct TransferGraph {
    ranks: u32,
    transfers: Vec<ListedTransfer>,
    names: Vec<Box<str>>,
    /// Followers of all, by transfer and event; `first` says where those of each begin.
    followers: Vec<FollowingTransfer>,
    order: Vec<u32>,
    acknowledgements: bool,
}

impl TransferGraph {
    pub fn new(ranks: u32, list: Vec<GraphTransfer>) -> Result<Self, TransferGraphError> {
        if list.is_empty() {
            return Err(TransferGraphError::Empty);
        }
        if list.len() >= u32::MAX as usize {
            return Err(TransferGraphError::TooMany);
        }
        let mut names = BTreeMap::new();
        for (place, one) in list.iter().enumerate() {
            if names.insert(one.name.as_str(), place).is_some() {
                return Err(wrong(one, "there is another of this name".to_owned()));
            }
            check(ranks, &list, place)?;
        }
        let order = cycle::order(&list).map_err(|cycle| {
            TransferGraphError::Cycle(cycle.into_iter().map(|place| list[place as usize].name.clone()).collect())
        })?;
        Ok(Self::checked(ranks, list, order))
    }

    fn checked(ranks: u32, list: Vec<GraphTransfer>, order: Vec<u32>) -> Self {
        let mut of: Vec<(u32, InputEvent, FollowingTransfer)> = Vec::new();
        for (place, one) in list.iter().enumerate() {
            let follower = |input: &GraphInput| FollowingTransfer { transfer: place as u32, delay: input.delay };
            of.extend(one.after.iter().map(|input| (input.transfer, input.event, follower(input))));
        }
        of.sort_by_key(|(input, event, follower)| (*input, *event, follower.transfer));
        let mut steps = vec![0; list.len()];
        for place in &order {
            let inputs = list[*place as usize].after.iter().map(|input| steps[input.transfer as usize] + 1);
            steps[*place as usize] = inputs.max().unwrap_or(0);
        }
        let begin = |place: usize, event| of.partition_point(|one| (one.0, one.1) < (place as u32, event)) as u32;
        let transfer = |(place, one): (usize, &GraphTransfer)| ListedTransfer {
            transfer: Transfer { src: one.src, dst: one.dst, bytes: one.bytes, lane: one.lane, step: steps[place] },
            not_before: one.not_before,
            inputs: one.after.len() as u32,
            first: [begin(place, InputEvent::Arrived), begin(place, InputEvent::Acknowledged)],
        };
        let transfers = list.iter().enumerate().map(transfer).collect();
        let acknowledgements = of.iter().any(|(_, event, _)| *event == InputEvent::Acknowledged);
        let followers = of.into_iter().map(|(.., follower)| follower).collect();
        let names = list.into_iter().map(|one| one.name.into_boxed_str()).collect();
        Self { ranks, transfers, names, followers, order, acknowledgements }
    }

    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    pub(crate) fn transfers(&self) -> u32 {
        self.transfers.len() as u32
    }

    pub(crate) fn transfer(&self, id: u32) -> Transfer {
        self.transfers[id as usize].transfer
    }

    pub(crate) fn inputs(&self, id: u32) -> u32 {
        self.transfers[id as usize].inputs
    }

    pub(crate) fn not_before(&self, id: u32) -> Span {
        self.transfers[id as usize].not_before
    }

    pub(crate) fn followers(&self, id: u32, event: InputEvent) -> impl Iterator<Item = FollowingTransfer> + '_ {
        let [arrived, acknowledged] = self.transfers[id as usize].first;
        let end = self.transfers.get(id as usize + 1).map_or(self.followers.len() as u32, |next| next.first[0]);
        let range = match event {
            InputEvent::Arrived => arrived..acknowledged,
            InputEvent::Acknowledged => acknowledged..end,
        };
        self.followers[range.start as usize..range.end as usize].iter().copied()
    }

    pub(crate) fn waits_for_acknowledgements(&self) -> bool {
        self.acknowledgements
    }

    pub(crate) fn name(&self, id: u32) -> Option<&str> {
        self.names.get(id as usize).map(AsRef::as_ref)
    }

    pub(crate) fn in_order(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.iter().copied()
    }
}

fn wrong(one: &GraphTransfer, problem: String) -> TransferGraphError {
    TransferGraphError::Transfer { name: one.name.clone(), problem }
}

/// Checks a transfer by itself.
fn check(ranks: u32, list: &[GraphTransfer], place: usize) -> Result<(), TransferGraphError> {
    let one = &list[place];
    if let Some(unknown) = [one.src, one.dst].into_iter().find(|rank| *rank >= ranks) {
        return Err(wrong(one, format!("rank {unknown}: expected one of {ranks}")));
    }
    if one.src == one.dst {
        return Err(wrong(one, "sends to itself: expected another receiver".to_owned()));
    }
    if one.bytes == 0 {
        return Err(wrong(one, "expected at least one byte".to_owned()));
    }
    for input in &one.after {
        if input.transfer as usize == place {
            return Err(wrong(one, "waits for itself".to_owned()));
        }
        if input.transfer as usize >= list.len() {
            return Err(wrong(one, format!("waits for transfer number {}, of {}", input.transfer, list.len())));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(name: &str, [src, dst]: [u32; 2], after: &[u32]) -> GraphTransfer {
        let input = |transfer: &u32| GraphInput { transfer: *transfer, event: InputEvent::Arrived, delay: Span::ZERO };
        let after = after.iter().map(input).collect();
        GraphTransfer { name: name.to_owned(), src, dst, bytes: 1, lane: 0, not_before: Span::ZERO, after }
    }

    fn said(list: Vec<GraphTransfer>) -> String {
        TransferGraph::new(4, list).unwrap_err().to_string()
    }

    #[test]
    fn the_shortest_cycle_is_printed() {
        // A long cycle a-b-c-d, and a short one b-c.
        let list = vec![
            transfer("a", [0, 1], &[3]),
            transfer("b", [1, 2], &[0, 2]),
            transfer("c", [2, 3], &[1]),
            transfer("d", [3, 0], &[2]),
        ];
        assert_eq!(said(list), "can never finish, each waits for the one before: b -> c -> b");
    }

    #[test]
    fn what_is_wrong_by_itself_is_named() {
        assert_eq!(said(vec![]), "no transfers: expected at least one");
        let twice = vec![transfer("a", [0, 1], &[]), transfer("a", [1, 2], &[])];
        assert_eq!(said(twice), "transfer 'a': there is another of this name");
        assert_eq!(said(vec![transfer("a", [0, 1], &[0])]), "transfer 'a': waits for itself");
        assert_eq!(said(vec![transfer("a", [0, 4], &[])]), "transfer 'a': rank 4: expected one of 4");
        assert_eq!(said(vec![transfer("a", [2, 2], &[])]), "transfer 'a': sends to itself: expected another receiver");
    }

    #[test]
    fn followers_are_found_by_event_and_steps_count_what_comes_before() {
        let mut list = vec![transfer("a", [0, 1], &[]), transfer("b", [1, 2], &[0]), transfer("c", [2, 3], &[0, 1])];
        list[2].after[0].event = InputEvent::Acknowledged;
        let graph = TransferGraph::new(4, list).unwrap();
        let of = |id, event| graph.followers(id, event).map(|follower| follower.transfer).collect::<Vec<_>>();
        assert_eq!([of(0, InputEvent::Arrived), of(0, InputEvent::Acknowledged)], [vec![1], vec![2]]);
        assert_eq!([of(1, InputEvent::Arrived), of(2, InputEvent::Arrived)], [vec![2], vec![]]);
        assert_eq!([0, 1, 2].map(|id| graph.transfer(id).step), [0, 1, 2]);
        assert!(graph.waits_for_acknowledgements());
    }
}
