//! What a node does when a message comes, and when none comes (§3.4.1, §3.4.3).
