//! Counters of the kernel: of a namespace, and of a connection.

use std::fs;
use std::io;

/// Counters of a namespace since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostCounters {
    pub timeouts: u64,
    pub probes: u64,
}

impl HostCounters {
    /// Reads those of the calling thread's namespace.
    pub(crate) fn read() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/thread-self/net/netstat")?;
        Ok(Self { timeouts: counter(&text, "TCPTimeouts"), probes: counter(&text, "TCPLossProbes") })
    }
}

/// Names are on one line, their values on the next.
fn counter(text: &str, name: &str) -> u64 {
    let lines: Vec<&str> = text.lines().collect();
    let value = lines.chunks_exact(2).find_map(|pair| {
        let place = pair[0].split_whitespace().position(|word| word == name)?;
        pair[1].split_whitespace().nth(place)?.parse().ok()
    });
    value.unwrap_or(0)
}

/// Values of `struct tcp_info` that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketCounters {
    /// Nanoseconds that the receiver's window held the sender back.
    pub rwnd_limited: u64,
    /// Segments that the receiver reported as received twice.
    pub duplicates: u64,
    /// Sent and not acknowledged, or not sent yet.
    pub is_quiet: bool,
}

impl SocketCounters {
    pub(crate) fn new(info: &[u8; 256]) -> Self {
        let word = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
        let double = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let (unacked, unsent) = (word(24), word(144));
        Self {
            rwnd_limited: double(176) * 1_000,
            duplicates: u64::from(word(216)),
            is_quiet: unacked == 0 && unsent == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_name() {
        let text = "TcpExt: A TCPTimeouts B\nTcpExt: 1 20 3\nIpExt: C D\nIpExt: 4 5\n";
        assert_eq!((counter(text, "TCPTimeouts"), counter(text, "D"), counter(text, "E")), (20, 5, 0));
    }
}
