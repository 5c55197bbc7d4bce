//! Neighbours that hear each other under a plan, and each node's part of it.

use clock::graph::GraphNode;
use clock::node::{Neighbour, PlanPart, PlannedRole, Upstream};
use clock::plan::{ClockPlan, Uplink};

use crate::scheme::ClockScheme;

/// The role of a node that no plan reaches: it listens to nobody that there is.
pub(crate) const NOBODY: PlannedRole = PlannedRole::Follower {
    parent: Upstream { neighbour: Neighbour(u32::MAX), depth: 0 },
    backup: None,
    backup_root: false,
};

/// A node that hears what another one sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaveListener {
    pub(crate) node: u32,
    pub(crate) link: u32,
    /// True over a backup edge.
    pub(crate) backup: bool,
}

/// The listeners of every node.
#[derive(Debug, Default)]
pub(crate) struct Wiring {
    starts: Vec<u32>,
    listeners: Vec<WaveListener>,
}

impl Wiring {
    /// Wiring of a plan; with `before`, while some nodes still follow that one.
    pub(crate) fn of(plan: &ClockPlan, before: Option<&ClockPlan>, scheme: ClockScheme) -> Self {
        let nodes = plan.parent.len();
        if scheme == ClockScheme::Huygens {
            return Self::star(plan.root, nodes);
        }
        let with_backup = scheme == ClockScheme::Sundial;
        let of_plan = |plan: &ClockPlan, place: usize| {
            let backup = plan.backup[place].filter(|_| with_backup);
            [plan.parent[place].map(|up| (up, false)), backup.map(|up| (up, true))]
        };
        let edges = |place: usize| {
            let now = of_plan(plan, place);
            let known = move |up: Uplink| now.iter().flatten().any(|(other, _)| *other == up);
            let old = before.map(|before| of_plan(before, place)).into_iter().flatten().flatten();
            now.into_iter().flatten().chain(old.filter(move |(up, _)| !known(*up)))
        };
        let mut starts = vec![0u32; nodes + 1];
        for (up, _) in (0..nodes).flat_map(edges) {
            starts[up.node.index() + 1] += 1;
        }
        for place in 0..nodes {
            starts[place + 1] += starts[place];
        }
        let mut next = starts.clone();
        let nobody = WaveListener { node: 0, link: 0, backup: false };
        let mut listeners = vec![nobody; starts[nodes] as usize];
        for node in 0..nodes {
            for (up, backup) in edges(node) {
                let place = &mut next[up.node.index()];
                listeners[*place as usize] = WaveListener { node: node as u32, link: up.link.0, backup };
                *place += 1;
            }
        }
        Self { starts, listeners }
    }

    fn star(root: GraphNode, nodes: usize) -> Self {
        let all = (0..nodes as u32).filter(|node| *node != root.0);
        let listeners: Vec<WaveListener> =
            all.map(|node| WaveListener { node, link: u32::MAX, backup: false }).collect();
        let end = listeners.len() as u32;
        let starts = (0..=nodes).map(|place| if place > root.index() { end } else { 0 }).collect();
        Self { starts, listeners }
    }

    /// Places of a node's listeners, for [`Self::listener`].
    #[inline]
    pub(crate) fn places(&self, node: usize) -> std::ops::Range<usize> {
        self.starts[node] as usize..self.starts[node + 1] as usize
    }

    #[inline]
    pub(crate) fn listener(&self, place: usize) -> WaveListener {
        self.listeners[place]
    }
}

/// A node's part of a plan; none if the plan does not reach it.
pub(crate) fn part(plan: &ClockPlan, number: u32, node: usize, scheme: ClockScheme) -> Option<PlanPart> {
    let root = plan.root.index();
    let depth = |depth: Option<u32>| depth.unwrap_or_default().min(u32::from(u16::MAX)) as u16;
    let upstream = |node: GraphNode, depth| Upstream { neighbour: Neighbour(node.0), depth };
    let role = if node == root {
        PlannedRole::Root
    } else if scheme == ClockScheme::Huygens {
        PlannedRole::Follower { parent: upstream(plan.root, 1), backup: None, backup_root: false }
    } else {
        let with_backup = scheme == ClockScheme::Sundial;
        let parent = upstream(plan.parent[node]?.node, depth(plan.depth[node]));
        let backup = plan.backup[node].filter(|_| with_backup);
        let backup = backup.map(|up| upstream(up.node, depth(plan.depth_backup[node])));
        PlannedRole::Follower { parent, backup, backup_root: with_backup && node == plan.backup_root.index() }
    };
    Some(PlanPart { plan: number, role })
}
