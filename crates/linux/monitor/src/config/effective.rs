//! The effective configuration as a file, with every value: `--check` prints it.

use std::fmt;
use std::time::Duration;

use super::{MonitorConfig, SourceKind};
use crate::act::PortAction;

impl fmt::Display for MonitorConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = &self.limits;
        writeln!(f, "host = {:?}", self.host)?;
        writeln!(f, "source = {:?}", self.sources.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        writeln!(f, "sysfs = {:?}", self.sysfs)?;
        writeln!(f, "interval = {:?}", time(self.interval))?;
        match self.ports.is_empty() {
            true => writeln!(f, "# ports: all that are physical")?,
            false => writeln!(f, "ports = {:?}", self.ports)?,
        }
        writeln!(f, "exclude = {:?}", self.exclude.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        writeln!(f, "threshold = \"{}\"", limits.threshold)?;
        writeln!(f, "window-frames = {}", limits.frames)?;
        writeln!(f, "window = {:?}", time(limits.time))?;
        writeln!(f, "raise-after = {}\nclear-after = {}", limits.raise_after, limits.clear_after)?;
        writeln!(f, "least-bad = {}", limits.least_bad)?;
        writeln!(f, "quiet = {:?}", limits.quiet.map_or("never".to_owned(), time))?;
        match limits.flaps {
            Some(flaps) => writeln!(f, "flaps = {}\nflaps-within = {:?}", flaps.count, time(flaps.within))?,
            None => writeln!(f, "flaps = \"never\"")?,
        }
        let damping = &limits.damping;
        writeln!(f, "penalty = {:?}\nhalf-life = {:?}", damping.penalty, time(damping.half_life))?;
        writeln!(f, "suppress = {:?}\nreuse = {:?}", damping.suppress, damping.reuse)?;
        writeln!(f, "gone-after = {}\nkeep = {:?}", limits.gone_after, time(limits.keep))?;
        writeln!(f, "bus = {:?}", without_password(&self.bus))?;
        match self.action {
            PortAction::None => writeln!(f, "action = \"none\"  # observe only")?,
            PortAction::Protect => writeln!(f, "action = \"protect\"")?,
        }
        writeln!(f, "time-bounds = {}\nobey = {}\nmost-off = {}", self.time_bounds, self.obey, self.most_off)?;
        for (key, path) in
            [("order-key", self.order_key.as_ref().map(|(path, _)| path)), ("bus-ca", self.bus_ca.as_ref())]
        {
            if let Some(path) = path {
                writeln!(f, "{key} = {path:?}")?;
            }
        }
        writeln!(f, "unprotect-on-exit = {}", self.unprotect_on_exit)?;
        if let Some(address) = self.metrics {
            writeln!(f, "metrics = \"{address}\"")?;
        }
        for (key, path) in [("journal", &self.journal), ("record", &self.record), ("state", &Some(self.state.clone()))]
        {
            if let Some(path) = path {
                writeln!(f, "{key} = {path:?}")?;
            }
        }
        for (name, rule) in &self.rules {
            writeln!(f, "\n[[port]]\nname = {name:?}")?;
            if let Some(peer) = &rule.peer {
                writeln!(f, "peer = \"{peer}\"")?;
            }
            if let Some(link) = &rule.link {
                writeln!(f, "link = {link:?}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.pad(name),
            Self::Samples(path) => path.display().fmt(f),
        }
    }
}

/// Time in the form in which it is read: in the largest unit that needs no fraction.
fn time(time: Duration) -> String {
    match (time.as_millis(), time.as_secs()) {
        (ms, _) if ms % 1_000 != 0 => format!("{ms}ms"),
        (_, seconds) if seconds % 60 != 0 => format!("{seconds}s"),
        (_, seconds) if seconds % 3_600 != 0 => format!("{}min", seconds / 60),
        (_, seconds) => format!("{}h", seconds / 3_600),
    }
}

/// Address of a bus without its password: printed text ends up in tickets.
pub(crate) fn without_password(bus: &str) -> String {
    match (bus.split_once("://"), bus.rfind('@')) {
        (Some((scheme, _)), Some(at)) => format!("{scheme}://***{}", &bus[at..]),
        _ => bus.to_owned(),
    }
}
