//! Progress on a terminal, and Ctrl-C.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sim::link::Watch;

/// Shows how far a run is once it has taken two seconds, and ends it when asked to.
#[derive(Debug)]
pub struct Terminal {
    stop: Arc<AtomicBool>,
    bar: ProgressBar,
    begun: Instant,
    /// Frames done by the furthest run, or all of them together where several run at once.
    done: AtomicU64,
}

const SILENT_FOR: Duration = Duration::from_secs(2);

impl Terminal {
    /// `frames` are expected in all; unknown if 0.
    pub fn new(frames: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let handler = Arc::clone(&stop);
        // A second Ctrl-C ends the program at once. Failing to listen only loses the partial result.
        let _ = ctrlc::set_handler(move || {
            if handler.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
        });
        let bar = if frames == 0 { ProgressBar::new_spinner() } else { ProgressBar::new(frames) };
        let template = if frames == 0 {
            "{spinner} {elapsed} {msg}"
        } else {
            "{elapsed} {wide_bar} {percent} % of {len} frames, {eta} to go"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_draw_target(ProgressDrawTarget::hidden());
        Self { stop, bar, begun: now(), done: AtomicU64::new(0) }
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that may ask for the time of day")]
fn now() -> Instant {
    Instant::now()
}

impl Watch for Terminal {
    fn go_on(&self, frames: u64) -> bool {
        self.done.fetch_max(frames, Ordering::Relaxed);
        if self.begun.elapsed() > SILENT_FOR && std::io::stderr().is_terminal() {
            if self.bar.is_hidden() {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            self.bar.set_position(self.done.load(Ordering::Relaxed));
            if self.bar.length().is_none() {
                self.bar.set_message("simulating; Ctrl-C prints what is known so far");
                self.bar.tick();
            }
        }
        !self.stopped()
    }
}

/// As many runs at once as asked for, or as there are cores.
pub fn jobs(asked: Option<u16>) -> usize {
    asked.map(usize::from).unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into))
}
