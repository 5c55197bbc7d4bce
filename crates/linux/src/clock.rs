//! The time, as protocols know it: since the start of the program's run. And chance.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use units::Time;

#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the edge of the program: here time comes in")]
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    #[inline]
    pub fn now(&self) -> Time {
        Time::from_ps(self.elapsed().as_nanos() as u64 * 1_000)
    }

    #[inline]
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// The processor time that the calling thread has used.
pub fn thread_time() -> Duration {
    ask(libc::clock_gettime, libc::CLOCK_THREAD_CPUTIME_ID)
}

/// What the kernel's own times count from: since boot, while the machine was awake.
pub fn since_boot() -> Duration {
    ask(libc::clock_gettime, libc::CLOCK_MONOTONIC)
}

/// Length of a tick of the kernel's timers (1/HZ).
pub fn tick() -> Duration {
    ask(libc::clock_getres, libc::CLOCK_MONOTONIC_COARSE)
}

type ClockCall = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;

#[expect(unsafe_code, reason = "the standard library has no door to it")]
fn ask(call: ClockCall, clock: libc::clockid_t) -> Duration {
    // SAFETY: all zeros is a valid timespec, and the kernel writes no more than one.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        call(clock, &mut time);
        time
    };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Sets the time of day back by this many seconds, in this process alone: no namespace can do that for the fault bench,
/// which has to know what a clock that was set back does to a key.
pub const CLOCK_BACK: &str = "HITLESS_TEST_CLOCK_BACK";

/// Since 1970.
#[expect(clippy::disallowed_methods, reason = "the edge of the program: here the time of day comes in")]
pub fn time_of_day() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let back = std::env::var(CLOCK_BACK).ok().and_then(|seconds| seconds.parse().ok());
    now.saturating_sub(Duration::from_secs(back.unwrap_or(0)))
}

/// A number that no other run of the program has, as far as chance goes; never zero.
pub fn instance() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(time_of_day()) as u32).max(1)
}

/// From the kernel's random source, which blocks until it has been seeded: also at a boot, no two runs get the same.
#[expect(unsafe_code, reason = "the standard library has no door to it")]
pub fn random() -> std::io::Result<u128> {
    let mut bytes = [0_u8; 16];
    loop {
        // SAFETY: the pointer and the length are those of an array that lives until the call returns.
        let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        // So few bytes come all at once or not at all.
        if got == bytes.len() as isize {
            return Ok(u128::from_ne_bytes(bytes));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
