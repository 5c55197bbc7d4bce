//! Waiting for descriptors, and giving way to others.

#![expect(unsafe_code, reason = "talks to the kernel")]

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use units::{Span, Time};

use crate::clock::Clock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    Nothing,
    Ready,
    Failed,
}

/// Waits until one of the descriptors is readable (or writable, where asked for), or the time has passed.
/// A signal ends it early.
pub fn wait<const N: usize>(fds: &[(RawFd, bool); N], most: Duration) -> io::Result<[Readiness; N]> {
    let mut polled = fds.map(interest);
    wait_for(&mut polled, most)?;
    Ok(polled.map(readiness))
}

/// Waits for any number of descriptors.
pub fn wait_for_any(fds: &[(RawFd, bool)], most: Duration) -> io::Result<Vec<Readiness>> {
    let mut polled: Vec<libc::pollfd> = fds.iter().copied().map(interest).collect();
    wait_for(&mut polled, most)?;
    Ok(polled.into_iter().map(readiness).collect())
}

fn interest((fd, writable): (RawFd, bool)) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN | if writable { libc::POLLOUT } else { 0 }, revents: 0 }
}

fn readiness(polled: libc::pollfd) -> Readiness {
    match polled.revents {
        0 => Readiness::Nothing,
        events if events & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0 => Readiness::Failed,
        _ => Readiness::Ready,
    }
}

fn wait_for(polled: &mut [libc::pollfd], most: Duration) -> io::Result<()> {
    let timeout = libc::timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) };
    // SAFETY: the kernel reads and writes the entries of `polled`, no more than it has, during the call; the signal
    // mask may be null.
    let ready = unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, &timeout, std::ptr::null()) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        polled.iter_mut().for_each(|polled| polled.revents = 0);
        return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
    }
    Ok(())
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

/// Lets threads of ordinary priority go before the calling one, as far as `nice` says; for this nobody needs to be root.
pub fn lower_priority(nice: u8) -> io::Result<()> {
    // SAFETY: no pointer is passed; 0 is the calling thread.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice.into()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reading from a descriptor that has nothing, or writing to one that has no room, fails instead of waiting.
pub fn set_nonblocking(fd: RawFd) -> io::Result<()> {
    // SAFETY: these commands take and give numbers.
    let result = unsafe {
        match libc::fcntl(fd, libc::F_GETFL) {
            flags @ 0.. => libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK),
            failed => failed,
        }
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Yields the processor to other threads that want it.
pub fn give_way() {
    std::thread::yield_now();
}

/// A yield that takes longer than this has cost somebody else's time slice.
const DEAR: Span = Span::from_ms(1);
/// Dear yields in a row after which others compute on this processor: TCP's own threads are not busy for that long each
/// time.
const DEAR_IN_A_ROW: u32 = 4;
/// Time for which the loop then does without yielding.
const ABSTAINS: Span = Span::from_ms(50);

/// Cost of yielding for a loop: on a busy host the processor comes back only after a time slice of everyone else's.
#[derive(Clone, Copy, Debug, Default)]
pub struct YieldCost {
    /// Giving way costs a time slice, as far as is known, until then.
    dear_until: Time,
    /// Dear yields since the last cheap one.
    dear_yields: u32,
}

impl YieldCost {
    /// True if yielding is worth it now; a loop that does not yield should sleep as soon as there is nothing to do.
    pub fn is_cheap(&self, now: Time) -> bool {
        self.dear_until <= now
    }

    /// Lets others have the processor, and remembers if they kept it for long.
    pub fn give_way(&mut self, clock: &Clock) {
        let before = clock.now();
        give_way();
        let after = clock.now();
        self.dear_yields = if after.since(before) > DEAR { self.dear_yields + 1 } else { 0 };
        if self.dear_yields == DEAR_IN_A_ROW {
            (self.dear_until, self.dear_yields) = (after + ABSTAINS, 0);
        }
    }
}
