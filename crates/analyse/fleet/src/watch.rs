//! The loop itself: what monitors publish comes in, decisions go out. LinkGuardian (SIGCOMM'23) §3.6 and App. C.
//!
//! ```text
//!   Bus ──Message──▶ Reports ──▶ Ledger ──▶ the segment concerned, planned anew ──▶ Decision (──▶ Order, if it may act)
//! ```
//!
//! Only the segment of the link that something was said about is planned anew: constraints do not cross segments. A
//! decision is made known when it differs from the last one about the same link.
//!
//! A watcher that observes decides as if nothing it decided had been done, because it has not. One that acts gives an order
//! to every known port of a link that is to go, and from then on takes the link for disabled, until somebody orders it to
//! be enabled: that is how a repair is reported, never by the port's seeing no more corruption. The orders are on the bus,
//! so the next incarnation of the watcher takes over where this one ends.
//!
//! Invariants: a watcher that may not act gives no order; messages that make no sense change nothing; the same
//! messages in any order lead to the same state.
//!
//! | file | what it does |
//! | --- | --- |
//! | `follow` | the same on a bus that comes and goes |
//! | `onset` | which port was found corrupting first, where that is certain |

mod follow;
mod onset;

use std::collections::{BTreeMap, BTreeSet};

use bus::key::OrderKey;
use bus::{Message, Order, OrderKind, PortId};
use serde::Serialize;
use units::Moment;

use crate::corropt::{self, DisableChoice};
use crate::corrupting::{InvalidMessage, LinkFault, PortReports};
use crate::fabric::{Fabric, LinkEnd, LinkId};
use crate::ledger::{Ledger, LinkState};
use crate::plan::{self, FabricFigures, PlanTerms};
use crate::protection::Protection;

pub use follow::{FollowEvent, Follower};
pub use onset::OnsetOrder;

/// Decision about a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkVerdict {
    /// Goes for repair.
    Disable,
    /// Stays, under protection.
    Protect,
    /// Stays in service, and cannot be protected.
    Exposed,
    /// The link was disabled by somebody else.
    Disabled,
    /// Corrupts no longer, as far as is known.
    Clear,
    /// Back in service.
    Enabled,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkDecision {
    pub at: Moment,
    #[serde(skip)]
    pub id: LinkId,
    pub link: String,
    pub verdict: LinkVerdict,
    pub loss: Option<f64>,
    #[serde(serialize_with = "plan::serialize_protection")]
    pub protection: Option<Protection>,
    pub why: String,
    /// Ports that were ordered; empty if this is only advice.
    pub ordered: Vec<PortId>,
    /// Upper bound on the loss that another choice of links in this segment would remove beyond this one; zero if this choice
    /// is optimal.
    pub missed: f64,
}

/// A host from which nothing is heard any more, or again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HostNotice {
    /// Silent host; its last messages still count: silence is not health.
    Silent {
        host: String,
    },
    Back {
        host: String,
    },
}

/// State of a link as it was last reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReportedState {
    verdict: LinkVerdict,
    copies: Option<u8>,
}

/// Steps of a search that is to be over within 50 ms, even if all links of a pod corrupt.
pub const PROMPT: u64 = 50_000;

#[derive(Debug)]
pub struct Watcher<'f> {
    terms: PlanTerms<'f>,
    reports: PortReports<'f>,
    ledger: Ledger<'f>,
    said: BTreeMap<LinkId, ReportedState>,
    /// The incarnation in which it acts, if it may.
    life: Option<u64>,
    issued: u64,
    /// Orders that `take_orders` has not returned yet.
    orders: Vec<Order>,
    alive: BTreeSet<String>,
    silent: BTreeSet<String>,
}

impl<'f> Watcher<'f> {
    /// A watcher that only observes.
    pub fn new(fabric: &'f Fabric, terms: PlanTerms<'f>) -> Self {
        Self {
            terms,
            reports: PortReports::new(fabric),
            ledger: Ledger::new(fabric, terms.ledger),
            said: BTreeMap::new(),
            life: None,
            issued: 0,
            orders: Vec::new(),
            alive: BTreeSet::new(),
            silent: BTreeSet::new(),
        }
    }

    /// A watcher that acts. `life` distinguishes its orders from those of its former incarnations: greater is later.
    pub fn acting(fabric: &'f Fabric, terms: PlanTerms<'f>, life: u64) -> Self {
        Self { life: Some(life), ..Self::new(fabric, terms) }
    }

    /// Signs its orders with that key, and takes those of others only if they are.
    #[must_use]
    pub fn with_key(self, key: Option<OrderKey>) -> Self {
        Self { reports: self.reports.with_key(key), ..self }
    }

    pub fn acts(&self) -> bool {
        self.life.is_some()
    }

    pub fn figures(&self) -> FabricFigures {
        self.ledger.totals().into()
    }

    pub fn reports(&self) -> &PortReports<'f> {
        &self.reports
    }

    /// Orders that were given since this was last asked.
    pub fn take_orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }

    pub fn on_message(&mut self, now: Moment, message: &Message) -> Result<Vec<LinkDecision>, InvalidMessage> {
        if let Some(nonsense) = PortReports::possible(now, std::slice::from_ref(message)).1.pop() {
            return Err(nonsense);
        }
        let Some(link) = self.reports.hear(message)? else { return Ok(Vec::new()) };
        self.sync(link);
        Ok(self.replan(now, self.ledger.fabric().link(link).segment, &[link]))
    }

    /// Takes many messages at once, and plans each segment once.
    pub fn on_messages(&mut self, now: Moment, messages: &[Message]) -> (Vec<LinkDecision>, Vec<InvalidMessage>) {
        let (possible, mut nonsense) = PortReports::possible(now, messages);
        let (links, more) = self.reports.hear_all(&possible);
        nonsense.extend(more);
        links.iter().for_each(|link| self.sync(*link));
        let fabric = self.ledger.fabric();
        let segment = |link: &LinkId| fabric.link(*link).segment;
        // Links are sorted by segment.
        let segments = links.chunk_by(|one, other| segment(one) == segment(other));
        let decisions = segments.flat_map(|links| self.replan(now, segment(&links[0]), links)).collect();
        (decisions, nonsense)
    }

    /// Takes the names of all hosts that report now. Names that are not switches of this fabric are ignored.
    pub fn on_hosts(&mut self, hosts: &[String]) -> Vec<HostNotice> {
        let ours = |host: &&String| self.reports.expect_switch(host).is_ok();
        let alive: BTreeSet<String> = hosts.iter().filter(ours).cloned().collect();
        let lost: Vec<String> = self.alive.difference(&alive).cloned().collect();
        let back: Vec<String> = self.silent.intersection(&alive).cloned().collect();
        self.silent = self.silent.difference(&alive).cloned().chain(lost.iter().cloned()).collect();
        self.alive = alive;
        let silent = lost.into_iter().map(|host| HostNotice::Silent { host });
        silent.chain(back.into_iter().map(|host| HostNotice::Back { host })).collect()
    }

    /// Brings the ledger up to what is known of a link.
    fn sync(&mut self, link: LinkId) {
        let (trouble, state) = (self.reports.trouble(link), self.ledger.state(link));
        match (trouble, state) {
            (Some(LinkFault::Disabled { .. }), LinkState::Disabled) | (None, LinkState::Healthy) => {}
            (Some(LinkFault::Disabled { .. }), _) => self.ledger.disable(link),
            (None, _) => self.ledger.repair(link),
            (Some(LinkFault::Corrupting { loss, .. }), _) => {
                if state == LinkState::Disabled {
                    self.ledger.repair(link);
                }
                let protection = self.terms.protect(self.ledger.fabric(), link, loss);
                self.ledger.corrupt(link, loss, protection);
            }
        }
    }

    /// Plans a segment anew because something was heard of these links of it.
    fn replan(&mut self, now: Moment, segment: u32, heard: &[LinkId]) -> Vec<LinkDecision> {
        let candidates = self.ledger.candidates(segment);
        let DisableChoice { links: going, missed, .. } =
            corropt::choose(self.ledger.paths_mut(), &candidates, self.terms.budget);
        // For the explanations everything is as it will be.
        going.iter().for_each(|link| self.ledger.paths_mut().disable(*link));
        let mut decisions: Vec<LinkDecision> = heard.iter().filter_map(|link| self.settled(now, *link)).collect();
        decisions.extend(candidates.iter().filter_map(|candidate| self.decide(now, candidate.link, &going)));
        going.iter().for_each(|link| self.ledger.paths_mut().enable(*link));
        for decision in &mut decisions {
            decision.missed = missed.as_f64();
            if decision.verdict == LinkVerdict::Disable {
                self.act(now, decision);
            }
        }
        decisions
    }

    /// Decision to report about a link that is not in question, if there is any.
    fn settled(&mut self, now: Moment, link: LinkId) -> Option<LinkDecision> {
        let former = self.said.get(&link).map(|said| said.verdict);
        let (verdict, why) = match (self.ledger.state(link), former) {
            (LinkState::Corrupting { .. }, _)
            | (LinkState::Disabled, Some(LinkVerdict::Disabled))
            | (LinkState::Healthy, None) => {
                return None;
            }
            (LinkState::Disabled, _) => (LinkVerdict::Disabled, self.latest_order(link)),
            (LinkState::Healthy, Some(LinkVerdict::Disabled)) => (LinkVerdict::Enabled, self.latest_order(link)),
            (LinkState::Healthy, Some(_)) => (LinkVerdict::Clear, "neither end is known to see corruption".to_owned()),
        };
        match verdict {
            LinkVerdict::Disabled => self.said.insert(link, ReportedState { verdict, copies: None }),
            _ => self.said.remove(&link),
        };
        Some(self.decision(now, link, verdict, why))
    }

    /// Decision to report about a corrupting link, if it is new.
    fn decide(&mut self, now: Moment, link: LinkId, going: &[LinkId]) -> Option<LinkDecision> {
        let LinkState::Corrupting { protection, .. } = self.ledger.state(link) else { return None };
        let goes = going.binary_search(&link).is_ok();
        let (verdict, copies) = match (goes, protection) {
            (true, _) => (LinkVerdict::Disable, None),
            (false, Some(protection)) => (LinkVerdict::Protect, Some(protection.copies)),
            (false, None) => (LinkVerdict::Exposed, None),
        };
        let said = ReportedState { verdict, copies };
        let can_act_now = goes && self.acts() && self.reports.ports(link) != [None, None];
        if self.said.insert(link, said) == Some(said) && !can_act_now {
            return None;
        }
        let why = if goes {
            plan::goes(plan::tightest(self.ledger.paths(), link).as_ref())
        } else {
            let obstacle = plan::obstacle(self.ledger.paths_mut(), link)?;
            plan::stays(self.ledger.fabric(), &obstacle, |link| going.binary_search(&link).is_ok())
        };
        Some(self.decision(now, link, verdict, why))
    }

    fn decision(&self, at: Moment, link: LinkId, verdict: LinkVerdict, why: String) -> LinkDecision {
        let (loss, protection) = match self.ledger.state(link) {
            LinkState::Corrupting { loss, protection } => (Some(loss), protection),
            LinkState::Healthy | LinkState::Disabled => (None, None),
        };
        let protection = protection.filter(|_| verdict == LinkVerdict::Protect);
        let name = self.ledger.fabric().name(link).to_string();
        LinkDecision { at, id: link, link: name, verdict, loss, protection, why, ordered: Vec::new(), missed: 0.0 }
    }

    fn latest_order(&self, link: LinkId) -> String {
        let orders = LinkEnd::BOTH.into_iter().filter_map(|end| self.reports.order(link, end));
        orders.max_by_key(|order| order.at).map_or_else(String::new, |order| format!("ordered: {}", order.why))
    }

    /// Gives the orders for a link that goes, if it may; from then on the link is disabled.
    fn act(&mut self, now: Moment, decision: &mut LinkDecision) {
        let (Some(life), link) = (self.life, decision.id) else { return };
        for (end, id) in LinkEnd::BOTH.into_iter().zip(self.reports.ports(link)) {
            let Some(id) = id else { continue };
            self.issued += 1;
            let (life, number) = self.reports.next_version(link, end, life, self.issued);
            let why = decision.why.clone();
            let order = Order { id: id.clone(), at: now, life, number, kind: OrderKind::Disable, why, tag: None };
            let order = self.reports.sign(order);
            if self.reports.hear(&Message::Order(order.clone())).is_ok() {
                self.orders.push(order);
                decision.ordered.push(id);
            }
        }
        if decision.ordered.is_empty() {
            decision.why.push_str(" (its ports are not known, so nobody can be told)");
        } else {
            self.sync(link);
            self.said.insert(link, ReportedState { verdict: LinkVerdict::Disabled, copies: None });
        }
    }
}

/// The orders that report a repair: every known port of the link back into service. They are later than all reports so
/// far, also if the monitors' clocks are ahead of the one that says `now`.
pub fn repaired(reports: &PortReports<'_>, link: LinkId, now: Moment, life: u64, why: &str) -> Vec<Order> {
    let at = reports.heard_at(link).map_or(now, |heard| heard.max(now));
    let ends = LinkEnd::BOTH.into_iter().zip(reports.ports(link)).filter_map(|(end, id)| Some((end, id?)));
    let order = |(end, id)| {
        let (life, number) = reports.next_version(link, end, life, 0);
        reports.sign(Order { id, at, life, number, kind: OrderKind::Enable, why: why.to_owned(), tag: None })
    };
    ends.map(order).collect()
}
