//! Two binary trees with half of the data each (Sanders, Speck and Träff 2009): an inner rank of one is a leaf of the other, so
//! that every rank sends and receives about as much.
//!
//! Chunks go up, summed at every rank, and come down again; a broadcast only comes down. The first tree is in order: below the
//! root, rank 0, the parent of a rank is the neighbour at its distance of one level whose number has one trailing zero more. The
//! second is the mirror image, or is shifted by one rank if their number is odd.

use super::{digits, share};
use crate::plan::Transfer;
use crate::shape::{CollectivePattern, CollectiveShape};

#[derive(Clone, Debug)]
pub(crate) struct TwoTrees {
    ranks: u32,
    pieces: u32,
    channels: u32,
    size: u64,
    /// 2 if chunks go up first, 1 if they only come down.
    passes: u32,
    trees: [RankTree; 2],
}

#[derive(Clone, Debug)]
struct RankTree {
    root: u32,
    /// Parent of each rank; its own for the root.
    parents: Vec<u32>,
    children: Vec<Vec<u32>>,
    /// All ranks but the root, parents before their children, and the place of each in this list.
    order: Vec<u32>,
    places: Vec<u32>,
}

impl RankTree {
    /// A tree of positions, and the position of each rank. With `gift`, rank 0 is the first of the list if it is not the root.
    fn new(ranks: u32, gift: bool, position: impl Fn(u32) -> u32) -> Self {
        let mut at = vec![0; ranks as usize];
        (0..ranks).for_each(|rank| at[position(rank) as usize] = rank);
        let parents: Vec<u32> = (0..ranks).map(|rank| at[parent(position(rank), ranks) as usize]).collect();
        let mut children = vec![Vec::new(); ranks as usize];
        for rank in (0..ranks).filter(|rank| parents[*rank as usize] != *rank) {
            children[parents[rank as usize] as usize].push(rank);
        }
        let root = at[0];
        let mut order = vec![root];
        for next in 0..ranks as usize {
            let below = children[order[next] as usize].clone();
            order.extend(below);
        }
        order.remove(0);
        if gift && root != 0 {
            order.retain(|rank| *rank != 0);
            order.insert(0, 0);
        }
        let mut places = vec![0; ranks as usize];
        order.iter().zip(0..).for_each(|(rank, place)| places[*rank as usize] = place);
        Self { root, parents, children, order, places }
    }

    fn children(&self, rank: u32) -> &[u32] {
        &self.children[rank as usize]
    }
}

/// Parent of a position in a tree whose leaves have odd numbers; the root's is itself.
fn parent(position: u32, ranks: u32) -> u32 {
    if position == 0 {
        return 0;
    }
    let bit = 1 << position.trailing_zeros();
    let right = (position ^ bit) | bit << 1;
    if right < ranks { right } else { position ^ bit }
}

/// A place among the transfers: of the child at its lower end.
#[derive(Clone, Copy)]
struct TreeTransfer {
    child: u32,
    tree: usize,
    channel: u32,
    piece: u32,
    is_down: bool,
}

impl TwoTrees {
    pub(super) fn new(shape: &CollectiveShape) -> Self {
        let ranks = shape.ranks;
        let is_broadcast = shape.pattern == CollectivePattern::Broadcast;
        let second = RankTree::new(ranks, is_broadcast, |rank| {
            if ranks.is_multiple_of(2) { ranks - 1 - rank } else { (rank + ranks - 1) % ranks }
        });
        Self {
            ranks,
            pieces: shape.pieces,
            channels: shape.channels.into(),
            size: shape.size,
            passes: if is_broadcast { 1 } else { 2 },
            trees: [RankTree::new(ranks, is_broadcast, |rank| rank), second],
        }
    }

    pub(super) fn transfers(&self) -> u32 {
        self.passes * self.pieces * self.channels * 2 * (self.ranks - 1)
    }

    fn is_broadcast(&self) -> bool {
        self.passes == 1
    }

    fn place(&self, id: u32) -> TreeTransfer {
        let bases = [self.ranks - 1, 2, self.channels, self.pieces, self.passes];
        let [slot, tree, channel, piece, pass] = digits(id, bases);
        let tree = tree as usize;
        let is_down = pass + 1 == self.passes;
        let place = if is_down { slot } else { self.ranks - 2 - slot };
        let child = self.trees[tree].order[place as usize];
        TreeTransfer { child, tree, channel, piece, is_down }
    }

    fn id(&self, at: TreeTransfer) -> u32 {
        let place = self.trees[at.tree].places[at.child as usize];
        let slot = if at.is_down { place } else { self.ranks - 2 - place };
        let pass = if at.is_down { self.passes - 1 } else { 0 };
        let of_pieces = (pass * self.pieces + at.piece) * self.channels + at.channel;
        (of_pieces * 2 + at.tree as u32) * (self.ranks - 1) + slot
    }

    /// True for what rank 0 gives the root of the second tree in a broadcast: it takes the place of what would come to rank 0.
    fn is_gift(&self, at: TreeTransfer) -> bool {
        self.is_broadcast() && at.child == 0
    }

    pub(super) fn transfer(&self, id: u32) -> Transfer {
        let at = self.place(id);
        let tree = &self.trees[at.tree];
        let parent = tree.parents[at.child as usize];
        let (src, dst) = match at.is_down {
            _ if self.is_gift(at) => (0, tree.root),
            true => (parent, at.child),
            false => (at.child, parent),
        };
        let of_channel = share(self.size, self.channels.into(), at.channel.into());
        let of_tree = share(of_channel, 2, at.tree as u64);
        Transfer {
            src,
            dst,
            bytes: share(of_tree, self.pieces.into(), at.piece.into()),
            lane: (2 * at.channel + at.tree as u32) as u16,
            step: u32::from(at.is_down),
        }
    }

    pub(super) fn inputs(&self, id: u32) -> u32 {
        let at = self.place(id);
        let tree = &self.trees[at.tree];
        if !at.is_down {
            return tree.children(at.child).len() as u32;
        }
        let parent = tree.parents[at.child as usize];
        match parent == tree.root {
            _ if self.is_broadcast() && (at.child == 0 || parent == 0) => 0,
            true if !self.is_broadcast() => tree.children(tree.root).len() as u32,
            _ => 1,
        }
    }

    pub(super) fn followers(&self, id: u32, mut found: impl FnMut(u32)) {
        let at = self.place(id);
        let tree = &self.trees[at.tree];
        let parent = tree.parents[at.child as usize];
        if !at.is_down && parent != tree.root {
            return found(self.id(TreeTransfer { child: parent, ..at }));
        }
        let from = if self.is_gift(at) || !at.is_down { tree.root } else { at.child };
        for child in tree.children(from).iter().filter(|child| !(self.is_broadcast() && **child == 0)) {
            found(self.id(TreeTransfer { child: *child, is_down: true, ..at }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_ranks_of_one_tree_are_leaves_of_the_other() {
        for ranks in 2..70 {
            let shape = CollectiveShape {
                pattern: CollectivePattern::AllReduce,
                algorithm: crate::CollectiveAlgorithm::Tree,
                ranks,
                size: 1 << 20,
                channels: 1,
                pieces: 1,
            };
            let TwoTrees { trees: [one, other], .. } = TwoTrees::new(&shape);
            for rank in 0..ranks {
                let of = |tree: &RankTree| tree.children(rank).len();
                assert!(of(&one) <= 2 && of(&other) <= 2);
                let is_root = rank == one.root || rank == other.root;
                assert!(is_root || of(&one) == 0 || of(&other) == 0, "{rank} of {ranks}");
            }
            let depth = |tree: &RankTree, rank: u32| {
                let next = |rank: &u32| Some(tree.parents[*rank as usize]).filter(|parent| parent != rank);
                std::iter::successors(Some(rank), next).count() as u32 - 1
            };
            let deepest = (0..ranks).map(|rank| depth(&one, rank)).max();
            assert!(deepest <= Some(ranks.ilog2() + 1), "{ranks}: {deepest:?}");
        }
    }
}
