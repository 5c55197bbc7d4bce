//! Duties of one node in a plan: whom it listens to, and who listens to it.

use clock::node::{Neighbour, PlanPart, PlannedRole, Upstream};
use clock::plan::{PlanFile, PlanRow};
use serde::{Deserialize, Serialize};

/// Reason why a plan is of no use to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DutyError(pub String);

impl std::fmt::Display for DutyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Neighbour that a node listens to, and the node's depth while it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListensTo {
    name: String,
    depth: u16,
}

/// One node's part of a plan, by names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockDuties {
    /// The node.
    pub node: String,
    /// The plan's own number.
    pub epoch: u32,
    /// True if this node begins the waves of messages.
    pub is_root: bool,
    is_backup_root: bool,
    parent: Option<ListensTo>,
    backup: Option<ListensTo>,
    /// Nodes whose parent or backup parent this node is, in order.
    pub listeners: Vec<String>,
}

impl ClockDuties {
    /// Extracts a node's duties from a plan.
    pub fn of(plan: &PlanFile, node: &str) -> Result<Self, DutyError> {
        let rows = rows(plan);
        let row = rows.iter().find(|row| row.node == node).ok_or_else(|| {
            let known: Vec<&str> = rows.iter().map(|row| row.node.as_str()).take(8).collect();
            let more = if rows.len() > known.len() { ", …" } else { "" };
            DutyError(format!("'{node}' is not in the plan; it has {}{more}", known.join(", ")))
        })?;
        let is_root = plan.root == node;
        let depth = |depth: u32| u16::try_from(depth).unwrap_or(u16::MAX);
        let listens_to = |name: &Option<String>, depth: u16| name.clone().map(|name| ListensTo { name, depth });
        let parent = listens_to(&row.parent, depth(row.depth));
        let backup = listens_to(&row.backup, depth(row.depth_backup.unwrap_or(row.depth)));
        let hears = |row: &&PlanRow| [&row.parent, &row.backup].into_iter().flatten().any(|name| name == node);
        let mut listeners: Vec<String> = rows.iter().filter(hears).map(|row| row.node.clone()).collect();
        listeners.sort();
        listeners.dedup();
        let is_backup_root = plan.backup_root == node && !is_root;
        let epoch = epoch_of(plan);
        let duties = Self { node: node.to_owned(), epoch, is_root, is_backup_root, parent, backup, listeners };
        duties.check(node).map(|()| duties)
    }

    /// Verifies that the node can have these duties.
    pub(crate) fn check(&self, node: &str) -> Result<(), DutyError> {
        let refuse = |what: String| Err(DutyError(what));
        if self.node != node {
            return refuse(format!("this is '{node}', and that is the part of '{}'", self.node));
        }
        match (&self.parent, self.is_root) {
            (None, false) => refuse(format!("'{node}' has no parent in the plan: it is cut off")),
            (Some(_), true) => refuse(format!("'{node}' is the root of the plan and has a parent")),
            _ if self.neighbours().iter().any(|name| name == node) => {
                refuse(format!("'{node}' is its own parent in the plan"))
            }
            _ => Ok(()),
        }
    }

    /// All that it has to do with, each once, in order.
    pub fn neighbours(&self) -> Vec<String> {
        let listened_to = [&self.parent, &self.backup].into_iter().flatten().map(|to| to.name.clone());
        let mut names: Vec<String> = listened_to.chain(self.listeners.iter().cloned()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The parent's name.
    pub fn parent(&self) -> Option<&str> {
        self.parent.as_ref().map(|to| to.name.as_str())
    }

    /// The backup parent's name.
    pub fn backup(&self) -> Option<&str> {
        self.backup.as_ref().map(|to| to.name.as_str())
    }

    /// Part of the plan in the form of the state machine, with neighbours numbered as in `ports`.
    pub(crate) fn part(&self, ports: &[String]) -> Result<PlanPart, DutyError> {
        let upstream = |to: &ListensTo| {
            let number = ports.iter().position(|name| *name == to.name);
            let missing = || DutyError(format!("no interface leads to '{}'; say --link {}=IFACE", to.name, to.name));
            number.map(|number| Upstream { neighbour: Neighbour(number as u32), depth: to.depth }).ok_or_else(missing)
        };
        let role = match &self.parent {
            None => PlannedRole::Root,
            Some(parent) => PlannedRole::Follower {
                parent: upstream(parent)?,
                backup: self.backup.as_ref().map(upstream).transpose()?,
                backup_root: self.is_backup_root,
            },
        };
        Ok(PlanPart { plan: self.epoch, role })
    }
}

/// Rows of all nodes, with a backup parent or without one.
fn rows(plan: &PlanFile) -> Vec<PlanRow> {
    let uncovered = plan.uncovered.iter().map(|row| PlanRow {
        node: row.node.clone(),
        parent: row.parent.clone(),
        backup: None,
        depth: row.depth.unwrap_or_default(),
        depth_backup: None,
        parent_link: row.parent_link.clone(),
        backup_link: None,
    });
    plan.plan.iter().cloned().chain(uncovered).collect()
}

/// The number in the file; of a file without one a digest, so that two plans differ in it.
fn epoch_of(plan: &PlanFile) -> u32 {
    plan.epoch.unwrap_or_else(|| {
        let mut text = format!("{} {}", plan.root, plan.backup_root);
        for row in rows(plan) {
            text.push_str(&format!("\n{} {:?} {:?}", row.node, row.parent, row.backup));
        }
        name_digest(&text).max(1)
    })
}

/// Stands for a name in a frame.
pub(crate) fn name_digest(name: &str) -> u32 {
    // FNV-1a.
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"{"root": "a", "backup_root": "b", "epoch": 7, "plan": [
        {"node": "a", "depth": 0},
        {"node": "b", "parent": "a", "backup": "c", "depth": 1, "depth_backup": 3},
        {"node": "c", "parent": "a", "backup": "b", "depth": 1, "depth_backup": 2}],
        "uncovered": [{"node": "d", "parent": "c", "depth": 2, "because": "its only link leads to c"}]}"#;

    fn duties(node: &str) -> Result<ClockDuties, DutyError> {
        ClockDuties::of(&PlanFile::parse(PLAN).unwrap(), node)
    }

    #[test]
    fn a_node_learns_whom_it_hears_and_who_hears_it() {
        let root = duties("a").unwrap();
        assert_eq!((root.is_root, root.listeners.join(" "), root.neighbours().len()), (true, "b c".to_owned(), 2));
        let backup_root = duties("b").unwrap();
        let ports = ["a", "c"].map(str::to_owned);
        let upstream = |neighbour, depth| Upstream { neighbour: Neighbour(neighbour), depth };
        let role = PlannedRole::Follower { parent: upstream(0, 1), backup: Some(upstream(1, 3)), backup_root: true };
        assert_eq!(backup_root.part(&ports), Ok(PlanPart { plan: 7, role }));
        assert_eq!(duties("c").unwrap().neighbours(), ["a", "b", "d"]);
        let uncovered = duties("d").unwrap();
        assert_eq!((uncovered.parent(), uncovered.backup(), uncovered.listeners.len()), (Some("c"), None, 0));
    }

    #[test]
    fn what_a_plan_cannot_mean_is_said() {
        assert_eq!(duties("x").unwrap_err().0, "'x' is not in the plan; it has a, b, c, d");
        let missing = duties("b").unwrap().part(&["a".to_owned()]).unwrap_err();
        assert_eq!(missing.0, "no interface leads to 'c'; say --link c=IFACE");
        let own = PLAN.replace(r#""node": "c", "parent": "a""#, r#""node": "c", "parent": "c""#);
        let own = ClockDuties::of(&PlanFile::from_json(&own).unwrap(), "c").unwrap_err();
        assert_eq!(own.0, "'c' is its own parent in the plan");
        let unnumbered = |text: &str| epoch_of(&PlanFile::parse(&text.replace(r#""epoch": 7,"#, "")).unwrap());
        assert_ne!(unnumbered(PLAN), unnumbered(&PLAN.replace(r#""backup": "c""#, r#""backup": "d""#)));
    }
}
