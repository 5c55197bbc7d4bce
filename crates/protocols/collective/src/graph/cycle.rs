//! An order in which all transfers can be carried out, or the shortest cycle.

use std::collections::{BTreeSet, VecDeque};

use super::GraphTransfer;

/// Steps of the search for a shorter cycle; beyond them the shortest found so far is good enough to mend the graph.
const MOST_STEPS: u64 = 50_000_000;

/// Places in an order in which each comes behind its inputs, or a shortest cycle, each place behind the one that waits for it.
pub(super) fn order(list: &[GraphTransfer]) -> Result<Vec<u32>, Vec<u32>> {
    let mut missing: Vec<u32> = list.iter().map(|one| one.after.len() as u32).collect();
    let mut begin = vec![0u32; list.len() + 1];
    for input in list.iter().flat_map(|one| &one.after) {
        begin[input.transfer as usize + 1] += 1;
    }
    for place in 1..begin.len() {
        begin[place] += begin[place - 1];
    }
    let mut followers = vec![0; begin[list.len()] as usize];
    let mut next = begin.clone();
    for (place, one) in list.iter().enumerate() {
        for input in &one.after {
            let at = &mut next[input.transfer as usize];
            followers[*at as usize] = place as u32;
            *at += 1;
        }
    }
    let of = |place: u32| &followers[begin[place as usize] as usize..begin[place as usize + 1] as usize];
    let mut ready: VecDeque<u32> = (0..list.len() as u32).filter(|place| missing[*place as usize] == 0).collect();
    let mut order = Vec::with_capacity(list.len());
    while let Some(place) = ready.pop_front() {
        order.push(place);
        for follower in of(place) {
            let left = &mut missing[*follower as usize];
            *left -= 1;
            if *left == 0 {
                ready.push_back(*follower);
            }
        }
    }
    if order.len() == list.len() { Ok(order) } else { Err(shortest(&missing, of)) }
}

/// The shortest cycle among transfers that still miss inputs: the shortest way from each back to itself.
fn shortest<'a>(missing: &[u32], followers: impl Fn(u32) -> &'a [u32]) -> Vec<u32> {
    let left: BTreeSet<u32> = (0..missing.len() as u32).filter(|place| missing[*place as usize] > 0).collect();
    let mut found: Vec<u32> = Vec::new();
    let mut steps = 0;
    let mut came_from = vec![u32::MAX; missing.len()];
    for start in &left {
        let mut reached = vec![*start];
        let mut ends: VecDeque<(u32, usize)> = VecDeque::from([(*start, 1)]);
        'search: while let Some((place, length)) = ends.pop_front() {
            if !found.is_empty() && (length >= found.len() || steps > MOST_STEPS) {
                break;
            }
            for follower in followers(place) {
                steps += 1;
                if follower == start {
                    let back = |place: &u32| Some(came_from[*place as usize]).filter(|before| *before != u32::MAX);
                    found = std::iter::successors(Some(place), back).collect();
                    found.reverse();
                    break 'search;
                }
                if left.contains(follower) && came_from[*follower as usize] == u32::MAX {
                    came_from[*follower as usize] = place;
                    reached.push(*follower);
                    ends.push_back((*follower, length + 1));
                }
            }
        }
        reached.into_iter().for_each(|place| came_from[place as usize] = u32::MAX);
        if found.len() == 2 || steps > MOST_STEPS && !found.is_empty() {
            break;
        }
    }
    found
}
