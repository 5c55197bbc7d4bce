//! The end of a daemon, and the socket for its metrics.

use std::fmt;
use std::net::{SocketAddr, TcpListener};

use linux::SystemError;

/// Reason why a daemon ended, or did not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DaemonEnd {
    /// The arguments make no sense here, and trying again does not help.
    Arguments(String),
    Trouble(String),
}

impl DaemonEnd {
    /// Trouble with something, with the error.
    pub fn in_words(what: impl fmt::Display, error: impl fmt::Display) -> Self {
        Self::Trouble(format!("{what}: {error}"))
    }
}

impl From<SystemError> for DaemonEnd {
    fn from(trouble: SystemError) -> Self {
        Self::Trouble(trouble.0)
    }
}

impl fmt::Display for DaemonEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments(what) | Self::Trouble(what) => f.write_str(what),
        }
    }
}

/// Opens the socket for Prometheus, if there is an address.
pub fn bind_metrics(address: Option<SocketAddr>) -> Result<Option<TcpListener>, DaemonEnd> {
    let Some(address) = address else { return Ok(None) };
    linux::metrics::bind(address).map(Some).map_err(|error| DaemonEnd::in_words(format!("metrics on {address}"), error))
}
