//! The state between two plans, and whether a node may change in it.
//!
//! The rule: a node that has a backup parent and survives every single failure in both plans survives every single failure of a link
//! or a node after every step as well. A node *survives* a failure if the chain of its backup parents ends at a node whose way to the
//! root is whole, or, with the root dead, at the backup root.
//!
//! If a state keeps the rule and one node v changes, only failures on v's new way can break it, for this reason: a failure elsewhere
//! either concerns the same nodes as before, with the same chains, or fewer. A failure on both the old and the new way of v affects the
//! same nodes too, and their chains differ at most at v. So it is enough to follow the chains of v, and, for failures that v did not depend
//! on before, those of the nodes below v. A node without this guarantee may end without a root if no other node's chain leads over it.

/// Neighbour that a node listens to, and the link to it, by numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StageUplink {
    pub(super) node: u32,
    pub(super) link: u32,
}

/// A node's parent and backup parent. A node without a parent that is not the root is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ListenSetting {
    pub(super) parent: Option<StageUplink>,
    pub(super) backup: Option<StageUplink>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StageFailure {
    Link(u32),
    Node(u32),
}

impl StageFailure {
    fn takes(self, up: StageUplink) -> bool {
        self == Self::Link(up.link) || self == Self::Node(up.node)
    }
}

/// Parents and backup parents of all nodes at some point between the two plans.
#[derive(Clone, Debug)]
pub(super) struct ChangeStage {
    root: u32,
    pub(super) backup_root: u32,
    /// True if the backup root must be a child of the root: it is one in both plans.
    keeps_child: bool,
    settings: Vec<ListenSetting>,
    /// Nodes that have each node as parent, and those that have it as backup parent.
    children: Vec<Vec<u32>>,
    followers: Vec<Vec<u32>>,
    /// Nodes that do not survive every failure in one of the plans.
    excused: Vec<bool>,
    /// Chains that were followed.
    work: u64,
}

impl ChangeStage {
    pub(super) fn new(roots: [u32; 2], settings: Vec<ListenSetting>, excused: Vec<bool>, keeps_child: bool) -> Self {
        let [root, backup_root] = roots;
        let empty = vec![Vec::new(); settings.len()];
        let nothing = vec![ListenSetting::default(); settings.len()];
        let followers = empty.clone();
        let mut stage =
            Self { root, backup_root, keeps_child, settings: nothing, children: empty, followers, excused, work: 0 };
        for (node, setting) in (0..).zip(settings) {
            stage.set(node, setting);
        }
        stage
    }

    pub(super) fn setting(&self, node: u32) -> ListenSetting {
        self.settings[node as usize]
    }

    pub(super) fn work(&self) -> u64 {
        self.work
    }

    /// Changes a node, whatever becomes of others.
    pub(super) fn set(&mut self, node: u32, setting: ListenSetting) {
        let old = std::mem::replace(&mut self.settings[node as usize], setting);
        for (list, [old, new]) in
            [(&mut self.children, [old.parent, setting.parent]), (&mut self.followers, [old.backup, setting.backup])]
        {
            if let Some(up) = old {
                list[up.node as usize].retain(|other| *other != node);
            }
            if let Some(up) = new {
                list[up.node as usize].push(node);
            }
        }
    }

    /// Changes a node if the rule still holds then.
    pub(super) fn try_set(&mut self, node: u32, setting: ListenSetting) -> bool {
        let old = self.setting(node);
        let old_way = self.way(node).unwrap_or_default();
        self.set(node, setting);
        let holds = self.holds_after(node, old, &old_way);
        if !holds {
            self.set(node, old);
        }
        holds
    }

    /// Makes another node the backup root if the rule still holds then.
    pub(super) fn try_backup_root(&mut self, node: u32) -> bool {
        let old = std::mem::replace(&mut self.backup_root, node);
        let dead = StageFailure::Node(self.root);
        let holds = self.has_fit_backup_root()
            && (0..self.settings.len() as u32).all(|node| !self.is_required(node) || self.survives(node, dead));
        if !holds {
            self.backup_root = old;
        }
        holds
    }

    /// True if the rule holds, for every node and every failure.
    pub(super) fn holds(&mut self) -> bool {
        let nodes = 0..self.settings.len() as u32;
        // Ways first: chains are followed over trees only.
        let are_ways_whole = nodes.clone().all(|node| {
            let ListenSetting { parent, backup } = self.setting(node);
            let has_backup = backup.is_none_or(|up| self.is_present(up.node));
            has_backup && (self.way(node).is_some() || parent.is_none() && backup.is_none())
        });
        are_ways_whole
            && self.has_fit_backup_root()
            && nodes.into_iter().all(|node| {
                let way = self.way(node).filter(|_| self.is_required(node)).unwrap_or_default();
                way.into_iter().all(|failure| self.survives(node, failure))
            })
    }

    /// Nodes with a backup parent that some single failure would leave without a root.
    pub(super) fn exposed(&mut self) -> Vec<bool> {
        let nodes = 0..self.settings.len() as u32;
        let is_exposed = |node| {
            let way = self.way(node).filter(|_| self.setting(node).backup.is_some()).unwrap_or_default();
            way.into_iter().any(|failure| !self.survives(node, failure))
        };
        nodes.map(is_exposed).collect()
    }

    fn has_fit_backup_root(&self) -> bool {
        let parent = self.setting(self.backup_root).parent;
        parent.is_some_and(|up| !self.keeps_child || up.node == self.root)
    }

    fn is_required(&self, node: u32) -> bool {
        !self.excused[node as usize] && self.setting(node).backup.is_some()
    }

    fn is_present(&self, node: u32) -> bool {
        node == self.root || self.setting(node).parent.is_some()
    }

    /// All failures that break a node's way to the root; none if there is no way.
    fn way(&self, node: u32) -> Option<Vec<StageFailure>> {
        let (mut way, mut here) = (Vec::new(), node);
        while here != self.root {
            let up = self.setting(here).parent.filter(|_| way.len() <= 2 * self.settings.len())?;
            way.extend([StageFailure::Link(up.link), StageFailure::Node(up.node)]);
            here = up.node;
        }
        Some(way)
    }

    fn is_cut(&self, node: u32, failure: StageFailure) -> bool {
        let mut here = node;
        // No way that leads to the root has more nodes than there are.
        for _ in 0..self.settings.len() {
            match self.setting(here).parent.filter(|_| here != self.root) {
                Some(up) if failure.takes(up) => return true,
                Some(up) => here = up.node,
                None => break,
            }
        }
        here != self.root
    }

    /// True if a node hears a root after a failure.
    fn survives(&mut self, node: u32, failure: StageFailure) -> bool {
        let root_is_dead = failure == StageFailure::Node(self.root);
        let mut here = node;
        for _ in 0..=self.settings.len() {
            self.work += 1;
            if !self.is_cut(here, failure) || root_is_dead && here == self.backup_root {
                return true;
            }
            match self.setting(here).backup.filter(|up| !failure.takes(*up)) {
                Some(up) => here = up.node,
                None => return false,
            }
        }
        false
    }

    fn holds_after(&mut self, node: u32, old: ListenSetting, old_way: &[StageFailure]) -> bool {
        let new = self.setting(node);
        if node == self.backup_root && !self.has_fit_backup_root() {
            return false;
        }
        if new.parent.is_none() {
            return self.children[node as usize].is_empty() && self.followers[node as usize].is_empty();
        }
        let Some(way) = self.way(node) else { return false };
        if new.backup.is_some_and(|up| !self.is_present(up.node)) {
            return false;
        }
        let below = self.below(node);
        way.into_iter().all(|failure| match old_way.contains(&failure) {
            true if old.backup == new.backup => true,
            true => self.keeps(node, failure),
            false => below.iter().all(|node| self.keeps(*node, failure)),
        })
    }

    /// A node and all below it.
    fn below(&self, node: u32) -> Vec<u32> {
        let (mut below, mut at) = (vec![node], 0);
        while let Some(here) = below.get(at) {
            below.extend_from_slice(&self.children[*here as usize]);
            at += 1;
        }
        below
    }

    /// True if a node survives a failure, or if neither the node nor any node that depends on it must survive.
    fn keeps(&mut self, node: u32, failure: StageFailure) -> bool {
        if self.survives(node, failure) {
            return true;
        }
        let (mut stranded, mut at) = (vec![node], 0);
        while let Some(here) = stranded.get(at).copied() {
            if self.is_required(here) {
                return false;
            }
            at += 1;
            for follower in &self.followers[here as usize] {
                let is_alive = failure != StageFailure::Node(*follower);
                if is_alive && !stranded.contains(follower) && self.is_cut(*follower, failure) {
                    stranded.push(*follower);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_with_a_parent_leads_nowhere_and_ends_every_walk() {
        let to = |node: u32, link: u32| Some(StageUplink { node, link });
        // Each listens to the next, the root among them.
        let settings =
            (0..4).map(|node| ListenSetting { parent: to((node + 1) % 4, node), backup: to((node + 2) % 4, 4) });
        let mut stage = ChangeStage::new([0, 1], settings.collect(), vec![false; 4], false);
        assert!(stage.is_cut(1, StageFailure::Link(3)) && !stage.is_cut(1, StageFailure::Link(0)));
        assert_eq!(stage.exposed().len(), 4);
        // The root is no longer on the loop.
        stage.set(3, ListenSetting { parent: to(1, 3), backup: None });
        assert!(stage.is_cut(2, StageFailure::Link(9)));
    }
}
