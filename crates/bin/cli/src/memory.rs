//! Memory of the program, as the kernel sees it.

use std::fs;

/// Lets the kernel forget how large the program has been; how large it is, in bytes.
#[cfg(feature = "research")]
pub(crate) fn reset_peak() -> u64 {
    // If the kernel cannot reset it, the peak is that since the start.
    let _ = fs::write("/proc/self/clear_refs", "5");
    status("VmRSS:")
}

/// Peak of the program's memory since then, or since its start, in bytes.
pub(crate) fn peak() -> u64 {
    status("VmHWM:")
}

/// 0 where there is no such kernel.
fn status(key: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1_024
}
