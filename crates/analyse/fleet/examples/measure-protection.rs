//! Prints `data/protection.toml` anew: `cargo run -p hitless-fleet --release --example measure-protection`. It takes
//! about eight minutes.
//!
//! Each row is a run of `sim link` on the setup of LinkGuardian's Fig. 8 (§4.1): full-size frames at line rate over a
//! 100G link between two of the paper's switches, in order.

use std::io::Write;

use faults::{FaultSchedule, LossModel};
use fleet::protection::TARGET;
use sim::link::{HardwareProfile, LinkSimConfig, LinkSimMode, run};
use units::{Prob, Rate, Unwatched};

/// Losses to see for a speed that is good to a thousandth of what the losses cost.
const SHORT: f64 = 2e5;

/// Losses to see to count frames that are lost permanently, or to see that there are none.
const LONG: f64 = 1e6;

/// Three a decade, and both sides of where Eq. 2 asks for one copy more.
const ROWS: [(f64, f64); 27] = [
    (1e-8, SHORT),
    (2.2e-8, SHORT),
    (4.6e-8, SHORT),
    (1e-7, SHORT),
    (2.2e-7, SHORT),
    (4.6e-7, SHORT),
    (1e-6, SHORT),
    (2.2e-6, SHORT),
    (4.6e-6, SHORT),
    (1e-5, SHORT),
    (2.2e-5, SHORT),
    (4.6e-5, LONG),
    (1e-4, LONG),
    (1.1e-4, SHORT),
    (2.2e-4, SHORT),
    (4.6e-4, SHORT),
    (1e-3, SHORT),
    (2.1e-3, SHORT),
    (2.2e-3, SHORT),
    (4.6e-3, LONG),
    (1e-2, LONG),
    (1.1e-2, SHORT),
    (2.2e-2, LONG),
    (4.6e-2, SHORT),
    (1e-1, SHORT),
    (2.2e-1, SHORT),
    (4.6e-1, SHORT),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    let header = [
        "# What protection makes of a 100G link: full-size frames at line rate, in order, on the paper's switch.",
        "# Of the frames offered, so many were lost for good.",
        "# Written by: cargo run -p hitless-fleet --release --example measure-protection",
    ];
    writeln!(out, "{}", header.join("\n"))?;
    for (loss, seen) in ROWS {
        let config = LinkSimConfig {
            rate: Rate::gbps(100),
            profile: HardwareProfile::Tofino,
            mode: LinkSimMode::Ordered,
            forward: FaultSchedule::always(LossModel::PerFrame(Prob::literal(loss))),
            frames: (seen / loss) as u64,
            target: TARGET,
            ..LinkSimConfig::default()
        };
        let outcome = run(&config, &Unwatched)?;
        let speed = outcome.effective_speed.ok_or("nothing arrived")?;
        writeln!(out, "\n[[row]]\nloss = {loss:e}\nspeed = {speed:.6}\ncopies = {}", config.copies())?;
        writeln!(out, "frames = {}\nlost = {}", outcome.frames_offered, outcome.frames_lost)?;
    }
    Ok(())
}
