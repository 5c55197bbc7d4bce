//! When a port is corrupting, and when it is healthy again.
