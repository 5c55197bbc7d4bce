//! Progress on a terminal, and Ctrl-C.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use units::{Progress, StopFlag};

/// Shows how far a run is once it has taken two seconds, and ends it when asked to.
#[derive(Debug)]
pub(crate) struct TerminalProgress {
    stop: Arc<StopFlag>,
    bar: ProgressBar,
    begun: Instant,
    /// True if the bar counts within one run; false if it counts runs.
    of_frames: bool,
}

const SILENT_FOR: Duration = Duration::from_secs(2);
/// The length of a bar that shows a share.
#[cfg(feature = "research")]
const SHARES: u64 = 10_000;

impl TerminalProgress {
    /// Progress of one run of this many frames.
    #[cfg(feature = "research")]
    pub(crate) fn of_frames(frames: u64) -> Self {
        Self::new(frames, "frames", true)
    }

    /// Progress of one run of `len` other units.
    pub(crate) fn counting(len: u64, unit: &str) -> Self {
        Self::new(len, unit, true)
    }

    /// Progress of several runs, which report how many they are.
    pub(crate) fn of_runs() -> Self {
        Self::new(0, "runs", false)
    }

    /// Progress of several runs, each with its share done.
    #[cfg(feature = "research")]
    pub(crate) fn of_shares() -> Self {
        let terminal = Self::new(SHARES, "", false);
        if let Ok(style) = ProgressStyle::with_template("{elapsed} {wide_bar} {msg}, Ctrl-C shows what is known") {
            terminal.bar.set_style(style);
        }
        terminal
    }

    /// Shows the share of everything that is done, and a text beside the bar.
    #[cfg(feature = "research")]
    pub(crate) fn show(&self, share: f64, text: String) {
        self.bar.set_position((share.clamp(0.0, 1.0) * SHARES as f64) as u64);
        self.bar.set_message(text);
    }

    /// The share that the bar is at.
    #[cfg(all(test, feature = "research"))]
    pub(crate) fn shown(&self) -> f64 {
        self.bar.position() as f64 / SHARES as f64
    }

    fn new(len: u64, unit: &str, of_frames: bool) -> Self {
        let stop = stop_on_ctrl_c();
        let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::hidden());
        let template =
            format!("{{elapsed}} {{wide_bar}} {{human_pos}} of {{human_len}} {unit}, Ctrl-C shows what is known");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        Self { stop, bar, begun: now(), of_frames }
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.is_stopped()
    }

    /// Flag for a task that shows no progress.
    pub(crate) fn stop_flag(&self) -> &StopFlag {
        &self.stop
    }

    #[cfg(feature = "research")]
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Stopped by the first Ctrl-C; a second one ends the program at once.
pub(crate) fn stop_on_ctrl_c() -> Arc<StopFlag> {
    let stop = Arc::new(StopFlag::new());
    let handler = Arc::clone(&stop);
    // Failing to listen only loses the partial result.
    let _ = ctrlc::set_handler(move || {
        if handler.is_stopped() {
            end();
        }
        handler.stop();
    });
    stop
}

/// The first Ctrl-C ends the program at once, unless the command listens to it already, and leaves no half of a file.
pub(crate) fn end_on_ctrl_c() {
    let _ = ctrlc::set_handler(|| end());
}

fn end() -> ! {
    files::without_unfinished(|| std::process::exit(130))
}

#[expect(clippy::disallowed_methods, reason = "the one place that may ask for the time of day")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Whole days since 1970-01-01, in UTC.
#[cfg(feature = "research")]
#[expect(clippy::disallowed_methods, reason = "the one place that may ask for the date")]
pub(crate) fn days_since_1970() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400)
}

impl Progress for TerminalProgress {
    fn go_on(&self, done: u64) -> bool {
        if self.begun.elapsed() > SILENT_FOR && std::io::stderr().is_terminal() {
            if self.bar.is_hidden() {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            if self.of_frames {
                self.bar.set_position(done);
            } else {
                self.bar.tick();
            }
        }
        !self.stopped()
    }

    fn expect_parts(&self, parts: usize) {
        self.bar.set_length(parts as u64);
    }

    fn part_done(&self) {
        self.bar.inc(1);
    }
}

/// Number of runs at once: the one asked for, or that of cores.
pub(crate) fn jobs(asked: Option<u16>) -> usize {
    asked.map(usize::from).unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into))
}
