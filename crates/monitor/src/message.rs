//! What is told to others: the state of a port, and orders of whoever plans for all of them.
//!
//! As JSON, one object each. A message is the whole state of what it is about, so the latest one of a key is all
//! that has to be kept, and one that is received twice does no harm.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use units::Moment;

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
    /// Not known: too little seen since the monitor started, port down, or counters gone.
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

/// What a verdict rests on.
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
    /// How long the window was.
    pub seconds: f64,
}

/// The receiving side of a port, as its host's monitor sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortState {
    pub id: PortId,
    /// The port at the other end of the cable, which sends what is received here, if known.
    pub peer: Option<PortId>,
    /// By the wall clock, for people.
    pub at: Moment,
    /// Life of the monitor that says so, and its messages counted: together they tell a message from its repetition,
    /// and which of two is newer.
    pub life: u64,
    pub number: u64,
    pub condition: Condition,
    /// Flapped too often: stays corrupting until a person says otherwise.
    pub sticky: bool,
    pub evidence: Evidence,
    /// One line for people.
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OrderKind {
    /// Switch the port off, for repair.
    Disable,
    /// Back to service.
    Enable,
}

/// What a planner wants of a port. Obeyed only by a monitor that was told to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    pub id: PortId,
    pub at: Moment,
    pub life: u64,
    pub number: u64,
    pub kind: OrderKind,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Message {
    Port(PortState),
    Order(Order),
}

impl Message {
    /// Under what the latest one is kept.
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

    /// Greater means newer, between messages of one key.
    pub fn version(&self) -> (u64, u64) {
        match self {
            Self::Port(state) => (state.life, state.number),
            Self::Order(order) => (order.life, order.number),
        }
    }
}
