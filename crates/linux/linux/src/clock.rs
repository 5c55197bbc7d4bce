//! The time, as protocols know it: since the start of the program's run. And chance.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use units::{Span, Time};

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

/// The two clocks are read again if more time than this passed between them, and how often at most.
const AT_ONCE: Span = Span::from_us(5);
const TRIES: u32 = 4;

/// A moment by two clocks: the loop's, and the time of day, which the kernel stamps frames with.
#[derive(Clone, Copy, Debug)]
pub struct TwoClocks {
    pub now: Time,
    pub time_of_day: Duration,
}

impl TwoClocks {
    /// Reads both clocks. Call it after reading the frames: one that came while others were read would otherwise seem to
    /// have come before.
    pub fn read(clock: &Clock) -> Self {
        let mut tries = 0;
        loop {
            let clocks = Self { now: clock.now(), time_of_day: time_of_day() };
            tries += 1;
            // Another thread may have had the processor between the two.
            if clock.now().since(clocks.now) < AT_ONCE || tries == TRIES {
                return clocks;
            }
        }
    }

    /// Time of arrival of a frame that carries this stamp, not before `earliest`, when its ring was last found empty. A
    /// time that makes no sense is replaced by the closest one that does.
    pub fn arrival(&self, stamp: Duration, earliest: Time) -> Time {
        let age = self.time_of_day.saturating_sub(stamp).min(Duration::from_secs(3_600));
        let age = Span::from_ns(age.as_nanos() as u64);
        Time::from_ps(self.now.as_ps().saturating_sub(age.as_ps())).max(earliest).min(self.now)
    }
}

/// The processor time that the calling thread has used.
pub fn thread_time() -> Duration {
    ask(libc::clock_gettime, libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Clock of the kernel's own times: time since boot while the machine was awake.
pub fn since_boot() -> Duration {
    ask(libc::clock_gettime, libc::CLOCK_MONOTONIC)
}

/// One of the kernel's clocks, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelClock {
    /// The oscillator itself: nobody sets it or changes its rate. It stands still while the machine is suspended.
    Raw,
    /// Time since boot, also while the machine was suspended; its rate follows what disciplines the system's clock.
    Boot,
    /// Time since 1970; anybody with the right to do so may set it.
    Real,
}

impl KernelClock {
    #[inline]
    pub fn nanoseconds(self) -> u64 {
        let clock = match self {
            Self::Raw => libc::CLOCK_MONOTONIC_RAW,
            Self::Boot => libc::CLOCK_BOOTTIME,
            Self::Real => libc::CLOCK_REALTIME,
        };
        let time = asked(libc::clock_gettime, clock);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

/// Length of a tick of the kernel's timers (1/HZ).
pub fn tick() -> Duration {
    ask(libc::clock_getres, libc::CLOCK_MONOTONIC_COARSE)
}

type ClockCall = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;

fn ask(call: ClockCall, clock: libc::clockid_t) -> Duration {
    let time = asked(call, clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[inline]
#[expect(unsafe_code, reason = "the standard library has no door to it")]
fn asked(call: ClockCall, clock: libc::clockid_t) -> libc::timespec {
    // SAFETY: all zeros is a valid timespec, and the kernel writes no more than one.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        call(clock, &mut time);
        time
    }
}

/// Seconds by which this process takes the time of day to be less than it is.
static BACK: AtomicU64 = AtomicU64::new(0);

/// Sets the time of day back by this many seconds, in this process alone: no namespace can do that for the fault bench,
/// which has to know what a clock that was set back does to a key.
pub fn set_back(seconds: u64) {
    BACK.store(seconds, Ordering::Relaxed);
}

/// Time since 1970.
#[expect(clippy::disallowed_methods, reason = "the edge of the program: here the time of day comes in")]
pub fn time_of_day() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_secs(BACK.load(Ordering::Relaxed)))
}

/// Bounds of true time, in nanoseconds since 1970: the time of day, and the most that it may be wrong by, as the daemon
/// that disciplines it (chrony, ntpd, systemd-timesyncd) told the kernel, which lets it grow between its messages. `None`
/// if nobody disciplines it.
pub fn true_time() -> Option<(u64, u64)> {
    let (state, known) = adjtimex(0, |_| {}).ok()?;
    let is_disciplined = state != libc::TIME_ERROR && known.status & libc::STA_UNSYNC == 0;
    let error = u64::try_from(known.maxerror).ok().filter(|_| is_disciplined)?.saturating_mul(1_000);
    let now = u64::try_from(time_of_day().as_nanos()).ok()?;
    Some((now.saturating_sub(error), now.saturating_add(error)))
}

/// Succeeds if the system's clock may be set, and no other program disciplines it; the error says why not. Changes nothing.
pub fn system_clock_is_free() -> std::io::Result<()> {
    let (state, now) = adjtimex(0, |_| {})?;
    if state != libc::TIME_ERROR && now.status & libc::STA_UNSYNC == 0 {
        let what = "another program (chrony, ntpd, systemd-timesyncd) disciplines the system's clock; stop it first, and wait until \
                    the kernel says so (`adjtimex` or `timedatectl`: not synchronized)";
        return Err(std::io::Error::other(what));
    }
    // To set what is set already takes the same right.
    adjtimex(libc::ADJ_FREQUENCY, |timex| timex.freq = now.freq).map(|_| ())
}

/// Sets the system's clock forward, or back.
pub fn set_system_clock(by_ns: i64) -> std::io::Result<()> {
    let second = 1_000_000_000;
    adjtimex(libc::ADJ_SETOFFSET | libc::ADJ_NANO, |timex| {
        timex.time.tv_sec = by_ns.div_euclid(second);
        timex.time.tv_usec = by_ns.rem_euclid(second);
    })
    .map(|_| ())
}

/// Speeds the system's clock up by this many parts per billion, and tells the kernel by how much it may be
/// wrong, which grows by 500 ppm until it is told again.
pub fn steer_system_clock(ppb: i64, max_error_ns: u64) -> std::io::Result<()> {
    let error_us = i64::try_from(max_error_ns.div_ceil(1_000)).unwrap_or(i64::MAX);
    // Without STA_PLL the rate is what it is set to; without STA_UNSYNC others believe the clock.
    let modes = libc::ADJ_FREQUENCY | libc::ADJ_MAXERROR | libc::ADJ_ESTERROR | libc::ADJ_STATUS;
    adjtimex(modes, |timex| {
        timex.freq = ppb * 65_536 / 1_000;
        timex.status = 0;
        (timex.maxerror, timex.esterror) = (error_us, error_us);
    })
    .map(|_| ())
}

#[expect(unsafe_code, reason = "the standard library has no door to it")]
fn adjtimex(modes: libc::c_uint, change: impl FnOnce(&mut libc::timex)) -> std::io::Result<(libc::c_int, libc::timex)> {
    // SAFETY: all zeros is a valid timex; the kernel reads and writes no more than one.
    unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        change(&mut timex);
        timex.modes = modes;
        let state = libc::adjtimex(&mut timex);
        if state < 0 { Err(std::io::Error::last_os_error()) } else { Ok((state, timex)) }
    }
}

/// A number that no other run of the program has, as far as chance goes; never zero.
pub fn instance() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(time_of_day()) as u32).max(1)
}

/// Random number from the kernel's source, which blocks until it has been seeded: also at a boot, no two runs get the same.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn a_stamp_becomes_a_time_of_the_loop_within_what_is_possible() {
        let day = Duration::from_secs(1_700_000_000);
        let clocks = TwoClocks { now: at(1_000), time_of_day: day };
        assert_eq!(clocks.arrival(day - Duration::from_micros(300), at(500)), at(700));
        assert_eq!(clocks.arrival(day - Duration::from_micros(900), at(500)), at(500), "the ring was empty then");
        assert_eq!(clocks.arrival(Duration::from_secs(7), at(500)), at(500), "no time of day");
        assert_eq!(clocks.arrival(day + Duration::from_secs(1), at(500)), at(1_000), "the clock was set back");
    }
}
