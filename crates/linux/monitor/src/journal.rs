//! Record for those who ask afterwards: a line of JSON for each thing done, refused or found, with its evidence.
//!
//! Every action has an entry, and so has every action that was left undone. An outcome that stays the same is entered
//! once.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use units::Moment;

use bus::message::{Evidence, PortId};

/// Subject of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ActionKind {
    /// The state of a port changed, or something about it is worth knowing.
    State,
    Protect,
    Unprotect,
    /// A port switched off, or on again, because a planner ordered it.
    Disable,
    Enable,
    /// A person cleared a port.
    Clear,
    /// The monitor itself: a source, the bus, its files.
    Health,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ActionOutcome {
    /// Found, not done.
    Seen,
    Done,
    /// Would have been done if this were not observe-only.
    Would,
    /// The action was not done, because somebody else did it already, or undid it on purpose.
    Left,
    /// The action was not done, because it must not be.
    Refused,
    /// Tried, and will be tried again.
    Failed,
}

macro_rules! named {
    ($type:ty, $($value:ident => $name:literal,)*) => {
        impl $type {
            pub const ALL: &[Self] = &[$(Self::$value),*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)*
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

named!(ActionKind, State => "state", Protect => "protect", Unprotect => "unprotect", Disable => "disable",
    Enable => "enable", Clear => "clear", Health => "health",);
named!(ActionOutcome, Seen => "seen", Done => "done", Would => "would", Left => "left", Refused => "refused",
    Failed => "failed",);

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JournalEntry {
    /// Time by the wall clock.
    pub at: Moment,
    pub deed: ActionKind,
    pub outcome: ActionOutcome,
    /// The port of this host that it is done to, or that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<PortId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The port whose counters are the reason, and what they said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<PortId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// One line for people.
    pub why: String,
    /// True if the line goes to the journal only, and not to a terminal.
    #[serde(skip)]
    pub is_quiet: bool,
}

impl JournalEntry {
    pub fn new(at: Moment, deed: ActionKind, outcome: ActionOutcome, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { at, deed, outcome, port: None, link: None, about: None, evidence: None, why, is_quiet: false }
    }

    #[must_use]
    pub fn quiet(self) -> Self {
        Self { is_quiet: true, ..self }
    }

    #[must_use]
    pub fn on(self, port: PortId) -> Self {
        Self { port: Some(port), ..self }
    }
}

impl fmt::Display for JournalEntry {
    /// One line for a log, without the time, which the reader's log adds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.deed, self.outcome) {
            (ActionKind::State | ActionKind::Health, _) => {}
            (deed, ActionOutcome::Would) => write!(f, "would {deed} ")?,
            (deed, ActionOutcome::Done) => write!(f, "{deed} ")?,
            (deed, outcome) => write!(f, "{deed} {outcome}: ")?,
        }
        if let Some(port) = &self.port {
            f.write_str(&port.port)?;
            if let Some(link) = &self.link {
                write!(f, " ({link})")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.why)
    }
}

/// Destination of entries.
pub struct Journal(Box<dyn Write + Send>);

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Journal")
    }
}

impl Journal {
    pub fn to(sink: impl Write + Send + 'static) -> Self {
        Self(Box::new(sink))
    }

    pub fn nowhere() -> Self {
        Self::to(io::sink())
    }

    /// Appends to a file, which may have been begun by another process.
    pub fn append(path: &Path) -> io::Result<Self> {
        File::options().create(true).append(true).open(path).map(Self::to)
    }

    /// Writes the line in one call, so that lines of two writers do not mix.
    pub fn write(&mut self, entry: &JournalEntry) -> io::Result<()> {
        let mut line = serde_json::to_string(entry)?;
        line.push('\n');
        self.0.write_all(line.as_bytes())?;
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_line_for_machines_and_one_for_people() {
        let mut entry = JournalEntry::new(
            Moment::from_ms(7),
            ActionKind::Protect,
            ActionOutcome::Would,
            "leaf3/eth7 is corrupting",
        )
        .on(PortId::new("leaf1", "eth1"));
        entry.link = Some("hit0".to_owned());
        assert_eq!(entry.to_string(), "would protect eth1 (hit0): leaf3/eth7 is corrupting");
        assert_eq!(
            serde_json::to_string(&entry).unwrap(),
            r#"{"at":7,"deed":"protect","outcome":"would","port":"leaf1/eth1","link":"hit0","why":"leaf3/eth7 is corrupting"}"#
        );
    }

    #[test]
    fn names_in_metrics_and_in_json_are_the_same() {
        for deed in ActionKind::ALL {
            assert_eq!(serde_json::to_string(deed).unwrap(), format!("\"{deed}\""));
        }
        for outcome in ActionOutcome::ALL {
            assert_eq!(serde_json::to_string(outcome).unwrap(), format!("\"{outcome}\""));
        }
    }
}
