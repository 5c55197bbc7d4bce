//! Cost of a meter.

#![expect(unsafe_code, reason = "talks to the kernel")]

use std::time::Duration;

/// Processor time that this process has used, in itself and in the kernel on its behalf.
pub fn cpu_time() -> Duration {
    // SAFETY: all zeros is a valid rusage, and the kernel writes no more than its size.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::getrusage(libc::RUSAGE_SELF, &mut usage) != 0 {
            return Duration::ZERO;
        }
        usage
    };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|time| Duration::new(time.tv_sec.unsigned_abs(), time.tv_usec.unsigned_abs() as u32 * 1_000))
        .sum()
}
