//! Time that runs took: the one thing in a report that differs from run to run.

use std::time::Instant;

#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "it times the program, not what is simulated")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
