//! Waiting for descriptors, and giving way to others.

#![expect(unsafe_code, reason = "talks to the kernel")]

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    Nothing,
    Ready,
    Failed,
}

/// Waits until one of the descriptors is readable (or writable, where asked for), or the time has passed.
/// A signal ends it early.
pub fn wait<const N: usize>(fds: &[(RawFd, bool); N], most: Duration) -> io::Result<[Readiness; N]> {
    let mut polled = fds.map(|(fd, writable)| libc::pollfd {
        fd,
        events: libc::POLLIN | if writable { libc::POLLOUT } else { 0 },
        revents: 0,
    });
    let timeout = libc::timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) };
    // SAFETY: `polled` has `N` entries, which the kernel reads and writes during the call; the signal mask may
    // be null.
    let ready = unsafe { libc::ppoll(polled.as_mut_ptr(), N as libc::nfds_t, &timeout, std::ptr::null()) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok([Readiness::Nothing; N]) } else { Err(error) };
    }
    Ok(polled.map(|fd| match fd.revents {
        0 => Readiness::Nothing,
        events if events & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0 => Readiness::Failed,
        _ => Readiness::Ready,
    }))
}

/// Keeps the calling thread on one processor.
pub fn pin(cpu: usize) -> io::Result<()> {
    // SAFETY: all zeros is an empty set; CPU_SET checks its bounds, and the kernel only reads the set.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu.min(libc::CPU_SETSIZE as usize - 1), &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets whoever else wants this processor have it.
pub fn give_way() {
    std::thread::yield_now();
}
