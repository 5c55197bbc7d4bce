//! Plan for the links that corrupt now: LinkGuardian (SIGCOMM'23) §3.6, for a person to read or a program to act upon.
//!
//! Links that can go without a ToR falling below its constraint go for repair: of all ways to choose them, the one that
//! removes the most loss (`corropt`). Those that have to stay are protected where both their switches can. Repairs are
//! put in the order in which they make room for others. For each link the plan says why.
//!
//! Losses are weighed as they are without protection, as the paper does: a protected link still wants its repair.
//!
//! Invariants: a plan violates no constraint that is not violated already; a link that stays could not go in addition;
//! every number and name in an explanation is true of the fabric once the plan has been carried out.
//!
//! | file | what it does |
//! | --- | --- |
//! | `obstacle` | the ToRs below a link, and what they lack |
//! | `repair` | the order of repairs |

mod obstacle;
mod repair;
pub mod report;
mod text;

use serde::{Serialize, Serializer};

use crate::corropt::{self, CandidateLink};
use crate::corrupting::{FaultyLinks, LinkFault};
use crate::fabric::{Fabric, LinkId};
use crate::ledger::{self, Ledger, LedgerTotals, LinkState};
use crate::penalty::Penalty;
use crate::protection::{Protect, Protection};

pub use obstacle::{PathMargin, obstacle, tightest};
pub(crate) use text::{goes, stays};

#[derive(Clone, Copy, Debug)]
pub struct PlanTerms<'a> {
    pub ledger: ledger::LedgerTerms,
    /// Effect of protection on a link.
    pub protection: &'a dyn Protect,
    /// True for each switch that can protect its links; `None` if all can. A link needs both its ends.
    pub capable: Option<&'a [bool]>,
    /// Steps of the optimizer's search in one segment.
    pub budget: u64,
}

impl PlanTerms<'_> {
    /// Effect of protection on this link, if it can be protected.
    pub fn protect(&self, fabric: &Fabric, link: LinkId, loss: f64) -> Option<Protection> {
        let ends = fabric.link(link);
        let capable = self.capable.is_none_or(|capable| capable[ends.lower.index()] && capable[ends.upper.index()]);
        capable.then(|| self.protection.protect(loss))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Links to disable now; the highest loss first, as in the next two lists.
    pub disable: Vec<ToDisable>,
    /// Links that stay under protection.
    pub protect: Vec<ToKeep>,
    /// Links that stay unprotected, because one of their switches cannot protect them.
    pub exposed: Vec<ToKeep>,
    /// Repairs to make first, second and so on.
    pub repair: Vec<RepairPhase>,
    /// Upper bound on the loss that another choice of links would remove beyond this one; zero if this choice is optimal.
    pub missed: f64,
    /// ToRs that lack paths already: nothing above them can go.
    pub lacking: Vec<PathMargin>,
    pub before: FabricFigures,
    pub after: FabricFigures,
}

/// A link that goes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToDisable {
    #[serde(skip)]
    pub id: LinkId,
    pub link: String,
    pub loss: f64,
    /// The ToR below it that is nearest to its constraint, once all links that go have gone.
    pub tightest: Option<PathMargin>,
    pub why: String,
}

/// A link that stays.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToKeep {
    #[serde(skip)]
    pub id: LinkId,
    pub link: String,
    pub loss: f64,
    #[serde(serialize_with = "serialize_protection")]
    pub protection: Option<Protection>,
    /// Protected before this plan.
    pub already: bool,
    /// The ToR in the way, as it would be if this link went as well.
    pub in_the_way: PathMargin,
    /// Links out of service without which this ToR has fewer paths: disabled before, or by this plan.
    pub out: Vec<String>,
    pub why: String,
}

/// One step of the repairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RepairPhase {
    #[serde(skip)]
    pub id: LinkId,
    pub link: String,
    pub loss: Option<f64>,
    pub when: DisableTime,
    /// Links that can go for repair when this one is back, and the loss that this removes.
    pub unlocks: Vec<String>,
    pub unlocked_penalty: f64,
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DisableTime {
    /// The link was out of service before this plan.
    Disabled,
    /// Goes by this plan.
    GoesNow,
    /// Goes when an earlier repair has made room.
    Later,
    /// Cannot go even with every other link in service.
    NeedsWindow,
}

/// The fabric in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FabricFigures {
    pub penalty: f64,
    pub least_paths_per_tor: u64,
    /// Shares of what there is with every link in service.
    pub least_share: f64,
    pub least_pod_capacity: f64,
    pub disabled: u32,
    pub corrupting: u32,
    pub protected: u32,
}

impl From<LedgerTotals> for FabricFigures {
    fn from(totals: LedgerTotals) -> Self {
        Self {
            penalty: totals.penalty.as_f64(),
            least_paths_per_tor: totals.least_paths,
            least_share: totals.least_share,
            least_pod_capacity: totals.least_capacity,
            disabled: totals.disabled,
            corrupting: totals.corrupting,
            protected: totals.protected,
        }
    }
}

pub(crate) fn serialize_protection<S: Serializer>(protection: &Option<Protection>, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct ProtectionUse {
        copies: u8,
        effective_loss: f64,
        speed: f64,
    }
    let guard = protection.map(|p| ProtectionUse { copies: p.copies, effective_loss: p.loss, speed: p.speed });
    guard.serialize(to)
}

/// Plans for the links that corrupt now.
///
/// ```
/// use fleet::corropt::BUDGET;
/// use fleet::corrupting;
/// use fleet::fabric::{Fabric, SwitchNames};
/// use fleet::ledger::{LedgerTerms, PipeLayout};
/// use fleet::paths::Constraint;
/// use fleet::plan::{PlanTerms, plan};
/// use fleet::protection::ProtectionTable;
/// use units::Rate;
///
/// // Two of a leaf's four links corrupt. It has to keep three.
/// let fabric = Fabric::leaf_spine(8, 4, Rate::gbps(100))?;
/// let links = "link,loss\nleaf5--spine0,1e-5\nleaf5--spine2,1e-3\n";
/// let faulty = corrupting::parse("links.csv", links, &SwitchNames::of(&fabric))?;
/// let constraint = Constraint::new(0.75).ok_or("expected a share")?;
/// let ledger = LedgerTerms { constraint, healthy_loss: 0.0, pipes: PipeLayout::default() };
/// let protection = ProtectionTable::measured();
/// let terms = PlanTerms { ledger, protection: &protection, capable: None, budget: BUDGET };
/// let plan = plan(&fabric, &faulty, &terms);
///
/// assert_eq!(plan.disable[0].link, "leaf5--spine2", "the worse one goes for repair");
/// assert_eq!(plan.protect[0].link, "leaf5--spine0", "the other stays, under protection");
/// let why = "stays: without it ToR leaf5 would keep 2 of 4 paths, 3 are required, because leaf5--spine2 is to go now";
/// assert_eq!(plan.protect[0].why, why);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan(fabric: &Fabric, situation: &FaultyLinks, terms: &PlanTerms<'_>) -> Plan {
    let mut ledger = Ledger::new(fabric, terms.ledger);
    for (link, trouble) in situation.iter() {
        match trouble {
            LinkFault::Disabled { .. } => ledger.disable(link),
            LinkFault::Corrupting { loss, protected } => {
                ledger.corrupt(link, loss, protected.then(|| terms.protection.protect(loss)));
            }
        }
    }
    let before = ledger.totals().into();
    let lacking = obstacle::lacking(ledger.paths());
    let mut missed = Penalty::ZERO;
    let mut going = Vec::new();
    for segment in 0..fabric.segments().len() as u32 {
        let candidates = ledger.candidates(segment);
        let choice = corropt::choose(ledger.paths_mut(), &candidates, terms.budget);
        missed = missed + choice.missed;
        choice.links.iter().for_each(|link| ledger.disable(*link));
        going.extend(choice.links);
    }
    protect(&mut ledger, situation, terms);
    let draft = PlanDraft { situation, ledger, going };
    draft.finish(before, missed, lacking)
}

/// Protects the links that stay and can be protected.
fn protect(ledger: &mut Ledger<'_>, situation: &FaultyLinks, terms: &PlanTerms<'_>) {
    for (link, trouble) in situation.iter() {
        if let (LinkState::Corrupting { loss, .. }, LinkFault::Corrupting { protected, .. }) =
            (ledger.state(link), trouble)
        {
            let protection = terms.protect(ledger.fabric(), link, loss);
            ledger.corrupt(link, loss, protection.or_else(|| protected.then(|| terms.protection.protect(loss))));
        }
    }
}

/// The fabric once the plan has been carried out, and what led there.
struct PlanDraft<'a, 'f> {
    situation: &'a FaultyLinks,
    ledger: Ledger<'f>,
    /// Sorted.
    going: Vec<LinkId>,
}

impl PlanDraft<'_, '_> {
    fn finish(mut self, before: FabricFigures, missed: Penalty, lacking: Vec<PathMargin>) -> Plan {
        self.going.sort_unstable();
        let mut disable: Vec<ToDisable> = self.going.clone().into_iter().filter_map(|link| self.going(link)).collect();
        disable.sort_by(|a, b| b.loss.total_cmp(&a.loss).then(a.id.cmp(&b.id)));
        let staying: Vec<LinkId> = self.situation.iter().map(|(link, _)| link).collect();
        let mut staying: Vec<ToKeep> = staying.into_iter().filter_map(|link| self.staying(link)).collect();
        staying.sort_by(|a, b| b.loss.total_cmp(&a.loss).then(a.id.cmp(&b.id)));
        let (protect, exposed) = staying.into_iter().partition(|link| link.protection.is_some());
        let after = self.ledger.totals().into();
        let repair = self.repairs();
        Plan { disable, protect, exposed, repair, missed: missed.as_f64(), lacking, before, after }
    }

    fn name(&self, link: LinkId) -> String {
        self.ledger.fabric().name(link).to_string()
    }

    fn going(&mut self, link: LinkId) -> Option<ToDisable> {
        let loss = self.situation.get(link)?.loss()?;
        let tightest = obstacle::tightest(self.ledger.paths(), link);
        let why = text::goes(tightest.as_ref());
        Some(ToDisable { id: link, link: self.name(link), loss, tightest, why })
    }

    fn staying(&mut self, link: LinkId) -> Option<ToKeep> {
        let Some(LinkFault::Corrupting { loss, protected }) = self.situation.get(link) else { return None };
        let LinkState::Corrupting { protection, .. } = self.ledger.state(link) else { return None };
        let obstacle = obstacle::obstacle(self.ledger.paths_mut(), link)?;
        let fabric = self.ledger.fabric();
        let why = text::stays(fabric, &obstacle, |link| self.going.binary_search(&link).is_ok());
        Some(ToKeep {
            id: link,
            link: self.name(link),
            loss,
            protection,
            already: protected,
            in_the_way: obstacle.room,
            out: obstacle.out.iter().map(|link| self.name(*link)).collect(),
            why,
        })
    }

    fn repairs(&mut self) -> Vec<RepairPhase> {
        let fabric = self.ledger.fabric();
        let mut queues = vec![repair::RepairQueue::default(); fabric.segments().len()];
        for (link, trouble) in self.situation.iter() {
            let queue = &mut queues[fabric.link(link).segment as usize];
            match (self.ledger.state(link), trouble.loss().map(Penalty::of_loss)) {
                (LinkState::Disabled, loss) => {
                    queue.out.insert(link, loss);
                }
                (LinkState::Corrupting { .. }, Some(penalty)) => queue.stay.push(CandidateLink { link, penalty }),
                (LinkState::Corrupting { .. } | LinkState::Healthy, _) => {}
            }
        }
        let steps = repair::order(self.ledger.paths_mut(), queues);
        let mut unlocked_by: Vec<(LinkId, LinkId)> = Vec::new();
        let mut repairs = Vec::with_capacity(steps.len());
        for step in steps {
            unlocked_by.extend(step.unlocks.iter().map(|link| (*link, step.link)));
            let after = unlocked_by.iter().find(|(link, _)| *link == step.link).map(|(_, by)| *by);
            repairs.push(self.repair(&step, after));
        }
        repairs
    }

    fn repair(&mut self, step: &repair::RepairStep, after: Option<LinkId>) -> RepairPhase {
        let when = match (step.can_go, self.situation.get(step.link), self.going.binary_search(&step.link)) {
            (false, ..) => DisableTime::NeedsWindow,
            (true, Some(LinkFault::Disabled { .. }), _) => DisableTime::Disabled,
            (true, _, Ok(_)) => DisableTime::GoesNow,
            (true, _, Err(_)) => DisableTime::Later,
        };
        let unlocks: Vec<String> = step.unlocks.iter().map(|link| self.name(*link)).collect();
        let unlocked_penalty = step.unlocked.as_f64();
        let after = after.map(|link| self.name(link));
        let why = text::repair(when, &unlocks, unlocked_penalty, after.as_deref());
        let loss = self.situation.get(step.link).and_then(LinkFault::loss);
        RepairPhase { id: step.link, link: self.name(step.link), loss, when, unlocks, unlocked_penalty, why }
    }
}
