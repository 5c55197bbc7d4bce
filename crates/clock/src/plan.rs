//! A parent and a backup parent for every node, such that any single failure is survived (§3.4.2.1).
