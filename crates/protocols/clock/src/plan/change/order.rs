//! An order of the changes between two plans that keeps the rule of [`ChangeStage`] after every step.
//!
//! ```text
//!   nodes, from the top of the new tree down, each to both of its new parents  ──▶ done
//!        │ none can                              ▲
//!        ▼                                       │
//!   a node to its new parent alone, or to its new backup parent alone
//!        │ none can                              │
//!        ▼                                       │
//!   a search through all states that single steps reach; nodes may listen to any of their old and new parents in between
//!        │ there is no way, or the search is too large
//!        ▼                                       │
//!   several nodes at once, as few as are found ──┘
//! ```
//!
//! Steps can be taken back, so the states that single steps reach from the old plan are those that they reach from any state on the way: if
//! the search ends and has not met the new plan, no order of single steps exists.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use super::stage::{ChangeStage, ListenSetting, StageUplink};

/// States that are looked at before a search is given up.
const MOST_STATES: usize = 3_000;
/// Nodes that a search may move.
const MOST_PLAYERS: usize = 14;
/// Pairs of states that are compared for the smallest group.
const MOST_PAIRS: usize = 4_000_000;
/// Chains that are followed before everything that is left becomes one group.
const MOST_WORK: u64 = 400_000_000;

/// Move of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StageMove {
    Listen(u32, ListenSetting),
    /// The node is the backup root from now on, and the other one no longer.
    BackupRoot(u32),
}

/// Moves that happen at once; mostly it is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StageStep {
    pub(super) moves: Vec<StageMove>,
    /// True if a search through all states showed that no order of single steps exists for this group.
    pub(super) is_proven: bool,
}

/// State of all players: the number of each player's current option.
type PlayerState = Vec<u8>;

/// A node that changes, or the role of the backup root, and what it may be in between.
#[derive(Clone, Debug)]
struct ChangePlayer {
    options: Vec<StageMove>,
    old: usize,
    new: usize,
}

/// The order while it is made.
#[derive(Debug)]
pub(super) struct ChangeOrder<'a> {
    stage: ChangeStage,
    /// Nodes that change, from the top of the new tree down.
    changed: &'a [u32],
    old: &'a [ListenSetting],
    new: &'a [ListenSetting],
    /// Backup roots before and after.
    backup_roots: [u32; 2],
    steps: Vec<StageStep>,
}

impl<'a> ChangeOrder<'a> {
    /// `stage` is the old plan.
    pub(super) fn new(
        stage: ChangeStage,
        changed: &'a [u32],
        [old, new]: [&'a [ListenSetting]; 2],
        backup_roots: [u32; 2],
    ) -> Self {
        Self { stage, changed, old, new, backup_roots, steps: Vec::new() }
    }

    /// All steps from the old plan to the new one.
    pub(super) fn find(mut self) -> Vec<StageStep> {
        loop {
            self.go_as_far_as_single_steps_lead();
            let pending = self.pending();
            if pending.is_empty() {
                return self.steps;
            }
            if self.stage.work() > MOST_WORK {
                self.take(pending, false);
                return self.steps;
            }
            if !self.search(&pending) {
                let group = self.shrunk(&pending);
                self.take(group, false);
            }
        }
    }

    /// Moves that are still missing to reach the new plan.
    fn pending(&self) -> Vec<StageMove> {
        let nodes = self.changed.iter().filter(|node| self.stage.setting(**node) != self.new[**node as usize]);
        let mut pending: Vec<StageMove> =
            nodes.map(|node| StageMove::Listen(*node, self.new[*node as usize])).collect();
        if self.stage.backup_root != self.backup_roots[1] {
            pending.push(StageMove::BackupRoot(self.backup_roots[1]));
        }
        pending
    }

    fn try_move(&mut self, what: StageMove) -> bool {
        let is_made = try_move(&mut self.stage, what);
        if is_made {
            self.steps.push(StageStep { moves: vec![what], is_proven: false });
        }
        is_made
    }

    fn take(&mut self, moves: Vec<StageMove>, is_proven: bool) {
        moves.iter().for_each(|what| make(&mut self.stage, *what));
        self.steps.push(StageStep { moves, is_proven });
    }

    fn go_as_far_as_single_steps_lead(&mut self) {
        while self.stage.work() <= MOST_WORK {
            let mut is_further = false;
            for what in self.pending() {
                is_further |= self.try_move(what);
            }
            if !is_further && !self.pending().into_iter().any(|what| self.go_half(what)) {
                return;
            }
        }
    }

    /// Tries to change only one of the two parents.
    fn go_half(&mut self, what: StageMove) -> bool {
        let StageMove::Listen(node, new) = what else { return false };
        let now = self.stage.setting(node);
        let halves = [ListenSetting { backup: new.backup, ..now }, ListenSetting { parent: new.parent, ..now }];
        // A half is a whole move for a node of which one parent is as it should be, and that was tried.
        let halves = halves.into_iter().filter(|half| *half != now && *half != new && is_sound(*half));
        halves.into_iter().any(|half| self.try_move(StageMove::Listen(node, half)))
    }

    /// Searches all states that single steps reach, if they are few; true if that led to the new plan, with a group where
    /// one is necessary.
    fn search(&mut self, pending: &[StageMove]) -> bool {
        let all: Vec<StageMove> = self.all_moves();
        let is_whole = all.len() <= MOST_PLAYERS;
        let moves = if is_whole { all } else { pending.to_vec() };
        if moves.len() > MOST_PLAYERS {
            return false;
        }
        let players: Vec<ChangePlayer> = moves.iter().map(|what| self.player(*what)).collect();
        let begin: PlayerState = players.iter().map(|player| player.old as u8).collect();
        let goal: PlayerState = players.iter().map(|player| player.new as u8).collect();
        let from_old = StateSearch::search(&mut self.stage.clone(), &players, &begin, &goal);
        if from_old.trail.contains_key(&goal) {
            from_old.way(&goal).iter().for_each(|what| self.take(vec![*what], false));
            return true;
        }
        if !from_old.is_all {
            return false;
        }
        let mut at_goal = self.stage.clone();
        load(&mut at_goal, &players, &goal);
        let from_new = StateSearch::search(&mut at_goal, &players, &goal, &begin);
        let [near, far] = closest(&players, &from_old, &from_new, [self.backup_roots[0], self.backup_roots[1]]);
        from_old.way(&near).iter().for_each(|what| self.take(vec![*what], false));
        let differs = |(number, player): (usize, &ChangePlayer)| {
            (near[number] != far[number]).then(|| player.options[usize::from(far[number])])
        };
        self.take(players.iter().enumerate().filter_map(differs).collect(), is_whole);
        // From here the way that led from the new plan is walked back.
        let mut here = far;
        while let Some((before, player)) = from_new.trail.get(&here).cloned().flatten() {
            self.take(vec![players[player].options[usize::from(before[player])]], false);
            here = before;
        }
        true
    }

    /// Moves of all nodes that change.
    fn all_moves(&self) -> Vec<StageMove> {
        let role =
            (self.backup_roots[0] != self.backup_roots[1]).then_some(StageMove::BackupRoot(self.backup_roots[1]));
        let nodes = self.changed.iter().map(|node| StageMove::Listen(*node, self.new[*node as usize]));
        nodes.chain(role).collect()
    }

    /// Options of a node in between: any two of its old and new parents.
    fn player(&self, what: StageMove) -> ChangePlayer {
        let StageMove::Listen(node, new) = what else {
            let options: Vec<StageMove> = self.backup_roots.map(StageMove::BackupRoot).to_vec();
            let old = usize::from(self.stage.backup_root == self.backup_roots[1]);
            return ChangePlayer { options, old, new: 1 };
        };
        let (old, now) = (self.old[node as usize], self.stage.setting(node));
        let leaves = |node: u32| self.new[node as usize].parent.is_none() && self.old[node as usize].parent.is_some();
        let mut uplinks: Vec<StageUplink> = Vec::new();
        for uplink in [old.parent, old.backup, new.parent, new.backup].into_iter().flatten() {
            if !uplinks.contains(&uplink) && !leaves(uplink.node) {
                uplinks.push(uplink);
            }
        }
        // A node that came stays, and one that left is not called back: it may have failed.
        let mut settings = vec![now, new];
        if [old, new].iter().all(|setting| setting.parent.is_some()) {
            settings.push(old);
        }
        if [old, new].iter().all(|setting| setting.backup.is_some()) {
            let pairs = uplinks.iter().flat_map(|parent| uplinks.iter().map(|backup| [Some(*parent), Some(*backup)]));
            settings.extend(pairs.map(|[parent, backup]| ListenSetting { parent, backup }));
        }
        let mut options = Vec::new();
        for setting in settings.into_iter().filter(|setting| is_sound(*setting)) {
            let option = StageMove::Listen(node, setting);
            if !options.contains(&option) {
                options.push(option);
            }
        }
        let number =
            |setting| options.iter().position(|option| *option == StageMove::Listen(node, setting)).unwrap_or(0);
        let (old, new) = (number(now), number(new));
        ChangePlayer { options, old, new }
    }

    /// Smallest found subset of the moves that keeps the rule at once: every node that can stay behind does.
    fn shrunk(&mut self, pending: &[StageMove]) -> Vec<StageMove> {
        let before: BTreeMap<u32, ListenSetting> = pending.iter().filter_map(|what| self.before(*what)).collect();
        let backup_root = self.stage.backup_root;
        let mut best = pending.to_vec();
        for is_from_top in [false, true] {
            let mut stage = self.stage.clone();
            pending.iter().for_each(|what| make(&mut stage, *what));
            let mut group = pending.to_vec();
            let mut candidates = pending.to_vec();
            if !is_from_top {
                candidates.reverse();
            }
            for what in candidates {
                if stage.work() > MOST_WORK {
                    break;
                }
                let back = match what {
                    StageMove::Listen(node, _) => StageMove::Listen(node, before[&node]),
                    StageMove::BackupRoot(_) => StageMove::BackupRoot(backup_root),
                };
                make(&mut stage, back);
                if group.len() > 1 && stage.holds() {
                    group.retain(|other| *other != what);
                } else {
                    make(&mut stage, what);
                }
            }
            if group.len() < best.len() {
                best = group;
            }
        }
        best
    }

    fn before(&self, what: StageMove) -> Option<(u32, ListenSetting)> {
        match what {
            StageMove::Listen(node, _) => Some((node, self.stage.setting(node))),
            StageMove::BackupRoot(_) => None,
        }
    }
}

/// True if parent and backup parent are different neighbours.
fn is_sound(setting: ListenSetting) -> bool {
    match (setting.parent, setting.backup) {
        (Some(parent), Some(backup)) => parent.node != backup.node,
        (None, Some(_)) => false,
        _ => true,
    }
}

fn make(stage: &mut ChangeStage, what: StageMove) {
    match what {
        StageMove::Listen(node, setting) => stage.set(node, setting),
        StageMove::BackupRoot(node) => stage.backup_root = node,
    }
}

fn try_move(stage: &mut ChangeStage, what: StageMove) -> bool {
    match what {
        StageMove::Listen(node, setting) => stage.try_set(node, setting),
        StageMove::BackupRoot(node) => stage.try_backup_root(node),
    }
}

fn load(stage: &mut ChangeStage, players: &[ChangePlayer], state: &PlayerState) {
    players.iter().zip(state).for_each(|(player, option)| make(stage, player.options[usize::from(*option)]));
}

/// States that single steps reach from one.
struct StateSearch {
    /// Predecessor of each state, with the player that moved.
    trail: BTreeMap<PlayerState, Option<(PlayerState, usize)>>,
    moves: HashMap<PlayerState, StageMove>,
    /// True if these are all states.
    is_all: bool,
}

impl StateSearch {
    /// States that are like the goal first, until it is met.
    fn search(stage: &mut ChangeStage, players: &[ChangePlayer], begin: &PlayerState, goal: &PlayerState) -> Self {
        let away = |state: &PlayerState| state.iter().zip(goal).filter(|(a, b)| a != b).count();
        let mut reached = Self { trail: BTreeMap::from([(begin.clone(), None)]), moves: HashMap::new(), is_all: true };
        // By the length of the way so far and what is left of it at least.
        let mut open = BinaryHeap::from([(Reverse(away(begin)), 0, begin.clone())]);
        while let Some((_, steps, state)) = open.pop() {
            if reached.trail.len() > MOST_STATES {
                reached.is_all = false;
                break;
            }
            load(stage, players, &state);
            for (number, player) in players.iter().enumerate() {
                let here = player.options[usize::from(state[number])];
                for (option, what) in (0u8..).zip(&player.options) {
                    let mut next = state.clone();
                    next[number] = option;
                    if reached.trail.contains_key(&next) || !try_move(stage, *what) {
                        continue;
                    }
                    make(stage, here);
                    reached.trail.insert(next.clone(), Some((state.clone(), number)));
                    reached.moves.insert(next.clone(), *what);
                    if next == *goal {
                        return reached;
                    }
                    open.push((Reverse(steps + 1 + away(&next)), steps + 1, next));
                }
            }
        }
        reached
    }

    /// The moves that lead to a state.
    fn way(&self, to: &PlayerState) -> Vec<StageMove> {
        let (mut way, mut here) = (Vec::new(), to);
        while let (Some(Some((before, _))), Some(what)) = (self.trail.get(here), self.moves.get(here)) {
            way.push(*what);
            here = before;
        }
        way.reverse();
        way
    }
}

/// The two states, one of each set, between which the fewest nodes change.
fn closest(players: &[ChangePlayer], from: &StateSearch, to: &StateSearch, roles: [u32; 2]) -> [PlayerState; 2] {
    let nodes = |[near, far]: [&PlayerState; 2]| {
        let mut nodes = BTreeSet::new();
        for (number, player) in players.iter().enumerate().filter(|(number, _)| near[*number] != far[*number]) {
            match player.options[usize::from(far[number])] {
                StageMove::Listen(node, _) => nodes.extend([node]),
                StageMove::BackupRoot(_) => nodes.extend(roles),
            }
        }
        nodes.len()
    };
    let most = (MOST_PAIRS / from.trail.len().max(1)).max(1);
    let pairs = from.trail.keys().flat_map(|near| to.trail.keys().take(most).map(move |far| [near, far]));
    let best = pairs.min_by_key(|pair| nodes(*pair));
    best.map(|pair| pair.map(Clone::clone)).unwrap_or_default()
}
