//! Error of a request to the system.

use std::fmt;

use crate::net;

/// One line that says what was attempted, why it failed, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemError(pub String);

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SystemError {}

impl From<net::NetError> for SystemError {
    fn from(error: net::NetError) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => no_permission(&error),
            _ => Self(error.to_string()),
        }
    }
}

/// Error for a missing permission, in the same words everywhere.
pub fn no_permission(error: &dyn fmt::Display) -> SystemError {
    SystemError(format!("{error}; this needs CAP_NET_ADMIN and CAP_NET_RAW: run it as root, or with sudo"))
}
