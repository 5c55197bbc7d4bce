//! Why something cannot be had of Linux.

use std::fmt;

use crate::net;

/// Reason why a link cannot be had, in one line with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkError(pub String);

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LinkError {}

impl From<net::NetError> for LinkError {
    fn from(error: net::NetError) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => no_permission(&error),
            _ => Self(error.to_string()),
        }
    }
}

/// The same line wherever permission is missing.
pub fn no_permission(error: &dyn fmt::Display) -> LinkError {
    LinkError(format!("{error}; this needs CAP_NET_ADMIN and CAP_NET_RAW: run it as root, or with sudo"))
}
