//! RoCEv2, reliable connection.
