//! Links that corrupt or are out of service, by what monitors (LinkGuardian App. C), planners and people report.
//!
//! The latest report and the latest order of each port count, in any order of arrival, and however often they arrive. So
//! two processes that have heard the same messages know the same. A link is
//!
//! - *disabled* as long as the latest order to either of its ports is to disable it. That its ports then see no more
//!   corruption, or nothing at all, does not make it healthy; only an order to enable it does, which is how a repair is
//!   reported;
//! - *corrupting* if a port at either end says so, and said so after the link was last enabled. The worse end counts;
//! - of no concern otherwise. A port of which its monitor knows nothing is no evidence.
//!
//! | file | what it does |
//! | --- | --- |
//! | `file` | the same from a file: JSON as published, or CSV |

mod file;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use bus::key::OrderKey;
use bus::{Condition, Message, Order, OrderKind, PortId, PortState};
use units::Moment;

use crate::fabric::{Fabric, LinkEnd, LinkId, SwitchId, SwitchNames};

pub(crate) use file::messages;
pub use file::{load, parse};

/// Fault of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkFault {
    /// The link is in service and loses frames: a share above 0 and at most 1.
    Corrupting { loss: f64, protected: bool },
    /// The link is out of service for repair; with its loss before, if known.
    Disabled { loss: Option<f64> },
}

impl LinkFault {
    pub fn loss(self) -> Option<f64> {
        match self {
            Self::Corrupting { loss, .. } => Some(loss),
            Self::Disabled { loss } => loss,
        }
    }

    /// Combines two reports about one link: out of service before in service, the worse loss, and protected only if nobody
    /// says otherwise.
    #[must_use]
    fn and(self, other: Self) -> Self {
        let worse = match (self.loss(), other.loss()) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
        match (self, other, worse) {
            (Self::Corrupting { protected, .. }, Self::Corrupting { protected: too, .. }, Some(loss)) => {
                Self::Corrupting { loss, protected: protected && too }
            }
            _ => Self::Disabled { loss: worse },
        }
    }
}

/// The links that are not healthy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultyLinks {
    links: BTreeMap<LinkId, LinkFault>,
}

impl FaultyLinks {
    /// Adds what is said of a link to what was said of it before.
    pub fn add(&mut self, link: LinkId, trouble: LinkFault) {
        self.links.entry(link).and_modify(|known| *known = known.and(trouble)).or_insert(trouble);
    }

    pub fn get(&self, link: LinkId) -> Option<LinkFault> {
        self.links.get(&link).copied()
    }

    /// Faulty links, in order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (LinkId, LinkFault)> + '_ {
        self.links.iter().map(|(link, trouble)| (*link, *trouble))
    }

    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }
}

impl FromIterator<(LinkId, LinkFault)> for FaultyLinks {
    fn from_iter<I: IntoIterator<Item = (LinkId, LinkFault)>>(links: I) -> Self {
        let mut situation = Self::default();
        links.into_iter().for_each(|(link, trouble)| situation.add(link, trouble));
        situation
    }
}

/// A message that cannot be true of this fabric; it changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidMessage(String);

impl fmt::Display for InvalidMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidMessage {}

/// The latest that was said of each port.
#[derive(Clone, Debug)]
pub struct PortReports<'f> {
    names: SwitchNames<'f>,
    /// Key that orders must be signed with, if any.
    key: Option<OrderKey>,
    links: BTreeMap<LinkId, [LinkSideReports; 2]>,
    /// Ports that the fabric has no names for, as their monitors call them.
    learned: BTreeMap<PortId, (LinkId, LinkEnd)>,
    /// Hosts that are no switches, and what to say of them: to look for what was meant takes a while.
    strangers: BTreeMap<String, InvalidMessage>,
}

/// Strangers that are remembered.
const MOST_STRANGERS: usize = 10_000;

/// One end of a link.
#[derive(Clone, Debug, Default)]
struct LinkSideReports {
    port: Option<PortId>,
    heard: Option<PortReport>,
    order: Option<Order>,
}

/// Parts of a port's state that are needed.
#[derive(Clone, Copy, Debug)]
struct PortReport {
    version: (u64, u64),
    at: Moment,
    /// Loss of a corrupting port.
    loss: Option<f64>,
}

impl<'f> PortReports<'f> {
    pub fn new(fabric: &'f Fabric) -> Self {
        Self {
            names: SwitchNames::of(fabric),
            key: None,
            links: BTreeMap::new(),
            learned: BTreeMap::new(),
            strangers: BTreeMap::new(),
        }
    }

    /// Orders that are not signed with that key are nonsense.
    #[must_use]
    pub fn with_key(self, key: Option<OrderKey>) -> Self {
        Self { key, ..self }
    }

    /// Adds the tag of the key, if there is a key.
    pub fn sign(&self, order: Order) -> Order {
        match &self.key {
            Some(key) => order.signed(key),
            None => order,
        }
    }

    /// The messages that can be true, and why the others cannot: a message with an incarnation from the future would
    /// take precedence over all messages until then.
    pub fn possible(now: Moment, messages: &[Message]) -> (Cow<'_, [Message]>, Vec<InvalidMessage>) {
        // There are hundreds of thousands of them, and hardly ever one like that.
        if !messages.iter().any(|message| message.is_from_the_future(now)) {
            return (messages.into(), Vec::new());
        }
        let (future, possible): (Vec<&Message>, Vec<&Message>) =
            messages.iter().partition(|message| message.is_from_the_future(now));
        let nonsense = |message: &Message| {
            let key = message.key();
            InvalidMessage(format!(
                "{key}: has a life more than a day ahead of this clock: forged, or a clock is wrong"
            ))
        };
        (possible.into_iter().cloned().collect(), future.into_iter().map(nonsense).collect())
    }

    pub fn names(&self) -> &SwitchNames<'f> {
        &self.names
    }

    /// Returns the switch of this fabric that a host is, or an error.
    pub(crate) fn expect_switch(&mut self, host: &str) -> Result<SwitchId, InvalidMessage> {
        if let Some(nonsense) = self.strangers.get(host) {
            return Err(nonsense.clone());
        }
        self.names.switch(host).map_err(|unknown| {
            let nonsense = InvalidMessage(unknown.to_string());
            if self.strangers.len() < MOST_STRANGERS {
                self.strangers.insert(host.to_owned(), nonsense.clone());
            }
            nonsense
        })
    }

    /// The link of which something was said that had not been heard before. A port that is not corrupting and that the
    /// fabric does not have, one towards a server for example, is none of its concern.
    pub fn hear(&mut self, message: &Message) -> Result<Option<LinkId>, InvalidMessage> {
        let known = self.expect_switch(&message.id().host);
        match message {
            Message::Port(state) => match known.and_then(|_| self.hear_state(state)) {
                Err(_) if state.condition != Condition::Corrupting => Ok(None),
                heard => heard,
            },
            Message::Order(order) => known.and_then(|_| self.hear_order(order)),
        }
    }

    /// Reports first, since they may say to which link a port belongs that an order is about.
    pub fn hear_all(&mut self, messages: &[Message]) -> (Vec<LinkId>, Vec<InvalidMessage>) {
        let (mut links, mut nonsense) = (Vec::new(), Vec::new());
        let is_order = |message: &&Message| matches!(message, Message::Order(_));
        let (orders, states): (Vec<&Message>, Vec<&Message>) = messages.iter().partition(is_order);
        for message in states.into_iter().chain(orders) {
            match self.hear(message) {
                Ok(link) => links.extend(link),
                Err(what) => nonsense.push(what),
            }
        }
        links.sort_unstable();
        links.dedup();
        (links, nonsense)
    }

    /// Fault of a link, if any is known.
    pub fn trouble(&self, link: LinkId) -> Option<LinkFault> {
        let sides = self.links.get(&link)?;
        let orders = || sides.iter().filter_map(|side| side.order.as_ref());
        let disabled = orders().any(|order| order.kind == OrderKind::Disable);
        let enabled = orders().filter(|order| order.kind == OrderKind::Enable).map(|order| order.at).max();
        let heard = sides.iter().filter_map(|side| side.heard);
        let since = heard.filter(|heard| enabled.is_none_or(|enabled| heard.at > enabled));
        let loss = since.filter_map(|heard| heard.loss).reduce(f64::max);
        match (disabled, loss) {
            (true, loss) => Some(LinkFault::Disabled { loss }),
            (false, Some(loss)) => Some(LinkFault::Corrupting { loss, protected: false }),
            (false, None) => None,
        }
    }

    pub fn situation(&self) -> FaultyLinks {
        self.links.keys().filter_map(|link| Some((*link, self.trouble(*link)?))).collect()
    }

    /// The ports at the lower and the upper end of a link, as far as they are known.
    pub fn ports(&self, link: LinkId) -> [Option<PortId>; 2] {
        LinkEnd::BOTH.map(|end| {
            let learned = || self.links.get(&link).and_then(|sides| sides[end as usize].port.clone());
            self.names.fabric().port_at(link, end).or_else(learned)
        })
    }

    /// The latest order to the port at an end of a link.
    pub fn order(&self, link: LinkId, end: LinkEnd) -> Option<&Order> {
        self.links.get(&link)?[end as usize].order.as_ref()
    }

    /// The version for an order to that port. It is greater than that of any order heard so far, also if the clock of
    /// that order's sender is ahead of the one that chose this incarnation.
    pub(crate) fn next_version(&self, link: LinkId, end: LinkEnd, life: u64, number: u64) -> (u64, u64) {
        match self.order(link, end) {
            Some(latest) if latest.life >= life => (latest.life, number.max(latest.number.saturating_add(1))),
            _ => (life, number),
        }
    }

    /// Time at which its ports were last heard of, by their monitors' clocks.
    pub(crate) fn heard_at(&self, link: LinkId) -> Option<Moment> {
        self.links.get(&link)?.iter().filter_map(|side| side.heard).map(|heard| heard.at).max()
    }

    /// The latest order to every port that has been given one.
    pub fn orders(&self) -> impl Iterator<Item = &Order> {
        self.links.values().flatten().filter_map(|side| side.order.as_ref())
    }

    fn hear_state(&mut self, state: &PortState) -> Result<Option<LinkId>, InvalidMessage> {
        let loss = loss(state)?;
        let (link, end) = self.locate(state)?;
        let side = &mut self.links.entry(link).or_default()[end as usize];
        let version = (state.life, state.number);
        if side.heard.is_some_and(|heard| heard.version >= version) {
            return Ok(None);
        }
        side.heard = Some(PortReport { version, at: state.at, loss });
        Ok(Some(link))
    }

    fn hear_order(&mut self, order: &Order) -> Result<Option<LinkId>, InvalidMessage> {
        if self.key.as_ref().is_some_and(|key| !order.is_signed(key)) {
            return Err(InvalidMessage(format!("an order for {} that is not signed with our order key", order.id)));
        }
        let (link, end) = match self.learned.get(&order.id) {
            Some(place) => *place,
            None => self.names.port(&order.id).map_err(|unknown| InvalidMessage(unknown.to_string()))?,
        };
        let latest = &mut self.links.entry(link).or_default()[end as usize].order;
        if latest.as_ref().is_some_and(|latest| (latest.life, latest.number) >= (order.life, order.number)) {
            return Ok(None);
        }
        *latest = Some(order.clone());
        Ok(Some(link))
    }

    /// The link of a port: as the fabric has it, or else, where it does not name ports, the only one between its switch
    /// and that of its peer.
    fn locate(&mut self, state: &PortState) -> Result<(LinkId, LinkEnd), InvalidMessage> {
        let fabric = self.names.fabric();
        let unknown = match self.names.port(&state.id) {
            Ok((link, end)) => {
                let expected = fabric.port_at(link, other(end));
                return match (&state.peer, expected) {
                    (Some(peer), Some(expected)) if *peer != expected => Err(InvalidMessage(format!(
                        "{} says that {peer} is at the other end: the topology has {expected} there",
                        state.id
                    ))),
                    _ => Ok((link, end)),
                };
            }
            Err(unknown) => InvalidMessage(unknown.to_string()),
        };
        let Some(peer) = &state.peer else { return Err(unknown) };
        let (Ok(here), Ok(there)) = (self.expect_switch(&state.id.host), self.expect_switch(&peer.host)) else {
            return Err(unknown);
        };
        let between: Vec<LinkId> = self.names.between(here, there).collect();
        let link = match between[..] {
            [link] if fabric.link(link).ports.is_none() => link,
            _ => return Err(unknown),
        };
        let end = if fabric.link(link).lower == here { LinkEnd::Lower } else { LinkEnd::Upper };
        self.learn(link, end, &state.id);
        self.learn(link, other(end), peer);
        Ok((link, end))
    }

    fn learn(&mut self, link: LinkId, end: LinkEnd, port: &PortId) {
        let known = &mut self.links.entry(link).or_default()[end as usize].port;
        if known.as_ref() == Some(port) {
            return;
        }
        if let Some(former) = known.replace(port.clone()) {
            self.learned.remove(&former);
        }
        self.learned.insert(port.clone(), (link, end));
    }
}

fn other(end: LinkEnd) -> LinkEnd {
    match end {
        LinkEnd::Lower => LinkEnd::Upper,
        LinkEnd::Upper => LinkEnd::Lower,
    }
}

/// The loss that a port reports if it is corrupting.
fn loss(state: &PortState) -> Result<Option<f64>, InvalidMessage> {
    let loss = state.evidence.loss;
    match state.condition {
        Condition::Corrupting if loss > 0.0 && loss <= 1.0 => Ok(Some(loss)),
        Condition::Corrupting => Err(InvalidMessage(format!(
            "{} is corrupting with a loss of {loss}: expected a share of frames above 0 and at most 1",
            state.id
        ))),
        Condition::Healthy | Condition::Unknown => Ok(None),
    }
}
