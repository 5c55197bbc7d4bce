//! Published messages: the state of a port, and orders of the planner for all ports.
//!
//! They are written as JSON, one object each. A message is the whole state of its subject, so only the latest one of a key
//! has to be kept, and one that is received twice does no harm.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use units::Moment;

use crate::key::OrderKey;

/// A port of a host, written `host/port`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PortId {
    pub host: String,
    pub port: String,
}

impl PortId {
    pub fn new(host: impl Into<String>, port: impl Into<String>) -> Self {
        Self { host: host.into(), port: port.into() }
    }
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.port)
    }
}

impl From<PortId> for String {
    fn from(id: PortId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for PortId {
    type Error = NotAPort;

    fn try_from(text: String) -> Result<Self, NotAPort> {
        text.parse()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAPort(String);

impl fmt::Display for NotAPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a port: expected HOST/PORT, such as leaf3/eth1", self.0)
    }
}

impl std::error::Error for NotAPort {}

impl FromStr for PortId {
    type Err = NotAPort;

    /// Split at the last slash: hosts may have some in their names, interfaces have none.
    fn from_str(text: &str) -> Result<Self, NotAPort> {
        match text.rsplit_once('/') {
            Some((host, port)) if !host.is_empty() && !port.is_empty() => Ok(Self::new(host, port)),
            _ => Err(NotAPort(text.to_owned())),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    Healthy,
    Corrupting,
    /// The condition is unknown: too little seen since the monitor started, port down, or counters gone.
    Unknown,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Healthy => "healthy",
            Self::Corrupting => "corrupting",
            Self::Unknown => "unknown",
        })
    }
}

/// Counts that a condition rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Frames received in the window, good and bad, and the bad among them.
    pub frames: u64,
    pub bad: u64,
    /// Bad by all; the 95 % interval of a Poisson count around it.
    pub loss: f64,
    pub low: f64,
    pub high: f64,
    /// Length of the window.
    pub seconds: f64,
}

/// The receiving side of a port, as its host's monitor sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortState {
    pub id: PortId,
    /// The port at the other end of the cable, which sends what is received here, if known.
    pub peer: Option<PortId>,
    /// Time by the wall clock, for people.
    pub at: Moment,
    /// Bounds of the time at which this condition was found: true time was between these, in nanoseconds since 1970. Only
    /// monitors that know how wrong their clock is and were told to say so set them; readers of before these fields refuse
    /// messages that have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_ns: Option<u64>,
    /// Clock of that time, if not the time of day: the root of a set of clocks. Times of different roots cannot be
    /// compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_of: Option<String>,
    /// Incarnation of the monitor that sends it, and its messages counted: together they distinguish a message from its
    /// repetition, and show which of two is newer.
    pub life: u64,
    pub number: u64,
    pub condition: Condition,
    /// Flapped too often: stays corrupting until a person says otherwise.
    pub sticky: bool,
    pub evidence: Evidence,
    /// One line for people.
    pub why: String,
}

impl PortState {
    /// Times between which its condition was found, if the sender knew how wrong its clock was. Ends that are the wrong way
    /// round say nothing.
    pub fn found_between(&self) -> Option<(u64, u64)> {
        self.earliest_ns.zip(self.latest_ns).filter(|(earliest, latest)| earliest <= latest)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OrderKind {
    /// Switch the port off, for repair.
    Disable,
    /// Back to service.
    Enable,
}

/// Order of a planner for a port. Only a monitor that is configured to obey does so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    pub id: PortId,
    pub at: Moment,
    pub life: u64,
    pub number: u64,
    pub kind: OrderKind,
    pub why: String,
    /// Shows that its giver has the key, where there is one: 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

impl Order {
    /// Adds the tag of a key.
    #[must_use]
    pub fn signed(self, key: &OrderKey) -> Self {
        let tag = Some(self.tag(key));
        Self { tag, ..self }
    }

    /// True if someone with the key gave the order, and it is as it was given.
    pub fn is_signed(&self, key: &OrderKey) -> bool {
        self.tag.as_deref() == Some(&*self.tag(key))
    }

    /// Tag over all fields.
    fn tag(&self, key: &OrderKey) -> String {
        let Self { id, at, life, number, kind, why, tag: _ } = self;
        let kind: &[u8] = match kind {
            OrderKind::Disable => b"disable",
            OrderKind::Enable => b"enable",
        };
        let [at, life, number] = [at.as_ms(), *life, *number].map(u64::to_le_bytes);
        let parts = [id.host.as_bytes(), id.port.as_bytes(), &at, &life, &number, kind, why.as_bytes()];
        format!("{:016x}", key.tag("order", &parts))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Message {
    Port(PortState),
    Order(Order),
}

impl Message {
    /// Key under which the latest message of the port is kept.
    pub fn key(&self) -> String {
        match self {
            Self::Port(state) => format!("port:{}", state.id),
            Self::Order(order) => format!("order:{}", order.id),
        }
    }

    pub fn id(&self) -> &PortId {
        match self {
            Self::Port(state) => &state.id,
            Self::Order(order) => &order.id,
        }
    }

    /// The latest incarnation that can be believed: incarnations begin with the time of day in milliseconds, and clocks
    /// may differ by a day.
    pub fn latest_life(now: Moment) -> u64 {
        now.as_ms().saturating_add(86_400_000)
    }

    /// True if its incarnation is impossible: it would take precedence over all messages until then.
    pub fn is_from_the_future(&self, now: Moment) -> bool {
        self.version().0 > Self::latest_life(now)
    }

    /// Greater means newer, between messages of one key.
    pub fn version(&self) -> (u64, u64) {
        match self {
            Self::Port(state) => (state.life, state.number),
            Self::Order(order) => (order.life, order.number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_without_bounds_are_as_they_always_were_and_old_ones_are_read() {
        let old = r#"{"port":{"id":"leaf1/eth1","peer":null,"at":5,"life":7,"number":3,"condition":"corrupting","sticky":false,
            "evidence":{"frames":1,"bad":0,"loss":0.0,"low":0.0,"high":0.0,"seconds":1.0},"why":"x"}}"#;
        let Message::Port(state) = serde_json::from_str(old).unwrap() else { panic!("a port") };
        assert_eq!(state.found_between(), None);
        let text = serde_json::to_string(&Message::Port(state.clone())).unwrap();
        assert!(!text.contains("_ns") && !text.contains("time_of"), "{text}");
        let stated = PortState { earliest_ns: Some(10), latest_ns: Some(12), ..state.clone() };
        let text = serde_json::to_string(&stated).unwrap();
        assert!(text.contains(r#""earliest_ns":10,"latest_ns":12"#), "{text}");
        assert_eq!(serde_json::from_str::<PortState>(&text).unwrap().found_between(), Some((10, 12)));
        assert_eq!(PortState { latest_ns: Some(9), ..stated }.found_between(), None);
    }

    #[test]
    fn a_signed_order_can_be_neither_changed_nor_made_without_the_key() {
        let key = OrderKey::new([7; 16]);
        let (id, at) = (PortId::new("leaf1", "eth1"), Moment::from_ms(5));
        let bare = Order { id, at, life: 7, number: 3, kind: OrderKind::Disable, why: "repair".into(), tag: None };
        let order = bare.clone().signed(&key);
        assert!(order.is_signed(&key) && !bare.is_signed(&key) && !order.is_signed(&OrderKey::new([8; 16])));
        let text = serde_json::to_string(&order).unwrap();
        assert_eq!(serde_json::from_str::<Order>(&text).unwrap(), order);
        assert!(!serde_json::to_string(&bare).unwrap().contains("tag"), "as it always was");
        let changed = |change: fn(&mut Order)| {
            let mut order = order.clone();
            change(&mut order);
            order.is_signed(&key)
        };
        assert!(!changed(|order| order.id.port = "eth2".into()));
        assert!(!changed(|order| (order.id.host, order.id.port) = ("leaf1e".into(), "th1".into())));
        assert!(!changed(|order| order.life += 1));
        assert!(!changed(|order| order.number += 1));
        assert!(!changed(|order| order.at = Moment::from_ms(6)));
        assert!(!changed(|order| order.kind = OrderKind::Enable));
        assert!(!changed(|order| order.why.push('!')));
    }
}
