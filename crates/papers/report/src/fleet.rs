//! Fleets as users see them: simulated years, plans, which switches to upgrade first.

mod plan;
mod simulate;
mod upgrade;

pub use plan::plan_text;
pub use simulate::{YearRun, YearRuns};
pub use upgrade::{UPGRADE_STEPS, UpgradeAnswer};

/// A loss as people write it.
pub fn loss(loss: f64) -> String {
    format!("{loss:.2e}")
}
