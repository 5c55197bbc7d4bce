//! Configuration of a monitor, from the command line or a file, checked once.
//!
//! ```toml
//! bus = "redis://10.0.0.5"
//! action = "protect"
//! exclude = ["mgmt*"]
//!
//! [[port]]
//! name = "eth1"
//! peer = "leaf3/eth7"
//! ```
//!
//! Invariant: an entry that is not understood is an error. A configuration with a slip in it never watches less than was
//! asked for without a word.

mod effective;
mod options;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use units::{ParseError, nearest};

use crate::act::{ActionRules, PortAction, PortRule};
use crate::detect::{Limits, NamePattern};
use crate::source::{NAMED, Selection};
use bus::key::OrderKey;

pub use options::{MonitorOptions, PortOptions, TextOrNumber};

/// The bus of a monitor that is on its own.
pub(crate) const LOCAL: &str = "local";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// One of `source::NAMED`.
    Named(&'static str),
    /// A file, FIFO or, as `-`, standard input with samples in it.
    Samples(PathBuf),
}

impl FromStr for SourceKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || NAMED.iter().map(|source| source.name);
        if let Some(name) = names().find(|name| *name == text) {
            return Ok(Self::Named(name));
        }
        match text {
            "-" => Ok(Self::Samples(text.into())),
            // A name alone is more likely a slip than a file.
            file if file.contains(['/', '.']) => Ok(Self::Samples(file.into())),
            _ => Err(match nearest(text, names()) {
                Some(meant) => format!("'{text}': did you mean '{meant}'? a file of samples is written ./{text}"),
                None => format!("'{text}': expected {} or a file of samples such as ./{text}", source_names()),
            }),
        }
    }
}

/// `kernel, sysfs, links`.
fn source_names() -> String {
    NAMED.iter().map(|source| source.name).collect::<Vec<_>>().join(", ")
}

impl FromStr for PortAction {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "none" => Ok(Self::None),
            "protect" => Ok(Self::Protect),
            _ => Err(ParseError::new("none (observe only) or protect")),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct MonitorConfig {
    pub host: String,
    pub sources: Vec<SourceKind>,
    pub sysfs: PathBuf,
    pub interval: Duration,
    /// Ports to watch; those that are physical if there are none.
    pub ports: Vec<String>,
    pub exclude: Vec<NamePattern>,
    /// Rules for single ports. These ports are watched, of any kind.
    pub rules: BTreeMap<String, PortRule>,
    pub limits: Limits,
    pub bus: String,
    pub action: PortAction,
    pub obey: bool,
    /// Messages say between which times they were true first.
    pub time_bounds: bool,
    /// Ports that may be off by order at a time.
    pub most_off: u32,
    /// Path of the key that orders must be signed with, and the key.
    pub order_key: Option<(PathBuf, OrderKey)>,
    /// The certificate authority of a bus with TLS.
    pub bus_ca: Option<PathBuf>,
    pub unprotect_on_exit: bool,
    pub metrics: Option<SocketAddr>,
    pub journal: Option<PathBuf>,
    /// Readings are kept here, to be replayed.
    pub record: Option<PathBuf>,
    /// File in which the monitor remembers what it did.
    pub state: PathBuf,
}

impl MonitorConfig {
    /// Configuration with every default; `run_directory` is this host's run directory.
    pub fn new(host: impl Into<String>, run_directory: &std::path::Path) -> Self {
        Self {
            host: host.into(),
            sources: vec![SourceKind::Named("kernel")],
            sysfs: "/sys/class/net".into(),
            interval: Duration::from_secs(1),
            ports: Vec::new(),
            exclude: Vec::new(),
            rules: BTreeMap::new(),
            limits: Limits::default(),
            bus: LOCAL.to_owned(),
            action: PortAction::None,
            obey: false,
            time_bounds: false,
            most_off: 1,
            order_key: None,
            bus_ca: None,
            unprotect_on_exit: false,
            metrics: None,
            journal: None,
            record: None,
            state: run_directory.join("monitor.state"),
        }
    }

    /// Interfaces that sources read. Two selections if all physical ports are watched and some besides.
    pub(crate) fn selections(&self) -> Vec<Selection> {
        let excluded = || self.exclude.iter().map(ToString::to_string);
        let configured = || self.rules.keys().cloned();
        if !self.ports.is_empty() {
            return vec![self.wanted()];
        }
        let physical = Selection::physical().except(excluded().chain(configured()));
        if self.rules.is_empty() {
            return vec![physical];
        }
        vec![physical, Selection::named(configured()).except(excluded())]
    }

    /// Ports that are watched, of those that sources have.
    pub fn wanted(&self) -> Selection {
        let configured = self.rules.keys().filter(|name| !self.ports.is_empty() && !self.ports.contains(name));
        Selection::named(self.ports.iter().chain(configured)).except(self.exclude.iter().map(ToString::to_string))
    }

    /// Ports that were asked for by name.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        let plain = self.ports.iter().filter(|name| !name.contains('*'));
        plain.chain(self.rules.keys()).map(String::as_str)
    }

    /// True if a source reads samples that were written down before.
    pub fn replays(&self) -> bool {
        self.sources.iter().any(|source| matches!(source, SourceKind::Samples(_)))
    }

    pub fn rules(&self) -> ActionRules {
        ActionRules {
            host: self.host.clone(),
            action: self.action,
            obey: self.obey,
            most_off: self.most_off,
            order_key: self.order_key.as_ref().map(|(_, key)| key.clone()),
            sender_acts: self.bus != LOCAL,
            ports: self.rules.clone(),
            watched: self.ports.clone(),
            excluded: self.exclude.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
